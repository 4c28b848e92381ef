/*
 * ofi_domain.c - domains: an engine, a listener, and two threads; and registered memory.
 *
 * lh_accept waits for clients in a thread of its own. lh_connect has threads while it lasts (ofi_link.c).
 *
 * The progress thread takes the engine's completions while the program does not poll, so that a rendezvous
 * goes on while it computes. While the program polls, the thread only wakes up now and then to see that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests and unpolled entries of all links of a domain. */
#define QUEUE_ENTRIES  (1u << 17)
#define ACCEPT_TURN_NS (100 * LH_NS_PER_MS)
/* The program polls if it did so within that time. */
#define POLLING_NS (2 * LH_NS_PER_MS)
/* At most; completions end a sleep. */
#define SLEEP_NS (100 * LH_NS_PER_MS)
#define RETRY_NS LH_NS_PER_MS

static struct ofi_domain *domain_of(struct fid *fid)
{
    return container_of(fid, struct ofi_domain, fid.fid);
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void end_thread(struct ofi_domain *domain)
{
    domain->threads--;
    pthread_cond_broadcast(&domain->changed);
    pthread_mutex_unlock(&domain->lock);
}

/* Locked. Whether the program does not make progress, or sleeps. */
static bool is_needed(struct ofi_domain *domain)
{
    if (domain->polled_ns + POLLING_NS < ofi_now_ns())
        return true;
    return domain->waiters > 0 || domain->is_armed;
}

static void *progress_run(void *context)
{
    struct ofi_domain *domain = context;
    struct lh_completion entries[OFI_TURN_ENTRIES];
    pthread_mutex_lock(&domain->lock);
    while (!domain->is_ending) {
        if (ofi_link_reap(domain))
            continue;
        if (!is_needed(domain)) {
            ofi_domain_wait(domain, &domain->wake, ofi_now_ns() + POLLING_NS);
            continue;
        }
        domain->is_armed &= domain->polled_ns + POLLING_NS >= ofi_now_ns(); /* then it is needed anyway */
        ofi_link_work(domain);
        lh_time sleep_ns = domain->first_work ? RETRY_NS : SLEEP_NS;
        pthread_mutex_unlock(&domain->lock);
        int count = lh_queue_wait(domain->queue, entries, OFI_TURN_ENTRIES, sleep_ns);
        pthread_mutex_lock(&domain->lock);
        if (count > 0) {
            ofi_dispatch(entries, count);
            ofi_link_work(domain);
        }
    }
    end_thread(domain);
    return NULL;
}

static void *accept_run(void *context)
{
    struct ofi_domain *domain = context;
    pthread_mutex_lock(&domain->lock);
    while (!domain->is_ending) {
        struct lh_connection *connection = NULL;
        pthread_mutex_unlock(&domain->lock);
        int error = lh_accept(domain->listener, ACCEPT_TURN_NS, &connection);
        if (!error)
            ofi_link_accept(domain, connection);
        pthread_mutex_lock(&domain->lock);
        if (!error || error == -LH_ETIMEDOUT)
            continue;
        FI_WARN(&ofi_provider, FI_LOG_DOMAIN, "accept: %s\n", lh_last_error());
        ofi_domain_wait(domain, &domain->wake, ofi_now_ns() + ACCEPT_TURN_NS);
    }
    end_thread(domain);
    return NULL;
}

static int start_thread(struct ofi_domain *domain, void *(*run)(void *))
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, domain);
    if (error) {
        FI_WARN(&ofi_provider, FI_LOG_DOMAIN, "thread: %s\n", strerror(error));
        return -FI_ENOMEM;
    }
    pthread_detach(thread);
    domain->threads++;
    return 0;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* Registration is not needed: a region has only a key. */
static int mr_close(struct fid *fid)
{
    struct fid_mr *mr = container_of(fid, struct fid_mr, fid);
    free(mr);
    return 0;
}

static int mr_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
    (void)fid, (void)bound, (void)flags;
    return 0;
}

