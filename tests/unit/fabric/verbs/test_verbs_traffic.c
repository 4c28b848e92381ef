/*
 * test_verbs_traffic.c - what is posted to a device, and what is made of its completions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/fabric/verbs/fake_verbs.h"

static struct verbs_endpoint *endpoint;

static int begin(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    fake_begin(VERBS_PROTECT_MR);
    endpoint = fake_open(&attr);
    fake_connect(endpoint);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fake_end(endpoint);
    return 0;
}

/* ---- data that leave --------------------------------------------------------------------------------- */

static uint8_t payload[FAKE_BYTES];

static struct fabric_write write_of(uint32_t bytes, uint8_t generation)
{
    return (struct fabric_write){.payload = payload,
                                 .bytes = bytes,
                                 .va = 0x1234567800,
                                 .rkey = 77,
                                 .immediate = 0x01020304,
                                 .lkey = 55,
                                 .generation = generation};
}

static int post(const struct fabric_write *writes, uint32_t count)
{
    return verbs_post_writes(&endpoint->base, 1, writes, count);
}

/* The device has sent the batch that ended with the last write so far, or another one. */
static void sent(const struct fake_send *send)
{
    fake_complete(send->qp->send_cq,
                  (struct ibv_wc){.wr_id = send->request.wr_id, .qp_num = send->qp->qp_num});
}

static void test_a_write(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7);
    struct fabric_write write = write_of(101, 1);
    assert_int_equal(post(&write, 1), 1);
    assert_int_equal(fake.send_count, 1);
    const struct fake_send *send = &fake.sends[0];
    assert_ptr_equal(send->qp, endpoint->channels[1]->qp[1]);
    assert_int_equal(send->request.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
    assert_int_equal(ntohl(send->request.imm_data), 0x01020304);
    assert_true(send->request.wr.rdma.remote_addr == 0x1234567800);
    assert_int_equal(send->request.wr.rdma.rkey, 77);
    assert_int_equal(send->request.send_flags, IBV_SEND_SIGNALED);
    assert_int_equal(send->piece.length, 101);
    assert_int_equal(send->piece.lkey, 55);
    assert_true(send->piece.addr == (uintptr_t)payload);
    assert_int_equal(stats.tx_wire_bytes, ROCE_WRITE_IMM_OVERHEAD_V4 + 104); /* with its pad */
    assert_int_equal(stats.tx_backpressure, 0);
}

/* Short ones are copied as they are posted; what is borrowed may change as soon as the call returns. */
static void test_payload_that_is_copied(void **state)
{
    (void)state;
    struct fabric_write writes[3] = {write_of(VERBS_INLINE_BYTES, 0), write_of(VERBS_INLINE_BYTES + 1, 0),
                                     write_of(0, 0)};
    writes[1].borrowed = true;
    assert_int_equal(post(writes, 3), 3);
    assert_true(fake.sends[0].request.send_flags & IBV_SEND_INLINE);
    assert_false(fake.sends[1].request.send_flags & IBV_SEND_INLINE);
    assert_true(fake.sends[1].piece.addr != (uintptr_t)payload);
    assert_int_equal(fake.sends[1].piece.lkey, endpoint->channels[1]->bounce_mr->lkey);
    assert_memory_equal(fake.sends[1].bytes, payload, VERBS_INLINE_BYTES + 1);
    assert_int_equal(fake.sends[2].request.num_sge, 0);
    assert_false(fake.sends[0].request.send_flags & IBV_SEND_SIGNALED); /* the last of a batch alone */
    assert_true(fake.sends[2].request.send_flags & IBV_SEND_SIGNALED);
}

/* A batch is of one queue pair. Its writes are released in their order, whichever is done first. */
static void test_batches_are_released_in_order(void **state)
{
    (void)state;
    const struct fabric_write writes[4] = {write_of(9, 0), write_of(9, 1), write_of(9, 1), write_of(9, 0)};
    assert_int_equal(post(writes, 4), 4);
    assert_int_equal(verbs_released(&endpoint->base, 1), 0);
    sent(&fake.sends[2]); /* the second batch */
    assert_int_equal(verbs_released(&endpoint->base, 1), 0);
    sent(&fake.sends[0]);
    assert_int_equal(verbs_released(&endpoint->base, 1), 3);
    sent(&fake.sends[3]);
    assert_int_equal(verbs_released(&endpoint->base, 1), 4);
}

