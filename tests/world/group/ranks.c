/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/group/ranks.h"

#include <string.h>

#include "base/min_max.h"
#include "base/prng.h"
#include "collective/choose/schedule_choice.h"
#include "group/group.h"
#include "world/group/outcome.h"
#include "world/memory.h"

#define ROUNDS_MAX     100000u /* of all ranks at one moment */
#define HEALED_BPS     10000000000u
#define BITS           8u
#define ROUND_TRIPS    64u /* of a collective, with repeats */
#define COLORS         2u
#define BURST_BYTES    8192u /* the first */
#define MEASURED_BYTES (21 * BURST_BYTES)
#define REPEAT_TIMES   2u /* a timer that has backed off waits about as long again as it has waited */

typedef unsigned long long wide; /* for %llu */

static const struct plan_group *plan_of(const struct world *world)
{
    return &world->plan->group;
}

static void set_state(struct world *world, uint32_t host, enum rank_state state)
{
    struct rank *rank = &world->ranks->of[host];
    static const char *const names[] = {"joins",  "measures", "calls",  "agrees",
                                        "splits", "is over",  "is dead"};
    rank->state = state;
    rank->since_ns = world->now;
    world_note(world, host * 8 + state, "rank of host %u %s, epoch %u", host, names[state], rank->epoch);
}

bool ranks_may_fail(const struct world *world)
{
    return plan_of(world)->peer_timeout_ns < GROUP_PATIENCE_NS;
}

/* ---- creation ---------------------------------------------------------------------------------------- */

static void must(struct world *world, uint32_t host, int error, const char *what)
{
    if (error)
        world_fail(world, "error", "host %u: %s: %s", host, what, lh_last_error());
}

static void set_attr(const struct world *world, uint32_t host, struct lh_attr attrs[2],
                     struct lh_group_attr *attr)
{
    static const char *const sites[] = {"one", "two", "three"};
    const struct plan_group *plan = plan_of(world);
    for (uint32_t across = 0; across < 2; across++) {
        attrs[across] = plan->attr[across];
        attrs[across].reliability = plan->reliability[across];
        attrs[across].congestion = plan->congestion[across][0] ? plan->congestion[across] : NULL;
        if (attrs[across].congestion)
            attrs[across].rate_max_bps = attrs[across].rate_bps;
    }
    lh_group_attr_init(attr);
    attr->rank = host;
    attr->size = world->plan->hosts;
    attr->site = plan_has(world->plan, FEATURE_sites) ? sites[plan->site[host]] : NULL;
    attr->engine = world->ranks->of[host].engine;
    attr->attr = &attrs[0];
    attr->attr_across = &attrs[1];
    attr->peer_timeout_ns = plan->peer_timeout_ns;
    attr->block_bytes = plan->block_bytes;
    attr->buffer_bytes = (size_t)plan->block_bytes * plan->blocks;
}

static void create_engine(struct world *world, uint32_t host)
{
    struct lh_engine_attr attr;
    char device[32];
    lh_engine_attr_init(&attr);
    snprintf(device, sizeof device, "sim:life/%u", host);
    attr.device = device;
    attr.workers = LH_NO_WORKERS;
    attr.channels = PLAN_WORKERS;
    attr.receive_buffer_bytes = plan_of(world)->receive_buffer_bytes;
    must(world, host, lh_engine_create(&attr, &world->ranks->of[host].engine), "lh_engine_create");
}

/* ---- measuring --------------------------------------------------------------------------------------- */

/* Some rank has failed, or may have. */
static bool may_break(const struct world *world, const struct rank *rank)
{
    bool dead = false;
    for (uint32_t r = 0; r < rank->team->size; r++)
        dead = dead || world->ranks->of[rank->team->hosts[r]].state == RANK_DEAD;
    return dead || ranks_may_fail(world);
}

/* Who has measured the same has the same order. */
static void check_order(struct world *world, uint32_t host)
{
    const struct lh_group *own = world->ranks->of[host].group;
    for (uint32_t other = 0; other < world->plan->hosts; other++) {
        const struct rank *rank = &world->ranks->of[other];
        const struct lh_group *group = rank->state == RANK_DEAD ? NULL : rank->group;
        if (!group || group->members.id != own->members.id || group->members.size != own->members.size ||
            group->paths.measured != own->paths.measured)
            continue;
        if (memcmp(group->paths.order->map.rank_at, own->paths.order->map.rank_at,
                   own->members.size * sizeof *own->paths.order->map.rank_at) != 0)
            world_fail(world, "order", "host %u: its order is not that of host %u", host, other);
    }
}

