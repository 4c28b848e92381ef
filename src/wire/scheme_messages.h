/*
 * scheme_messages.h - messages of the schemes' machines: MARK, ACK, requests, lengths. Big-endian.
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
#ifndef LH_WIRE_SCHEME_MESSAGES_H
#define LH_WIRE_SCHEME_MESSAGES_H

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

/* ---- erasure coding -------------------------------------------------------------------------------- */

/*
 * The three messages of the erasure-code schemes: MARK to the receiver, ACK and REQUEST
 * to the sender. Big-endian.
 *
 * MARK, 16 bytes: kind 1 | flags 1 | zero 2 | mark 4 | round 4 | injected 4
 * ACK, 16 bytes: kind 1 | zero 3 | mark 4 | injected 4 | arrived 4
 * REQUEST, 8 bytes and the runs: kind 1 | part 1 | parts 1 | runs 1 | round 4 | runs x 6: group 4 | first 1 |
 * count 1
 *
 * MARK and ACK are snapshots: the next one makes up for a lost one, a duplicate or late one contains
 * nothing new. Round 0 is the message and its parity; each further round is one request, in
 * several parts when it is long; its number names the round that it answers.
 */

#define EC_MARK_BYTES        16u
#define EC_ACK_BYTES         16u
#define EC_REQUEST_BYTES     8u
#define EC_RUN_BYTES         6u
#define EC_RUNS_MAX          148u /* (LH_SCHEME_MESSAGE_MAX - EC_REQUEST_BYTES) / EC_RUN_BYTES */
#define EC_PARTS_MAX         8u   /* of a request; what does not fit waits for the next round */
#define EC_REQUEST_BYTES_MAX (EC_REQUEST_BYTES + EC_RUNS_MAX * EC_RUN_BYTES)

enum ec_message_kind {
    EC_MARK = 1,
    EC_ACK = 2,
    EC_REQUEST = 3,
};

#define EC_FLAG_PROBE 0x01u /* MARK: answer at once */
#define EC_FLAG_END   0x02u /* MARK: all of this round was injected before it */

struct ec_mark {
    uint8_t flags;
    uint32_t mark;     /* counts up with each MARK that has something new to cover; from 1 */
    uint32_t round;    /* the newest whose request the sender has received; 0: none */
    uint32_t injected; /* chunks that were injected before this, retransmissions included */
};

struct ec_ack {
    uint32_t mark;     /* newest MARK received a reordering window ago: what was injected before it and
                          is missing is lost; 0: none */
    uint32_t injected; /* as in that MARK */
    uint32_t arrived;  /* chunks that are there, of the message and extra */
};

/* Places first … first + count - 1 of the code of one group: 0 … k' - 1 are its k' data chunks, parity row r
 * is k' + r. */
struct ec_run {
    uint32_t group;
    uint8_t first;
    uint8_t count; /* at least 1; first + count <= 255 */
};

struct ec_request {
    uint32_t round;                  /* from 1 */
    uint8_t part;                    /* 0 … parts - 1; all but the last hold EC_RUNS_MAX runs */
    uint8_t parts;                   /* 1 … EC_PARTS_MAX */
    uint8_t count;                   /* of runs, at least 1 */
    struct ec_run runs[EC_RUNS_MAX]; /* by group and place, none twice */
};

/* Whether b may follow a in a request: it begins where a has ended or later. */
static inline bool ec_run_follows(const struct ec_run *a, const struct ec_run *b)
{
    return b->group > a->group || (b->group == a->group && b->first >= a->first + a->count);
}

/* The fields must be possible (asserted); returns the bytes written. */
size_t ec_mark_encode(const struct ec_mark *mark, uint8_t out[EC_MARK_BYTES]);
size_t ec_ack_encode(const struct ec_ack *ack, uint8_t out[EC_ACK_BYTES]);
/* Writes at most EC_REQUEST_BYTES_MAX bytes. */
size_t ec_request_encode(const struct ec_request *request, uint8_t *out);
/* 0, or -1 when a field is impossible or the length is not the message's own. */
int ec_mark_decode(const uint8_t *data, size_t bytes, struct ec_mark *mark);
int ec_ack_decode(const uint8_t *data, size_t bytes, struct ec_ack *ack);
int ec_request_decode(const uint8_t *data, size_t bytes, struct ec_request *request);

/* ---- hybrid ---------------------------------------------------------------------------------------- */

/*
 * What the hybrid scheme sends beside the messages of selective repeat: ROWS, to the sender.
 * Big-endian.
 *
 * ROWS, 12 bytes and one a submessage: kind 3 | zero 1 | count 2 | mark 4 | first 4 | count x rows
 *
 * It reports parity: how many rows of the submessages first … first + count - 1 have arrived, or that a
 * submessage can be decoded. Like an ACK it is a snapshot.
 */

#define HYBRID_ROWS_BYTES 12u
#define HYBRID_ROWS_MAX   884u /* LH_SCHEME_MESSAGE_MAX - HYBRID_ROWS_BYTES */
#define HYBRID_ROWS_KIND  3u   /* MARK and ACK of selective repeat have 1 and 2 */
#define HYBRID_DECODABLE  255u /* instead of a number of rows */

struct hybrid_rows {
    uint32_t
        mark; /* newest MARK received a reordering window ago: rows injected before it that have not arrived
                       are lost; 0: none */
    uint32_t first; /* submessage */
    uint16_t count; /* 1 … HYBRID_ROWS_MAX */
    uint8_t rows[HYBRID_ROWS_MAX];
};

/* The fields must be possible (asserted); returns the bytes written. */
size_t hybrid_rows_encode(const struct hybrid_rows *rows, uint8_t *out);
/* 0, or -1 when a field is impossible or the length is not the message's own. */
int hybrid_rows_decode(const uint8_t *data, size_t bytes, struct hybrid_rows *rows);

/* ---- bounded completion ---------------------------------------------------------------------------- */

/*
 * The two messages of bounded completion: END to the receiver, ACK to the sender.
 * Big-endian.
 *
 * END, 8 bytes: kind 1 | zero 3 | injected 4
 * ACK, 8 bytes: kind 1 | zero 3 | through 4
 *
 * Both count places in the order of injection: the chunks of the message, then its parity. END says that
 * nothing follows; it is repeated, for it may be lost. ACK says how far the packets of the transfer have
 * passed: what lies before that has arrived or is lost. Neither asks for anything to be sent again.
 */

#define BOUNDED_MESSAGE_BYTES 8u

enum bounded_kind {
    BOUNDED_END = 1,
    BOUNDED_ACK = 2,
};

struct bounded_message {
    enum bounded_kind kind;
    uint32_t place; /* END: one past the last that was injected; ACK: one past the last that arrived */
};

/* Returns the bytes written. */
size_t bounded_message_encode(const struct bounded_message *message, uint8_t out[BOUNDED_MESSAGE_BYTES]);
/* 0, or -1 when a field is impossible or the length is not the message's own. */
int bounded_message_decode(const uint8_t *data, size_t bytes, struct bounded_message *message);

#endif
