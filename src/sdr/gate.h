/*
 * gate.h - a lock that one thread takes in a loop, and that others get in between.
 *
 * A channel's worker holds its gate for each of its rounds; callers want in between two rounds. With a QP's
 * lock it is the other way round: programs spin in calls, and the control worker wants in. A plain mutex
 * would starve the one who waits: the other takes it again at once. Here whoever wants in is counted first,
 * and let pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_GATE_H
#define LH_SDR_GATE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct gate {
    pthread_mutex_t mutex;
    _Atomic unsigned wanted;
};

static inline void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    atomic_init(&gate->wanted, 0);
}

static inline void gate_destroy(struct gate *gate)
{
    pthread_mutex_destroy(&gate->mutex);
}

/* Whoever comes again and again: a worker, once a round, or a program that spins in a call. */
static inline void gate_enter_round(struct gate *gate)
{
    while (atomic_load_explicit(&gate->wanted, memory_order_relaxed) > 0)
        sched_yield(); /* bounded by how long the others hold it: a few slot operations */
    pthread_mutex_lock(&gate->mutex);
}

/* Anyone else: goes first, where somebody holds it. */
static inline void gate_enter(struct gate *gate)
{
    if (pthread_mutex_trylock(&gate->mutex) == 0)
        return;
    atomic_fetch_add_explicit(&gate->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&gate->mutex);
    atomic_fetch_sub_explicit(&gate->wanted, 1, memory_order_relaxed);
}

static inline void gate_leave(struct gate *gate)
{
    pthread_mutex_unlock(&gate->mutex);
}

#endif
