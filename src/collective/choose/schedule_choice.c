/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/schedule_choice.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/prng.h"
#include "collective/schedule.h"
#include "collective/schedules.h"

/* ---- flow time ------------------------------------------------------------------------------------- */

#define TOGETHER_MAX 16u /* of collective/operation_progress.h */

struct flow {
    const struct schedule *schedule;
    const struct schedule_shape *shape;
    const struct flow_network *network;
    struct lh_prng *prng;
    double block_bytes;
    uint32_t together; /* blocks of a message */
    uint32_t step;
    double *held;  /* of a rank's block, of an all-to-all of the block: since when */
    double *ports; /* until when they are busy: of each rank PORTS */
    double *link;  /* likewise, from site to site */
    double work;   /* of all ranks, until now */
    double end;
};

/* LOAD: when a rank has sent all, at the earliest: from when it had the first block on. */
enum port { OUT, IN, OUT_ACROSS, LOAD, PORTS };

static bool is_alltoall(const struct schedule *schedule)
{
    return schedule->collective == COLLECTIVE_ALLTOALL;
}

static bool is_barrier(const struct schedule *schedule)
{
    return schedule->collective == COLLECTIVE_BARRIER;
}

/* Of a barrier, whose one block all ranks send and receive in each step: what they hold before the step, and
 * after it. */
#define BARRIER_ROWS 2u

/* An all-to-all has a row of each rank, others as many places of each. */
static size_t held_count(const struct schedule_shape *shape)
{
    size_t places = shape->blocks < BARRIER_ROWS ? BARRIER_ROWS : shape->blocks;
    return (size_t)shape->ranks * places;
}

static size_t numbers(const struct schedule_shape *shape)
{
    return held_count(shape) + PORTS * (size_t)shape->ranks + (size_t)sites_of(shape) * sites_of(shape);
}

