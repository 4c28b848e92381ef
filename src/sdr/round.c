/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/round.h"

#include "base/error.h"
#include "sdr/context.h"
#include "sdr/qp_control.h"
#include "sdr/qp_round.h"

/* With some QPs busy the others' descriptors are looked at as often. */
#define LOOK_NS (20 * LH_NS_PER_US)
/* So many QPs in which nothing moves are polled while it pays to spin: faster than by their descriptors. */
#define LINGER_MAX 4u
/* QPs that are served by one reading of the clock. */
#define CLOCK_BATCH 16u

static struct run_entry *entry_of(struct sdr_qp *qp, const struct worker *worker)
{
    return &qp->channels[worker->index].run;
}

/* ---- descriptors ------------------------------------------------------------------------------------- */

static uint32_t channel_fds(struct sdr_qp *qp, uint32_t channel, int fds[FABRIC_POLL_FDS_MAX], bool *polled)
{
    uint32_t count = qp->endpoint->fabric->ops->poll_fds(qp->endpoint, channel, fds);
    *polled |= count == 0;
    return count == FABRIC_POLL_WAKES ? 0 : count;
}

/* Those of the worker's channels, and of control for worker 0. */
static uint32_t qp_fds(const struct worker *worker, struct sdr_qp *qp, int *fds, bool *polled)
{
    uint32_t count = 0;
    *polled = false;
    for (uint32_t c = worker->index; c < qp->channel_count; c += worker->context->turns)
        count += channel_fds(qp, c, fds + count, polled);
    if (worker->index == 0)
        count += channel_fds(qp, FABRIC_CONTROL, fds + count, polled);
    return count;
}

#define QP_FDS_MAX ((QP_INFO_CHANNELS_MAX + 1) * FABRIC_POLL_FDS_MAX)

static int watch_shared(struct worker *worker)
{
    struct fabric *fabric = worker->context->fabric;
    int fds[FABRIC_POLL_FDS_MAX];
    if (worker->shares || worker->index != 0 || !fabric->ops->shared_fds)
        return 0;
    worker->shares = true;
    return watch_add(&worker->watch, NULL, fds, fabric->ops->shared_fds(fabric, fds));
}

static void watch_qp(struct worker *worker, struct run_entry *entry)
{
    int fds[QP_FDS_MAX];
    uint32_t count = qp_fds(worker, entry->qp, fds, &entry->polled);
    int error = watch_shared(worker);
    if (!error && count > 0)
        error = watch_add(&worker->watch, entry, fds, count);
    if (error)
        qp_fail(entry->qp, -LH_EDEVICE);
    worker->watch.entries -= entry->watched;
    entry->watched = count > 0;
    worker->watch.entries += entry->watched;
}

/* What it had in common with others is registered for one of those from now on. */
static void hand_over(struct worker *worker, struct run_entry *from)
{
    struct sdr_context *context = worker->context;
    for (uint32_t i = 0; i < context->qp_count; i++) {
        struct sdr_qp *qp = context->qps[i];
        struct run_entry *entry = worker->index < qp->channel_count ? entry_of(qp, worker) : from;
        if (entry == from || !entry->watched)
            continue;
        atomic_store(&entry->fds_changed, true);
        run_queue_mark(&worker->queue, entry);
        return;
    }
}

static void unwatch_qp(struct worker *worker, struct run_entry *entry)
{
    int fds[QP_FDS_MAX];
    bool polled;
    if (!entry->watched)
        return;
    watch_remove(&worker->watch, fds, qp_fds(worker, entry->qp, fds, &polled));
    entry->watched = false;
    worker->watch.entries--;
    hand_over(worker, entry);
}

/* Nobody waits for a QP that is not connected, or whose device is gone: what waits there would end every
 * sleep. */
static void keep_watch(struct worker *worker, struct run_entry *entry)
{
    if (!atomic_load_explicit(&entry->qp->connected, memory_order_acquire))
        return;
    if (qp_device_gone(entry->qp))
        unwatch_qp(worker, entry);
    else if (atomic_load_explicit(&entry->fds_changed, memory_order_relaxed) &&
             atomic_exchange(&entry->fds_changed, false))
        watch_qp(worker, entry);
}

static bool poll_shared(struct worker *worker)
{
    struct fabric *fabric = worker->context->fabric;
    return fabric->ops->shared_poll(fabric);
}

/* Marks what is readable. Not when all that may be readable is served in this round anyway. */
static bool look(struct worker *worker, lh_time now)
{
    if (worker->following >= worker->watch.entries || (worker->moved && now < worker->looked_ns + LOOK_NS))
        return worker->shares && poll_shared(worker);
    struct watch_report report;
    bool moved = false;
    watch_look(&worker->watch, &report);
    for (uint32_t i = 0; i < report.count; i++) {
        if (report.ready[i])
            run_queue_mark(&worker->queue, report.ready[i]);
        else
            moved = poll_shared(worker);
    }
    worker->looked_ns = now;
    return moved;
}

/* ---- service ----------------------------------------------------------------------------------------- */

static bool serve(struct worker *worker, struct run_entry *entry, uint32_t count, lh_time now)
{
    struct sdr_qp *qp = entry->qp;
    lh_time next = LH_TIME_NEVER;
    bool moved = false;
    run_entry_begin(entry);
    keep_watch(worker, entry);
    uint32_t first = qp_first_channel(qp, worker->index, count);
    for (uint32_t c = first; c < qp->channel_count; c += count)
        moved |= qp_channel_round(qp, c, now, &next);
    for (uint32_t c = worker->index; c < first; c += count)
        moved |= qp_channel_round(qp, c, now, &next);
    if (worker->index == 0)
        moved |= qp_control_round(qp, now, &next);
    due_heap_set(&worker->queue.due, &entry->due, next);
    if (!moved)
        return false;
    entry->moved_ns = now;
    rest_on_busy(&worker->rest, atomic_load_explicit(&qp->rest_ns, memory_order_relaxed), now);
    return true;
}

static bool lingers(const struct worker *worker, const struct run_entry *entry, lh_time now)
{
    return worker->context->worker_count > 0 && worker->following < LINGER_MAX &&
           now < entry->moved_ns + worker->context->spin_ns;
}

static bool serve_ready(struct worker *worker, uint32_t count, lh_time now)
{
    struct fabric *fabric = worker->context->fabric;
    struct run_entry *next;
    uint32_t served = 0;
    worker->moved = false;
    worker->following = 0;
    for (struct run_entry *entry = run_queue_take(&worker->queue); entry; entry = next) {
        next = entry->next;
        if (++served % CLOCK_BATCH == 0)
            now = fabric->ops->now(fabric);
        bool moved = serve(worker, entry, count, now);
        worker->moved |= moved;
        if (!moved && !entry->polled && !lingers(worker, entry, now))
            continue;
        run_queue_mark(&worker->queue, entry);
        worker->following += entry->watched;
    }
    return worker->moved;
}

bool round_run(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next)
{
    struct worker *worker = &context->workers[index];
    /* Without threads one caller takes every worker's turn. */
    struct gate *gate = &context->workers[context->worker_count > 0 ? index : 0].gate;
    gate_enter_round(gate);
    lh_time now = context->fabric->ops->now(context->fabric);
    bool more = look(worker, now);
    run_queue_mark_due(&worker->queue, now);
    bool moved = serve_ready(worker, count, now);
    *next = due_heap_next(&worker->queue.due);
    gate_leave(gate);
    return moved || more;
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
        unwatch_qp(worker, entry);
        run_queue_detach(&worker->queue, entry);
    }
}
