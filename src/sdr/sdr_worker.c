/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/sdr_worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <longhaul/types.h>

#include "base/error.h"
#include "base/min_max.h"
#include "sdr/qp_parts.h"
#include "sdr/run_queue.h"
#include "sdr/sdr_state.h"
#include "sdr/worker_sleep.h"

/* ---- round ----------------------------------------------------------------------------------------- */

/* With some QPs busy the others' descriptors are looked at as often. */
#define LOOK_NS (20 * LH_NS_PER_US)
/* Where all of them are polled anyway, those of layers above are looked at as often. */
#define LOOK_OTHERS_NS LH_NS_PER_MS
/* So many QPs in which nothing moves are polled while it pays to spin: faster than by their descriptors. */
#define LINGER_MAX 4u
/* That a QP sends in a turn while others wait for theirs. Between two turns what it needs leaves the caches:
 * 64 peers with turns of one batch, of 256 KiB, get 0.88 of what a single one does, with two batches 0.93,
 * with four 0.97; and what waits meanwhile waits longer (bench_engine_peers). */
#define SHARED_BATCHES 2u
/* QPs that are served by one reading of the clock. */
#define CLOCK_BATCH 16u
/* What the turns of a round cost, but for the last one: after that what arrived meanwhile is looked at, which
 * may come before the rest. A few full turns. */
#define ROUND_COST ((uint64_t)768 * 1024)

static struct run_entry *entry_of(struct sdr_qp *qp, const struct worker *worker)
{
    return &qp->channels[worker->index].run;
}

/* ---- descriptors ------------------------------------------------------------------------------------- */

static int watch_channel(struct worker *worker, struct run_entry *entry, uint32_t channel, bool gone)
{
    struct sdr_qp *qp = entry->qp;
    bool control = channel == FABRIC_CONTROL;
    struct watch_fds *registered = control ? &qp->control_watched : &qp->channels[channel].watched;
    int fds[FABRIC_POLL_FDS_MAX];
    uint32_t count = gone ? 0 : qp->endpoint->fabric->ops->poll_fds(qp->endpoint, channel, fds);
    entry->polled |= !gone && count == 0;
    count = count == FABRIC_POLL_WAKES ? 0 : count;
    entry->watched |= count > 0;
    return watch_set(&worker->watch, entry, registered, fds, count);
}

/* The descriptors of the worker's channels, and of control for worker 0; of a QP that is gone none. */
static int watch_channels(struct worker *worker, struct run_entry *entry, bool gone)
{
    struct sdr_qp *qp = entry->qp;
    int error = 0;
    worker->watch.entries -= entry->watched;
    entry->watched = false;
    entry->polled = false;
    for (uint32_t c = worker->index; c < qp->channel_count && !error; c += worker->context->turns)
        error = watch_channel(worker, entry, c, gone);
    if (worker->index == 0 && !error)
        error = watch_channel(worker, entry, FABRIC_CONTROL, gone);
    worker->watch.entries += entry->watched;
    return error;
}

static bool has_fd(const struct watch_fds *registered, int fd)
{
    for (uint32_t i = 0; i < registered->count; i++)
        if (registered->fds[i] == fd)
            return true;
    return false;
}

/* Whether an entry of the worker waits for it, too. */
static bool waits_for(const struct worker *worker, const struct sdr_qp *qp, int fd)
{
    for (uint32_t c = worker->index; c < qp->channel_count; c += worker->context->turns)
        if (has_fd(&qp->channels[c].watched, fd))
            return true;
    return worker->index == 0 && has_fd(&qp->control_watched, fd);
}

/* What it had in common with others is registered for one of those from now on. */
static void hand_over(struct worker *worker, const struct sdr_qp *from, int fd)
{
    struct sdr_context *context = worker->context;
    for (uint32_t i = 0; i < context->qp_count; i++) {
        struct sdr_qp *qp = context->qps[i];
        if (qp == from || !waits_for(worker, qp, fd))
            continue;
        atomic_store(&entry_of(qp, worker)->fds_changed, true);
        run_queue_mark(&worker->queue, entry_of(qp, worker));
        /* It may be asleep, and what it slept by is gone. */
        waker_wake(&context->workers[context->worker_count > 0 ? worker->index : 0].waker);
        return;
    }
}

