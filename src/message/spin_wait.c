/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/spin_wait.h"

#include <sched.h>

void spin_wait_init(struct spin_wait *wait, lh_time spin_ns)
{
    wait->spin_ns = spin_ns;
    atomic_init(&wait->short_pauses, SPIN_ALWAYS);
}

static lh_time clock_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (lh_time)at.tv_sec * LH_NS_PER_S + (lh_time)at.tv_nsec;
}

void spin_wait_begin(struct spin_wait *wait, struct spin *spin, const _Atomic uint32_t *word,
                     uint32_t value, lh_time timeout_ns)
{
    if (wait->spin_ns == 0)
        return;
    lh_time start = clock_ns(), now = start;
    spin_init(spin, wait->spin_ns);
    spin->idle_since_ns = start;
    spin->short_pauses = atomic_load_explicit(&wait->short_pauses, memory_order_relaxed);
    /* Ends after spin_ns. */
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        if (spin_is_over(spin, now) || now - start >= timeout_ns) {
            spin_on_sleep(spin);
            return;
        }
        sched_yield(); /* to the worker, where both have but one CPU */
        now = clock_ns();
    }
}

void spin_wait_end(struct spin_wait *wait, struct spin *spin)
{
    if (wait->spin_ns == 0)
        return;
    spin_on_work(spin, clock_ns());
    /* Of two threads that end at once one is forgotten. */
    atomic_store_explicit(&wait->short_pauses, spin->short_pauses, memory_order_relaxed);
}

struct timespec spin_wait_deadline(lh_time timeout_ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_ns % LH_NS_PER_S;
    at.tv_sec += (time_t)(timeout_ns / LH_NS_PER_S + ns / LH_NS_PER_S);
    at.tv_nsec = (long)(ns % LH_NS_PER_S);
    return at;
}
