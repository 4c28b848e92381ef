/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/remote.h"

#include <string.h>

#include <longhaul/onesided.h>

#include "base/bytes.h"
#include "base/min_max.h"
#include "world/asked.h"
#include "world/checks.h"
#include "world/choice.h"
#include "world/exposed.h"
#include "world/scatter.h"

#define KEY_ACCESS 8u /* where fields lie in a key (longhaul/onesided.h) */
#define KEY_BYTES  12u
#define RIGHT_OF   16u /* so many operations, RIGHT of them are none of the wrong kinds */
#define RIGHT      11u
#define MARK_BIT   20u /* of an event's seed: from here on what this file draws of it */

/* Memory that a side exposes; plan->room is the access. */
struct region {
    const struct plan_event *plan;
    uint32_t event;
    struct exposed exposed;
    struct lh_region *region; /* NULL: it is not exposed now */
    struct lh_connection *connection;
    struct lh_key key;  /* the last one; zeros at first */
    bool revoked;       /* for good */
    uint32_t exposures; /* how often it was exposed, or withdrawn */
    bool notifies;
    lh_time retry_ns;
};

/* plan->room is the place in the region. */
struct operation {
    const struct plan_event *plan;
    uint32_t event;
    struct region *region;
    bool writes;
    uint64_t bytes;
    uint8_t *data;        /* GUARD_BYTES before and behind it */
    struct scatter *list; /* instead of it; or NULL */
    struct asked asked;
    lh_time retry_ns;
    /* As it was begun: */
    int expected; /* error, from the peer */
    bool notify;
    uint32_t exposures; /* of its region; another number: it is no more the one that it began with */
    uint32_t since;     /* the clock of what is exposed */
    uint32_t write;     /* number there; EXPOSED_NEVER: it may place nothing */
    bool notified;
};

struct remote {
    struct region *regions[2]; /* by the side that exposes them */
    uint32_t region_count[2];
    struct operation *operations[2]; /* by the side that starts them */
    uint32_t operation_count[2];
};

static bool is_operation(const struct plan_event *event)
{
    return event->kind == EVENT_write || event->kind == EVENT_read;
}

static uint64_t mark(const struct plan_event *event, uint32_t bit, uint64_t below)
{
    return (event->seed >> (MARK_BIT + bit)) % below;
}

/* ---- making ------------------------------------------------------------------------------------------ */

static struct region *find_region(const struct remote *remote, uint32_t event)
{
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < remote->region_count[side]; i++)
            if (remote->regions[side][i].event == event)
                return &remote->regions[side][i];
    return NULL;
}

static struct operation *find_operation(const struct remote *remote, uint32_t event)
{
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < remote->operation_count[side]; i++)
            if (remote->operations[side][i].event == event)
                return &remote->operations[side][i];
    return NULL;
}

static void add_region(struct world *world, struct remote *remote, uint32_t number)
{
    const struct plan_event *event = &world->plan->events[number];
    struct region *region = &remote->regions[event->side][remote->region_count[event->side]++];
    *region = (struct region){.plan = event, .event = number};
    exposed_make(world, &region->exposed, event->bytes);
}

static void blank(struct operation *operation)
{
    memset(operation->data, BLANK_BYTE, operation->bytes);
    if (operation->list)
        scatter_blank(operation->list);
}

static void fill(struct operation *operation)
{
    memcpy(operation->data, world_content(operation->plan->seed, operation->bytes), operation->bytes);
    if (operation->list)
        scatter_put(operation->list, operation->data, operation->bytes);
}

static void add_operation(struct world *world, struct remote *remote, uint32_t number)
{
    const struct plan_event *event = &world->plan->events[number];
    struct operation *operation = &remote->operations[event->side][remote->operation_count[event->side]++];
    *operation = (struct operation){.plan = event,
                                    .event = number,
                                    .region = find_region(remote, event->target),
                                    .writes = event->kind == EVENT_write,
                                    .bytes = event->bytes,
                                    .asked.event = number};
    size_t bytes = event->bytes + 2 * GUARD_BYTES;
    operation->data = (uint8_t *)world_memory(world, bytes) + GUARD_BYTES;
    memset(operation->data - GUARD_BYTES, GUARD_BYTE, bytes);
    if (plan_has(world->plan, FEATURE_lists) && mark(event, 0, 2)) {
        operation->list = world_memory(world, sizeof *operation->list);
        scatter_make(world, operation->list, event->bytes, event->seed ^ 1);
    }
    blank(operation);
    world->bytes_asked += event->bytes;
}

