/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/exchange.h"

#include <string.h>

#include "base/bytes.h"
#include "base/min_max.h"
#include "world/checks.h"
#include "world/healing.h"
#include "world/memory.h"

#define PIECES_MAX 32u
#define WORDS_MAX  64u /* of the user's control messages */
#define WORDS_EACH 24u /* way: each wakes the peer, which may answer */

enum send_kind {
    SEND_SKIP,
    SEND_WHOLE,
    SEND_STREAM,
    SEND_ABORT, /* a stream that is */
};

/* A part of a stream, in chunks. */
struct piece {
    uint32_t chunk;
    uint32_t bytes;
};

struct exchange {
    const struct plan_event *plan;
    uint32_t event;
    uint32_t bytes; /* posted */
    uint32_t sent_bytes;
    uint32_t immediate;
    bool has_immediate;
    bool truncates;       /* the receiver learns the length */
    uint32_t first_chunk; /* a whole send begins here */
    enum send_kind kind;
    /* the receiver's */
    uint8_t *buffer; /* GUARD_BYTES before and behind it */
    struct sdr_mr *recv_mr;
    struct sdr_recv_handle *recv; /* while posted */
    lh_time complete_at_ns;
    uint64_t *seen; /* packets whose bit was set, by words */
    uint32_t arrived_packets;
    bool truncated;
    bool posted;
    bool completed;
    /* the sender's */
    uint8_t *data;
    struct sdr_mr *send_mr;
    struct sdr_send_handle *send;
    bool used;         /* its clear-to-send was */
    lh_time end_at_ns; /* when its end is tried again, after it was refused */
    bool ended;
    bool injected;
    uint32_t piece_count;
    uint32_t piece_next;
    struct piece pieces[PIECES_MAX];
};

struct exchange_way {
    struct exchange *list;
    uint32_t count;
    uint32_t first;  /* of this incarnation */
    uint32_t posted; /* receives before this were posted */
    uint32_t used;   /* and their clear-to-sends used */
    lh_time retry_ns;
    uint32_t words_sent;
};

struct exchanges {
    struct exchange_way ways[2]; /* by sender */
    uint32_t mtu;
    uint32_t chunk_packets;
};

/* ---- making ------------------------------------------------------------------------------------------ */

/* In which order the chunks go, which go twice and which not at all. */
static void draw_pieces(struct exchange *x, struct lh_prng *prng, uint32_t mtu, uint32_t chunk_bytes)
{
    uint32_t chunks = (x->sent_bytes + chunk_bytes - 1) / chunk_bytes;
    uint32_t maximum = chunks < PIECES_MAX ? chunks : PIECES_MAX;
    for (uint32_t i = 0; i < maximum; i++) {
        uint32_t chunk = chunks > PIECES_MAX ? (uint32_t)lh_prng_below(prng, chunks) : i;
        uint32_t left = x->sent_bytes - chunk * chunk_bytes;
        uint32_t bytes = left < chunk_bytes ? left : chunk_bytes;
        bool shorter = lh_prng_chance(prng, 0.1);
        uint32_t packets = 1 + (uint32_t)lh_prng_below(prng, (bytes + mtu - 1) / mtu);
        if (shorter && packets * mtu < bytes)
            bytes = packets * mtu;
        x->pieces[i] = (struct piece){chunk, bytes};
    }
    x->piece_count = maximum;
    bool mixed = lh_prng_chance(prng, 0.5);
    for (uint32_t i = maximum; mixed && i > 1; i--) {
        uint32_t other = (uint32_t)lh_prng_below(prng, i);
        struct piece kept = x->pieces[i - 1];
        x->pieces[i - 1] = x->pieces[other];
        x->pieces[other] = kept;
    }
    bool doubled = lh_prng_chance(prng, 0.3);
    for (uint32_t i = 0; doubled && i < maximum && x->piece_count < PIECES_MAX; i += 2)
        x->pieces[x->piece_count++] = x->pieces[i];
}

