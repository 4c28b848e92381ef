/*
 * selective_repeat.h - the two messages of selective repeat: MARK to the receiver, ACK to the sender.
 * Big-endian.
 *
 * MARK, 12 bytes: kind 1 | flags 1 | zero 2 | mark 4 | sent_through 4
 * ACK, 24 bytes and the bitmap: kind 1 | flags 1 | words 2 | mark 4 | cumulative 4 | base 4 | horizon 4 |
 * arrived 4 | words x 8
 *
 * Both are snapshots: each reports the whole state, so the next one makes up for a lost one, a duplicate
 * changes nothing, and a late one contains nothing new.
 *
 * A MARK travels behind the chunks that it covers: those that do not arrive within the reordering window
 * are lost. An ACK covers the chunks from `base` on, as many as its words hold.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_SELECTIVE_REPEAT_H
#define LH_WIRE_SELECTIVE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SR_MARK_BYTES    12u
#define SR_ACK_BYTES     24u
#define SR_ACK_WORDS_MAX 109u /* (LH_SCHEME_MESSAGE_MAX - SR_ACK_BYTES) / 8: 6976 chunks */
#define SR_ACK_BYTES_MAX (SR_ACK_BYTES + 8u * SR_ACK_WORDS_MAX)

enum sr_kind {
    SR_MARK = 1,
    SR_ACK = 2,
};

#define SR_FLAG_PROBE 0x01u /* MARK: answer at once */
#define SR_FLAG_NACK  0x01u /* ACK: sent because chunks are missing (for statistics: each ACK lists them) */

struct sr_mark {
    uint8_t flags;
    uint32_t mark;         /* counts up with each MARK that has something new to cover; from 1 */
    uint32_t sent_through; /* chunks 0 … sent_through - 1 were injected at least once before this */
};

struct sr_ack {
    uint8_t flags;
    uint32_t mark;       /* newest MARK received a reordering window ago: all injected before it and missing
                      here is lost; 0: none */
    uint32_t cumulative; /* chunks 0 … cumulative - 1 have all arrived */
    uint32_t base;       /* multiple of 64, not before cumulative's word; bit i of word w is chunk
                            base + 64 * w + i */
    uint32_t horizon;    /* what was injected once only, lies before this and is missing here is lost */
    uint32_t arrived;    /* chunks that have arrived in all */
    uint16_t words;      /* of bitmap */
    uint64_t bitmap[SR_ACK_WORDS_MAX];
};

/* The fields must be possible (asserted); returns the bytes written. */
size_t sr_mark_encode(const struct sr_mark *mark, uint8_t out[SR_MARK_BYTES]);
/* Writes at most SR_ACK_BYTES_MAX bytes. */
size_t sr_ack_encode(const struct sr_ack *ack, uint8_t *out);
/* 0, or -1 when a field is impossible or the length is not the message's own. */
int sr_mark_decode(const uint8_t *data, size_t bytes, struct sr_mark *mark);
int sr_ack_decode(const uint8_t *data, size_t bytes, struct sr_ack *ack);

#endif
