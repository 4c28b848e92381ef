/*
 * test_verbs_sizes.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "fabric/verbs/verbs_sizes.h"

/* ---- test gid -------------------------------------------------------------------------------------- */

static struct verbs_gid gid(uint32_t index, const char *text, bool roce_v2)
{
    struct verbs_gid made = {.index = index, .roce_v2 = roce_v2};
    assert_int_equal(inet_pton(AF_INET6, text, made.bytes), 1);
    return made;
}

static void test_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum verbs_gid_rank rank;
    } cases[] = {
        {"::", VERBS_GID_USELESS},
        {"::1", VERBS_GID_USELESS},
        {"ff02::1", VERBS_GID_USELESS},
        {"::ffff:127.0.0.1", VERBS_GID_USELESS},
        {"::ffff:0.0.0.0", VERBS_GID_USELESS},
        {"::ffff:224.0.0.1", VERBS_GID_USELESS},
        {"fe80::1", VERBS_GID_LINK_LOCAL},
        {"febf::1", VERBS_GID_LINK_LOCAL},
        {"::ffff:169.254.1.1", VERBS_GID_LINK_LOCAL},
        {"fec0::1", VERBS_GID_IPV6},
        {"fd77::2", VERBS_GID_IPV6},
        {"2001:db8::1", VERBS_GID_IPV6},
        {"::ffff:10.77.0.2", VERBS_GID_IPV4},
        {"::ffff:169.253.1.1", VERBS_GID_IPV4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verbs_gid v2 = gid(0, cases[i].text, true);
        struct verbs_gid v1 = gid(0, cases[i].text, false);
        assert_int_equal(verbs_gid_rank(&v2), cases[i].rank);
        assert_int_equal(verbs_gid_rank(&v1), VERBS_GID_USELESS);
    }
}

/* As a ConnectX has it: each address for RoCE v1 and v2. */
static void test_choice(void **state)
{
    (void)state;
    const struct verbs_gid gids[] = {
        gid(0, "fe80::1", false),    gid(1, "fe80::1", true),           gid(2, "2001:db8::7", false),
        gid(3, "2001:db8::7", true), gid(4, "::ffff:192.0.2.7", false), gid(5, "::ffff:192.0.2.7", true),
        gid(9, "2001:db8::8", true),
    };
    uint32_t count = sizeof gids / sizeof gids[0];
    assert_int_equal(verbs_gid_choose(gids, count, -1, 0), 5);
    assert_int_equal(verbs_gid_choose(gids, count, -1, 4), 5);
    assert_int_equal(verbs_gid_choose(gids, count, -1, 6), 3); /* the first of equals */
    assert_int_equal(verbs_gid_choose(gids, 4, -1, 0), 3);
    assert_int_equal(verbs_gid_choose(gids, 2, -1, 0), 1);
    assert_int_equal(verbs_gid_choose(gids, 2, -1, 4), -1);
    assert_int_equal(verbs_gid_choose(gids, 1, -1, 0), -1);
    assert_int_equal(verbs_gid_choose(gids, 0, -1, 0), -1);
    assert_int_equal(verbs_gid_choose(gids, count, 9, 0), 6); /* an index is no place in the list */
    assert_int_equal(verbs_gid_choose(gids, count, 9, 4), -1);
    assert_int_equal(verbs_gid_choose(gids, count, 4, 0), -1); /* RoCE v1 */
    assert_int_equal(verbs_gid_choose(gids, count, 1, 0), 1);  /* link-local, when it is asked for */
    assert_int_equal(verbs_gid_choose(gids, count, 6, 0), -1);
}

static void test_addresses(void **state)
{
    (void)state;
    struct verbs_gid v4 = gid(0, "::ffff:10.77.0.2", true);
    struct verbs_gid v6 = gid(0, "fd77::2", true);
    static const uint8_t wanted[16] = {10, 77, 0, 2};
    uint8_t address[16];
    uint8_t back[16];
    memset(address, 0xAA, sizeof address);
    assert_int_equal(verbs_gid_family(v4.bytes), 4);
    verbs_gid_to_address(v4.bytes, address);
    assert_memory_equal(address, wanted, 16);
    verbs_gid_from_address(4, address, back);
    assert_memory_equal(back, v4.bytes, 16);
    assert_int_equal(verbs_gid_family(v6.bytes), 6);
    verbs_gid_to_address(v6.bytes, address);
    assert_memory_equal(address, v6.bytes, 16);
    verbs_gid_from_address(6, address, back);
    assert_memory_equal(back, v6.bytes, 16);
}

