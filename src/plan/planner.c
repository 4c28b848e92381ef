/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan_list.h"
#include "schemes/scheme_table.h"

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
        return lh_fail(LH_EINVAL, "%u sizes of messages cannot be planned for; give 1 to %d",
                       question->sizes_count, LH_PLAN_SIZES_MAX);
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
        return lh_fail(LH_EINVAL, "measure %d is none of enum lh_plan_by", (int)question->by);
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
        return lh_fail(LH_EINVAL, "a loss of chunks says nothing about chunks of another size; give the "
                                  "size of a chunk too, or the loss of packets");
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
