/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/eager_packets.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/control_messages.h"

/* ---- eager ----------------------------------------------------------------------------------------- */

#define HEADER_BYTES    8u
#define ACK_BYTES       16u
#define MESSAGE_BYTES   4u
#define RUN_BYTES       2u
#define STEP_MASK       31u /* of an entry's head */
#define STEP_ABSOLUTE   31u
#define HEAD_UNITS      32u
#define HEAD_LONG       64u
#define HEAD_TAG        128u
#define SMALL_BYTES     2u /* of the length */
#define LONG_BYTES      6u
#define TAG_BYTES       8u
#define FLAGS_ALL       (EAGER_HAS_ACK | EAGER_HAS_ENTRIES | EAGER_PROBE | EAGER_PART)
#define RUN_STATE_SHIFT 14u

static_assert(HEADER_BYTES + ACK_BYTES + EAGER_RUNS_MAX * RUN_BYTES == EAGER_ACK_MAX, "all its runs");
static_assert(EAGER_UNITS_MAX * EAGER_UNIT_BYTES >= EAGER_MAX, "a small message has no more units");
static_assert(HEADER_BYTES + ACK_BYTES + EAGER_RUNS_MAX * RUN_BYTES + MESSAGE_BYTES <= EAGER_BYTES_MAX,
              "the longest acknowledgement fits");
static_assert(HEADER_BYTES + ACK_BYTES + MESSAGE_BYTES + 1 + MESSAGE_BYTES + SMALL_BYTES + 1 + TAG_BYTES +
                      EAGER_UNIT_BYTES <=
                  EAGER_BYTES_MAX,
              "a unit fits behind an acknowledgement without runs");
static_assert(HEADER_BYTES + ACK_BYTES + EAGER_RUNS_MAX * RUN_BYTES <= 160, "eager_packet_max()");
static_assert(EAGER_KIND > TRANSFER_FORGET, "kinds differ");

bool eager_ack_add(struct eager_ack *ack, enum eager_state state)
{
    struct eager_run *last = ack->run_count > 0 ? &ack->runs[ack->run_count - 1] : NULL;
    if (last && last->state == state && last->messages < EAGER_RUN_MAX) {
        last->messages++;
        return true;
    }
    if (ack->run_count == EAGER_RUNS_MAX)
        return false;
    ack->runs[ack->run_count++] = (struct eager_run){.state = state, .messages = 1};
    return true;
}

/* ---- encode ------------------------------------------------------------------------------------------ */

static size_t put_ack(uint8_t *out, const struct eager_ack *ack)
{
    assert(ack->run_count <= EAGER_RUNS_MAX);
    lh_put_be32(out, ack->newest);
    lh_put_be32(out + 4, ack->received);
    lh_put_be32(out + 8, ack->base);
    lh_put_be32(out + 12, ack->posted);
    for (uint32_t i = 0; i < ack->run_count; i++)
        lh_put_be16(out + ACK_BYTES + i * RUN_BYTES,
                    (uint16_t)(ack->runs[i].state << RUN_STATE_SHIFT | ack->runs[i].messages));
    return ACK_BYTES + ack->run_count * RUN_BYTES;
}

void eager_write_begin(struct eager_writer *writer, uint8_t *out, size_t limit, uint32_t carrier,
                       const struct eager_ack *ack)
{
    out[0] = EAGER_KIND;
    out[1] = ack ? (uint8_t)(EAGER_HAS_ACK | (ack->is_part ? EAGER_PART : 0)) : 0;
    out[2] = ack ? (uint8_t)ack->run_count : 0;
    out[3] = 0;
    lh_put_be32(out + 4, carrier);
    *writer = (struct eager_writer){.out = out, .bytes = HEADER_BYTES, .limit = limit};
    if (ack)
        writer->bytes += put_ack(out + HEADER_BYTES, ack);
}

void eager_write_probe(struct eager_writer *writer)
{
    writer->out[1] |= EAGER_PROBE;
}

static size_t entry_bytes(const struct eager_entry *entry, bool absolute)
{
    size_t bytes = 1 + (absolute ? MESSAGE_BYTES : 0) + (entry->tag ? TAG_BYTES : 0);
    if (entry->is_long)
        return bytes + LONG_BYTES;
    return bytes + SMALL_BYTES + (eager_units(entry->bytes) > 1) + entry->data_bytes;
}

