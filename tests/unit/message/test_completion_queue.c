/*
 * test_completion_queue.c - the entries of a completion queue: against a model, and under many threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "message/completion_queue.h"
#include "support/sanitized.h"

/* ---- test completion ring -------------------------------------------------------------------------- */

#define MS LH_NS_PER_MS

static void put(struct completion_ring *ring, uint64_t user)
{
    const struct lh_completion entry = {.user = user};
    completion_ring_begin(ring);
    completion_ring_put(ring, &entry);
    completion_ring_end(ring);
}

static void add(struct completion_ring *ring, uint64_t user)
{
    assert_int_equal(completion_ring_reserve(ring, LH_OPERATION_SEND), 0);
    put(ring, user);
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_true(poll(&one, 1, 0) >= 0);
    return one.revents & POLLIN;
}

/* ---- bounds ------------------------------------------------------------------------------------------ */

static void full_is_refused(void **state)
{
    (void)state;
    struct completion_ring ring;
    struct lh_completion entry;
    assert_int_equal(completion_ring_open(&ring, 3, 0), 0);
    add(&ring, 1);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), -LH_EAGAIN);
    assert_string_equal(lh_last_error(),
                        "completion queue is full (entries: 3, pending requests: 2, entries not polled: 1, "
                        "regions: 0): poll it, or create a larger one");
    put(&ring, 2); /* a pending request becomes an entry: as many as before */
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), -LH_EAGAIN);
    assert_int_equal(completion_ring_take(&ring, &entry, 1), 1);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), -LH_EAGAIN);
    put(&ring, 3);
    put(&ring, 4);
    assert_int_equal(completion_ring_close(&ring), 0); /* with entries that nobody took */
}

/* What is held is for notifications alone, which may have more; requests get the rest. */
static void places_for_notifications(void **state)
{
    (void)state;
    struct completion_ring ring;
    struct lh_completion entries[4];
    const struct lh_completion notification = {.operation = LH_OPERATION_NOTIFY};
    assert_int_equal(completion_ring_open(&ring, 4, 0), 0);
    assert_int_equal(completion_ring_hold(&ring), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_RECV), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_RECV), -LH_EAGAIN);
    assert_int_equal(completion_ring_hold(&ring), -LH_EAGAIN);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_NOTIFY), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_NOTIFY), -LH_EAGAIN);
    completion_ring_release(&ring, LH_OPERATION_NOTIFY);
    completion_ring_release(&ring, LH_OPERATION_RECV);
    for (int i = 0; i < 2; i++) { /* its own, and a free one */
        assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_NOTIFY), 0);
        completion_ring_begin(&ring);
        completion_ring_put(&ring, &notification);
        completion_ring_end(&ring);
    }
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_RECV), -LH_EAGAIN);
    put(&ring, 1);
    assert_int_equal(completion_ring_take(&ring, entries, 2), 2);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_RECV), 0);
    assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_RECV), -LH_EAGAIN);
    assert_int_equal(completion_ring_close(&ring), -LH_ESTATE);
    put(&ring, 2);
    put(&ring, 3);
    assert_int_equal(completion_ring_take(&ring, entries, 4), 3);
    assert_int_equal(completion_ring_close(&ring), -LH_ESTATE); /* a region has it */
    completion_ring_unhold(&ring);
    assert_int_equal(completion_ring_close(&ring), 0);
}

static void close_is_refused(void **state)
{
    (void)state;
    struct completion_ring ring;
    assert_int_equal(completion_ring_open(&ring, 8, 0), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), 0);
    assert_int_equal(completion_ring_close(&ring), -LH_ESTATE);
    assert_non_null(strstr(lh_last_error(), "pending requests: 5"));
    for (uint64_t i = 0; i < 5; i++)
        put(&ring, i);
    assert_int_equal(completion_ring_close(&ring), 0);
}

