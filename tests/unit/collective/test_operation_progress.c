/*
 * test_operation_progress.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "collective/operation_progress.h"
#include "collective/schedules.h"

/* ---- test layout ----------------------------------------------------------------------------------- */

static uint8_t input[4096], output[4096], work[4096];

static struct layout layout_of(enum collective collective, uint32_t rank, uint64_t count,
                               size_t block_bytes)
{
    struct layout layout = {.collective = collective,
                            .rank = rank,
                            .ranks = 4,
                            .root = 2,
                            .elements = layout_elements(collective, 4, count),
                            .element_bytes = 4,
                            .in = input,
                            .out = output,
                            .work = work};
    layout.blocks = layout_blocks(&layout, block_bytes);
    return layout;
}

/* Blocks are adjacent, none is longer than asked for, and together they are the row. */
static void test_blocks(void **state)
{
    (void)state;
    for (enum collective each = 0; each < COLLECTIVE_BARRIER; each++)
        for (uint64_t count = 0; count < 40; count++)
            for (size_t bytes = 4; bytes < 30; bytes++) {
                struct layout layout = layout_of(each, 1, count, bytes);
                uint64_t sum = 0;
                assert_true(layout.blocks > 0);
                for (uint32_t b = 0; b < layout.blocks; b++) {
                    assert_true(layout_bytes(&layout, b) <= bytes);
                    assert_int_equal(layout_bytes(&layout, b) % 4, 0);
                    sum += layout_bytes(&layout, b);
                }
                assert_int_equal(sum, layout.elements * 4);
            }
}

/* As few as the bytes allow; but in each part, where ranks have parts of their own, or of the sum. */
static void test_numbers_of_blocks(void **state)
{
    (void)state;
    static const uint32_t blocks[COLLECTIVES] = {
        [COLLECTIVE_ALLREDUCE] = 12, /* four parts of at most eight elements */
        [COLLECTIVE_REDUCE] = 10,    [COLLECTIVE_BROADCAST] = 10, [COLLECTIVE_REDUCE_SCATTER] = 40,
        [COLLECTIVE_ALLGATHER] = 40, [COLLECTIVE_GATHER] = 40,    [COLLECTIVE_SCATTER] = 40,
        [COLLECTIVE_ALLTOALL] = 40,  [COLLECTIVE_BARRIER] = 1,
    };
    for (enum collective each = 0; each < COLLECTIVES; each++) {
        struct layout layout = layout_of(each, 1, 30, 12);
        assert_int_equal(layout.blocks, blocks[each]);
        assert_int_equal(layout_blocks_of_all(&layout),
                         blocks[each] * (each == COLLECTIVE_ALLTOALL ? 4 : 1));
    }
}

/* More than a schedule takes are refused, by the last one. */
static void test_too_many_blocks(void **state)
{
    (void)state;
    const uint64_t most = SCHEDULE_BLOCKS_MAX;
    assert_int_equal(layout_of(COLLECTIVE_BROADCAST, 1, most, 4).blocks, most);
    assert_int_equal(layout_of(COLLECTIVE_BROADCAST, 1, most + 1, 4).blocks, 0);
    assert_int_equal(layout_of(COLLECTIVE_BROADCAST, 1, most + 1, 8).blocks, most / 2 + 1);
    assert_int_equal(layout_of(COLLECTIVE_ALLREDUCE, 1, most, 4).blocks, most);
    assert_int_equal(layout_of(COLLECTIVE_ALLREDUCE, 1, most + 1, 4).blocks, 0);
    assert_int_equal(layout_of(COLLECTIVE_ALLGATHER, 1, most / 4, 4).blocks, most);
    assert_int_equal(layout_of(COLLECTIVE_ALLGATHER, 1, most / 4 + 1, 4).blocks, 0);
    assert_int_equal(layout_of(COLLECTIVE_ALLTOALL, 1, most / 16, 4).blocks, most / 4);
    assert_int_equal(layout_of(COLLECTIVE_ALLTOALL, 1, most / 16 + 1, 4).blocks, 0);
    assert_int_equal(layout_of(COLLECTIVE_BARRIER, 1, most + 1, 4).blocks, 1);
}

