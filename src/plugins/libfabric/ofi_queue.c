/*
 * ofi_queue.c - completion queues, counters, and event queues, which never have an event.
 *
 * Whoever waits sleeps on the domain's condition `changed`: the progress thread (ofi_domain.c) takes the
 * engine's completions meanwhile. A queue with a descriptor writes to it with its first entry.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* ---- what all objects share ---------------------------------------------------------------------------- */

/* fi_prov_ini() adds its calls. */
struct fi_provider ofi_provider = {
    .version = FI_VERSION(1, 0),
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name = OFI_NAME,
};

int ofi_no_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
    (void)fid, (void)bound, (void)flags;
    return -FI_ENOSYS;
}

int ofi_no_control(struct fid *fid, int command, void *argument)
{
    (void)fid, (void)command, (void)argument;
    return -FI_ENOSYS;
}

int ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -FI_ENOSYS;
}

int ofi_error(int error)
{
    switch (-error) {
    case 0:
        return 0;
    case LH_EINVAL:
        return -FI_EINVAL;
    case LH_ENOMEM:
        return -FI_ENOMEM;
    case LH_EAGAIN:
        return -FI_EAGAIN;
    case LH_EADDR:
        return -FI_EADDRNOTAVAIL;
    case LH_EDEVICE:
        return -FI_ENODEV;
    case LH_EHANDSHAKE:
        return -FI_ECONNREFUSED;
    case LH_EPEER:
    case LH_ECLOSED:
        return -FI_ECONNRESET;
    case LH_EPATH:
    case LH_ETIMEDOUT:
        return -FI_ETIMEDOUT;
    case LH_ECANCELED:
        return -FI_ECANCELED;
    case LH_ETRUNCATED:
        return -FI_ETRUNC;
    default:
        return -FI_EIO;
    }
}

uint64_t ofi_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * LH_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t ofi_timeout_ns(int milliseconds)
{
    return milliseconds < 0 ? OFI_NEVER : ofi_now_ns() + (uint64_t)milliseconds * LH_NS_PER_MS;
}

bool ofi_domain_wait(struct ofi_domain *domain, pthread_cond_t *condition, uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / LH_NS_PER_S), (long)(until_ns % LH_NS_PER_S)};
    if (until_ns == OFI_NEVER)
        return pthread_cond_wait(condition, &domain->lock) == 0;
    return pthread_cond_clockwait(condition, &domain->lock, CLOCK_MONOTONIC, &until) == 0;
}

void ofi_domain_poll(struct ofi_domain *domain)
{
    domain->polled_ns = ofi_now_ns();
    domain->progress(domain);
}

/* Locked. Sleeps until something changes, while the progress thread works. False: the time has come. */
static bool sleep_for_change(struct ofi_domain *domain, uint64_t until_ns)
{
    domain->waiters++;
    pthread_cond_signal(&domain->wake);
    bool changed = ofi_domain_wait(domain, &domain->changed, until_ns);
    domain->waiters--;
    return changed;
}

/* ---- completion queues --------------------------------------------------------------------------------- */

static struct ofi_cq *cq_of(struct fid_cq *fid)
{
    return container_of(fid, struct ofi_cq, fid);
}

static void set_event(struct ofi_cq *cq, bool is_signaled)
{
    uint64_t one = 1;
    if (cq->event < 0 || cq->is_signaled == is_signaled)
        return;
    ssize_t moved = is_signaled ? write(cq->event, &one, sizeof one) : read(cq->event, &one, sizeof one);
    (void)moved; /* it is non-blocking, and holds 0 or 1 */
    cq->is_signaled = is_signaled;
}

static bool grow(struct ofi_cq *cq)
{
    size_t capacity = cq->capacity ? 2 * cq->capacity : 64;
    struct ofi_entry *larger = malloc(capacity * sizeof *larger);
    if (!larger)
        return false;
    for (size_t i = 0; i < cq->count; i++)
        larger[i] = cq->entries[(cq->first + i) & (cq->capacity - 1)];
    free(cq->entries);
    cq->entries = larger;
    cq->capacity = capacity;
    cq->first = 0;
    return true;
}

void ofi_cq_add(struct ofi_cq *cq, const struct ofi_entry *entry)
{
    if (cq->count == cq->capacity && !grow(cq)) {
        cq->has_overrun = true;
    } else {
        cq->entries[(cq->first + cq->count) & (cq->capacity - 1)] = *entry;
        cq->count++;
    }
    set_event(cq, true);
    if (cq->domain->waiters)
        pthread_cond_broadcast(&cq->domain->changed);
}

