/*
 * transfer.h - the messages of a reliable connection: layout, encode, decode. All integers big-endian.
 *
 * They travel as CONTROL_UPPER (control.h), in both directions. A *segment* is one SDR message, named by
 * its clear-to-send sequence; a *message* is one lh_send, numbered from 0 in each direction. Both numbers
 * wrap.
 *
 *   TO_RECEIVER  kind 1 | tagged 1 | zero 2 | segment 4 | message 4 | segment bytes 4 | message bytes 8 |
 *                tag 0 or 8 | scheme 0 … 896
 *   TO_SENDER    kind 1 | zero 3 | segment 4 | scheme 1 … 896
 *   DONE         kind 1 | zero 3 | segment 4 | below 4 | zero 4 | bitmap 8
 *   REFUSE       kind 1 | zero 3 | message 4 | error 4
 *   CANCEL       kind 1 | zero 3 | message 4 | error 4
 *   FORGET       kind 1 | zero 3 | message 4
 *
 * Tagged is 1 where the tag follows, which is not 0 then; a peer whose blob lacks BLOB_TAGS gets none.
 * TO_RECEIVER without scheme bytes announces the lengths, and the tag, ahead of a segment's first chunk;
 * each later one contains them, so that no single loss matters. REFUSE is answered by FORGET, CANCEL by
 * REFUSE, TO_RECEIVER of a segment that is over by DONE or REFUSE; the asking side retransmits until then.
 *
 * Of a clear-to-send, the upper 24 bytes: message 4 | segment of the message 4 | scheme 1 | part 1 |
 * room 6 | parameters 8. Room: maximum length of the whole message. Part: 0 the segment's own bytes, 1 its
 * extra chunks (parity); the clear-to-send of these comes right after that of the segment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_TRANSFER_H
#define LH_WIRE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

#define TRANSFER_TO_RECEIVER_BYTES 24u
#define TRANSFER_TO_SENDER_BYTES   8u
#define TRANSFER_DONE_BYTES        24u
#define TRANSFER_VERDICT_BYTES     12u /* REFUSE, CANCEL */
#define TRANSFER_FORGET_BYTES      8u
#define TRANSFER_SCHEME_MAX        896u /* LH_SCHEME_MESSAGE_MAX */
#define TRANSFER_TAG_BYTES         8u
#define TRANSFER_BYTES_MAX         (TRANSFER_TO_RECEIVER_BYTES + TRANSFER_TAG_BYTES + TRANSFER_SCHEME_MAX)
#define TRANSFER_PARAMS            8u /* LH_SCHEME_PARAMS */
#define TRANSFER_ROOM_MAX          (((uint64_t)1 << 48) - 1)
#define TRANSFER_DONE_BITS         64u

enum transfer_kind {
    TRANSFER_TO_RECEIVER = 1, /* the lengths, and a message of the sender's machine */
    TRANSFER_TO_SENDER = 2,   /* a message of the receiver's machine */
    TRANSFER_DONE = 3,        /* these segments have arrived */
    TRANSFER_REFUSE = 4,      /* receiver: this message is over, for this reason (0: it had arrived) */
    TRANSFER_CANCEL = 5,      /* sender: aborts this message, for this reason */
    TRANSFER_FORGET = 6,      /* sender: received the REFUSE */
};

struct transfer_message {
    enum transfer_kind kind;
    union {
        struct {
            uint32_t segment;
            uint32_t message;
            uint32_t segment_bytes;
            uint64_t message_bytes;
            uint64_t tag;
            const uint8_t *scheme; /* decode: points into the input; encode: is copied */
            uint32_t scheme_bytes;
        } to_receiver;
        struct {
            uint32_t segment;
            const uint8_t *scheme;
            uint32_t scheme_bytes;
        } to_sender;
        struct {
            uint32_t segment; /* this one */
            uint32_t below;   /* and all before this */
            uint64_t bitmap;  /* and below + i for each bit i */
        } done;
        struct {
            uint32_t message;
            uint32_t error; /* an lh_error; REFUSE only: 0 */
        } verdict;          /* REFUSE, CANCEL; FORGET without an error */
    } body;
};

struct transfer_cts {
    uint32_t message;
    uint32_t segment; /* of the message, from 0 */
    uint64_t room;    /* of the whole message; encode saturates at TRANSFER_ROOM_MAX */
    uint8_t scheme;
    bool extra; /* part: buffer of the extra chunks of the segment before it */
    uint8_t params[TRANSFER_PARAMS];
};

/* Bytes written into out, which holds TRANSFER_BYTES_MAX. The message must be valid (asserted). */
size_t transfer_encode(const struct transfer_message *message, uint8_t *out);
/* 0, or -1 when a field is out of range. */
int transfer_decode(const uint8_t *data, size_t bytes, struct transfer_message *message);

void transfer_cts_encode(const struct transfer_cts *cts, uint8_t out[CONTROL_UPPER_BYTES]);
int transfer_cts_decode(const uint8_t data[CONTROL_UPPER_BYTES], struct transfer_cts *cts); /* 0 or -1 */

#endif
