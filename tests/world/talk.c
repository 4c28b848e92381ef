/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/talk.h"

#include <limits.h>
#include <string.h>

#include "base/min_max.h"
#include "world/asked.h"
#include "world/checks.h"
#include "world/choice.h"
#include "world/engines.h"
#include "world/healing.h"
#include "world/memory.h"
#include "world/overdue.h"
#include "world/ranges.h"
#include "world/scatter.h"

struct talk_message {
    const struct plan_event *plan;
    uint32_t event;
    uint64_t bytes;
    uint64_t room;
    struct choice choice;
    uint8_t *data;
    uint8_t *buffer;      /* GUARD_BYTES before and behind it */
    struct scatter *from; /* instead of data, when it is sent in parts; else NULL */
    struct scatter *into; /* instead of buffer, which is filled from it */
    struct asked sent;
    struct asked received;
    bool held;  /* with matching: its requests are kept, for they may be canceled */
    bool alone; /* one side canceled it, and the other one would wait for ever: it cancels, too */
};

struct talk_way {
    struct talk_message *messages;
    uint32_t *order; /* in which the receives are posted: numbers of messages */
    bool matched;    /* receives choose messages by their tags */
    uint32_t count;
    uint32_t first;  /* of this connection */
    uint32_t sent;   /* messages before this were asked to be sent */
    uint32_t posted; /* and so many to be received, in their order */
    lh_time send_retry_ns;
    lh_time recv_retry_ns;
    bool send_early; /* an entry came: the next one goes at once */
    bool recv_early;
};

struct talk {
    struct talk_way ways[2]; /* by sender */
};

/* ---- making ------------------------------------------------------------------------------------------ */

static uint32_t count_messages(const struct plan *plan, uint32_t pair, uint32_t side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        count += event->kind == EVENT_message && !event->off && event->pair == pair && event->side == side;
    }
    return count;
}

/* Keeps the list in the order of times; of two at one time the first drawn goes first. */
static void insert(struct talk_way *way, const struct plan_event *event, uint32_t number)
{
    uint32_t place = way->count++;
    while (place > 0 && way->messages[place - 1].plan->at_ns > event->at_ns) {
        way->messages[place] = way->messages[place - 1];
        place--;
    }
    way->messages[place] = (struct talk_message){.plan = event,
                                                 .event = number,
                                                 .bytes = event->bytes,
                                                 .room = event->room,
                                                 .sent.event = number,
                                                 .received.event = number};
}

/* The message of the way that was asked for as the n-th, to be sent or to be received. */
static struct talk_message *nth(const struct talk_way *way, uint32_t n, bool sending)
{
    return &way->messages[sending ? n : way->order[n]];
}

static struct scatter *make_scatter(struct world *world, uint64_t bytes, uint64_t seed)
{
    struct scatter *scatter = world_memory(world, sizeof *scatter);
    scatter_make(world, scatter, bytes, seed);
    return scatter;
}

static void fill_message(struct world *world, struct talk_message *message)
{
    uint64_t seed = message->plan->seed;
    bool lists = plan_has(world->plan, FEATURE_lists);
    message->data = world_memory(world, message->bytes + 1);
    message->buffer = (uint8_t *)world_memory(world, message->room + 2 * GUARD_BYTES) + GUARD_BYTES;
    memcpy(message->data, world_content(message->plan->seed, message->bytes), message->bytes);
    memset(message->buffer - GUARD_BYTES, GUARD_BYTE, GUARD_BYTES);
    memset(message->buffer, BLANK_BYTE, message->room);
    memset(message->buffer + message->room, GUARD_BYTE, GUARD_BYTES);
    if (lists && (seed >> 40 & 1)) {
        message->from = make_scatter(world, message->bytes, seed ^ 1);
        scatter_put(message->from, message->data, message->bytes);
    }
    if (lists && (seed >> 41 & 1))
        message->into = make_scatter(world, message->room, seed ^ 2);
    world->bytes_asked += message->bytes;
}

static void choose(struct talk_way *way, uint32_t number, const struct plan *plan)
{
    struct talk_message *message = &way->messages[number];
    bool tagged = message->from && (message->plan->seed >> 42 & 1);
    message->choice = choice_of(message->plan->seed, number, tagged, way->matched);
    message->held = way->matched && choice_may_be_canceled(plan, message->event);
}

