/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/plan.h>
#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/terminal/terminal.h"

/* ---- worst loss ------------------------------------------------------------------------------------ */

/*
 * A plan for the highest of several losses: what it takes where less is lost, and what a plan
 * for that alone would take.
 */

static bool is_same(const struct lh_plan_choice *a, const struct lh_plan_choice *b)
{
    const struct lh_model_scheme *one = &a->scheme, *other = &b->scheme;
    return one->kind == other->kind && one->k == other->k && one->m == other->m &&
           one->spread == other->spread && one->rto_rtts == other->rto_rtts &&
           a->chunk_bytes == b->chunk_bytes;
}

int cli_plan_worst(const struct cli_plan_order *order, struct cli_plan_point *point)
{
    struct cli_plan_worst *worst = &point->worst;
    struct lh_plan_question low = point->question;
    *worst = (struct cli_plan_worst){.any = !isnan(order->loss_low) && point->plan.best != LH_PLAN_NONE};
    if (!worst->any)
        return CLI_PROCEED;
    const struct lh_plan_choice *best = &point->plan.choices[point->plan.best];
    struct lh_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return cli_failed("out of memory");
    low.link.loss = order->loss_low;
    int code = lh_plan_weigh(&low, &best->scheme, best->chunk_bytes, &worst->at_low);
    if (!code)
        code = lh_plan_make(&low, plan);
    if (!code && plan->best != LH_PLAN_NONE) {
        worst->low_best = plan->choices[plan->best];
        worst->other = !is_same(&worst->low_best, best);
        /* It may be that it brings nothing there. */
        if (lh_plan_weigh(&point->question, &worst->low_best.scheme, worst->low_best.chunk_bytes,
                          &worst->low_best_here))
            worst->low_best_here.seconds = INFINITY;
    }
    free(plan);
    return code ? cli_misused("%s", lh_last_error()) : CLI_PROCEED;
}

char *cli_plan_worst_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                            char out[static CLI_PLAN_WORST_MAX])
{
    const struct cli_plan_worst *worst = &point->worst;
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], chunk[LH_FORMAT_MAX], time[LH_FORMAT_MAX], here[LH_FORMAT_MAX];
    double loss = point->question.link.loss;
    int used =
        snprintf(out, CLI_PLAN_WORST_MAX,
                 "Planned for a loss of %g, %s. At a loss of %g%s it takes %s, %.2f times the ideal.\n",
                 loss, order->measured ? "the upper bound of the measurement" : "the highest given",
                 order->loss_low, order->measured ? " as measured" : "",
                 lh_format_time(worst->at_low.seconds, time, sizeof time), worst->at_low.times_ideal);
    if (!worst->other)
        return out;
    used += snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used,
                     "A plan for %g alone would use %s with chunks of %s: %s at that loss", order->loss_low,
                     lh_model_scheme_format(&worst->low_best.scheme, scheme, sizeof scheme),
                     lh_format_size(worst->low_best.chunk_bytes, chunk, sizeof chunk),
                     lh_format_time(worst->low_best.seconds, time, sizeof time));
    if (isfinite(worst->low_best_here.seconds))
        snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used, ", %s at %g.\n",
                 lh_format_time(worst->low_best_here.seconds, here, sizeof here), loss);
    else
        snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used, ", unbounded at %g.\n", loss);
    return out;
}

/* ---- choice ---------------------------------------------------------------------------------------- */

void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question)
{
    *question = order->question;
    question->link.loss = order->losses.ratio[loss];
    if (order->mix)
        return;
    question->sizes[0] = (struct lh_plan_size){order->sizes.bytes[size], 1};
    question->sizes_count = 1;
}

const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point)
{
    const struct lh_plan *plan = &point->plan;
    return &plan->choices[plan->best != LH_PLAN_NONE ? plan->best : plan->unlimited];
}

bool cli_plan_loses_much(const struct cli_plan_point *point)
{
    const struct lh_model_path *link = &point->question.link;
    double lost = link->loss;
    uint32_t packets = (uint32_t)(cli_plan_choice(point)->chunk_bytes / link->mtu_bytes);
    /* What cannot be is refused before. */
    if (!link->loss_of_chunk && lh_model_chunk_loss(link->loss, link->burst_packets, packets, &lost))
        return false;
    return lost > CLI_PLAN_CHUNK_LOSS_SURE;
}

/* ---- deadline -------------------------------------------------------------------------------------- */

/*
 * Messages that may be incomplete: what bounded completion brings, beside the plan for
 * whole ones.
 */

