/*
 * test_sdr_bundles.c - several messages of the layer above in one datagram, over real sockets, progress by
 * hand: in order, to peers that read them, and within the bounds of the queue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "sdr/qp.h"

#define DEVICE        "udp:[::1]"
#define MANY          100u
#define ROUNDS        20000u /* only a hang reaches them */
#define ANNOUNCEMENTS 3u     /* that this side reads bundles, at most */
#define PINGS         4u     /* beside what is counted: pings, their answers */

struct end {
    struct sdr_context *context;
    struct sdr_qp *qp;
};

static struct end ends[2];

static void run_once(void)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(lh_sdr_progress(ends[i].context, NULL), 0);
}

static void connect_to(const struct end *one, const struct end *other)
{
    size_t bytes;
    assert_int_equal(sdr_qp_info_size_get(one->qp, &bytes), SDR_SUCCESS);
    void *info = malloc(bytes);
    assert_int_equal(sdr_qp_info_get(one->qp, info), SDR_SUCCESS);
    assert_int_equal(sdr_qp_connect(other->qp, info), SDR_SUCCESS);
    free(info);
}

static int open_ends(uint32_t mtu_bytes)
{
    const struct lh_context_attr attr = {.channels = 1, .workers = LH_SDR_NO_WORKERS};
    const struct sdr_qp_attr none = {0};
    const struct lh_qp_attr small = {.slots = 4, .slot_bytes = 4096, .mtu_bytes = mtu_bytes};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &ends[i].context), 0);
        assert_int_equal(lh_sdr_qp_create(ends[i].context, &none, &small, &ends[i].qp), 0);
    }
    connect_to(&ends[0], &ends[1]);
    connect_to(&ends[1], &ends[0]);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return open_ends(0);
}

static int setup_short_packets(void **state)
{
    (void)state;
    return open_ends(256);
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sdr_qp_destroy(ends[i].qp);
        sdr_context_destroy(ends[i].context);
    }
    return 0;
}

/* Numbers from `first` on, of which every third has the longest message there is when `long_ones`. */
static void say(struct sdr_qp *qp, uint32_t first, uint32_t count, bool long_ones)
{
    uint8_t words[LH_SDR_MESSAGE_MAX] = {0};
    for (uint32_t i = first; i < first + count; i++) {
        memcpy(words, &i, sizeof i);
        size_t bytes = long_ones && i % 3 == 0 ? sizeof words : sizeof i;
        assert_int_equal(lh_sdr_message_send(qp, words, bytes), 0);
    }
}

static bool hear(struct sdr_qp *qp, uint32_t expected)
{
    uint8_t words[LH_SDR_MESSAGE_MAX];
    uint32_t number;
    size_t bytes;
    if (lh_sdr_message_recv(qp, words, &bytes) != 0)
        return false;
    memcpy(&number, words, sizeof number);
    assert_int_equal(number, expected);
    return true;
}

/* Those numbers, in order; none is lost between two sockets of this host that have room. */
static void hear_all(struct sdr_qp *qp, uint32_t first, uint32_t count)
{
    uint32_t heard = 0;
    for (uint32_t round = 0; heard < count && round < ROUNDS; round++) {
        run_once();
        while (heard < count && hear(qp, first + heard))
            heard++;
    }
    assert_int_equal(heard, count);
}

static uint64_t sent(struct sdr_qp *qp)
{
    struct lh_stats stats;
    assert_int_equal(lh_sdr_stats(qp, &stats), 0);
    return stats.tx_control;
}

/* Both have something to say, and with it that they read bundles. */
static void introduce(void)
{
    say(ends[0].qp, 0, 1, false);
    say(ends[1].qp, 0, 1, false);
    hear_all(ends[0].qp, 0, 1);
    hear_all(ends[1].qp, 0, 1);
    for (uint32_t round = 0; !(ends[0].qp->bundles && ends[1].qp->bundles) && round < ROUNDS; round++)
        run_once();
    assert_true(ends[0].qp->bundles && ends[1].qp->bundles);
    for (int i = 0; i < 2; i++) /* a busy host measures round trips that are too long for bundles */
        ends[i].qp->path.rtt.minimum_ns = LH_NS_PER_US;
}

static void test_many_in_few_datagrams(void **state)
{
    (void)state;
    introduce();
    uint64_t before = sent(ends[0].qp);
    say(ends[0].qp, 1, MANY, false);
    hear_all(ends[1].qp, 1, MANY);
    /* 6 bytes each of 992; the announcement is repeated beside them. */
    assert_in_range(sent(ends[0].qp) - before, 1, 1 + ANNOUNCEMENTS + PINGS);
}

/* 62 bytes each of 224. */
static void test_no_longer_than_a_packet(void **state)
{
    (void)state;
    enum { BYTES = 60, IN_A_PACKET = 3 };
    const uint32_t minimum = (MANY + IN_A_PACKET - 1) / IN_A_PACKET;
    introduce();
    uint64_t before = sent(ends[0].qp);
    for (uint32_t i = 1; i <= MANY; i++) {
        uint8_t words[BYTES] = {0};
        memcpy(words, &i, sizeof i);
        assert_int_equal(lh_sdr_message_send(ends[0].qp, words, sizeof words), 0);
    }
    hear_all(ends[1].qp, 1, MANY);
    assert_in_range(sent(ends[0].qp) - before, minimum, minimum + ANNOUNCEMENTS + PINGS);
}

static void test_long_ones_among_short_ones(void **state)
{
    (void)state;
    introduce();
    say(ends[1].qp, 1, MANY, true);
    hear_all(ends[0].qp, 1, MANY);
}

/* An older peer never says that it reads them. */
static void test_none_to_a_peer_that_does_not_read_them(void **state)
{
    (void)state;
    introduce();
    ends[0].qp->bundles = false;
    uint64_t before = sent(ends[0].qp);
    say(ends[0].qp, 1, MANY, false);
    hear_all(ends[1].qp, 1, MANY);
    assert_true(sent(ends[0].qp) - before >= MANY);
}

/* Who does not take what comes loses it, and it is counted. */
static void test_more_than_the_queue_holds(void **state)
{
    (void)state;
    struct lh_stats stats = {0};
    introduce();
    say(ends[0].qp, 1, QP_MESSAGES_WAITING, false);
    run_once();
    run_once();
    say(ends[0].qp, 1 + QP_MESSAGES_WAITING, MANY, false);
    for (uint32_t round = 0; stats.rx_inbox_overflow < MANY && round < ROUNDS; round++) {
        run_once();
        assert_int_equal(lh_sdr_stats(ends[1].qp, &stats), 0);
    }
    assert_int_equal(stats.rx_inbox_overflow, MANY);
    hear_all(ends[1].qp, 1, QP_MESSAGES_WAITING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_in_few_datagrams, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_longer_than_a_packet, setup_short_packets, teardown),
        cmocka_unit_test_setup_teardown(test_long_ones_among_short_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(test_none_to_a_peer_that_does_not_read_them, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_the_queue_holds, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
