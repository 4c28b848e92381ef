/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "netsim/config/config_keys.h"

static struct netsim_config config;

static int start(void **state)
{
    (void)state;
    netsim_config_init(&config);
    return 0;
}

static void sets(const char *key, const char *value)
{
    if (netsim_key_set(&config, key, value) != 0)
        fail_msg("%s = %s: %s", key, value, lh_last_error());
}

/* The words name key and value, and hold the remedy. */
static void refuses(int code, const char *key, const char *value, const char *remedy)
{
    struct netsim_config before = config;
    assert_int_equal(netsim_key_set(&config, key, value), -code);
    assert_memory_equal(&before, &config, sizeof config);
    if (!strstr(lh_last_error(), key) || !strstr(lh_last_error(), value) ||
        !strstr(lh_last_error(), remedy))
        fail_msg("\"%s\" lacks %s, %s or %s", lh_last_error(), key, value, remedy);
}

static void contradicts(int code, const char *words)
{
    assert_int_equal(netsim_config_check(&config), -code);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" lacks %s", lh_last_error(), words);
}

static void test_defaults_run(void **state)
{
    (void)state;
    assert_int_equal(netsim_config_check(&config), 0);
    assert_int_equal(config.topology.kind, NETSIM_TWO_HOSTS);
    assert_int_equal(config.topology.rate_bps, 100000000000u);
    assert_int_equal(config.topology.delay_ps, NETSIM_PS_PER_US);
    assert_int_equal(config.topology.core_rate_bps, 0);
    assert_int_equal(config.topology.core_delay_ps, NETSIM_NEVER);
    assert_int_equal(config.transport.window_bytes, NETSIM_WINDOW_BDP);
    assert_int_equal(config.transport.payload_bytes, 4096);
    assert_int_equal(config.workload.receiver, UINT32_MAX);
    assert_false(config.switches.pfc);
    assert_false(config.switches.spray);
    assert_true(config.switches.ecn_probability == 1);
    assert_true(config.transport.rto == 3);
    assert_int_equal(config.transport.rto_min_ps, 320 * NETSIM_PS_PER_US);
    assert_int_equal(config.transport.rto_low_ps, NETSIM_NEVER);
    assert_int_equal(config.transport.rto_high_ps, NETSIM_NEVER);
    assert_int_equal(config.transport.deadline_ps, NETSIM_NEVER);
    assert_null(config.topology.file.data);
}

static void test_every_key_is_described(void **state)
{
    (void)state;
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    assert_true(count > 40);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(netsim_key_find(keys[i].name), (int)i);
        assert_true(strlen(keys[i].name) <= 32);
        assert_true(strchr(keys[i].name, '.') != NULL);
        assert_true(*keys[i].kind != '\0' && *keys[i].help != '\0');
        assert_true((*keys[i].default_value == '\0') == (strcmp(keys[i].kind, "file") == 0));
    }
}

static void test_values(void **state)
{
    (void)state;
    sets("topology.kind", "two-datacenters");
    assert_int_equal(config.topology.kind, NETSIM_TWO_DATACENTERS);
    sets("topology.kind", "file");
    assert_int_equal(config.topology.kind, NETSIM_TOPOLOGY_FILE);
    sets("workload.kind", "poisson");
    assert_int_equal(config.workload.kind, NETSIM_POISSON);
    sets("workload.matrix", "inside");
    assert_int_equal(config.workload.matrix, NETSIM_INSIDE);
    sets("switch.routing", "spray");
    assert_true(config.switches.spray);
    sets("switch.routing", "ecmp");
    assert_false(config.switches.spray);
    sets("switch.pfc", "on");
    assert_true(config.switches.pfc);
    sets("workload.load", "30%");
    assert_true(config.workload.load == 0.3);
    sets("transport.window", "none");
    assert_int_equal(config.transport.window_bytes, 0);
    sets("transport.window", "1MiB");
    assert_int_equal(config.transport.window_bytes, 1048576);
    sets("transport.ack_priority", "7");
    assert_int_equal(config.transport.ack_priority, 7);
    assert_int_equal(config.transport.data_priority, 3); /* its neighbour */
    sets("topology.link", "loss=1e-4,burst=8,seed=7");
    assert_true(config.topology.faults.loss == 1e-4);
    sets("topology.link", "none");
    assert_true(lh_link_is_none(&config.topology.faults));
}

