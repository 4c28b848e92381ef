/*
 * A worker spins while there is work and, where that pays (spin.h), for a while after it. On long paths it
 * rests instead (rest.h). Then it sleeps until a socket is readable, another thread wakes it, or a timer is
 * due. Spinning matters: waking a sleeping receiver is paid by the sender, in its send call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "sdr/context.h"
#include "sdr/round.h"
#include "sdr/run/spin.h"

#define SLICE_NS     (100 * LH_NS_PER_US) /* the kernel's shortest */
#define SLEEP_MAX_NS (100 * LH_NS_PER_MS)

/* struct sched_attr of the kernel, which libc's headers may lack. */
struct slice_request {
    uint32_t bytes;
    uint32_t policy; /* 0: SCHED_OTHER */
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of SCHED_OTHER, since Linux 6.12: the slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/* A short time slice, so that a wake-up does not wait for the end of another thread's long one. Not more of
 * the CPU. Where the kernel does not know of it, nothing changes. With the workers of eight receiving engines
 * on one CPU the p99 of 64 bytes is 1.7 to 2.3 ms instead of 3.1 to 7.6 (bench_engine_peers --workers 1). */
static void request_short_slice(void)
{
    struct slice_request request = {.bytes = sizeof request};
    if (syscall(SYS_sched_getattr, 0, &request, sizeof request, 0) != 0 || request.policy != 0)
        return;
    request.runtime_ns = SLICE_NS;
    request.bytes = sizeof request;
    syscall(SYS_sched_setattr, 0, &request, 0);
}

/* 0: none of the QPs that were busy lately allows a rest. */
static lh_time rest_of(struct worker *worker, lh_time now)
{
    gate_enter_round(&worker->gate);
    lh_time rest_ns = rest_of_all(&worker->rest, now);
    gate_leave(&worker->gate);
    return rest_ns;
}

/* A rest ends when another thread wakes the worker, any other sleep when a socket is readable, too. */
static void sleep_until(struct worker *worker, bool rests, lh_time now, lh_time next)
{
    struct pollfd fds[] = {{.fd = worker->waker.fd, .events = POLLIN},
                           {.fd = worker->watch.fd, .events = POLLIN}};
    lh_time span = next <= now ? 0 : next - now;
    if (span > SLEEP_MAX_NS)
        span = SLEEP_MAX_NS;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    atomic_store(&worker->waker.asleep, true);
    if (!atomic_load(&worker->waker.kicked) && !atomic_load(&worker->stop))
        ppoll(fds, rests ? 1 : 2, &timeout, NULL); /* a negative descriptor is ignored */
    atomic_store(&worker->waker.asleep, false);
    uint64_t drained;
    if (fds[0].revents & POLLIN)
        while (read(worker->waker.fd, &drained, sizeof drained) < 0 && errno == EINTR)
            continue;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct sdr_context *context = worker->context;
    prctl(PR_SET_NAME, "lh-worker");
    prctl(PR_SET_TIMERSLACK, 1000ul); /* wake when a packet of an emulated link is due, not 50 us later */
    request_short_slice();
    struct spin spin;
    spin_init(&spin, context->spin_ns);
    bool rested = false;
    while (!atomic_load_explicit(&worker->stop, memory_order_acquire)) {
        lh_time next;
        /* An exchange, not a store: whoever kicked before it has its work seen by this round. */
        atomic_exchange(&worker->waker.kicked, false);
        bool moved = round_run(context, worker->index, context->worker_count, &next);
        lh_time now = context->fabric->ops->now(context->fabric);
        if (moved || atomic_load(&worker->waker.kicked)) {
            spin_on_work(&spin, now);
            rested = false;
            continue;
        }
        lh_time rest_ns = rest_of(worker, now);
        if (next <= now || (rest_ns == 0 && !spin_is_over(&spin, now)))
            continue;
        spin_on_sleep(&spin);
        bool rests = rest_ns > 0 && !rested;
        sleep_until(worker, rests, now, rests && next > now + rest_ns ? now + rest_ns : next);
        rested = rests;
    }
    return NULL;
}

void worker_init(struct worker *worker, struct sdr_context *context, uint32_t index, struct due **places)
{
    worker->context = context;
    worker->index = index;
    worker->waker.fd = -1;
    gate_init(&worker->gate);
    run_queue_init(&worker->queue, places, context->qps_max);
    turns_init(&worker->turns, places + context->qps_max, context->qps_max);
    watch_init(&worker->watch);
    rest_lately_init(&worker->rest);
}

void worker_free(struct worker *worker)
{
    gate_destroy(&worker->gate);
    run_queue_destroy(&worker->queue);
    watch_close(&worker->watch);
}

int worker_start(struct worker *worker, int cpu)
{
    worker->waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->waker.fd < 0)
        return lh_fail(LH_ESYSTEM, "eventfd: %s; raise the limit of open files", strerror(errno));
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)cpu, &set);
        pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    /* The program's signal handlers run in the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&worker->thread, &attr, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (failed) {
        close(worker->waker.fd);
        worker->waker.fd = -1;
        return lh_fail(LH_ESYSTEM, "worker %u cannot start on CPU %d: %s", worker->index, cpu,
                       strerror(failed));
    }
    worker->started = true;
    return 0;
}

void worker_stop(struct worker *worker)
{
    if (!worker->started)
        return;
    atomic_store_explicit(&worker->stop, true, memory_order_release);
    waker_wake(&worker->waker);
    pthread_join(worker->thread, NULL);
    close(worker->waker.fd);
    worker->waker.fd = -1;
    worker->started = false;
}