/* A device computes the check of a packet itself: one that is to be damaged is not sent at all. */
static void test_a_packet_that_is_to_be_damaged(void **state)
{
    (void)state;
    struct fabric_write writes[3] = {write_of(9, 0), write_of(9, 0), write_of(9, 0)};
    writes[1].corrupt_bit = 8;
    assert_int_equal(post(writes, 3), 3);
    assert_int_equal(fake.send_count, 2);
    assert_int_equal(stats.link_dropped, 1);
    sent(&fake.sends[0]);
    assert_int_equal(verbs_released(&endpoint->base, 1), 2); /* with it */
    sent(&fake.sends[1]);
    assert_int_equal(verbs_released(&endpoint->base, 1), 3);
}

static void test_a_device_that_is_full(void **state)
{
    (void)state;
    struct fabric_write write = write_of(9, 0);
    fake.send_error = ENOMEM;
    assert_int_equal(post(&write, 1), 0);
    assert_int_equal(stats.tx_backpressure, 1);
    assert_int_equal(stats.tx_wire_bytes, 0);
    fake.send_error = 0;
    assert_int_equal(post(&write, 1), 1);
    sent(&fake.sends[0]);
    assert_int_equal(verbs_released(&endpoint->base, 1), 1);
}

static void test_as_many_writes_as_are_allowed(void **state)
{
    (void)state;
    struct fabric_write writes[FABRIC_BATCH_MAX];
    uint32_t taken = 0;
    int got;
    for (uint32_t i = 0; i < FABRIC_BATCH_MAX; i++)
        writes[i] = write_of(9, 0);
    while ((got = post(writes, FABRIC_BATCH_MAX)) > 0)
        taken += (uint32_t)got;
    assert_int_equal(got, 0);
    assert_int_equal(taken, VERBS_SEND_DEPTH_MIN);
    assert_int_equal(stats.tx_backpressure, 1);
    sent(&fake.sends[FABRIC_BATCH_MAX - 1]);
    assert_int_equal(post(writes, 1), 1);
}

static void expect_broken(const char *words)
{
    struct fabric_write write = write_of(9, 0);
    uint32_t sends = fake.send_count;
    assert_int_equal(post(&write, 1), -LH_EDEVICE);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
    assert_int_equal(fake.send_count, sends);
    for (uint32_t channel = 0; channel < 2; channel++)
        for (uint32_t generation = 0; generation < 2; generation++)
            assert_int_equal(endpoint->channels[channel]->qp[generation]->state, IBV_QPS_ERR);
    assert_int_equal(endpoint->control.qp->state, IBV_QPS_ERR);
}

/* The memory of all writes is the caller's again. */
static void test_a_write_that_fails(void **state)
{
    (void)state;
    const struct fabric_write writes[2] = {write_of(9, 0), write_of(9, 0)};
    assert_int_equal(post(writes, 2), 2);
    fake_complete(endpoint->channels[1]->cqs.send.cq,
                  (struct ibv_wc){.wr_id = TX_RING_NONE, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = 3});
    fake.now_step = LH_NS_PER_MS;
    assert_int_equal(verbs_released(&endpoint->base, 1), 2);
    expect_broken("queue pair 3 failed: a write ended in");
}

static void test_a_queue_pair_that_refuses(void **state)
{
    (void)state;
    struct fabric_write write = write_of(9, 0);
    fake.send_error = EINVAL;
    assert_int_equal(post(&write, 1), -LH_EDEVICE);
    fake.send_error = 0;
    expect_broken("refuses to send");
}

/* ---- data that arrive -------------------------------------------------------------------------------- */

/* Packet 2 of a message is of channel 1. */
static uint32_t immediate_of(uint32_t message, uint32_t packet)
{
    return immediate_join(endpoint->attr.split, (struct immediate_fields){message, packet, 5});
}

static struct ibv_wc arrival_of(uint8_t generation, uint32_t immediate, uint32_t bytes)
{
    return (struct ibv_wc){.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                           .qp_num = endpoint->channels[1]->qp[generation]->qp_num,
                           .imm_data = htonl(immediate),
                           .byte_len = bytes};
}

static void arrive(struct ibv_wc completion)
{
    fake_complete(endpoint->channels[1]->cqs.recv.cq, completion);
}

static uint32_t receives(void)
{
    return ((struct fake_srq *)endpoint->channels[1]->srq)->receives;
}

static void test_arrivals(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[4];
    uint32_t posted = receives();
    assert_int_equal(posted, endpoint->sizes.recv_depth);
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 4), 0);
    arrive(arrival_of(1, immediate_of(3, 2), FAKE_MTU));
    arrive(arrival_of(0, immediate_of(0, 7), 0));
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 4), 2);
    assert_int_equal(arrivals[0].immediate, immediate_of(3, 2));
    assert_int_equal(arrivals[0].bytes, FAKE_MTU);
    assert_int_equal(arrivals[0].generation, 1);
    assert_int_equal(arrivals[1].immediate, immediate_of(0, 7));
    assert_int_equal(arrivals[1].bytes, 0);
    assert_int_equal(arrivals[1].generation, 0);
    assert_int_equal(receives(), posted + 2); /* for those that were used up */
    assert_int_equal(lh_stats_bad_packets(&stats), 0);
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 4), 0);
}

