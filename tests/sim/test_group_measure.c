/*
 * test_group_measure.c - lh_group_measure() over simulated links: rates, losses and sites are found, slow
 * paths are avoided, and what is pending or fails meanwhile harms nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "group/group.h"
#include "group/group_operation.h"
#include "support/collective_case.h"

#define LIMIT_NS    (120 * LH_NS_PER_S)
#define BURST_BYTES ((size_t)1 << 20)
#define GBIT        1e9

static void set_link(struct group_world *world, uint32_t from, uint32_t to, const char *text)
{
    struct lh_link_spec spec;
    sim_engines_must(lh_link_parse(text, &spec), "lh_link_parse");
    sim_world_set_direction(world->net.world, from, to, &spec);
}

static void set_path(struct group_world *world, uint32_t a, uint32_t b, const char *text)
{
    set_link(world, a, b, text);
    set_link(world, b, a, text);
}

struct measuring {
    struct group_world *world;
    struct group_measure of[SIM_ENGINES_MAX];
    int errors[SIM_ENGINES_MAX];
};

static void begin(struct measuring *m, struct group_world *world)
{
    *m = (struct measuring){.world = world};
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(measure_begin(world->groups[r], BURST_BYTES, &m->of[r]), "measure_begin");
}

/* False: all ranks that live have ended. */
static bool go_on(struct measuring *m)
{
    bool any = false;
    for (uint32_t r = 0; r < m->world->size; r++) {
        struct group_measure *of = &m->of[r];
        if (!of->op || m->world->dead[r])
            continue;
        any = true;
        if (lh_collective_test(of->op, NULL))
            m->errors[r] = measure_go_on(of, 0);
    }
    return any;
}

static void finish(struct measuring *m)
{
    lh_time until = group_world_now(m->world) + LIMIT_NS;
    while (go_on(m)) {
        assert_true(group_world_now(m->world) < until);
        group_world_turn(m->world, until);
    }
    for (uint32_t r = 0; r < m->world->size; r++)
        if (!m->world->dead[r])
            measure_end(&m->of[r]);
}

static void measure(struct group_world *world)
{
    struct measuring m;
    begin(&m, world);
    finish(&m);
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(m.errors[r], "lh_group_measure");
}

static const struct group_paths *paths_of(const struct group_world *world, uint32_t rank)
{
    return &world->groups[rank]->paths;
}

/* All have the same. */
static const struct site_map *map_of(const struct group_world *world)
{
    const struct group_paths *first = paths_of(world, 0);
    for (uint32_t r = 1; r < world->size; r++) {
        const struct group_paths *paths = paths_of(world, r);
        assert_int_equal(paths->measured, first->measured);
        assert_int_equal(paths->order->map.sites, first->order->map.sites);
        assert_memory_equal(paths->order->map.rank_at, first->order->map.rank_at,
                            world->size * sizeof(uint32_t));
    }
    return &first->order->map;
}

static bool are_neighbors(const struct site_map *map, uint32_t ranks, uint32_t a, uint32_t b)
{
    uint32_t apart = (map->place_of[a] + ranks - map->place_of[b]) % ranks;
    return apart == 1 || apart == ranks - 1;
}