static void wait_ends_in_time(void **state)
{
    (void)state;
    struct completion_ring ring;
    struct lh_completion entry;
    assert_int_equal(completion_ring_open(&ring, 1, 0), 0);
    assert_int_equal(completion_ring_wait(&ring, &entry, 1, 0), 0);
    assert_int_equal(completion_ring_wait(&ring, &entry, 1, MS), 0);
    add(&ring, 7);
    assert_int_equal(completion_ring_wait(&ring, &entry, 1, 0), 1);
    assert_int_equal(entry.user, 7);
    add(&ring, 8);
    assert_int_equal(completion_ring_wait(&ring, &entry, 1, LH_TIME_NEVER), 1);
    assert_int_equal(entry.user, 8);
    assert_int_equal(completion_ring_close(&ring), 0);
}

static void arm_needs_a_descriptor(void **state)
{
    (void)state;
    struct completion_ring ring;
    assert_int_equal(completion_ring_open(&ring, 1, 0), 0);
    assert_int_equal(completion_ring_arm(&ring), -LH_ESTATE);
    int fd = completion_ring_fd(&ring);
    assert_true(fd >= 0);
    assert_int_equal(completion_ring_fd(&ring), fd);
    assert_int_equal(completion_ring_arm(&ring), 0);
    assert_int_equal(completion_ring_close(&ring), 0);
    assert_int_equal(write(fd, "12345678", 8), -1); /* closed */
}

/* ---- against a model --------------------------------------------------------------------------------- */

#define CAPACITY_MAX 9u
#define STEPS        2000u
#define SEEDS        40u

struct model {
    struct completion_ring ring;
    int fd;
    uint32_t capacity;
    uint64_t users[CAPACITY_MAX]; /* of the entries, oldest first */
    uint32_t count;
    uint32_t reserved;
    uint64_t next;
    bool armed;
    bool readable;
};

static void model_reserve(struct model *model)
{
    bool full = model->reserved + model->count == model->capacity;
    assert_int_equal(completion_ring_reserve(&model->ring, LH_OPERATION_SEND), full ? -LH_EAGAIN : 0);
    model->reserved += !full;
}

static void model_put(struct model *model, uint32_t wanted)
{
    uint32_t n = wanted < model->reserved ? wanted : model->reserved;
    completion_ring_begin(&model->ring);
    for (uint32_t i = 0; i < n; i++) {
        const struct lh_completion entry = {
            .user = model->next, .result.bytes = ~model->next, .operation = LH_OPERATION_RECV};
        completion_ring_put(&model->ring, &entry);
        model->users[model->count++] = model->next++;
    }
    completion_ring_end(&model->ring);
    model->reserved -= n;
    if (n > 0 && model->armed) {
        model->armed = false;
        model->readable = true;
    }
}

static void model_take(struct model *model, uint32_t n, bool waits)
{
    struct lh_completion entries[CAPACITY_MAX + 2];
    uint32_t expected = n < model->count ? n : model->count;
    uint32_t taken = waits && n > 0 ? completion_ring_wait(&model->ring, entries, n, 0)
                                    : completion_ring_take(&model->ring, entries, n);
    assert_int_equal(taken, expected);
    for (uint32_t i = 0; i < taken; i++) {
        assert_int_equal(entries[i].user, model->users[i]);
        assert_int_equal(entries[i].result.bytes, ~model->users[i]);
        assert_int_equal(entries[i].operation, LH_OPERATION_RECV);
    }
    model->count -= taken;
    memmove(model->users, model->users + taken, model->count * sizeof model->users[0]);
}

static void model_arm(struct model *model)
{
    assert_int_equal(completion_ring_arm(&model->ring), model->count);
    if (model->count == 0) {
        model->armed = true;
        model->readable = false;
    }
}

/* The user reads the descriptor, as io_uring does. */
static void model_read(struct model *model)
{
    uint64_t value;
    ssize_t got = read(model->fd, &value, sizeof value);
    assert_int_equal(got, model->readable ? 8 : -1);
    assert_true(got < 0 || value == 1); /* written once */
    model->readable = false;
}

