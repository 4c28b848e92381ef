/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/overdue.h"

#include "base/min_max.h"

#define TICK_NS   1u    /* clocks show whole nanoseconds */
#define SMALL_MAX 4096u /* no longer than this a message, or a buffer, has no deadline */

/* Times of the host's clock. */
struct overdue_receive {
    bool over;
    bool counts; /* it succeeded, and nobody lied about it */
    uint32_t event;
    uint64_t bytes;
    lh_time started_ns;
    lh_time ended_ns;
};

/* A gap beyond the last place makes that one longer. */
static void add_gap(struct gaps *gaps, lh_time from_ns, lh_time to_ns)
{
    bool goes_on = gaps->count > 0 && gaps->of[gaps->count - 1].to_ns == from_ns;
    if (goes_on || gaps->count == GAPS_MAX)
        gaps->of[gaps->count - 1].to_ns = to_ns;
    else
        gaps->of[gaps->count++] = (struct gap){from_ns, to_ns};
}

void overdue_on_moment(struct world *world)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++) {
        struct end *end = world_end(world, i);
        if (!end->open)
            continue;
        struct gaps *gaps = &end->gaps;
        lh_time now = sim_world_host_now(world->sim, end->host);
        if (!gaps->ran)
            add_gap(gaps, gaps->seen_ns, now);
        gaps->seen_ns = now;
        gaps->ran = host_runs(world, end->host) && world_turns(end)->stalled_until_ns[0] <= world->now;
    }
}

void overdue_on_jump(struct world *world, uint32_t host)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        if (world_end(world, i)->host == host)
            world_end(world, i)->gaps.ran = false;
}

/* What falls into a gap is due at its end. */
static lh_time behind_gaps(const struct gaps *gaps, lh_time due_ns, lh_time now)
{
    for (uint32_t i = 0; i < gaps->count; i++)
        if (gaps->of[i].from_ns <= due_ns && gaps->of[i].to_ns > due_ns)
            due_ns = gaps->of[i].to_ns;
    return !gaps->ran && gaps->seen_ns <= due_ns && now > due_ns ? now : due_ns;
}

static void check(struct world *world, const struct end *end, const struct overdue_receive *receive)
{
    const struct plan_pair *pair = world->pairs[end->pair].plan;
    uint32_t side = end == &world->pairs[end->pair].ends[1];
    lh_time deadline_ns = plan_has_deadline(world->plan, pair, side) ? plan_deadline_ns(pair, side) : 0;
    if (deadline_ns == 0 || !receive->counts || receive->bytes <= SMALL_MAX)
        return;
    lh_time due_ns =
        behind_gaps(&end->gaps, lh_max(receive->started_ns, end->receives.over_ns) + deadline_ns,
                    sim_world_host_now(world->sim, end->host));
    lh_time ended_ns = receive->ended_ns;
    if (world_sings_once(world, CANARY_overdue))
        ended_ns = due_ns + TICK_NS + 1;
    if (ended_ns > due_ns + TICK_NS)
        world_fail(world, "deadline", "message %u was received at %llu, and its deadline was at %llu",
                   receive->event, (unsigned long long)ended_ns, (unsigned long long)due_ns);
}

void overdue_on_posted(struct world *world, struct end *end, uint32_t event, uint64_t bytes)
{
    struct overdue_list *list = &end->receives;
    if (!list->of)
        list->of = world_memory(world, world->plan->event_count * sizeof *list->of);
    list->of[list->count++] = (struct overdue_receive){.event = event, .bytes = bytes};
}

void overdue_on_over(struct world *world, struct end *end, uint32_t event, const struct lh_result *result)
{
    struct overdue_list *list = &end->receives;
    for (uint32_t i = list->over; i < list->count; i++)
        if (list->of[i].event == event && !list->of[i].over) {
            list->of[i].over = true;
            list->of[i].counts = result && result->error == 0 && world->pairs[end->pair].trusted;
            list->of[i].started_ns = result ? result->started_ns : 0;
            list->of[i].ended_ns = result ? result->ended_ns : sim_world_host_now(world->sim, end->host);
        }
    for (; list->over < list->count && list->of[list->over].over; list->over++) {
        check(world, end, &list->of[list->over]);
        list->over_ns = lh_max(list->over_ns, list->of[list->over].ended_ns);
    }
}

void overdue_on_closed(struct end *end)
{
    end->receives.count = end->receives.over = 0;
    end->receives.over_ns = 0;
}
