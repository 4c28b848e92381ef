/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/small_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "message/rx_state.h"
#include "message/tx_state.h"
#include "wire/eager_packets.h"

/* What the peer learns last: how many carriers came, ever, and the newest of them. */
static void test_the_last_acknowledgement(void **state)
{
    (void)state;
    static struct tx tx;
    static struct rx rx;
    struct small_messages small;
    uint8_t out[EAGER_BYTES_MAX];
    struct eager_packet packet = {.flags = EAGER_PROBE, .carrier = 40};
    memset(&small, 0, sizeof small);
    small_messages_init(&small, &tx, &rx);
    assert_int_equal(small_messages_last(&small, out), 0);
    small.on = true;
    assert_int_equal(small_messages_last(&small, out), 0); /* nothing has come */
    for (uint32_t i = 0; i < 3; i++, packet.carrier++)
        inbound_on_carrier(&small.matching.inbound, &packet, 0, 1);
    memset(out, 0xA5, sizeof out);
    size_t bytes = small_messages_last(&small, out);
    assert_int_equal(eager_decode(out, bytes, &packet), 0);
    assert_true(packet.flags & EAGER_HAS_ACK);
    assert_int_equal(packet.ack.received, 3);
    assert_int_equal(packet.ack.newest, 42);
    assert_int_equal(packet.ack.base, 0);
    assert_int_equal(packet.ack.posted, 0);
    assert_int_equal(packet.ack.run_count, 0);
    assert_false(packet.ack.is_part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_acknowledgement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
