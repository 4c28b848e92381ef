/*
 * test_fabric.c - what the layers above know of a peer over sockets, and of one with RoCE hardware.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "fabric/udp/udp_state.h"

static void test_peer_traits(void **state)
{
    (void)state;
    const struct qp_info_endpoint sockets = {.fabric = QP_INFO_UDP}, hardware = {.fabric = QP_INFO_VERBS};
    struct fabric_peer_traits traits = endpoint_peer_traits(&sockets);
    assert_true(traits.may_be_translated && traits.shares_control_port && traits.drops_unread);
    traits = endpoint_peer_traits(&hardware);
    assert_false(traits.may_be_translated || traits.shares_control_port || traits.drops_unread);
}

static void test_udp_traits(void **state)
{
    (void)state;
    assert_true(fabric_udp_ops.outruns_path && fabric_udp_ops.local_is_direct);
    assert_ptr_equal(fabric_udp_ops.peer_traits, endpoint_peer_traits);
}

/* ---- what an endpoint is asked for ------------------------------------------------------------------ */

static struct lh_stats stats;

static struct fabric_endpoint_attr valid_attr(void)
{
    return (struct fabric_endpoint_attr){
        .channels = 2,
        .generations = 4,
        .stripe_packets = 1,
        .stats = &stats,
        .slots = 1u << 10,
        .slot_bytes = 1024u << 18,
        .mtu_bytes = 1024,
        .split = {.message_bits = 10, .offset_bits = 18, .fragment_bits = 4},
    };
}

static void refused(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    assert_string_equal(lh_last_error(), words);
}

static void shapes_are_checked(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = valid_attr();
    assert_int_equal(endpoint_check_shape(&attr), 0);
    attr.channels = QP_INFO_CHANNELS_MAX;
    attr.generations = QP_INFO_GENERATIONS_MAX;
    assert_int_equal(endpoint_check_shape(&attr), 0);
    attr.channels = attr.generations = 1;
    assert_int_equal(endpoint_check_shape(&attr), 0);
    char words[80];
    snprintf(words, sizeof words, "0 channels: out of range (1 to %u)", QP_INFO_CHANNELS_MAX);
    attr.channels = 0;
    refused(endpoint_check_shape(&attr), -LH_ERANGE, words);
    attr.channels = QP_INFO_CHANNELS_MAX + 1;
    assert_int_equal(endpoint_check_shape(&attr), -LH_ERANGE);
    attr.channels = 1;
    snprintf(words, sizeof words, "0 generations: out of range (1 to %u)", QP_INFO_GENERATIONS_MAX);
    attr.generations = 0;
    refused(endpoint_check_shape(&attr), -LH_ERANGE, words);
    attr.generations = QP_INFO_GENERATIONS_MAX + 1;
    assert_int_equal(endpoint_check_shape(&attr), -LH_ERANGE);
    attr.generations = 1;
    attr.stripe_packets = 0;
    refused(endpoint_check_shape(&attr), -LH_EINVAL, "stripe of 0 packets: out of range (at least 1)");
    attr.stripe_packets = 1;
    attr.stats = NULL;
    refused(endpoint_check_shape(&attr), -LH_EINVAL, "endpoint without counters");
}

static void tables_are_checked(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = valid_attr();
    assert_int_equal(endpoint_check_table(&attr), 0);
    attr.slots = 1;
    attr.slot_bytes = 1;
    assert_int_equal(endpoint_check_table(&attr), 0);
    attr.slots = 0;
    refused(endpoint_check_table(&attr), -LH_ERANGE,
            "0 message slots: out of range for 10 bits of the immediate (1 to 1024)");
    attr.slots = 1025;
    assert_int_equal(endpoint_check_table(&attr), -LH_ERANGE);
    attr.slots = 1024;
    attr.slot_bytes = 0;
    refused(endpoint_check_table(&attr), -LH_ERANGE,
            "messages of 0 bytes: out of range for 18 bits of the immediate (1 to 268435456)");
    attr.slot_bytes = 268435457;
    assert_int_equal(endpoint_check_table(&attr), -LH_ERANGE);
    static const struct immediate_split valid[] = {{16, 12, 4}, {0, 31, 1}, {1, 1, 30}};
    static const struct immediate_split invalid[] = {
        {17, 11, 4}, {0, 32, 0}, {10, 22, 0}, {10, 18, 5}, {10, 18, 3}};
    attr.slots = 1;
    attr.slot_bytes = 1;
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        attr.split = valid[i];
        assert_int_equal(endpoint_check_table(&attr), 0);
    }
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        attr.split = invalid[i];
        assert_int_equal(endpoint_check_table(&attr), -LH_EINVAL);
    }
    refused(endpoint_check_table(&attr), -LH_EINVAL,
            "immediate split 10+18+3: invalid (the bits must add up to 32)");
}

