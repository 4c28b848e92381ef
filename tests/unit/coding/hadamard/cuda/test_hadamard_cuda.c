/*
 * test_hadamard_cuda.c - the GPU's transform beside the CPU's: all blocks, strides and types, with tails, in
 * place and out of place, at any alignment; what is missing, what is not finite. Skipped without a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard_cuda.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include <cmocka.h>

#include "support/hadamard_reference.h"

#define COUNT_MAX    ((size_t)3 << 13)
#define TENSOR_BYTES ((size_t)32 << 20)
/* Around what is written, to see what should not be; a multiple of 16. */
#define MARGIN  64u
#define NOWHERE UINT64_MAX

static const enum lh_hadamard_type types[] = {LH_HADAMARD_F32, LH_HADAMARD_BF16, LH_HADAMARD_F16};

#define CUDA(call) assert_int_equal((call), cudaSuccess)

/* Memory of both sides; `here` has the margins, too. */
static struct {
    uint8_t *device[2];
    struct lh_hadamard_cuda_report *report;
    uint8_t *in, *cpu, *here;
    size_t offset[2]; /* bytes, of both device tensors */
    size_t bytes;
} memory;

static void *device(unsigned which)
{
    return memory.device[which] + MARGIN + memory.offset[which];
}

static void upload(unsigned which, const void *from)
{
    CUDA(cudaMemset(memory.device[which], 0xa5, memory.bytes + memory.offset[which] + 2 * MARGIN));
    CUDA(cudaMemcpy(device(which), from, memory.bytes, cudaMemcpyHostToDevice));
}

/* The tensor, in memory of the host; nothing around it was changed. */
static uint8_t *download(unsigned which)
{
    const size_t margin = MARGIN + memory.offset[which];
    CUDA(cudaMemcpy(memory.here, memory.device[which], memory.bytes + margin + MARGIN,
                    cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < margin; i++)
        assert_int_equal(memory.here[i], 0xa5);
    for (size_t i = 0; i < MARGIN; i++)
        assert_int_equal(memory.here[margin + memory.bytes + i], 0xa5);
    return memory.here + margin;
}

static int result_of(const struct lh_hadamard *hadamard, struct lh_hadamard_result *result)
{
    struct lh_hadamard_cuda_report report;
    CUDA(cudaMemcpy(&report, memory.report, sizeof report, cudaMemcpyDeviceToHost));
    return lh_hadamard_cuda_result(hadamard, &report, result);
}

static int encode(const struct lh_hadamard *hadamard, unsigned in, unsigned out, size_t count,
                  struct lh_hadamard_result *result)
{
    int failed = lh_hadamard_cuda_encode(hadamard, device(in), device(out), count, memory.report, NULL);
    if (failed)
        fail_msg("%s", lh_last_error());
    return result_of(hadamard, result);
}

static int decode(const struct lh_hadamard *hadamard, const struct lh_hadamard_arrival *arrival,
                  unsigned in, unsigned out, size_t count, struct lh_hadamard_result *result)
{
    int failed =
        lh_hadamard_cuda_decode(hadamard, arrival, device(in), device(out), count, memory.report, NULL);
    if (failed)
        fail_msg("%s", lh_last_error());
    return result_of(hadamard, result);
}

/* A tensor of normal numbers, which are not all at the device's favourite places. */
static void tensor_make(const struct lh_hadamard *hadamard, size_t count, struct lh_prng *prng)
{
    const size_t unit = tensor_bytes(hadamard->type);
    memory.bytes = count * unit;
    assert_true(memory.bytes <= TENSOR_BYTES);
    for (unsigned i = 0; i < 2; i++)
        memory.offset[i] = lh_prng_chance(prng, 0.6) ? 0 : unit * lh_prng_below(prng, 16);
    for (size_t i = 0; i < count; i++)
        tensor_put(memory.in, i, tensor_normal(prng), hadamard->type);
}

/* The largest norm of p elements that begin at a multiple of p. */
static double largest_norm(const struct lh_hadamard *hadamard, const void *tensor, size_t count)
{
    double squares = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = tensor_get(tensor, i, hadamard->type);
        squares = i % hadamard->block == 0 ? value * value : squares + value * value;
        largest = squares > largest ? squares : largest;
    }
    return sqrt(largest);
}