static size_t put_length(uint8_t *out, const struct eager_entry *entry)
{
    if (!entry->is_long) {
        lh_put_be16(out, (uint16_t)entry->bytes);
        return SMALL_BYTES;
    }
    lh_put_be16(out, (uint16_t)(entry->bytes >> 32));
    lh_put_be32(out + 2, (uint32_t)entry->bytes);
    return LONG_BYTES;
}

bool eager_write_entry(struct eager_writer *writer, const struct eager_entry *entry, uint8_t **payload)
{
    bool first = !(writer->out[1] & EAGER_HAS_ENTRIES);
    uint32_t step = first ? 0 : entry->message - writer->at_message;
    bool absolute = step >= STEP_ABSOLUTE;
    bool units = !entry->is_long && eager_units(entry->bytes) > 1;
    assert(entry->bytes <= (entry->is_long ? TRANSFER_ROOM_MAX : EAGER_MAX));
    if (writer->bytes + (first ? MESSAGE_BYTES : 0) + entry_bytes(entry, absolute) > writer->limit)
        return false;
    uint8_t *out = writer->out + writer->bytes;
    if (first) {
        lh_put_be32(out, entry->message);
        out += MESSAGE_BYTES;
        writer->out[1] |= EAGER_HAS_ENTRIES;
    }
    *out++ = (uint8_t)((absolute ? STEP_ABSOLUTE : step) | (units ? HEAD_UNITS : 0) |
                       (entry->is_long ? HEAD_LONG : 0) | (entry->tag ? HEAD_TAG : 0));
    if (absolute) {
        lh_put_be32(out, entry->message);
        out += MESSAGE_BYTES;
    }
    out += put_length(out, entry);
    if (units)
        *out++ = entry->unit;
    if (entry->tag) {
        lh_put_be64(out, entry->tag);
        out += TAG_BYTES;
    }
    *payload = out;
    writer->at_message = entry->message;
    writer->bytes = (size_t)(out - writer->out) + (entry->is_long ? 0 : entry->data_bytes);
    return true;
}

/* ---- decode ------------------------------------------------------------------------------------------ */

struct cursor {
    const uint8_t *at;
    size_t left;
};

/* The next `bytes` bytes, or NULL. */
static const uint8_t *take(struct cursor *cursor, size_t bytes)
{
    const uint8_t *at = cursor->at;
    if (bytes > cursor->left)
        return NULL;
    cursor->at += bytes;
    cursor->left -= bytes;
    return at;
}

static int decode_runs(struct cursor *cursor, uint32_t count, struct eager_ack *ack)
{
    for (uint32_t i = 0; i < count; i++) { /* at most EAGER_RUNS_MAX */
        const uint8_t *run = take(cursor, RUN_BYTES);
        if (!run)
            return -1;
        ack->runs[i].state = (enum eager_state)(lh_get_be16(run) >> RUN_STATE_SHIFT);
        ack->runs[i].messages = lh_get_be16(run) & EAGER_RUN_MAX;
        if (ack->runs[i].messages == 0)
            return -1;
    }
    ack->run_count = count;
    return 0;
}

static int decode_ack(struct cursor *cursor, uint32_t runs, struct eager_ack *ack)
{
    const uint8_t *fixed = take(cursor, ACK_BYTES);
    if (!fixed)
        return -1;
    ack->newest = lh_get_be32(fixed);
    ack->received = lh_get_be32(fixed + 4);
    ack->base = lh_get_be32(fixed + 8);
    ack->posted = lh_get_be32(fixed + 12);
    return decode_runs(cursor, runs, ack);
}

static bool decode_long(struct cursor *cursor, struct eager_entry *entry)
{
    const uint8_t *length = take(cursor, LONG_BYTES);
    if (!length)
        return false;
    entry->bytes = (uint64_t)lh_get_be16(length) << 32 | lh_get_be32(length + 2);
    return true;
}

