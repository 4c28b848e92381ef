/*
 * test_udp_queues.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/udp/udp_queues.h"
#include "wire/roce_packet.h"

/* ---- test inbox ------------------------------------------------------------------------------------ */

#define INBOXES 16u
#define MANY    100000u

/* Of data. */
#define POOL                                                                                               \
    {                                                                                                      \
        .packet_bytes = UDP_INBOX_PACKET_BYTES                                                             \
    }

static const union udp_address from = {.v4 = {.sin_family = AF_INET, .sin_port = 7}};

static bool put(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t value)
{
    uint8_t data[UDP_INBOX_PACKET_BYTES];
    memcpy(data, &value, sizeof value);
    const struct udp_part part = {
        .from = &from, .data = data, .bytes = 4 + value % 9, .place = value, .marked = value % 2 != 0};
    return udp_inbox_put(pool, inbox, &part) != UDP_PUT_REFUSED;
}

static void assert_next(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t value)
{
    struct udp_packet *packet = udp_inbox_take(inbox);
    uint32_t got;
    assert_non_null(packet);
    memcpy(&got, packet->data, sizeof got);
    assert_int_equal(got, value);
    assert_int_equal(packet->bytes, 4 + value % 9);
    assert_int_equal(packet->place, value);
    assert_int_equal(packet->marked, value % 2 != 0);
    assert_memory_equal(&packet->from, &from, sizeof from);
    udp_packet_return(pool, packet);
}

static void test_in_order(void **state)
{
    (void)state;
    struct udp_packet_pool pool = POOL;
    struct udp_inbox inbox = {0};
    uint32_t in = 0, out = 0;
    assert_null(udp_inbox_take(&inbox));
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < 1 + round % 7; i++)
            assert_true(put(&pool, &inbox, in++));
        for (uint32_t i = 0; i < round % 5 && out < in; i++)
            assert_next(&pool, &inbox, out++);
        assert_int_equal(udp_inbox_waiting(&inbox), in - out);
    }
    udp_inbox_clear(&pool, &inbox);
    assert_int_equal(udp_inbox_waiting(&inbox), 0);
    udp_pool_free(&pool);
}

/* Whoever puts knows when the owner may be asleep: when it has taken all. */
static void test_first(void **state)
{
    (void)state;
    struct udp_packet_pool pool = POOL;
    struct udp_inbox inbox = {0};
    const struct udp_part part = {.from = &from, .data = (const uint8_t *)"text", .bytes = 4};
    for (uint32_t round = 0; round < 3; round++) {
        assert_int_equal(udp_inbox_put(&pool, &inbox, &part), UDP_PUT_FIRST);
        assert_int_equal(udp_inbox_put(&pool, &inbox, &part), UDP_PUT_MORE);
        udp_packet_return(&pool, udp_inbox_take(&inbox));
        /* It has one left, and may have seen that there were no more. */
        assert_int_equal(udp_inbox_put(&pool, &inbox, &part), UDP_PUT_FIRST);
        udp_inbox_clear(&pool, &inbox);
    }
    udp_pool_free(&pool);
}

/* Some owners that never read leave room: one that reads gets its packets. */
static void test_hogs_leave_room(void **state)
{
    (void)state;
    static struct udp_packet_pool pool = POOL;
    static struct udp_inbox hogs[INBOXES];
    struct udp_inbox reads = {0};
    for (uint32_t h = 0; h < INBOXES; h++) {
        uint32_t held = 0;
        while (put(&pool, &hogs[h], held))
            held++;
        assert_true(held > 0);
        if (h == 0)
            assert_in_range(held, UDP_POOL_PACKETS / 6, UDP_POOL_PACKETS / UDP_INBOX_SHARE);
        assert_false(udp_inbox_has_room(&pool, &hogs[h], 1));
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(put(&pool, &reads, i));
            assert_next(&pool, &reads, i);
        }
    }
    assert_true(atomic_load(&pool.in_use) < UDP_POOL_PACKETS);
    assert_true(put(&pool, &reads, 1));
    udp_inbox_clear(&pool, &reads);
    for (uint32_t h = 0; h < INBOXES; h++)
        udp_inbox_clear(&pool, &hogs[h]);
    assert_int_equal(atomic_load(&pool.in_use), 0);
    udp_pool_free(&pool);
}

