/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/error.h"
#include "collective/reduce/reduce.h"
#include "collective/run/digest.h"
#include "group/deadlines.h"
#include "group/operation_create.h"
#include "message/completion_queue.h"
#include "message/engine.h"

/* Of a piece of 4 MiB, in blocks that end with a part of a granule. */
#define COUNTS_BYTES_MAX (2u * ((4u << 20) / GRANULE_BYTES + PIECE_BLOCKS_MAX))

/* ---- the end ----------------------------------------------------------------------------------------- */

static void release_arrival(struct arrival *arrival)
{
    if (arrival->bounce)
        link_repost(arrival->bounce); /* of a connection that has ended: its entries say so */
    free(arrival->copy);
    free(arrival->counts);
    loss_free(arrival->loss);
    arrival->bounce = NULL;
    arrival->copy = NULL;
    arrival->counts = NULL;
    arrival->loss = NULL;
}

/* Whoever is asked for a piece from now on answers for himself. */
static void forgive_early(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    struct link *link = group_link(op->group, rank);
    for (enum lane lane = 0; lane < LANES; lane++) {
        link->early[lane] -= peer->early[lane];
        peer->early[lane] = 0;
    }
}

static void end(struct lh_collective *op, lh_time now, int error)
{
    assert(op->state == OP_RUNNING && op->waiting.count == 0);
    op->state = OP_DONE;
    op->result.error = error;
    op->result.ended_ns = now;
    for (uint32_t r = 0; r < op->group->size; r++)
        forgive_early(op, r);
    op_give_work(op);
    if (op->queue) {
        const struct lh_completion entry = {
            .user = op->user,
            .operation = LH_OPERATION_COLLECTIVE,
            .result = {.error = error,
                       .bytes = op->result.bytes_received,
                       .started_ns = op->result.started_ns,
                       .ended_ns = now},
        };
        completion_ring_begin(&op->queue->ring);
        completion_ring_put(&op->queue->ring, &entry);
        completion_ring_end(&op->queue->ring);
    }
    pthread_cond_broadcast(&op->group->mesh->changed);
}

void op_fail(struct lh_collective *op, lh_time now, const struct notice *notice)
{
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        release_arrival(&op->arrivals[i]);
    sent_cancel(&op->waiting);
    op->result.failed_rank = notice->rank < op->group->size ? notice->rank : LH_NO_RANK;
    snprintf(op->result.message, sizeof op->result.message, "%s", notice->text);
    end(op, now, notice->error);
}

/* ---- sending ----------------------------------------------------------------------------------------- */

/* Where the blocks of a piece are: adjacent ones are one part. Returns the number of parts. */
static uint32_t parts_of(const struct lh_collective *op, const struct piece *piece, struct lh_part *parts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t bytes = layout_bytes(&op->layout, block);
        bool summed = op->progress.received[block] && !op->schedule->exchanges;
        uint8_t *at =
            summed ? layout_to(&op->layout, block) : (uint8_t *)(uintptr_t)layout_from(&op->layout, block);
        if (op->layout.collective == COLLECTIVE_BARRIER || bytes == 0)
            continue;
        if (count > 0 && (uint8_t *)parts[count - 1].address + parts[count - 1].bytes == at)
            parts[count - 1].bytes += bytes;
        else
            parts[count++] = (struct lh_part){.address = at, .bytes = bytes};
    }
    return count;
}

static enum lane lane_of(const struct lh_collective *op, const struct piece *piece)
{
    return link_lane_of(group_link(op->group, piece->peer), piece->bytes, op->bounded != NULL);
}

/* Whether what is sent must not be the memory of the sum: without a deadline a block that comes to be stored
 * says that it has arrived; with one, its receiver may be left behind, and still be waiting for it. */
static bool copies(const struct lh_collective *op, const struct piece *piece, enum lane lane)
{
    return (op->bounded && piece->reduce) ||
           link_copies(group_link(op->group, piece->peer), lane, piece->bytes);
}

static int send_piece(struct lh_collective *op, const struct piece *piece)
{
    struct lh_part parts[PIECE_BLOCKS_MAX];
    uint8_t counts[COUNTS_BYTES_MAX];
    uint32_t count = parts_of(op, piece, parts);
    struct link *link = group_link(op->group, piece->peer);
    enum lane lane = lane_of(op, piece);
    size_t counts_bytes = 0;
    struct tag tag = {.group = op->group->id, .kind = TAG_PIECE, .operation = op->number};
    tag.piece = op->bounded ? bounded_tag(op, piece, counts, &counts_bytes) : piece->number;
    const struct link_message message = {
        .tag = tag,
        .parts = parts,
        .count = count,
        .owner = copies(op, piece, lane) ? NULL : &op->waiting,
        .until = op->bounded ? bounded_until(op, piece->peer) : LH_TIME_NEVER,
    };
    int error = link_send(link, lane, &message);
    if (error || counts_bytes == 0)
        return error;
    tag.kind = TAG_COUNTS; /* after the piece: one that cannot be sent now is tried again */
    tag.piece = piece->number;
    return link_send_control(link, &tag, counts, counts_bytes);
}

