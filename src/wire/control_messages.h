/*
 * control_messages.h - the control messages of an SDR QP and of a transfer: layout, encode, decode. All
 * integers big-endian.
 *
 * They travel as UC SEND Only packets to the control QP of the peer. Each may be lost, doubled, late or
 * forged: decoding checks version, type and exact length, and the reader checks the token.
 *
 * Header, 32 bytes:
 *
 *   0 version 1 | 1 type 1 | 2 length 2 (all bytes) | 4 token 4 | 8 sent 8 | 16 echo 8 | 24 echo delay 4
 *   28 zero 4
 *
 * token: the reader's own, from its QP info, new for each incarnation: messages for a former one are refused.
 *
 * sent: the writer's clock. echo: the newest `sent` that the writer has received (0: none), kept for
 * echo delay: round trip = now - echo - echo delay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_CONTROL_MESSAGES_H
#define LH_WIRE_CONTROL_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitmap.h"

#define CONTROL_VERSION      1u
#define CONTROL_HEADER_BYTES 32u
#define CONTROL_MESSAGE_MAX  1024u /* whole message; every QP takes this much whatever its MTU >= 1024 */
#define CONTROL_LONG_MAX     4096u /* of a CONTROL_UPPER that has a packet of a longer MTU */
#define CONTROL_CTS_BYTES    48u
#define CONTROL_CTS_MAX      16u
#define CONTROL_UPPER_BYTES  24u /* of a CTS: belongs to the layer above */
#define CONTROL_PAYLOAD_MAX  (CONTROL_MESSAGE_MAX - CONTROL_HEADER_BYTES)
#define CONTROL_TOKENS_MAX   (CONTROL_PAYLOAD_MAX / 4)
#define CONTROL_PARTS_MAX    (CONTROL_LONG_MAX - CONTROL_HEADER_BYTES) /* of a message in parts */
#define CONTROL_PART_BYTES   8u                                        /* of a part, before its bytes */
#define CONTROL_PROBE_MAX    8916u /* as long on the wire as the longest data packet */

enum control_type {
    CONTROL_PING = 1,      /* empty; asks for a PONG: liveness and round trip */
    CONTROL_PONG = 2,      /* empty */
    CONTROL_CTS = 3,       /* 1 … CONTROL_CTS_MAX entries: receives that are posted, in order */
    CONTROL_CTS_HEARD = 4, /* next (4): every CTS with a sequence before this one has arrived */
    /* 1 … CONTROL_PAYLOAD_MAX bytes for the layer above; up to CONTROL_LONG_MAX with the header where the MTU
     * has them, and only to a peer that is known to read those. */
    CONTROL_UPPER = 5,
    CONTROL_CLOSE = 6, /* reason (4): an lh_error or 0, at most INT32_MAX; the writer is gone after this */
    CONTROL_FEEDBACK =
        7, /* what arrived, for the reader's congestion controller: struct control_feedback */
    /* 0 … CONTROL_PAYLOAD_MAX bytes: several for the layer above, each length 2 (not 0) | as many bytes. It
     * says that its writer reads this type, and is sent to nobody who has not said so, but for one without
     * entries. */
    CONTROL_UPPERS = 8,
    /* 1 … CONTROL_TOKENS_MAX tokens (4 each) of QPs of the reader, all of its context: asks which of them are
     * connected. Only to a peer that is known to read it. */
    CONTROL_KEEPALIVE = 9,
    CONTROL_ALIVE = 10, /* likewise, of QPs of the reader whose peer was asked for, and is connected */
    /* Part of a message for the layer above that is longer than a packet of the path: number 4 | offset 2 |
     * bytes of the message 2 | 1 … bytes. Only to a peer that is known to read it. */
    CONTROL_PART = 11,
    /* Asks whether packets of this size pass (RFC 8899): id 4 | zeros, up to CONTROL_PROBE_MAX with the
     * header. Only to a peer that is known to read it. */
    CONTROL_PROBE = 12,
    CONTROL_PROBED = 13, /* id 4 | full 4: the answer: struct control_probe */
};

struct control_header {
    enum control_type type;
    uint32_t token;
    uint64_t sent_ns;
    uint64_t echo_ns;
    uint32_t echo_delay_ns; /* saturates */
};

/* One posted receive. Layout: sequence 4 | slot 2 | generation 1 | zero 1 | length 4 | rkey 4 | base 8 |
 * upper 24 */
struct control_cts {
    uint32_t sequence; /* counts the receives of the QP from 0, wraps */
    uint16_t slot;
    uint8_t generation;
    uint32_t length_bytes; /* of the receive buffer */
    uint32_t rkey;
    uint64_t base; /* VA of the first byte */
    uint8_t upper[CONTROL_UPPER_BYTES];
};

/* Data packets that reached the writer, since it was created. Layout: generation 1 | zero 3 | immediate 4 |
 * arrived 8 | marked 8 | dropped 8 | arrived time 8 | held 8 | credit 8 */
