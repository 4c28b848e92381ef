/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/scheme_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire_numbers.h"

static void test_each_scheme_is_whole(void **state)
{
    (void)state;
    const struct lh_scheme *const *all = lh_schemes();
    size_t count = 0;
    for (; all[count] != NULL; count++) {
        const struct lh_scheme *scheme = all[count];
        assert_non_null(scheme->name);
        assert_null(strchr(scheme->name, ','));
        assert_true(scheme->help != NULL && scheme->help[0] != '\0');
        assert_in_range(scheme->id, 1, LH_SCHEME_ID_USER - 1);
        assert_true(scheme->parse != NULL && scheme->params_valid != NULL);
        assert_true(scheme->sender_bytes != NULL && scheme->sender_start != NULL);
        assert_true(scheme->sender_on_message != NULL && scheme->sender_step != NULL);
        assert_true(scheme->receiver_bytes != NULL && scheme->receiver_start != NULL);
        assert_true(scheme->receiver_on_message != NULL && scheme->receiver_step != NULL);
        uint8_t params[LH_SCHEME_PARAMS];
        assert_int_equal(scheme->parse("", params), 0);
        assert_true(scheme->params_valid(params));
        for (size_t other = 0; other < count; other++) {
            assert_int_not_equal(all[other]->id, scheme->id);
            assert_string_not_equal(all[other]->name, scheme->name);
        }
    }
    assert_string_equal(all[0]->name, "sr-nack"); /* the default comes first */
    assert_true(count >= 2);
}

static void test_ids_stay(void **state)
{
    (void)state;
    static const char *const names[] = {"sr-nack", "sr-rto", "ec:mds", "ec:xor"};
    for (uint8_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(lh_schemes()[i]->name, names[i]);
        assert_int_equal(lh_schemes()[i]->id, i + 1);
    }
}

/* Each entry has a name, a help line and a predictor; machines are those of lh_schemes(). */
static void test_each_entry_is_whole(void **state)
{
    (void)state;
    size_t machines = 0, count = 0;
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++, count++) {
        const struct lh_model_entry *shown = &(*e)->shown;
        assert_ptr_equal(lh_model_schemes()[count], shown);
        assert_true(shown->name && shown->help && (*e)->predictor);
        assert_ptr_equal(scheme_table_named(shown->name, strlen(shown->name)), *e);
        assert_ptr_equal(scheme_table_kind(shown->kind), *e); /* no other has this kind */
        assert_ptr_equal(scheme_table_machines(shown->name, strlen(shown->name)), shown->machines);
        assert_true((*e)->parameters || shown->machines); /* somebody reads its parameters */
        assert_int_equal(shown->codes, (*e)->predictor->parity_chunks != NULL);
        for (const struct scheme_entry *const *other = scheme_table(); other < e; other++)
            assert_true(!(*e)->candidates || !(*other)->candidates ||
                        (*e)->planner_rank != (*other)->planner_rank);
        if (!shown->machines)
            continue;
        machines++;
        assert_string_equal(shown->machines->name, shown->name);
        assert_string_equal(shown->machines->help, shown->help);
        assert_int_equal(shown->machines->coding != NULL, shown->codes);
    }
    assert_null(lh_model_schemes()[count]);
    for (size_t place = 0; place < machines; place++)
        assert_non_null(lh_schemes()[place]);
    assert_null(lh_schemes()[machines]);
}

/* A flag is of one scheme; a scheme of the caller's own has none. What auto weighs is of the scheme, and is
 * valid. */
static void test_what_others_read_of_entries(void **state)
{
    (void)state;
    uint16_t flags = 0;
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++) {
        const struct lh_model_entry *shown = &(*e)->shown;
        assert_int_equal(flags & (*e)->announced, 0);
        flags |= (*e)->announced;
        assert_true(shown->machines || (!(*e)->announced && !(*e)->automatic));
        if (shown->machines)
            assert_int_equal(scheme_table_announced(shown->machines), (*e)->announced);
        for (const char *const *text = (*e)->automatic; text && *text; text++) {
            struct lh_model_scheme scheme;
            assert_int_equal(lh_model_scheme_parse(*text, &scheme), 0);
            assert_int_equal(scheme.kind, shown->kind);
        }
    }
    assert_int_equal(scheme_table_announcements(), flags);
    assert_int_equal(flags, WIRE_ANNOUNCES_HYBRID);
    const struct lh_scheme own = {.name = "hybrid", .id = LH_SCHEME_ID_USER};
    assert_int_equal(scheme_table_announced(&own), 0);
}

