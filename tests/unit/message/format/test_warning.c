/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/format/warning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static const lh_time rtt_ns = 25 * LH_NS_PER_MS;

/* 2 Gbit/s x 25 ms: 6.25 MB. */
static struct lh_attr attr_of(uint64_t window_bytes, uint32_t slots, uint64_t slot_bytes)
{
    return (struct lh_attr){.mtu_bytes = 4096,
                            .rate_bps = 2000000000,
                            .window_bytes = window_bytes,
                            .slots = slots,
                            .slot_bytes = slot_bytes};
}

static uint32_t packet_bytes = 4096;

static void expect(const struct lh_attr *attr, lh_time rtt, const char *fabric, const char *text)
{
    char out[WARNING_MAX];
    const struct warning_facts facts = {fabric, rtt, packet_bytes};
    const char *warning = warning_format(attr, &facts, out);
    if (!text)
        assert_null(warning);
    else if (!warning || !strstr(warning, text))
        fail_msg("\"%s\" in: %s", text, warning ? warning : "(none)");
}

static void test_of_the_window(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(6250000, 64, 4 * MIB);
    expect(&attr, rtt_ns, NULL, NULL);
    attr.window_bytes--;
    expect(&attr, rtt_ns, NULL, "(use --window 6MiB)");
    attr.window_bytes = 3125000;
    expect(&attr, rtt_ns, NULL, "at most 50 % of the rate");
    expect(&attr, 0, NULL, NULL);
    attr.rate_bps = 0;
    expect(&attr, rtt_ns, NULL, NULL);
}

static void test_of_the_slots(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 4, MIB);
    expect(&attr, rtt_ns, NULL, "(use --slots 8)");
    attr.window_bytes = MIB;
    expect(&attr, rtt_ns, NULL, "(use --window 6MiB --slots 8)");
    attr.slot_bytes = 1024;
    expect(&attr, rtt_ns, NULL, "(use --window 6MiB --slot-size larger)");
}

/* The smaller of both is what is sent. */
static void test_of_the_link(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(MIB, 64, 4 * MIB);
    attr.link.rate_bps = 100000000;
    expect(&attr, rtt_ns, NULL, NULL);
    attr.rate_bps = 0;
    expect(&attr, 4 * rtt_ns, NULL, "--window 2MiB");
}

static void test_with_that_of_the_fabric(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 64, 4 * MIB);
    expect(&attr, rtt_ns, "small buffers", "small buffers");
    attr.window_bytes = MIB;
    expect(&attr, rtt_ns, "small buffers", "small buffers; window of 1MiB");
}

static void test_of_the_path_mtu(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 64, 4 * MIB);
    expect(&attr, rtt_ns, NULL, NULL);
    packet_bytes = 1024;
    expect(&attr, rtt_ns, NULL,
           "packets of MTU 4096 do not pass the path any more: each travels in 4 of 1024 bytes");
    expect(&attr, rtt_ns, NULL, "use --mtu 1024)");
    attr.window_bytes = MIB;
    expect(&attr, rtt_ns, "small buffers", "small buffers; packets of MTU 4096");
    expect(&attr, rtt_ns, "small buffers", "--mtu 1024); window of 1MiB");
    packet_bytes = 4096;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_the_window),   cmocka_unit_test(test_of_the_slots),
        cmocka_unit_test(test_of_the_link),     cmocka_unit_test(test_with_that_of_the_fabric),
        cmocka_unit_test(test_of_the_path_mtu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
