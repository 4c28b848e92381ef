/*
 * test_ring.c - packets of any size come out of the ring as they went in, at every wrap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PACKET_MAX = 200, CAPACITY = 1000 };

static uint32_t size_of(unsigned number)
{
    return 1 + number * 7919 % PACKET_MAX;
}

static bool put(struct path_ring *ring, unsigned number)
{
    struct path_packet *packet = path_ring_space(ring);
    if (!packet)
        return false;
    packet->bytes = size_of(number);
    packet->leave_ns = number;
    memset(packet->data, (int)number, packet->bytes);
    path_ring_push(ring, packet);
    return true;
}

static void take(struct path_ring *ring, unsigned number)
{
    uint8_t expected[PACKET_MAX];
    struct path_packet *packet = path_ring_first(ring);
    assert_non_null(packet);
    assert_int_equal(packet->leave_ns, number);
    assert_int_equal(packet->bytes, size_of(number));
    memset(expected, (int)number, sizeof expected);
    assert_memory_equal(packet->data, expected, packet->bytes);
    path_ring_pop(ring);
}

/* Fills it and drains it by every share, so that each end meets each state. */
static void packets_come_out_as_they_went_in(void **state)
{
    (void)state;
    struct path_ring ring;
    unsigned in = 0, out = 0;
    assert_true(path_ring_open(&ring, CAPACITY, PACKET_MAX));
    assert_null(path_ring_first(&ring));
    for (unsigned round = 0; round < 20000; round++) {
        size_t held = 0;
        while (put(&ring, in))
            in++;
        for (const struct path_packet *packet = path_ring_first(&ring); packet;
             packet = path_ring_next(&ring, packet))
            held += packet->stride;
        assert_true(held + PACKET_MAX >= CAPACITY / 2);
        for (unsigned i = 0; i < 1 + round % 13 && out < in; i++)
            take(&ring, out++);
    }
    while (out < in)
        take(&ring, out++);
    assert_null(path_ring_first(&ring));
    path_ring_close(&ring);
}

/* A packet that is read and then dropped leaves no trace. */
static void space_that_is_not_used_stays(void **state)
{
    (void)state;
    struct path_ring ring;
    unsigned in = 0, out = 0;
    assert_true(path_ring_open(&ring, CAPACITY, PACKET_MAX));
    for (unsigned round = 0; round < 20000; round++) {
        for (unsigned i = 0; i < 1 + round % 3; i++)
            path_ring_space(&ring);
        if (round % 5 && put(&ring, in))
            in++;
        if (round % 4 && out < in)
            take(&ring, out++);
    }
    while (out < in)
        take(&ring, out++);
    assert_null(path_ring_first(&ring));
    path_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_out_as_they_went_in),
        cmocka_unit_test(space_that_is_not_used_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
