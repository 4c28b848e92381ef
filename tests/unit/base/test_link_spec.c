/*
 * test_link_spec.c - the grammar of an emulated link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/link.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

static struct lh_link_spec parse(const char *text)
{
    struct lh_link_spec spec;
    assert_int_equal(lh_link_parse(text, &spec), 0);
    return spec;
}

/* Refused with that code; the spec stays; the words name these two texts. */
static void refuse(const char *text, int code, const char *word, const char *other)
{
    struct lh_link_spec spec = {.seed = 4711};
    assert_int_equal(lh_link_parse(text, &spec), code);
    assert_true(spec.seed == 4711);
    assert_non_null(strstr(lh_last_error(), word));
    assert_non_null(strstr(lh_last_error(), other));
}

static void test_nothing_is_none(void **state)
{
    (void)state;
    struct lh_link_spec empty = parse("");
    struct lh_link_spec none = parse("none");
    assert_true(lh_link_is_none(&empty) && lh_link_is_none(&none));
    assert_true(empty.seed == 1 && none.seed == 1);
}

static void test_each_key(void **state)
{
    (void)state;
    assert_true(parse("rtt=25ms").delay_ns == 12500000);
    assert_true(parse("delay=25ms").delay_ns == 25000000);
    assert_true(parse("delay=2500km").delay_ns == 12500000);
    assert_true(parse("delay=0.2km").delay_ns == 1000);
    assert_true(parse("rate=10Gbit").rate_bps == 10000000000);
    assert_true(parse("queue=1MiB").queue_bytes == 1048576);
    assert_true(parse("drop=tail").drop_tail);
    assert_true(parse("loss=1e-4").loss == 1e-4);
    assert_true(parse("burst=8").burst_packets == 8);
    assert_true(parse("burst=2.5").burst_packets == 2.5);
    assert_true(parse("reorder=1%").reorder == 0.01);
    assert_true(parse("duplicate=0.5").duplicate == 0.5);
    assert_true(parse("corrupt=1").corrupt == 1);
    assert_true(parse("jitter=3us").jitter_ns == 3000);
    assert_true(parse("seed=18446744073709551615").seed == UINT64_MAX);
    assert_true(parse("seed=0").seed == 0);
}

static void test_a_key_sets_nothing_else(void **state)
{
    (void)state;
    struct lh_link_spec spec = parse("loss=0.25");
    assert_true(spec.delay_ns == 0 && spec.jitter_ns == 0 && spec.rate_bps == 0 && spec.queue_bytes == 0);
    assert_true(spec.burst_packets == 0 && spec.reorder == 0 && spec.duplicate == 0 && spec.corrupt == 0);
    assert_true(spec.seed == 1 && !spec.drop_tail);
}

static void test_all_keys_in_any_order(void **state)
{
    (void)state;
    struct lh_link_spec spec = parse("seed=9,corrupt=1e-5,duplicate=1e-4,reorder=1e-3,burst=4,loss=1e-2,"
                                     "drop=tail,queue=64KiB,rate=1Gbit,jitter=1ms,delay=20ms");
    assert_true(spec.seed == 9 && spec.corrupt == 1e-5 && spec.duplicate == 1e-4 && spec.reorder == 1e-3);
    assert_true(spec.burst_packets == 4 && spec.loss == 1e-2 && spec.drop_tail &&
                spec.queue_bytes == 65536);
    assert_true(spec.rate_bps == 1000000000 && spec.jitter_ns == 1000000 && spec.delay_ns == 20000000);
}

/* Each key twice, with values that are right. */
static void test_doubled_keys(void **state)
{
    (void)state;
    static const char *const items[] = {"rtt=1ms",   "delay=1ms",   "rate=1Gbit", "queue=1MiB",
                                        "drop=tail", "loss=0.1",    "burst=2",    "reorder=0.1",
                                        "jitter=0",  "corrupt=0.1", "seed=5",     "duplicate=0.1"};
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        char text[64];
        size_t length = strlen(items[i]);
        memcpy(text, items[i], length);
        text[length] = ',';
        memcpy(text + length + 1, items[i], length + 1);
        refuse(text, -LH_EINVAL, "twice", items[i]);
    }
}

static void test_rtt_excludes_delay(void **state)
{
    (void)state;
    refuse("rtt=1ms,delay=1ms", -LH_EINVAL, "rtt=", "delay=");
    refuse("delay=0,rtt=0", -LH_EINVAL, "rtt=", "delay=");
}

static void test_unknown_keys_and_shapes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "foo=1",   "rtt",      "=1",     ",",        "rtt=1ms,",    ",rtt=1ms", "rtt=1ms,,seed=2",
        "RTT=1ms", " rtt=1ms", "rt=1ms", "rttt=1ms", "none,seed=2", "None"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], -LH_EINVAL, "key=value", "duplicate");
    refuse("foo=1", -LH_EINVAL, "foo=1", "unknown key");
}

