/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/parity_scheme.h"

#include <string.h>

#include <longhaul/error.h>

#include "support/silent_machine.h"

#define ENCODES_OUT 3u /* that are not done yet */

struct parity_sender {
    uint32_t chunks;
    uint32_t next; /* chunk to inject, extra ones after those of the message */
    uint32_t asked;
    bool again;
    lh_time repeat_at;
};

static uint32_t groups_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    (void)params;
    return (chunks + PARITY_GROUP - 1) / PARITY_GROUP;
}

static size_t sender_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(struct parity_sender);
}

static void sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct parity_sender *sender = state;
    (void)now;
    *sender = (struct parity_sender){.chunks = transfer->chunks, .repeat_at = LH_TIME_NEVER};
}

/* How many from `next` on may go in one action. */
static uint32_t sendable(const struct parity_sender *sender, const struct lh_sender_view *view)
{
    uint32_t end = sender->chunks;
    if (sender->next >= sender->chunks)
        end += view->extra_open ? view->encoded : 0;
    uint32_t left = end > sender->next ? end - sender->next : 0;
    return left < view->budget_chunks ? left : view->budget_chunks;
}

static void sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct parity_sender *sender = state;
    uint32_t groups = groups_of(NULL, sender->chunks);
    if (sender->repeat_at <= view->now) {
        sender->next = 0;
        sender->again = true;
        sender->repeat_at = LH_TIME_NEVER;
    }
    uint32_t count = sendable(sender, view);
    struct lh_action *action = count > 0 ? lh_action_add(actions, LH_ACTION_SEND_CHUNKS) : NULL;
    if (action) {
        action->what.chunks.first = sender->next;
        action->what.chunks.count = count;
        action->what.chunks.again = sender->again;
        sender->next += count;
        sender->repeat_at = view->now + view->path.overdue_ns;
    }
    while (sender->asked < groups && sender->asked - view->encoded < ENCODES_OUT) {
        action = lh_action_add(actions, LH_ACTION_ENCODE);
        if (!action)
            break;
        action->what.encode.group = sender->asked++;
        action->what.encode.first_row = 0;
        action->what.encode.rows = 1;
    }
    actions->in_flight_chunks = 0;
    actions->next_ns = sender->repeat_at;
}

/* Chunks of a group that have not arrived, its parity among them. */
static uint32_t missing_of(uint32_t chunks, uint32_t group, const uint8_t *chunk_bitmap,
                           const uint8_t *extra_bitmap)
{
    uint32_t missing = !extra_bitmap || !extra_bitmap[group];
    for (uint32_t i = group * PARITY_GROUP; i < chunks && i < (group + 1) * PARITY_GROUP; i++)
        missing += chunk_bitmap[i] == 0;
    return missing;
}

static void receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    (void)state;
    actions->next_ns = LH_TIME_NEVER;
    if (!view->length_known)
        return;
    for (uint32_t g = 0; g < groups_of(NULL, view->chunks); g++)
        if (missing_of(view->chunks, g, view->chunk_bitmap, view->extra_bitmap) > 1)
            return;
    lh_action_add(actions, LH_ACTION_COMPLETE);
}

/* ---- what is computed -------------------------------------------------------------------------------- */

static uint32_t transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    (void)params;
    return slot_chunks;
}

/* Adds all of a group's chunks but `without` to `sum`. */
static void add_chunks(const struct lh_coding *coding, uint32_t group, uint32_t without, uint8_t *sum)
{
    for (uint32_t i = group * PARITY_GROUP; i < coding->chunks && i < (group + 1) * PARITY_GROUP; i++) {
        uint64_t from = (uint64_t)i * coding->chunk_bytes;
        for (uint64_t b = 0; i != without && b < coding->chunk_bytes && from + b < coding->bytes; b++)
            sum[b] ^= coding->message[from + b];
    }
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    (void)first_row, (void)rows;
    uint8_t *parity = coding->extra + (size_t)group * coding->chunk_bytes;
    memset(parity, 0, coding->chunk_bytes);
    add_chunks(coding, group, UINT32_MAX, parity);
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    uint8_t *parity = coding->extra + (size_t)group * coding->chunk_bytes;
    for (uint32_t i = group * PARITY_GROUP; i < coding->chunks && i < (group + 1) * PARITY_GROUP; i++) {
        uint64_t from = (uint64_t)i * coding->chunk_bytes;
        uint64_t left = coding->bytes - from;
        if (chunk_bitmap[i] || !extra_bitmap[group])
            continue;
        add_chunks(coding, group, i, parity);
        memcpy(coding->room + from, parity, left < coding->chunk_bytes ? left : coding->chunk_bytes);
        return 1;
    }
    return 0;
}

static const struct lh_scheme_coding coding_ops = {
    .transfer_chunks_max = transfer_chunks_max,
    .extra_chunks = groups_of,
    .groups = groups_of,
    .encode = encode,
    .decode = decode,
};

/* ---- the scheme -------------------------------------------------------------------------------------- */

static int parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    memcpy(params, "parity", 6);
    return *text ? -LH_EINVAL : 0;
}

static bool params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return memcmp(params, "parity", 6) == 0;
}

const struct lh_scheme parity_scheme = {
    .name = "parity",
    .help = "a test's own",
    .id = 201,
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
    .coding = &coding_ops,
};
