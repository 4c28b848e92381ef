/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/plan.h>

#include <longhaul/units.h>

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "model/loss.h"
#include "plan/plan_list.h"
#include "schemes/scheme_table.h"

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
static void say_scheme(struct text *text, const struct lh_plan_choice *choice)
{
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], chunk[LH_FORMAT_MAX];
    say(text, "%s with chunks of %s", lh_model_scheme_format(&choice->scheme, scheme, sizeof scheme),
        lh_format_size(choice->chunk_bytes, chunk, sizeof chunk));
}

static void say_cost(struct text *text, const struct lh_plan_choice *choice)
{
    say(text, "sends %.1f %% more than the messages", 100 * choice->overhead);
    if (choice->cores > 0)
        say(text, ", keeps %.1f cores encoding at line rate", choice->cores);
}

static void say_best(struct text *text, const struct lh_plan_question *question,
                     const struct lh_plan_choice *best)
{
    char time[LH_FORMAT_MAX];
    say(text, "Use ");
    say_scheme(text, best);
    say(text, ": %s %s, %.2f times the ideal.\nIt ", measure_name(question->by),
        lh_format_time(best->seconds, time, sizeof time), best->times_ideal);
    say_cost(text, best);
    if (best->cores > 0 && best->p_fallback >= 1e-12)
        say(text, ", and requests repairs in %.*g %% of the messages", best->p_fallback < 0.99 ? 2 : 3,
            100 * best->p_fallback); /* two digits of 99.9 would be 1e+02 */
    say(text, ".\n");
}

static void say_why(struct text *text, const struct lh_plan_question *question,
                    const struct lh_plan_choice *best, const struct lh_plan_choice *unlimited)
{
    struct facts facts = facts_of(question, best->chunk_bytes);
    bool codes = best->cores > 0;
    say(text, "Why: ");
    if (facts.loses <= 0)
        say(text, "nothing is lost, so nothing is to be gained by sending more.\n");
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

static void say_runner_up(struct text *text, const struct lh_plan_choice *best,
                          const struct lh_plan_choice *second)
{
    char time[LH_FORMAT_MAX];
    double ratio = second->times_ideal / best->times_ideal;
    say(text, "Next: ");
    say_scheme(text, second);
    say(text, ", %s", lh_format_time(second->seconds, time, sizeof time));
    if (ratio >= 1.995)
        say(text, ", takes %.3g times as long; it ", ratio);
    else if (fabs(ratio - 1) < 0.0005)
        say(text, ", as fast; it ");
    else
        say(text, ", %.1f %% %s; it ", 100 * fabs(ratio - 1),
            ratio > 1 ? "slower" : "faster, yet counted as a tie");
    say_cost(text, second);
    say(text, ".\n");
}

/* What the limits cost; chosen is NULL when nothing keeps to them. */
static void say_limits(struct text *text, const struct lh_plan_choice *chosen,
                       const struct lh_plan_choice *unlimited)
{
    char time[LH_FORMAT_MAX];
    if (unlimited->breaks == 0)
        return;
    say(text, chosen ? "Without the limit of %s, " : "Nothing keeps to the limit of %s. Without it, ",
        unlimited->breaks == LH_PLAN_LIMIT_OVERHEAD ? "overhead"
        : unlimited->breaks == LH_PLAN_LIMIT_CORES  ? "cores"
                                                    : "overhead and that of cores");
    say_scheme(text, unlimited);
    say(text, " would take %s, %.2f times the ideal; it ",
        lh_format_time(unlimited->seconds, time, sizeof time), unlimited->times_ideal);
    say_cost(text, unlimited);
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
        say_best(&text, question, best);
        say_why(&text, question, best, &plan->choices[plan->unlimited]);
        if (plan->runner_up != LH_PLAN_NONE)
            say_runner_up(&text, best, &plan->choices[plan->runner_up]);
    }
    say_limits(&text, best, &plan->choices[plan->unlimited]);
    return out;
}
