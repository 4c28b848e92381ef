/*
 * test_line_reader.c - lines and words, and what is no text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/base/line_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/netsim_text.h"

static struct netsim_line_reader reader_of(const struct netsim_text *text)
{
    struct netsim_line_reader reader;
    netsim_line_reader_init(&reader, "some.key", text);
    return reader;
}

static void test_words(void **state)
{
    (void)state;
    struct netsim_line line;
    struct netsim_text text =
        netsim_text_of("one two\n\n  # nothing \n\tthree\t \tfour  five # six\r\nseven\r\n"
                       "eight#\xff\x01nine");
    struct netsim_line_reader reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(line.number, 1);
    assert_int_equal(line.words_count, 2);
    assert_string_equal(line.words[0], "one");
    assert_string_equal(line.words[1], "two");
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(line.number, 4);
    assert_int_equal(line.words_count, 3);
    assert_string_equal(line.words[2], "five");
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(line.words_count, 1);
    assert_string_equal(line.words[0], "seven");
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_string_equal(line.words[0], "eight");
    assert_int_equal(netsim_line_next(&reader, &line), 0);
    assert_int_equal(netsim_line_next(&reader, &line), 0);
}

static void test_nothing(void **state)
{
    (void)state;
    struct netsim_line line;
    struct netsim_text none = {0};
    struct netsim_text blank = netsim_text_of("\n \n#\n");
    struct netsim_line_reader reader = reader_of(&none);
    assert_int_equal(netsim_line_next(&reader, &line), 0);
    reader = reader_of(&blank);
    assert_int_equal(netsim_line_next(&reader, &line), 0);
}

/* The second line is refused for this word. */
static void refuse(const char *words, size_t bytes, const char *word)
{
    struct netsim_line line;
    struct netsim_text text = {.data = words, .bytes = bytes};
    struct netsim_line_reader reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(netsim_line_next(&reader, &line), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "some.key:2: "));
    assert_non_null(strstr(lh_last_error(), word));
}

static void test_what_is_no_text(void **state)
{
    (void)state;
    refuse("a\nb\0c\n", 6, "0x00");
    refuse("a\nb\rc\n", 6, "0x0d");
    refuse("a\n\x7f\n", 4, "0x7f");
    refuse("a\n\xc3\xa4\n", 5, "0xc3");
    refuse("a\n\x1b", 3, "0x1b");
}

static void test_a_text_may_have_a_name(void **state)
{
    (void)state;
    struct netsim_line line;
    struct netsim_text text = {.data = "\x01", .bytes = 1, .name = "my.topo"};
    struct netsim_line_reader reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "my.topo:1: "));
}

static void test_limits(void **state)
{
    (void)state;
    struct netsim_line line;
    char words[2 + NETSIM_LINE_BYTES_MAX + 2];
    memset(words, 'x', sizeof words);
    words[0] = 'a';
    words[1] = '\n';
    struct netsim_text text = {.data = words, .bytes = 2 + NETSIM_LINE_BYTES_MAX};
    struct netsim_line_reader reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(strlen(line.words[0]), NETSIM_LINE_BYTES_MAX);
    refuse(words, 2 + NETSIM_LINE_BYTES_MAX + 1, "longer than 512");
    /* A comment may be as long as it likes. */
    words[10] = '#';
    text.bytes = sizeof words;
    reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    memset(words + 2, ' ', NETSIM_LINE_BYTES_MAX);
    for (unsigned i = 0; i <= NETSIM_LINE_WORDS_MAX; i++)
        words[2 + 2 * i] = 'y';
    refuse(words, 2 + 2 * (NETSIM_LINE_WORDS_MAX + 1), "more than 24 words");
    text.bytes = 2 + 2 * NETSIM_LINE_WORDS_MAX;
    reader = reader_of(&text);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(netsim_line_next(&reader, &line), 1);
    assert_int_equal(line.words_count, NETSIM_LINE_WORDS_MAX);
}

static void test_numbers(void **state)
{
    (void)state;
    struct netsim_line line = {.name = "some.key", .number = 9};
    uint32_t number = 7;
    assert_int_equal(netsim_line_number(&line, "host", "15", 15, &number), 0);
    assert_int_equal(number, 15);
    assert_int_equal(netsim_line_number(&line, "host", "4294967295", UINT32_MAX, &number), 0);
    assert_int_equal(number, UINT32_MAX);
    assert_int_equal(netsim_line_number(&line, "host", "16", 15, &number), -LH_ERANGE);
    assert_string_equal(lh_last_error(), "some.key:9: host 16: out of range (0 to 15)");
    assert_int_equal(netsim_line_number(&line, "host", "99999999999999999999999", 15, &number), -LH_ERANGE);
    static const char *const wrong[] = {"", "-1", "1.5", "1.0", "x", "1x", "0x1", "+1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(netsim_line_number(&line, "host", wrong[i], 15, &number), -LH_EINVAL);
    assert_int_equal(number, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),           cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_what_is_no_text), cmocka_unit_test(test_a_text_may_have_a_name),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
