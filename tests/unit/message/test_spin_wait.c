/*
 * test_spin_wait.c - a thread that waits spins only while that pays; what it learned is shared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/spin_wait.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_by_itself),
        cmocka_unit_test(ends_when_the_word_changes),
        cmocka_unit_test(long_waits_are_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
