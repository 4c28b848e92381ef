/* The data and the check of 'longhaul collective', against results computed here: right ones pass, and a
 * wrong element, one of another rank or one that was left out is found.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/collective_measure.h"
#include "cli/options/cli_options.h"

#include <string.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define RANKS 3u
#define COUNT 500u
#define ROW   (RANKS * (RANKS + 1) / 2 * COUNT) /* of a v-variant */
#define BYTES (ROW * 8)

static _Alignas(8) uint8_t in[RANKS][BYTES], out[RANKS][BYTES];

static struct cli_call call_of(const char *name, uint32_t rank, enum lh_type type,
                               enum lh_reduction reduction)
{
    const struct cli_kind *kind = cli_kind_find(name);
    assert_non_null(kind);
    return (struct cli_call){.kind = kind,
                             .rank = rank,
                             .ranks = RANKS,
                             .root = 1,
                             .count = COUNT,
                             .type = type,
                             .reduction = reduction};
}

static void fill(const char *name, enum lh_type type, enum lh_reduction reduction)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct cli_call call = call_of(name, rank, type, reduction);
        assert_true(cli_call_in(&call) <= ROW && cli_call_out(&call) <= ROW);
        cli_data_fill(&call, in[rank], out[rank]);
    }
}

static uint64_t check(const char *name, uint32_t rank, enum lh_type type, enum lh_reduction reduction)
{
    struct cli_call call = call_of(name, rank, type, reduction);
    return cli_data_check(&call, out[rank], false);
}

/* In the type itself, one rank after the other. */
#define REDUCE(c_type, reduction, op, end)                                                                 \
    do {                                                                                                   \
        fill("allreduce", type, reduction);                                                                \
        for (size_t i = 0; i < COUNT; i++) {                                                               \
            c_type a = ((const c_type *)in[0])[i];                                                         \
            for (uint32_t rank = 1; rank < RANKS; rank++) {                                                \
                c_type x = ((const c_type *)in[rank])[i];                                                  \
                a = (c_type)(op);                                                                          \
            }                                                                                              \
            ((c_type *)out[0])[i] = (c_type)(end);                                                         \
        }                                                                                                  \
        assert_int_equal(check("allreduce", 0, type, reduction), 0);                                       \
    } while (0)
#define REDUCE_ALL(c_type)                                                                                 \
    do {                                                                                                   \
        REDUCE(c_type, LH_SUM, a + x, a);                                                                  \
        REDUCE(c_type, LH_PROD, a *x, a);                                                                  \
        REDUCE(c_type, LH_MIN, x < a ? x : a, a);                                                          \
        REDUCE(c_type, LH_MAX, x > a ? x : a, a);                                                          \
        REDUCE(c_type, LH_AVG, a + x, a / (c_type)RANKS);                                                  \
    } while (0)

#define REDUCE_BITS(c_type)                                                                                \
    do {                                                                                                   \
        REDUCE(c_type, LH_BAND, a &x, a);                                                                  \
        REDUCE(c_type, LH_BOR, a | x, a);                                                                  \
        REDUCE(c_type, LH_BXOR, a ^ x, a);                                                                 \
    } while (0)

static void right_reductions(void **state)
{
    (void)state;
    enum lh_type type = LH_F32;
    REDUCE_ALL(float);
    type = LH_F64;
    REDUCE_ALL(double);
    type = LH_U8;
    REDUCE_ALL(uint8_t);
    REDUCE_BITS(uint8_t);
    type = LH_I8;
    REDUCE_ALL(int8_t);
    REDUCE_BITS(int8_t);
    type = LH_I16;
    REDUCE_ALL(int16_t);
    REDUCE_BITS(int16_t);
    type = LH_I32;
    REDUCE_BITS(int32_t);
    type = LH_I64;
    REDUCE_BITS(int64_t);
}

/* What was there before is no result; nor is a sum that lacks a rank. */
static void wrong_reductions(void **state)
{
    (void)state;
    for (int type = 0; type < LH_TYPES; type++)
        for (int op = 0; op < (type > LH_BF16 ? LH_REDUCTIONS : LH_BAND); op++) {
            fill("allreduce", (enum lh_type)type, (enum lh_reduction)op);
            assert_in_range(check("allreduce", 0, (enum lh_type)type, (enum lh_reduction)op), COUNT / 2,
                            COUNT);
        }
    fill("allreduce", LH_F32, LH_SUM);
    for (size_t i = 0; i < COUNT; i++)
        ((float *)out[0])[i] = ((float *)in[0])[i] + ((float *)in[1])[i];
    assert_in_range(check("allreduce", 0, LH_F32, LH_SUM), COUNT - 5, COUNT);
}

static void one_wrong_element(void **state)
{
    (void)state;
    fill("allreduce", LH_I32, LH_SUM);
    for (size_t i = 0; i < COUNT; i++)
        ((uint32_t *)out[0])[i] = ((uint32_t *)in[0])[i] + ((uint32_t *)in[1])[i] + ((uint32_t *)in[2])[i];
    assert_int_equal(check("allreduce", 0, LH_I32, LH_SUM), 0);
    ((uint32_t *)out[0])[COUNT - 1] ^= 1;
    assert_int_equal(check("allreduce", 0, LH_I32, LH_SUM), 1);
}

