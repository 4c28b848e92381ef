/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collective/reduce/reduce.h"
#include "group/operation_create.h"
#include "message/completion_queue.h"

/* ---- the end ----------------------------------------------------------------------------------------- */

static void release_arrival(struct arrival *arrival)
{
    if (arrival->bounce)
        link_repost(arrival->bounce); /* of a connection that has ended: its entries say so */
    free(arrival->copy);
    arrival->bounce = NULL;
    arrival->copy = NULL;
}

/* Whoever is asked for a piece from now on answers for himself. */
static void forgive_early(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    struct link *link = group_link(op->group, rank);
    link->early_small -= peer->early[0];
    link->early_places -= peer->early[1];
    peer->early[0] = peer->early[1] = 0;
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
    outgoing_cancel(&op->waiting);
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

static int send_piece(struct lh_collective *op, const struct piece *piece)
{
    struct lh_part parts[PIECE_BLOCKS_MAX];
    uint32_t count = parts_of(op, piece, parts);
    struct link *link = group_link(op->group, piece->peer);
    const struct tag tag = {
        .group = op->group->id, .kind = TAG_PIECE, .operation = op->number, .piece = piece->number};
    return link_send(link, &tag, parts, count, link_copies(link, piece->bytes) ? NULL : &op->waiting);
}

/* A peer that has not begun takes only so much. */
static bool may_send(const struct lh_collective *op, const struct piece *piece)
{
    const struct link *link = group_link(op->group, piece->peer);
    if (!link_may_send(link, piece->bytes))
        return false;
    if (op->peers[piece->peer].agreed)
        return true;
    return link_is_bulk(link, piece->bytes) ? link->early_places < link->places / 2
                                            : link->early_small < LINK_SMALL_PLACES / 2;
}

static void count_early(struct lh_collective *op, const struct piece *piece)
{
    struct op_peer *peer = &op->peers[piece->peer];
    struct link *link = group_link(op->group, piece->peer);
    bool bulk = link_is_bulk(link, piece->bytes);
    if (peer->agreed)
        return;
    peer->early[bulk]++;
    link->early_places += bulk;
    link->early_small += !bulk;
}

static int send_to(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    while (peer->ready.first != PROGRESS_NONE) {
        uint32_t send = peer->ready.first;
        const struct piece *piece = &op->pieces.sends[send];
        if (!may_send(op, piece))
            return 0;
        int error = send_piece(op, piece);
        if (error)
            return error == -LH_EAGAIN ? 0 : error;
        count_early(op, piece);
        peer->ready.first = op->next_ready[send];
        peer->unsent--;
        op->unsent--;
        op->result.bytes_sent += piece->bytes;
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
    if (op->progress.received[block])
        reduce(op, to, to, data, bytes);
    else if (place == 0)
        reduce(op, to, own, data, bytes);
    else
        memcpy(to, data, bytes);
    if (place_of(op, peer) + 1 == place)
        reduce(op, to, to, own, bytes);
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
    const uint8_t *data = arrival->bounce ? arrival->bounce->memory : arrival->copy;
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t bytes = layout_bytes(&op->layout, block);
        if (op->layout.collective == COLLECTIVE_BARRIER || bytes == 0)
            continue;
        if (piece->reduce)
            reduce_block(op, piece->peer, block, data);
        else
            memcpy(layout_to(&op->layout, block), data, bytes);
        if (op->signature.reduction == LH_AVG && progress_is_final(&op->progress, receive, i))
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

int op_on_signature(struct lh_collective *op, uint32_t rank, const struct signature *signature, char *text,
                    size_t size)
{
    if (signature_differs(&op->signature, op->group->rank, signature, rank, text, size))
        return -LH_EPROTOCOL;
    op->unsigned_peers -= !op->peers[rank].agreed && has_peer(op, rank);
    op->peers[rank].agreed = true;
    forgive_early(op, rank);
    return 0;
}

int op_on_piece(struct lh_collective *op, uint32_t rank, uint32_t number, const uint8_t *data, size_t bytes,
                struct bounce *bounce)
{
    struct op_peer *peer = &op->peers[rank];
    assert(op->state == OP_RUNNING && peer->agreed);
    if (number >= peer->receives)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a piece %u of %u", rank, number, peer->receives);
    uint32_t receive = op->receives_of[peer->first_receive + number];
    struct arrival *arrival = &op->arrivals[receive];
    if (arrival->arrived || bytes != op->pieces.receives[receive].bytes)
        return lh_fail(LH_EPROTOCOL, "rank %u sent piece %u %s", rank, number,
                       arrival->arrived ? "twice" : "in another length");
    if (!bounce) {
        arrival->copy = malloc(bytes > 0 ? bytes : 1);
        if (!arrival->copy)
            return lh_fail(LH_ENOMEM, "no memory for a piece of %zu bytes", bytes);
        memcpy(arrival->copy, data, bytes);
    }
    arrival->bounce = bounce;
    arrival->arrived = true;
    peer->left--;
    op->result.bytes_received += bytes;
    progress_on_arrival(&op->progress, receive);
    return 0;
}

int op_unload(struct lh_collective *op, uint32_t rank, uint32_t number)
{
    struct arrival *arrival = &op->arrivals[op->receives_of[op->peers[rank].first_receive + number]];
    struct bounce *bounce = arrival->bounce;
    if (!bounce || (bounce->bulk && !link_is_short(bounce->link)))
        return 0;
    size_t bytes = op->pieces.receives[op->receives_of[op->peers[rank].first_receive + number]].bytes;
    arrival->copy = malloc(bytes > 0 ? bytes : 1);
    if (!arrival->copy)
        return lh_fail(LH_ENOMEM, "no memory for a piece of %zu bytes", bytes);
    memcpy(arrival->copy, bounce->memory, bytes);
    arrival->bounce = NULL;
    link_repost(bounce);
    return 0;
}

/* ---- running ----------------------------------------------------------------------------------------- */

int op_begin(struct lh_collective *op, lh_time now)
{
    const struct tag tag = {.group = op->group->id, .kind = TAG_SIGNATURE, .operation = op->number};
    uint8_t body[SIGNATURE_BYTES];
    const uint8_t *from;
    uint8_t *to;
    uint64_t own = layout_own(&op->layout, &from, &to);
    if (own > 0)
        memcpy(to, from, (size_t)own);
    op->result.started_ns = now;
    signature_encode(&op->signature, body);
    for (uint32_t r = 0; r < op->group->size; r++) {
        if (!has_peer(op, r))
            continue;
        int error = link_send_control(group_link(op->group, r), &tag, body, sizeof body);
        if (error)
            return error;
    }
    return 0;
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
        past_note(&op->group->past, op->number, &op->signature);
        end(op, now, 0);
    }
    return 0;
}

bool op_needs(const struct lh_collective *op, uint32_t rank)
{
    return op->state == OP_RUNNING && has_peer(op, rank) &&
           (op->peers[rank].left > 0 || op->peers[rank].unsent > 0 || !op->peers[rank].agreed);
}
