/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/congestion_table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "congestion/controllers.h"
#include "congestion/dcqcn.h"
#include "congestion/eqds.h"
#include "wire/wire_numbers.h"

#define NAME_SHOWN 32 /* bytes of an unknown name in a message */

/* Every controller, in the order of messages and --help. X(controller, its number on the wire: whatever the
 * order). */
#define CONTROLLERS(X)                                                                                     \
    X(fixed, WIRE_FIXED)                                                                                   \
    X(bbr, WIRE_BBR)                                                                                       \
    X(swift, WIRE_SWIFT)                                                                                   \
    X(timely, WIRE_TIMELY)                                                                                 \
    X(dcqcn, WIRE_DCQCN)                                                                                   \
    X(eqds, WIRE_EQDS)

#define POINTER(controller, number) &controller##_congestion,
#define NUMBER(controller, number)  number,

const struct lh_congestion *const *congestion_built_in(void)
{
    static const struct lh_congestion *const all[] = {CONTROLLERS(POINTER) NULL};
    return all;
}

static const uint8_t numbers[] = {CONTROLLERS(NUMBER)}; /* of congestion_built_in(), in its order */

/* By the name: the simulator's library has a copy of each. */
static bool is_same(const struct lh_congestion *one, const struct lh_congestion *other)
{
    return strcmp(one->name, other->name) == 0;
}

uint8_t congestion_wire_number(const struct lh_congestion *controller)
{
    const struct lh_congestion *const *all = congestion_built_in();
    for (size_t i = 0; all[i]; i++)
        if (is_same(all[i], controller))
            return numbers[i];
    return 0;
}

const struct lh_congestion *congestion_of_wire_number(uint8_t number)
{
    const struct lh_congestion *const *all = congestion_built_in();
    for (size_t i = 0; all[i]; i++)
        if (numbers[i] == number)
            return all[i];
    return NULL;
}

static int fail_unknown(const char *name, size_t bytes)
{
    char known[256] = "";
    size_t used = 0;
    for (const struct lh_congestion *const *c = lh_congestions(); *c && used < sizeof known; c++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", (*c)->name);
    int shown = bytes < NAME_SHOWN ? (int)bytes : NAME_SHOWN;
    return lh_fail(LH_EINVAL, "unknown congestion controller \"%.*s\" (use one of %s)", shown, name, known);
}

int congestion_choice_parse(const char *text, struct congestion_choice *choice)
{
    size_t bytes = strcspn(text, ",");
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++) {
        if (strlen((*c)->name) != bytes || memcmp((*c)->name, text, bytes) != 0)
            continue;
        struct congestion_choice parsed = {.controller = *c};
        int failed = (*c)->parse(text + bytes + (text[bytes] == ','), parsed.params);
        if (failed == 0)
            *choice = parsed;
        return failed;
    }
    return fail_unknown(text, bytes);
}

bool congestion_is_fixed(const struct congestion_choice *choice)
{
    return is_same(choice->controller, &fixed_congestion);
}

int lh_congestion_check(const char *text)
{
    struct congestion_choice choice;
    return congestion_choice_parse(text, &choice);
}

/* ---- fixed ----------------------------------------------------------------------------------------- */

struct fixed {
    uint64_t given_bps; /* 0: nothing was told */
    uint64_t rate_bps;
    lh_time rtt_minimum_ns; /* 0: unknown */
};

static int fixed_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    (void)params;
    if (*text == '\0')
        return 0;
    return lh_fail(LH_EINVAL, "fixed has no parameter \"%s\" (its rate is the link's)", text);
}

static void fixed_start(void *state, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params, (void)now;
    uint64_t rate_bps = path->rate_bps != 0 ? path->rate_bps : LH_RATE_NONE;
    *(struct fixed *)state = (struct fixed){
        .given_bps = path->rate_bps,
        .rate_bps = rate_bps < path->rate_max_bps ? rate_bps : path->rate_max_bps,
        .rtt_minimum_ns = path->rtt_ns,
    };
}

static void fixed_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct fixed *fixed = state;
    if (feedback->rtt_ns != 0)
        fixed->rtt_minimum_ns = fixed->rtt_minimum_ns == 0
                                    ? feedback->rtt_ns
                                    : lh_earlier(fixed->rtt_minimum_ns, feedback->rtt_ns);
}

static void fixed_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static void fixed_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    (void)now;
    *decision = (struct lh_congestion_decision){
        .rate_bps = ((const struct fixed *)state)->rate_bps,
        .window_bytes = UINT64_MAX,
        .total_bytes = UINT64_MAX,
        .next_ns = LH_TIME_NEVER,
    };
}

static void fixed_view(const void *state, struct lh_congestion_view *view)
{
    const struct fixed *fixed = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = fixed->given_bps,
        .rtt_minimum_ns = fixed->rtt_minimum_ns,
        .state = "fixed",
    };
}

const struct lh_congestion fixed_congestion = {
    .name = "fixed",
    .help = "no parameters; the given rate, without control",
    .parse = fixed_parse,
    .state_bytes = sizeof(struct fixed),
    .start = fixed_start,
    .on_feedback = fixed_on_feedback,
    .on_timer = fixed_on_timer,
    .decide = fixed_decide,
    .view = fixed_view,
};