/* Moves a part as a collective does. */
static void copy(uint32_t to, size_t to_part, uint32_t from, size_t from_part, size_t bytes)
{
    memcpy(out[to] + to_part * bytes, in[from] + from_part * bytes, bytes);
}

static void expect_moved(const char *name, enum lh_type type)
{
    size_t last = COUNT * lh_type_bytes(type) - 1;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct cli_call call = call_of(name, rank, type, LH_SUM);
        assert_int_equal(check(name, rank, type, LH_SUM), 0);
        if (cli_call_out(&call) == 0)
            continue;
        out[rank][last] ^= 0x40;
        assert_int_equal(check(name, rank, type, LH_SUM), 1);
    }
}

static void movements(void **state)
{
    (void)state;
    for (int t = 0; t < LH_TYPES; t++) {
        enum lh_type type = (enum lh_type)t;
        size_t bytes = COUNT * lh_type_bytes(type);
        fill("allgather", type, LH_SUM);
        for (uint32_t i = 0; i < RANKS * RANKS; i++)
            copy(i / RANKS, i % RANKS, i % RANKS, 0, bytes);
        expect_moved("allgather", type);
        fill("gather", type, LH_SUM);
        for (uint32_t i = 0; i < RANKS; i++)
            copy(1, i, i, 0, bytes);
        expect_moved("gather", type);
        fill("scatter", type, LH_SUM);
        for (uint32_t i = 0; i < RANKS; i++)
            copy(i, 0, 1, i, bytes);
        expect_moved("scatter", type);
        fill("alltoall", type, LH_SUM);
        for (uint32_t i = 0; i < RANKS * RANKS; i++)
            copy(i / RANKS, i % RANKS, i % RANKS, i / RANKS, bytes);
        expect_moved("alltoall", type);
        fill("broadcast", type, LH_SUM);
        memcpy(out[0], out[1], bytes);
        memcpy(out[2], out[1], bytes);
        expect_moved("broadcast", type);
    }
}

/* Parts of 1 to 3 counts: from s to d as many as (s + d) % 3 and 1. Returns the count after it. */
static size_t copy_uneven(uint32_t to, size_t at, uint32_t from, size_t place, size_t bytes)
{
    size_t counts = 1 + (to + from) % RANKS;
    memcpy(out[to] + at * bytes, in[from] + place * bytes, counts * bytes);
    return counts;
}

static void uneven_movements(void **state)
{
    static const size_t before[RANKS][RANKS] = {{0, 1, 3}, {0, 2, 5}, {0, 3, 4}}; /* in each row */
    (void)state;
    for (int t = 0; t < LH_TYPES; t++) {
        enum lh_type type = (enum lh_type)t;
        size_t bytes = COUNT * lh_type_bytes(type), at = 0;
        fill("gatherv", type, LH_SUM);
        for (uint32_t s = 0; s < RANKS; s++)
            at += copy_uneven(1, at, s, 0, bytes);
        assert_int_equal(at, 6);
        expect_moved("gatherv", type);
        fill("scatterv", type, LH_SUM);
        for (uint32_t d = 0; d < RANKS; d++)
            copy_uneven(d, 0, 1, before[1][d], bytes);
        expect_moved("scatterv", type);
        fill("alltoallv", type, LH_SUM);
        for (uint32_t d = 0; d < RANKS; d++) {
            at = 0;
            for (uint32_t s = 0; s < RANKS; s++)
                at += copy_uneven(d, at, s, before[s][d], bytes);
        }
        expect_moved("alltoallv", type);
    }
}

static void counts_and_factors(void **state)
{
    (void)state;
    struct cli_call call = call_of("allreduce", 0, LH_F32, LH_SUM);
    assert_int_equal(cli_call_count(&call, 10), 10);
    assert_float_equal(cli_call_bus_factor(&call), 4.0 / 3, 1e-6);
    call = call_of("allgather", 0, LH_F32, LH_SUM);
    assert_int_equal(cli_call_count(&call, 10), 3);
    assert_int_equal(cli_call_total(&call), 3 * COUNT);
    assert_float_equal(cli_call_bus_factor(&call), 2.0 / 3, 1e-6);
    call = call_of("alltoallv", 0, LH_F32, LH_SUM);
    assert_int_equal(cli_call_count(&call, 13), 2);
    assert_int_equal(cli_call_total(&call), 6 * COUNT);
    assert_int_equal(cli_call_elements_min(&call), 6);
    call = call_of("broadcast", 0, LH_F32, LH_SUM);
    assert_float_equal(cli_call_bus_factor(&call), 1, 1e-6);
    call = call_of("barrier", 0, LH_F32, LH_SUM);
    assert_int_equal(cli_call_total(&call), 0);
    assert_int_equal(cli_call_out(&call), 0);
    assert_null(cli_kind_find("allreduces"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_reductions),  cmocka_unit_test(wrong_reductions),
        cmocka_unit_test(one_wrong_element), cmocka_unit_test(movements),
        cmocka_unit_test(uneven_movements),  cmocka_unit_test(counts_and_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
