/*
 * test_eager_packets.c -
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

#include "base/prng.h"
#include "wire/eager_packets.h"

/* ---- test eager ------------------------------------------------------------------------------------ */

static uint8_t payload[EAGER_MAX];

static bool write_entry(struct eager_writer *writer, struct eager_entry entry)
{
    uint8_t *place;
    entry.data_bytes = entry.is_long ? 0 : eager_unit_bytes(entry.bytes, entry.unit);
    if (!eager_write_entry(writer, &entry, &place))
        return false;
    memcpy(place, payload + entry.unit * EAGER_UNIT_BYTES, entry.data_bytes);
    return true;
}

static const struct eager_entry entries[] = {
    {.message = 0xFFFFFFFE, .bytes = 64},
    {.message = 0xFFFFFFFF, .bytes = 0},
    {.message = 0, .bytes = 5, .tag = 0x0123456789ABCDEF},
    {.message = 31, .bytes = 1},
    {.message = 61, .bytes = EAGER_UNIT_BYTES + 3, .unit = 1},
    {.message = 61, .bytes = EAGER_UNIT_BYTES + 3, .unit = 1, .tag = 1},
    {.message = 62, .bytes = EAGER_MAX + 1, .is_long = true},
    {.message = 5, .bytes = TRANSFER_ROOM_MAX, .is_long = true, .tag = 9},
    {.message = 6, .bytes = EAGER_MAX, .unit = EAGER_UNITS_MAX - 1},
};
#define ENTRIES (sizeof entries / sizeof entries[0])

static const struct eager_ack some_ack = {
    .newest = 0xFFFFFFF0,
    .received = 77,
    .base = 0x80000000,
    .posted = 0x80000100,
    .run_count = 3,
    .runs = {{EAGER_MISSING, 1}, {EAGER_OTHER, EAGER_RUN_MAX}, {EAGER_HELD, 12}},
};

static size_t write_all(uint8_t *out)
{
    struct eager_writer writer;
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, 0xFFFFFFF7, &some_ack);
    for (size_t i = 0; i < ENTRIES; i++)
        assert_true(write_entry(&writer, entries[i]));
    eager_write_probe(&writer);
    return writer.bytes;
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    uint8_t out[EAGER_BYTES_MAX];
    struct eager_packet packet;
    struct eager_entry entry;
    size_t bytes = write_all(out);
    assert_int_equal(eager_decode(out, bytes, &packet), 0);
    assert_int_equal(packet.flags, EAGER_HAS_ACK | EAGER_HAS_ENTRIES | EAGER_PROBE);
    assert_int_equal(packet.carrier, 0xFFFFFFF7);
    assert_int_equal(packet.ack.newest, some_ack.newest);
    assert_int_equal(packet.ack.received, some_ack.received);
    assert_int_equal(packet.ack.base, some_ack.base);
    assert_int_equal(packet.ack.posted, some_ack.posted);
    assert_int_equal(packet.ack.run_count, some_ack.run_count);
    assert_memory_equal(packet.ack.runs, some_ack.runs, 3 * sizeof some_ack.runs[0]);
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_true(eager_next_entry(&packet, &entry));
        assert_int_equal(entry.message, entries[i].message);
        assert_int_equal(entry.bytes, entries[i].bytes);
        assert_int_equal(entry.is_long, entries[i].is_long);
        assert_int_equal(entry.unit, entries[i].unit);
        assert_int_equal(entry.tag, entries[i].tag);
        if (entry.data_bytes > 0)
            assert_memory_equal(entry.data, payload + entry.unit * EAGER_UNIT_BYTES, entry.data_bytes);
    }
    assert_false(eager_next_entry(&packet, &entry));
}

static void test_no_shorter_packet_is_valid(void **state)
{
    (void)state;
    uint8_t out[EAGER_BYTES_MAX], exact[EAGER_BYTES_MAX];
    size_t bytes = write_all(out);
    uint32_t valid = 0;
    for (size_t n = 0; n <= bytes; n++) {
        struct eager_packet packet;
        memcpy(exact, out, n); /* the sanitizer sees reads beyond */
        valid += eager_decode(exact, n, &packet) == 0;
    }
    assert_int_equal(valid, ENTRIES); /* entries are cut off whole */
}

