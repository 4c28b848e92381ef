/*
 * test_group_members.c - who is in a group: attributes and cards that are refused, an exchange that fails,
 * groups that are split and shrunk. With workers each rank is a thread, over UDP on the loopback interface.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>

#include "group/group.h"
#include "support/group_world.h"
#include "support/rank_threads.h"
#include "support/sim_engines.h"

#define RANKS    4u
#define LIMIT_NS (60 * LH_NS_PER_S)

static struct lh_group_attr attr_of(const struct rank_thread *thread)
{
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    attr.rank = thread->rank;
    attr.size = thread->size;
    attr.exchange = rank_threads_exchange;
    attr.exchange_context = (void *)(uintptr_t)thread;
    attr.device = "udp:127.0.0.1";
    return attr;
}

static struct lh_group *create(const struct rank_thread *thread)
{
    static const char *const sites[RANKS] = {"a", "a", "b", "b"};
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *group;
    attr.site = sites[thread->rank];
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    return group;
}

/* All ranks that take part, by a bit each. */
static int32_t sum_of_bits(struct lh_group *group, uint32_t bit)
{
    int32_t in = 1 << bit, out = 0;
    struct lh_collective *op;
    struct lh_collective_result result;
    sim_engines_must(lh_allreduce(group, &in, &out, 1, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
    sim_engines_must(result.error, result.message);
    lh_collective_free(op);
    return out;
}

/* ---- attributes -------------------------------------------------------------------------------------- */

static void refuse(const struct lh_group_attr *attr, int error, const char *words)
{
    struct lh_group *group = NULL;
    assert_int_equal(lh_group_create(attr, &group), error);
    assert_null(group);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in \"%s\"", words, lh_last_error());
}

static void attributes_are_checked(void **state)
{
    (void)state;
    struct rank_thread alone = {.size = 1};
    const struct lh_group_attr good = attr_of(&alone);
    char name[LH_GROUP_SITE_MAX + 1];
    struct lh_group *group;
    struct lh_group_attr attr = good;
    attr.struct_bytes--;
    refuse(&attr, -LH_EINVAL, "call lh_group_attr_init()");
    attr = good;
    attr.size = 0;
    refuse(&attr, -LH_EINVAL, "group of 0 ranks: out of range (1 to 256)");
    attr.size = LH_GROUP_RANKS_MAX + 1;
    refuse(&attr, -LH_EINVAL, "group of 257 ranks: out of range (1 to 256)");
    attr.size = attr.rank = LH_GROUP_RANKS_MAX;
    refuse(&attr, -LH_EINVAL, "rank 256: out of range (0 to 255)");
    attr.rank = 0;
    attr.exchange = NULL;
    refuse(&attr, -LH_EINVAL, "group of 256 ranks without exchange");
    attr = good;
    attr.device = NULL;
    refuse(&attr, -LH_EINVAL, "group without an engine");
    attr = good;
    attr.block_bytes = (4u << 20) + 1;
    refuse(&attr, -LH_EINVAL, "block_bytes 4194305: out of range");
    attr.block_bytes = 1;
    refuse(&attr, -LH_EINVAL, "block_bytes 1: out of range");
    struct lh_attr with_key;
    struct lh_security security;
    lh_attr_init(&with_key);
    lh_security_init(&security);
    with_key.security = &security;
    attr = good;
    attr.attr_across = &with_key;
    refuse(&attr, -LH_EINVAL, "attr_across.security: differs from attr.security");
    attr.attr = &with_key;
    refuse(&attr, -LH_EINVAL, "security.key_file: not set");
    security.key_file = "/nowhere/key";
    refuse(&attr, -LH_EINVAL, "key file /nowhere/key: No such file");
    security.encryption = LH_ENCRYPTION_AUTH;
    refuse(&attr, -LH_EINVAL, "LH_ENCRYPTION_AUTH has no effect, the exchange is the caller's");
    attr = good;
    memset(name, 'x', sizeof name);
    name[LH_GROUP_SITE_MAX] = '\0';
    attr.site = name;
    refuse(&attr, -LH_EINVAL, "longer than 63 characters");
    name[LH_GROUP_SITE_MAX - 1] = '\0';
    attr.block_bytes = 4u << 20;
    attr.exchange = NULL; /* nobody to exchange with */
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    assert_string_equal(lh_group_site(group, 0), name);
    assert_null(lh_group_site(group, 1));
    assert_int_equal(lh_group_size(group), 1);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    assert_int_equal(lh_group_destroy(NULL), 0);
}

/* ---- what ranks tell each other ---------------------------------------------------------------------- */

/* The exchange of a rank that fails, or changes what all get. */
struct broken_exchange {
    struct rank_thread *thread;
    uint32_t calls, fails_at; /* the first is 1; 0: none does */
    int error;
    uint32_t at; /* a byte of rank 1 in the first exchange, to change */
    uint8_t change;
};

static int exchange_broken(void *context, const void *mine, size_t bytes, void *all)
{
    struct broken_exchange *broken = context;
    rank_threads_exchange(broken->thread, mine, bytes, all);
    if (++broken->calls == 1)
        ((uint8_t *)all)[bytes + broken->at] ^= broken->change;
    return broken->calls == broken->fails_at ? broken->error : 0;
}

static int create_broken(struct rank_thread *thread, struct broken_exchange broken)
{
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *group = NULL;
    broken.thread = thread;
    attr.exchange = exchange_broken;
    attr.exchange_context = &broken;
    int error = lh_group_create(&attr, &group);
    assert_true((error == 0) == (group != NULL));
    if (!error)
        sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    return error;
}

/* At both ranks, so that none waits for the other. What is no code of lh_error becomes one. */
static void fail_each_exchange(struct rank_thread *thread)
{
    static const int errors[][2] = {
        {-LH_ETIMEDOUT, -LH_ETIMEDOUT}, {-LH_EPEER, -LH_EPEER}, {-100000, -LH_EHANDSHAKE}};
    uint32_t exchanges = 0;
    for (uint32_t at = 1; at < 10; at++) { /* to the first that there is none of */
        const int *error = errors[at % 3];
        int made = create_broken(thread, (struct broken_exchange){.fails_at = at, .error = error[0]});
        if (made == 0)
            break;
        assert_int_equal(made, error[1]);
        exchanges++;
    }
    assert_int_equal(exchanges, 3); /* cards, the bytes of blobs, blobs */
    assert_int_equal(create_broken(thread, (struct broken_exchange){.fails_at = 1, .error = 7}), 0);
}

static void an_exchange_that_fails(void **state)
{
    (void)state;
    rank_threads_run(2, fail_each_exchange);
}

/* Each rank compares all cards with its own, so both find the card of rank 1 wrong. */
static void change_cards(struct rank_thread *thread)
{
    static const struct {
        uint32_t at;
        int error;
        const char *words;
    } changes[] = {
        {3, -LH_EVERSION, "group: rank 1 has another release (use one)"},
        {7, -LH_EHANDSHAKE, "group: size 2 at rank"},
        {15, -LH_EHANDSHAKE, "group: block_bytes 262144 at rank"},
        {CREATE_CARD_BYTES - SECURITY_CARD_BYTES - GROWTH_CARD_BYTES - 1, -LH_EVERSION,
         "group: rank 1 has another release"},
        {CREATE_CARD_BYTES - SECURITY_CARD_BYTES - 9, -LH_EHANDSHAKE, "card of rank 1"}, /* a number */
        {CREATE_CARD_BYTES - SECURITY_CARD_BYTES, -LH_EHANDSHAKE,
         "group: rank 1 encrypts, rank 0 does not"},
        {CREATE_CARD_BYTES - PAIR_PUBLIC_BYTES - 1, -LH_EHANDSHAKE, "has another key than rank"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct broken_exchange broken = {.at = changes[i].at, .change = 1};
        assert_int_equal(create_broken(thread, broken), changes[i].error);
        assert_non_null(strstr(lh_last_error(), changes[i].words));
    }
}

static void cards_that_differ(void **state)
{
    (void)state;
    rank_threads_run(2, change_cards);
}

/* Ranks above 0 do not come to the group: what rank 0 reports. */
static void be_missing(struct rank_thread *thread)
{
    struct broken_exchange broken = {.thread = thread, .fails_at = 3, .error = -LH_EPEER};
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *group = NULL;
    attr.timeout_ns = 50 * LH_NS_PER_MS;
    if (thread->rank > 0) {
        attr.exchange = exchange_broken;
        attr.exchange_context = &broken;
    }
    int error = lh_group_create(&attr, &group);
    assert_null(group);
    assert_int_equal(error, thread->rank > 0 ? -LH_EPEER : -LH_ETIMEDOUT);
    if (thread->rank == 0)
        assert_string_equal(lh_last_error(),
                            thread->size == 2
                                ? "group of 2: no packets from rank 1 (start it, or let UDP pass)"
                                : "group of 3: no packets from ranks 1, 2 (start them, or let UDP pass)");
}

static void ranks_that_are_missing(void **state)
{
    (void)state;
    rank_threads_run(2, be_missing);
    rank_threads_run(3, be_missing);
}

/* ---- splitting --------------------------------------------------------------------------------------- */

/* Colors, and keys that reverse the order; equal keys keep it; who has no color has no group. */
static void split_all(struct rank_thread *thread)
{
    static const uint32_t reversed[RANKS] = {3, 2, 1, 0}, colors[RANKS] = {7, 9, 7, 9};
    struct lh_group *group = create(thread), *all, *half, *some, *again;
    uint32_t rank = thread->rank;
    sim_engines_must(lh_group_split(group, 0, reversed[rank], &all), "lh_group_split");
    assert_int_equal(lh_group_size(all), RANKS);
    assert_int_equal(lh_group_rank(all), RANKS - 1 - rank);
    assert_string_equal(lh_group_site(all, 0), "b");
    assert_string_equal(lh_group_site(all, RANKS - 1), "a");
    sim_engines_must(lh_group_split(group, colors[rank], 5, &half), "lh_group_split");
    assert_int_equal(lh_group_size(half), RANKS / 2);
    assert_int_equal(lh_group_rank(half), rank / 2);
    sim_engines_must(lh_group_split(group, rank == 1 ? LH_GROUP_NO_COLOR : 0, 0, &some), "lh_group_split");
    assert_int_equal(some == NULL, rank == 1);
    /* Of a part, too. */
    sim_engines_must(lh_group_split(half, lh_group_rank(half), 0, &again), "lh_group_split");
    assert_int_equal(lh_group_size(again), 1);
    assert_ptr_equal(lh_group_engine(again), lh_group_engine(group));
    assert_int_equal(sum_of_bits(all, rank), 15);
    assert_int_equal(sum_of_bits(half, rank), rank % 2 == 0 ? 1 + 4 : 2 + 8);
    assert_int_equal(sum_of_bits(again, rank), 1 << rank);
    if (some)
        assert_int_equal(sum_of_bits(some, rank), 1 + 4 + 8);
    assert_int_equal(sum_of_bits(group, rank), 15);
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(all), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(some), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(again), "lh_group_destroy");
    assert_int_equal(sum_of_bits(half, rank), rank % 2 == 0 ? 1 + 4 : 2 + 8); /* outlives them */
    sim_engines_must(lh_group_destroy(half), "lh_group_destroy");
}

static void groups_are_split(void **state)
{
    (void)state;
    rank_threads_run(RANKS, split_all);
}

static void compare_paths(struct lh_group *group, uint32_t from, uint32_t to, struct lh_group *part,
                          uint32_t part_from, uint32_t part_to)
{
    struct lh_group_path wanted, path;
    sim_engines_must(lh_group_path(group, from, to, &wanted), "lh_group_path");
    sim_engines_must(lh_group_path(part, part_from, part_to, &path), "lh_group_path");
    assert_true(wanted.rtt_ns > 0 && wanted.rtt_ns == path.rtt_ns);
    assert_true(wanted.rate_bps == path.rate_bps);
}

/* Parts of a group that was measured know its paths, by the numbers that ranks have in them. */
static void measure(struct rank_thread *thread)
{
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *group, *reversed, *odd;
    const uint32_t rank = thread->rank, last = thread->size - 1;
    attr.block_bytes = 4096; /* short bursts */
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    sim_engines_must(lh_group_measure(group), "lh_group_measure");
    sim_engines_must(lh_group_split(group, 0, last - rank, &reversed), "lh_group_split");
    sim_engines_must(lh_group_split(group, rank == 1 ? LH_GROUP_NO_COLOR : 0, 0, &odd), "lh_group_split");
    for (uint32_t from = 0; from <= last; from++)
        for (uint32_t to = 0; to <= last; to++)
            if (from != to)
                compare_paths(group, from, to, reversed, last - from, last - to);
    if (odd) {
        compare_paths(group, 0, 2, odd, 0, 1);
        compare_paths(group, 2, 0, odd, 1, 0);
    }
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(odd), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(reversed), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void parts_know_the_paths(void **state)
{
    (void)state;
    rank_threads_run(3, measure);
}

/* Nobody would make progress; who is alone needs none. */
static void without_workers(void **state)
{
    (void)state;
    struct group_world world;
    struct lh_group *part = NULL;
    struct lh_group_attr attr;
    lh_time next;
    group_world_open(&world, "members", 1, "delay=1ms", 2, NULL, NULL);
    assert_int_equal(lh_group_split(world.groups[0], 0, 0, &part), -LH_ESTATE);
    assert_int_equal(lh_group_shrink(world.groups[0], &part), -LH_ESTATE);
    assert_int_equal(lh_group_measure(world.groups[0]), -LH_ESTATE);
    assert_null(part);
    group_world_close(&world);
    group_world_open(&world, "members", 1, "delay=1ms", 1, NULL, NULL);
    sim_engines_must(lh_group_split(world.groups[0], 3, 0, &part), "lh_group_split");
    assert_int_equal(lh_group_size(part), 1);
    sim_engines_must(lh_group_destroy(part), "lh_group_destroy");
    sim_engines_must(lh_group_shrink(world.groups[0], &part), "lh_group_shrink");
    assert_int_equal(lh_group_size(part), 1);
    assert_int_equal(lh_group_rank(part), 0);
    assert_int_equal(sum_of_bits(part, 3), 8);
    sim_engines_must(lh_group_destroy(part), "lh_group_destroy");
    sim_engines_must(lh_group_progress(world.groups[0], &next), "lh_group_progress");
    /* A thread would have nothing to wait for. */
    lh_group_attr_init(&attr);
    attr.size = 1;
    attr.engine = world.net.engines[0];
    attr.thread = true;
    refuse(&attr, -LH_ESTATE, "group: a thread needs workers in the engine");
    group_world_close(&world);
}

/* ---- shrinking --------------------------------------------------------------------------------------- */

/* A rank that left has closed; from others that were first to shrink it is known as one that failed. */
static bool is_of_failed(int error)
{
    return error == -LH_ECLOSED || error == -LH_EPEER;
}

/* Rank 1 leaves: the others have a group without it, in their order. */
static void leave_one(struct rank_thread *thread)
{
    struct lh_group *group = create(thread), *same, *smaller;
    uint32_t rank = thread->rank;
    sim_engines_must(lh_group_shrink(group, &same), "lh_group_shrink"); /* nobody has failed */
    assert_int_equal(lh_group_size(same), RANKS);
    assert_int_equal(lh_group_rank(same), rank);
    assert_int_equal(lh_group_error(same, 1), 0);
    assert_int_equal(sum_of_bits(same, rank), 15);
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(same), "lh_group_destroy");
    if (rank == 1) {
        sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
        return;
    }
    struct lh_collective *op;
    struct lh_collective_result result;
    int32_t in = 1, out;
    sim_engines_must(lh_allreduce(group, &in, &out, 1, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
    lh_collective_free(op);
    assert_true(is_of_failed(result.error));
    assert_int_equal(result.failed_rank, 1);
    sim_engines_must(lh_group_shrink(group, &smaller), "lh_group_shrink");
    assert_int_equal(lh_group_size(smaller), RANKS - 1);
    assert_int_equal(lh_group_rank(smaller), rank - (rank > 1));
    assert_true(is_of_failed(lh_group_error(group, 1)));
    assert_int_equal(lh_group_error(group, rank), 0);
    assert_int_equal(lh_group_error(group, RANKS), -LH_EINVAL);
    assert_int_equal(lh_group_error(smaller, 1), 0);
    assert_string_equal(lh_group_site(smaller, 0), "a");
    assert_string_equal(lh_group_site(smaller, 1), "b");
    assert_int_equal(sum_of_bits(smaller, rank), 1 + 4 + 8);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(smaller), "lh_group_destroy");
}

static void groups_are_shrunk(void **state)
{
    (void)state;
    rank_threads_run(RANKS, leave_one);
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

static void ask(struct rank_thread *thread)
{
    struct lh_group *group = create(thread);
    struct lh_group_path path = {.rtt_ns = 1};
    uint32_t place, site, places = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(lh_group_error(group, r), 0);
        assert_string_equal(lh_group_site(group, r), r < 2 ? "a" : "b");
        assert_int_equal(lh_group_place(group, r, &place, &site), 0);
        assert_int_equal(site, r / 2);
        places |= 1u << place;
        assert_int_equal(lh_group_path(group, r, r, &path), -LH_EINVAL);
        assert_int_equal(lh_group_path(group, r, RANKS, &path), -LH_EINVAL);
        assert_int_equal(lh_group_path(group, RANKS, r, &path), -LH_EINVAL);
    }
    assert_int_equal(places, 15);
    assert_int_equal(lh_group_place(group, 0, NULL, NULL), 0);
    assert_int_equal(lh_group_place(group, RANKS, &place, NULL), -LH_EINVAL);
    assert_int_equal(lh_group_path(group, 0, 1, &path), -LH_ESTATE); /* nothing was measured */
    assert_int_equal(path.rtt_ns, 1);
    assert_int_equal(lh_group_progress(group, NULL), -LH_ESTATE); /* the engine's workers make it */
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void a_group_is_asked(void **state)
{
    (void)state;
    rank_threads_run(RANKS, ask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_checked), cmocka_unit_test(an_exchange_that_fails),
        cmocka_unit_test(cards_that_differ),      cmocka_unit_test(groups_are_split),
        cmocka_unit_test(without_workers),        cmocka_unit_test(groups_are_shrunk),
        cmocka_unit_test(a_group_is_asked),       cmocka_unit_test(ranks_that_are_missing),
        cmocka_unit_test(parts_know_the_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