void talk_make(struct world *world, struct pair *pair)
{
    uint32_t number = (uint32_t)(pair - world->pairs);
    pair->talk = world_memory(world, sizeof *pair->talk);
    memset(pair->talk, 0, sizeof *pair->talk);
    for (uint32_t side = 0; side < 2; side++) {
        struct talk_way *way = &pair->talk->ways[side];
        uint32_t count = count_messages(world->plan, number, side);
        way->messages = world_memory(world, (count + 1) * sizeof *way->messages);
        way->order = world_memory(world, (count + 1) * sizeof *way->order);
        way->matched = plan_matches(world->plan, pair->plan, 1 - side);
        for (uint32_t i = 0; i < world->plan->event_count; i++) {
            const struct plan_event *event = &world->plan->events[i];
            if (event->kind == EVENT_message && !event->off && event->pair == number && event->side == side)
                insert(way, event, i);
        }
        for (uint32_t i = 0; i < way->count; i++) {
            fill_message(world, &way->messages[i]);
            choose(way, i, world->plan);
        }
        choice_order(way->order, way->count, way->matched, world->plan->seed + 2 * number + side);
    }
}

/* ---- asking ------------------------------------------------------------------------------------------ */

static void note_asked(struct world *world, struct end *end, const char *what,
                       const struct talk_message *message)
{
    world_note(world, message->event, "end %u %s message %u, %llu bytes into %llu",
               world_end_number(world, end), what, message->event, (unsigned long long)message->bytes,
               (unsigned long long)message->room);
    world_touch(world, end);
}

/* Tells the entry of each request from all others. */
static uint64_t user_value(const struct talk_message *message, bool sending)
{
    return message->plan->seed << 32 | (uint64_t)message->event << 1 | sending;
}

static int ask_in_parts(struct end *end, const struct talk_message *message, bool sending,
                        struct lh_completion_queue *queue, struct lh_request **request)
{
    const struct scatter *scatter = sending ? message->from : message->into;
    const struct lh_part whole = {.address = sending ? message->data : message->buffer,
                                  .bytes = sending ? message->bytes : message->room};
    const struct lh_message what = {.parts = scatter ? scatter->parts : &whole,
                                    .count = scatter ? scatter->count : 1,
                                    .tag = sending ? message->choice.tag : message->choice.wanted,
                                    .ignore = sending ? 0 : message->choice.ignored,
                                    .queue = queue,
                                    .user = user_value(message, sending)};
    return sending ? lh_sendmsg(end->connection, &what, request)
                   : lh_recvmsg(end->connection, &what, request);
}

static int ask_whole(struct end *end, struct talk_message *message, bool sending,
                     struct lh_completion_queue *queue, struct lh_request **request)
{
    uint64_t user = user_value(message, sending);
    if (queue && sending)
        return lh_post_send(end->connection, message->data, message->bytes, NULL, queue, user, request);
    if (queue)
        return lh_post_recv(end->connection, message->buffer, message->room, NULL, queue, user, request);
    return sending ? lh_send(end->connection, message->data, message->bytes, NULL, request)
                   : lh_recv(end->connection, message->buffer, message->room, NULL, request);
}

/* Where the request completes into a queue some are never seen. */
static int ask(struct world *world, struct end *end, struct talk_message *message, bool sending)
{
    struct asked *asked = sending ? &message->sent : &message->received;
    struct queue *queue = engine_queue(world, end, message->plan->seed >> (sending ? 0 : 8));
    bool detached = queue && (message->plan->seed >> 16 & 1) && !message->held;
    struct lh_request **request = detached ? NULL : &asked->request;
    struct lh_completion_queue *own = queue ? queue->queue : NULL;
    int error = (sending ? message->from : message->into) || message->choice.tag != 0
                    ? ask_in_parts(end, message, sending, own, request)
                    : ask_whole(end, message, sending, own, request);
    asked_on_call(world, end, asked, queue, error);
    return error;
}

