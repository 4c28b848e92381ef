/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/planner.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/plan.h>
#include <longhaul/units.h>

#include "base/error.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "schemes/scheme_table.h"

/* ---- plan list ------------------------------------------------------------------------------------- */

/* Shares and cores are compared as they are shown: 0.1 %, 0.1 core. */
#define PLAN_SHARE_STEPS 1000
#define PLAN_CORE_STEPS  10

uint32_t plan_list_chunks(const struct lh_plan_question *question, uint64_t *out)
{
    static const unsigned packets[PLAN_CHUNKS] = {64, 16, 4, 1};
    const struct lh_model_path *link = &question->link;
    if (link->chunk_bytes != 0) {
        out[0] = link->chunk_bytes;
        return 1;
    }
    for (unsigned i = 0; i < PLAN_CHUNKS; i++)
        out[i] = (uint64_t)packets[i] * link->mtu_bytes;
    return PLAN_CHUNKS;
}

/* The entry of the next higher rank that has candidates; NULL: there is none. */
static const struct scheme_entry *next_entry(const struct scheme_entry *const *table,
                                             const struct scheme_entry *last)
{
    const struct scheme_entry *next = NULL;
    for (; *table; table++) {
        bool behind = !last || (*table)->planner_rank > last->planner_rank;
        if ((*table)->candidates && behind && (!next || (*table)->planner_rank < next->planner_rank))
            next = *table;
    }
    return next;
}

uint32_t plan_list_schemes(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                           bool stream, struct lh_model_scheme *out)
{
    bool bursty = question->link.burst_packets > 1;
    struct lh_model_scheme of_one[SCHEME_CANDIDATES_MAX];
    uint32_t count = 0;
    for (int unspread = 0; unspread <= (int)bursty; unspread++)
        for (const struct scheme_entry *e = next_entry(table, NULL); e; e = next_entry(table, e)) {
            uint32_t listed = stream && e->for_ends ? 0 : e->candidates(unspread, of_one);
            assert(listed <= SCHEME_CANDIDATES_MAX && count + listed <= PLAN_SCHEMES_MAX);
            for (uint32_t i = 0; i < listed && count < PLAN_SCHEMES_MAX; i++)
                out[count++] = of_one[i];
        }
    return count;
}

struct lh_model_scheme plan_list_simplest(const struct scheme_entry *const *table)
{
    struct lh_model_scheme schemes[SCHEME_CANDIDATES_MAX];
    uint32_t count = next_entry(table, NULL)->candidates(false, schemes);
    assert(count > 0);
    (void)count;
    return schemes[0];
}

const struct scheme_entry *plan_list_find(const struct scheme_entry *const *table, enum lh_model_kind kind)
{
    while (*table && (*table)->shown.kind != kind)
        table++;
    return *table;
}

bool plan_list_is_cheaper(const struct lh_plan_choice *one, const struct lh_plan_choice *other)
{
    double less = round(other->overhead * PLAN_SHARE_STEPS) - round(one->overhead * PLAN_SHARE_STEPS);
    if (less == 0)
        less = round(other->cores * PLAN_CORE_STEPS) - round(one->cores * PLAN_CORE_STEPS);
    return less != 0 ? less > 0 : one->chunk_bytes > other->chunk_bytes;
}

/* ---- plan ------------------------------------------------------------------------------------------ */

/* bench/run coding: (32, 8) over 128 MiB, one core of an AMD EPYC (docs/erasure-codes.md, "Numbers"). */
#define MDS_BYTES_PER_S 14.6e9
#define XOR_BYTES_PER_S 20.9e9

/* Of what is shown beside the best nothing is faster, but for what rounding hides. */
#define NEXT_TIE 0.0005

#define SEGMENT_BYTES ((uint64_t)4 << 20) /* lh_attr.slot_bytes, unless told */

void lh_plan_init(struct lh_plan_question *question)
{
    *question = (struct lh_plan_question){
        .link = {.mtu_bytes = 4096, .segment_bytes = SEGMENT_BYTES},
        .timing = LH_MODEL_TIMING_LONGHAUL,
        .max_overhead = INFINITY,
        .max_cores = INFINITY,
        .mds_bytes_per_s = MDS_BYTES_PER_S,
        .xor_bytes_per_s = XOR_BYTES_PER_S,
    };
}

/* ---- what is asked ----------------------------------------------------------------------------------- */