/* units: how often results were rounded, of both sides. */
static void check_numbers(const struct lh_hadamard *hadamard, const void *found, const void *wanted,
                          size_t count, double norm, double units, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        const double value = tensor_get(found, i, hadamard->type);
        const double other = tensor_get(wanted, i, hadamard->type);
        double tolerance = units * tensor_tolerance(hadamard, other, norm);
        if (units > 2 && hadamard->type != LH_HADAMARD_F32)
            tolerance += 6 * ldexp(1, hadamard->type == LH_HADAMARD_BF16 ? -8 : -11);
        if (!(fabs(value - other) <= tolerance))
            fail_msg("%s, type %d, block %u, stride %u, offsets %zu, %zu: element %zu of %zu is %.9g, not "
                     "%.9g +- %.2g",
                     what, (int)hadamard->type, hadamard->block, hadamard->stride, memory.offset[0],
                     memory.offset[1], i, count, value, other, tolerance);
    }
}

static void check_shape(const struct lh_hadamard *hadamard, size_t count, struct lh_prng *prng)
{
    struct lh_hadamard_result result;
    tensor_make(hadamard, count, prng);
    const double norm = largest_norm(hadamard, memory.in, count);
    assert_int_equal(lh_hadamard_encode(hadamard, memory.in, memory.cpu, count, NULL), 0);
    upload(0, memory.in);
    upload(1, memory.in);
    assert_int_equal(encode(hadamard, 0, 1, count, &result), 0);
    assert_true(result.zeroed == 0 && result.index == NOWHERE);
    check_numbers(hadamard, download(1), memory.cpu, count, norm, 2, "encode");
    assert_memory_equal(download(0), memory.in, memory.bytes);
    assert_int_equal(encode(hadamard, 0, 0, count, NULL), 0);
    check_numbers(hadamard, download(0), memory.cpu, count, norm, 2, "encode in place");
    upload(0, memory.cpu);
    assert_int_equal(decode(hadamard, NULL, 0, 1, count, NULL), 0);
    check_numbers(hadamard, download(1), memory.in, count, norm, 4, "decode");
    upload(0, memory.cpu);
    assert_int_equal(decode(hadamard, NULL, 0, 0, count, NULL), 0);
    check_numbers(hadamard, download(0), memory.in, count, norm, 4, "decode in place");
}

/* A tensor of two tiles at most, with a tail, or of a tail only. */
static void test_every_shape(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 12);
    for (unsigned t = 0; t < 3; t++) {
        const uint32_t block_max = types[t] == LH_HADAMARD_F32 ? 4096 : LH_HADAMARD_HALF_BLOCK_MAX;
        for (uint32_t block = 1; block <= block_max; block *= 2)
            for (uint32_t stride = 1; stride <= block; stride *= 2) {
                struct lh_hadamard hadamard = {
                    .type = types[t], .block = block, .stride = stride, .seed = lh_prng_next(&prng)};
                const size_t tile = (size_t)block * stride;
                const size_t maximum = 2 * tile + tile / 2 < COUNT_MAX ? 2 * tile + tile / 2 : COUNT_MAX;
                check_shape(&hadamard, maximum + lh_prng_below(&prng, block), &prng);
            }
    }
}

/* Tiles that exceed a thread block's memory; with more than one, and a tail. */
static void test_whole_tiles(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 4);
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t block = 128; block <= 2048; block *= 2)
            for (uint32_t stride = block; stride >= block / 64; stride /= 8) {
                struct lh_hadamard hadamard = {
                    .type = types[t], .block = block, .stride = stride, .seed = lh_prng_next(&prng)};
                const size_t tile = (size_t)block * stride;
                check_shape(&hadamard, tile < 1 << 18 ? 3 * tile + tile / 4 + 5 : tile, &prng);
            }
}

static void test_long_blocks(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    for (uint32_t block = 4096; block <= 1u << 20; block *= 2)
        for (uint32_t stride = 1; stride <= 64; stride *= 8) {
            struct lh_hadamard hadamard = {LH_HADAMARD_F32, LH_HADAMARD_REFUSE, block, stride, 5, NULL};
            if ((size_t)block * stride <= 1u << 21)
                check_shape(&hadamard, (size_t)block * stride + block / 2 + 5, &prng);
        }
}

static void test_every_tail(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 6);
    for (unsigned t = 0; t < 3; t++)
        for (size_t count = 0; count <= 700; count += count < 70 ? 1 : 9) {
            struct lh_hadamard hadamard = {.type = types[t], .block = 64, .stride = 4, .seed = count};
            check_shape(&hadamard, count, &prng);
        }
}

/* ---- what is missing -----------------------------------------------------------------------------------
 */

