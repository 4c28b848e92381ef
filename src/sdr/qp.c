/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/qp.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "sdr/context.h"

void qp_gates_enter(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        gate_enter(&qp->channels[c].gate);
}

void qp_gates_leave(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        gate_leave(&qp->channels[c].gate);
}

void qp_note_cts(struct sdr_qp *qp)
{
    atomic_store_explicit(&qp->cts_waiting, cts_queue_peek(&qp->cts) != NULL, memory_order_release);
}

struct qp_memory_use qp_memory_use(struct sdr_qp *qp, uint32_t lkey)
{
    struct qp_memory_use use = {0};
    qp_lock(qp);
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        use.receives +=
            qp->table.slots[i].open && qp->recvs[i].length_bytes > 0 && qp->recvs[i].lkey == lkey;
    qp_gates_enter(qp);
    for (uint32_t c = 0; c < qp->channel_count; c++)
        use.sends += send_channel_uses(&qp->channels[c].sends, lkey);
    qp_gates_leave(qp);
    qp_unlock(qp);
    return use;
}

int qp_usable(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    if (error)
        return lh_fail((enum lh_error) - error, "QP has ended: %s",
                       error == -LH_EDEVICE ? qp->device_reason : lh_strerror(error));
    if (!atomic_load(&qp->connected))
        return lh_fail(LH_ESTATE, "QP is not connected yet");
    return 0;
}

/* ---- wake-ups ---------------------------------------------------------------------------------------- */

uint32_t qp_workers(const struct sdr_qp *qp)
{
    uint32_t turns = qp->context->turns;
    return turns < qp->channel_count ? turns : qp->channel_count;
}

static void mark(struct sdr_qp *qp, uint32_t worker)
{
    run_queue_mark(&qp->context->workers[worker].queue, &qp->channels[worker].run);
}

void qp_wake_all(struct sdr_qp *qp)
{
    struct sdr_context *context = qp->context;
    for (uint32_t i = 0; i < qp_workers(qp); i++) {
        mark(qp, i);
        waker_wake(&context->workers[context->worker_count > 0 ? i : 0].waker);
    }
}

void qp_watch_again(struct sdr_qp *qp)
{
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        atomic_store(&qp->channels[i].run.fds_changed, true);
    qp_wake_all(qp);
}

static void wake_worker(struct sdr_qp *qp, uint32_t worker)
{
    mark(qp, worker);
    if (qp->context->worker_count > 0)
        waker_wake(&qp->context->workers[worker].waker);
}

void qp_wake_channel(void *context, uint32_t channel)
{
    struct sdr_qp *qp = context;
    if (channel == FABRIC_FDS_CHANGED)
        qp_watch_again(qp);
    else
        wake_worker(qp, channel == FABRIC_CONTROL ? 0 : channel % qp->context->turns);
}

/* ---- the way to the peer ----------------------------------------------------------------------------- */

/* Only on udp does the port of control belong to a context of the peer; elsewhere each QP has its own. */
void qp_join_keepers(struct sdr_qp *qp)
{
    const struct qp_info_endpoint *peer = &qp->peer.endpoint;
    uint16_t port = peer->fabric == QP_INFO_UDP ? peer->control_port : 0;
    uint8_t key[KEEPERS_KEY_BYTES] = {peer->family, (uint8_t)(port >> 8), (uint8_t)port, peer->translated};
    memcpy(key + 4, peer->address, sizeof peer->address);
    memcpy(key + 4 + sizeof peer->address, peer->seen_address, sizeof peer->seen_address);
    keepers_add(&qp->context->keepers, &qp->keeper, key);
}

void qp_leave_keepers(struct sdr_qp *qp)
{
    struct keeper *heir = keepers_remove(&qp->context->keepers, &qp->keeper);
    if (heir)
        wake_worker((struct sdr_qp *)((char *)heir - offsetof(struct sdr_qp, keeper)), 0);
}

void sdr_qp_keepalive_want(struct sdr_qp *qp, bool wanted)
{
    qp->keepalive_wanted = wanted;
}

/* ---- failure ----------------------------------------------------------------------------------------- */

/* The first thread's reason stays. Whoever sees the error finds it. */
static void keep_reason(struct sdr_qp *qp)
{
    pthread_mutex_lock(&qp->pacer_lock);
    if (qp->device_reason[0] == '\0')
        snprintf(qp->device_reason, sizeof qp->device_reason, "%s", lh_last_error());
    pthread_mutex_unlock(&qp->pacer_lock);
}

void qp_fail(struct sdr_qp *qp, int error)
{
    int none = 0;
    if (error == -LH_EDEVICE) {
        keep_reason(qp);
        atomic_store(&qp->error, error);
    } else {
        atomic_compare_exchange_strong(&qp->error, &none, error);
    }
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        wake_worker(qp, i);
}

int sdr_qp_driver_set(struct sdr_qp *qp, sdr_driver_step *step, void *context)
{
    pthread_mutex_lock(&qp->driver_lock);
    qp->driver = step;
    qp->driver_context = context;
    atomic_store_explicit(&qp->driven, step != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&qp->driver_lock);
    sdr_qp_driver_kick(qp);
    return 0;
}

void sdr_qp_driver_kick(struct sdr_qp *qp)
{
    wake_worker(qp, 0);
}

void sdr_qp_keepalive_set(struct sdr_qp *qp, lh_time interval_ns)
{
    qp_lock(qp);
    path_keepalive_set(&qp->path, interval_ns);
    qp_unlock(qp);
    sdr_qp_driver_kick(qp);
}

lh_time sdr_qp_caught_up(struct sdr_qp *qp)
{
    lh_time oldest = LH_TIME_NEVER;
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        lh_time drained = atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire);
        oldest = drained < oldest ? drained : oldest;
    }
    return oldest;
}

void sdr_qp_catch_up(struct sdr_qp *qp, lh_time since)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        if (atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire) < since)
            qp_wake_channel(qp, c);
}

void sdr_qp_user_window(struct sdr_qp *qp, bool binds)
{
    if (binds == atomic_load_explicit(&qp->user_window, memory_order_relaxed))
        return;
    atomic_store_explicit(&qp->user_window, binds, memory_order_relaxed);
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        wake_worker(qp, i); /* their limits are another now */
}

uint64_t sdr_qp_rx_bytes(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_bytes, __ATOMIC_RELAXED);
}

uint64_t sdr_qp_rx_packets(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_packets, __ATOMIC_RELAXED);
}

bool sdr_qp_full_arrived(struct sdr_qp *qp)
{
    return atomic_exchange_explicit(&qp->full_arrived, false, memory_order_relaxed);
}

int lh_sdr_error(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    return error == -LH_EDEVICE ? lh_fail(LH_EDEVICE, "%s", qp->device_reason) : error;
}

int lh_sdr_stats(struct sdr_qp *qp, struct lh_stats *stats)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (ops->count_drops)
        ops->count_drops(qp->endpoint);
    const uint64_t *from = (const uint64_t *)&qp->stats;
    uint64_t *to = (uint64_t *)stats;
    for (size_t i = 0; i < sizeof *stats / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    return 0;
}
