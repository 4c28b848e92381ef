/*
 * How fast the Hadamard transform is on a GPU: 128 MiB, beside the device's own copy of the same buffers; and
 * what splitting a message costs less than transforming it whole (OptiNIC paper, table 3).
 *
 * All cases take turns with a copy, each timed by events; medians.
 *
 * usage: bench_hadamard_cuda [LOG]           LOG: log2 of the elements of a group, other than the usual
 * {"device":…,"runs":…,"copy":…,…}           GB/s of the tensor; what `cases` lists, "…_decode" too.
 *                                            Exits 77 without a GPU
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard_cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/prng.h"
#include "coding/hadamard/cuda/kernels.h"
#include "report.h"

#define TENSOR_BYTES ((size_t)128 << 20)
#define RUNS         15u
#define WARM_UP      2u

struct bench_case {
    const char *name;
    enum lh_hadamard_type type;
    uint32_t block, stride;
    bool in_place;
};

static const struct bench_case cases[] = {
    {"f32_block1024", LH_HADAMARD_F32, 1024, 1, false},
    {"f32_block1024_stride4", LH_HADAMARD_F32, 1024, 4, false},
    {"f32_block1024_stride32", LH_HADAMARD_F32, 1024, 32, false},
    {"f32_block1024_stride256", LH_HADAMARD_F32, 1024, 256, false},
    {"f32_block1024_stride1024", LH_HADAMARD_F32, 1024, 1024, false},
    {"f32_block1024_in_place", LH_HADAMARD_F32, 1024, 1, true},
    {"f32_block1024_stride1024_in_place", LH_HADAMARD_F32, 1024, 1024, true},
    {"f32_block64", LH_HADAMARD_F32, 64, 1, false},
    {"f32_block2048", LH_HADAMARD_F32, 2048, 1, false},
    {"f32_block2048_stride2048", LH_HADAMARD_F32, 2048, 2048, false},
    {"bf16_block1024", LH_HADAMARD_BF16, 1024, 1, false},
    {"bf16_block1024_stride1024", LH_HADAMARD_BF16, 1024, 1024, false},
    {"bf16_block2048", LH_HADAMARD_BF16, 2048, 1, false},
    {"bf16_block2048_stride256", LH_HADAMARD_BF16, 2048, 256, false},
    {"bf16_block2048_stride2048", LH_HADAMARD_BF16, 2048, 2048, false},
    {"f16_block2048", LH_HADAMARD_F16, 2048, 1, false},
    {"f16_block2048_stride2048", LH_HADAMARD_F16, 2048, 2048, false},
    {"splits_1", LH_HADAMARD_F32, 1u << 25, 1, false},
    {"splits_4", LH_HADAMARD_F32, 1u << 23, 1, false},
    {"splits_16", LH_HADAMARD_F32, 1u << 21, 1, false},
    {"splits_64", LH_HADAMARD_F32, 1u << 19, 1, false},
};
#define CASES (sizeof cases / sizeof cases[0])

static uint8_t *in, *out, *pristine[3]; /* of each type */
static struct lh_hadamard_cuda_report *report;
static cudaEvent_t begin, middle, end;

static void check(cudaError_t failed, const char *what)
{
    if (failed == cudaSuccess)
        return;
    fprintf(stderr, "bench_hadamard_cuda: %s: %s\n", what, cudaGetErrorString(failed));
    exit(1);
}

/* Numbers around 1. */
static void fill(uint8_t *host, enum lh_hadamard_type type, uint8_t *device)
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
        memcpy(host + at, &bits, sizeof bits);
    }
    check(cudaMemcpy(device, host, TENSOR_BYTES, cudaMemcpyHostToDevice), "copy to the device");
}

