/*
 * blast.h - a user-defined reliability scheme, for scheme.c and scheme_sim.c.
 *
 * "blast": the sender sends all chunks, then asks periodically for missing ones. The receiver answers when
 * no more chunks arrive, with the numbers of the missing ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef BLAST_H
#define BLAST_H

#include <arpa/inet.h>
#include <string.h>

#include <longhaul/scheme.h>

#define MISSING_MAX (LH_SCHEME_MESSAGE_MAX / 4) /* in one answer; the next has the rest */

struct blast {             /* the state of either machine */
    uint32_t chunks, sent; /* chunks 0 … sent - 1 were sent */
    uint32_t missing_count, missing[MISSING_MAX];
    lh_time ask_ns; /* the sender: when to ask next */
    bool asked;     /* the receiver: not answered yet */
};

static int parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    memset(params, 0, LH_SCHEME_PARAMS);
    return *text == '\0' ? 0 : -LH_EINVAL;
}

static bool params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return params[0] == 0;
}

static size_t state_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(struct blast);
}

static void start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    *(struct blast *)state = (struct blast){.chunks = transfer->chunks, .ask_ns = now};
}

static void on_answer(void *state, const uint8_t *data, size_t bytes, const struct lh_sender_view *view)
{
    struct blast *blast = state;
    blast->missing_count = 0; /* chunks of an earlier answer that are still missing are in this one, too */
    for (size_t i = 0; i + 4 <= bytes && blast->missing_count < MISSING_MAX; i += 4) {
        uint32_t chunk;
        memcpy(&chunk, data + i, 4);
        if (ntohl(chunk) < blast->sent) /* input from the wire may be anything */
            blast->missing[blast->missing_count++] = ntohl(chunk);
    }
    blast->ask_ns = view->now; /* that is, as soon as these are sent */
}

static void sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct blast *blast = state;
    struct lh_action *action;
    actions->next_ns = LH_TIME_NEVER;
    actions->in_flight_chunks = 0; /* unknown: nothing is acknowledged before the end */
    for (uint32_t budget = view->budget_chunks; blast->missing_count > 0 || blast->sent < blast->chunks;) {
        bool again = blast->missing_count > 0;
        uint32_t left = again ? 1 : blast->chunks - blast->sent;
        if (budget == 0 || (action = lh_action_add(actions, LH_ACTION_SEND_CHUNKS)) == NULL)
            return; /* no budget, or the list is full: called again */
        action->what.chunks.first = again ? blast->missing[--blast->missing_count] : blast->sent;
        action->what.chunks.count = left < budget ? left : budget;
        action->what.chunks.again = again;
        blast->sent += again ? 0 : action->what.chunks.count;
        budget -= action->what.chunks.count;
    }
    if (blast->ask_ns <= view->now && (action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE)) != NULL) {
        action->what.message.bytes = 1, action->what.message.data[0] = '?'; /* any message will do */
        blast->ask_ns = view->now + LH_NS_PER_MS + view->path.overdue_ns + view->path.reorder_window_ns;
    }
    actions->next_ns = blast->ask_ns;
}

static void on_question(void *state, const uint8_t *data, size_t bytes, const struct lh_receiver_view *view)
{
    (void)data, (void)bytes, (void)view;
    ((struct blast *)state)->asked = true;
}

static void receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    struct blast *blast = state;
    lh_time quiet_ns = view->chunks_arrived == 0 ? 0 : view->last_arrival_ns + view->path.reorder_window_ns;
    actions->next_ns = blast->asked && quiet_ns > view->now ? quiet_ns : LH_TIME_NEVER;
    if (view->length_known && view->chunks_arrived == view->chunks) {
        lh_action_add(actions, LH_ACTION_COMPLETE);
    } else if (blast->asked && quiet_ns <= view->now) { /* no more chunks arrive */
        struct lh_action *answer = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        uint32_t count = 0;
        for (uint32_t i = 0; i < view->chunks && count < MISSING_MAX; i++)
            if (!view->chunk_bitmap[i])
                memcpy(&answer->what.message.data[4 * count++], &(uint32_t){htonl(i)}, 4);
        answer->what.message.bytes = 4 * count;
        blast->asked = false;
    }
}

static const struct lh_scheme blast_scheme = {
    "blast",     "no parameters", LH_SCHEME_ID_USER, parse,         params_valid,
    state_bytes, start,           on_answer,         sender_step,   /* of the sender */
    state_bytes, start,           on_question,       receiver_step, /* of the receiver */
    NULL,                                                           /* no erasure code */
    NULL,                                                           /* no deadline */
    NULL,                                                           /* does not adapt */
};

#endif