static void make_exchange(struct world *world, struct pair *pair, struct exchange *x)
{
    const struct lh_attr *attr = &pair->plan->attr[0];
    struct lh_prng prng;
    lh_prng_seed(&prng, x->plan->seed);
    x->bytes = (uint32_t)x->plan->bytes;
    x->sent_bytes = (uint32_t)x->plan->room;
    x->immediate = (uint32_t)lh_prng_next(&prng);
    x->has_immediate = lh_prng_chance(&prng, 0.6);
    x->truncates = x->sent_bytes < x->bytes && lh_prng_chance(&prng, 0.4);
    uint64_t kind = lh_prng_below(&prng, 100);
    x->kind = kind < 8 ? SEND_SKIP : kind < 50 ? SEND_WHOLE : kind < 90 ? SEND_STREAM : SEND_ABORT;
    uint32_t chunks = x->sent_bytes / attr->chunk_bytes;
    bool part = lh_prng_chance(&prng, 0.2);
    uint32_t first = (uint32_t)lh_prng_below(&prng, chunks + 1);
    x->first_chunk = part ? first : 0;
    draw_pieces(x, &prng, attr->mtu_bytes, attr->chunk_bytes);
    uint32_t packets = (x->bytes + attr->mtu_bytes - 1) / attr->mtu_bytes;
    x->seen = world_memory(world, (packets / 64 + 1) * sizeof *x->seen);
    memset(x->seen, 0, (packets / 64 + 1) * sizeof *x->seen);
    x->buffer = (uint8_t *)world_memory(world, x->bytes + 2 * (size_t)GUARD_BYTES) + GUARD_BYTES;
    memset(x->buffer - GUARD_BYTES, GUARD_BYTE, GUARD_BYTES);
    memset(x->buffer, BLANK_BYTE, x->bytes);
    memset(x->buffer + x->bytes, GUARD_BYTE, GUARD_BYTES);
    x->data = world_memory(world, x->sent_bytes + 1u);
    memcpy(x->data, world_content(x->plan->seed, x->sent_bytes), x->sent_bytes);
    world->bytes_asked += x->bytes;
}

static void insert(struct exchange_way *way, const struct plan_event *event, uint32_t number)
{
    uint32_t place = way->count++;
    while (place > 0 && way->list[place - 1].plan->at_ns > event->at_ns) {
        way->list[place] = way->list[place - 1];
        place--;
    }
    memset(&way->list[place], 0, sizeof way->list[place]);
    way->list[place].plan = event;
    way->list[place].event = number;
}

static bool is_mine(const struct plan_event *event, uint32_t pair, uint32_t side)
{
    return event->kind == EVENT_exchange && !event->off && event->pair == pair && event->side == side;
}

void exchange_make(struct world *world, struct pair *pair)
{
    uint32_t number = (uint32_t)(pair - world->pairs);
    const struct lh_attr *attr = &pair->plan->attr[0];
    pair->raw = world_memory(world, sizeof *pair->raw);
    memset(pair->raw, 0, sizeof *pair->raw);
    pair->raw->mtu = attr->mtu_bytes;
    pair->raw->chunk_packets = attr->chunk_bytes / attr->mtu_bytes;
    for (uint32_t side = 0; side < 2; side++) {
        struct exchange_way *way = &pair->raw->ways[side];
        uint32_t count = 0;
        for (uint32_t i = 0; i < world->plan->event_count; i++)
            count += is_mine(&world->plan->events[i], number, side);
        way->list = world_memory(world, (count + 1) * sizeof *way->list);
        for (uint32_t i = 0; i < world->plan->event_count; i++)
            if (is_mine(&world->plan->events[i], number, side))
                insert(way, &world->plan->events[i], i);
        for (uint32_t i = 0; i < count; i++)
            make_exchange(world, pair, &way->list[i]);
    }
}

/* ---- posting ----------------------------------------------------------------------------------------- */

static uint32_t lkey_of(struct sdr_mr *mr)
{
    uint32_t lkey = 0;
    if (mr)
        sdr_mr_lkey_get(mr, &lkey);
    return lkey;
}

/* False: there is no memory for it now. */
static bool register_memory(struct world *world, struct end *end, void *memory, size_t bytes,
                            struct sdr_mr **mr)
{
    if (*mr)
        return true;
    *mr = sdr_mr_reg(end->context, memory, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!*mr && !world->memory_refused)
        world_fail(world, "error", "memory cannot be registered: %s", lh_last_error());
    return *mr != NULL;
}