static void end_measure(struct world *world, uint32_t host, int error)
{
    struct rank *rank = &world->ranks->of[host];
    measure_end(&rank->measure);
    world_note(world, host, "host %u: measured: %d", host, error);
    if (error && !may_break(world, rank))
        world_fail(world, "error", "host %u: lh_group_measure: %s", host, lh_last_error());
    if (!error)
        check_order(world, host);
    rank->broken = error != 0;
    rank->due_ns = world->now;
    set_state(world, host, RANK_CALLS);
}

/* As lh_group_measure(), with bursts that take little time. */
static void begin_epoch(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    bool over = rank->epoch > 0 && ranks_may_fail(world); /* it calls nothing more */
    if (!plan_has(world->plan, FEATURE_measures) || rank->team->size == 1 || over) {
        set_state(world, host, RANK_CALLS);
        return;
    }
    set_state(world, host, RANK_MEASURES);
    int error = measure_begin(rank->group, BURST_BYTES, &rank->measure);
    if (error)
        end_measure(world, host, error);
}

static void go_on_measuring(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    if (!lh_collective_test(rank->measure.op, NULL))
        return;
    rank->due_ns = world->now;
    int error = measure_go_on(&rank->measure, 0);
    const struct site_map *map = &rank->group->paths.created.order->map;
    bool last = rank->measure.op && rank->measure.round == rounds_count(map);
    if (last && rank->last_measured && rank->dies_ns == 0)
        rank->dies_ns = world->now + rank->last_measured->delay_ns;
    if (error || !rank->measure.op)
        end_measure(world, host, error);
}

static void attach(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    must(world, host, create_attach(rank->group, world->ranks->blobs, world->ranks->stride),
         "create_attach");
    rank->due_ns = world->now;
    begin_epoch(world, host);
}

static struct team *make_team(struct world *world, const struct lh_group *group)
{
    struct team *team = world_memory(world, sizeof *team);
    *team = (struct team){.size = group->members.size};
    for (uint32_t r = 0; r < group->members.size; r++)
        team->hosts[r] = (uint8_t)group->members.of_mesh[r];
    return team;
}

static void use_group(struct world *world, uint32_t host, struct lh_group *group)
{
    struct rank *rank = &world->ranks->of[host];
    rank->group = group;
    rank->team = make_team(world, group);
    rank->made[rank->made_count++] = group;
    if (!rank->first)
        rank->first = group;
}

/* The exchanges of lh_group_create(). */
static void create_all(struct world *world)
{
    uint32_t hosts = world->plan->hosts, longest = 0;
    struct ranks *ranks = world->ranks;
    uint8_t cards[PLAN_HOSTS_MAX][CREATE_CARD_BYTES];
    struct lh_attr attrs[PLAN_HOSTS_MAX][2];
    struct lh_group_attr attr[PLAN_HOSTS_MAX];
    ranks->stride = LINK_BLOB_MAX + 4;
    ranks->blobs = world_memory(world, hosts * hosts * ranks->stride);
    for (uint32_t host = 0; host < hosts && !world_failed(world); host++) {
        struct lh_group *group = NULL;
        create_engine(world, host);
        set_attr(world, host, attrs[host], &attr[host]);
        must(world, host, create_group(&attr[host], &group, cards[host]), "create_group");
        if (group)
            use_group(world, host, group);
    }
    for (uint32_t host = 0; host < hosts && !world_failed(world); host++)
        must(world, host, create_links(ranks->of[host].group, &attr[host], cards[0], &longest),
             "create_links");
    for (uint32_t host = 0; host < hosts && !world_failed(world); host++)
        must(
            world, host,
            create_blobs(ranks->of[host].group, ranks->blobs + host * hosts * ranks->stride, ranks->stride),
            "create_blobs");
}