static int run_gid(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test name ------------------------------------------------------------------------------------- */

static void test_good_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct verbs_name name;
    } cases[] = {
        {"", {.gid_index = -1}},
        {"rxe0", {.device = "rxe0", .gid_index = -1}},
        {"mlx5_0/1", {.device = "mlx5_0", .port = 1, .gid_index = -1}},
        {"mlx5_0/1/gid=3", {.device = "mlx5_0", .port = 1, .gid_index = 3}},
        {"mlx5_0/gid=0", {.device = "mlx5_0", .gid_index = 0}},
        {"rxe0/protect=mr", {.device = "rxe0", .gid_index = -1, .protection = VERBS_PROTECT_MR}},
        {"protect=window", {.gid_index = -1, .protection = VERBS_PROTECT_WINDOW}},
        {"rxe0/protect=indirect",
         {.device = "rxe0", .gid_index = -1, .protection = VERBS_PROTECT_INDIRECT}},
        {"mlx5_0/1/gid=3/protect=indirect/srq=no",
         {.device = "mlx5_0",
          .port = 1,
          .gid_index = 3,
          .protection = VERBS_PROTECT_INDIRECT,
          .own_queues = true}},
        {"rxe0/2/ip=6/srq=no",
         {.device = "rxe0", .port = 2, .gid_index = -1, .family = 6, .own_queues = true}},
        {"rxe0/srq=yes/ip=4", {.device = "rxe0", .gid_index = -1, .family = 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verbs_name name;
        assert_int_equal(verbs_name_parse(cases[i].text, &name), 0);
        assert_string_equal(name.device, cases[i].name.device);
        assert_int_equal(name.port, cases[i].name.port);
        assert_int_equal(name.gid_index, cases[i].name.gid_index);
        assert_int_equal(name.family, cases[i].name.family);
        assert_int_equal(name.protection, cases[i].name.protection);
        assert_int_equal(name.own_queues, cases[i].name.own_queues);
    }
}

/* The message names the part that is wrong. */
static void test_bad_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"rxe0/", "\"\""},
        {"rxe0/0", "\"0\""},
        {"rxe0/one", "\"one\""},
        {"rxe0/1/2", "\"2\""},
        {"rxe0/gid=", "\"gid=\""},
        {"rxe0/gid=-1", "\"gid=-1\""},
        {"rxe0/gid=65536", "\"gid=65536\""},
        {"rxe0/gid=99999999999999999999", "\"gid=9999"},
        {"rxe0/ip=5", "\"ip=5\""},
        {"rxe0/ip=46", "\"ip=46\""},
        {"rxe0/protect=best", "\"protect=best\""},
        {"rxe0/protect=", "\"protect=\""},
        {"rxe0/protect=indirec", "\"protect=indirec\""},
        {"rxe0/protect=indirect2", "\"protect=indirect2\""},
        {"rxe0/srq=1", "\"srq=1\""},
        {"rxe0/mtu=1024", "\"mtu=1024\""},
        {"a-device-whose-name-is-longer-than-the-kernel-lets-any-device-be/1", "\"a-device"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verbs_name name;
        assert_int_equal(verbs_name_parse(cases[i][0], &name), -LH_EDEVICE);
        assert_non_null(strstr(lh_last_error(), cases[i][1]));
    }
}

static void test_longest_device(void **state)
{
    (void)state;
    char text[VERBS_DEVICE_NAME_MAX + 1];
    struct verbs_name name;
    memset(text, 'm', sizeof text);
    text[VERBS_DEVICE_NAME_MAX] = '\0';
    assert_int_equal(verbs_name_parse(text, &name), -LH_EDEVICE);
    text[VERBS_DEVICE_NAME_MAX - 1] = '\0';
    assert_int_equal(verbs_name_parse(text, &name), 0);
    assert_string_equal(name.device, text);
}

static int run_name(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_names),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_longest_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sizing ----------------------------------------------------------------------------------- */

static const struct verbs_limits rxe = {
    .max_qp_wr = 1048576, .max_srq = 917503, .max_srq_wr = 1048576, .max_cqe = 32767};

static void test_soft_roce(void **state)
{
    (void)state;
    struct verbs_sizes sizes;
    assert_int_equal(verbs_sizes_choose(&rxe, 1, 4, 1024, false, &sizes), 0);
    assert_true(sizes.shared);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH);
    assert_int_equal(sizes.recv_cqe, VERBS_RECV_DEPTH);
    assert_int_equal(sizes.send_depth, VERBS_SEND_DEPTH);
    assert_int_equal(verbs_sizes_choose(&rxe, 1, 4, 1024, true, &sizes), 0);
    assert_false(sizes.shared);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH / 4);
    assert_int_equal(sizes.recv_cqe, VERBS_RECV_DEPTH);
}

static void test_too_little(void **state)
{
    (void)state;
    struct verbs_sizes sizes;
    struct verbs_limits limits = rxe;
    limits.max_srq = 3;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), 0);
    assert_false(sizes.shared); /* one a channel or none */
    limits.max_cqe = 4 * VERBS_RECV_DEPTH_MIN;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), 0);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH_MIN);
    limits.max_cqe--;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), -LH_EDEVICE);
    limits = rxe;
    limits.max_qp_wr = VERBS_SEND_DEPTH_MIN - 1;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), -LH_EDEVICE);
}