static void deregister(struct sdr_mr **mr)
{
    if (*mr)
        sdr_mr_dereg(*mr);
    *mr = NULL;
}

/* A call was refused for lack of memory: it may be tried again. */
static bool lacks_memory(const struct world *world)
{
    static const char reason[] = "no memory for ";
    return world->memory_refused && strncmp(lh_last_error(), reason, sizeof reason - 1) == 0;
}

/* False when it has to be tried again. */
static bool post(struct world *world, struct end *end, struct exchange *x)
{
    if (!register_memory(world, end, x->buffer, x->bytes, &x->recv_mr))
        return false;
    struct sdr_recv_wr wr = {
        .max_length = x->bytes, .lkey = lkey_of(x->recv_mr), .address = (uint64_t)(uintptr_t)x->buffer};
    int error = sdr_recv_post(end->qp, &wr, &x->recv);
    if (error == SDR_ERROR && !lacks_memory(world))
        world_fail(world, "error", "receive %u cannot be posted: %s", x->event, lh_last_error());
    if (error != SDR_SUCCESS)
        return false;
    x->posted = true;
    x->complete_at_ns = world->now + x->plan->delay_ns + 1;
    world_note(world, x->event, "end %u posts receive %u of %u bytes", world_end_number(world, end),
               x->event, x->bytes);
    world_touch(world, end);
    return true;
}

static void complete(struct world *world, struct end *end, struct exchange *x)
{
    if (sdr_recv_complete(x->recv) != SDR_SUCCESS)
        world_fail(world, "error", "receive %u cannot be completed: %s", x->event, lh_last_error());
    x->recv = NULL;
    x->completed = true;
    memset(x->buffer, BLANK_BYTE, x->bytes);
    if (x->bytes > 0 && world_sings_once(world, CANARY_late))
        x->buffer[x->bytes / 2] ^= 1;
    deregister(&x->recv_mr);
    world->exchanged++;
    world_note(world, x->arrived_packets, "end %u completes receive %u with %u packets",
               world_end_number(world, end), x->event, x->arrived_packets);
    world_touch(world, end);
}

