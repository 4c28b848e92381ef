/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/sr_world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "schemes/hybrid_groups.h"
#include "support/coded_memory.h"
#include "support/scheme_check.h"

#define CHUNK_BYTES       16u /* of a message whose bytes are looked at */
#define LINK_QUEUE_CHUNKS 16u /* that the sender's link takes ahead of time */

enum event_kind {
    EVENT_CHUNK,       /* a chunk reaches the receiver */
    EVENT_LOOKED_AT,   /* it is in the bitmap */
    EVENT_TO_RECEIVER, /* a message does */
    EVENT_TO_SENDER,
    EVENT_ENCODED, /* the oldest LH_ACTION_ENCODE is carried out */
    EVENT_OPENED,  /* extra chunks may be injected from now on */
    EVENT_DONE,    /* the connection's word that all is complete reaches the sender */
    EVENT_SENDER,  /* look at the sender */
    EVENT_RECEIVER,
};

struct message {
    uint32_t bytes;
    uint32_t copies; /* still under way */
    uint8_t data[LH_SCHEME_MESSAGE_MAX];
};

struct rows {
    uint32_t group, first, count;
};

struct event {
    lh_time at_ns;
    uint64_t order; /* of events of the same moment */
    enum event_kind kind;
    uint32_t chunk;
    uint8_t data[CHUNK_BYTES]; /* of the chunk, when somebody codes */
    struct message *message;
    struct rows rows; /* to be encoded */
};

struct chunk_state {
    uint32_t injections;
    uint32_t has_work;
};

struct sr_world {
    struct sr_world_spec spec;
    struct sr_world_result result;
    lh_time now;
    lh_time give_up_ns;
    lh_time link_free_ns;
    lh_time sender_at, receiver_at; /* when the next look is scheduled */
    uint32_t in_flight;
    uint32_t message_numbers[2];
    bool receiver_complete, receiver_received, sender_done, in_burst;
    void *sender, *receiver;
    uint8_t *bitmap;
    uint32_t arrived;
    struct coded_memory memory; /* when the scheme codes */
    uint32_t extra_arrived;
    uint32_t encoded;
    lh_time encoder_free_ns, extra_open_ns;
    lh_time last_arrival_ns;
    lh_time *waiting_since; /* when each chunk that waits on the host came, oldest first */
    size_t waiting_first, waiting_end, waiting_room;
    lh_time host_free_ns;
    struct chunk_state *chunks;
    struct lh_prng chunk_prng, message_prng;
    struct event *heap;
    size_t heap_count, heap_room;
    uint64_t order;
};

/* ---- events: a heap by time -------------------------------------------------------------------------- */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void schedule(struct sr_world *world, struct event event)
{
    if (world->heap_count == world->heap_room) {
        world->heap_room = world->heap_room * 2 + 64;
        world->heap = realloc(world->heap, world->heap_room * sizeof(*world->heap));
        assert(world->heap != NULL);
    }
    event.order = world->order++;
    size_t at = world->heap_count++;
    for (; at > 0 && earlier(&event, &world->heap[(at - 1) / 2]); at = (at - 1) / 2)
        world->heap[at] = world->heap[(at - 1) / 2];
    world->heap[at] = event;
}

static struct event pop(struct sr_world *world)
{
    struct event top = world->heap[0];
    struct event moved = world->heap[--world->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= world->heap_count)
            break;
        if (child + 1 < world->heap_count && earlier(&world->heap[child + 1], &world->heap[child]))
            child++;
        if (!earlier(&world->heap[child], &moved))
            break;
        world->heap[at] = world->heap[child];
        at = child;
    }
    world->heap[at] = moved;
    return top;
}

static bool codes(const struct sr_world *world)
{
    return world->spec.scheme->coding != NULL;
}

static uint32_t extra_chunks(const struct sr_world *world)
{
    return codes(world) ? world->memory.extra_chunks : 0;
}