void remote_make(struct world *world, struct pair *pair)
{
    const struct plan *plan = world->plan;
    struct remote *remote = world_memory(world, sizeof *remote);
    uint32_t number = (uint32_t)(pair - world->pairs), count = 1;
    pair->remote = NULL;
    if (!plan_has(plan, FEATURE_onesided))
        return;
    pair->remote = memset(remote, 0, sizeof *remote);
    for (uint32_t i = 0; i < plan->event_count; i++)
        count += plan->events[i].pair == number;
    for (uint32_t side = 0; side < 2; side++) {
        remote->regions[side] = world_memory(world, count * sizeof *remote->regions[side]);
        remote->operations[side] = world_memory(world, count * sizeof *remote->operations[side]);
    }
    for (uint32_t i = 0; i < plan->event_count; i++) { /* an operation comes after its region */
        const struct plan_event *event = &plan->events[i];
        if (event->off || event->pair != number)
            continue;
        if (event->kind == EVENT_expose)
            add_region(world, remote, i);
        else if (is_operation(event) && !plan->events[event->target].off)
            add_operation(world, remote, i);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* A forger writes what it likes to where its peer may. */
static void check_memory(struct world *world, const struct pair *pair, const struct region *region,
                         const char *checker)
{
    const struct exposed *exposed = &region->exposed;
    bool writable = region->region && (region->plan->room & LH_ACCESS_WRITE);
    uint64_t same = exposed_compare_now(exposed);
    if (same < exposed->bytes && (pair->trusted || !writable))
        world_fail(world, checker, "byte %llu of what event %u %s is of no write that it can be of",
                   (unsigned long long)same, region->event, region->region ? "exposes" : "has withdrawn");
}

/* Its user has it back, and writes into it at once. */
static void withdraw(struct world *world, const struct pair *pair, struct region *region)
{
    if (world_sings_once(world, CANARY_stray))
        region->exposed.memory[region->exposed.bytes / 2] ^= 1;
    check_memory(world, pair, region, "memory");
    region->region = NULL;
    region->exposures++;
    exposed_withdraw(&region->exposed);
    if (world_sings_once(world, CANARY_after))
        region->exposed.memory[0] ^= 1;
}

/* The inner connection may have ended alone, and stays so until the next one: by what a forger sent for
 * any reason. */
static bool has_ended(const struct pair *pair, int error)
{
    if (!pair->trusted)
        return error != 0 && error != -LH_ENOMEM && error != -LH_EAGAIN;
    return (error == -LH_EPEER || error == -LH_ECLOSED) && pair->may_end;
}

static void expose(struct world *world, struct pair *pair, uint32_t side, struct region *region,
                   lh_time *next)
{
    struct end *end = &pair->ends[side];
    const struct plan_event *plan = region->plan;
    lh_time at_ns = plan->at_ns > region->retry_ns ? plan->at_ns : region->retry_ns;
    if (region->region || region->revoked)
        return;
    if (at_ns > world->now) {
        lh_keep_earlier(next, at_ns);
        return;
    }
    check_memory(world, pair, region, "revoked");
    struct lh_completion_queue *queue = mark(plan, 0, 4) ? engine_notices(end) : NULL;
    const struct lh_part part = {.address = region->exposed.memory, .bytes = region->exposed.bytes};
    struct lh_region *made;
    int error = lh_expose(end->connection, &part, (uint32_t)plan->room, queue, region->event, &made);
    if (has_ended(pair, error)) {
        region->retry_ns = LH_TIME_NEVER;
        return;
    }
    if (error && asked_may_be_refused(world, end, error, "lh_expose"))
        region->retry_ns = asked_retry_ns(world, error);
    if (error) {
        lh_keep_earlier(next, end->error ? LH_TIME_NEVER : asked_retry_ns(world, error));
        return;
    }
    region->region = made;
    region->connection = end->connection;
    region->notifies = queue != NULL;
    region->exposures++;
    lh_region_key(made, &region->key);
    exposed_open(&region->exposed, plan->seed);
    world_note(world, region->event, "end %u exposes %llu bytes of event %u", world_end_number(world, end),
               (unsigned long long)part.bytes, region->event);
    world_touch(world, end);
}

void remote_revoke(struct world *world, const struct plan_event *event)
{
    struct pair *pair = &world->pairs[event->pair];
    struct region *region = pair->remote ? find_region(pair->remote, event->target) : NULL;
    struct end *end = &pair->ends[event->side];
    if (!region || region->revoked || !host_runs(world, end->host))
        return;
    region->revoked = true;
    if (!region->region)
        return;
    lh_revoke(region->region);
    withdraw(world, pair, region);
    world_note(world, region->event, "end %u revokes event %u", world_end_number(world, end),
               region->event);
    world_touch(world, end);
}

/* ---- starting operations ----------------------------------------------------------------------------- */

/* What may be wrong with an operation. */
enum wrong {
    WRONG_NOTHING,
    WRONG_KEY,    /* one bit */
    WRONG_OWNER,  /* the key of another connection's region, or of one that this side exposes */
    WRONG_RANGE,  /* with a key that says that it is larger */
    WRONG_BEYOND, /* the call sees it by itself */
    WRONG_ACCESS, /* with a key that says that it may, if it may not */
};

static enum wrong wrong_of(const struct plan_event *event)
{
    uint64_t kind = mark(event, 4, RIGHT_OF);
    return kind < RIGHT ? WRONG_NOTHING : (enum wrong)(kind - RIGHT + WRONG_KEY);
}

/* A key that somebody else was given. */
static struct lh_key other_key(const struct world *world, const struct region *own)
{
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        const struct remote *remote = world->pairs[i].remote;
        for (uint32_t side = 0; side < 2; side++)
            for (uint32_t j = 0; j < remote->region_count[side]; j++) {
                const struct region *region = &remote->regions[side][j];
                if (region->region &&
                    (region->plan->pair != own->plan->pair || region->plan->side != own->plan->side))
                    return region->key;
            }
    }
    return (struct lh_key){{0}};
}

/* What the call comes to at once; else *expected is what the peer answers. */
static int falsify(const struct world *world, const struct operation *operation, struct lh_onesided *wanted,
                   int *expected)
{
    const struct region *region = operation->region;
    uint32_t access = operation->writes ? LH_ACCESS_WRITE : LH_ACCESS_READ;
    uint8_t *key = wanted->key.bytes;
    *expected = region->region ? 0 : -LH_EKEY;
    switch (wrong_of(operation->plan)) {
    case WRONG_NOTHING:
        break;
    case WRONG_KEY:
        key[mark(operation->plan, 9, KEY_ACCESS)] ^= (uint8_t)(1u << mark(operation->plan, 12, 8));
        *expected = -LH_EKEY;
        break;
    case WRONG_OWNER:
        memcpy(key, other_key(world, region).bytes, KEY_ACCESS);
        *expected = -LH_EKEY;
        break;
    case WRONG_RANGE:
        wanted->offset = region->exposed.bytes - operation->bytes + 1 + mark(operation->plan, 9, 4096);
        lh_put_be32(key + KEY_BYTES, UINT32_MAX);
        *expected = region->region ? -LH_ERANGE : -LH_EKEY;
        break;
    case WRONG_BEYOND:
        wanted->offset = UINT64_MAX - mark(operation->plan, 9, 4096);
        break;
    case WRONG_ACCESS:
        lh_put_be16(key + KEY_ACCESS, LH_ACCESS_WRITE | LH_ACCESS_READ);
        break;
    }
    if (!(region->plan->room & access))
        *expected = -LH_EKEY;
    if (*expected == 0 && wanted->notify && !region->notifies)
        *expected = -LH_EUNSUPPORTED;
    if (!(lh_get_be16(key + KEY_ACCESS) & access))
        return -LH_EKEY;
    uint64_t key_bytes = (uint64_t)lh_get_be16(key + KEY_BYTES - 2) << 32 | lh_get_be32(key + KEY_BYTES);
    return wanted->offset > key_bytes || operation->bytes > key_bytes - wanted->offset ? -LH_ERANGE : 0;
}

/* Tells the entry of each operation from all others. */
static uint64_t user_value(const struct operation *operation)
{
    return operation->plan->seed << 32 | operation->event;
}

static int call(struct world *world, struct end *end, struct operation *operation,
                struct lh_onesided *wanted)
{
    struct asked *asked = &operation->asked;
    const struct lh_part whole = {.address = operation->data, .bytes = operation->bytes};
    struct queue *queue = engine_queue(world, end, operation->plan->seed);
    bool detached =
        queue && mark(operation->plan, 1, 2) && !choice_may_be_canceled(world->plan, operation->event);
    struct lh_request **request = detached ? NULL : &asked->request;
    wanted->parts = operation->list ? operation->list->parts : &whole;
    wanted->count = operation->list ? operation->list->count : 1;
    wanted->queue = queue ? queue->queue : NULL;
    wanted->user = user_value(operation);
    int error = operation->writes ? lh_write(end->connection, wanted, request)
                                  : lh_read(end->connection, wanted, request);
    if (error != -LH_EKEY && error != -LH_ERANGE)
        asked_on_call(world, end, asked, queue, error);
    return error;
}

/* The scheme is of the side that receives the bytes. */
static bool is_coded(const struct world *world, const struct operation *operation)
{
    const struct plan_event *plan = operation->plan;
    uint32_t side = operation->writes ? 1u - plan->side : plan->side;
    const char *scheme = plan_reliability(world->plan, &world->plan->pairs[plan->pair], side);
    return strncmp(scheme, "sr-", 3) != 0;
}

static void note_begun(struct world *world, struct end *end, struct operation *operation)
{
    struct region *region = operation->region;
    struct exposed *exposed = &region->exposed;
    operation->asked.begun = true;
    operation->exposures = region->exposures;
    operation->since = exposed->clock;
    operation->write = EXPOSED_NEVER;
    if (operation->writes && operation->expected == 0)
        operation->write = exposed_begin(exposed, operation->plan->room, operation->bytes,
                                         world_content(operation->plan->seed, operation->bytes),
                                         is_coded(world, operation));
    world_note(world, operation->event, "end %u begins %s %u, %llu bytes, expects %d",
               world_end_number(world, end), plan_event_name(operation->plan->kind), operation->event,
               (unsigned long long)operation->bytes, operation->expected);
    world_touch(world, end);
}

static void start(struct world *world, struct pair *pair, uint32_t side, struct operation *operation,
                  lh_time *next)
{
    struct end *end = &pair->ends[side];
    lh_time at_ns =
        operation->plan->at_ns > operation->retry_ns ? operation->plan->at_ns : operation->retry_ns;
    if (operation->asked.begun)
        return;
    if (at_ns > world->now) {
        lh_keep_earlier(next, at_ns);
        return;
    }
    struct lh_onesided wanted = {.key = operation->region->key,
                                 .offset = operation->plan->room,
                                 .notify = operation->writes && mark(operation->plan, 2, 2),
                                 .immediate = user_value(operation)};
    operation->notify = wanted.notify;
    int refused = falsify(world, operation, &wanted, &operation->expected);
    if (operation->writes)
        fill(operation);
    int error = call(world, end, operation, &wanted);
    if (error == 0 && refused == 0) {
        note_begun(world, end, operation);
        return;
    }
    blank(operation);
    if ((refused && error == refused) || has_ended(pair, error)) {
        operation->asked.begun = operation->asked.done = true;
        operation->asked.result.error = error;
        operation->write = EXPOSED_NEVER;
        return;
    }
    if (!error)
        world_fail(world, "access", "%s %u is started, and should be refused by the call with %d",
                   plan_event_name(operation->plan->kind), operation->event, refused);
    else if (asked_may_be_refused(world, end, error, "lh_write or lh_read"))
        operation->retry_ns = asked_retry_ns(world, error);
    lh_keep_earlier(next, end->error ? LH_TIME_NEVER : asked_retry_ns(world, error));
}

void remote_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct remote *remote = pair->remote;
    for (uint32_t i = 0; remote && i < remote->region_count[side] && !world_failed(world); i++)
        expose(world, pair, side, &remote->regions[side][i], next);
    for (uint32_t i = 0; remote && i < remote->operation_count[side] && !world_failed(world); i++)
        start(world, pair, side, &remote->operations[side][i], next);
}

