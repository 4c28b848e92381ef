/*
 * test_group_bounded.c - collectives over hops whose reliability is `bounded`, in virtual time: exact
 * without losses, close and unbiased with them, over by the deadline, what is missing is zero and
 * reported, and a rank that stood still catches up.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/schedules.h"
#include "group/group.h"
#include "support/group_world.h"

#define MS        LH_NS_PER_MS
#define TICK_NS   (50 * LH_NS_PER_US)
#define LIMIT_NS  (60 * LH_NS_PER_S)
#define GRANULE   1024u
#define LINK      "delay=5ms,rate=1Gbit"
#define RANKS_MAX 6u

struct run {
    enum collective collective;
    const char *schedule;
    enum lh_reduction reduction;
    size_t count; /* of f32 */
    uint64_t seed;
    /* set */
    size_t in_count, out_count;
    float *in[RANKS_MAX], *out[RANKS_MAX];
    struct lh_collective *ops[RANKS_MAX];
    struct lh_collective_result results[RANKS_MAX];
};

static const char *const two_sites[] = {"a", "a", "b", "b", "b", "a"};

static void open_world(struct group_world *world, uint32_t size, const char *link, const char *reliability,
                       const char *const *sites)
{
    struct lh_attr inside, across;
    struct lh_group_attr attr;
    lh_attr_init(&inside);
    inside.rate_bps = 1000000000;
    across = inside;
    across.reliability = reliability;
    lh_group_attr_init(&attr);
    attr.block_bytes = 32768;
    attr.buffer_bytes = 1u << 20;
    attr.peer_timeout_ns = 2 * LH_NS_PER_S;
    attr.attr = sites ? &inside : &across;
    attr.attr_across = &across;
    group_world_open(world, "bounded", 7, link, size, &attr, sites);
}

static void fill(struct run *run, uint32_t ranks)
{
    bool parts = run->collective == COLLECTIVE_ALLGATHER,
         scatters = run->collective == COLLECTIVE_REDUCE_SCATTER;
    struct lh_prng prng;
    lh_prng_seed(&prng, run->seed);
    run->in_count = scatters ? run->count * ranks : run->count;
    run->out_count = parts ? run->count * ranks : run->count;
    for (uint32_t r = 0; r < ranks; r++) {
        run->in[r] = malloc(run->in_count * sizeof(float));
        run->out[r] = malloc(run->out_count * sizeof(float));
        assert_true(run->in[r] && run->out[r]);
        for (size_t i = 0; i < run->in_count; i++)
            run->in[r][i] = (float)(lh_prng_double(&prng) * 2 - 1);
        memset(run->out[r], 0x7f, run->out_count * sizeof(float)); /* what was there before */
    }
    if (run->collective == COLLECTIVE_BROADCAST)
        memcpy(run->out[0], run->in[0], run->count * sizeof(float));
}

static void start(struct run *run, struct group_world *world, uint32_t r)
{
    struct lh_collective_options options;
    struct lh_group *group = world->groups[r];
    lh_collective_options_init(&options);
    options.schedule = run->schedule;
    int error = -1;
    if (run->collective == COLLECTIVE_ALLREDUCE)
        error = lh_allreduce(group, run->in[r], run->out[r], run->count, LH_F32, run->reduction, &options,
                             &run->ops[r]);
    else if (run->collective == COLLECTIVE_REDUCE_SCATTER)
        error = lh_reduce_scatter(group, run->in[r], run->out[r], run->count, LH_F32, run->reduction,
                                  &options, &run->ops[r]);
    else if (run->collective == COLLECTIVE_ALLGATHER)
        error = lh_allgather(group, run->in[r], run->out[r], run->count, LH_F32, &options, &run->ops[r]);
    else
        error = lh_broadcast(group, run->out[r], run->count, LH_F32, 0, &options, &run->ops[r]);
    sim_engines_must(error, "start");
}

static void finish(struct run *run, struct group_world *world)
{
    assert_true(group_world_run(world, run->ops, world->size, LIMIT_NS));
    for (uint32_t r = 0; r < world->size; r++) {
        assert_int_equal(lh_collective_test(run->ops[r], &run->results[r]), 1);
        if (run->results[r].error)
            print_error("rank %u: %s\n", r, run->results[r].message);
        assert_int_equal(run->results[r].error, 0);
    }
}