static void model_step(struct model *model, struct lh_prng *prng)
{
    switch (lh_prng_below(prng, 8)) {
    case 0:
    case 1:
    case 2:
        model_reserve(model);
        break;
    case 3:
    case 4:
        model_put(model, (uint32_t)lh_prng_below(prng, 4));
        break;
    case 5:
        model_take(model, (uint32_t)lh_prng_below(prng, CAPACITY_MAX + 2), lh_prng_chance(prng, 0.3));
        break;
    case 6:
        model_arm(model);
        break;
    default:
        if (lh_prng_chance(prng, 0.2))
            model_read(model);
    }
    assert_int_equal(is_readable(model->fd), model->readable);
}

static void as_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        struct model model = {.capacity = 1 + (uint32_t)lh_prng_below(&prng, CAPACITY_MAX)};
        assert_int_equal(completion_ring_open(&model.ring, model.capacity, seed % 2 ? 0 : 5 * LH_NS_PER_US),
                         0);
        model.fd = completion_ring_fd(&model.ring);
        for (uint32_t i = 0; i < STEPS; i++)
            model_step(&model, &prng);
        int error = completion_ring_close(&model.ring);
        assert_int_equal(error, model.reserved > 0 ? -LH_ESTATE : 0);
        if (error) {
            model_put(&model, model.reserved);
            assert_int_equal(completion_ring_close(&model.ring), 0);
        }
    }
}

/* ---- many threads ------------------------------------------------------------------------------------ */

/* Whoever waits, waits without limit: a lost wake-up is a hang, which the time limit of the test ends. */
#define PRODUCERS   3u
#define EACH        (SANITIZED ? 2000u : 6000u)
#define STOP        UINT64_MAX
#define CONSUMERS   6u
#define ENTRIES_MAX 5u

enum consumer_kind { SPINS, WAITS, SLEEPS_ON_FD, KINDS };

struct stress {
    struct completion_ring ring;
    int fd;
    _Atomic uint32_t seen[PRODUCERS][6000]; /* times that each entry was taken */
    _Atomic uint32_t wrong;
    _Atomic uint32_t next_producer;
    bool lone; /* a single consumer: each producer's entries are in order */
};

struct consumer {
    struct stress *stress;
    enum consumer_kind kind;
    pthread_t thread;
};

static void reserve_surely(struct stress *stress)
{
    while (completion_ring_reserve(&stress->ring, LH_OPERATION_SEND) != 0)
        sched_yield();
}

static void *produce(void *argument)
{
    struct stress *stress = argument;
    uint64_t self = atomic_fetch_add(&stress->next_producer, 1);
    struct lh_prng prng;
    lh_prng_seed(&prng, self);
    for (uint64_t i = 0; i < EACH;) {
        uint32_t batch = 1 + (uint32_t)lh_prng_below(&prng, 3);
        uint32_t reserved = 1;
        reserve_surely(stress); /* who waits for the second one may wait for another who does */
        while (reserved < batch && reserved < EACH - i &&
               completion_ring_reserve(&stress->ring, LH_OPERATION_SEND) == 0)
            reserved++;
        completion_ring_begin(&stress->ring);
        for (uint32_t k = 0; k < reserved; k++, i++)
            completion_ring_put(&stress->ring, &(struct lh_completion){.user = self << 32 | i});
        completion_ring_end(&stress->ring);
        if (lh_prng_chance(&prng, 0.02)) /* so that consumers sleep */
            usleep(50);
    }
    return NULL;
}

static uint32_t get(const struct consumer *consumer, struct lh_completion *entries, uint32_t n)
{
    struct stress *stress = consumer->stress;
    struct pollfd one = {.fd = stress->fd, .events = POLLIN};
    switch (consumer->kind) {
    case WAITS:
        return completion_ring_wait(&stress->ring, entries, n, LH_TIME_NEVER);
    case SLEEPS_ON_FD:
        if (completion_ring_arm(&stress->ring) == 0)
            poll(&one, 1, -1);
        break;
    default:
        sched_yield();
    }
    return completion_ring_take(&stress->ring, entries, n);
}