/* And more elements than 64 bits of bytes could count. */
static void test_too_many_elements(void **state)
{
    (void)state;
    const uint64_t most = LAYOUT_ELEMENTS_MAX;
    assert_int_equal(layout_elements(COLLECTIVE_ALLREDUCE, 4, most), most);
    assert_int_equal(layout_elements(COLLECTIVE_ALLREDUCE, 4, most + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_SCATTER, 4, most / 4), most);
    assert_int_equal(layout_elements(COLLECTIVE_SCATTER, 4, most / 4 + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_ALLTOALL, 4, most / 16), most / 4);
    assert_int_equal(layout_elements(COLLECTIVE_ALLTOALL, 4, most / 16 + 1), 0);
}

/* Parts are exact: each begins with a block. */
static void test_parts(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_REDUCE_SCATTER, 1, 10, 12);
    const struct schedule_shape shape = {.ranks = 4, .blocks = layout.blocks};
    (void)state;
    assert_int_equal(layout.blocks, 16); /* four of at most three elements for each of ten */
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct schedule_extent part = schedule_part(&shape, rank);
        size_t bytes = 0;
        for (uint32_t b = 0; b < part.count; b++)
            bytes += layout_bytes(&layout, part.first + b);
        assert_int_equal(bytes, 40);
        assert_ptr_equal(layout_from(&layout, part.first), input + rank * 40);
        assert_ptr_equal(layout_to(&layout, part.first), rank == 1 ? output : work + rank * 40);
    }
}

static void check_own(enum collective collective, uint32_t rank, uint64_t bytes, size_t from_at,
                      size_t to_at)
{
    struct layout layout = layout_of(collective, rank, 10, 12);
    const uint8_t *from;
    uint8_t *to;
    assert_int_equal(layout_own(&layout, &from, &to), bytes);
    if (bytes > 0) {
        assert_ptr_equal(from, input + from_at);
        assert_ptr_equal(to, output + to_at);
    }
}

static void test_own(void **state)
{
    (void)state;
    check_own(COLLECTIVE_ALLREDUCE, 1, 0, 0, 0);
    check_own(COLLECTIVE_BROADCAST, 2, 0, 0, 0);
    check_own(COLLECTIVE_ALLGATHER, 1, 40, 0, 40);
    check_own(COLLECTIVE_GATHER, 1, 0, 0, 0);
    check_own(COLLECTIVE_GATHER, 2, 40, 0, 80);
    check_own(COLLECTIVE_SCATTER, 1, 0, 0, 0);
    check_own(COLLECTIVE_SCATTER, 2, 40, 80, 0);
    check_own(COLLECTIVE_ALLTOALL, 3, 40, 120, 120);
    struct layout in_place = layout_of(COLLECTIVE_ALLGATHER, 1, 10, 12);
    const uint8_t *from;
    uint8_t *to;
    in_place.in = output + 40;
    assert_int_equal(layout_own(&in_place, &from, &to), 0);
}

static void test_pairs(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_ALLTOALL, 1, 10, 40);
    (void)state;
    assert_int_equal(layout.blocks, 4);
    assert_int_equal(layout_blocks_of_all(&layout), 16);
    assert_ptr_equal(layout_from(&layout, 1 * 4 + 3), input + 120);
    assert_ptr_equal(layout_to(&layout, 2 * 4 + 1), output + 80);      /* for this rank */
    assert_ptr_equal(layout_to(&layout, 2 * 4 + 3), work + 320 + 120); /* passes through */
    assert_int_equal(layout_work_bytes(&layout, true), 4 * 160);
    assert_int_equal(layout_work_bytes(&layout, false), 0);
}