/* Fewer whole messages are as good as none. */
#define HARDLY 1e-3

/* Fills in point->deadline where some may be missing. CLI_PROCEED, or reports the cause. */
static int cli_plan_deadline(const struct cli_plan_order *order, struct cli_plan_point *point)
{
    if (isnan(order->allow_loss))
        return CLI_PROCEED;
    int failed = lh_plan_deadline(&point->question, order->allow_loss, &point->deadline);
    if (failed && failed != -LH_ERANGE)
        return cli_misused("--allow-loss: %s", lh_last_error());
    if (failed) /* the plan was made, so what is out of range is the share */
        point->deadline = (struct lh_plan_deadline){.chunk_bytes = 0};
    return CLI_PROCEED;
}

bool cli_plan_deadline_found(const struct cli_plan_point *point)
{
    return point->deadline.chunk_bytes > 0;
}

/* Beside what the planner chose for whole messages. */
static void compare(const struct cli_plan_point *point, char *out, size_t size)
{
    double times_as_long = cli_plan_choice(point)->times_ideal / point->deadline.times_ideal;
    if (point->plan.best == LH_PLAN_NONE)
        out[0] = '\0';
    else if (times_as_long >= 1 + LH_PLAN_TIE)
        snprintf(out, size, "; the plan takes %.3g times as long", times_as_long);
    else
        snprintf(out, size, "%s", times_as_long > 1 - LH_PLAN_TIE ? ", as the plan" : "");
}

char *cli_plan_deadline_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                               char out[static CLI_PLAN_DEADLINE_MAX])
{
    const struct lh_plan_deadline *deadline = &point->deadline;
    char chunk[LH_FORMAT_MAX], time[LH_FORMAT_MAX], wait[LH_FORMAT_MAX], gained[64];
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], rare[64] = "", whole[32];
    if (!cli_plan_deadline_found(point)) {
        snprintf(out, CLI_PLAN_DEADLINE_MAX,
                 "* bounded would leave more than %.3g %% missing with every code within the limits.\n",
                 100 * order->allow_loss);
        return out;
    }
    if (!isnan(deadline->missing_p999))
        snprintf(rare, sizeof rare, ", at most %.2g %% in 999 messages of 1000",
                 100 * deadline->missing_p999);
    if (deadline->whole < HARDLY)
        snprintf(whole, sizeof whole, "almost no message");
    else
        snprintf(whole, sizeof whole, "%.3g %% of the messages", 100 * deadline->whole);
    compare(point, gained, sizeof gained);
    snprintf(out, CLI_PLAN_DEADLINE_MAX,
             "* With %.3g %% of a message allowed to be missing: %s with chunks of %s, %s, %.2f times the "
             "ideal%s. Its deadline is %s after the ideal time.\n"
             "Missing: %.2g %% in the mean%s; complete: %s.\n",
             100 * order->allow_loss, lh_model_scheme_format(&deadline->scheme, scheme, sizeof scheme),
             lh_format_size(deadline->chunk_bytes, chunk, sizeof chunk),
             lh_format_time(deadline->seconds, time, sizeof time), deadline->times_ideal, gained,
             lh_format_time(deadline->wait_s, wait, sizeof wait), 100 * deadline->missing, rare, whole);
    return out;
}

/* ---- point ----------------------------------------------------------------------------------------- */

/* One size and one loss: what the planner chooses there, and schemes beside it. */

/* The schemes to compare unless some are given: those of the model's table. */
static unsigned list_common(const char *out[static CLI_TEXTS_MAX])
{
    unsigned count = 0;
    for (const struct lh_model_entry *const *e = lh_model_schemes(); *e && count < CLI_TEXTS_MAX; e++)
        if ((*e)->compared)
            out[count++] = (*e)->compared;
    return count;
}

static void add_times(struct lh_model_times *sum, const struct lh_model_times *times, double share)
{
    sum->ideal_s += share * times->ideal_s;
    sum->mean_s += share * times->mean_s;
    sum->p50_s += share * times->p50_s;
    sum->p99_s += share * times->p99_s;
    sum->p999_s += share * times->p999_s;
    sum->paper_mean_s += share * times->paper_mean_s;
    sum->p_fallback += share * times->p_fallback;
    sum->wire_bytes += share * times->wire_bytes;
    sum->overhead_bytes += share * times->overhead_bytes;
    sum->encode_core_s += share * times->encode_core_s;
    sum->encode_cores += share * times->encode_cores;
}

