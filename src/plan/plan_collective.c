/*
 * plan_collective.c - schedules of a collective, each with the size of blocks that suits it: first all of
 * them with mean repairs, then the best by chance, with schemes for their blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/plan.h>

#include "base/error.h"
#include "collective/choose/schedule_choice.h"
#include "collective/schedules.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "plan/planner.h"
#include "schemes/scheme_table.h"

/* ---- plan collective ------------------------------------------------------------------------------- */

#define RANKS_MAX 1024u
#define NAMES_MAX 256u
#define SAMPLES   512u /* of a message's time */
#define RUNS      200u /* of a collective, of one that moves many blocks RUNS_MIN */
#define RUNS_MIN  50u
#define MOVES_MAX (1u << 22)
/* Messages that a block is taken for. */
#define MESSAGES_MAX 256.0
#define LATE         1e-3 /* share of the collectives */
/* From one size of blocks to the next; smaller ones than the last cost more than they gain. */
#define SIZE_STEP   4u
#define BLOCK_BYTES (16u << 10)
#define UNIT_BYTES  4u
#define SEED        1u

void lh_plan_collective_init(struct lh_plan_collective_question *question)
{
    struct lh_plan_question plain;
    lh_plan_init(&plain);
    *question = (struct lh_plan_collective_question){
        .ranks = 2,
        .sites = 1,
        .block_bytes = 256u << 10,
        .inside = plain.link,
        .across = plain.link,
        .message_s = PATHS_MESSAGE_S,
        .sum_bytes_per_s = PATHS_SUM_BYTES_PER_S,
    };
    question->inside.bandwidth_bps = PATHS_RATE_BPS;
    question->inside.rtt_s = 50e-6;
}

/* ---- what is asked ----------------------------------------------------------------------------------- */

/* What a scheme does for messages on a link. */
struct hop {
    struct lh_model_scheme scheme;
    double overhead; /* bytes beyond those of the blocks, as a share */
    double repair_s;
    double samples_s[SAMPLES];
};

/* A candidate: one of each schedule. */
struct candidate {
    struct choice choice;
    double mean_s, p50_s, p99_s, ideal_s;
    struct hop inside, across;
};

struct scratch {
    struct lh_plan plan;
    struct choice choices[CHOOSE_MAX];
    struct candidate candidates[LH_PLAN_SCHEDULES_MAX];
    uint32_t count;
    struct candidate other;
    struct flow_network network;
    struct hop inside, across;
    double runs_s[RUNS], sampled_s[SAMPLES];
    struct site_map map;
    double *flow;
    uint32_t *numbers;
    uint32_t *sites;
};

/* "a, b" */
static void add_name(char names[static NAMES_MAX], const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, NAMES_MAX - used, "%s%s", used ? ", " : "", name);
}

static int find_collective(const char *name, enum collective *collective)
{
    for (*collective = 0; *collective < COLLECTIVES; (*collective)++)
        if (name && strcmp(collective_name(*collective), name) == 0)
            return 0;
    char names[NAMES_MAX] = "";
    for (enum collective c = 0; c < COLLECTIVES; c++)
        add_name(names, collective_name(c));
    return lh_fail(LH_EINVAL, "collective \"%s\": not known (%s)", name ? name : "", names);
}

static int find_schedule(const struct lh_plan_collective_question *question, enum collective collective,
                         const struct schedule **schedule)
{
    char names[NAMES_MAX] = "";
    *schedule = question->schedule ? schedule_find(collective, question->schedule) : NULL;
    if (*schedule || !question->schedule)
        return 0;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        if ((*s)->collective == collective)
            add_name(names, (*s)->name);
    return lh_fail(LH_EINVAL, "schedule \"%s\": not one of %s (%s)", question->schedule,
                   question->collective, names);
}

