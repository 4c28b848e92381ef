/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/pieces.h"

#include <assert.h>

/* The first blocks of a transfer, as many as fit. */
static struct piece cut(const struct pieces_plan *plan, const struct schedule_transfer *transfer)
{
    struct piece piece = {.peer = transfer->peer, .first = transfer->first, .reduce = transfer->reduce};
    while (piece.count < transfer->count && piece.count < PIECE_BLOCKS_MAX) {
        size_t bytes = layout_bytes(plan->layout, piece.first + piece.count);
        if (piece.count > 0 && piece.bytes + bytes > plan->piece_bytes)
            break;
        piece.bytes += (uint32_t)bytes;
        piece.count++;
    }
    assert(piece.bytes <= plan->piece_bytes);
    return piece;
}

static void add(struct pieces *pieces, bool send, struct piece *piece, uint32_t before)
{
    struct piece *to = send ? pieces->sends : pieces->receives;
    uint32_t *count = send ? &pieces->send_count : &pieces->receive_count;
    piece->before = before;
    if (to) {
        piece->number = pieces->numbers[2 * piece->peer + (send ? 0 : 1)]++;
        to[*count] = *piece;
    }
    ++*count;
    if (!send)
        pieces->blocks_received += piece->count;
}

static void add_transfer(const struct pieces_plan *plan, struct pieces *pieces, bool send,
                         struct schedule_transfer *transfer, uint32_t before)
{
    while (transfer->count > 0) {
        struct piece piece = cut(plan, transfer);
        if (piece.bytes > 0 || plan->layout->collective == COLLECTIVE_BARRIER)
            add(pieces, send, &piece, before);
        transfer->first += piece.count;
        transfer->count -= piece.count;
    }
}

bool pieces_make(const struct pieces_plan *plan, struct pieces *pieces)
{
    uint32_t steps = schedule_steps(plan->schedule, plan->shape), rank = plan->layout->rank;
    assert(!pieces->sends == !pieces->receives);
    for (uint32_t step = 0; step < steps; step++) {
        struct schedule_cursor sends = {0}, receives = {0};
        struct schedule_transfer transfer;
        uint32_t before = pieces->receive_count;
        while (schedule_next_send(plan->schedule, plan->shape, rank, step, &sends, &transfer))
            add_transfer(plan, pieces, true, &transfer, before);
        while (schedule_next_receive(plan->schedule, plan->shape, rank, step, &receives, &transfer))
            add_transfer(plan, pieces, false, &transfer, before);
        if (pieces->send_count > PIECES_MAX || pieces->receive_count > PIECES_MAX ||
            pieces->blocks_received > UINT32_MAX)
            return false;
    }
    return true;
}
