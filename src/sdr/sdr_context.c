/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/sdr_ext.h>

#include "base/error.h"
#include "device/device_registry.h"
#include "fabric/fabric.h"
#include "link/link.h"
#include "sdr/qp.h"
#include "sdr/qp_parts.h"
#include "sdr/rate_control.h"
#include "sdr/sdr_driver.h"
#include "sdr/sdr_worker.h"
#include "sdr/worker_sleep.h"
#include "store/store.h"
#include "wire/qp_info.h"

/* ---- context --------------------------------------------------------------------------------------- */

#define CONTEXT_WORKERS_MAX 64u
#define CONTEXT_QPS_LOG_MAX 16u
#define CONTEXT_QPS_LOG     10u /* without a wish */

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

/* ---- context create -------------------------------------------------------------------------------- */

/* A context from the outside: its creation, its end, and its rounds where the caller makes progress. */

uint32_t sdr_processors(void)
{
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

static int check_attr(const struct lh_context_attr *attr)
{
    if (attr->channels == 0 || attr->channels > QP_INFO_CHANNELS_MAX)
        return lh_fail(LH_EINVAL, "channels %u: out of range (1 to %u)", attr->channels,
                       QP_INFO_CHANNELS_MAX);
    if (attr->workers > attr->channels && attr->workers != LH_SDR_NO_WORKERS)
        return lh_fail(LH_EINVAL, "workers %u: exceed the channels, %u (use at most one per channel)",
                       attr->workers, attr->channels);
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (uint32_t i = 0; attr->worker_cpus && attr->workers != LH_SDR_NO_WORKERS && i < attr->workers; i++)
        if (attr->worker_cpus[i] < -1 || attr->worker_cpus[i] >= cpus)
            return lh_fail(LH_EINVAL, "worker CPU %d: out of range (0 to %ld, or -1 for any)",
                           attr->worker_cpus[i], cpus - 1);
    if (attr->spin_ns > SPIN_MAX_NS && attr->spin_ns != LH_NO_SPIN)
        return lh_fail(LH_EINVAL, "spin_ns %llu: out of range (at most %llu = 1 s, or LH_NO_SPIN)",
                       (unsigned long long)attr->spin_ns, (unsigned long long)SPIN_MAX_NS);
    return 0;
}

static int open_fabric(const char *device, const struct lh_context_attr *attr, struct fabric **fabric)
{
    struct fabric *inner;
    int error = fabric_open(device, attr->receive_buffer_bytes, &inner);
    if (error)
        return error;
    *fabric = inner;
    if (lh_link_is_none(&attr->link))
        return 0;
    error = fabric_link_open(inner, &attr->link, fabric);
    if (error)
        inner->ops->close(inner);
    return error;
}

static void stop_workers(struct sdr_context *context)
{
    for (uint32_t i = 0; i < context->worker_count; i++)
        worker_stop(&context->workers[i]);
}

static int start_workers(struct sdr_context *context, const int *cpus)
{
    for (uint32_t i = 0; i < context->worker_count; i++) {
        int error = worker_start(&context->workers[i], cpus ? cpus[i] : -1);
        if (error) {
            stop_workers(context);
            return error;
        }
    }
    return 0;
}

static void free_context(struct sdr_context *context)
{
    for (uint32_t i = 0; context->workers && i < context->queues; i++)
        worker_free(&context->workers[i]);
    pthread_mutex_destroy(&context->lock);
    pthread_mutex_destroy(&context->memory_lock);
    pthread_mutex_destroy(&context->rate_lock);
    keepalive_table_destroy(&context->keepalive_table);
    pthread_mutex_destroy(&context->paths_lock);
    free(context->workers);
    free(context->qps);
    free(context);
}

/* With the list of QPs. */
static bool make_workers(struct sdr_context *context)
{
    uint32_t qps_max = context->qps_max;
    void **places = calloc((size_t)qps_max * (1 + 2 * context->queues), sizeof(void *));
    struct worker *workers = calloc(context->queues, sizeof *workers);
    context->qps = (struct sdr_qp **)places;
    if (!places || !workers) {
        free(workers);
        return false;
    }
    for (uint32_t i = 0; i < context->queues; i++)
        worker_init(&workers[i], context, i, (struct due **)places + (size_t)(1 + 2 * i) * qps_max);
    context->workers = workers;
    return true;
}

static struct sdr_context *allocate_context(const struct lh_context_attr *attr, uint32_t qps_max)
{
    struct sdr_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->channels = attr->channels;
    context->link_has_rate = attr->link.rate_bps != 0;
    bool alone = attr->spin_ns == 0 && sdr_processors() < 2; /* spinning would only delay others */
    context->spin_ns = alone ? 0 : spin_ns_of(attr->spin_ns);
    context->worker_count = attr->workers == LH_SDR_NO_WORKERS ? 0 : attr->workers;
    context->turns = context->worker_count ? context->worker_count : 1;
    context->queues = context->worker_count ? context->worker_count : context->channels;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->memory_lock, NULL);
    pthread_mutex_init(&context->rate_lock, NULL);
    keepalive_table_init(&context->keepalive_table);
    pthread_mutex_init(&context->paths_lock, NULL);
    store_init(&context->store, UINT64_MAX);
    context->qps_max = qps_max;
    if (make_workers(context))
        return context;
    free_context(context);
    return NULL;
}

