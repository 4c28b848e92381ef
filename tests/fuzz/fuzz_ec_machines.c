/*
 * fuzz_ec_machines.c - both machines of the erasure-code schemes under any messages, bitmaps, paths,
 * budgets, encoders and times; and what they have computed.
 *
 * The input is a program: each operation is a byte and what it needs. Whatever it does, the actions must be
 * possible: chunks within the message or among the extra ones, and within the budget, no parity that was not
 * encoded, COMPLETE only when all can be decoded, messages that decode.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "schemes/ec_layout.h"
#include "schemes/ec_scheme.h"
#include "wire/scheme_messages.h"

#define CHUNKS_MAX  3000u
#define CHUNK_BYTES 8u
#define QUEUE       64u /* encodings that were asked for and not carried out */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    const struct lh_scheme *scheme;
    uint8_t params[LH_SCHEME_PARAMS];
    uint32_t room, chunks; /* of the buffer, of the message */
    uint32_t extra;
    struct lh_coding sending, receiving;
    void *sender, *receiver;
    uint8_t *bitmap, *extra_bitmap; /* of the receiver */
    uint8_t *sent;                  /* by the sender */
    uint8_t *encoded;               /* extra chunks */
    struct lh_action queue[QUEUE];
    uint32_t asked;
    struct lh_sender_view sender_view;
    struct lh_receiver_view receiver_view;
    struct lh_stats stats;
    struct lh_action to_receiver, to_sender[EC_PARTS_MAX]; /* the newest messages each way */
    uint32_t to_sender_next;
    bool complete;
};

static void *memory(size_t bytes)
{
    void *exact = calloc(bytes + (bytes == 0), 1);
    assert(exact != NULL);
    return exact;
}

static void draw_params(struct world *world, struct input *input)
{
    uint8_t drawn[LH_SCHEME_PARAMS];
    world->scheme = take8(input) & 1 ? &ec_xor_scheme : &ec_mds_scheme;
    int failed = world->scheme->parse("", world->params);
    assert(!failed);
    for (size_t i = 0; i < sizeof(drawn); i++)
        drawn[i] = take8(input);
    drawn[0] = world->params[0];
    drawn[3] &= 1;
    if (world->scheme->params_valid(drawn))
        memcpy(world->params, drawn, sizeof(drawn));
}

static void start_memory(struct world *world, uint32_t tail)
{
    size_t bytes = (size_t)world->chunks * CHUNK_BYTES;
    if (bytes > 0)
        bytes -= tail;
    struct lh_coding coding = {.chunks = world->chunks, .chunk_bytes = CHUNK_BYTES, .bytes = bytes};
    memcpy(coding.params, world->params, LH_SCHEME_PARAMS);
    coding.extra = memory((size_t)world->extra * CHUNK_BYTES);
    world->sending = coding;
    world->sending.message = memory(bytes);
    world->receiving = coding;
    world->receiving.room = memory(bytes);
    world->bitmap = memory(world->room);
    world->extra_bitmap = memory(world->scheme->coding->extra_chunks(world->params, world->room));
    world->sent = memory(world->chunks);
    world->encoded = memory(world->extra);
}

static void start(struct world *world, struct input *input)
{
    memset(world, 0, sizeof(*world));
    draw_params(world, input);
    uint32_t slot = take32(input) % (take8(input) & 1 ? CHUNKS_MAX + 1 : 200);
    world->room = world->scheme->coding->transfer_chunks_max(world->params, slot);
    world->chunks = world->room > 0 ? take32(input) % (world->room + 1) : 0;
    world->extra = world->scheme->coding->extra_chunks(world->params, world->chunks);
    assert(world->extra <= slot);
    start_memory(world, take8(input) % CHUNK_BYTES);
    struct lh_transfer transfer = {
        .chunks = world->chunks, .chunk_bytes = CHUNK_BYTES, .stats = &world->stats};
    memcpy(transfer.params, world->params, LH_SCHEME_PARAMS);
    world->sender = malloc(world->scheme->sender_bytes(world->chunks));
    world->receiver = malloc(world->scheme->receiver_bytes(world->room));
    assert(world->sender && world->receiver);
    world->scheme->sender_start(world->sender, &transfer, 0);
    transfer.chunks = world->room;
    world->scheme->receiver_start(world->receiver, &transfer, 0);
    world->receiver_view = (struct lh_receiver_view){.chunk_bitmap = world->bitmap,
                                                     .extra_bitmap = world->extra_bitmap,
                                                     .last_arrival_ns = LH_TIME_NEVER,
                                                     .later_seen_ns = LH_TIME_NEVER,
                                                     .chunks = world->room};
}

