/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/control_messages.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/bytes.h"

/* ---- control --------------------------------------------------------------------------------------- */

/*
 * Control messages: encode, decode.
 *
 * Only the exact length of its type makes a message valid; the number of CTS entries follows from it.
 */

#define CONTROL_FEEDBACK_BYTES 56u

static_assert(CONTROL_HEADER_BYTES + CONTROL_CTS_MAX * CONTROL_CTS_BYTES <= CONTROL_MESSAGE_MAX,
              "a full CTS fits a message");

#define ENTRY_HEADER_BYTES 2u /* of CONTROL_UPPERS */
#define TOKEN_BYTES        4u
#define PROBE_ID_BYTES     4u
#define PROBED_BYTES       8u

static void encode_cts(const struct control_cts *cts, uint8_t *out)
{
    lh_put_be32(out, cts->sequence);
    lh_put_be16(out + 4, cts->slot);
    out[6] = cts->generation;
    out[7] = 0;
    lh_put_be32(out + 8, cts->length_bytes);
    lh_put_be32(out + 12, cts->rkey);
    lh_put_be64(out + 16, cts->base);
    memcpy(out + 24, cts->upper, CONTROL_UPPER_BYTES);
}

static int decode_cts(const uint8_t *data, struct control_cts *cts)
{
    if (data[7] != 0)
        return -1;
    cts->sequence = lh_get_be32(data);
    cts->slot = lh_get_be16(data + 4);
    cts->generation = data[6];
    cts->length_bytes = lh_get_be32(data + 8);
    cts->rkey = lh_get_be32(data + 12);
    cts->base = lh_get_be64(data + 16);
    memcpy(cts->upper, data + 24, CONTROL_UPPER_BYTES);
    return 0;
}

static void encode_feedback(const struct control_feedback *feedback, uint8_t *out)
{
    lh_put_be32(out, (uint32_t)feedback->generation << 24);
    lh_put_be32(out + 4, feedback->immediate);
    lh_put_be64(out + 8, feedback->arrived_packets);
    lh_put_be64(out + 16, feedback->marked_packets);
    lh_put_be64(out + 24, feedback->dropped_packets);
    lh_put_be64(out + 32, feedback->arrived_ns);
    lh_put_be64(out + 40, feedback->held_ns);
    lh_put_be64(out + 48, feedback->credit_bytes);
}

/* Totals may be anything: what is impossible depends on what was sent. */
static int decode_feedback(const uint8_t *data, size_t bytes, struct control_feedback *feedback)
{
    if (bytes != CONTROL_FEEDBACK_BYTES || (lh_get_be32(data) & 0xFFFFFF) != 0)
        return -1;
    *feedback = (struct control_feedback){
        .generation = data[0],
        .immediate = lh_get_be32(data + 4),
        .arrived_packets = lh_get_be64(data + 8),
        .marked_packets = lh_get_be64(data + 16),
        .dropped_packets = lh_get_be64(data + 24),
        .arrived_ns = lh_get_be64(data + 32),
        .held_ns = lh_get_be64(data + 40),
        .credit_bytes = lh_get_be64(data + 48),
    };
    return 0;
}

uint32_t control_uppers_add(uint8_t *body, uint32_t room, uint32_t used, const uint8_t *data,
                            uint32_t bytes)
{
    assert(bytes > 0 && bytes <= CONTROL_PAYLOAD_MAX && used <= room && room <= CONTROL_PAYLOAD_MAX);
    if (used + ENTRY_HEADER_BYTES + bytes > room)
        return 0;
    lh_put_be16(body + used, (uint16_t)bytes);
    memcpy(body + used + ENTRY_HEADER_BYTES, data, bytes);
    return used + ENTRY_HEADER_BYTES + bytes;
}

uint32_t control_uppers_begin(uint8_t *body, uint32_t room, uint32_t bytes, uint32_t next)
{
    assert(bytes > 0 && bytes <= CONTROL_PAYLOAD_MAX && next <= CONTROL_PAYLOAD_MAX);
    assert(room <= CONTROL_PAYLOAD_MAX);
    if (2 * ENTRY_HEADER_BYTES + bytes + next > room)
        return 0;
    memmove(body + ENTRY_HEADER_BYTES, body, bytes);
    lh_put_be16(body, (uint16_t)bytes);
    return ENTRY_HEADER_BYTES + bytes;
}