static void post_due(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct exchange_way *way = &pair->raw->ways[1 - side];
    struct end *end = &pair->ends[side];
    while (way->posted < way->count) {
        struct exchange *x = &way->list[way->posted];
        lh_time at_ns = x->plan->at_ns > way->retry_ns ? x->plan->at_ns : way->retry_ns;
        if (at_ns > world->now) {
            lh_keep_earlier(next, at_ns);
            return;
        }
        if (!post(world, end, x)) {
            way->retry_ns = world->now + RETRY_NS;
            lh_keep_earlier(next, way->retry_ns);
            return;
        }
        way->posted++;
    }
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void check_cts(struct world *world, struct pair *pair, const struct exchange *x, struct lh_cts cts)
{
    if (world_sings_once(world, CANARY_cts))
        cts.length_bytes = (uint32_t)pair->plan->attr[0].slot_bytes + 1;
    if (cts.length_bytes > pair->plan->attr[0].slot_bytes)
        world_fail(world, "cts", "a clear-to-send of %u bytes, and a slot has %llu", cts.length_bytes,
                   (unsigned long long)pair->plan->attr[0].slot_bytes);
    if (pair->trusted && cts.length_bytes != x->bytes)
        world_fail(world, "cts", "receive %u of %u bytes is announced with %u", x->event, x->bytes,
                   cts.length_bytes);
}

/* False when it has to be tried again. A forger may have made the receive shorter: then it is passed by. */
static bool begin_send(struct world *world, struct pair *pair, struct end *end, struct exchange *x,
                       const struct lh_cts *cts)
{
    int error;
    if (x->kind == SEND_SKIP || x->sent_bytes > cts->length_bytes) {
        lh_sdr_cts_skip(end->qp);
        x->ended = x->injected = true;
        x->kind = SEND_SKIP;
        return true;
    }
    if (!register_memory(world, end, x->data, x->sent_bytes, &x->send_mr))
        return false;
    enum sdr_wr_opcode opcode = x->has_immediate ? SDR_WR_WRITE_WITH_IMM : SDR_WR_WRITE;
    if (x->kind == SEND_WHOLE) {
        uint32_t skipped = x->first_chunk * pair->plan->attr[0].chunk_bytes;
        struct sdr_send_wr wr = {.opcode = opcode,
                                 .imm_value = x->immediate,
                                 .length = x->sent_bytes - skipped,
                                 .lkey = lkey_of(x->send_mr),
                                 .local_addr = (uint64_t)(uintptr_t)(x->data + skipped),
                                 .remote_offset = x->first_chunk};
        error = sdr_send_post(end->qp, &wr, &x->send);
        x->ended = error == SDR_SUCCESS;
    } else {
        struct sdr_send_start_wr wr = {.opcode = opcode, .imm_value = x->immediate};
        error = sdr_streaming_send_start(end->qp, &wr, &x->send);
    }
    if (error == SDR_ERROR && pair->trusted && !lacks_memory(world))
        world_fail(world, "error", "send %u cannot begin: %s", x->event, lh_last_error());
    return error == SDR_SUCCESS;
}

static void use_cts(struct world *world, struct pair *pair, uint32_t side)
{
    struct exchange_way *way = &pair->raw->ways[side];
    struct end *end = &pair->ends[side];
    struct lh_cts cts;
    while (way->used < way->count && lh_sdr_cts_peek(end->qp, &cts) == 0) {
        struct exchange *x = &way->list[way->used];
        check_cts(world, pair, x, cts);
        if (!x->posted && pair->trusted)
            world_fail(world, "cts", "receive %u is announced, and was not posted", x->event);
        if (world_failed(world) || !begin_send(world, pair, end, x, &cts))
            return;
        x->used = true;
        way->used++;
        world_note(world, x->event, "end %u uses the clear-to-send of receive %u: kind %d, %u bytes",
                   world_end_number(world, end), x->event, (int)x->kind, x->sent_bytes);
        world_touch(world, end);
    }
}

/* Adds pieces to a stream until the queue is full; ends it behind the last, or in the middle. */
static void continue_stream(struct world *world, struct pair *pair, struct end *end, struct exchange *x)
{
    uint32_t chunk_bytes = pair->raw->mtu * pair->raw->chunk_packets;
    uint32_t pieces = x->kind == SEND_ABORT ? x->piece_count / 2 : x->piece_count;
    if (x->end_at_ns > world->now)
        return;
    for (; x->piece_next < pieces; x->piece_next++) {
        const struct piece *piece = &x->pieces[x->piece_next];
        struct sdr_send_continue_wr wr = {
            .length = piece->bytes,
            .local_addr = (uint64_t)(uintptr_t)(x->data + (size_t)piece->chunk * chunk_bytes),
            .lkey = lkey_of(x->send_mr),
            .remote_offset = piece->chunk};
        int error = sdr_streaming_send_continue(x->send, &wr);
        if (error == SDR_RETRY)
            return;
        if (error == SDR_ERROR && pair->trusted)
            world_fail(world, "error", "send %u cannot go on: %s", x->event, lh_last_error());
        if (error == SDR_ERROR)
            break;
        world_touch(world, end);
    }
    if (x->kind == SEND_ABORT) {
        lh_sdr_streaming_send_abort(x->send);
        memset(x->data, BLANK_BYTE, x->sent_bytes); /* nobody reads it any more */
        x->ended = true;
    } else {
        x->ended = sdr_streaming_send_end(x->send) == SDR_SUCCESS;
        x->end_at_ns = world->now + RETRY_NS;
    }
    if (x->ended)
        world_touch(world, end);
}

static void poll_send(struct world *world, struct exchange *x)
{
    int completed = 0;
    struct sdr_send_status status = {0};
    if (world->canary == CANARY_hidden) {
        world->canary_sang = true;
        return;
    }
    sdr_send_poll(x->send, &completed, &status);
    if (!completed)
        return;
    x->injected = true;
    x->send = NULL;
    memset(x->data, BLANK_BYTE, x->sent_bytes);
    deregister(&x->send_mr);
    world_note(world, status.flags, "send %u is injected: %u", x->event, status.flags);
}

static void sends_go_on(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct exchange_way *way = &pair->raw->ways[side];
    for (uint32_t i = way->first; i < way->used; i++) {
        struct exchange *x = &way->list[i];
        if (!x->ended)
            continue_stream(world, pair, &pair->ends[side], x);
        if (!x->ended && x->end_at_ns > world->now)
            lh_keep_earlier(next, x->end_at_ns);
        if (x->ended && !x->injected)
            poll_send(world, x);
    }
}

/* ---- looking ----------------------------------------------------------------------------------------- */

/* A packet is marked: its bytes must be the sender's. */
static void check_packet(struct world *world, struct pair *pair, struct exchange *x, uint32_t packet)
{
    uint32_t mtu = pair->raw->mtu;
    uint32_t offset = packet * mtu;
    uint32_t there = x->sent_bytes > offset ? x->sent_bytes - offset : 0;
    uint32_t bytes = there < mtu ? there : mtu;
    x->arrived_packets++;
    if (!pair->trusted || (x->truncated && bytes == 0))
        return;
    if (bytes == 0 || x->kind == SEND_SKIP || !x->used)
        world_fail(world, "bitmap", "receive %u: packet %u is marked, and was never sent", x->event,
                   packet);
    else if (memcmp(x->buffer + offset, world_content(x->plan->seed, x->sent_bytes) + offset, bytes) != 0)
        world_fail(world, "bitmap", "receive %u: packet %u is marked, and its bytes are not there",
                   x->event, packet);
}

static uint32_t packets_of(const struct pair *pair, uint32_t bytes)
{
    return (bytes + pair->raw->mtu - 1) / pair->raw->mtu;
}

/* Of one word of a chunk's bits, what is new. Returns whether all that the buffer has of it is there. */
static bool look_at_word(struct world *world, struct pair *pair, struct exchange *x, uint32_t first,
                         uint32_t count, uint64_t bits)
{
    uint32_t packets = packets_of(pair, x->bytes);
    bool whole = true;
    for (uint32_t i = 0; i < count && first + i < packets; i++) {
        uint32_t packet = first + i;
        uint64_t *seen = &x->seen[packet / 64];
        uint64_t bit = (uint64_t)1 << packet % 64;
        bool marked = (bits >> i & 1) != 0;
        whole &= marked;
        if (!marked && (*seen & bit))
            world_fail(world, "bitmap", "receive %u: packet %u was marked and is not any more", x->event,
                       packet);
        if (marked && !(*seen & bit))
            check_packet(world, pair, x, packet);
        *seen |= marked ? bit : 0;
    }
    return whole;
}

static bool look_at_chunk(struct world *world, struct pair *pair, struct exchange *x, uint32_t chunk)
{
    uint64_t bits[8] = {0};
    uint32_t chunk_packets = pair->raw->chunk_packets;
    uint32_t span = chunk_packets < 64 ? chunk_packets : 64;
    bool whole = true;
    sdr_recv_bitmap_chunk_expand(x->recv, chunk, bits);
    for (uint32_t w = 0; w < chunk_packets / span; w++)
        whole &= look_at_word(world, pair, x, chunk * chunk_packets + w * span, span, bits[w]);
    return whole;
}

static void look_at_immediate(struct world *world, struct pair *pair, const struct exchange *x)
{
    uint32_t immediate = 0;
    if (sdr_recv_imm_get(x->recv, &immediate) != SDR_SUCCESS || !pair->trusted)
        return;
    if (world_sings_once(world, CANARY_immediate))
        immediate ^= 1;
    uint32_t expected = x->has_immediate ? x->immediate : 0;
    if (immediate != expected || !x->used || x->kind == SEND_SKIP)
        world_fail(world, "immediate", "receive %u: immediate %08x, and %08x was sent", x->event, immediate,
                   expected);
}

/* True when all that will ever come is there. */
static bool look(struct world *world, struct pair *pair, struct exchange *x)
{
    uint8_t *bitmap;
    size_t chunks;
    uint32_t marked = 0;
    uint32_t phantom = 0;
    sdr_recv_bitmap_get(x->recv, &bitmap, &chunks);
    for (uint32_t c = 0; c < chunks && !world_failed(world); c++) {
        bool whole = look_at_chunk(world, pair, x, c);
        bool marks = bitmap[c] != 0;
        if (!whole && world_sings_once(world, CANARY_bitmap))
            marks = true;
        marked += marks;
        phantom += x->truncated && c * pair->raw->chunk_packets * pair->raw->mtu >= x->sent_bytes;
        if (marks != whole)
            world_fail(world, "bitmap", "receive %u: chunk %u is %smarked, and %s", x->event, c,
                       marks ? "" : "not ", whole ? "whole" : "not whole");
    }
    if (lh_sdr_recv_chunks_arrived(x->recv) != marked - phantom)
        world_fail(world, "bitmap", "receive %u: %u chunks are counted, and %u marked", x->event,
                   lh_sdr_recv_chunks_arrived(x->recv), marked - phantom);
    look_at_immediate(world, pair, x);
    return marked == chunks && x->bytes > 0;
}

/* What is not marked was not written. */
static void check_unmarked(struct world *world, struct pair *pair, const struct exchange *x)
{
    uint32_t mtu = pair->raw->mtu;
    for (uint32_t p = 0; p < packets_of(pair, x->bytes); p++) {
        uint32_t offset = p * mtu;
        uint32_t bytes = x->bytes - offset < mtu ? x->bytes - offset : mtu;
        bool marked = (x->seen[p / 64] >> p % 64 & 1) != 0;
        bool phantom = x->truncated && offset >= x->sent_bytes;
        if (pair->trusted && (!marked || phantom) && !check_filled(x->buffer + offset, bytes, BLANK_BYTE))
            world_fail(world, "bitmap", "receive %u: packet %u is not marked, and bytes of it are there",
                       x->event, p);
    }
}

/* A forger may have marked packets behind that length. */
static void truncate_some(struct world *world, const struct pair *pair, struct exchange *x)
{
    if (!x->truncates || x->truncated || world->now + x->plan->delay_ns / 2 < x->complete_at_ns)
        return;
    x->truncated = lh_sdr_recv_truncate(x->recv, x->sent_bytes) == 0;
    if (!x->truncated && pair->trusted)
        world_fail(world, "error", "receive %u cannot be truncated: %s", x->event, lh_last_error());
}

static void look_at_receives(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct exchange_way *way = &pair->raw->ways[1 - side];
    for (uint32_t i = way->first; i < way->posted && !world_failed(world); i++) {
        struct exchange *x = &way->list[i];
        if (!x->recv)
            continue;
        truncate_some(world, pair, x);
        bool whole = look(world, pair, x);
        if (whole || x->complete_at_ns <= world->now) {
            check_unmarked(world, pair, x);
            complete(world, &pair->ends[side], x);
        } else {
            lh_keep_earlier(next, x->complete_at_ns);
        }
    }
}

/* ---- words: control messages of the user ------------------------------------------------------------- */

static void send_words(struct world *world, struct pair *pair, uint32_t side)
{
    struct exchange_way *way = &pair->raw->ways[side];
    uint8_t words[WORDS_MAX];
    if (way->words_sent == WORDS_EACH || !lh_prng_chance(&pair->prng, 0.1))
        return;
    size_t bytes = 8 + lh_prng_below(&pair->prng, WORDS_MAX - 8);
    lh_put_be32(words, way->words_sent);
    lh_put_be32(words + 4, (uint32_t)bytes);
    memcpy(words + 8, world_content(way->words_sent, WORDS_MAX), bytes - 8);
    if (lh_sdr_message_send(pair->ends[side].qp, words, bytes) == 0)
        way->words_sent++;
    world_touch(world, &pair->ends[side]);
}

static void receive_words(struct world *world, struct pair *pair, uint32_t side)
{
    uint8_t words[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    while (lh_sdr_message_recv(pair->ends[side].qp, words, &bytes) == 0) {
        if (world_sings_once(world, CANARY_words))
            words[0] ^= 1;
        uint32_t number = lh_get_be32(words);
        bool right = bytes >= 8 && bytes <= WORDS_MAX && number < pair->raw->ways[1 - side].words_sent &&
                     lh_get_be32(words + 4) == bytes &&
                     memcmp(words + 8, world_content(number, WORDS_MAX), bytes - 8) == 0;
        if (!right && pair->trusted)
            world_fail(world, "words", "end %u hears what nobody said",
                       2 * (uint32_t)(pair - world->pairs) + side);
    }
}

/* ---- the user's round -------------------------------------------------------------------------------- */

void exchange_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    post_due(world, pair, side, next);
    use_cts(world, pair, side);
    sends_go_on(world, pair, side, next);
    look_at_receives(world, pair, side, next);
}

void exchange_harvest(struct world *world, struct pair *pair, uint32_t side)
{
    lh_time next = LH_TIME_NEVER;
    struct end *end = &pair->ends[side];
    int error = lh_sdr_error(end->qp);
    if (error && !end->error) {
        end->error = error;
        world_note(world, (uint64_t)-error, "end %u has ended: %d", world_end_number(world, end), error);
        if (pair->trusted && !pair->may_end)
            world_fail(world, "error", "end %u has ended without a reason: %s",
                       world_end_number(world, end), lh_strerror(error));
    }
    use_cts(world, pair, side);
    sends_go_on(world, pair, side, &next);
    look_at_receives(world, pair, side, &next);
    receive_words(world, pair, side);
    if (!end->error)
        send_words(world, pair, side);
}

void exchange_on_closing(struct world *world, struct pair *pair, uint32_t side)
{
    const struct exchange_way *way = &pair->raw->ways[1 - side];
    for (uint32_t i = way->first; i < way->posted; i++)
        if (way->list[i].recv) {
            look(world, pair, &way->list[i]);
            check_unmarked(world, pair, &way->list[i]);
        }
}

void exchange_on_closed(struct pair *pair, uint32_t side)
{
    for (uint32_t from = 0; from < 2; from++) {
        struct exchange_way *way = &pair->raw->ways[from];
        for (uint32_t i = way->first; i < way->count; i++) {
            struct exchange *x = &way->list[i];
            if (from == side) {
                deregister(&x->send_mr);
                x->send = NULL;
            } else {
                deregister(&x->recv_mr);
                x->recv = NULL;
            }
            if (from != side && x->posted)
                memset(x->buffer, BLANK_BYTE, x->bytes);
        }
        if (pair->ends[1 - side].open)
            continue;
        uint32_t begun = way->posted > way->used ? way->posted : way->used;
        way->first = way->posted = way->used = begun;
    }
}

bool exchange_over(const struct pair *pair)
{
    if (!pair->up)
        return true;
    for (uint32_t from = 0; from < 2; from++) {
        const struct exchange_way *way = &pair->raw->ways[from];
        bool usable = !pair->ends[0].error && !pair->ends[1].error;
        if (usable && (way->posted < way->count || way->used < way->count))
            return false;
        for (uint32_t i = way->first; i < way->count; i++)
            if ((way->list[i].recv && usable) || (way->list[i].send && !pair->ends[from].error))
                return false;
    }
    return true;
}

void exchange_check(struct world *world, struct pair *pair)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < pair->raw->ways[from].count; i++) {
            struct exchange *x = &pair->raw->ways[from].list[i];
            if (world_sings_once(world, CANARY_guard))
                x->buffer[x->bytes] ^= 1;
            if (!check_filled(x->buffer - GUARD_BYTES, GUARD_BYTES, GUARD_BYTE) ||
                !check_filled(x->buffer + x->bytes, GUARD_BYTES, GUARD_BYTE))
                world_fail(world, "guard", "receive %u: a byte beside its buffer changed", x->event);
            if (!x->recv && !check_filled(x->buffer, x->bytes, BLANK_BYTE))
                world_fail(world, "late", "receive %u: its buffer changed after it was completed",
                           x->event);
        }
}

struct work_left exchange_left(const struct world *world, const struct pair *pair)
{
    struct work_left left = {0};
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = pair->raw->ways[from].first; i < pair->raw->ways[from].count; i++) {
            const struct exchange *x = &pair->raw->ways[from].list[i];
            lh_time over_ns = world->now + x->plan->delay_ns;
            if (x->posted)
                over_ns = x->complete_at_ns;
            if (x->completed && x->injected)
                continue;
            left.bytes += x->bytes;
            left.rounds += 2;
            left.rounds += healing_window_rounds(world, pair, from, x->bytes);
            left.waiting_ns += (over_ns > world->now ? over_ns - world->now : 0) + RETRY_NS;
        }
    return left;
}