static void watch_qp(struct worker *worker, struct run_entry *entry, bool gone)
{
    if (watch_channels(worker, entry, gone))
        qp_fail(entry->qp, -LH_EDEVICE);
    while (worker->watch.removed_count > 0)
        hand_over(worker, entry->qp, worker->watch.removed[--worker->watch.removed_count]);
}

/* Nobody waits for a QP that is not connected, or whose device is gone: what waits there would end every
 * sleep. */
static void keep_watch(struct worker *worker, struct run_entry *entry)
{
    if (!atomic_load_explicit(&entry->qp->connected, memory_order_acquire))
        return;
    if (qp_device_gone(entry->qp)) {
        if (entry->watched)
            watch_qp(worker, entry, true);
    } else if (atomic_load_explicit(&entry->fds_changed, memory_order_relaxed) &&
               atomic_exchange(&entry->fds_changed, false)) {
        watch_qp(worker, entry, false);
    }
}

/* Not when all that may be readable is served in this round anyway. */
static bool may_look(const struct worker *worker, lh_time now)
{
    if (worker->watch.entries > 0 && worker->following >= worker->watch.entries)
        return worker->watch.others > 0 && now >= worker->looked_ns + LOOK_OTHERS_NS;
    return !worker->moved || now >= worker->looked_ns + LOOK_NS;
}

/* Marks what is readable, and calls those of layers above. What comes by the shared sockets does not wait
 * for the turn of the QP that they are registered for. */
static void look(struct worker *worker, lh_time now)
{
    const struct fabric_ops *ops = worker->context->fabric->ops;
    if (ops->shared_poll && turns_waiting(&worker->turns))
        ops->shared_poll(worker->context->fabric);
    struct watch_report report;
    if (!may_look(worker, now))
        return;
    watch_look(&worker->watch, &report);
    for (uint32_t i = 0; i < report.other_count; i++)
        if (!report.others[i]->on_ready(report.others[i]->context))
            watch_remove_other(&worker->watch, report.others[i]);
    for (uint32_t i = 0; i < report.count; i++)
        run_queue_mark(&worker->queue, report.ready[i]);
    worker->looked_ns = now;
}

/* ---- service ----------------------------------------------------------------------------------------- */

/* Control messages of the QP so far; only its control worker counts them. */
static uint64_t control_messages(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_control, __ATOMIC_RELAXED) +
           __atomic_load_n(&qp->stats.tx_control, __ATOMIC_RELAXED);
}

/* Arrivals of the worker's channels, and control messages; *cost is raised by them. */
static bool poll_arrivals(struct worker *worker, struct sdr_qp *qp, uint32_t count, lh_time now,
                          uint64_t *cost)
{
    bool arrived = false;
    for (uint32_t c = worker->index; c < qp->channel_count; c += count)
        arrived |= qp_channel_poll(qp, c, now, cost);
    if (worker->index == 0)
        arrived |= qp_control_poll(qp, now);
    return arrived;
}

/* All that the worker does for it; arrivals only if they were not polled right before. */
static bool serve_all(struct worker *worker, struct run_entry *entry, uint32_t count, bool polled,
                      lh_time now, uint64_t *cost)
{
    struct sdr_qp *qp = entry->qp;
    lh_time next = LH_TIME_NEVER;
    bool moved = polled;
    keep_watch(worker, entry);
    struct channel_order order;
    uint32_t batches = turns_waiting(&worker->turns) ? SHARED_BATCHES : 1;
    qp_order_channels(qp, worker->index, count, &order);
    for (uint32_t c; channel_order_next(&order, &c);) /* each of the worker's channels once */
        moved |= qp_channel_round(qp, c, &order, batches, now, &next, cost);
    if (worker->index == 0) {
        moved |= !polled && qp_control_poll(qp, now);
        moved |= qp_control_act(qp, now, &next);
    }
    due_heap_set(&worker->queue.due, &entry->due, next);
    return moved;
}

/* Returns whether anything moved; *cost is raised by what did. Who lingers is served when something has
 * arrived: all else would have marked it. Where the driver leaves the rest for the next round, so does
 * this. */