static void test_bad_values(void **state)
{
    (void)state;
    refuse("rtt=", -LH_EINVAL, "rtt=", "25ms");
    refuse("rtt=5", -LH_EINVAL, "rtt=5", "unit");
    refuse("rtt=-5ms", -LH_EINVAL, "rtt=-5ms", "invalid time");
    refuse("delay=1000000000km", -LH_ERANGE, "delay=1000000000km", "720000000km");
    refuse("rtt=2500km", -LH_EINVAL, "rtt=2500km", "invalid time");
    refuse("delay=x", -LH_EINVAL, "delay=x", "invalid time");
    refuse("jitter=1", -LH_EINVAL, "jitter=1", "unit");
    refuse("rate=10GB", -LH_EINVAL, "rate=10GB", "Gbit");
    refuse("queue=1XiB", -LH_EINVAL, "queue=1XiB", "MiB");
    refuse("drop=head", -LH_EINVAL, "drop=head", "drop=tail");
    refuse("drop=", -LH_EINVAL, "drop=", "drop=tail");
    refuse("loss=2", -LH_ERANGE, "loss=2", "0 to 1");
    refuse("loss=a", -LH_EINVAL, "loss=a", "invalid ratio");
    refuse("reorder=101%", -LH_ERANGE, "reorder=101%", "0 to 1");
    refuse("duplicate=", -LH_EINVAL, "duplicate=", "invalid ratio");
    refuse("corrupt=-1", -LH_EINVAL, "corrupt=-1", "invalid ratio");
    refuse("burst=x", -LH_EINVAL, "burst=x", "example: 8");
    refuse("burst=8x", -LH_EINVAL, "burst=8x", "example: 8");
    refuse("burst=0", -LH_ERANGE, "burst=0", "1 to 1e9 packets");
    refuse("burst=0.99", -LH_ERANGE, "burst=0.99", "1 to 1e9 packets");
    refuse("burst=1000000001", -LH_ERANGE, "burst=1000000001", "1 to 1e9 packets");
    refuse("burst=1e999", -LH_ERANGE, "burst=1e999", "1 to 1e9 packets");
    refuse("seed=-1", -LH_EINVAL, "seed=-1", "example: 7");
    refuse("seed=1.5", -LH_EINVAL, "seed=1.5", "example: 7");
    refuse("seed=", -LH_EINVAL, "seed=", "example: 7");
    refuse("seed=7x", -LH_EINVAL, "seed=7x", "example: 7");
    refuse("seed=18446744073709551616", -LH_ERANGE, "seed=18446744073709551616", "64 bits");
    refuse("rtt=1ms,loss=5", -LH_ERANGE, "loss=5", "0 to 1");
}

static void test_times_are_at_most_an_hour(void **state)
{
    (void)state;
    assert_true(parse("delay=60min").delay_ns == LH_LINK_TIME_MAX);
    assert_true(parse("jitter=60min").jitter_ns == LH_LINK_TIME_MAX);
    assert_true(parse("rtt=60min").delay_ns == LH_LINK_TIME_MAX / 2);
    refuse("delay=3600000000001ns", -LH_ERANGE, "delay=3600000000001ns", "1h");
    refuse("jitter=3600000000001ns", -LH_ERANGE, "jitter=", "1h");
    refuse("rtt=61min", -LH_ERANGE, "rtt=61min", "1h");
}

/* A burst of N packets and one packet that passes: N / (N + 1). */
static void test_loss_must_leave_room_between_bursts(void **state)
{
    (void)state;
    assert_true(parse("loss=0.75,burst=3").loss == 0.75);
    refuse("loss=0.76,burst=3", -LH_ERANGE, "0.76", "burst");
    refuse("burst=3,loss=1", -LH_ERANGE, "loss=1", "burst");
    assert_true(parse("loss=1,burst=1").loss == 1);
}

static void test_long_values_are_refused(void **state)
{
    (void)state;
    char text[2000] = "seed=";
    memset(text + 5, '0', 63);
    assert_true(parse(text).seed == 0);
    memset(text + 5, '0', 64);
    refuse(text, -LH_EINVAL, "seed=000", "too long");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(text, -LH_EINVAL, "xxxx", "unknown key");
}

static void test_is_none_looks_at_every_effect(void **state)
{
    (void)state;
    static const char *const effects[] = {"rtt=2ns",   "jitter=1ns",     "rate=1bit",   "loss=1e-9",
                                          "corrupt=1", "duplicate=1e-9", "reorder=1e-9"};
    static const char *const no_effects[] = {"rtt=0",   "delay=0", "rate=0",    "jitter=0", "loss=0",
                                             "burst=8", "seed=2",  "queue=1MB", "drop=tail"};
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        struct lh_link_spec spec = parse(effects[i]);
        assert_false(lh_link_is_none(&spec));
    }
    for (size_t i = 0; i < sizeof no_effects / sizeof no_effects[0]; i++) {
        struct lh_link_spec spec = parse(no_effects[i]);
        assert_true(lh_link_is_none(&spec));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_none),
        cmocka_unit_test(test_each_key),
        cmocka_unit_test(test_a_key_sets_nothing_else),
        cmocka_unit_test(test_all_keys_in_any_order),
        cmocka_unit_test(test_doubled_keys),
        cmocka_unit_test(test_rtt_excludes_delay),
        cmocka_unit_test(test_unknown_keys_and_shapes),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_times_are_at_most_an_hour),
        cmocka_unit_test(test_loss_must_leave_room_between_bursts),
        cmocka_unit_test(test_long_values_are_refused),
        cmocka_unit_test(test_is_none_looks_at_every_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