static void release(struct run *run, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++) {
        lh_collective_free(run->ops[r]);
        free(run->in[r]);
        free(run->out[r]);
    }
}

static void run_all(struct run *run, struct group_world *world)
{
    fill(run, world->size);
    for (uint32_t r = 0; r < world->size; r++)
        start(run, world, r);
    finish(run, world);
}

/* What an element should be. */
static double expected(const struct run *run, uint32_t ranks, uint32_t rank, size_t i)
{
    double sum = 0;
    if (run->collective == COLLECTIVE_BROADCAST)
        return run->in[0][i];
    if (run->collective == COLLECTIVE_ALLGATHER)
        return run->in[i / run->count][i % run->count];
    for (uint32_t r = 0; r < ranks; r++)
        sum += run->in[r][run->collective == COLLECTIVE_REDUCE_SCATTER ? rank * run->count + i : i];
    return run->reduction == LH_AVG ? sum / ranks : sum;
}

static double worst_error(const struct run *run, uint32_t ranks)
{
    double worst = 0;
    for (uint32_t r = 0; r < ranks; r++)
        for (size_t i = 0; i < run->out_count; i++)
            worst = fmax(worst, fabs(run->out[r][i] - expected(run, ranks, r, i)));
    return worst;
}

static bool applies(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE_SCATTER ||
           collective == COLLECTIVE_ALLGATHER || collective == COLLECTIVE_BROADCAST;
}

/* ---- without losses ---------------------------------------------------------------------------------- */

static void check_exact(uint32_t size, const char *const *sites)
{
    struct group_world world;
    open_world(&world, size, LINK, "bounded:deadline=1s", sites);
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        struct run run = {.collective = (*s)->collective,
                          .schedule = (*s)->name,
                          .reduction = size % 2 ? LH_AVG : LH_SUM,
                          .count = 40007,
                          .seed = size};
        if (!applies(run.collective))
            continue;
        run_all(&run, &world);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(run.results[r].missing_bytes, 0);
            if (run.collective == COLLECTIVE_ALLREDUCE)
                assert_memory_equal(run.out[r], run.out[0], run.out_count * sizeof(float));
        }
        double worst = worst_error(&run, size);
        if (worst > 1e-5)
            print_error("%s: %g\n", run.schedule, worst);
        assert_true(worst <= 1e-5);
        release(&run, size);
    }
    group_world_close(&world);
}

static void test_exact(void **state)
{
    (void)state;
    check_exact(2, NULL);
    check_exact(5, NULL);
    check_exact(6, two_sites);
}

/* ---- with losses ------------------------------------------------------------------------------------- */

/* Bytes of the ranges, which are in order and apart; three at a time. mark: NULL, or by byte. */
static uint64_t ranges_of(struct lh_collective *op, uint8_t *mark)
{
    struct lh_range ranges[3];
    uint64_t sum = 0, end = 0, first = 0;
    int64_t n = 3;
    while (n == 3) {
        n = lh_collective_ranges(op, first, ranges, 3);
        assert_in_range(n, 0, 3);
        for (int64_t i = 0; i < n; i++, first++) {
            assert_true(ranges[i].bytes > 0 && (first == 0 || ranges[i].offset > end));
            end = ranges[i].offset + ranges[i].bytes;
            sum += ranges[i].bytes;
            for (uint64_t b = ranges[i].offset; mark && b < end; b++)
                mark[b] = 1;
        }
    }
    return sum;
}

/* The squared error over the squared sum, and the mean over runs of (result - sum) * sign(sum), over the
 * mean of |sum|: what a bias would show. */