static void test_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[2];
    for (uint32_t i = 0; i < 3; i++)
        arrive(arrival_of(0, immediate_of(0, 2), i));
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 2), 2);
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 2), 1);
    assert_int_equal(arrivals[0].bytes, 2);
}

/* Each is counted once, and behind them a good one is found by the same call. */
static void test_completions_that_are_no_arrivals(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[1];
    struct ibv_wc other = arrival_of(0, immediate_of(0, 2), 9), sent_to = other, damaged = other;
    uint32_t posted = receives();
    other.qp_num = 0xABCDEF;
    sent_to.opcode = IBV_WC_RECV;
    arrive(other);
    arrive(sent_to);
    arrive(arrival_of(0, immediate_of(4, 2), 9));            /* there are 4 slots */
    arrive(arrival_of(0, immediate_of(0, 2), FAKE_MTU + 1)); /* longer than a packet */
    arrive(arrival_of(0, immediate_of(0, 1), 9));            /* of channel 0 */
    damaged.status = IBV_WC_REM_ACCESS_ERR;
    arrive(damaged);
    damaged.status = IBV_WC_REM_INV_REQ_ERR;
    arrive(damaged);
    arrive(arrival_of(1, immediate_of(0, 2), 8));
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 1), 1);
    assert_int_equal(arrivals[0].bytes, 8);
    assert_int_equal(stats.bad_qpn, 1);
    assert_int_equal(stats.bad_header, 1);
    assert_int_equal(stats.bad_range, 1);
    assert_int_equal(stats.bad_length, 2);
    assert_int_equal(stats.bad_channel, 1);
    assert_int_equal(stats.bad_key, 1);
    assert_int_equal(lh_stats_bad_packets(&stats), 7);
    assert_int_equal(receives(), posted + 8);
}

static void test_a_receive_that_fails(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[1];
    struct ibv_wc failed = arrival_of(0, 0, 0);
    failed.status = IBV_WC_WR_FLUSH_ERR;
    arrive(failed);
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 1), -LH_EDEVICE);
    expect_broken("a receive ended in");
}

static void test_receives_that_cannot_be_posted(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[1];
    fake.receive_error = ENOMEM;
    arrive(arrival_of(0, immediate_of(0, 2), 9));
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 1), 1); /* that one came all the same */
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 1), -LH_EDEVICE);
    expect_broken("receives cannot be posted to channel 1");
}

/* What waits is dropped, and counts as lost. */
static void test_drain(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[1];
    uint32_t posted = receives();
    for (uint32_t i = 0; i < 100; i++)
        arrive(arrival_of(0, immediate_of(0, 2), 9));
    verbs_drain(endpoint->channels[1]);
    assert_int_equal(stats.rx_inbox_overflow, 100);
    assert_int_equal(receives(), posted + 100);
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 1), 0);
}

/* Without a shared queue each queue pair gets as many receives as it used up. */
static void test_receives_of_each_queue_pair(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct fabric_arrival arrivals[4];
    fake_end(endpoint);
    fake_begin(VERBS_PROTECT_MR);
    fabric.device.max_srq = 0;
    endpoint = fake_open(&attr);
    fake_connect(endpoint);
    const struct fake_qp *first = (struct fake_qp *)endpoint->channels[1]->qp[0];
    const struct fake_qp *second = (struct fake_qp *)endpoint->channels[1]->qp[1];
    uint32_t posted = first->receives;
    assert_int_equal(posted, endpoint->sizes.recv_depth);
    assert_int_equal(second->receives, posted);
    arrive(arrival_of(0, immediate_of(0, 2), 9));
    arrive(arrival_of(1, immediate_of(0, 2), 9));
    arrive(arrival_of(1, immediate_of(0, 3), 9));
    assert_int_equal(verbs_poll(&endpoint->base, 1, arrivals, 4), 3);
    assert_int_equal(first->receives, posted + 1);
    assert_int_equal(second->receives, posted + 2);
}

/* ---- control ----------------------------------------------------------------------------------------- */

static int send_control(const char *text, uint32_t corrupt_bit)
{
    const struct fabric_datagram datagram = {(const uint8_t *)text, (uint32_t)strlen(text), corrupt_bit};
    return verbs_control_send(&endpoint->base, &datagram, 1);
}

