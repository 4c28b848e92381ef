/*
 * test_control_messages.c - layouts, and what must be refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>

#include "base/prng.h"
#include "wire/control_messages.h"

/* ---- test control ---------------------------------------------------------------------------------- */

static struct control_message message_of(enum control_type type)
{
    return (struct control_message){
        .header = {.type = type,
                   .token = 0xA1A2A3A4,
                   .sent_ns = 0xB1B2B3B4B5B6B7B8,
                   .echo_ns = 0xC1C2C3C4C5C6C7C8,
                   .echo_delay_ns = 0xD1D2D3D4},
    };
}

static struct control_cts cts_of(uint32_t number)
{
    struct control_cts cts = {
        .sequence = 0xE1000000 + number,
        .slot = (uint16_t)(0x1000 + number),
        .generation = (uint8_t)(number % 8),
        .length_bytes = 0x20000000 + number,
        .rkey = 0x30000000 + number,
        .base = 0x4000000000000000 + number,
    };
    for (uint32_t i = 0; i < CONTROL_UPPER_BYTES; i++)
        cts.upper[i] = (uint8_t)(number * 31 + i);
    return cts;
}

static struct control_message cts_message(uint32_t count)
{
    struct control_message message = message_of(CONTROL_CTS);
    message.body.cts.count = count;
    for (uint32_t i = 0; i < count && i < CONTROL_CTS_MAX; i++)
        message.body.cts.entries[i] = cts_of(i);
    return message;
}

/* Encodes into a buffer of exactly the largest size; the rest is 0xEE. */
static size_t encode(const struct control_message *message, uint8_t out[CONTROL_MESSAGE_MAX])
{
    memset(out, 0xEE, CONTROL_MESSAGE_MAX);
    return control_encode(message, out);
}

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past the end. */
static int decode(const uint8_t *data, size_t bytes, struct control_message *message)
{
    uint8_t *copy = malloc(bytes + (bytes == 0));
    memcpy(copy, data, bytes);
    int rc = control_decode(copy, bytes, message);
    free(copy);
    return rc;
}

static void refuse(const uint8_t *data, size_t bytes)
{
    struct control_message message;
    assert_int_equal(decode(data, bytes, &message), -1);
}

static void test_header_layout(void **state)
{
    (void)state;
    static const uint8_t expected[] = {1,    1,    0,    32,   0xA1, 0xA2, 0xA3, 0xA4, 0xB1, 0xB2, 0xB3,
                                       0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6,
                                       0xC7, 0xC8, 0xD1, 0xD2, 0xD3, 0xD4, 0,    0,    0,    0};
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_PING);
    assert_int_equal(encode(&message, out), sizeof expected);
    assert_memory_equal(out, expected, sizeof expected);
    assert_int_equal(out[sizeof expected], 0xEE);
}

static void test_cts_layout(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xE1, 0, 0, 2, 0x10, 0x02, 2, 0, 0x20, 0, 0, 2,
                                       0x30, 0, 0, 2, 0x40, 0,    0, 0, 0,    0, 0, 2};
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = cts_message(3);
    assert_int_equal(encode(&message, out), 32 + 3 * 48);
    assert_memory_equal(out + 32 + 2 * 48, expected, sizeof expected);
    assert_memory_equal(out + 32 + 2 * 48 + 24, message.body.cts.entries[2].upper, 24);
    assert_int_equal(out[32 + 3 * 48], 0xEE);
}

static void assert_same_header(const struct control_header *a, const struct control_header *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->token, b->token);
    assert_true(a->sent_ns == b->sent_ns && a->echo_ns == b->echo_ns);
    assert_int_equal(a->echo_delay_ns, b->echo_delay_ns);
}

static void assert_same_cts(const struct control_cts *a, const struct control_cts *b)
{
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->length_bytes, b->length_bytes);
    assert_int_equal(a->rkey, b->rkey);
    assert_true(a->base == b->base);
    assert_memory_equal(a->upper, b->upper, CONTROL_UPPER_BYTES);
}

static void test_empty_messages_round_trip(void **state)
{
    (void)state;
    static const enum control_type types[] = {CONTROL_PING, CONTROL_PONG};
    for (int i = 0; i < 2; i++) {
        uint8_t out[CONTROL_MESSAGE_MAX];
        struct control_message message = message_of(types[i]);
        struct control_message decoded;
        assert_int_equal(encode(&message, out), 32);
        assert_int_equal(decode(out, 32, &decoded), 0);
        assert_same_header(&decoded.header, &message.header);
        refuse(out, 31);
        out[3] = 33;
        refuse(out, 33);
    }
}