/* A peer that has not begun takes only so much. */
static bool may_send(const struct lh_collective *op, const struct piece *piece)
{
    const struct link *link = group_link(op->group, piece->peer);
    enum lane lane = lane_of(op, piece);
    if (!link_may_send(link, lane))
        return false;
    return op->peers[piece->peer].agreed || link->early[lane] < link->lanes[lane].places / 2;
}

static void count_early(struct lh_collective *op, const struct piece *piece)
{
    struct op_peer *peer = &op->peers[piece->peer];
    enum lane lane = lane_of(op, piece);
    if (peer->agreed)
        return;
    peer->early[lane]++;
    group_link(op->group, piece->peer)->early[lane]++;
}

/* One that may leave. -LH_EAGAIN: not now. */
static int send_next(struct lh_collective *op, uint32_t rank, uint32_t send)
{
    const struct piece *piece = &op->pieces.sends[send];
    if (bounded_abandons(op, rank)) {
        op->bounded->dropped[send] = true;
        return 0;
    }
    int error = may_send(op, piece) ? send_piece(op, piece) : -LH_EAGAIN;
    if (error)
        return error;
    count_early(op, piece);
    op->result.bytes_sent += piece->bytes;
    return 0;
}

static int send_to(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    while (peer->ready.first != PROGRESS_NONE) {
        uint32_t send = peer->ready.first;
        int error = send_next(op, rank, send);
        if (error)
            return error == -LH_EAGAIN ? 0 : error;
        peer->ready.first = op->next_ready[send];
        peer->unsent--;
        op->unsent--;
    }
    return 0;
}

static int send_ready(struct lh_collective *op, uint32_t *rank)
{
    uint32_t send;
    while (progress_next_send(&op->progress, &send)) {
        struct progress_list *list = &op->peers[op->pieces.sends[send].peer].ready;
        op->next_ready[send] = PROGRESS_NONE;
        if (list->first == PROGRESS_NONE)
            list->first = send;
        else
            op->next_ready[list->last] = send;
        list->last = send;
    }
    for (uint32_t r = 0; r < op->group->size; r++) {
        int error = send_to(op, r);
        if (error) {
            *rank = r;
            return error;
        }
    }
    return 0;
}

/* ---- arrivals ---------------------------------------------------------------------------------------- */

static void reduce(const struct lh_collective *op, uint8_t *to, const void *one, const void *other,
                   size_t bytes)
{
    enum element_type type = (enum element_type)op->signature.type;
    enum reduce_operation operation =
        op->signature.reduction == LH_AVG ? REDUCE_SUM : (enum reduce_operation)op->signature.reduction;
    reduce_elements(type, operation, to, one, other, bytes / op->layout.element_bytes);
}

static uint32_t place_of(const struct lh_collective *op, uint32_t rank)
{
    return op->shape.map ? op->shape.map->place_of[rank] : rank;
}

/* The contributions come in the order of the places; this rank's is added behind that of the place before. */
static void reduce_in_order(const struct lh_collective *op, uint32_t peer, uint32_t block,
                            const uint8_t *data)
{
    const struct layout *layout = &op->layout;
    size_t bytes = layout_bytes(layout, block);
    uint8_t *to = layout_to(layout, block);
    const uint8_t *own = layout_from(layout, block);
    uint32_t place = place_of(op, layout->rank);
    bool first = !op->progress.received[block], own_next = place_of(op, peer) + 1 == place;
    if (!first) {
        reduce(op, to, to, data, bytes);
        if (own_next)
            reduce(op, to, to, own, bytes);
    } else if (place == 0) {
        reduce(op, to, own, data, bytes);
    } else if (own_next) {
        reduce(op, to, data, own, bytes);
    } else {
        lh_copy(to, data, bytes);
    }
}

static void reduce_block(const struct lh_collective *op, uint32_t peer, uint32_t block, const uint8_t *data)
{
    const struct layout *layout = &op->layout;
    uint8_t *to = layout_to(layout, block);
    const uint8_t *own = op->progress.received[block] ? to : layout_from(layout, block);
    size_t bytes = layout_bytes(layout, block);
    if (op->schedule->exchanges)
        reduce_in_order(op, peer, block, data);
    else if (peer < layout->rank) /* by rank: where two add each other's, both get the same bits */
        reduce(op, to, data, own, bytes);
    else
        reduce(op, to, own, data, bytes);
}

