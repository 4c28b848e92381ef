/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/bounded_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/scheme.h>

#define TIMEOUT_NS (10 * LH_NS_PER_S)

/* A scheme of this build, as a user's own. */
static struct lh_scheme own_like(const char *name)
{
    const struct lh_scheme *const *at = lh_schemes();
    while (*at && strcmp((*at)->name, name) != 0)
        at++;
    assert_non_null(*at);
    struct lh_scheme own = **at;
    own.id = LH_SCHEME_ID_USER;
    own.name = "own";
    return own;
}

static void check(const struct lh_scheme *own, const char *reliability, lh_time deadline_ns,
                  const char *expected)
{
    struct lh_attr attr;
    struct bounded_lane lane;
    lh_attr_init(&attr);
    attr.scheme = own;
    attr.reliability = reliability;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), 0);
    assert_int_equal(lane.exists, expected != NULL);
    if (!expected)
        return;
    assert_string_equal(lane.reliability, expected);
    assert_int_equal(lane.deadline_ns, deadline_ns);
}

static void test_lanes(void **state)
{
    (void)state;
    const struct lh_scheme own = own_like("sr-nack");
    check(NULL, NULL, 0, NULL);
    check(NULL, "auto", 0, NULL);
    check(NULL, "sr-nack", 0, NULL);
    check(NULL, "bounded", LH_DEADLINE_AUTO, "bounded:deadline=none");
    check(NULL, "bounded:deadline=none", LH_DEADLINE_NONE, "bounded:deadline=none");
    check(NULL, "bounded:code=mds,deadline=20ms,k=32,m=2", 20 * LH_NS_PER_MS,
          "bounded:deadline=none,code=mds,k=32,m=2");
    check(&own, NULL, 0, NULL);
    check(&own, "bounded:deadline=20ms", 20 * LH_NS_PER_MS, "bounded:deadline=none");
}

/* What delivers parts of messages must not be taken for one that delivers all. */
static void test_refused(void **state)
{
    (void)state;
    const struct lh_scheme own = own_like("bounded");
    struct lh_attr attr;
    struct bounded_lane lane;
    lh_attr_init(&attr);
    attr.scheme = &own;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.reliability = "own:deadline=20ms";
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.scheme = NULL;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.reliability = "bounded:deadline=10s";
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lanes), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
