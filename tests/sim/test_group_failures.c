/*
 * test_group_failures.c - ranks that disagree, die, come late, cancel, or let a deadline pass, over a
 * simulated network: an error at all ranks within a bound, with the rank that it is of; inputs unharmed; and
 * what comes after works.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/schedules.h"
#include "group/group.h"
#include "group/mesh.h"
#include "message/engine.h"
#include "support/collective_case.h"
#include "support/sanitized.h"

#define RANKS           5u
#define MS              LH_NS_PER_MS
#define PEER_TIMEOUT_NS (200 * MS)
#define LINK            "delay=1ms,rate=10Gbit,loss=1e-3"
#define LIMIT_NS        (60 * LH_NS_PER_S)

static void set_attr(struct lh_group_attr *attr)
{
    lh_group_attr_init(attr);
    attr->block_bytes = 16384;
    attr->buffer_bytes = 131072;
    attr->peer_timeout_ns = PEER_TIMEOUT_NS;
}

static void open_world(struct group_world *world, uint32_t size, uint64_t seed)
{
    struct lh_group_attr attr;
    set_attr(&attr);
    group_world_open(world, "failures", seed, LINK, size, &attr, NULL);
}

static struct collective_case allreduce_of(size_t count)
{
    struct collective_case c = {.collective = COLLECTIVE_ALLREDUCE, .type = LH_I32, .count = count};
    lh_collective_options_init(&c.options);
    return c;
}

static struct lh_collective_result result_of(struct lh_collective *op)
{
    struct lh_collective_result result;
    assert_int_equal(lh_collective_test(op, &result), 1);
    return result;
}

/* What comes after an error is right. */
static void check_next(struct group_world *world)
{
    struct collective_case next = allreduce_of(9000);
    collective_cases_run(world, &next, 1, LIMIT_NS);
}

/* ---- disagreement ------------------------------------------------------------------------------------ */

/* One rank calls another collective than all others. */
static void disagree(struct collective_case usual, struct collective_case other, const char *what)
{
    struct group_world world;
    const uint32_t odd = 3;
    open_world(&world, RANKS, 1);
    for (uint32_t r = 0; r < RANKS; r++)
        collective_case_start_at(r == odd ? &other : &usual, world.groups[r]);
    usual.ops[odd] = other.ops[odd];
    assert_true(group_world_run(&world, usual.ops, RANKS, LIMIT_NS));
    for (uint32_t r = 0; r < RANKS; r++) {
        struct lh_collective_result result = result_of(usual.ops[r]);
        assert_int_equal(result.error, -LH_EPROTOCOL);
        if (!strstr(result.message, what) || !strstr(result.message, "at rank 3"))
            fail_msg("rank %u: %s", r, result.message);
        collective_case_check_input(r == odd ? &other : &usual, r);
    }
    usual.ops[odd] = NULL;
    collective_case_free(&usual);
    collective_case_free(&other);
    check_next(&world);
    group_world_close(&world);
}

static void test_disagreement(void **state)
{
    struct collective_case usual = allreduce_of(20000), other = usual;
    (void)state;
    other.count = 20001;
    disagree(usual, other, "count ");
    other = usual;
    other.type = LH_F32;
    disagree(usual, other, "type ");
    other = usual;
    other.reduction = LH_MAX;
    disagree(usual, other, "reduction ");
    other = usual;
    other.options.schedule = "ring";
    usual.options.schedule = "bruck";
    disagree(usual, other, "schedule ");
    usual.collective = other.collective = COLLECTIVE_BROADCAST;
    usual.options.schedule = other.options.schedule = NULL;
    other.root = 4;
    disagree(usual, other, "root ");
    other.collective = COLLECTIVE_ALLGATHER;
    other.count = 4000;
    disagree(usual, other, "collective ");
}

