/*
 * bench_copy.c - lh_copy() beside memcpy(): blocks of 256 KiB out of the caches into 64 MiB, by the distance
 * from source to destination modulo 4 KiB.
 *
 * Prints one JSON object: GB/s.
 *
 * usage: bench_copy
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "report.h"

#define RUNS        9u
#define BLOCK_BYTES ((size_t)256 << 10)
#define COLD_BYTES  ((size_t)64 << 20)
#define PAGE_BYTES  ((size_t)4096)

static uint8_t *hot, *cold;

static double rate(bool plain, size_t distance)
{
    double all[RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        const double begin = report_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (size_t at = 0; at < COLD_BYTES; at += BLOCK_BYTES)
            if (plain)
                memcpy(cold + at + distance, hot, BLOCK_BYTES);
            else
                lh_copy(cold + at + distance, hot, BLOCK_BYTES);
        all[run] = (double)COLD_BYTES / (report_seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
    }
    return report_quantile(all, RUNS, 0.5);
}

int main(void)
{
    static const size_t distances[] = {0, 1, 16, 31, 32, 64};
    hot = aligned_alloc(PAGE_BYTES, BLOCK_BYTES);
    cold = aligned_alloc(PAGE_BYTES, COLD_BYTES + PAGE_BYTES);
    if (!hot || !cold) {
        fprintf(stderr, "bench_copy: no memory\n");
        return 1;
    }
    memset(hot, 1, BLOCK_BYTES);
    memset(cold, 0, COLD_BYTES + PAGE_BYTES);
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++)
        printf("%s\"distance_%zu\": {\"memcpy_GBps\": %.2f, \"lh_copy_GBps\": %.2f}", i == 0 ? "{" : ", ",
               distances[i], rate(true, distances[i]), rate(false, distances[i]));
    printf("}\n");
    free(hot);
    free(cold);
    return 0;
}
