/*
 * test_auto_choice.c - what is chosen is what the planner's figures say, is at hand at once, and does not
 * flap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "schemes/auto_choice.h"
#include "schemes/scheme_table.h"

/* ---- test choice ----------------------------------------------------------------------------------- */

#define MIB ((uint64_t)1 << 20)

static const struct auto_path ocean = {
    .rtt_s = 25e-3, .bandwidth_bps = 4e9, .chunk_loss = 1e-3, .burst_packets = 1};

static struct auto_setup usual(void)
{
    return (struct auto_setup){.mtu_bytes = 4096,
                               .chunk_bytes = 4096,
                               .slot_chunks = 1024,
                               .slots = 64,
                               .cores = 1,
                               .by = LH_PLAN_BY_MEAN,
                               .max_overhead = INFINITY,
                               .announced = scheme_table_announcements()};
}

static struct auto_choice *open_with(const struct auto_setup *setup)
{
    static struct auto_choice choice;
    auto_choice_init(&choice, setup);
    return &choice;
}

static struct auto_choice *open_usual(void)
{
    struct auto_setup setup = usual();
    return open_with(&setup);
}

/* Asks until nothing is left to be weighed. */
static const struct auto_candidate *settled(struct auto_choice *choice, uint64_t bytes,
                                            const struct auto_path *path)
{
    auto_choice_get(choice, bytes, path);
    for (uint32_t i = 0; auto_choice_work(choice); i++)
        assert_true(i < AUTO_CHOICE_CANDIDATES);
    return &choice->candidates[auto_choice_get(choice, bytes, path)];
}

static bool codes(const struct auto_candidate *candidate)
{
    return candidate->scheme->coding != NULL;
}

/* Until the first job is done nothing is known, and no call waits. */
static void an_answer_is_at_hand_at_once(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    assert_int_equal(auto_choice_get(choice, 16 * MIB, &ocean), AUTO_CHOICE_NONE);
    assert_null(auto_choice_answer(choice, 16 * MIB));
    assert_true(codes(settled(choice, 16 * MIB, &ocean)));
    assert_int_equal(choice->plans, 1);
    /* A size that is not known yet gets what the nearest has. */
    const struct auto_answer *answer = auto_choice_answer(choice, 16 * MIB);
    assert_non_null(answer);
    assert_int_equal(answer->message_bytes, 16 * MIB);
    assert_int_equal(auto_choice_get(choice, 32 * MIB, &ocean), answer->chosen);
}

/* The choice is within a percent of the fastest of all candidates, weighed one by one. */
static void it_is_the_fastest(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {64 << 10, MIB, 16 * MIB, 256 * MIB};
    static const double losses[] = {1e-6, 1e-4, 1e-2, 0.1};
    for (size_t i = 0; i < 16; i++) {
        struct auto_choice *choice = open_usual();
        struct auto_path path = ocean;
        path.chunk_loss = losses[i % 4];
        settled(choice, sizes[i / 4], &path);
        const struct auto_answer *answer = auto_choice_answer(choice, sizes[i / 4]);
        double fastest = INFINITY;
        for (uint32_t c = 0; c < choice->count; c++) {
            struct lh_model_path link = {.message_bytes = sizes[i / 4],
                                         .chunk_bytes = 4096,
                                         .mtu_bytes = 4096,
                                         .bandwidth_bps = path.bandwidth_bps,
                                         .rtt_s = path.rtt_s,
                                         .loss = path.chunk_loss,
                                         .loss_of_chunk = true,
                                         .burst_packets = 1,
                                         .segment_bytes = 1024 * 4096};
            struct lh_model_times times;
            assert_int_equal(lh_model_predict(&link, &choice->candidates[c].model, &times), 0);
            if (c == answer->chosen)
                assert_true(fabs(times.mean_s - answer->seconds) <= 1e-9 * times.mean_s);
            fastest = fmin(fastest, times.mean_s);
        }
        assert_true(answer->seconds <= fastest * (1 + LH_PLAN_TIE) * (1 + 1e-12));
        assert_true(answer->other != UINT32_MAX);
        assert_true(codes(&choice->candidates[answer->chosen]) !=
                    codes(&choice->candidates[answer->other]));
    }
}

static const char *name_for(struct auto_choice *choice, uint64_t bytes, double loss)
{
    struct auto_path path = ocean;
    path.chunk_loss = loss;
    return settled(choice, bytes, &path)->scheme->name;
}

/* Each way has messages that it is the best for: repeats where hardly anything is lost, both together where
 * a part of the injection hides repeats, a thin code where a message is short. */
