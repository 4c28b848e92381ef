/*
 * test_scheme_table.c - what the model predicts, by its public calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/model.h>

#include "schemes/scheme_table.h"
#include "support/near.h"
#include "wire/wire_numbers.h"

/* ---- test scheme model ----------------------------------------------------------------------------- */

static const char *const schemes[] = {
    "ideal", "sr-rto", "sr-nack", "ec:mds", "ec:xor", "ec:mds,fallback=sr", "ec:xor,fallback=sr", "gbn"};
#define SCHEMES (sizeof schemes / sizeof *schemes)

static struct lh_model_path path_of(uint64_t bytes, double loss)
{
    return (struct lh_model_path){.message_bytes = bytes,
                                  .chunk_bytes = 65536,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = 400e9,
                                  .rtt_s = 25e-3,
                                  .loss = loss,
                                  .loss_of_chunk = true};
}

static struct lh_model_times of(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    if (lh_model_predict(path, &scheme, &times) != 0)
        fail_msg("%s at loss %g: %s", text, path->loss, lh_last_error());
    return times;
}

/* Milliseconds with one decimal, as they were settled for 400 Gbit/s, 25 ms, 128 MiB, chunks of 64 KiB. */
static void test_reference_values(void **state)
{
    (void)state;
    const double losses[] = {1e-4, 1e-3, 1e-2};
    const double rto[] = {41.3, 92.4, 116.4};
    const double nack[] = {32.1, 48.7, 57.0};
    const double mds[] = {28.4, 28.4, 28.4};
    const double xor_printed[] = {28.4, 28.6, 54.4};
    const double xor_mean[] = {28.4, 28.6, 52.9}; /* over all numbers of failures; see docs/planning.md */
    for (unsigned i = 0; i < 3; i++) {
        struct lh_model_path path = path_of(128 << 20, losses[i]);
        assert_near(round(of("sr-rto", &path).mean_s * 1e4) / 10, rto[i], 1e-12);
        assert_near(round(of("sr-nack", &path).mean_s * 1e4) / 10, nack[i], 1e-12);
        assert_near(round(of("ec:mds,fallback=sr", &path).mean_s * 1e4) / 10, mds[i], 1e-12);
        assert_near(round(of("ec:mds,fallback=sr", &path).paper_mean_s * 1e4) / 10, mds[i], 1e-12);
        assert_near(round(of("ec:xor,fallback=sr", &path).paper_mean_s * 1e4) / 10, xor_printed[i], 1e-12);
        assert_near(round(of("ec:xor,fallback=sr", &path).mean_s * 1e4) / 10, xor_mean[i], 1e-12);
        assert_near(of("ideal", &path).mean_s, 27.68435456e-3, 1e-12);
    }
}

static void check_order(const struct lh_model_times *times)
{
    const double values[] = {times->ideal_s, times->p50_s, times->p99_s, times->p999_s};
    for (unsigned i = 0; i < 4; i++)
        assert_true(isfinite(values[i]) && values[i] > 0 && (i == 0 || values[i] >= values[i - 1]));
    assert_true(isfinite(times->mean_s) && times->mean_s >= times->ideal_s * (1 - 1e-12));
    assert_true(isfinite(times->paper_mean_s) && times->paper_mean_s >= times->ideal_s * (1 - 1e-12));
    assert_true(times->p_fallback >= 0 && times->p_fallback <= 1);
    assert_true(isfinite(times->overhead_bytes) && times->overhead_bytes >= 0);
}

/* 1 to 10^9 chunks, a loss of 10^-12 to one half: finite, in order, never better with more loss. */
static void test_stable(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SCHEMES; s++)
        for (int burst = 0; burst <= 64; burst += 64)
            for (double chunks = 1; chunks <= 1e9; chunks *= 1000) {
                double before = 0;
                for (double loss = 1e-12; loss <= 0.5; loss = loss < 0.1 ? loss * 100 : loss * 5) {
                    struct lh_model_path path = path_of((uint64_t)chunks * 65536, loss);
                    path.burst_packets = burst;
                    struct lh_model_times times = of(schemes[s], &path);
                    check_order(&times);
                    assert_true(times.mean_s >= before * (1 - 1e-9));
                    before = times.mean_s;
                }
            }
}

