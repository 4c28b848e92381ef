/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/engines.h"

#include <string.h>

#include "base/min_max.h"
#include "world/inside.h"
#include "world/memory.h"
#include "world/remote.h"
#include "world/talk.h"

#define ENTRIES_MAX 64u  /* of one poll */
#define IDLE_POLLS  0.03 /* of the rounds are followed by one that has nothing to find, mostly */

/* ---- creation and end -------------------------------------------------------------------------------- */

/* Each region takes a place, and at least one is for notifications. */
static uint32_t notices_of(const struct plan *plan, uint32_t host)
{
    uint32_t regions = 0;
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        regions += event->kind == EVENT_expose && plan->pairs[event->pair].host[event->side] == host;
    }
    return plan_has(plan, FEATURE_onesided) ? regions + plan->engines[host].notices.capacity : 0;
}

/* What the plan says of one. */
static const struct plan_queue *plan_of(const struct engine *engine, uint32_t number)
{
    return number < engine->plan->queues ? &engine->plan->queue[number] : &engine->plan->notices;
}

void engines_make(struct world *world)
{
    if (!plan_has(world->plan, FEATURE_engine))
        return;
    world->engines = world_memory(world, PLAN_HOSTS_MAX * sizeof *world->engines);
    memset(world->engines, 0, PLAN_HOSTS_MAX * sizeof *world->engines);
    for (uint8_t host = 0; host < PLAN_HOSTS_MAX; host++) {
        struct engine *engine = &world->engines[host];
        engine->plan = &world->plan->engines[host];
        engine->host = host;
        engine->notices = notices_of(world->plan, host);
        engine->queue_count = engine->plan->queues + (engine->notices > 0 ? 1u : 0u);
        lh_prng_seed(&engine->prng, world->plan->seed ^ (0xE6000u + host));
    }
}

static void forget_queues(struct engine *engine)
{
    for (uint32_t i = 0; i <= PLAN_QUEUES_MAX; i++)
        engine->queues[i] = (struct queue){.poll_ns = LH_TIME_NEVER};
}

static int create_queues(struct engine *engine)
{
    int error = 0;
    for (uint32_t i = 0; i < engine->queue_count && !error; i++)
        error = lh_completion_queue_create(
            engine->engine, i < engine->plan->queues ? plan_of(engine, i)->capacity : engine->notices,
            &engine->queues[i].queue);
    return error;
}

/* Without entries, and without connections, both go. */
static void destroy(struct world *world, struct engine *engine)
{
    for (uint32_t i = 0; i < engine->queue_count; i++)
        if (lh_completion_queue_destroy(engine->queues[i].queue) != 0)
            world_fail(world, "engine", "queue %u of host %u is not destroyed: %s", i, engine->host,
                       lh_last_error());
    if (lh_engine_destroy(engine->engine) != 0)
        world_fail(world, "engine", "the engine of host %u is not destroyed: %s", engine->host,
                   lh_last_error());
    engine->engine = NULL;
    forget_queues(engine);
}

static int create(struct world *world, struct engine *engine, const char *device)
{
    struct lh_engine_attr attr;
    int64_t blocks = memory_blocks();
    lh_engine_attr_init(&attr);
    attr.device = device;
    attr.channels = PLAN_WORKERS;
    attr.workers = LH_NO_WORKERS;
    attr.receive_buffer_bytes = engine->plan->receive_buffer_bytes;
    forget_queues(engine);
    int error = lh_engine_create(&attr, &engine->engine);
    if (error)
        engine->engine = NULL;
    else
        error = create_queues(engine);
    if (error && engine->engine)
        destroy(world, engine);
    if (error && memory_blocks() != blocks)
        world_fail(world, "leak", "creating an engine failed and left %lld blocks",
                   (long long)(memory_blocks() - blocks));
    engine->turns =
        (struct turns){.workers = plan_has(world->plan, FEATURE_workers) ? engine->plan->workers : 1};
    return error;
}

int engines_join(struct world *world, struct end *end, const char *device)
{
    uint32_t side = world_end_number(world, end) % 2;
    if (!plan_shares(world->plan, world->pairs[end->pair].plan, side))
        return 0;
    end->engine = &world->engines[end->host];
    return end->engine->engine ? 0 : create(world, end->engine, device);
}

void engine_end(struct world *world, uint32_t host)
{
    if (!world->engines || !world->engines[host].engine)
        return;
    struct engine *engine = &world->engines[host];
    engine_drain(world, engine);
    for (uint32_t i = 0; i < engine->queue_count; i++)
        if (engine->queues[i].asked > 0)
            world_fail(world, "entries", "%u requests have no entry in queue %u of host %u",
                       engine->queues[i].asked, i, host);
    destroy(world, engine);
}

void engines_end(struct world *world)
{
    for (uint32_t host = 0; host < PLAN_HOSTS_MAX; host++)
        engine_end(world, host);
}

static bool has_connections(struct world *world, const struct engine *engine)
{
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        if (world_end(world, i)->open && world_end(world, i)->engine == engine)
            return true;
    return false;
}