static int check(const struct lh_plan_collective_question *question, enum collective collective)
{
    if (question->ranks < 2 || question->ranks > RANKS_MAX)
        return lh_fail(LH_ERANGE, "%u ranks: out of range (2 to %u)", question->ranks, RANKS_MAX);
    if (question->sites < 1 || question->sites > question->ranks)
        return lh_fail(LH_ERANGE, "%u sites: out of range (1 to %u ranks)", question->sites,
                       question->ranks);
    if ((question->bytes == 0 && collective != COLLECTIVE_BARRIER) || question->bytes >> 48)
        return lh_fail(LH_ERANGE, "%llu bytes: out of range (1 to 2^48)",
                       (unsigned long long)question->bytes);
    if (question->block_bytes < BLOCK_BYTES || question->block_bytes >> 32)
        return lh_fail(LH_ERANGE, "blocks of %llu bytes: out of range (%u to 2^32)",
                       (unsigned long long)question->block_bytes, BLOCK_BYTES);
    if (!(question->message_s >= 0) || !(question->sum_bytes_per_s > 0))
        return lh_fail(LH_ERANGE, "%g s a message, sums of %g bytes/s: out of range (above 0)",
                       question->message_s, question->sum_bytes_per_s);
    if ((unsigned)question->by > LH_PLAN_BY_P99)
        return lh_fail(LH_EINVAL, "measure %d: out of range (mean, p50 or p99)", (int)question->by);
    return 0;
}

static int make_question(const struct lh_plan_collective_question *question, const struct site_map *map,
                         struct choose_question *made)
{
    *made = (struct choose_question){.ranks = question->ranks,
                                     .map = map,
                                     .bytes = question->bytes,
                                     .unit_bytes = UNIT_BYTES,
                                     .block_bytes_max = question->block_bytes};
    int failed = find_collective(question->collective, &made->collective);
    if (!failed)
        failed = check(question, made->collective);
    if (!failed && made->collective == COLLECTIVE_BARRIER)
        made->bytes = 1; /* its messages are empty */
    if (!failed)
        failed = find_schedule(question, made->collective, &made->only);
    return failed ? failed : choose_check(made);
}

/* A choice knows of a map's sites by their number alone: the map itself is built later. */
static size_t flow_bytes(const struct lh_plan_collective_question *question,
                         const struct choose_question *made)
{
    return choose_memory(made) + sizeof(double) * question->sites * question->sites;
}

size_t lh_plan_collective_memory(const struct lh_plan_collective_question *question)
{
    struct choose_question made;
    if (make_question(question, NULL, &made))
        return 0;
    return sizeof(struct scratch) + flow_bytes(question, &made) +
           sizeof(uint32_t) * (site_map_numbers(question->ranks) + question->ranks);
}

static void set_up(const struct lh_plan_collective_question *question, const struct choose_question *made,
                   struct scratch *scratch)
{
    scratch->count = 0;
    scratch->flow = (double *)(scratch + 1);
    scratch->numbers = (uint32_t *)(scratch->flow + flow_bytes(question, made) / sizeof(double));
    scratch->sites = scratch->numbers + site_map_numbers(question->ranks);
    for (uint32_t rank = 0; rank < question->ranks; rank++)
        scratch->sites[rank] = (uint32_t)((uint64_t)rank * question->sites / question->ranks);
    site_map_build(&scratch->map, scratch->sites, NULL, question->ranks, scratch->numbers);
}

/* ---- a link ------------------------------------------------------------------------------------------ */

/* The scheme of the least overhead that has to repair by retransmission at most this share of its messages;
 * without one, or with a share of 1, the fastest. */
static const struct lh_plan_choice *scheme_of(const struct lh_plan *plan, double share)
{
    const struct lh_plan_choice *best = NULL;
    assert(plan->best != LH_PLAN_NONE); /* there are no limits */
    for (uint32_t i = 0; i < plan->count && share < 1; i++) {
        const struct lh_plan_choice *choice = &plan->choices[i];
        if (choice->breaks == 0 && choice->scheme.m > 0 && choice->p_fallback <= share &&
            (!best || choice->overhead < best->overhead))
            best = choice;
    }
    return best ? best : &plan->choices[plan->best];
}

/* What repairs add to a block of several messages: as much as to the latest. */
static void combine(struct hop *hop, double ideal_s, uint32_t messages, double *sampled_s)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, SEED);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        hop->samples_s[i] = 0;
        for (uint32_t m = 0; m < messages; m++)
            hop->samples_s[i] =
                fmax(hop->samples_s[i],
                     sampled_s[messages > 1 ? (uint32_t)lh_prng_below(&prng, SAMPLES) : i] - ideal_s);
    }
}