uint32_t control_uppers_take(struct control_message *message, const uint8_t **data)
{
    const uint8_t *entry = message->body.upper.data;
    if (message->body.upper.bytes == 0)
        return 0;
    uint32_t bytes = lh_get_be16(entry);
    assert(bytes > 0 && ENTRY_HEADER_BYTES + bytes <= message->body.upper.bytes); /* decoded */
    *data = entry + ENTRY_HEADER_BYTES;
    message->body.upper.data += ENTRY_HEADER_BYTES + bytes;
    message->body.upper.bytes -= ENTRY_HEADER_BYTES + bytes;
    return bytes;
}

uint32_t control_part_write(const struct control_part *part, uint8_t *body)
{
    assert(part->bytes > 0 && part->offset + part->bytes <= part->whole);
    assert(part->whole <= CONTROL_PARTS_MAX && CONTROL_PART_BYTES + part->bytes <= CONTROL_PAYLOAD_MAX);
    lh_put_be32(body, part->number);
    lh_put_be16(body + 4, (uint16_t)part->offset);
    lh_put_be16(body + 6, (uint16_t)part->whole);
    memcpy(body + CONTROL_PART_BYTES, part->data, part->bytes);
    return CONTROL_PART_BYTES + part->bytes;
}

struct control_part control_part_read(const struct control_message *message)
{
    const uint8_t *body = message->body.upper.data;
    return (struct control_part){
        .number = lh_get_be32(body),
        .offset = lh_get_be16(body + 4),
        .whole = lh_get_be16(body + 6),
        .data = body + CONTROL_PART_BYTES,
        .bytes = message->body.upper.bytes - CONTROL_PART_BYTES,
    };
}

static size_t encode_tokens(const struct control_message *message, uint8_t *out)
{
    uint32_t count = message->body.alive.count;
    assert(count >= 1 && count <= CONTROL_TOKENS_MAX);
    for (uint32_t i = 0; i < count; i++)
        lh_put_be32(out + i * TOKEN_BYTES, message->body.alive.tokens[i]);
    return count * TOKEN_BYTES;
}

/* Bytes behind the header. */
static uint32_t payload_max(uint32_t type)
{
    if (type == CONTROL_PROBE)
        return CONTROL_PROBE_MAX - CONTROL_HEADER_BYTES;
    return type == CONTROL_UPPER ? CONTROL_LONG_MAX - CONTROL_HEADER_BYTES : CONTROL_PAYLOAD_MAX;
}

static size_t encode_probe(const struct control_probe *probe, uint8_t *out)
{
    assert(probe->bytes >= CONTROL_HEADER_BYTES + PROBE_ID_BYTES && probe->bytes <= CONTROL_PROBE_MAX);
    size_t bytes = probe->bytes - CONTROL_HEADER_BYTES;
    memset(out, 0, bytes);
    lh_put_be32(out, probe->id);
    return bytes;
}

/* Bytes of the body, written at out. */
static size_t encode_body(const struct control_message *message, uint8_t *out)
{
    switch (message->header.type) {
    case CONTROL_PING:
    case CONTROL_PONG:
        return 0;
    case CONTROL_CTS:
        assert(message->body.cts.count >= 1 && message->body.cts.count <= CONTROL_CTS_MAX);
        for (uint32_t i = 0; i < message->body.cts.count; i++)
            encode_cts(&message->body.cts.entries[i], out + i * CONTROL_CTS_BYTES);
        return message->body.cts.count * CONTROL_CTS_BYTES;
    case CONTROL_CTS_HEARD:
        lh_put_be32(out, message->body.cts_heard_next);
        return 4;
    case CONTROL_UPPER:
    case CONTROL_UPPERS:
    case CONTROL_PART:
        assert(message->body.upper.bytes <= payload_max(message->header.type));
        assert(message->body.upper.bytes >= 1 || message->header.type == CONTROL_UPPERS);
        if (message->body.upper.bytes > 0 && message->body.upper.data != out)
            memcpy(out, message->body.upper.data, message->body.upper.bytes);
        return message->body.upper.bytes;
    case CONTROL_CLOSE:
        assert(message->body.close_reason <= INT32_MAX);
        lh_put_be32(out, message->body.close_reason);
        return 4;
    case CONTROL_FEEDBACK:
        encode_feedback(&message->body.feedback, out);
        return CONTROL_FEEDBACK_BYTES;
    case CONTROL_KEEPALIVE:
    case CONTROL_ALIVE:
        return encode_tokens(message, out);
    case CONTROL_PROBE:
        return encode_probe(&message->body.probe, out);
    case CONTROL_PROBED:
        lh_put_be32(out, message->body.probe.id);
        lh_put_be32(out + 4, message->body.probe.full);
        return PROBED_BYTES;
    }
    assert(false); /* a control message has one of the types above */
    return 0;
}

