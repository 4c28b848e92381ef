/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/least.h"
#include "base/prng.h"

#define CHUNK  1024u
#define LKEY   99u /* of copies */
#define MEMORY ((size_t)1 << 20)

static uint8_t memory[MEMORY];
static uint8_t copies[MEMORY];

static int fill(void **state)
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
        uint64_t bytes = lh_least((uint64_t)count * range->chunk_bytes, range->bytes - from);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_parts_stay_where_they_are),
        cmocka_unit_test(test_short_parts_are_copied_together),
        cmocka_unit_test(test_any_range_of_any_parts),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