/* Of a block of that many messages, which others follow: share as of scheme_of(). */
static int plan_hop(const struct lh_model_path *link, double message_bytes, uint32_t messages, double share,
                    struct scratch *scratch, struct hop *hop)
{
    struct lh_plan_question question;
    struct lh_model_times times;
    lh_plan_init(&question);
    question.link = *link;
    question.link.chunk_bytes = 0;
    question.sizes[0] = (struct lh_plan_size){.message_bytes = (uint64_t)ceil(message_bytes), .weight = 1};
    question.sizes_count = 1;
    int failed = plan_make(&question, true, &scratch->plan);
    if (failed)
        return failed;
    const struct lh_plan_choice *choice = scheme_of(&scratch->plan, link->loss > 0 ? share : 1);
    struct lh_model_path path = question.link;
    path.message_bytes = question.sizes[0].message_bytes;
    path.chunk_bytes = choice->chunk_bytes;
    hop->scheme = choice->scheme;
    failed = lh_model_predict(&path, &hop->scheme, &times);
    if (!failed)
        failed = lh_model_sample(&path, &hop->scheme, SEED, 1, scratch->sampled_s, SAMPLES);
    if (failed)
        return failed;
    hop->repair_s = fmax(times.mean_s - times.ideal_s, 0);
    hop->overhead = choice->overhead;
    combine(hop, times.ideal_s, messages, scratch->sampled_s);
    return 0;
}

static double message_bytes_of(const struct lh_plan_collective_question *question, double block_bytes)
{
    return fmin(block_bytes, (double)question->block_bytes);
}

static int plan_hops(const struct lh_plan_collective_question *question, double block_bytes, double share,
                     struct scratch *scratch, struct hop *inside, struct hop *across)
{
    double message_bytes = message_bytes_of(question, block_bytes);
    uint32_t messages = (uint32_t)fmin(ceil(block_bytes / message_bytes), MESSAGES_MAX);
    int failed = plan_hop(&question->inside, message_bytes, messages, share, scratch, inside);
    if (!failed && question->sites > 1)
        failed = plan_hop(&question->across, message_bytes, messages, share, scratch, across);
    return failed;
}

static struct flow_hop hop_of(const struct lh_plan_collective_question *question,
                              const struct lh_model_path *link, const struct hop *hop)
{
    return (struct flow_hop){
        .latency_s = link->rtt_s / 2,
        .byte_s = link->bandwidth_bps > 0 ? 8 * (1 + hop->overhead) / link->bandwidth_bps : 0,
        .message_s = question->message_s,
        .repair_s = hop->repair_s,
        .samples_s = hop->samples_s,
        .samples = SAMPLES,
    };
}

static struct flow_network network_of(const struct lh_plan_collective_question *question,
                                      const struct hop *inside, const struct hop *across)
{
    return (struct flow_network){
        .inside = hop_of(question, &question->inside, inside),
        .across = hop_of(question, &question->across, across),
        .message_bytes = (double)question->block_bytes,
        .sum_byte_s = 1 / question->sum_bytes_per_s,
    };
}

/* ---- candidates -------------------------------------------------------------------------------------- */

static double measure(enum lh_plan_by by, const struct candidate *candidate)
{
    return by == LH_PLAN_BY_P50   ? candidate->p50_s
           : by == LH_PLAN_BY_P99 ? candidate->p99_s
                                  : candidate->mean_s;
}

static void insert(struct scratch *scratch, uint32_t count, const struct candidate *candidate,
                   enum lh_plan_by by)
{
    uint32_t at = count;
    while (at > 0 && measure(by, &scratch->candidates[at - 1]) > measure(by, candidate))
        at--;
    uint32_t last = count < LH_PLAN_SCHEDULES_MAX ? count : LH_PLAN_SCHEDULES_MAX - 1;
    if (at > last)
        return;
    memmove(&scratch->candidates[at + 1], &scratch->candidates[at],
            (last - at) * sizeof *scratch->candidates);
    scratch->candidates[at] = *candidate;
}

/* One of each schedule: the faster. */
static void offer(struct scratch *scratch, const struct choice *choice)
{
    uint32_t at = 0;
    while (at < scratch->count && scratch->candidates[at].choice.schedule != choice->schedule)
        at++;
    if (at < scratch->count) {
        if (scratch->candidates[at].choice.seconds <= choice->seconds)
            return;
        scratch->count--;
        memmove(&scratch->candidates[at], &scratch->candidates[at + 1],
                (scratch->count - at) * sizeof *scratch->candidates);
    }
    const struct candidate candidate = {.choice = *choice, .mean_s = choice->seconds};
    insert(scratch, scratch->count, &candidate, LH_PLAN_BY_MEAN);
    scratch->count += scratch->count < LH_PLAN_SCHEDULES_MAX;
}

