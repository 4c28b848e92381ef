/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_paths.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/plan.h>

#include "base/bytes.h"
#include "support/sanitized.h"

#define BLOCK ((size_t)256 << 10)
#define RANKS 64u

static const struct path_figures NEAR = {.rtt_ns = 50000},
                                 FAR = {.rtt_ns = 25000000, .rate_bps = 2000000000};

/* A group without links, in sites of as many ranks each. */
struct fixture {
    struct members members;
    struct group_paths paths;
    pthread_mutex_t lock;
    uint32_t sites[RANKS];
};

static void set_sites(struct fixture *f, const uint32_t *order)
{
    group_order_release(f->paths.order);
    f->paths.order = group_order_create(f->sites, order, f->members.size);
    assert_non_null(f->paths.order);
}

static void tear_down(struct fixture *f)
{
    choosing_free(&f->paths.choosing);
    group_order_release(f->paths.order);
    f->paths.order = NULL;
}

static void set_up(struct fixture *f, uint32_t ranks, uint32_t of_site, const struct path_figures *across)
{
    *f = (struct fixture){.members.size = ranks, .lock = PTHREAD_MUTEX_INITIALIZER};
    f->paths.members = &f->members;
    f->paths.block_bytes = BLOCK;
    f->paths.lock = &f->lock;
    for (uint32_t r = 0; r < ranks; r++)
        f->sites[r] = r / of_site;
    set_sites(f, NULL);
    f->paths.inside = NEAR;
    if (across)
        f->paths.across = *across;
}

static const char *ask(struct fixture *f, enum collective collective, uint64_t bytes)
{
    const struct schedule *chosen, *again;
    assert_int_equal(choosing_find(&f->paths, collective, bytes, &chosen), 0);
    assert_int_equal(choosing_find(&f->paths, collective, bytes, &again), 0);
    assert_ptr_equal(chosen, again);
    assert_int_equal(chosen->collective, collective);
    return chosen->name;
}

static const char *best(uint32_t ranks, enum collective collective, uint64_t bytes)
{
    struct fixture f;
    set_up(&f, ranks, ranks, NULL);
    const char *name = ask(&f, collective, bytes);
    tear_down(&f);
    return name;
}

/* Little data by few steps, much by few bytes. */
static void test_sizes(void **state)
{
    (void)state;
    assert_string_equal(best(8, COLLECTIVE_ALLREDUCE, 64), "direct");
    assert_string_equal(best(8, COLLECTIVE_ALLREDUCE, 1 << 26), "halving-doubling");
    assert_string_equal(best(16, COLLECTIVE_ALLTOALL, 1 << 26), "pairwise");
    assert_string_equal(best(8, COLLECTIVE_BROADCAST, 1 << 20), "binomial-pipeline");
}

/* Over long links data crosses once, and in few steps. */
static void test_sites(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f, 2, 1, &FAR);
    assert_string_equal(ask(&f, COLLECTIVE_ALLREDUCE, 1 << 20), "direct");
    tear_down(&f);
    set_up(&f, 8, 4, &FAR);
    assert_string_equal(ask(&f, COLLECTIVE_ALLREDUCE, 1 << 24), "hierarchical");
    assert_string_equal(ask(&f, COLLECTIVE_BROADCAST, 1 << 24), "hybrid");
    assert_true(choosing_uses_map(&f.paths, COLLECTIVE_ALLTOALL));
    tear_down(&f);
}

/* The parts of an all-to-all are in the order of the ranks, so its places have to be. */
static void test_mixed_sites(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f, 64, 32, &FAR);
    for (uint32_t r = 0; r < 64; r++)
        f.sites[r] = r % 2;
    set_sites(&f, NULL);
    for (enum collective each = 0; each < COLLECTIVES; each++)
        assert_int_equal(choosing_uses_map(&f.paths, each),
                         each != COLLECTIVE_BARRIER && each != COLLECTIVE_ALLTOALL);
    tear_down(&f);
}

/* In one site an order by rank is none. */
static void test_order(void **state)
{
    static const uint32_t order[] = {0, 2, 1, 3};
    struct fixture f;
    (void)state;
    set_up(&f, 4, 4, NULL);
    assert_false(choosing_uses_map(&f.paths, COLLECTIVE_ALLREDUCE));
    set_sites(&f, order);
    assert_true(choosing_uses_map(&f.paths, COLLECTIVE_ALLREDUCE));
    assert_true(choosing_uses_map(&f.paths, COLLECTIVE_ALLGATHER));
    tear_down(&f);
}