static void test_cts_round_trips(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= CONTROL_CTS_MAX; count++) {
        uint8_t out[CONTROL_MESSAGE_MAX];
        struct control_message message = cts_message(count);
        struct control_message decoded;
        size_t bytes = encode(&message, out);
        assert_int_equal(bytes, 32 + 48 * count);
        assert_int_equal(decode(out, bytes, &decoded), 0);
        assert_same_header(&decoded.header, &message.header);
        assert_int_equal(decoded.body.cts.count, count);
        for (uint32_t i = 0; i < count; i++)
            assert_same_cts(&decoded.body.cts.entries[i], &message.body.cts.entries[i]);
    }
}

static void set_length(uint8_t *out, size_t bytes)
{
    out[2] = (uint8_t)(bytes >> 8);
    out[3] = (uint8_t)bytes;
}

static void test_cts_of_none_or_too_many_is_refused(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = cts_message(CONTROL_CTS_MAX);
    encode(&message, out);
    memset(out + 32 + 16 * 48, 0, 48);
    set_length(out, 32 + 17 * 48);
    refuse(out, 32 + 17 * 48);
    set_length(out, 32);
    refuse(out, 32);
    for (size_t bytes = 33; bytes < 32 + 17 * 48; bytes++) {
        set_length(out, bytes);
        struct control_message decoded;
        assert_int_equal(decode(out, bytes, &decoded), (bytes - 32) % 48 == 0 ? 0 : -1);
    }
}

static void test_cts_reserved_byte_must_be_zero(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = cts_message(4);
    size_t bytes = encode(&message, out);
    for (size_t i = 0; i < 4; i++) {
        out[32 + i * 48 + 7] = 1;
        refuse(out, bytes);
        out[32 + i * 48 + 7] = 0;
    }
}

static void test_cts_heard(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_CTS_HEARD);
    struct control_message decoded;
    message.body.cts_heard_next = 0xF1F2F3F4;
    assert_int_equal(encode(&message, out), 36);
    assert_memory_equal(out + 32, ((const uint8_t[]){0xF1, 0xF2, 0xF3, 0xF4}), 4);
    assert_int_equal(decode(out, 36, &decoded), 0);
    assert_same_header(&decoded.header, &message.header);
    assert_int_equal(decoded.body.cts_heard_next, 0xF1F2F3F4);
    for (size_t bytes = 32; bytes < 42; bytes++) {
        set_length(out, bytes);
        if (bytes != 36)
            refuse(out, bytes);
    }
}

static void test_close(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_CLOSE);
    struct control_message decoded;
    message.body.close_reason = INT32_MAX;
    assert_int_equal(encode(&message, out), 36);
    assert_int_equal(decode(out, 36, &decoded), 0);
    assert_int_equal(decoded.body.close_reason, INT32_MAX);
    for (size_t bytes = 32; bytes < 42; bytes++) {
        set_length(out, bytes);
        if (bytes != 36)
            refuse(out, bytes);
    }
    set_length(out, 36);
    memset(out + 32, 0, 4);
    assert_int_equal(decode(out, 36, &decoded), 0);
    assert_int_equal(decoded.body.close_reason, 0);
    out[32] = 0x80; /* no error code is negative */
    refuse(out, 36);
}

static void test_feedback(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        7,    0,    0,    0,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
        0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44,
        0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x61, 0x62,
        0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct control_message message = message_of(CONTROL_FEEDBACK), decoded;
    message.body.feedback = (struct control_feedback){7,
                                                      0x11121314,
                                                      0x2122232425262728,
                                                      0x3132333435363738,
                                                      0x4142434445464748,
                                                      0x5152535455565758,
                                                      0x6162636465666768,
                                                      UINT64_MAX};
    uint8_t out[CONTROL_MESSAGE_MAX];
    size_t bytes = encode(&message, out);
    assert_int_equal(bytes, CONTROL_HEADER_BYTES + sizeof expected);
    assert_memory_equal(out + CONTROL_HEADER_BYTES, expected, sizeof expected);
    assert_int_equal(decode(out, bytes, &decoded), 0);
    const struct control_feedback *got = &decoded.body.feedback;
    assert_memory_equal(&got->immediate, &message.body.feedback.immediate, 4);
    assert_int_equal(got->generation, 7);
    assert_int_equal(got->arrived_packets, 0x2122232425262728);
    assert_int_equal(got->marked_packets, 0x3132333435363738);
    assert_int_equal(got->dropped_packets, 0x4142434445464748);
    assert_int_equal(got->arrived_ns, 0x5152535455565758);
    assert_int_equal(got->held_ns, 0x6162636465666768);
    assert_int_equal(got->credit_bytes, UINT64_MAX);
    for (uint32_t i = 1; i < 4; i++) {
        out[CONTROL_HEADER_BYTES + i] = 1;
        refuse(out, bytes);
        out[CONTROL_HEADER_BYTES + i] = 0;
    }
    out[3]--;
    refuse(out, bytes - 1);
    out[3] += 2;
    refuse(out, bytes + 1);
}