static void check_error(const char *link, const char *schedule, uint32_t size, const char *const *sites)
{
    struct group_world world;
    double squares = 0, energy = 0, bias = 0, magnitude = 0, worst = 0;
    uint64_t missing = 0, bytes = 0;
    open_world(&world, size, link, "bounded:deadline=1s", sites);
    for (uint32_t i = 0; i < 24; i++) {
        struct run run = {
            .collective = COLLECTIVE_ALLREDUCE, .schedule = schedule, .count = 65536, .seed = i};
        double of_run = 0, energy_of_run = 0;
        run_all(&run, &world);
        for (uint32_t r = 0; r < size; r++) {
            missing += run.results[r].missing_bytes;
            assert_int_equal(ranges_of(run.ops[r], NULL), run.results[r].missing_bytes);
            bytes += run.count * sizeof(float);
            for (size_t k = 0; k < run.count; k++) {
                double sum = expected(&run, size, r, k), error = run.out[r][k] - sum;
                of_run += error * error;
                energy_of_run += sum * sum;
                bias += sum > 0 ? error : -error;
                magnitude += fabs(sum);
            }
        }
        squares += of_run;
        energy += energy_of_run;
        worst = fmax(worst, of_run / energy_of_run);
        release(&run, size);
    }
    printf("%s, %s: %.3f %% missing, error %.5f of energy, at worst %.5f, bias %.5f\n", link,
           schedule ? schedule : "chosen", 100.0 * (double)missing / (double)bytes, squares / energy, worst,
           bias / magnitude);
    assert_true(missing > 0);
    assert_true(squares / energy <= 6.0 * (double)missing / (double)bytes);
    assert_true(fabs(bias / magnitude) <= 0.1 * (double)missing / (double)bytes + 0.001);
    group_world_close(&world);
}

static void test_losses(void **state)
{
    (void)state;
    check_error(LINK ",loss=1e-2", "direct", 2, NULL);
    check_error(LINK ",loss=1e-2", "ring", 4, NULL);
    check_error(LINK ",loss=1e-2", "halving-doubling", 4, NULL);
    check_error(LINK ",loss=1e-2", "hierarchical", 6, two_sites);
    check_error(LINK ",loss=1e-2,burst=16", "direct", 3, NULL);
}

/* Of eight all-reduces of 4 ranks over links that lose a packet in 50. */
static uint64_t missing_by(const char *reliability, const char *schedule)
{
    struct group_world world;
    uint64_t missing = 0;
    open_world(&world, 4, LINK ",loss=2e-2", reliability, NULL);
    for (uint32_t i = 0; i < 8; i++) {
        struct run run = {
            .collective = COLLECTIVE_ALLREDUCE, .schedule = schedule, .count = 65536, .seed = i};
        run_all(&run, &world);
        uint64_t own = 0;
        for (uint32_t r = 0; r < 4; r++) {
            assert_int_equal(ranges_of(run.ops[r], NULL), run.results[r].missing_bytes);
            own += run.results[r].missing_bytes;
        }
        if (own == 0)
            assert_true(worst_error(&run, 4) < 1e-5);
        missing += own;
        release(&run, 4);
    }
    group_world_close(&world);
    return missing;
}

/* Parity brings back most of what was lost; what it does not is missing as without. */
static void test_codes(void **state)
{
    static const char *const schedules[] = {"direct", "ring", "halving-doubling"};
    uint64_t xor_missing = 0;
    (void)state;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        uint64_t plain = missing_by("bounded:deadline=1s", schedules[i]);
        uint64_t mds = missing_by("bounded:deadline=1s,code=mds,k=8,m=4", schedules[i]);
        uint64_t xor = missing_by("bounded:deadline=1s,code=xor,k=8,m=2", schedules[i]);
        printf("%s: missing %llu bytes, with mds %llu, with xor %llu\n", schedules[i],
               (unsigned long long)plain, (unsigned long long)mds, (unsigned long long)xor);
        assert_true(mds <= plain / 50);
        assert_true(xor <= plain / 4);
        xor_missing += xor;
    }
    assert_true(xor_missing > 0);
}

/* By source; all of it was to come. */
static uint64_t missing_of_all(struct lh_collective *op, uint32_t ranks)
{
    uint64_t sum = 0, bytes;
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(lh_collective_missing(op, r, &bytes), 0);
        sum += bytes;
    }
    assert_int_equal(lh_collective_missing(op, ranks, &bytes), -LH_EINVAL);
    return sum;
}

/* What is zero is what is reported, and all else is right; what was to come has been received or is
 * missing. */