static void each_way_has_its_messages(void **state)
{
    (void)state;
    assert_string_equal(name_for(open_usual(), 16 * MIB, 1e-9), "sr-nack");
    assert_string_equal(name_for(open_usual(), 64 * MIB, 1e-2), "hybrid");
    assert_string_equal(name_for(open_usual(), 64 << 10, 1e-2), "ec:mds");
}

/* Who sends may be of a release that does not know hybrid: then what it knows is weighed. */
static void a_sender_without_hybrid(void **state)
{
    (void)state;
    struct auto_setup setup = usual();
    setup.announced = 0;
    struct auto_choice *choice = open_with(&setup);
    for (uint32_t i = 0; i < choice->count; i++)
        assert_string_not_equal(choice->candidates[i].scheme->name, "hybrid");
    assert_string_equal(name_for(choice, 64 * MIB, 1e-2), "ec:mds");
}

/* One list would be too long for a connection, but none knows what the other does not. */
static void the_planner_weighs_all_of_them(void **state)
{
    (void)state;
    struct lh_model_scheme planned[SCHEME_CANDIDATES_MAX];
    struct auto_choice *choice = open_usual();
    for (uint32_t i = 0; i < choice->count; i++) {
        char text[LH_MODEL_SCHEME_TEXT_MAX], other[LH_MODEL_SCHEME_TEXT_MAX];
        lh_model_scheme_format(&choice->candidates[i].model, text, sizeof text);
        const struct scheme_entry *entry = scheme_table_kind(choice->candidates[i].model.kind);
        bool found = false;
        for (uint32_t j = entry->candidates(false, planned); j-- > 0;)
            found |= strcmp(lh_model_scheme_format(&planned[j], other, sizeof other), text) == 0;
        if (!found)
            fail_msg("%s is not planned with", text);
    }
}

static void without_loss_nothing_is_sent_for_it(void **state)
{
    (void)state;
    struct auto_path path = ocean;
    path.chunk_loss = 1e-9;
    assert_false(codes(settled(open_usual(), 256 * MIB, &path)));
}

/* A path that is measured again and again is planned for once, whatever the noise. */
static void noise_changes_nothing(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    settled(choice, 4 * MIB, &ocean);
    for (int i = 0; i < 10000; i++) {
        struct auto_path path = ocean;
        path.rtt_s *= 0.85 + 0.3 * lh_prng_double(&prng);
        path.bandwidth_bps *= 0.85 + 0.3 * lh_prng_double(&prng);
        path.chunk_loss *= 0.7 + 0.8 * lh_prng_double(&prng);
        settled(choice, 4 * MIB + lh_prng_below(&prng, MIB / 2), &path);
    }
    assert_int_equal(choice->plans, 1);
    assert_int_equal(choice->changes, 0);
}

/* More noise is planned for, and still does not change a choice that is as good. */
static void a_path_at_the_border_does_not_flap(void **state)
{
    (void)state;
    /* The loss at which the two ways are about as fast, found by halving. */
    double low = 1e-9, high = 1e-2;
    for (int i = 0; i < 60; i++) {
        struct auto_path path = ocean;
        path.chunk_loss = sqrt(low * high);
        *(codes(settled(open_usual(), 16 * MIB, &path)) ? &high : &low) = path.chunk_loss;
    }
    assert_true(low > 1e-8 && high < 1e-3); /* there is one */
    struct auto_choice *choice = open_usual();
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    for (int i = 0; i < 2000; i++) {
        struct auto_path path = ocean;
        path.chunk_loss = low * exp2(2 * lh_prng_double(&prng) - 1); /* twice, or half of it */
        settled(choice, 16 * MIB, &path);
    }
    assert_true(choice->plans > 100);
    assert_true(choice->changes <= 1);
}

static void another_path_is_another_choice(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    struct auto_path path = ocean;
    path.chunk_loss = 1e-9;
    assert_false(codes(settled(choice, 16 * MIB, &path)));
    assert_true(codes(settled(choice, 16 * MIB, &ocean)));
    assert_int_equal(choice->plans, 2);
    assert_int_equal(choice->changes, 1);
    settled(choice, 16 * MIB, &ocean);
    assert_int_equal(choice->plans, 2);
}

/* A code that was right for more loss than there is goes when repeats are about as fast. */
static void parity_that_is_of_no_use_goes(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    struct auto_path path = ocean;
    path.rtt_s = 1e-3;
    path.chunk_loss = 1e-2;
    assert_true(codes(settled(choice, 64 << 10, &path)));
    for (; path.chunk_loss > 1e-9; path.chunk_loss /= 2)
        settled(choice, 64 << 10, &path);
    assert_false(codes(settled(choice, 64 << 10, &path)));
}

