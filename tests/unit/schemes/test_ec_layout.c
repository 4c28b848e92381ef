/*
 * test_ec_layout.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "schemes/ec_layout.h"

/* ---- test coding ----------------------------------------------------------------------------------- */

#define CHUNK 64u

/* Both ends of one transfer, each buffer exactly as long as it must be. */
struct transfer {
    struct lh_coding sender, receiver;
    struct ec_layout layout;
    uint8_t *message, *chunk_bitmap, *extra_bitmap;
};

static void start(struct transfer *t, bool mds, const char *text, uint64_t bytes)
{
    memset(t, 0, sizeof(*t));
    struct lh_coding *s = &t->sender;
    assert_int_equal(mds ? ec_mds_parse(text, s->params) : ec_xor_parse(text, s->params), 0);
    s->chunks = (uint32_t)((bytes + CHUNK - 1) / CHUNK);
    s->chunk_bytes = CHUNK;
    s->bytes = bytes;
    t->layout = ec_layout_of(s->params, s->chunks);
    size_t extra = ec_layout_extra(&t->layout);
    t->message = malloc(bytes);
    for (uint64_t i = 0; i < bytes; i++)
        t->message[i] = (uint8_t)(i * i / 7 + i);
    s->message = t->message;
    t->receiver = *s;
    s->extra = malloc(extra * CHUNK + 1);
    memset(s->extra, 0x5A, extra * CHUNK);
    t->receiver.message = NULL;
    t->receiver.extra = malloc(extra * CHUNK + 1);
    t->receiver.room = malloc(bytes);
    t->chunk_bitmap = malloc(s->chunks);
    t->extra_bitmap = calloc(extra + 1, 1);
    for (uint32_t group = 0; group < ec_coding.groups(s->params, s->chunks); group++) {
        struct ec_group of = ec_layout_group(&t->layout, group);
        uint32_t rows = ec_group_rows_max(&t->layout, &of);
        ec_coding.encode(s, group, 0, of.rows);
        if (rows > of.rows) /* the fresh ones, later and by themselves */
            ec_coding.encode(s, group, of.rows, rows - of.rows);
        for (uint32_t r = 0; r < rows; r++)
            t->extra_bitmap[of.first_place + r * of.stride] = 1;
    }
    memcpy(t->receiver.room, t->message, bytes);
    memcpy(t->receiver.extra, s->extra, extra * CHUNK);
    memset(t->chunk_bitmap, 1, s->chunks);
}

static void end(struct transfer *t)
{
    free(t->message);
    free(t->sender.extra);
    free(t->receiver.extra);
    free(t->receiver.room);
    free(t->chunk_bitmap);
    free(t->extra_bitmap);
}

static void lose_chunk(struct transfer *t, uint32_t chunk)
{
    uint64_t from = (uint64_t)chunk * CHUNK;
    uint64_t to = from + CHUNK < t->sender.bytes ? from + CHUNK : t->sender.bytes;
    memset(t->receiver.room + from, 0xEE, to - from);
    t->chunk_bitmap[chunk] = 0;
}

static void lose_row(struct transfer *t, const struct ec_group *of, uint32_t row)
{
    uint32_t place = of->first_place + row * of->stride;
    memset(t->receiver.extra + (size_t)place * CHUNK, 0xEE, CHUNK);
    t->extra_bitmap[place] = 0;
}

static uint32_t decode_all(struct transfer *t)
{
    uint32_t recovered = 0;
    for (uint32_t group = 0; group < t->layout.groups; group++)
        recovered += ec_coding.decode(&t->receiver, group, t->chunk_bitmap, t->extra_bitmap);
    assert_memory_equal(t->receiver.room, t->message, t->sender.bytes);
    return recovered;
}

static const char *const coding_params[] = {"k=8,m=3", "k=8,m=3,spread=1", "k=5,m=2,spread=3", "k=4,m=4",
                                            "k=1,m=1"};

/* Sizes around chunks, groups and blocks; the last chunk lost, the row before the last, and each alone. */
static void test_every_tail(void **state)
{
    (void)state;
    static const uint64_t tails[] = {1, 7, 32, 63, 64};
    for (size_t p = 0; p < sizeof(coding_params) / sizeof(*coding_params); p++)
        for (int mds = 0; mds < 2; mds++)
            for (uint32_t chunks = 2; chunks < 50; chunks++) {
                struct transfer t;
                start(&t, mds, coding_params[p], (uint64_t)(chunks - 1) * CHUNK + tails[chunks % 5]);
                assert_int_equal(decode_all(&t), 0);
                for (uint32_t chunk = 0; chunk < chunks; chunk++) {
                    lose_chunk(&t, chunk);
                    assert_int_equal(decode_all(&t), 1);
                    t.chunk_bitmap[chunk] = 1;
                }
                end(&t);
            }
}

