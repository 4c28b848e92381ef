/*
 * engines.h - the engines of a life: one for each host, which connections of the host share, and its
 * completion queues, which its user polls late.
 *
 * An engine is there from the first connection that shares it until its host crashes, or the life ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_ENGINES_H
#define LH_TESTS_WORLD_ENGINES_H

#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include "world/world.h"

struct queue {
    struct lh_completion_queue *queue;
    uint32_t asked;  /* requests whose entry was not taken yet */
    lh_time poll_ns; /* LH_TIME_NEVER: nothing waits */
};

struct engine {
    const struct plan_engine *plan;
    struct lh_engine *engine; /* NULL: not created */
    struct turns turns;
    struct queue queues[PLAN_QUEUES_MAX + 1]; /* the last one, of notifications, behind those of the plan */
    uint32_t queue_count;
    uint32_t notices; /* capacity of the last one; 0: there is none */
    struct lh_prng prng;
    uint8_t host;
};

void engines_make(struct world *world);
/* Gives an end the engine that it shares, and creates it when it is the first. 0, or the error. */
int engines_join(struct world *world, struct end *end, const char *device);
/* Destroys the engine of a host that crashed, or of each at the end: it has no connections any more. */
void engine_end(struct world *world, uint32_t host);
void engines_end(struct world *world);
/* While it has connections and queues neither goes. */
void engines_check_refusals(struct world *world);

/* The queue in which a request of the end completes; NULL: in none. `seed` chooses, but once the network is
 * well nobody waits for room in a queue. */
struct queue *engine_queue(const struct world *world, const struct end *end, uint64_t seed);
/* Where what the end exposes is notified of writes; NULL: nowhere. */
struct lh_completion_queue *engine_notices(const struct end *end);
/* After a request was started with it, or refused. */
void engine_on_asked(struct world *world, const struct engine *engine, struct queue *queue, int error);

/* Workers have run: polls what has come, later. engine may be NULL. */
void engine_on_run(struct world *world, struct engine *engine);
/* Polls what is due on hosts that run. Returns when to call again. */
lh_time engines_poll(struct world *world);
/* Polls all that is there. engine may be NULL. */
void engine_drain(struct world *world, struct engine *engine);
/* How long an entry waits at a host until it is polled, at most. */
lh_time engine_late_ns(const struct end *end);

#endif