/* Each of what is known of a path is looked at by itself. */
static void anything_that_changes_is_planned_for(void **state)
{
    (void)state;
    struct auto_path paths[] = {ocean, ocean, ocean, ocean, ocean};
    paths[1].rtt_s *= 1.3;
    paths[2].bandwidth_bps /= 1.3;
    paths[3].chunk_loss *= 1.7;
    paths[4].burst_packets *= 1.6;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct auto_choice *choice = open_usual();
        settled(choice, 16 * MIB, &ocean);
        settled(choice, 16 * MIB, &paths[i]);
        assert_int_equal(choice->plans, i == 0 ? 1 : 2);
        settled(choice, 16 * MIB, &ocean); /* and back */
        assert_int_equal(choice->plans, i == 0 ? 1 : 3);
    }
}

/* A size that is new comes like the nearest one: here small ones are repeated, and large ones coded. */
static void a_new_size_comes_like_the_nearest(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    struct auto_path clean = ocean;
    clean.chunk_loss = 1e-9;
    uint64_t small = 64 << 10, large = 64 * MIB;
    assert_false(codes(settled(choice, small, &clean)));
    assert_true(codes(settled(choice, large, &ocean)));
    choice->pausing = true;
    for (uint64_t bytes = 1; bytes < 16 * small; bytes *= 2)
        assert_int_equal(auto_choice_get(choice, bytes, &ocean), auto_choice_answer(choice, small)->chosen);
    for (uint64_t bytes = large / 8; bytes < 64 * large; bytes *= 2)
        assert_int_equal(auto_choice_get(choice, bytes, &ocean), auto_choice_answer(choice, large)->chosen);
}

/* What is to be small, and how many cores there are, decide as well. */
static void measure_and_cores_count(void **state)
{
    (void)state;
    struct auto_setup setup = usual();
    struct auto_choice *choice = open_with(&setup);
    settled(choice, 16 * MIB, &ocean);
    double mean_s = auto_choice_answer(choice, 16 * MIB)->other_seconds; /* repeats: a long tail */
    setup.by = LH_PLAN_BY_P999;
    choice = open_with(&setup);
    settled(choice, 16 * MIB, &ocean);
    assert_true(auto_choice_answer(choice, 16 * MIB)->other_seconds > mean_s * 1.1);
    struct auto_path fast = ocean;
    fast.bandwidth_bps = 3.2e12;
    setup.cores = 1;
    choice = open_with(&setup);
    assert_false(codes(settled(choice, 16 * MIB, &fast)));
    setup.cores = 1000;
    choice = open_with(&setup);
    assert_true(codes(settled(choice, 16 * MIB, &fast)));
}

static void limits(void **state)
{
    (void)state;
    struct auto_setup setup = usual();
    setup.max_overhead = 0.01;
    assert_false(codes(settled(open_with(&setup), 64 << 10, &ocean)));
    setup = usual();
    setup.slots = 1; /* parity needs one of its own */
    struct auto_choice *choice = open_with(&setup);
    for (uint32_t i = 0; i < choice->count; i++)
        assert_false(codes(&choice->candidates[i]));
    assert_false(codes(settled(choice, 64 << 10, &ocean)));
    setup = usual();
    setup.slot_chunks = 1;
    choice = open_with(&setup);
    for (uint32_t i = 0; i < choice->count; i++)
        if (codes(&choice->candidates[i]))
            assert_true(choice->candidates[i].scheme->coding->transfer_chunks_max(
                            choice->candidates[i].params, 1) > 0);
}

/* When nothing keeps to the limits it is the plainest scheme: messages must come some way. */
static void when_nothing_is_possible(void **state)
{
    (void)state;
    struct auto_setup setup = usual();
    setup.max_overhead = 0;
    struct auto_path path = ocean;
    path.chunk_loss = 0.5;
    const struct auto_candidate *candidate = settled(open_with(&setup), 16 * MIB, &path);
    assert_string_equal(candidate->scheme->name, "sr-nack");
}

/* However many sizes take turns, each is weighed once: else there would always be a job. */
static void each_size_is_remembered(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 2; i < 48; i++) {
            settled(choice, (uint64_t)4 << i, &ocean);
            settled(choice, (uint64_t)6 << i, &ocean);
        }
        assert_int_equal(choice->plans, 2 * 46);
    }
    settled(choice, 0, &ocean);
    assert_non_null(auto_choice_answer(choice, 0));
}