/* Whatever the device: what is posted fits what completes. */
static void test_nothing_overflows(void **state)
{
    (void)state;
    for (uint32_t cqe = 512; cqe <= 1u << 22; cqe = cqe * 2 - 1)
        for (uint32_t wr = 512; wr <= 1u << 20; wr = wr * 2 - 1)
            for (uint32_t channels = 1; channels <= 32; channels *= 2)
                for (uint32_t generations = 1; generations <= 8; generations++)
                    for (uint32_t own = 0; own < 2; own++) {
                        struct verbs_limits limits = {wr, 64, wr, cqe};
                        struct verbs_sizes s;
                        int error = verbs_sizes_choose(&limits, channels, generations, 4096, own != 0, &s);
                        assert_int_equal(error, 0);
                        uint32_t posted = s.recv_depth * (s.shared ? 1 : generations);
                        assert_in_range(posted, VERBS_RECV_DEPTH_MIN, s.recv_cqe);
                        assert_in_range(s.recv_cqe, 1, cqe);
                        assert_in_range(s.send_depth, VERBS_SEND_DEPTH_MIN, s.send_cqe);
                        assert_in_range(s.send_cqe, 1, cqe);
                        assert_in_range(s.send_depth, 1, wr);
                        assert_in_range(s.recv_depth, 1, wr);
                        assert_int_equal(s.recv_depth & (s.recv_depth - 1), 0);
                        assert_int_equal(s.send_depth & (s.send_depth - 1), 0);
                        assert_true((uint64_t)s.send_depth * channels * 4096 <= VERBS_BOUNCE_BYTES_MAX ||
                                    s.send_depth == VERBS_SEND_DEPTH_MIN);
                    }
}

static int run_sizing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soft_roce),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_nothing_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test tx limit --------------------------------------------------------------------------------- */

#define MINIMUM 128u
#define MAXIMUM 1024u

static void test_room(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, MINIMUM, MAXIMUM);
    assert_int_equal(tx_limit_room(&limit, 0, MINIMUM), MINIMUM);
    assert_false(limit.reached);
    assert_int_equal(tx_limit_room(&limit, MINIMUM - 1, 2), 1);
    assert_true(limit.reached);
    assert_int_equal(tx_limit_room(&limit, MINIMUM, 1), 0);
    assert_int_equal(tx_limit_room(&limit, MAXIMUM, 1), 0);
}

static void test_grows_when_dry(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, MINIMUM, MAXIMUM);
    lh_time now = LH_NS_PER_S;
    tx_limit_on_released(&limit, 0, 0, now); /* dry, but nobody had to wait */
    assert_int_equal(limit.writes, MINIMUM);
    for (uint32_t expected = 2 * MINIMUM; expected <= 4 * MAXIMUM; expected *= 2) {
        tx_limit_room(&limit, 0, MAXIMUM + 1);
        tx_limit_on_released(&limit, 0, 0, ++now);
        assert_int_equal(limit.writes, expected < MAXIMUM ? expected : MAXIMUM);
    }
}

static void test_falls_to_what_is_sent(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, MINIMUM, MAXIMUM);
    limit.writes = MAXIMUM;
    lh_time now = LH_NS_PER_S;
    tx_limit_on_released(&limit, 1000, 0, now);
    tx_limit_on_released(&limit, 1100, 5, now + TX_LIMIT_NS - 1);
    assert_int_equal(limit.writes, MAXIMUM);
    tx_limit_on_released(&limit, 1300, 5, now + TX_LIMIT_NS);
    assert_int_equal(limit.writes, 300);
    tx_limit_on_released(&limit, 1900, 5, now + 3 * TX_LIMIT_NS); /* 600 in two spans */
    assert_int_equal(limit.writes, 300);
    tx_limit_on_released(&limit, 1901, 5, now + 4 * TX_LIMIT_NS);
    assert_int_equal(limit.writes, MINIMUM);
    tx_limit_on_released(&limit, 901901, 5, now + 5 * TX_LIMIT_NS);
    assert_int_equal(limit.writes, MAXIMUM);
}

/* A device with a rate of its own, and a worker who comes round every `round_ns`: bytes wait about as long as
 * they may, and the device is busy. */