size_t flow_time_memory(const struct schedule_shape *shape)
{
    return numbers(shape) * sizeof(double);
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double *held_by(const struct flow *flow, uint32_t rank, uint32_t block)
{
    if (is_barrier(flow->schedule))
        return &flow->held[(size_t)rank * BARRIER_ROWS + flow->step % BARRIER_ROWS];
    return &flow->held[is_alltoall(flow->schedule) ? block : (size_t)rank * flow->shape->blocks + block];
}

/* Each rank receives one message in each step of a barrier. */
static void hold(struct flow *flow, const struct schedule_transfer *transfer, uint32_t block,
                 double arrived)
{
    double *held = held_by(flow, transfer->peer, block), before = *held;
    if (is_barrier(flow->schedule))
        held = &flow->held[(size_t)transfer->peer * BARRIER_ROWS + (flow->step + 1) % BARRIER_ROWS];
    *held = transfer->reduce || is_barrier(flow->schedule) ? later(before, arrived) : arrived;
}

static double *link_between(const struct flow *flow, uint32_t from, uint32_t to)
{
    const struct site_map *map = flow->shape->map;
    if (!map || map->site_of[map->place_of[from]] == map->site_of[map->place_of[to]])
        return NULL;
    return &flow->link[map->site_of[map->place_of[from]] * map->sites + map->site_of[map->place_of[to]]];
}

static struct flow_pair pair_of(const struct flow *flow, uint32_t from, uint32_t to, bool across)
{
    const struct flow_hop *hop = across ? &flow->network->across : &flow->network->inside;
    if (flow->network->pairs)
        return flow->network->pairs[from * flow->shape->ranks + to];
    return (struct flow_pair){hop->latency_s, hop->byte_s, hop->loss_byte};
}

static double repair(const struct flow *flow, const struct flow_hop *hop, const struct flow_pair *pair)
{
    double lost = flow->block_bytes * pair->loss_byte;
    if (!flow->prng || hop->samples == 0)
        return hop->repair_s + (lost < 1 ? lost : 1) * 2 * pair->latency_s;
    return hop->samples_s[lh_prng_below(flow->prng, hop->samples)];
}

/* When a block has left: in both directions by turns, one behind the other in each. */
static double leave(double *ports, bool across, double ready, double port_s)
{
    double *out = &ports[across ? OUT_ACROSS : OUT];
    ports[LOAD] = (ports[LOAD] > 0 ? ports[LOAD] : ready) + port_s;
    return *out = later(later(ready, *out) + port_s, ports[LOAD]);
}

/* Before when the processors of a machine cannot have done this, and all before it. */
static double work(struct flow *flow, double work_s)
{
    flow->work += work_s;
    return flow->network->processors > 0 ? flow->work / flow->network->processors : 0;
}

/* When a block that leaves after `ready` arrives: through ports, and a link. first: of a message. */
static double carry(struct flow *flow, uint32_t from, uint32_t to, double ready, bool first, double *link)
{
    const struct flow_hop *inside = &flow->network->inside, *across = &flow->network->across;
    const struct flow_pair pair = pair_of(flow, from, to, link != NULL);
    double message_s = first ? (link ? across : inside)->message_s : 0;
    double port_s = flow->block_bytes * (link ? inside->byte_s : pair.byte_s) + message_s;
    double worked = work(flow, port_s);
    double sent = leave(&flow->ports[from * PORTS], link != NULL, ready, port_s);
    if (link) {
        *link = later(sent - port_s, *link) + flow->block_bytes * pair.byte_s;
        return later(sent, *link) + pair.latency_s;
    }
    double *in = &flow->ports[to * PORTS + IN];
    *in = later(sent + pair.latency_s, *in + port_s);
    return later(*in, worked);
}

/* A contribution that is exchanged is there from the beginning. */
static void send_block(struct flow *flow, uint32_t from, const struct schedule_transfer *transfer,
                       uint32_t index)
{
    uint32_t block = transfer->first + index;
    double ready = flow->schedule->exchanges ? 0 : *held_by(flow, from, block);
    double *link = link_between(flow, from, transfer->peer);
    double arrived = carry(flow, from, transfer->peer, ready, index % flow->together == 0, link);
    const struct flow_pair pair = pair_of(flow, from, transfer->peer, link != NULL);
    arrived += repair(flow, link ? &flow->network->across : &flow->network->inside, &pair);
    if (transfer->reduce) {
        double sum_s = flow->block_bytes * flow->network->sum_byte_s;
        arrived = later(arrived + sum_s, work(flow, sum_s));
    }
    hold(flow, transfer, block, arrived);
    flow->end = later(flow->end, arrived);
}

static void send_step(struct flow *flow, uint32_t rank, uint32_t step)
{
    struct schedule_cursor cursor = {0};
    struct schedule_transfer transfer;
    while (schedule_next_send(flow->schedule, flow->shape, rank, step, &cursor, &transfer))
        for (uint32_t i = 0; i < transfer.count; i++)
            send_block(flow, rank, &transfer, i);
}

static uint32_t blocks_together(double message_bytes, double block_bytes)
{
    double maximum = message_bytes / block_bytes;
    return maximum < 1 ? 1 : maximum < TOGETHER_MAX ? (uint32_t)maximum : TOGETHER_MAX;
}

double flow_time(const struct schedule *schedule, const struct schedule_shape *shape, double bytes,
                 const struct flow_network *network, struct lh_prng *prng, void *memory)
{
    struct flow flow = {.schedule = schedule, .shape = shape, .network = network, .prng = prng};
    size_t count = numbers(shape);
    flow.block_bytes = bytes / shape->blocks;
    flow.together = blocks_together(network->message_bytes, flow.block_bytes);
    flow.held = memory;
    flow.ports = flow.held + held_count(shape);
    flow.link = flow.ports + PORTS * (size_t)shape->ranks;
    for (size_t i = 0; i < count; i++)
        flow.held[i] = 0;
    uint32_t steps = schedule_steps(schedule, shape);
    for (flow.step = 0; flow.step < steps; flow.step++)
        for (uint32_t rank = 0; rank < shape->ranks; rank++)
            send_step(&flow, rank, flow.step);
    assert(flow.end > 0 || shape->ranks == 1);
    return flow.end;
}

/* ---- choose ---------------------------------------------------------------------------------------- */

#define CHOOSE_TIE 0.01 /* those slower by at most this share are as fast */

/* Blocks of a candidate, of all ranks and of a rank, so that a choice of few ranks takes milliseconds. */
#define COST_MAX   (1u << 16)
#define BLOCKS_MAX 1024u
/* Ranks that exchange all they have with all others. */
#define EXCHANGE_MAX 16u
/* From one size of blocks to the next. */
#define SIZE_STEP   4u
#define BLOCK_BYTES 4096u /* smaller ones are no faster */

/* Collectives whose data has a part per rank, so that there are as many blocks or a multiple. */
static bool has_parts(const struct schedule *schedule)
{
    switch (schedule->collective) {
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
        return false;
    default:
        return true;
    }
}

int choose_check(const struct choose_question *question)
{
    struct schedule_shape shape = {
        .ranks = question->ranks, .blocks = 1, .root = question->root, .map = question->map};
    if ((unsigned)question->collective >= COLLECTIVES)
        return lh_fail(LH_EINVAL, "collective %u: out of range (0 to %u)", (unsigned)question->collective,
                       (unsigned)COLLECTIVES - 1);
    if (question->bytes == 0 || question->unit_bytes == 0 ||
        question->block_bytes_max < question->unit_bytes)
        return lh_fail(LH_EINVAL, "%s of %llu bytes in blocks of %llu: out of range (at least an element)",
                       collective_name(question->collective), (unsigned long long)question->bytes,
                       (unsigned long long)question->block_bytes_max);
    return schedule_shape_check(schedule_find(question->collective, NULL), &shape);
}

struct schedule_shape choose_shape(const struct choose_question *question, const struct choice *choice)
{
    return (struct schedule_shape){
        .ranks = question->ranks, .blocks = choice->blocks, .root = question->root, .map = question->map};
}

/* Blocks of at most that many bytes, of a whole number of elements. */
static uint32_t blocks_for(const struct choose_question *question, const struct schedule *schedule,
                           uint64_t block_bytes)
{
    uint64_t units = (question->bytes + question->unit_bytes - 1) / question->unit_bytes;
    uint64_t maximum = block_bytes / question->unit_bytes, blocks;
    maximum = maximum > 0 ? maximum : 1;
    if (schedule->collective == COLLECTIVE_BARRIER)
        return 1;
    if (has_parts(schedule)) {
        uint64_t part = (units + question->ranks - 1) / question->ranks;
        blocks = question->ranks * ((part + maximum - 1) / maximum);
    } else {
        blocks = (units + maximum - 1) / maximum;
    }
    return blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX + 1;
}

static size_t memory_of(const struct choose_question *question, uint32_t blocks)
{
    struct schedule_shape shape = {.ranks = question->ranks, .blocks = blocks, .map = question->map};
    return flow_time_memory(&shape);
}

/* Enough for one of each part. */
static uint32_t blocks_max(const struct choose_question *question)
{
    uint32_t maximum = COST_MAX / question->ranks;
    maximum = maximum < BLOCKS_MAX ? maximum : BLOCKS_MAX;
    return maximum > question->ranks ? maximum : question->ranks;
}

size_t choose_memory(const struct choose_question *question)
{
    return memory_of(question, blocks_max(question));
}

static void insert(struct choice *choices, uint32_t count, struct choice choice)
{
    uint32_t at = count < CHOOSE_MAX ? count : CHOOSE_MAX - 1;
    if (count == CHOOSE_MAX && choices[at].seconds <= choice.seconds)
        return;
    for (; at > 0 && choices[at - 1].seconds > choice.seconds; at--)
        choices[at] = choices[at - 1];
    choices[at] = choice;
}

static bool consider(const struct choose_question *question, struct choice *choice, void *memory)
{
    struct schedule_shape shape = choose_shape(question, choice);
    if (schedule_shape_check(choice->schedule, &shape) != 0)
        return false;
    choice->block_bytes = (double)question->bytes / choice->blocks;
    choice->seconds =
        flow_time(choice->schedule, &shape,
                  choice->schedule->collective == COLLECTIVE_BARRIER ? 1 : (double)question->bytes,
                  question->network, NULL, memory);
    return true;
}

/* Of the sizes of blocks from the greatest on, those that fit; where none does, the greatest. */
static uint32_t add_schedule(const struct choose_question *question, const struct schedule *schedule,
                             void *memory, struct choice *choices, uint32_t count)
{
    uint32_t last = 0, maximum = blocks_max(question);
    for (uint64_t bytes = question->block_bytes_max;; bytes /= SIZE_STEP) {
        struct choice choice = {.schedule = schedule, .blocks = blocks_for(question, schedule, bytes)};
        if (choice.blocks > maximum &&
            last == 0) /* larger blocks than messages: the time is nearly the same */
            choice.blocks = maximum;
        if (choice.blocks > maximum)
            break;
        if (choice.blocks != last && consider(question, &choice, memory)) {
            insert(choices, count, choice);
            count += count < CHOOSE_MAX;
        }
        last = choice.blocks;
        if (bytes / SIZE_STEP < BLOCK_BYTES || bytes / SIZE_STEP < question->unit_bytes ||
            bytes / SIZE_STEP < question->block_bytes_min)
            break;
    }
    return count;
}

/* Of larger blocks, so fewer messages; or of fewer steps: a block that a loss delays holds up those of the
 * next step, and the loss may not be known yet. */
static bool is_calmer(const struct choose_question *question, const struct choice *one,
                      const struct choice *other)
{
    struct schedule_shape of_one = choose_shape(question, one), of_other = choose_shape(question, other);
    if (one->block_bytes < other->block_bytes || one->block_bytes > other->block_bytes)
        return one->block_bytes > other->block_bytes;
    return schedule_steps(one->schedule, &of_one) < schedule_steps(other->schedule, &of_other);
}

/* The first is the calmest of those that are as fast. */
static void prefer_calm(const struct choose_question *question, struct choice *choices, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count && choices[i].seconds <= choices[0].seconds * (1 + CHOOSE_TIE); i++)
        if (is_calmer(question, &choices[i], &choices[best]))
            best = i;
    struct choice first = choices[best];
    for (uint32_t i = best; i > 0; i--)
        choices[i] = choices[i - 1];
    choices[0] = first;
}

