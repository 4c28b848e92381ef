/*
 * two_cores.h - what the one-way UDP benchmarks share: a sender and a receiver thread on a core each, and a
 * credit, so that nothing is lost and both measure the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_TWO_CORES_H
#define LH_BENCH_TWO_CORES_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define BENCH_MTU             4096u
#define BENCH_MESSAGE_BYTES   ((uint64_t)64 << 20) /* both buffers; larger than any cache here */
#define BENCH_MESSAGE_PACKETS ((uint32_t)(BENCH_MESSAGE_BYTES / BENCH_MTU))
/* Packets that the sender is ahead at most: 8 MiB, a quarter of the receive buffer. */
#define BENCH_WINDOW_PACKETS 2048u
#define BENCH_SECONDS        2.0

struct bench_credit {
    _Alignas(64) _Atomic uint64_t arrived; /* packets, since the start */
    _Alignas(64) _Atomic bool over;
};

static inline double bench_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Waits until packet number `sent` may be sent; false when the run is over. */
static inline bool bench_may_send(struct bench_credit *credit, uint64_t sent)
{
    while (sent >= atomic_load_explicit(&credit->arrived, memory_order_acquire) + BENCH_WINDOW_PACKETS) {
        if (atomic_load_explicit(&credit->over, memory_order_relaxed))
            return false;
    }
    return !atomic_load_explicit(&credit->over, memory_order_relaxed);
}

static inline void bench_pin(pthread_t thread, unsigned core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    pthread_setaffinity_np(thread, sizeof cores, &cores); /* on one core only: fine, but slower */
}

/* Runs both until the time is over; returns Gbit/s of payload that arrived, the first tenth left out. */
static inline double bench_run(struct bench_credit *credit, void *(*send)(void *), void *(*receive)(void *),
                               void *context)
{
    pthread_t sender, receiver;
    pthread_create(&receiver, NULL, receive, context);
    pthread_create(&sender, NULL, send, context);
    bench_pin(sender, 0);
    bench_pin(receiver, 1);
    struct timespec warm = {0, (long)(BENCH_SECONDS * 1e8)};
    nanosleep(&warm, NULL);
    double start = bench_seconds();
    uint64_t before = atomic_load(&credit->arrived);
    struct timespec rest = {(time_t)BENCH_SECONDS, 0};
    nanosleep(&rest, NULL);
    uint64_t packets = atomic_load(&credit->arrived) - before;
    double seconds = bench_seconds() - start;
    atomic_store(&credit->over, true);
    pthread_join(sender, NULL);
    pthread_join(receiver, NULL);
    return (double)packets * BENCH_MTU * 8 / seconds * 1e-9;
}

#endif
