/*
 * test_encoder.c - groups shared out among threads give what one thread gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/code.h>
#include <longhaul/error.h>

#include "base/prng.h"
#include "coding/encoder.h"
#include "support/code_reference.h"
#include "support/sanitized.h"

/* ---- test encoder ---------------------------------------------------------------------------------- */

#define GROUPS_MAX 9u
#define BYTES_MAX  40000u
#define K          6u
#define M          3u

struct groups {
    uint8_t *memory; /* data, parity, parity as it should be */
    const void *data[GROUPS_MAX * K];
    void *parity[GROUPS_MAX * M];
    void *wanted[GROUPS_MAX * M];
};

static void create_groups(struct groups *groups, struct lh_prng *prng)
{
    const size_t chunks = GROUPS_MAX * (K + 2 * M);
    groups->memory = malloc(chunks * BYTES_MAX);
    fill_random(groups->memory, chunks * BYTES_MAX, prng);
    uint8_t *at = groups->memory;
    for (unsigned i = 0; i < GROUPS_MAX * K; i++, at += BYTES_MAX)
        groups->data[i] = at;
    for (unsigned i = 0; i < GROUPS_MAX * M; i++, at += BYTES_MAX)
        groups->parity[i] = at;
    memcpy(at, groups->parity[0], (size_t)GROUPS_MAX * M * BYTES_MAX);
    for (unsigned i = 0; i < GROUPS_MAX * M; i++, at += BYTES_MAX)
        groups->wanted[i] = at;
}

static void test_as_one_thread(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, 20000, BYTES_MAX};
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    struct groups groups;
    create_groups(&groups, &prng);
    for (uint32_t threads = 0; threads <= 4; threads++) {
        struct lh_encoder *encoder;
        assert_int_equal(lh_encoder_create(threads, NULL, &encoder), 0);
        for (unsigned round = 0; round < (SANITIZED ? 40 : 200); round++) {
            struct lh_code code = {round % 2 ? LH_CODE_XOR : LH_CODE_MDS, K, M};
            uint32_t count = (uint32_t)lh_prng_below(&prng, GROUPS_MAX + 1);
            size_t bytes = lengths[lh_prng_below(&prng, sizeof lengths / sizeof lengths[0])];
            for (uint32_t g = 0; g < count; g++)
                lh_encode(&code, groups.data + g * K, groups.wanted + g * M, bytes);
            lh_encoder_encode(encoder, &code, count, groups.data, groups.parity, bytes);
            assert_memory_equal(groups.parity[0], groups.wanted[0], (size_t)GROUPS_MAX * M * BYTES_MAX);
        }
        lh_encoder_destroy(encoder);
    }
    free(groups.memory);
}

static void test_arguments(void **state)
{
    (void)state;
    struct lh_encoder *encoder = NULL;
    assert_int_equal(lh_encoder_create(256, NULL, &encoder), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "256"));
    assert_int_equal(lh_encoder_create(1, (int[]){1 << 20}, &encoder), -LH_ESYSTEM);
    assert_null(encoder);
    assert_int_equal(lh_encoder_create(1, (int[]){0}, &encoder), 0);
    lh_encoder_destroy(encoder);
    lh_encoder_destroy(NULL);
}

static int run_encoder(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_one_thread),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test work pool -------------------------------------------------------------------------------- */

/* Order, taking back, and many who give and take back at once. */

struct piece {
    struct work work; /* first */
    _Atomic unsigned *order;
    unsigned turn; /* in which it ran */
    sem_t *began;
    sem_t *go_on;
};

static void run_in_turn(struct work *work)
{
    struct piece *piece = (struct piece *)work;
    piece->turn = atomic_fetch_add(piece->order, 1) + 1;
}

static void run_when_told(struct work *work)
{
    struct piece *piece = (struct piece *)work;
    sem_post(piece->began);
    sem_wait(piece->go_on);
}

#define PIECES 20

struct held_pool {
    struct work_pool *pool;
    sem_t began, go_on;
    struct piece holder;
    _Atomic unsigned order;
    struct piece pieces[PIECES];
};

/* A pool of one thread, which is held up. */
static void hold(struct held_pool *held)
{
    memset(held, 0, sizeof *held);
    sem_init(&held->began, 0, 0);
    sem_init(&held->go_on, 0, 0);
    held->pool = work_pool_create(1, NULL);
    assert_non_null(held->pool);
    held->holder =
        (struct piece){.work = {.run = run_when_told}, .began = &held->began, .go_on = &held->go_on};
    work_pool_give(held->pool, &held->holder.work);
    sem_wait(&held->began);
    for (unsigned i = 0; i < PIECES; i++) {
        held->pieces[i] = (struct piece){.work = {.run = run_in_turn}, .order = &held->order};
        work_pool_give(held->pool, &held->pieces[i].work);
    }
}