/* All data that the parity can stand for is lost, the rows of round 0 too as far as fresh ones exist. */
static void test_as_many_losses_as_there_are_rows(void **state)
{
    (void)state;
    for (size_t p = 0; p < 3; p++)
        for (uint32_t chunks = 2; chunks < 50; chunks++)
            for (uint32_t rows_lost = 0; rows_lost < 3; rows_lost++) {
                struct transfer t;
                uint32_t lost = 0;
                start(&t, true, coding_params[p], (uint64_t)chunks * CHUNK - 5);
                for (uint32_t group = 0; group < t.layout.groups; group++) {
                    struct ec_group of = ec_layout_group(&t.layout, group);
                    uint32_t rows = ec_group_rows_max(&t.layout, &of);
                    for (uint32_t r = 0; r < rows_lost && r < of.rows; r++)
                        lose_row(&t, &of, r);
                    for (uint32_t i = 0; i < of.size && i + rows_lost < rows; i++, lost++)
                        lose_chunk(&t, of.first_chunk + (of.size - 1 - i) * of.stride);
                }
                assert_int_equal(decode_all(&t), lost);
                end(&t);
            }
}

static void test_xor_recovers_each_class(void **state)
{
    (void)state;
    for (uint32_t chunks = 2; chunks < 50; chunks++) {
        struct transfer t;
        uint32_t lost = 0;
        start(&t, false, "k=9,m=3,spread=2", (uint64_t)chunks * CHUNK - 63);
        for (uint32_t group = 0; group < t.layout.groups; group++) {
            struct ec_group of = ec_layout_group(&t.layout, group);
            for (uint32_t c = 0; c < of.rows && c < of.size; c++, lost++)
                lose_chunk(&t, of.first_chunk + (of.size - 1 - c) * of.stride);
        }
        assert_int_equal(decode_all(&t), lost);
        end(&t);
    }
}

/* What the last chunk lacks counts as zeros: row 0 of mds is the plain sum. */
static void test_the_filling_is_zeros(void **state)
{
    (void)state;
    struct transfer t;
    start(&t, true, "k=4,m=2", 3 * CHUNK + 10);
    for (uint32_t i = 0; i < CHUNK; i++) {
        uint8_t sum = t.message[i] ^ t.message[CHUNK + i] ^ t.message[2 * CHUNK + i];
        if (i < 10)
            sum ^= t.message[3 * CHUNK + i];
        assert_int_equal(t.sender.extra[i], sum);
    }
    end(&t);
    /* A group whose only chunk is short. */
    start(&t, true, "k=4,m=2,spread=1", 4 * CHUNK + 3);
    struct ec_group last = ec_layout_group(&t.layout, 1);
    assert_int_equal(last.size, 1);
    for (uint32_t i = 0; i < CHUNK; i++)
        assert_int_equal(t.sender.extra[last.first_place * CHUNK + i],
                         i < 3 ? t.message[4 * CHUNK + i] : 0);
    lose_chunk(&t, 4);
    assert_int_equal(decode_all(&t), 1);
    end(&t);
}

static void test_one_chunk_has_nothing_to_decode(void **state)
{
    (void)state;
    struct transfer t;
    memset(&t, 0, sizeof(t));
    uint8_t there = 1;
    assert_int_equal(ec_mds_parse("", t.receiver.params), 0);
    t.receiver.chunks = 1;
    t.receiver.chunk_bytes = CHUNK;
    t.receiver.bytes = 5;
    assert_int_equal(ec_coding.groups(t.receiver.params, 1), 1);
    assert_int_equal(ec_coding.decode(&t.receiver, 0, &there, NULL), 0);
}