static void test_arrival(void **state)
{
    (void)state;
    static struct lh_range missing[1000];
    static uint32_t contributions[COUNT_MAX];
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    for (unsigned round = 0; round < 120; round++) {
        struct lh_hadamard hadamard = {
            .type = types[round % 3], .block = 1u << lh_prng_below(&prng, 12), .seed = round};
        hadamard.stride = 1u << lh_prng_below(&prng, 1 + (uint64_t)__builtin_ctz(hadamard.block));
        if (round % 10 == 0 && hadamard.type == LH_HADAMARD_F32)
            hadamard.block = 8192;
        const size_t count = 1 + lh_prng_below(&prng, COUNT_MAX);
        tensor_make(&hadamard, count, &prng);
        const double norm = 4 * largest_norm(&hadamard, memory.in, count);
        struct lh_hadamard_arrival arrival = {.missing = missing, .contributors = 4};
        arrival.missing_count = lh_prng_below(&prng, round % 4 == 0 ? 1000 : 10);
        for (uint64_t i = 0; i < arrival.missing_count; i++) {
            missing[i].offset = lh_prng_below(&prng, memory.bytes);
            missing[i].bytes = lh_prng_below(&prng, memory.bytes - missing[i].offset + 1) / (1 + i % 1000);
        }
        if (round % 3 != 1)
            arrival.contributions = contributions;
        for (size_t packet = 0; packet <= count / hadamard.block; packet++)
            contributions[packet] = (uint32_t)lh_prng_below(&prng, 5);
        upload(0, memory.in);
        upload(1, memory.in);
        const unsigned out = round % 2;
        assert_int_equal(decode(&hadamard, &arrival, 0, out, count, NULL), 0);
        assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, memory.in, memory.cpu, count, NULL), 0);
        check_numbers(&hadamard, download(out), memory.cpu, count, norm, 2, "decode what arrived");
    }
}

/* ---- what is not finite --------------------------------------------------------------------------------
 */

/* One round with two such elements, on both sides. */
static void check_non_finite(struct lh_hadamard hadamard, size_t count, bool in_place, bool decodes,
                             struct lh_prng *prng)
{
    tensor_make(&hadamard, count, prng);
    const size_t bad = lh_prng_below(prng, count), other = bad + lh_prng_below(prng, count - bad);
    tensor_put(memory.in, bad, (double)(hadamard.seed % 2 ? NAN : -INFINITY), hadamard.type);
    tensor_put(memory.in, other, (double)INFINITY, hadamard.type);
    upload(0, memory.in);
    upload(1, memory.in);
    const unsigned out = in_place ? 0 : 1;
    struct lh_hadamard_result result;
    int error = decodes ? decode(&hadamard, NULL, 0, out, count, &result)
                        : encode(&hadamard, 0, out, count, &result);
    assert_int_equal(error, -LH_ERANGE);
    if (result.index != bad || !strstr(lh_last_error(), "NaN"))
        fail_msg("block %u, stride %u, count %zu, %s%s: %s, not element %zu", hadamard.block,
                 hadamard.stride, count, decodes ? "decode" : "encode", in_place ? " in place" : "",
                 lh_last_error(), bad);
    assert_memory_equal(download(0), memory.in, memory.bytes);

    hadamard.non_finite = LH_HADAMARD_ZERO;
    error = decodes ? decode(&hadamard, NULL, 0, out, count, &result)
                    : encode(&hadamard, 0, out, count, &result);
    assert_int_equal(error, 0);
    assert_int_equal(result.zeroed, bad == other ? 1 : 2);
    assert_true(result.index == NOWHERE);
    tensor_put(memory.in, bad, 0, hadamard.type);
    tensor_put(memory.in, other, 0, hadamard.type);
    const double norm = largest_norm(&hadamard, memory.in, count);
    error = decodes ? lh_hadamard_decode(&hadamard, NULL, memory.in, memory.cpu, count, NULL)
                    : lh_hadamard_encode(&hadamard, memory.in, memory.cpu, count, NULL);
    assert_int_equal(error, 0);
    check_numbers(&hadamard, download(out), memory.cpu, count, norm, 2, "with zeroed elements");
}

static void test_non_finite(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 8);
    for (unsigned round = 0; round < 300; round++) {
        struct lh_hadamard hadamard = {
            .type = types[round % 3], .block = 1u << lh_prng_below(&prng, 12), .seed = round};
        hadamard.stride = 1u << lh_prng_below(&prng, 1 + (uint64_t)__builtin_ctz(hadamard.block));
        if (round % 10 == 0 && hadamard.type == LH_HADAMARD_F32)
            hadamard.block = 8192;
        const size_t count = 1 + lh_prng_below(&prng, COUNT_MAX);
        check_non_finite(hadamard, count, lh_prng_chance(&prng, 0.5), lh_prng_chance(&prng, 0.5), &prng);
    }
    /* Groups that are a part of their tile. */
    for (unsigned t = 0; t < 3; t++) {
        struct lh_hadamard hadamard = {.type = types[t], .block = 512, .stride = 512, .seed = t};
        for (unsigned i = 0; i < 4; i++)
            check_non_finite(hadamard, 512 * 512 + 1000, i / 2, i % 2, &prng);
    }
}