static int offer_all(const struct lh_plan_collective_question *question, struct choose_question *made,
                     struct scratch *scratch)
{
    for (uint64_t bytes = question->block_bytes; bytes >= BLOCK_BYTES; bytes /= SIZE_STEP) {
        int failed = plan_hops(question, (double)(bytes < made->bytes ? bytes : made->bytes), 1, scratch,
                               &scratch->inside, &scratch->across);
        if (failed)
            return failed;
        scratch->network = network_of(question, &scratch->inside, &scratch->across);
        made->network = &scratch->network;
        made->block_bytes_max = made->block_bytes_min = bytes;
        uint32_t count = choose(made, scratch->flow, scratch->choices);
        for (uint32_t i = 0; i < count; i++)
            offer(scratch, &scratch->choices[i]);
    }
    return 0;
}

/* ---- by chance --------------------------------------------------------------------------------------- */

/* Shell's sort: short lists, no allocator. */
static void sort(double *numbers, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            double number = numbers[i];
            uint32_t at = i;
            for (; at >= gap && numbers[at - gap] > number; at -= gap)
                numbers[at] = numbers[at - gap];
            numbers[at] = number;
        }
}

static uint32_t runs_of(const struct schedule_shape *shape)
{
    uint32_t runs = MOVES_MAX / shape->ranks / shape->blocks;
    return runs < RUNS_MIN ? RUNS_MIN : runs < RUNS ? runs : RUNS;
}

static int run(const struct lh_plan_collective_question *question, const struct choose_question *made,
               double share, struct scratch *scratch, struct candidate *candidate)
{
    struct lh_prng prng;
    struct schedule_shape shape = choose_shape(made, &candidate->choice);
    const struct schedule *schedule = candidate->choice.schedule;
    int failed = plan_hops(question, candidate->choice.block_bytes, share, scratch, &candidate->inside,
                           &candidate->across);
    if (failed)
        return failed;
    struct flow_network network = network_of(question, &candidate->inside, &candidate->across);
    double sum = 0, bytes = (double)made->bytes;
    uint32_t runs = runs_of(&shape);
    lh_prng_seed(&prng, SEED);
    for (uint32_t i = 0; i < runs; i++) {
        scratch->runs_s[i] = flow_time(schedule, &shape, bytes, &network, &prng, scratch->flow);
        sum += scratch->runs_s[i];
    }
    sort(scratch->runs_s, runs);
    candidate->mean_s = sum / runs;
    candidate->p50_s = scratch->runs_s[runs / 2 - 1];
    candidate->p99_s = scratch->runs_s[runs * 99 / 100 - 1];
    network.inside.repair_s = network.across.repair_s = 0;
    candidate->ideal_s = flow_time(schedule, &shape, bytes, &network, NULL, scratch->flow);
    return 0;
}

/* Keeps the better. One late block delays all: what is best for a block in the mean may not be so for many
 * of them, of which one in a thousand collectives may be late. */
static int try_choice(const struct lh_plan_collective_question *question,
                      const struct choose_question *made, const struct choice *choice,
                      struct scratch *scratch, struct candidate *best)
{
    double messages =
        (double)made->ranks * choice->blocks * ceil(choice->block_bytes / (double)question->block_bytes);
    double shares[] = {1, LATE / messages};
    for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        scratch->other = (struct candidate){.choice = *choice};
        int failed = run(question, made, shares[i], scratch, &scratch->other);
        if (failed)
            return failed;
        if (best->ideal_s == 0 || measure(question->by, &scratch->other) < measure(question->by, best))
            *best = scratch->other;
    }
    return 0;
}

/* A schedule with blocks of each size. */
static int try_sizes(const struct lh_plan_collective_question *question, struct choose_question *made,
                     struct scratch *scratch, struct candidate *candidate)
{
    scratch->network = network_of(question, &scratch->inside, &scratch->across);
    made->only = candidate->choice.schedule;
    made->network = &scratch->network;
    candidate->ideal_s = 0;
    for (uint64_t bytes = question->block_bytes; bytes >= BLOCK_BYTES; bytes /= SIZE_STEP) {
        made->block_bytes_max = made->block_bytes_min = bytes;
        choose(made, scratch->flow, scratch->choices);
        int failed = try_choice(question, made, &scratch->choices[0], scratch, candidate);
        if (failed)
            return failed;
    }
    return 0;
}