/* A look at one side no later than at_ns. */
static void look_at(struct sr_world *world, enum event_kind kind, lh_time at_ns)
{
    lh_time *scheduled = kind == EVENT_SENDER ? &world->sender_at : &world->receiver_at;
    if (at_ns >= *scheduled || at_ns == LH_TIME_NEVER)
        return;
    *scheduled = at_ns;
    schedule(world, (struct event){.at_ns = at_ns, .kind = kind});
}

/* ---- the path ---------------------------------------------------------------------------------------- */

static lh_time way(struct sr_world *world, struct lh_prng *prng)
{
    lh_time jitter = world->spec.jitter_ns == 0 ? 0 : lh_prng_below(prng, world->spec.jitter_ns + 1);
    return world->spec.rtt_ns / 2 + jitter;
}

/* Gilbert-Elliott with a bad state that loses all: the same share is lost, in rows. */
static bool chunk_lost(struct sr_world *world)
{
    const struct sr_world_spec *spec = &world->spec;
    if (spec->burst_chunks <= 1)
        return lh_prng_chance(&world->chunk_prng, spec->chunk_loss);
    double leave = 1 / spec->burst_chunks;
    double enter = leave * spec->chunk_loss / (1 - spec->chunk_loss);
    bool changes = lh_prng_chance(&world->chunk_prng, world->in_burst ? leave : enter);
    world->in_burst ^= changes;
    return world->in_burst;
}

static uint8_t *bit_of(struct sr_world *world, uint32_t chunk)
{
    uint32_t chunks = world->spec.chunks;
    return chunk < chunks ? &world->bitmap[chunk] : &world->memory.bitmap[chunk - chunks];
}

/* With the bytes that it has when it leaves. */
static void depart(struct sr_world *world, uint32_t chunk)
{
    struct event event = {
        .at_ns = world->link_free_ns + way(world, &world->chunk_prng), .kind = EVENT_CHUNK, .chunk = chunk};
    if (codes(world)) {
        uint64_t left = CHUNK_BYTES;
        if (chunk < world->spec.chunks)
            left = world->memory.sender.bytes - (uint64_t)chunk * CHUNK_BYTES;
        memcpy(event.data, coded_memory_chunk(&world->memory, chunk),
               left < CHUNK_BYTES ? left : CHUNK_BYTES);
    }
    schedule(world, event);
}

static void link_chunk(struct sr_world *world, uint32_t chunk)
{
    const struct sr_world_spec *spec = &world->spec;
    struct chunk_state *state = &world->chunks[chunk];
    uint32_t injection = state->injections++;
    if (world->link_free_ns < world->now)
        world->link_free_ns = world->now;
    world->link_free_ns += spec->chunk_ns;
    world->result.injected++;
    world->result.extra += chunk >= spec->chunks;
    if (injection > 0 && (*bit_of(world, chunk) || state->has_work > 0))
        world->result.needless++;
    bool lost = chunk_lost(world);
    uint32_t copies = lh_prng_chance(&world->chunk_prng, spec->duplicate) ? 2 : 1;
    if (spec->lose_chunk != NULL && spec->lose_chunk(spec->context, chunk, injection))
        lost = true;
    if (lost) {
        world->result.lost++;
        return;
    }
    state->has_work += copies;
    for (uint32_t i = 0; i < copies; i++)
        depart(world, chunk);
}

static void path_message(struct sr_world *world, bool to_receiver, const uint8_t *data, uint32_t bytes)
{
    const struct sr_world_spec *spec = &world->spec;
    uint32_t number = world->message_numbers[to_receiver]++;
    world->result.messages++;
    assert(bytes <= LH_SCHEME_MESSAGE_MAX);
    bool lost = lh_prng_chance(&world->message_prng, spec->message_loss);
    uint32_t copies = lh_prng_chance(&world->message_prng, spec->duplicate) ? 2 : 1;
    if (spec->lose_message != NULL && spec->lose_message(spec->context, to_receiver, number, data, bytes))
        lost = true;
    if (lost)
        return;
    struct message *message = malloc(sizeof(*message));
    assert(message != NULL);
    message->bytes = bytes;
    message->copies = copies;
    memcpy(message->data, data, bytes);
    lh_time leaves = to_receiver && world->link_free_ns > world->now ? world->link_free_ns : world->now;
    for (uint32_t i = 0; i < copies; i++)
        schedule(world, (struct event){.at_ns = leaves + way(world, &world->message_prng),
                                       .kind = to_receiver ? EVENT_TO_RECEIVER : EVENT_TO_SENDER,
                                       .message = message});
}