static void test_quantile_and_cdf(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SCHEMES; s++) {
        struct lh_model_path path = path_of(16 << 20, 1e-2);
        struct lh_model_scheme scheme;
        struct lh_model_times times = of(schemes[s], &path);
        double seconds;
        double share;
        assert_int_equal(lh_model_scheme_parse(schemes[s], &scheme), 0);
        assert_int_equal(lh_model_quantile(&path, &scheme, 0.99, &seconds), 0);
        assert_near(seconds, times.p99_s, 0);
        assert_int_equal(lh_model_cdf(&path, &scheme, seconds * (1 + 1e-9), &share), 0);
        assert_true(share >= 0.99);
        assert_int_equal(lh_model_cdf(&path, &scheme, times.ideal_s * 0.999, &share), 0);
        assert_near(share, 0, 0);
        assert_int_equal(lh_model_cdf(&path, &scheme, INFINITY, &share), 0);
        assert_near(share, 1, 1e-9);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(128 << 20, 0.5);
    assert_near(of("sr-rto", &path).overhead_bytes, 128 << 20, 1e-12); /* two transmissions a chunk */
    assert_near(of("sr-rto", &path).wire_bytes, 256 << 20, 1e-12);
    path.loss = 1e-12;
    assert_near(of("ec:mds", &path).overhead_bytes, 32 << 20, 1e-9); /* 8 for 32 */
    path.header_bytes = 84;
    assert_near(of("ideal", &path).wire_bytes, (128 << 20) / 4096 * 4180.0, 0);
    assert_near(of("ideal", &path).overhead_bytes, 0, 0);
}

static void test_encoding(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(128 << 20, 1e-3);
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse("ec:mds", &scheme), 0);
    scheme.encode_bytes_per_s = 5e9;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), 0);
    assert_near(times.encode_core_s, (128 << 20) / 5e9, 1e-12);
    assert_near(times.encode_cores, 50e9 * 0.8 / 5e9, 1e-12); /* a fifth of the wire is parity */
    assert_near(of("ec:mds", &path).encode_cores, 0, 0);
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(128 << 20, 1e-3);
    struct lh_model_scheme scheme;
    struct lh_model_times times = {.mean_s = 7};
    double value = 7;
    assert_int_equal(lh_model_scheme_parse("ec:mds", &scheme), 0);
    assert_int_equal(lh_model_quantile(&path, &scheme, 1, &value), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "quantile 1:"));
    assert_int_equal(lh_model_quantile(&path, &scheme, -0.1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_quantile(&path, &scheme, NAN, &value), -LH_ERANGE);
    assert_int_equal(lh_model_cdf(&path, &scheme, NAN, &value), -LH_ERANGE);
    path.loss = 1;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), -LH_ERANGE);
    assert_int_equal(lh_model_quantile(&path, &scheme, 0.5, &value), -LH_ERANGE);
    assert_int_equal(lh_model_cdf(&path, &scheme, 1, &value), -LH_ERANGE);
    assert_near(times.mean_s, 7, 0);
    assert_near(value, 7, 0);
}

static int run_scheme_model(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_values), cmocka_unit_test(test_stable),
        cmocka_unit_test(test_quantile_and_cdf), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_encoding),         cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme table ----------------------------------------------------------------------------- */

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

static int run_scheme_table(void)
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

/* ---- test scheme text ------------------------------------------------------------------------------ */

/* Schemes of the model, as text and back; what cannot be is refused in words. */

static double rto_of(const struct lh_model_scheme *scheme)
{
    return model_predictor_rto(scheme_table_kind(scheme->kind)->predictor, scheme);
}

static int check(const struct lh_model_scheme *scheme)
{
    return model_predictor_check(scheme_table_kind(scheme->kind)->predictor, scheme);
}

static struct lh_model_scheme parsed(const char *text)
{
    struct lh_model_scheme scheme;
    if (lh_model_scheme_parse(text, &scheme) != 0)
        fail_msg("%s: %s", text, lh_last_error());
    return scheme;
}

static void test_defaults(void **state)
{
    (void)state;
    struct lh_model_scheme rto = parsed("sr-rto");
    struct lh_model_scheme nack = parsed("sr-nack");
    struct lh_model_scheme mds = parsed("ec:mds");
    struct lh_model_scheme paper = parsed("ec:xor,fallback=sr");
    assert_near(rto_of(&rto), 3, 0);
    assert_near(rto_of(&nack), 1, 0);
    assert_near(rto_of(&mds), 1, 0);
    assert_near(rto_of(&paper), 3, 0);
    assert_int_equal(mds.k, 32);
    assert_int_equal(mds.m, 8);
    assert_near(mds.beta, 0.5, 0);
    assert_int_equal(mds.fallback, LH_MODEL_FALLBACK_IR);
    assert_int_equal(paper.kind, LH_MODEL_EC_XOR);
    assert_int_equal(parsed("ideal").kind, LH_MODEL_IDEAL);
    assert_int_equal(parsed("gbn").kind, LH_MODEL_GBN);
}