/* One that stops leaves a stop to each of the others. */
static void pass_on(struct stress *stress, uint32_t stops)
{
    for (uint32_t i = 1; i < stops; i++) {
        reserve_surely(stress);
        put(&stress->ring, STOP);
    }
}

static void note(struct stress *stress, uint64_t user, uint64_t last[PRODUCERS])
{
    uint64_t producer = user >> 32, i = user & UINT32_MAX;
    bool ordered = !stress->lone || i == last[producer];
    if (atomic_fetch_add(&stress->seen[producer][i], 1) != 0 || !ordered)
        atomic_fetch_add(&stress->wrong, 1);
    last[producer] = i + 1;
}

static void *consume(void *argument)
{
    const struct consumer *consumer = argument;
    struct stress *stress = consumer->stress;
    uint64_t last[PRODUCERS] = {0};
    struct lh_completion entries[ENTRIES_MAX];
    uint32_t stops = 0;
    for (uint32_t turn = 0; stops == 0; turn++) {
        uint32_t taken = get(consumer, entries, 1 + turn % ENTRIES_MAX);
        for (uint32_t i = 0; i < taken; i++) {
            if (entries[i].user == STOP)
                stops++;
            else
                note(stress, entries[i].user, last);
        }
    }
    pass_on(stress, stops);
    return NULL;
}

static void run_stress(uint32_t capacity, uint32_t consumers, enum consumer_kind first, lh_time spin_ns)
{
    struct stress *stress = calloc(1, sizeof *stress);
    struct consumer those[CONSUMERS];
    pthread_t producers[PRODUCERS];
    assert_non_null(stress);
    assert_int_equal(completion_ring_open(&stress->ring, capacity, spin_ns), 0);
    stress->fd = completion_ring_fd(&stress->ring);
    stress->lone = consumers == 1;
    for (uint32_t i = 0; i < consumers; i++) {
        those[i] = (struct consumer){.stress = stress, .kind = (first + i) % KINDS};
        assert_int_equal(pthread_create(&those[i].thread, NULL, consume, &those[i]), 0);
    }
    for (uint32_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, stress), 0);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    for (uint32_t i = 0; i < consumers; i++) {
        reserve_surely(stress);
        put(&stress->ring, STOP);
    }
    for (uint32_t i = 0; i < consumers; i++)
        pthread_join(those[i].thread, NULL);
    assert_int_equal(atomic_load(&stress->wrong), 0);
    for (uint32_t p = 0; p < PRODUCERS; p++)
        for (uint32_t i = 0; i < EACH; i++)
            assert_int_equal(atomic_load(&stress->seen[p][i]), 1);
    assert_int_equal(completion_ring_close(&stress->ring), 0);
    free(stress);
}

static void one_thread_polls(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        run_stress(7, 1, (enum consumer_kind)kind, 0);
        run_stress(1000, 1, (enum consumer_kind)kind, 50 * LH_NS_PER_US);
    }
}

static void many_threads_poll(void **state)
{
    (void)state;
    run_stress(CONSUMERS, CONSUMERS, SPINS, 0);
    run_stress(100, CONSUMERS, SPINS, 20 * LH_NS_PER_US);
    run_stress(100, 2, WAITS, 0); /* a thread and an event loop */
}

static void *wait_for_one(void *argument)
{
    struct lh_completion entry = {0};
    completion_ring_wait(argument, &entry, 1, LH_TIME_NEVER);
    return NULL;
}

