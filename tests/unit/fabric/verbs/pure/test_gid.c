/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/gid.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