static void send_due(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct talk_way *way = &pair->talk->ways[side];
    struct end *end = &pair->ends[side];
    while (way->sent < way->count) {
        struct talk_message *message = &way->messages[way->sent];
        lh_time own_ns = way->send_early ? 0 : message->plan->at_ns;
        lh_time at_ns = own_ns > way->send_retry_ns ? own_ns : way->send_retry_ns;
        if (at_ns > world->now) {
            lh_keep_earlier(next, at_ns);
            return;
        }
        int error = ask(world, end, message, true);
        if (error && asked_may_be_refused(world, end, error, "lh_send"))
            way->send_retry_ns = asked_retry_ns(world, error);
        if (error) {
            lh_keep_earlier(next, end->error ? LH_TIME_NEVER : asked_retry_ns(world, error));
            return;
        }
        message->sent.begun = true;
        way->send_early = false;
        way->sent++;
        note_asked(world, end, "sends", message);
    }
}

static void recv_due(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct talk_way *way = &pair->talk->ways[1 - side];
    struct end *end = &pair->ends[side];
    while (way->posted < way->count) {
        struct talk_message *message = nth(way, way->posted, false);
        lh_time own_ns = way->recv_early ? 0 : message->plan->span_ns;
        lh_time at_ns = own_ns > way->recv_retry_ns ? own_ns : way->recv_retry_ns;
        if (at_ns > world->now) {
            lh_keep_earlier(next, at_ns);
            return;
        }
        int error = ask(world, end, message, false);
        if (error && asked_may_be_refused(world, end, error, "lh_recv"))
            way->recv_retry_ns = asked_retry_ns(world, error);
        if (error) {
            lh_keep_earlier(next, end->error ? LH_TIME_NEVER : asked_retry_ns(world, error));
            return;
        }
        message->received.begun = true;
        way->recv_early = false;
        overdue_on_posted(world, end, message->event, lh_min(message->bytes, message->room));
        way->posted++;
        note_asked(world, end, "receives", message);
    }
}

static struct talk_message *find_message(struct pair *pair, uint32_t event)
{
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < pair->talk->ways[side].count; i++)
            if (pair->talk->ways[side].messages[i].event == event)
                return &pair->talk->ways[side].messages[i];
    return NULL;
}

void talk_on_entry(struct world *world, uint32_t host, uint32_t queue, const struct lh_completion *entry)
{
    bool sending = entry->operation == LH_OPERATION_SEND;
    uint32_t number = (uint32_t)entry->user >> 1;
    const struct plan_event *event =
        number < world->plan->event_count ? &world->plan->events[number] : NULL;
    struct pair *pair = event && event->kind == EVENT_message ? &world->pairs[event->pair] : NULL;
    struct talk_message *message = pair ? find_message(pair, number) : NULL;
    struct asked *asked = !message ? NULL : sending ? &message->sent : &message->received;
    if (!asked || user_value(message, sending) != entry->user || !asked_is_due(asked, queue, entry)) {
        world_fail(world, "entries",
                   "queue %u of host %u has an entry that is not due: user %llx, %s of %llu", queue, host,
                   (unsigned long long)entry->user, sending ? "send" : "receive",
                   (unsigned long long)entry->result.bytes);
        return;
    }
    uint32_t side = sending ? event->side : 1u - event->side;
    struct talk_way *way = &pair->talk->ways[event->side];
    asked->due.came = true;
    asked->result = entry->result;
    if (plan_has(world->plan, FEATURE_engine) && pair->plan->chained[side]) {
        way->send_early |= sending;
        way->recv_early |= !sending;
    }
    world_note(world, entry->user, "host %u polls the entry of message %u, %s: %d", host, number,
               sending ? "sent" : "received", entry->result.error);
}

static void take_data_back(struct talk_message *message)
{
    memset(message->data, BLANK_BYTE, message->bytes);
    if (message->from)
        scatter_blank(message->from);
}

/* A buffer that came back belongs to the user, who writes into it at once. */
static void take_back(struct world *world, struct end *end, struct talk_message *message)
{
    const struct asked *asked = &message->received;
    overdue_on_over(world, end, message->event, asked->canceled ? NULL : &asked->result);
    memset(message->buffer, BLANK_BYTE, message->room);
    if (message->into)
        scatter_blank(message->into);
    if (message->room > 0 && world_sings_once(world, CANARY_late))
        message->buffer[message->room / 2] ^= 1;
}