static void test_upper_of_every_length(void **state)
{
    (void)state;
    static uint8_t data[CONTROL_LONG_MAX - CONTROL_HEADER_BYTES];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (uint32_t length = 1; length <= sizeof data; length++) {
        static uint8_t out[CONTROL_LONG_MAX];
        struct control_message message = message_of(CONTROL_UPPER);
        struct control_message decoded;
        message.body.upper.data = data;
        message.body.upper.bytes = length;
        assert_int_equal(encode(&message, out), 32 + length);
        assert_int_equal(control_decode(out, 32 + length, &decoded), 0);
        assert_ptr_equal(decoded.body.upper.data, out + 32);
        assert_int_equal(decoded.body.upper.bytes, length);
        assert_memory_equal(out + 32, data, length);
    }
}

static void test_upper_of_none_or_too_much_is_refused(void **state)
{
    (void)state;
    uint8_t out[CONTROL_LONG_MAX + 1] = {CONTROL_VERSION, CONTROL_UPPER};
    struct control_message decoded;
    set_length(out, 32);
    refuse(out, 32);
    set_length(out, CONTROL_LONG_MAX);
    assert_int_equal(control_decode(out, CONTROL_LONG_MAX, &decoded), 0);
    set_length(out, CONTROL_LONG_MAX + 1);
    refuse(out, CONTROL_LONG_MAX + 1);
}

static void test_uppers(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0, 3, 'a', 'b', 'c', 0, 1, 'd'};
    uint8_t body[CONTROL_PAYLOAD_MAX], out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_UPPERS), decoded;
    const uint8_t *data;
    memcpy(body, "abc", 3);
    assert_int_equal(control_uppers_begin(body, CONTROL_PAYLOAD_MAX, 3, CONTROL_PAYLOAD_MAX - 6), 0);
    uint32_t used = control_uppers_begin(body, CONTROL_PAYLOAD_MAX, 3, CONTROL_PAYLOAD_MAX - 7);
    used = control_uppers_add(body, CONTROL_PAYLOAD_MAX, used, (const uint8_t *)"d", 1);
    assert_int_equal(used, sizeof expected);
    assert_memory_equal(body, expected, sizeof expected);
    message.body.upper.data = body;
    message.body.upper.bytes = used;
    assert_int_equal(encode(&message, out), 32 + used);
    assert_int_equal(control_decode(out, 32 + used, &decoded), 0);
    assert_same_header(&decoded.header, &message.header);
    assert_int_equal(control_uppers_take(&decoded, &data), 3);
    assert_memory_equal(data, "abc", 3);
    assert_int_equal(control_uppers_take(&decoded, &data), 1);
    assert_memory_equal(data, "d", 1);
    assert_int_equal(control_uppers_take(&decoded, &data), 0);
}

static void test_uppers_up_to_a_full_message(void **state)
{
    (void)state;
    uint8_t body[CONTROL_PAYLOAD_MAX], out[CONTROL_MESSAGE_MAX], data[CONTROL_PAYLOAD_MAX] = {0};
    struct control_message message = message_of(CONTROL_UPPERS), decoded;
    uint32_t used = control_uppers_add(body, CONTROL_PAYLOAD_MAX, 0, data, CONTROL_PAYLOAD_MAX - 5);
    assert_int_equal(used, CONTROL_PAYLOAD_MAX - 3);
    assert_int_equal(control_uppers_add(body, CONTROL_PAYLOAD_MAX, used, data, 2), 0);
    assert_int_equal(control_uppers_add(body, CONTROL_PAYLOAD_MAX, used, data, 1), CONTROL_PAYLOAD_MAX);
    message.body.upper.data = body;
    message.body.upper.bytes = CONTROL_PAYLOAD_MAX;
    assert_int_equal(encode(&message, out), CONTROL_MESSAGE_MAX);
    assert_int_equal(decode(out, CONTROL_MESSAGE_MAX, &decoded), 0);
    assert_int_equal(control_uppers_add(body, CONTROL_PAYLOAD_MAX, 0, data, CONTROL_PAYLOAD_MAX - 1), 0);
}

/* A path may carry less than the longest message. */
static void test_uppers_up_to_the_room_there_is(void **state)
{
    (void)state;
    uint8_t body[CONTROL_PAYLOAD_MAX] = {0}, data[64] = {0};
    assert_int_equal(control_uppers_begin(body, 32, 20, 9), 0);
    assert_int_equal(control_uppers_begin(body, 32, 33, 1), 0); /* alone it is too long, too */
    uint32_t used = control_uppers_begin(body, 32, 20, 8);
    assert_int_equal(used, 22);
    assert_int_equal(control_uppers_add(body, 32, used, data, 9), 0);
    assert_int_equal(control_uppers_add(body, 32, used, data, 8), 32);
    assert_int_equal(control_uppers_add(body, 32, 32, data, 1), 0);
}

