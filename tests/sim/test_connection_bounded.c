/*
 * test_connection_bounded.c - messages with a deadline, in simulation: what is handed over, and when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/completion_queue.h"
#include "message/connection_state.h"
#include "support/connection_pair.h"

#define MTU   1024u
#define SLOT  16384u
#define SLOTS 8u
#define OLD   0xa7 /* what the buffers hold before */

#define CLEAN_LINK "rtt=10ms,rate=1Gbit"
#define LOSSY_LINK "rtt=10ms,rate=1Gbit,loss=0.05"
#define BURST_LINK "rtt=10ms,rate=1Gbit,loss=0.05,burst=8"
#define BAD_LINK   "rtt=10ms,rate=1Gbit,loss=0.05,reorder=0.02,duplicate=0.02,corrupt=0.01,jitter=200us"

static struct connection_pair open_with(const char *link, const struct lh_attr *attr, uint64_t seed)
{
    struct connection_pair pair;
    connection_pair_open(&pair, "bounded", seed, link, attr, NULL);
    return pair;
}

static struct connection_pair open_pair(const char *link, const char *reliability, uint64_t seed)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    return open_with(link, &attr, seed);
}

static struct lh_stats stats_of(const struct connection_pair *pair, int end)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair->ends[end], &stats), 0);
    return stats;
}

/* A message, and the buffer that it goes into. */
struct bounded_exchange {
    uint8_t *data, *buffer;
    size_t bytes, room;
    struct lh_request *send, *recv;
    struct lh_result sent, received;
    struct lh_delivery delivery;
};

static void post(struct connection_pair *pair, struct bounded_exchange *x, size_t bytes, size_t room)
{
    *x = (struct bounded_exchange){
        .data = connection_pair_bytes(bytes, bytes), .bytes = bytes, .room = room};
    x->buffer = malloc(room + 1);
    assert_non_null(x->buffer);
    memset(x->buffer, OLD, room + 1);
    x->recv = connection_pair_recv(pair, 1, x->buffer, room);
}

static void start_send(struct connection_pair *pair, struct bounded_exchange *x)
{
    x->send = connection_pair_send(pair, 0, x->data, x->bytes);
}

static void wait_for(struct connection_pair *pair, struct bounded_exchange *x)
{
    assert_true(connection_pair_wait(pair, x->recv, 20 * LH_NS_PER_S, &x->received));
    assert_int_equal(x->received.error, 0);
    assert_int_equal(lh_delivery(x->recv, &x->delivery), 0);
}

/* Each byte is the message's outside the missing ranges, and `missing` within; the ranges are in order. */
static void check_bytes(const struct bounded_exchange *x, uint8_t missing)
{
    struct lh_range range;
    uint64_t at = 0, lost = 0, count = 0;
    for (; lh_missing(x->recv, count, &range, 1) == 1; count++) {
        assert_true(range.bytes > 0 && range.offset % MTU == 0 && (count == 0 || range.offset > at));
        assert_true(range.offset + range.bytes <= x->received.bytes);
        assert_memory_equal(x->buffer + at, x->data + at, range.offset - at);
        for (uint64_t i = 0; i < range.bytes; i++)
            assert_int_equal(x->buffer[range.offset + i], missing);
        lost += range.bytes;
        at = range.offset + range.bytes;
        if (count < LH_MISSING_INLINE)
            assert_memory_equal(&range, &x->delivery.missing[count], sizeof range);
    }
    if (at < x->bytes)
        assert_memory_equal(x->buffer + at, x->data + at, x->received.bytes - at);
    for (size_t i = x->received.bytes; i <= x->room; i++)
        assert_int_equal(x->buffer[i], OLD);
    assert_int_equal(count, x->delivery.missing_ranges);
    assert_int_equal(lost, x->delivery.missing_bytes);
    assert_int_equal(lost, x->received.missing_bytes);
    assert_int_equal(lost + x->delivery.arrived_bytes, x->received.bytes);
    assert_int_equal(x->delivery.end == LH_END_WHOLE, lost == 0);
}

static void finish(struct connection_pair *pair, struct bounded_exchange *x)
{
    if (x->send) {
        assert_true(connection_pair_wait(pair, x->send, 20 * LH_NS_PER_S, &x->sent));
        assert_int_equal(x->sent.error, 0);
    }
    lh_request_free(x->send);
    lh_request_free(x->recv);
    free(x->data);
    free(x->buffer);
}