/* Whether there was anything to be canceled. */
static bool cancel(struct world *world, struct end *end, struct talk_message *message, bool sending,
                   bool by_freeing)
{
    struct asked *asked = sending ? &message->sent : &message->received;
    if (!asked_cancel(world, end, asked, by_freeing))
        return false;
    if (sending)
        take_data_back(message);
    else
        take_back(world, end, message);
    return true;
}

void talk_cancel(struct world *world, const struct plan_event *event)
{
    const struct plan_event *target = &world->plan->events[event->target];
    struct pair *pair = &world->pairs[target->pair];
    bool sending = event->side == 0;
    struct talk_message *message = target->off ? NULL : find_message(pair, event->target);
    struct end *end = &pair->ends[sending ? target->side : 1 - target->side];
    if (message && end->open && host_runs(world, end->host) &&
        cancel(world, end, message, sending, event->seed & 1))
        message->alone = pair->talk->ways[target->side].matched;
}

/* What waits for a message, or a receive, that was canceled. */
static void cancel_alone(struct world *world, struct pair *pair, uint32_t side, bool sending)
{
    struct talk_way *way = &pair->talk->ways[sending ? side : 1 - side];
    for (uint32_t i = way->first; way->matched && i < (sending ? way->sent : way->posted); i++) {
        struct talk_message *message = nth(way, i, sending);
        if (message->alone)
            cancel(world, &pair->ends[side], message, sending, false);
    }
}

void talk_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    send_due(world, pair, side, next);
    recv_due(world, pair, side, next);
    cancel_alone(world, pair, side, true);
    cancel_alone(world, pair, side, false);
}

/* ---- what came of it --------------------------------------------------------------------------------- */

static void check_delivered(struct world *world, struct pair *pair, struct talk_message *message,
                            uint32_t side)
{
    uint64_t tag = message->received.result.tag;
    if (message->into)
        scatter_get(message->into, message->buffer, message->room);
    if (world_sings_once(world, CANARY_tag))
        tag ^= 1;
    if (message->bytes > 0 && world_sings_once(world, CANARY_bytes))
        message->buffer[message->bytes / 2] ^= 1;
    if (!pair->trusted)
        return;
    if (plan_has_deadline(world->plan, pair->plan, side)) {
        const struct ranges_view view = {
            .event = message->event,
            .request = message->received.request,
            .result = &message->received.result,
            .expected = world_content(message->plan->seed, message->bytes),
            .bytes = message->bytes,
            .buffer = message->buffer,
            .room = message->room,
            .blank = pair->plan->zeroes[side] ? 0 : BLANK_BYTE,
        };
        ranges_check(world, &view);
        return;
    }
    if (tag != message->choice.tag)
        world_fail(world, "tag", "message %u has tag %llx, and came with %llx", message->event,
                   (unsigned long long)message->choice.tag, (unsigned long long)tag);
    const uint8_t *expected = world_content(message->plan->seed, message->bytes);
    if (message->received.result.bytes != message->bytes || message->bytes > message->room)
        world_fail(world, "bytes", "message %u has %llu bytes and came as %llu into %llu", message->event,
                   (unsigned long long)message->bytes, (unsigned long long)message->received.result.bytes,
                   (unsigned long long)message->room);
    else if (memcmp(message->buffer, expected, message->bytes) != 0)
        world_fail(world, "bytes", "message %u of %llu bytes came with byte %zu wrong", message->event,
                   (unsigned long long)message->bytes,
                   check_first_difference(message->buffer, expected, message->bytes));
    else if (!check_filled(message->buffer + message->bytes, message->room - message->bytes, BLANK_BYTE))
        world_fail(world, "bytes", "message %u: bytes behind its end changed", message->event);
}

static void free_some(struct talk_message *message, struct asked *asked)
{
    if (message->plan->seed & 2) {
        lh_request_free(asked->request);
        asked->request = NULL;
    }
}