static int check_sizes(const struct lh_plan_question *question)
{
    if (question->sizes_count < 1 || question->sizes_count > LH_PLAN_SIZES_MAX)
        return lh_fail(LH_EINVAL, "%u sizes of messages: out of range (1 to %d)", question->sizes_count,
                       LH_PLAN_SIZES_MAX);
    for (uint32_t i = 0; i < question->sizes_count; i++)
        if (!(question->sizes[i].weight > 0) || !(question->sizes[i].weight <= 1e9))
            return lh_fail(LH_ERANGE, "weight %g: out of range (above 0 to 10^9)",
                           question->sizes[i].weight);
    return 0;
}

/* Not (a > 0) rather than a <= 0: a NaN is neither. */
static int check(const struct lh_plan_question *question)
{
    int failed = check_sizes(question);
    if (failed)
        return failed;
    if ((unsigned)question->by > LH_PLAN_BY_P999)
        return lh_fail(LH_EINVAL, "unknown measure %d (enum lh_plan_by)", (int)question->by);
    if (!(question->max_overhead >= 0))
        return lh_fail(LH_ERANGE, "maximum overhead %g: out of range (at least 0, as a share: 0.25)",
                       question->max_overhead);
    if (!(question->max_cores >= 0))
        return lh_fail(LH_ERANGE, "maximum of %g cores: out of range (at least 0)", question->max_cores);
    if (!(question->mds_bytes_per_s > 0) || !isfinite(question->mds_bytes_per_s) ||
        !(question->xor_bytes_per_s > 0) || !isfinite(question->xor_bytes_per_s))
        return lh_fail(LH_ERANGE,
                       "encoding rates of %g and %g bytes a second: out of range (above 0; measure them)",
                       question->mds_bytes_per_s, question->xor_bytes_per_s);
    return 0;
}

/* ---- one choice -------------------------------------------------------------------------------------- */

static double measure(enum lh_plan_by by, const struct lh_model_times *times)
{
    switch (by) {
    case LH_PLAN_BY_P50:
        return times->p50_s;
    case LH_PLAN_BY_P99:
        return times->p99_s;
    case LH_PLAN_BY_P999:
        return times->p999_s;
    case LH_PLAN_BY_MEAN:
        break;
    }
    return times->mean_s;
}

static uint32_t broken(const struct lh_plan_question *question, const struct lh_plan_choice *choice)
{
    uint32_t breaks = 0;
    if (round(choice->overhead * PLAN_SHARE_STEPS) > round(question->max_overhead * PLAN_SHARE_STEPS))
        breaks |= LH_PLAN_LIMIT_OVERHEAD;
    if (choice->cores > question->max_cores)
        breaks |= LH_PLAN_LIMIT_CORES;
    return breaks;
}

/* The question has been checked. */
static int weigh(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                 const struct lh_model_scheme *scheme, uint64_t chunk_bytes, struct lh_plan_choice *choice)
{
    const struct scheme_entry *entry = plan_list_find(table, scheme->kind);
    struct lh_plan_choice sum = {.scheme = *scheme, .chunk_bytes = chunk_bytes};
    struct lh_model_path path = question->link;
    double weights = 0;
    double message_bytes = 0;
    double overhead_bytes = 0;
    sum.scheme.timing = question->timing;
    if (sum.scheme.encode_bytes_per_s == 0 && entry && entry->encode_rate)
        sum.scheme.encode_bytes_per_s = entry->encode_rate(question, scheme);
    path.chunk_bytes = chunk_bytes;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        double weight = question->sizes[i].weight;
        path.message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(&path, &sum.scheme, &times);
        if (failed)
            return failed;
        double seconds = measure(question->by, &times);
        weights += weight;
        sum.seconds += weight * seconds;
        sum.times_ideal += weight * seconds / times.ideal_s;
        sum.p_fallback += weight * times.p_fallback;
        sum.cores = fmax(sum.cores, times.encode_cores);
        message_bytes += weight * (double)path.message_bytes;
        overhead_bytes += weight * times.overhead_bytes;
    }
    sum.seconds /= weights;
    sum.times_ideal /= weights;
    sum.p_fallback /= weights;
    sum.overhead = overhead_bytes / message_bytes;
    sum.breaks = broken(question, &sum);
    *choice = sum;
    return 0;
}

int lh_plan_weigh(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                  uint64_t chunk_bytes, struct lh_plan_choice *choice)
{
    int failed = check(question);
    return failed ? failed : weigh(scheme_table(), question, scheme, chunk_bytes, choice);
}