static void test_bounds(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_BROADCAST, 1, LAYOUT_ELEMENTS_MAX, 4);
    (void)state;
    assert_int_equal(layout.blocks, 0); /* more than a schedule takes */
    assert_int_equal(layout_elements(COLLECTIVE_BROADCAST, 4, LAYOUT_ELEMENTS_MAX + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_ALLGATHER, 4, LAYOUT_ELEMENTS_MAX / 4 + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_ALLTOALL, 4, LAYOUT_ELEMENTS_MAX / 4), 0);
}

static int run_layout(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),          cmocka_unit_test(test_numbers_of_blocks),
        cmocka_unit_test(test_too_many_blocks), cmocka_unit_test(test_too_many_elements),
        cmocka_unit_test(test_parts),           cmocka_unit_test(test_own),
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test parts ------------------------------------------------------------------------------------ */

#define RANKS 4u

static const size_t parts_sent[RANKS] = {7, 2, 0, 31}, got[RANKS] = {0, 2, 10, 20};

static struct parts_request request_of(enum collective collective, uint32_t rank)
{
    return (struct parts_request){.collective = collective,
                                  .rank = rank,
                                  .ranks = RANKS,
                                  .root = 1,
                                  .in_counts = parts_sent,
                                  .out_counts = got,
                                  .per_block = 10};
}

static void *make(const struct parts_request *request, struct parts *parts)
{
    void *memory = calloc(1, parts_memory(request));
    assert_non_null(memory);
    assert_int_equal(parts_make(request, memory, parts), 0);
    return memory;
}

/* Each block has a place of its own, and they fill the buffers but for its own part. */
static void test_alltoall(void **state)
{
    const struct parts_request request = request_of(COLLECTIVE_ALLTOALL, 1);
    struct parts parts;
    void *memory = make(&request, &parts);
    uint8_t in[40] = {0}, out[32] = {0};
    const struct layout layout = {.collective = COLLECTIVE_ALLTOALL,
                                  .rank = 1,
                                  .ranks = RANKS,
                                  .element_bytes = 1,
                                  .in = in,
                                  .out = out,
                                  .parts = &parts};
    (void)state;
    assert_int_equal(parts.in_blocks, 1 + 4);
    assert_int_equal(parts.blocks, 5 + 1 + 2);
    assert_int_equal(parts.elements, 40 + 32);
    assert_int_equal(layout_blocks(&layout, 10), parts.blocks);
    assert_int_equal(layout_work_bytes(&layout, false), 0);
    for (uint32_t b = 0; b < parts.blocks; b++) {
        size_t bytes = layout_bytes(&layout, b);
        assert_true(bytes > 0 && bytes <= 10);
        uint8_t *at = b < parts.in_blocks ? in + (layout_from(&layout, b) - in) : layout_to(&layout, b);
        for (size_t i = 0; i < bytes; i++)
            at[i]++;
    }
    for (size_t i = 0; i < sizeof in; i++)
        assert_int_equal(in[i], i < 7 || i >= 9);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], i >= 2);
    const uint8_t *from;
    uint8_t *to;
    assert_int_equal(layout_own(&layout, &from, &to), 2);
    assert_ptr_equal(from, in + 7);
    assert_ptr_equal(to, out);
    free(memory);
}

/* The root has all parts, the others have their own. */
static void test_root(void **state)
{
    struct parts_request request = request_of(COLLECTIVE_GATHER, 1);
    struct parts parts;
    (void)state;
    request.count = 2;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 0); /* what is its own does not travel */
    assert_int_equal(parts.blocks, 3);
    request.rank = 3;
    request.count = 25;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 3);
    assert_int_equal(parts.blocks, 3);
    request = request_of(COLLECTIVE_SCATTER, 1);
    request.count = 2;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 5);
    assert_int_equal(parts.blocks, 5);
}