/* The connection's word: lost like any message, said again whenever the sender is heard. */
static void send_done_message(struct sr_world *world)
{
    if (lh_prng_chance(&world->message_prng, world->spec.message_loss))
        return;
    schedule(world,
             (struct event){.at_ns = world->now + way(world, &world->message_prng), .kind = EVENT_DONE});
}

/* ---- what the machines see and do -------------------------------------------------------------------- */

static struct lh_path_view path_view(const struct sr_world *world)
{
    const struct sr_world_spec *spec = &world->spec;
    if (spec->rtt_unknown)
        return (struct lh_path_view){0};
    lh_time window = spec->window_ns != 0 ? spec->window_ns : spec->rtt_ns / 8;
    return (struct lh_path_view){
        .rtt_ns = spec->rtt_ns + spec->jitter_ns,
        .rtt_minimum_ns = spec->rtt_ns,
        .overdue_ns = spec->rtt_ns + spec->rtt_ns / 8 + 2 * spec->jitter_ns,
        .reorder_window_ns = window,
    };
}

/* What the sender's link takes now, within what may be under way. */
static uint32_t budget(const struct sr_world *world)
{
    const struct sr_world_spec *spec = &world->spec;
    lh_time ahead = world->link_free_ns > world->now ? world->link_free_ns - world->now : 0;
    uint32_t queued = (uint32_t)((ahead + spec->chunk_ns - 1) / spec->chunk_ns);
    uint32_t room = queued < LINK_QUEUE_CHUNKS ? LINK_QUEUE_CHUNKS - queued : 0;
    if (spec->in_flight == 0)
        return room;
    uint32_t left = world->in_flight < spec->in_flight ? spec->in_flight - world->in_flight : 0;
    return room < left ? room : left;
}

static struct lh_sender_view sender_view(const struct sr_world *world)
{
    return (struct lh_sender_view){
        .now = world->now,
        .path = path_view(world),
        .budget_chunks = budget(world),
        .extra_open = codes(world) && world->now >= world->extra_open_ns,
        .encoded = world->encoded,
    };
}

static struct lh_receiver_view receiver_view(const struct sr_world *world)
{
    lh_time caught_up =
        world->waiting_first < world->waiting_end ? world->waiting_since[world->waiting_first] : world->now;
    /* Each message of the sender carries it. */
    bool length_known = world->arrived > 0 || world->receiver_received || world->spec.chunks == 0;
    uint32_t room = world->spec.room_chunks;
    return (struct lh_receiver_view){
        .now = world->now,
        .path = path_view(world),
        .chunk_bitmap = world->bitmap,
        .chunks_arrived = world->arrived,
        .extra_bitmap = codes(world) ? world->memory.bitmap : NULL,
        .extra_arrived = world->extra_arrived,
        .last_arrival_ns = world->last_arrival_ns,
        .later_seen_ns = LH_TIME_NEVER,
        .caught_up_ns = world->spec.tells_caught_up ? caught_up : 0,
        .length_known = length_known,
        .chunks = length_known ? world->spec.chunks : room,
    };
}

/* What is sent a second time must be called so, except for the copies of an only chunk. */
static bool again_told(const struct sr_world *world, uint32_t chunk, bool again)
{
    bool copy = codes(world) && world->spec.chunks == 1;
    return again == (world->chunks[chunk].injections > 0) || (copy && !again);
}