/* ---- the best of them -------------------------------------------------------------------------------- */

/* Which choices are looked at: those that break nothing but `allowed`. */
struct view {
    const struct scheme_entry *const *table;
    uint32_t allowed;
    const struct lh_plan_choice *besides; /* alternatives to it; NULL: all */
    double tie;                           /* slower by that counts as equal: the cheaper is chosen */
};

/* With chunks of the same size another scheme, or the one of the same kind that tables show: its neighbours
 * tell nothing. */
static bool is_alternative(const struct scheme_entry *const *table, const struct lh_plan_choice *choice,
                           const struct lh_plan_choice *best)
{
    char one[LH_MODEL_SCHEME_TEXT_MAX], other[LH_MODEL_SCHEME_TEXT_MAX];
    const char *shown = plan_list_find(table, choice->scheme.kind)->shown.compared;
    if (choice->chunk_bytes != best->chunk_bytes)
        return false;
    if (choice->scheme.kind != best->scheme.kind)
        return true;
    lh_model_scheme_format(&choice->scheme, one, sizeof one);
    lh_model_scheme_format(&best->scheme, other, sizeof other);
    return shown && strcmp(one, shown) == 0 && strcmp(one, other) != 0;
}

static bool is_seen(const struct lh_plan_choice *choice, const struct view *view)
{
    return (choice->breaks & ~view->allowed) == 0 &&
           (!view->besides || is_alternative(view->table, choice, view->besides));
}

static uint32_t find_best(const struct lh_plan *plan, struct view view)
{
    uint32_t best = LH_PLAN_NONE;
    double fastest = INFINITY;
    for (uint32_t i = 0; i < plan->count; i++)
        if (is_seen(&plan->choices[i], &view))
            fastest = fmin(fastest, plan->choices[i].times_ideal);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct lh_plan_choice *choice = &plan->choices[i];
        if (is_seen(choice, &view) && choice->times_ideal <= fastest * (1 + view.tie) &&
            (best == LH_PLAN_NONE || plan_list_is_cheaper(choice, &plan->choices[best])))
            best = i;
    }
    return best;
}

/* The smallest chunks can be weighed; where larger ones cannot, it is because those are nearly all lost. */
static void weigh_all(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                      bool stream, const uint64_t *chunks, uint32_t chunks_count, struct lh_plan *plan)
{
    struct lh_model_scheme schemes[PLAN_SCHEMES_MAX];
    uint32_t count = plan_list_schemes(table, question, stream, schemes);
    plan->count = 0;
    for (uint32_t i = 0; i < chunks_count; i++)
        for (uint32_t j = 0; j < count; j++) {
            assert(plan->count < LH_PLAN_CHOICES_MAX);
            struct lh_plan_choice *choice = &plan->choices[plan->count++];
            if (weigh(table, question, &schemes[j], chunks[i], choice) != 0)
                *choice = (struct lh_plan_choice){
                    .scheme = schemes[j], .chunk_bytes = chunks[i], .breaks = LH_PLAN_LIMIT_MODEL};
        }
}

/* Whether the link and the sizes can be, told by the simplest scheme. */
static int try_one(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                   uint64_t chunk_bytes)
{
    const struct lh_model_scheme simplest = plan_list_simplest(table);
    struct lh_plan_choice choice;
    if (question->link.chunk_bytes == 0 && question->link.loss_of_chunk)
        return lh_fail(LH_EINVAL, "a loss of chunks holds for one chunk size only (give the size of a "
                                  "chunk, too, or the loss of packets)");
    return weigh(table, question, &simplest, chunk_bytes, &choice);
}

int plan_make(const struct lh_plan_question *question, bool stream, struct lh_plan *plan)
{
    const struct scheme_entry *const *table = scheme_table();
    uint64_t chunks[PLAN_CHUNKS];
    uint32_t chunks_count = plan_list_chunks(question, chunks);
    int failed = check(question);
    if (!failed)
        failed = try_one(table, question, chunks[chunks_count - 1]);
    if (failed)
        return failed;
    weigh_all(table, question, stream, chunks, chunks_count, plan);
    plan->best = find_best(plan, (struct view){.table = table, .tie = LH_PLAN_TIE});
    plan->unlimited = find_best(plan, (struct view){.table = table,
                                                    .allowed = LH_PLAN_LIMIT_OVERHEAD | LH_PLAN_LIMIT_CORES,
                                                    .tie = LH_PLAN_TIE});
    plan->runner_up = LH_PLAN_NONE;
    if (plan->best != LH_PLAN_NONE)
        plan->runner_up = find_best(
            plan, (struct view){.table = table, .besides = &plan->choices[plan->best], .tie = NEXT_TIE});
    assert(plan->unlimited != LH_PLAN_NONE);
    assert(plan->best == LH_PLAN_NONE || plan->choices[plan->best].breaks == 0);
    return 0;
}

