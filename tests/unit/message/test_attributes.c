/*
 * test_attributes.c - each bad value is refused by name; what is not set gets its default.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/attributes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/echo_scheme.h"

static struct lh_attr attr;

static int setup(void **state)
{
    (void)state;
    lh_attr_init(&attr);
    return 0;
}

static int check_and_complete(void)
{
    struct lh_attr checked;
    int error = attr_check(&attr, &checked);
    return error ? error : attr_complete(&checked);
}

/* The value that was wrong and a word of what would be right are both in the message. */
static void refused(const char *value, const char *remedy)
{
    assert_int_equal(check_and_complete(), -LH_EINVAL);
    if (!strstr(lh_last_error(), value) || !strstr(lh_last_error(), remedy))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", lh_last_error(), value, remedy);
    lh_attr_init(&attr);
}

static void bad_sizes(void **state)
{
    (void)state;
    static const uint32_t mtus[] = {1, 255, 128, 1000, 8960, UINT32_MAX};
    for (size_t i = 0; i < sizeof mtus / sizeof mtus[0]; i++) {
        attr.mtu_bytes = mtus[i];
        refused("mtu_bytes", "multiple of 64 from 256 to 8896");
    }
    attr.chunk_bytes = 255;
    refused("chunk_bytes 255", "256");
    attr.chunk_bytes = (1u << 30) + 1;
    refused("chunk_bytes 1073741825", "1073741824");
    attr.mtu_bytes = 4096;
    attr.chunk_bytes = 1024;
    refused("chunk_bytes 1024", "4096");
    attr.device = "sim:x/0"; /* whose MTU is 4096 when it is not set */
    attr.chunk_bytes = 1024;
    refused("chunk_bytes 1024", "4096");
    attr.chunk_bytes = 65536;
    attr.slot_bytes = 65536 - 4096;
    refused("slot_bytes 61440", "65536");
    attr.slot_bytes = (uint64_t)8 << 30;
    refused("slot_bytes 8589934592", "1073741824");
    attr.mtu_bytes = 1024;
    attr.slot_bytes = (uint64_t)1 << 30;
    refused("slot_bytes 1073741824", "268435456");
    attr.chunk_bytes = 65536;
    attr.window_bytes = 65535;
    refused("window_bytes 65535", "65536");
}

static void bad_counts(void **state)
{
    (void)state;
    attr.slots = 63;
    refused("slots 63", "power of two");
    attr.slots = 2048;
    refused("slots 2048", "1024");
    attr.channels = 33;
    refused("channels 33", "32");
    attr.generations = 9;
    refused("generations 9", "8");
    attr.peer_timeout_ns = LH_TIME_NEVER;
    refused("peer_timeout_ns 18446744073709551615", "a day");
    lh_attr_init(&attr);
    attr.spin_ns = LH_NS_PER_S + 1;
    refused("spin_ns 1000000001", "at most 1000000000 = 1 s, or LH_NO_SPIN");
    attr.workers = 65;
    refused("workers 65", "LH_NO_WORKERS");
    attr.coders = 65;
    refused("coders 65", "LH_NO_CODERS");
    attr.struct_bytes = 0;
    refused("struct_bytes 0", "lh_attr_init");
    attr.struct_bytes = sizeof attr + 8;
    refused("struct_bytes", "lh_attr_init");
}

static void a_path_file_has_a_name_that_can_be(void **state)
{
    (void)state;
    static char name[4097];
    memset(name, 'x', sizeof name - 1);
    lh_attr_init(&attr);
    attr.path_file = name;
    refused("path_file", "4095");
    name[4095] = 0;
    attr.path_file = name;
    assert_int_equal(check_and_complete(), 0);
}