static void test_times(void **state)
{
    (void)state;
    sets("topology.delay", "20ps");
    assert_int_equal(config.topology.delay_ps, 20);
    sets("topology.delay", "1.5ns");
    assert_int_equal(config.topology.delay_ps, 1500);
    sets("topology.delay", "0");
    assert_int_equal(config.topology.delay_ps, 0);
    sets("topology.long_delay", "600km");
    assert_int_equal(config.topology.long_delay_ps, 3 * NETSIM_PS_PER_MS);
    sets("topology.long_delay", "3600s");
    refuses(LH_ERANGE, "topology.long_delay", "3600.1s", "60min");
    refuses(LH_ERANGE, "topology.long_delay", "99999999999999999999s", "60min");
    refuses(LH_EINVAL, "topology.delay", "1", "1us");
    refuses(LH_EINVAL, "topology.delay", "1 us", "1us");
    refuses(LH_EINVAL, "topology.delay", "", "1us");
    refuses(LH_EINVAL, "topology.core_delay", "near", "or same");
}

static void test_ranges(void **state)
{
    (void)state;
    sets("topology.k", "64");
    refuses(LH_ERANGE, "topology.k", "65", "2 to 64");
    sets("topology.k", "2");
    refuses(LH_ERANGE, "topology.k", "1", "2 to 64");
    refuses(LH_EINVAL, "topology.k", "4.0", "whole number");
    refuses(LH_EINVAL, "topology.k", "-4", "whole number");
    refuses(LH_ERANGE, "topology.k", "99999999999999999999", "2 to 64");
    refuses(LH_ERANGE, "topology.rate", "1kbit", "1Mbit");
    refuses(LH_EINVAL, "topology.rate", "100", "400Gbit");
    refuses(LH_EINVAL, "workload.bytes", "1M", "(1MB or 1MiB)");
    refuses(LH_EINVAL, "transport.window", "64k", "(64kB or 64KiB), or ");
    refuses(LH_ERANGE, "transport.ack_priority", "8", "0 to 7");
    refuses(LH_ERANGE, "transport.rto", "0.5", "1 to 1000000");
    refuses(LH_EINVAL, "transport.window", "large", "or bdp|none");
    refuses(LH_EINVAL, "workload.load", "half", "30%");
    refuses(LH_EINVAL, "switch.pfc", "yes", "off|on");
    refuses(LH_EINVAL, "switch.pfc", "o", "off|on");
    refuses(LH_EINVAL, "topology.kind", "tree", "fat-tree");
    refuses(LH_EINVAL, "topology.link", "loss=2%,rate=1Gbit", "topology.rate");
    refuses(LH_EINVAL, "topology.link", "queue=1MiB", "switch.buffer");
    refuses(LH_EINVAL, "topology.link", "burst=8", "needs loss=");
    refuses(LH_ERANGE, "workload.load", "50", "0 to 10; a half is 0.5 or 50%");
    refuses(LH_EINVAL, "topology.link", "losss=2%", "loss");
    /* "none" is kept as 0: a threshold of nothing must not turn into no threshold. */
    refuses(LH_EINVAL, "switch.alpha", "0", "a number above 0, or none");
    refuses(LH_EINVAL, "switch.alpha", "0.0", "a number above 0, or none");
    sets("switch.alpha", "0.0625");
    sets("switch.alpha", "none");
    assert_true(config.switches.alpha == 0);
}

static void is_unread(const char *key, const char *because)
{
    const char *found = netsim_key_unread(&config, key);
    if (because == NULL)
        assert_null(found);
    else
        assert_true(found != NULL && strcmp(found, because) == 0);
}