static const size_t sizes[] = {MTU * 5,  MTU * 5 + 1,  SLOT - 1,         SLOT,
                               SLOT + 1, 3 * SLOT + 5, SLOTS *SLOT + 17, 40 * SLOT};

static void every_size(const char *link, const char *reliability, uint64_t seed, uint64_t *lost)
{
    struct connection_pair pair = open_pair(link, reliability, seed);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t more = 0; more < 2; more++) {
            struct bounded_exchange x;
            post(&pair, &x, sizes[i], sizes[i] + more * (20 * SLOT + 3));
            start_send(&pair, &x);
            wait_for(&pair, &x);
            assert_int_equal(x.received.bytes, x.bytes);
            assert_true(x.received.ended_ns - x.received.started_ns <= LH_NS_PER_S);
            check_bytes(&x, OLD);
            *lost += x.delivery.missing_bytes;
            finish(&pair, &x);
        }
    assert_int_equal(stats_of(&pair, 0).tx_retransmitted_packets, 0);
    connection_pair_close(&pair);
}

static void whole_on_a_clean_link(void **state)
{
    (void)state;
    uint64_t lost = 0;
    every_size(CLEAN_LINK, "bounded:deadline=1s", 1, &lost);
    every_size(CLEAN_LINK, "bounded:deadline=1s,code=mds,k=8,m=2", 1, &lost);
    every_size(CLEAN_LINK, "bounded", 1, &lost);
    assert_int_equal(lost, 0);
}

static void exact_ranges_on_bad_links(void **state)
{
    (void)state;
    static const char *const links[] = {LOSSY_LINK, BURST_LINK, BAD_LINK};
    uint64_t plain = 0, coded = 0;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            every_size(links[i], "bounded:deadline=1s", seed, &plain);
            every_size(links[i], "bounded:deadline=1s,code=mds,k=8,m=2", seed, &coded);
            every_size(links[i], "bounded:deadline=1s,code=xor,k=8,m=2", seed, &coded);
        }
    assert_true(plain > 0 && coded < plain);
}

/* Nobody sends: each receive ends at its deadline, which counts from the end of the one before. */
static void ends_at_the_deadline(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK, "bounded:deadline=20ms", 1);
    struct bounded_exchange x[3];
    for (size_t i = 0; i < 3; i++)
        post(&pair, &x[i], SLOT, (i == 1 ? 30 : 1) * SLOT);
    for (size_t i = 0; i < 3; i++) {
        wait_for(&pair, &x[i]);
        assert_int_equal(x[i].received.ended_ns - x[0].received.started_ns, (i + 1) * 20 * LH_NS_PER_MS);
        assert_int_equal(x[i].delivery.end, LH_END_DEADLINE);
        assert_int_equal(x[i].delivery.missing_bytes, x[i].room);
        assert_int_equal(x[i].delivery.missing_ranges, 1);
    }
    /* Who sends late ends without an error, and the next message finds the next receive. */
    for (size_t i = 0; i < 3; i++)
        start_send(&pair, &x[i]);
    struct bounded_exchange next;
    post(&pair, &next, 3 * SLOT, 3 * SLOT);
    start_send(&pair, &next);
    wait_for(&pair, &next);
    for (size_t i = 0; i < 3; i++) {
        for (size_t b = 0; b <= x[i].room; b++)
            assert_int_equal(x[i].buffer[b], OLD);
        finish(&pair, &x[i]);
    }
    assert_int_equal(next.received.bytes, next.bytes);
    check_bytes(&next, OLD);
    finish(&pair, &next);
    assert_int_equal(stats_of(&pair, 1).deadline_hits, 3);
    connection_pair_close(&pair);
}

/* A link that takes far longer: what has come by then, without stale bytes. */
static void a_deadline_cuts_off(void **state)
{
    (void)state;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = "bounded:deadline=40ms";
    attr.zero_missing = true;
    struct connection_pair pair = open_with("rtt=10ms,rate=100Mbit", &attr, 1);
    for (int i = 0; i < 3; i++) {
        struct bounded_exchange x;
        post(&pair, &x, 60 * SLOT, 60 * SLOT); /* 80 ms */
        start_send(&pair, &x);
        wait_for(&pair, &x);
        assert_int_equal(x.received.ended_ns - x.received.started_ns, 40 * LH_NS_PER_MS);
        assert_int_equal(x.delivery.end, LH_END_DEADLINE);
        if (i == 0) /* later ones wait behind what is left of those before */
            assert_in_range(x.delivery.arrived_bytes, 10 * SLOT, 30 * SLOT);
        check_bytes(&x, 0);
        finish(&pair, &x);
    }
    connection_pair_close(&pair);
}