static void check_zeroes(enum collective collective, const char *schedule)
{
    struct group_world world;
    uint64_t missing = 0;
    open_world(&world, 4, LINK ",loss=2e-2", "bounded:deadline=1s", NULL);
    for (uint32_t i = 0; i < 8; i++) {
        struct run run = {.collective = collective, .schedule = schedule, .count = 50000, .seed = i};
        run_all(&run, &world);
        for (uint32_t r = 0; r < 4; r++) {
            uint64_t zeroed = 0;
            uint8_t *mark = calloc(run.out_count, sizeof(float));
            assert_non_null(mark);
            assert_int_equal(ranges_of(run.ops[r], mark), run.results[r].missing_bytes);
            for (size_t k = 0; k < run.out_count; k++) {
                bool zero = run.out[r][k] == 0;
                zeroed += zero ? sizeof(float) : 0;
                assert_int_equal(mark[k * sizeof(float)], zero);
                assert_true(zero || run.out[r][k] == (float)expected(&run, 4, r, k));
            }
            assert_int_equal(zeroed, run.results[r].missing_bytes);
            uint64_t own = collective == COLLECTIVE_ALLGATHER ? run.count : r == 0 ? run.out_count : 0;
            assert_int_equal(run.results[r].bytes_received + missing_of_all(run.ops[r], 4),
                             (run.out_count - own) * sizeof(float));
            missing += zeroed;
            free(mark);
        }
        release(&run, 4);
    }
    assert_true(missing > 0);
    group_world_close(&world);
}

static void test_zeroes(void **state)
{
    (void)state;
    check_zeroes(COLLECTIVE_ALLGATHER, "ring");
    check_zeroes(COLLECTIVE_ALLGATHER, "bruck");
    check_zeroes(COLLECTIVE_BROADCAST, "binomial-pipeline");
    check_zeroes(COLLECTIVE_BROADCAST, "chain");
}

/* ---- deadlines --------------------------------------------------------------------------------------- */

#define DEADLINE_NS (60 * MS)

/* A rank begins late: the others end by the deadline, it ends at once, and what comes next is whole again. */
static void check_straggler(enum collective collective, const char *schedule, uint32_t late)
{
    struct group_world world;
    struct run run = {.collective = collective, .schedule = schedule, .count = 60000, .seed = 1},
               next = run;
    open_world(&world, 4, LINK, "bounded:deadline=60ms", NULL);
    fill(&run, 4);
    lh_time begun = group_world_now(&world);
    for (uint32_t r = 0; r < 4; r++)
        if (r != late)
            start(&run, &world, r);
    while (group_world_now(&world) < begun + 500 * MS)
        group_world_turn(&world, begun + 500 * MS);
    for (uint32_t r = 0; r < 4; r++)
        if (r != late) {
            assert_int_equal(lh_collective_test(run.ops[r], &run.results[r]), 1);
            assert_int_equal(run.results[r].error, 0);
            assert_true(run.results[r].ended_ns <= begun + DEADLINE_NS + TICK_NS);
        }
    start(&run, &world, late);
    finish(&run, &world);
    assert_true(run.results[late].ended_ns - run.results[late].started_ns <= DEADLINE_NS + TICK_NS);
    run_all(&next, &world);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(next.results[r].missing_bytes, 0);
        assert_true(next.results[r].ended_ns - next.results[r].started_ns < DEADLINE_NS);
    }
    assert_true(worst_error(&next, 4) < 1e-5);
    release(&run, 4);
    release(&next, 4);
    group_world_close(&world);
}

static void test_straggler(void **state)
{
    (void)state;
    check_straggler(COLLECTIVE_ALLREDUCE, "direct", 2);
    check_straggler(COLLECTIVE_ALLREDUCE, "ring", 0);
    check_straggler(COLLECTIVE_ALLGATHER, "bruck", 3);
    check_straggler(COLLECTIVE_BROADCAST, "binomial-tree", 0);
}

/* Ranks that run ahead of one that stood still, for longer than its memory would take: it keeps next to
 * nothing of what came last, and catches up. */