static void inject_run(struct sr_world *world, const struct lh_action *action, uint32_t *left)
{
    uint32_t first = action->what.chunks.first;
    uint32_t count = action->what.chunks.count;
    assert(count >= 1 && count <= *left);
    uint32_t end =
        first < world->spec.chunks ? world->spec.chunks : world->spec.chunks + extra_chunks(world);
    assert(first < end && count <= end - first);
    *left -= count;
    if (action->what.chunks.again)
        world->result.again += count;
    for (uint32_t chunk = first; chunk < first + count; chunk++) {
        assert(again_told(world, chunk, action->what.chunks.again));
        link_chunk(world, chunk);
    }
}

static void give_to_encoder(struct sr_world *world, const struct lh_action *action)
{
    assert(codes(world));
    if (world->encoder_free_ns < world->now)
        world->encoder_free_ns = world->now;
    world->encoder_free_ns += world->spec.encode_ns;
    world->result.encodings++;
    struct rows rows = {action->what.encode.group, action->what.encode.first_row, action->what.encode.rows};
    schedule(world, (struct event){.at_ns = world->encoder_free_ns, .kind = EVENT_ENCODED, .rows = rows});
}

static void carry_out(struct sr_world *world, const struct lh_action *action, uint32_t *budget_left)
{
    switch (action->kind) {
    case LH_ACTION_SEND_CHUNKS:
        inject_run(world, action, budget_left);
        return;
    case LH_ACTION_SEND_MESSAGE:
        path_message(world, true, action->what.message.data, action->what.message.bytes);
        return;
    case LH_ACTION_ENCODE:
        give_to_encoder(world, action);
        return;
    case LH_ACTION_COMPLETE:
    case LH_ACTION_FINISH:
    case LH_ACTION_SENT:
    case LH_ACTION_FAIL:
        break;
    }
    assert(false); /* what a sender may do */
}

static void step_sender(struct sr_world *world)
{
    struct lh_actions actions;
    do {
        memset(&actions, 0xA5, sizeof(actions)); /* what a machine does not set must not matter */
        actions.count = 0;
        struct lh_sender_view view = sender_view(world);
        world->spec.scheme->sender_step(world->sender, &view, &actions);
        world->result.steps++;
        uint32_t left = view.budget_chunks;
        for (uint32_t i = 0; i < actions.count; i++)
            carry_out(world, &actions.list[i], &left);
        world->in_flight = actions.in_flight_chunks;
        assert(world->in_flight <= world->result.injected);
    } while (actions.count == LH_ACTIONS_MAX);
    assert(actions.next_ns > world->now);
    look_at(world, EVENT_SENDER, actions.next_ns);
    /* The link has room again when half of its queue is empty. */
    if (world->link_free_ns > world->now + LINK_QUEUE_CHUNKS / 2 * world->spec.chunk_ns)
        look_at(world, EVENT_SENDER, world->link_free_ns - LINK_QUEUE_CHUNKS / 2 * world->spec.chunk_ns);
}

static void on_complete(struct sr_world *world)
{
    assert(!world->receiver_complete);
    assert(world->arrived == world->spec.chunks || codes(world));
    if (codes(world))
        world->result.recovered = coded_memory_decode(&world->memory, world->bitmap);
    world->receiver_complete = true;
    world->result.arrived_ns = world->now;
    world->result.done_ns = world->now + world->spec.rtt_ns / 2;
    send_done_message(world);
}