static void run_device(uint64_t writes_per_ms, lh_time round_ns)
{
    struct tx_limit limit;
    tx_limit_init(&limit, MINIMUM, MAXIMUM);
    uint64_t taken = 0;
    uint64_t released = 0;
    uint64_t credit = 0; /* in writes x ns */
    uint64_t sent_late = 0;
    lh_time now = 0;
    for (uint32_t round = 0; now < 200 * LH_NS_PER_MS; round++) {
        now += round_ns;
        credit += writes_per_ms * round_ns;
        uint64_t able = credit / LH_NS_PER_MS;
        uint64_t sent = able < taken - released ? able : taken - released;
        released += sent;
        credit = sent < able ? 0 : credit - able * LH_NS_PER_MS;
        if (now > 100 * LH_NS_PER_MS)
            sent_late += sent;
        tx_limit_on_released(&limit, released, (uint32_t)(taken - released), now);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        if (now > 100 * LH_NS_PER_MS && writes_per_ms < MINIMUM)
            assert_in_range(taken - released, 0, 2 * MINIMUM);
    }
    uint64_t possible = writes_per_ms * 100;
    assert_true(sent_late * 10 >= possible * 9);
}

static void test_devices(void **state)
{
    (void)state;
    run_device(10, 20 * LH_NS_PER_US);      /* Soft-RoCE, emulated */
    run_device(300, 20 * LH_NS_PER_US);     /* Soft-RoCE */
    run_device(3000, 20 * LH_NS_PER_US);    /* 100 Gbit/s of 4 KiB */
    run_device(12000, 10 * LH_NS_PER_US);   /* of 1 KiB */
    run_device(100, 3 * LH_NS_PER_MS / 10); /* a worker with much else to do */
}

static int run_tx_limit(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_grows_when_dry),
        cmocka_unit_test(test_falls_to_what_is_sent),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test tx ring ---------------------------------------------------------------------------------- */

#define WRITES 16u

static struct tx_batch batches[WRITES];

static struct tx_ring empty_ring(void)
{
    return (struct tx_ring){.batches = batches, .writes_max = WRITES};
}

static void test_released_in_order(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    tx_ring_push(&ring, 3); /* 0 */
    tx_ring_push(&ring, 1); /* 1 */
    tx_ring_push(&ring, 5); /* 2 */
    assert_int_equal(tx_ring_room(&ring), WRITES - 9);
    assert_true(tx_ring_complete(&ring, 1));
    assert_int_equal(ring.released, 0);
    assert_true(tx_ring_complete(&ring, 0));
    assert_int_equal(ring.released, 4);
    assert_true(tx_ring_complete(&ring, 2));
    assert_int_equal(ring.released, 9);
    assert_int_equal(ring.taken, 9);
    assert_int_equal(tx_ring_room(&ring), WRITES);
}

static void test_foreign_numbers(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    assert_false(tx_ring_complete(&ring, 0));
    tx_ring_push(&ring, 1);
    tx_ring_push(&ring, 1);
    assert_false(tx_ring_complete(&ring, 2));
    assert_false(tx_ring_complete(&ring, UINT64_MAX));
    assert_true(tx_ring_complete(&ring, 1));
    assert_false(tx_ring_complete(&ring, 1)); /* twice */
    assert_true(tx_ring_complete(&ring, 0));
    assert_false(tx_ring_complete(&ring, 0)); /* over */
    assert_int_equal(ring.released, 2);
}

static void test_full(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    for (uint32_t i = 0; i < WRITES; i++)
        tx_ring_push(&ring, 1);
    assert_int_equal(tx_ring_room(&ring), 0);
    assert_true(tx_ring_complete(&ring, WRITES - 1)); /* does not help: the oldest is in the way */
    assert_int_equal(tx_ring_room(&ring), 0);
    assert_true(tx_ring_complete(&ring, 0));
    assert_int_equal(tx_ring_room(&ring), 1);
}

/* Against a plain list: batches of any size, completed in any order, many times round. */
static void test_against_list(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    struct lh_prng prng;
    lh_prng_seed(&prng, 4711);
    static uint32_t size[20000];
    static bool done[20000];
    uint64_t pushed = 0;
    uint64_t first = 0;
    uint64_t released = 0;
    while (pushed < 20000) {
        uint32_t room = tx_ring_room(&ring);
        if (room > 0 && lh_prng_next(&prng) % 2 == 0) {
            size[pushed] = 1 + (uint32_t)(lh_prng_next(&prng) % room);
            tx_ring_push(&ring, size[pushed++]);
        } else if (first < pushed) {
            uint64_t number = first + lh_prng_next(&prng) % (pushed - first);
            assert_int_equal(tx_ring_complete(&ring, number), !done[number]);
            done[number] = true;
            while (first < pushed && done[first])
                released += size[first++];
        }
        assert_int_equal(ring.released, released);
        assert_int_equal(ring.oldest, first);
        assert_int_equal(ring.next, pushed);
    }
}

static int run_tx_ring(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released_in_order),
        cmocka_unit_test(test_foreign_numbers),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_against_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_gid() + run_name() + run_sizing() + run_tx_limit() + run_tx_ring();
}
