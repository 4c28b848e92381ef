/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/echo_scheme.h"

#include <string.h>

#include <longhaul/error.h>

#include "support/silent_machine.h"

struct echo_sender {
    uint32_t chunks;
    uint32_t next; /* chunk to inject */
    bool again;
    lh_time repeat_at;
};

static int parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    memcpy(params, "echo", 4);
    return *text ? -LH_EINVAL : 0;
}

static bool params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return memcmp(params, "echo", 4) == 0;
}

static size_t sender_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(struct echo_sender);
}

static void sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct echo_sender *sender = state;
    (void)now;
    *sender = (struct echo_sender){.chunks = transfer->chunks, .repeat_at = LH_TIME_NEVER};
}

static void sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct echo_sender *sender = state;
    if (sender->next == sender->chunks && sender->repeat_at <= view->now) {
        sender->next = 0;
        sender->again = true;
    }
    uint32_t left = sender->chunks - sender->next;
    uint32_t count = left < view->budget_chunks ? left : view->budget_chunks;
    struct lh_action *action = count > 0 ? lh_action_add(actions, LH_ACTION_SEND_CHUNKS) : NULL;
    if (action) {
        action->what.chunks.first = sender->next;
        action->what.chunks.count = count;
        action->what.chunks.again = sender->again;
        sender->next += count;
        sender->repeat_at = view->now + view->path.overdue_ns;
    }
    actions->in_flight_chunks = 0; /* whoever never listens knows nothing */
    actions->next_ns = sender->next == sender->chunks ? sender->repeat_at : LH_TIME_NEVER;
}

static void receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    (void)state;
    if (view->length_known && view->chunks_arrived == view->chunks)
        lh_action_add(actions, LH_ACTION_COMPLETE);
    actions->next_ns = LH_TIME_NEVER;
}

const struct lh_scheme echo_scheme = {
    .name = "echo",
    .help = "a test's own",
    .id = 200,
    .parse = parse,
    .params_valid = params_valid,
    .sender_bytes = sender_bytes,
    .sender_start = sender_start,
    .sender_on_message = silent_sender_on_message,
    .sender_step = sender_step,
    .receiver_bytes = silent_receiver_bytes,
    .receiver_start = silent_receiver_start,
    .receiver_on_message = silent_receiver_on_message,
    .receiver_step = receiver_step,
};
