/*
 * test_verbs_endpoint.c - what an endpoint makes of its device and gives back, to whom its queue pairs are
 * connected, and which memory a slot lets packets into.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/fabric/verbs/fake_verbs.h"

static void expect_error(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

/* ---- creation and end -------------------------------------------------------------------------------- */

static void test_what_it_brings_to_its_peer(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct qp_info_endpoint info;
    static const uint8_t address[16] = {10, 0, 0, 7};
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    verbs_endpoint_info(&endpoint->base, &info);
    assert_int_equal(info.fabric, QP_INFO_VERBS);
    assert_int_equal(info.family, 4);
    assert_memory_equal(info.address, address, sizeof address);
    assert_int_equal(info.channels, 2);
    assert_int_equal(info.generations, 2);
    assert_int_equal(info.control_port, ROCE_UDP_PORT);
    assert_int_equal(info.control_qpn, endpoint->control.qp->qp_num);
    assert_int_equal(info.receive_buffer_bytes, (uint64_t)endpoint->sizes.recv_depth * FAKE_MTU);
    for (uint32_t c = 0; c < 2; c++) {
        assert_int_equal(info.channel_port[c], ROCE_UDP_PORT);
        for (uint32_t g = 0; g < 2; g++)
            assert_int_equal(info.qpn[g][c], endpoint->channels[c]->qp[g]->qp_num);
    }
    fake_end(endpoint);
}

/* Whichever call of the device fails: the error says so, and all that was made before is given back. */
static void test_every_way_out(void **state)
{
    (void)state;
    static const enum verbs_protection protections[] = {VERBS_PROTECT_MR, VERBS_PROTECT_WINDOW};
    for (uint32_t p = 0; p < 2; p++) {
        uint32_t failing = 1;
        for (;; failing++) {
            struct fabric_endpoint_attr attr = fake_attr();
            struct fabric_endpoint *made = NULL;
            fake_begin(protections[p]);
            fake.failing = failing;
            int error = verbs_endpoint_create(&fabric.base, &attr, &made);
            if (error == 0) {
                fake_end(verbs_endpoint_of(made));
                break;
            }
            assert_true(error == -LH_EDEVICE || error == -LH_ENOMEM);
            assert_null(made);
            fake_end(NULL);
        }
        assert_true(failing > 20);
    }
}

/* Windows are the best; a device without them does with registrations, unless they were asked for. */
static void test_protection(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct fabric_endpoint *made;
    fake_begin(VERBS_PROTECT_ANY);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    assert_int_equal(endpoint->protection, VERBS_PROTECT_WINDOW);
    fake_end(endpoint);
    fake_begin(VERBS_PROTECT_ANY);
    fabric.memory.windows = false;
    endpoint = fake_open(&attr);
    assert_int_equal(endpoint->protection, VERBS_PROTECT_MR);
    fake_end(endpoint);
    fake_begin(VERBS_PROTECT_WINDOW);
    fabric.memory.windows = false;
    expect_error(verbs_endpoint_create(&fabric.base, &attr, &made), -LH_EDEVICE,
                 "no memory windows of type 1; use protect=mr");
    fake_end(NULL);
}

static void test_packets_that_the_port_does_not_take(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct fabric_endpoint *made;
    fake_begin(VERBS_PROTECT_MR);
    attr.mtu_bytes = 2 * FAKE_MTU;
    expect_error(verbs_endpoint_create(&fabric.base, &attr, &made), -LH_EMTU, "at most 1024");
    attr.mtu_bytes = ROCE_MTU_MIN / 2;
    expect_error(verbs_endpoint_create(&fabric.base, &attr, &made), -LH_EMTU, "MTU of 128 bytes");
    attr.mtu_bytes = ROCE_MTU_MIN;
    fake_end(fake_open(&attr));
}

/* ---- connect ----------------------------------------------------------------------------------------- */

static void test_each_queue_pair_has_its_peer(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct qp_info_endpoint info;
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    verbs_endpoint_info(&endpoint->base, &info);
    info.address[3] = 9;
    info.control_qpn = 900;
    for (uint32_t i = 0; i < 4; i++)
        info.qpn[i / 2][i % 2] = 901 + i;
    assert_int_equal(verbs_endpoint_connect(&endpoint->base, &info), 0);
    const struct fake_qp *control = (struct fake_qp *)endpoint->control.qp;
    assert_int_equal(control->peer_qpn, 900);
    assert_int_equal(control->qp.state, IBV_QPS_RTS);
    assert_int_equal(control->peer.raw[15], 9);
    assert_int_equal(control->peer.raw[11], 0xFF);
    for (uint32_t i = 0; i < 4; i++) {
        const struct fake_qp *qp = (struct fake_qp *)endpoint->channels[i % 2]->qp[i / 2];
        assert_int_equal(qp->peer_qpn, 901 + i);
        assert_int_equal(qp->qp.state, IBV_QPS_RTS);
    }
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_ESTATE, "already connected");
    fake_end(endpoint);
}