void remote_cancel(struct world *world, const struct plan_event *event)
{
    const struct plan_event *target = &world->plan->events[event->target];
    struct pair *pair = &world->pairs[target->pair];
    struct operation *operation = pair->remote ? find_operation(pair->remote, event->target) : NULL;
    struct end *end = &pair->ends[target->side];
    if (operation && end->open && host_runs(world, end->host) &&
        asked_cancel(world, end, &operation->asked, event->seed & 1))
        blank(operation);
}

/* ---- what came of it --------------------------------------------------------------------------------- */

/* Whether its region is the one that it began with. */
static bool is_current(const struct operation *operation)
{
    return operation->region->exposures == operation->exposures && operation->region->region;
}

/* All bytes of a write are there, as somebody has learned just now. */
static void finish_write(struct world *world, const struct pair *pair, struct operation *operation)
{
    struct exposed *exposed = &operation->region->exposed;
    if (operation->write == EXPOSED_NEVER || !is_current(operation))
        return;
    if (operation->bytes > 0 && world_sings_once(world, CANARY_hollow))
        exposed->memory[operation->plan->room] ^= 1;
    if (exposed->writes[operation->write].over == EXPOSED_NEVER)
        exposed_finish(exposed, operation->write);
    check_memory(world, pair, operation->region, "placed");
}

