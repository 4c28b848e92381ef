/*
 * Watching packets: of one link, of several, of all, and no longer; who else wants to watch is told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/netsim.h>

#define LINKS_MAX 16u

static struct lh_netsim *simulation;
static uint64_t seen[LINKS_MAX];

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    uint64_t *counts = context;
    counts[packet->link]++;
}

static void on_other_packet(void *context, const struct lh_netsim_packet *packet)
{
    on_packet(context, packet);
}

/* Each of four hosts sends to another one, through two switches. */
static int start(void **state)
{
    (void)state;
    struct lh_netsim_config *config = NULL;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    assert_int_equal(lh_netsim_config_set(config, "topology.kind", "dumbbell"), 0);
    assert_int_equal(lh_netsim_config_set(config, "topology.hosts", "2"), 0);
    assert_int_equal(lh_netsim_create(config, 1, &simulation), 0);
    lh_netsim_config_destroy(config);
    assert_int_equal(lh_netsim_links_count(simulation), 10);
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        seen[i] = 0;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    lh_netsim_destroy(simulation);
    return 0;
}

static void watches(uint32_t link)
{
    assert_int_equal(lh_netsim_watch(simulation, link, on_packet, seen), 0);
}

/* Runs to the end: what was seen is what these links sent, and nothing of others. */
static void sees(uint32_t links_bits)
{
    struct lh_netsim_link link;
    assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX), 1);
    for (uint32_t i = 0; i < lh_netsim_links_count(simulation); i++) {
        assert_int_equal(lh_netsim_link(simulation, i, &link), 0);
        if (i < 4) /* a host's, which sends data */
            assert_true(link.sent_packets > 0);
        assert_int_equal(seen[i], (links_bits >> i & 1) != 0 ? link.sent_packets : 0);
    }
}

static void test_one_link(void **state)
{
    (void)state;
    watches(1);
    sees(1u << 1);
}

static void test_a_second_link_is_added(void **state)
{
    (void)state;
    watches(1);
    watches(3);
    sees(1u << 1 | 1u << 3);
}

static void test_all_links(void **state)
{
    (void)state;
    watches(2);
    watches(UINT32_MAX);
    sees(UINT32_MAX);
}

static void test_no_longer(void **state)
{
    (void)state;
    watches(UINT32_MAX);
    assert_int_equal(lh_netsim_watch(simulation, 0, NULL, NULL), 0);
    sees(0);
}

static void test_another_watcher_waits(void **state)
{
    (void)state;
    uint64_t others[LINKS_MAX] = {0};
    watches(1);
    assert_int_equal(lh_netsim_watch(simulation, 2, on_other_packet, seen), -LH_EINVAL);
    assert_int_equal(lh_netsim_watch(simulation, 2, on_packet, others), -LH_EINVAL);
    assert_int_equal(lh_netsim_watch(simulation, 10, on_packet, seen), -LH_ERANGE);
    assert_int_equal(lh_netsim_watch(simulation, UINT32_MAX, NULL, NULL), 0);
    assert_int_equal(lh_netsim_watch(simulation, 2, on_other_packet, seen), 0);
    sees(1u << 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_link, start, stop),
        cmocka_unit_test_setup_teardown(test_a_second_link_is_added, start, stop),
        cmocka_unit_test_setup_teardown(test_all_links, start, stop),
        cmocka_unit_test_setup_teardown(test_no_longer, start, stop),
        cmocka_unit_test_setup_teardown(test_another_watcher_waits, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
