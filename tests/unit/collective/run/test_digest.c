/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collective/run/digest.h"

#define RANKS_MAX 7u

/* Of the empty input: as xxhsum -H2 prints it. */
static void test_known(void **state)
{
    static const uint8_t expected[DIGEST_BYTES] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                                   0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    uint8_t digest[DIGEST_BYTES];
    (void)state;
    digest_of(&(struct lh_buffer){0}, digest);
    assert_memory_equal(digest, expected, sizeof digest);
}

static void test_each_bit_counts(void **state)
{
    uint8_t data[300] = {0}, usual[DIGEST_BYTES], other[DIGEST_BYTES];
    struct lh_buffer buffer = {data, sizeof data};
    (void)state;
    digest_of(&buffer, usual);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        digest_of(&buffer, other);
        assert_memory_not_equal(usual, other, DIGEST_BYTES);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buffer.bytes--; /* all of it is 0 */
    digest_of(&buffer, other);
    assert_memory_not_equal(usual, other, DIGEST_BYTES);
}

/* contents: a letter a rank, for each buffer; expected: 'x' where it differs. */
static void check(const char *const *contents, const char *const *expected, uint32_t buffers)
{
    uint8_t digests[RANKS_MAX * 3 * DIGEST_BYTES] = {0};
    bool differs[RANKS_MAX * 3];
    uint32_t ranks = (uint32_t)strlen(contents[0]);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t b = 0; b < buffers; b++)
            memset(digests + (r * buffers + b) * DIGEST_BYTES, contents[b][r], DIGEST_BYTES);
    digests_compare(digests, ranks, buffers, differs);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t b = 0; b < buffers; b++)
            assert_int_equal(differs[r * buffers + b], expected[b][r] == 'x');
}

static void test_most(void **state)
{
    (void)state;
    check((const char *const[]){"a"}, (const char *const[]){"-"}, 1);
    check((const char *const[]){"aaaaaaa", "aaaabaa", "baaaaaa"},
          (const char *const[]){"-------", "----x--", "x------"}, 3);
    check((const char *const[]){"abbcdcc"}, (const char *const[]){"xxx-x--"}, 1); /* not half of them */
    check((const char *const[]){"xabbaa"}, (const char *const[]){"x-xx--"}, 1);
}

/* Of two ranks nobody knows which is right. */
static void test_ties(void **state)
{
    (void)state;
    check((const char *const[]){"ab"}, (const char *const[]){"-x"}, 1);
    check((const char *const[]){"cabba"}, (const char *const[]){"x-xx-"}, 1);
    check((const char *const[]){"abcdefg"}, (const char *const[]){"-xxxxxx"}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_each_bit_counts),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