static bool decode_small(struct cursor *cursor, bool units, struct eager_entry *entry)
{
    const uint8_t *length = take(cursor, SMALL_BYTES);
    if (!length)
        return false;
    entry->bytes = lh_get_be16(length);
    if (entry->bytes > EAGER_MAX || units != (eager_units(entry->bytes) > 1))
        return false;
    const uint8_t *unit = units ? take(cursor, 1) : NULL;
    if (units && (!unit || *unit >= eager_units(entry->bytes)))
        return false;
    entry->unit = unit ? *unit : 0;
    entry->data_bytes = eager_unit_bytes(entry->bytes, entry->unit);
    return true;
}

static bool decode_entry(struct cursor *cursor, uint32_t at_message, struct eager_entry *entry)
{
    const uint8_t *head = take(cursor, 1);
    if (!head)
        return false;
    *entry =
        (struct eager_entry){.is_long = *head & HEAD_LONG, .message = at_message + (*head & STEP_MASK)};
    if ((*head & STEP_MASK) == STEP_ABSOLUTE) {
        const uint8_t *message = take(cursor, MESSAGE_BYTES);
        if (!message)
            return false;
        entry->message = lh_get_be32(message);
    }
    if (entry->is_long && (*head & HEAD_UNITS))
        return false;
    if (!(entry->is_long ? decode_long(cursor, entry) : decode_small(cursor, *head & HEAD_UNITS, entry)))
        return false;
    if (*head & HEAD_TAG) {
        const uint8_t *tag = take(cursor, TAG_BYTES);
        if (!tag)
            return false;
        entry->tag = lh_get_be64(tag);
    }
    entry->data = take(cursor, entry->data_bytes);
    return entry->data != NULL;
}

static int check_entries(const struct eager_packet *packet)
{
    struct cursor cursor = {packet->entries, packet->entry_bytes};
    struct eager_entry entry;
    uint32_t at_message = packet->at_message;
    while (cursor.left > 0) { /* each turn takes bytes */
        if (!decode_entry(&cursor, at_message, &entry))
            return -1;
        at_message = entry.message;
    }
    return 0;
}

int eager_decode(const uint8_t *data, size_t bytes, struct eager_packet *packet)
{
    struct cursor cursor = {data, bytes};
    const uint8_t *header = take(&cursor, HEADER_BYTES);
    if (!header || bytes > EAGER_LONG_MAX || header[0] != EAGER_KIND || header[3] != 0)
        return -1;
    packet->flags = header[1];
    packet->carrier = lh_get_be32(header + 4);
    packet->at_message = 0;
    packet->entries = NULL;
    packet->entry_bytes = 0;
    bool has_ack = packet->flags & EAGER_HAS_ACK;
    if ((packet->flags & ~FLAGS_ALL) != 0 || packet->flags == 0 || header[2] > EAGER_RUNS_MAX ||
        ((header[2] > 0 || (packet->flags & EAGER_PART)) && !has_ack))
        return -1;
    packet->ack.is_part = packet->flags & EAGER_PART;
    if (has_ack && decode_ack(&cursor, header[2], &packet->ack) != 0)
        return -1;
    if (!(packet->flags & EAGER_HAS_ENTRIES))
        return cursor.left == 0 ? 0 : -1;
    const uint8_t *message = take(&cursor, MESSAGE_BYTES);
    if (!message || cursor.left == 0)
        return -1;
    packet->at_message = lh_get_be32(message);
    packet->entries = cursor.at;
    packet->entry_bytes = cursor.left;
    return check_entries(packet);
}

bool eager_next_entry(struct eager_packet *packet, struct eager_entry *entry)
{
    struct cursor cursor = {packet->entries, packet->entry_bytes};
    if (cursor.left == 0)
        return false;
    bool valid = decode_entry(&cursor, packet->at_message, entry);
    assert(valid); /* it was decoded */
    (void)valid;
    packet->at_message = entry->message;
    packet->entries = cursor.at;
    packet->entry_bytes = cursor.left;
    return true;
}

/* ---- onesided -------------------------------------------------------------------------------------- */

#define RANGE_BYTES        28u /* of WRITE and READ */
#define IMMEDIATE_BYTES    8u
#define ANSWER_BYTES       8u
#define ONESIDED_FLAGS_ALL (ONESIDED_HAS_PEER | ONESIDED_ASKS | ONESIDED_ANSWERS)

