/*
 * test_eager_rx.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "eager/eager_rx.h"

/* ---- test early ------------------------------------------------------------------------------------ */

static struct early early;
static struct early_memory memory;
static uint8_t payload[EAGER_MAX];

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 31 + (i >> 8));
    memset(&memory, 0xEE, sizeof memory);
    early = (struct early){0};
    early_give_memory(&early, &memory);
    return 0;
}

static enum early_put put_kind(uint32_t posted, uint32_t number, uint64_t bytes, uint8_t unit, bool is_long)
{
    struct eager_entry entry = {.message = number, .bytes = bytes, .is_long = is_long, .unit = unit};
    entry.data_bytes = entry.is_long ? 0 : eager_unit_bytes(bytes, unit);
    entry.data = payload + unit * EAGER_UNIT_BYTES;
    return early_put(&early, posted, &entry);
}

static enum early_put put(uint32_t posted, uint32_t number, uint64_t bytes, uint8_t unit)
{
    return put_kind(posted, number, bytes, unit, bytes > EAGER_MAX);
}

static void check_bytes(uint32_t number, uint64_t bytes)
{
    uint8_t out[EAGER_MAX + 1];
    memset(out, 0xA5, sizeof out);
    const struct early_message *message = early_find(&early, number);
    assert_non_null(message);
    assert_int_equal(message->bytes, bytes);
    early_copy(&early, message, out);
    assert_memory_equal(out, payload, bytes);
    assert_int_equal(out[bytes], 0xA5);
}

static void test_holds_and_gives(void **state)
{
    (void)state;
    const uint64_t sizes[] = {0, 1, 64, EAGER_CELL_BYTES, EAGER_CELL_BYTES + 1, EAGER_UNIT_BYTES};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(put(0xFFFFFFFD, 0xFFFFFFFD + i, sizes[i], 0), EARLY_KEPT);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t number = 0xFFFFFFFD + i;
        assert_int_equal(early_state(&early, number), EARLY_WHOLE);
        check_bytes(number, sizes[i]);
        assert_null(early_take_memory(&early));
        early_forget(&early, number);
        assert_int_equal(early_state(&early, number), EARLY_NOTHING);
    }
    assert_int_equal(early.free_cells, EAGER_CELLS);
    assert_ptr_equal(early_take_memory(&early), &memory);
    assert_null(early_take_memory(&early));
}

static void test_units_in_any_order(void **state)
{
    (void)state;
    const uint8_t order[] = {3, 0, 4, 1, 2};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(early_state(&early, 9), i == 0 ? EARLY_NOTHING : EARLY_PARTIAL);
        assert_int_equal(put(7, 9, EAGER_MAX, order[i]), EARLY_KEPT);
        assert_int_equal(put(7, 9, EAGER_MAX, order[i]), EARLY_DUPLICATE);
    }
    assert_int_equal(early_state(&early, 9), EARLY_WHOLE);
    check_bytes(9, EAGER_MAX);
}

/* Only the units that came are copied. */
static void test_part_of_a_message(void **state)
{
    (void)state;
    uint8_t out[EAGER_MAX];
    memset(out, 0xA5, sizeof out);
    put(0, 0, EAGER_MAX, 1);
    early_copy(&early, early_find(&early, 0), out);
    assert_int_equal(out[EAGER_UNIT_BYTES - 1], 0xA5);
    assert_memory_equal(out + EAGER_UNIT_BYTES, payload + EAGER_UNIT_BYTES, EAGER_UNIT_BYTES);
    assert_int_equal(out[2 * EAGER_UNIT_BYTES], 0xA5);
}

static void test_what_contradicts_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put(0, 3, 64, 0), EARLY_KEPT);
    assert_int_equal(put(0, 3, 65, 0), EARLY_REFUSED);
    assert_int_equal(put(0, 3, EAGER_MAX + 1, 0), EARLY_REFUSED);
    assert_int_equal(put(0, 4, EAGER_MAX + 1, 0), EARLY_KEPT);
    assert_int_equal(early_state(&early, 4), EARLY_LONG);
    assert_int_equal(put(0, 4, EAGER_MAX + 1, 0), EARLY_DUPLICATE);
    assert_int_equal(put(0, 4, 64, 0), EARLY_REFUSED);
    assert_int_equal(early.held, 2);
}