static void test_catches_up(void **state)
{
    enum { RUNS = 40 };
    (void)state;
    struct group_world world;
    static struct run runs[RUNS];
    size_t full = 0;
    open_world(&world, 3, LINK, "bounded:deadline=30ms", NULL);
    for (uint32_t i = 0; i < RUNS; i++) {
        runs[i] = (struct run){
            .collective = COLLECTIVE_ALLREDUCE, .schedule = "direct", .count = 262144, .seed = i};
        fill(&runs[i], 3);
        start(&runs[i], &world, 0);
        start(&runs[i], &world, 1);
        lh_time until = group_world_now(&world) + 40 * MS;
        while (group_world_now(&world) < until)
            group_world_turn(&world, until);
        assert_int_equal(lh_collective_test(runs[i].ops[0], &runs[i].results[0]), 1);
        assert_int_equal(runs[i].results[0].error, 0);
        if (i == RUNS / 2)
            full = member_link(&world.groups[2]->members, 0)->kept_bytes;
    }
    assert_true(member_link(&world.groups[2]->members, 0)->kept_bytes - full < RUNS / 2 * 600);
    lh_time begun = group_world_now(&world);
    for (uint32_t i = 0; i < RUNS; i++) {
        start(&runs[i], &world, 2);
        finish(&runs[i], &world);
        release(&runs[i], 3);
    }
    assert_true(group_world_now(&world) - begun < RUNS * 30 * MS / 4);
    group_world_close(&world);
}

/* The host of a rank stands still while sends to it, inside its site, are on their way; the others go on
 * without it, and what they store later does not change what these carry. With one tensor at all ranks each
 * sum is known, whatever is missing of it. */
static void test_stopped_host(void **state)
{
    (void)state;
    struct group_world world;
    open_world(&world, 4, "delay=50us,rate=1Gbit", "bounded:deadline=40ms", two_sites);
    for (uint32_t i = 0; i < 4; i++) {
        struct run run = {
            .collective = COLLECTIVE_ALLREDUCE, .schedule = "ring", .count = 400000, .seed = i};
        fill(&run, 4);
        for (uint32_t r = 0; r < 4; r++) {
            memcpy(run.in[r], run.in[0], run.count * sizeof(float));
            start(&run, &world, r);
        }
        lh_time until = group_world_now(&world) + 200 * MS;
        world.dead[1] = true;
        while (group_world_now(&world) < until)
            group_world_turn(&world, until);
        world.dead[1] = false;
        finish(&run, &world);
        assert_true(worst_error(&run, 4) < 1e-5);
        release(&run, 4);
    }
    group_world_close(&world);
}

/* What a group agrees on is whole, though a rank comes after the deadline. */
static void test_own_gather(void **state)
{
    enum { BYTES = 8192 };
    (void)state;
    struct group_world world;
    struct lh_collective *ops[2];
    static uint8_t mine[2][BYTES], all[2][2 * BYTES];
    open_world(&world, 2, LINK, "bounded:deadline=60ms", NULL);
    for (uint32_t r = 0; r < 2; r++) {
        memset(mine[r], 1 + (int)r, BYTES);
        sim_engines_must(gather_begin(world.groups[r], mine[r], BYTES, all[r], &ops[r]), "gather_begin");
        lh_time until = group_world_now(&world) + 200 * MS;
        while (r == 0 && group_world_now(&world) < until)
            group_world_turn(&world, until);
    }
    assert_true(group_world_run(&world, ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t from = 0; from < 2; from++)
            assert_memory_equal(all[r] + from * BYTES, mine[from], BYTES);
        assert_int_equal(gather_end(ops[r], 0), 0);
    }
    group_world_close(&world);
}

/* ---- deadlines that are learned ---------------------------------------------------------------------- */

/* One of them at all ranks; a rank begins late by so much. Returns the longest time that another took. */
static lh_time run_late(struct group_world *world, struct run *run, uint32_t late, lh_time by_ns)
{
    lh_time longest = 0, until = group_world_now(world) + by_ns;
    fill(run, world->size);
    for (uint32_t r = 0; r < world->size; r++)
        if (r != late || by_ns == 0)
            start(run, world, r);
    while (group_world_now(world) < until)
        group_world_turn(world, until);
    if (by_ns > 0)
        start(run, world, late);
    finish(run, world);
    for (uint32_t r = 0; r < world->size; r++) {
        lh_time took_ns = run->results[r].ended_ns - run->results[r].started_ns;
        if (r != late && took_ns > longest)
            longest = took_ns;
    }
    return longest;
}

/* After a warm-up the others do not wait for a rank that stands still, in the middle of usual ones, of
 * which next to nothing is missing; */