static void test_keys_that_nothing_reads(void **state)
{
    (void)state;
    static const struct netsim_text text = {.data = "", .name = "empty"};
    is_unread("switch.buffer", "topology.kind");
    is_unread("topology.k", "topology.kind");
    is_unread("topology.rate", NULL);
    is_unread("topology.link", NULL);
    is_unread("run.packets", NULL);
    is_unread("weather.wind", NULL);
    sets("topology.kind", "leaf-spine");
    is_unread("switch.buffer", NULL);
    is_unread("topology.k", "topology.kind");
    is_unread("topology.leaves", NULL);
    is_unread("topology.core_rate", NULL);
    is_unread("topology.long_rate", "topology.kind");
    is_unread("topology.change_from", "topology.change_rate");
    sets("topology.change_rate", "1Gbit");
    is_unread("topology.change_from", NULL);
    is_unread("switch.xoff", "switch.pfc");
    sets("switch.pfc", "on");
    is_unread("switch.xoff", NULL);
    sets("topology.kind", "file");
    is_unread("topology.link", "topology.kind");
    is_unread("topology.change_rate", "topology.kind");
    is_unread("transport.rto", NULL);
    is_unread("transport.dcqcn_gain", "transport.congestion");
    is_unread("transport.cnp", "transport.congestion");
    sets("transport.congestion", "dcqcn");
    is_unread("transport.dcqcn_gain", NULL);
    is_unread("transport.dcqcn_gains", NULL); /* there is no such key */
    is_unread("transport.rto_low", "transport.kind");
    is_unread("transport.nack", "transport.kind");
    sets("transport.kind", "irn");
    is_unread("transport.rto_low", NULL);
    is_unread("transport.rto", "transport.kind");
    is_unread("transport.reorder", "transport.kind");
    sets("transport.kind", "gbn");
    is_unread("transport.nack", NULL);
    is_unread("transport.rto", NULL);
    is_unread("transport.reorder", "transport.kind");
    sets("transport.kind", "sr");
    sets("transport.ack", "0");
    is_unread("transport.kind", "transport.ack");
    is_unread("transport.rto", "transport.ack");
    is_unread("transport.rto_min", "transport.ack");
    is_unread("transport.rate", NULL);
    is_unread("workload.load", "workload.kind");
    is_unread("workload.matrix", NULL);
    sets("workload.kind", "poisson");
    is_unread("workload.load", NULL);
    is_unread("workload.bytes", NULL);
    config.workload.sizes = text;
    is_unread("workload.bytes", "workload.sizes");
    is_unread("workload.senders", "workload.kind");
    sets("workload.kind", "incast");
    is_unread("workload.matrix", "workload.kind");
    is_unread("workload.pairs", "workload.kind");
    sets("workload.kind", "poisson");
    is_unread("workload.matrix", NULL);
    sets("workload.pairs", "a>b");
    is_unread("workload.matrix", "workload.pairs");
}

static void test_keys_of_the_real_protocol(void **state)
{
    (void)state;
    is_unread("transport.schemes", "transport.kind");
    sets("transport.kind", "longhaul");
    sets("transport.schemes", "sr-nack ec:mds,k=32,m=8");
    assert_string_equal(config.schemes, "sr-nack ec:mds,k=32,m=8");
    is_unread("transport.schemes", NULL);
    is_unread("transport.payload", NULL);
    is_unread("transport.window", NULL);
    is_unread("transport.rate", NULL);
    static const char *const models[] = {"header", "ack", "rto", "rto_min", "retries", "reorder"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char key[32];
        snprintf(key, sizeof key, "transport.%s", models[i]);
        is_unread(key, "transport.kind");
    }
}

static void test_keys_of_long_links(void **state)
{
    (void)state;
    is_unread("long.flow_control", "topology.kind");
    sets("topology.kind", "two-datacenters");
    is_unread("long.flow_control", NULL);
    is_unread("long.buffer", "long.flow_control");
    sets("long.flow_control", "pfc");
    is_unread("long.buffer", NULL);
    is_unread("long.xoff", NULL);
    is_unread("long.slot", "long.flow_control");
    sets("long.flow_control", "bifrost");
    is_unread("long.xoff", "long.flow_control");
    is_unread("long.slot", NULL);
    is_unread("long.overbook", NULL);
    is_unread("long.drift_period", "long.drift");
    sets("long.drift", "1us");
    is_unread("long.drift_period", NULL);
    is_unread("long.pfc_refresh", "long.flow_control");
    is_unread("long.signal_loss", NULL);
    is_unread("long.signal_burst", "long.signal_loss");
    is_unread("long.mute_from", "long.mute_for");
    sets("long.flow_control", "none");
    is_unread("long.signal_loss", "long.flow_control");
    is_unread("long.mute_for", "long.flow_control");
    sets("long.flow_control", "cbfc");
    is_unread("long.credit_refresh", NULL);
}