static int run_coding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tail),
        cmocka_unit_test(test_as_many_losses_as_there_are_rows),
        cmocka_unit_test(test_xor_recovers_each_class),
        cmocka_unit_test(test_the_filling_is_zeros),
        cmocka_unit_test(test_one_chunk_has_nothing_to_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test layout ----------------------------------------------------------------------------------- */

static const uint8_t *params_of(const char *scheme, const char *text)
{
    static uint8_t params[LH_SCHEME_PARAMS];
    int failed = strcmp(scheme, "mds") == 0 ? ec_mds_parse(text, params) : ec_xor_parse(text, params);
    assert_int_equal(failed, 0);
    return params;
}

/* Each data chunk lies in one group, each extra place belongs to one row of one group at most, and the rows
 * that are always sent are exactly the first places of each block. */
static void check_layout(const uint8_t *params, uint32_t chunks)
{
    struct ec_layout layout = ec_layout_of(params, chunks);
    uint32_t extra = ec_layout_extra(&layout);
    assert_int_equal(extra, ec_extra_chunks(params, chunks));
    assert_int_equal(layout.groups, ec_groups(params, chunks));
    uint8_t *data_of = calloc(chunks + 1, 1);
    uint8_t *sent = calloc(extra + 1, 1);
    uint8_t *taken = calloc(extra + 1, 1);
    uint32_t next = 0;
    while (next < layout.groups) {
        struct ec_block block = ec_layout_block(&layout, next);
        assert_int_equal(block.first_group, next);
        for (uint32_t i = 0; i < block.parity; i++)
            sent[block.first_place + i] = 1;
        next += block.groups;
    }
    assert_int_equal(next, layout.groups);
    for (uint32_t g = 0; g < layout.groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        assert_in_range(group.size, 1, layout.params.k);
        for (uint32_t p = 0; p < group.size; p++) {
            assert_true(group.first_chunk + p * group.stride < chunks);
            assert_int_equal(data_of[group.first_chunk + p * group.stride]++, 0);
        }
        assert_in_range(group.rows, chunks > 1, layout.params.m);
        for (uint32_t r = 0; r < ec_group_rows_max(&layout, &group); r++) {
            assert_true(group.first_place + r * group.stride < extra);
            assert_int_equal(taken[group.first_place + r * group.stride]++, 0);
            assert_int_equal(sent[group.first_place + r * group.stride], r < group.rows);
            sent[group.first_place + r * group.stride] = 0;
        }
    }
    for (uint32_t i = 0; i < chunks; i++)
        assert_int_equal(data_of[i], 1);
    for (uint32_t i = 0; i < extra; i++)
        assert_int_equal(sent[i], 0); /* all that is sent belongs to a group */
    free(data_of);
    free(sent);
    free(taken);
}

static const struct {
    const char *scheme, *text;
} codes[] = {
    {"mds", ""},
    {"mds", "k=4,m=2"},
    {"mds", "k=4,m=2,spread=1"},
    {"mds", "k=4,m=2,spread=3"},
    {"mds", "k=1,m=3"},
    {"mds", "k=2,m=5,spread=2"},
    {"mds", "k=240,m=10"},
    {"xor", ""},
    {"xor", "k=4,m=4"},
    {"xor", "k=5,m=2,spread=3"},
    {"xor", "k=6,m=3,spread=1"},
};

static void test_every_size_is_shared_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        for (uint32_t chunks = 0; chunks <= 300; chunks++)
            check_layout(params_of(codes[i].scheme, codes[i].text), chunks);
}

static void test_neighbours_lie_in_different_groups(void **state)
{
    (void)state;
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 1024);
    struct ec_group second = ec_layout_group(&layout, 1);
    assert_int_equal(layout.groups, 32);
    assert_int_equal(second.first_chunk, 1);
    assert_int_equal(second.stride, 32);
    assert_int_equal(second.size, 32);
    assert_int_equal(second.rows, 8);
    assert_int_equal(second.first_place, 1);
    struct ec_layout narrow = ec_layout_of(params_of("mds", "spread=1"), 1024);
    struct ec_group of = ec_layout_group(&narrow, 1);
    assert_int_equal(of.first_chunk, 32);
    assert_int_equal(of.stride, 1);
    assert_int_equal(of.first_place, 16);
}

static void test_a_tail_is_shortened_and_balanced(void **state)
{
    (void)state;
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 33);
    assert_int_equal(layout.groups, 2);
    assert_int_equal(ec_layout_group(&layout, 0).size, 17);
    assert_int_equal(ec_layout_group(&layout, 1).size, 16);
    assert_int_equal(ec_layout_group(&layout, 1).rows, 8);
    layout = ec_layout_of(params_of("mds", "spread=2"), 64 + 3);
    assert_int_equal(layout.groups, 3);
    assert_int_equal(ec_layout_group(&layout, 2).size, 3);
    assert_int_equal(ec_layout_group(&layout, 2).rows, 4); /* one more than it has data */
    layout = ec_layout_of(params_of("xor", "spread=2"), 64 + 3);
    assert_int_equal(ec_layout_group(&layout, 2).rows, 3);
    layout = ec_layout_of(params_of("mds", "k=2,m=5"), 2);
    assert_int_equal(ec_layout_group(&layout, 0).rows, 5); /* full: what was asked for */
}