static void test_control_that_leaves(void **state)
{
    (void)state;
    assert_int_equal(send_control("hello", 0), 1);
    assert_int_equal(send_control("damaged", 1), 1);
    assert_int_equal(fake.send_count, 1);
    assert_int_equal(stats.link_dropped, 1);
    const struct fake_send *send = &fake.sends[0];
    assert_ptr_equal(send->qp, endpoint->control.qp);
    assert_int_equal(send->request.opcode, IBV_WR_SEND);
    assert_int_equal(send->piece.length, 5);
    assert_memory_equal(send->bytes, "hello", 5);
    sent(send);
    for (uint32_t i = 0; i < VERBS_CONTROL_SENDS; i++)
        assert_int_equal(send_control("more", 0), 1);
    assert_int_equal(send_control("one too many", 0), 0);
    assert_int_equal(stats.tx_backpressure, 1);
    sent(&fake.sends[1]);
    assert_int_equal(send_control("again", 0), 1);
    fake.now_step = LH_NS_PER_MS; /* what is left does not leave: the end waits for it, not for long */
}

/* A CLOSE that the device has sent just before the end is waited for. */
static void test_the_last_control_message(void **state)
{
    (void)state;
    assert_int_equal(send_control("close", 0), 1);
    sent(&fake.sends[0]);
    fake.now_step = LH_NS_PER_MS;
    fake_end(endpoint);
    assert_int_equal(fake.unread, 0);
    begin(NULL);
}

static void control_arrives(uint64_t buffer, const char *text, struct ibv_wc completion)
{
    uint8_t *place = endpoint->control.buffers + (size_t)VERBS_CONTROL_SENDS * CONTROL_MESSAGE_MAX +
                     buffer * ROCE_MTU_MAX;
    memcpy(place, text, strlen(text));
    completion.wr_id = buffer;
    fake_complete(endpoint->control.cqs.recv.cq, completion);
}

static void test_control_that_arrives(void **state)
{
    (void)state;
    struct fabric_control_arrival arrivals[2];
    const struct fake_qp *control = (struct fake_qp *)endpoint->control.qp;
    assert_int_equal(control->receives, VERBS_CONTROL_RECEIVES);
    control_arrives(0, "xx", (struct ibv_wc){.opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = 2});
    control_arrives(1, "xx", (struct ibv_wc){.opcode = IBV_WC_RECV, .byte_len = CONTROL_MESSAGE_MAX + 1});
    control_arrives(2, "good", (struct ibv_wc){.opcode = IBV_WC_RECV, .byte_len = 4});
    control_arrives(3, "", (struct ibv_wc){.opcode = IBV_WC_RECV, .byte_len = CONTROL_MESSAGE_MAX});
    assert_int_equal(verbs_control_poll(&endpoint->base, arrivals, 2), 2);
    assert_int_equal(arrivals[0].bytes, 4);
    assert_memory_equal(arrivals[0].data, "good", 4);
    assert_int_equal(arrivals[1].bytes, CONTROL_MESSAGE_MAX);
    assert_int_equal(stats.bad_header, 2);
    assert_int_equal(control->receives, VERBS_CONTROL_RECEIVES + 4);
    assert_int_equal(verbs_control_poll(&endpoint->base, arrivals, 2), 0);
}

static void test_a_control_receive_that_fails(void **state)
{
    (void)state;
    struct fabric_control_arrival arrivals[1];
    control_arrives(0, "", (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
    assert_int_equal(verbs_control_poll(&endpoint->base, arrivals, 1), 0);
    expect_broken("control queue pair failed: a receive ended in");
    assert_int_equal(verbs_control_poll(&endpoint->base, arrivals, 1), -LH_EDEVICE);
    assert_int_equal(send_control("late", 0), -LH_EDEVICE);
}

#define TRAFFIC_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRAFFIC_TEST(test_a_write),
        TRAFFIC_TEST(test_payload_that_is_copied),
        TRAFFIC_TEST(test_batches_are_released_in_order),
        TRAFFIC_TEST(test_a_packet_that_is_to_be_damaged),
        TRAFFIC_TEST(test_a_device_that_is_full),
        TRAFFIC_TEST(test_as_many_writes_as_are_allowed),
        TRAFFIC_TEST(test_a_write_that_fails),
        TRAFFIC_TEST(test_a_queue_pair_that_refuses),
        TRAFFIC_TEST(test_arrivals),
        TRAFFIC_TEST(test_no_more_than_there_is_room_for),
        TRAFFIC_TEST(test_completions_that_are_no_arrivals),
        TRAFFIC_TEST(test_a_receive_that_fails),
        TRAFFIC_TEST(test_receives_that_cannot_be_posted),
        TRAFFIC_TEST(test_drain),
        TRAFFIC_TEST(test_receives_of_each_queue_pair),
        TRAFFIC_TEST(test_control_that_leaves),
        TRAFFIC_TEST(test_the_last_control_message),
        TRAFFIC_TEST(test_control_that_arrives),
        TRAFFIC_TEST(test_a_control_receive_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
