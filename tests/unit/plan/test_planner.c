/*
 * test_planner.c - the planner: limits are kept, ties are broken by cost, more loss is never better.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/plan.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>
#include <longhaul/units.h>

#include "plan/planner.h"
#include "schemes/scheme_table.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static struct lh_plan plan;

/* The link of the paper's section 5.2. */
static struct lh_plan_question ask(double loss, uint64_t message_bytes)
{
    struct lh_plan_question question;
    lh_plan_init(&question);
    question.link.bandwidth_bps = 400e9;
    question.link.rtt_s = 0.025;
    question.link.loss = loss;
    question.sizes[0] = (struct lh_plan_size){message_bytes, 1};
    question.sizes_count = 1;
    return question;
}

static const struct lh_plan_choice *best_of(const struct lh_plan_question *question)
{
    assert_int_equal(lh_plan_make(question, &plan), 0);
    assert_true(plan.best < plan.count);
    return &plan.choices[plan.best];
}

/* The choice that comes nearest to the ideal and breaks nothing. */
static double fastest(void)
{
    double minimum = INFINITY;
    for (uint32_t i = 0; i < plan.count; i++)
        if (plan.choices[i].breaks == 0)
            minimum = fmin(minimum, plan.choices[i].times_ideal);
    return minimum;
}

static void without_loss_the_simplest(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(0, 128 * MIB);
    const struct lh_plan_choice *best = best_of(&question);
    assert_int_equal(best->scheme.kind, LH_MODEL_SR_NACK);
    assert_int_equal(best->chunk_bytes, 64 * 4096);
    assert_true(fabs(best->times_ideal - 1) < 1e-12);
    assert_true(best->overhead == 0 && best->cores == 0);
    assert_int_equal(plan.choices[plan.runner_up].scheme.kind, LH_MODEL_SR_RTO); /* no parity for nothing */
}

static void as_in_the_papers_figure_9(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-5, 128 * MIB);
    const struct lh_plan_choice *best = best_of(&question);
    assert_true(best->scheme.kind == LH_MODEL_EC_MDS || best->scheme.kind == LH_MODEL_EC_XOR);
    assert_true(best->times_ideal < 1.05);
    question = ask(1e-7, 8 * GIB);
    assert_int_equal(best_of(&question)->scheme.kind, LH_MODEL_SR_NACK);
    question = ask(1e-6, 128 * GIB);
    assert_int_equal(best_of(&question)->scheme.kind, LH_MODEL_SR_NACK);
}

/* Between what the paper compares there is a third: from where some data hides repeats, and a code that
 * suffices costs more than a percent. A short message has a code all the same. */
static void along_the_ridge(void **state)
{
    (void)state;
    static const struct {
        double loss;
        uint64_t bytes;
    } cells[] = {{1e-2, MIB}, {1e-3, 16 * MIB}, {1e-4, 128 * MIB}, {1e-2, GIB}, {1e-5, 8 * GIB}};
    for (unsigned i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct lh_plan_question question = ask(cells[i].loss, cells[i].bytes);
        const struct lh_plan_choice *best = best_of(&question);
        assert_int_equal(best->scheme.kind, LH_MODEL_HYBRID);
        assert_true(best->times_ideal < 1.05 && best->cores > 0);
        assert_int_not_equal(plan.choices[plan.runner_up].scheme.kind, LH_MODEL_HYBRID);
    }
    struct lh_plan_question question = ask(1e-2, 64 * KIB);
    assert_int_equal(best_of(&question)->scheme.kind, LH_MODEL_EC_MDS);
}

/* In a stream of messages hybrid retransmits but for the last: its times are not those of the others. */
static void a_stream_has_no_end(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-2, GIB);
    assert_int_equal(plan_make(&question, true, &plan), 0);
    for (uint32_t i = 0; i < plan.count; i++)
        assert_int_not_equal(plan.choices[i].scheme.kind, LH_MODEL_HYBRID);
}

static void limits_are_kept(void **state)
{
    (void)state;
    static const double overheads[] = {0.02, 0.1, 0.25, INFINITY};
    static const double cores[] = {0, 1.5, 3, INFINITY};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            for (double loss = 1e-6; loss < 0.015; loss *= 10) {
                struct lh_plan_question question = ask(loss, 128 * MIB);
                question.max_overhead = overheads[i];
                question.max_cores = cores[j];
                const struct lh_plan_choice *best = best_of(&question);
                assert_true(best->overhead < overheads[i] + 0.0005 && best->cores <= cores[j]);
                assert_true(best->breaks == 0);
                assert_true(best->times_ideal <= fastest() * (1 + LH_PLAN_TIE));
                for (uint32_t n = 0; n < plan.count; n++) {
                    bool wide = round(plan.choices[n].overhead * 1000) > round(overheads[i] * 1000);
                    bool busy = plan.choices[n].cores > cores[j];
                    if (plan.choices[n].breaks != LH_PLAN_LIMIT_MODEL)
                        assert_int_equal(plan.choices[n].breaks,
                                         wide * LH_PLAN_LIMIT_OVERHEAD + busy * LH_PLAN_LIMIT_CORES);
                }
            }
}