/* Where the ranks share processors, what all of them do together counts: few messages, not few steps. */
static void test_machine(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f, 8, 8, NULL);
    assert_string_equal(ask(&f, COLLECTIVE_ALLREDUCE, 64), "direct");
    choosing_free(&f.paths.choosing);
    f.paths.processors = 8;
    assert_string_equal(ask(&f, COLLECTIVE_ALLREDUCE, 64), "direct");
    choosing_free(&f.paths.choosing);
    f.paths.processors = 1;
    assert_string_not_equal(ask(&f, COLLECTIVE_ALLREDUCE, 64), "direct");
    tear_down(&f);
}

/* A row of each rank, on a machine of as many processors: one path had to wait for the scheduler. */
static void put_rows(const struct fixture *f, uint32_t processors, bool apart, uint8_t *rows)
{
    uint32_t size = f->members.size;
    size_t bytes = paths_row_bytes(&f->paths), cell = bytes / size;
    memset(rows, 0, size * bytes);
    for (uint32_t r = 0; r < size; r++)
        for (uint32_t to = 0; to < size; to++) {
            uint8_t *at = rows + r * bytes + to * cell;
            bool slow = r + to == 1;
            if (r != to)
                lh_put_be64(at, slow ? FAR.rtt_ns : NEAR.rtt_ns);
            lh_put_be32(at + cell - 4, r == to ? processors + r : !(apart && slow));
        }
}

/* Four ranks of one machine, and what each tells. */
struct machine {
    struct fixture fixture;
    char sites[4][LH_GROUP_SITE_MAX];
    uint8_t rows[4 * 4 * 32];
};

static struct fixture *set_up_machine(struct machine *machine, uint32_t processors)
{
    struct fixture *f = &machine->fixture;
    memset(machine->sites, 0, sizeof machine->sites);
    set_up(f, 4, 4, NULL);
    f->paths.sites = machine->sites;
    assert_int_equal(4 * paths_row_bytes(&f->paths), sizeof machine->rows);
    put_rows(f, processors, false, machine->rows);
    return f;
}

static void tear_down_machine(struct machine *machine)
{
    group_order_release(machine->fixture.paths.created.order);
    tear_down(&machine->fixture);
}

/* What a rank names as the rate from another. */
static void put_rate(const struct fixture *f, uint32_t rank, uint32_t from, uint64_t rate_bps,
                     uint8_t *rows)
{
    lh_put_be64(rows + (rank * f->members.size + from) * paths_row_bytes(&f->paths) / f->members.size + 8,
                rate_bps);
}

/* There, too, the lowest rate that one names counts, and a round trip that is not known does not. */
static void test_figures_of_one_machine(void **state)
{
    struct machine machine;
    (void)state;
    struct fixture *f = set_up_machine(&machine, 2);
    put_rate(f, 2, 1, 1000000000, machine.rows);
    put_rate(f, 3, 1, 100000000000, machine.rows);
    lh_put_be64(machine.rows + paths_row_bytes(&f->paths), 0);
    assert_int_equal(paths_agree(&f->paths, machine.rows, false), 0);
    assert_int_equal(f->paths.inside.rate_bps, 1000000000);
    assert_int_equal(f->paths.inside.rtt_ns, NEAR.rtt_ns);
    tear_down_machine(&machine);
}

/* Which processors a rank may run on. */
static void put_processors(const struct fixture *f, uint32_t rank, uint32_t hash, uint32_t count,
                           uint8_t *rows)
{
    uint8_t *own =
        rows + rank * (paths_row_bytes(&f->paths) + paths_row_bytes(&f->paths) / f->members.size);
    lh_put_be32(own + 24, hash);
    lh_put_be32(own + 28, count);
}

/* Ranks that share some, beside others that are bound to one each. */
static void test_processors_of_ranks(void **state)
{
    struct machine machine;
    (void)state;
    struct fixture *f = set_up_machine(&machine, 0);
    put_processors(f, 0, 7, 8, machine.rows);
    put_processors(f, 1, 7, 8, machine.rows);
    put_processors(f, 2, 8, 1, machine.rows);
    put_processors(f, 3, 9, 1, machine.rows);
    assert_int_equal(paths_agree(&f->paths, machine.rows, false), 0);
    assert_int_equal(f->paths.processors, 10);
    tear_down_machine(&machine);
}