/* What one sends in pieces the other expects in the same, though they number blocks differently. */
static void test_pieces_agree(void **state)
{
    size_t counts[RANKS][RANKS], columns[RANKS][RANKS];
    (void)state;
    for (uint32_t s = 0; s < RANKS; s++)
        for (uint32_t d = 0; d < RANKS; d++)
            columns[d][s] = counts[s][d] = (s * 13 + d * 29) % 4 * 11;
    struct piece pieces[2][RANKS][64]; /* sends, receives */
    uint32_t numbers[2 * RANKS], made[2][RANKS];
    for (uint32_t r = 0; r < RANKS; r++) {
        struct parts_request request = request_of(COLLECTIVE_ALLTOALL, r);
        request.in_counts = counts[r];
        request.out_counts = columns[r];
        struct parts parts;
        void *memory = make(&request, &parts);
        const struct layout layout = {.collective = COLLECTIVE_ALLTOALL,
                                      .rank = r,
                                      .ranks = RANKS,
                                      .blocks = parts.blocks,
                                      .element_bytes = 1,
                                      .parts = &parts};
        const struct schedule_shape shape = {
            .ranks = RANKS, .blocks = parts.blocks, .extents = parts.extents};
        const struct pieces_plan plan = {.schedule = parts_schedule(COLLECTIVE_ALLTOALL),
                                         .shape = &shape,
                                         .layout = &layout,
                                         .piece_bytes = 10};
        memset(numbers, 0, sizeof numbers);
        struct pieces of = {.sends = pieces[0][r], .receives = pieces[1][r], .numbers = numbers};
        assert_true(pieces_make(&plan, &of));
        made[0][r] = of.send_count;
        made[1][r] = of.receive_count;
        free(memory);
    }
    uint32_t found = 0, all = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        all += made[1][r];
        for (uint32_t i = 0; i < made[0][r]; i++) {
            const struct piece *send = &pieces[0][r][i];
            for (uint32_t k = 0; k < made[1][send->peer]; k++) {
                const struct piece *receive = &pieces[1][send->peer][k];
                found +=
                    receive->peer == r && receive->number == send->number && receive->bytes == send->bytes;
            }
        }
    }
    assert_true(all > 0);
    assert_int_equal(found, all);
    assert_int_equal(made[0][0] + made[0][1] + made[0][2] + made[0][3], all);
}

static void test_refused(void **state)
{
    size_t many[RANKS] = {0, 0, SIZE_MAX, 0};
    struct parts_request request = request_of(COLLECTIVE_ALLTOALL, 3);
    struct parts parts;
    void *memory = calloc(1, parts_memory(&request));
    (void)state;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL); /* 31 for itself, and gets 20 */
    assert_string_equal(lh_last_error(), "alltoallv: rank 3 has 31 elements for itself, but expects 20");
    request = request_of(COLLECTIVE_ALLTOALL, 1);
    request.in_counts = many;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL);
    many[2] = (size_t)SCHEDULE_BLOCKS_MAX * 10 + 1;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL);
    assert_null(parts_collective_name(COLLECTIVE_ALLREDUCE));
    free(memory);
}

static int run_parts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_pieces_agree),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test past ------------------------------------------------------------------------------------- */

/* The last PAST_OPERATIONS that were noted, and no other. */
static void test_window(void **state)
{
    static struct past past;
    (void)state;
    assert_null(past_find(&past, 0));
    for (uint32_t i = 0; i < 3 * PAST_OPERATIONS; i++) {
        const struct signature signature = {.count = i};
        past_note(&past, i, &signature);
    }
    for (uint32_t i = 0; i < 4 * PAST_OPERATIONS; i++) {
        const struct signature *found = past_find(&past, i);
        if (i < 2 * PAST_OPERATIONS || i >= 3 * PAST_OPERATIONS)
            assert_null(found);
        else
            assert_int_equal(found->count, i);
    }
}

