/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/ends.h"

#include <stdio.h>
#include <string.h>

#include "base/min_max.h"
#include "sdr/sdr_driver.h"
#include "world/checks.h"
#include "world/engines.h"
#include "world/exchange.h"
#include "world/inside.h"
#include "world/memory.h"
#include "world/remote.h"
#include "world/stale.h"
#include "world/talk.h"

#define DEVICE_MAX    (SIM_WORLD_NAME_MAX + 16u)
#define PATIENCE_NS   (86400 * LH_NS_PER_S) /* the longest that a connection takes */
#define ROUNDS_MAX    40000u                /* of one end at one moment; a full receive queue is less */
#define OPEN_AGAIN_NS (100 * LH_NS_PER_US)
#define NUMBERS_LEFT  12u /* before those wrap that begin near it */

/* ---- opening ----------------------------------------------------------------------------------------- */

static int open_connection(struct world *world, struct pair *pair, uint32_t side, const char *device)
{
    struct end *end = &pair->ends[side];
    struct lh_attr attr = pair->plan->attr[side];
    attr.device = device;
    attr.workers = LH_NO_WORKERS;
    attr.engine = end->engine ? end->engine->engine : NULL;
    attr.receive_buffer_bytes = plan_receive_buffer(world->plan, pair->plan, side);
    attr.reliability = plan_reliability(world->plan, pair->plan, side);
    attr.zero_missing = plan_has_deadline(world->plan, pair->plan, side) && pair->plan->zeroes[side];
    attr.congestion = plan_congestion(world->plan, pair->plan, side);
    attr.match_tags = plan_matches(world->plan, pair->plan, side);
    if (attr.congestion)
        attr.rate_max_bps = attr.rate_bps; /* to a controller, rate_bps is only a hint */
    bool patient = !plan_has(world->plan, FEATURE_impatient) && pair->trusted && !pair->may_end;
    attr.peer_timeout_ns = patient ? PATIENCE_NS : pair->plan->peer_timeout_ns;
    int error = lh_open(&attr, &end->connection);
    if (error == 0)
        inside_connection(end->connection, &end->context, &end->qp);
    return error;
}

static int open_raw(struct world *world, struct pair *pair, uint32_t side, const char *device)
{
    struct end *end = &pair->ends[side];
    const struct lh_attr *sizes = &pair->plan->attr[side];
    struct lh_context_attr attr = {.channels = sizes->channels,
                                   .workers = LH_SDR_NO_WORKERS,
                                   .receive_buffer_bytes = sizes->receive_buffer_bytes};
    const struct sdr_qp_attr qp_attr = {0};
    struct lh_qp_attr more = {.generations = sizes->generations,
                              .immediate_message_bits = pair->plan->message_bits,
                              .immediate_fragment_bits = pair->plan->fragment_bits,
                              .mtu_bytes = sizes->mtu_bytes,
                              .slot_bytes = sizes->slot_bytes,
                              .rate_bps = sizes->rate_bps,
                              .chunk_bytes = sizes->chunk_bytes,
                              .slots = sizes->slots};
    more.congestion = plan_congestion(world->plan, pair->plan, side);
    if (more.congestion)
        more.rate_max_bps = more.rate_bps;
    int error = lh_sdr_context_create(device, &attr, &end->context);
    if (error)
        return error;
    error = lh_sdr_qp_create(end->context, &qp_attr, &more, &end->qp);
    if (error)
        sdr_context_destroy(end->context);
    return error;
}

/* Where the end's packets arrive. */
static void note_range(struct world *world, const struct end *end, uint32_t first, uint32_t ports,
                       uint16_t owner)
{
    for (uint32_t i = 0; i < ports; i++)
        world->end_of_port[end->host * SIM_PORTS_MAX + first + i - SIM_PORT_FIRST] = owner;
}

static void note_ports(struct world *world, const struct end *end, uint16_t owner)
{
    note_range(world, end, end->port_first, end->ports, owner);
    note_range(world, end, end->inner_port_first, end->inner_ports,
               owner == WORLD_NOTHING ? owner : (uint16_t)(owner | WORLD_SUB));
}

void end_note_sub(struct world *world, struct end *end)
{
    if (end->inner)
        return;
    end->inner = inside_inner(end->connection, &end->inner_qp);
    if (!end->inner)
        return;
    end->inner_port_first = inside_qp_ports(end->inner_qp, &end->inner_ports);
    note_ports(world, end, (uint16_t)world_end_number(world, end));
    world_touch(world, end);
}

/* With engines what was taken may be kept for the next connection; by the simulator, too, for a host that had
 * none before. */