static void test_which_send_parity(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool codes;
    } cases[] = {{"ideal", false},
                 {"sr-nack", false},
                 {"ec:mds", true},
                 {"ec:xor,k=8,m=2", true},
                 {"hybrid", true},
                 {"bounded,deadline=20ms", false},
                 {"bounded,deadline=20ms,code=mds,k=32,m=2", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lh_model_scheme scheme;
        assert_int_equal(lh_model_scheme_parse(cases[i].text, &scheme), 0);
        assert_int_equal(lh_model_scheme_codes(&scheme), cases[i].codes);
    }
}

/* What a transfer takes, the model takes: the planner can say what to expect of it. */
static void test_model_takes_what_machines_take(void **state)
{
    (void)state;
    static const char *const parameters[] = {"",
                                             "alpha=0.25",
                                             "alpha=100",
                                             "k=1,m=1",
                                             "k=254,m=1",
                                             "m=3,k=7",
                                             "spread=65535,beta=100",
                                             "beta=0.01,fallback=sr,spread=1",
                                             "fallback=ir",
                                             "k=4,m=4"};
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme; scheme++)
        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
            uint8_t params[LH_SCHEME_PARAMS];
            struct lh_model_scheme model;
            char text[96];
            if ((*scheme)->parse(parameters[i], params) != 0)
                continue;
            snprintf(text, sizeof text, "%s%s%s", (*scheme)->name, *parameters[i] ? "," : "",
                     parameters[i]);
            if (lh_model_scheme_parse(text, &model) != 0)
                fail_msg("%s: %s", text, lh_last_error());
        }
}

/* ---- longhaul(7) ------------------------------------------------------------------------------------- */

static char page[100000];

/* Reads the list of schemes. */
static char *read_list(void)
{
    const char *root = getenv("LH_SOURCE_DIR");
    char path[4096];
    if (!root)
        skip();
    snprintf(path, sizeof path, "%s/docs/man/longhaul.7", root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    char *list = strstr(page, ".SS Reliability\n");
    assert_non_null(list);
    char *end = strstr(list + 1, "\n.SS ");
    assert_non_null(end);
    *end = '\0';
    return list;
}

/* The name at the head of a paragraph ".TP\n.BI ec:mds,k= K", without roff's escapes. */
static size_t read_name(const char *head, char out[static 64])
{
    size_t used = 0;
    head += strspn(head, ".BI");
    head += strspn(head, " ");
    for (; used < 63 && *head && !strchr(", \n", *head); head++)
        if (*head != '\\')
            out[used++] = *head;
    out[used] = '\0';
    return used;
}

static void test_manual_lists_the_table(void **state)
{
    (void)state;
    char name[64];
    size_t listed = 0, entries = 0;
    for (char *at = strstr(read_list(), ".TP\n"); at; at = strstr(at + 1, ".TP\n"), listed++)
        if (!scheme_table_named(name, read_name(at + 4, name)))
            fail_msg("longhaul(7) lists %s, which is not in the table", name);
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++, entries++) {
        bool found = false;
        for (char *at = strstr(page, ".SS Reliability"); (at = strstr(at + 1, ".TP\n")) && !found;)
            found = read_name(at + 4, name) > 0 && strcmp(name, (*e)->shown.name) == 0;
        if (!found)
            fail_msg("longhaul(7), Reliability, does not list %s", (*e)->shown.name);
    }
    assert_int_equal(listed, entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_scheme_is_whole),
        cmocka_unit_test(test_ids_stay),
        cmocka_unit_test(test_each_entry_is_whole),
        cmocka_unit_test(test_what_others_read_of_entries),
        cmocka_unit_test(test_which_send_parity),
        cmocka_unit_test(test_model_takes_what_machines_take),
        cmocka_unit_test(test_manual_lists_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