/* About the parts of a v-variant. */
static void test_disagreement_about_parts(void **state)
{
    struct collective_case usual = {.collective = COLLECTIVE_ALLTOALL, .count = 2000, .uneven = true};
    struct collective_case other = usual;
    (void)state;
    lh_collective_options_init(&usual.options);
    other.options = usual.options;
    other.count++;
    disagree(usual, other, "count from rank ");
    other = usual;
    other.uneven = false;
    disagree(usual, other, "collective alltoall");
}

/* Those that need nothing of the others are done before these call something else: who waits is told. */
static void test_disagreement_with_done(void **state)
{
    struct group_world world;
    struct collective_case usual = {.collective = COLLECTIVE_BROADCAST, .type = LH_I32, .count = 20};
    struct collective_case other = usual;
    (void)state;
    open_world(&world, 4, 13);
    other.root = 2;
    lh_collective_options_init(&usual.options);
    usual.options.schedule = "chain";
    other.options = usual.options;
    for (uint32_t r = 0; r < 4; r++)
        collective_case_start_at(r < 2 ? &usual : &other, world.groups[r]);
    struct lh_collective *ops[] = {usual.ops[0], usual.ops[1], other.ops[2], other.ops[3]};
    assert_true(group_world_run(&world, ops, 4, LIMIT_NS));
    assert_int_equal(result_of(ops[1]).error, -LH_EPROTOCOL);
    assert_int_equal(result_of(ops[3]).error, -LH_EPROTOCOL);
    assert_non_null(strstr(result_of(ops[1]).message, "root "));
    collective_case_free(&usual);
    collective_case_free(&other);
    usual = other = allreduce_of(0);
    other.count = 5000;
    for (uint32_t r = 0; r < 4; r++)
        collective_case_start_at(r == 2 ? &other : &usual, world.groups[r]);
    assert_true(group_world_run(&world, &other.ops[2], 1, LIMIT_NS));
    struct lh_collective_result result = result_of(other.ops[2]);
    assert_int_equal(result.error, -LH_EPROTOCOL);
    assert_non_null(strstr(result.message, "count "));
    assert_non_null(strstr(result.message, "5000 at rank 2"));
    collective_case_free(&usual);
    collective_case_free(&other);
    check_next(&world);
    group_world_close(&world);
}

/* ---- a path that carries one way only ---------------------------------------------------------------- */

static void expect_named(const struct lh_collective_result *result, uint32_t rank)
{
    char named[16];
    if (result->error == 0)
        return;
    snprintf(named, sizeof named, "rank %u", result->failed_rank);
    if (result->failed_rank == LH_NO_RANK || !strstr(result->message, named))
        fail_msg("rank %u: error %d, failed rank %u: \"%s\"", rank, result->error, result->failed_rank,
                 result->message);
}

/* What one rank sends to another is lost from some moment on: what fails for it names the rank. */
static void lose_one_way(const struct schedule *schedule, lh_time at_ns)
{
    struct group_world world;
    struct collective_case c = {.collective = schedule->collective, .type = LH_I32, .count = 300000};
    lh_collective_options_init(&c.options);
    c.options.schedule = schedule->name;
    open_world(&world, 3, 17);
    collective_case_start(&c, &world);
    group_world_run(&world, c.ops, 3, at_ns);
    sim_world_cut(world.net.world, 1, 2, true);
    assert_true(group_world_run(&world, c.ops, 3, LIMIT_NS));
    for (uint32_t r = 0; r < 3; r++)
        expect_named(&c.ops[r]->result, r);
    collective_case_free(&c);
    group_world_close(&world);
}

/* A rank has given up this one, and has closed its connections: what is begun then names it, too. */
static void test_closed_before(void **state)
{
    (void)state;
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        struct group_world world;
        struct collective_case c = {.collective = (*s)->collective, .type = LH_I32, .count = 9000};
        lh_collective_options_init(&c.options);
        c.options.schedule = (*s)->name;
        open_world(&world, 2, 18);
        check_next(&world);
        group_world_leave(&world, 1);
        assert_int_equal(lh_group_error(world.groups[0], 1), -LH_ECLOSED);
        collective_case_start_at(&c, world.groups[0]);
        assert_true(group_world_run(&world, c.ops, 1, LIMIT_NS));
        expect_named(&c.ops[0]->result, 0);
        collective_case_free(&c);
        group_world_close(&world);
    }
}