/* gone: the connection has ended, or is closed. */
static void harvest_way(struct world *world, struct pair *pair, uint32_t from, bool sending, bool gone)
{
    struct talk_way *way = &pair->talk->ways[from];
    uint32_t end = sending ? way->sent : way->posted;
    uint32_t host = pair->ends[sending ? from : 1 - from].host;
    for (uint32_t i = way->first; i < end; i++) {
        struct talk_message *message = nth(way, i, sending);
        struct asked *asked = sending ? &message->sent : &message->received;
        if (!asked_has_ended(world, asked, sending ? "sent" : "received", host))
            continue;
        asked->cut_off = gone && asked->result.error != 0;
        if (sending) {
            take_data_back(message);
        } else {
            if (asked->result.error == 0)
                check_delivered(world, pair, message, 1 - from);
            take_back(world, &pair->ends[1 - from], message);
        }
        free_some(message, asked);
    }
}

/* The connection may have ended: with a reason, and with all that was pending. */
static void look_at_connection(struct world *world, struct pair *pair, uint32_t side)
{
    struct end *end = &pair->ends[side];
    int error = lh_connection_error(end->connection);
    if (world_sings_once(world, CANARY_error))
        error = -LH_EPEER;
    if (error == 0 || end->error)
        return;
    end->error = error;
    world_note(world, (uint64_t)-error, "end %u has ended: %s", world_end_number(world, end),
               lh_last_error());
    if (pair->trusted && !pair->may_end)
        world_fail(world, "error", "end %u has ended without a reason: %s", world_end_number(world, end),
                   lh_last_error());
    for (uint32_t from = 0; from < 2; from++) {
        struct talk_way *way = &pair->talk->ways[from];
        for (uint32_t i = way->first; i < (from == side ? way->sent : way->posted); i++) {
            const struct talk_message *message = nth(way, i, from == side);
            const struct asked *asked = from == side ? &message->sent : &message->received;
            if (!asked->done)
                world_fail(world, "ends", "message %u is pending on a connection that has ended",
                           message->event);
        }
    }
}

void talk_harvest(struct world *world, struct pair *pair, uint32_t side)
{
    bool gone = lh_connection_error(pair->ends[side].connection) != 0;
    if (gone && !pair->ends[side].error)
        engine_drain(world, pair->ends[side].engine);
    harvest_way(world, pair, side, true, gone);
    harvest_way(world, pair, 1 - side, false, gone);
    look_at_connection(world, pair, side);
}

/* Requests of one incarnation of the side: those that succeeded, and those that did not. */
static void count_ends(const struct pair *pair, uint32_t side, bool sending, uint64_t *well,
                       uint64_t *failed)
{
    const struct talk_way *way = &pair->talk->ways[sending ? side : 1 - side];
    for (uint32_t i = way->first; i < (sending ? way->sent : way->posted); i++) {
        const struct asked *asked = sending ? &nth(way, i, true)->sent : &nth(way, i, false)->received;
        *well += asked->done && !asked->freed && asked->result.error == 0;
        *failed += asked->done && (asked->freed || asked->result.error != 0);
    }
}

void talk_check_counters(struct world *world, struct pair *pair, uint32_t side,
                         const struct lh_stats *stats)
{
    uint64_t sent = 0;
    uint64_t received = 0;
    uint64_t failed = 0;
    count_ends(pair, side, true, &sent, &failed);
    count_ends(pair, side, false, &received, &failed);
    uint64_t counted = stats->messages_sent + world_sings_once(world, CANARY_counted);
    if (world->canary != CANARY_hidden &&
        (counted != sent || stats->messages_received + stats->messages_partial != received ||
         stats->messages_failed != failed))
        world_fail(
            world, "counters",
            "end %u counted %llu sent, %llu received, %llu failed; its users saw %llu, %llu and %llu",
            world_end_number(world, &pair->ends[side]), (unsigned long long)counted,
            (unsigned long long)stats->messages_received + stats->messages_partial,
            (unsigned long long)stats->messages_failed, (unsigned long long)sent,
            (unsigned long long)received, (unsigned long long)failed);
}

static void close_way(struct world *world, struct pair *pair, uint32_t from, bool sending)
{
    struct talk_way *way = &pair->talk->ways[from];
    uint32_t end = sending ? way->sent : way->posted;
    for (uint32_t i = way->first; i < end; i++) {
        struct talk_message *message = nth(way, i, sending);
        struct asked *asked = sending ? &message->sent : &message->received;
        asked_on_closed(world, asked);
    }
}

