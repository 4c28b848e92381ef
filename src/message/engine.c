/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/device.h>
#include <longhaul/engine.h>

#include "base/error.h"
#include "history/path_file.h"
#include "history/path_history.h"
#include "message/attributes.h"
#include "message/message_memory.h"
#include "message/parity_coding.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- engine ---------------------------------------------------------------------------------------- */

#define CONNECTIONS_LOG                                                                                    \
    16u /* of a shared engine; the table of as many QPs is memory only as far as it is used */

/* ---- fork() ------------------------------------------------------------------------------------------ */

static _Atomic uint32_t forks; /* of this process's ancestors, since the first engine */
static pthread_once_t forks_counted = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void count_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

uint32_t engine_forks(void)
{
    pthread_once(&forks_counted, count_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool engine_is_inherited(const struct lh_engine *engine)
{
    return engine->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

int engine_check_process(const struct lh_engine *engine)
{
    if (!engine_is_inherited(engine))
        return 0;
    return lh_fail(LH_ESTATE, "engine and connections belong to the parent process (open others here)");
}

/* ---- creation and end -------------------------------------------------------------------------------- */

static int open_context(struct lh_engine *engine, const struct lh_attr *attr)
{
    const struct lh_context_attr wanted = {
        .channels = attr->channels,
        .workers = attr->workers == LH_NO_WORKERS ? LH_SDR_NO_WORKERS : attr->workers,
        .worker_cpus = attr->worker_cpus,
        .receive_buffer_bytes = attr->receive_buffer_bytes,
        .spin_ns = attr->spin_ns,
    };
    return sdr_context_open(engine->device, &wanted, engine->shared ? CONNECTIONS_LOG : 0,
                            &engine->context);
}

static int check_device(const char *device)
{
    if (!device)
        return lh_fail(LH_EDEVICE, "no device: name one, such as udp:127.0.0.1");
    if (strlen(device) >= ENGINE_TEXT_MAX)
        return lh_fail(LH_EINVAL, "device is longer than %u characters", ENGINE_TEXT_MAX - 1);
    return 0;
}

/* attr: complete. */
static int open_engine(const struct lh_attr *attr, bool shared, struct lh_engine **out)
{
    int error = check_device(attr->device);
    if (error)
        return error;
    struct lh_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return lh_fail(LH_ENOMEM, "no memory for an engine");
    strcpy(engine->device, attr->device);
    engine->channels = attr->channels;
    engine->workers = attr->workers;
    engine->receive_buffer_bytes = attr->receive_buffer_bytes;
    engine->spin_ns = attr->spin_ns;
    engine->shared = shared;
    engine->forks = engine_forks();
    error = open_context(engine, attr);
    if (error) {
        free(engine);
        return error;
    }
    coder_threads_init(&engine->coders, attr->coders);
    pthread_mutex_init(&engine->lock, NULL);
    engine->memories = (struct memory_list){.context = engine->context, .lock = &engine->lock};
    *out = engine;
    return 0;
}

static void close_engine(struct lh_engine *engine)
{
    coder_threads_end(&engine->coders);
    memory_free_all(&engine->memories);
    sdr_context_destroy(engine->context);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

/* Whether packets may have any size: those of a NIC have a power of two. */
static bool takes_any_payload(const char *device)
{
    return strncmp(device, "udp:", 4) == 0 || strncmp(device, "xdp:", 4) == 0;
}

uint32_t engine_payload_max(const struct lh_engine *engine, bool sealed)
{
    struct lh_device *devices;
    size_t count;
    uint32_t found = 0;
    if (!takes_any_payload(engine->device) || lh_devices(&devices, &count) != 0)
        return 0;
    for (size_t i = 0; i < count && found == 0; i++)
        if (strcmp(devices[i].name, engine->device) == 0)
            found = devices[i].mtu_bytes;
    lh_devices_free(devices);
    /* The list has no more than the payload, rounded down: what is left may be nothing. */
    static_assert(ROCE_SEALED_EXTRA <= ROCE_PAYLOAD_STEP, "one step suffices");
    return sealed && found > ROCE_PAYLOAD_MIN ? found - ROCE_PAYLOAD_STEP : found;
}

lh_time engine_waiters_spin_ns(const struct lh_engine *engine)
{
    return engine->spin_ns == 0 || engine->spin_ns == LH_NO_SPIN ? 0 : engine->spin_ns;
}

void lh_engine_attr_init(struct lh_engine_attr *attr)
{
    *attr = (struct lh_engine_attr){.struct_bytes = sizeof *attr};
}

static int copy_given(const struct lh_engine_attr *given, struct lh_engine_attr *copy)
{
    lh_engine_attr_init(copy);
    if (given->struct_bytes < sizeof(size_t) || given->struct_bytes > sizeof *copy)
        return lh_fail(LH_EINVAL,
                       "struct_bytes %zu: call lh_engine_attr_init() first (%zu in this library)",
                       given->struct_bytes, sizeof *copy);
    memcpy(copy, given, given->struct_bytes);
    return 0;
}

int lh_engine_create(const struct lh_engine_attr *given, struct lh_engine **engine)
{
    struct lh_engine_attr wanted;
    struct lh_attr attr;
    int error = copy_given(given, &wanted);
    if (error)
        return error;
    lh_attr_init(&attr);
    attr.device = wanted.device;
    attr.channels = wanted.channels;
    attr.workers = wanted.workers;
    attr.worker_cpus = wanted.worker_cpus;
    attr.coders = wanted.coders;
    attr.receive_buffer_bytes = wanted.receive_buffer_bytes;
    attr.spin_ns = wanted.spin_ns;
    attr.rate_bps = wanted.rate_bps; /* checked as that of a connection */
    error = attr_check(&attr, &attr);
    if (!error)
        error = attr_complete(&attr);
    if (!error)
        error = open_engine(&attr, true, engine);
    if (error)
        return error;
    sdr_context_rate_set((*engine)->context, wanted.rate_bps);
    if (wanted.memory_bytes)
        store_init(sdr_context_store((*engine)->context), wanted.memory_bytes);
    return 0;
}

int lh_engine_destroy(struct lh_engine *engine)
{
    if (!engine)
        return 0;
    int error = engine_check_process(engine);
    if (error)
        return error;
    pthread_mutex_lock(&engine->lock);
    uint32_t connections = engine->connections, listeners = engine->listeners, queues = engine->queues;
    pthread_mutex_unlock(&engine->lock);
    if (connections > 0 || listeners > 0 || queues > 0)
        return lh_fail(
            LH_ESTATE,
            "engine is in use (open connections: %u, listeners: %u, completion queues: %u): close "
            "or destroy them first",
            connections, listeners, queues);
    close_engine(engine);
    return 0;
}

int lh_engine_progress(struct lh_engine *engine, lh_time *next_ns)
{
    int error = engine_check_process(engine);
    return error ? error : lh_sdr_progress(engine->context, next_ns);
}

int lh_engine_memory(struct lh_engine *engine, struct lh_engine_memory *memory)
{
    int error = engine_check_process(engine);
    if (error)
        return error;
    const struct store *store = sdr_context_store(engine->context);
    *memory = (struct lh_engine_memory){
        .limit_bytes = store->limit_bytes,
        .now_bytes = store_bytes(store),
        .most_bytes = atomic_load_explicit(&store->maximum, memory_order_relaxed),
        .refusals = atomic_load_explicit(&store->refusals, memory_order_relaxed),
    };
    return 0;
}

int engine_watch(struct lh_engine *engine, struct watch_other *other)
{
    return sdr_context_watch(engine->context, other);
}

void engine_watch_writable(struct lh_engine *engine, struct watch_other *other, bool wanted)
{
    sdr_context_watch_writable(engine->context, other, wanted);
}

void engine_unwatch(struct lh_engine *engine, struct watch_other *other)
{
    sdr_context_unwatch(engine->context, other);
}

/* ---- its connections and listeners ------------------------------------------------------------------- */

/* 0: not asked for. Counts of threads may be "none". */
static int check_same(const char *name, uint64_t wanted, uint64_t has)
{
    char one[32] = "none", other[32] = "none";
    if (wanted == 0 || wanted == has)
        return 0;
    if (wanted != UINT32_MAX && wanted != LH_NO_SPIN)
        snprintf(one, sizeof one, "%llu", (unsigned long long)wanted);
    if (has != UINT32_MAX && has != LH_NO_SPIN)
        snprintf(other, sizeof other, "%llu", (unsigned long long)has);
    return lh_fail(LH_EINVAL, "%s %s: the engine has %s (leave it 0)", name, one, other);
}

static int check_agrees(const struct lh_attr *attr, const struct lh_engine *engine)
{
    if (attr->device && strcmp(attr->device, engine->device) != 0)
        return lh_fail(LH_EINVAL, "device %s: the engine has %s (leave it NULL)", attr->device,
                       engine->device);
    if (attr->channels > engine->channels)
        return lh_fail(LH_EINVAL, "channels %u: the engine has %u (use at most as many)", attr->channels,
                       engine->channels);
    if (attr->worker_cpus)
        return lh_fail(LH_EINVAL,
                       "worker_cpus: the engine has its workers (set them for lh_engine_create)");
    int error = check_same("workers", attr->workers, engine->workers);
    if (!error)
        error = check_same("coders", attr->coders, engine->coders.count);
    if (!error)
        error =
            check_same("receive_buffer_bytes", attr->receive_buffer_bytes, engine->receive_buffer_bytes);
    if (!error)
        error = check_same("spin_ns", attr->spin_ns, engine->spin_ns);
    return error;
}

int engine_settle(struct lh_attr *attr)
{
    const struct lh_engine *engine = attr->engine;
    if (!engine)
        return 0;
    int error = engine_check_process(engine);
    if (!error)
        error = check_agrees(attr, engine);
    if (error)
        return error;
    attr->device = engine->device;
    attr->channels = attr->channels ? attr->channels : engine->channels;
    attr->workers = engine->workers;
    attr->coders = engine->coders.count;
    attr->receive_buffer_bytes = engine->receive_buffer_bytes;
    attr->spin_ns = engine->spin_ns;
    return 0;
}

int engine_join(const struct lh_attr *attr, struct lh_engine **engine)
{
    struct lh_engine *joined = attr->engine;
    int error = joined ? 0 : open_engine(attr, false, &joined);
    if (error)
        return error;
    pthread_mutex_lock(&joined->lock);
    joined->connections++;
    pthread_mutex_unlock(&joined->lock);
    *engine = joined;
    return 0;
}

void engine_leave(struct lh_engine *engine)
{
    if (!engine->shared) {
        close_engine(engine);
        return;
    }
    pthread_mutex_lock(&engine->lock);
    engine->connections--;
    pthread_mutex_unlock(&engine->lock);
}

void engine_count_listener(struct lh_engine *engine, int change)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->lock);
    engine->listeners += (uint32_t)change;
    pthread_mutex_unlock(&engine->lock);
}

void engine_count_queue(struct lh_engine *engine, int change)
{
    pthread_mutex_lock(&engine->lock);
    engine->queues += (uint32_t)change;
    pthread_mutex_unlock(&engine->lock);
}

/* ---- path memory ----------------------------------------------------------------------------------- */

int path_memory_create(struct lh_attr *attr, struct path_memory **memory)
{
    if (!attr->path_file)
        return 0;
    size_t bytes = strlen(attr->path_file) + 1;
    *memory = calloc(1, sizeof **memory + bytes);
    if (!*memory)
        return lh_fail(LH_ENOMEM, "no memory for the name of a path file");
    attr->path_file = memcpy((*memory)->file, attr->path_file, bytes);
    return 0;
}

/* This side's address, as it is in the blob for the peer. */
static bool local_endpoint(struct sdr_qp *qp, struct qp_info_endpoint *local)
{
    uint8_t bytes[QP_INFO_BYTES_MAX];
    struct qp_info info;
    size_t size;
    sdr_qp_info_size_get(qp, &size);
    if (size > sizeof bytes)
        return false;
    sdr_qp_info_get(qp, bytes);
    if (qp_info_decode(bytes, size, &info) != 0)
        return false;
    *local = info.endpoint;
    return true;
}

void path_memory_load(struct path_memory *memory, struct sdr_qp *qp, const struct qp_info_endpoint *peer)
{
    struct qp_info_endpoint local;
    struct path_record found;
    if (!memory || !local_endpoint(qp, &local))
        return;
    path_file_address(memory->record.peer, peer->family, peer->address);
    path_file_address(memory->record.local, local.family, local.address);
    lh_time age_ns;
    if (!path_file_read(memory->file, memory->record.peer, memory->record.local, &found, &age_ns))
        return;
    memory->record = found;
    sdr_qp_remember(qp, found.rate_bps, found.rtt_ns, age_ns);
}

void path_memory_save(struct path_memory *memory, struct sdr_qp *qp, lh_time rtt_minimum_ns)
{
    struct lh_congestion_report report;
    if (!memory || lh_sdr_congestion(qp, &report) != 0 || !known_paths_is_learned(&report))
        return;
    memory->record.rate_bps = report.bandwidth_bps;
    memory->record.rtt_ns = rtt_minimum_ns;
    path_file_write(memory->file, &memory->record);
}