static bool is_candidate(const struct choose_question *question, const struct schedule *schedule)
{
    return schedule->collective == question->collective &&
           !(schedule->exchanges && question->ranks > EXCHANGE_MAX);
}

uint32_t choose(const struct choose_question *question, void *memory, struct choice choices[CHOOSE_MAX])
{
    uint32_t count = 0;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        if (question->only ? *s == question->only : is_candidate(question, *s))
            count = add_schedule(question, *s, memory, choices, count);
    assert(count > 0);
    prefer_calm(question, choices, count);
    return count;
}

/* ---- paths ----------------------------------------------------------------------------------------- */

/* 0: not known. */
static uint64_t lower_known(uint64_t one, uint64_t other)
{
    return one == 0 || (other > 0 && other < one) ? other : one;
}

void paths_worsen(struct path_figures *figures, const struct path_figures *other)
{
    figures->rtt_ns = other->rtt_ns > figures->rtt_ns ? other->rtt_ns : figures->rtt_ns;
    figures->rate_bps = lower_known(figures->rate_bps, other->rate_bps);
    figures->loss = other->loss > figures->loss ? other->loss : figures->loss;
    figures->packet_bytes = (uint32_t)lower_known(figures->packet_bytes, other->packet_bytes);
}

struct flow_pair paths_pair(const struct path_figures *path)
{
    double lost = (double)path->loss * PATHS_LOSS_UNIT;
    return (struct flow_pair){
        .latency_s = (double)path->rtt_ns * 1e-9 / 2,
        .byte_s = 8 / (path->rate_bps > 0 ? (double)path->rate_bps : PATHS_RATE_BPS),
        .loss_byte = path->packet_bytes > 0 ? lost / path->packet_bytes : 0,
    };
}

