/*
 * test_hadamard.c - every kernel against the definition: all blocks, strides and types, with tails, in
 * place and out of place, at any alignment; on several threads; what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coding/hadamard/hadamard_kernel.h"
#include "support/hadamard_reference.h"
#include "support/sanitized.h"

/* Fewer, and shorter, tensors: test_hadamard_few.c, and builds that are slow. */
#ifndef FEW
#define FEW SANITIZED
#endif

/* Of tensors of random shapes; the tile of the default block and stride is longer. */
#define COUNT_MAX ((size_t)(FEW ? 1 : 3) << 13)
#define TILE_MAX  ((size_t)2048 * 2048)
/* Around what is written, to see what should not be. */
#define MARGIN 64u

static const enum lh_hadamard_type types[] = {LH_HADAMARD_F32, LH_HADAMARD_BF16, LH_HADAMARD_F16};

struct tensor {
    enum lh_hadamard_type type;
    size_t count;
    double *numbers, *wanted, *norms;
    uint8_t *memory[3]; /* of in, out, and decoded: MARGIN, an offset, the tensor, MARGIN */
    size_t offset[3];
};

static void *at(const struct tensor *tensor, unsigned which)
{
    return tensor->memory[which] + MARGIN + tensor->offset[which];
}

static void tensor_create(struct tensor *tensor, enum lh_hadamard_type type, size_t count,
                          struct lh_prng *prng)
{
    tensor->type = type;
    tensor->count = count;
    tensor->numbers = malloc((count + 1) * sizeof(double));
    tensor->wanted = malloc((count + 1) * sizeof(double));
    tensor->norms = malloc((count + 1) * sizeof(double));
    const size_t bytes = (count * tensor_bytes(type) + 64 + 2 * MARGIN + 63) / 64 * 64;
    for (unsigned i = 0; i < 3; i++) {
        tensor->memory[i] = aligned_alloc(64, bytes);
        memset(tensor->memory[i], 0xa5, bytes);
        tensor->offset[i] = lh_prng_chance(prng, 0.5) ? 0 : lh_prng_below(prng, 64);
    }
    for (size_t i = 0; i < count; i++) {
        tensor_put(at(tensor, 0), i, tensor_normal(prng), type);
        tensor->numbers[i] = tensor_get(at(tensor, 0), i, type);
    }
}

static void tensor_destroy(struct tensor *tensor)
{
    free(tensor->numbers);
    free(tensor->wanted);
    free(tensor->norms);
    for (unsigned i = 0; i < 3; i++)
        free(tensor->memory[i]);
}

static void check_margins(const struct tensor *tensor, unsigned which)
{
    const uint8_t *begin = at(tensor, which);
    const uint8_t *end = begin + tensor->count * tensor_bytes(tensor->type);
    for (size_t i = 1; i <= MARGIN; i++)
        assert_true(begin[-(ptrdiff_t)i] == 0xa5 && end[i - 1] == 0xa5);
}

static void check_numbers(const struct lh_hadamard *hadamard, const struct tensor *tensor, unsigned which,
                          const double *wanted, const char *what)
{
    check_margins(tensor, which);
    for (size_t i = 0; i < tensor->count; i++) {
        const double value = tensor_get(at(tensor, which), i, tensor->type);
        /* Decoding rounds coefficients that were rounded, in another order. */
        const double norm = tensor->norms[i] * (which == 2 ? 3 : 1);
        double tolerance = tensor_tolerance(hadamard, wanted[i], norm);
        if (which == 2 && tensor->type != LH_HADAMARD_F32)
            tolerance += 6 * ldexp(1, tensor->type == LH_HADAMARD_BF16 ? -8 : -11);
        if (!(fabs(value - wanted[i]) <= tolerance))
            fail_msg("%s, %s, type %d, block %u, stride %u: element %zu of %zu is %.9g, not %.9g +- %.2g",
                     what, hadamard_kernel_now()->name, (int)tensor->type, hadamard->block,
                     hadamard->stride, i, tensor->count, value, wanted[i], tolerance);
    }
}

/* Norms by element, not by coefficient: as good, where a norm is that of any block of these. */
static void largest_norm(struct tensor *tensor)
{
    double largest = 0;
    for (size_t i = 0; i < tensor->count; i++)
        largest = fmax(largest, tensor->norms[i]);
    for (size_t i = 0; i < tensor->count; i++)
        tensor->norms[i] = largest;
}

