/*
 * bench_reduce.c - the reductions of collectives against memcpy: of blocks that stay in the second cache, as
 * they come off a connection, and of 64 MiB.
 *
 * Prints one JSON object: GB/s of input, both operands counted, of every kernel; memcpy likewise with what it
 * reads and writes.
 *
 * usage: bench_reduce
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collective/reduce.h"
#include "report.h"

#define RUNS       15u
#define HOT_BYTES  ((size_t)256 << 10)
#define COLD_BYTES ((size_t)64 << 20)
#define HOT_PASSES 256u

static uint8_t *left, *right;

static double copy_rate(size_t bytes, uint32_t passes)
{
    double all[RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        const double begin = report_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t pass = 0; pass < passes; pass++) {
            memcpy(left, right, bytes);
            __asm__ volatile("" ::: "memory");
        }
        all[run] = 2 * (double)bytes * passes / (report_seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
    }
    return report_quantile(all, RUNS, 0.5);
}

static double rate(const struct reduce_kernel *kernel, enum element_type type,
                   enum reduce_operation operation, size_t bytes, uint32_t passes)
{
    double all[RUNS];
    const size_t count = bytes / element_bytes_of(type);
    for (uint32_t run = 0; run < RUNS; run++) {
        const double begin = report_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t pass = 0; pass < passes; pass++)
            kernel->reduce[type][operation](left, left, right, count);
        all[run] = 2 * (double)bytes * passes / (report_seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
    }
    return report_quantile(all, RUNS, 0.5);
}

int main(void)
{
    left = aligned_alloc(4096, COLD_BYTES);
    right = aligned_alloc(4096, COLD_BYTES);
    if (!left || !right) {
        fprintf(stderr, "bench_reduce: no memory\n");
        return 1;
    }
    memset(left, 0, COLD_BYTES);
    memset(right, 0, COLD_BYTES);
    printf("{\"runs\":%u,\"memcpy_hot\":%.2f,\"memcpy_cold\":%.2f", RUNS, copy_rate(HOT_BYTES, HOT_PASSES),
           copy_rate(COLD_BYTES, 1));
    for (const struct reduce_kernel *const *kernel = reduce_kernels(); *kernel; kernel++)
        for (int type = 0; type < ELEMENT_COUNT; type++)
            for (int operation = REDUCE_SUM; operation <= REDUCE_MIN; operation++) {
                static const char *const names[] = {"sum", "prod", "min"};
                const double hot = rate(*kernel, (enum element_type)type, (enum reduce_operation)operation,
                                        HOT_BYTES, HOT_PASSES / 4);
                printf(",\"%s_%s_%s_hot\":%.2f", (*kernel)->name, element_name((enum element_type)type),
                       names[operation], hot);
                if (operation == REDUCE_SUM)
                    printf(",\"%s_%s_sum_cold\":%.2f", (*kernel)->name,
                           element_name((enum element_type)type),
                           rate(*kernel, (enum element_type)type, REDUCE_SUM, COLD_BYTES, 1));
            }
    printf("}\n");
    free(left);
    free(right);
    return 0;
}
