/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collective/schedule/schedule_table.h"

#define PIECES 400u

struct made {
    struct pieces pieces;
    struct piece sends[PIECES], receives[PIECES];
    uint32_t numbers[2 * 8];
};

static void make(struct made *made, enum collective collective, const char *name, uint32_t rank,
                 uint64_t elements, size_t block_bytes, size_t piece_bytes)
{
    struct layout layout = {
        .collective = collective, .rank = rank, .ranks = 4, .elements = elements, .element_bytes = 1};
    layout.blocks = layout_blocks(&layout, block_bytes);
    const struct schedule_shape shape = {.ranks = 4, .blocks = layout.blocks};
    const struct pieces_plan plan = {.schedule = schedule_find(collective, name),
                                     .shape = &shape,
                                     .layout = &layout,
                                     .piece_bytes = piece_bytes};
    struct pieces counted = {0};
    assert_true(pieces_make(&plan, &counted));
    memset(made, 0, sizeof *made);
    made->pieces =
        (struct pieces){.sends = made->sends, .receives = made->receives, .numbers = made->numbers};
    assert_true(counted.send_count <= PIECES && counted.receive_count <= PIECES);
    assert_true(pieces_make(&plan, &made->pieces));
    assert_int_equal(made->pieces.send_count, counted.send_count);
    assert_int_equal(made->pieces.receive_count, counted.receive_count);
    assert_int_equal(made->pieces.blocks_received, counted.blocks_received);
}

/* A ring of 4, parts of 100 bytes in blocks of at most 30. */
static void test_ring(void **state)
{
    struct made made;
    (void)state;
    make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 400, 30, 30);
    assert_int_equal(made.pieces.send_count, 6 * 4);
    for (uint32_t i = 0; i < made.pieces.send_count; i++) {
        assert_int_equal(made.sends[i].peer, 2);
        assert_int_equal(made.sends[i].number, i);
        assert_int_equal(made.sends[i].bytes, 25);
        assert_int_equal(made.sends[i].before, i / 4 * 4);
        assert_int_equal(made.sends[i].reduce, i < 12);
        assert_int_equal(made.receives[i].peer, 0);
        assert_int_equal(made.receives[i].number, i);
    }
}

/* Small blocks share a message, up to its length and number of blocks. */
static void test_joined(void **state)
{
    struct made made;
    (void)state;
    make(&made, COLLECTIVE_ALLREDUCE, "halving-doubling", 0, 400, 30, 60);
    assert_int_equal(made.sends[0].count, 2);
    assert_int_equal(made.sends[0].bytes, 50);
    make(&made, COLLECTIVE_ALLREDUCE, "halving-doubling", 0, 400, 2, 4000);
    assert_int_equal(made.sends[0].count, PIECE_BLOCKS_MAX);
    assert_int_equal(made.sends[0].bytes, 2 * PIECE_BLOCKS_MAX);
}

/* Blocks without bytes are not sent, but for barriers. */
static void test_empty(void **state)
{
    struct made made;
    (void)state;
    make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 0, 30, 30);
    assert_int_equal(made.pieces.send_count, 0);
    make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 1, 30, 30);
    assert_int_equal(made.pieces.send_count, 2);
    make(&made, COLLECTIVE_BARRIER, "dissemination", 1, 0, 30, 30);
    assert_int_equal(made.pieces.send_count, 2);
    assert_int_equal(made.pieces.receive_count, 2);
    assert_int_equal(made.sends[0].bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