static int mr_control(struct fid *fid, int command, void *argument)
{
    (void)fid, (void)argument;
    return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static int new_region(struct fid *fid, uint64_t access, uint64_t key, void *context, struct fid_mr **out)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = mr_close,
                                .bind = mr_bind,
                                .control = mr_control,
                                .ops_open = ofi_no_ops_open};
    if (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
        FI_WARN(&ofi_provider, FI_LOG_MR, "fi_mr_reg: remote access is not supported (FI_RMA)\n");
        return -FI_EOPNOTSUPP;
    }
    struct fid_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return -FI_ENOMEM;
    mr->fid = (struct fid){.fclass = FI_CLASS_MR, .context = context, .ops = &ops};
    mr->key = key;
    (void)fid;
    *out = mr;
    return 0;
}

static int mr_reg(struct fid *fid, const void *buffer, size_t bytes, uint64_t access, uint64_t offset,
                  uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
    (void)buffer, (void)bytes, (void)offset;
    return flags ? -FI_EBADFLAGS : new_region(fid, access, key, context, mr);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
                   uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
    (void)iov, (void)count, (void)offset;
    return flags ? -FI_EBADFLAGS : new_region(fid, access, key, context, mr);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
    return flags ? -FI_EBADFLAGS : new_region(fid, attr->access, attr->requested_key, attr->context, mr);
}

/* ---- the domain ---------------------------------------------------------------------------------------- */