static void test_one_chunk_has_no_parity(void **state)
{
    (void)state;
    assert_int_equal(ec_groups(params_of("mds", ""), 1), 1);
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 1);
    assert_int_equal(ec_layout_group(&layout, 0).rows, 0);
    assert_int_equal(ec_layout_block(&layout, 0).parity, 0);
    assert_int_equal(ec_extra_chunks(params_of("mds", ""), 1), 0);
    assert_int_equal(ec_groups(params_of("mds", ""), 0), 0);
    assert_int_equal(ec_groups(params_of("mds", ""), 2), 1);
}

static void test_extra_chunks_fit_a_slot(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        for (uint32_t slot = 0; slot <= 1100; slot++) {
            const uint8_t *params = params_of(codes[i].scheme, codes[i].text);
            uint32_t chunks = ec_transfer_chunks_max(params, slot);
            assert_true(chunks <= slot && ec_extra_chunks(params, chunks) <= slot);
            assert_true(chunks == slot || chunks == 0 || ec_extra_chunks(params, chunks + 1) > slot);
        }
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 1024), 1024);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 1), 0);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 15), 0); /* not one group */
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 16), 16);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", "k=32,m=16"), 1024), 1024);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", "k=1,m=3"), 1024), 341);
    assert_int_equal(ec_extra_chunks(params_of("mds", "k=1,m=254"), UINT32_MAX), UINT32_MAX);
}

static void test_extra_chunks_never_fall(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        const uint8_t *params = params_of(codes[i].scheme, codes[i].text);
        for (uint32_t chunks = 1; chunks <= 1100; chunks++)
            assert_true(ec_extra_chunks(params, chunks) >= ec_extra_chunks(params, chunks - 1));
    }
}

static int run_layout(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_is_shared_out),
        cmocka_unit_test(test_neighbours_lie_in_different_groups),
        cmocka_unit_test(test_a_tail_is_shortened_and_balanced),
        cmocka_unit_test(test_one_chunk_has_no_parity),
        cmocka_unit_test(test_extra_chunks_fit_a_slot),
        cmocka_unit_test(test_extra_chunks_never_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test params ----------------------------------------------------------------------------------- */

static struct ec_params read_mds(const char *text)
{
    uint8_t params[LH_SCHEME_PARAMS];
    memset(params, 0xff, sizeof(params));
    if (ec_mds_parse(text, params) != 0)
        fail_msg("\"%s\": %s", text, lh_last_error());
    assert_true(ec_mds_params_valid(params));
    assert_false(ec_xor_params_valid(params));
    return ec_params_of(params);
}

static void test_defaults(void **state)
{
    (void)state;
    struct ec_params params = read_mds("");
    assert_int_equal(params.kind, EC_MDS);
    assert_int_equal(params.k, 32);
    assert_int_equal(params.m, 8);
    assert_int_equal(params.spread, 0);
    assert_int_equal(params.beta_hundredths, 50);
    assert_int_equal(params.fallback, EC_FALLBACK_IR);
    uint8_t bytes[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("", bytes), 0);
    assert_true(ec_xor_params_valid(bytes));
    assert_false(ec_mds_params_valid(bytes));
    assert_int_equal(ec_params_of(bytes).kind, EC_XOR);
}

static void test_keys_in_any_order(void **state)
{
    (void)state;
    struct ec_params params = read_mds("fallback=sr,beta=1.25,m=3,spread=7,k=10");
    assert_int_equal(params.k, 10);
    assert_int_equal(params.m, 3);
    assert_int_equal(params.spread, 7);
    assert_int_equal(params.beta_hundredths, 125);
    assert_int_equal(params.fallback, EC_FALLBACK_SR);
    assert_int_equal(read_mds("fallback=ir").fallback, EC_FALLBACK_IR);
}

static void test_the_ends_of_each_range(void **state)
{
    (void)state;
    assert_int_equal(read_mds("k=1,m=254").m, 254);
    assert_int_equal(read_mds("k=254,m=1").k, 254);
    assert_int_equal(read_mds("k=1,m=1").k, 1);
    assert_int_equal(read_mds("spread=65535").spread, 65535);
    assert_int_equal(read_mds("beta=0").beta_hundredths, 0);
    assert_int_equal(read_mds("beta=100").beta_hundredths, 10000);
}

static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *named;
    } bad[] = {
        {"k", "k needs a value"},
        {"q=1", "no parameter \"q=1\""},
        {"=1", "no parameter \"=1\""},
        {"k=1,", "no parameter \"\""},
        {",k=1", "no parameter \"\""},
        {" k=1", "no parameter \" k=1\""},
        {"K=1", "no parameter"},
        {"k=", "\"k=\" is not a whole number"},
        {"k=0", "\"k=0\" is not a whole number from 1 to 254"},
        {"k=255", "\"k=255\" is not"},
        {"k=3.5", "\"k=3.5\" is not"},
        {"k=-1", "\"k=-1\" is not"},
        {"k=4294967297", "\"k=4294967297\" is not"},
        {"m=0", "\"m=0\" is not"},
        {"m=8x", "\"m=8x\" is not"},
        {"spread=65536", "\"spread=65536\" is not a whole number from 0 to 65535"},
        {"beta=", "\"beta=\" is not a number"},
        {"beta=100.01", "\"beta=100.01\" is not a number from 0 to 100"},
        {"beta=0.001", "\"beta=0.001\""},
        {"beta=1x,k=2", "\"beta=1x\""},
        {"beta=1,k=2x", "\"k=2x\""},
        {"fallback=", "fallback=: invalid fallback"},
        {"fallback=irx", "fallback=irx: invalid fallback"},
        {"fallback=i", "fallback=i: invalid fallback"},
        {"k=4,m=2,k=4", "k is given twice, the second time as \"k=4\""},
        {"k=200,m=56", "k=200 and m=56 exceed 255"},
        {"m=254", "k=32 and m=254"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS] = {7};
        assert_int_equal(ec_mds_parse(bad[i].text, params), -LH_EINVAL);
        assert_int_equal(params[0], 7); /* outputs only on success */
        if (strstr(lh_last_error(), bad[i].named) == NULL)
            fail_msg("\"%s\" gives: %s", bad[i].text, lh_last_error());
    }
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("k=4,m=5", params), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "m=5"));
    assert_int_equal(ec_xor_parse("k=4,m=4", params), 0);
    assert_int_equal(ec_xor_parse("nothing", params), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "ec:xor"));
}