/* Above half of the pool its writer waits while readers take some, and not for those that take none. */
static void test_pool_has_room(void **state)
{
    (void)state;
    static struct udp_packet_pool pool = POOL;
    static struct udp_inbox inboxes[INBOXES];
    uint32_t held = 0;
    for (; udp_pool_has_room(&pool, 1); held++)
        assert_true(put(&pool, &inboxes[held % INBOXES], held));
    assert_int_equal(held, UDP_POOL_PACKETS / 2);
    udp_packet_return(&pool, udp_inbox_take(&inboxes[0]));
    assert_true(put(&pool, &inboxes[0], held++));
    assert_true(udp_pool_has_room(&pool, 1)); /* as many as before: nobody takes any */
    assert_false(udp_pool_has_room(&pool, 1));
    udp_packet_return(&pool, udp_inbox_take(&inboxes[0]));
    assert_true(udp_pool_has_room(&pool, 1));
    for (uint32_t i = 0; i < 2; i++)
        assert_true(put(&pool, &inboxes[0], held++));
    for (uint32_t i = 0; i < 3; i++) /* others have their turns first */
        assert_false(udp_pool_has_room(&pool, 4));
    udp_packet_return(&pool, udp_inbox_take(&inboxes[1]));
    for (uint32_t i = 0; i < 4; i++)
        assert_false(udp_pool_has_room(&pool, 4));
    assert_true(udp_pool_has_room(&pool, 4));
    for (uint32_t i = 0; i < INBOXES; i++)
        udp_inbox_clear(&pool, &inboxes[i]);
    assert_true(udp_pool_has_room(&pool, 1));
    udp_pool_free(&pool);
}

/* Packets of a pool of another size lie apart, too. */
static void test_packet_bytes(void **state)
{
    (void)state;
    struct udp_packet_pool pool = {.packet_bytes = 33};
    struct udp_inbox inbox = {0};
    uint8_t data[33];
    const struct udp_part part = {.from = &from, .data = data, .bytes = sizeof data};
    for (uint32_t i = 0; i < 100; i++) {
        memset(data, (int)i, sizeof data);
        assert_int_not_equal(udp_inbox_put(&pool, &inbox, &part), UDP_PUT_REFUSED);
    }
    for (uint32_t i = 0; i < 100; i++) {
        struct udp_packet *packet = udp_inbox_take(&inbox);
        memset(data, (int)i, sizeof data);
        assert_int_equal(packet->bytes, sizeof data);
        assert_memory_equal(packet->data, data, sizeof data);
        udp_packet_return(&pool, packet);
    }
    udp_pool_free(&pool);
}

struct both {
    struct udp_packet_pool pool;
    struct udp_inbox inboxes[2];
};

struct reader {
    struct both *both;
    uint32_t index;
};

static void *read_all(void *context)
{
    const struct reader *reader = context;
    for (uint32_t next = 0; next < MANY;) { /* the test's time limit ends what hangs */
        struct udp_packet *packet = udp_inbox_take(&reader->both->inboxes[reader->index]);
        if (packet == NULL) {
            sched_yield();
            continue;
        }
        uint32_t got;
        memcpy(&got, packet->data, sizeof got);
        assert_int_equal(got, next++);
        udp_packet_return(&reader->both->pool, packet);
    }
    return NULL;
}

/* One writer, a reader each. */
static void test_threads(void **state)
{
    (void)state;
    struct both *both = calloc(1, sizeof *both);
    assert_non_null(both);
    both->pool.packet_bytes = UDP_INBOX_PACKET_BYTES;
    struct reader readers[2] = {{both, 0}, {both, 1}};
    pthread_t threads[2];
    uint32_t next[2] = {0};
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    while (next[0] < MANY || next[1] < MANY) {
        bool any = false;
        for (uint32_t i = 0; i < 2; i++) {
            if (next[i] < MANY && put(&both->pool, &both->inboxes[i], next[i])) {
                next[i]++;
                any = true;
            }
        }
        if (!any)
            sched_yield();
    }
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&both->pool.in_use), 0);
    udp_pool_free(&both->pool);
    free(both);
}