/* What the model refuses has no expected time, and comes by the plainest scheme. */
static void what_cannot_be_weighed(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    struct auto_path path = ocean;
    path.bandwidth_bps = 1e19;
    assert_string_equal(settled(choice, 16 * MIB, &path)->scheme->name, "sr-nack");
    const struct auto_answer *answer = auto_choice_answer(choice, 16 * MIB);
    assert_true(answer->seconds == 0 && answer->other == UINT32_MAX && answer->other_seconds == 0);
    assert_true(codes(settled(choice, 16 * MIB, &ocean)));
}

/* A job that took 29 x 15 us is followed by a rest of 20 times as long. */
static void a_rest_is_as_long_as_the_work(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    lh_time now = 1000;
    auto_choice_get(choice, 16 * MIB, &ocean);
    for (bool more = true; more; now += 100) { /* packets take the rest of a step */
        assert_true(choice->pause_until == 0);
        more = auto_choice_work(choice);
        auto_choice_worked(choice, now, 15);
    }
    lh_time ended = now - 100;
    assert_int_equal(choice->pause_until, ended + (lh_time)20 * 15 * choice->count);
    auto_choice_get(choice, MIB, &ocean);
    auto_choice_work(choice);
    auto_choice_worked(choice, now, 7);
    assert_int_equal(choice->worked_ns, 7); /* each job by itself */
}

/* While it rests, answers are those that are known, and nothing is begun. */
static void at_rest(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    settled(choice, 16 * MIB, &ocean);
    struct auto_path path = ocean;
    path.rtt_s *= 2;
    choice->pausing = true;
    settled(choice, 16 * MIB, &path);
    settled(choice, MIB, &path);
    assert_int_equal(choice->plans, 1);
    choice->pausing = false;
    settled(choice, 16 * MIB, &path);
    assert_int_equal(choice->plans, 2);
}

/* Sizes of a class are asked for once. */
static void sizes_are_classes(void **state)
{
    (void)state;
    struct auto_choice *choice = open_usual();
    settled(choice, 4 * MIB, &ocean);
    assert_non_null(auto_choice_answer(choice, 5 * MIB - 1));
    assert_null(auto_choice_answer(choice, 5 * MIB));
    assert_null(auto_choice_answer(choice, 4 * MIB - 1));
    for (uint64_t bytes = 0; bytes < 64; bytes++) /* the least of all */
        settled(choice, bytes, &ocean);
    settled(choice, UINT64_MAX, &ocean); /* the model refuses that: the plainest */
}

static int run_choice(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_at_hand_at_once),
        cmocka_unit_test(it_is_the_fastest),
        cmocka_unit_test(each_way_has_its_messages),
        cmocka_unit_test(a_sender_without_hybrid),
        cmocka_unit_test(the_planner_weighs_all_of_them),
        cmocka_unit_test(without_loss_nothing_is_sent_for_it),
        cmocka_unit_test(noise_changes_nothing),
        cmocka_unit_test(a_path_at_the_border_does_not_flap),
        cmocka_unit_test(another_path_is_another_choice),
        cmocka_unit_test(parity_that_is_of_no_use_goes),
        cmocka_unit_test(anything_that_changes_is_planned_for),
        cmocka_unit_test(a_new_size_comes_like_the_nearest),
        cmocka_unit_test(measure_and_cores_count),
        cmocka_unit_test(limits),
        cmocka_unit_test(when_nothing_is_possible),
        cmocka_unit_test(each_size_is_remembered),
        cmocka_unit_test(what_cannot_be_weighed),
        cmocka_unit_test(a_rest_is_as_long_as_the_work),
        cmocka_unit_test(at_rest),
        cmocka_unit_test(sizes_are_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test params ----------------------------------------------------------------------------------- */

/* The parameters of `auto`. */

static void parse(void **state)
{
    (void)state;
    static const char *const wrong[] = {"by",
                                        "by=",
                                        "by=p5",
                                        "by=mean,",
                                        ",",
                                        "overhead=",
                                        "overhead=-1",
                                        "overhead=2x",
                                        "overhead=1e30",
                                        "k=8",
                                        "by=p50,by=p99",
                                        "overhead=1,overhead=1",
                                        "by=p99 ",
                                        " by=p99"};
    enum lh_plan_by by = LH_PLAN_BY_P50;
    double overhead = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(auto_params_parse(wrong[i], &by, &overhead), -LH_EINVAL);
    assert_true(by == LH_PLAN_BY_P50 && overhead == 7);
    assert_int_equal(auto_params_parse("", &by, &overhead), 0);
    assert_true(by == LH_PLAN_BY_MEAN && isinf(overhead));
    assert_int_equal(auto_params_parse("overhead=25%,by=p999", &by, &overhead), 0);
    assert_true(by == LH_PLAN_BY_P999 && overhead == 0.25);
}

static int run_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_choice() + run_params();
}
