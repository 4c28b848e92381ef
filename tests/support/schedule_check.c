/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/schedule_check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

#define NONE      UINT32_MAX
#define SET_RANKS 64u /* of which a set of contributions has a bit each */

/* A transfer of the step that runs. */
struct sent {
    uint32_t from, to;
    struct schedule_transfer transfer;
    uint32_t values; /* where its blocks' values are, as they were before the step */
    uint32_t next;   /* to the same rank, in the order of the senders */
    bool taken;
};

struct check {
    const struct schedule *schedule;
    const struct schedule_shape *shape;
    struct schedule_counts *counts;
    uint32_t blocks;   /* all that there are */
    bool sums, places; /* reduces; an all-to-all */
    uint64_t *keys;    /* contribution of each rank */
    uint64_t whole;    /* all contributions; of a copied block 1 */
    uint64_t *value;   /* of rank and block: contributions; 0: not held */
    uint32_t *sent_in; /* of rank and block: step + 1 in which it was sent last */
    uint32_t *place;   /* of a block of an all-to-all: who has it */
    uint64_t *reached; /* of a barrier: words of each rank's set */
    uint32_t words;
    struct sent *sent;
    uint32_t sent_count, sent_max;
    uint64_t *values;
    uint32_t values_count, values_max;
    uint32_t *head, *tail, *last_receipt;
    uint64_t *sent_by, *received_by, *into_site;
    uint32_t *link;
    char finding[200];
};

static char last_finding[200];

__attribute__((format(printf, 2, 3))) static bool found(struct check *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (c->finding[0] == '\0')
        vsnprintf(c->finding, sizeof c->finding, format, arguments);
    va_end(arguments);
    return false;
}

static void *array(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    assert(memory);
    return memory;
}

static void set_keys(struct check *c)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t rank = 0; rank < c->shape->ranks; rank++) {
        c->keys[rank] = c->shape->ranks <= SET_RANKS ? 1ull << rank : lh_prng_next(&prng);
        c->whole += c->keys[rank];
    }
    if (!c->sums)
        c->whole = 1;
}

static uint64_t *value_of(struct check *c, uint32_t rank, uint32_t block)
{
    return &c->value[(size_t)rank * c->blocks + block];
}

static void hold(struct check *c, uint32_t rank, struct schedule_extent extent, uint64_t value)
{
    for (uint32_t b = 0; b < extent.count; b++)
        *value_of(c, rank, extent.first + b) = value;
}

static void start_rows(struct check *c)
{
    for (uint32_t source = 0; source < c->shape->ranks; source++)
        for (uint32_t to = 0; to < c->shape->ranks; to++) {
            struct schedule_extent pair = schedule_pair(c->shape, source, to);
            for (uint32_t b = 0; b < pair.count; b++)
                c->place[pair.first + b] = source;
        }
}

static void start(struct check *c)
{
    struct schedule_extent all = {0, c->blocks};
    enum collective kind = c->schedule->collective;
    if (c->places)
        start_rows(c);
    for (uint32_t rank = 0; rank < c->shape->ranks && !c->places; rank++)
        if (c->words)
            c->reached[(size_t)rank * c->words + rank / 64] = 1ull << rank % 64;
        else if (c->sums)
            hold(c, rank, all, c->keys[rank]);
        else if (kind == COLLECTIVE_ALLGATHER || kind == COLLECTIVE_GATHER)
            hold(c, rank, schedule_part(c->shape, rank), 1);
        else if (rank == c->shape->root)
            hold(c, rank, all, 1);
}

