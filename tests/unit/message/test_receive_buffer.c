/*
 * test_receive_buffer.c -
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

#include "base/bitmap.h"
#include "base/min_max.h"
#include "base/prng.h"
#include "message/receive_buffer.h"

/* ---- test arrived ---------------------------------------------------------------------------------- */

static void test_nothing_and_all(void **state)
{
    (void)state;
    uint64_t bits[2] = {0}, missing;
    struct arrived arrived = {NULL, 64, 100 * 64 - 3};
    struct lh_range range;
    assert_int_equal(arrived_words(arrived.bytes, 64), 2);
    assert_int_equal(arrived_missing(&arrived, &missing), 1);
    assert_int_equal(missing, arrived.bytes);
    arrived.bits = bits;
    assert_int_equal(arrived_missing(&arrived, &missing), 1);
    assert_int_equal(missing, arrived.bytes);
    lh_bitmap_set_range(bits, 0, 100);
    assert_int_equal(arrived_missing(&arrived, &missing), 0);
    assert_false(arrived_next_missing(&arrived, 0, &range));
    lh_bitmap_clear(bits, 99); /* the short one */
    assert_true(arrived_next_missing(&arrived, 0, &range));
    assert_true(range.offset == 99 * 64 && range.bytes == 61);
    arrived.bytes = 0;
    assert_int_equal(arrived_missing(&arrived, &missing), 0);
}

/* Beside one packet after the other. */
static void test_any_bits(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t turn = 0; turn < 300; turn++) {
        uint64_t bits[4], bytes = 1 + lh_prng_below(&prng, 256 * 64), sum = 0, missing, ranges = 0;
        for (size_t i = 0; i < 4; i++)
            bits[i] = lh_prng_next(&prng) | (turn % 3 ? lh_prng_next(&prng) : 0);
        const struct arrived arrived = {bits, 64, bytes};
        for (uint64_t p = 0; p * 64 < bytes; p++) {
            uint64_t left = bytes - p * 64;
            bool lost = !lh_bitmap_get(bits, p);
            sum += lost ? (left < 64 ? left : 64) : 0;
            ranges += lost && (p == 0 || lh_bitmap_get(bits, p - 1));
        }
        assert_int_equal(arrived_missing(&arrived, &missing), ranges);
        assert_int_equal(missing, sum);
    }
}