/* Entries that are empty, or do not end where the message does. */
static void test_uppers_must_fill_their_message(void **state)
{
    (void)state;
    static const uint8_t bad[][4] = {{0},         {0, 1},         {0, 0, 'a'},
                                     {0, 2, 'a'}, {0, 1, 'a', 0}, {0xFF, 0xFF, 'a', 'b'}};
    static const uint32_t lengths[] = {1, 2, 3, 3, 4, 4};
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t out[CONTROL_MESSAGE_MAX];
        struct control_message message = message_of(CONTROL_UPPERS);
        message.body.upper.data = bad[i];
        message.body.upper.bytes = lengths[i];
        refuse(out, encode(&message, out));
    }
}

static void test_parts(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xF1, 0xF2, 0xF3, 0xF4, 0x01, 0x02, 0x01, 0x05, 7, 8, 9};
    uint8_t body[CONTROL_PAYLOAD_MAX], out[CONTROL_MESSAGE_MAX];
    const struct control_part part = {0xF1F2F3F4, 0x102, 0x105, expected + 8, 3};
    struct control_message message = message_of(CONTROL_PART), decoded;
    message.body.upper.data = body;
    message.body.upper.bytes = control_part_write(&part, body);
    size_t bytes = encode(&message, out);
    assert_int_equal(bytes, 32 + sizeof expected);
    assert_memory_equal(out + 32, expected, sizeof expected);
    assert_int_equal(control_decode(out, bytes, &decoded), 0); /* points into it */
    assert_same_header(&decoded.header, &message.header);
    struct control_part read = control_part_read(&decoded);
    assert_int_equal(read.number, part.number);
    assert_int_equal(read.offset, part.offset);
    assert_int_equal(read.whole, part.whole);
    assert_int_equal(read.bytes, part.bytes);
    assert_memory_equal(read.data, part.data, 3);
    for (size_t less = 32; less < 32 + CONTROL_PART_BYTES + 1; less++) { /* no byte */
        set_length(out, less);
        refuse(out, less);
    }
    set_length(out, bytes);
    out[32 + 7] = 4; /* beyond the message */
    refuse(out, bytes);
    out[32 + 6] = 0xF; /* a message of 4065 bytes */
    out[32 + 7] = 0xE1;
    refuse(out, bytes);
    out[32 + 7] = 0xE0;
    assert_int_equal(decode(out, bytes, &decoded), 0);
}

/* Of any length up to that of a data packet, padded with zeros; its answer is short. */
static void test_probes(void **state)
{
    (void)state;
    static uint8_t out[CONTROL_PROBE_MAX + 1];
    static const uint32_t lengths[] = {CONTROL_HEADER_BYTES + 4, 276, CONTROL_PROBE_MAX};
    struct control_message message = message_of(CONTROL_PROBE), decoded;
    message.body.probe.id = 0xF1F2F3F4;
    for (uint32_t i = 0; i < 3; i++) {
        message.body.probe.bytes = lengths[i];
        assert_int_equal(control_encode(&message, out), lengths[i]);
        assert_int_equal(control_decode(out, lengths[i], &decoded), 0);
        assert_same_header(&decoded.header, &message.header);
        assert_int_equal(decoded.body.probe.id, 0xF1F2F3F4);
        assert_int_equal(decoded.body.probe.bytes, lengths[i]);
    }
    out[CONTROL_PROBE_MAX - 1] = 1;
    assert_int_equal(control_decode(out, CONTROL_PROBE_MAX, &decoded), -1);
    set_length(out, CONTROL_PROBE_MAX + 1);
    out[CONTROL_PROBE_MAX - 1] = 0;
    assert_int_equal(control_decode(out, CONTROL_PROBE_MAX + 1, &decoded), -1);
    set_length(out, CONTROL_HEADER_BYTES + 3);
    assert_int_equal(control_decode(out, CONTROL_HEADER_BYTES + 3, &decoded), -1);
    message.header.type = CONTROL_PROBED;
    for (uint32_t full = 0; full < 2; full++) {
        message.body.probe.full = full != 0;
        assert_int_equal(control_encode(&message, out), CONTROL_HEADER_BYTES + 8);
        assert_int_equal(control_decode(out, CONTROL_HEADER_BYTES + 8, &decoded), 0);
        assert_int_equal(decoded.body.probe.full, full != 0);
    }
    out[CONTROL_HEADER_BYTES + 7] = 2;
    assert_int_equal(control_decode(out, CONTROL_HEADER_BYTES + 8, &decoded), -1);
}