/* Two entries at once wake two threads, though each takes but one. */
static void each_entry_wakes_one(void **state)
{
    (void)state;
    for (int run = 0; run < 100; run++) {
        struct completion_ring ring;
        pthread_t threads[2];
        assert_int_equal(completion_ring_open(&ring, 2, 0), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(completion_ring_reserve(&ring, LH_OPERATION_SEND), 0);
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, &ring), 0);
        }
        if (run % 2)
            usleep(200);
        completion_ring_begin(&ring);
        completion_ring_put(&ring, &(struct lh_completion){0});
        completion_ring_put(&ring, &(struct lh_completion){0});
        completion_ring_end(&ring);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(completion_ring_close(&ring), 0);
    }
}

static int run_completion_ring(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_is_refused),        cmocka_unit_test(places_for_notifications),
        cmocka_unit_test(close_is_refused),       cmocka_unit_test(wait_ends_in_time),
        cmocka_unit_test(arm_needs_a_descriptor), cmocka_unit_test(as_the_model),
        cmocka_unit_test(one_thread_polls),       cmocka_unit_test(many_threads_poll),
        cmocka_unit_test(each_entry_wakes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test spin wait -------------------------------------------------------------------------------- */

/* A thread that waits spins only while that pays; what it learned is shared. */

static _Atomic uint32_t word;

static void wait_once(struct spin_wait *wait, lh_time timeout_ns)
{
    struct spin spin;
    spin_wait_begin(wait, &spin, &word, 0, timeout_ns);
    spin_wait_end(wait, &spin);
}

/* Each returns: after the spin, the timeout, or at once. */
static void ends_by_itself(void **state)
{
    (void)state;
    struct spin_wait wait;
    atomic_store(&word, 0);
    spin_wait_init(&wait, LH_NS_PER_MS);
    wait_once(&wait, LH_TIME_NEVER);
    spin_wait_init(&wait, LH_NS_PER_S);
    for (int i = 0; i < 1000; i++) /* else it takes the time limit of the test */
        wait_once(&wait, LH_NS_PER_US);
    spin_wait_init(&wait, 0);
    wait_once(&wait, LH_TIME_NEVER);
    assert_int_equal(atomic_load(&wait.short_pauses), SPIN_ALWAYS);
}

static void *set_soon(void *argument)
{
    (void)argument;
    usleep(2000);
    atomic_store(&word, 1);
    return NULL;
}

static void ends_when_the_word_changes(void **state)
{
    (void)state;
    struct spin_wait wait;
    struct spin spin;
    pthread_t thread;
    atomic_store(&word, 0);
    spin_wait_init(&wait, 3600 * LH_NS_PER_S); /* else it spins till the time limit of the test */
    assert_int_equal(pthread_create(&thread, NULL, set_soon, NULL), 0);
    spin_wait_begin(&wait, &spin, &word, 0, LH_TIME_NEVER);
    assert_int_equal(atomic_load(&word), 1);
    spin_wait_end(&wait, &spin);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&wait.short_pauses) >= SPIN_ALWAYS);
}

/* Waits that were much longer than the spin end it; and the next thread knows. */
static void long_waits_are_learned(void **state)
{
    (void)state;
    struct spin_wait wait;
    struct spin spin;
    atomic_store(&word, 0);
    spin_wait_init(&wait, 10 * LH_NS_PER_US);
    for (int i = 0; i < 10; i++) {
        spin_wait_begin(&wait, &spin, &word, 0, LH_TIME_NEVER);
        usleep(1000);
        spin_wait_end(&wait, &spin);
    }
    assert_true(atomic_load(&wait.short_pauses) < SPIN_ALWAYS / 4 * 3);
    wait.spin_ns = 3600 * LH_NS_PER_S;
    spin_wait_begin(&wait, &spin, &word, 0, LH_TIME_NEVER); /* does not spin for an hour */
    assert_true(spin.slept);
}

static int run_spin_wait(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_by_itself),
        cmocka_unit_test(ends_when_the_word_changes),
        cmocka_unit_test(long_waits_are_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_completion_ring() + run_spin_wait();
}
