/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_names),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_longest_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
