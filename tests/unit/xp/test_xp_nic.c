/*
 * test_xp_nic.c - the transport's rules, one by one: which packet is placed, what ends a message, who has a
 * deadline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/xp_nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "unit/xp/nic_pair.h"

#define MS         LH_NS_PER_MS
#define BYTES      (4 * PAIR_MTU)
#define SEQ_A      0xFFFFFEu /* wraps soon */
#define SEQ_B      5u
#define DEPARTURES 32

static struct nic_pair pair;
static struct xp_nic *const a = &pair.nics[0], *const b = &pair.nics[1];
static uint32_t qpn;
static uint8_t source[BYTES], target[BYTES], others[BYTES];
/* What side a, or b, has sent. */
static struct xp_departure sent[DEPARTURES];
static unsigned departures;

static int start(void **state)
{
    (void)state;
    pair_start(&pair, MS);
    qpn = pair_connect(&pair, SEQ_A, SEQ_B);
    for (unsigned i = 0; i < BYTES; i++)
        source[i] = (uint8_t)(i * 7 + 1);
    memset(target, 0, sizeof target);
    memset(others, 0, sizeof others);
    return 0;
}

static void post(struct xp_nic *nic, enum lh_xp_verb verb, void *buffer, uint32_t bytes, uint32_t key,
                 uint64_t user)
{
    struct lh_xp_request request = {.verb = verb,
                                    .buffer = buffer,
                                    .bytes = bytes,
                                    .key = key,
                                    .immediate = verb == LH_XP_WRITE_IMM ? 0xC0FFEE : 0,
                                    .timeout_ns = 10 * MS,
                                    .user = user};
    assert_int_equal(xp_nic_post(nic, qpn, &request, pair.now), 0);
}

/* All that leaves now. */
static void collect(struct xp_nic *nic)
{
    for (departures = 0; departures < DEPARTURES; departures++)
        if (!xp_nic_transmit(nic, pair.now, &sent[departures]))
            return;
}

static void arrive(struct xp_nic *nic, unsigned departure)
{
    assert_true(departure < departures);
    xp_nic_arrive(nic, 7, &sent[departure].packet, false, pair.now);
}

static void assert_completion(struct xp_nic *nic, uint64_t user, enum lh_xp_status status, uint32_t bytes)
{
    struct lh_xp_completion completion;
    assert_int_equal(xp_nic_poll(nic, &completion, 1), 1);
    assert_int_equal(completion.user, user);
    assert_int_equal(completion.status, status);
    assert_int_equal(completion.bytes, bytes);
    assert_int_equal(completion.qpn, qpn);
}

static void assert_nothing(struct xp_nic *nic)
{
    struct lh_xp_completion completion;
    assert_int_equal(xp_nic_poll(nic, &completion, 1), 0);
}

static void pass(lh_time ns)
{
    pair.now += ns;
    xp_nic_expire(a, pair.now);
    xp_nic_expire(b, pair.now);
}

/* In any order; the sender is done when all has left. */
static void test_out_of_order(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES, 0, 2);
    collect(a);
    assert_int_equal(departures, 4);
    assert_completion(a, 2, LH_XP_COMPLETE, BYTES);
    arrive(b, 2);
    arrive(b, 0);
    arrive(b, 1);
    assert_nothing(b);
    arrive(b, 3);
    assert_completion(b, 1, LH_XP_COMPLETE, BYTES);
    assert_memory_equal(target, source, BYTES);
}

/* The last fragment ends a message, whatever is missing; what comes then is late and changes nothing. */
static void test_last_fragment(void **state)
{
    (void)state;
    struct lh_xp_completion completion;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES, 0, 2);
    collect(a);
    arrive(b, 1);
    arrive(b, 3);
    assert_int_equal(xp_nic_poll(b, &completion, 1), 1);
    assert_int_equal(completion.bytes, 2 * PAIR_MTU);
    assert_int_equal(completion.length, BYTES);
    memset(target, 0xEE, sizeof target);
    arrive(b, 0);
    arrive(b, 3);
    assert_int_equal(target[0], 0xEE);
    assert_int_equal(target[BYTES - 1], 0xEE);
    assert_int_equal(b->counters.late, 2);
}

/* A later message ends the active one, and receives whose messages were lost whole; each send keeps its
 * receive. */