static void test_one_way(void **state)
{
    for (const struct schedule *const *s = schedule_table(); *s && !*state; s++)
        for (lh_time at = SANITIZED ? 3 * MS : 0; at < 6 * MS; at += SANITIZED ? 3 * MS : MS)
            lose_one_way(*s, at);
}

/* ---- one that does not come -------------------------------------------------------------------------- */

static void test_deadline(void **state)
{
    struct group_world world;
    struct collective_case c = allreduce_of(20000);
    (void)state;
    open_world(&world, RANKS, 2);
    c.options.deadline_ns = 50 * MS;
    lh_time begin = group_world_now(&world);
    for (uint32_t r = 1; r < RANKS; r++)
        collective_case_start_at(&c, world.groups[r]);
    assert_true(group_world_run(&world, c.ops, RANKS, LIMIT_NS));
    for (uint32_t r = 1; r < RANKS; r++) {
        struct lh_collective_result result = result_of(c.ops[r]);
        assert_int_equal(result.error, -LH_ETIMEDOUT);
        assert_true(result.ended_ns >= begin + 50 * MS && result.ended_ns < begin + 60 * MS);
    }
    assert_int_equal(result_of(c.ops[1]).failed_rank, 0);
    /* Who comes later finds it over. */
    c.options.deadline_ns = 0;
    collective_case_start_at(&c, world.groups[0]);
    assert_true(group_world_run(&world, c.ops, RANKS, LIMIT_NS));
    assert_int_equal(result_of(c.ops[0]).error, -LH_ETIMEDOUT);
    collective_case_free(&c);
    check_next(&world);
    group_world_close(&world);
}

static void test_late(void **state)
{
    struct group_world world;
    (void)state;
    open_world(&world, RANKS, 3);
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        struct collective_case c = {.collective = (*s)->collective,
                                    .type = LH_F32,
                                    .count = SANITIZED ? 20000 : 200000,
                                    .options.schedule = (*s)->name};
        c.options.struct_bytes = sizeof c.options;
        for (uint32_t r = 0; r < RANKS; r++)
            if (r != 2)
                collective_case_start_at(&c, world.groups[r]);
        assert_false(group_world_run(&world, c.ops, RANKS, LH_NS_PER_S) &&
                     c.collective == COLLECTIVE_ALLREDUCE);
        collective_case_start_at(&c, world.groups[2]);
        assert_true(group_world_run(&world, c.ops, RANKS, LIMIT_NS));
        for (uint32_t r = 0; r < RANKS; r++)
            collective_case_check(&c, r);
        collective_case_free(&c);
    }
    group_world_close(&world);
}

/* mtu_bytes: 0: the default. text: of the notice; NULL: that of lh_collective_cancel(). */
static void cancel_with(uint32_t mtu_bytes, const char *text)
{
    struct group_world world;
    struct collective_case c = allreduce_of(300000);
    struct lh_attr connection;
    struct lh_group_attr attr;
    lh_attr_init(&connection);
    connection.mtu_bytes = mtu_bytes;
    set_attr(&attr);
    attr.attr = &connection;
    group_world_open(&world, "failures", 4, LINK, RANKS, &attr, NULL);
    collective_case_start(&c, &world);
    assert_false(group_world_run(&world, c.ops, RANKS, MS + MS / 2));
    if (text)
        mesh_abort(c.ops[1], -LH_ECANCELED, 1, text);
    else
        assert_int_equal(lh_collective_cancel(c.ops[1]), 0);
    assert_true(group_world_run(&world, c.ops, RANKS, LIMIT_NS));
    for (uint32_t r = 0; r < RANKS; r++) {
        struct lh_collective_result result = result_of(c.ops[r]);
        assert_int_equal(result.error, -LH_ECANCELED);
        assert_int_equal(result.failed_rank, 1);
        assert_string_equal(result.message, text ? text : "canceled");
        collective_case_check_input(&c, r);
    }
    collective_case_free(&c);
    check_next(&world);
    group_world_close(&world);
}