size_t control_encode(const struct control_message *message, uint8_t *out)
{
    size_t bytes = CONTROL_HEADER_BYTES + encode_body(message, out + CONTROL_HEADER_BYTES);
    out[0] = CONTROL_VERSION;
    out[1] = (uint8_t)message->header.type;
    lh_put_be16(out + 2, (uint16_t)bytes);
    lh_put_be32(out + 4, message->header.token);
    lh_put_be64(out + 8, message->header.sent_ns);
    lh_put_be64(out + 16, message->header.echo_ns);
    lh_put_be32(out + 24, message->header.echo_delay_ns);
    lh_put_be32(out + 28, 0);
    return bytes;
}

static int decode_cts_entries(const uint8_t *data, size_t bytes, struct control_message *message)
{
    size_t count = bytes / CONTROL_CTS_BYTES;
    if (bytes % CONTROL_CTS_BYTES != 0 || count < 1 || count > CONTROL_CTS_MAX)
        return -1;
    message->body.cts.count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        if (decode_cts(data + i * CONTROL_CTS_BYTES, &message->body.cts.entries[i]) != 0)
            return -1;
    }
    return 0;
}

static int decode_upper(const uint8_t *data, size_t bytes, struct control_message *message)
{
    if (bytes < 1)
        return -1;
    message->body.upper.data = data;
    message->body.upper.bytes = (uint32_t)bytes;
    return 0;
}

/* Entries must fill it exactly. */
static int decode_uppers(const uint8_t *data, size_t bytes, struct control_message *message)
{
    for (size_t at = 0; at < bytes;) { /* each round takes three bytes or more */
        size_t left = bytes - at;
        size_t entry = left >= ENTRY_HEADER_BYTES ? lh_get_be16(data + at) : 0;
        if (entry == 0 || entry > left - ENTRY_HEADER_BYTES)
            return -1;
        at += ENTRY_HEADER_BYTES + entry;
    }
    message->body.upper.data = data;
    message->body.upper.bytes = (uint32_t)bytes;
    return 0;
}

static int decode_part(const uint8_t *data, size_t bytes, struct control_message *message)
{
    if (bytes <= CONTROL_PART_BYTES || bytes > CONTROL_PAYLOAD_MAX)
        return -1;
    message->body.upper.data = data;
    message->body.upper.bytes = (uint32_t)bytes;
    struct control_part part = control_part_read(message);
    return part.whole <= CONTROL_PARTS_MAX && part.offset + part.bytes <= part.whole ? 0 : -1;
}

static int decode_tokens(const uint8_t *data, size_t bytes, struct control_message *message)
{
    size_t count = bytes / TOKEN_BYTES;
    if (bytes % TOKEN_BYTES != 0 || count < 1 || count > CONTROL_TOKENS_MAX)
        return -1;
    message->body.alive.count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        message->body.alive.tokens[i] = lh_get_be32(data + i * TOKEN_BYTES);
    return 0;
}