static int run_past(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test pieces ----------------------------------------------------------------------------------- */

#define PIECES 400u

struct made {
    struct pieces pieces;
    struct piece sends[PIECES], receives[PIECES];
    uint32_t numbers[2 * 8];
};

static void test_pieces_make(struct made *made, enum collective collective, const char *name, uint32_t rank,
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
    test_pieces_make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 400, 30, 30);
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
    test_pieces_make(&made, COLLECTIVE_ALLREDUCE, "halving-doubling", 0, 400, 30, 60);
    assert_int_equal(made.sends[0].count, 2);
    assert_int_equal(made.sends[0].bytes, 50);
    test_pieces_make(&made, COLLECTIVE_ALLREDUCE, "halving-doubling", 0, 400, 2, 4000);
    assert_int_equal(made.sends[0].count, PIECE_BLOCKS_MAX);
    assert_int_equal(made.sends[0].bytes, 2 * PIECE_BLOCKS_MAX);
}

/* Blocks without bytes are not sent, but for barriers. */
static void test_empty(void **state)
{
    struct made made;
    (void)state;
    test_pieces_make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 0, 30, 30);
    assert_int_equal(made.pieces.send_count, 0);
    test_pieces_make(&made, COLLECTIVE_ALLREDUCE, "ring", 1, 1, 30, 30);
    assert_int_equal(made.pieces.send_count, 2);
    test_pieces_make(&made, COLLECTIVE_BARRIER, "dissemination", 1, 0, 30, 30);
    assert_int_equal(made.pieces.send_count, 2);
    assert_int_equal(made.pieces.receive_count, 2);
    assert_int_equal(made.sends[0].bytes, 0);
}