static void test_preemption(void **state)
{
    (void)state;
    static uint8_t third[BYTES];
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(b, LH_XP_RECV, others, BYTES, 0, 2);
    post(b, LH_XP_RECV, third, BYTES, 0, 3);
    for (uint64_t i = 0; i < 3; i++)
        post(a, LH_XP_SEND, source, BYTES, 0, 10 + i);
    collect(a);
    assert_int_equal(departures, 12);
    arrive(b, 0);
    arrive(b, 8); /* of the third */
    assert_completion(b, 1, LH_XP_PREEMPTED, PAIR_MTU);
    assert_completion(b, 2, LH_XP_PREEMPTED, 0);
    assert_nothing(b);
    arrive(b, 1);
    arrive(b, 5);
    assert_int_equal(b->counters.late, 2);
    assert_int_equal(target[PAIR_MTU], 0);
    for (unsigned i = 9; i < 12; i++)
        arrive(b, i);
    assert_completion(b, 3, LH_XP_COMPLETE, BYTES);
    assert_memory_equal(third, source, BYTES);
}

/* A receive's deadline ends it, with or without bytes; the message is late from then on, the next one is
 * not. */
static void test_receive_deadline(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(b, LH_XP_RECV, target, BYTES, 0, 2);
    post(b, LH_XP_RECV, others, BYTES, 0, 3);
    for (uint64_t i = 0; i < 3; i++)
        post(a, LH_XP_SEND, source, BYTES, 0, 10 + i);
    collect(a);
    arrive(b, 0);
    pass(10 * MS - 1);
    assert_nothing(b);
    pass(1 + PAIR_TICK);
    assert_completion(b, 1, LH_XP_TIMED_OUT, PAIR_MTU);
    arrive(b, 1);
    assert_int_equal(b->counters.late, 1);
    pass(10 * MS + PAIR_TICK); /* the second has its own, from then on */
    assert_completion(b, 2, LH_XP_TIMED_OUT, 0);
    arrive(b, 4);
    assert_int_equal(b->counters.late, 2);
    for (unsigned i = 8; i < 12; i++)
        arrive(b, i);
    assert_completion(b, 3, LH_XP_COMPLETE, BYTES);
    assert_memory_equal(others, source, BYTES);
}

/* A sender that may not send ends by its deadline, too. */
static void test_send_deadline(void **state)
{
    (void)state;
    post(a, LH_XP_SEND, source, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES, 0, 2);
    struct xp_departure one;
    assert_true(xp_nic_transmit(a, pair.now, &one));
    pass(10 * MS + PAIR_TICK);
    assert_completion(a, 1, LH_XP_TIMED_OUT, PAIR_MTU);
    collect(a);
    assert_int_equal(departures, 4);
    assert_completion(a, 2, LH_XP_COMPLETE, BYTES);
    /* Of the second receive. */
    post(b, LH_XP_RECV, others, BYTES, 0, 3);
    post(b, LH_XP_RECV, target, BYTES, 0, 4);
    for (unsigned i = 0; i < 4; i++)
        arrive(b, i);
    assert_completion(b, 3, LH_XP_PREEMPTED, 0);
    assert_completion(b, 4, LH_XP_COMPLETE, BYTES);
}

static struct xp_region was;

static uint32_t expose(struct xp_nic *nic, void *base, uint64_t bytes, uint32_t access)
{
    uint32_t key;
    assert_int_equal(xp_nic_expose(nic, base, bytes, access, 0xABCD, &key), 0);
    return key;
}

/* WRITE: only the sender has posted, and only it has a deadline. WRITE_IMM takes a receive. */
static void test_writes(void **state)
{
    (void)state;
    struct lh_xp_completion completion;
    uint32_t key = expose(b, target, BYTES, LH_XP_REMOTE_WRITE);
    post(a, LH_XP_WRITE, source, BYTES, key, 1);
    post(a, LH_XP_WRITE_IMM, source, PAIR_MTU, key, 2);
    collect(a);
    assert_int_equal(departures, 5);
    for (unsigned i = 0; i < 3; i++)
        arrive(b, i);
    pass(100 * MS);
    assert_nothing(b);
    arrive(b, 3);
    assert_memory_equal(target, source, BYTES);
    arrive(b, 4);
    assert_int_equal(b->counters.no_receive, 1);
    post(b, LH_XP_RECV, NULL, 0, 0, 3);
    arrive(b, 4);
    assert_int_equal(xp_nic_poll(b, &completion, 1), 1);
    assert_true(completion.has_immediate && completion.immediate == 0xC0FFEE &&
                completion.bytes == PAIR_MTU);
}