static void test_cancel(void **state)
{
    (void)state;
    cancel_with(0, NULL);
}

/* A message of the least MTU is shorter than the longest notice. */
static void test_long_notice(void **state)
{
    char text[LH_COLLECTIVE_MESSAGE_MAX];
    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    cancel_with(256, text);
}

/* More operations than messages may be in flight, while one rank has begun none; then none is left out. */
static void test_many_pending(void **state)
{
    enum { COUNT = 1500 };
    struct group_world world;
    struct lh_collective *ops[COUNT * 3];
    (void)state;
    open_world(&world, 3, 8);
    for (uint32_t i = 0; i < COUNT * 2; i++)
        sim_engines_must(lh_barrier(world.groups[i % 2], NULL, &ops[i]), "lh_barrier");
    assert_false(group_world_run(&world, ops, COUNT * 2, LH_NS_PER_S));
    for (uint32_t i = COUNT * 2; i < COUNT * 3; i++)
        sim_engines_must(lh_barrier(world.groups[2], NULL, &ops[i]), "lh_barrier");
    assert_true(group_world_run(&world, ops, COUNT * 3, LIMIT_NS));
    for (uint32_t i = 0; i < COUNT * 3; i++) {
        assert_int_equal(result_of(ops[i]).error, 0);
        lh_collective_free(ops[i]);
    }
    group_world_close(&world);
}

/* A peer that floods with what no rank expects fails; memory is bounded. */
static void test_flood(void **state)
{
    struct group_world world;
    const struct tag tag = {.group = 5, .kind = TAG_SIGNATURE};
    const uint8_t body[1000] = {0};
    size_t kept = 0;
    (void)state;
    open_world(&world, 2, 10);
    struct link *link = &world.groups[1]->mesh->links[0], *victim = &world.groups[0]->mesh->links[1];
    for (uint32_t i = 0; i < 40000 && !victim->error; i++) {
        sim_engines_must(link_send_control(link, &tag, body, sizeof body), "link_send_control");
        lh_time until = group_world_now(&world) + (i % 500 == 499 ? 20 * MS : 0);
        while (group_world_now(&world) < until)
            group_world_turn(&world, until);
        kept = victim->kept_bytes > kept ? victim->kept_bytes : kept;
    }
    assert_int_equal(victim->error, -LH_EPROTOCOL);
    assert_true(kept > 1u << 20 && kept < 17u << 20);
    group_world_close(&world);
}

/* Operations that end by their deadlines, over and over, leave nothing with a rank that begins none. */
static void test_over_and_over(void **state)
{
    struct group_world world;
    size_t kept = 0;
    (void)state;
    open_world(&world, 2, 11);
    struct lh_collective *late[200];
    struct collective_case c[200];
    for (uint32_t i = 0; i < 200; i++) {
        c[i] = allreduce_of(100000);
        c[i].options.deadline_ns = 20 * MS;
        collective_case_start_at(&c[i], world.groups[1]);
        assert_true(group_world_run(&world, &c[i].ops[1], 1, LIMIT_NS));
        kept = world.groups[0]->mesh->links[1].kept_bytes;
    }
    assert_true(kept < 300000);
    for (uint32_t i = 0; i < 200; i++) {
        c[i].options.deadline_ns = 0;
        collective_case_start_at(&c[i], world.groups[0]);
        late[i] = c[i].ops[0];
    }
    assert_true(group_world_run(&world, late, 200, LIMIT_NS));
    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(result_of(late[i]).error, -LH_ETIMEDOUT);
        collective_case_free(&c[i]);
    }
    check_next(&world);
    group_world_close(&world);
}

/* ---- death ------------------------------------------------------------------------------------------- */