static int decode_probe(const uint8_t *data, size_t bytes, struct control_message *message)
{
    if (bytes < PROBE_ID_BYTES)
        return -1;
    for (size_t i = PROBE_ID_BYTES; i < bytes; i++) /* at most CONTROL_PROBE_MAX */
        if (data[i] != 0)
            return -1;
    message->body.probe =
        (struct control_probe){.id = lh_get_be32(data), .bytes = (uint32_t)bytes + CONTROL_HEADER_BYTES};
    return 0;
}

static int decode_probed(const uint8_t *data, size_t bytes, struct control_message *message)
{
    if (bytes != PROBED_BYTES || lh_get_be32(data + 4) > 1)
        return -1;
    message->body.probe =
        (struct control_probe){.id = lh_get_be32(data), .full = lh_get_be32(data + 4) != 0};
    return 0;
}

static int decode_close(const uint8_t *data, size_t bytes, struct control_message *message)
{
    /* Codes that we do not know may come from a newer peer; but a code must be an int. */
    if (bytes != 4 || lh_get_be32(data) > INT32_MAX)
        return -1;
    message->body.close_reason = lh_get_be32(data);
    return 0;
}

static int decode_body(const uint8_t *data, size_t bytes, struct control_message *message)
{
    switch (message->header.type) {
    case CONTROL_PING:
    case CONTROL_PONG:
        return bytes == 0 ? 0 : -1;
    case CONTROL_CTS:
        return decode_cts_entries(data, bytes, message);
    case CONTROL_CTS_HEARD:
        if (bytes != 4)
            return -1;
        message->body.cts_heard_next = lh_get_be32(data);
        return 0;
    case CONTROL_UPPER:
        return decode_upper(data, bytes, message);
    case CONTROL_UPPERS:
        return decode_uppers(data, bytes, message);
    case CONTROL_CLOSE:
        return decode_close(data, bytes, message);
    case CONTROL_FEEDBACK:
        return decode_feedback(data, bytes, &message->body.feedback);
    case CONTROL_KEEPALIVE:
    case CONTROL_ALIVE:
        return decode_tokens(data, bytes, message);
    case CONTROL_PART:
        return decode_part(data, bytes, message);
    case CONTROL_PROBE:
        return decode_probe(data, bytes, message);
    case CONTROL_PROBED:
        return decode_probed(data, bytes, message);
    }
    return -1;
}

int control_decode(const uint8_t *data, size_t bytes, struct control_message *message)
{
    if (bytes < CONTROL_HEADER_BYTES || bytes - CONTROL_HEADER_BYTES > payload_max(data[1]))
        return -1;
    if (data[0] != CONTROL_VERSION || lh_get_be16(data + 2) != bytes || lh_get_be32(data + 28) != 0)
        return -1;
    message->header = (struct control_header){
        .type = (enum control_type)data[1],
        .token = lh_get_be32(data + 4),
        .sent_ns = lh_get_be64(data + 8),
        .echo_ns = lh_get_be64(data + 16),
        .echo_delay_ns = lh_get_be32(data + 24),
    };
    return decode_body(data + CONTROL_HEADER_BYTES, bytes - CONTROL_HEADER_BYTES, message);
}

/* ---- control parts --------------------------------------------------------------------------------- */

#define LATE_MAX 256 /* messages: what is further behind is of a peer that lied about a number */

static bool is_late(const struct control_parts_message *message, uint32_t number)
{
    int32_t ahead = (int32_t)(number - message->number);
    return message->whole != 0 && ahead < 0 && ahead >= -LATE_MAX;
}

static void start(struct control_parts_message *message, const struct control_part *part)
{
    message->number = part->number;
    message->whole = part->whole;
    message->come = 0;
    memset(message->there, 0, sizeof message->there);
}

const struct control_parts_message *control_parts_add(struct control_parts *parts,
                                                      const struct control_part *part)
{
    struct control_parts_message *message = &parts->messages[part->number % CONTROL_PARTS_MESSAGES];
    uint32_t end = part->offset + part->bytes;
    assert(part->bytes > 0 && end <= part->whole);
    assert(part->whole <= sizeof message->data);
    if (is_late(message, part->number))
        return NULL;
    if (message->whole == 0 || part->number != message->number)
        start(message, part);
    if (part->whole != message->whole || lh_bitmap_next_set(message->there, end, part->offset) < end)
        return NULL; /* none of ours, or once more */
    lh_bitmap_set_range(message->there, part->offset, part->bytes);
    memcpy(message->data + part->offset, part->data, part->bytes);
    message->come += part->bytes;
    return message->come == message->whole ? message : NULL;
}

