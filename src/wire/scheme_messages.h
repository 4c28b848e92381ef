/*
 * erasure_coding.h - the three messages of the erasure-code schemes: MARK to the receiver, ACK and REQUEST
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
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_ERASURE_CODING_H
#define LH_WIRE_ERASURE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