static void test_tokens(void **state)
{
    (void)state;
    static const enum control_type types[] = {CONTROL_KEEPALIVE, CONTROL_ALIVE};
    static const uint8_t expected[] = {0, 0, 0, 7, 0xF1, 0xF2, 0xF3, 0xF4};
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t out[CONTROL_MESSAGE_MAX + 4] = {0};
        struct control_message message = message_of(types[i / 2]), decoded;
        message.body.alive.count = i % 2 ? 2 : CONTROL_TOKENS_MAX;
        message.body.alive.tokens[0] = 7;
        message.body.alive.tokens[1] = 0xF1F2F3F4;
        for (uint32_t t = 2; t < CONTROL_TOKENS_MAX; t++)
            message.body.alive.tokens[t] = t << 16;
        size_t bytes = encode(&message, out);
        assert_int_equal(bytes, 32 + 4 * message.body.alive.count);
        assert_memory_equal(out + 32, expected, sizeof expected);
        assert_int_equal(decode(out, bytes, &decoded), 0);
        assert_same_header(&decoded.header, &message.header);
        assert_int_equal(decoded.body.alive.count, message.body.alive.count);
        assert_memory_equal(decoded.body.alive.tokens, message.body.alive.tokens,
                            4 * (size_t)message.body.alive.count);
        static const size_t bad[] = {32, 33, 34, 35, 37, CONTROL_MESSAGE_MAX + 4};
        for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
            set_length(out, bad[b]);
            refuse(out, bad[b]);
        }
    }
}

/* The length field and the bytes that came must agree, whichever is the larger. */
static void test_length_must_be_exact(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = cts_message(2);
    size_t bytes = encode(&message, out);
    for (size_t cut = 0; cut < bytes; cut++)
        refuse(out, cut);
    for (size_t more = bytes + 1; more <= bytes + 96; more++)
        refuse(out, more);
    set_length(out, bytes - 48);
    refuse(out, bytes);
    set_length(out, bytes + 48);
    refuse(out, bytes);
}

static void test_version_and_type(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_PING);
    size_t bytes = encode(&message, out);
    for (unsigned version = 0; version < 256; version++) {
        struct control_message decoded;
        out[0] = (uint8_t)version;
        assert_int_equal(decode(out, bytes, &decoded), version == CONTROL_VERSION ? 0 : -1);
    }
    out[0] = CONTROL_VERSION;
    /* Of 32 bytes only PING, PONG and an UPPERS without entries exist. */
    for (unsigned type = 0; type < 256; type++) {
        struct control_message decoded;
        out[1] = (uint8_t)type;
        assert_int_equal(decode(out, bytes, &decoded), type == 1 || type == 2 || type == 8 ? 0 : -1);
    }
}

static void test_header_reserved_bytes_must_be_zero(void **state)
{
    (void)state;
    uint8_t out[CONTROL_MESSAGE_MAX];
    struct control_message message = message_of(CONTROL_PONG);
    size_t bytes = encode(&message, out);
    for (size_t i = 28; i < 32; i++) {
        out[i] = 0x10;
        refuse(out, bytes);
        out[i] = 0;
    }
}