static void end(struct world *world)
{
    free(world->sending.extra); /* both ends share it */
    free((void *)(uintptr_t)world->sending.message);
    free(world->receiving.room);
    free(world->bitmap);
    free(world->extra_bitmap);
    free(world->sent);
    free(world->encoded);
    free(world->sender);
    free(world->receiver);
}

/* ---- what the machines do ---------------------------------------------------------------------------- */

static void check_sent(struct world *world, const struct lh_action *action, uint32_t *budget)
{
    uint32_t first = action->what.chunks.first;
    uint32_t count = action->what.chunks.count;
    uint32_t end = first < world->chunks ? world->chunks : world->chunks + world->extra;
    assert(count >= 1 && count <= *budget && first < end && count <= end - first);
    *budget -= count;
    for (uint32_t chunk = first; chunk < first + count; chunk++)
        if (chunk < world->chunks) {
            assert(action->what.chunks.again == world->sent[chunk] || world->chunks == 1);
            world->sent[chunk] = 1;
        } else {
            assert(!action->what.chunks.again && world->encoded[chunk - world->chunks]);
            assert(world->sender_view.extra_open);
        }
}

static void step_sender(struct world *world, uint32_t budget)
{
    static struct lh_actions actions;
    actions.count = 0;
    world->sender_view.budget_chunks = budget;
    world->scheme->sender_step(world->sender, &world->sender_view, &actions);
    assert(actions.count <= LH_ACTIONS_MAX);
    for (uint32_t i = 0; i < actions.count; i++) {
        const struct lh_action *action = &actions.list[i];
        struct ec_mark mark;
        if (action->kind == LH_ACTION_SEND_CHUNKS) {
            check_sent(world, action, &budget);
        } else if (action->kind == LH_ACTION_ENCODE) {
            assert(world->asked - world->sender_view.encoded < QUEUE);
            world->queue[world->asked++ % QUEUE] = *action;
        } else {
            assert(action->kind == LH_ACTION_SEND_MESSAGE);
            assert(ec_mark_decode(action->what.message.data, action->what.message.bytes, &mark) == 0);
            world->to_receiver = *action;
        }
    }
}

static void encode(struct world *world, uint32_t count)
{
    struct ec_layout layout = ec_layout_of(world->params, world->chunks);
    for (; count > 0 && world->sender_view.encoded < world->asked; count--) {
        const struct lh_action *action = &world->queue[world->sender_view.encoded++ % QUEUE];
        uint32_t first = action->what.encode.first_row;
        struct ec_group group = ec_layout_group(&layout, action->what.encode.group);
        world->scheme->coding->encode(&world->sending, action->what.encode.group, first,
                                      action->what.encode.rows);
        for (uint32_t row = first; row < first + action->what.encode.rows; row++)
            world->encoded[group.first_place + row * group.stride] = 1;
    }
}

/* The decoder asserts that it can. */
static void decode(struct world *world)
{
    uint32_t groups = world->scheme->coding->groups(world->params, world->chunks);
    for (uint32_t group = 0; group < groups; group++)
        world->scheme->coding->decode(&world->receiving, group, world->bitmap, world->extra_bitmap);
}

static void step_receiver(struct world *world)
{
    static struct lh_actions actions;
    static struct ec_request request;
    const struct lh_receiver_view *view = &world->receiver_view;
    actions.count = 0;
    world->scheme->receiver_step(world->receiver, view, &actions);
    assert(actions.count <= LH_ACTIONS_MAX);
    for (uint32_t i = 0; i < actions.count; i++) {
        const struct lh_action *action = &actions.list[i];
        struct ec_ack ack;
        if (action->kind == LH_ACTION_COMPLETE) {
            assert(!world->complete && view->length_known);
            world->complete = true;
            decode(world);
            continue;
        }
        assert(action->kind == LH_ACTION_SEND_MESSAGE);
        assert(ec_ack_decode(action->what.message.data, action->what.message.bytes, &ack) == 0 ||
               ec_request_decode(action->what.message.data, action->what.message.bytes, &request) == 0);
        world->to_sender[world->to_sender_next++ % EC_PARTS_MAX] = *action;
    }
}