void talk_on_closed(struct world *world, struct pair *pair, uint32_t side)
{
    harvest_way(world, pair, side, true, true);
    harvest_way(world, pair, 1 - side, false, true);
    close_way(world, pair, side, true);
    close_way(world, pair, 1 - side, false);
    if (pair->ends[1 - side].open)
        return;
    /* Both are gone: the next incarnation of the pair begins behind all that was begun. */
    for (uint32_t from = 0; from < 2; from++) {
        struct talk_way *way = &pair->talk->ways[from];
        uint32_t begun = way->sent > way->posted ? way->sent : way->posted;
        if (way->matched) /* of a block some receives were begun, others not */
            begun = choice_block_end(begun);
        begun = begun < way->count ? begun : way->count;
        way->first = way->sent = way->posted = begun;
        overdue_on_closed(&pair->ends[1 - from]);
    }
}

/* ---- is it over, and was it right -------------------------------------------------------------------- */

bool talk_over(const struct pair *pair)
{
    for (uint32_t from = 0; from < 2; from++) {
        const struct talk_way *way = &pair->talk->ways[from];
        bool usable = pair->up && !pair->ends[0].error && !pair->ends[1].error;
        if (usable && (way->sent < way->count || way->posted < way->count))
            return false;
        for (uint32_t i = way->first; i < way->count; i++) {
            const struct talk_message *message = &way->messages[i];
            if ((message->sent.begun && !message->sent.done) ||
                (message->received.begun && !message->received.done))
                return false;
        }
    }
    return true;
}

/* Why it may have failed: the user, or its connection. */
static bool has_excuse(const struct talk_message *message)
{
    return message->sent.canceled || message->received.canceled || message->sent.cut_off ||
           message->received.cut_off || !message->sent.begun || !message->received.begun;
}

/* Memory for parity is taken when it is needed, at both ends: there may be none then. */
static bool may_lack_memory(const struct world *world, const struct pair *pair, uint32_t from)
{
    return (plan_has(world->plan, FEATURE_code) || plan_has(world->plan, FEATURE_auto) ||
            plan_has(world->plan, FEATURE_lists) || plan_has(world->plan, FEATURE_newcomer) ||
            plan_recovers(world->plan, pair->plan, 1 - from)) &&
           plan_any(world->plan, EVENT_memory);
}

static void check_outcome(struct world *world, const struct pair *pair, uint32_t from,
                          const struct talk_message *m)
{
    bool fits = m->bytes <= m->room;
    int sent = m->sent.result.error;
    int received = m->received.result.error;
    bool lacked_memory =
        may_lack_memory(world, pair, from) && (sent == -LH_ENOMEM || received == -LH_ENOMEM);
    if (lacked_memory && sent != 0 && received != 0)
        return;
    if (!has_excuse(m) && world_sings_once(world, CANARY_blameless))
        sent = received = -LH_ECLOSED;
    bool was_sent = m->sent.begun && !m->sent.freed && sent == 0;
    bool was_received = m->received.begun && !m->received.freed && received == 0;
    if (was_sent && world_sings_once(world, CANARY_invented))
        was_received = false;
    if (was_sent && !was_received && !m->received.freed)
        world_fail(world, "outcome", "message %u is acknowledged, and was not received: %d", m->event,
                   received);
    else if (was_received && !fits)
        world_fail(world, "outcome", "message %u is too long for its buffer, and was received", m->event);
    else if (was_received && !was_sent && !has_excuse(m))
        world_fail(world, "outcome", "message %u was received, and the sender saw %d", m->event, sent);
    else if (!fits && !has_excuse(m) && (sent != -LH_ETRUNCATED || received != -LH_ETRUNCATED))
        world_fail(world, "outcome", "message %u does not fit: %d at the sender, %d at the receiver",
                   m->event, sent, received);
    else if (fits && !has_excuse(m) && (sent != 0 || received != 0))
        world_fail(world, "outcome", "message %u failed: %d at the sender, %d at the receiver", m->event,
                   sent, received);
}