static const struct schedule *pick_schedule(struct lh_prng *prng)
{
    uint32_t count = 0;
    while (schedule_table()[count])
        count++;
    return schedule_table()[lh_prng_below(prng, count)];
}

static void die(uint64_t seed)
{
    struct lh_prng prng;
    struct group_world world;
    lh_prng_seed(&prng, seed);
    const struct schedule *schedule = pick_schedule(&prng);
    uint32_t size = 2 + (uint32_t)lh_prng_below(&prng, 5), victim = (uint32_t)lh_prng_below(&prng, size);
    struct collective_case c = {.collective = schedule->collective,
                                .type = (enum lh_type)lh_prng_below(&prng, LH_TYPES),
                                .count = 1 + lh_prng_below(&prng, 100000),
                                .root = (uint32_t)lh_prng_below(&prng, size)};
    lh_time moment = lh_prng_below(&prng, 8 * MS);
    lh_collective_options_init(&c.options);
    c.options.schedule = schedule->name;
    open_world(&world, size, seed);
    group_world_run(&world, c.ops, 0, 0);
    collective_case_start(&c, &world);
    struct lh_collective *of_victim = c.ops[victim];
    group_world_run(&world, &of_victim, 1, moment);
    group_world_kill(&world, victim);
    lh_time died = group_world_now(&world);
    c.ops[victim] = NULL;
    if (!group_world_run(&world, c.ops, size, 2 * PEER_TIMEOUT_NS))
        fail_msg("seed %llu: %s of %u ranks: no end after the death of rank %u at %llu us",
                 (unsigned long long)seed, schedule->name, size, victim,
                 (unsigned long long)(died / LH_NS_PER_US));
    for (uint32_t r = 0; r < size; r++) {
        if (r == victim)
            continue;
        struct lh_collective_result result = result_of(c.ops[r]);
        collective_case_check_input(&c, r);
        if (result.error == 0) {
            collective_case_check(&c, r);
            continue;
        }
        assert_int_equal(result.error, -LH_EPEER);
        assert_int_equal(result.failed_rank, victim);
        assert_int_equal(lh_group_error(world.groups[r], victim), -LH_EPEER);
    }
    c.ops[victim] = of_victim;
    collective_case_free(&c);
    group_world_close(&world);
}

/* ---- going on ---------------------------------------------------------------------------------------- */

static bool agreed(const struct group_world *world)
{
    for (uint32_t r = 0; r < world->size; r++)
        if (!world->dead[r] && !agreement_is_reached(&world->groups[r]->agreement))
            return false;
    return true;
}

/* Those that are left make a group, and sum. */
static void shrink(struct group_world *world, uint32_t left)
{
    struct lh_group *smaller[RANKS];
    struct collective_case c = allreduce_of(30000);
    lh_time until = group_world_now(world) + 2 * PEER_TIMEOUT_NS;
    uint32_t at = 0;
    for (uint32_t r = 0; r < world->size; r++)
        if (!world->dead[r])
            subgroup_begin_shrink(world->groups[r]);
    while (!agreed(world) && group_world_now(world) < until)
        group_world_turn(world, until);
    assert_true(agreed(world));
    for (uint32_t r = 0; r < world->size; r++) {
        if (world->dead[r])
            continue;
        sim_engines_must(subgroup_finish_shrink(world->groups[r], &smaller[at]), "shrink");
        assert_int_equal(lh_group_size(smaller[at]), left);
        assert_int_equal(lh_group_rank(smaller[at]), at);
        collective_case_start_at(&c, smaller[at++]);
    }
    assert_int_equal(at, left);
    assert_true(group_world_run(world, c.ops, left, LIMIT_NS));
    for (uint32_t r = 0; r < left; r++)
        collective_case_check(&c, r);
    collective_case_free(&c);
    for (uint32_t r = 0; r < left; r++)
        sim_engines_must(lh_group_destroy(smaller[r]), "lh_group_destroy");
}