static void test_peers_that_do_not_fit(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct qp_info_endpoint right, info;
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    verbs_endpoint_info(&endpoint->base, &right);
    info = right;
    info.fabric = 99;
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_EHANDSHAKE, "peer fabric 99");
    info = right;
    info.family = 6;
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_EADDR, "address family mismatch");
    info = right;
    info.channels = 1;
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_EHANDSHAKE, "channel count mismatch");
    info = right;
    info.control_port++;
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_EADDR, "listens on UDP port 4792");
    info = right;
    info.control_qpn = 1 << 24;
    expect_error(verbs_endpoint_connect(&endpoint->base, &info), -LH_EHANDSHAKE, "out of range");
    fake.failing = fake.calls + 1;
    expect_error(verbs_endpoint_connect(&endpoint->base, &right), -LH_EDEVICE,
                 "cannot connect a queue pair");
    fake.failing = 0;
    right.fabric = QP_INFO_UDP; /* sockets that listen where hardware sends to */
    assert_int_equal(verbs_endpoint_connect(&endpoint->base, &right), 0);
    fake_end(endpoint);
}

/* ---- slots ------------------------------------------------------------------------------------------- */

static uint8_t memory[8192];

static struct fabric_slot slot_of(const struct verbs_region *region, uint64_t bytes, uint8_t generation)
{
    return (struct fabric_slot){.base = memory + 100,
                                .length_bytes = bytes,
                                .generation = generation,
                                .lkey = region ? region->mr->lkey : 12345};
}

/* A receive's own registration, of its buffer alone, lives until its end. */
static void test_a_registration_of_each_receive(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    struct fabric_slot slot = slot_of(region, 4000, 1);
    int before = fake.objects;
    assert_int_equal(verbs_slot_bind(&endpoint->base, 3, &slot, &key), 0);
    const struct ibv_mr *mr = endpoint->guards[3].mr;
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, slot.base);
    assert_int_equal(mr->length, 4000);
    assert_true(key.base == (uintptr_t)slot.base && key.rkey == mr->rkey);
    assert_int_equal(fake.objects, before + 1);
    verbs_slot_unbind(&endpoint->base, 3);
    assert_int_equal(fake.objects, before);
    assert_null(endpoint->guards[3].mr);
    slot.length_bytes = 0; /* an empty receive has no memory */
    assert_int_equal(verbs_slot_bind(&endpoint->base, 3, &slot, &key), 0);
    assert_int_equal(fake.objects, before);
    verbs_slot_unbind(&endpoint->base, 3);
    fake_end(endpoint);
}

static void test_receives_that_are_refused(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    struct fabric_slot slot = slot_of(NULL, 4000, 0);
    expect_error(verbs_slot_bind(&endpoint->base, 0, &slot, &key), -LH_EKEY, "not registered");
    region->writable = false;
    slot = slot_of(region, 4000, 0);
    expect_error(verbs_slot_bind(&endpoint->base, 0, &slot, &key), -LH_EKEY, "not writable");
    region->writable = true;
    fake.failing = fake.calls + 1;
    expect_error(verbs_slot_bind(&endpoint->base, 0, &slot, &key), -LH_EDEVICE,
                 "cannot register a receive of 4000 bytes");
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0); /* and then it can */
    verbs_slot_unbind(&endpoint->base, 0);
    fake_end(endpoint);
}

/* A window is bound to the buffer, and to nothing at its end; each bind has another key, and before keys come
 * back there is another window. */
static void test_a_window_of_each_slot(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    uint32_t keys[300];
    fake_begin(VERBS_PROTECT_WINDOW);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    int before = fake.objects;
    for (uint32_t i = 0; i < 300; i++) {
        struct fabric_slot slot = slot_of(region, 4000, i % 2);
        assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
        assert_true(fake.bound_address == (uintptr_t)slot.base && key.base == fake.bound_address);
        assert_int_equal(fake.bound_bytes, 4000);
        keys[i] = key.rkey;
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(keys[j], keys[i]);
        bool window = fake.objects == before + 1;
        assert_true(window);
        verbs_slot_unbind(&endpoint->base, 0);
        assert_true(fake.bound_bytes == 0 || fake.objects == before); /* closed, one way or the other */
    }
    fake_end(endpoint);
}

