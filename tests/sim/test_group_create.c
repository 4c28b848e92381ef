/*
 * test_group_create.c - what ranks learn of each other before they connect, and what they cannot have
 * different.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "group/group.h"
#include "support/sim_engines.h"

#define RANKS 3u

/* Rank 2 gives another reliability. What its rank 0 gets of the cards. */
static int create(const char *inside, const char *across, const char *const *sites)
{
    struct sim_engines net;
    struct lh_group *groups[RANKS];
    struct lh_attr connections[2];
    uint8_t cards[RANKS][CREATE_CARD_BYTES];
    uint32_t longest;
    sim_engines_open(&net, "create", 1, "delay=1ms", RANKS, NULL);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct lh_group_attr attr;
        lh_group_attr_init(&attr);
        lh_attr_init(&connections[0]);
        lh_attr_init(&connections[1]);
        connections[0].reliability = r == 2 ? inside : NULL;
        connections[1].reliability = r == 2 ? across : NULL;
        attr.rank = r;
        attr.size = RANKS;
        attr.engine = net.engines[r];
        attr.site = sites[r];
        attr.attr = &connections[0];
        attr.attr_across = &connections[1];
        sim_engines_must(create_group(&attr, &groups[r], cards[r]), "create_group");
    }
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    int error = create_links(groups[0], &attr, cards[0], &longest);
    for (uint32_t r = 0; r < RANKS; r++)
        create_undo(groups[r]);
    sim_engines_close(&net);
    return error;
}

static void test_bounded(void **state)
{
    static const char *const one[] = {"a", "a", "a"}, *const two[] = {"a", "a", "b"},
                             *const each[] = {"a", "b", "c"};
    (void)state;
    assert_int_equal(create("sr-nack", "ec:mds", two), 0);
    assert_int_equal(create("bounded", NULL, one), -LH_EHANDSHAKE);
    assert_string_equal(lh_last_error(),
                        "group: reliability inside sites is bounded at rank 2, not at rank 0 "
                        "(give all ranks the same)");
    assert_int_equal(create(NULL, "bounded:deadline=20ms", two), -LH_EHANDSHAKE);
    assert_string_equal(
        lh_last_error(),
        "group: reliability between sites is bounded at rank 2, not at rank 0 (give all ranks "
        "the same)");
    assert_int_equal(create(NULL, "bounded", one), 0);  /* there are no such hops */
    assert_int_equal(create("bounded", NULL, each), 0); /* likewise */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
