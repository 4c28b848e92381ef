/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/faults.h"

#include "base/min_max.h"
#include "world/checks.h"
#include "world/ends.h"
#include "world/engines.h"
#include "world/group/ranks.h"
#include "world/hostile.h"
#include "world/memory.h"
#include "world/overdue.h"
#include "world/remote.h"
#include "world/switches.h"
#include "world/talk.h"

#define PACKETS_A_SPAN 24u /* of noise or replays, at most */

/* ---- in order ---------------------------------------------------------------------------------------- */

static bool is_fault(const struct plan_event *event)
{
    return !event->off &&
           (!plan_is_use(event->kind) || event->kind == EVENT_cancel || event->kind == EVENT_close ||
            event->kind == EVENT_revoke || event->kind == EVENT_giveup);
}

static lh_time moment_ns(const struct world *world, uint16_t moment)
{
    const struct plan_event *event = &world->plan->events[moment / 2];
    lh_time at_ns = event->at_ns + (moment % 2 ? event->span_ns : 0);
    return at_ns < world->plan->heal_ns ? at_ns : world->plan->heal_ns;
}

static void insert(struct world *world, uint16_t moment)
{
    uint32_t place = world->moment_count++;
    while (place > 0 && moment_ns(world, world->moments[place - 1]) > moment_ns(world, moment)) {
        world->moments[place] = world->moments[place - 1];
        place--;
    }
    world->moments[place] = moment;
}

/* ---- links ------------------------------------------------------------------------------------------- */

/* A direction is cut while any event wants it to be. */
static void set_cuts(struct world *world)
{
    bool cut[PLAN_HOSTS_MAX][PLAN_HOSTS_MAX] = {{false}};
    for (uint32_t i = 0; i < world->plan->event_count; i++) {
        const struct plan_event *event = &world->plan->events[i];
        const struct running *running = &world->running[i];
        if (!running->on)
            continue;
        if (event->kind == EVENT_cut)
            cut[event->host][event->peer] = true;
        if (event->kind == EVENT_flap && running->cut)
            cut[event->host][event->peer] = cut[event->peer][event->host] = true;
    }
    for (uint32_t from = 0; from < world->plan->hosts; from++)
        for (uint32_t to = 0; to < world->plan->hosts; to++)
            sim_world_cut(world->sim, from, to, cut[from][to] || ranks_are_cut(world, from, to));
}

static void flap(struct world *world, const struct plan_event *event, struct running *running)
{
    running->cut = !running->cut;
    running->next_ns = world->now + 1 + lh_prng_below(&running->prng, event->span_ns / 4 + 1);
    set_cuts(world);
}

static void set_direction(struct world *world, const struct plan_event *event, bool changed)
{
    struct lh_link_spec link =
        changed ? plan_changed_link(world->plan, event) : plan_link(world->plan, event->host, event->peer);
    sim_world_set_direction(world->sim, event->host, event->peer, &link);
}

/* ---- hosts ------------------------------------------------------------------------------------------- */

static void touch_host(struct world *world, uint32_t host)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        if (world_end(world, i)->host == host)
            world_touch(world, world_end(world, i));
    ranks_on_healed(world);
}

static void lose_ends(struct world *world, uint32_t host, bool for_ever)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++) {
        struct end *end = world_end(world, i);
        if (end->host != host)
            continue;
        end_close(world, end, true);
        world->pairs[i / 2].retry_ns = LH_TIME_NEVER; /* until the host is back */
        world->pairs[i / 2].closed |= for_ever;
    }
    engine_end(world, host);
}

static void crash(struct world *world, const struct plan_event *event)
{
    struct host *host = &world->hosts[event->host];
    lh_time until_ns = event->at_ns + event->span_ns;
    if (until_ns > world->plan->heal_ns)
        until_ns = world->plan->heal_ns;
    if (until_ns > host->down_until_ns)
        host->down_until_ns = until_ns;
    lose_ends(world, event->host, false);
}