/* Sums of f32, whose result depends on the order, and of a part of each rank. */
static void check_sums(struct group_world *world, const char *schedule)
{
    struct collective_case cases[] = {
        {.collective = COLLECTIVE_ALLREDUCE, .type = LH_F32, .count = 300000},
        {.collective = COLLECTIVE_BROADCAST, .type = LH_I32, .count = 100000, .root = world->size - 1},
        {.collective = COLLECTIVE_REDUCE_SCATTER, .type = LH_I32, .count = 20000},
        {.collective = COLLECTIVE_ALLGATHER, .type = LH_I32, .count = 20000},
        {.collective = COLLECTIVE_ALLTOALL, .type = LH_I32, .count = 20000},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        lh_collective_options_init(&cases[i].options);
    cases[0].options.schedule = schedule;
    collective_cases_run(world, cases, sizeof cases / sizeof *cases, LIMIT_NS);
}

/* ---- what is measured -------------------------------------------------------------------------------- */

/* One path of five ranks is four times slower, one loses packets: both are found, and the ring avoids the
 * slow one. */
static void test_slow_link(void **state)
{
    struct group_world world;
    (void)state;
    group_world_open(&world, "slow", 3, "delay=2ms,rate=2Gbit", 5, NULL, NULL);
    struct lh_group_path none;
    assert_int_equal(lh_group_path(world.groups[0], 0, 1, &none), -LH_ESTATE);
    set_path(&world, 1, 2, "delay=2ms,rate=500Mbit");
    set_link(&world, 0, 4, "delay=2ms,rate=2Gbit,loss=1e-3");
    measure(&world);
    const struct site_map *map = map_of(&world);
    const struct path_figures *pairs = paths_of(&world, 0)->pairs;
    for (uint32_t a = 0; a < 5; a++)
        for (uint32_t b = 0; b < 5; b++) {
            const struct path_figures *pair = &pairs[a * 5 + b];
            bool slow = (a == 1 && b == 2) || (a == 2 && b == 1);
            if (a == b)
                continue;
            assert_in_range(pair->rate_bps, (slow ? 0.3 : 1.2) * GBIT, (slow ? 0.51 : 2.01) * GBIT);
            assert_in_range(pair->rtt_ns, 4 * LH_NS_PER_MS, 5 * LH_NS_PER_MS);
            if (a == 0 && b == 4)
                assert_in_range(pair->loss, 200000, 5000000); /* 2e-4 to 5e-3 */
            else
                assert_int_equal(pair->loss, 0);
        }
    struct lh_group_path path;
    uint32_t place, site;
    sim_engines_must(lh_group_path(world.groups[3], 1, 2, &path), "lh_group_path");
    assert_int_equal(path.rate_bps, pairs[1 * 5 + 2].rate_bps);
    assert_int_equal(path.rtt_ns, pairs[1 * 5 + 2].rtt_ns);
    assert_int_equal(lh_group_path(world.groups[3], 1, 1, &path), -LH_EINVAL);
    assert_int_equal(lh_group_path(world.groups[3], 1, 5, &path), -LH_EINVAL);
    sim_engines_must(lh_group_place(world.groups[3], 2, &place, &site), "lh_group_place");
    assert_int_equal(place, map->place_of[2]);
    assert_int_equal(site, 0);
    assert_int_equal(lh_group_place(world.groups[3], 5, NULL, NULL), -LH_EINVAL);
    assert_int_equal(map->sites, 1);
    assert_false(are_neighbors(map, 5, 1, 2));
    assert_true(choosing_uses_map(&world.groups[0]->paths, COLLECTIVE_ALLREDUCE));
    check_sums(&world, "ring");
    check_sums(&world, NULL);
    group_world_close(&world);
}

/* Ranks that nobody named are in sites by their distance; with one distance, in one. */
static void test_sites(void **state)
{
    struct group_world world;
    (void)state;
    group_world_open(&world, "sites", 3, "delay=50us,rate=2Gbit", 6, NULL, NULL);
    measure(&world);
    assert_int_equal(map_of(&world)->sites, 1);
    group_world_close(&world);
    group_world_open(&world, "sites", 3, "delay=50us,rate=2Gbit", 6, NULL, NULL);
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < a; b++)
            if (a % 2 != b % 2)
                set_path(&world, a, b, "delay=8ms,rate=1Gbit");
    measure(&world);
    const struct site_map *map = map_of(&world);
    assert_int_equal(map->sites, 2);
    for (uint32_t r = 0; r < 6; r++)
        assert_int_equal(map->site_of[map->place_of[r]], r % 2);
    assert_string_equal(lh_group_site(world.groups[0], 1), "");
    check_sums(&world, "hierarchical");
    check_sums(&world, NULL);
    group_world_close(&world);
}

/* ---- at the same time -------------------------------------------------------------------------------- */

/* What was begun before keeps its order, and is right; what begins afterwards has the new one. */
static void test_pending(void **state)
{
    struct group_world world;
    struct measuring m;
    struct collective_case before = {.collective = COLLECTIVE_ALLREDUCE, .type = LH_F32, .count = 2000000};
    (void)state;
    lh_collective_options_init(&before.options);
    before.options.schedule = "ring";
    group_world_open(&world, "pending", 3, "delay=2ms,rate=500Mbit", 4, NULL, NULL);
    set_path(&world, 1, 2, "delay=2ms,rate=20Mbit");
    measure(&world);
    assert_false(are_neighbors(map_of(&world), 4, 1, 2));
    set_path(&world, 1, 2, "delay=2ms,rate=500Mbit");
    set_path(&world, 0, 3, "delay=2ms,rate=20Mbit");
    set_path(&world, 1, 3, "delay=2ms,rate=20Mbit");
    const struct group_order *old = paths_of(&world, 0)->order;
    collective_case_start(&before, &world);
    begin(&m, &world);
    finish(&m);
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(m.errors[r], "lh_group_measure");
    assert_ptr_not_equal(paths_of(&world, 0)->order, old);
    assert_ptr_equal(before.ops[0]->order, old);
    assert_true(group_world_run(&world, before.ops, 4, LIMIT_NS));
    for (uint32_t r = 0; r < 4; r++)
        collective_case_check(&before, r);
    check_sums(&world, "ring");
    collective_case_free(&before);
    group_world_close(&world);
}

