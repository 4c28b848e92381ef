/*
 * selective_repeat.h - the two messages of selective repeat: MARK to the receiver, ACK to the sender. Big-endian.
 *
 * MARK, 20 bytes: kind 1 | flags 1 | zero 2 | mark 4 | sent_through 4 | answered 4 | round 4
 * ACK, 24 bytes and the bitmap: kind 1 | flags 1 | words 2 | report 4 | mark 4 | cumulative 4 | horizon 4 | arrived 4
 *   | words x 8
 *
 * A MARK travels behind the chunks that it speaks of: what it covers and does not show within the reordering
 * window is lost. An ACK carries the bitmap from the 64-chunk word of `cumulative` on, as far as it fits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_SELECTIVE_REPEAT_H
#define LH_WIRE_SELECTIVE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SR_MARK_BYTES     20u
#define SR_ACK_BYTES      24u
#define SR_ACK_WORDS_MAX  108u /* (LH_SCHEME_MESSAGE_MAX - SR_ACK_BYTES) / 8, rounded down */

enum sr_kind {
    SR_MARK = 1,
    SR_ACK = 2,
};

#define SR_FLAG_PROBE 0x01u /* MARK: answer at once */
#define SR_FLAG_NACK  0x01u /* ACK: what is missing below horizon is lost: send it again */

struct sr_mark {
    uint8_t flags;
    uint32_t mark;         /* counts up with each MARK of the transfer */
    uint32_t sent_through; /* chunks 0 … sent_through - 1 were injected at least once before this */
    uint32_t answered;     /* the newest report (NACK) whose chunks were all injected again before this */
    uint32_t round;        /* of probing, for statistics */
};

struct sr_ack {
    uint8_t flags;
    uint32_t report;     /* counts up with each NACK; 0 in a plain ACK that follows none */
    uint32_t mark;       /* the newest MARK that was heard, 0: none */
    uint32_t cumulative; /* chunks 0 … cumulative - 1 have all arrived */
    uint32_t horizon;    /* chunks at or past this are not yet due */
    uint32_t arrived;    /* how many chunks have arrived in all */
    uint16_t words;      /* of bitmap; word i covers chunks (cumulative / 64 + i) * 64 … + 63 */
    uint64_t bitmap[SR_ACK_WORDS_MAX];
};

size_t sr_mark_encode(const struct sr_mark *mark, uint8_t out[SR_MARK_BYTES]);
int sr_mark_decode(const uint8_t *data, size_t bytes, struct sr_mark *mark); /* 0 or -1 */
/* Writes at most SR_ACK_BYTES + 8 * SR_ACK_WORDS_MAX bytes. */
size_t sr_ack_encode(const struct sr_ack *ack, uint8_t *out);
int sr_ack_decode(const uint8_t *data, size_t bytes, struct sr_ack *ack); /* 0 or -1 */

#endif