static int run_control(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_layout),
        cmocka_unit_test(test_cts_layout),
        cmocka_unit_test(test_empty_messages_round_trip),
        cmocka_unit_test(test_cts_round_trips),
        cmocka_unit_test(test_cts_of_none_or_too_many_is_refused),
        cmocka_unit_test(test_cts_reserved_byte_must_be_zero),
        cmocka_unit_test(test_cts_heard),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_feedback),
        cmocka_unit_test(test_upper_of_every_length),
        cmocka_unit_test(test_upper_of_none_or_too_much_is_refused),
        cmocka_unit_test(test_uppers),
        cmocka_unit_test(test_uppers_up_to_a_full_message),
        cmocka_unit_test(test_uppers_up_to_the_room_there_is),
        cmocka_unit_test(test_uppers_must_fill_their_message),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_length_must_be_exact),
        cmocka_unit_test(test_version_and_type),
        cmocka_unit_test(test_header_reserved_bytes_must_be_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test control parts ---------------------------------------------------------------------------- */

static uint8_t control_parts_bytes[CONTROL_PAYLOAD_MAX];

static void fill(void)
{
    for (uint32_t i = 0; i < sizeof control_parts_bytes; i++)
        control_parts_bytes[i] = (uint8_t)(i * 7 + i / 256);
}

/* Whether that makes the message whole. */
static bool add(struct control_parts *parts, uint32_t number, uint32_t offset, uint32_t count,
                uint32_t whole)
{
    const struct control_part part = {number, offset, whole, control_parts_bytes + offset, count};
    const struct control_parts_message *message = control_parts_add(parts, &part);
    if (message == NULL)
        return false;
    assert_int_equal(message->whole, whole);
    assert_memory_equal(message->data, control_parts_bytes, whole);
    return true;
}

static void test_in_order(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    fill();
    for (uint32_t maximum = 1; maximum <= sizeof control_parts_bytes; maximum += 41) {
        for (uint32_t offset = 0; offset < sizeof control_parts_bytes; offset += maximum) {
            uint32_t left = (uint32_t)sizeof control_parts_bytes - offset,
                     count = left < maximum ? left : maximum;
            assert_int_equal(add(&parts, maximum, offset, count, sizeof control_parts_bytes),
                             offset + count == sizeof control_parts_bytes);
        }
        memset(parts.messages[maximum % CONTROL_PARTS_MESSAGES].data, 0, sizeof control_parts_bytes);
    }
}

/* Some messages that left one after the other, their parts mixed; numbers wrap. */
static void test_in_any_order(void **state)
{
    (void)state;
    struct lh_prng prng;
    struct control_parts parts = {0};
    fill();
    lh_prng_seed(&prng, 1);
    for (uint32_t first = UINT32_MAX - 39; first != 40; first += CONTROL_PARTS_MESSAGES) {
        uint32_t order[5 * CONTROL_PARTS_MESSAGES], left[CONTROL_PARTS_MESSAGES] = {5, 5, 5, 5};
        for (uint32_t i = 0; i < 5 * CONTROL_PARTS_MESSAGES; i++) {
            uint32_t j = (uint32_t)lh_prng_below(&prng, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; i < 5 * CONTROL_PARTS_MESSAGES; i++) {
            uint32_t message = order[i] / 5, part = order[i] % 5;
            bool whole = --left[message] == 0;
            assert_int_equal(add(&parts, first + message, 200 * part, part < 4 ? 200 : 73, 873), whole);
            assert_false(add(&parts, first + message, 200 * part, part < 4 ? 200 : 73, 873));
        }
    }
}

/* A message of which a part is lost, or another's, is none; the next one at its place is. */
static void test_lost(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    const uint32_t next = 2 + CONTROL_PARTS_MESSAGES;
    fill();
    assert_false(add(&parts, 2, 10, 10, 30)); /* the first is lost */
    assert_false(add(&parts, 2, 20, 10, 30));
    assert_false(add(&parts, next, 20, 10, 30));
    assert_false(add(&parts, 2, 0, 10, 30));     /* late */
    assert_false(add(&parts, next, 10, 30, 40)); /* of another length */
    assert_false(add(&parts, next, 5, 10, 30));
    assert_false(add(&parts, next, 10, 10, 30)); /* the same bytes once more */
    assert_false(add(&parts, next, 0, 5, 30));
    assert_true(add(&parts, next, 15, 5, 30));
    assert_true(add(&parts, 3, 0, 1, 1));
}

/* A peer that lies about a number, once. */
static void test_number_far_ahead(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    fill();
    assert_false(add(&parts, UINT32_C(1) << 30, 0, 10, 20));
    assert_false(add(&parts, 8, 10, 10, 20));
    assert_true(add(&parts, 8, 0, 10, 20));
}

static int run_control_parts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_number_far_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test transfer --------------------------------------------------------------------------------- */

/* Layouts, and what must be refused. */

static uint8_t scheme_bytes[TRANSFER_SCHEME_MAX];

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past the end. */
static int test_transfer_decode(const uint8_t *data, size_t bytes, struct transfer_message *message)
{
    static uint8_t *copy;
    free(copy); /* the last message pointed into it */
    copy = malloc(bytes + (bytes == 0));
    memcpy(copy, data, bytes);
    int rc = transfer_decode(copy, bytes, message);
    if (bytes == 0) {
        free(copy);
        copy = NULL;
    }
    return rc;
}

static struct transfer_message example(enum transfer_kind kind)
{
    struct transfer_message message = {.kind = kind};
    switch (kind) {
    case TRANSFER_TO_RECEIVER:
        message.body.to_receiver.segment = 0x11121314;
        message.body.to_receiver.message = 0x21222324;
        message.body.to_receiver.segment_bytes = 0x31323334;
        message.body.to_receiver.message_bytes = 0x4142434445464748;
        message.body.to_receiver.scheme = scheme_bytes;
        message.body.to_receiver.scheme_bytes = 3;
        break;
    case TRANSFER_TO_SENDER:
        message.body.to_sender.segment = 0x11121314;
        message.body.to_sender.scheme = scheme_bytes;
        message.body.to_sender.scheme_bytes = 3;
        break;
    case TRANSFER_DONE:
        message.body.done.segment = 0x11121314;
        message.body.done.below = 0x21222324;
        message.body.done.bitmap = 0x8182838485868788;
        break;
    case TRANSFER_REFUSE:
    case TRANSFER_CANCEL:
        message.body.verdict.error = LH_ECANCELED;
        /* fall through */
    case TRANSFER_FORGET:
        message.body.verdict.message = 0x21222324;
        break;
    }
    return message;
}

static void layouts(void **state)
{
    (void)state;
    uint8_t out[TRANSFER_BYTES_MAX];
    struct transfer_message message = example(TRANSFER_TO_RECEIVER);
    scheme_bytes[0] = 0xA1;
    scheme_bytes[2] = 0xA3;
    assert_int_equal(transfer_encode(&message, out), 27);
    static const uint8_t to_receiver[] = {1,    0,    0,    0,    0x11, 0x12, 0x13, 0x14, 0x21,
                                          0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42,
                                          0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0xA1, 0,    0xA3};
    assert_memory_equal(out, to_receiver, sizeof to_receiver);
    message.body.to_receiver.tag = 0x5152535455565758;
    assert_int_equal(transfer_encode(&message, out), 35);
    static const uint8_t tagged[] = {1,    1,    0,    0,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
                                     0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
                                     0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0xA1, 0,    0xA3};
    assert_memory_equal(out, tagged, sizeof tagged);
    message = example(TRANSFER_DONE);
    assert_int_equal(transfer_encode(&message, out), 24);
    static const uint8_t done[] = {3, 0, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
                                   0, 0, 0, 0, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    assert_memory_equal(out, done, sizeof done);
    message = example(TRANSFER_CANCEL);
    assert_int_equal(transfer_encode(&message, out), 12);
    static const uint8_t cancel[] = {5, 0, 0, 0, 0x21, 0x22, 0x23, 0x24, 0, 0, 0, 13};
    assert_memory_equal(out, cancel, sizeof cancel);
}

static void every_kind_there_and_back(void **state)
{
    (void)state;
    for (int kind = TRANSFER_TO_RECEIVER; kind <= TRANSFER_FORGET; kind++) {
        struct transfer_message in = example((enum transfer_kind)kind);
        struct transfer_message out;
        uint8_t bytes[TRANSFER_BYTES_MAX];
        uint8_t again[TRANSFER_BYTES_MAX];
        size_t length = transfer_encode(&in, bytes);
        assert_int_equal(test_transfer_decode(bytes, length, &out), 0);
        assert_int_equal(out.kind, kind);
        assert_int_equal(transfer_encode(&out, again), length);
        assert_memory_equal(bytes, again, length);
    }
}

static void longest_scheme_message(void **state)
{
    (void)state;
    struct transfer_message in = example(TRANSFER_TO_RECEIVER);
    struct transfer_message out;
    uint8_t bytes[TRANSFER_BYTES_MAX + 1] = {0};
    in.body.to_receiver.tag = 1;
    in.body.to_receiver.scheme_bytes = TRANSFER_SCHEME_MAX;
    assert_int_equal(transfer_encode(&in, bytes), TRANSFER_BYTES_MAX);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_BYTES_MAX, &out), 0);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_BYTES_MAX + 1, &out), -1);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_TO_RECEIVER_BYTES + TRANSFER_TAG_BYTES, &out), 0);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_TO_RECEIVER_BYTES + TRANSFER_TAG_BYTES - 1, &out),
                     -1);
    bytes[1] = 0;
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_BYTES_MAX - TRANSFER_TAG_BYTES, &out), 0);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_BYTES_MAX - TRANSFER_TAG_BYTES + 1, &out), -1);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_TO_RECEIVER_BYTES, &out), 0);
    assert_int_equal(test_transfer_decode(bytes, TRANSFER_TO_RECEIVER_BYTES - 1, &out), -1);
}