static bool serve(struct worker *worker, struct run_entry *entry, uint32_t count, lh_time now,
                  uint64_t *cost)
{
    struct sdr_qp *qp = entry->qp;
    uint64_t before = worker->index == 0 ? control_messages(qp) : 0;
    bool polled = !run_entry_begin(entry);
    if (polled && !poll_arrivals(worker, qp, count, now, cost))
        return false;
    bool received = worker->index == 0 && control_messages(qp) != before;
    bool moved = (polled && received && qp_control_deliver(qp, now)) ||
                 serve_all(worker, entry, count, polled, now, cost);
    *cost += worker->index == 0 ? (control_messages(qp) - before) * TURNS_CONTROL : 0;
    if (!moved)
        return false;
    entry->moved_ns = now;
    coalesce_on_busy(&worker->coalesce, atomic_load_explicit(&qp->coalesce_ns, memory_order_relaxed), now);
    return true;
}

static bool lingers(const struct worker *worker, const struct run_entry *entry, lh_time now)
{
    return entry->watched && worker->following < LINGER_MAX &&
           now < entry->moved_ns + worker->context->spin_ns;
}

/* Whether arrivals are all that it lingers for. What waits to be sent is tried again in each round, and the
 * work of other workers and what hardware has read are seen in it. */
static bool awaits_arrivals(const struct worker *worker, const struct sdr_qp *qp)
{
    return worker->context->turns == 1 && !qp->endpoint->fabric->ops->released &&
           atomic_load_explicit(&qp->queued_bytes, memory_order_relaxed) == 0;
}

/* Returns what it cost. */
static uint64_t take_turn(struct worker *worker, struct run_entry *entry, uint32_t count, lh_time now)
{
    uint64_t cost = TURNS_SELF;
    bool moved = serve(worker, entry, count, now, &cost);
    turns_charge(&entry->turn, cost);
    worker->moved |= moved;
    bool follows = lingers(worker, entry, now);
    if (!moved && !entry->polled && !follows)
        return cost;
    if (!moved && !entry->polled && awaits_arrivals(worker, entry->qp))
        run_queue_linger(&worker->queue, entry);
    else
        run_queue_mark(&worker->queue, entry);
    worker->following += entry->watched;
    return cost;
}

/* The next turns of what is ready: each at most one. */
static void serve_ready(struct worker *worker, uint32_t count, lh_time now)
{
    struct fabric *fabric = worker->context->fabric;
    struct run_entry *next;
    struct turn *turn;
    uint64_t cost = 0;
    worker->moved = false;
    worker->following = 0;
    for (struct run_entry *entry = run_queue_take(&worker->queue); entry; entry = next) {
        next = entry->next;
        turns_enter(&worker->turns, &entry->turn);
    }
    for (uint32_t served = 0; cost < ROUND_COST && (turn = turns_next(&worker->turns)) != NULL;) {
        if (++served % CLOCK_BATCH == 0)
            now = fabric->ops->now(fabric);
        cost += take_turn(worker, run_entry_of_turn(turn), count, now);
    }
}

bool round_run(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next)
{
    struct worker *worker = &context->workers[index];
    /* Without threads one caller takes every worker's turn. */
    struct gate *gate = &context->workers[context->worker_count > 0 ? index : 0].gate;
    gate_enter_round(gate);
    lh_time now = context->fabric->ops->now(context->fabric);
    look(worker, now);
    run_queue_mark_due(&worker->queue, now);
    serve_ready(worker, count, now);
    bool more = worker->moved || turns_waiting(&worker->turns);
    *next = due_heap_next(&worker->queue.due);
    gate_leave(gate);
    return more;
}

void round_add_qp(struct sdr_context *context, struct sdr_qp *qp)
{
    for (uint32_t i = 0; i < context->queues && i < qp->channel_count; i++) {
        struct run_entry *entry = entry_of(qp, &context->workers[i]);
        entry->qp = qp;
        run_queue_attach(&context->workers[i].queue, entry);
    }
}

void round_remove_qp(struct sdr_context *context, struct sdr_qp *qp)
{
    for (uint32_t i = 0; i < context->queues && i < qp->channel_count; i++) {
        struct worker *worker = &context->workers[i];
        struct run_entry *entry = entry_of(qp, worker);
        if (entry->watched)
            watch_qp(worker, entry, true);
        run_queue_detach(&worker->queue, entry);
        turns_leave(&worker->turns, &entry->turn);
    }
}

