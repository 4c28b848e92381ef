/*
 * commands.c - the commands that do what was planned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/commands.h"

#include "cli/options/limits.h"
#include "cli/plan/choice.h"

#include <longhaul/connection.h>
#include <longhaul/units.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SLOT_PACKETS_MAX ((uint64_t)1 << 18)
#define MTU_DEFAULT      4096u
/* A slot is free for the next segment a round trip after its last packet; a segment of a code takes two. */
#define SLOTS_PER_WINDOW  2u
#define SLOTS_PER_SEGMENT 2u

struct shape {
    uint64_t window_bytes, slot_bytes;
    uint32_t slots;
};

uint64_t cli_plan_in_flight(const struct lh_plan_question *question, const struct lh_plan_choice *choice)
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
    if (!best || (best->chunk_bytes & (best->chunk_bytes - 1)) || best->chunk_bytes > CLI_SLOT_MAX ||
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