/* What the region is not for, has not, or is not any more. */
static void test_keys(void **state)
{
    (void)state;
    uint32_t key = expose(b, target, PAIR_MTU, LH_XP_REMOTE_READ);
    post(a, LH_XP_WRITE, source, PAIR_MTU, key, 1);
    collect(a);
    arrive(b, 0);
    assert_int_equal(b->counters.bad_range, 1);
    struct xp_packet forged = sent[0].packet;
    uint32_t writable = expose(b, target, PAIR_MTU, LH_XP_REMOTE_WRITE);
    const uint64_t addresses[] = {1, PAIR_MTU, UINT64_MAX, UINT64_MAX - PAIR_MTU + 1};
    for (unsigned i = 0; i < 4; i++) {
        forged.key = writable;
        forged.offset = addresses[i];
        xp_nic_arrive(b, 7, &forged, false, pair.now);
        assert_int_equal(b->counters.bad_range, 2 + i);
    }
    forged.offset = 0;
    forged.key = writable ^ 0x10000; /* another life of the place */
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    assert_int_equal(xp_nic_withdraw(b, forged.key, &was), -LH_EKEY);
    assert_int_equal(xp_nic_withdraw(b, writable, &was), 0);
    forged.key = writable;
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    forged.key = 0;
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    assert_int_equal(b->counters.bad_range, 8);
    assert_int_equal(target[0], 0);
}

static void test_read(void **state)
{
    (void)state;
    uint32_t key = expose(b, source, BYTES, LH_XP_REMOTE_READ);
    post(a, LH_XP_READ, target, BYTES, key, 1);
    post(a, LH_XP_SEND, source, 0, 0, 2);
    collect(a);
    assert_int_equal(departures, 1); /* a message at a time */
    assert_int_equal(sent[0].packet.deadline_us, 10000);
    arrive(b, 0);
    collect(b);
    assert_int_equal(departures, 4);
    for (unsigned i = 0; i < 4; i++)
        arrive(a, i);
    assert_completion(a, 1, LH_XP_COMPLETE, BYTES);
    assert_memory_equal(target, source, BYTES);
    arrive(a, 2);
    assert_int_equal(a->counters.late, 1);
    collect(a);
    assert_int_equal(departures, 1);
    post(b, LH_XP_RECV, NULL, 0, 0, 3);
    arrive(b, 0);
    assert_completion(b, 3, LH_XP_COMPLETE, 0);
}

/* The responder stops at the requester's deadline; a request that is lost costs the requester only that. */
static void test_read_deadline(void **state)
{
    (void)state;
    uint32_t key = expose(b, source, BYTES, LH_XP_REMOTE_READ);
    post(a, LH_XP_READ, target, BYTES, key, 1);
    collect(a);
    arrive(b, 0);
    struct xp_departure response;
    assert_true(xp_nic_transmit(b, pair.now, &response));
    xp_nic_arrive(a, 7, &response.packet, false, pair.now);
    pass(10 * MS + PAIR_TICK);
    assert_completion(a, 1, LH_XP_TIMED_OUT, PAIR_MTU);
    collect(b);
    assert_int_equal(departures, 0);
    post(a, LH_XP_READ, target, BYTES, key, 2);
    collect(a);
    assert_int_equal(departures, 1);
    pass(10 * MS + PAIR_TICK);
    assert_completion(a, 2, LH_XP_TIMED_OUT, 0);
    xp_nic_arrive(a, 7, &response.packet, false, pair.now);
    assert_int_equal(a->counters.late, 1);
}

/* A region that goes away while it is read. */
static void test_read_of_withdrawn(void **state)
{
    (void)state;
    uint32_t key = expose(b, source, BYTES, LH_XP_REMOTE_READ);
    post(a, LH_XP_READ, target, BYTES, key, 1);
    collect(a);
    arrive(b, 0);
    struct xp_departure response;
    assert_true(xp_nic_transmit(b, pair.now, &response));
    assert_int_equal(xp_nic_withdraw(b, key, &was), 0);
    assert_false(xp_nic_transmit(b, pair.now, &response));
}

/* A preemption from elsewhere, to another, or too far ahead, ends nothing; nor does one that cannot be
 * placed. */
