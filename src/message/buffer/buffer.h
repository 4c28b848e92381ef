/*
 * buffer.h - where a message lies: in one place, or in several parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BUFFER_BUFFER_H
#define LH_MESSAGE_BUFFER_BUFFER_H

#include <longhaul/connection.h>

/* Bytes in one place, as the SDR layer knows them. */
struct message_part {
    uint8_t *address;
    uint64_t bytes; /* not 0 */
    uint32_t lkey;
};

struct message_parts {
    uint32_t count; /* 2 to LH_PARTS_MAX */
    struct message_part list[LH_PARTS_MAX];
};

/* Its length is known to its owner, and each range below is within it. What is sent is only read. */
struct message_buffer {
    uint8_t *address; /* in one place: there; else NULL, as without bytes */
    uint32_t lkey;
    const struct message_parts *parts; /* NULL: in one place */
};

/* Whether a range lies in one place; then *place says where, its `bytes` are those from there to the end of
 * the range. An empty range lies nowhere. */
bool buffer_place(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes,
                  struct message_part *place);
void buffer_read(const struct message_buffer *buffer, uint64_t offset, void *out, uint64_t bytes);
void buffer_write(const struct message_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
void buffer_zero(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes);

#endif