static void a_limit_that_nothing_keeps_to(void **state)
{
    (void)state;
    char text[LH_PLAN_VERDICT_MAX];
    struct lh_plan_question question = ask(0.3, MIB);
    question.max_overhead = 0.1;
    assert_int_equal(lh_plan_make(&question, &plan), 0);
    assert_int_equal(plan.best, LH_PLAN_NONE);
    assert_int_equal(plan.runner_up, LH_PLAN_NONE);
    assert_true(plan.choices[plan.unlimited].breaks & LH_PLAN_LIMIT_OVERHEAD);
    lh_plan_verdict(&question, &plan, text, sizeof text);
    assert_non_null(strstr(text, "No choice is within the limit of overhead"));
}

static void a_wider_limit_is_never_slower(void **state)
{
    (void)state;
    for (double loss = 1e-5; loss < 0.05; loss *= 10) {
        double before = INFINITY;
        for (double limit = 0.1; limit < 2; limit *= 1.3) {
            struct lh_plan_question question = ask(loss, 16 * MIB);
            question.max_overhead = limit;
            assert_true(best_of(&question)->times_ideal <= before * (1 + LH_PLAN_TIE));
            before = fmin(before, plan.choices[plan.best].times_ideal);
        }
    }
}

/* But for the steps of hybrid, whose parity is made of whole rows: one row more is a little less waiting. */
static void more_loss_is_never_faster(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {4096, 128 * KIB, 16 * MIB, 8 * GIB};
    for (enum lh_plan_by by = LH_PLAN_BY_MEAN; by <= LH_PLAN_BY_P999; by++)
        for (unsigned i = 0; i < 4; i++) {
            double before = 0;
            for (double loss = 1e-9; loss < 0.3; loss *= 3) {
                struct lh_plan_question question = ask(loss, sizes[i]);
                question.by = by;
                best_of(&question);
                assert_true(fastest() >= before * (1 - 1e-4));
                before = fmax(before, fastest());
            }
        }
}

/* Of those that are as fast, none sends less; and of those, none needs fewer cores. */
static void ties_go_to_what_costs_least(void **state)
{
    (void)state;
    for (double loss = 1e-8; loss < 0.1; loss *= 10) {
        struct lh_plan_question question = ask(loss, 128 * MIB);
        const struct lh_plan_choice *best = best_of(&question);
        double limit = fastest() * (1 + LH_PLAN_TIE);
        for (uint32_t i = 0; i < plan.count; i++) {
            const struct lh_plan_choice *other = &plan.choices[i];
            if (other->breaks != 0 || other->times_ideal > limit)
                continue;
            assert_true(other->overhead > best->overhead - 0.001);
            if (round(other->overhead * 1000) == round(best->overhead * 1000))
                assert_true(round(other->cores * 10) >= round(best->cores * 10));
        }
    }
}

static void the_list_is_bounded_and_can_be_run(void **state)
{
    (void)state;
    struct lh_model_scheme schemes[PLAN_SCHEMES_MAX];
    char text[LH_MODEL_SCHEME_TEXT_MAX];
    struct lh_plan_question question = ask(1e-3, MIB);
    uint32_t few = plan_list_schemes(scheme_table(), &question, false, schemes);
    question.link.burst_packets = 8;
    uint32_t count = plan_list_schemes(scheme_table(), &question, false, schemes);
    assert_true(count > few && count <= PLAN_SCHEMES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct lh_model_scheme back;
        lh_model_scheme_format(&schemes[i], text, sizeof text);
        assert_int_equal(lh_model_scheme_parse(text, &back), 0);
        for (uint32_t j = 0; j < i; j++)
            assert_memory_not_equal(&schemes[j], &schemes[i], sizeof schemes[i]);
    }
    assert_int_equal(lh_plan_make(&question, &plan), 0);
    assert_int_equal(plan.count, PLAN_CHUNKS * count);
}