static size_t entry_bytes(enum fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(struct fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(struct fi_cq_tagged_entry);
    default:
        return sizeof(struct fi_cq_entry);
    }
}

/* The formats of libfabric begin alike, and so does the error entry. */
_Static_assert(offsetof(struct fi_cq_err_entry, tag) == offsetof(struct fi_cq_tagged_entry, tag) &&
                   offsetof(struct fi_cq_err_entry, len) == offsetof(struct fi_cq_msg_entry, len) &&
                   offsetof(struct fi_cq_err_entry, data) == offsetof(struct fi_cq_data_entry, data),
               "an entry of any format is the beginning of the error entry");

/* Locked. */
static ssize_t take(struct ofi_cq *cq, void *buffer, size_t count, fi_addr_t *sources)
{
    size_t bytes = entry_bytes(cq->format), taken = 0;
    while (taken < count && cq->count > 0) {
        const struct ofi_entry *entry = &cq->entries[cq->first];
        if (entry->completion.err)
            break;
        memcpy((char *)buffer + taken * bytes, &entry->completion, bytes);
        if (sources)
            sources[taken] = entry->source;
        cq->first = (cq->first + 1) & (cq->capacity - 1);
        cq->count--;
        taken++;
    }
    if (cq->count == 0)
        set_event(cq, false);
    if (taken)
        return (ssize_t)taken;
    return cq->count ? -FI_EAVAIL : cq->has_overrun ? -FI_EOVERRUN : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources)
{
    struct ofi_cq *cq = cq_of(fid);
    pthread_mutex_lock(&cq->domain->lock);
    ofi_domain_poll(cq->domain);
    ssize_t result = take(cq, buffer, count, sources);
    pthread_mutex_unlock(&cq->domain->lock);
    if (result == -FI_EAGAIN)
        sched_yield(); /* to the engine's worker, where the programs that poll have all processors */
    return result;
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
    return cq_readfrom(fid, buffer, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
    struct ofi_cq *cq = cq_of(fid);
    ssize_t result = -FI_EAGAIN;
    (void)flags;
    pthread_mutex_lock(&cq->domain->lock);
    const struct ofi_entry *entry = cq->count ? &cq->entries[cq->first] : NULL;
    if (entry && entry->completion.err) {
        void *data = out->err_data; /* the caller's, where it asked for a copy: there is none */
        *out = entry->completion;
        out->err_data = out->err_data_size ? data : NULL;
        out->err_data_size = 0;
        cq->first = (cq->first + 1) & (cq->capacity - 1);
        cq->count--;
        if (cq->count == 0)
            set_event(cq, false);
        result = 1;
    }
    pthread_mutex_unlock(&cq->domain->lock);
    return result;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources,
                            const void *condition, int timeout)
{
    struct ofi_cq *cq = cq_of(fid);
    uint64_t until_ns = ofi_timeout_ns(timeout);
    (void)condition;
    if (cq->wait_obj == FI_WAIT_NONE)
        return -FI_ENOSYS;
    pthread_mutex_lock(&cq->domain->lock);
    uint32_t signals = cq->signals;
    ofi_domain_poll(cq->domain);
    ssize_t result = take(cq, buffer, count, sources);
    bool in_time = true;
    while (result == -FI_EAGAIN && in_time && cq->signals == signals) {
        in_time = sleep_for_change(cq->domain, until_ns);
        result = take(cq, buffer, count, sources);
    }
    pthread_mutex_unlock(&cq->domain->lock);
    return result;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buffer, size_t count, const void *condition, int timeout)
{
    return cq_sreadfrom(fid, buffer, count, NULL, condition, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
    struct ofi_cq *cq = cq_of(fid);
    pthread_mutex_lock(&cq->domain->lock);
    cq->signals++;
    pthread_cond_broadcast(&cq->domain->changed);
    pthread_mutex_unlock(&cq->domain->lock);
    return 0;
}

static const char *describe(int provider_error, char *out, size_t bytes)
{
    const char *text = lh_strerror(-provider_error);
    if (out && bytes > 0) {
        size_t length = strlen(text) < bytes - 1 ? strlen(text) : bytes - 1;
        memcpy(out, text, length);
        out[length] = 0;
    }
    return text;
}

static const char *cq_strerror(struct fid_cq *fid, int provider_error, const void *data, char *out,
                               size_t bytes)
{
    (void)fid, (void)data;
    return describe(provider_error, out, bytes);
}

static int cq_control(struct fid *fid, int command, void *argument)
{
    struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
    if (command == FI_GETWAITOBJ) {
        *(enum fi_wait_obj *)argument = cq->wait_obj;
        return 0;
    }
    if (command != FI_GETWAIT || cq->event < 0)
        return -FI_ENOSYS;
    *(int *)argument = cq->event;
    return 0;
}

static int cq_close(struct fid *fid)
{
    struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
    pthread_mutex_lock(&cq->domain->lock);
    bool is_used = cq->references > 0;
    cq->domain->references -= !is_used;
    pthread_mutex_unlock(&cq->domain->lock);
    if (is_used)
        return -FI_EBUSY;
    if (cq->event >= 0)
        close(cq->event);
    free(cq->entries);
    free(cq);
    return 0;
}

int ofi_cq_try_wait(struct fid *fid)
{
    if (fid->fclass != FI_CLASS_CQ)
        return fid->fclass == FI_CLASS_EQ || fid->fclass == FI_CLASS_CNTR ? 0 : -FI_EINVAL;
    struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
    pthread_mutex_lock(&cq->domain->lock);
    ofi_domain_poll(cq->domain);
    int result = cq->count ? -FI_EAGAIN : 0;
    if (!result) {
        cq->domain->is_armed = true;
        pthread_cond_signal(&cq->domain->wake);
    }
    pthread_mutex_unlock(&cq->domain->lock);
    return result;
}

int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = cq_close,
                                .bind = ofi_no_bind,
                                .control = cq_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_cq cq_ops = {.size = sizeof cq_ops,
                                      .read = cq_read,
                                      .readfrom = cq_readfrom,
                                      .readerr = cq_readerr,
                                      .sread = cq_sread,
                                      .sreadfrom = cq_sreadfrom,
                                      .signal = cq_signal,
                                      .strerror = cq_strerror};
    const struct fi_cq_attr none = {0};
    const struct fi_cq_attr *wanted = attr ? attr : &none;
    if (wanted->wait_obj != FI_WAIT_NONE && wanted->wait_obj != FI_WAIT_UNSPEC &&
        wanted->wait_obj != FI_WAIT_FD && wanted->wait_obj != FI_WAIT_YIELD) {
        FI_WARN(&ofi_provider, FI_LOG_CQ, "fi_cq_open: wait object %d is not supported (use FI_WAIT_FD)\n",
                (int)wanted->wait_obj);
        return -FI_ENOSYS;
    }
    struct ofi_cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return -FI_ENOMEM;
    cq->fid.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &ops};
    cq->fid.ops = &cq_ops;
    cq->domain = container_of(domain, struct ofi_domain, fid);
    cq->format = wanted->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : wanted->format;
    cq->wait_obj = wanted->wait_obj;
    cq->event = wanted->wait_obj == FI_WAIT_FD ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if ((wanted->wait_obj == FI_WAIT_FD && cq->event < 0) || !grow(cq)) {
        free(cq);
        return -FI_ENOMEM;
    }
    if (attr)
        attr->format = cq->format;
    pthread_mutex_lock(&cq->domain->lock);
    cq->domain->references++;
    pthread_mutex_unlock(&cq->domain->lock);
    *out = &cq->fid;
    return 0;
}