/* With some topology and workload, and everything switched on. */
static void test_every_key_is_read_somewhere(void **state)
{
    (void)state;
    static const struct netsim_text text = {.data = "", .name = "empty"};
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    sets("switch.pfc", "on");
    sets("switch.ecn_max", "1MB");
    sets("switch.credits", "1MB");
    sets("transport.congestion", "dcqcn");
    sets("topology.change_rate", "1Gbit");
    sets("long.drift", "1us");
    sets("long.signal_loss", "1%");
    sets("long.mute_for", "1us");
    sets("disturb.stragglers", "1%");
    sets("disturb.burst", "1MB");
    sets("disturb.flap", "1us");
    for (size_t i = 0; i < count; i++) {
        unsigned read = 0;
        for (unsigned kinds = 0; kinds < 7 * 5 * 2 * 6 * 6; kinds++) {
            config.topology.kind = kinds % 7;
            config.workload.kind = kinds / 7 % 6;
            config.workload.sizes = kinds / 42 % 2 ? text : (struct netsim_text){0};
            config.transport.kind = kinds / 84 % 5;
            config.longs.control = kinds / 420;
            read += netsim_key_unread(&config, keys[i].name) == NULL;
        }
        if (read == 0)
            fail_msg("nothing ever reads %s", keys[i].name);
    }
}

static void test_unknown_keys(void **state)
{
    (void)state;
    refuses(LH_EINVAL, "switch.bufer", "", "did you mean switch.buffer?");
    refuses(LH_EINVAL, "swich.pfc", "", "did you mean switch.pfc?");
    refuses(LH_EINVAL, "buffer", "", "did you mean switch.buffer?");
    refuses(LH_EINVAL, "run.rounds", "", "did you mean workload.rounds?");
    refuses(LH_EINVAL, "weather.wind", "", "lists them");
    refuses(LH_EINVAL, "", "", "lists them");
}

static void test_contradictions(void **state)
{
    (void)state;
    sets("long.drift", "100us");
    sets("long.drift_period", "200us");
    contradicts(LH_EINVAL, "long.drift_period 200us");
    contradicts(LH_EINVAL, "set more than 200us");
    sets("long.drift_period", "200002ns");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("switch.ecn_min", "100kB");
    contradicts(LH_EINVAL, "switch.ecn_max");
    sets("switch.ecn_max", "99kB");
    contradicts(LH_EINVAL, "swap them");
    sets("switch.ecn_max", "100kB");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("switch.xon", "1MiB");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("switch.pfc", "on");
    contradicts(LH_EINVAL, "lower xon");
    sets("switch.xoff", "17MiB");
    contradicts(LH_EINVAL, "lower xoff");
    sets("switch.xoff", "1MiB");
    sets("long.port_buffer", "1MB");
    contradicts(LH_EINVAL, "long.port_buffer (1000000)");
    sets("switch.credits", "100");
    contradicts(LH_EINVAL, "switch.credits");
    sets("switch.pfc", "off");
    contradicts(LH_ERANGE, "switch.credits 100");
    sets("switch.credits", "318KiB");
    sets("switch.credit_step", "321331"); /* 325,632 less a packet and two blocks */
    contradicts(LH_EINVAL, "switch.credit_step 321331");
    sets("switch.credit_step", "321330");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("switch.credit_step", "packet");
    sets("switch.credits", "none");
    sets("long.port_buffer", "100");
    contradicts(LH_ERANGE, "long.port_buffer 100");
    sets("long.port_buffer", "shared");
    sets("switch.buffer", "4173");
    contradicts(LH_ERANGE, "4174");
    sets("switch.buffer", "4174");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("switch.queue", "4173");
    contradicts(LH_ERANGE, "4174");
    sets("switch.queue", "none");
    sets("transport.payload", "65000");
    sets("transport.header", "500");
    sets("switch.buffer", "1MiB");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("transport.rto_low", "400us");
    sets("transport.kind", "irn");
    assert_int_equal(netsim_config_check(&config), 0); /* rto_high follows */
    sets("transport.rto_high", "320us");
    contradicts(LH_EINVAL, "swap them");
    sets("transport.rto_high", "400us");
    sets("transport.congestion", "dcqcn");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("transport.dcqcn_gain", "0");
    contradicts(LH_ERANGE, "transport.dcqcn_gain 0");
    sets("transport.dcqcn_gain", "1");
    sets("transport.ack", "0");
    contradicts(LH_EINVAL, "set transport.ack");
    sets("transport.congestion", "fixed");
    contradicts(LH_EINVAL, "set transport.ack");
    sets("transport.congestion", "none");
    assert_int_equal(netsim_config_check(&config), 0);
    sets("workload.kind", "poisson");
    sets("workload.load", "0");
    contradicts(LH_ERANGE, "workload.load");
}