static int run_arrived(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_and_all),
        cmocka_unit_test(test_any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test buffer ----------------------------------------------------------------------------------- */

static uint8_t buffer_memory[64];

/* 3, 1 and 6 bytes, not in the order of their addresses. */
static const struct message_parts buffer_parts = {
    .count = 3,
    .list = {{buffer_memory + 40, 3, 11}, {buffer_memory + 10, 1, 12}, {buffer_memory + 20, 6, 13}}};
static const struct message_buffer scattered = {.parts = &buffer_parts};
static const struct message_buffer plain = {.address = buffer_memory, .lkey = 7};

static int fill(void **state)
{
    (void)state;
    memset(buffer_memory, '.', sizeof buffer_memory);
    memcpy(buffer_memory + 40, "abc", 3);
    memcpy(buffer_memory + 10, "d", 1);
    memcpy(buffer_memory + 20, "efghij", 6);
    return 0;
}

static void test_reads_any_range(void **state)
{
    (void)state;
    const char *const whole = "abcdefghij";
    for (uint64_t from = 0; from <= 10; from++)
        for (uint64_t bytes = 0; bytes <= 10 - from; bytes++) {
            char out[12] = "-----------";
            buffer_read(&scattered, from, out, bytes);
            assert_memory_equal(out, whole + from, bytes);
            assert_int_equal(out[bytes], '-');
        }
    char out[3];
    buffer_read(&plain, 40, out, 3);
    assert_memory_equal(out, "abc", 3);
}

static void test_writes_any_range_and_nothing_else(void **state)
{
    for (uint64_t from = 0; from <= 10; from++)
        for (uint64_t bytes = 0; bytes <= 10 - from; bytes++) {
            char now[10];
            char expected[10] = "abcdefghij";
            uint32_t untouched = 0;
            fill(state);
            buffer_write(&scattered, from, "0123456789", bytes);
            memcpy(expected + from, "0123456789", bytes);
            buffer_read(&scattered, 0, now, 10);
            assert_memory_equal(now, expected, 10);
            for (size_t i = 0; i < sizeof buffer_memory; i++)
                untouched += buffer_memory[i] == '.';
            assert_int_equal(untouched, sizeof buffer_memory - 10);
        }
    buffer_write(&plain, 0, "xy", 2);
    assert_memory_equal(buffer_memory, "xy.", 3);
}

static void test_place(void **state)
{
    (void)state;
    struct message_part place;
    assert_true(buffer_place(&plain, 5, 9, &place));
    assert_true(place.address == buffer_memory + 5 && place.bytes == 9 && place.lkey == 7);
    assert_true(buffer_place(&scattered, 0, 3, &place));
    assert_true(place.address == buffer_memory + 40 && place.lkey == 11);
    assert_true(buffer_place(&scattered, 3, 1, &place));
    assert_true(place.address == buffer_memory + 10 && place.lkey == 12);
    assert_true(buffer_place(&scattered, 5, 5, &place));
    assert_true(place.address == buffer_memory + 21 && place.lkey == 13);
    assert_false(buffer_place(&scattered, 2, 2, &place));
    assert_false(buffer_place(&scattered, 0, 10, &place));
    assert_true(buffer_place(&scattered, 10, 0, &place));
    assert_null(place.address);
}

static int run_buffer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reads_any_range, fill),
        cmocka_unit_test(test_writes_any_range_and_nothing_else),
        cmocka_unit_test(test_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test pieces ----------------------------------------------------------------------------------- */

#define CHUNK  1024u
#define LKEY   99u /* of copies */
#define MEMORY ((size_t)1 << 20)

static uint8_t memory[MEMORY];
static uint8_t copies[MEMORY];

static int pieces_fill(void **state)
{
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 1);
    for (size_t i = 0; i < MEMORY; i++)
        memory[i] = (uint8_t)(lh_prng_next(&prng) >> 32);
    return 0;
}

/* A header and two long parts: the first chunk has bytes of two parts, and so has one in the middle. */
static void test_long_parts_stay_where_they_are(void **state)
{
    (void)state;
    const struct message_parts parts = {
        .count = 3,
        .list = {{memory, 40, 1}, {memory + 1000, 50 * CHUNK, 2}, {memory + 200000, 30 * CHUNK, 3}}};
    const struct message_buffer buffer = {.parts = &parts};
    const struct segment_range range = {0, 40 + 80 * CHUNK, CHUNK};
    struct segment_pieces pieces;
    assert_int_equal(pieces_cut(&buffer, &range, false, &pieces), 2);
    assert_true(pieces.count == 4 && pieces.chunks == 81);
    pieces_copy(&pieces, &buffer, &range, copies, LKEY);
    uint32_t count = 81;
    struct segment_piece piece = pieces_at(&pieces, 0, CHUNK, &count);
    assert_true(piece.address == copies && piece.lkey == LKEY && count == 1);
    count = 81 - 1;
    piece = pieces_at(&pieces, 1, CHUNK, &count);
    assert_true(piece.address == memory + 1000 + CHUNK - 40 && piece.lkey == 2 && count == 49);
    count = 3;
    piece = pieces_at(&pieces, 7, CHUNK, &count);
    assert_true(piece.address == memory + 1000 + 7 * CHUNK - 40 && piece.first == 7 && count == 3);
    count = 2;
    piece = pieces_at(&pieces, 50, CHUNK, &count);
    assert_true(piece.address == copies + CHUNK && count == 1);
    count = 30;
    piece = pieces_at(&pieces, 51, CHUNK, &count);
    assert_true(piece.address == memory + 200000 + CHUNK - 40 && piece.lkey == 3 && count == 30);
}