static void check_read(struct world *world, const struct pair *pair, struct operation *operation)
{
    if (operation->list)
        scatter_get(operation->list, operation->data, operation->bytes);
    if (operation->bytes > 0 && world_sings_once(world, CANARY_stranger))
        operation->data[operation->bytes / 2] ^= 1;
    const struct exposed *exposed = &operation->region->exposed;
    if (!is_current(operation) || !pair->trusted)
        return;
    if (is_coded(world, operation) &&
        exposed_is_busy(exposed, operation->plan->room, operation->bytes, operation->since))
        return;
    uint64_t same = exposed_compare(exposed, operation->plan->room, operation->bytes, operation->data,
                                    operation->since);
    if (same < operation->bytes)
        world_fail(world, "read", "byte %llu of read %u was not there while it ran",
                   (unsigned long long)same, operation->event);
}

/* Why it may have failed, besides what was wrong with it from the start. */
static bool may_fail(const struct world *world, const struct pair *pair, const struct operation *operation,
                     int error)
{
    const struct asked *asked = &operation->asked;
    switch (-error) {
    case LH_EKEY: /* meanwhile */
        return operation->region->exposures != operation->exposures;
    case LH_ECANCELED:
        return asked->canceled;
    case LH_ENOMEM:
        return plan_any(world->plan, EVENT_memory);
    case LH_EPEER:
    case LH_ECLOSED:
        return asked->cut_off || pair->may_end;
    default:
        return false;
    }
}