/* The last packets and END of a message are lost: the next message ends it, or END that is sent again. */
static void the_next_message_preempts(void **state)
{
    (void)state;
    uint64_t preempted = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct connection_pair pair =
            open_pair("rtt=10ms,rate=1Gbit,loss=0.25,burst=5", "bounded:deadline=1s", seed);
        struct bounded_exchange x[8];
        for (size_t i = 0; i < 8; i++)
            post(&pair, &x[i], SLOT, SLOT);
        for (size_t i = 0; i < 8; i++)
            start_send(&pair, &x[i]);
        for (size_t i = 0; i < 8; i++) {
            wait_for(&pair, &x[i]);
            check_bytes(&x[i], OLD);
        }
        preempted += stats_of(&pair, 1).messages_preempted;
        for (size_t i = 0; i < 8; i++)
            finish(&pair, &x[i]);
        connection_pair_close(&pair);
    }
    assert_true(preempted > 20);
}

static void the_sender_is_done_when_all_has_left(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100ms,rate=1Gbit", "bounded:deadline=1s", 1);
    struct bounded_exchange x;
    post(&pair, &x, SLOT, SLOT);
    connection_pair_run(&pair, 200 * LH_NS_PER_MS);
    start_send(&pair, &x);
    assert_true(connection_pair_wait(&pair, x.send, LH_NS_PER_S, &x.sent));
    assert_true(x.sent.ended_ns - x.sent.started_ns < 5 * LH_NS_PER_MS);
    struct lh_delivery delivery;
    assert_int_equal(lh_delivery(x.send, &delivery), -LH_ESTATE);
    assert_int_equal(lh_delivery(x.recv, &delivery), -LH_ESTATE);
    wait_for(&pair, &x);
    check_bytes(&x, OLD);
    finish(&pair, &x);
    connection_pair_close(&pair);
}

static void bad_deadlines(void **state)
{
    (void)state;
    static const char *const bad[] = {"bounded:deadline=0",
                                      "bounded:deadline=2h",
                                      "bounded:",
                                      "bounded:k=3",
                                      "bounded:deadline=1s,deadline=2s",
                                      "bounded:deadline=1s,code=rs",
                                      "bounded:deadline=1s,code=mds,k=300,m=2",
                                      "bounded:deadline=1s,",
                                      "bounded,deadlin=3s",
                                      "bounded:deadline=100ns"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(lh_reliability_check(bad[i]) < 0);
    assert_int_equal(lh_reliability_check("bounded:deadline=auto"), 0);
    assert_int_equal(lh_reliability_check("bounded,deadline=3ms,code=xor,k=8,m=2"), 0);
    struct lh_attr attr;
    struct lh_connection *connection;
    connection_pair_attr(&attr);
    attr.device = "udp:[::1]";
    attr.reliability = "bounded:deadline=10s";
    assert_int_equal(lh_open(&attr, &connection), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "peer_timeout_ns"));
    attr.reliability = "bounded:deadline=1s";
    attr.match_tags = true;
    assert_int_equal(lh_open(&attr, &connection), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "match_tags"));
}

/* ---- ends that somebody else chooses ----------------------------------------------------------------- */

#define SLOW_LINK "rtt=10ms,rate=10Mbit" /* a slot takes 13 ms */

static const char *const endless[] = {"bounded:deadline=none", "bounded:deadline=none,code=xor,k=4,m=1"};

static struct connection_pair open_slow(const char *reliability)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    attr.rate_bps = 10000000; /* what waits for its turn waits at the sender */
    return open_with(SLOW_LINK, &attr, 3);
}

static void next_is_whole(struct connection_pair *pair)
{
    struct bounded_exchange x;
    post(pair, &x, SLOT - 5, SLOT);
    start_send(pair, &x);
    wait_for(pair, &x);
    assert_int_equal(x.delivery.end, LH_END_WHOLE);
    check_bytes(&x, OLD);
    finish(pair, &x);
}

