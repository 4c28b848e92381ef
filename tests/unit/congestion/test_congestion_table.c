/*
 * test_congestion_table.c - the list of controllers, and the texts that choose one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/congestion_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

/* Every controller has what a connection calls, by a name of its own. */
static void test_entries(void **state)
{
    (void)state;
    assert_non_null(lh_congestions()[0]);
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++) {
        const struct lh_congestion *it = *c;
        assert_true(it->name && it->help && it->parse && it->start && it->on_feedback && it->on_timer &&
                    it->decide && it->view && it->state_bytes > 0);
        assert_int_equal(strcspn(it->name, ", "), strlen(it->name));
        bool credits = it->receiver_bytes > 0;
        assert_true((it->receiver_start != NULL) == credits &&
                    (it->receiver_on_arrived != NULL) == credits &&
                    (it->receiver_credit != NULL) == credits);
        for (const struct lh_congestion *const *other = c + 1; *other; other++)
            assert_string_not_equal((*other)->name, it->name);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++) {
        struct congestion_choice choice;
        assert_int_equal(congestion_choice_parse((*c)->name, &choice), 0);
        assert_ptr_equal(choice.controller, *c);
        assert_int_equal(lh_congestion_check((*c)->name), 0);
        char text[64];
        snprintf(text, sizeof text, "%s,", (*c)->name);
        assert_int_equal(lh_congestion_check(text), 0);
        snprintf(text, sizeof text, "%s,nonsense=1", (*c)->name);
        assert_int_equal(lh_congestion_check(text), -LH_EINVAL);
        assert_non_null(strstr(lh_last_error(), "nonsense=1"));
    }
}

static void test_unknown(void **state)
{
    (void)state;
    const char *const texts[] = {"", ",", "fixe", "fixedd", "fixed fixed", "FIXED", " fixed", "reno,x=1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct congestion_choice choice = {.params = {7}};
        assert_int_equal(congestion_choice_parse(texts[i], &choice), -LH_EINVAL);
        assert_true(choice.controller == NULL && choice.params[0] == 7);
        for (const struct lh_congestion *const *c = lh_congestions(); *c; c++)
            assert_non_null(strstr(lh_last_error(), (*c)->name));
    }
    assert_non_null(strstr(lh_last_error(), "\"reno\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