static struct lh_plan_collective_choice choice_of(const struct lh_plan_collective_question *question,
                                                  const struct candidate *candidate)
{
    return (struct lh_plan_collective_choice){
        .schedule = candidate->choice.schedule->name,
        .block_bytes = (uint64_t)ceil(message_bytes_of(question, candidate->choice.block_bytes)),
        .inside = candidate->inside.scheme,
        .across = question->sites > 1 ? candidate->across.scheme : candidate->inside.scheme,
        .ideal_s = candidate->ideal_s,
        .mean_s = candidate->mean_s,
        .p50_s = candidate->p50_s,
        .p99_s = candidate->p99_s,
    };
}

int lh_plan_collective(const struct lh_plan_collective_question *question, void *memory,
                       struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX], uint32_t *count)
{
    struct scratch *scratch = memory;
    struct choose_question made;
    int failed = make_question(question, NULL, &made);
    if (failed)
        return failed;
    set_up(question, &made, scratch);
    made.map = &scratch->map;
    failed = offer_all(question, &made, scratch);
    assert(failed || scratch->count > 0);
    for (uint32_t i = 0; i < scratch->count && !failed; i++)
        failed = try_sizes(question, &made, scratch, &scratch->candidates[i]);
    if (failed)
        return failed;
    for (uint32_t i = 1; i < scratch->count; i++) {
        scratch->other = scratch->candidates[i];
        insert(scratch, i, &scratch->other, question->by);
    }
    for (uint32_t i = 0; i < scratch->count; i++)
        choices[i] = choice_of(question, &scratch->candidates[i]);
    *count = scratch->count;
    return 0;
}

/* ---- plan deadline --------------------------------------------------------------------------------- */

#define SCHEMES_MAX (1 + 2 * SCHEME_CANDIDATES_MAX)
#define CERTAIN     (1 - 1e-12) /* of messages: the others end at the deadline */
#define PER_S       1e6         /* a deadline is a whole number of microseconds */

struct weighed {
    struct lh_plan_choice choice;
    struct lh_plan_deadline deadline;
};

/* Of the messages that are to keep to what may be missing; 0: the mean is. */
static double share_of(enum lh_plan_by by)
{
    static const double shares[] = {
        [LH_PLAN_BY_MEAN] = 0, [LH_PLAN_BY_P50] = 0.5, [LH_PLAN_BY_P99] = 0.99, [LH_PLAN_BY_P999] = 0.999};
    return shares[by];
}

/* Without a code, and with those that the planner considers for messages that have to be whole. */
static uint32_t list_schemes(struct lh_model_scheme out[SCHEMES_MAX])
{
    static const enum lh_model_kind kinds[] = {LH_MODEL_EC_XOR, LH_MODEL_EC_MDS};
    struct lh_model_scheme codes[SCHEME_CANDIDATES_MAX];
    uint32_t count = 0;
    out[count++] = (struct lh_model_scheme){.kind = LH_MODEL_BOUNDED};
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        uint32_t listed = plan_list_find(scheme_table(), kinds[kind])->candidates(false, codes);
        for (uint32_t i = 0; i < listed; i++)
            out[count++] = (struct lh_model_scheme){.kind = LH_MODEL_BOUNDED,
                                                    .k = codes[i].k,
                                                    .m = codes[i].m,
                                                    .xor_code = kinds[kind] == LH_MODEL_EC_XOR};
    }
    assert(count <= SCHEMES_MAX);
    return count;
}

/* A reordering window behind the last packet, in each size of message: what ends by itself is not cut off. */
static int find_deadline(const struct lh_plan_question *question, struct lh_model_path *path,
                         struct weighed *of)
{
    struct lh_model_scheme *scheme = &of->deadline.scheme;
    double deadline_s = 0;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        double settled_s;
        path->message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(path, scheme, &times);
        if (!failed)
            failed = lh_model_quantile(path, scheme, CERTAIN, &settled_s);
        if (failed)
            return failed;
        double window_s =
            path->reorder_window_s > 0 ? path->reorder_window_s : MODEL_WINDOW_RTTS * path->rtt_s;
        settled_s = fmax(settled_s, times.ideal_s + window_s);
        of->deadline.wait_s = fmax(of->deadline.wait_s, settled_s - times.ideal_s);
        deadline_s = fmax(deadline_s, settled_s);
    }
    scheme->deadline_s = ceil(deadline_s * PER_S) / PER_S;
    return 0;
}

/* At most that share is missing in this share of the messages; NaN: nobody knows. Nothing where they
 * are whole; else without a code packets are lost one by one. */