static void set_up(struct check *c)
{
    size_t ranks = c->shape->ranks, blocks = c->shape->blocks;
    enum collective kind = c->schedule->collective;
    c->sums =
        kind == COLLECTIVE_REDUCE || kind == COLLECTIVE_ALLREDUCE || kind == COLLECTIVE_REDUCE_SCATTER;
    c->places = kind == COLLECTIVE_ALLTOALL;
    c->blocks = (uint32_t)(c->places ? ranks * blocks : kind == COLLECTIVE_BARRIER ? 1 : blocks);
    c->words = kind == COLLECTIVE_BARRIER ? (uint32_t)(ranks + 63) / 64 : 0;
    c->keys = array(ranks, sizeof *c->keys);
    c->place = array(c->places ? c->blocks : 0, sizeof *c->place);
    c->value = array(c->places ? 0 : ranks * c->blocks, sizeof *c->value);
    c->sent_in = array(c->places ? 0 : ranks * c->blocks, sizeof *c->sent_in);
    c->reached = array(ranks * c->words, sizeof *c->reached);
    c->head = array(ranks, sizeof *c->head);
    c->tail = array(ranks, sizeof *c->tail);
    c->last_receipt = array(ranks, sizeof *c->last_receipt);
    c->sent_by = array(ranks, sizeof *c->sent_by);
    c->received_by = array(ranks, sizeof *c->received_by);
    c->into_site = array(ranks, sizeof *c->into_site);
    c->link = array(ranks * ranks, sizeof *c->link);
    set_keys(c);
    start(c);
}