void ranks_make(struct world *world)
{
    uint32_t events = world->plan->event_count;
    if (!plan_has(world->plan, FEATURE_group))
        return;
    world->ranks = world_memory(world, sizeof *world->ranks);
    memset(world->ranks, 0, sizeof *world->ranks);
    for (uint32_t host = 0; host < world->plan->hosts; host++) {
        struct rank *rank = &world->ranks->of[host];
        rank->calls = world_memory(world, (events + 1) * sizeof *rank->calls);
        memset(rank->calls, 0, (events + 1) * sizeof *rank->calls);
        rank->due_ns = LH_TIME_NEVER;
    }
    create_all(world);
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static uint8_t *make_buffer(struct world *world, size_t bytes)
{
    uint8_t *memory = world_memory(world, bytes + 2 * GUARD_BYTES);
    memset(memory, GUARD_BYTE, bytes + 2 * GUARD_BYTES);
    memset(memory + GUARD_BYTES, BLANK_BYTE, bytes);
    return memory + GUARD_BYTES;
}

/* Returns the input. */
static const void *make_buffers(struct world *world, uint32_t host, uint32_t event, struct call *call)
{
    const struct collective_call *what = &call->plan.call;
    size_t width = lh_type_bytes(what->type), in = collective_call_in(what, call->team->size, call->rank);
    size_t out = collective_call_out(what, call->team->size, call->rank);
    const struct plan_event *of = &world->plan->events[event];
    call->out_bytes = out * width;
    call->out = make_buffer(world, call->out_bytes);
    uint8_t *place = call->out;
    if (what->collective == COLLECTIVE_ALLGATHER)
        place += call->rank * what->count * width;
    if (what->collective == COLLECTIVE_BARRIER)
        return NULL;
    if (call->plan.in_place || what->collective == COLLECTIVE_BROADCAST) {
        if (call->plan.in_place || call->rank == what->root)
            call_fill(of, &call->plan, (uint8_t)host, place, in);
        return place;
    }
    call->in_bytes = in * width;
    call->in = make_buffer(world, call->in_bytes);
    call_fill(of, &call->plan, (uint8_t)host, call->in, in);
    return call->in;
}

static void start_call(struct world *world, uint32_t host, uint32_t event)
{
    struct rank *rank = &world->ranks->of[host];
    struct call *call = &rank->calls[event];
    const struct plan_event *of = &world->plan->events[event];
    call->team = rank->team;
    call->rank = lh_group_rank(rank->group);
    call->odd = of->room > 0 && of->host == host;
    call->started_ns = world->now;
    call_plan_make(of, plan_of(world)->block_bytes, rank->team->size, call->odd, &call->plan);
    const void *in = make_buffers(world, host, event, call);
    int error =
        collective_call_start(rank->group, &call->plan.call, in, call->out, &call->plan.options, &call->op);
    world_note(world, event * 16 + host, "host %u calls event %u: %d", host, event, error);
    if (error) {
        call->op = NULL;
        rank->broken = true;
        outcome_check_refusal(world, host, event, error);
        return;
    }
    call->started = true;
    rank->pending++;
    rank->due_ns = world->now;
}

/* When a rank calls one. */
static lh_time call_ns(const struct plan_event *event, uint32_t host)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, event->seed ^ (0x1A7E00u + host));
    return event->at_ns + (event->span_ns > 0 ? lh_prng_below(&prng, event->span_ns) : 0);
}

static bool is_call_of(const struct world *world, uint32_t event, uint32_t epoch)
{
    const struct plan_event *of = &world->plan->events[event];
    return of->kind == EVENT_collective && !of->off && of->pair == epoch;
}

/* What is due, in order. True: there are more. */
static bool call_due(struct world *world, uint32_t host, lh_time *next)
{
    struct rank *rank = &world->ranks->of[host];
    for (; rank->next < world->plan->event_count && !rank->broken; rank->next++) {
        if (!is_call_of(world, rank->next, rank->epoch))
            continue;
        lh_time at_ns = call_ns(&world->plan->events[rank->next], host);
        if (at_ns > world->now) {
            lh_keep_earlier(next, at_ns);
            return true;
        }
        if (rank->team->size == 1 || !world_sings_once(world, CANARY_absent))
            start_call(world, host, rank->next);
    }
    return false;
}

static void harvest(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    for (uint32_t i = 0; i < world->plan->event_count && rank->pending > 0; i++) {
        struct call *call = &rank->calls[i];
        struct lh_collective_result result;
        if (!call->started || call->done || !lh_collective_test(call->op, &result))
            continue;
        call->done = true;
        rank->pending--;
        world_note(world, (uint64_t)-result.error, "host %u: event %u ends with %d, rank %d: %s", host, i,
                   result.error, (int)result.failed_rank, result.message);
        outcome_check(world, host, i, result);
        rank->broken |= result.error == -LH_EPEER || result.error == -LH_ECLOSED;
        if (world->plan->events[i].seed >> host & 1) {
            lh_collective_free(call->op);
            call->op = NULL;
        }
    }
}

