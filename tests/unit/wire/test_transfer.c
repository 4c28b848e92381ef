/*
 * test_transfer.c - layouts, and what must be refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>

static uint8_t scheme_bytes[TRANSFER_SCHEME_MAX];

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past the end. */
static int decode(const uint8_t *data, size_t bytes, struct transfer_message *message)
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
        assert_int_equal(decode(bytes, length, &out), 0);
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
    assert_int_equal(decode(bytes, TRANSFER_BYTES_MAX, &out), 0);
    assert_int_equal(decode(bytes, TRANSFER_BYTES_MAX + 1, &out), -1);
    assert_int_equal(decode(bytes, TRANSFER_TO_RECEIVER_BYTES + TRANSFER_TAG_BYTES, &out), 0);
    assert_int_equal(decode(bytes, TRANSFER_TO_RECEIVER_BYTES + TRANSFER_TAG_BYTES - 1, &out), -1);
    bytes[1] = 0;
    assert_int_equal(decode(bytes, TRANSFER_BYTES_MAX - TRANSFER_TAG_BYTES, &out), 0);
    assert_int_equal(decode(bytes, TRANSFER_BYTES_MAX - TRANSFER_TAG_BYTES + 1, &out), -1);
    assert_int_equal(decode(bytes, TRANSFER_TO_RECEIVER_BYTES, &out), 0);
    assert_int_equal(decode(bytes, TRANSFER_TO_RECEIVER_BYTES - 1, &out), -1);
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
    assert_int_equal(decode(bytes, length, &out), 0);
    assert_true(out.body.to_receiver.tag == UINT64_MAX && out.body.to_receiver.scheme_bytes == 3);
    bytes[1] = 2;
    assert_int_equal(decode(bytes, length, &out), -1);
    bytes[1] = 1;
    memset(bytes + TRANSFER_TO_RECEIVER_BYTES, 0, TRANSFER_TAG_BYTES);
    assert_int_equal(decode(bytes, length, &out), -1);
    bytes[1] = 0;
    assert_int_equal(decode(bytes, length, &out), 0);
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
            assert_int_equal(decode(bytes, length - 1, &out), -1);
            assert_int_equal(decode(bytes, length + 1, &out), -1);
        }
        for (size_t i = 1; i < 4; i++) {
            bytes[i] = 1;
            assert_int_equal(decode(bytes, length, &out), -1);
            bytes[i] = 0;
        }
        for (size_t cut = 0; cut < TRANSFER_FORGET_BYTES; cut++)
            assert_int_equal(decode(bytes, cut, &out), -1);
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
            assert_int_equal(decode(bytes, TRANSFER_DONE_BYTES, &out), -1);
    }
    struct transfer_message in = example(TRANSFER_CANCEL);
    size_t length = transfer_encode(&in, bytes);
    bytes[11] = 0;
    assert_int_equal(decode(bytes, length, &out), -1); /* a cancel has a reason */
    bytes[0] = TRANSFER_REFUSE;
    assert_int_equal(decode(bytes, length, &out), 0); /* a refusal may say: had arrived */
    bytes[8] = 0x80;
    assert_int_equal(decode(bytes, length, &out), -1);
    in = example(TRANSFER_TO_RECEIVER);
    length = transfer_encode(&in, bytes);
    memset(bytes + 16, 0, 8);
    assert_int_equal(decode(bytes, length, &out), -1); /* a segment longer than its message */
    in = example(TRANSFER_DONE);
    length = transfer_encode(&in, bytes);
    bytes[15] = 1;
    assert_int_equal(decode(bytes, length, &out), -1);
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

int main(void)
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