static void test_params_from_the_wire(void **state)
{
    (void)state;
    static const uint8_t good[LH_SCHEME_PARAMS] = {2, 32, 8, 1, 0xff, 0xff, 0x27, 0x10};
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 0}, {0, 1}, {0, 3}, {1, 0}, {1, 248}, {2, 0}, {2, 224}, {3, 2}, {7, 0x11}, {6, 0x28}};
    assert_true(ec_mds_params_valid(good));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof(params));
        params[bad[i].at] = bad[i].value;
        assert_false(ec_mds_params_valid(params));
    }
    uint8_t edge[LH_SCHEME_PARAMS] = {2, 247, 8, 0, 0, 0, 0, 0};
    assert_true(ec_mds_params_valid(edge));
    uint8_t xor_params[LH_SCHEME_PARAMS] = {1, 8, 8, 0, 0, 0, 0, 0};
    assert_true(ec_xor_params_valid(xor_params));
    xor_params[2] = 9;
    assert_false(ec_xor_params_valid(xor_params));
}

static uint32_t fresh(enum ec_kind kind, uint32_t k, uint32_t m)
{
    struct ec_params params = {.kind = kind, .k = k, .m = m};
    return ec_fresh_rows(&params);
}

static void test_fresh_rows(void **state)
{
    (void)state;
    assert_int_equal(fresh(EC_MDS, 32, 8), 8);
    assert_int_equal(fresh(EC_MDS, 32, 16), 16);
    assert_int_equal(fresh(EC_MDS, 32, 17), 15); /* not more parity than data */
    assert_int_equal(fresh(EC_MDS, 8, 8), 0);
    assert_int_equal(fresh(EC_MDS, 4, 8), 0);
    assert_int_equal(fresh(EC_MDS, 240, 10), 5); /* the code ends */
    assert_int_equal(fresh(EC_MDS, 200, 55), 0);
    assert_int_equal(fresh(EC_XOR, 32, 8), 0);
}

static int run_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_keys_in_any_order),
        cmocka_unit_test(test_the_ends_of_each_range),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_params_from_the_wire),
        cmocka_unit_test(test_fresh_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_coding() + run_layout() + run_params();
}