/* Two die, one of them when the others have begun to agree; and the call before it broke is run again. */
static void test_shrink(void **state)
{
    struct group_world world;
    struct collective_case c = allreduce_of(200000);
    (void)state;
    open_world(&world, RANKS, 7);
    collective_case_start(&c, &world);
    assert_false(group_world_run(&world, c.ops, RANKS, 2 * MS));
    group_world_kill(&world, 1);
    struct lh_collective *of_left[] = {c.ops[0], c.ops[2], c.ops[3], c.ops[4]};
    assert_true(group_world_run(&world, of_left, 4, 2 * PEER_TIMEOUT_NS));
    assert_int_equal(result_of(c.ops[0]).failed_rank, 1);
    subgroup_begin_shrink(world.groups[0]);
    subgroup_begin_shrink(world.groups[2]);
    group_world_kill(&world, 3);
    subgroup_begin_shrink(world.groups[4]);
    shrink(&world, 3);
    collective_case_free(&c);
    group_world_close(&world);
}

static void run_for(struct group_world *world, lh_time span_ns)
{
    lh_time until = group_world_now(world) + span_ns;
    while (group_world_now(world) < until)
        group_world_turn(world, until);
}

static void run_until_agreed(struct group_world *world, struct lh_group *const *groups, uint32_t count)
{
    lh_time until = group_world_now(world) + 2 * PEER_TIMEOUT_NS;
    for (uint32_t i = 0; i < count; i++) {
        while (!agreement_is_reached(&groups[i]->agreement) && group_world_now(world) < until)
            group_world_turn(world, until);
        assert_true(agreement_is_reached(&groups[i]->agreement));
    }
}

/* Makes the group of those that have agreed. */
static void finish_shrink(struct lh_group *const *groups, struct lh_group **smaller, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_engines_must(subgroup_finish_shrink(groups[i], &smaller[i]), "shrink");
        assert_int_equal(lh_group_size(smaller[i]), count);
        assert_int_equal(lh_group_rank(smaller[i]), i);
    }
}

static void sum_and_destroy(struct group_world *world, struct lh_group **groups, uint32_t count)
{
    struct collective_case c = allreduce_of(30000);
    for (uint32_t r = 0; r < count; r++)
        collective_case_start_at(&c, groups[r]);
    assert_true(group_world_run(world, c.ops, count, LIMIT_NS));
    for (uint32_t r = 0; r < count; r++)
        collective_case_check(&c, r);
    collective_case_free(&c);
    for (uint32_t r = 0; r < count; r++)
        sim_engines_must(lh_group_destroy(groups[r]), "lh_group_destroy");
}

/* Who has waited in vain for one that is late calls again; that one may have the result by then. */
static void shrink_again(uint32_t before, uint32_t after)
{
    struct group_world world;
    struct lh_group *smaller[2];
    open_world(&world, 3, 14);
    run_for(&world, 20 * MS);
    group_world_kill(&world, 2);
    run_for(&world, 2 * PEER_TIMEOUT_NS);
    for (uint32_t i = 0; i < before; i++) {
        subgroup_begin_shrink(world.groups[0]);
        run_for(&world, 20 * MS);
        assert_false(agreement_is_reached(&world.groups[0]->agreement));
    }
    subgroup_begin_shrink(world.groups[1]);
    run_until_agreed(&world, &world.groups[1], 1);
    for (uint32_t i = 0; i < after; i++)
        subgroup_begin_shrink(world.groups[0]);
    run_until_agreed(&world, world.groups, 2);
    finish_shrink(world.groups, smaller, 2);
    sum_and_destroy(&world, smaller, 2);
    group_world_close(&world);
}

static void test_shrink_again(void **state)
{
    (void)state;
    shrink_again(2, 0);
    shrink_again(1, 1);
}