static void a_mix_weighs_each_size_by_its_own_ideal(void **state)
{
    (void)state;
    struct lh_plan_choice one, other, both;
    const struct lh_model_scheme scheme = {.kind = LH_MODEL_SR_RTO};
    struct lh_plan_question question = ask(1e-4, 64 * KIB);
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &one), 0);
    question.sizes[0].message_bytes = GIB;
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &other), 0);
    question.sizes[0].weight = 1;
    question.sizes[1] = (struct lh_plan_size){64 * KIB, 3};
    question.sizes_count = 2;
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &both), 0);
    assert_true(fabs(both.times_ideal - (3 * one.times_ideal + other.times_ideal) / 4) < 1e-12);
    assert_true(fabs(both.seconds - (3 * one.seconds + other.seconds) / 4) < 1e-12);
}

static void what_encoding_costs(void **state)
{
    (void)state;
    struct lh_plan_choice choice;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_EC_MDS, .k = 32, .m = 8, .beta = 0.5};
    struct lh_plan_question question = ask(1e-4, GIB);
    question.mds_bytes_per_s = 10e9;
    question.xor_bytes_per_s = 20e9;
    /* 50 GB/s, of which four fifths are data. */
    assert_int_equal(lh_plan_weigh(&question, &scheme, 64 * KIB, &choice), 0);
    assert_true(fabs(choice.cores - 4) < 0.01 && fabs(choice.overhead - 0.25) < 0.001);
    scheme.m = 16;
    assert_int_equal(lh_plan_weigh(&question, &scheme, 64 * KIB, &choice), 0);
    assert_true(fabs(choice.cores - 50 / 1.5 / 10 * 2) < 0.01);
    scheme = (struct lh_model_scheme){.kind = LH_MODEL_EC_XOR, .k = 32, .m = 8, .beta = 0.5};
    assert_int_equal(lh_plan_weigh(&question, &scheme, 64 * KIB, &choice), 0);
    assert_true(fabs(choice.cores - 2) < 0.01);
}

static void refuse(struct lh_plan_question question, int error, const char *text)
{
    struct lh_plan_choice choice = {.seconds = 17};
    const struct lh_model_scheme scheme = {.kind = LH_MODEL_SR_NACK};
    uint64_t chunk = question.link.chunk_bytes ? question.link.chunk_bytes : 4096;
    plan.count = 17;
    assert_int_equal(lh_plan_make(&question, &plan), -error);
    assert_non_null(strstr(lh_last_error(), text));
    assert_int_equal(plan.count, 17);
    if (!question.link.loss_of_chunk)
        assert_int_equal(lh_plan_weigh(&question, &scheme, chunk, &choice), -error);
    assert_true(choice.seconds == 17 || question.link.loss_of_chunk);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const struct lh_plan_question good = ask(1e-3, MIB);
#define WITH(assignment, error, text)                                                                      \
    do {                                                                                                   \
        struct lh_plan_question question = good;                                                           \
        question.assignment;                                                                               \
        refuse(question, error, text);                                                                     \
    } while (0)
    WITH(sizes_count = 0, LH_EINVAL, "0 sizes");
    WITH(sizes_count = LH_PLAN_SIZES_MAX + 1, LH_EINVAL, "17 sizes");
    WITH(sizes[0].weight = 0, LH_ERANGE, "weight 0:");
    WITH(sizes[0].weight = NAN, LH_ERANGE, "weight nan");
    WITH(sizes[0].message_bytes = 0, LH_ERANGE, "message of 0");
    WITH(sizes[0].message_bytes = (uint64_t)1 << 63, LH_ERANGE, "2^63");
    WITH(timing = (enum lh_model_timing)9, LH_EINVAL, "timing 9");
    WITH(by = (enum lh_plan_by)9, LH_EINVAL, "measure 9");
    WITH(max_overhead = -1, LH_ERANGE, "-1");
    WITH(max_overhead = NAN, LH_ERANGE, "nan");
    WITH(max_cores = -2, LH_ERANGE, "-2");
    WITH(mds_bytes_per_s = 0, LH_ERANGE, "encoding rates of 0");
    WITH(xor_bytes_per_s = INFINITY, LH_ERANGE, "inf");
    WITH(link.loss = 1, LH_ERANGE, "loss 1:");
    WITH(link.loss = -0.1, LH_ERANGE, "-0.1");
    WITH(link.loss = NAN, LH_ERANGE, "nan");
    WITH(link.rtt_s = 0, LH_ERANGE, "round-trip time 0");
    WITH(link.bandwidth_bps = -5, LH_ERANGE, "-5");
    WITH(link.chunk_bytes = 4097, LH_EINVAL, "4097");
    WITH(link.loss_of_chunk = true, LH_EINVAL, "give the size of a chunk");
#undef WITH
}