/* One form for each message: tag 0 is none. */
static void tags(void **state)
{
    (void)state;
    struct transfer_message in = example(TRANSFER_TO_RECEIVER);
    struct transfer_message out;
    uint8_t bytes[TRANSFER_BYTES_MAX];
    in.body.to_receiver.tag = UINT64_MAX;
    size_t length = transfer_encode(&in, bytes);
    assert_int_equal(test_transfer_decode(bytes, length, &out), 0);
    assert_true(out.body.to_receiver.tag == UINT64_MAX && out.body.to_receiver.scheme_bytes == 3);
    bytes[1] = 2;
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1);
    bytes[1] = 1;
    memset(bytes + TRANSFER_TO_RECEIVER_BYTES, 0, TRANSFER_TAG_BYTES);
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1);
    bytes[1] = 0;
    assert_int_equal(test_transfer_decode(bytes, length, &out), 0);
    assert_true(out.body.to_receiver.tag == 0 && out.body.to_receiver.scheme_bytes == 11);
}

/* Of every kind with a fixed length, any other length is refused; of all, any byte of padding that is not
 * 0. */
static void lengths_and_padding(void **state)
{
    (void)state;
    for (int kind = TRANSFER_TO_RECEIVER; kind <= TRANSFER_FORGET; kind++) {
        struct transfer_message in = example((enum transfer_kind)kind);
        struct transfer_message out;
        uint8_t bytes[TRANSFER_BYTES_MAX + 1] = {0};
        size_t length = transfer_encode(&in, bytes);
        if (kind > TRANSFER_TO_SENDER) {
            assert_int_equal(test_transfer_decode(bytes, length - 1, &out), -1);
            assert_int_equal(test_transfer_decode(bytes, length + 1, &out), -1);
        }
        for (size_t i = 1; i < 4; i++) {
            bytes[i] = 1;
            assert_int_equal(test_transfer_decode(bytes, length, &out), -1);
            bytes[i] = 0;
        }
        for (size_t cut = 0; cut < TRANSFER_FORGET_BYTES; cut++)
            assert_int_equal(test_transfer_decode(bytes, cut, &out), -1);
    }
}