/* A part has its ranks in the group's order, and what was measured between them. */
static void test_split(void **state)
{
    struct group_world world, part;
    struct subgroup_split splits[5];
    struct lh_collective *ops[5];
    (void)state;
    group_world_open(&world, "split", 3, "delay=2ms,rate=1Gbit", 5, NULL, NULL);
    set_path(&world, 1, 2, "delay=2ms,rate=100Mbit");
    set_path(&world, 2, 3, "delay=2ms,rate=100Mbit");
    measure(&world);
    for (uint32_t r = 0; r < 5; r++) {
        sim_engines_must(subgroup_begin_split(world.groups[r], 0, 5 - r, &splits[r]), "lh_group_split");
        ops[r] = splits[r].op;
    }
    assert_true(group_world_run(&world, ops, 5, LIMIT_NS));
    part = world;
    for (uint32_t r = 0; r < 5; r++)
        sim_engines_must(subgroup_finish_split(world.groups[r], &splits[r], 0, &part.groups[4 - r]),
                         "lh_group_split");
    const struct site_map *map = map_of(&part), *whole = map_of(&world);
    for (uint32_t place = 0; place < 5; place++)
        assert_int_equal(map->rank_at[place], 4 - whole->rank_at[place]);
    assert_int_equal(paths_of(&part, 0)->pairs[2 * 5 + 3].rate_bps,
                     paths_of(&world, 0)->pairs[2 * 5 + 1].rate_bps);
    for (uint32_t r = 0; r < 5; r++)
        sim_engines_must(lh_group_destroy(part.groups[r]), "lh_group_destroy");
    group_world_close(&world);
}

/* ---- failures ---------------------------------------------------------------------------------------- */

static void shrink(struct group_world *world, uint32_t dead)
{
    lh_time until = group_world_now(world) + LIMIT_NS;
    struct lh_group *smaller[SIM_ENGINES_MAX] = {0};
    bool reached = false;
    for (uint32_t r = 0; r < world->size; r++)
        if (r != dead)
            subgroup_begin_shrink(world->groups[r]);
    while (!reached) {
        reached = true;
        assert_true(group_world_now(world) < until);
        group_world_turn(world, until);
        for (uint32_t r = 0; r < world->size; r++)
            if (r != dead && !agreement_is_reached(&world->groups[r]->agreement))
                reached = false;
    }
    for (uint32_t r = 0; r < world->size; r++)
        if (r != dead)
            sim_engines_must(subgroup_finish_shrink(world->groups[r], &smaller[r]), "lh_group_shrink");
    const struct lh_group *first = smaller[dead == 0];
    for (uint32_t r = 0; r < world->size; r++) {
        if (r == dead)
            continue;
        assert_memory_equal(smaller[r]->paths.order->map.rank_at, first->paths.order->map.rank_at,
                            first->members.size * sizeof(uint32_t));
        assert_int_equal(smaller[r]->paths.measured, first->paths.measured);
    }
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(lh_group_destroy(smaller[r]), "lh_group_destroy");
}

/* A rank dies so long after all began to measure; whether some of the others had ended or none, who is
 * left has one order. Returns the number of those that had. *took_ns: until all were done. */
static uint32_t die(lh_time after_ns, lh_time *took_ns)
{
    struct group_world world;
    struct lh_group_attr attr;
    struct measuring m;
    uint32_t ended = 0;
    lh_group_attr_init(&attr);
    attr.peer_timeout_ns = LH_NS_PER_S;
    group_world_open(&world, "die", 3, "delay=2ms,rate=1Gbit", 4, &attr, NULL);
    set_path(&world, 1, 2, "delay=2ms,rate=100Mbit");
    begin(&m, &world);
    lh_time begun_ns = group_world_now(&world), at = begun_ns + after_ns;
    while (group_world_now(&world) < at && go_on(&m))
        group_world_turn(&world, at);
    *took_ns = group_world_now(&world) - begun_ns;
    group_world_kill(&world, 3);
    finish(&m);
    for (uint32_t r = 0; r < 3; r++) {
        ended += m.errors[r] == 0;
        assert_true(m.errors[r] == 0 || m.errors[r] == -LH_EPEER);
    }
    lh_time until = group_world_now(&world) + 3 * LH_NS_PER_S;
    while (group_world_now(&world) < until)
        group_world_turn(&world, until);
    shrink(&world, 3);
    measure_end(&m.of[3]);
    group_world_close(&world);
    return ended;
}