static_assert(ONESIDED_KIND > EAGER_KIND, "kinds differ");
static_assert(ONESIDED_EXCHANGE_BYTES + ONESIDED_BLOB_MAX <= ONESIDED_EXCHANGE_BYTES_MAX, "a blob fits");
static_assert(RANGE_BYTES + IMMEDIATE_BYTES == ONESIDED_HEADER_MAX, "the longest header");

/* ---- the exchange of blobs --------------------------------------------------------------------------- */

size_t onesided_exchange_encode(const struct onesided_exchange *exchange, uint8_t *out)
{
    assert(exchange->blob_bytes <= ONESIDED_BLOB_MAX && (exchange->flags & ~ONESIDED_FLAGS_ALL) == 0);
    memset(out, 0, ONESIDED_EXCHANGE_BYTES);
    out[0] = ONESIDED_KIND;
    out[1] = exchange->flags;
    lh_put_be32(out + 4, exchange->operations);
    if (exchange->blob_bytes > 0)
        memcpy(out + ONESIDED_EXCHANGE_BYTES, exchange->blob, exchange->blob_bytes);
    return ONESIDED_EXCHANGE_BYTES + exchange->blob_bytes;
}

int onesided_exchange_decode(const uint8_t *data, size_t bytes, struct onesided_exchange *exchange)
{
    if (bytes < ONESIDED_EXCHANGE_BYTES || bytes > ONESIDED_EXCHANGE_BYTES + ONESIDED_BLOB_MAX)
        return -1;
    if (data[0] != ONESIDED_KIND || (data[1] & ~ONESIDED_FLAGS_ALL) != 0 || data[2] != 0 || data[3] != 0)
        return -1;
    *exchange = (struct onesided_exchange){
        .flags = data[1],
        .operations = lh_get_be32(data + 4),
        .blob = data + ONESIDED_EXCHANGE_BYTES,
        .blob_bytes = (uint32_t)(bytes - ONESIDED_EXCHANGE_BYTES),
    };
    return 0;
}

/* ---- headers ----------------------------------------------------------------------------------------- */

static size_t put_range(const struct onesided_header *header, uint8_t *out)
{
    lh_put_be64(out + 4, header->key);
    lh_put_be64(out + 12, header->offset);
    lh_put_be64(out + 20, header->bytes);
    return RANGE_BYTES;
}

size_t onesided_header_encode(const struct onesided_header *header, uint8_t *out)
{
    memset(out, 0, 4);
    out[0] = (uint8_t)header->kind;
    switch (header->kind) {
    case ONESIDED_WRITE:
        out[1] = header->notify;
        put_range(header, out);
        if (!header->notify)
            return RANGE_BYTES;
        lh_put_be64(out + RANGE_BYTES, header->immediate);
        return RANGE_BYTES + IMMEDIATE_BYTES;
    case ONESIDED_READ:
        return put_range(header, out);
    case ONESIDED_ANSWER:
        assert(header->error <= INT32_MAX);
        lh_put_be32(out + 4, header->error);
        return ANSWER_BYTES;
    }
    assert(false); /* a header has one of the kinds above */
    return 0;
}

static int decode_range(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes != (header->notify ? RANGE_BYTES + IMMEDIATE_BYTES : RANGE_BYTES))
        return -1;
    header->key = lh_get_be64(data + 4);
    header->offset = lh_get_be64(data + 12);
    header->bytes = lh_get_be64(data + 20);
    header->immediate = header->notify ? lh_get_be64(data + RANGE_BYTES) : 0;
    return 0;
}

static int decode_answer(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes != ANSWER_BYTES)
        return -1;
    header->error = lh_get_be32(data + 4);
    return header->error <= INT32_MAX ? 0 : -1;
}

int onesided_header_decode(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes < ANSWER_BYTES || data[1] > (data[0] == ONESIDED_WRITE) || data[2] != 0 || data[3] != 0)
        return -1;
    *header = (struct onesided_header){.kind = (enum onesided_kind)data[0], .notify = data[1] == 1};
    switch (header->kind) {
    case ONESIDED_WRITE:
    case ONESIDED_READ:
        return decode_range(data, bytes, header);
    case ONESIDED_ANSWER:
        return decode_answer(data, bytes, header);
    }
    return -1;
}