/* 0 or an error of the library. */
static int fill_row(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                    uint64_t chunk_bytes, struct cli_plan_row *row)
{
    double weights = 0;
    struct lh_model_path path = question->link;
    memset(row, 0, sizeof *row);
    int code = lh_plan_weigh(question, scheme, chunk_bytes, &row->choice);
    path.chunk_bytes = chunk_bytes;
    for (unsigned i = 0; i < question->sizes_count; i++)
        weights += question->sizes[i].weight;
    for (unsigned i = 0; !code && i < question->sizes_count; i++) {
        struct lh_model_times times;
        path.message_bytes = question->sizes[i].message_bytes;
        code = lh_model_predict(&path, &row->choice.scheme, &times);
        if (!code)
            add_times(&row->times, &times, question->sizes[i].weight / weights);
    }
    lh_model_scheme_format(&row->choice.scheme, row->scheme, sizeof row->scheme);
    return code;
}

/* Adds a row unless the scheme is there; marks it when it is the planner's. */
static int add_row(struct cli_plan_point *point, const struct lh_model_scheme *scheme, bool best)
{
    struct cli_plan_row *row = &point->rows[point->rows_count];
    if (fill_row(&point->question, scheme, cli_plan_choice(point)->chunk_bytes, row))
        return cli_misused("%s", lh_last_error());
    for (unsigned i = 0; i < point->rows_count; i++)
        if (!strcmp(point->rows[i].scheme, row->scheme)) {
            point->rows[i].best |= best;
            return CLI_PROCEED;
        }
    row->best = best;
    point->rows_count++;
    return CLI_PROCEED;
}

int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point)
{
    struct lh_plan_question *question = &point->question;
    const struct cli_texts *given = &order->schemes;
    const char *common[CLI_TEXTS_MAX];
    unsigned count = given->count ? given->count : list_common(common);
    cli_plan_question(order, size, loss, question);
    if (lh_plan_make(question, &point->plan))
        return cli_misused("%s", lh_last_error());
    point->rows_count = 0;
    int status = CLI_PROCEED;
    for (unsigned i = 0; i < count && status == CLI_PROCEED; i++) {
        const char *text = given->count ? given->text[i] : common[i];
        struct lh_model_scheme scheme = cli_plan_choice(point)->scheme;
        if (strcmp(text, CLI_PLAN_AUTO) != 0 && lh_model_scheme_parse(text, &scheme))
            return cli_misused("--reliability: %s", lh_last_error());
        status = add_row(point, &scheme, false);
    }
    if (status == CLI_PROCEED && point->plan.best != LH_PLAN_NONE)
        status = add_row(point, &point->plan.choices[point->plan.best].scheme, true);
    if (status == CLI_PROCEED && point->plan.runner_up != LH_PLAN_NONE && !given->count)
        status = add_row(point, &point->plan.choices[point->plan.runner_up].scheme, false);
    if (status == CLI_PROCEED)
        status = cli_plan_worst(order, point);
    return status == CLI_PROCEED ? cli_plan_deadline(order, point) : status;
}

/* ---- commands -------------------------------------------------------------------------------------- */

/* The commands that do what was planned. */

#define SLOT_PACKETS_MAX ((uint64_t)1 << 18)
#define MTU_DEFAULT      4096u
/* A slot is free for the next segment a round trip after its last packet; a segment of a code takes two. */
#define SLOTS_PER_WINDOW  2u
#define SLOTS_PER_SEGMENT 2u

struct shape {
    uint64_t window_bytes, slot_bytes;
    uint32_t slots;
};

/* Bytes in flight that fill the link with that choice. */
static uint64_t cli_plan_in_flight(const struct lh_plan_question *question,
                                   const struct lh_plan_choice *choice)
{
    const struct lh_model_path *link = &question->link;
    double bytes = link->bandwidth_bps * link->rtt_s / 8 * (1 + choice->overhead);
    return (uint64_t)fmin(bytes, 1e18);
}