void ranks_give_up(struct world *world, const struct plan_event *event)
{
    if (!world->ranks)
        return;
    struct rank *rank = &world->ranks->of[event->host];
    struct call *call = &rank->calls[event->target];
    if (!host_runs(world, event->host) || rank->state == RANK_DEAD || !call->started || !call->op)
        return;
    lh_collective_cancel(call->op);
    rank->due_ns = world->now;
}

/* ---- another group ----------------------------------------------------------------------------------- */

static bool knows_failure(const struct rank *rank)
{
    for (uint32_t r = 0; r < rank->team->size; r++)
        if (lh_group_error(rank->group, r) != 0)
            return true;
    return false;
}

static uint64_t choice_of(const struct world *world, uint32_t host, uint32_t epoch)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, world->plan->seed ^ (0x5917u + host * 64 + epoch));
    return lh_prng_next(&prng);
}

static void begin_shrink(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    struct mesh *mesh = rank->group->mesh;
    if (rank->last && rank->dies_ns == 0) {
        rank->dies_ns = world->now + rank->last->delay_ns;
        sim_world_cut(world->sim, host, rank->last->peer, true);
    }
    pthread_mutex_lock(&mesh->lock);
    subgroup_begin_shrink(rank->group);
    pthread_mutex_unlock(&mesh->lock);
    rank->due_ns = world->now;
    set_state(world, host, RANK_AGREES);
}

/* Deaths would leave some in the parts and others in the whole. */
static bool splits_after(const struct world *world, uint32_t epoch)
{
    return epoch + 1 < plan_of(world)->epochs && plan_of(world)->splits[epoch] &&
           !plan_any(world->plan, EVENT_gone) && !ranks_may_fail(world);
}

static void begin_split(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    uint64_t choice = choice_of(world, host, rank->epoch);
    must(world, host,
         subgroup_begin_split(rank->group, (uint32_t)(choice % COLORS), (uint32_t)(choice >> 32 & 3),
                              &rank->split),
         "lh_group_split");
    rank->due_ns = world->now;
    set_state(world, host, RANK_SPLITS);
}

/* All that live, and no others; in their order. */
static void check_members(struct world *world, uint32_t host, const struct team *before,
                          const struct team *team)
{
    uint32_t at = 0;
    for (uint32_t r = 0; r < before->size; r++) {
        bool dead = world->ranks->of[before->hosts[r]].state == RANK_DEAD;
        bool there = at < team->size && team->hosts[at] == before->hosts[r];
        at += there;
        if (world_sings_once(world, CANARY_shunned))
            there = false;
        if (!there && !dead)
            world_fail(world, "members", "host %u: the new group lacks host %u, who lives", host,
                       before->hosts[r]);
    }
    if (at != team->size)
        world_fail(world, "members", "host %u: the new group has %u members in another order", host,
                   team->size);
}

static void go_on_in(struct world *world, uint32_t host, struct lh_group *group)
{
    struct rank *rank = &world->ranks->of[host];
    use_group(world, host, group);
    rank->epoch++;
    rank->next = 0;
    rank->broken = false;
    rank->due_ns = world->now;
    begin_epoch(world, host);
}

static void finish_shrink(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    struct mesh *mesh = rank->group->mesh;
    struct lh_group *smaller = NULL;
    const struct team *before = rank->team;
    pthread_mutex_lock(&mesh->lock);
    int error = subgroup_finish_shrink(rank->group, &smaller);
    pthread_mutex_unlock(&mesh->lock);
    must(world, host, error, "lh_group_shrink");
    if (error)
        return;
    go_on_in(world, host, smaller);
    if (ranks_may_fail(world))
        set_state(world, host, RANK_OVER);
    else
        check_members(world, host, before, rank->team);
}

static void finish_split(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    struct lh_group *part = NULL;
    const struct team *before = rank->team;
    uint32_t epoch = rank->epoch;
    int error = subgroup_finish_split(rank->group, &rank->split, 0, &part);
    must(world, host, error, "lh_group_split");
    if (error)
        return;
    go_on_in(world, host, part);
    uint32_t wanted = 0;
    for (uint32_t r = 0; r < before->size; r++)
        wanted +=
            choice_of(world, before->hosts[r], epoch) % COLORS == choice_of(world, host, epoch) % COLORS;
    for (uint32_t r = 1; r < rank->team->size; r++) {
        uint64_t key = choice_of(world, rank->team->hosts[r], epoch) >> 32 & 3;
        uint64_t other = choice_of(world, rank->team->hosts[r - 1], epoch) >> 32 & 3;
        if (other > key)
            world_fail(world, "members", "host %u: member %u of the part has a lower key", host, r);
    }
    if (wanted != rank->team->size)
        world_fail(world, "members", "host %u: the part has %u members, not %u", host, rank->team->size,
                   wanted);
}