static int open_end(struct world *world, struct pair *pair, uint32_t side)
{
    struct end *end = &pair->ends[side];
    uint16_t port_first = end->port_first;
    char device[DEVICE_MAX];
    int64_t blocks = memory_blocks();
    uint64_t refusals = memory_refusals();
    *end = (struct end){
        .host = pair->plan->host[side],
        .pair = (uint16_t)(pair - world->pairs),
        .opened_ns = world->now,
        .own_turns = {.workers = plan_has(world->plan, FEATURE_workers) ? pair->plan->workers : 1}};
    if (port_first && plan_has(world->plan, FEATURE_ports))
        sim_world_next_port(world->sim, end->host, port_first);
    snprintf(device, sizeof device, "sim:life/%u", end->host);
    int error = engines_join(world, end, device);
    if (!error)
        error = pair->plan->raw ? open_raw(world, pair, side, device)
                                : open_connection(world, pair, side, device);
    end->port_first = port_first;
    if (error) {
        if (error != -LH_ENOMEM || memory_refusals() == refusals)
            world_fail(world, "error", "end %u cannot be opened: %s", world_end_number(world, end),
                       lh_last_error());
        if (memory_blocks() != blocks && !plan_has(world->plan, FEATURE_engine))
            world_fail(world, "leak", "opening end %u failed and left %lld blocks",
                       world_end_number(world, end), (long long)(memory_blocks() - blocks));
        return error;
    }
    end->open = true;
    stale_forget(end);
    end->port_first = inside_qp_ports(end->qp, &end->ports);
    note_ports(world, end, (uint16_t)world_end_number(world, end));
    world_note(world, end->port_first, "end %u opens on host %u, ports from %u",
               world_end_number(world, end), end->host, end->port_first);
    return 0;
}

static void attach_end(struct world *world, struct pair *pair, uint32_t side)
{
    struct end *end = &pair->ends[side];
    struct end *peer = &pair->ends[1 - side];
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    int error;
    if (pair->plan->raw) {
        error = sdr_qp_info_get(peer->qp, blob);
        if (!error)
            error = lh_sdr_qp_connect(end->qp, blob);
    } else {
        error = lh_blob(peer->connection, blob, &bytes);
        if (!error)
            error = lh_attach(end->connection, blob, bytes);
    }
    if (error)
        world_fail(world, "error", "end %u cannot be attached: %s", world_end_number(world, end),
                   lh_last_error());
}

/* Some uses before they wrap. */
static uint32_t first_number(struct lh_prng *prng)
{
    return 0u - (uint32_t)lh_prng_below(prng, NUMBERS_LEFT);
}

/* Of its own generator: it moves nothing of what users draw. */
static void number_near_wrap(const struct world *world, struct pair *pair)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, world->plan->seed ^ (0x3F4A9u + (uint64_t)(pair - world->pairs)));
    for (uint32_t side = 0; side < 2; side++) {
        struct end *from = &pair->ends[side];
        struct end *to = &pair->ends[1 - side];
        uint32_t message = first_number(&prng);
        uint32_t segment = first_number(&prng);
        inside_qp_number(from->qp, to->qp, segment);
        if (from->connection)
            inside_connection_number(from->connection, to->connection, message, segment);
    }
}

void pair_open(struct world *world, struct pair *pair)
{
    pair->retry_ns = LH_TIME_NEVER;
    for (uint32_t side = 0; side < 2; side++)
        if (!pair->ends[side].open && open_end(world, pair, side) != 0) {
            pair->retry_ns = world->now + OPEN_AGAIN_NS;
            return;
        }
    if (plan_has(world->plan, FEATURE_wrap))
        number_near_wrap(world, pair);
    for (uint32_t side = 0; side < 2; side++) {
        attach_end(world, pair, side);
        world_touch(world, &pair->ends[side]);
    }
    pair->up = true;
}

lh_time pairs_open_due(struct world *world)
{
    lh_time next = LH_TIME_NEVER;
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        struct pair *pair = &world->pairs[i];
        if (pair->retry_ns <= world->now)
            pair_open(world, pair);
        lh_keep_earlier(&next, pair->retry_ns);
    }
    return next;
}

static void harvest_users(struct world *world, struct pair *pair, uint32_t side)
{
    talk_harvest(world, pair, side);
    remote_harvest(world, pair, side);
}

void end_close(struct world *world, struct end *end, bool muted)
{
    if (!end->open)
        return;
    struct pair *pair = &world->pairs[end->pair];
    uint32_t side = world_end_number(world, end) % 2;
    engine_drain(world, end->engine);
    if (end->connection)
        harvest_users(world, pair, side);
    check_end(world, end);
    check_counters(world, end);
    end->messages_before = inside_qp_message_next(end->qp);
    world->hosts[end->host].muted |= muted;
    if (pair->plan->raw) {
        exchange_on_closing(world, pair, side);
        sdr_qp_destroy(end->qp);
        exchange_on_closed(pair, side);
        sdr_context_destroy(end->context);
    } else {
        lh_close(end->connection);
        engine_drain(world, end->engine);
        talk_on_closed(world, pair, side);
        remote_on_closed(world, pair, side);
    }
    if (muted)
        world->hosts[end->host].muted = false;
    note_ports(world, end, WORLD_NOTHING);
    end->open = false;
    pair->up = false;
    world_note(world, 0, "end %u is closed", world_end_number(world, end));
}