/* Where packets are short, a long message may have as few bytes as a small one has elsewhere. */
static void test_kinds_of_equal_length(void **state)
{
    (void)state;
    assert_int_equal(put(0, 0, 1000, 1), EARLY_KEPT);
    assert_int_equal(put_kind(0, 0, 1000, 0, true), EARLY_REFUSED);
    assert_int_equal(early_state(&early, 0), EARLY_PARTIAL);
    assert_int_equal(put_kind(0, 1, 1000, 0, true), EARLY_KEPT);
    assert_int_equal(put(0, 1, 1000, 1), EARLY_REFUSED);
    assert_int_equal(early_state(&early, 1), EARLY_LONG);
    early_forget(&early, 0);
    early_forget(&early, 1);
    assert_int_equal(early.free_cells, EAGER_CELLS);
}

/* No unit is written for a message that was announced as a long one, whatever is free. */
static void test_no_cells_of_a_long_message(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        assert_int_equal(put(0, i, EAGER_CELL_BYTES, 0), EARLY_KEPT);
    early_forget(&early, 0);
    assert_int_equal(put_kind(1, EAGER_CELLS, 2000, 0, true), EARLY_KEPT);
    assert_int_equal(put(1, EAGER_CELLS, 2000, 1), EARLY_REFUSED);
    for (uint32_t i = 1; i < EAGER_CELLS; i++)
        check_bytes(i, EAGER_CELL_BYTES);
}

/* A peer that sends more than it may gets no memory, and harms nothing that is held. */
static void test_places_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(put(5, 5 + EAGER_CELLS, 1, 0), EARLY_REFUSED);
    for (uint32_t i = 0; i < EAGER_CELLS / 32; i++)
        assert_int_equal(put(5, 5 + i, EAGER_MAX, 2), EARLY_KEPT);
    assert_int_equal(early.free_cells, 0);
    assert_int_equal(put(5, 5 + EAGER_CELLS / 32, 0, 0), EARLY_REFUSED);
    assert_int_equal(put(5, 6 + EAGER_CELLS / 32, EAGER_MAX + 1, 0), EARLY_KEPT); /* it takes no cell */
    early_forget(&early, 5);
    assert_int_equal(early.free_cells, 32);
    assert_int_equal(put(6, 5 + EAGER_CELLS / 32, 0, 0), EARLY_KEPT);
}

static void test_random_use(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    uint32_t posted = 0xFFFFF000;
    uint64_t bytes[EAGER_CELLS] = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t number = posted + (uint32_t)lh_prng_below(&prng, 40);
        const struct early_message *held = early_find(&early, number);
        uint64_t size = held ? bytes[number % EAGER_CELLS] : lh_prng_below(&prng, 1500);
        bool is_long = lh_prng_below(&prng, 8) == 0;
        uint8_t unit = is_long ? 0 : (uint8_t)lh_prng_below(&prng, eager_units(size));
        bool differs = held && (held->state == EARLY_LONG) != is_long;
        enum early_put result = put_kind(posted, number, size, unit, is_long);
        assert_true(!differs || result == EARLY_REFUSED);
        if (result == EARLY_KEPT)
            bytes[number % EAGER_CELLS] = size;
        if (lh_prng_below(&prng, 4) != 0)
            continue;
        if (early_state(&early, posted) == EARLY_WHOLE)
            check_bytes(posted, bytes[posted % EAGER_CELLS]);
        early_forget(&early, posted++);
    }
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        early_forget(&early, posted + i);
    assert_int_equal(early.free_cells, EAGER_CELLS);
    assert_ptr_equal(early_take_memory(&early), &memory);
}

