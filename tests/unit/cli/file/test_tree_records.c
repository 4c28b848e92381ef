/*
 * test_tree_records.c - records of a tree: what goes in comes out; what is damaged or hostile does not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_records.h"

#include <longhaul/error.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct cli_tree_record sample(enum cli_tree_kind kind)
{
    return (struct cli_tree_record){
        .kind = kind,
        .attributes = {.known = true, .mode = 0640, .written = {.tv_sec = -5, .tv_nsec = 7}},
        .size_bytes = 0x1122334455,
        .number = 9,
        .digest = {1, 2, [15] = 3},
        .path = "a/b c",
        .path_bytes = 5,
        .rest = "r/s",
        .rest_bytes = 3,
    };
}

static bool has_path(enum cli_tree_kind kind)
{
    return (kind >= CLI_TREE_ROOT && kind <= CLI_TREE_FILE) || kind == CLI_TREE_FAULT;
}

static bool has_rest(enum cli_tree_kind kind)
{
    return kind == CLI_TREE_LINK || kind == CLI_TREE_HARD_LINK || kind == CLI_TREE_DATA ||
           kind == CLI_TREE_DECISIONS || kind == CLI_TREE_REFUSED || kind == CLI_TREE_FAULT ||
           kind == CLI_TREE_VERDICT;
}

static size_t encode(enum cli_tree_kind kind, uint8_t *out, size_t capacity)
{
    struct cli_tree_record record = sample(kind);
    record.path_bytes = has_path(kind) ? record.path_bytes : 0;
    record.rest_bytes = has_rest(kind) ? record.rest_bytes : 0;
    return cli_tree_encode(&record, out, capacity);
}

static const enum cli_tree_kind kinds[] = {
    CLI_TREE_ROOT,      CLI_TREE_LISTED, CLI_TREE_FOLDER,  CLI_TREE_FOLDER_END, CLI_TREE_LINK,
    CLI_TREE_HARD_LINK, CLI_TREE_FILE,   CLI_TREE_DATA,    CLI_TREE_HOLE,       CLI_TREE_FILE_END,
    CLI_TREE_CANCEL,    CLI_TREE_IDLE,   CLI_TREE_END,     CLI_TREE_DECISIONS,  CLI_TREE_RESUME,
    CLI_TREE_REFUSED,   CLI_TREE_FAULT,  CLI_TREE_VERDICT,
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* Also with other records behind it; a part of it is none. */
static void each_kind_comes_out_as_it_went_in(void **state)
{
    uint8_t bytes[256], again[256];
    struct cli_tree_record out;
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        size_t used = encode(kinds[i], bytes, sizeof bytes);
        assert_int_not_equal(used, 0);
        assert_int_equal(encode(kinds[i], again, used - 1), 0);
        assert_int_equal(cli_tree_decode(bytes, sizeof bytes, &out), used);
        assert_int_equal(out.kind, kinds[i]);
        assert_int_equal(cli_tree_encode(&out, again, sizeof again), used);
        assert_memory_equal(bytes, again, used);
        for (size_t part = 0; part < used; part++)
            assert_int_equal(cli_tree_decode(bytes, part, &out), -LH_EPROTOCOL);
        bytes[1] = 0x80;
        assert_int_equal(cli_tree_decode(bytes, sizeof bytes, &out), -LH_EPROTOCOL);
    }
}