/* ---- transfer -------------------------------------------------------------------------------------- */

#define TRANSFER_TO_SENDER_BYTES 8u
#define TRANSFER_VERDICT_BYTES   12u /* REFUSE, CANCEL */

static_assert(TRANSFER_BYTES_MAX <= CONTROL_PAYLOAD_MAX, "the longest message fits a control message");

static size_t put_scheme(uint8_t *out, const uint8_t *scheme, uint32_t bytes)
{
    assert(bytes <= TRANSFER_SCHEME_MAX);
    if (bytes > 0)
        memcpy(out, scheme, bytes);
    return bytes;
}

static size_t encode_to_receiver(const struct transfer_message *message, uint8_t *out)
{
    assert(message->body.to_receiver.segment_bytes <= message->body.to_receiver.message_bytes);
    lh_put_be32(out + 4, message->body.to_receiver.segment);
    lh_put_be32(out + 8, message->body.to_receiver.message);
    lh_put_be32(out + 12, message->body.to_receiver.segment_bytes);
    lh_put_be64(out + 16, message->body.to_receiver.message_bytes);
    size_t bytes = TRANSFER_TO_RECEIVER_BYTES;
    if (message->body.to_receiver.tag != 0) {
        out[1] = 1;
        lh_put_be64(out + bytes, message->body.to_receiver.tag);
        bytes += TRANSFER_TAG_BYTES;
    }
    return bytes + put_scheme(out + bytes, message->body.to_receiver.scheme,
                              message->body.to_receiver.scheme_bytes);
}

static size_t encode_to_sender(const struct transfer_message *message, uint8_t *out)
{
    assert(message->body.to_sender.scheme_bytes > 0);
    lh_put_be32(out + 4, message->body.to_sender.segment);
    return TRANSFER_TO_SENDER_BYTES + put_scheme(out + TRANSFER_TO_SENDER_BYTES,
                                                 message->body.to_sender.scheme,
                                                 message->body.to_sender.scheme_bytes);
}

size_t transfer_encode(const struct transfer_message *message, uint8_t *out)
{
    memset(out, 0, 4);
    out[0] = (uint8_t)message->kind;
    switch (message->kind) {
    case TRANSFER_TO_RECEIVER:
        return encode_to_receiver(message, out);
    case TRANSFER_TO_SENDER:
        return encode_to_sender(message, out);
    case TRANSFER_DONE:
        lh_put_be32(out + 4, message->body.done.segment);
        lh_put_be32(out + 8, message->body.done.below);
        lh_put_be32(out + 12, 0);
        lh_put_be64(out + 16, message->body.done.bitmap);
        return TRANSFER_DONE_BYTES;
    case TRANSFER_CANCEL:
        assert(message->body.verdict.error != 0);
        /* fall through */
    case TRANSFER_REFUSE:
        assert(message->body.verdict.error <= INT32_MAX);
        lh_put_be32(out + 4, message->body.verdict.message);
        lh_put_be32(out + 8, message->body.verdict.error);
        return TRANSFER_VERDICT_BYTES;
    case TRANSFER_FORGET:
        lh_put_be32(out + 4, message->body.verdict.message);
        return TRANSFER_FORGET_BYTES;
    }
    assert(false); /* a message has one of the kinds above */
    return 0;
}

static int decode_to_receiver(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    bool tagged = data[1] == 1;
    size_t fixed = TRANSFER_TO_RECEIVER_BYTES + (tagged ? TRANSFER_TAG_BYTES : 0);
    if (bytes < fixed || bytes > fixed + TRANSFER_SCHEME_MAX)
        return -1;
    message->body.to_receiver.segment = lh_get_be32(data + 4);
    message->body.to_receiver.message = lh_get_be32(data + 8);
    message->body.to_receiver.segment_bytes = lh_get_be32(data + 12);
    message->body.to_receiver.message_bytes = lh_get_be64(data + 16);
    message->body.to_receiver.tag = tagged ? lh_get_be64(data + TRANSFER_TO_RECEIVER_BYTES) : 0;
    message->body.to_receiver.scheme = data + fixed;
    message->body.to_receiver.scheme_bytes = (uint32_t)(bytes - fixed);
    if (tagged && message->body.to_receiver.tag == 0)
        return -1;
    return message->body.to_receiver.segment_bytes <= message->body.to_receiver.message_bytes ? 0 : -1;
}