static void test_forged_preemption(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(b, LH_XP_RECV, others, BYTES, 0, 2);
    post(a, LH_XP_SEND, source, BYTES, 0, 3);
    collect(a);
    arrive(b, 0);
    struct xp_packet forged = sent[1].packet;
    forged.wqe_seq = (forged.wqe_seq + 1) & XP_SEQ_MASK;
    forged.receive++;
    xp_nic_arrive(b, 8, &forged, false, pair.now); /* from elsewhere */
    forged.dest_qpn = qpn + 1;
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    forged.dest_qpn = 0;
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    assert_int_equal(b->counters.bad_qpn, 3);
    forged.dest_qpn = qpn;
    forged.wqe_seq = (forged.wqe_seq + XP_SEQ_WINDOW) & XP_SEQ_MASK;
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    forged = sent[1].packet;
    forged.wqe_seq = (forged.wqe_seq + 1) & XP_SEQ_MASK; /* takes the receive of the active one */
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    forged.receive += 2; /* more receives than messages */
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    assert_int_equal(b->counters.bad_seq, 3);
    forged.receive -= 1;
    forged.offset = BYTES; /* beyond its buffer */
    xp_nic_arrive(b, 7, &forged, false, pair.now);
    assert_int_equal(b->counters.bad_range, 1);
    assert_nothing(b);
    for (unsigned i = 1; i < 4; i++)
        arrive(b, i);
    assert_completion(b, 1, LH_XP_COMPLETE, BYTES);
}

/* Copies are counted, never beyond the length. */
static void test_copies(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES, 0, 2);
    collect(a);
    for (unsigned i = 0; i < 9; i++)
        arrive(b, 0);
    arrive(b, 3);
    assert_completion(b, 1, LH_XP_COMPLETE,
                      BYTES); /* "bytes" is no proof that all is there: that is what ranges are for */
}

/* A message has one length. */
static void test_other_length(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES / 2, 0, 2);
    collect(a);
    arrive(b, 0);
    sent[1].packet.length = BYTES;
    arrive(b, 1);
    assert_int_equal(b->counters.bad_range, 1);
    sent[1].packet.length = BYTES / 2;
    arrive(b, 1);
    assert_completion(b, 1, LH_XP_COMPLETE, BYTES / 2);
}

/* wqe_seq has 24 bits, receives are counted in 16: both wrap. */
static void test_wrap(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < (1u << 16) + 10; i++) {
        post(b, LH_XP_RECV, target, BYTES, 0, i);
        post(a, LH_XP_SEND, source, i % 3, 0, i);
        collect(a);
        assert_completion(a, i, LH_XP_COMPLETE, i % 3);
        if (i % 5 == 4) { /* lost whole */
            pass(10 * MS + PAIR_TICK);
            assert_completion(b, i, LH_XP_TIMED_OUT, 0);
            continue;
        }
        arrive(b, 0);
        assert_completion(b, i, LH_XP_COMPLETE, i % 3);
        pass(LH_NS_PER_US);
    }
    assert_int_equal(b->counters.bad_seq + b->counters.late, 0);
}

/* Marks come back as notifications, at most one in 50 us or so, and slow the sender down. */
static void test_marks(void **state)
{
    (void)state;
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(a, LH_XP_SEND, source, BYTES, 0, 2);
    collect(a);
    for (unsigned i = 0; i < 4; i++)
        xp_nic_arrive(b, 7, &sent[i].packet, true, pair.now);
    assert_int_equal(b->counters.marked, 4);
    collect(b);
    assert_int_equal(departures, 1);
    assert_int_equal(sent[0].packet.opcode, XP_NOTIFICATION);
    arrive(a, 0);
    pair.now += 10 * LH_NS_PER_US;
    const struct xp_rate *rate = &a->memory.qps[qpn - 1].rate;
    assert_in_range(xp_rate_bps(rate, &a->rate, pair.now), PAIR_LINE_BPS / 2, PAIR_LINE_BPS * 51 / 100);
    assert_int_equal(a->counters.notifications, 1);
}