static void check_shape(const struct lh_hadamard *hadamard, size_t count, struct lh_prng *prng)
{
    struct tensor tensor;
    const size_t bytes = count * tensor_bytes(hadamard->type);
    tensor_create(&tensor, hadamard->type, count, prng);
    tensor_encode(hadamard, tensor.numbers, tensor.wanted, tensor.norms, count);
    assert_int_equal(lh_hadamard_encode(hadamard, at(&tensor, 0), at(&tensor, 1), count, NULL), 0);
    check_numbers(hadamard, &tensor, 1, tensor.wanted, "encode");
    memcpy(at(&tensor, 2), at(&tensor, 0), bytes);
    assert_int_equal(lh_hadamard_encode(hadamard, at(&tensor, 2), at(&tensor, 2), count, NULL), 0);
    largest_norm(&tensor);
    check_numbers(hadamard, &tensor, 2, tensor.wanted, "encode in place");
    memcpy(at(&tensor, 0), at(&tensor, 1), bytes);
    assert_int_equal(lh_hadamard_decode(hadamard, NULL, at(&tensor, 0), at(&tensor, 2), count, NULL), 0);
    check_numbers(hadamard, &tensor, 2, tensor.numbers, "decode");
    memcpy(at(&tensor, 2), at(&tensor, 1), bytes);
    assert_int_equal(lh_hadamard_decode(hadamard, NULL, at(&tensor, 2), at(&tensor, 2), count, NULL), 0);
    check_numbers(hadamard, &tensor, 2, tensor.numbers, "decode in place");
    tensor_destroy(&tensor);
}

static void for_each_kernel(void (*check)(struct lh_prng *prng))
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 12);
    const struct hadamard_kernel *best = hadamard_kernel_now();
    for (const struct hadamard_kernel *const *kernel = hadamard_kernels(); *kernel; kernel++) {
        hadamard_kernel_use(*kernel);
        check(&prng);
    }
    hadamard_kernel_use(best);
}

/* The fast reference is the definition. */
static void test_reference(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t block = 1; block <= 1024; block *= 2) {
        double in[1024], out[1024];
        for (uint32_t i = 0; i < block; i++)
            in[i] = out[i] = tensor_normal(&prng);
        tensor_transform(out, block);
        for (uint32_t k = 0; k < block; k++)
            assert_true(fabs(tensor_coefficient(in, block, k) - out[k]) < 1e-12);
    }
}

/* A tensor of two tiles at most, with a tail, or of a tail only. */
static void every_shape(struct lh_prng *prng)
{
    for (unsigned t = 0; t < 3; t++) {
        const uint32_t block_max = types[t] == LH_HADAMARD_F32 ? 4096 : LH_HADAMARD_HALF_BLOCK_MAX;
        for (uint32_t block = 1; block <= block_max; block *= 2)
            for (uint32_t stride = 1; stride <= block; stride *= FEW ? 4 : 2) {
                struct lh_hadamard hadamard = {
                    .type = types[t], .block = block, .stride = stride, .seed = lh_prng_next(prng)};
                size_t tile = (size_t)block * stride;
                size_t maximum = 2 * tile + tile / 2 < COUNT_MAX ? 2 * tile + tile / 2 : COUNT_MAX;
                check_shape(&hadamard, maximum + lh_prng_below(prng, block), prng);
            }
    }
}

static void test_every_shape(void **state)
{
    (void)state;
    for_each_kernel(every_shape);
}

/* Whole tiles with S = p, where lines of packets are shared by many blocks. */
static void whole_tiles(struct lh_prng *prng)
{
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t block = 64; block <= (FEW ? 256 : 2048); block *= 2)
            for (uint32_t stride = block; stride >= block / 64; stride /= 4) {
                struct lh_hadamard hadamard = {
                    .type = types[t], .block = block, .stride = stride, .seed = lh_prng_next(prng)};
                if ((size_t)block * stride <= TILE_MAX / (FEW ? 64 : 8) || (block == 1024 && t == 0))
                    check_shape(&hadamard, (size_t)block * stride, prng);
            }
}

static void test_whole_tiles(void **state)
{
    (void)state;
    for_each_kernel(whole_tiles);
}

/* Blocks that are combined of parts. */
static void long_blocks(struct lh_prng *prng)
{
    for (uint32_t block = 8192; block <= (FEW ? 1u << 14 : 1u << 19); block *= FEW ? 2 : 8) {
        struct lh_hadamard hadamard = {LH_HADAMARD_F32, LH_HADAMARD_REFUSE, block, 1, 5, NULL};
        check_shape(&hadamard, block + block / 2 + 5, prng);
        hadamard.stride = 4;
        check_shape(&hadamard, 4 * (size_t)block, prng);
    }
}