/* A message longer than a segment waits for the parity of all but its last one. */
static void whose_machines(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-9, 64 * MIB);
    struct lh_model_scheme scheme;
    struct lh_plan_choice runs;
    struct lh_plan_choice whole;
    struct lh_plan_choice paper;
    assert_int_equal(question.timing, LH_MODEL_TIMING_LONGHAUL);
    assert_int_equal(question.link.segment_bytes, 4 * MIB);
    assert_int_equal(lh_model_scheme_parse("ec:mds", &scheme), 0);
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &runs), 0);
    question.link.segment_bytes = 0;
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &whole), 0);
    question.timing = LH_MODEL_TIMING_PAPER;
    assert_int_equal(lh_plan_weigh(&question, &scheme, 4096, &paper), 0);
    assert_int_equal(paper.scheme.timing, LH_MODEL_TIMING_PAPER);
    assert_true(whole.seconds < runs.seconds && runs.seconds < paper.seconds);
}

/* Each word is there, within its buffer. */
static void expect_verdict(const struct lh_plan_question *question, const char *const *words)
{
    char text[LH_PLAN_VERDICT_MAX], part[40];
    assert_int_equal(lh_plan_make(question, &plan), 0);
    assert_ptr_equal(lh_plan_verdict(question, &plan, text, sizeof text), text);
    assert_true(strlen(text) + 1 < sizeof text);
    for (; *words; words++)
        if (!strstr(text, *words))
            fail_msg("\"%s\" is not in: %s", *words, text);
    for (size_t size = 1; size <= sizeof part; size++) {
        memset(part, 'x', sizeof part);
        lh_plan_verdict(question, &plan, part, size);
        assert_memory_equal(part, text, size - 1);
        assert_int_equal(part[size - 1], 0);
    }
}

/* 1 - (1 - p)^packets of the messages lose any, whatever hides what it costs; bursts fall together. */
static void the_share_that_loses_packets(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-7, 64 * MIB);
    expect_verdict(&question, (const char *[]){"only 0.16 % of the messages lose packets", NULL});
    question = ask(1e-6, 512 * MIB);
    expect_verdict(&question, (const char *[]){"12.3 % of the messages lose packets", NULL});
    question = ask(1e-6, 8 * GIB); /* most of them in time */
    expect_verdict(&question, (const char *[]){"87.7 % of the messages lose packets: most are", NULL});
    question = ask(1e-8, 128 * GIB); /* 28.5 %: no reason to call it rare */
    expect_verdict(&question, (const char *[]){"Use sr-nack", "Why: injection lasts", NULL});
    question = ask(1e-4, 512 * MIB);
    expect_verdict(&question, (const char *[]){"100 % of the messages lose packets", NULL});
    question.link.burst_packets = 1e5; /* 1e-4 / 1e5 a packet that begins one, and 1e-4 that are in one */
    expect_verdict(&question, (const char *[]){"0.023 % of the messages lose packets", NULL});
}

/* The shares of a mix are those of its sizes by their weights: a round trip takes 25 ms, injection of 128 MiB
 * at 400 Gbit/s 2.7 ms, of 1 GiB 21.5 ms, with headers a little more. */
static void the_share_of_a_round_trip(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-5, 128 * MIB);
    expect_verdict(&question, (const char *[]){"and a round trip is 90 % of the ideal time", NULL});
    question = ask(1e-5, GIB);
    expect_verdict(&question, (const char *[]){"a round trip is 54 % of the ideal time", NULL});
    question.sizes[1] = (struct lh_plan_size){128 * MIB, 3};
    question.sizes_count = 2;
    expect_verdict(&question, (const char *[]){"a round trip is 81 % of the ideal time", NULL});
}

/* Nothing within the limits is faster than the next, but for the best and its neighbours. */
static void the_next_is_the_fastest_alternative(void **state)
{
    (void)state;
    for (double loss = 1e-7; loss < 0.015; loss *= 10)
        for (uint64_t bytes = MIB; bytes <= 64 * GIB; bytes *= 8) {
            struct lh_plan_question question = ask(loss, bytes);
            const struct lh_plan_choice *best = best_of(&question), *next = &plan.choices[plan.runner_up];
            assert_true(next != best);
            for (uint32_t i = 0; i < plan.count; i++)
                if (plan.choices[i].breaks == 0 && plan.choices[i].chunk_bytes == best->chunk_bytes &&
                    plan.choices[i].scheme.kind != best->scheme.kind)
                    assert_true(next->times_ideal <= plan.choices[i].times_ideal * 1.0006);
        }
}