static struct shape shape_of(const struct lh_plan_question *question, const struct lh_plan_choice *choice)
{
    const struct lh_model_scheme *scheme = &choice->scheme;
    bool codes = lh_model_scheme_codes(scheme);
    uint64_t in_flight = cli_plan_in_flight(question, choice);
    uint64_t slot_max = question->link.mtu_bytes * SLOT_PACKETS_MAX;
    struct shape shape = {CLI_WINDOW_DEFAULT, CLI_SLOT_DEFAULT, CLI_SLOTS_DEFAULT};
    if (in_flight > CLI_WINDOW_DEFAULT)
        shape.window_bytes =
            in_flight < CLI_WINDOW_MAX ? (in_flight + CLI_MIB - 1) / CLI_MIB * CLI_MIB : CLI_WINDOW_MAX;
    /* A slot holds a submessage. Bounded, as what follows, by the limits. */
    while (shape.slot_bytes < choice->chunk_bytes * (scheme->k > 0 ? scheme->k : 1) &&
           shape.slot_bytes < CLI_SLOT_MAX)
        shape.slot_bytes *= 2;
    uint64_t needed = shape.window_bytes * SLOTS_PER_WINDOW * (codes ? SLOTS_PER_SEGMENT : 1);
    while (shape.slots * shape.slot_bytes < needed && shape.slots < CLI_SLOTS_MAX)
        shape.slots *= 2;
    while (shape.slots * shape.slot_bytes < needed && 2 * shape.slot_bytes <= CLI_SLOT_MAX &&
           2 * shape.slot_bytes <= slot_max)
        shape.slot_bytes *= 2;
    return shape;
}

static size_t add(char *out, size_t used, const char *option, uint64_t value, const char *unit)
{
    if (used >= CLI_PLAN_COMMAND_MAX)
        return used;
    return used + (size_t)snprintf(out + used, CLI_PLAN_COMMAND_MAX - used, " --%s %" PRIu64 "%s", option,
                                   value, unit);
}

/* What both sides need. Sizes are written exactly. */
static size_t add_shape(const struct lh_plan_question *question, const struct lh_plan_choice *choice,
                        char *out, size_t used)
{
    struct shape shape = shape_of(question, choice);
    if (question->link.mtu_bytes != MTU_DEFAULT)
        used = add(out, used, "mtu", question->link.mtu_bytes, "");
    bool whole_kib = choice->chunk_bytes % 1024 == 0;
    used = add(out, used, "chunk", whole_kib ? choice->chunk_bytes / 1024 : choice->chunk_bytes,
               whole_kib ? "KiB" : "B");
    if (shape.window_bytes != CLI_WINDOW_DEFAULT)
        used = add(out, used, "window", shape.window_bytes / CLI_MIB, "MiB");
    if (shape.slots != CLI_SLOTS_DEFAULT)
        used = add(out, used, "slots", shape.slots, "");
    if (shape.slot_bytes != CLI_SLOT_DEFAULT)
        used = add(out, used, "slot-size", shape.slot_bytes / CLI_MIB, "MiB");
    return used;
}

bool cli_plan_commands(const struct cli_plan_point *point, struct cli_plan_commands *commands)
{
    const struct lh_plan *plan = &point->plan;
    const struct lh_plan_choice *best = plan->best == LH_PLAN_NONE ? NULL : &plan->choices[plan->best];
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    /* The model also plans what the protocol does not do. */
    uint64_t packets = best ? best->chunk_bytes / point->question.link.mtu_bytes : 0;
    if (!best || (packets & (packets - 1)) || best->chunk_bytes > CLI_SLOT_MAX ||
        lh_reliability_check(lh_model_scheme_format(&best->scheme, scheme, sizeof scheme)))
        return false;
    int used = snprintf(commands->recv, sizeof commands->recv, "longhaul recv --reliability %s", scheme);
    size_t end = add_shape(&point->question, best, commands->recv, (size_t)used);
    used = snprintf(commands->send, sizeof commands->send, "longhaul send FILE HOST");
    return add_shape(&point->question, best, commands->send, (size_t)used) < sizeof commands->send &&
           end < sizeof commands->recv;
}

char *cli_plan_window_format(const struct cli_plan_point *point, char out[static CLI_PLAN_COMMAND_MAX])
{
    const struct lh_plan *plan = &point->plan;
    const struct lh_plan_choice *best = plan->best == LH_PLAN_NONE ? NULL : &plan->choices[plan->best];
    char holds[LH_FORMAT_MAX];
    uint64_t bytes = best ? cli_plan_in_flight(&point->question, best) : 0;
    *out = 0;
    if (bytes > CLI_WINDOW_DEFAULT)
        snprintf(out, CLI_PLAN_COMMAND_MAX, "The link needs %s in flight; the default window is 64MiB%s.\n",
                 lh_format_size(bytes, holds, sizeof holds),
                 bytes > CLI_WINDOW_MAX ? ", the maximum 64GiB" : "");
    return out;
}