/* Lets it run, and waits for all that was given, by a last piece. */
static void let_go(struct held_pool *held)
{
    struct piece last = held->holder;
    work_pool_give(held->pool, &last.work);
    sem_post(&held->go_on);
    sem_wait(&held->began);
    sem_post(&held->go_on);
    work_pool_destroy(held->pool);
    sem_destroy(&held->began);
    sem_destroy(&held->go_on);
}

static void test_first_in_first_out(void **state)
{
    (void)state;
    struct held_pool held;
    hold(&held);
    let_go(&held);
    for (unsigned i = 0; i < PIECES; i++)
        assert_int_equal(held.pieces[i].turn, i + 1);
}

static void test_take_back(void **state)
{
    (void)state;
    static const unsigned taken[] = {0, 7, 8, PIECES - 1}; /* first, two in a row, last */
    struct held_pool held;
    hold(&held);
    assert_false(work_pool_take_back(held.pool, &held.holder.work)); /* it has begun */
    for (unsigned i = 0; i < 4; i++) {
        assert_true(work_pool_take_back(held.pool, &held.pieces[taken[i]].work));
        assert_false(work_pool_take_back(held.pool, &held.pieces[taken[i]].work));
    }
    work_pool_give(held.pool, &held.pieces[7].work);
    let_go(&held);
    unsigned turn = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        if (i == 0 || i == 7 || i == 8 || i == PIECES - 1)
            continue;
        assert_int_equal(held.pieces[i].turn, ++turn);
    }
    assert_int_equal(held.pieces[7].turn, turn + 1); /* given again: behind all others */
    assert_int_equal(held.pieces[0].turn + held.pieces[8].turn + held.pieces[PIECES - 1].turn, 0);
}

static void test_no_threads(void **state)
{
    (void)state;
    struct work_pool *pool = work_pool_create(0, NULL);
    _Atomic unsigned order = 0;
    struct piece piece = {.work = {.run = run_in_turn}, .order = &order};
    work_pool_give(pool, &piece.work);
    assert_true(work_pool_take_back(pool, &piece.work));
    work_pool_destroy(pool);
    assert_int_equal(order, 0);
}

static void test_cpus(void **state)
{
    (void)state;
    struct work_pool *pool = work_pool_create(2, (int[]){-1, 0});
    assert_non_null(pool);
    work_pool_destroy(pool);
    assert_null(work_pool_create(2, (int[]){-1, 1 << 20}));
    assert_non_null(strstr(lh_last_error(), "1048576"));
    work_pool_destroy(NULL);
}

/* ---- many at once ------------------------------------------------------------------------------------ */

#define GIVERS      3
#define GIVER_WORKS 8

struct counted {
    struct work work; /* first */
    _Atomic bool ended;
    unsigned runs; /* no atomic: the pool must order what is in a piece */
    struct work_pool *pool;
    unsigned again; /* how often it gives itself again */
};

static void run_counted(struct work *work)
{
    struct counted *counted = (struct counted *)work;
    counted->runs++;
    if (counted->again > 0) {
        counted->again--;
        work_pool_give(counted->pool, work);
        return;
    }
    atomic_store(&counted->ended, true);
}

struct giver {
    struct work_pool *pool;
    uint64_t seed;
    unsigned rounds;
    bool right;
};

/* Each piece ran as often as it should have: once and as often as it gave itself, less when taken back. */
static void *give_and_take(void *argument)
{
    struct giver *giver = argument;
    struct lh_prng prng;
    lh_prng_seed(&prng, giver->seed);
    giver->right = true;
    for (unsigned round = 0; round < giver->rounds; round++) {
        struct counted counted[GIVER_WORKS];
        unsigned wanted[GIVER_WORKS];
        for (unsigned i = 0; i < GIVER_WORKS; i++) {
            wanted[i] = 1 + (unsigned)lh_prng_below(&prng, 3);
            counted[i] =
                (struct counted){.work = {.run = run_counted}, .pool = giver->pool, .again = wanted[i] - 1};
            work_pool_give(giver->pool, &counted[i].work);
        }
        for (unsigned i = 0; i < GIVER_WORKS; i++) {
            bool taken = lh_prng_chance(&prng, 0.5) && work_pool_take_back(giver->pool, &counted[i].work);
            while (!taken && !atomic_load(&counted[i].ended))
                sched_yield();
            giver->right &= taken ? counted[i].runs < wanted[i] : counted[i].runs == wanted[i];
        }
    }
    return NULL;
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct work_pool *pool = work_pool_create(4, NULL);
    struct giver givers[GIVERS];
    pthread_t threads[GIVERS];
    for (unsigned i = 0; i < GIVERS; i++) {
        givers[i] = (struct giver){.pool = pool, .seed = i, .rounds = SANITIZED ? 500 : 5000};
        pthread_create(&threads[i], NULL, give_and_take, &givers[i]);
    }
    for (unsigned i = 0; i < GIVERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(givers[i].right);
    }
    work_pool_destroy(pool);
}

static int run_work_pool(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out), cmocka_unit_test(test_take_back),
        cmocka_unit_test(test_no_threads),         cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_encoder() + run_work_pool();
}