static void step_receiver(struct sr_world *world)
{
    struct lh_actions actions;
    do {
        memset(&actions, 0xA5, sizeof(actions));
        actions.count = 0;
        struct lh_receiver_view view = receiver_view(world);
        world->spec.scheme->receiver_step(world->receiver, &view, &actions);
        world->result.steps++;
        for (uint32_t i = 0; i < actions.count; i++) {
            const struct lh_action *action = &actions.list[i];
            assert(action->kind == LH_ACTION_COMPLETE || action->kind == LH_ACTION_SEND_MESSAGE);
            if (action->kind == LH_ACTION_COMPLETE)
                on_complete(world);
            else
                path_message(world, false, action->what.message.data, action->what.message.bytes);
        }
    } while (actions.count == LH_ACTIONS_MAX && !world->receiver_complete);
    assert(actions.next_ns > world->now);
    if (!world->receiver_complete)
        look_at(world, EVENT_RECEIVER, actions.next_ns);
}

/* ---- running ----------------------------------------------------------------------------------------- */

static void on_chunk(struct sr_world *world, const struct event *event)
{
    if (world->waiting_end == world->waiting_room) {
        world->waiting_room = world->waiting_room * 2 + 64;
        world->waiting_since =
            realloc(world->waiting_since, world->waiting_room * sizeof(*world->waiting_since));
        assert(world->waiting_since != NULL);
    }
    world->waiting_since[world->waiting_end++] = world->now;
    if (world->host_free_ns < world->now)
        world->host_free_ns = world->now;
    world->host_free_ns += world->spec.host_ns;
    struct event looked_at = *event;
    looked_at.at_ns = world->host_free_ns;
    looked_at.kind = EVENT_LOOKED_AT;
    schedule(world, looked_at);
}

static void on_looked_at(struct sr_world *world, const struct event *event)
{
    uint8_t *bit = bit_of(world, event->chunk);
    world->waiting_first++;
    world->chunks[event->chunk].has_work--;
    if (*bit || world->receiver_complete)
        return;
    if (codes(world))
        coded_memory_arrive(&world->memory, event->chunk, event->data);
    *bit = 1;
    *(event->chunk < world->spec.chunks ? &world->arrived : &world->extra_arrived) += 1;
    world->last_arrival_ns = world->now;
    step_receiver(world);
}

static void on_message(struct sr_world *world, const struct event *event)
{
    const struct message *message = event->message;
    if (event->kind == EVENT_TO_SENDER) {
        struct lh_sender_view view = sender_view(world);
        world->spec.scheme->sender_on_message(world->sender, message->data, message->bytes, &view);
        step_sender(world);
    } else if (world->receiver_complete) {
        send_done_message(world);
    } else {
        world->receiver_received = true;
        struct lh_receiver_view view = receiver_view(world);
        world->spec.scheme->receiver_on_message(world->receiver, message->data, message->bytes, &view);
        step_receiver(world);
    }
}

static void on_encoded(struct sr_world *world, struct rows rows)
{
    coded_memory_encode(&world->memory, rows.group, rows.first, rows.count);
    world->encoded++;
    step_sender(world);
}

static void release(struct event *event)
{
    if (event->message != NULL && --event->message->copies == 0)
        free(event->message);
}

static void handle(struct sr_world *world, struct event *event)
{
    world->now = event->at_ns;
    switch (event->kind) {
    case EVENT_CHUNK:
        on_chunk(world, event);
        break;
    case EVENT_LOOKED_AT:
        on_looked_at(world, event);
        break;
    case EVENT_TO_RECEIVER:
    case EVENT_TO_SENDER:
        on_message(world, event);
        break;
    case EVENT_ENCODED:
        on_encoded(world, event->rows);
        break;
    case EVENT_OPENED:
        step_sender(world);
        break;
    case EVENT_DONE:
        world->sender_done = true;
        break;
    case EVENT_SENDER:
        if (event->at_ns == world->sender_at) {
            world->sender_at = LH_TIME_NEVER;
            step_sender(world);
        }
        break;
    case EVENT_RECEIVER:
        if (event->at_ns == world->receiver_at && !world->receiver_complete) {
            world->receiver_at = LH_TIME_NEVER;
            step_receiver(world);
        }
        break;
    }
    release(event);
}

static void *machine_memory(size_t bytes)
{
    size_t room = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, room > 0 ? room : 64);
    assert(memory != NULL);
    memset(memory, 0xA5, bytes); /* start must set all that it relies on */
    return memory;
}

