/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/arrivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/prng.h"

static void test_follows_a_bitmap_of_any_length_and_alignment(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t chunks = 1; chunks < 300; chunks += 7) {
        for (size_t shift = 0; shift < 9; shift += 4) {
            uint8_t *raw = calloc(chunks + shift, 1); /* exactly: a sanitizer sees a read past the end */
            uint8_t *bitmap = raw + shift;
            uint64_t *memory = malloc(sr_arrivals_bytes(chunks));
            struct sr_arrivals arrivals;
            sr_arrivals_init(&arrivals, chunks, memory);
            uint32_t arrived = 0;
            while (arrived < chunks) {
                for (uint64_t n = lh_prng_below(&prng, 20); n > 0; n--) {
                    size_t chunk = lh_prng_below(&prng, chunks);
                    arrived += bitmap[chunk] == 0;
                    bitmap[chunk] = (uint8_t)(1 + lh_prng_below(&prng, 255));
                }
                sr_arrivals_update(&arrivals, bitmap, arrived);
                assert_int_equal(arrivals.seen, arrived);
                uint32_t highest = 0;
                for (uint32_t i = 0; i < chunks; i++) {
                    assert_int_equal(lh_bitmap_get(arrivals.bits, i), bitmap[i] != 0);
                    if (bitmap[i])
                        highest = i + 1;
                }
                assert_int_equal(arrivals.highest, highest);
                for (uint32_t i = 0; i < arrivals.cumulative; i++)
                    assert_int_not_equal(bitmap[i], 0);
                assert_true(arrivals.cumulative == chunks || bitmap[arrivals.cumulative] == 0);
            }
            free(memory);
            free(raw);
        }
    }
}

static struct sr_arrivals fresh(uint64_t *memory, uint32_t chunks)
{
    struct sr_arrivals arrivals;
    sr_arrivals_init(&arrivals, chunks, memory);
    return arrivals;
}

static void test_count_and_bitmap_of_different_moments(void **state)
{
    (void)state;
    uint64_t memory[4];
    uint8_t bitmap[256] = {1, 1, 1};
    struct sr_arrivals arrivals = fresh(memory, 256);
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 2), 3); /* the bitmap was ahead */
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 3), 0);
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 5), 0); /* the count is ahead */
    bitmap[200] = 9;
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 5), 1);
    assert_int_equal(arrivals.highest, 201);
    assert_int_equal(arrivals.cumulative, 3);
}

static void test_gaps(void **state)
{
    (void)state;
    uint64_t memory[2];
    uint8_t bitmap[128];
    memset(bitmap, 1, sizeof(bitmap));
    bitmap[70] = 0;
    struct sr_arrivals arrivals = fresh(memory, 128);
    sr_arrivals_update(&arrivals, bitmap, 127);
    assert_false(sr_arrivals_gap(&arrivals, 0, 70));
    assert_true(sr_arrivals_gap(&arrivals, 0, 71));
    assert_true(sr_arrivals_gap(&arrivals, 70, 71));
    assert_false(sr_arrivals_gap(&arrivals, 71, 128));
    assert_false(sr_arrivals_gap(&arrivals, 70, 70));
    assert_false(sr_arrivals_gap(&arrivals, 128, 128));
}

static void test_a_shorter_message_than_the_buffer(void **state)
{
    (void)state;
    uint64_t memory[4];
    uint8_t bitmap[256] = {0};
    memset(bitmap, 1, 100);
    memset(bitmap + 150, 1, 106); /* past the end, as the SDR layer counts them */
    struct sr_arrivals arrivals = fresh(memory, 256);
    sr_arrivals_limit(&arrivals, 150);
    sr_arrivals_update(&arrivals, bitmap, 206);
    assert_int_equal(arrivals.seen, 100);
    assert_int_equal(arrivals.highest, 100);

    arrivals = fresh(memory, 256);
    sr_arrivals_update(&arrivals, bitmap, 206); /* seen before the length was known */
    assert_int_equal(arrivals.highest, 256);
    sr_arrivals_limit(&arrivals, 150);
    assert_int_equal(arrivals.seen, 100);
    assert_int_equal(arrivals.highest, 100);
    sr_arrivals_limit(&arrivals, 64);
    assert_int_equal(arrivals.seen, 64);
    assert_int_equal(arrivals.cumulative, 64);
    sr_arrivals_limit(&arrivals, 0);
    assert_int_equal(arrivals.seen, 0);
    assert_int_equal(arrivals.highest, 0);
    assert_int_equal(arrivals.cumulative, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_a_bitmap_of_any_length_and_alignment),
        cmocka_unit_test(test_count_and_bitmap_of_different_moments),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_a_shorter_message_than_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