/* All that is posted ends, and the number can be used again. */
static void test_close(void **state)
{
    (void)state;
    uint32_t key = expose(b, source, BYTES, LH_XP_REMOTE_READ);
    post(b, LH_XP_RECV, target, BYTES, 0, 1);
    post(b, LH_XP_RECV, target, BYTES, 0, 2);
    post(a, LH_XP_SEND, source, BYTES, 0, 3);
    post(a, LH_XP_READ, others, BYTES, key, 4);
    collect(a);
    assert_completion(a, 3, LH_XP_COMPLETE, BYTES);
    arrive(b, 0);
    struct xp_packet late = sent[1].packet;
    assert_int_equal(xp_nic_close(b, qpn), 0);
    assert_completion(b, 1, LH_XP_FLUSHED, PAIR_MTU);
    assert_completion(b, 2, LH_XP_FLUSHED, 0);
    xp_nic_arrive(b, 7, &late, false, pair.now);
    assert_int_equal(b->counters.bad_qpn, 1);
    assert_int_equal(xp_nic_close(b, qpn), -LH_EINVAL);
    assert_int_equal(xp_nic_close(a, qpn), 0);
    assert_completion(a, 4, LH_XP_FLUSHED, 0);
    assert_int_equal(xp_nic_next(a), LH_TIME_NEVER);
    assert_int_equal(pair_connect(&pair, 1000000, 2000000), qpn);
    xp_nic_arrive(b, 7, &late, false, pair.now); /* of the former life */
    assert_int_equal(b->counters.bad_seq + b->counters.late, 1);
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_xp_request request = {.verb = LH_XP_RECV, .timeout_ns = MS};
    uint32_t other, key;
    assert_int_equal(xp_nic_post(a, 0, &request, 0), -LH_EINVAL);
    assert_int_equal(xp_nic_post(a, PAIR_QPS + 1, &request, 0), -LH_EINVAL);
    assert_int_equal(xp_nic_open(a, &other), 0);
    assert_int_equal(xp_nic_post(a, other, &request, 0), -LH_ESTATE);
    const struct xp_peer peer = {.peer = 7, .qpn = 1};
    assert_int_equal(xp_nic_connect(a, qpn, &peer, 0), -LH_ESTATE);
    assert_int_equal(xp_nic_connect(a, 0, &peer, 0), -LH_EINVAL);
    request.timeout_ns = 0;
    assert_int_equal(xp_nic_post(a, qpn, &request, 0), -LH_EINVAL);
    request.timeout_ns = LH_XP_TIMEOUT_MAX + 1;
    assert_int_equal(xp_nic_post(a, qpn, &request, 0), -LH_EINVAL);
    request.timeout_ns = MS;
    request.bytes = LH_XP_MESSAGE_MAX + 1;
    assert_int_equal(xp_nic_post(a, qpn, &request, 0), -LH_EINVAL);
    request.bytes = 0;
    request.verb = (enum lh_xp_verb)5;
    assert_int_equal(xp_nic_post(a, qpn, &request, 0), -LH_EINVAL);
    for (uint32_t i = 2; i < PAIR_QPS; i++)
        assert_int_equal(xp_nic_open(a, &other), 0);
    assert_int_equal(xp_nic_open(a, &other), -LH_EAGAIN);
    for (uint32_t i = 0; i < PAIR_REGIONS; i++)
        assert_int_equal(xp_nic_expose(a, source, 1, 0, 0, &key), 0);
    assert_int_equal(xp_nic_expose(a, source, 1, 0, 0, &key), -LH_EAGAIN);
    request.verb = LH_XP_RECV;
    for (uint32_t i = 0; i < PAIR_WORKS; i++)
        assert_int_equal(xp_nic_post(a, qpn, &request, 0), 0);
    assert_int_equal(xp_nic_post(a, qpn, &request, 0), -LH_EAGAIN);
}

/* Who asks for more reads at once than there is memory for gets none, and nobody else is held up. */
static void test_reads_without_end(void **state)
{
    (void)state;
    uint32_t key = expose(b, source, BYTES, LH_XP_REMOTE_READ);
    uint32_t first = qpn;
    for (uint32_t i = 1; i < PAIR_QPS; i++)
        pair_connect(&pair, 0, 0);
    for (qpn = 1; qpn <= PAIR_QPS; qpn++)
        post(a, LH_XP_READ, target, BYTES, key, qpn);
    collect(a);
    assert_int_equal(departures, PAIR_QPS);
    for (unsigned i = 0; i < PAIR_QPS; i++)
        arrive(b, i);
    assert_int_equal(b->counters.reads_refused, PAIR_QPS - PAIR_RESPONSES);
    collect(b);
    assert_int_equal(departures, PAIR_RESPONSES * BYTES / PAIR_MTU);
    qpn = first;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
    const struct CMUnitTest tests[] = {
        TEST(test_out_of_order),
        TEST(test_last_fragment),
        TEST(test_preemption),
        TEST(test_receive_deadline),
        TEST(test_send_deadline),
        TEST(test_writes),
        TEST(test_keys),
        TEST(test_read),
        TEST(test_read_deadline),
        TEST(test_read_of_withdrawn),
        TEST(test_forged_preemption),
        TEST(test_copies),
        TEST(test_other_length),
        TEST(test_wrap),
        TEST(test_marks),
        TEST(test_close),
        TEST(test_refused),
        TEST(test_reads_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