static void world_start(struct sr_world *world, const struct sr_world_spec *spec)
{
    *world = (struct sr_world){.spec = *spec,
                               .sender_at = LH_TIME_NEVER,
                               .receiver_at = LH_TIME_NEVER,
                               .last_arrival_ns = LH_TIME_NEVER};
    world->spec.scheme = scheme_checked(spec->scheme);
    spec = &world->spec;
    if (world->spec.room_chunks == 0)
        world->spec.room_chunks = spec->chunks;
    uint32_t room = world->spec.room_chunks;
    world->now = LH_NS_PER_S; /* an arbitrary origin */
    world->extra_open_ns = world->now + spec->extra_open_ns;
    if (codes(world))
        schedule(world, (struct event){.at_ns = world->extra_open_ns, .kind = EVENT_OPENED});
    world->give_up_ns = world->now + (spec->give_up_ns != 0 ? spec->give_up_ns : 1000 * spec->rtt_ns);
    struct lh_prng prng;
    lh_prng_seed(&prng, spec->seed);
    world->chunk_prng = lh_prng_fork(&prng, 1);
    world->message_prng = lh_prng_fork(&prng, 2);
    world->bitmap = calloc(room + 1, 1);
    assert(world->bitmap != NULL);
    struct lh_transfer transfer = {
        .chunks = spec->chunks, .chunk_bytes = 4096, .stats = &world->result.sender};
    int failed = spec->scheme->parse(spec->params != NULL ? spec->params : "", transfer.params);
    assert(failed == 0 && spec->scheme->params_valid(transfer.params));
    if (spec->measured)
        hybrid_params_measured(spec->chunk_loss, spec->burst_chunks, UINT32_MAX, transfer.params);
    if (codes(world)) {
        struct lh_prng memory_prng = lh_prng_fork(&prng, 3);
        coded_memory_start(&world->memory, spec->scheme->coding, transfer.params, spec->chunks, CHUNK_BYTES,
                           &memory_prng);
    }
    world->chunks = calloc(spec->chunks + extra_chunks(world) + 1, sizeof(*world->chunks));
    assert(world->chunks != NULL);
    world->sender = machine_memory(spec->scheme->sender_bytes(spec->chunks));
    spec->scheme->sender_start(world->sender, &transfer, world->now);
    transfer.chunks = room;
    transfer.stats = &world->result.receiver;
    world->receiver = machine_memory(spec->scheme->receiver_bytes(room));
    spec->scheme->receiver_start(world->receiver, &transfer, world->now);
}

static void world_end(struct sr_world *world)
{
    while (world->heap_count > 0) {
        struct event event = pop(world);
        release(&event);
    }
    free(world->heap);
    free(world->bitmap);
    free(world->chunks);
    if (codes(world))
        coded_memory_end(&world->memory);
    free(world->waiting_since);
    free(world->sender);
    free(world->receiver);
}

struct sr_world_result sr_world_run(const struct sr_world_spec *spec)
{
    struct sr_world world;
    world_start(&world, spec);
    lh_time start = world.now;
    step_sender(&world);
    step_receiver(&world);
    while (!world.sender_done && world.heap_count > 0 && world.heap[0].at_ns <= world.give_up_ns) {
        struct event event = pop(&world);
        handle(&world, &event);
    }
    world.result.complete = world.sender_done;
    world.result.arrived_ns -= start;
    world.result.done_ns -= start;
    world_end(&world);
    return world.result;
}

lh_time sr_world_ideal_ns(const struct sr_world_spec *spec)
{
    return spec->chunks * spec->chunk_ns + spec->rtt_ns;
}

const struct lh_scheme *sr_world_scheme(const char *name)
{
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme != NULL; scheme++)
        if (strcmp((*scheme)->name, name) == 0)
            return *scheme;
    assert(false); /* a scheme of this build */
    return NULL;
}
