/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/context.h"

#include <assert.h>

#include "base/error.h"
#include "sdr/qp.h"
#include "sdr/round.h"

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
    qp_leave_keepers(qp);
    gates_leave(context);
    pthread_mutex_unlock(&context->lock);
}

struct store *sdr_context_store(struct sdr_context *context)
{
    return &context->store;
}

int sdr_context_watch(struct sdr_context *context, struct watch_other *other)
{
    struct worker *worker = &context->workers[0];
    gate_enter(&worker->gate);
    int error = watch_add_other(&worker->watch, other);
    gate_leave(&worker->gate);
    waker_wake(&worker->waker); /* it may be asleep, without a descriptor to wait for */
    return error;
}

void sdr_context_watch_writable(struct sdr_context *context, struct watch_other *other, bool wanted)
{
    watch_writable(&context->workers[0].watch, other, wanted);
}

void sdr_context_unwatch(struct sdr_context *context, struct watch_other *other)
{
    struct worker *worker = &context->workers[0];
    gate_enter(&worker->gate);
    watch_remove_other(&worker->watch, other);
    gate_leave(&worker->gate);
}

const char *lh_sdr_warning(struct sdr_context *context)
{
    return fabric_warning(context->fabric);
}

lh_time lh_sdr_now(struct sdr_context *context)
{
    return context->fabric->ops->now(context->fabric);
}
