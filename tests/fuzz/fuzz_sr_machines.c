/*
 * fuzz_sr_machines.c - both machines of selective repeat under any messages, bitmaps, paths, budgets and
 * times.
 *
 * The input is a program: each operation is a byte and what it needs. Whatever it does, the actions must be
 * possible: chunks within the message and the budget, `again` told truly, COMPLETE only of a whole bitmap,
 * messages that decode.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "schemes/sr_scheme.h"
#include "wire/scheme_messages.h"

#define CHUNKS_MAX 20000u /* three ACKs long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    const struct lh_scheme *scheme;
    uint32_t chunks;
    void *sender, *receiver;
    uint8_t *bitmap; /* of the receiver */
    uint8_t *sent;   /* by the sender */
    struct lh_sender_view sender_view;
    struct lh_receiver_view receiver_view;
    struct lh_stats stats;
    struct lh_action to_receiver, to_sender; /* the newest message each way */
    bool complete;
};

/* The corpus knows them in this order. */
static const struct lh_scheme *const sr_schemes[] = {&sr_nack_scheme, &sr_rto_scheme};

static void start(struct world *world, struct input *input)
{
    memset(world, 0, sizeof(*world));
    world->scheme = sr_schemes[take8(input) & 1];
    world->chunks = take32(input) % (take8(input) & 1 ? CHUNKS_MAX + 1 : 200);
    struct lh_transfer transfer = {.chunks = world->chunks, .chunk_bytes = 4096, .stats = &world->stats};
    int failed = world->scheme->parse("", transfer.params);
    assert(!failed);
    /* Exactly as large as asked for: a sanitizer sees what goes past the end. */
    world->sender = malloc(world->scheme->sender_bytes(world->chunks));
    world->receiver = malloc(world->scheme->receiver_bytes(world->chunks));
    world->bitmap = calloc(world->chunks + 1, 1);
    world->sent = calloc(world->chunks + 1, 1);
    assert(world->sender && world->receiver && world->bitmap && world->sent);
    world->scheme->sender_start(world->sender, &transfer, 0);
    world->scheme->receiver_start(world->receiver, &transfer, 0);
    world->receiver_view = (struct lh_receiver_view){.chunk_bitmap = world->bitmap,
                                                     .last_arrival_ns = LH_TIME_NEVER,
                                                     .later_seen_ns = LH_TIME_NEVER,
                                                     .chunks = world->chunks};
}

static void check_sent(struct world *world, const struct lh_action *action, uint32_t *budget)
{
    uint32_t first = action->what.chunks.first;
    uint32_t count = action->what.chunks.count;
    assert(count >= 1 && count <= *budget && first < world->chunks && count <= world->chunks - first);
    *budget -= count;
    for (uint32_t chunk = first; chunk < first + count; chunk++) {
        assert(world->sent[chunk] == action->what.chunks.again);
        world->sent[chunk] = 1;
    }
}

static void step_sender(struct world *world, uint32_t budget)
{
    static struct lh_actions actions;
    actions.count = 0;
    world->sender_view.budget_chunks = budget;
    world->scheme->sender_step(world->sender, &world->sender_view, &actions);
    assert(actions.count <= LH_ACTIONS_MAX && actions.in_flight_chunks <= world->chunks);
    for (uint32_t i = 0; i < actions.count; i++) {
        const struct lh_action *action = &actions.list[i];
        struct sr_mark mark;
        if (action->kind == LH_ACTION_SEND_CHUNKS) {
            check_sent(world, action, &budget);
            continue;
        }
        assert(action->kind == LH_ACTION_SEND_MESSAGE);
        assert(sr_mark_decode(action->what.message.data, action->what.message.bytes, &mark) == 0);
        world->to_receiver = *action;
    }
}

static void step_receiver(struct world *world)
{
    static struct lh_actions actions;
    const struct lh_receiver_view *view = &world->receiver_view;
    actions.count = 0;
    world->scheme->receiver_step(world->receiver, view, &actions);
    assert(actions.count <= LH_ACTIONS_MAX);
    for (uint32_t i = 0; i < actions.count; i++) {
        const struct lh_action *action = &actions.list[i];
        if (action->kind == LH_ACTION_COMPLETE) {
            assert(!world->complete && view->length_known);
            assert(memchr(world->bitmap, 0, view->chunks) == NULL || view->chunks == 0);
            world->complete = true;
            continue;
        }
        static struct sr_ack ack;
        assert(action->kind == LH_ACTION_SEND_MESSAGE);
        assert(sr_ack_decode(action->what.message.data, action->what.message.bytes, &ack) == 0);
        world->to_sender = *action;
    }
}