/* ---- what happens to them ---------------------------------------------------------------------------- */

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
    struct ec_ack ack = {
        .mark = take8(input), .injected = take8(input), .arrived = (uint32_t)take_scaled(input)};
    uint8_t bytes[EC_ACK_BYTES];
    if (ack.mark != 0 || ack.injected == 0)
        tell_sender(world, bytes, ec_ack_encode(&ack, bytes));
}

static void forge_mark(struct world *world, struct input *input)
{
    struct ec_mark mark = {.flags = take8(input) & (EC_FLAG_PROBE | EC_FLAG_END),
                           .mark = (uint32_t)take_scaled(input),
                           .round = take8(input) % 4,
                           .injected = (uint32_t)take_scaled(input)};
    uint8_t bytes[EC_MARK_BYTES];
    if (mark.mark != 0)
        tell_receiver(world, bytes, ec_mark_encode(&mark, bytes));
}

/* Runs that step forward through the groups, as far as they can be written. */
static void forge_request(struct world *world, struct input *input)
{
    static struct ec_request request;
    request = (struct ec_request){.round = take8(input) % 4 + 1, .part = take8(input) % 2, .parts = 1};
    request.parts = (uint8_t)(request.part + 1 + take8(input) % 2);
    uint32_t wanted = request.part + 1 == request.parts ? take8(input) % EC_RUNS_MAX + 1 : EC_RUNS_MAX;
    uint32_t group = take8(input);
    for (request.count = 0; request.count < wanted; request.count++) {
        uint8_t first = take8(input);
        uint8_t count = (uint8_t)(take8(input) % 8 + 1);
        if (first > 255 - count)
            first = 255 - count;
        request.runs[request.count] = (struct ec_run){group, first, count};
        group += 1 + (take8(input) & 1);
    }
    uint8_t bytes[EC_REQUEST_BYTES_MAX];
    tell_sender(world, bytes, ec_request_encode(&request, bytes));
}

static void arrive(struct world *world, struct input *input, bool extra)
{
    struct lh_receiver_view *view = &world->receiver_view;
    uint8_t *bitmap = extra ? world->extra_bitmap : world->bitmap;
    uint32_t chunks = extra ? world->extra : world->chunks;
    uint32_t count = take8(input) * 4u;
    uint32_t first = take32(input);
    if (chunks == 0)
        return;
    for (uint32_t chunk = first % chunks; chunk < chunks && count > 0; chunk++, count--) {
        *(extra ? &view->extra_arrived : &view->chunks_arrived) += bitmap[chunk] == 0;
        bitmap[chunk] = 1;
    }
    view->last_arrival_ns = view->now;
}

static void change_path(struct world *world, struct input *input)
{
    struct lh_path_view path = {.rtt_ns = take_scaled(input),
                                .overdue_ns = take_scaled(input),
                                .reorder_window_ns = take_scaled(input)};
    world->sender_view.path = path;
    world->receiver_view.path = path;
}

static void change_views(struct world *world, struct input *input)
{
    struct lh_receiver_view *view = &world->receiver_view;
    uint8_t flags = take8(input);
    view->length_known |= flags & 1;
    view->chunks = view->length_known ? world->chunks : world->room;
    view->caught_up_ns = flags & 2 ? view->now : 0;
    world->sender_view.extra_open |= (flags & 4) != 0;
}

static void exchange(struct world *world)
{
    if (world->to_receiver.kind == LH_ACTION_SEND_MESSAGE)
        tell_receiver(world, world->to_receiver.what.message.data, world->to_receiver.what.message.bytes);
    for (uint32_t i = 0; i < EC_PARTS_MAX; i++)
        if (world->to_sender[i].kind == LH_ACTION_SEND_MESSAGE)
            tell_sender(world, world->to_sender[i].what.message.data,
                        world->to_sender[i].what.message.bytes);
}

static void pass_time(struct world *world, struct input *input)
{
    lh_time now = world->sender_view.now + take_scaled(input);
    world->sender_view.now = now;
    world->receiver_view.now = now;
}

static void operate(struct world *world, struct input *input)
{
    switch (take8(input) % 14) {
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
        arrive(world, input, false);
        break;
    case 6:
        arrive(world, input, true);
        break;
    case 7:
        forge_ack(world, input);
        break;
    case 8:
        forge_mark(world, input);
        break;
    case 9:
        forge_request(world, input);
        break;
    case 10:
        exchange(world);
        break;
    case 11:
        change_path(world, input);
        break;
    case 12:
        change_views(world, input);
        encode(world, take8(input));
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
    end(&world);
    return 0;
}
