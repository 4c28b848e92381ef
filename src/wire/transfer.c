/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/transfer.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/big_endian.h"

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
