/*
 * selective_repeat.c - MARK and ACK: encode, decode.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/selective_repeat.h"

#include <assert.h>

#include <longhaul/scheme.h>

#include "base/big_endian.h"

static_assert(SR_ACK_BYTES_MAX <= LH_SCHEME_MESSAGE_MAX, "a full ACK fits a message");
static_assert(SR_ACK_BYTES_MAX + 8 > LH_SCHEME_MESSAGE_MAX, "an ACK holds as many words as fit");

/* The last base from which all words of an ACK have chunk numbers of 32 bits. */
#define BASE_MAX (UINT32_MAX - 64u * SR_ACK_WORDS_MAX)

static bool mark_possible(const struct sr_mark *mark)
{
    return (mark->flags & ~SR_FLAG_PROBE) == 0 && mark->mark != 0;
}

size_t sr_mark_encode(const struct sr_mark *mark, uint8_t out[SR_MARK_BYTES])
{
    assert(mark_possible(mark));
    out[0] = SR_MARK;
    out[1] = mark->flags;
    lh_put_be16(out + 2, 0);
    lh_put_be32(out + 4, mark->mark);
    lh_put_be32(out + 8, mark->sent_through);
    return SR_MARK_BYTES;
}

int sr_mark_decode(const uint8_t *data, size_t bytes, struct sr_mark *mark)
{
    if (bytes != SR_MARK_BYTES || data[0] != SR_MARK || lh_get_be16(data + 2) != 0)
        return -1;
    *mark = (struct sr_mark){
        .flags = data[1],
        .mark = lh_get_be32(data + 4),
        .sent_through = lh_get_be32(data + 8),
    };
    return mark_possible(mark) ? 0 : -1;
}

static bool ack_possible(const struct sr_ack *ack)
{
    return (ack->flags & ~SR_FLAG_NACK) == 0 && ack->words <= SR_ACK_WORDS_MAX && ack->base % 64 == 0 &&
           ack->base >= ack->cumulative / 64 * 64 && ack->base <= BASE_MAX &&
           ack->arrived >= ack->cumulative;
}

size_t sr_ack_encode(const struct sr_ack *ack, uint8_t *out)
{
    assert(ack_possible(ack));
    out[0] = SR_ACK;
    out[1] = ack->flags;
    lh_put_be16(out + 2, ack->words);
    lh_put_be32(out + 4, ack->mark);
    lh_put_be32(out + 8, ack->cumulative);
    lh_put_be32(out + 12, ack->base);
    lh_put_be32(out + 16, ack->horizon);
    lh_put_be32(out + 20, ack->arrived);
    for (size_t i = 0; i < ack->words; i++)
        lh_put_be64(out + SR_ACK_BYTES + 8 * i, ack->bitmap[i]);
    return SR_ACK_BYTES + 8 * (size_t)ack->words;
}

int sr_ack_decode(const uint8_t *data, size_t bytes, struct sr_ack *ack)
{
    if (bytes < SR_ACK_BYTES || bytes > SR_ACK_BYTES_MAX || data[0] != SR_ACK)
        return -1;
    ack->flags = data[1];
    ack->words = lh_get_be16(data + 2);
    ack->mark = lh_get_be32(data + 4);
    ack->cumulative = lh_get_be32(data + 8);
    ack->base = lh_get_be32(data + 12);
    ack->horizon = lh_get_be32(data + 16);
    ack->arrived = lh_get_be32(data + 20);
    if (!ack_possible(ack) || bytes != SR_ACK_BYTES + 8 * (size_t)ack->words)
        return -1;
    for (size_t i = 0; i < ack->words; i++) /* at most SR_ACK_WORDS_MAX */
        ack->bitmap[i] = lh_get_be64(data + SR_ACK_BYTES + 8 * i);
    return 0;
}
