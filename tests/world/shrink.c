/*
 * shrink.c - delta debugging (Zeller and Hildebrandt 2002) over the events and features of a plan: leaves
 * out halves, then quarters and so on, down to single ones, until nothing more can go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "world/shrink.h"

#include <string.h>

#include "world/batch.h"

#define ITEMS_MAX (PLAN_EVENTS_MAX + FEATURE_COUNT)

struct shrinker {
    struct plan *plan;
    enum world_canary canary;
    uint32_t tries_left;
    char checker[WORLD_CHECKER_MAX];
    struct world_report *report;
    uint32_t items[ITEMS_MAX]; /* still in: an event, or PLAN_EVENTS_MAX + feature */
    uint32_t count;
};

static void list_items(struct shrinker *s)
{
    s->count = 0;
    for (uint32_t i = 0; i < s->plan->event_count; i++)
        if (!s->plan->events[i].off)
            s->items[s->count++] = i;
    for (uint32_t f = 0; f < FEATURE_COUNT; f++)
        if (plan_has(s->plan, (enum plan_feature)f))
            s->items[s->count++] = PLAN_EVENTS_MAX + f;
}

static void leave_out(struct plan *plan, uint32_t item)
{
    if (item < PLAN_EVENTS_MAX)
        plan->events[item].off = true;
    else
        plan->features &= ~(1u << (item - PLAN_EVENTS_MAX));
}

/* Whether it still fails without items first … first + count - 1; then they stay out. */
static bool fails_without(struct shrinker *s, uint32_t first, uint32_t count)
{
    struct plan tried = *s->plan;
    struct world_report report;
    for (uint32_t i = first; i < first + count; i++)
        leave_out(&tried, s->items[i]);
    s->tries_left--;
    batch_run_alone(&tried, s->canary, &report);
    if (strcmp(report.checker, s->checker) != 0)
        return false;
    *s->plan = tried;
    *s->report = report;
    return true;
}

/* One pass with parts of that size; whether anything could go. */
static bool pass(struct shrinker *s, uint32_t size)
{
    bool any = false;
    list_items(s);
    for (uint32_t first = s->count; first > 0 && s->tries_left > 0;) {
        uint32_t count = first < size ? first : size;
        first -= count;
        any |= fails_without(s, first, count);
    }
    return any;
}

uint32_t shrink_plan(struct plan *plan, enum world_canary canary, uint32_t tries,
                     struct world_report *report)
{
    struct shrinker s = {.plan = plan, .canary = canary, .tries_left = tries, .report = report};
    memcpy(s.checker, report->checker, sizeof s.checker);
    list_items(&s);
    for (uint32_t size = s.count / 2; size > 0 && s.tries_left > 0; size /= 2)
        pass(&s, size);
    while (s.tries_left > 0 && pass(&s, 1))
        continue;
    return tries - s.tries_left;
}