static struct flow_hop hop_of(const struct path_figures *path)
{
    const struct flow_pair pair = paths_pair(path);
    return (struct flow_hop){.latency_s = pair.latency_s,
                             .byte_s = pair.byte_s,
                             .message_s = PATHS_MESSAGE_S,
                             .loss_byte = pair.loss_byte};
}

struct flow_network paths_network(const struct path_figures *inside, const struct path_figures *across,
                                  double message_bytes)
{
    return (struct flow_network){.inside = hop_of(inside),
                                 .across = hop_of(across),
                                 .message_bytes = message_bytes,
                                 .sum_byte_s = 1 / PATHS_SUM_BYTES_PER_S};
}

/* ---- rounds ---------------------------------------------------------------------------------------- */

/* ---- a tournament: each meets each ------------------------------------------------------------------- */

static uint32_t tournament_rounds(uint32_t players)
{
    return players < 2 ? 0 : players - 1 + players % 2;
}

/* The circle method: those whose sum is the round's, modulo. Who would meet itself meets the last of an even
 * number, and rests in an odd one. */
static uint32_t opponent(uint32_t players, uint32_t player, uint32_t round)
{
    uint32_t circle = tournament_rounds(players);
    if (round >= circle)
        return ROUNDS_NONE;
    if (player == circle) /* 2 * its opponent is the round */
        return round % 2 == 0 ? round / 2 : (round + circle) / 2;
    uint32_t other = (round + circle - player) % circle;
    if (other != player)
        return other;
    return players > circle ? circle : ROUNDS_NONE;
}