static void tell_sender(struct world *world, const uint8_t *data, size_t bytes)
{
    world->scheme->sender_on_message(world->sender, data, bytes, &world->sender_view);
}

static void tell_receiver(struct world *world, const uint8_t *data, size_t bytes)
{
    world->scheme->receiver_on_message(world->receiver, data, bytes, &world->receiver_view);
}

static void forge_ack(struct world *world, struct input *input)
{
    static struct sr_ack ack;
    memset(&ack, 0, sizeof(ack));
    ack.flags = take8(input) & SR_FLAG_NACK;
    ack.mark = take8(input);
    ack.cumulative = (uint32_t)take_scaled(input);
    ack.base = ack.cumulative / 64 * 64 + take8(input) * 64u;
    ack.horizon = (uint32_t)take_scaled(input);
    ack.arrived = ack.cumulative + take8(input);
    ack.words = take8(input) % (SR_ACK_WORDS_MAX + 1);
    for (uint16_t i = 0; i < ack.words; i++)
        ack.bitmap[i] = take_scaled(input) << 32 | take8(input);
    uint32_t base_max = (UINT32_MAX - 64 * SR_ACK_WORDS_MAX) / 64 * 64;
    if (ack.base < ack.cumulative / 64 * 64 || ack.base > base_max || ack.arrived < ack.cumulative)
        return; /* wrapped: would not encode */
    uint8_t bytes[SR_ACK_BYTES_MAX];
    tell_sender(world, bytes, sr_ack_encode(&ack, bytes));
}

static void forge_mark(struct world *world, struct input *input)
{
    struct sr_mark mark = {.flags = take8(input) & SR_FLAG_PROBE,
                           .mark = (uint32_t)take_scaled(input),
                           .sent_through = (uint32_t)take_scaled(input)};
    uint8_t bytes[SR_MARK_BYTES];
    if (mark.mark != 0)
        tell_receiver(world, bytes, sr_mark_encode(&mark, bytes));
}

static void arrive(struct world *world, struct input *input)
{
    uint32_t count = take8(input);
    if (world->chunks == 0)
        return;
    uint32_t first = take32(input) % world->chunks;
    for (uint32_t chunk = first; chunk < world->chunks && count > 0; chunk++, count--) {
        world->receiver_view.chunks_arrived += world->bitmap[chunk] == 0;
        world->bitmap[chunk] = 1;
    }
}

static void change_path(struct world *world, struct input *input)
{
    struct lh_path_view path = {.rtt_ns = take_scaled(input),
                                .overdue_ns = take_scaled(input),
                                .reorder_window_ns = take_scaled(input)};
    world->sender_view.path = path;
    world->receiver_view.path = path;
}

static void change_receiver(struct world *world, struct input *input)
{
    struct lh_receiver_view *view = &world->receiver_view;
    view->length_known = true;
    view->chunks = take32(input) % (view->chunks + 1); /* only ever shorter */
    view->later_seen_ns = take8(input) & 1 ? view->now : LH_TIME_NEVER;
    view->caught_up_ns = take8(input) & 1 ? view->now : 0;
}

static void pass_time(struct world *world, struct input *input)
{
    lh_time now = world->sender_view.now + take_scaled(input);
    world->sender_view.now = now;
    world->receiver_view.now = now;
}

static void operate(struct world *world, struct input *input)
{
    switch (take8(input) % 12) {
    case 0:
    case 1:
        pass_time(world, input);
        break;
    case 2:
        step_sender(world, take8(input));
        break;
    case 3:
        step_sender(world, take32(input));
        break;
    case 4:
        step_receiver(world);
        break;
    case 5:
        arrive(world, input);
        break;
    case 6:
        forge_ack(world, input);
        break;
    case 7:
        forge_mark(world, input);
        break;
    case 8:
        tell_receiver(world, world->to_receiver.what.message.data, world->to_receiver.what.message.bytes);
        tell_sender(world, world->to_sender.what.message.data, world->to_sender.what.message.bytes);
        break;
    case 9:
        change_path(world, input);
        break;
    case 10:
        change_receiver(world, input);
        break;
    default:
        tell_sender(world, input->at, input->left);
        tell_receiver(world, input->at, input->left);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct input input = {data, size};
    start(&world, &input);
    for (int i = 0; i < 2000 && input.left > 0; i++)
        operate(&world, &input);
    step_sender(&world, UINT32_MAX);
    step_receiver(&world);
    free(world.sender);
    free(world.receiver);
    free(world.bitmap);
    free(world.sent);
    return 0;
}