/* What came for an earlier receive of a slot and generation is dropped before that is bound again: it would
 * count for this one. */
static void test_what_came_for_an_earlier_receive(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    struct fabric_arrival arrivals[1];
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    fake_connect(endpoint);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    struct fabric_slot slot = slot_of(region, 4000, 1);
    const struct ibv_wc late = {
        .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .qp_num = endpoint->channels[0]->qp[1]->qp_num, .byte_len = 9};
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    fake_complete(endpoint->channels[0]->cqs.recv.cq, late);
    verbs_slot_unbind(&endpoint->base, 0);
    slot.generation = 0; /* the other one: its queue pair tells them apart */
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    assert_int_equal(stats.rx_inbox_overflow, 0);
    verbs_slot_unbind(&endpoint->base, 0);
    slot.generation = 1;
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    assert_int_equal(stats.rx_inbox_overflow, 1);
    assert_int_equal(verbs_poll(&endpoint->base, 0, arrivals, 1), 0);
    verbs_slot_unbind(&endpoint->base, 0);
    fake_end(endpoint);
}

/* Nothing is dropped once as many completions have been read as the queue holds: what came for the earlier
 * receive was among them, though the queue was never seen empty. */
static void test_what_was_read_since(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    attr.channels = 1;
    fake_begin(VERBS_PROTECT_MR);
    fabric.device.max_srq_wr = VERBS_RECV_DEPTH_MIN;
    struct verbs_endpoint *endpoint = fake_open(&attr);
    fake_connect(endpoint);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    struct fabric_slot slot = slot_of(region, 4000, 1);
    const struct ibv_wc arrival = {
        .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .qp_num = endpoint->channels[0]->qp[0]->qp_num, .byte_len = 9};
    const uint32_t queue = endpoint->sizes.recv_cqe;
    assert_in_range(2 * queue + 1, 1, FAKE_WAITING);
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    verbs_slot_unbind(&endpoint->base, 0);
    for (uint32_t i = 0; i < 2 * queue + 1; i++)
        fake_complete(endpoint->channels[0]->cqs.recv.cq, arrival);
    for (uint32_t read = 0; read < 2 * queue;) { /* the mark, and then as many as the queue holds */
        int got = verbs_poll(&endpoint->base, 0, arrivals, 1);
        assert_int_equal(got, 1);
        read += (uint32_t)got;
    }
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    assert_int_equal(stats.rx_inbox_overflow, 0);
    verbs_slot_unbind(&endpoint->base, 0);
    fake_end(endpoint);
}

/* The caller gets the reason, and the queue pair that binds goes on: the slots that are bound are closed
 * through it. */
static void test_a_window_that_cannot_be_bound(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    struct verbs_region *region;
    struct fabric_slot_key key;
    fake_begin(VERBS_PROTECT_WINDOW);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    assert_int_equal(verbs_memory_add(&fabric.memory, memory, sizeof memory, &region), 0);
    struct fabric_slot slot = slot_of(region, 4000, 0);
    struct ibv_qp *binder = endpoint->binder.qp;
    assert_int_equal(binder->state, IBV_QPS_RTS);
    fake.bind_error = ENOSPC;
    expect_error(verbs_slot_bind(&endpoint->base, 0, &slot, &key), -LH_EDEVICE,
                 "the device cannot bind a memory window: No space left on device");
    fake.bind_error = 0;
    fake.bind_status = IBV_WC_MW_BIND_ERR;
    binder->state = IBV_QPS_ERR; /* as a device does */
    expect_error(verbs_slot_bind(&endpoint->base, 0, &slot, &key), -LH_EDEVICE,
                 "the device refuses to bind a memory window: ");
    assert_int_equal(binder->state, IBV_QPS_RTS);
    fake.bind_status = IBV_WC_SUCCESS;
    assert_int_equal(verbs_slot_bind(&endpoint->base, 0, &slot, &key), 0);
    verbs_slot_unbind(&endpoint->base, 0);
    fake_end(endpoint);
}

/* ---- what the device tells --------------------------------------------------------------------------- */