static void test_long_blocks(void **state)
{
    (void)state;
    for_each_kernel(long_blocks);
}

static void every_tail(struct lh_prng *prng)
{
    for (unsigned t = 0; t < 3; t++)
        for (size_t count = 0; count <= 700; count += FEW ? 13 : 1) {
            struct lh_hadamard hadamard = {.type = types[t], .block = 64, .stride = 4, .seed = count};
            check_shape(&hadamard, count, prng);
        }
}

static void test_every_tail(void **state)
{
    (void)state;
    for_each_kernel(every_tail);
}

/* One element that is not 0: each coefficient is plus or minus its share, exactly; the same for each
 * kernel. */
static void signs_and_places(struct lh_prng *prng)
{
    enum { BLOCK = 1024, COUNT = 64 * 1024 };
    static float in[COUNT], out[COUNT];
    for (unsigned i = 0; i < 20; i++) {
        struct lh_hadamard hadamard = {LH_HADAMARD_F32,
                                       LH_HADAMARD_REFUSE,
                                       BLOCK,
                                       1u << lh_prng_below(prng, 7),
                                       lh_prng_next(prng),
                                       NULL};
        const size_t element = lh_prng_below(prng, COUNT);
        const uint32_t run = BLOCK / hadamard.stride;
        const size_t tile = element / BLOCK / hadamard.stride * hadamard.stride;
        const size_t block = element / BLOCK % hadamard.stride;
        in[element] = 32;
        assert_int_equal(lh_hadamard_encode(&hadamard, in, out, COUNT, NULL), 0);
        in[element] = 0;
        for (uint32_t k = 0; k < BLOCK; k++) {
            float *place = &out[(tile + k / run) * BLOCK + block * run + k % run];
            int sign = __builtin_popcount(k & (element % BLOCK)) % 2 ? -1 : 1;
            assert_true(*place == (float)(sign * tensor_sign(hadamard.seed, element)));
            *place = 0;
        }
        for (size_t other = 0; other < COUNT; other++)
            assert_true(out[other] == 0);
    }
}

static void test_signs_and_places(void **state)
{
    (void)state;
    for_each_kernel(signs_and_places);
}

/* Several threads compute the same bytes. */
static void test_threads(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 8);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct lh_hadamard hadamard = {
            LH_HADAMARD_BF16, LH_HADAMARD_REFUSE, 512, 1u << (3 * threads), 2, NULL};
        struct lh_encoder *encoder;
        assert_int_equal(lh_encoder_create(threads, NULL, &encoder), 0);
        const size_t count = (FEW ? 600000 : 1200000) + threads;
        struct tensor tensor;
        tensor_create(&tensor, LH_HADAMARD_BF16, count, &prng);
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            void *alone = at(&tensor, 1), *shared = at(&tensor, 2);
            memcpy(alone, at(&tensor, 0), count * 2);
            memcpy(shared, at(&tensor, 0), count * 2);
            hadamard.encoder = NULL;
            const void *in = in_place ? alone : at(&tensor, 0);
            assert_int_equal(lh_hadamard_encode(&hadamard, in, alone, count, NULL), 0);
            hadamard.encoder = encoder;
            in = in_place ? shared : at(&tensor, 0);
            assert_int_equal(lh_hadamard_encode(&hadamard, in, shared, count, NULL), 0);
            assert_memory_equal(alone, shared, count * 2);
        }
        struct lh_hadamard_result result;
        tensor_put(at(&tensor, 2), 900, (double)NAN, LH_HADAMARD_BF16);
        tensor_put(at(&tensor, 2), 500000, (double)NAN, LH_HADAMARD_BF16);
        assert_int_equal(lh_hadamard_encode(&hadamard, at(&tensor, 2), at(&tensor, 1), count, &result),
                         -LH_ERANGE);
        assert_int_equal(result.index, 900);
        lh_encoder_destroy(encoder);
        tensor_destroy(&tensor);
    }
}

/* ---- what is not finite -------------------------------------------------------------------------------
 */

