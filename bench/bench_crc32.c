/*
 * bench_crc32.c - the CRC of packets, by itself and before each is copied, of every kernel beside memcpy:
 * of 16 packets in turn, which stay in the caches, and from there to 64 MiB.
 *
 * Prints one JSON object: GB/s of payload.
 *
 * usage: bench_crc32
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"
#include "wire/crc32.h"

#define RUNS         15u
#define PACKET_BYTES ((size_t)4096)
#define HOT_PACKETS  16u
#define COLD_BYTES   ((size_t)64 << 20)

static uint8_t hot[HOT_PACKETS * PACKET_BYTES];
static uint8_t *cold;
static volatile uint32_t sink;

/* Packet after packet from hot memory; where it copies, to cold memory. kernel NULL: memcpy alone. */
static double rate(const struct crc32_kernel *kernel, bool copies)
{
    double all[RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        uint32_t crc = 0;
        const double begin = report_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (size_t at = 0; at < COLD_BYTES; at += PACKET_BYTES) {
            const uint8_t *from = hot + at % sizeof hot;
            if (kernel)
                crc ^= kernel->add(0, from, PACKET_BYTES, copies ? cold + at : NULL);
            if (copies)
                memcpy(cold + at, from, PACKET_BYTES);
        }
        all[run] = (double)COLD_BYTES / (report_seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
        sink = crc;
    }
    return report_quantile(all, RUNS, 0.5);
}

int main(void)
{
    cold = aligned_alloc(4096, COLD_BYTES);
    if (!cold) {
        fprintf(stderr, "bench_crc32: no memory\n");
        return 1;
    }
    memset(cold, 0, COLD_BYTES);
    memset(hot, 1, sizeof hot);
    printf("{\"runs\":%u,\"memcpy\":%.2f", RUNS, rate(NULL, true));
    for (const struct crc32_kernel *const *kernel = crc32_kernels; *kernel; kernel++)
        if ((*kernel)->runs_here())
            printf(",\"%s\":%.2f,\"%s_copy\":%.2f", (*kernel)->name, rate(*kernel, false), (*kernel)->name,
                   rate(*kernel, true));
    printf("}\n");
    free(cold);
    return 0;
}