static void layout_is_as_documented(void **state)
{
    uint8_t bytes[256];
    (void)state;
    assert_int_equal(encode(CLI_TREE_FILE, bytes, sizeof bytes), 8 + 24 + 8 + 5);
    assert_memory_equal(bytes, "\x07\0\x05\0\0\0\0\0", 8);
    assert_memory_equal(bytes + 8, "\x55\x44\x33\x22\x11\0\0\0\xFB\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 16);
    assert_memory_equal(bytes + 24, "\x07\0\0\0\xA0\x01\0\x80", 8);
    assert_memory_equal(bytes + 32, "\x09\0\0\0\0\0\0\0a/b c", 13);
    assert_int_equal(encode(CLI_TREE_LINK, bytes, sizeof bytes), 8 + 24 + 5 + 3);
    assert_memory_equal(bytes, "\x05\0\x05\0\x03\0\0\0", 8);
    assert_memory_equal(bytes + 32, "a/b cr/s", 8);
}

/* Of all 256 kinds just these, whatever else the record says. */
static void unknown_kinds_are_refused(void **state)
{
    uint8_t bytes[64] = {0};
    struct cli_tree_record out;
    unsigned accepted = 0;
    (void)state;
    for (unsigned kind = 0; kind < 256; kind++) {
        bytes[0] = (uint8_t)kind;
        accepted += cli_tree_decode(bytes, sizeof bytes, &out) > 0;
    }
    /* ROOT, FILE_END, CANCEL, IDLE, END, GET, WANT, LIST, OWNER, REFUSED, HELD_END, VERDICT may be all
     * zeros. */
    assert_int_equal(accepted, 12);
}

static bool xattr_decodes(const char *rest, size_t bytes)
{
    static uint8_t message[2 * CLI_TREE_XATTR_VALUE_MAX];
    struct cli_tree_record out;
    const struct cli_tree_record record = {.kind = CLI_TREE_XATTR, .rest = rest, .rest_bytes = bytes};
    return cli_tree_decode(message, cli_tree_encode(&record, message, sizeof message), &out) > 0;
}

static void attributes_have_a_name_and_a_bounded_value(void **state)
{
    static char rest[300 + CLI_TREE_XATTR_VALUE_MAX];
    (void)state;
    assert_true(xattr_decodes("user.x", 7)); /* with its zero, and no value */
    assert_false(xattr_decodes("user.x", 6));
    assert_false(xattr_decodes("\0value", 6));
    assert_false(xattr_decodes("", 0));
    memset(rest, 'n', 255);
    assert_true(xattr_decodes(rest, 256 + CLI_TREE_XATTR_VALUE_MAX));
    assert_false(xattr_decodes(rest, 257 + CLI_TREE_XATTR_VALUE_MAX));
    rest[255] = 'n';
    assert_false(xattr_decodes(rest, 300));
}

static int first(struct cli_tree_record record)
{
    uint8_t bytes[64];
    struct cli_tree_record out;
    return cli_tree_first(bytes, cli_tree_encode(&record, bytes, sizeof bytes), &out);
}

static void first_messages_are_told_apart(void **state)
{
    struct cli_tree_record out;
    (void)state;
    assert_int_equal(first((struct cli_tree_record){.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION}), 0);
    assert_int_equal(first((struct cli_tree_record){.kind = CLI_TREE_GET, .number = CLI_TREE_VERSION}), 0);
    assert_int_equal(first((struct cli_tree_record){.kind = CLI_TREE_GET, .number = CLI_TREE_VERSION + 1}),
                     -LH_EVERSION);
    assert_int_equal(first((struct cli_tree_record){.kind = CLI_TREE_END}), -LH_EPROTOCOL);
    assert_int_equal(cli_tree_first((const uint8_t *)"LHFILE", 6, &out), -LH_EVERSION);
    assert_int_equal(cli_tree_first((const uint8_t *)"LHFILE", 5, &out), -LH_EPROTOCOL);
    assert_int_equal(cli_tree_first((const uint8_t *)"", 0, &out), -LH_EPROTOCOL);
}

static void hostile_paths_are_refused(void **state)
{
    static const char *const wrong[] = {"",     ".",    "..",   "/",  "/etc/passwd", "a/../b", "a/./b",
                                        "a//b", "../a", "a/..", "a/", "./a",         "a/b/.."};
    static const char *const right[] = {"a", "...", "..a", "a/.b", " ", "-", "\n", "\xff/\x01"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(cli_tree_path_wrong(wrong[i], strlen(wrong[i])));
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_null(cli_tree_path_wrong(right[i], strlen(right[i])));
    assert_non_null(cli_tree_path_wrong("a\0b", 3));
}

static void paths_and_names_are_bounded(void **state)
{
    static char path[CLI_TREE_PATH_MAX + 2];
    (void)state;
    memset(path, 'x', sizeof path);
    assert_null(cli_tree_path_wrong(path, 255));
    assert_non_null(cli_tree_path_wrong(path, 256));
    for (size_t at = 1; at < sizeof path; at += 2)
        path[at] = '/';
    assert_null(cli_tree_path_wrong(path, CLI_TREE_PATH_MAX));
    assert_non_null(cli_tree_path_wrong(path, CLI_TREE_PATH_MAX + 2));
}

/* The decoder looks at paths wherever they stand. */
static void the_decoder_refuses_them_too(void **state)
{
    uint8_t bytes[256];
    struct cli_tree_record out;
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        struct cli_tree_record record = sample(kinds[i]);
        record.path = "a/..";
        record.path_bytes = has_path(kinds[i]) ? 4 : 0;
        record.rest_bytes = has_rest(kinds[i]) ? record.rest_bytes : 0;
        size_t used = cli_tree_encode(&record, bytes, sizeof bytes);
        assert_int_equal(cli_tree_decode(bytes, used, &out),
                         has_path(kinds[i]) ? -LH_EPROTOCOL : (int)used);
    }
    struct cli_tree_record link = sample(CLI_TREE_HARD_LINK);
    link.rest = "../x";
    link.rest_bytes = 4;
    assert_int_equal(cli_tree_decode(bytes, cli_tree_encode(&link, bytes, sizeof bytes), &out),
                     -LH_EPROTOCOL);
    /* A symbolic link may lead anywhere: nothing follows it. */
    link.kind = CLI_TREE_LINK;
    assert_true(cli_tree_decode(bytes, cli_tree_encode(&link, bytes, sizeof bytes), &out) > 0);
}

static void numbers_out_of_range_are_refused(void **state)
{
    uint8_t bytes[256];
    struct cli_tree_record out;
    size_t used = encode(CLI_TREE_LISTED, bytes, sizeof bytes);
    (void)state;
    bytes[15] = 0x80; /* a size beyond INT64_MAX */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
    used = encode(CLI_TREE_LISTED, bytes, sizeof bytes);
    bytes[29] = 0x0A; /* set-user-ID */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
    used = encode(CLI_TREE_LISTED, bytes, sizeof bytes);
    bytes[31] = 0; /* attributes that are not known */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
    used = encode(CLI_TREE_LISTED, bytes, sizeof bytes);
    bytes[23] = 0x7F; /* a time beyond 9999 */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
    used = encode(CLI_TREE_HOLE, bytes, sizeof bytes);
    memset(bytes + 8, 0, 8); /* a hole of no bytes */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
    used = encode(CLI_TREE_DATA, bytes, sizeof bytes);
    memset(bytes + 4, 0xFF, 4); /* far more than the message has */
    assert_int_equal(cli_tree_decode(bytes, used, &out), -LH_EPROTOCOL);
}

static void names_are_shown_without_commands_to_a_terminal(void **state)
{
    char out[32];
    (void)state;
    assert_string_equal(cli_tree_path_shown("a\033[2J\xff\\é", 9, out, sizeof out), "a\\033[2J\\377\\134é");
    assert_string_equal(cli_tree_path_shown("aaaaaaaaaa", 10, out, 8), "aaaa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_comes_out_as_it_went_in),
        cmocka_unit_test(layout_is_as_documented),
        cmocka_unit_test(unknown_kinds_are_refused),
        cmocka_unit_test(attributes_have_a_name_and_a_bounded_value),
        cmocka_unit_test(first_messages_are_told_apart),
        cmocka_unit_test(hostile_paths_are_refused),
        cmocka_unit_test(paths_and_names_are_bounded),
        cmocka_unit_test(the_decoder_refuses_them_too),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(names_are_shown_without_commands_to_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