static void test_a_full_unit_fits_behind_an_acknowledgement(void **state)
{
    (void)state;
    uint8_t out[EAGER_BYTES_MAX];
    struct eager_writer writer;
    struct eager_ack ack = {.run_count = 16};
    for (uint32_t i = 0; i < ack.run_count; i++)
        ack.runs[i] = (struct eager_run){EAGER_HELD, 1};
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, 1, &ack);
    assert_true(write_entry(&writer, (struct eager_entry){.message = 1, .bytes = EAGER_MAX, .tag = 1}));
    assert_false(write_entry(&writer, (struct eager_entry){.message = 2, .bytes = EAGER_UNIT_BYTES}));
    assert_true(writer.bytes <= EAGER_BYTES_MAX);
}

static void test_fourteen_messages_of_64_bytes_share_a_packet(void **state)
{
    (void)state;
    uint8_t out[EAGER_BYTES_MAX];
    struct eager_writer writer;
    uint32_t count = 0;
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, 1, NULL);
    while (write_entry(&writer, (struct eager_entry){.message = count, .bytes = 64}))
        count++;
    assert_int_equal(count, 14);
}

static int decode_altered(size_t at, uint8_t value)
{
    uint8_t out[EAGER_BYTES_MAX];
    struct eager_packet packet;
    size_t bytes = write_all(out);
    out[at] = value;
    return eager_decode(out, bytes, &packet);
}

static void test_refuses_what_cannot_be(void **state)
{
    (void)state;
    struct eager_packet packet;
    const uint8_t nothing[] = {EAGER_KIND, 0, 0, 0, 0, 0, 0, 1};
    const uint8_t runs_without_ack[] = {EAGER_KIND, EAGER_PROBE, 1, 0, 0, 0, 0, 1};
    const uint8_t probe[] = {EAGER_KIND, EAGER_PROBE, 0, 0, 0, 0, 0, 1};
    const uint8_t probe_and_more[] = {EAGER_KIND, EAGER_PROBE, 0, 0, 0, 0, 0, 1, 0};
    assert_int_equal(eager_decode(probe, sizeof probe, &packet), 0);
    assert_int_equal(eager_decode(nothing, sizeof nothing, &packet), -1);
    assert_int_equal(eager_decode(runs_without_ack, sizeof runs_without_ack, &packet), -1);
    assert_int_equal(eager_decode(probe_and_more, sizeof probe_and_more, &packet), -1);
    assert_int_equal(decode_altered(0, EAGER_KIND - 1), -1);
    assert_int_equal(decode_altered(1, 0xFF), -1);
    assert_int_equal(decode_altered(2, EAGER_RUNS_MAX + 1), -1);
    assert_int_equal(decode_altered(3, 1), -1);
    assert_int_equal(decode_altered(25, 0), -1); /* a run of no message */
}

static int decode_entry(const uint8_t *entry, size_t bytes)
{
    uint8_t out[EAGER_BYTES_MAX] = {EAGER_KIND, EAGER_HAS_ENTRIES};
    struct eager_packet packet;
    memcpy(out + 12, entry, bytes);
    return eager_decode(out, 12 + bytes, &packet);
}

#define DECODE(...) decode_entry((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void test_refuses_entries_that_contradict_themselves(void **state)
{
    (void)state;
    assert_int_equal(DECODE(0, 0, 1, 0xAA), 0);
    assert_int_equal(DECODE(32, 0, 1, 0, 0xAA), -1);    /* one unit is not numbered */
    assert_int_equal(DECODE(32, 0x10, 1, 0), -1);       /* longer than small */
    assert_int_equal(DECODE(32, 0x04, 0, 2), -1);       /* a unit that it does not have */
    assert_int_equal(DECODE(0, 0x04, 0, 0), -1);        /* units that are not numbered */
    assert_int_equal(DECODE(64, 0, 0, 0, 0, 0x10), -1); /* cut off */
    assert_int_equal(DECODE(64, 0, 0, 0, 0, 0x10, 0x01), 0);
    assert_int_equal(DECODE(64 | 32, 0, 0, 0, 0, 0x10, 0x01), -1);
}