static void test_values(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = parsed("ec:mds,k=100,m=20,spread=4,beta=0.25,fallback=sr,rto=1.5");
    assert_int_equal(scheme.k, 100);
    assert_int_equal(scheme.m, 20);
    assert_int_equal(scheme.spread, 4);
    assert_near(scheme.beta, 0.25, 0);
    assert_int_equal(scheme.fallback, LH_MODEL_FALLBACK_SR);
    assert_near(rto_of(&scheme), 1.5, 0);
    scheme = parsed("sr-rto,alpha=0.25");
    assert_near(rto_of(&scheme), 1.25, 0);
}

static void test_format_and_back(void **state)
{
    (void)state;
    const char *texts[] = {
        "ideal",           "sr-rto",          "sr-rto,alpha=0.25",
        "sr-nack",         "sr-nack,rto=1.5", "gbn,rto=10",
        "ec:mds,k=32,m=8", "ec:xor,k=32,m=8", "ec:mds,k=100,m=20,spread=4,beta=0.25,fallback=sr,rto=1.5"};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[LH_MODEL_SCHEME_TEXT_MAX];
        struct lh_model_scheme scheme = parsed(texts[i]);
        assert_string_equal(lh_model_scheme_format(&scheme, text, sizeof text), texts[i]);
        for (size_t size = 1; size < strlen(texts[i]); size++) { /* cut, never beyond */
            memset(text, 'x', sizeof text);
            lh_model_scheme_format(&scheme, text, size);
            assert_int_equal(strlen(text), size - 1);
            assert_int_equal(text[size], 'x');
        }
    }
}

static void refused(const char *text, const char *word)
{
    struct lh_model_scheme scheme = {.kind = LH_MODEL_GBN};
    assert_true(lh_model_scheme_parse(text, &scheme) < 0);
    if (!strstr(lh_last_error(), word))
        fail_msg("%s: \"%s\" does not say %s", text, lh_last_error(), word);
    assert_int_equal(scheme.kind, LH_MODEL_GBN); /* set only on success */
}

static void scheme_text_test_refused(void **state)
{
    (void)state;
    refused("", "unknown scheme");
    refused("sr", "sr-rto");
    refused("ec:mds,", "parameter");
    refused("ec:mds,k", "parameter");
    refused("ec:mds,k=", "number");
    refused("ec:mds,k=-3", "number");
    refused("ec:mds,k=0", "k=0");
    refused("ec:mds,k=1.5", "whole");
    refused("ec:mds,k=250,m=6", "255");
    refused("ec:mds,m=99999999", "whole");
    refused("ec:xor,k=4,m=5", "exceeds");
    refused("ec:mds,beta=nan", "number");
    refused("ec:mds,fallback=no", "fallback");
    refused("ec:mds,fallback=", "fallback");
    refused("sr-rto,alpha=-1", "number");
    refused("sr-rto,rto=0.5", "at least 1");
    refused("sr-rto,beta=1", "alpha");
    refused("sr-nack,alpha=1", "rto");
    refused("ideal,rto=1", "none");
    refused("gbn,rto=1e300", "out of range");
    refused("gbn,rto=1x", "number");
}

static void test_check(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = parsed("ec:mds");
    assert_int_equal(check(&scheme), 0);
    scheme.beta = NAN;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    scheme = parsed("ec:mds");
    scheme.encode_bytes_per_s = -1;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    scheme = parsed("ec:mds");
    scheme.k = UINT32_MAX;
    scheme.m = 2; /* the sum wraps */
    assert_int_equal(check(&scheme), -LH_EINVAL);
    scheme = parsed("sr-rto");
    scheme.rto_rtts = NAN;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    struct lh_model_times times;
    scheme.kind = (enum lh_model_kind)77;
    assert_int_equal(lh_model_predict(&(struct lh_model_path){0}, &scheme, &times), -LH_EINVAL);
}

static int run_scheme_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),        cmocka_unit_test(test_values),
        cmocka_unit_test(test_format_and_back), cmocka_unit_test(scheme_text_test_refused),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_scheme_model() + run_scheme_table() + run_scheme_text();
}
