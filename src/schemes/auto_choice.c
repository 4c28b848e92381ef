/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/auto_choice.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <longhaul/plan.h>
#include <longhaul/scheme.h>

#include "base/error.h"
#include "base/units.h"
#include "schemes/scheme_table.h"

/* ---- choice ---------------------------------------------------------------------------------------- */

#define AUTO_CHOICE_BETTER 0.05 /* share of the time by which another scheme must be faster */

/* A path that differs by more than this is planned for anew. Loss is the least sure of all. */
#define RTT_FACTOR  1.25
#define RATE_FACTOR 1.25
#define LOSS_FACTOR 1.6
#define RUN_FACTOR  1.5

#define SHARE_STEPS 1000.0 /* in which overheads are compared */

#define CLASSES_AN_OCTAVE 4u
#define NONE              UINT32_MAX

/* ---- set-up ------------------------------------------------------------------------------------------ */

/* Whether a segment of this code fits the slots that there are. */
static bool fits(const struct auto_candidate *candidate, const struct auto_setup *setup)
{
    const struct lh_scheme_coding *coding = candidate->scheme->coding;
    if (!coding)
        return true;
    return setup->slots >= 2 && coding->transfer_chunks_max(candidate->params, setup->slot_chunks) > 0;
}

static bool make_candidate(const char *text, const struct auto_setup *setup,
                           struct auto_candidate *candidate)
{
    size_t name_bytes = strcspn(text, ",");
    const char *rest = text[name_bytes] == ',' ? text + name_bytes + 1 : "";
    candidate->scheme = scheme_table_machines(text, name_bytes);
    assert(candidate->scheme);
    int error = candidate->scheme->parse(rest, candidate->params);
    if (!error)
        error = lh_model_scheme_parse(text, &candidate->model);
    assert(!error); /* they are ours */
    candidate->model.timing = LH_MODEL_TIMING_LONGHAUL;
    if (scheme_table_announced(candidate->scheme) & ~setup->announced)
        return false;
    return !error && fits(candidate, setup);
}

static void add_candidates(struct auto_choice *choice, const struct auto_setup *setup,
                           const char *const *texts)
{
    for (; texts && *texts; texts++) {
        assert(choice->count < AUTO_CHOICE_CANDIDATES);
        choice->count += make_candidate(*texts, setup, &choice->candidates[choice->count]);
    }
}

/* In the order of lh_schemes(): the default, which is the plainest, comes first. */
void auto_choice_init(struct auto_choice *choice, const struct auto_setup *setup)
{
    *choice = (struct auto_choice){.chunk_bytes = setup->chunk_bytes};
    for (const struct lh_scheme *const *s = lh_schemes(); *s; s++)
        add_candidates(choice, setup, scheme_table_named((*s)->name, strlen((*s)->name))->automatic);
    assert(choice->count > 0);
    struct lh_plan_question *question = &choice->question;
    lh_plan_init(question);
    question->link.mtu_bytes = setup->mtu_bytes;
    question->link.chunk_bytes = setup->chunk_bytes;
    question->link.segment_bytes = (uint64_t)setup->slot_chunks * setup->chunk_bytes;
    question->link.loss_of_chunk = true;
    question->sizes_count = 1;
    question->by = setup->by;
    question->max_overhead = setup->max_overhead;
    question->max_cores = setup->cores;
}

static_assert(AUTO_CHOICE_CANDIDATES < UINT8_MAX, "candidates are kept in bytes");

void auto_choice_recall(struct auto_choice *choice, const struct auto_kept *kept)
{
    choice->plans = kept->plans;
    choice->changes = kept->changes;
    choice->pause_until = kept->pause_until;
    for (uint32_t i = 0; i < AUTO_CHOICE_CLASSES; i++) {
        assert(kept->chosen[i] <= choice->count);
        if (kept->chosen[i] > 0)
            choice->answers[i] =
                (struct auto_answer){.known = true, .chosen = kept->chosen[i] - 1u, .other = NONE};
    }
}

void auto_choice_keep(const struct auto_choice *choice, struct auto_kept *kept)
{
    *kept = (struct auto_kept){
        .plans = choice->plans, .changes = choice->changes, .pause_until = choice->pause_until};
    for (uint32_t i = 0; i < AUTO_CHOICE_CLASSES; i++)
        if (choice->answers[i].known)
            kept->chosen[i] = (uint8_t)(choice->answers[i].chosen + 1);
}

/* ---- what is known ----------------------------------------------------------------------------------- */

/* Messages of one class differ by a quarter at most. Never 0. */
static uint32_t class_of(uint64_t bytes)
{
    uint64_t value = bytes > 0 ? bytes : 1;
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(value);
    uint32_t below = octave >= 2 ? (uint32_t)(value >> (octave - 2)) & 3u : 0;
    return 1 + octave * CLASSES_AN_OCTAVE + below;
}