int lh_plan_make(const struct lh_plan_question *question, struct lh_plan *plan)
{
    return plan_make(question, false, plan);
}

/* ---- plan verdict ---------------------------------------------------------------------------------- */

/* Below this share, messages that lose packets decide nothing. */
#define RARELY 0.01
/* From this many round trips of injection on, it hides retransmissions. */
#define LONG_RTTS 2

/* The text as far as it is written. */
struct text {
    char *out;
    size_t size;
    size_t used;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (text->used >= text->size)
        return;
    va_start(arguments, format);
    int length = vsnprintf(text->out + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
}

static const char *measure_name(enum lh_plan_by by)
{
    static const char *const names[] = {[LH_PLAN_BY_MEAN] = "mean",
                                        [LH_PLAN_BY_P50] = "p50",
                                        [LH_PLAN_BY_P99] = "p99",
                                        [LH_PLAN_BY_P999] = "p99.9"};
    return names[by];
}

/* ---- what the link does ------------------------------------------------------------------------------ */

/* The mix as a whole. */
struct facts {
    double loses;       /* share of the messages that lose a packet */
    double rtt_share;   /* of the ideal time */
    double inject_rtts; /* injection of the largest message, in round trips */
};

/* The chance that a message of that many bytes loses a packet: whatever that costs, however much of it
 * injection hides. */
static double loses_any(const struct lh_model_path *path, uint64_t message_bytes)
{
    double burst = path->burst_packets > 1 ? path->burst_packets : 0, packets_of_chunk = 1;
    if (path->loss_of_chunk)
        packets_of_chunk = (double)(path->chunk_bytes / path->mtu_bytes);
    const struct model_loss loss = path->loss_of_chunk
                                       ? model_loss_of_chunks(path->loss, burst, packets_of_chunk)
                                       : model_loss_of_packets(path->loss, burst, 1);
    return model_loss_of_packets(loss.packet, burst, ceil((double)message_bytes / path->mtu_bytes)).chunk;
}

static struct facts facts_of(const struct lh_plan_question *question, uint64_t chunk_bytes)
{
    const struct lh_model_scheme repeat = plan_list_simplest(scheme_table());
    struct facts facts = {0};
    struct lh_model_path path = question->link;
    double weights = 0;
    path.chunk_bytes = chunk_bytes;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times = {0};
        double weight = question->sizes[i].weight;
        path.message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(&path, &repeat, &times);
        assert(!failed);
        (void)failed;
        weights += weight;
        facts.loses += weight * loses_any(&path, path.message_bytes);
        facts.rtt_share += weight * path.rtt_s / times.ideal_s;
        facts.inject_rtts = fmax(facts.inject_rtts, times.ideal_s / path.rtt_s - 1);
    }
    facts.loses /= weights;
    facts.rtt_share /= weights;
    return facts;
}

/* ---- sentences --------------------------------------------------------------------------------------- */

/* "sr-nack with chunks of 64KiB" */
static void format_scheme(struct text *text, const struct lh_plan_choice *choice)
{
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], chunk[LH_FORMAT_MAX];
    say(text, "%s with chunks of %s", lh_model_scheme_format(&choice->scheme, scheme, sizeof scheme),
        lh_format_size(choice->chunk_bytes, chunk, sizeof chunk));
}

static void format_cost(struct text *text, const struct lh_plan_choice *choice)
{
    say(text, "sends %.1f %% more than the messages", 100 * choice->overhead);
    if (choice->cores > 0)
        say(text, ", keeps %.1f cores encoding at line rate", choice->cores);
}