/* The programs on both sides notice, by their own means, and meet again. */
static void meet_again(struct world *world, struct pair *pair)
{
    bool both_run = world->hosts[pair->plan->host[0]].down_until_ns == 0 &&
                    world->hosts[pair->plan->host[1]].down_until_ns == 0;
    if (pair->up || pair->closed || !both_run)
        return;
    end_close(world, &pair->ends[0], false);
    end_close(world, &pair->ends[1], false);
    pair_open(world, pair);
}

static void come_back(struct world *world, const struct plan_event *event)
{
    struct host *host = &world->hosts[event->host];
    if (host->down_until_ns > world->now && !world->healed)
        return; /* it crashed again meanwhile */
    host->down_until_ns = 0;
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        struct pair *pair = &world->pairs[i];
        if (pair->plan->host[0] == event->host || pair->plan->host[1] == event->host)
            meet_again(world, pair);
    }
}

static void pause(struct world *world, const struct plan_event *event)
{
    lh_time until_ns = event->at_ns + event->span_ns;
    struct host *host = &world->hosts[event->host];
    if (until_ns > world->plan->heal_ns)
        until_ns = world->plan->heal_ns;
    if (until_ns > host->paused_until_ns)
        host->paused_until_ns = until_ns;
}

static void stall(struct world *world, const struct plan_event *event)
{
    struct end *end = &world->pairs[event->pair].ends[event->side];
    lh_time until_ns = event->at_ns + event->span_ns;
    struct turns *turns = world_turns(end);
    if (end->open && turns->workers > 1)
        turns->stalled_until_ns[event->seed % turns->workers] =
            until_ns < world->plan->heal_ns ? until_ns : world->plan->heal_ns;
}

static void cancel(struct world *world, const struct plan_event *event)
{
    if (world->plan->events[event->target].kind == EVENT_message)
        talk_cancel(world, event);
    else
        remote_cancel(world, event);
}

static void close_end(struct world *world, const struct plan_event *event)
{
    struct pair *pair = &world->pairs[event->pair];
    if (!host_runs(world, pair->ends[event->side].host))
        return;
    pair->closed = true;
    pair->retry_ns = LH_TIME_NEVER;
    end_close(world, &pair->ends[event->side], false);
}

/* Both ends meet again when the event ends. */
static void renew(struct world *world, const struct plan_event *event)
{
    struct pair *pair = &world->pairs[event->pair];
    if (pair->up && host_runs(world, pair->ends[event->side].host))
        end_close(world, &pair->ends[event->side], false);
}

/* ---- beginning and ending ---------------------------------------------------------------------------- */

static bool looks_at_packets(enum plan_event_kind kind)
{
    return kind == EVENT_control || kind == EVENT_hold || kind == EVENT_mutate || kind == EVENT_forge ||
           kind == EVENT_lie || kind == EVENT_flood || kind == EVENT_narrow;
}

static void begin(struct world *world, const struct plan_event *event, struct running *running)
{
    running->on = true;
    running->next_ns = LH_TIME_NEVER;
    running->heard = (struct control_feedback){0};
    lh_prng_seed(&running->prng, event->seed);
    world->taps_on += looks_at_packets(event->kind);
    switch (event->kind) {
    case EVENT_cancel:
        cancel(world, event);
        break;
    case EVENT_revoke:
        remote_revoke(world, event);
        break;
    case EVENT_giveup:
        ranks_give_up(world, event);
        break;
    case EVENT_close:
        close_end(world, event);
        break;
    case EVENT_cut:
        set_cuts(world);
        break;
    case EVENT_change:
        set_direction(world, event, true);
        break;
    case EVENT_jump:
        sim_world_jump_clock(world->sim, event->host, event->delay_ns);
        overdue_on_jump(world, event->host);
        touch_host(world, event->host);
        break;
    case EVENT_pause:
        pause(world, event);
        break;
    case EVENT_stall:
        stall(world, event);
        break;
    case EVENT_crash:
        crash(world, event);
        break;
    case EVENT_renew:
        renew(world, event);
        break;
    case EVENT_gone:
        if (event->delay_ns > 0) {
            ranks_die_later(world, event);
            break;
        }
        lose_ends(world, event->host, true);
        ranks_die(world, event->host);
        break;
    case EVENT_memory:
        world->memory_refused = true;
        memory_refuse(event->chance, event->seed);
        break;
    case EVENT_flap:
    case EVENT_noise:
    case EVENT_replay:
        running->next_ns = world->now;
        break;
    default:
        break;
    }
}