static int decode_to_sender(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    if (bytes <= TRANSFER_TO_SENDER_BYTES || bytes > TRANSFER_TO_SENDER_BYTES + TRANSFER_SCHEME_MAX)
        return -1;
    message->body.to_sender.segment = lh_get_be32(data + 4);
    message->body.to_sender.scheme = data + TRANSFER_TO_SENDER_BYTES;
    message->body.to_sender.scheme_bytes = (uint32_t)(bytes - TRANSFER_TO_SENDER_BYTES);
    return 0;
}

static int decode_done(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    if (bytes != TRANSFER_DONE_BYTES || lh_get_be32(data + 12) != 0)
        return -1;
    message->body.done.segment = lh_get_be32(data + 4);
    message->body.done.below = lh_get_be32(data + 8);
    message->body.done.bitmap = lh_get_be64(data + 16);
    return 0;
}

static int decode_verdict(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    if (bytes != TRANSFER_VERDICT_BYTES)
        return -1;
    message->body.verdict.message = lh_get_be32(data + 4);
    message->body.verdict.error = lh_get_be32(data + 8);
    /* Codes that we do not know may come from a newer peer; but a code must be an int. */
    if (message->body.verdict.error > INT32_MAX)
        return -1;
    return message->body.verdict.error == 0 && message->kind == TRANSFER_CANCEL ? -1 : 0;
}

static int decode_forget(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    if (bytes != TRANSFER_FORGET_BYTES)
        return -1;
    message->body.verdict.message = lh_get_be32(data + 4);
    message->body.verdict.error = 0;
    return 0;
}

int transfer_decode(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    if (bytes < TRANSFER_FORGET_BYTES || data[1] > (data[0] == TRANSFER_TO_RECEIVER) || data[2] != 0 ||
        data[3] != 0)
        return -1;
    message->kind = (enum transfer_kind)data[0];
    switch (message->kind) {
    case TRANSFER_TO_RECEIVER:
        return decode_to_receiver(data, bytes, message);
    case TRANSFER_TO_SENDER:
        return decode_to_sender(data, bytes, message);
    case TRANSFER_DONE:
        return decode_done(data, bytes, message);
    case TRANSFER_REFUSE:
    case TRANSFER_CANCEL:
        return decode_verdict(data, bytes, message);
    case TRANSFER_FORGET:
        return decode_forget(data, bytes, message);
    }
    return -1;
}

void transfer_cts_encode(const struct transfer_cts *cts, uint8_t out[CONTROL_UPPER_BYTES])
{
    uint64_t room = cts->room < TRANSFER_ROOM_MAX ? cts->room : TRANSFER_ROOM_MAX;
    lh_put_be32(out, cts->message);
    lh_put_be32(out + 4, cts->segment);
    out[8] = cts->scheme;
    out[9] = cts->extra;
    lh_put_be16(out + 10, (uint16_t)(room >> 32));
    lh_put_be32(out + 12, (uint32_t)room);
    memcpy(out + 16, cts->params, TRANSFER_PARAMS);
}

int transfer_cts_decode(const uint8_t data[CONTROL_UPPER_BYTES], struct transfer_cts *cts)
{
    if (data[9] > 1)
        return -1;
    cts->message = lh_get_be32(data);
    cts->segment = lh_get_be32(data + 4);
    cts->scheme = data[8];
    cts->extra = data[9] == 1;
    cts->room = (uint64_t)lh_get_be16(data + 10) << 32 | lh_get_be32(data + 12);
    memcpy(cts->params, data + 16, TRANSFER_PARAMS);
    return 0;
}