static void check_learned(enum collective collective, const char *schedule)
{
    struct group_world world;
    uint64_t missing = 0;
    lh_time usual_ns = 0, late_ns = 0;
    open_world(&world, 4, LINK, "bounded", NULL);
    for (uint32_t i = 0; i < 24; i++) {
        struct run run = {.collective = collective, .schedule = schedule, .count = 200000, .seed = i};
        lh_time by_ns = i == 12 ? 800 * MS : 0;
        lh_time took_ns = run_late(&world, &run, 2, by_ns);
        for (uint32_t r = 0; r < 4 && i != 12; r++)
            missing += run.results[r].missing_bytes;
        *(i == 12 ? &late_ns : &usual_ns) = took_ns;
        release(&run, 4);
    }
    printf("%s: %.2f ms, with a rank that stands still %.2f ms; %llu bytes missing of others\n", schedule,
           (double)usual_ns / 1e6, (double)late_ns / 1e6, (unsigned long long)missing);
    assert_true(late_ns <= 2 * usual_ns);
    assert_true(missing <= 23 * 4 * 800000 / 100);
    group_world_close(&world);
}

static void test_learned(void **state)
{
    (void)state;
    check_learned(COLLECTIVE_ALLREDUCE, "ring");
    check_learned(COLLECTIVE_ALLREDUCE, "halving-doubling");
    check_learned(COLLECTIVE_BROADCAST, "binomial-pipeline");
}

/* An operation that fails counts at all ranks: else proposals of one would be of other operations. */
static void test_rounds(void **state)
{
    (void)state;
    struct group_world world;
    struct lh_timeout_state states[3];
    open_world(&world, 3, LINK, "bounded", NULL);
    for (uint32_t i = 0; i < 4; i++) {
        struct run run = {
            .collective = COLLECTIVE_ALLREDUCE, .schedule = "ring", .count = 20000, .seed = i};
        fill(&run, 3);
        if (i == 2)
            run.in[1][17] = NAN;
        for (uint32_t r = 0; r < 3; r++)
            start(&run, &world, r);
        assert_true(group_world_run(&world, run.ops, 3, LIMIT_NS));
        release(&run, 3);
    }
    for (uint32_t r = 0; r < 3; r++) {
        lh_timeout_state(world.groups[r]->operations.timeouts[COLLECTIVE_ALLREDUCE], &states[r]);
        assert_int_equal(states[r].round, 4);
    }
    group_world_close(&world);
}

static void test_death(void **state)
{
    (void)state;
    struct group_world world;
    struct run run = {.collective = COLLECTIVE_ALLREDUCE, .schedule = "ring", .count = 60000, .seed = 1};
    open_world(&world, 4, LINK, "bounded:deadline=1s", NULL);
    fill(&run, 4);
    group_world_kill(&world, 2);
    for (uint32_t r = 0; r < 4; r++)
        if (r != 2)
            start(&run, &world, r);
    assert_true(group_world_run(&world, run.ops, 4, LIMIT_NS)); /* without it, by the deadline */
    lh_time until = group_world_now(&world) + 5 * LH_NS_PER_S;
    while (group_world_now(&world) < until)
        group_world_turn(&world, until);
    struct lh_collective *op;
    assert_int_equal(
        lh_allreduce(world.groups[0], run.in[0], run.out[0], run.count, LH_F32, LH_SUM, NULL, &op),
        -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), "rank 2"));
    release(&run, 4);
    group_world_close(&world);
}

/* A rank whose operation is over leaves before another one begins: a third, which waits for that one over
 * reliable hops, has its word all the same. */
static void test_left(void **state)
{
    (void)state;
    static const char *const sites[] = {"a", "b", "b"};
    struct group_world world;
    struct run run = {.collective = COLLECTIVE_ALLREDUCE, .schedule = "ring", .count = 60000, .seed = 1};
    open_world(&world, 3, LINK, "bounded:deadline=60ms", sites);
    fill(&run, 3);
    start(&run, &world, 0);
    start(&run, &world, 1);
    assert_true(group_world_run(&world, run.ops, 1, LIMIT_NS));
    lh_collective_free(run.ops[0]);
    run.ops[0] = NULL;
    sim_engines_must(lh_group_destroy(world.groups[0]), "lh_group_destroy");
    world.groups[0] = NULL;
    group_world_kill(&world, 0);
    lh_time until = group_world_now(&world) + LH_NS_PER_S;
    while (group_world_now(&world) < until) {
        sim_engines_must(lh_engine_progress(world.net.engines[0], NULL), "lh_engine_progress");
        group_world_turn(&world, until);
    }
    assert_int_equal(lh_group_error(world.groups[2], 0), -LH_ECLOSED);
    assert_int_equal(lh_collective_test(run.ops[1], NULL), 0);
    start(&run, &world, 2);
    assert_true(group_world_run(&world, run.ops, 3, LIMIT_NS));
    for (uint32_t r = 1; r < 3; r++) {
        assert_int_equal(lh_collective_test(run.ops[r], &run.results[r]), 1);
        assert_int_equal(run.results[r].error, 0);
    }
    release(&run, 3);
    group_world_close(&world);
}