void engines_check_refusals(struct world *world)
{
    for (uint32_t host = 0; world->engines && host < PLAN_HOSTS_MAX && !world_failed(world); host++) {
        struct engine *engine = &world->engines[host];
        if (!engine->engine || !has_connections(world, engine))
            continue;
        int error = lh_engine_destroy(engine->engine);
        if (world_sings_once(world, CANARY_reckless))
            error = 0;
        if (error != -LH_ESTATE)
            world_fail(world, "engine", "the engine of host %u has connections, and its end comes to %d",
                       host, error);
    }
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static uint32_t capacity_of(const struct engine *engine, const struct queue *queue)
{
    return engine->plan->queue[queue - engine->queues].capacity;
}

struct queue *engine_queue(const struct world *world, const struct end *end, uint64_t seed)
{
    struct engine *engine = end->engine;
    if (!engine)
        return NULL;
    uint64_t choice = (seed >> 8) % (2 * engine->plan->queues + 1u);
    if (choice == 0)
        return NULL;
    struct queue *queue = &engine->queues[(choice - 1) / 2];
    return world->healed && queue->asked >= capacity_of(engine, queue) ? NULL : queue;
}

struct lh_completion_queue *engine_notices(const struct end *end)
{
    return end->engine && end->engine->notices > 0 ? end->engine->queues[end->engine->plan->queues].queue
                                                   : NULL;
}

void engine_on_asked(struct world *world, const struct engine *engine, struct queue *queue, int error)
{
    uint32_t capacity = capacity_of(engine, queue);
    bool full = queue->asked >= capacity;
    if (full && world_sings_once(world, CANARY_roomy))
        error = 0;
    if (full ? error == 0 : error == -LH_EAGAIN)
        world_fail(world, "capacity",
                   "%u of %u places of a queue of host %u are taken, and a request gets %d", queue->asked,
                   capacity, engine->host, error);
    queue->asked += error == 0;
}

/* ---- polling ----------------------------------------------------------------------------------------- */

static void pass_on(struct world *world, uint32_t host, uint32_t queue, const struct lh_completion *entry)
{
    if (entry->operation == LH_OPERATION_WRITE || entry->operation == LH_OPERATION_READ)
        remote_on_entry(world, host, queue, entry);
    else
        talk_on_entry(world, host, queue, entry);
}

static void take_entry(struct world *world, struct engine *engine, struct queue *queue,
                       const struct lh_completion *given)
{
    struct lh_completion entry = *given;
    uint32_t number = (uint32_t)(queue - engine->queues);
    if (number == engine->plan->queues) {
        remote_on_notification(world, engine->host, &entry);
        return;
    }
    if (world_sings_once(world, CANARY_swallow))
        return;
    if (world_sings_once(world, CANARY_user))
        entry.user ^= (uint64_t)1 << 40;
    if (queue->asked == 0)
        world_fail(world, "entries", "queue %u of host %u has an entry that nobody asked for", number,
                   engine->host);
    queue->asked -= queue->asked > 0;
    pass_on(world, engine->host, number, &entry);
    if (world_sings_once(world, CANARY_echo))
        pass_on(world, engine->host, number, &entry);
}

/* Returns how many entries there were. */
static uint32_t poll_queue(struct world *world, struct engine *engine, struct queue *queue,
                           uint32_t maximum)
{
    struct lh_completion entries[ENTRIES_MAX];
    uint32_t n = maximum < ENTRIES_MAX ? maximum : ENTRIES_MAX;
    int count = lh_poll(queue->queue, entries, n);
    if (count < 0 || (uint32_t)count > n)
        world_fail(world, "entries", "a poll for %u entries of host %u comes to %d: %s", n, engine->host,
                   count, lh_last_error());
    for (int i = 0; i < count && !world_failed(world); i++)
        take_entry(world, engine, queue, &entries[i]);
    turns_touch(&engine->turns, world->now); /* it may have made progress */
    return count > 0 ? (uint32_t)count : 0;
}

void engine_on_run(struct world *world, struct engine *engine)
{
    if (!engine || !engine->engine)
        return;
    bool idle = lh_prng_chance(&engine->prng, IDLE_POLLS);
    for (uint32_t i = 0; i < engine->queue_count; i++) {
        struct queue *queue = &engine->queues[i];
        if (queue->poll_ns == LH_TIME_NEVER && (idle || inside_queue_entries(queue->queue) > 0))
            queue->poll_ns = world->now + plan_of(engine, i)->late_ns;
    }
}

static void poll_engine(struct world *world, struct engine *engine, lh_time *next)
{
    for (uint32_t i = 0; i < engine->queue_count && !world_failed(world); i++) {
        struct queue *queue = &engine->queues[i];
        if (queue->poll_ns <= world->now) {
            poll_queue(world, engine, queue, plan_of(engine, i)->batch);
            bool more = inside_queue_entries(queue->queue) > 0;
            queue->poll_ns = more ? world->now + plan_of(engine, i)->late_ns : LH_TIME_NEVER;
        }
        lh_keep_earlier(next, queue->poll_ns);
    }
}

lh_time engines_poll(struct world *world)
{
    lh_time next = LH_TIME_NEVER;
    for (uint32_t host = 0; world->engines && host < PLAN_HOSTS_MAX; host++)
        if (world->engines[host].engine && host_runs(world, host))
            poll_engine(world, &world->engines[host], &next);
    return next;
}

void engine_drain(struct world *world, struct engine *engine)
{
    if (!engine || !engine->engine)
        return;
    for (uint32_t i = 0; i < engine->queue_count; i++)
        while (inside_queue_entries(engine->queues[i].queue) > 0)
            poll_queue(world, engine, &engine->queues[i], ENTRIES_MAX);
}

lh_time engine_late_ns(const struct end *end)
{
    lh_time max_ns = 0;
    if (!end->engine)
        return 0;
    for (uint32_t i = 0; i < end->engine->queue_count; i++) {
        const struct plan_queue *queue = plan_of(end->engine, i);
        uint32_t capacity = i < end->engine->plan->queues ? queue->capacity : end->engine->notices;
        lh_time late_ns = queue->late_ns * (capacity / queue->batch + 2);
        max_ns = late_ns > max_ns ? late_ns : max_ns;
    }
    return max_ns;
}