static int no_scalable(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
    (void)fid, (void)info, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int no_poll(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
    (void)fid, (void)attr, (void)out;
    return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **out, void *context)
{
    (void)fid, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out, void *context)
{
    (void)fid, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int no_atomic(struct fid_domain *fid, enum fi_datatype type, enum fi_op operation,
                     struct fi_atomic_attr *attr, uint64_t flags)
{
    (void)fid, (void)type, (void)operation, (void)attr, (void)flags;
    return -FI_EOPNOTSUPP;
}

static int no_collective(struct fid_domain *fid, enum fi_collective_op collective,
                         struct fi_collective_attr *attr, uint64_t flags)
{
    (void)fid, (void)collective, (void)attr, (void)flags;
    return -FI_ENOSYS;
}

/* Ends threads and links; safe for what open() has not opened. */
static void end_domain(struct ofi_domain *domain)
{
    pthread_mutex_lock(&domain->lock);
    domain->is_ending = true;
    while (domain->threads || domain->connecting || domain->links) {
        pthread_cond_broadcast(&domain->wake);
        ofi_link_end_rest(domain); /* those of strangers */
        if (ofi_link_reap(domain))
            continue;
        if (domain->queue)
            ofi_progress(domain);
        if (domain->threads || domain->connecting || domain->links)
            ofi_domain_wait(domain, &domain->changed, ofi_now_ns() + RETRY_NS);
    }
    pthread_mutex_unlock(&domain->lock);
    if (domain->listener)
        lh_listener_close(domain->listener);
    if (domain->queue)
        lh_completion_queue_destroy(domain->queue);
    if (domain->engine)
        lh_engine_destroy(domain->engine);
    pthread_cond_destroy(&domain->wake);
    pthread_cond_destroy(&domain->changed);
    pthread_mutex_destroy(&domain->lock);
    free(domain);
}

static int domain_close(struct fid *fid)
{
    struct ofi_domain *domain = domain_of(fid);
    struct ofi_fabric *fabric = domain->fabric;
    pthread_mutex_lock(&domain->lock);
    bool is_used = domain->references > 0;
    domain->is_ending = !is_used;
    pthread_mutex_unlock(&domain->lock);
    if (is_used)
        return -FI_EBUSY;
    end_domain(domain);
    __atomic_sub_fetch(&fabric->references, 1, __ATOMIC_RELAXED);
    return 0;
}

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    (void)context;
    if (notice == LH_NOTICE_REFUSED)
        FI_INFO(&ofi_provider, FI_LOG_DOMAIN, "refused %s\n", text);
    return true;
}

static int listen_at(struct ofi_domain *domain, const struct plugin_device *device, uint16_t port)
{
    const struct plugin_settings *settings = &domain->fabric->settings;
    struct lh_attr attr;
    struct lh_security security;
    char where[128];
    plugin_settings_attr(settings, &attr, &security);
    attr.link = settings->link;
    attr.engine = domain->engine;
    attr.on_notice = on_notice;
    if (!strncmp(settings->congestion, "fixed", 5))
        attr.rate_bps = settings->rate_bps;
    snprintf(where, sizeof where, "%s:%u", device->address, port);
    int error = lh_listen(where, &attr, &domain->listener);
    if (error)
        return error;
    return ofi_name_make(device->address, lh_listener_port(domain->listener), &domain->name) ? -LH_EADDR
                                                                                             : 0;
}

static int open_engine(struct ofi_domain *domain, const struct plugin_device *device, uint16_t port)
{
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = device->name;
    attr.rate_bps = domain->fabric->settings.rate_bps;
    int error = lh_engine_create(&attr, &domain->engine);
    if (!error)
        error = lh_completion_queue_create(domain->engine, QUEUE_ENTRIES, &domain->queue);
    if (!error)
        error = listen_at(domain, device, port);
    if (error)
        FI_WARN(&ofi_provider, FI_LOG_DOMAIN, "%s: %s\n", device->interface, lh_last_error());
    return ofi_error(error);
}

/* The device of fi_info.domain_attr->name. */
static int find_device(const struct ofi_fabric *fabric, const struct fi_info *info,
                       struct plugin_device *device)
{
    struct plugin_device devices[PLUGIN_DEVICES_MAX];
    int count = 0;
    const char *name = info->domain_attr ? info->domain_attr->name : NULL;
    if (plugin_devices(fabric->settings.interfaces, devices, &count)) {
        FI_WARN(&ofi_provider, FI_LOG_DOMAIN, "%s\n", lh_last_error());
        return -FI_ENODEV;
    }
    for (int i = 0; i < count; i++)
        if (!name || !strcmp(name, devices[i].interface)) {
            *device = devices[i];
            return 0;
        }
    FI_WARN(&ofi_provider, FI_LOG_DOMAIN, "fi_domain: no interface %s\n", name);
    return -FI_ENODEV;
}

static int open_conditions(struct ofi_domain *domain)
{
    pthread_mutex_init(&domain->lock, NULL);
    pthread_cond_init(&domain->changed, NULL);
    pthread_cond_init(&domain->wake, NULL);
    return 0;
}

int ofi_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out, void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = domain_close,
                                .bind = ofi_no_bind,
                                .control = ofi_no_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_domain domain_ops = {.size = sizeof domain_ops,
                                              .av_open = ofi_av_open,
                                              .cq_open = ofi_cq_open,
                                              .endpoint = ofi_endpoint_open,
                                              .scalable_ep = no_scalable,
                                              .cntr_open = ofi_cntr_open,
                                              .poll_open = no_poll,
                                              .stx_ctx = no_stx,
                                              .srx_ctx = no_srx,
                                              .query_atomic = no_atomic,
                                              .query_collective = no_collective};
    static struct fi_ops_mr mr_ops = {
        .size = sizeof mr_ops, .reg = mr_reg, .regv = mr_regv, .regattr = mr_regattr};
    struct ofi_fabric *fabric = container_of(fid, struct ofi_fabric, fid);
    struct plugin_device device;
    int error = find_device(fabric, info, &device);
    struct ofi_domain *domain = error ? NULL : calloc(1, sizeof *domain);
    if (!domain)
        return error ? error : -FI_ENOMEM;
    domain->fid.fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &ops};
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &mr_ops;
    domain->fabric = fabric;
    domain->progress = ofi_progress;
    open_conditions(domain);
    uint16_t port = 0;
    if (info->src_addr && info->src_addrlen == sizeof(struct ofi_name))
        port = ofi_name_port(info->src_addr);
    domain->has_port = port != 0;
    error = open_engine(domain, &device, port);
    if (!error)
        error = start_thread(domain, progress_run);
    if (!error)
        error = start_thread(domain, accept_run);
    if (error) {
        end_domain(domain);
        return error;
    }
    __atomic_add_fetch(&fabric->references, 1, __ATOMIC_RELAXED);
    *out = &domain->fid;
    return 0;
}