static void end(struct world *world, const struct plan_event *event, struct running *running)
{
    if (!running->on)
        return;
    running->on = false;
    running->next_ns = LH_TIME_NEVER;
    world->taps_on -= looks_at_packets(event->kind);
    if (event->kind == EVENT_cut || event->kind == EVENT_flap)
        set_cuts(world);
    else if (event->kind == EVENT_change)
        set_direction(world, event, false);
    else if (event->kind == EVENT_memory)
        memory_refuse(0, 0);
    else if (event->kind == EVENT_crash)
        come_back(world, event);
    else if (event->kind == EVENT_renew)
        meet_again(world, &world->pairs[event->pair]);
}

static void go_on(struct world *world, const struct plan_event *event, struct running *running)
{
    if (event->kind == EVENT_flap) {
        flap(world, event, running);
        return;
    }
    if (event->kind == EVENT_noise)
        hostile_invent(world, event, &running->prng);
    else
        hostile_replay(world, &running->prng);
    running->next_ns =
        world->now + 1 + lh_prng_below(&running->prng, 2 * event->span_ns / PACKETS_A_SPAN + 1);
}

lh_time faults_act(struct world *world)
{
    lh_time next = LH_TIME_NEVER;
    while (world->moment_next < world->moment_count &&
           moment_ns(world, world->moments[world->moment_next]) <= world->now) {
        uint16_t moment = world->moments[world->moment_next++];
        const struct plan_event *event = &world->plan->events[moment / 2];
        world_note(world, moment, "%s %u %s", plan_event_name(event->kind), moment / 2,
                   moment % 2 ? "ends" : "begins");
        if (moment % 2)
            end(world, event, &world->running[moment / 2]);
        else
            begin(world, event, &world->running[moment / 2]);
    }
    if (world->moment_next < world->moment_count)
        next = moment_ns(world, world->moments[world->moment_next]);
    for (uint32_t i = 0; i < world->plan->event_count; i++) {
        struct running *running = &world->running[i];
        if (!running->on || running->next_ns == LH_TIME_NEVER)
            continue;
        if (running->next_ns <= world->now)
            go_on(world, &world->plan->events[i], running);
        lh_keep_earlier(&next, running->next_ns);
    }
    return next;
}

/* ---- packets ----------------------------------------------------------------------------------------- */

/* False: it is lost. */
static bool pass_fault(struct world *world, const struct plan_event *event, struct running *running,
                       struct sim_datagram *datagram)
{
    if (datagram->from != event->host || datagram->to != event->peer ||
        !lh_prng_chance(&running->prng, event->chance))
        return true;
    if (event->kind == EVENT_control)
        return !datagram->control;
    if (event->kind == EVENT_narrow)
        return datagram->bytes <= event->bytes;
    if (event->kind == EVENT_hold) {
        struct sim_datagram late = *datagram;
        /* Nothing is faster than light. */
        late.at_ns += world->plan->link[late.from][late.to].delay_ns + switches_min_ns(world->plan);
        late.at_ns += 1 + lh_prng_below(&running->prng, event->delay_ns);
        return sim_world_inject(world->sim, &late) != 0;
    }
    if (event->kind == EVENT_lie)
        return hostile_lie(world, event, running, datagram);
    if (event->kind == EVENT_flood)
        hostile_flood(world, &running->prng, datagram);
    else
        hostile_mutate(world, event, &running->prng, datagram);
    return true;
}