static void test_files_are_given_and_used(void **state)
{
    (void)state;
    const struct netsim_text text = {"x", 1, "x.txt"};
    sets("topology.kind", "file");
    contradicts(LH_EINVAL, "topology.file is missing");
    config.topology.file = text;
    assert_int_equal(netsim_config_check(&config), 0);
    sets("topology.kind", "dumbbell");
    contradicts(LH_EINVAL, "topology.file is set, but unused");
    config.topology.file.data = NULL;
    sets("workload.kind", "flows");
    contradicts(LH_EINVAL, "workload.flows is missing");
    config.workload.flows = text;
    assert_int_equal(netsim_config_check(&config), 0);
    config.workload.sizes = text;
    contradicts(LH_EINVAL, "workload.sizes is set, but unused");
    sets("workload.kind", "poisson");
    contradicts(LH_EINVAL, "workload.flows is set, but unused");
}

static void test_texts_are_kept(void **state)
{
    (void)state;
    struct lh_netsim_config *owned = NULL;
    char text[] = "host a";
    assert_int_equal(lh_netsim_config_create(&owned), 0);
    assert_int_equal(lh_netsim_config_text(owned, "topology.file", "net.txt", text, strlen(text)), 0);
    const struct netsim_config *values = netsim_config_values(owned);
    text[0] = 'X';
    assert_string_equal(values->topology.file.data, "host a");
    assert_int_equal(values->topology.file.bytes, 6);
    assert_string_equal(values->topology.file.name, "net.txt");
    assert_int_equal(lh_netsim_config_set(owned, "topology.file", "host b\n"), 0);
    assert_string_equal(values->topology.file.data, "host b\n");
    assert_string_equal(values->topology.file.name, "topology.file");
    assert_int_equal(lh_netsim_config_text(owned, "topology.k", "x", "4", 1), -LH_EINVAL);
    assert_int_equal(lh_netsim_config_text(owned, "topology.fil", "x", "4", 1), -LH_EINVAL);
    assert_int_equal(lh_netsim_config_set(owned, "topology.k", "6"), 0);
    assert_int_equal(values->topology.k, 6);
    assert_int_equal(netsim_key_set(&config, "topology.file", "x"), -LH_EINVAL);
    assert_int_equal(lh_netsim_config_text(owned, "workload.sizes", NULL, NULL, 0), 0);
    assert_string_equal(values->workload.sizes.data, "");
    assert_int_equal(values->workload.sizes.bytes, 0);
    assert_string_equal(values->workload.sizes.name, "workload.sizes");
    assert_int_equal(lh_netsim_config_text(owned, "workload.sizes", NULL, NULL, 1), -LH_EINVAL);
    assert_string_equal(values->workload.sizes.data, "");
    lh_netsim_config_destroy(owned);
    lh_netsim_config_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_defaults_run, start),
        cmocka_unit_test_setup(test_every_key_is_described, start),
        cmocka_unit_test_setup(test_values, start),
        cmocka_unit_test_setup(test_times, start),
        cmocka_unit_test_setup(test_ranges, start),
        cmocka_unit_test_setup(test_keys_that_nothing_reads, start),
        cmocka_unit_test_setup(test_keys_of_long_links, start),
        cmocka_unit_test_setup(test_keys_of_the_real_protocol, start),
        cmocka_unit_test_setup(test_every_key_is_read_somewhere, start),
        cmocka_unit_test_setup(test_unknown_keys, start),
        cmocka_unit_test_setup(test_contradictions, start),
        cmocka_unit_test_setup(test_files_are_given_and_used, start),
        cmocka_unit_test_setup(test_texts_are_kept, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