/* ---- of ranks ---------------------------------------------------------------------------------------- */

static uint32_t size_of(const struct site_map *map, uint32_t site)
{
    return map->first[site + 1] - map->first[site];
}

/* Fewer ranks may need more rounds: an odd number. */
uint32_t rounds_inside(const struct site_map *map)
{
    uint32_t maximum = 0;
    for (uint32_t site = 0; site < map->sites; site++)
        if (tournament_rounds(size_of(map, site)) > maximum)
            maximum = tournament_rounds(size_of(map, site));
    return maximum;
}

uint32_t rounds_count(const struct site_map *map)
{
    return rounds_inside(map) + tournament_rounds(map->sites) * map->largest;
}

/* Two sites take turns of their ranks, the smaller one from the beginning again. */
static uint32_t partner_across(const struct site_map *map, uint32_t place, uint32_t round)
{
    uint32_t site = map->site_of[place], turn = round % map->largest;
    uint32_t other = opponent(map->sites, site, round / map->largest);
    if (other == ROUNDS_NONE)
        return ROUNDS_NONE;
    uint32_t own_size = size_of(map, site), size = size_of(map, other);
    uint32_t turns = own_size > size ? own_size : size;
    if (turn >= turns || turn % own_size != place - map->first[site])
        return ROUNDS_NONE;
    return map->rank_at[map->first[other] + turn % size];
}

uint32_t rounds_partner(const struct site_map *map, uint32_t rank, uint32_t round)
{
    uint32_t place = map->place_of[rank], site = map->site_of[place], inside = rounds_inside(map);
    assert(round < rounds_count(map));
    if (round >= inside)
        return partner_across(map, place, round - inside);
    uint32_t other = opponent(size_of(map, site), place - map->first[site], round);
    return other == ROUNDS_NONE ? ROUNDS_NONE : map->rank_at[map->first[site] + other];
}

/* ---- what was not measured --------------------------------------------------------------------------- */

/* The highest rate that a rank had with a site that was measured; sends: from it. */
static uint64_t rate_with(const struct site_map *map, const struct path_figures *pairs, uint32_t rank,
                          uint32_t site, bool sends)
{
    uint32_t ranks = map->first[map->sites];
    uint64_t rate = 0;
    for (uint32_t round = rounds_inside(map); round < rounds_count(map); round++) {
        uint32_t other = rounds_partner(map, rank, round);
        if (other == ROUNDS_NONE || map->site_of[map->place_of[other]] != site)
            continue;
        const struct path_figures *pair = &pairs[sends ? rank * ranks + other : other * ranks + rank];
        rate = pair->rate_bps > rate ? pair->rate_bps : rate;
    }
    return rate;
}

void rounds_fill(const struct site_map *map, struct path_figures *pairs)
{
    uint32_t ranks = map->first[map->sites];
    for (uint32_t from = 0; from < ranks; from++)
        for (uint32_t to = 0; to < ranks; to++) {
            uint32_t site = map->site_of[map->place_of[from]], other = map->site_of[map->place_of[to]];
            struct path_figures *pair = &pairs[from * ranks + to];
            if (site == other || pair->rate_bps > 0)
                continue;
            uint64_t sent = rate_with(map, pairs, from, other, true);
            uint64_t received = rate_with(map, pairs, to, site, false);
            pair->rate_bps = sent < received ? sent : received;
        }
}