static int run_pieces(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test progress --------------------------------------------------------------------------------- */

/*
 * All ranks of a collective in memory, whose messages arrive in any order: each rank ends
 * with what it should, and adds in the same order whatever arrives first.
 */

#define RANKS_MAX       9u
#define BLOCKS_MAX      600u
#define PROGRESS_PIECES 2000u

struct in_flight {
    uint32_t from, to, send;
    uint64_t values[PIECE_BLOCKS_MAX];
};

struct rank {
    struct layout layout;
    struct pieces pieces;
    struct progress progress;
    struct piece sends[PROGRESS_PIECES], receives[PROGRESS_PIECES];
    struct progress_receive states[PROGRESS_PIECES];
    uint32_t numbers[2 * RANKS_MAX], next_of_sends[PROGRESS_PIECES], next_of_receives[PROGRESS_PIECES],
        next[BLOCKS_MAX];
    uint32_t reduced_until[BLOCKS_MAX], follows[PROGRESS_PIECES * PIECE_BLOCKS_MAX];
    bool received[BLOCKS_MAX];
    uint64_t arrived[PROGRESS_PIECES][PIECE_BLOCKS_MAX];
    uint64_t values[BLOCKS_MAX]; /* contributions, a bit each; of a copied block 1 */
    uint64_t order[BLOCKS_MAX];  /* hash of the order in which they were added */
    bool final[BLOCKS_MAX];
};

struct world {
    struct schedule_shape shape;
    const struct schedule *schedule;
    struct lh_prng prng;
    struct rank *ranks;
    struct in_flight *flight;
    uint32_t in_flight;
};

static bool sums(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_REDUCE_SCATTER;
}

static void start_values(struct world *w, uint32_t rank)
{
    struct rank *r = &w->ranks[rank];
    enum collective kind = w->schedule->collective;
    for (uint32_t b = 0; b < layout_blocks_of_all(&r->layout); b++) {
        uint32_t part = b / (w->shape.blocks / w->shape.ranks > 0 ? w->shape.blocks / w->shape.ranks : 1);
        bool has = kind == COLLECTIVE_ALLGATHER || kind == COLLECTIVE_GATHER ? part == rank
                   : kind == COLLECTIVE_ALLTOALL                             ? b / w->shape.blocks == rank
                                                                             : rank == w->shape.root;
        r->values[b] = sums(kind) ? 1ull << rank : has;
    }
}

static void open_rank(struct world *w, uint32_t rank)
{
    struct rank *r = &w->ranks[rank];
    memset(r, 0, sizeof *r);
    r->layout = (struct layout){.collective = w->schedule->collective,
                                .rank = rank,
                                .ranks = w->shape.ranks,
                                .root = w->shape.root,
                                .blocks = w->shape.blocks,
                                .elements = w->shape.blocks,
                                .element_bytes = 1};
    const struct pieces_plan plan = {
        .schedule = w->schedule, .shape = &w->shape, .layout = &r->layout, .piece_bytes = 3};
    r->pieces = (struct pieces){.sends = r->sends, .receives = r->receives, .numbers = r->numbers};
    assert_true(pieces_make(&plan, &r->pieces));
    assert_true(r->pieces.send_count <= PROGRESS_PIECES && r->pieces.receive_count <= PROGRESS_PIECES);
    r->progress = (struct progress){.sends = r->sends,
                                    .receives = r->receives,
                                    .states = r->states,
                                    .next_of_sends = r->next_of_sends,
                                    .next_of_receives = r->next_of_receives,
                                    .next = r->next,
                                    .reduced_until = r->reduced_until,
                                    .received = r->received,
                                    .follows = r->follows,
                                    .send_count = r->pieces.send_count,
                                    .receive_count = r->pieces.receive_count};
    progress_begin(&r->progress, layout_blocks_of_all(&r->layout));
    start_values(w, rank);
}

/* ---- events ------------------------------------------------------------------------------------------ */

/* Any of the ready sends, now or later: messages of different peers are not ordered. */
static void send_some(struct world *w, uint32_t rank)
{
    struct rank *r = &w->ranks[rank];
    uint32_t send;
    while (progress_next_send(&r->progress, &send)) {
        struct in_flight *f = &w->flight[w->in_flight++];
        *f = (struct in_flight){.from = rank, .to = r->sends[send].peer, .send = send};
        for (uint32_t i = 0; i < r->sends[send].count; i++)
            f->values[i] = w->schedule->exchanges ? 1ull << rank : r->values[r->sends[send].first + i];
    }
}

static uint32_t receive_of(const struct rank *r, uint32_t peer, uint32_t number)
{
    for (uint32_t i = 0; i < r->pieces.receive_count; i++)
        if (r->receives[i].peer == peer && r->receives[i].number == number)
            return i;
    fail_msg("no receive %u from %u", number, peer);
    return 0;
}

static void apply(struct rank *r, uint32_t receive)
{
    const struct piece *piece = &r->receives[receive];
    for (uint32_t i = 0; i < piece->count; i++) {
        uint64_t *value = &r->values[piece->first + i];
        uint64_t arrived = r->arrived[receive][i];
        assert_true(arrived != 0 || r->layout.collective == COLLECTIVE_BARRIER);
        assert_false(piece->reduce && (*value & arrived));
        *value = piece->reduce ? *value | arrived : arrived;
        r->order[piece->first + i] = r->order[piece->first + i] * 31 + arrived;
        if (progress_is_final(&r->progress, receive, i))
            r->final[piece->first + i] = true;
    }
}

static void act(struct world *w, uint32_t rank)
{
    struct rank *r = &w->ranks[rank];
    uint32_t receive;
    send_some(w, rank);
    while (progress_next_due(&r->progress, &receive)) {
        apply(r, receive);
        progress_on_applied(&r->progress, receive);
        send_some(w, rank);
    }
}

static void arrive(struct world *w, uint32_t index)
{
    struct in_flight f = w->flight[index];
    struct rank *to = &w->ranks[f.to];
    const struct piece *sent = &w->ranks[f.from].sends[f.send];
    uint32_t receive = receive_of(to, f.from, sent->number);
    w->flight[index] = w->flight[--w->in_flight];
    assert_int_equal(to->receives[receive].first, sent->first);
    assert_int_equal(to->receives[receive].count, sent->count);
    assert_int_equal(to->receives[receive].reduce, sent->reduce);
    memcpy(to->arrived[receive], f.values, sizeof f.values);
    progress_on_arrival(&to->progress, receive);
    act(w, f.to);
}

/* ---- whole collectives ------------------------------------------------------------------------------- */

static bool should_have(const struct world *w, uint32_t rank, uint32_t block)
{
    uint32_t part = block % w->shape.blocks / (w->shape.blocks / w->shape.ranks);
    switch (w->schedule->collective) {
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_GATHER:
        return rank == w->shape.root;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_SCATTER:
    case COLLECTIVE_ALLTOALL:
        return part == rank;
    default:
        return true;
    }
}

static void check_end(const struct world *w)
{
    uint64_t whole = sums(w->schedule->collective) ? (1ull << w->shape.ranks) - 1 : 1;
    for (uint32_t rank = 0; rank < w->shape.ranks; rank++) {
        const struct rank *r = &w->ranks[rank];
        assert_true(progress_is_complete(&r->progress));
        if (w->schedule->collective == COLLECTIVE_BARRIER)
            continue;
        for (uint32_t b = 0; b < layout_blocks_of_all(&r->layout); b++)
            if (should_have(w, rank, b) && r->values[b] != whole)
                fail_msg("%s of %u ranks: block %u at rank %u: %llx", w->schedule->name, w->shape.ranks, b,
                         rank, (unsigned long long)r->values[b]);
    }
}

/* Of an all-reduce somebody has each block's whole sum first, or all have it by themselves. */
static void check_final(const struct world *w)
{
    for (uint32_t b = 0; b < w->shape.blocks && sums(w->schedule->collective); b++) {
        uint32_t finals = 0;
        for (uint32_t rank = 0; rank < w->shape.ranks; rank++)
            finals += w->ranks[rank].final[b];
        if (w->schedule->exchanges)
            assert_true(finals > 0);
        else
            assert_int_equal(finals, 1);
    }
}

static uint64_t run(struct world *w, uint64_t seed)
{
    uint64_t order = 0;
    lh_prng_seed(&w->prng, seed);
    w->in_flight = 0;
    for (uint32_t rank = 0; rank < w->shape.ranks; rank++)
        open_rank(w, rank);
    for (uint32_t rank = 0; rank < w->shape.ranks; rank++)
        act(w, rank);
    while (w->in_flight > 0)
        arrive(w, (uint32_t)lh_prng_below(&w->prng, w->in_flight));
    check_end(w);
    check_final(w);
    for (uint32_t rank = 0; rank < w->shape.ranks; rank++)
        for (uint32_t b = 0; b < layout_blocks_of_all(&w->ranks[rank].layout); b++)
            order = order * 31 + w->ranks[rank].order[b];
    return order;
}

static void test_any_order(void **state)
{
    struct world w = {.ranks = calloc(RANKS_MAX, sizeof *w.ranks),
                      .flight = calloc(RANKS_MAX * PROGRESS_PIECES, sizeof *w.flight)};
    (void)state;
    assert_true(w.ranks && w.flight);
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks++)
            for (uint32_t blocks = 1; blocks <= 4; blocks++) {
                w.schedule = *s;
                w.shape = (struct schedule_shape){
                    .ranks = ranks,
                    .blocks = (*s)->collective == COLLECTIVE_BARRIER ? 1 : blocks * ranks,
                    .root = ranks / 2};
                uint64_t order = run(&w, 1);
                for (uint64_t seed = 2; seed < 5; seed++)
                    assert_true(run(&w, seed) == order);
            }
    free(w.ranks);
    free(w.flight);
}

static int run_progress(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_layout() + run_parts() + run_past() + run_pieces() + run_progress();
}