static bool on_sent(void *context, struct sim_datagram *datagram)
{
    struct world *world = context;
    if (world->hosts[datagram->from].muted)
        return false;
    check_sent(world, datagram);
    hostile_overhear(world, datagram);
    bool passes = true;
    for (uint32_t i = 0; world->taps_on > 0 && passes && i < world->plan->event_count; i++)
        if (world->running[i].on && looks_at_packets(world->plan->events[i].kind))
            passes = pass_fault(world, &world->plan->events[i], &world->running[i], datagram);
    if (world->text)
        world_say(world, "%u:%u -> %u:%u %s %u bytes%s", datagram->from, datagram->source_port,
                  datagram->to, datagram->destination_port, datagram->control ? "control" : "data",
                  datagram->bytes, passes ? "" : ", tapped");
    return passes;
}

static void on_arrival(void *context, const struct sim_datagram *datagram, enum sim_arrival arrival)
{
    struct world *world = context;
    if (arrival == SIM_DELIVERED)
        ends_on_arrival(world, datagram->to, datagram->destination_port, datagram->at_ns);
    if (arrival == SIM_DELIVERED)
        ranks_on_arrival(world, datagram->to);
    world->overfull |= arrival == SIM_OVERFLOWED;
    if (world->text)
        fprintf(world->text, "%12llu   %u:%u <- %u:%u %u bytes%s\n", (unsigned long long)datagram->at_ns,
                datagram->to, datagram->destination_port, datagram->from, datagram->source_port,
                datagram->bytes,
                arrival == SIM_DELIVERED    ? ""
                : arrival == SIM_OVERFLOWED ? ", queue full"
                                            : ", nobody there");
}

static uint32_t poll_share(void *context, uint32_t host, uint16_t port, uint32_t count)
{
    const struct world *world = context;
    (void)host;
    (void)port;
    return count < world->plan->poll_share ? count : world->plan->poll_share;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

void faults_prepare(struct world *world)
{
    const struct plan *plan = world->plan;
    bool replays = plan_any(plan, EVENT_replay);
    for (uint32_t from = 0; from < plan->hosts; from++) {
        if (plan_has(plan, FEATURE_skew))
            sim_world_set_clock(world->sim, from, &plan->clock[from]);
        for (uint32_t to = 0; to < plan->hosts; to++) {
            struct lh_link_spec link = plan_link(plan, from, to);
            sim_world_set_direction(world->sim, from, to, &link);
        }
    }
    for (uint16_t i = 0; i < plan->event_count; i++) {
        if (!is_fault(&plan->events[i]))
            continue;
        insert(world, (uint16_t)(2 * i));
        insert(world, (uint16_t)(2 * i + 1));
    }
    if (replays) {
        world->kept.packets = world_memory(world, KEPT_PACKETS * sizeof *world->kept.packets);
        for (uint32_t i = 0; i < KEPT_PACKETS; i++)
            world->kept.packets[i].head.bytes = 0;
    }
    sim_world_tap(world->sim, on_sent, world);
    sim_world_watch(world->sim, on_arrival, world);
    if (plan_has(plan, FEATURE_share))
        sim_world_poll_share(world->sim, poll_share, world);
}

void faults_heal(struct world *world)
{
    const struct plan *plan = world->plan;
    world->healed = true;
    memory_refuse(0, 0);
    switches_heal(world);
    for (uint32_t i = 0; i < PLAN_HOSTS_MAX; i++)
        world->hosts[i].down_until_ns = world->hosts[i].paused_until_ns = 0;
    for (uint32_t i = 0; i < plan->event_count; i++)
        end(world, &plan->events[i], &world->running[i]);
    for (uint32_t from = 0; from < plan->hosts; from++)
        for (uint32_t to = 0; to < plan->hosts; to++) {
            struct lh_link_spec link = plan_clean_link(plan, from, to);
            sim_world_set_direction(world->sim, from, to, &link);
            sim_world_cut(world->sim, from, to, world_sings(world, CANARY_cut));
        }
    for (uint32_t i = 0; i < 2 * plan->pair_count; i++)
        world_touch(world, world_end(world, i));
    ranks_on_healed(world);
}