/* Finite numbers, the sums of which are too large. */
static void test_too_large(void **state)
{
    (void)state;
    static const double largest[] = {3e38, 3e38, 65504};
    struct lh_prng prng;
    lh_prng_seed(&prng, 9);
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t block = 16; block <= (t == 0 ? 1u << 14 : 2048u); block *= 2)
            for (uint32_t stride = 1; stride <= 16; stride *= 4) {
                struct lh_hadamard hadamard = {.type = types[t], .block = block, .stride = stride};
                const size_t count = (size_t)block * stride * 2;
                tensor_make(&hadamard, count, &prng);
                /* All of one sign: coefficient 0 is sqrt(p) times as large. */
                for (size_t i = block; i < 2 * block; i++)
                    tensor_put(memory.in, i, largest[t] * tensor_sign(0, i), types[t]);
                upload(0, memory.in);
                upload(1, memory.in);
                struct lh_hadamard_result result;
                assert_int_equal(encode(&hadamard, 0, stride == 4 ? 0 : 1, count, &result), -LH_ERANGE);
                assert_non_null(strstr(lh_last_error(), "exceeds the type"));
                assert_true(result.index <= block);
            }
    /* A contribution that is too large once it is scaled. */
    struct lh_hadamard hadamard = {.type = LH_HADAMARD_F32, .block = 64, .stride = 8};
    const uint32_t contributions[] = {2, 1, 2, 2, 2, 2, 2, 2};
    const struct lh_hadamard_arrival arrival = {.contributions = contributions, .contributors = 2};
    tensor_make(&hadamard, 512, &prng);
    tensor_put(memory.in, 70, 3e38, LH_HADAMARD_F32);
    upload(0, memory.in);
    upload(1, memory.in);
    assert_int_equal(decode(&hadamard, &arrival, 0, 1, 512, NULL), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "packet 1"));
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Two streams at once, a report each. */
static void test_streams(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 10);
    struct lh_hadamard hadamard;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32);
    const size_t count = (size_t)1 << 20;
    tensor_make(&hadamard, count, &prng);
    memory.offset[0] = memory.offset[1] = 0;
    const double norm = largest_norm(&hadamard, memory.in, count);
    assert_int_equal(lh_hadamard_encode(&hadamard, memory.in, memory.cpu, count, NULL), 0);
    cudaStream_t streams[2];
    struct lh_hadamard_cuda_report *reports;
    CUDA(cudaMalloc((void **)&reports, 2 * sizeof *reports));
    for (unsigned i = 0; i < 2; i++) {
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        upload(i, memory.in);
    }
    CUDA(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(
            lh_hadamard_cuda_encode(&hadamard, device(i), device(i), count, &reports[i], streams[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        CUDA(cudaStreamSynchronize(streams[i]));
        CUDA(cudaStreamDestroy(streams[i]));
        check_numbers(&hadamard, download(i), memory.cpu, count, norm, 2, "a stream's");
    }
    CUDA(cudaFree(reports));
}

static int create(void **state)
{
    (void)state;
    const size_t bytes = TENSOR_BYTES + 2 * MARGIN + 64;
    for (unsigned i = 0; i < 2; i++)
        if (cudaMalloc((void **)&memory.device[i], bytes) != cudaSuccess)
            return -1;
    if (cudaMalloc((void **)&memory.report, sizeof *memory.report) != cudaSuccess)
        return -1;
    memory.in = malloc(bytes);
    memory.cpu = malloc(bytes);
    memory.here = malloc(bytes);
    return memory.in && memory.cpu && memory.here ? 0 : -1;
}

/* An argument is a pattern of the tests to run, under compute-sanitizer, say. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape), cmocka_unit_test(test_whole_tiles),
        cmocka_unit_test(test_long_blocks), cmocka_unit_test(test_every_tail),
        cmocka_unit_test(test_arrival),     cmocka_unit_test(test_non_finite),
        cmocka_unit_test(test_too_large),   cmocka_unit_test(test_streams),
    };
    int devices = 0;
    const cudaError_t failed = cudaGetDeviceCount(&devices);
    if (failed != cudaSuccess || devices == 0) {
        printf("skipped, no GPU: %s\n", cudaGetErrorString(failed));
        return 77;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, create, NULL);
}