static struct auto_answer *find_answer(struct auto_choice *choice, uint32_t size_class)
{
    assert(size_class > 0 && size_class < AUTO_CHOICE_CLASSES);
    struct auto_answer *answer = &choice->answers[size_class];
    return answer->known ? answer : NULL;
}

/* The known size that is nearest, or NULL. */
static const struct auto_answer *nearest_answer(const struct auto_choice *choice, uint32_t size_class)
{
    const struct auto_answer *nearest = NULL;
    uint32_t minimum = UINT32_MAX;
    for (uint32_t i = 0; i < AUTO_CHOICE_CLASSES; i++) {
        uint32_t distance = i > size_class ? i - size_class : size_class - i;
        if (!choice->answers[i].known || distance >= minimum)
            continue;
        nearest = &choice->answers[i];
        minimum = distance;
    }
    return nearest;
}

static bool is_near(double a, double b, double factor)
{
    return a <= b * factor && b <= a * factor;
}

static bool is_same_path(const struct auto_path *a, const struct auto_path *b)
{
    return is_near(a->rtt_s, b->rtt_s, RTT_FACTOR) &&
           is_near(a->bandwidth_bps, b->bandwidth_bps, RATE_FACTOR) &&
           is_near(a->chunk_loss, b->chunk_loss, LOSS_FACTOR) &&
           is_near(a->burst_packets, b->burst_packets, RUN_FACTOR);
}

const struct auto_answer *auto_choice_answer(const struct auto_choice *choice, uint64_t message_bytes)
{
    return find_answer((struct auto_choice *)choice, class_of(message_bytes));
}

/* ---- asking ------------------------------------------------------------------------------------------ */

static void start_job(struct auto_choice *choice, uint32_t size_class, uint64_t message_bytes,
                      const struct auto_path *path)
{
    struct auto_job *job = &choice->job;
    job->active = true;
    job->size_class = size_class;
    job->next = 0;
    job->path = *path;
    job->question = choice->question;
    job->question.link.bandwidth_bps = path->bandwidth_bps;
    job->question.link.rtt_s = path->rtt_s;
    job->question.link.reorder_window_s = path->window_s;
    job->question.link.loss = path->chunk_loss;
    job->question.link.burst_packets = path->burst_packets;
    job->question.sizes[0] =
        (struct lh_plan_size){.message_bytes = message_bytes > 0 ? message_bytes : 1, .weight = 1};
}

uint32_t auto_choice_get(struct auto_choice *choice, uint64_t message_bytes, const struct auto_path *path)
{
    uint32_t size_class = class_of(message_bytes);
    const struct auto_answer *answer = find_answer(choice, size_class);
    choice->asked++;
    if (!choice->job.active && !choice->pausing && (!answer || !is_same_path(&answer->path, path)))
        start_job(choice, size_class, message_bytes, path);
    if (answer)
        return answer->chosen;
    const struct auto_answer *nearest = nearest_answer(choice, size_class);
    return nearest ? nearest->chosen : AUTO_CHOICE_NONE;
}

/* ---- weighing ---------------------------------------------------------------------------------------- */

static bool codes(const struct auto_choice *choice, uint32_t candidate)
{
    return choice->candidates[candidate].scheme->coding != NULL;
}

/* To a tenth of a percent, as the planner has it: of what sends as much, the plainer is taken. */
static bool sends_less(const struct lh_plan_choice *one, const struct lh_plan_choice *other)
{
    return round(one->overhead * SHARE_STEPS) < round(other->overhead * SHARE_STEPS);
}

static bool is_possible(const struct auto_job *job, uint32_t candidate)
{
    return job->weighed[candidate].breaks == 0;
}

/* Of those that code or do not, or of all (neither nor): the fastest, and of those about as fast the one
 * that sends least. NONE: none keeps to the limits. */
static uint32_t find_best(const struct auto_choice *choice, bool coded, bool all)
{
    const struct auto_job *job = &choice->job;
    double fastest = INFINITY;
    uint32_t best = NONE;
    for (uint32_t i = 0; i < choice->count; i++)
        if (is_possible(job, i) && (all || codes(choice, i) == coded))
            fastest = fmin(fastest, job->weighed[i].seconds);
    for (uint32_t i = 0; i < choice->count; i++) {
        const struct lh_plan_choice *weighed = &job->weighed[i];
        bool considered = is_possible(job, i) && (all || codes(choice, i) == coded);
        if (considered && weighed->seconds <= fastest * (1 + LH_PLAN_TIE) &&
            (best == NONE || sends_less(weighed, &job->weighed[best])))
            best = i;
    }
    return best;
}

/* Whether a size stays with what it has: nothing is clearly faster, nor sends less and is about as fast.
 * The way back then needs the whole AUTO_CHOICE_BETTER, so it does not flap either way. */