static void verdicts(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(0, MIB);
    expect_verdict(&question,
                   (const char *[]){"Use sr-nack", "without loss, parity gains nothing", "Next: ", NULL});
    question = ask(1e-9, MIB);
    expect_verdict(&question, (const char *[]){"Use sr-nack", "Why: only", NULL});
    question = ask(1e-5, 128 * MIB);
    expect_verdict(&question, (const char *[]){"Use ec:", "% of the ideal time", "cores", "Next: ", NULL});
    question.max_cores = 0;
    expect_verdict(&question, (const char *[]){"Use sr-nack", "Without the limit of cores, ec:", NULL});
    question = ask(1e-3, 128 * MIB);
    expect_verdict(&question,
                   (const char *[]){"Use hybrid", "% of the ideal time", "cores", "Next: ", NULL});
    question = ask(1e-2, 8 * GIB);
    expect_verdict(&question,
                   (const char *[]){"Use hybrid", "while later data is injected", "Next: ", NULL});
    question = ask(1e-5, 1024 * GIB);
    question.by = LH_PLAN_BY_P99;
    expect_verdict(&question, (const char *[]){"Use sr-nack", "p99", "round trips", NULL});
}

static char *described(const struct lh_plan_choice *choice, char *out, size_t size)
{
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], chunk[LH_FORMAT_MAX];
    snprintf(out, size, "%s with chunks of %s",
             lh_model_scheme_format(&choice->scheme, scheme, sizeof scheme),
             lh_format_size(choice->chunk_bytes, chunk, sizeof chunk));
    return out;
}

/* "takes 2.5 times as long", "10.0 % slower", "as fast" */
static char *compared(const struct lh_plan_choice *best, const struct lh_plan_choice *next, char *out,
                      size_t size)
{
    double ratio = next->times_ideal / best->times_ideal, percent = 100 * fabs(ratio - 1);
    if (ratio >= 1.995)
        snprintf(out, size, ", takes %.3g times as long; it sends %.1f %% more", ratio,
                 100 * next->overhead);
    else if (percent < 0.05)
        snprintf(out, size, ", as fast; it sends %.1f %% more", 100 * next->overhead);
    else
        snprintf(out, size, ", %.1f %% %s", percent, ratio > 1 ? "slower" : "faster, yet counted as a tie");
    return out;
}

/* Scheme, time, and cost of the best and of the next, as they are in the plan. */
static void verdicts_have_the_numbers_of_the_plan(void **state)
{
    (void)state;
    uint32_t with_cores = 0;
    for (double loss = 1e-6; loss < 0.05; loss *= 100)
        for (uint64_t bytes = MIB; bytes <= 64 * GIB; bytes *= 128) {
            struct lh_plan_question question = ask(loss, bytes);
            const struct lh_plan_choice *best = best_of(&question), *next = &plan.choices[plan.runner_up];
            char text[256], use[300], cost[64], cores[64] = "", other[300], ratio[96], time[LH_FORMAT_MAX];
            snprintf(use, sizeof use, "Use %s: mean %s, %.2f times the ideal.\nIt ",
                     described(best, text, sizeof text), lh_format_time(best->seconds, time, sizeof time),
                     best->times_ideal);
            snprintf(cost, sizeof cost, "It sends %.1f %% more than the messages", 100 * best->overhead);
            if (best->cores > 0)
                snprintf(cores, sizeof cores, ", keeps %.1f cores encoding at line rate", best->cores);
            with_cores += best->cores > 0;
            snprintf(other, sizeof other, "Next: %s, %s,", described(next, text, sizeof text),
                     lh_format_time(next->seconds, time, sizeof time));
            compared(best, next, ratio, sizeof ratio);
            expect_verdict(&question, (const char *[]){use, cost, cores, other, ratio, NULL});
        }
    assert_true(with_cores > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_loss_the_simplest),
        cmocka_unit_test(as_in_the_papers_figure_9),
        cmocka_unit_test(along_the_ridge),
        cmocka_unit_test(a_stream_has_no_end),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(a_limit_that_nothing_keeps_to),
        cmocka_unit_test(a_wider_limit_is_never_slower),
        cmocka_unit_test(more_loss_is_never_faster),
        cmocka_unit_test(ties_go_to_what_costs_least),
        cmocka_unit_test(the_list_is_bounded_and_can_be_run),
        cmocka_unit_test(a_mix_weighs_each_size_by_its_own_ideal),
        cmocka_unit_test(what_encoding_costs),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(whose_machines),
        cmocka_unit_test(the_share_that_loses_packets),
        cmocka_unit_test(the_share_of_a_round_trip),
        cmocka_unit_test(the_next_is_the_fastest_alternative),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(verdicts_have_the_numbers_of_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