static void apply(struct lh_collective *op, uint32_t receive)
{
    const struct piece *piece = &op->pieces.receives[receive];
    struct arrival *arrival = &op->arrivals[receive];
    uint8_t *data = arrival->bounce ? arrival->bounce->memory : arrival->copy;
    if (!data && op->bounded)
        data = op->bounded->zeroes;
    op->result.bytes_received += piece->bytes;
    if (op->bounded)
        bounded_apply(op, receive, data);
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t bytes = layout_bytes(&op->layout, block);
        if (op->layout.collective == COLLECTIVE_BARRIER || bytes == 0)
            continue;
        if (piece->reduce)
            reduce_block(op, piece->peer, block, data);
        else if (!op->bounded)
            lh_copy(layout_to(&op->layout, block), data, bytes);
        if (op->signature.reduction == LH_AVG && !op->bounded &&
            progress_is_final(&op->progress, receive, i))
            reduce_divide((enum element_type)op->signature.type, layout_to(&op->layout, block),
                          bytes / op->layout.element_bytes, op->layout.ranks);
        data += bytes;
    }
    release_arrival(arrival);
}

static bool has_peer(const struct lh_collective *op, uint32_t rank)
{
    return op->peers[rank].receives > 0 || op->peers[rank].sends > 0;
}

/* For a rank: of a v-variant, with what both have for each other. */
static struct signature signature_for(const struct lh_collective *op, uint32_t rank)
{
    struct signature signature = op->signature;
    if (op->layout.parts) {
        signature.count = op->parts.in[rank].elements;
        signature.returned = op->parts.out[rank].elements;
    }
    return signature;
}

int op_on_signature(struct lh_collective *op, uint32_t rank, const struct signature *signature, char *text,
                    size_t size)
{
    const struct signature own = signature_for(op, rank);
    if (signature_differs(&own, op->group->rank, signature, rank, text, size))
        return -LH_EPROTOCOL;
    op->unsigned_peers -= !op->peers[rank].agreed && !op->peers[rank].excused && has_peer(op, rank);
    op->peers[rank].agreed = true;
    forgive_early(op, rank);
    return 0;
}

static int copy_piece(struct arrival *arrival, const uint8_t *data, size_t bytes, size_t of)
{
    arrival->copy = calloc(1, of > 0 ? of : 1);
    if (!arrival->copy)
        return lh_fail(LH_ENOMEM, "no memory for a piece of %zu bytes", of);
    if (bytes > 0)
        lh_copy(arrival->copy, data, bytes);
    return 0;
}

static uint32_t number_of(const struct lh_collective *op, uint32_t piece)
{
    return op->bounded ? piece & (BOUNDED_PIECES_MAX - 1) : piece;
}

/* The receive of a piece of a rank. -LH_EPROTOCOL: there is none. */
static int find_receive(const struct lh_collective *op, uint32_t rank, uint32_t piece, uint32_t *receive)
{
    const struct op_peer *peer = &op->peers[rank];
    uint32_t number = number_of(op, piece);
    assert(op->state == OP_RUNNING && peer->agreed);
    if (number >= peer->receives)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a piece %u of %u", rank, number, peer->receives);
    *receive = op->receives_of[peer->first_receive + number];
    return 0;
}

static void note_arrival(struct lh_collective *op, uint32_t receive)
{
    struct arrival *arrival = &op->arrivals[receive];
    if (!arrival->arrived || (op->bounded && arrival->contributions == 0 && !arrival->counts))
        return;
    arrival->complete = true;
    progress_on_arrival(&op->progress, receive);
}

int op_on_piece(struct lh_collective *op, uint32_t rank, struct op_piece *in)
{
    uint32_t receive = 0;
    int error = find_receive(op, rank, in->piece, &receive);
    if (error)
        return error;
    struct arrival *arrival = &op->arrivals[receive];
    size_t bytes = op->pieces.receives[receive].bytes;
    if (arrival->given_up)
        return 0;
    if (arrival->arrived || (in->bytes != bytes && in->loss != loss_of_all()))
        return lh_fail(LH_EPROTOCOL, "rank %u sent piece %u %s", rank, number_of(op, in->piece),
                       arrival->arrived ? "twice" : "in another length");
    bool whole = in->bounce && in->bytes == bytes;
    error = whole ? 0 : copy_piece(arrival, in->data, in->bytes < bytes ? in->bytes : bytes, bytes);
    if (error)
        return error;
    arrival->bounce = whole ? in->bounce : NULL;
    arrival->loss = in->loss;
    arrival->contributions = op->bounded ? (uint16_t)(in->piece >> BOUNDED_NUMBER_BITS) : 0;
    arrival->arrived = true;
    in->bounce = whole ? NULL : in->bounce;
    in->loss = NULL;
    op->peers[rank].left--;
    note_arrival(op, receive);
    return 0;
}

