/*
 * test_message.c - a path in the model's message; nonsense is refused in words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/message.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static const struct lh_model_path good = {.message_bytes = 128 << 20,
                                          .chunk_bytes = 65536,
                                          .mtu_bytes = 4096,
                                          .bandwidth_bps = 400e9,
                                          .rtt_s = 25e-3,
                                          .loss = 1e-4};

#define RTO 3.0

static void test_terms(void **state)
{
    (void)state;
    struct model_message message;
    assert_int_equal(model_message_of(&good, RTO, &message), 0);
    assert_near(message.chunks, 2048, 0);
    assert_near(message.packets, 32768, 0);
    assert_near(message.inject_s, 1.31072e-6, 1e-12);
    assert_near(message.ideal_s, 27.68435456e-3, 1e-12);
    assert_near(model_message_overhead(&message), 1 + 75e-3 / 1.31072e-6, 1e-12);
    assert_near(message.loss.chunk, -expm1(16 * log1p(-1e-4)), 1e-12);
}

/* A short message is one chunk of its own packets; injection takes what its bytes take. */
static void test_odd_sizes(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_message message;
    path.message_bytes = 5000;
    assert_int_equal(model_message_of(&path, RTO, &message), 0);
    assert_near(message.chunks, 1, 0);
    assert_near(message.loss.chunk, -expm1(2 * log1p(-1e-4)), 1e-12);
    assert_near(message.ideal_s, 25e-3 + 5000 * 8 / 400e9, 1e-15);
    path.message_bytes = 65537;
    path.header_bytes = 84;
    assert_int_equal(model_message_of(&path, RTO, &message), 0);
    assert_near(message.chunks, 2, 0);
    assert_near(message.message_wire_bytes, 65537 + 17 * 84, 0);
    assert_near(message.chunks * message.inject_s, message.message_wire_bytes * 8 / 400e9, 1e-12);
}

/* Loss told by the chunk is the same as told by the packet. */
static void test_loss_of_chunk(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_message by_packet;
    struct model_message by_chunk;
    for (path.burst_packets = 0; path.burst_packets <= 10; path.burst_packets += 10) {
        path.loss_of_chunk = false;
        path.loss = 1e-4;
        assert_int_equal(model_message_of(&path, RTO, &by_packet), 0);
        path.loss_of_chunk = true;
        path.loss = by_packet.loss.chunk;
        assert_int_equal(model_message_of(&path, RTO, &by_chunk), 0);
        assert_near(by_chunk.loss.packet, 1e-4, 1e-9);
    }
}

static void refused(struct lh_model_path path, int code, const char *word)
{
    struct model_message message = {.chunks = 7};
    assert_int_equal(model_message_of(&path, RTO, &message), code);
    if (!strstr(lh_last_error(), word))
        fail_msg("\"%s\" does not say %s", lh_last_error(), word);
    assert_near(message.chunks, 7, 0); /* set only on success */
}

#define REFUSED(code, word, ...)                                                                           \
    do {                                                                                                   \
        struct lh_model_path path = good;                                                                  \
        __VA_ARGS__;                                                                                       \
        refused(path, code, word);                                                                         \
    } while (0)

static void test_refused(void **state)
{
    (void)state;
    REFUSED(-LH_ERANGE, "message of 0", path.message_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)1 << 63);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)-5);
    REFUSED(-LH_ERANGE, "packets", path.message_bytes = ((uint64_t)1 << 63) - 1; path.mtu_bytes = 1);
    REFUSED(-LH_EINVAL, "MTU", path.mtu_bytes = 0);
    REFUSED(-LH_ERANGE, "chunk of 0", path.chunk_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.chunk_bytes = (uint64_t)-4096);
    REFUSED(-LH_EINVAL, "multiple", path.chunk_bytes = 65537);
    REFUSED(-LH_ERANGE, "bandwidth 0", path.bandwidth_bps = 0);
    REFUSED(-LH_ERANGE, "bandwidth -1", path.bandwidth_bps = -1);
    REFUSED(-LH_ERANGE, "bandwidth nan", path.bandwidth_bps = fabs(NAN));
    REFUSED(-LH_ERANGE, "bandwidth inf", path.bandwidth_bps = INFINITY);
    REFUSED(-LH_ERANGE, "round-trip time 0", path.rtt_s = 0);
    REFUSED(-LH_ERANGE, "round-trip time -0.1", path.rtt_s = -0.1);
    REFUSED(-LH_ERANGE, "round-trip time", path.rtt_s = NAN);
    REFUSED(-LH_ERANGE, "round-trip time", path.rtt_s = INFINITY);
    REFUSED(-LH_ERANGE, "loss -1e-09", path.loss = -1e-9);
    REFUSED(-LH_ERANGE, "loss 1:", path.loss = 1);
    REFUSED(-LH_ERANGE, "loss ", path.loss = NAN);
    REFUSED(-LH_ERANGE, "smaller chunks", path.loss = 0.5);
    REFUSED(-LH_ERANGE, "burst length", path.burst_packets = -1);
    REFUSED(-LH_ERANGE, "burst length", path.burst_packets = NAN);
    REFUSED(-LH_EINVAL, "burst length", path.burst_packets = 0.5);
    REFUSED(-LH_ERANGE, "longer ones", path.burst_packets = 2; path.loss = 0.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_loss_of_chunk),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