static void clean_up(struct check *c)
{
    void *all[] = {c->keys,         c->place, c->value,     c->sent_in,    c->reached,
                   c->head,         c->tail,  c->sent_by,   c->link,       c->values,
                   c->last_receipt, c->sent,  c->into_site, c->received_by};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* Place for more values; what they are is up to the caller. */
static uint32_t add_values(struct check *c, uint32_t count)
{
    uint32_t at = c->values_count;
    c->values_count += count;
    if (c->values_count > c->values_max) {
        c->values_max = 2 * c->values_count;
        c->values = realloc(c->values, c->values_max * sizeof *c->values);
        assert(c->values);
    }
    return at;
}

/* Before the step: the sender holds it, and its value is kept. */
static bool hold_check(struct check *c, uint32_t step, struct sent *sent)
{
    struct schedule_transfer *t = &sent->transfer;
    if (c->words) {
        sent->values = add_values(c, c->words);
        memcpy(&c->values[sent->values], &c->reached[(size_t)sent->from * c->words],
               c->words * sizeof *c->values);
        return true;
    }
    if (!c->places)
        sent->values = add_values(c, t->count);
    for (uint32_t b = t->first; b < t->first + t->count; b++) {
        uint64_t held = c->places ? c->place[b] == sent->from : *value_of(c, sent->from, b);
        if (held == 0 || (c->sums && !t->reduce && held != c->whole))
            return found(c, "step %u: rank %u sends block %u to %u and does not hold %s", step, sent->from,
                         b, sent->to, held == 0 ? "it" : "all of its sum");
        if (c->places)
            continue;
        c->values[sent->values + b - t->first] = held;
        c->sent_in[(size_t)sent->from * c->blocks + b] = step + 1;
    }
    return true;
}

static bool add_sent(struct check *c, uint32_t step, uint32_t from,
                     const struct schedule_transfer *transfer)
{
    if (transfer->peer >= c->shape->ranks || transfer->peer == from ||
        (uint64_t)transfer->first + transfer->count > c->blocks)
        return found(c, "step %u: rank %u sends blocks %u to %u (%u of them)", step, from, transfer->first,
                     transfer->peer, transfer->count);
    if (c->sent_count == c->sent_max) {
        c->sent_max = c->sent_max ? 2 * c->sent_max : 64;
        c->sent = realloc(c->sent, c->sent_max * sizeof *c->sent);
        assert(c->sent);
    }
    uint32_t at = c->sent_count++, to = transfer->peer;
    c->sent[at] = (struct sent){.from = from, .to = to, .transfer = *transfer, .next = NONE};
    *(c->head[to] == NONE ? &c->head[to] : &c->sent[c->tail[to]].next) = at;
    c->tail[to] = at;
    c->sent_by[from] += transfer->count;
    c->link[(size_t)from * c->shape->ranks + to] += transfer->count;
    const struct site_map *map = c->shape->map;
    if (map && map->site_of[map->place_of[from]] != map->site_of[map->place_of[to]])
        c->into_site[map->site_of[map->place_of[to]]] += transfer->count;
    return hold_check(c, step, &c->sent[at]);
}

static void count_peers(struct check *c, uint32_t *peers, uint32_t *last, uint32_t peer)
{
    *peers += *last != peer;
    *last = peer;
    if (*peers > c->counts->peers_max)
        c->counts->peers_max = *peers;
}

static bool collect_sends(struct check *c, uint32_t step)
{
    c->sent_count = c->values_count = 0;
    memset(c->head, 0xff, c->shape->ranks * sizeof *c->head);
    for (uint32_t rank = 0; rank < c->shape->ranks; rank++) {
        struct schedule_cursor cursor = {0};
        struct schedule_transfer transfer;
        uint32_t peers = 0, last = NONE;
        while (schedule_next_send(c->schedule, c->shape, rank, step, &cursor, &transfer)) {
            count_peers(c, &peers, &last, transfer.peer);
            if (!add_sent(c, step, rank, &transfer))
                return false;
        }
    }
    return true;
}

static bool same(const struct sent *sent, const struct schedule_transfer *received)
{
    const struct schedule_transfer *t = &sent->transfer;
    return !sent->taken && sent->from == received->peer && t->first == received->first &&
           t->count == received->count && t->reduce == received->reduce;
}

static bool add_value(struct check *c, uint32_t step, const struct sent *sent, uint32_t block,
                      uint64_t value)
{
    uint64_t *held = value_of(c, sent->to, block);
    bool reduce = sent->transfer.reduce;
    if (!c->schedule->exchanges && c->sent_in[(size_t)sent->to * c->blocks + block] == step + 1)
        return found(c, "step %u: rank %u sends and receives block %u", step, sent->to, block);
    if (reduce ? c->shape->ranks <= SET_RANKS && (*held & value) != 0 : *held == c->whole)
        return found(c, "step %u: block %u from %u arrives twice at rank %u", step, block, sent->from,
                     sent->to);
    *held = reduce ? *held + value : value;
    return true;
}

static bool move(struct check *c, uint32_t step, const struct sent *sent)
{
    if (c->place[sent->transfer.first] != sent->from)
        return found(c, "step %u: block %u leaves rank %u twice", step, sent->transfer.first, sent->from);
    for (uint32_t b = 0; b < sent->transfer.count; b++)
        c->place[sent->transfer.first + b] = sent->to;
    return true;
}

/* Of a barrier; one that says nothing new came twice. */
static bool learn(struct check *c, uint32_t step, const struct sent *sent)
{
    uint64_t news = 0;
    for (uint32_t w = 0; w < c->words; w++) {
        uint64_t *reached = &c->reached[(size_t)sent->to * c->words + w];
        news |= c->values[sent->values + w] & ~*reached;
        *reached |= c->values[sent->values + w];
    }
    return news != 0 ||
           found(c, "step %u: rank %u knows all that comes from %u", step, sent->to, sent->from);
}

static bool receive(struct check *c, uint32_t step, const struct sent *sent)
{
    const struct schedule_transfer *t = &sent->transfer;
    c->received_by[sent->to] += t->count;
    c->last_receipt[sent->to] = step;
    if (c->places)
        return move(c, step, sent);
    if (c->words)
        return learn(c, step, sent);
    for (uint32_t b = 0; b < t->count; b++)
        if (!add_value(c, step, sent, t->first + b, c->values[sent->values + b]))
            return false;
    return true;
}

/* A receive takes the first such send that none took: mostly that at the head. */
static bool take(struct check *c, uint32_t step, uint32_t rank, const struct schedule_transfer *received)
{
    uint32_t at = c->head[rank];
    while (at != NONE && !same(&c->sent[at], received))
        at = c->sent[at].next;
    if (at == NONE)
        return found(c, "step %u: rank %u expects block %u from %u, which does not send it", step, rank,
                     received->first, received->peer);
    c->sent[at].taken = true;
    if (at == c->head[rank])
        c->head[rank] = c->sent[at].next;
    return receive(c, step, &c->sent[at]);
}

static bool collect_receives(struct check *c, uint32_t step)
{
    for (uint32_t rank = 0; rank < c->shape->ranks; rank++) {
        struct schedule_cursor cursor = {0};
        struct schedule_transfer transfer;
        uint32_t peers = 0, last = NONE;
        while (schedule_next_receive(c->schedule, c->shape, rank, step, &cursor, &transfer)) {
            count_peers(c, &peers, &last, transfer.peer);
            if (!take(c, step, rank, &transfer))
                return false;
        }
    }
    for (uint32_t i = 0; i < c->sent_count; i++)
        if (!c->sent[i].taken)
            return found(c, "step %u: rank %u sends block %u to %u, which does not expect it", step,
                         c->sent[i].from, c->sent[i].transfer.first, c->sent[i].to);
    return true;
}

static bool has(struct check *c, uint32_t rank, struct schedule_extent extent)
{
    for (uint32_t b = extent.first; b < extent.first + extent.count; b++)
        if (*value_of(c, rank, b) != c->whole)
            return found(c, "at the end: rank %u %s block %u", rank,
                         *value_of(c, rank, b) == 0 ? "does not have" : "has a wrong sum of", b);
    return true;
}

static bool has_all_parts(struct check *c, uint32_t rank)
{
    for (uint32_t part = 0; part < c->shape->ranks; part++)
        if (!has(c, rank, schedule_part(c->shape, part)))
            return false;
    return true;
}

static bool has_column(struct check *c, uint32_t rank)
{
    for (uint32_t source = 0; source < c->shape->ranks; source++) {
        struct schedule_extent pair = schedule_pair(c->shape, source, rank);
        for (uint32_t b = pair.first; b < pair.first + pair.count; b++)
            if (c->place[b] != rank)
                return found(c, "at the end: rank %u does not have block %u, but rank %u", rank, b,
                             c->place[b]);
    }
    return true;
}

static bool reached_by_all(struct check *c, uint32_t rank)
{
    for (uint32_t other = 0; other < c->shape->ranks; other++)
        if (!(c->reached[(size_t)rank * c->words + other / 64] >> other % 64 & 1))
            return found(c, "at the end: rank %u may pass before rank %u has come", rank, other);
    return true;
}

static bool end_check(struct check *c, uint32_t rank)
{
    bool is_root = rank == c->shape->root;
    switch (c->schedule->collective) {
    case COLLECTIVE_BARRIER:
        return reached_by_all(c, rank);
    case COLLECTIVE_ALLTOALL:
        return has_column(c, rank);
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_SCATTER:
        return has(c, rank, schedule_part(c->shape, rank));
    case COLLECTIVE_REDUCE:
        return !is_root || has(c, rank, (struct schedule_extent){0, c->blocks});
    case COLLECTIVE_GATHER:
        return !is_root || has_all_parts(c, rank);
    case COLLECTIVE_ALLGATHER:
        return has_all_parts(c, rank);
    default:
        return has(c, rank, (struct schedule_extent){0, c->blocks});
    }
}

static uint64_t maximum(const uint64_t *numbers, uint32_t count)
{
    uint64_t greatest = 0;
    for (uint32_t i = 0; i < count; i++)
        greatest = numbers[i] > greatest ? numbers[i] : greatest;
    return greatest;
}

static void sum_up(struct check *c)
{
    struct schedule_counts *n = c->counts;
    size_t ranks = c->shape->ranks;
    n->sent_max = maximum(c->sent_by, c->shape->ranks);
    n->received_max = maximum(c->received_by, c->shape->ranks);
    n->site_max = maximum(c->into_site, c->shape->ranks);
    n->last_receipts[0] = NONE;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        n->moved += c->sent_by[rank];
        n->site_moved += c->into_site[rank];
        if (c->received_by[rank] == 0)
            continue;
        uint32_t last = c->last_receipt[rank];
        n->last_receipts[0] = last < n->last_receipts[0] ? last : n->last_receipts[0];
        n->last_receipts[1] = last > n->last_receipts[1] ? last : n->last_receipts[1];
    }
    for (size_t i = 0; i < ranks * ranks; i++)
        n->link_max = c->link[i] > n->link_max ? c->link[i] : n->link_max;
}

const char *schedule_check(const struct schedule *schedule, const struct schedule_shape *shape,
                           struct schedule_counts *counts)
{
    struct check c = {.schedule = schedule, .shape = shape, .counts = counts};
    *counts = (struct schedule_counts){.steps = schedule_steps(schedule, shape)};
    set_up(&c);
    bool right = true;
    for (uint32_t step = 0; step < counts->steps && right; step++)
        right = collect_sends(&c, step) && collect_receives(&c, step);
    for (uint32_t rank = 0; rank < shape->ranks && right; rank++)
        right = end_check(&c, rank);
    sum_up(&c);
    clean_up(&c);
    memcpy(last_finding, c.finding, sizeof last_finding);
    return right ? NULL : last_finding;
}