int op_on_counts(struct lh_collective *op, uint32_t rank, const struct op_piece *in)
{
    uint32_t receive = 0;
    int error = find_receive(op, rank, in->piece, &receive);
    if (error)
        return error;
    struct arrival *arrival = &op->arrivals[receive];
    if (!op->bounded || in->bytes != bounded_counts_bytes(op, &op->pieces.receives[receive]))
        return lh_fail(LH_EPROTOCOL, "rank %u sent contributions of another length", rank);
    if (arrival->complete || arrival->counts)
        return 0;
    arrival->counts = malloc(in->bytes);
    if (!arrival->counts)
        return lh_fail(LH_ENOMEM, "no memory for contributions of %zu bytes", in->bytes);
    memcpy(arrival->counts, in->data, in->bytes);
    note_arrival(op, receive);
    return 0;
}

int op_unload(struct lh_collective *op, uint32_t rank, uint32_t piece)
{
    uint32_t receive = op->receives_of[op->peers[rank].first_receive + number_of(op, piece)];
    struct arrival *arrival = &op->arrivals[receive];
    struct bounce *bounce = arrival->bounce;
    if (!bounce || (bounce->lane != LANE_SMALL && !link_is_short(bounce->link, bounce->lane)))
        return 0;
    size_t bytes = op->pieces.receives[receive].bytes;
    int error = copy_piece(arrival, bounce->memory, bytes, bytes);
    if (error)
        return error;
    arrival->bounce = NULL;
    link_repost(bounce);
    return 0;
}

/* ---- running ----------------------------------------------------------------------------------------- */

int op_begin(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    const struct tag tag = {.group = op->group->id, .kind = TAG_SIGNATURE, .operation = op->number};
    uint8_t body[SIGNATURE_BYTES];
    const uint8_t *from;
    uint8_t *to;
    uint64_t own = layout_own(&op->layout, &from, &to);
    if (own > 0)
        lh_copy(to, from, (size_t)own);
    op->result.started_ns = now;
    *rank = LH_NO_RANK;
    int refused = deadlines_begin(op); /* first: all ranks count an operation, also one that fails */
    if (!refused && op->bounded)
        refused = bounded_begin(op);
    if (refused) {
        *rank = refused == -LH_ERANGE ? op->group->rank : LH_NO_RANK;
        return refused;
    }
    for (uint32_t r = 0; r < op->group->size; r++) {
        if (!has_peer(op, r))
            continue;
        const struct signature signature = signature_for(op, r);
        signature_encode(&signature, body);
        int error = link_send_control(group_link(op->group, r), &tag, body, sizeof body);
        if (error && error != -LH_EPEER && error != -LH_ECLOSED) { /* the others wait for theirs */
            *rank = r;
            return error;
        }
    }
    return 0;
}

static int end_bounded(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    int error = bounded_end(op, now);
    if (!error)
        error = bounded_announce_over(op, rank);
    return error ? error : deadlines_end(op);
}

int op_run(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    uint32_t receive;
    *rank = LH_NO_RANK;
    if (op->state == OP_DONE)
        return 0;
    int error = send_ready(op, rank);
    while (!error && progress_next_due(&op->progress, &receive)) {
        apply(op, receive);
        progress_on_applied(&op->progress, receive);
        error = send_ready(op, rank);
    }
    if (error)
        return error;
    if (progress_is_complete(&op->progress) && op->unsent == 0 && op->waiting.count == 0 &&
        op->unsigned_peers == 0) {
        if (op->bounded)
            error = end_bounded(op, now, rank);
        if (error)
            return error;
        if (op->comparison.digests)
            digests_compare(op->comparison.digests, op->group->size, op->comparison.buffers,
                            op->comparison.differs);
        past_note(&op->group->past, op->number, &op->signature);
        end(op, lh_sdr_now(op->group->mesh->engine->context), 0); /* decoding took a while */
    }
    return 0;
}

bool op_needs(const struct lh_collective *op, uint32_t rank)
{
    return op->state == OP_RUNNING && has_peer(op, rank) &&
           (op->peers[rank].left > 0 || op->peers[rank].unsent > 0 || !op->peers[rank].agreed);
}
