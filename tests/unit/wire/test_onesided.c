/*
 * test_onesided.c - layouts, and what must be refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/onesided.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY UINT64_C(0x1112131415161718)

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past the end. */
static int decode(const uint8_t *data, size_t bytes)
{
    struct onesided_header header;
    uint8_t *copy = malloc(bytes + (bytes == 0));
    memcpy(copy, data, bytes);
    int rc = onesided_header_decode(copy, bytes, &header);
    free(copy);
    return rc;
}

static void header_layouts(void **state)
{
    (void)state;
    uint8_t out[ONESIDED_HEADER_MAX];
    const uint8_t write[] = {1,    1,    0,    0,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                             0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0,    0,    0,    0,
                             0,    0,    0x31, 0x32, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48};
    struct onesided_header header = {.kind = ONESIDED_WRITE,
                                     .notify = true,
                                     .key = KEY,
                                     .offset = 0x2122232425262728,
                                     .bytes = 0x3132,
                                     .immediate = 0x4142434445464748};
    assert_int_equal(onesided_header_encode(&header, out), sizeof write);
    assert_memory_equal(out, write, sizeof write);
    header.notify = false;
    assert_int_equal(onesided_header_encode(&header, out), 28);
    assert_int_equal(out[1], 0);
    header.kind = ONESIDED_READ;
    assert_int_equal(onesided_header_encode(&header, out), 28);
    assert_int_equal(out[0], 2);
    assert_memory_equal(out + 4, write + 4, 24);
    header = (struct onesided_header){.kind = ONESIDED_ANSWER, .error = 0x01020304};
    const uint8_t answer[] = {3, 0, 0, 0, 1, 2, 3, 4};
    assert_int_equal(onesided_header_encode(&header, out), sizeof answer);
    assert_memory_equal(out, answer, sizeof answer);
}

static void headers_come_back(void **state)
{
    (void)state;
    const struct onesided_header headers[] = {
        {.kind = ONESIDED_WRITE, .key = KEY, .offset = UINT64_MAX, .bytes = 1},
        {.kind = ONESIDED_WRITE, .notify = true, .key = KEY, .bytes = UINT64_MAX, .immediate = 7},
        {.kind = ONESIDED_READ, .key = KEY, .offset = 5},
        {.kind = ONESIDED_ANSWER, .error = INT32_MAX},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        uint8_t out[ONESIDED_HEADER_MAX];
        struct onesided_header back;
        size_t bytes = onesided_header_encode(&headers[i], out);
        assert_int_equal(onesided_header_decode(out, bytes, &back), 0);
        assert_int_equal(back.kind, headers[i].kind);
        assert_int_equal(back.notify, headers[i].notify);
        assert_true(back.key == headers[i].key && back.offset == headers[i].offset);
        assert_true(back.bytes == headers[i].bytes && back.immediate == headers[i].immediate);
        assert_int_equal(back.error, headers[i].error);
        for (size_t wrong = 0; wrong <= ONESIDED_HEADER_MAX; wrong++) /* only the exact length */
            assert_int_equal(decode(out, wrong) == 0, wrong == bytes);
    }
}

static void malformed_headers(void **state)
{
    (void)state;
    uint8_t out[ONESIDED_HEADER_MAX] = {1};
    for (int kind = 0; kind < 256; kind++) {
        out[0] = (uint8_t)kind;
        assert_int_equal(decode(out, 28) == 0, kind == 1 || kind == 2);
        assert_int_equal(decode(out, 8) == 0, kind == 3);
    }
    for (int at = 1; at < 4; at++) { /* flags, zeros */
        memset(out, 0, sizeof out);
        out[0] = 2;
        out[at] = 1;
        assert_int_equal(decode(out, 28), -1);
    }
    const uint8_t negative[] = {3, 0, 0, 0, 0x80, 0, 0, 0};
    assert_int_equal(decode(negative, sizeof negative), -1);
}

static void exchanges(void **state)
{
    (void)state;
    static const uint8_t blob[ONESIDED_BLOB_MAX] = {0xAB};
    static uint8_t out[ONESIDED_EXCHANGE_BYTES_MAX + 8];
    const struct onesided_exchange exchange = {.flags = ONESIDED_HAS_PEER | ONESIDED_ASKS,
                                               .operations = 0x01020304,
                                               .blob = blob,
                                               .blob_bytes = 3};
    const uint8_t expected[] = {8, 3, 0, 0, 1, 2, 3, 4, 0xAB, 0, 0};
    struct onesided_exchange back;
    assert_int_equal(onesided_exchange_encode(&exchange, out), sizeof expected);
    assert_memory_equal(out, expected, sizeof expected);
    assert_int_equal(onesided_exchange_decode(out, sizeof expected, &back), 0);
    assert_int_equal(back.flags, exchange.flags);
    assert_int_equal(back.operations, exchange.operations);
    assert_int_equal(back.blob_bytes, 3);
    assert_ptr_equal(back.blob, out + ONESIDED_EXCHANGE_BYTES);
    assert_int_equal(onesided_exchange_decode(out, 8, &back), 0);
    assert_int_equal(back.blob_bytes, 0);
    assert_int_equal(onesided_exchange_decode(out, 7, &back), -1);
    assert_int_equal(onesided_exchange_decode(out, 8 + ONESIDED_BLOB_MAX, &back), 0);
    assert_int_equal(onesided_exchange_decode(out, 9 + ONESIDED_BLOB_MAX, &back), -1);
    for (int at = 0; at < 4; at++) {
        out[at] ^= 0x08;
        assert_int_equal(onesided_exchange_decode(out, 8, &back), -1);
        out[at] ^= 0x08;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_layouts),
        cmocka_unit_test(headers_come_back),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