/* A rank tells of those that it may run on, not of all that the machine has. */
static void test_a_bound_rank(void **state)
{
    static const struct members members = {.size = 1};
    struct group_paths paths = {.members = &members};
    const struct lh_group_attr attr = {0};
    cpu_set_t all, one;
    uint8_t row[32], bound[32];
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    paths_announce_given(&paths, &attr, row);
    assert_int_equal(lh_get_be32(row + 28), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    paths_announce_given(&paths, &attr, bound);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(lh_get_be32(bound + 28), 1);
    assert_true(CPU_COUNT(&all) == 1 || lh_get_be32(bound + 24) != lh_get_be32(row + 24));
}

/* Ranks that are all on one machine know how many processors it has, and the round trip of a quiet one. */
static void test_one_machine(void **state)
{
    struct machine machine;
    (void)state;
    struct fixture *f = set_up_machine(&machine, 2);
    assert_int_equal(paths_agree(&f->paths, machine.rows, false), 0);
    assert_int_equal(f->paths.processors, 2);
    assert_int_equal(f->paths.inside.rtt_ns, NEAR.rtt_ns);
    put_rows(f, 2, true, machine.rows);
    assert_int_equal(paths_agree(&f->paths, machine.rows, false), 0);
    assert_int_equal(f->paths.processors, 0);
    tear_down_machine(&machine);
}

/* A measured path that is slow is avoided by the order, and by a schedule that does not use it. */
static void test_measured(void **state)
{
    static const uint32_t order[] = {0, 2, 1, 3};
    struct path_figures pairs[16];
    struct fixture f;
    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        pairs[i] = (struct path_figures){.rtt_ns = 10000000, .rate_bps = 200000000};
    pairs[1].rate_bps = pairs[4].rate_bps = 50000000;
    set_up(&f, 4, 4, NULL);
    f.paths.inside = (struct path_figures){.rtt_ns = 10000000, .rate_bps = 50000000};
    assert_string_not_equal(ask(&f, COLLECTIVE_ALLREDUCE, 1 << 24), "ring");
    choosing_free(&f.paths.choosing);
    f.paths.pairs = pairs;
    set_sites(&f, order);
    assert_string_equal(ask(&f, COLLECTIVE_ALLREDUCE, 1 << 24), "ring");
    tear_down(&f);
}

/* Each collective has a choice, for any size and number of ranks. */
static void test_all(void **state)
{
    static const uint64_t sizes[] = {0, 1, 1000, 3 << 20, UINT64_C(1) << 40, UINT64_MAX};
    struct fixture f;
    (void)state;
    for (uint32_t ranks = 1; ranks < 20; ranks = 2 * ranks + 1) {
        set_up(&f, ranks, 3, &FAR);
        for (enum collective each = 0; each < COLLECTIVES; each++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                ask(&f, each, sizes[i]);
        tear_down(&f);
    }
}

/* A planner that is told the same answers the same, or knows one as fast by smaller blocks. */
static void check_plan(const char *name, enum collective collective, uint64_t bytes)
{
    struct lh_plan_collective_question question;
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    struct fixture f;
    uint32_t count;
    lh_plan_collective_init(&question);
    question.collective = name;
    question.ranks = 8;
    question.sites = 2;
    question.bytes = bytes;
    question.block_bytes = BLOCK;
    question.inside.rtt_s = 50e-6;
    question.across.rtt_s = 25e-3;
    question.across.bandwidth_bps = 2e9;
    question.inside.loss = question.across.loss = 0;
    void *memory = malloc(lh_plan_collective_memory(&question));
    assert_int_equal(lh_plan_collective(&question, memory, choices, &count), 0);
    free(memory);
    set_up(&f, 8, 4, &FAR);
    uint32_t same = 0;
    while (same < count && strcmp(ask(&f, collective, bytes), choices[same].schedule) != 0)
        same++;
    assert_true(same < count && choices[same].mean_s <= choices[0].mean_s * 1.02);
    tear_down(&f);
}

static void test_as_planned(void **state)
{
    (void)state;
    for (uint64_t bytes = 1 << 14; bytes <= (SANITIZED ? 1 << 22 : 1 << 26); bytes *= 16) {
        check_plan("allreduce", COLLECTIVE_ALLREDUCE, bytes);
        check_plan("broadcast", COLLECTIVE_BROADCAST, bytes);
        check_plan("alltoall", COLLECTIVE_ALLTOALL, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_mixed_sites),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_as_planned),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_processors_of_ranks),
        cmocka_unit_test(test_a_bound_rank),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_figures_of_one_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
