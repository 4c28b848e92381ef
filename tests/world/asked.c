/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/asked.h"

#include "world/checks.h"

#define FULL_PART 64u /* of the time under faults: until a full queue is tried again */

/* "message 5" */
#define NAME(world, asked) plan_event_name((world)->plan->events[(asked)->event].kind), (asked)->event

bool asked_may_be_refused(struct world *world, const struct end *end, int error, const char *call)
{
    if (error == -LH_ENOMEM && world->memory_refused)
        return true;
    if (error == -LH_EAGAIN)
        return true;
    if (lh_connection_error(end->connection) == 0)
        world_fail(world, "error", "%s at end %u: %d, %s", call, world_end_number(world, end), error,
                   lh_last_error());
    return false;
}

lh_time asked_retry_ns(const struct world *world, int error)
{
    lh_time wait_ns = world->plan->heal_ns / FULL_PART;
    return world->now + (error == -LH_EAGAIN && wait_ns > RETRY_NS ? wait_ns : RETRY_NS);
}

void asked_on_call(struct world *world, const struct end *end, struct asked *asked, struct queue *queue,
                   int error)
{
    if (!queue)
        return;
    engine_on_asked(world, end->engine, queue, error);
    if (!error)
        asked->due = (struct entry_due){.queue = (uint8_t)(1 + (queue - end->engine->queues)),
                                        .connection = end->connection,
                                        .request = asked->request};
}

bool asked_is_due(const struct asked *asked, uint32_t queue, const struct lh_completion *entry)
{
    return asked->due.queue == queue + 1 && !asked->due.came &&
           entry->connection == asked->due.connection && entry->request == asked->due.request;
}

/* Completions are reported once, and do not change. */
static void look_again(struct world *world, const struct asked *asked)
{
    struct lh_result again = asked->result;
    int done = lh_test(asked->request, &again);
    if (world_sings_once(world, CANARY_twice))
        again.bytes++;
    if (!done || again.error != asked->result.error || again.bytes != asked->result.bytes ||
        again.ended_ns != asked->result.ended_ns)
        world_fail(world, "ends", "%s %u ended with %d and then with %d, or otherwise", NAME(world, asked),
                   asked->result.error, again.error);
}

/* What went well began before it ended, and ended before now. */
static void check_times(struct world *world, struct asked *asked, uint32_t host)
{
    struct lh_result *result = &asked->result;
    lh_time now = sim_world_host_now(world->sim, host);
    if (result->error == 0 && world_sings_once(world, CANARY_early))
        result->ended_ns = now + 1;
    if (result->error == 0 && (result->started_ns > result->ended_ns || result->ended_ns > now))
        world_fail(world, "times", "%s %u went from %llu to %llu, and it is %llu", NAME(world, asked),
                   (unsigned long long)result->started_ns, (unsigned long long)result->ended_ns,
                   (unsigned long long)now);
}

bool asked_has_ended(struct world *world, struct asked *asked, const char *what, uint32_t host)
{
    bool queued = asked->due.queue != 0;
    if (!asked->request && (!queued || !asked->begun || asked->done))
        return false;
    if (asked->done) {
        look_again(world, asked);
        return false;
    }
    if (world->canary == CANARY_hidden ||
        !(queued ? asked->due.came : lh_test(asked->request, &asked->result))) {
        world->canary_sang |= world->canary == CANARY_hidden;
        return false;
    }
    asked->done = true;
    check_times(world, asked, host);
    world_note(world, (uint64_t)(asked->result.error + 1000) << 32 | asked->result.bytes,
               "%s %u is %s: %d, %llu bytes", NAME(world, asked), what, asked->result.error,
               (unsigned long long)asked->result.bytes);
    return true;
}

bool asked_cancel(struct world *world, struct end *end, struct asked *asked, bool by_freeing)
{
    if (!asked->request || asked->done || lh_test(asked->request, NULL))
        return false;
    asked->canceled = true;
    world_note(world, asked->event, "end %u cancels %s %u", world_end_number(world, end),
               NAME(world, asked));
    if (by_freeing) {
        lh_request_free(asked->request);
        asked->request = NULL;
        asked->freed = true;
        asked->done = true;
    } else {
        lh_cancel(asked->request);
        if (!lh_test(asked->request, NULL))
            world_fail(world, "ends", "%s %u was canceled and is still pending", NAME(world, asked));
    }
    world_touch(world, end);
    return true;
}

void asked_on_closed(struct world *world, struct asked *asked)
{
    if (!asked->done && world->canary != CANARY_hidden)
        world_fail(world, "ends", "%s %u is pending on a closed connection", NAME(world, asked));
    lh_request_free(asked->request);
    asked->request = NULL;
}