static int create_context(const char *device, const struct lh_context_attr *wanted, uint32_t log_max_qps,
                          struct sdr_context **out)
{
    struct lh_context_attr attr = wanted ? *wanted : (struct lh_context_attr){0};
    attr.channels = attr.channels ? attr.channels : 1;
    attr.workers = attr.workers ? attr.workers : 1;
    int error = check_attr(&attr);
    if (error)
        return error;
    if (log_max_qps > CONTEXT_QPS_LOG_MAX)
        return lh_fail(LH_EINVAL, "log2 of QPs %u: out of range (at most %u)", log_max_qps,
                       CONTEXT_QPS_LOG_MAX);
    if (!device)
        return lh_fail(LH_EINVAL, "no device name (example: udp:[::1])");
    struct sdr_context *context =
        allocate_context(&attr, 1u << (log_max_qps ? log_max_qps : CONTEXT_QPS_LOG));
    if (!context)
        return lh_fail(LH_ENOMEM, "no memory for a context");
    error = open_fabric(device, &attr, &context->fabric);
    if (error)
        goto free_memory;
    error = start_workers(context, attr.worker_cpus);
    if (error)
        goto close_fabric;
    *out = context;
    return 0;
close_fabric:
    context->fabric->ops->close(context->fabric);
free_memory:
    free_context(context);
    return error;
}

int sdr_context_open(const char *device, const struct lh_context_attr *attr, uint32_t qps_log,
                     struct sdr_context **context)
{
    int error = create_context(device, attr, qps_log, context);
    if (!error)
        atomic_store(&(*context)->warned, (uint32_t)SDK_WARNING_ALL);
    return error;
}

void sdr_context_rate_set(struct sdr_context *context, uint64_t rate_bps)
{
    assert(context->qp_count == 0);
    shared_rate_init(&context->rate, rate_bps);
}

int lh_sdr_context_create(const char *device, const struct lh_context_attr *attr,
                          struct sdr_context **context)
{
    return sdr_context_open(device, attr, 0, context);
}

struct sdr_context *sdr_context_create(const char *dev_name, struct sdr_dev_attr *dev_attr)
{
    struct lh_context_attr attr = {0};
    if (dev_attr && dev_attr->num_channels) {
        /* The SDK wants a worker a channel; more workers than CPUs that they may run on would only take
         * turns. */
        uint32_t cpus = sdr_processors();
        attr.channels = dev_attr->num_channels;
        attr.workers = cpus < attr.channels ? cpus : attr.channels;
    }
    struct sdr_context *context;
    return create_context(dev_name, &attr, dev_attr ? dev_attr->log_max_qps : 0, &context) ? NULL : context;
}

int sdr_context_destroy(struct sdr_context *context)
{
    if (!context)
        return SDR_SUCCESS;
    pthread_mutex_lock(&context->lock);
    uint32_t qps = context->qp_count;
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_lock(&context->memory_lock);
    bool has_memory = context->memory_count > 0;
    pthread_mutex_unlock(&context->memory_lock);
    if (qps > 0 || has_memory) {
        lh_fail(LH_ESTATE, "context still has %u QPs%s: destroy them first", qps,
                has_memory ? " and registered memory" : "");
        return SDR_ERROR;
    }
    stop_workers(context);
    context->fabric->ops->close(context->fabric);
    free_context(context);
    return SDR_SUCCESS;
}

/* Channels have their turn before the driver: what it puts into their queues goes in the next round, which
 * is due at once. A worker does the same (sdr_worker.c). */
static bool round_of_caller(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next)
{
    struct worker *caller = &context->workers[0];
    atomic_exchange(&caller->waker.kicked, false);
    bool moved = round_run(context, index, count, next);
    return moved || atomic_load(&caller->waker.kicked);
}

int lh_sdr_progress(struct sdr_context *context, lh_time *next_ns)
{
    if (context->worker_count)
        return lh_fail(LH_ESTATE, "context has %u workers, which make progress on their own",
                       context->worker_count);
    lh_time next;
    bool moved = round_of_caller(context, 0, 1, &next);
    if (next_ns)
        *next_ns = moved ? 0 : next;
    return 0;
}

/* Each serves other channels than before. */
static void share_turns(struct sdr_context *context, uint32_t count)
{
    if (count == context->turns)
        return;
    context->turns = count;
    for (uint32_t i = 0; i < context->qp_count; i++)
        qp_wake_all(context->qps[i]);
}

void sdr_context_round(struct sdr_context *context, uint32_t index, uint32_t count, bool *moved,
                       lh_time *next_ns)
{
    assert(context->worker_count == 0 && index < count && count <= context->queues);
    share_turns(context, count);
    *moved = round_of_caller(context, index, count, next_ns);
}