static int run_inbox(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),        cmocka_unit_test(test_first),
        cmocka_unit_test(test_hogs_leave_room), cmocka_unit_test(test_pool_has_room),
        cmocka_unit_test(test_packet_bytes),    cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test prefix ----------------------------------------------------------------------------------- */

/*
 * The cached start of an iCRC is the computed one, for every IP ID, length and port, in any
 * order.
 */

static void check(struct icrc_flow *flow)
{
    static const uint32_t lengths[] = {60, 60, 4132, 61};
    static const uint16_t ports[] = {49152, 49153, 49153, 65535};
    struct udp_prefix prefix = {0};
    for (uint32_t i = 0; i < 4; i++) {
        flow->source_port = ports[i];
        for (uint32_t turn = 0; turn < 2; turn++) /* computed, then cached */
            for (uint32_t id = 0; id <= 2 * UINT8_MAX; id++) {
                uint32_t expected = icrc_begin(flow, lengths[i], flow->ipv4 ? (uint16_t)id : 0, true);
                assert_int_equal(udp_prefix_get(&prefix, flow, lengths[i], ports[i], id), expected);
            }
    }
}

static void test_ipv4(void **state)
{
    (void)state;
    struct icrc_flow flow = {.ipv4 = true};
    flow.source[0] = 192;
    check(&flow);
}

static void test_ipv6(void **state)
{
    (void)state;
    struct icrc_flow flow = {0};
    flow.source[15] = 1;
    check(&flow);
}

static int run_prefix(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ipv4), cmocka_unit_test(test_ipv6)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test qpn table -------------------------------------------------------------------------------- */

#define ENDPOINTS 40u
#define QPS       256u

/* Stands for an endpoint, of which the table keeps the address only. */
static struct udp_endpoint *endpoint(uint32_t index)
{
    static uint8_t stand_in[ENDPOINTS];
    return (struct udp_endpoint *)(void *)&stand_in[index];
}

static void test_add_find_remove(void **state)
{
    (void)state;
    struct qpn_table table = {0};
    static uint32_t qpns[ENDPOINTS][QPS];
    assert_null(qpn_table_find(&table, 5));
    for (uint32_t e = 0; e < ENDPOINTS; e++) {
        for (uint32_t i = 0; i < QPS; i++) {
            struct udp_qp qp = {
                .endpoint = endpoint(e), .channel = (uint8_t)i, .generation = (uint8_t)(i % 7)};
            assert_int_equal(qpn_table_add(&table, &qp), 0);
            assert_in_range(qp.qpn, 2, ROCE_QPN_MASK - 1);
            qpns[e][i] = qp.qpn;
        }
    }
    assert_int_equal(table.count, ENDPOINTS * QPS);
    for (uint32_t removed = 0; removed <= ENDPOINTS; removed++) {
        for (uint32_t e = 0; e < ENDPOINTS; e++) {
            for (uint32_t i = 0; i < QPS; i++) {
                const struct udp_qp *found = qpn_table_find(&table, qpns[e][i]);
                if (e < removed) {
                    assert_null(found);
                    continue;
                }
                assert_non_null(found);
                assert_ptr_equal(found->endpoint, endpoint(e));
                assert_int_equal(found->channel, i);
                assert_int_equal(found->generation, i % 7);
            }
        }
        for (uint32_t i = 0; removed < ENDPOINTS && i < QPS; i++)
            qpn_table_remove(&table, qpns[removed][i]);
        if (removed < ENDPOINTS)
            qpn_table_remove(&table, qpns[removed][0]); /* it is gone already */
    }
    assert_int_equal(table.count, 0);
    assert_int_equal(table.capacity, 64); /* and the memory of the others */
    qpn_table_free(&table);
}

static void test_unused_numbers(void **state)
{
    (void)state;
    struct qpn_table table = {0};
    struct udp_qp qp = {.endpoint = endpoint(0)};
    assert_int_equal(qpn_table_add(&table, &qp), 0);
    assert_null(qpn_table_find(&table, 0));
    assert_null(qpn_table_find(&table, 1));
    assert_null(qpn_table_find(&table, ROCE_QPN_MASK));
    assert_null(qpn_table_find(&table, qp.qpn ^ 1));
    qpn_table_free(&table);
}