struct control_feedback {
    uint8_t generation; /* of the newest that arrived */
    uint32_t immediate; /* its transport immediate */
    uint64_t arrived_packets;
    uint64_t marked_packets;  /* of those: congestion experienced */
    uint64_t dropped_packets; /* by the kernel, which had no room for them */
    uint64_t arrived_ns;      /* writer's clock, when the newest arrived */
    uint64_t held_ns;         /* from then until this was written */
    uint64_t credit_bytes;    /* that the reader may have sent in all; UINT64_MAX: no limit */
};

/* Of a CONTROL_PROBE or a CONTROL_PROBED. */
struct control_probe {
    uint32_t id;    /* of the probe's writer */
    uint32_t bytes; /* CONTROL_PROBE: of the whole message */
    bool full;      /* CONTROL_PROBED: a data packet of the whole MTU has arrived since the probe before */
};

struct control_message {
    struct control_header header;
    union {
        struct {
            struct control_cts entries[CONTROL_CTS_MAX];
            uint32_t count;
        } cts;
        uint32_t cts_heard_next;
        uint32_t close_reason;
        struct control_feedback feedback;
        struct {
            const uint8_t *data; /* decode: points into the input; encode: is copied, unless it lies in its
                                    place in the output */
            uint32_t bytes;
        } upper; /* of CONTROL_UPPERS: its entries; of CONTROL_PART all of it */
        struct {
            uint32_t tokens[CONTROL_TOKENS_MAX];
            uint32_t count;
        } alive; /* of CONTROL_KEEPALIVE, too */
        struct control_probe probe;
    } body;
};

/* Makes the `bytes` bytes of a CONTROL_UPPER's body the first entry of that of a CONTROL_UPPERS, in place.
 * How many it has then; 0, and nothing is changed: there is no room for that and an entry of `next` bytes
 * in `room`, at most CONTROL_PAYLOAD_MAX. */
uint32_t control_uppers_begin(uint8_t *body, uint32_t room, uint32_t bytes, uint32_t next);
/* Adds an entry to the body of a CONTROL_UPPERS, which has `used` of `room` bytes. How many it has then; 0:
 * the entry does not fit. */
uint32_t control_uppers_add(uint8_t *body, uint32_t room, uint32_t used, const uint8_t *data,
                            uint32_t bytes);
/* Takes the first entry off a body that was decoded: its bytes at *data; 0: there is none. */
uint32_t control_uppers_take(struct control_message *message, const uint8_t **data);

struct control_part {
    uint32_t number; /* of the message, among those of its writer that travel in parts */
    uint32_t offset; /* in the message */
    uint32_t whole;  /* bytes of the message: 1 … CONTROL_PARTS_MAX */
    const uint8_t *data;
    uint32_t bytes; /* at least 1; none beyond the message */
};

/* The body of a CONTROL_PART: returns its bytes, CONTROL_PAYLOAD_MAX at most. */
uint32_t control_part_write(const struct control_part *part, uint8_t *body);
/* Of a message that was decoded; data points into it. */
struct control_part control_part_read(const struct control_message *message);

/* Bytes written into out, which holds them: CONTROL_MESSAGE_MAX, of a long CONTROL_UPPER or a probe more. The
 * message must be valid (asserted). */
size_t control_encode(const struct control_message *message, uint8_t *out);
/* 0, or -1 when any field is impossible. Reads `bytes` bytes at most; trailing bytes beyond the message's
 * own length are refused. */
int control_decode(const uint8_t *data, size_t bytes, struct control_message *message);

/* ---- control parts --------------------------------------------------------------------------------- */

/*
 * Messages of the layer above that arrive in parts, where packets are short. Pure.
 *
 * Parts leave one right after the other, and come in any order: a path with jitter mixes them, and those of
 * the next messages with them. A part that is lost loses its message, as the network may lose any.
 */

#define CONTROL_PARTS_MESSAGES 4u /* that arrive at once; a power of two, for numbers wrap */

struct control_parts_message {
    uint32_t number;
    uint32_t whole;                                     /* its bytes; 0: none has come */
    uint32_t come;                                      /* of these */
    uint64_t there[LH_BITMAP_WORDS(CONTROL_PARTS_MAX)]; /* bit i: byte i has come */
    uint8_t data[CONTROL_PARTS_MAX];
};

/* All zero: none has come. */
struct control_parts {
    struct control_parts_message messages[CONTROL_PARTS_MESSAGES]; /* a message's by its number */
};

/* A part that was decoded. The message, when this made it whole: data[0 … whole), until the next call; else
 * NULL. */
const struct control_parts_message *control_parts_add(struct control_parts *parts,
                                                      const struct control_part *part);

/* ---- transfer -------------------------------------------------------------------------------------- */

/*
 * The messages of a reliable connection: layout, encode, decode. All integers big-endian.
 *
 * They travel as CONTROL_UPPER, in both directions. A *segment* is one SDR message, named by
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
 */

#define TRANSFER_TO_RECEIVER_BYTES 24u
#define TRANSFER_DONE_BYTES        24u
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