/* Nor is there room for it to be told that an operation is over without it: its link has failed then. */
static void test_overflow(void **state)
{
    (void)state;
    struct group_world world;
    struct run run = {.collective = COLLECTIVE_ALLREDUCE, .schedule = "ring", .count = 60000, .seed = 1};
    open_world(&world, 2, LINK, "bounded:deadline=60ms", NULL);
    fill(&run, 2);
    start(&run, &world, 0);
    struct link *link = member_link(&world.groups[0]->members, 1);
    const uint32_t many = 1u << 20;
    link->lanes[LANE_SMALL].unacknowledged += many;
    link->backlog_bytes = (size_t)16 << 20;
    assert_true(group_world_run(&world, run.ops, 1, LIMIT_NS));
    assert_int_equal(lh_collective_test(run.ops[0], &run.results[0]), 1);
    assert_int_equal(run.results[0].error, -LH_EPEER);
    assert_int_equal(run.results[0].failed_rank, 1);
    assert_int_equal(lh_group_error(world.groups[0], 1), -LH_EPEER);
    link->lanes[LANE_SMALL].unacknowledged -= many;
    release(&run, 2);
    group_world_close(&world);
}

/* ---- what is refused --------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    struct group_world world;
    struct lh_collective *op;
    struct lh_collective_options options;
    static float in[8192], out[8192];
    open_world(&world, 2, LINK, "bounded:deadline=1s", NULL);
    lh_collective_options_init(&options);
    assert_int_equal(lh_allreduce(world.groups[0], in, out, 8192, LH_I32, LH_SUM, &options, &op),
                     -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "not i32 (set lh_collective_options.reliable)"));
    assert_int_equal(lh_allreduce(world.groups[0], in, out, 8192, LH_F32, LH_MAX, &options, &op),
                     -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "not max (set lh_collective_options.reliable)"));
    assert_int_equal(lh_alltoall(world.groups[0], in, out, 4096, LH_F32, &options, &op), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "alltoall: unsupported with the reliability bounded"));
    struct lh_collective *ops[2];
    options.reliable = true;
    for (uint32_t r = 0; r < 2; r++)
        sim_engines_must(
            lh_allreduce(world.groups[r], in, r ? out : in, 8192, LH_I32, LH_SUM, &options, &ops[r]),
            "reliable");
    assert_true(group_world_run(&world, ops, 2, LIMIT_NS));
    lh_collective_free(ops[0]);
    lh_collective_free(ops[1]);
    options.reliable = false;
    in[4242] = NAN; /* an error at all, with the rank */
    sim_engines_must(lh_allreduce(world.groups[0], out, out, 8192, LH_F32, LH_SUM, &options, &ops[0]),
                     "one");
    sim_engines_must(lh_allreduce(world.groups[1], in, in, 8192, LH_F32, LH_SUM, &options, &ops[1]),
                     "other");
    assert_true(group_world_run(&world, ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++) {
        struct lh_collective_result result;
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, -LH_ERANGE);
        assert_int_equal(result.failed_rank, 1);
        assert_non_null(strstr(result.message, "element 4242 at rank 1"));
        lh_collective_free(ops[r]);
    }
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),      cmocka_unit_test(test_losses),
        cmocka_unit_test(test_zeroes),     cmocka_unit_test(test_codes),
        cmocka_unit_test(test_straggler),  cmocka_unit_test(test_learned),
        cmocka_unit_test(test_catches_up), cmocka_unit_test(test_death),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_stopped_host),
        cmocka_unit_test(test_rounds),     cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_own_gather), cmocka_unit_test(test_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