/* Where receives choose their messages any of them may wait: against a list of what was put in. */
static void test_any_numbers(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t numbers[EAGER_CELLS], count = 0;
    lh_prng_seed(&prng, 4);
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t number = 0xFFFFF800 + (uint32_t)lh_prng_below(&prng, 4096), at = 0;
        const struct eager_entry entry = {.message = number, .is_long = true, .bytes = number};
        bool fuller = i / 3000 % 2 == 0;
        while (at < count && numbers[at] != number)
            at++;
        bool known = at < count;
        assert_int_equal(early_state(&early, number), known ? EARLY_LONG : EARLY_NOTHING);
        if (lh_prng_chance(&prng, fuller ? 0.8 : 0.2)) {
            enum early_put expected = known                  ? EARLY_DUPLICATE
                                      : count == EAGER_CELLS ? EARLY_REFUSED
                                                             : EARLY_KEPT;
            assert_int_equal(early_put_any(&early, &entry), expected);
            if (expected == EARLY_KEPT)
                numbers[count++] = number;
        } else if (count > 0) {
            at = (uint32_t)lh_prng_below(&prng, count);
            early_forget(&early, numbers[at]);
            numbers[at] = numbers[--count];
        }
        assert_int_equal(early.held, count);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(early_find(&early, numbers[i])->bytes, numbers[i]);
}

static int run_early(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_holds_and_gives, begin),
        cmocka_unit_test_setup(test_units_in_any_order, begin),
        cmocka_unit_test_setup(test_part_of_a_message, begin),
        cmocka_unit_test_setup(test_what_contradicts_is_refused, begin),
        cmocka_unit_test_setup(test_kinds_of_equal_length, begin),
        cmocka_unit_test_setup(test_no_cells_of_a_long_message, begin),
        cmocka_unit_test_setup(test_places_are_bounded, begin),
        cmocka_unit_test_setup(test_random_use, begin),
        cmocka_unit_test_setup(test_any_numbers, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test inbound ---------------------------------------------------------------------------------- */

#define US LH_NS_PER_US

static void arrive(struct inbound *inbound, uint8_t flags, uint32_t carrier, lh_time rtt, lh_time now)
{
    const struct eager_packet packet = {.flags = flags, .carrier = carrier};
    inbound_on_carrier(inbound, &packet, rtt, now);
}

static void test_counts_carriers(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    arrive(&inbound, EAGER_HAS_ACK, 5, US, 0);
    assert_false(inbound.any || inbound.ack_wanted); /* it is none */
    arrive(&inbound, EAGER_HAS_ENTRIES, 0xFFFFFFFE, US, 0);
    arrive(&inbound, EAGER_HAS_ENTRIES, 1, US, 0);
    arrive(&inbound, EAGER_HAS_ENTRIES, 0xFFFFFFFF, US, 0);
    assert_int_equal(inbound.newest, 1);
    assert_int_equal(inbound.received, 3);
}

static void test_acknowledges_soon(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    arrive(&inbound, EAGER_HAS_ENTRIES, 0, 40 * US, 100 * US);
    assert_true(inbound.ack_wanted);
    assert_int_equal(inbound.ack_at, 110 * US);
    arrive(&inbound, EAGER_HAS_ENTRIES, 1, 40 * US, 105 * US);
    assert_int_equal(inbound.ack_at, 110 * US);
    inbound_on_acknowledged(&inbound);
    assert_false(inbound.ack_wanted);
    arrive(&inbound, EAGER_HAS_ENTRIES, 2, 25000 * US, 200 * US);
    assert_int_equal(inbound.ack_at, 220 * US);
    arrive(&inbound, EAGER_PROBE, 3, 25000 * US, 210 * US);
    assert_int_equal(inbound.ack_at, 210 * US);
}

static void test_newest_message(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    inbound_on_message(&inbound, 0xFFFFFFF0);
    assert_int_equal(inbound.seen_next, 0xFFFFFFF1);
    inbound_on_message(&inbound, 0xFFFFFFFF);
    assert_int_equal(inbound.seen_next, 0);
    inbound_on_message(&inbound, 0xFFFFFFF5);
    assert_int_equal(inbound.seen_next, 0);
}

static int run_inbound(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_carriers),
        cmocka_unit_test(test_acknowledges_soon),
        cmocka_unit_test(test_newest_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_early() + run_inbound();
}