static void non_finite(struct lh_prng *prng)
{
    for (unsigned round = 0; round < 60; round++) {
        struct lh_hadamard hadamard = {
            .type = types[round % 3], .block = 1u << lh_prng_below(prng, 12), .seed = round};
        hadamard.stride = 1u << lh_prng_below(prng, 1 + (uint64_t)__builtin_ctz(hadamard.block));
        if (round % 10 == 0 && hadamard.type == LH_HADAMARD_F32)
            hadamard.block = 8192;
        const size_t count = 1 + lh_prng_below(prng, 20000);
        const bool in_place = lh_prng_chance(prng, 0.5), decode = lh_prng_chance(prng, 0.5);
        const size_t bytes = count * tensor_bytes(hadamard.type);
        struct tensor tensor;
        tensor_create(&tensor, hadamard.type, count, prng);
        const size_t bad = lh_prng_below(prng, count), other = bad + lh_prng_below(prng, count - bad);
        tensor_put(at(&tensor, 0), bad, (double)(round % 2 ? NAN : -INFINITY), hadamard.type);
        tensor_put(at(&tensor, 0), other, (double)INFINITY, hadamard.type);
        void *in = at(&tensor, 0), *out = in_place ? in : at(&tensor, 1);
        memcpy(at(&tensor, 2), in, bytes);

        struct lh_hadamard_result result;
        int error = decode ? lh_hadamard_decode(&hadamard, NULL, in, out, count, &result)
                           : lh_hadamard_encode(&hadamard, in, out, count, &result);
        assert_int_equal(error, -LH_ERANGE);
        assert_non_null(strstr(lh_last_error(), "NaN"));
        assert_int_equal(result.index, bad);
        assert_memory_equal(in, at(&tensor, 2), bytes);

        hadamard.non_finite = LH_HADAMARD_ZERO;
        error = decode ? lh_hadamard_decode(&hadamard, NULL, in, out, count, &result)
                       : lh_hadamard_encode(&hadamard, in, out, count, &result);
        assert_int_equal(error, 0);
        assert_int_equal(result.zeroed, bad == other ? 1 : 2);
        /* As if they had been 0. Base computes those groups out of place, which rounds otherwise. */
        tensor_put(at(&tensor, 2), bad, 0, hadamard.type);
        tensor_put(at(&tensor, 2), other, 0, hadamard.type);
        void *wanted = malloc(bytes);
        error = decode ? lh_hadamard_decode(&hadamard, NULL, at(&tensor, 2), wanted, count, &result)
                       : lh_hadamard_encode(&hadamard, at(&tensor, 2), wanted, count, &result);
        assert_int_equal(error, 0);
        assert_int_equal(result.zeroed, 0);
        for (size_t i = 0; i < count; i++) {
            double value = tensor_get(wanted, i, hadamard.type);
            assert_true(fabs(tensor_get(out, i, hadamard.type) - value) <=
                        tensor_tolerance(&hadamard, value, 2 * sqrt(hadamard.block)));
        }
        free(wanted);
        tensor_destroy(&tensor);
    }
}

static void test_non_finite(void **state)
{
    (void)state;
    for_each_kernel(non_finite);
}

/* Finite numbers, the sums of which are too large. */
static void too_large(struct lh_prng *prng)
{
    static const double largest[] = {3e38, 3e38, 65504};
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t block = 16; block <= 1024; block *= 8) {
            struct lh_hadamard hadamard = {
                .type = types[t], .block = block, .stride = 1 + block / 32 * 15 / 16};
            hadamard.stride = hadamard.stride >= block / 4 ? block / 4 : 1;
            struct tensor tensor;
            const size_t count = (size_t)block * hadamard.stride * 2;
            tensor_create(&tensor, types[t], count, prng);
            /* All of one sign: coefficient 0 is sqrt(p) times as large. */
            for (size_t i = block; i < 2 * block; i++)
                tensor_put(at(&tensor, 0), i, largest[t] * tensor_sign(0, i), types[t]);
            struct lh_hadamard_result result;
            assert_int_equal(lh_hadamard_encode(&hadamard, at(&tensor, 0), at(&tensor, 1), count, &result),
                             -LH_ERANGE);
            assert_non_null(strstr(lh_last_error(), "exceeds the type"));
            assert_true(result.index <= block);
            tensor_destroy(&tensor);
        }
}

static void test_too_large(void **state)
{
    (void)state;
    for_each_kernel(too_large);
}

/* One element near the largest of its type, or a block of such that is one large coefficient: there and back.
 */