/* One that has the smaller group shrinks it before others have it, and once more when another one dies. */
static void test_shrink_ahead(void **state)
{
    struct group_world world;
    struct lh_group *smaller[4], *smallest[3];
    (void)state;
    open_world(&world, 4, 15);
    run_for(&world, 20 * MS);
    for (uint32_t r = 0; r < 4; r++)
        subgroup_begin_shrink(world.groups[r]);
    run_until_agreed(&world, world.groups, 4);
    sim_engines_must(subgroup_finish_shrink(world.groups[0], &smaller[0]), "shrink");
    subgroup_begin_shrink(smaller[0]);
    run_for(&world, 20 * MS);
    for (uint32_t r = 1; r < 4; r++)
        sim_engines_must(subgroup_finish_shrink(world.groups[r], &smaller[r]), "shrink");
    group_world_kill(&world, 3);
    run_for(&world, 2 * PEER_TIMEOUT_NS);
    subgroup_begin_shrink(smaller[1]);
    subgroup_begin_shrink(smaller[2]);
    run_until_agreed(&world, smaller, 3);
    finish_shrink(smaller, smallest, 3);
    sum_and_destroy(&world, smallest, 3);
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(lh_group_destroy(smaller[r]), "lh_group_destroy");
    group_world_close(&world);
}

/* Who finds that a rank has failed dies while it tells the others: one of them does not hear of it, and is in
 * an operation of a group that the dead one is not in. */
static void test_told_in_part(void **state)
{
    struct group_world world;
    struct subgroup_split splits[4];
    struct lh_collective *ops[4], *op;
    struct lh_group *parts[4];
    (void)state;
    open_world(&world, 4, 16);
    run_for(&world, 20 * MS);
    for (uint32_t r = 0; r < 4; r++) {
        sim_engines_must(subgroup_begin_split(world.groups[r], r == 0, 0, &splits[r]), "split");
        ops[r] = splits[r].op;
    }
    assert_true(group_world_run(&world, ops, 4, LIMIT_NS));
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(subgroup_finish_split(world.groups[r], &splits[r], 0, &parts[r]), "split");
    sim_engines_must(lh_barrier(parts[1], NULL, &op), "lh_barrier");
    sim_world_cut(world.net.world, 0, 3, true);
    sim_world_cut(world.net.world, 3, 0, true);
    run_for(&world, PEER_TIMEOUT_NS * 3 / 4);
    sim_world_cut(world.net.world, 0, 1, true);
    lh_time until = group_world_now(&world) + PEER_TIMEOUT_NS;
    while (!lh_group_error(world.groups[2], 3) && group_world_now(&world) < until)
        group_world_turn(&world, until);
    group_world_kill(&world, 0);
    assert_int_equal(lh_group_error(world.groups[2], 3), -LH_EPEER);
    assert_true(group_world_run(&world, &op, 1, 2 * PEER_TIMEOUT_NS));
    assert_int_equal(result_of(op).error, -LH_EPEER);
    assert_int_equal(result_of(op).failed_rank, 2);
    lh_collective_free(op);
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(lh_group_destroy(parts[r]), "lh_group_destroy");
    group_world_close(&world);
}

/* Of a group that has failed no buffer is read. */
static void test_compare_refused(void **state)
{
    struct group_world world;
    struct lh_collective *op;
    bool differs[2];
    void *memory = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct lh_buffer buffer = {memory, 4096};
    (void)state;
    assert_true(memory != MAP_FAILED);
    open_world(&world, 2, 17);
    run_for(&world, 20 * MS);
    group_world_kill(&world, 1);
    run_for(&world, 2 * PEER_TIMEOUT_NS);
    assert_int_equal(lh_compare(world.groups[0], &buffer, 1, differs, NULL, &op), -LH_EPEER);
    munmap(memory, 4096);
    group_world_close(&world);
}