static void test_short_parts_are_copied_together(void **state)
{
    (void)state;
    const struct message_parts parts = {.count = 3,
                                        .list = {{memory, PIECE_BYTES_MIN - 1, 1},
                                                 {memory + 100000, PIECE_BYTES_MIN - 1, 2},
                                                 {memory + 200000, 2 * PIECE_BYTES_MIN, 3}}};
    const struct message_buffer buffer = {.parts = &parts};
    const struct segment_range range = {0, 4 * PIECE_BYTES_MIN - 2, CHUNK};
    struct segment_pieces pieces;
    assert_int_equal(pieces_cut(&buffer, &range, false, &pieces), 2 * PIECE_BYTES_MIN / CHUNK);
    assert_int_equal(pieces.count, 2);
    assert_int_equal(pieces_cut(&buffer, &range, true, &pieces), 4 * PIECE_BYTES_MIN / CHUNK);
    assert_int_equal(pieces.count, 1);
}

/* Any range of any parts: each chunk has its bytes, and only memory of the parts, and of copies, is used. */
static void check_pieces(const struct message_buffer *buffer, const struct segment_range *range, bool whole)
{
    static uint8_t expected[MEMORY];
    struct segment_pieces pieces;
    uint32_t copied = pieces_cut(buffer, range, whole, &pieces);
    assert_true(pieces.count > 0 && pieces.count <= PIECES_MAX && pieces.list[0].first == 0);
    assert_true(copied <= pieces.chunks && (uint64_t)copied * range->chunk_bytes <= sizeof copies);
    pieces_copy(&pieces, buffer, range, copies, LKEY);
    buffer_read(buffer, range->offset, expected, range->bytes);
    uint32_t copies_seen = 0;
    for (uint32_t at = 0, count; at < pieces.chunks; at += count) {
        count = pieces.chunks - at;
        struct segment_piece piece = pieces_at(&pieces, at, range->chunk_bytes, &count);
        uint64_t from = (uint64_t)at * range->chunk_bytes;
        uint64_t bytes = lh_min((uint64_t)count * range->chunk_bytes, range->bytes - from);
        assert_true(piece.first == at && count > 0);
        assert_memory_equal(piece.address, expected + from, bytes);
        copies_seen += piece.lkey == LKEY ? count : 0;
    }
    assert_int_equal(copies_seen, copied);
    assert_true(!whole || copied == pieces.chunks);
}

static void test_any_range_of_any_parts(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    for (int round = 0; round < 3000; round++) {
        struct message_parts parts = {.count = 2 + (uint32_t)lh_prng_below(&prng, LH_PARTS_MAX - 1)};
        const struct message_buffer buffer = {.parts = &parts};
        uint64_t total = 0;
        for (uint32_t i = 0; i < parts.count; i++) {
            uint64_t bytes = 1 + lh_prng_below(&prng, lh_prng_chance(&prng, 0.5) ? 2 * CHUNK : 40 * CHUNK);
            if (lh_prng_chance(&prng, 0.3))
                bytes = (1 + bytes / CHUNK) * CHUNK; /* ends and begins with a chunk */
            parts.list[i] = (struct message_part){memory + lh_prng_below(&prng, MEMORY - bytes), bytes, i};
            total += bytes;
        }
        struct segment_range range = {.chunk_bytes = CHUNK << lh_prng_below(&prng, 3)};
        range.offset = lh_prng_chance(&prng, 0.3) ? 0 : lh_prng_below(&prng, total);
        range.bytes = (uint32_t)(1 + lh_prng_below(&prng, total - range.offset));
        check_pieces(&buffer, &range, lh_prng_chance(&prng, 0.1));
    }
}

static int run_pieces(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_parts_stay_where_they_are),
        cmocka_unit_test(test_short_parts_are_copied_together),
        cmocka_unit_test(test_any_range_of_any_parts),
    };
    return cmocka_run_group_tests(tests, pieces_fill, NULL);
}

int main(void)
{
    return run_arrived() + run_buffer() + run_pieces();
}