static void check_outcome(struct world *world, const struct pair *pair, struct operation *operation)
{
    const char *name = plan_event_name(operation->plan->kind);
    int error = operation->asked.result.error;
    if (operation->expected != 0 && world_sings_once(world, CANARY_burglar))
        error = 0;
    if (!pair->trusted)
        return;
    if (error == 0 && operation->expected != 0)
        world_fail(world, "access", "%s %u is done, and was not allowed: %d", name, operation->event,
                   operation->expected);
    else if (error == 0 && operation->asked.result.bytes != operation->bytes)
        world_fail(world, "bytes", "%s %u of %llu bytes is done with %llu", name, operation->event,
                   (unsigned long long)operation->bytes, (unsigned long long)operation->asked.result.bytes);
    else if (error != 0 && error != operation->expected && !may_fail(world, pair, operation, error))
        world_fail(world, "outcome", "%s %u ended with %d, and should with %d", name, operation->event,
                   error, operation->expected);
}

static void harvest(struct world *world, struct pair *pair, uint32_t side, bool gone)
{
    struct remote *remote = pair->remote;
    for (uint32_t i = 0; i < remote->operation_count[side]; i++) {
        struct operation *operation = &remote->operations[side][i];
        struct asked *asked = &operation->asked;
        if (!asked_has_ended(world, asked, operation->writes ? "written" : "read", pair->ends[side].host))
            continue;
        asked->cut_off = gone && asked->result.error != 0;
        check_outcome(world, pair, operation);
        if (asked->result.error == 0 && operation->writes)
            finish_write(world, pair, operation);
        if (asked->result.error == 0 && !operation->writes)
            check_read(world, pair, operation);
        blank(operation);
        world->operated += asked->result.error == 0;
        if (operation->plan->seed & 2) {
            lh_request_free(asked->request);
            asked->request = NULL;
        }
    }
}

