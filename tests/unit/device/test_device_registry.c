/*
 * test_device_registry.c - which fabrics a device name can pick.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/device_registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/device.h>

#define BYTES sizeof(struct fabric_ops)

static int open_none(const struct fabric_attr *attr, struct fabric **fabric)
{
    (void)attr;
    (void)fabric;
    return -LH_EUNSUPPORTED;
}

static const struct fabric_ops first = {.name = "first", .open = open_none};
static const struct fabric_ops second = {.name = "second", .open = open_none};
static const struct fabric_ops again = {.name = "first", .open = open_none};
static const struct fabric_ops udp = {.name = "udp", .open = open_none};

static int add(const struct fabric_ops *ops)
{
    return lh_fabric_register(ops, FABRIC_INTERFACE_VERSION, BYTES);
}

static size_t fabrics(void)
{
    size_t count = 0;
    while (fabric_at(count) != NULL) /* at most LH_FABRICS_MAX are registered */
        count++;
    return count;
}

static size_t built_in; /* before the first is registered */

static void test_interface_must_match(void **state)
{
    (void)state;
    assert_int_equal(lh_fabric_register(&first, FABRIC_INTERFACE_VERSION + 1, BYTES), -LH_EVERSION);
    assert_int_equal(lh_fabric_register(&first, FABRIC_INTERFACE_VERSION, BYTES + 8), -LH_EVERSION);
    assert_null(fabric_named("first", 5));
}

static void test_without_the_simulator_its_device_names_the_remedy(void **state)
{
    (void)state;
    struct fabric *fabric;
    assert_int_equal(fabric_open("sim:world/0", 0, &fabric), -LH_EDEVICE);
    assert_non_null(strstr(lh_last_error(), "liblonghaul-sim"));
    assert_int_equal(fabric_open("sim", 0, &fabric), -LH_EDEVICE);
    assert_int_equal(fabric_open("simple:1", 0, &fabric), -LH_EDEVICE);
    assert_null(strstr(lh_last_error(), "liblonghaul-sim"));
}

static void test_registered_fabric_is_picked_by_its_name(void **state)
{
    (void)state;
    struct fabric *fabric;
    assert_int_equal(fabric_open("first:here", 0, &fabric), -LH_EDEVICE);
    assert_int_equal(add(&first), 0);
    assert_int_equal(fabric_open("first:here", 0, &fabric), -LH_EUNSUPPORTED);
    assert_int_equal(fabric_open("firs:here", 0, &fabric), -LH_EDEVICE);
    assert_ptr_equal(fabric_named("first:", 5), &first);
}

static void test_same_again_changes_nothing_and_another_is_refused(void **state)
{
    (void)state;
    assert_int_equal(add(&first), 0);
    assert_int_equal(add(&second), 0);
    assert_int_equal(add(&first), 0);
    assert_int_equal(add(&again), -LH_EINVAL);
    assert_int_equal(add(&udp), -LH_EINVAL);
    assert_int_equal(fabrics(), built_in + 2);
}

static void test_limit(void **state)
{
    (void)state;
    static char names[LH_FABRICS_MAX][8];
    static struct fabric_ops many[LH_FABRICS_MAX];
    for (unsigned i = 0; i < LH_FABRICS_MAX; i++) {
        memcpy(names[i], "many-0", 7);
        names[i][5] = (char)('0' + i);
        many[i] = (struct fabric_ops){.name = names[i], .open = open_none};
        assert_int_equal(add(&many[i]), i < LH_FABRICS_MAX - 2 ? 0 : -LH_ENOMEM);
    }
    assert_int_equal(fabrics(), built_in + LH_FABRICS_MAX);
    struct lh_device *devices;
    size_t count;
    assert_int_equal(lh_devices(&devices, &count), 0);
    lh_devices_free(devices);
}

int main(void)
{
    built_in = fabrics();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interface_must_match),
        cmocka_unit_test(test_without_the_simulator_its_device_names_the_remedy),
        cmocka_unit_test(test_registered_fabric_is_picked_by_its_name),
        cmocka_unit_test(test_same_again_changes_nothing_and_another_is_refused),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
