/*
 * hybrid.h - what the hybrid scheme sends beside the messages of selective repeat: ROWS, to the sender.
 * Big-endian.
 *
 * ROWS, 12 bytes and one a submessage: kind 3 | zero 1 | count 2 | mark 4 | first 4 | count x rows
 *
 * It reports parity: how many rows of the submessages first … first + count - 1 have arrived, or that a
 * submessage can be decoded. Like an ACK it is a snapshot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_HYBRID_H
#define LH_WIRE_HYBRID_H

#include <stddef.h>
#include <stdint.h>

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

#endif