static void bad_reliability(void **state)
{
    (void)state;
    attr.reliability = "tcp";
    refused("\"tcp\"", "sr-nack sr-rto");
    attr.reliability = "sr-nack2";
    refused("sr-nack2", "sr-nack");
    attr.reliability = "";
    refused("\"\"", "sr-nack");
    attr.reliability = "sr-rto,alpha=banana";
    refused("banana", "");
    attr.reliability = "ec:mds";
    attr.slots = 1;
    refused("slots 1", "at least 2");
    attr.reliability = "ec:mds";
    attr.mtu_bytes = 4096;
    attr.slot_bytes = 15 * 4096; /* 8 rows of parity, and as many that may be asked for */
    refused("slot_bytes 61440", "larger slots");
    attr.reliability = "ec:mds";
    attr.chunk_bytes = 1 << 20; /* the default slot is too small */
    refused("slot_bytes 4194304", "smaller chunks");
    attr.scheme = &echo_scheme;
    attr.reliability = "unknown";
    refused("unknown", "echo sr-nack");
    struct lh_scheme low = echo_scheme;
    low.id = LH_SCHEME_ID_USER - 1;
    attr.scheme = &low;
    refused("127", "128");
}

static void defaults(void **state)
{
    (void)state;
    struct lh_attr checked;
    assert_int_equal(attr_check(&attr, &checked), 0);
    assert_int_equal(checked.mtu_bytes, 0); /* checking does not fill */
    assert_int_equal(attr_complete(&checked), 0);
    assert_int_equal(checked.mtu_bytes, 1024);
    assert_int_equal(checked.chunk_bytes, 1024);
    assert_int_equal(checked.slot_bytes, 4 << 20);
    assert_int_equal(checked.slots, 64);
    assert_int_equal(checked.channels, 1);
    assert_int_equal(checked.generations, 4);
    assert_int_equal(checked.workers, 1);
    assert_int_equal(checked.coders, 1);
    assert_int_equal(checked.window_bytes, 64 << 20);
    assert_true(checked.peer_timeout_ns == 10 * LH_NS_PER_S);
    assert_int_equal(attr_check(NULL, &checked), 0);
    assert_int_equal(attr_complete(&checked), 0);
}

static void large_packets_where_they_fit(void **state)
{
    (void)state;
    static const char *const local[] = {"udp:[::1]", "udp:127.0.0.1", "udp:127.1.2.3", "sim:world/0"};
    static const char *const far[] = {"udp:10.0.0.1", "udp:[fd00::1]", "udp:[::2]", "mlx5_0"};
    for (size_t i = 0; i < 4; i++) {
        struct lh_attr checked = attr;
        checked.device = local[i];
        assert_int_equal(attr_complete(&checked), 0);
        assert_int_equal(checked.mtu_bytes, 4096);
        checked = attr;
        checked.device = far[i];
        assert_int_equal(attr_complete(&checked), 0);
        assert_int_equal(checked.mtu_bytes, 1024);
    }
}

static void edges_are_allowed(void **state)
{
    (void)state;
    attr.mtu_bytes = 256;
    attr.slots = 1;
    attr.slot_bytes = (uint64_t)256 << 18;
    assert_int_equal(check_and_complete(), 0);
    attr.mtu_bytes = 4096;
    attr.slots = 1024;
    attr.slot_bytes = (uint64_t)4096 << 18;
    attr.channels = 32;
    attr.generations = 8;
    attr.workers = LH_NO_WORKERS;
    assert_int_equal(check_and_complete(), 0);
    lh_attr_init(&attr);
    attr.chunk_bytes = 8 << 20; /* larger than the default slot, which grows with it */
    assert_int_equal(check_and_complete(), 0);
    attr.struct_bytes = offsetof(struct lh_attr, peer_timeout_ns); /* a program of an older library */
    attr.peer_timeout_ns = 1;
    struct lh_attr checked;
    assert_int_equal(attr_check(&attr, &checked), 0);
    assert_int_equal(checked.peer_timeout_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bad_sizes, setup),
        cmocka_unit_test_setup(bad_counts, setup),
        cmocka_unit_test_setup(a_path_file_has_a_name_that_can_be, setup),
        cmocka_unit_test_setup(bad_reliability, setup),
        cmocka_unit_test_setup(defaults, setup),
        cmocka_unit_test_setup(large_packets_where_they_fit, setup),
        cmocka_unit_test_setup(edges_are_allowed, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