/* When all numbers of groups are used, none fails for that. */
static void test_no_more_groups(void **state)
{
    struct group_world world;
    struct lh_group *smaller = NULL;
    (void)state;
    open_world(&world, 3, 9);
    for (uint32_t r = 0; r < 3; r++)
        world.groups[r]->mesh->next_group = 1u << TAG_GROUP_BITS;
    for (uint32_t round = 0; round < 2; round++) {
        lh_time until = group_world_now(&world) + 2 * PEER_TIMEOUT_NS;
        for (uint32_t r = 0; r < 3; r++)
            subgroup_begin_shrink(world.groups[r]);
        while (!agreed(&world) && group_world_now(&world) < until)
            group_world_turn(&world, until);
        assert_true(agreed(&world));
        for (uint32_t r = 0; r < 3; r++)
            assert_int_equal(subgroup_finish_shrink(world.groups[r], &smaller), -LH_ERANGE);
    }
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(lh_group_error(world.groups[0], r), 0);
    check_next(&world);
    group_world_close(&world);
}

static void test_death(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        die(seed);
}

/* ---- a rank that never looks ------------------------------------------------------------------------- */

/* Its engine lives, so it does not count as failed by silence. What is kept for it is bounded; and when it
 * looks, after all, it learns that it has failed for the other. */
static void test_never_polls(void **state)
{
    struct group_world world;
    struct lh_collective *op;
    uint32_t calls = 0;
    (void)state;
    open_world(&world, 2, 1);
    assert_true(group_world_run(&world, NULL, 0, 0));
    for (int turn = 0; turn < 200; turn++)
        group_world_turn(&world, group_world_now(&world) + 10 * MS);
    int error = 0;
    while (!error && calls < 1000000) {
        error = lh_barrier(world.groups[0], NULL, &op);
        if (!error)
            lh_collective_free(op); /* canceled: the other rank is told */
        calls++;
        if (calls % 512 == 0) {
            sim_engines_must(lh_group_progress(world.groups[0], NULL), "lh_group_progress");
            sim_engines_must(lh_engine_progress(world.net.engines[1], NULL), "lh_engine_progress");
        }
    }
    assert_int_equal(error, -LH_EPEER);
    assert_true(calls > 10000);
    assert_int_equal(lh_group_error(world.groups[0], 1), -LH_EPEER);
    lh_time until = group_world_now(&world) + LH_NS_PER_S;
    while (!lh_group_error(world.groups[1], 0) && group_world_now(&world) < until)
        group_world_turn(&world, until);
    assert_int_equal(lh_group_error(world.groups[1], 0), -LH_EPEER);
    group_world_close(&world);
}

/* Where there is no room for what a cancel tells it, what is pending with it ends at once. */
static void test_cancel_overflows(void **state)
{
    struct group_world world;
    struct lh_collective *ops[2];
    const uint32_t many = 1u << 20;
    (void)state;
    open_world(&world, 2, 1);
    struct link *link = member_link(&world.groups[0]->members, 1);
    for (uint32_t i = 0; i < 2; i++)
        sim_engines_must(lh_barrier(world.groups[0], NULL, &ops[i]), "lh_barrier");
    link->lanes[LANE_SMALL].unacknowledged += many;
    link->backlog_bytes = (size_t)16 << 20;
    assert_int_equal(lh_collective_cancel(ops[0]), 0);
    assert_int_equal(ops[1]->state, OP_DONE); /* before anything is polled: who waits for it may sleep */
    assert_int_equal(result_of(ops[0]).error, -LH_ECANCELED);
    assert_int_equal(result_of(ops[1]).error, -LH_EPEER);
    assert_int_equal(lh_group_error(world.groups[0], 1), -LH_EPEER);
    link->lanes[LANE_SMALL].unacknowledged -= many;
    for (uint32_t i = 0; i < 2; i++)
        lh_collective_free(ops[i]);
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disagreement),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_closed_before),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_shrink_again),
        cmocka_unit_test(test_shrink_ahead),
        cmocka_unit_test(test_told_in_part),
        cmocka_unit_test(test_compare_refused),
        cmocka_unit_test(test_many_pending),
        cmocka_unit_test(test_no_more_groups),
        cmocka_unit_test(test_long_notice),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_over_and_over),
        cmocka_unit_test(test_disagreement_with_done),
        cmocka_unit_test(test_never_polls),
        cmocka_unit_test(test_cancel_overflows),
        cmocka_unit_test(test_disagreement_about_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