/* All calls of the epoch are done. */
static void end_epoch(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    if (rank->broken)
        begin_shrink(world, host);
    else if (rank->epoch + 1 >= plan_of(world)->epochs)
        set_state(world, host, RANK_OVER);
    else if (splits_after(world, rank->epoch))
        begin_split(world, host);
    else
        begin_shrink(world, host);
}

/* ---- time -------------------------------------------------------------------------------------------- */

/* As lh_group_shrink() gives up, where the ranks may know of different failures. */
static void give_up_late(struct world *world, uint32_t host, lh_time *next)
{
    struct rank *rank = &world->ranks->of[host];
    lh_time until_ns = rank->since_ns + 2 * plan_of(world)->peer_timeout_ns;
    if (!ranks_may_fail(world))
        return;
    if (world->now >= until_ns)
        set_state(world, host, RANK_OVER);
    else
        lh_keep_earlier(next, until_ns);
}

static void rank_acts(struct world *world, uint32_t host, lh_time *next)
{
    struct rank *rank = &world->ranks->of[host];
    if (rank->dies_ns > 0 && rank->dies_ns <= world->now) {
        ranks_die(world, host);
        return;
    }
    if (rank->dies_ns > 0)
        lh_keep_earlier(next, rank->dies_ns);
    switch (rank->state) {
    case RANK_JOINS:
        if (plan_of(world)->joins_ns[host] <= world->now)
            attach(world, host);
        else
            lh_keep_earlier(next, plan_of(world)->joins_ns[host]);
        break;
    case RANK_MEASURES:
        go_on_measuring(world, host);
        break;
    case RANK_CALLS:
        if (!call_due(world, host, next) && rank->pending == 0)
            end_epoch(world, host);
        break;
    case RANK_AGREES:
        if (agreement_is_reached(&rank->group->agreement))
            finish_shrink(world, host);
        else
            give_up_late(world, host, next);
        break;
    case RANK_SPLITS:
        if (lh_collective_test(rank->split.op, NULL))
            finish_split(world, host);
        break;
    case RANK_OVER:
        if (!ranks_may_fail(world) && knows_failure(rank)) { /* others make another group */
            rank->broken = true;
            begin_shrink(world, host);
        }
        break;
    case RANK_DEAD:
        break;
    }
}

static void run_rank(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    lh_time due_ns = LH_TIME_NEVER;
    world->turns++;
    must(world, host, lh_group_progress(rank->first, &due_ns), "lh_group_progress");
    rank->due_ns = due_ns == LH_TIME_NEVER ? due_ns : sim_world_host_when(world->sim, host, due_ns);
    harvest(world, host);
}

static bool runs(const struct world *world, uint32_t host)
{
    return host_runs(world, host) && world->ranks->of[host].state != RANK_DEAD;
}

lh_time ranks_act(struct world *world)
{
    uint32_t rounds = 0;
    lh_time next = LH_TIME_NEVER;
    for (bool any = world->ranks != NULL; any && !world_failed(world);) {
        any = false;
        next = LH_TIME_NEVER;
        for (uint32_t host = 0; host < world->plan->hosts && !world_failed(world); host++) {
            struct rank *rank = &world->ranks->of[host];
            if (!runs(world, host)) {
                if (rank->state != RANK_DEAD)
                    lh_keep_earlier(&next, world->hosts[host].paused_until_ns);
                continue;
            }
            rank_acts(world, host, &next);
            if (rank->due_ns <= world->now) {
                run_rank(world, host);
                any = true;
            }
            lh_keep_earlier(&next, rank->due_ns);
        }
        if (++rounds > ROUNDS_MAX)
            world_fail(world, "turns", "ranks ask to be called again for ever at %llu ns",
                       (wide)world->now);
    }
    return next;
}

void ranks_on_arrival(struct world *world, uint32_t host)
{
    if (world->ranks && host < world->plan->hosts)
        lh_keep_earlier(&world->ranks->of[host].due_ns, world->now);
}

void ranks_on_healed(struct world *world)
{
    for (uint32_t host = 0; world->ranks && host < world->plan->hosts; host++)
        world->ranks->of[host].due_ns = world->now;
}