static void impossible_fields(void **state)
{
    (void)state;
    struct transfer_message out;
    uint8_t bytes[TRANSFER_BYTES_MAX] = {0};
    for (unsigned kind = 0; kind < 256; kind++) {
        bytes[0] = (uint8_t)kind;
        if (kind < TRANSFER_TO_RECEIVER || kind > TRANSFER_FORGET)
            assert_int_equal(test_transfer_decode(bytes, TRANSFER_DONE_BYTES, &out), -1);
    }
    struct transfer_message in = example(TRANSFER_CANCEL);
    size_t length = transfer_encode(&in, bytes);
    bytes[11] = 0;
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1); /* a cancel has a reason */
    bytes[0] = TRANSFER_REFUSE;
    assert_int_equal(test_transfer_decode(bytes, length, &out), 0); /* a refusal may say: had arrived */
    bytes[8] = 0x80;
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1);
    in = example(TRANSFER_TO_RECEIVER);
    length = transfer_encode(&in, bytes);
    memset(bytes + 16, 0, 8);
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1); /* a segment longer than its message */
    in = example(TRANSFER_DONE);
    length = transfer_encode(&in, bytes);
    bytes[15] = 1;
    assert_int_equal(test_transfer_decode(bytes, length, &out), -1);
}

static void clear_to_send(void **state)
{
    (void)state;
    struct transfer_cts in = {.message = 7, .segment = 0x01020304, .room = 0x060504030201, .scheme = 200};
    struct transfer_cts out;
    uint8_t bytes[CONTROL_UPPER_BYTES];
    memcpy(in.params, "abcdefgh", TRANSFER_PARAMS);
    transfer_cts_encode(&in, bytes);
    assert_int_equal(transfer_cts_decode(bytes, &out), 0);
    assert_int_equal(out.message, 7);
    assert_int_equal(out.segment, 0x01020304);
    assert_int_equal(out.room, 0x060504030201);
    assert_int_equal(out.scheme, 200);
    assert_memory_equal(out.params, in.params, TRANSFER_PARAMS);
    assert_false(out.extra);
    bytes[9] = 1;
    assert_int_equal(transfer_cts_decode(bytes, &out), 0);
    assert_true(out.extra);
    in.extra = true;
    uint8_t again[CONTROL_UPPER_BYTES];
    transfer_cts_encode(&in, again);
    assert_memory_equal(again, bytes, sizeof again);
    bytes[9] = 2;
    assert_int_equal(transfer_cts_decode(bytes, &out), -1);
    in.room = UINT64_MAX;
    transfer_cts_encode(&in, bytes);
    assert_int_equal(transfer_cts_decode(bytes, &out), 0);
    assert_int_equal(out.room, TRANSFER_ROOM_MAX);
}

/* The wire room may not include the public headers of the layers above it; here both are seen. */
static void constants_agree(void **state)
{
    (void)state;
    assert_int_equal(TRANSFER_SCHEME_MAX, LH_SCHEME_MESSAGE_MAX);
    assert_int_equal(TRANSFER_PARAMS, LH_SCHEME_PARAMS);
    assert_int_equal(CONTROL_UPPER_BYTES, LH_CTS_UPPER_BYTES);
    assert_true(TRANSFER_BYTES_MAX <= LH_SDR_MESSAGE_MAX);
}

static int run_transfer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(every_kind_there_and_back),
        cmocka_unit_test(longest_scheme_message),
        cmocka_unit_test(tags),
        cmocka_unit_test(lengths_and_padding),
        cmocka_unit_test(impossible_fields),
        cmocka_unit_test(clear_to_send),
        cmocka_unit_test(constants_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_control() + run_control_parts() + run_transfer();
}