void remote_harvest(struct world *world, struct pair *pair, uint32_t side)
{
    struct remote *remote = pair->remote;
    bool gone = lh_connection_error(pair->ends[side].connection) != 0;
    if (!remote)
        return;
    harvest(world, pair, side, gone);
    for (uint32_t i = 0; gone && i < remote->operation_count[side]; i++) {
        const struct asked *asked = &remote->operations[side][i].asked;
        if (asked->begun && !asked->done && world->canary != CANARY_hidden)
            world_fail(world, "ends", "event %u is pending on a connection that has ended", asked->event);
    }
}

void remote_on_closed(struct world *world, struct pair *pair, uint32_t side)
{
    struct remote *remote = pair->remote;
    if (!remote)
        return;
    harvest(world, pair, side, true);
    for (uint32_t i = 0; i < remote->operation_count[side]; i++)
        if (remote->operations[side][i].asked.begun)
            asked_on_closed(world, &remote->operations[side][i].asked);
    for (uint32_t i = 0; i < remote->region_count[side]; i++) {
        remote->regions[side][i].retry_ns = 0;
        if (remote->regions[side][i].region)
            withdraw(world, pair, &remote->regions[side][i]);
    }
}

/* ---- entries ----------------------------------------------------------------------------------------- */

static struct operation *operation_of(struct world *world, uint64_t user)
{
    uint32_t number = (uint32_t)user;
    if (number >= world->plan->event_count || !is_operation(&world->plan->events[number]))
        return NULL;
    const struct remote *remote = world->pairs[world->plan->events[number].pair].remote;
    struct operation *operation = remote ? find_operation(remote, number) : NULL;
    return operation && user_value(operation) == user ? operation : NULL;
}

void remote_on_entry(struct world *world, uint32_t host, uint32_t queue, const struct lh_completion *entry)
{
    struct operation *operation = operation_of(world, entry->user);
    bool writes = entry->operation == LH_OPERATION_WRITE;
    if (!operation || operation->writes != writes || !asked_is_due(&operation->asked, queue, entry)) {
        world_fail(world, "entries",
                   "queue %u of host %u has an entry of an operation that is not due: user %llx", queue,
                   host, (unsigned long long)entry->user);
        return;
    }
    operation->asked.due.came = true;
    operation->asked.result = entry->result;
    world_note(world, entry->user, "host %u polls the entry of %s %u: %d", host,
               plan_event_name(operation->plan->kind), operation->event, entry->result.error);
}

/* Its user's own value says which region it is; what the peer says of its write a forger may change. */
static struct region *region_of(struct world *world, uint32_t host, const struct lh_completion *entry)
{
    const struct plan *plan = world->plan;
    if (entry->user >= plan->event_count || plan->events[entry->user].kind != EVENT_expose)
        return NULL;
    const struct pair *pair = &world->pairs[plan->events[entry->user].pair];
    struct region *region = pair->remote ? find_region(pair->remote, (uint32_t)entry->user) : NULL;
    return region && pair->ends[region->plan->side].host == host ? region : NULL;
}

static bool is_of(const struct operation *operation, const struct region *region,
                  const struct lh_completion *entry)
{
    return operation && operation->writes && operation->region == region && operation->notify &&
           !operation->notified && operation->expected == 0 && !entry->request &&
           entry->result.bytes == operation->bytes;
}

void remote_on_notification(struct world *world, uint32_t host, const struct lh_completion *entry)
{
    struct region *region = region_of(world, host, entry);
    struct operation *operation = operation_of(world, entry->result.tag);
    struct pair *pair = region ? &world->pairs[region->plan->pair] : NULL;
    if (world_sings_once(world, CANARY_mute))
        return;
    if (is_of(operation, region, entry)) {
        world_note(world, entry->result.tag, "host %u is notified of write %u", host, operation->event);
        finish_write(world, pair, operation);
        operation->notified = true;
    } else if (!pair || pair->trusted) {
        world_fail(world, "notify",
                   "host %u is notified of a write that is none: region %llu, tag %llx, %llu bytes", host,
                   (unsigned long long)entry->user, (unsigned long long)entry->result.tag,
                   (unsigned long long)entry->result.bytes);
    }
}