bool ranks_over(const struct world *world)
{
    for (uint32_t host = 0; world->ranks && host < world->plan->hosts; host++) {
        const struct rank *rank = &world->ranks->of[host];
        if (rank->state != RANK_OVER && rank->state != RANK_DEAD)
            return false;
    }
    return true;
}

lh_time ranks_bound(const struct world *world)
{
    const struct plan *plan = world->plan;
    lh_time rtt_ns = 0, expected_ns = 0, late_ns = 0;
    uint64_t deaths = 0;
    for (uint32_t from = 0; from < plan->hosts; from++)
        for (uint32_t to = 0; to < plan->hosts; to++)
            if (rtt_ns < 2 * plan->link[from][to].delay_ns)
                rtt_ns = 2 * plan->link[from][to].delay_ns;
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        deaths += event->kind == EVENT_gone;
        if (event->kind != EVENT_collective)
            continue;
        uint64_t rate = plan->group.attr[0].rate_bps ? plan->group.attr[0].rate_bps : HEALED_BPS;
        expected_ns +=
            ROUND_TRIPS * plan->hosts * rtt_ns + 4 * event->bytes * plan->hosts * BITS * LH_NS_PER_S / rate;
        late_ns = late_ns < event->span_ns ? event->span_ns : late_ns;
    }
    if (plan_has(plan, FEATURE_measures)) {
        uint64_t rate = plan->group.attr[0].rate_bps ? plan->group.attr[0].rate_bps : HEALED_BPS;
        expected_ns +=
            2 * (uint64_t)plan->hosts * plan->group.epochs *
            (2 * MEASURE_BURSTS * ROUND_TRIPS * rtt_ns + 4 * MEASURED_BYTES * BITS * LH_NS_PER_S / rate);
    }
    /* Who is impatient may wait for one who is not there any more, each time. */
    uint64_t waits = 2 + deaths + (ranks_may_fail(world) ? 2 * plan->hosts : 0);
    return waits * 3 * plan->group.peer_timeout_ns + expected_ns + late_ns + REPEAT_TIMES * world->now +
           LH_NS_PER_S;
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void free_calls(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    for (uint32_t i = 0; i < world->plan->event_count; i++) {
        lh_collective_free(rank->calls[i].op);
        rank->calls[i].op = NULL;
    }
    if (rank->state == RANK_MEASURES)
        measure_end(&rank->measure);
    if (rank->state == RANK_SPLITS) {
        struct lh_group *part = NULL;
        lh_collective_cancel(rank->split.op);
        subgroup_finish_split(rank->group, &rank->split, 0, &part);
        if (part)
            rank->made[rank->made_count++] = part;
    }
}

static void destroy(struct world *world, uint32_t host)
{
    struct rank *rank = &world->ranks->of[host];
    free_calls(world, host);
    for (uint32_t i = rank->made_count; i-- > 0;)
        must(world, host, lh_group_destroy(rank->made[i]), "lh_group_destroy");
    must(world, host, lh_engine_destroy(rank->engine), "lh_engine_destroy");
    rank->made_count = 0;
    rank->due_ns = LH_TIME_NEVER;
}

/* Without a word to anybody. */
void ranks_die(struct world *world, uint32_t host)
{
    if (!world->ranks || world->ranks->of[host].state == RANK_DEAD)
        return;
    world->hosts[host].muted = true;
    destroy(world, host);
    world->hosts[host].muted = false;
    world->ranks->of[host].died_ns = world->now;
    set_state(world, host, RANK_DEAD);
}

void ranks_die_later(struct world *world, const struct plan_event *event)
{
    struct rank *rank = world->ranks ? &world->ranks->of[event->host] : NULL;
    if (rank && event->target == 1)
        rank->last_measured = event;
    else if (rank)
        rank->last = event;
}

bool ranks_are_cut(const struct world *world, uint32_t from, uint32_t to)
{
    const struct rank *rank = world->ranks ? &world->ranks->of[from] : NULL;
    return rank && rank->last && rank->dies_ns > 0 && rank->last->peer == to;
}

void ranks_end(struct world *world)
{
    for (uint32_t host = 0; world->ranks && host < world->plan->hosts; host++) {
        struct rank *rank = &world->ranks->of[host];
        if (rank->state != RANK_DEAD && rank->engine)
            destroy(world, host);
        for (uint32_t i = 0; i < world->plan->event_count && !world_failed(world); i++)
            outcome_check_kept(world, host, i);
    }
}