static void create(void)
{
    static const enum lh_hadamard_type types[] = {LH_HADAMARD_F32, LH_HADAMARD_BF16, LH_HADAMARD_F16};
    uint8_t *host = malloc(TENSOR_BYTES);
    if (!host)
        exit(1);
    check(cudaMalloc((void **)&in, TENSOR_BYTES), "memory");
    check(cudaMalloc((void **)&out, TENSOR_BYTES), "memory");
    check(cudaMalloc((void **)&report, sizeof *report), "memory");
    for (unsigned i = 0; i < 3; i++) {
        check(cudaMalloc((void **)&pristine[i], TENSOR_BYTES), "memory");
        fill(host, types[i], pristine[i]);
    }
    free(host);
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&middle), "event");
    check(cudaEventCreate(&end), "event");
}

static double rate(cudaEvent_t from, cudaEvent_t to)
{
    float milliseconds;
    check(cudaEventElapsedTime(&milliseconds, from, to), "event");
    return (double)TENSOR_BYTES / (double)milliseconds * 1e-6;
}

static double copy_rate(void)
{
    check(cudaEventRecord(begin, NULL), "event");
    check(cudaMemcpyAsync(out, in, TENSOR_BYTES, cudaMemcpyDeviceToDevice, NULL), "copy");
    check(cudaEventRecord(end, NULL), "event");
    check(cudaEventSynchronize(end), "copy");
    return rate(begin, end);
}

/* GB/s to encode, and to decode. */
static void measure(const struct bench_case *one, double *encode, double *decode)
{
    const struct lh_hadamard hadamard = {one->type, LH_HADAMARD_REFUSE, one->block, one->stride, 1, NULL};
    const size_t count = TENSOR_BYTES / (one->type == LH_HADAMARD_F32 ? 4 : 2);
    uint8_t *to = one->in_place ? in : out;
    struct lh_hadamard_cuda_report found;
    check(cudaMemcpy(in, pristine[one->type - LH_HADAMARD_F32], TENSOR_BYTES, cudaMemcpyDeviceToDevice),
          "copy");
    check(cudaEventRecord(begin, NULL), "event");
    int failed = lh_hadamard_cuda_encode(&hadamard, in, to, count, report, NULL);
    check(cudaEventRecord(middle, NULL), "event");
    failed = failed ? failed : lh_hadamard_cuda_decode(&hadamard, NULL, to, in, count, report, NULL);
    check(cudaEventRecord(end, NULL), "event");
    check(cudaEventSynchronize(end), one->name);
    check(cudaMemcpy(&found, report, sizeof found, cudaMemcpyDeviceToHost), "report");
    failed = failed ? failed : lh_hadamard_cuda_result(&hadamard, &found, NULL);
    if (failed) {
        fprintf(stderr, "bench_hadamard_cuda: %s: %s\n", one->name, lh_last_error());
        exit(1);
    }
    *encode = rate(begin, middle);
    *decode = rate(middle, end);
}

int main(int argc, char **argv)
{
    static double encode[CASES][RUNS], decode[CASES][RUNS], copy[CASES * RUNS];
    struct cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "bench_hadamard_cuda: no GPU\n");
        return 77;
    }
    if (argc > 1)
        cuda_group_log_use((uint32_t)strtoul(argv[1], NULL, 10));
    create();
    for (unsigned run = 0; run < RUNS + WARM_UP; run++)
        for (size_t c = 0; c < CASES; c++) {
            const unsigned kept = run < WARM_UP ? 0 : run - WARM_UP;
            copy[c * RUNS + kept] = copy_rate();
            measure(&cases[c], &encode[c][kept], &decode[c][kept]);
        }
    printf("{\"device\":\"%s\",\"runs\":%u,\"copy\":%.1f", device.name, RUNS,
           report_quantile(copy, CASES * RUNS, 0.5));
    for (size_t c = 0; c < CASES; c++)
        printf(",\"%s\":%.1f,\"%s_decode\":%.1f", cases[c].name, report_quantile(encode[c], RUNS, 0.5),
               cases[c].name, report_quantile(decode[c], RUNS, 0.5));
    printf("}\n");
    return 0;
}
