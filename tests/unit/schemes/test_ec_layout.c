/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/ec/layout.h"

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

static const char *const params[] = {"k=8,m=3", "k=8,m=3,spread=1", "k=5,m=2,spread=3", "k=4,m=4",
                                     "k=1,m=1"};

/* Sizes around chunks, groups and blocks; the last chunk lost, the row before the last, and each alone. */
static void test_every_tail(void **state)
{
    (void)state;
    static const uint64_t tails[] = {1, 7, 32, 63, 64};
    for (size_t p = 0; p < sizeof(params) / sizeof(*params); p++)
        for (int mds = 0; mds < 2; mds++)
            for (uint32_t chunks = 2; chunks < 50; chunks++) {
                struct transfer t;
                start(&t, mds, params[p], (uint64_t)(chunks - 1) * CHUNK + tails[chunks % 5]);
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
                start(&t, true, params[p], (uint64_t)chunks * CHUNK - 5);
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

int main(void)
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
