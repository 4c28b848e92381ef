/*
 * test_distribute_messages.c - messages between ranks: what
 * goes through the codec comes out; what is damaged does not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/distribute/distribute_streams.h"

#include <longhaul/error.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct cli_file_message sample(void)
{
    struct cli_file_message message = {
        .kind = CLI_FILE_OFFER,
        .flags = CLI_FILE_RESUME,
        .size_bytes = 0x1122334455667788,
        .offset_bytes = 3 * CLI_BLOCK_BYTES,
        .digest = {1, 2, 3, [15] = 16},
        .text = "name.bin",
    };
    return message;
}

static void comes_out_as_it_went_in(void **state)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct cli_file_message in = sample(), out;
    (void)state;
    assert_int_equal(cli_file_encode(&in, bytes), CLI_FILE_HEADER + 8);
    assert_int_equal(cli_file_decode(bytes, CLI_FILE_HEADER + 8, &out), 0);
    assert_memory_equal(&in, &out, sizeof in);
}

static void layout_is_as_documented(void **state)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct cli_file_message in = sample();
    (void)state;
    cli_file_encode(&in, bytes);
    assert_memory_equal(bytes, "LHFILE\x01\x01\x01\0\0\0\x08\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 24);
    assert_memory_equal(bytes + 24, "\0\0\xC0\0\0\0\0\0\x01\x02\x03", 11);
    assert_memory_equal(bytes + 48, "name.bin", 8);
}

static void longest_text_fits(void **state)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct cli_file_message in = sample(), out;
    (void)state;
    memset(in.text, 'x', CLI_FILE_TEXT_MAX);
    assert_int_equal(cli_file_encode(&in, bytes), CLI_FILE_MESSAGE_MAX);
    assert_int_equal(cli_file_decode(bytes, CLI_FILE_MESSAGE_MAX, &out), 0);
    assert_int_equal(strlen(out.text), CLI_FILE_TEXT_MAX);
}

static void every_wrong_length_is_refused(void **state)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX] = {0};
    struct cli_file_message in = sample(), out;
    size_t right = cli_file_encode(&in, bytes);
    (void)state;
    for (size_t length = 0; length <= sizeof bytes; length++)
        assert_int_equal(cli_file_decode(bytes, length, &out), length == right ? 0 : -LH_EPROTOCOL);
}

/* Changes one byte of a good message and says what becomes of it. */
static int with_byte(size_t place, uint8_t value)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct cli_file_message in = sample(), out;
    size_t length = cli_file_encode(&in, bytes);
    bytes[place] = value;
    return cli_file_decode(bytes, length, &out);
}

static void damage_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(with_byte(i, '?'), -LH_EPROTOCOL);
    assert_int_equal(with_byte(6, 2), -LH_EVERSION);
    assert_int_equal(with_byte(7, 0), -LH_EPROTOCOL);
    assert_int_equal(with_byte(7, CLI_FILE_VERDICT), 0);
    assert_int_equal(with_byte(7, CLI_FILE_VERDICT + 1), -LH_EPROTOCOL);
    assert_int_equal(with_byte(8, 4), -LH_EPROTOCOL); /* a flag nobody knows */
    assert_int_equal(with_byte(11, 0x80), -LH_EPROTOCOL);
    assert_int_equal(with_byte(15, 0x80), -LH_EPROTOCOL); /* text of 2 GiB */
    assert_int_equal(with_byte(CLI_FILE_HEADER + 3, 0), -LH_EPROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in), cmocka_unit_test(layout_is_as_documented),
        cmocka_unit_test(longest_text_fits),       cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