/* ---- is it over, and was it right -------------------------------------------------------------------- */

bool remote_over(const struct pair *pair)
{
    const struct remote *remote = pair->remote;
    bool usable = pair->up && !pair->ends[0].error && !pair->ends[1].error;
    for (uint32_t side = 0; remote && side < 2; side++)
        for (uint32_t i = 0; i < remote->operation_count[side]; i++) {
            const struct asked *asked = &remote->operations[side][i].asked;
            if (asked->begun ? !asked->done : usable)
                return false;
        }
    return true;
}

static void check_operation(struct world *world, const struct pair *pair, const struct operation *operation)
{
    const struct asked *asked = &operation->asked;
    bool done = asked->done || !asked->begun;
    int error = asked->freed ? -LH_ECANCELED : asked->result.error;
    if (!check_filled(operation->data - GUARD_BYTES, GUARD_BYTES, GUARD_BYTE) ||
        !check_filled(operation->data + operation->bytes, GUARD_BYTES, GUARD_BYTE) ||
        (operation->list && !scatter_is_whole(operation->list, false)))
        world_fail(world, "guard", "event %u: a byte beside its buffer changed", operation->event);
    if (done && (!check_filled(operation->data, operation->bytes, BLANK_BYTE) ||
                 (operation->list && !scatter_is_whole(operation->list, true))))
        world_fail(world, "late", "event %u: its buffer changed after it was handed back",
                   operation->event);
    if (asked->due.queue && !asked->due.came)
        world_fail(world, "entries", "event %u: an entry never came", operation->event);
    if (!pair->trusted || !asked->begun)
        return;
    if (error == 0 && operation->notify && !operation->notified)
        world_fail(world, "notify", "write %u is done, and nobody was notified", operation->event);
    if ((error == -LH_EKEY || error == -LH_ERANGE) && operation->notified)
        world_fail(world, "notify", "write %u was refused, and its peer notified", operation->event);
}

static void check_region(struct world *world, const struct pair *pair, struct region *region)
{
    const struct exposed *exposed = &region->exposed;
    if (!check_filled(exposed->memory - GUARD_BYTES, GUARD_BYTES, GUARD_BYTE) ||
        !check_filled(exposed->memory + exposed->bytes, GUARD_BYTES, GUARD_BYTE))
        world_fail(world, "guard", "event %u: a byte beside exposed memory changed", region->event);
    check_memory(world, pair, region, "revoked");
}

void remote_check(struct world *world, struct pair *pair)
{
    const struct remote *remote = pair->remote;
    for (uint32_t side = 0; remote && side < 2; side++) {
        for (uint32_t i = 0; i < remote->operation_count[side]; i++)
            check_operation(world, pair, &remote->operations[side][i]);
        for (uint32_t i = 0; i < remote->region_count[side]; i++)
            check_region(world, pair, &remote->regions[side][i]);
    }
}

struct work_left remote_left(const struct world *world, const struct pair *pair)
{
    const struct remote *remote = pair->remote;
    struct work_left left = {0};
    for (uint32_t side = 0; remote && side < 2; side++)
        for (uint32_t i = 0; i < remote->operation_count[side]; i++) {
            const struct operation *operation = &remote->operations[side][i];
            uint32_t from = operation->writes ? side : 1 - side;
            const struct lh_attr *attr = &pair->plan->attr[from];
            uint64_t buffer_bytes = plan_receive_buffer(world->plan, pair->plan, 1 - from);
            uint64_t capacity_bytes = attr->window_bytes < buffer_bytes ? attr->window_bytes : buffer_bytes;
            if (operation->asked.done)
                continue;
            left.bytes += operation->bytes;
            /* The blobs of the inner connection, a header, a clear-to-send, and an answer. */
            left.rounds +=
                8 + 2 * (operation->bytes / attr->chunk_bytes) + operation->bytes / capacity_bytes;
            left.rounds += healing_window_rounds(world, pair, from, operation->bytes);
        }
    return left;
}