static void peers_are_checked(void **state)
{
    (void)state;
    const struct fabric_endpoint_attr attr = valid_attr();
    struct qp_info_endpoint peer = {.channels = 2, .generations = 4, .control_qpn = 1};
    assert_int_equal(endpoint_check_peer(&attr, &peer), 0);
    peer.channels = 3;
    refused(endpoint_check_peer(&attr, &peer), -LH_EHANDSHAKE,
            "channel count mismatch: peer 3, this side 2 (use the same on both)");
    peer.channels = 2;
    peer.generations = 3;
    refused(endpoint_check_peer(&attr, &peer), -LH_EHANDSHAKE,
            "generation count mismatch: peer 3, this side 4 (use the same on both)");
    for (uint32_t generation = 0; generation < 3; generation++)
        for (uint32_t channel = 0; channel < 2; channel++)
            peer.qpn[generation][channel] = 0xFFFFFF;
    assert_true(endpoint_check_qpns(&peer));
    static const uint32_t invalid[] = {0, 0x1000000};
    for (size_t i = 0; i < 2; i++) {
        peer.control_qpn = invalid[i];
        assert_false(endpoint_check_qpns(&peer));
        peer.control_qpn = 1;
        peer.qpn[2][1] = invalid[i];
        assert_false(endpoint_check_qpns(&peer));
        peer.qpn[2][1] = 1;
        peer.qpn[0][0] = invalid[i];
        assert_false(endpoint_check_qpns(&peer));
        peer.qpn[0][0] = 1;
    }
    assert_true(endpoint_check_qpns(&peer));
}

/* ---- devices, random bytes ---------------------------------------------------------------------------- */

/* Each is all zero but for its fabric, and those before it stay as they are. */
static void devices_are_added(void **state)
{
    (void)state;
    struct fabric_device_list list = {0};
    for (uint32_t i = 0; i < 40; i++) {
        static const struct lh_device blank;
        struct lh_device *device = fabric_device_add(&list, "long-name-of-a-fabric-that-does-not-fit-here");
        assert_non_null(device);
        assert_memory_equal((uint8_t *)device + sizeof device->fabric + offsetof(struct lh_device, fabric),
                            (const uint8_t *)&blank + sizeof device->fabric,
                            sizeof *device - sizeof device->fabric - offsetof(struct lh_device, fabric));
        assert_int_equal(strlen(device->fabric), sizeof device->fabric - 1);
        snprintf(device->fabric, sizeof device->fabric, "f%u", i);
    }
    assert_int_equal(list.count, 40);
    assert_false(list.failed);
    for (uint32_t i = 0; i < 40; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%u", i);
        assert_string_equal(list.devices[i].fabric, name);
    }
    free(list.devices);
}

/* All of it is written, and nothing behind it. */
static void random_bytes_fill_what_is_asked(void **state)
{
    (void)state;
    uint8_t bytes[3000] = {0};
    uint32_t zeros = 0;
    assert_int_equal(fabric_random(bytes, 2000), 0);
    for (uint32_t i = 0; i < 2000; i++)
        zeros += bytes[i] == 0;
    assert_in_range(zeros, 0, 100);
    for (uint32_t i = 2000; i < 3000; i++)
        assert_int_equal(bytes[i], 0);
    for (uint32_t i = 1900; i < 2000; i += 20)
        zeros += bytes[i] == 0 && bytes[i + 1] == 0 && bytes[i + 2] == 0 && bytes[i + 3] == 0 ? 1000 : 0;
    assert_in_range(zeros, 0, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(peers_are_checked),
        cmocka_unit_test(devices_are_added),
        cmocka_unit_test(random_bytes_fill_what_is_asked),
        cmocka_unit_test(test_peer_traits),
        cmocka_unit_test(test_udp_traits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