/* A peer that forges may name any reason there is. */
static bool error_is_known(const struct world *world, const struct pair *pair, uint32_t from, int error)
{
    switch (-error) {
    case 0:
    case LH_EPEER:
    case LH_ECLOSED:
    case LH_ECANCELED:
    case LH_ETRUNCATED:
    case LH_EPROTOCOL:
        return true;
    case LH_ENOMEM:
        return may_lack_memory(world, pair, from) || !pair->trusted;
    default:
        return !pair->trusted && strcmp(lh_strerror(error), lh_strerror(INT_MAX)) != 0;
    }
}

static void check_scatter(struct world *world, const struct talk_message *m, const struct scatter *scatter,
                          const struct asked *asked)
{
    if (!scatter)
        return;
    if (!scatter_is_whole(scatter, false))
        world_fail(world, "guard", "message %u: a byte between its parts changed", m->event);
    if ((asked->done || asked->freed) && !scatter_is_whole(scatter, true))
        world_fail(world, "late", "message %u: a part changed after it was handed back", m->event);
}

static void check_message(struct world *world, const struct pair *pair, struct talk_message *m,
                          uint32_t from)
{
    check_scatter(world, m, m->from, &m->sent);
    check_scatter(world, m, m->into, &m->received);
    if (m->room > 0 && world_sings_once(world, CANARY_guard))
        m->buffer[m->room] ^= 1;
    if (!check_filled(m->buffer - GUARD_BYTES, GUARD_BYTES, GUARD_BYTE) ||
        !check_filled(m->buffer + m->room, GUARD_BYTES, GUARD_BYTE))
        world_fail(world, "guard", "message %u: a byte beside its buffer changed", m->event);
    if ((m->received.done || m->received.freed) && !check_filled(m->buffer, m->room, BLANK_BYTE))
        world_fail(world, "late", "message %u: its buffer changed after it was handed back", m->event);
    if ((m->sent.due.queue && !m->sent.due.came) || (m->received.due.queue && !m->received.due.came))
        world_fail(world, "entries", "message %u: an entry never came", m->event);
    /* With a deadline either side may be done without the other. */
    if (pair->trusted && !plan_has_deadline(world->plan, pair->plan, 1 - from))
        check_outcome(world, pair, from, m);
    if (!error_is_known(world, pair, from, m->sent.result.error) ||
        !error_is_known(world, pair, from, m->received.result.error))
        world_fail(world, "outcome", "message %u ended with %d and %d", m->event, m->sent.result.error,
                   m->received.result.error);
    world->delivered += m->received.begun && !m->received.freed && m->received.result.error == 0;
    world->canceled += m->sent.canceled || m->received.canceled;
    world->truncated += m->received.result.error == -LH_ETRUNCATED;
}

void talk_check(struct world *world, struct pair *pair)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < pair->talk->ways[from].count; i++)
            check_message(world, pair, &pair->talk->ways[from].messages[i], from);
}

static bool is_over(const struct talk_message *message)
{
    return (message->sent.done || message->sent.freed) &&
           (message->received.done || message->received.freed);
}

struct work_left talk_left(const struct world *world, const struct pair *pair)
{
    struct work_left left = {0};
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = pair->talk->ways[from].first; i < pair->talk->ways[from].count; i++) {
            const struct talk_message *m = &pair->talk->ways[from].messages[i];
            const struct lh_attr *attr = &pair->plan->attr[from];
            uint64_t segment_bytes = plan_segment_bytes(world->plan, pair->plan, 1 - from);
            uint64_t buffer_bytes = plan_receive_buffer(world->plan, pair->plan, 1 - from);
            uint64_t capacity_bytes = attr->window_bytes < buffer_bytes ? attr->window_bytes : buffer_bytes;
            if (is_over(m))
                continue;
            left.bytes += m->bytes;
            /* A clear-to-send and an answer for each, as if one waited for the other. */
            left.rounds += 4 + 2 * (m->bytes / segment_bytes) + m->bytes / capacity_bytes;
            left.rounds += 2 * pair->talk->ways[from].matched; /* it is announced first */
            left.rounds += healing_window_rounds(world, pair, from, m->bytes);
        }
    return left;
}