static void nearly_too_large(struct lh_prng *prng)
{
    static const double large[] = {3e38, 3e38, 60000};
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t block = 1; block <= (t == 0 ? 1u << (FEW ? 13 : 17) : 2048u); block *= 2)
            for (unsigned spread = 0; spread < 2; spread++) {
                struct lh_hadamard hadamard = {
                    .type = types[t], .block = block, .stride = block < 8 ? 1 : 8, .seed = block};
                struct tensor tensor;
                const size_t count = (size_t)block * hadamard.stride;
                const double one = spread ? large[t] / sqrt(block) : large[t];
                tensor_create(&tensor, types[t], count, prng);
                memset(at(&tensor, 0), 0, count * tensor_bytes(types[t]));
                for (size_t i = 0; i < (spread ? block : 1); i++)
                    tensor_put(at(&tensor, 0), i, one * tensor_sign(block, i), types[t]);
                assert_int_equal(lh_hadamard_encode(&hadamard, at(&tensor, 0), at(&tensor, 1), count, NULL),
                                 0);
                memcpy(at(&tensor, 2), at(&tensor, 1), count * tensor_bytes(types[t]));
                for (unsigned in_place = 0; in_place < 2; in_place++) {
                    void *in = at(&tensor, in_place ? 2 : 1), *out = at(&tensor, in_place ? 2 : 0);
                    assert_int_equal(lh_hadamard_decode(&hadamard, NULL, in, out, count, NULL), 0);
                    for (size_t i = 0; i < count; i++) {
                        const double wanted = i < (spread ? block : 1) ? one * tensor_sign(block, i) : 0;
                        assert_true(fabs(tensor_get(out, i, types[t]) - wanted) <= 0.02 * large[t]);
                    }
                }
                tensor_destroy(&tensor);
            }
}

static void test_nearly_too_large(void **state)
{
    (void)state;
    for_each_kernel(nearly_too_large);
}

/* ---- arguments ----------------------------------------------------------------------------------------
 */

static void expect_invalid(struct lh_hadamard hadamard, const char *words)
{
    float numbers[4] = {0};
    assert_int_equal(lh_hadamard_check(&hadamard), -LH_EINVAL);
    assert_int_equal(lh_hadamard_encode(&hadamard, numbers, numbers, 4, NULL), -LH_EINVAL);
    if (!strstr(lh_last_error(), words))
        fail_msg("%s: no \"%s\"", lh_last_error(), words);
    assert_int_equal(lh_hadamard_decode(&hadamard, NULL, numbers, numbers, 4, NULL), -LH_EINVAL);
}

static void test_arguments(void **state)
{
    (void)state;
    struct lh_hadamard good;
    lh_hadamard_init(&good, LH_HADAMARD_F32);
    assert_true(good.block == 1024 && good.stride == 1024 && lh_hadamard_check(&good) == 0);
    struct lh_hadamard bad = good;
    bad.type = (enum lh_hadamard_type)4;
    expect_invalid(bad, "unknown type 4");
    bad = good;
    bad.non_finite = (enum lh_hadamard_non_finite)2;
    expect_invalid(bad, "unknown mode 2");
    bad = good;
    bad.block = 0;
    expect_invalid(bad, "block of 0");
    bad.block = 1000;
    expect_invalid(bad, "block of 1000 elements: not a power of two");
    bad.block = 1u << 31;
    expect_invalid(bad, "maximum of 1073741824");
    bad = good;
    bad.stride = 0;
    expect_invalid(bad, "stride 0");
    bad.stride = 24;
    expect_invalid(bad, "stride 24: not a power of two");
    bad.stride = 2048;
    expect_invalid(bad, "stride 2048 exceeds the block of 1024");
    lh_hadamard_init(&bad, LH_HADAMARD_F16);
    assert_true(bad.block == 2048 && lh_hadamard_check(&bad) == 0);
    bad.block = 4096;
    expect_invalid(bad, "maximum of 2048");
}

static void test_overlap(void **state)
{
    (void)state;
    static float numbers[4096];
    struct lh_hadamard hadamard;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32);
    assert_int_equal(lh_hadamard_encode(&hadamard, numbers, numbers + 1023, 1024, NULL), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "overlap at a distance of 4092 bytes"));
    assert_int_equal(lh_hadamard_decode(&hadamard, NULL, numbers + 1, numbers, 1024, NULL), -LH_EINVAL);
    assert_int_equal(lh_hadamard_encode(&hadamard, numbers, numbers + 1024, 1024, NULL), 0);
    assert_int_equal(lh_hadamard_encode(&hadamard, numbers, (char *)numbers + 1, SIZE_MAX / 2, NULL),
                     -LH_EINVAL);
    assert_int_equal(lh_hadamard_encode(&hadamard, NULL, NULL, 0, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),   cmocka_unit_test(test_every_shape),
        cmocka_unit_test(test_whole_tiles), cmocka_unit_test(test_long_blocks),
        cmocka_unit_test(test_every_tail),  cmocka_unit_test(test_signs_and_places),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_non_finite),
        cmocka_unit_test(test_too_large),   cmocka_unit_test(test_nearly_too_large),
        cmocka_unit_test(test_arguments),   cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