/* ---- running ----------------------------------------------------------------------------------------- */

struct turns *world_turns(struct end *end)
{
    return end->engine ? &end->engine->turns : &end->own_turns;
}

static bool worker_due(const struct world *world, const struct turns *turns, uint32_t worker)
{
    return turns->due_ns[worker] <= world->now && turns->stalled_until_ns[worker] <= world->now;
}

static bool end_due(const struct world *world, struct end *end)
{
    const struct turns *turns = world_turns(end);
    if (!end->open || !host_runs(world, end->host))
        return false;
    for (uint32_t w = 0; w < turns->workers; w++)
        if (worker_due(world, turns, w))
            return true;
    return false;
}

/* Whether it runs whenever that one runs. */
static bool runs_with(const struct end *end, const struct end *other)
{
    return end == other || (end->open && end->engine && end->engine == other->engine);
}

static void note_waiting(struct world *world, const struct end *runs)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++) {
        struct end *end = world_end(world, i);
        if (runs_with(end, runs))
            end->messages_before = inside_qp_message_next(end->qp);
    }
}

static void run_worker(struct world *world, struct end *end, uint32_t worker)
{
    struct turns *turns = world_turns(end);
    lh_time next = LH_TIME_NEVER;
    bool moved = false;
    world->turns++;
    note_waiting(world, end);
    if (turns->workers > 1) {
        sdr_context_round(end->context, worker, turns->workers, &moved, &next);
    } else {
        if (end->engine)
            lh_engine_progress(end->engine->engine, &next);
        else if (end->connection)
            lh_progress(end->connection, &next);
        else
            lh_sdr_progress(end->context, &next);
    }
    if (world_sings(world, CANARY_spin))
        moved = true;
    turns->due_ns[worker] = moved ? world->now : sim_world_host_when(world->sim, end->host, next);
    if (moved)
        world_touch(world, end); /* workers wake each other */
}

static void harvest(struct world *world, struct end *end)
{
    struct pair *pair = &world->pairs[end->pair];
    uint32_t side = world_end_number(world, end) % 2;
    if (end->connection)
        harvest_users(world, pair, side);
    else
        exchange_harvest(world, pair, side);
    check_end(world, end);
}

static void run_end(struct world *world, struct end *end)
{
    struct turns *turns = world_turns(end);
    uint32_t first = turns->workers > 1 ? (uint32_t)lh_prng_below(&world->order, turns->workers) : 0;
    for (uint32_t i = 0; i < turns->workers; i++) {
        uint32_t worker = (first + i) % turns->workers;
        if (worker_due(world, turns, worker))
            run_worker(world, end, worker);
    }
    engine_on_run(world, end->engine);
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        if (runs_with(world_end(world, i), end))
            harvest(world, world_end(world, i));
}

void ends_progress(struct world *world)
{
    uint32_t ends = 2 * world->plan->pair_count;
    uint32_t rounds = 0;
    for (bool any = true; any && !world_failed(world);) {
        any = false;
        for (uint32_t i = 0; i < ends && !world_failed(world); i++) {
            struct end *end = world_end(world, i);
            if (!end_due(world, end))
                continue;
            run_end(world, end);
            any = true;
            if (++rounds > ROUNDS_MAX)
                world_fail(world, "turns", "end %u asks to be called again for ever at %llu ns", i,
                           (unsigned long long)world->now);
        }
    }
}

static lh_time end_next(const struct world *world, struct end *end)
{
    lh_time next = LH_TIME_NEVER;
    const struct host *host = &world->hosts[end->host];
    const struct turns *turns = world_turns(end);
    for (uint32_t w = 0; end->open && w < turns->workers; w++) {
        lh_time due_ns = turns->due_ns[w];
        if (due_ns != LH_TIME_NEVER && due_ns < turns->stalled_until_ns[w])
            due_ns = turns->stalled_until_ns[w];
        lh_keep_earlier(&next, due_ns);
    }
    if (next != LH_TIME_NEVER && next < host->paused_until_ns)
        next = host->paused_until_ns;
    return next;
}

lh_time ends_next(struct world *world)
{
    lh_time next = LH_TIME_NEVER;
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        lh_keep_earlier(&next, end_next(world, world_end(world, i)));
    return next;
}

void ends_on_arrival(struct world *world, uint32_t host, uint16_t port, lh_time at_ns)
{
    if (port < SIM_PORT_FIRST || (uint32_t)port - SIM_PORT_FIRST >= SIM_PORTS_MAX || host >= PLAN_HOSTS_MAX)
        return;
    uint16_t number = world->end_of_port[host * SIM_PORTS_MAX + port - SIM_PORT_FIRST];
    if (number == WORLD_NOTHING)
        return;
    turns_touch(world_turns(world_end(world, number & ~WORLD_SUB)), at_ns);
}
