/*
 * onesided.h - one-sided operations: layout, encode, decode. All integers big-endian.
 *
 * They have a queue pair of their own, the *inner* one, whose blobs the two sides exchange over that of the
 * connection, as CONTROL_UPPER beside the messages of transfer.h:
 *
 *   EXCHANGE     kind 1 (8) | flags 1 | zero 2 | operations 4 | blob 0 … 976
 *
 * operations: how many the writer's user has started, of which an answer repeats the number it answers. A
 * side sends its blob until the peer has it; an answer without a blob says that nothing is exposed.
 *
 * On the inner connection each operation begins with a small message, its *header*:
 *
 *   WRITE        kind 1 | notify 1 | zero 2 | key 8 | offset 8 | bytes 8 | immediate 0 or 8
 *   READ         kind 1 | zero 3 | key 8 | offset 8 | bytes 8
 *   ANSWER       kind 1 | zero 3 | error 4
 *
 * The message after a WRITE has its bytes, and so has that after an ANSWER without error, which answers the
 * oldest READ without one. A WRITE that is not allowed ends by a REFUSE of the message after it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_ONESIDED_H
#define LH_WIRE_ONESIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

#define ONESIDED_KIND               8u /* after EAGER_KIND */
#define ONESIDED_EXCHANGE_BYTES     8u /* and the blob */
#define ONESIDED_EXCHANGE_BYTES_MAX CONTROL_PAYLOAD_MAX
#define ONESIDED_BLOB_MAX           976u
#define ONESIDED_HEADER_MAX         36u

enum onesided_exchange_flags {
    ONESIDED_HAS_PEER = 1, /* the writer has the reader's blob */
    ONESIDED_ASKS = 2,     /* answer this */
    ONESIDED_ANSWERS = 4,  /* operations: of the message that this one answers */
};

struct onesided_exchange {
    uint8_t flags;
    uint32_t operations;
    const uint8_t *blob; /* decode: points into the input */
    uint32_t blob_bytes; /* 0: none */
};

enum onesided_kind {
    ONESIDED_WRITE = 1,
    ONESIDED_READ = 2,
    ONESIDED_ANSWER = 3,
};

struct onesided_header {
    enum onesided_kind kind;
    bool notify; /* WRITE */
    uint64_t key;
    uint64_t offset;
    uint64_t bytes;
    uint64_t immediate; /* with notify; else 0 */
    uint32_t error;     /* ANSWER: an lh_error, or 0 */
};

/* Bytes written into out, which holds ONESIDED_EXCHANGE_BYTES_MAX. */
size_t onesided_exchange_encode(const struct onesided_exchange *exchange, uint8_t *out);
/* 0, or -1 when a field is out of range. */
int onesided_exchange_decode(const uint8_t *data, size_t bytes, struct onesided_exchange *exchange);

/* Bytes written into out, which holds ONESIDED_HEADER_MAX. */
size_t onesided_header_encode(const struct onesided_header *header, uint8_t *out);
/* 0, or -1 when a field is out of range. */
int onesided_header_decode(const uint8_t *data, size_t bytes, struct onesided_header *header);

#endif
