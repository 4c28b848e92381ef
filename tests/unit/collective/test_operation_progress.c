/*
 * test_progress.c - all ranks of a collective in memory, whose messages arrive in any order: each rank ends
 * with what it should, and adds in the same order whatever arrives first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/run/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/schedule/schedule_table.h"

#define RANKS_MAX  9u
#define BLOCKS_MAX 600u
#define PIECES     2000u

struct in_flight {
    uint32_t from, to, send;
    uint64_t values[PIECE_BLOCKS_MAX];
};

struct rank {
    struct layout layout;
    struct pieces pieces;
    struct progress progress;
    struct piece sends[PIECES], receives[PIECES];
    struct progress_receive states[PIECES];
    uint32_t numbers[2 * RANKS_MAX], next_of_sends[PIECES], next_of_receives[PIECES], next[BLOCKS_MAX];
    uint32_t reduced_until[BLOCKS_MAX], follows[PIECES * PIECE_BLOCKS_MAX];
    bool received[BLOCKS_MAX];
    uint64_t arrived[PIECES][PIECE_BLOCKS_MAX];
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
    assert_true(r->pieces.send_count <= PIECES && r->pieces.receive_count <= PIECES);
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
                      .flight = calloc(RANKS_MAX * PIECES, sizeof *w.flight)};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