/* ---- worker ---------------------------------------------------------------------------------------- */

/*
 * A worker spins while there is work and, where that pays (worker_sleep.h), for a while after it. On long
 * paths it coalesces arrivals instead (worker_sleep.h): it sleeps once for a short interval, whatever
 * arrives. Then it sleeps until a socket is readable, another thread wakes it, or a timer expires. Spinning
 * matters: the sender pays for waking a sleeping receiver, in its send call.
 */

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

/* 0: the QPs that were busy lately allow none. */
static lh_time coalesce_interval(struct worker *worker, lh_time now)
{
    gate_enter_round(&worker->gate);
    lh_time coalesce_ns = coalesce_of_all(&worker->coalesce, now);
    gate_leave(&worker->gate);
    return coalesce_ns;
}

/* Another thread's wake-up ends each sleep; a readable socket ends those that do not coalesce. */
static void sleep_until(struct worker *worker, bool coalesces, lh_time now, lh_time next)
{
    struct pollfd fds[] = {{.fd = worker->waker.fd, .events = POLLIN},
                           {.fd = worker->watch.fd, .events = POLLIN}};
    lh_time sleep_ns = lh_min(lh_sub_sat(next, now), SLEEP_MAX_NS);
    struct timespec timeout = {(time_t)(sleep_ns / LH_NS_PER_S), (long)(sleep_ns % LH_NS_PER_S)};
    atomic_store(&worker->waker.asleep, true);
    if (!atomic_load(&worker->waker.kicked) && !atomic_load(&worker->stop))
        ppoll(fds, coalesces ? 1 : 2, &timeout, NULL); /* a negative descriptor is ignored */
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
    bool has_coalesced = false;
    while (!atomic_load_explicit(&worker->stop, memory_order_acquire)) {
        lh_time next;
        /* An exchange, not a store: whoever kicked before it has its work seen by this round. */
        atomic_exchange(&worker->waker.kicked, false);
        bool moved = round_run(context, worker->index, context->worker_count, &next);
        lh_time now = context->fabric->ops->now(context->fabric);
        if (moved || atomic_load(&worker->waker.kicked)) {
            spin_on_work(&spin, now);
            has_coalesced = false;
            continue;
        }
        lh_time coalesce_ns = coalesce_interval(worker, now);
        if (next <= now || (coalesce_ns == 0 && !spin_is_over(&spin, now))) {
            sched_yield();
            continue;
        }
        spin_on_sleep(&spin);
        bool coalesces = coalesce_ns > 0 && !has_coalesced;
        sleep_until(worker, coalesces, now,
                    coalesces && next > now + coalesce_ns ? now + coalesce_ns : next);
        has_coalesced = coalesces;
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
    coalesce_recent_init(&worker->coalesce);
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

static void gates_enter(struct sdr_context *context)
{
    for (uint32_t i = 0; i < (context->worker_count ? context->worker_count : 1); i++)
        gate_enter(&context->workers[i].gate);
}

static void gates_leave(struct sdr_context *context)
{
    for (uint32_t i = 0; i < (context->worker_count ? context->worker_count : 1); i++)
        gate_leave(&context->workers[i].gate);
}

int context_add_qp(struct sdr_context *context, struct sdr_qp *qp)
{
    int error = 0;
    pthread_mutex_lock(&context->lock);
    if (context->qp_count == context->qps_max) {
        error = lh_fail(LH_ERANGE, "context: limit of %u QPs reached", context->qps_max);
    } else {
        gates_enter(context);
        qp->place = context->qp_count;
        context->qps[context->qp_count++] = qp;
        round_add_qp(context, qp);
        gates_leave(context);
    }
    pthread_mutex_unlock(&context->lock);
    return error;
}

void context_remove_qp(struct sdr_context *context, struct sdr_qp *qp)
{
    pthread_mutex_lock(&context->lock);
    gates_enter(context);
    assert(context->qps[qp->place] == qp);
    context->qps[qp->place] = context->qps[--context->qp_count];
    context->qps[qp->place]->place = qp->place;
    round_remove_qp(context, qp);
    qp_leave_keepalive_group(qp);
    gates_leave(context);
    pthread_mutex_unlock(&context->lock);
}
