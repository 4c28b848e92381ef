/*
 * How fast the Hadamard transform is: 128 MiB out of place, one core, beside memcpy() of the same buffers;
 * and what splitting a message costs less than transforming it whole (OptiNIC paper, table 3).
 *
 * All cases take turns, so that what else runs on the machine hits all of them; medians. By CPU time; two
 * threads by wall time.
 *
 * usage: bench_hadamard
 * {"kernel":…,"runs":…,"memcpy":…,…}         GB/s of the tensor; what `cases` lists, "…_decode" too
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/prng.h"
#include "coding/hadamard/hadamard_kernel.h"
#include "report.h"

#define TENSOR_BYTES    ((size_t)128 << 20)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define RUNS            5u

struct bench_case {
    const char *name;
    enum lh_hadamard_type type;
    uint32_t block, stride;
    bool base, in_place;
    uint32_t threads;
};

static const struct bench_case cases[] = {
    {"f32_block1024", LH_HADAMARD_F32, 1024, 1, false, false, 0},
    {"f32_block1024_stride4", LH_HADAMARD_F32, 1024, 4, false, false, 0},
    {"f32_block1024_stride32", LH_HADAMARD_F32, 1024, 32, false, false, 0},
    {"f32_block1024_stride256", LH_HADAMARD_F32, 1024, 256, false, false, 0},
    {"f32_block1024_stride1024", LH_HADAMARD_F32, 1024, 1024, false, false, 0},
    {"f32_block1024_in_place", LH_HADAMARD_F32, 1024, 1, false, true, 0},
    {"f32_block1024_stride1024_in_place", LH_HADAMARD_F32, 1024, 1024, false, true, 0},
    {"bf16_block1024", LH_HADAMARD_BF16, 1024, 1, false, false, 0},
    {"bf16_block2048", LH_HADAMARD_BF16, 2048, 1, false, false, 0},
    {"bf16_block2048_stride2048", LH_HADAMARD_BF16, 2048, 2048, false, false, 0},
    {"f16_block2048", LH_HADAMARD_F16, 2048, 1, false, false, 0},
    {"f16_block2048_stride2048", LH_HADAMARD_F16, 2048, 2048, false, false, 0},
    {"f32_block1024_base", LH_HADAMARD_F32, 1024, 1, true, false, 0},
    {"f32_block1024_wall", LH_HADAMARD_F32, 1024, 1, false, false, 0},
    {"f32_block1024_wall_two_threads", LH_HADAMARD_F32, 1024, 1, false, false, 1},
    {"splits_1", LH_HADAMARD_F32, 1u << 25, 1, false, false, 0},
    {"splits_4", LH_HADAMARD_F32, 1u << 23, 1, false, false, 0},
    {"splits_16", LH_HADAMARD_F32, 1u << 21, 1, false, false, 0},
    {"splits_64", LH_HADAMARD_F32, 1u << 19, 1, false, false, 0},
};
#define CASES (sizeof cases / sizeof cases[0])

static uint8_t *in, *out;
static struct lh_encoder *two_threads;

static uint8_t *memory(void)
{
    uint8_t *at = mmap(NULL, TENSOR_BYTES + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    at += HUGE_PAGE_BYTES - (uintptr_t)at % HUGE_PAGE_BYTES;
    madvise(at, TENSOR_BYTES, MADV_HUGEPAGE);
    memset(at, 0, TENSOR_BYTES);
    return at;
}

/* Numbers around 1 in each type. */
static void fill(enum lh_hadamard_type type)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (size_t at = 0; at < TENSOR_BYTES; at += 8) {
        uint64_t bits = lh_prng_next(&prng);
        bits = type == LH_HADAMARD_F32
                   ? (bits & UINT64_C(0x807fffff807fffff)) | UINT64_C(0x3f8000003f800000)
               : type == LH_HADAMARD_BF16
                   ? (bits & UINT64_C(0x807f807f807f807f)) | UINT64_C(0x3f803f803f803f80)
                   : (bits & UINT64_C(0x83ff83ff83ff83ff)) | UINT64_C(0x3c003c003c003c00);
        memcpy(in + at, &bits, sizeof bits);
    }
}

/* GB/s to encode, and to decode; what was in `in` is there again, but for rounding. */
static void measure(const struct bench_case *one, double *encode, double *decode)
{
    const clockid_t clock = strstr(one->name, "wall") ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    struct lh_hadamard hadamard = {
        one->type, LH_HADAMARD_REFUSE, one->block, one->stride, 1, one->threads ? two_threads : NULL};
    const size_t count = TENSOR_BYTES / (one->type == LH_HADAMARD_F32 ? 4 : 2);
    uint8_t *to = one->in_place ? in : out;
    if (one->base)
        hadamard_kernel_use(&hadamard_kernel_base);
    double begin = report_seconds(clock);
    int failed = lh_hadamard_encode(&hadamard, in, to, count, NULL);
    double middle = report_seconds(clock);
    failed = failed ? failed : lh_hadamard_decode(&hadamard, NULL, to, in, count, NULL);
    double end = report_seconds(clock);
    hadamard_kernel_use(hadamard_kernels()[0]);
    if (failed) {
        fprintf(stderr, "bench_hadamard: %s: %s\n", one->name, lh_last_error());
        exit(1);
    }
    *encode = (double)TENSOR_BYTES / (middle - begin) * 1e-9;
    *decode = (double)TENSOR_BYTES / (end - middle) * 1e-9;
}

int main(void)
{
    static double encode[CASES][RUNS], decode[CASES][RUNS], copy[RUNS];
    in = memory();
    out = memory();
    if (lh_encoder_create(1, NULL, &two_threads) != 0) {
        fprintf(stderr, "bench_hadamard: %s\n", lh_last_error());
        return 1;
    }
    for (unsigned run = 0; run < RUNS; run++) {
        enum lh_hadamard_type filled = 0;
        for (size_t c = 0; c < CASES; c++) {
            if (cases[c].type != filled)
                fill(filled = cases[c].type);
            if (c == 0) {
                double begin = report_seconds(CLOCK_THREAD_CPUTIME_ID);
                memcpy(out, in, TENSOR_BYTES);
                copy[run] = (double)TENSOR_BYTES / (report_seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
            }
            measure(&cases[c], &encode[c][run], &decode[c][run]);
        }
    }
    printf("{\"kernel\":\"%s\",\"runs\":%u,\"memcpy\":%.3f", hadamard_kernels()[0]->name, RUNS,
           report_quantile(copy, RUNS, 0.5));
    for (size_t c = 0; c < CASES; c++)
        printf(",\"%s\":%.3f,\"%s_decode\":%.3f", cases[c].name, report_quantile(encode[c], RUNS, 0.5),
               cases[c].name, report_quantile(decode[c], RUNS, 0.5));
    printf("}\n");
    lh_encoder_destroy(two_threads);
    return 0;
}
