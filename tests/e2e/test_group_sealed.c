/*
 * test_group_sealed.c - groups with a key over UDP on loopback, a thread per rank: collectives, secrets that
 * are never used twice, ranks whose keys differ, and an exchange that changes what ranks give each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>
#include <longhaul/stats.h>

#include "fabric/udp/udp_state.h"
#include "group/group.h"
#include "message/connection_state.h"
#include "sdr/qp.h"
#include "support/rank_threads.h"
#include "support/sim_engines.h"

#define RANKS     4u
#define CREATIONS 3u
#define COUNT     50000u
#define LIMIT_NS  (60 * LH_NS_PER_S)
/* For groups that never are: they end by it, and what they wait for does not come. */
#define SHORT_NS (300 * LH_NS_PER_MS)

static char folder[] = "/tmp/longhaul-sealed-XXXXXX";
static char files[2][64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(files[i], sizeof files[i], "%s/key%d", folder, i);
        int fd = open(files[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || dprintf(fd, "%063d%d\n", 0, i) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(files[0]);
    unlink(files[1]);
    return rmdir(folder);
}

/* What a rank asks for; key: NULL for none. */
struct wish {
    const char *key;
    enum lh_encryption encryption;
    lh_exchange_fn exchange;
    void *context;
    lh_time timeout_ns;
    double loss;
    const char *reliability;
};

static int create(const struct rank_thread *thread, const struct wish *wish, struct lh_group **group)
{
    struct lh_group_attr attr;
    struct lh_attr connection;
    struct lh_security security;
    lh_group_attr_init(&attr);
    lh_attr_init(&connection);
    lh_security_init(&security);
    security.key_file = wish->key;
    security.encryption = wish->encryption;
    connection.security = wish->key ? &security : NULL;
    connection.reliability = wish->reliability;
    connection.link.loss = wish->loss;
    connection.link.seed = thread->rank + 1;
    attr.attr = &connection;
    attr.rank = thread->rank;
    attr.size = thread->size;
    attr.site = thread->rank < 2 ? "one" : "two";
    attr.device = "udp:127.0.0.1";
    attr.exchange = wish->exchange ? wish->exchange : rank_threads_exchange;
    attr.exchange_context = wish->context ? wish->context : (void *)(uintptr_t)thread;
    attr.timeout_ns = wish->timeout_ns;
    int error = lh_group_create(&attr, group);
    if (!error)
        assert_int_equal(lh_group_encryption(*group), wish->key ? wish->encryption : LH_ENCRYPTION_OFF);
    return error;
}

static void reduce(struct lh_group *group)
{
    struct lh_collective *op;
    struct lh_collective_result result;
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.reliable = true;
    uint32_t size = lh_group_size(group), rank = lh_group_rank(group);
    int32_t *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    assert_true(in && out);
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)(i * (rank + 1));
    sim_engines_must(lh_allreduce(group, in, out, COUNT, LH_I32, LH_SUM, &options, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
    sim_engines_must(result.error, result.message);
    lh_collective_free(op);
    for (uint32_t i = 0; i < COUNT; i++)
        if (out[i] != (int32_t)(i * size * (size + 1) / 2))
            fail_msg("rank %u: element %u is %d", rank, i, out[i]);
    free(in);
    free(out);
}

/* ---- collectives ------------------------------------------------------------------------------------- */

/* Nothing that was sent failed to be opened. */
static void no_failures(struct lh_group *group)
{
    struct lh_stats stats;
    const struct mesh *mesh = group->mesh;
    for (uint32_t r = 0; r < mesh->size; r++)
        for (enum lane lane = 0; lane < LANE_BOUNDED && r != mesh->rank; lane++) {
            struct lh_connection *connection = mesh->links[r].lanes[lane].connection;
            assert_true(connection->encrypted);
            sim_engines_must(lh_connection_stats(connection, &stats), "lh_connection_stats");
            assert_int_equal(stats.rx_auth_failures, 0);
            assert_int_equal(stats.rx_replays, 0);
        }
}

static void run_collectives(struct rank_thread *thread)
{
    const struct wish wish = {.key = files[0], .loss = 0.01};
    struct lh_group *group, *part;
    sim_engines_must(create(thread, &wish, &group), "lh_group_create");
    reduce(group);
    sim_engines_must(lh_group_split(group, thread->rank % 2, 0, &part), "lh_group_split");
    reduce(part);
    sim_engines_must(lh_group_destroy(part), "lh_group_destroy");
    reduce(group);
    no_failures(group);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_collectives(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_collectives);
}

/* More ranks than processors. */
static void run_many(struct rank_thread *thread)
{
    const struct wish wish = {.key = files[0]};
    struct lh_group *group;
    sim_engines_must(create(thread, &wish, &group), "lh_group_create");
    reduce(group);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_many_ranks(void **state)
{
    (void)state;
    rank_threads_run(RANK_THREADS_MAX, run_many);
}

/* ---- secrets ----------------------------------------------------------------------------------------- */

/* Of each lane of each pair of each group. A key counts its packets from 0, so no secret may come twice. */
static uint8_t ledger[CREATIONS * RANKS * RANKS * LANES][SEAL_SECRET_BYTES];
static atomic_uint in_ledger;

static struct udp_keys *keys_of(struct lh_connection *connection)
{
    assert_true(connection && connection->encrypted);
    struct udp_keys *keys = udp_endpoint_of(connection->qp->endpoint)->keys;
    assert_non_null(keys);
    return keys;
}

static void add_to_ledger(const struct lh_group *group)
{
    const struct mesh *mesh = group->mesh;
    for (uint32_t r = 0; r < mesh->size; r++)
        for (enum lane lane = 0; lane < LANES && r != mesh->rank; lane++) {
            struct udp_keys *keys = keys_of(mesh->links[r].lanes[lane].connection);
            assert_int_equal(keys->direction, mesh->rank > r);
            assert_memory_equal(keys->tx_secret, keys->rx_secret[0], SEAL_SECRET_BYTES);
            if (mesh->rank < r) /* the other has the same */
                memcpy(ledger[atomic_fetch_add(&in_ledger, 1)], keys->tx_secret, SEAL_SECRET_BYTES);
        }
    assert_null(group->pairs); /* of what they were made nothing is left */
}

/* Groups beside each other, and one behind the other; their parts have the connections that there are. */
static void run_ledger(struct rank_thread *thread)
{
    const struct wish wish = {.key = files[0], .reliability = "bounded:deadline=none"};
    struct lh_group *groups[CREATIONS], *part;
    for (unsigned i = 0; i < CREATIONS; i++) {
        sim_engines_must(create(thread, &wish, &groups[i]), "lh_group_create");
        add_to_ledger(groups[i]);
        sim_engines_must(lh_group_split(groups[i], thread->rank % 2, 0, &part), "lh_group_split");
        assert_ptr_equal(part->mesh, groups[i]->mesh);
        reduce(part);
        sim_engines_must(lh_group_destroy(part), "lh_group_destroy");
        if (i == 0)
            sim_engines_must(lh_group_destroy(groups[0]), "lh_group_destroy");
    }
    for (unsigned i = 1; i < CREATIONS; i++)
        sim_engines_must(lh_group_destroy(groups[i]), "lh_group_destroy");
}

static void test_no_secret_twice(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_ledger);
    unsigned count = in_ledger;
    assert_int_equal(count, CREATIONS * LANES * RANKS * (RANKS - 1) / 2);
    for (unsigned i = 0; i < count; i++)
        for (unsigned other = 0; other < i; other++)
            assert_memory_not_equal(ledger[i], ledger[other], SEAL_SECRET_BYTES);
}

/* ---- ranks that differ ------------------------------------------------------------------------------- */

static void expect(const struct rank_thread *thread, const struct wish *wish, int error, const char *words)
{
    struct lh_group *group = NULL;
    int got = create(thread, wish, &group);
    if (got != error || !strstr(lh_last_error(), words))
        fail_msg("rank %u: %d, \"%s\": not %d, \"%s\"", thread->rank, got, lh_last_error(), error, words);
    assert_null(group);
}

/* Rank 1 has none, none to use, another one. Both learn it. */
static void run_others(struct rank_thread *thread)
{
    const struct wish key = {.key = files[0]};
    const struct wish others[] = {
        {.key = NULL}, {.key = files[0], .encryption = LH_ENCRYPTION_OFF}, {.key = files[1]}};
    for (unsigned i = 0; i < 3; i++) {
        const char *words =
            i == 2 ? "has another key than rank" : "group: rank 0 encrypts, rank 1 does not";
        expect(thread, thread->rank == 0 ? &key : &others[i], -LH_EHANDSHAKE, words);
        rank_threads_meet(thread);
    }
}

static void test_others(void **state)
{
    (void)state;
    rank_threads_run(2, run_others);
}

/* ---- a host between ---------------------------------------------------------------------------------- */

/* An exchange through a host that has no key: of what rank 0 has given, rank 1 gets `change` in a byte of an
 * exchange. Or both get the public key that they have given themselves. */
#define CARDS 1u
#define BLOBS 3u
struct between {
    struct rank_thread *thread;
    uint32_t calls, call;
    size_t at;
    uint8_t change;
    bool reflects;
};

static int exchange_between(void *context, const void *mine, size_t bytes, void *all)
{
    struct between *between = context;
    uint8_t *of_zero = all, *own = of_zero + between->thread->rank * bytes;
    uint8_t *other = of_zero + (1 - between->thread->rank) * bytes;
    rank_threads_exchange(between->thread, mine, bytes, all);
    between->calls++;
    if (between->reflects && between->calls == 1)
        memcpy(other + bytes - PAIR_PUBLIC_BYTES, own + bytes - PAIR_PUBLIC_BYTES, PAIR_PUBLIC_BYTES);
    size_t at =
        between->at + (between->call == BLOBS ? bytes / 2 : 0); /* behind what rank 0 has for itself */
    if (between->change && between->thread->rank == 1 && between->calls == between->call)
        of_zero[at] ^= between->change;
    return 0;
}

/* Card: public key, its first and its last byte; site, which decides schedules. Blob for rank 1: a feature in
 * the flags of the first lane, behind both lengths, "LHC1" and the version. */
static void run_between(struct rank_thread *thread)
{
    const struct between cases[] = {
        {.call = CARDS, .at = CREATE_CARD_BYTES - PAIR_PUBLIC_BYTES, .change = 1},
        {.call = CARDS, .at = CREATE_CARD_BYTES - 1, .change = 0x40},
        {.call = CARDS, .at = 20, .change = 1},
        {.call = BLOBS, .at = 4 + 4 + 6, .change = 0x80},
        {.reflects = true},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct between between = cases[i];
        struct lh_group *group = NULL;
        between.thread = thread;
        const struct wish wish = {
            .key = files[0], .exchange = exchange_between, .context = &between, .timeout_ns = SHORT_NS};
        assert_int_equal(create(thread, &wish, &group), -LH_ETIMEDOUT);
        assert_null(group);
        rank_threads_meet(thread);
    }
}

static void test_between(void **state)
{
    (void)state;
    rank_threads_run(2, run_between);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),     cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_no_secret_twice), cmocka_unit_test(test_others),
        cmocka_unit_test(test_between),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