static double missing_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                               const struct lh_model_times *times, double share)
{
    double packets = ceil((double)path->message_bytes / path->mtu_bytes);
    if (1 - times->p_fallback >= share)
        return 0;
    if (scheme->k > 0 || path->burst_packets > 1)
        return NAN;
    return model_binomial_quantile((1 - times->delivered) * packets, packets, share) / packets;
}

/* Whether each size keeps to what may be missing. */
static int add_missing(const struct lh_plan_question *question, struct lh_model_path *path, double allowed,
                       struct weighed *of, bool *keeps)
{
    struct lh_plan_deadline *sum = &of->deadline;
    double share = share_of(question->by), weights = 0;
    *keeps = true;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        double weight = question->sizes[i].weight;
        path->message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(path, &sum->scheme, &times);
        if (failed)
            return failed;
        double rare = missing_quantile(path, &sum->scheme, &times, 0.999);
        double missing =
            share > 0 ? missing_quantile(path, &sum->scheme, &times, share) : 1 - times.delivered;
        *keeps = *keeps && missing <= allowed; /* not where it is unknown */
        sum->missing += weight * (1 - times.delivered);
        sum->missing_p999 = isnan(rare) || rare > sum->missing_p999 ? rare : sum->missing_p999;
        sum->whole += weight * (1 - times.p_fallback);
        weights += weight;
    }
    sum->missing /= weights;
    sum->whole /= weights;
    return 0;
}

/* False: more would be missing, or a limit is exceeded. */
static bool weigh(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                  uint64_t chunk_bytes, double allowed, struct weighed *of)
{
    struct lh_model_path path = question->link;
    bool keeps = false;
    path.chunk_bytes = chunk_bytes;
    *of = (struct weighed){.deadline = {.scheme = *scheme, .chunk_bytes = chunk_bytes}};
    of->deadline.scheme.timing = question->timing;
    int failed = find_deadline(question, &path, of);
    if (!failed)
        failed = add_missing(question, &path, allowed, of, &keeps);
    if (!failed)
        failed = lh_plan_weigh(question, &of->deadline.scheme, chunk_bytes, &of->choice);
    of->deadline.seconds = of->choice.seconds;
    of->deadline.times_ideal = of->choice.times_ideal;
    of->deadline.overhead = of->choice.overhead;
    return !failed && keeps && of->choice.breaks == 0;
}

static int plan_deadline_check(const struct lh_plan_question *question, double missing,
                               const uint64_t *chunks, uint32_t count)
{
    const struct lh_model_scheme simplest = plan_list_simplest(scheme_table());
    struct lh_plan_choice choice;
    if (!(missing > 0) || !(missing < 1))
        return lh_fail(LH_ERANGE, "a missing share of %g: out of range (above 0 to below 1)", missing);
    if (question->link.chunk_bytes == 0 && question->link.loss_of_chunk)
        return lh_fail(LH_EINVAL, "a loss of chunks holds for one chunk size only (give the size of a "
                                  "chunk, too, or the loss of packets)");
    return lh_plan_weigh(question, &simplest, chunks[count - 1], &choice);
}

/* Of those that are as fast as the fastest, the cheapest. */
static const struct weighed *best_of(const struct weighed *found, uint32_t count)
{
    const struct weighed *best = NULL;
    double fastest = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        fastest = fmin(fastest, found[i].choice.times_ideal);
    for (uint32_t i = 0; i < count; i++)
        if (found[i].choice.times_ideal <= fastest * (1 + LH_PLAN_TIE) &&
            (!best || plan_list_is_cheaper(&found[i].choice, &best->choice)))
            best = &found[i];
    return best;
}

int lh_plan_deadline(const struct lh_plan_question *question, double missing,
                     struct lh_plan_deadline *deadline)
{
    struct lh_model_scheme schemes[SCHEMES_MAX];
    struct weighed found[PLAN_CHUNKS * SCHEMES_MAX];
    uint64_t chunks[PLAN_CHUNKS];
    uint32_t chunks_count = plan_list_chunks(question, chunks), count = 0;
    int failed = plan_deadline_check(question, missing, chunks, chunks_count);
    if (failed)
        return failed;
    uint32_t schemes_count = list_schemes(schemes);
    for (uint32_t i = 0; i < chunks_count; i++)
        for (uint32_t j = 0; j < schemes_count; j++)
            count += weigh(question, &schemes[j], chunks[i], missing, &found[count]);
    if (count == 0)
        return lh_fail(LH_ERANGE, "more than %g would be missing with each code within the limits",
                       missing);
    *deadline = best_of(found, count)->deadline;
    return 0;
}