/* Whatever bytes: decoding reads no others, and entries stay within what was given. */
static void test_random_bytes(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t out[EAGER_BYTES_MAX];
        struct eager_packet packet;
        struct eager_entry entry;
        size_t bytes = write_all(out);
        for (uint32_t k = 0; k < 3; k++)
            out[lh_prng_below(&prng, bytes)] = (uint8_t)lh_prng_next(&prng);
        if (eager_decode(out, bytes, &packet) != 0)
            continue;
        while (eager_next_entry(&packet, &entry)) {
            assert_true(entry.data >= out && entry.data + entry.data_bytes <= out + bytes);
            assert_true(entry.is_long || entry.bytes <= EAGER_MAX);
        }
    }
}

static void test_runs_are_bounded(void **state)
{
    (void)state;
    struct eager_ack ack = {0};
    for (uint32_t i = 0; i < EAGER_RUN_MAX + 5; i++)
        assert_true(eager_ack_add(&ack, EAGER_HELD));
    assert_int_equal(ack.run_count, 2);
    assert_int_equal(ack.runs[1].messages, 5);
    for (uint32_t i = ack.run_count; i < EAGER_RUNS_MAX; i++)
        assert_true(eager_ack_add(&ack, i % 2 ? EAGER_HELD : EAGER_MISSING));
    assert_false(eager_ack_add(&ack, EAGER_OTHER));
    assert_int_equal(ack.run_count, EAGER_RUNS_MAX);
}

/* Whatever the MTU: a small message, tag and all, fits a packet with an acknowledgement of 16 runs. */
static void test_short_packets(void **state)
{
    (void)state;
    for (uint32_t mtu = 64; mtu <= 4096; mtu *= 2) {
        uint8_t out[EAGER_BYTES_MAX];
        struct eager_writer writer;
        struct eager_ack ack = {.run_count = 16};
        uint32_t bytes = eager_small_max(mtu) < EAGER_UNIT_BYTES ? eager_small_max(mtu) : EAGER_UNIT_BYTES;
        eager_write_begin(&writer, out, eager_packet_max(mtu), 1, &ack);
        assert_true(write_entry(&writer, (struct eager_entry){.message = 40, .bytes = bytes, .tag = 1}));
        assert_true(mtu < 192 || writer.bytes + CONTROL_HEADER_BYTES <= mtu);
        assert_int_equal(eager_units(eager_small_max(mtu)), mtu < 1024 ? 1 : EAGER_UNITS_MAX);
    }
}

static void test_units_and_cells(void **state)
{
    (void)state;
    assert_int_equal(eager_units(0), 1);
    assert_int_equal(eager_units(EAGER_UNIT_BYTES), 1);
    assert_int_equal(eager_units(EAGER_UNIT_BYTES + 1), 2);
    assert_int_equal(eager_units(EAGER_MAX), EAGER_UNITS_MAX);
    assert_int_equal(eager_unit_mask(EAGER_MAX), 31);
    assert_int_equal(eager_unit_bytes(EAGER_MAX, 4), EAGER_MAX - 4 * EAGER_UNIT_BYTES);
    assert_int_equal(eager_cells(0), 1);
    assert_int_equal(eager_cells(EAGER_CELL_BYTES), 1);
    assert_int_equal(eager_cells(EAGER_MAX), 32);
}

static int run_eager(void)
{
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 31 + (i >> 8));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_no_shorter_packet_is_valid),
        cmocka_unit_test(test_a_full_unit_fits_behind_an_acknowledgement),
        cmocka_unit_test(test_fourteen_messages_of_64_bytes_share_a_packet),
        cmocka_unit_test(test_refuses_what_cannot_be),
        cmocka_unit_test(test_refuses_entries_that_contradict_themselves),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_runs_are_bounded),
        cmocka_unit_test(test_short_packets),
        cmocka_unit_test(test_units_and_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test onesided --------------------------------------------------------------------------------- */

/* Layouts, and what must be refused. */

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

static int run_onesided(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_layouts),
        cmocka_unit_test(headers_come_back),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_eager() + run_onesided();
}