/* ---- counters ------------------------------------------------------------------------------------------ */

static struct ofi_counter *counter_of(struct fid_cntr *fid)
{
    return container_of(fid, struct ofi_counter, fid);
}

void ofi_counter_add(struct ofi_counter *counter, bool is_error)
{
    counter->value += !is_error;
    counter->errors += is_error;
    if (counter->domain->waiters)
        pthread_cond_broadcast(&counter->domain->changed);
}

static uint64_t read_counter(struct ofi_counter *counter, const uint64_t *member)
{
    pthread_mutex_lock(&counter->domain->lock);
    ofi_domain_poll(counter->domain);
    uint64_t value = *member;
    pthread_mutex_unlock(&counter->domain->lock);
    return value;
}

static uint64_t counter_read(struct fid_cntr *fid)
{
    return read_counter(counter_of(fid), &counter_of(fid)->value);
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
    return read_counter(counter_of(fid), &counter_of(fid)->errors);
}

static int change(struct ofi_counter *counter, uint64_t *member, uint64_t keep, uint64_t value)
{
    pthread_mutex_lock(&counter->domain->lock);
    *member = (*member & keep) + value;
    pthread_cond_broadcast(&counter->domain->changed);
    pthread_mutex_unlock(&counter->domain->lock);
    return 0;
}