/* What has left counts, and the receiver learns that nothing more comes. */
static void a_send_is_withdrawn(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct connection_pair pair = open_slow(endless[i]);
        struct bounded_exchange x;
        post(&pair, &x, SLOT, SLOT);
        start_send(&pair, &x);
        connection_pair_run(&pair, 20 * LH_NS_PER_MS); /* it begins after 15 */
        early_end_send(x.send);
        wait_for(&pair, &x);
        assert_int_equal(x.delivery.end, LH_END_LAST);
        assert_true(x.delivery.arrived_bytes > 0 && x.delivery.missing_bytes > 0);
        check_bytes(&x, OLD);
        finish(&pair, &x);
        next_is_whole(&pair);
        connection_pair_close(&pair);
    }
}

/* It takes its receive with it, as one that is canceled. */
static void a_send_is_withdrawn_that_has_not_begun(void **state)
{
    (void)state;
    struct connection_pair pair = open_slow(endless[0]);
    struct bounded_exchange x;
    uint8_t *data = connection_pair_bytes(SLOT, 1);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT);
    connection_pair_run(&pair, 20 * LH_NS_PER_MS);
    early_end_send(send);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ECANCELED);
    free(data);
    post(&pair, &x, SLOT, SLOT);
    assert_int_equal(connection_pair_finish(&pair, x.recv).error, -LH_ECANCELED);
    for (size_t i = 0; i <= x.room; i++)
        assert_int_equal(x.buffer[i], OLD);
    x.recv = NULL;
    finish(&pair, &x);
    next_is_whole(&pair);
    connection_pair_close(&pair);
}

/* Of one that is too long only the length is sent: it is refused all the same. */
static void a_send_is_withdrawn_that_the_receiver_refuses(void **state)
{
    (void)state;
    struct connection_pair pair = open_slow(endless[0]);
    struct bounded_exchange x;
    post(&pair, &x, SLOT, SLOT / 2);
    start_send(&pair, &x);
    connection_pair_run(&pair, 20 * LH_NS_PER_MS); /* the clear-to-send has come after 15 */
    early_end_send(x.send);
    assert_int_equal(connection_pair_finish(&pair, x.recv).error, -LH_ETRUNCATED);
    assert_int_equal(connection_pair_finish(&pair, x.send).error, -LH_ETRUNCATED);
    x.recv = x.send = NULL;
    finish(&pair, &x);
    next_is_whole(&pair);
    connection_pair_close(&pair);
}

static bool has_tag(const void *context, uint64_t tag)
{
    return tag == *(const uint64_t *)context;
}

/* One that was chosen by its tag is done at once with what has come; nothing changes its buffer later, and
 * its sender is told. */
static void a_receive_ends_as_it_is(void **state)
{
    (void)state;
    const uint64_t tag = 7, other = 8;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct connection_pair pair = open_slow(endless[i]);
        struct bounded_exchange x;
        post(&pair, &x, SLOT, SLOT);
        const struct lh_part part = {.address = x.data, .bytes = x.bytes};
        const struct lh_message message = {.parts = &part, .count = 1, .tag = tag};
        assert_int_equal(lh_sendmsg(pair.ends[0], &message, &x.send), 0);
        connection_pair_run(&pair, 25 * LH_NS_PER_MS);
        early_end_receives(pair.ends[1], has_tag, &other);
        assert_int_equal(lh_test(x.recv, NULL), 0);
        early_end_receives(pair.ends[1], has_tag, &tag);
        assert_int_equal(lh_test(x.recv, NULL), 1);
        connection_pair_run(&pair, 100 * LH_NS_PER_MS);
        wait_for(&pair, &x);
        assert_int_equal(x.received.tag, tag);
        assert_int_equal(x.delivery.end, LH_END_DEADLINE);
        assert_true(x.delivery.arrived_bytes > 0 && x.delivery.missing_bytes > 0);
        check_bytes(&x, OLD);
        finish(&pair, &x);
        next_is_whole(&pair);
        connection_pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_on_a_clean_link),
        cmocka_unit_test(exact_ranges_on_bad_links),
        cmocka_unit_test(ends_at_the_deadline),
        cmocka_unit_test(a_deadline_cuts_off),
        cmocka_unit_test(the_next_message_preempts),
        cmocka_unit_test(the_sender_is_done_when_all_has_left),
        cmocka_unit_test(bad_deadlines),
        cmocka_unit_test(a_send_is_withdrawn),
        cmocka_unit_test(a_send_is_withdrawn_that_has_not_begun),
        cmocka_unit_test(a_send_is_withdrawn_that_the_receiver_refuses),
        cmocka_unit_test(a_receive_ends_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