static struct verbs_endpoint *after(struct ibv_async_event event)
{
    struct fabric_endpoint_attr attr = fake_attr();
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr);
    fake_connect(endpoint);
    switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        event.element.qp = endpoint->channels[1]->qp[0];
        break;
    case IBV_EVENT_CQ_ERR:
        event.element.cq = endpoint->control.cqs.recv.cq;
        break;
    case IBV_EVENT_SRQ_ERR:
        event.element.srq = endpoint->channels[0]->srq;
        break;
    default:
        break;
    }
    fake.events[fake.event_count++] = event;
    verbs_read_events(&fabric);
    assert_int_equal(fake.events_read, 1);
    assert_int_equal(fake.events_acknowledged, 1);
    return endpoint;
}

static void test_events_that_end_it(void **state)
{
    (void)state;
    static const struct {
        enum ibv_event_type type;
        const char *words;
    } cases[] = {
        {IBV_EVENT_DEVICE_FATAL, "device fake0 is gone ("},
        {IBV_EVENT_PORT_ERR, "port 1 of device fake0 went down ("},
        {IBV_EVENT_QP_FATAL, " of device fake0 failed ("},
        {IBV_EVENT_QP_REQ_ERR, "queue pair "},
        {IBV_EVENT_QP_ACCESS_ERR, "queue pair "},
        {IBV_EVENT_CQ_ERR, "a completion queue of device fake0 failed ("},
        {IBV_EVENT_SRQ_ERR, "a receive queue of device fake0 failed ("},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ibv_async_event event = {.event_type = cases[i].type};
        if (cases[i].type == IBV_EVENT_PORT_ERR)
            event.element.port_num = 1;
        struct verbs_endpoint *endpoint = after(event);
        expect_error(verbs_endpoint_check(endpoint), -LH_EDEVICE, cases[i].words);
        expect_error(verbs_endpoint_check(endpoint), -LH_EDEVICE, cases[i].words); /* and it stays */
        assert_int_equal(endpoint->control.qp->state, IBV_QPS_ERR);
        fake_end(endpoint);
    }
}

static void test_events_that_do_not_matter(void **state)
{
    (void)state;
    static const enum ibv_event_type types[] = {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
                                                IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        /* Of another port. */
        struct verbs_endpoint *endpoint =
            after((struct ibv_async_event){.event_type = types[i], .element.port_num = 2});
        assert_int_equal(verbs_endpoint_check(endpoint), 0);
        assert_int_equal(endpoint->control.qp->state, IBV_QPS_RTS);
        fake_end(endpoint);
    }
}

/* The first reason stays, for all endpoints of the device. */
static void test_the_first_event_counts(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = fake_attr();
    fake_begin(VERBS_PROTECT_MR);
    struct verbs_endpoint *endpoint = fake_open(&attr), *other = fake_open(&attr);
    struct fabric_endpoint *none;
    fake.events[fake.event_count++] = (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
    fake.events[fake.event_count++] =
        (struct ibv_async_event){.event_type = IBV_EVENT_PORT_ERR, .element.port_num = 1};
    verbs_read_events(&fabric);
    expect_error(verbs_endpoint_check(endpoint), -LH_EDEVICE, "device fake0 is gone (");
    expect_error(verbs_endpoint_check(other), -LH_EDEVICE, "device fake0 is gone (");
    expect_error(verbs_endpoint_create(&fabric.base, &attr, &none), -LH_EDEVICE, "device fake0 is gone (");
    verbs_endpoint_destroy(&other->base);
    fake_end(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_brings_to_its_peer),
        cmocka_unit_test(test_every_way_out),
        cmocka_unit_test(test_protection),
        cmocka_unit_test(test_packets_that_the_port_does_not_take),
        cmocka_unit_test(test_each_queue_pair_has_its_peer),
        cmocka_unit_test(test_peers_that_do_not_fit),
        cmocka_unit_test(test_a_registration_of_each_receive),
        cmocka_unit_test(test_receives_that_are_refused),
        cmocka_unit_test(test_a_window_of_each_slot),
        cmocka_unit_test(test_what_came_for_an_earlier_receive),
        cmocka_unit_test(test_what_was_read_since),
        cmocka_unit_test(test_a_window_that_cannot_be_bound),
        cmocka_unit_test(test_events_that_end_it),
        cmocka_unit_test(test_events_that_do_not_matter),
        cmocka_unit_test(test_the_first_event_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