static int run_qpn_table(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_find_remove),
        cmocka_unit_test(test_unused_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test socket slots ----------------------------------------------------------------------------- */

#define NONE UDP_SOCKET_SLOTS_MAX

static void test_taken_left_taken(void **state)
{
    (void)state;
    static struct udp_socket_slots socket_slots;
    const lh_time now = LH_NS_PER_S;
    assert_int_equal(udp_socket_slots_free(&socket_slots, now), NONE);
    for (uint32_t i = 0; i < UDP_SOCKET_SLOTS_MAX; i++) {
        udp_socket_slots_add(&socket_slots);
        assert_int_equal(udp_socket_slots_free(&socket_slots, now), i);
        udp_socket_slots_take(&socket_slots, i);
    }
    assert_int_equal(udp_socket_slots_free(&socket_slots, now), NONE);
    udp_socket_slots_leave(&socket_slots, 5, now);
    assert_int_equal(udp_socket_slots_free(&socket_slots, now), NONE);
    assert_int_equal(udp_socket_slots_free(&socket_slots, now + UDP_SOCKET_SLOT_IDLE_NS - 1), NONE);
    assert_int_equal(udp_socket_slots_free(&socket_slots, now + UDP_SOCKET_SLOT_IDLE_NS), 5);
}

/* Whoever was active since the last sweep stays; of the others the one that has been quiet longest goes,
 * once. */
static void test_the_quietest_leaves(void **state)
{
    (void)state;
    static struct udp_socket_slots socket_slots;
    lh_time now = LH_NS_PER_S;
    for (uint32_t i = 0; i < 3; i++) {
        udp_socket_slots_add(&socket_slots);
        udp_socket_slots_take(&socket_slots, i);
    }
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now), NONE); /* a new owner is active */
    udp_socket_slot_mark_active(&socket_slots.socket_slots[0]);
    udp_socket_slot_mark_active(&socket_slots.socket_slots[1]);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now += 1), NONE); /* 2 is quiet from here */
    udp_socket_slot_mark_active(&socket_slots.socket_slots[0]);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now += 1), NONE); /* 1 */
    udp_socket_slot_mark_active(&socket_slots.socket_slots[0]);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + UDP_SOCKET_SLOT_QUIET_NS - 2), NONE);
    udp_socket_slot_mark_active(&socket_slots.socket_slots[0]);
    now += UDP_SOCKET_SLOT_QUIET_NS;
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now), 2);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now), 1);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + 10 * UDP_SOCKET_SLOT_QUIET_NS), 0);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + 10 * UDP_SOCKET_SLOT_QUIET_NS),
                     NONE); /* all are asked already */
    udp_socket_slots_leave(&socket_slots, 2, now);
    udp_socket_slots_take(&socket_slots, 2);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + 20 * UDP_SOCKET_SLOT_QUIET_NS), NONE);
}

static void test_active_again(void **state)
{
    (void)state;
    static struct udp_socket_slots socket_slots;
    lh_time now = LH_NS_PER_S;
    udp_socket_slots_add(&socket_slots);
    udp_socket_slots_take(&socket_slots, 0);
    udp_socket_slots_sweep(&socket_slots, now);
    udp_socket_slots_sweep(&socket_slots, now + 1);
    udp_socket_slot_mark_active(&socket_slots.socket_slots[0]);
    now += 2 * UDP_SOCKET_SLOT_QUIET_NS;
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now), NONE);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + 1), NONE); /* it counts from here */
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + UDP_SOCKET_SLOT_QUIET_NS), NONE);
    assert_int_equal(udp_socket_slots_sweep(&socket_slots, now + 1 + UDP_SOCKET_SLOT_QUIET_NS), 0);
}

static int run_slots(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_left_taken),
        cmocka_unit_test(test_the_quietest_leaves),
        cmocka_unit_test(test_active_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_inbox() + run_prefix() + run_qpn_table() + run_slots();
}