static bool keeps(const struct auto_job *job, uint32_t chosen, uint32_t best)
{
    if (chosen == NONE || !is_possible(job, chosen))
        return false;
    const struct lh_plan_choice *has = &job->weighed[chosen], *may = &job->weighed[best];
    bool cheaper = sends_less(may, has) && may->seconds <= has->seconds * (1 + LH_PLAN_TIE);
    return !cheaper && has->seconds <= may->seconds * (1 + AUTO_CHOICE_BETTER);
}

static double seconds_of(const struct auto_job *job, uint32_t candidate)
{
    double seconds = job->weighed[candidate].seconds;
    return isfinite(seconds) ? seconds : 0;
}

static void finish_job(struct auto_choice *choice)
{
    struct auto_job *job = &choice->job;
    uint32_t best = find_best(choice, false, true);
    job->active = false;
    choice->plans++;
    if (best == NONE)
        best = 0; /* nothing keeps to the limits: the plainest */
    struct auto_answer *answer = &choice->answers[job->size_class];
    if (!answer->known)
        *answer = (struct auto_answer){.known = true, .chosen = NONE};
    if (!keeps(job, answer->chosen, best)) {
        choice->changes += answer->chosen != NONE && answer->chosen != best;
        answer->chosen = best;
    }
    answer->message_bytes = job->question.sizes[0].message_bytes;
    answer->path = job->path;
    answer->seconds = seconds_of(job, answer->chosen);
    answer->other = find_best(choice, !codes(choice, answer->chosen), false);
    answer->other_seconds = answer->other == NONE ? 0 : seconds_of(job, answer->other);
}

bool auto_choice_work(struct auto_choice *choice)
{
    struct auto_job *job = &choice->job;
    if (!job->active)
        return false;
    assert(job->next < choice->count);
    struct lh_plan_choice *weighed = &job->weighed[job->next];
    if (lh_plan_weigh(&job->question, &choice->candidates[job->next].model, choice->chunk_bytes, weighed))
        *weighed = (struct lh_plan_choice){.seconds = INFINITY, .breaks = LH_PLAN_LIMIT_MODEL};
    if (++job->next == choice->count)
        finish_job(choice);
    return job->active;
}

void auto_choice_worked(struct auto_choice *choice, lh_time now, lh_time took_ns)
{
    choice->worked_ns += took_ns;
    if (choice->job.active)
        return;
    choice->pause_until = now + AUTO_CHOICE_PAUSE * choice->worked_ns;
    choice->worked_ns = 0;
}

/* ---- params ---------------------------------------------------------------------------------------- */

#define OVERHEAD_MAX 100.0

static const char *const by_names[] = {
    [LH_PLAN_BY_MEAN] = "mean",
    [LH_PLAN_BY_P50] = "p50",
    [LH_PLAN_BY_P99] = "p99",
    [LH_PLAN_BY_P999] = "p999",
};

static int take_by(const char *value, size_t bytes, enum lh_plan_by *by)
{
    for (unsigned i = 0; i < sizeof by_names / sizeof by_names[0]; i++)
        if (strlen(by_names[i]) == bytes && memcmp(by_names[i], value, bytes) == 0) {
            *by = (enum lh_plan_by)i;
            return 0;
        }
    return lh_fail(LH_EINVAL, "auto: by=%.*s: unknown (use mean, p50, p99 or p999)", (int)bytes, value);
}

static int take_overhead(const char *value, size_t bytes, double *max_overhead)
{
    const char *end = value;
    double number;
    if (lh_decimal_read_ratio(&end, &number) != 0 || end != value + bytes || number > OVERHEAD_MAX)
        return lh_fail(LH_EINVAL, "auto: overhead=%.*s: invalid share of the data (0 to 100, or like 25%%)",
                       (int)bytes, value);
    *max_overhead = number;
    return 0;
}

int auto_params_parse(const char *text, enum lh_plan_by *by, double *max_overhead)
{
    enum lh_plan_by measure = LH_PLAN_BY_MEAN;
    double overhead = INFINITY;
    bool given[2] = {false, false};
    while (*text) { /* each turn takes a word */
        size_t bytes = strcspn(text, ",");
        bool is_by = strncmp(text, "by=", 3) == 0, is_overhead = strncmp(text, "overhead=", 9) == 0;
        int error;
        if (!is_by && !is_overhead)
            return lh_fail(LH_EINVAL,
                           "auto has no parameter \"%.*s\": it has by and overhead, as in "
                           "auto,by=p99,overhead=25%%",
                           (int)bytes, text);
        if (given[is_by])
            return lh_fail(LH_EINVAL, "auto: \"%.*s\" is given for the second time: give it once",
                           (int)bytes, text);
        given[is_by] = true;
        error =
            is_by ? take_by(text + 3, bytes - 3, &measure) : take_overhead(text + 9, bytes - 9, &overhead);
        if (error)
            return error;
        text += bytes;
        if (*text == ',' && text[1] == '\0')
            return lh_fail(LH_EINVAL, "auto: no parameter after the last comma (leave it out)");
        text += *text == ',';
    }
    *by = measure;
    *max_overhead = overhead;
    return 0;
}
