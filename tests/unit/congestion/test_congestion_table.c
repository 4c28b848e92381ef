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

/* Who asks for no timer is not changed by one: those that share its calls have their own. */
static void test_no_timer(void **state)
{
    (void)state;
    static _Alignas(max_align_t) uint8_t room[65536], copy[sizeof room];
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++) {
        const struct lh_congestion_path path = {.mtu_bytes = 1024, .rate_bps = 1000000000};
        const uint8_t params[LH_CONGESTION_PARAMS] = {0};
        struct lh_congestion_decision decision;
        memset(room, 0, sizeof room);
        (*c)->start(room, &path, params, 1000);
        (*c)->decide(room, 2000, &decision);
        if (decision.next_ns != LH_TIME_NEVER)
            continue;
        memcpy(copy, room, sizeof room);
        (*c)->on_timer(room, 3000);
        assert_memory_equal(room, copy, sizeof room);
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

/* ---- controllers of programs ---- */

static struct lh_congestion own; /* as bbr, by other names */

static void refuse_own(const char *reason)
{
    assert_int_equal(lh_congestion_add(&own), -LH_EINVAL);
    if (!strstr(lh_last_error(), reason))
        fail_msg("\"%s\" lacks \"%s\"", lh_last_error(), reason);
    assert_int_equal(lh_congestion_check("mine"), -LH_EINVAL);
    struct congestion_choice bbr;
    assert_int_equal(congestion_choice_parse("bbr", &bbr), 0);
    own = *bbr.controller;
    own.name = "mine";
}

static void test_refused(void **state)
{
    (void)state;
    own.name = NULL;
    refuse_own("name invalid");
    own.name = "";
    refuse_own("name invalid");
    own.name = "mine,x";
    refuse_own("name invalid");
    own.name = "a-name-of-thirty-two-characters.";
    refuse_own("name invalid");
    own.name = "bbr";
    refuse_own("\"bbr\": name taken");
    own.decide = NULL;
    refuse_own("\"mine\": incomplete");
    own.view = NULL;
    refuse_own("\"mine\": incomplete");
    own.help = NULL;
    refuse_own("\"mine\": incomplete");
    own.state_bytes = 0;
    refuse_own("state of 0 bytes");
    own.state_bytes = 65537;
    refuse_own("state of 65537 bytes");
    own.receiver_bytes = 8;
    refuse_own("receiver's half");
}

static size_t count(void)
{
    size_t n = 0;
    while (lh_congestions()[n])
        n++;
    return n;
}

static void test_added(void **state)
{
    (void)state;
    static struct lh_congestion more[17];
    static char names[17][8];
    struct congestion_choice choice;
    const size_t before = count();
    const struct lh_congestion *first = lh_congestions()[0];
    own.name = "mine";
    own.on_sent = NULL;
    assert_int_equal(lh_congestion_add(&own), 0);
    assert_int_equal(lh_congestion_add(&own), 0); /* it is there */
    assert_int_equal(count(), before + 1);
    assert_ptr_equal(lh_congestions()[0], first);
    assert_int_equal(congestion_choice_parse("mine", &choice), 0);
    assert_ptr_equal(choice.controller, &own);
    assert_int_equal(congestion_wire_number(&own), 0);
    assert_int_equal(lh_congestion_check("mine,x=1"), -LH_EINVAL);
    for (size_t i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "own%zu", i);
        more[i] = own;
        more[i].name = names[i];
        assert_int_equal(lh_congestion_add(&more[i]), i < 15 ? 0 : -LH_ERANGE);
    }
    assert_int_equal(count(), before + 16);
    assert_int_equal(lh_congestion_check("bbr"), 0);
    for (unsigned number = 0; number <= UINT8_MAX; number++) {
        const struct lh_congestion *known = congestion_of_wire_number((uint8_t)number);
        assert_true(!known || known->start != own.start || strcmp(known->name, "bbr") == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries), cmocka_unit_test(test_no_timer), cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_refused),  cmocka_unit_test(test_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