/* Ranks of which some have not measured what others have find that, and measure again. */
static void test_apart(void **state)
{
    struct group_world world;
    struct lh_collective *ops[4];
    float in[4] = {1, 2, 3, 4}, out[4];
    (void)state;
    group_world_open(&world, "apart", 3, "delay=2ms,rate=1Gbit", 4, NULL, NULL);
    set_path(&world, 0, 1, "delay=2ms,rate=100Mbit");
    measure(&world);
    struct group_paths *paths = &world.groups[2]->paths;
    assert_ptr_not_equal(paths->order, paths->created.order);
    group_order_release(paths->order);
    paths->order = paths->created.order;
    paths->order->users++;
    paths->measured = 0;
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(lh_allreduce(world.groups[r], &in[r], &out[r], 1, LH_F32, LH_SUM, NULL, &ops[r]),
                         "lh_allreduce");
    assert_true(group_world_run(&world, ops, 4, LIMIT_NS));
    for (uint32_t r = 0; r < 4; r++) {
        struct lh_collective_result result;
        assert_true(lh_collective_test(ops[r], &result));
        assert_int_equal(result.error, -LH_EPROTOCOL);
        lh_collective_free(ops[r]);
    }
    measure(&world);
    assert_false(are_neighbors(map_of(&world), 4, 0, 1));
    check_sums(&world, "ring");
    group_world_close(&world);
}

static void test_death(void **state)
{
    lh_time whole_ns, took_ns;
    bool partly = false;
    (void)state;
    assert_int_equal(die(LIMIT_NS, &whole_ns), 3);
    assert_int_equal(die(5 * LH_NS_PER_MS, &took_ns), 0);
    assert_int_equal(die(whole_ns / 2, &took_ns), 0);
    for (lh_time before_ns = 0; before_ns < 6 * LH_NS_PER_MS; before_ns += LH_NS_PER_MS / 2)
        partly = die(whole_ns - before_ns, &took_ns) % 3 != 0 || partly;
    assert_true(partly);
}

/* Waits end with -LH_ETIMEDOUT after WAIT_NS, rank 0's first one, which is long, after FIRST_NS. */
#define WAIT_NS  (5 * LH_NS_PER_S)
#define FIRST_NS (300 * LH_NS_PER_MS)

static void wait_for(struct measuring *m, uint32_t rank, lh_time waited_ns, bool *first)
{
    struct group_measure *of = &m->of[rank];
    bool late = waited_ns > (*first && rank == 0 ? FIRST_NS : WAIT_NS);
    if (lh_collective_test(of->op, NULL))
        m->errors[rank] = measure_go_on(of, 0);
    else if (late)
        m->errors[rank] = measure_go_on(of, -LH_ETIMEDOUT);
    if (late && rank == 0)
        *first = false;
}

static void finish_late(struct measuring *m, bool first)
{
    struct group_world *world = m->world;
    struct lh_collective *ops[SIM_ENGINES_MAX] = {0};
    lh_time begun_ns[SIM_ENGINES_MAX] = {0}, until = group_world_now(world) + LIMIT_NS;
    for (bool any = true; any;) {
        lh_time now = group_world_now(world);
        assert_true(now < until);
        any = false;
        for (uint32_t r = 0; r < world->size; r++) {
            if (!m->of[r].op)
                continue;
            any = true;
            begun_ns[r] = m->of[r].op == ops[r] ? begun_ns[r] : now;
            ops[r] = m->of[r].op;
            wait_for(m, r, now - begun_ns[r], &first);
        }
        group_world_turn(world, now + 100 * LH_NS_PER_MS);
    }
    for (uint32_t r = 0; r < world->size; r++)
        measure_end(&m->of[r]);
}

/* A rank gives up while others are operations ahead: all end, and what is called next has one number. */
static void test_gives_up(void **state)
{
    struct group_world world;
    struct measuring m;
    (void)state;
    group_world_open(&world, "gives up", 3, "delay=2ms,rate=1Gbit", 4, NULL, NULL);
    set_path(&world, 0, 3, "delay=2ms,rate=20Mbit");
    begin(&m, &world);
    finish_late(&m, true);
    assert_int_equal(m.errors[0], -LH_ETIMEDOUT);
    for (uint32_t r = 1; r < 4; r++) {
        assert_int_not_equal(m.errors[r], 0);
        assert_int_equal(world.groups[r]->next_operation, world.groups[0]->next_operation);
    }
    measure(&world);
    check_sums(&world, "ring");
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gives_up), cmocka_unit_test(test_slow_link), cmocka_unit_test(test_sites),
        cmocka_unit_test(test_pending),  cmocka_unit_test(test_split),     cmocka_unit_test(test_apart),
        cmocka_unit_test(test_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
