/*
 * test_bitmap.c - ranges, counts and searches against one bit at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/bitmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BITS_MAX 320
#define GUARD    0xA5A5A5A5A5A5A5A5u

/* The same bits in both forms; the word behind the last one must stay as it is. */
struct pair {
    uint64_t words[LH_BITMAP_WORDS(BITS_MAX) + 1];
    bool plain[BITS_MAX];
};

static void pair_init(struct pair *pair, bool value, size_t bits)
{
    memset(pair, 0, sizeof *pair);
    pair->words[LH_BITMAP_WORDS(bits)] = GUARD;
    for (size_t i = 0; i < bits; i++) {
        pair->plain[i] = value;
        if (value)
            lh_bitmap_set(pair->words, i);
    }
}

static void pair_check(const struct pair *pair, size_t bits)
{
    size_t count = 0;
    for (size_t i = 0; i < bits; i++) {
        assert_int_equal(lh_bitmap_get(pair->words, i), pair->plain[i]);
        count += pair->plain[i];
    }
    assert_int_equal(lh_bitmap_count(pair->words, bits), count);
    assert_true(pair->words[LH_BITMAP_WORDS(bits)] == GUARD);
}

static size_t plain_next(const bool *plain, size_t bits, size_t from, bool wanted)
{
    while (from < bits && plain[from] != wanted)
        from++;
    return from < bits ? from : bits;
}

static void test_word_count(void **state)
{
    (void)state;
    assert_int_equal(LH_BITMAP_WORDS(0), 0);
    assert_int_equal(LH_BITMAP_WORDS(1), 1);
    assert_int_equal(LH_BITMAP_WORDS(64), 1);
    assert_int_equal(LH_BITMAP_WORDS(65), 2);
}

static void test_layout(void **state)
{
    (void)state;
    uint64_t words[2] = {0};
    lh_bitmap_set(words, 0);
    lh_bitmap_set(words, 63);
    lh_bitmap_set(words, 64);
    assert_true(words[0] == 0x8000000000000001u && words[1] == 1);
    lh_bitmap_clear(words, 63);
    assert_true(words[0] == 1);
}

/* Every range within three words. */
static void test_ranges(void **state)
{
    (void)state;
    const size_t bits = 192;
    struct pair pair;
    for (size_t first = 0; first < bits; first += 7) {
        for (size_t end = first; end <= bits; end++) {
            pair_init(&pair, false, bits);
            lh_bitmap_set_range(pair.words, first, end - first);
            for (size_t i = first; i < end; i++)
                pair.plain[i] = true;
            pair_check(&pair, bits);
            pair_init(&pair, true, bits);
            lh_bitmap_clear_range(pair.words, first, end - first);
            for (size_t i = first; i < end; i++)
                pair.plain[i] = false;
            pair_check(&pair, bits);
        }
    }
}

static void test_search_finds_every_single_bit(void **state)
{
    (void)state;
    struct pair pair;
    for (size_t bit = 0; bit < 130; bit++) {
        for (size_t from = 0; from <= 131; from++) {
            size_t expected = from <= bit ? bit : 131;
            pair_init(&pair, false, 131);
            lh_bitmap_set(pair.words, bit);
            assert_int_equal(lh_bitmap_next_set(pair.words, 131, from), expected);
            pair_init(&pair, true, 131);
            lh_bitmap_clear(pair.words, bit);
            assert_int_equal(lh_bitmap_next_clear(pair.words, 131, from), expected);
        }
    }
}

static void test_search_stops_at_the_last_bit(void **state)
{
    (void)state;
    uint64_t words[2] = {0, UINT64_MAX << 6};
    for (size_t from = 0; from <= 80; from++)
        assert_int_equal(lh_bitmap_next_set(words, 70, from), 70);
    assert_int_equal(lh_bitmap_next_set(words, 71, 0), 70);
    assert_int_equal(lh_bitmap_count(words, 70), 0);
    assert_int_equal(lh_bitmap_next_set(words, 0, 0), 0);
    uint64_t full[2] = {UINT64_MAX, 0x3F};
    assert_int_equal(lh_bitmap_next_clear(full, 70, 0), 70);
    assert_int_equal(lh_bitmap_next_clear(full, 71, 0), 70);
}

static uint64_t mix(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void test_random_operations(void **state)
{
    (void)state;
    struct pair pair;
    uint64_t seed = 1;
    for (size_t bits = 1; bits <= BITS_MAX - 64; bits += 5) {
        pair_init(&pair, false, bits);
        for (int step = 0; step < 50; step++) {
            size_t first = mix(&seed) % bits;
            size_t count = mix(&seed) % (bits - first + 1);
            bool value = mix(&seed) & 1;
            (value ? lh_bitmap_set_range : lh_bitmap_clear_range)(pair.words, first, count);
            memset(pair.plain + first, value, count);
            pair_check(&pair, bits);
            size_t from = mix(&seed) % (bits + 2);
            assert_int_equal(lh_bitmap_next_set(pair.words, bits, from),
                             plain_next(pair.plain, bits, from, true));
            assert_int_equal(lh_bitmap_next_clear(pair.words, bits, from),
                             plain_next(pair.plain, bits, from, false));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word_count),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_search_finds_every_single_bit),
        cmocka_unit_test(test_search_stops_at_the_last_bit),
        cmocka_unit_test(test_random_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