static int counter_add(struct fid_cntr *fid, uint64_t value)
{
    return change(counter_of(fid), &counter_of(fid)->value, UINT64_MAX, value);
}

static int counter_set(struct fid_cntr *fid, uint64_t value)
{
    return change(counter_of(fid), &counter_of(fid)->value, 0, value);
}

static int counter_adderr(struct fid_cntr *fid, uint64_t value)
{
    return change(counter_of(fid), &counter_of(fid)->errors, UINT64_MAX, value);
}

static int counter_seterr(struct fid_cntr *fid, uint64_t value)
{
    return change(counter_of(fid), &counter_of(fid)->errors, 0, value);
}

static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct ofi_counter *counter = counter_of(fid);
    uint64_t until_ns = ofi_timeout_ns(timeout);
    pthread_mutex_lock(&counter->domain->lock);
    uint64_t errors = counter->errors;
    ofi_domain_poll(counter->domain);
    bool in_time = true;
    while (counter->value < threshold && counter->errors == errors && in_time)
        in_time = sleep_for_change(counter->domain, until_ns);
    int result = counter->value >= threshold ? 0 : counter->errors != errors ? -FI_EAVAIL : -FI_ETIMEDOUT;
    pthread_mutex_unlock(&counter->domain->lock);
    return result;
}

static int counter_close(struct fid *fid)
{
    struct ofi_counter *counter = container_of(fid, struct ofi_counter, fid.fid);
    pthread_mutex_lock(&counter->domain->lock);
    bool is_used = counter->references > 0;
    counter->domain->references -= !is_used;
    pthread_mutex_unlock(&counter->domain->lock);
    if (is_used)
        return -FI_EBUSY;
    free(counter);
    return 0;
}

int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
                  void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = counter_close,
                                .bind = ofi_no_bind,
                                .control = ofi_no_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_cntr counter_ops = {.size = sizeof counter_ops,
                                             .read = counter_read,
                                             .readerr = counter_readerr,
                                             .add = counter_add,
                                             .set = counter_set,
                                             .wait = counter_wait,
                                             .adderr = counter_adderr,
                                             .seterr = counter_seterr};
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
        attr->wait_obj != FI_WAIT_YIELD)
        return -FI_ENOSYS;
    struct ofi_counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -FI_ENOMEM;
    counter->fid.fid = (struct fid){.fclass = FI_CLASS_CNTR, .context = context, .ops = &ops};
    counter->fid.ops = &counter_ops;
    counter->domain = container_of(domain, struct ofi_domain, fid);
    pthread_mutex_lock(&counter->domain->lock);
    counter->domain->references++;
    pthread_mutex_unlock(&counter->domain->lock);
    *out = &counter->fid;
    return 0;
}

/* ---- event queues -------------------------------------------------------------------------------------- */

struct event_queue {
    struct fid_eq fid;
};

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buffer, size_t bytes, uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)bytes, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *entry, uint64_t flags)
{
    (void)fid, (void)entry, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buffer, size_t bytes,
                        uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)bytes, (void)flags;
    return -FI_ENOSYS;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buffer, size_t bytes, int timeout,
                        uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)bytes, (void)flags;
    struct timespec pause = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * (long)LH_NS_PER_MS};
    if (timeout > 0)
        nanosleep(&pause, NULL);
    return -FI_EAGAIN;
}

static const char *eq_strerror(struct fid_eq *fid, int provider_error, const void *data, char *out,
                               size_t bytes)
{
    (void)fid, (void)data;
    return describe(provider_error, out, bytes);
}

static int eq_close(struct fid *fid)
{
    struct event_queue *queue = container_of(fid, struct event_queue, fid.fid);
    free(queue);
    return 0;
}

int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = eq_close,
                                .bind = ofi_no_bind,
                                .control = ofi_no_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_eq eq_ops = {.size = sizeof eq_ops,
                                      .read = eq_read,
                                      .readerr = eq_readerr,
                                      .write = eq_write,
                                      .sread = eq_sread,
                                      .strerror = eq_strerror};
    (void)fabric, (void)attr;
    struct event_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -FI_ENOMEM;
    queue->fid.fid = (struct fid){.fclass = FI_CLASS_EQ, .context = context, .ops = &ops};
    queue->fid.ops = &eq_ops;
    *out = &queue->fid;
    return 0;
}
