/*
 * cbfc.c - credits as InfiniBand has them: the receiver announces up to which block, counted from the
 * beginning, the sender may send.
 *
 * Counters are as wide as the message carries them: 12 bits, or 64. With 12 bits a limit is ahead of the
 * sender by at most half their range, so that it differs from one behind.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>

#define MASK_12BIT ((uint64_t)2 * LH_CBFC_BLOCKS_12BIT - 1)

static uint64_t mask(bool wide)
{
    return wide ? UINT64_MAX : MASK_12BIT;
}

/* How far a limit may be ahead. */
static uint64_t ahead_max(bool wide)
{
    return wide ? UINT64_MAX / 2 : LH_CBFC_BLOCKS_12BIT;
}

uint64_t lh_cbfc_blocks(uint64_t bytes)
{
    return bytes / LH_CBFC_BLOCK_BYTES + (bytes % LH_CBFC_BLOCK_BYTES != 0);
}

/* ---- upstream ---------------------------------------------------------------------------------------- */

void lh_cbfc_sender_init(struct lh_cbfc_sender *sender, bool wide, uint64_t limit)
{
    *sender = (struct lh_cbfc_sender){.limit_blocks = limit & mask(wide), .wide = wide};
}

bool lh_cbfc_may_send(const struct lh_cbfc_sender *sender, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    uint64_t left = (sender->limit_blocks - sender->sent_blocks) & mask(sender->wide);
    return left <= ahead_max(sender->wide) && blocks <= left;
}

void lh_cbfc_on_sent(struct lh_cbfc_sender *sender, uint64_t bytes)
{
    assert(lh_cbfc_may_send(sender, bytes));
    sender->sent_blocks = (sender->sent_blocks + lh_cbfc_blocks(bytes)) & mask(sender->wide);
}

void lh_cbfc_on_limit(struct lh_cbfc_sender *sender, uint64_t limit)
{
    uint64_t announced = limit & mask(sender->wide);
    uint64_t left = (announced - sender->sent_blocks) & mask(sender->wide);
    uint64_t before = (sender->limit_blocks - sender->sent_blocks) & mask(sender->wide);
    if (left <= ahead_max(sender->wide) && left > before)
        sender->limit_blocks = announced;
}

/* ---- downstream -------------------------------------------------------------------------------------- */

void lh_cbfc_receiver_init(struct lh_cbfc_receiver *receiver, bool wide, uint64_t buffer_bytes,
                           uint64_t tell_bytes)
{
    uint64_t step = lh_cbfc_blocks(tell_bytes);
    *receiver = (struct lh_cbfc_receiver){
        .buffer_blocks = buffer_bytes / LH_CBFC_BLOCK_BYTES,
        .tell_blocks = step > 0 ? step : 1,
        .wide = wide,
    };
}

bool lh_cbfc_on_packet(struct lh_cbfc_receiver *receiver, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    receiver->received_blocks = (receiver->received_blocks + blocks) & mask(receiver->wide);
    if (blocks > receiver->buffer_blocks - receiver->held_blocks)
        return false;
    receiver->held_blocks += blocks;
    return true;
}

/* What may be sent beyond what has come. */
static uint64_t limit_now(const struct lh_cbfc_receiver *receiver)
{
    uint64_t left = receiver->buffer_blocks - receiver->held_blocks;
    uint64_t most = ahead_max(receiver->wide);
    return (receiver->received_blocks + (left < most ? left : most)) & mask(receiver->wide);
}

bool lh_cbfc_is_due(const struct lh_cbfc_receiver *receiver)
{
    uint64_t grown = (limit_now(receiver) - receiver->told_blocks) & mask(receiver->wide);
    return grown <= ahead_max(receiver->wide) && grown >= receiver->tell_blocks;
}

bool lh_cbfc_on_freed(struct lh_cbfc_receiver *receiver, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    assert(receiver->held_blocks >= blocks);
    receiver->held_blocks -= blocks;
    return lh_cbfc_is_due(receiver);
}

uint64_t lh_cbfc_limit(struct lh_cbfc_receiver *receiver)
{
    receiver->told_blocks = limit_now(receiver);
    return receiver->told_blocks;
}

void lh_cbfc_on_total(struct lh_cbfc_receiver *receiver, uint64_t sent_blocks)
{
    receiver->received_blocks = sent_blocks & mask(receiver->wide);
}