static void format_best(struct text *text, const struct lh_plan_question *question,
                        const struct lh_plan_choice *best)
{
    char time[LH_FORMAT_MAX];
    say(text, "Use ");
    format_scheme(text, best);
    say(text, ": %s %s, %.2f times the ideal.\nIt ", measure_name(question->by),
        lh_format_time(best->seconds, time, sizeof time), best->times_ideal);
    format_cost(text, best);
    if (best->cores > 0 && best->p_fallback >= 1e-12)
        say(text, ", and requests repairs in %.*g %% of the messages", best->p_fallback < 0.99 ? 2 : 3,
            100 * best->p_fallback); /* two digits of 99.9 would be 1e+02 */
    say(text, ".\n");
}

static void format_why(struct text *text, const struct lh_plan_question *question,
                       const struct lh_plan_choice *best, const struct lh_plan_choice *unlimited)
{
    struct facts facts = facts_of(question, best->chunk_bytes);
    bool codes = best->cores > 0;
    say(text, "Why: ");
    if (facts.loses <= 0)
        say(text, "without loss, parity gains nothing.\n");
    else if (!codes && unlimited->breaks != 0 && unlimited->cores > 0)
        say(text, "parity would be faster, but exceeds the limits.\n");
    else if (plan_list_find(scheme_table(), best->scheme.kind)->for_ends && facts.inject_rtts >= 1)
        say(text,
            "%.3g %% of the messages lose packets: most are retransmitted while later data is injected, "
            "and parity of the end spares a round trip, %.0f %% of the ideal time.\n",
            100 * facts.loses, 100 * facts.rtt_share);
    else if (codes)
        say(text,
            "%.3g %% of the messages lose packets, and a round trip is %.0f %% of the ideal time: a "
            "retransmission would delay them, and parity avoids it.\n",
            100 * facts.loses, 100 * facts.rtt_share);
    else if (facts.loses < RARELY)
        say(text, "only %.2g %% of the messages lose packets; parity would cost all of them.\n",
            100 * facts.loses);
    else if (facts.inject_rtts >= LONG_RTTS)
        say(text,
            "injection lasts up to %.3g round trips, which hides retransmissions; parity would make it "
            "longer.\n",
            facts.inject_rtts);
    else
        say(text, "%.3g %% of the messages lose packets, but parity costs as much as it saves.\n",
            100 * facts.loses);
}

static void format_runner_up(struct text *text, const struct lh_plan_choice *best,
                             const struct lh_plan_choice *second)
{
    char time[LH_FORMAT_MAX];
    double ratio = second->times_ideal / best->times_ideal;
    say(text, "Next: ");
    format_scheme(text, second);
    say(text, ", %s", lh_format_time(second->seconds, time, sizeof time));
    if (ratio >= 1.995)
        say(text, ", takes %.3g times as long; it ", ratio);
    else if (fabs(ratio - 1) < 0.0005)
        say(text, ", as fast; it ");
    else
        say(text, ", %.1f %% %s; it ", 100 * fabs(ratio - 1),
            ratio > 1 ? "slower" : "faster, yet counted as a tie");
    format_cost(text, second);
    say(text, ".\n");
}

/* What the limits cost; chosen is NULL when nothing keeps to them. */
static void format_limits(struct text *text, const struct lh_plan_choice *chosen,
                          const struct lh_plan_choice *unlimited)
{
    char time[LH_FORMAT_MAX];
    if (unlimited->breaks == 0)
        return;
    say(text, chosen ? "Without the limit of %s, " : "No choice is within the limit of %s. Without it, ",
        unlimited->breaks == LH_PLAN_LIMIT_OVERHEAD ? "overhead"
        : unlimited->breaks == LH_PLAN_LIMIT_CORES  ? "cores"
                                                    : "overhead and that of cores");
    format_scheme(text, unlimited);
    say(text, " would take %s, %.2f times the ideal; it ",
        lh_format_time(unlimited->seconds, time, sizeof time), unlimited->times_ideal);
    format_cost(text, unlimited);
    say(text, ".\n");
}

char *lh_plan_verdict(const struct lh_plan_question *question, const struct lh_plan *plan, char *out,
                      size_t size)
{
    struct text text = {out, size, 0};
    const struct lh_plan_choice *best = NULL;
    if (size > 0)
        out[0] = '\0';
    if (plan->best != LH_PLAN_NONE) {
        best = &plan->choices[plan->best];
        format_best(&text, question, best);
        format_why(&text, question, best, &plan->choices[plan->unlimited]);
        if (plan->runner_up != LH_PLAN_NONE)
            format_runner_up(&text, best, &plan->choices[plan->runner_up]);
    }
    format_limits(&text, best, &plan->choices[plan->unlimited]);
    return out;
}
