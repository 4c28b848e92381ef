/*
 * What `auto` costs a connection: a decision, a step of weighing, and watching chunks arrive; beside the
 * planner, which it would ask for each message otherwise.
 *
 * usage: bench_auto [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdint.h>
#include <time.h>

#include "model/arrival_model.h"
#include "report.h"
#include "schemes/auto_choice.h"

#define SIZES   8u
#define REPEATS 25u
#define ROUNDS  10000u
#define CHUNKS  1024u

static struct auto_choice choice;
static struct lh_plan plan;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const struct auto_path path = {
    .rtt_s = 25e-3, .bandwidth_bps = 400e9, .chunk_loss = 1e-3, .burst_packets = 1};

static uint64_t size_of(uint32_t i)
{
    return (uint64_t)65536 << (i % SIZES * 2);
}

/* Sizes in turn, all of which are known. Microseconds a decision. */
static double decision_us(void)
{
    uint32_t sum = 0;
    double begin = now_s();
    for (uint32_t i = 0; i < ROUNDS; i++)
        sum += auto_choice_get(&choice, size_of(i), &path);
    double seconds = now_s() - begin;
    __asm__ volatile("" : : "r"(sum));
    return seconds * 1e6 / ROUNDS;
}

/* One size planned anew. Microseconds of the longest step. */
static double step_us(uint32_t i)
{
    struct auto_path other = path;
    double longest = 0;
    other.chunk_loss *= pow(2, 1 + i % 5);
    auto_choice_get(&choice, size_of(i), &other);
    bool more = true;
    while (more) {
        double begin = now_s();
        more = auto_choice_work(&choice);
        longest = fmax(longest, now_s() - begin);
    }
    return longest * 1e6;
}

static double plan_us(uint32_t i)
{
    struct lh_plan_question question;
    lh_plan_init(&question);
    question.link.chunk_bytes = 4096;
    question.link.bandwidth_bps = path.bandwidth_bps;
    question.link.rtt_s = path.rtt_s;
    question.link.loss = path.chunk_loss;
    question.sizes[0] = (struct lh_plan_size){.message_bytes = size_of(i), .weight = 1};
    question.sizes_count = 1;
    double begin = now_s();
    if (lh_plan_make(&question, &plan) != 0)
        exit(1);
    return (now_s() - begin) * 1e6;
}

/* A slot that fills chunk by chunk, with a look at each. Nanoseconds a chunk. */
static double watch_ns(void)
{
    static uint8_t bitmap[CHUNKS];
    struct path_estimate estimate;
    struct arrival_watch watch;
    path_estimate_init(&estimate);
    arrival_watch_init(&watch);
    memset(bitmap, 0, sizeof bitmap);
    double begin = now_s();
    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct arrival_look look = {
            .now = i * 1000u, .window_ns = 100000, .bitmap = bitmap, .chunks = CHUNKS};
        bitmap[i] = i % 100 != 50;
        arrival_watch_look(&watch, &look, &estimate);
        path_estimate_on_arrivals(&estimate, look.now, 1, 4096, 1000000);
    }
    return (now_s() - begin) * 1e9 / CHUNKS;
}

int main(int argc, char **argv)
{
    const struct auto_setup setup = {.mtu_bytes = 4096,
                                     .chunk_bytes = 4096,
                                     .slot_chunks = CHUNKS,
                                     .slots = 64,
                                     .cores = 1,
                                     .max_overhead = INFINITY};
    double decisions[REPEATS], steps[REPEATS], plans[REPEATS], watches[REPEATS];
    FILE *json = report_open(argc, argv);
    auto_choice_init(&choice, &setup);
    for (uint32_t i = 0; i < SIZES; i++) {
        auto_choice_get(&choice, size_of(i), &path);
        while (auto_choice_work(&choice))
            ;
    }
    for (uint32_t i = 0; i < REPEATS; i++) {
        decisions[i] = decision_us();
        plans[i] = plan_us(i);
        watches[i] = watch_ns();
    }
    for (uint32_t i = 0; i < REPEATS; i++)
        steps[i] = step_us(i);
    double decision = report_quantile(decisions, REPEATS, 0.5),
           whole = report_quantile(plans, REPEATS, 0.5);
    double step = report_quantile(steps, REPEATS, 0.5), watch = report_quantile(watches, REPEATS, 0.5);
    printf("  a decision, of a size that is known   %8.3f us\n", decision);
    printf("  the longest step of weighing          %8.1f us\n", step);
    printf("  watching, a chunk                     %8.1f ns\n", watch);
    printf("  lh_plan_make, for each message        %8.0f us\n", whole);
    report_line(json, "auto_decision", decision, "us", "lh_plan_make", whole, REPEATS);
    report_line(json, "auto_step", step, "us", "lh_plan_make", whole, REPEATS);
    report_line(json, "auto_watch", watch, "ns", "", 0, REPEATS);
    if (json)
        fclose(json);
    return 0;
}
