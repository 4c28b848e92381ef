/*
 * ofi_endpoint.c - endpoints, and their calls for messages and tagged messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* How long a close waits until what was accepted has left. */
#define CLOSE_TIMEOUT_NS (10 * LH_NS_PER_S)
#define CLOSE_TURN_NS    LH_NS_PER_MS

#define MULTI_RECV_MIN_DEFAULT 64u

/* The flags of fi_sendmsg, fi_tsendmsg; of fi_recvmsg; of fi_trecvmsg. */
#define SEND_FLAGS                                                                                         \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |        \
     FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE)
#define RECV_FLAGS        (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)
#define RECV_TAGGED_FLAGS (FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD)

static struct ofi_endpoint *endpoint_of(struct fid_ep *fid)
{
    return container_of(fid, struct ofi_endpoint, fid);
}

/* ---- sending ------------------------------------------------------------------------------------------- */

/* What the calls have in common. */
struct call {
    const struct iovec *iov;
    size_t count;
    fi_addr_t address;
    uint64_t tag, ignore, data;
    void *context;
    uint64_t flags; /* with FI_TAGGED */
};

static ssize_t new_operation(struct ofi_endpoint *endpoint, const struct call *call,
                             struct ofi_operation **out)
{
    if (call->count > OFI_IOV_MAX)
        return -FI_EINVAL;
    for (size_t i = 0; i < call->count; i++)
        if (call->iov[i].iov_len && !call->iov[i].iov_base)
            return -FI_EINVAL;
    struct ofi_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return -FI_ENOMEM;
    operation->endpoint = endpoint;
    operation->context = call->context;
    operation->flags = call->flags;
    operation->tag = call->tag;
    operation->ignore = call->ignore;
    operation->data = call->data;
    operation->address = call->address;
    operation->count = call->count;
    for (size_t i = 0; i < call->count; i++) {
        operation->iov[i] = call->iov[i];
        operation->bytes += call->iov[i].iov_len;
    }
    *out = operation;
    return 0;
}

static ssize_t prepare_send(struct ofi_operation *operation)
{
    bool is_injected = operation->flags & FI_INJECT;
    bool is_transmitted = operation->flags & FI_TRANSMIT_COMPLETE;
    bool is_delivered = operation->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE);
    if (operation->bytes > OFI_MESSAGE_MAX || (is_injected && operation->bytes > OFI_EAGER_MAX))
        return -FI_EMSGSIZE;
    operation->flags |= FI_SEND;
    operation->is_rendezvous = is_delivered || operation->bytes > OFI_EAGER_MAX;
    if (!is_injected && (is_transmitted || operation->is_rendezvous))
        return 0;
    if (operation->bytes == 0)
        return 0;
    operation->copy = malloc(operation->bytes);
    if (!operation->copy)
        return -FI_ENOMEM;
    ofi_gather(operation->copy, operation->iov, operation->count);
    return 0;
}

static ssize_t send_call(struct fid_ep *fid, const struct call *call)
{
    struct ofi_endpoint *endpoint = endpoint_of(fid);
    struct ofi_domain *domain = endpoint->domain;
    struct ofi_operation *operation = NULL;
    ssize_t error = new_operation(endpoint, call, &operation);
    if (!error)
        error = prepare_send(operation);
    if (!error) {
        pthread_mutex_lock(&domain->lock);
        bool is_accepted = !operation->is_rendezvous && !(operation->flags & FI_TRANSMIT_COMPLETE);
        error = endpoint->is_enabled ? ofi_link_send(operation) : -FI_EOPBADSTATE;
        if (!error && is_accepted)
            ofi_operation_accept(operation);
        ofi_link_work(domain);
        if (error == -FI_EAGAIN)
            ofi_domain_poll(domain);
        pthread_mutex_unlock(&domain->lock);
    }
    if (error && operation)
        ofi_operation_free(operation);
    return error;
}

/* Whether an operation without flags of its own reports its success. */
static uint64_t send_flags(const struct ofi_endpoint *endpoint)
{
    return endpoint->send_flags | (endpoint->is_send_selective ? 0 : FI_COMPLETION);
}

static uint64_t recv_flags(const struct ofi_endpoint *endpoint)
{
    return endpoint->recv_flags | (endpoint->is_recv_selective ? 0 : FI_COMPLETION);
}

static ssize_t send_one(struct fid_ep *fid, const void *buffer, size_t bytes, fi_addr_t address,
                        struct call call)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)buffer, .iov_len = bytes};
    call.iov = &iov;
    call.count = 1;
    call.address = address;
    if (call.flags & FI_INJECT) /* no completion of success */
        call.flags |= endpoint_of(fid)->send_flags & ~FI_COMPLETION;
    else
        call.flags |= send_flags(endpoint_of(fid));
    return send_call(fid, &call);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buffer, size_t bytes, void *descriptor,
                        fi_addr_t address, void *context)
{
    (void)descriptor;
    return send_one(fid, buffer, bytes, address, (struct call){.context = context});
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buffer, size_t bytes, void *descriptor,
                            uint64_t data, fi_addr_t address, void *context)
{
    (void)descriptor;
    return send_one(fid, buffer, bytes, address,
                    (struct call){.context = context, .data = data, .flags = FI_REMOTE_CQ_DATA});
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buffer, size_t bytes, fi_addr_t address)
{
    return send_one(fid, buffer, bytes, address, (struct call){.flags = FI_INJECT});
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buffer, size_t bytes, uint64_t data,
                              fi_addr_t address)
{
    return send_one(fid, buffer, bytes, address,
                    (struct call){.data = data, .flags = FI_INJECT | FI_REMOTE_CQ_DATA});
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **descriptors, size_t count,
                         fi_addr_t address, void *context)
{
    (void)descriptors;
    const struct call call = {.iov = iov,
                              .count = count,
                              .address = address,
                              .context = context,
                              .flags = send_flags(endpoint_of(fid))};
    return send_call(fid, &call);
}

static ssize_t check_flags(uint64_t flags, uint64_t allowed)
{
    if (!(flags & ~allowed))
        return 0;
    FI_WARN(&ofi_provider, FI_LOG_EP_DATA, "flags %#llx are not supported\n",
            (unsigned long long)(flags & ~allowed));
    return -FI_EBADFLAGS;
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    bool is_selective = endpoint_of(fid)->is_send_selective;
    const struct call call = {.iov = msg->msg_iov,
                              .count = msg->iov_count,
                              .address = msg->addr,
                              .data = msg->data,
                              .context = msg->context,
                              .flags = flags | (is_selective ? 0 : FI_COMPLETION)};
    ssize_t error = check_flags(flags, SEND_FLAGS);
    return error ? error : send_call(fid, &call);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buffer, size_t bytes, void *descriptor,
                           fi_addr_t address, uint64_t tag, void *context)
{
    (void)descriptor;
    return send_one(fid, buffer, bytes, address,
                    (struct call){.context = context, .tag = tag, .flags = FI_TAGGED});
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buffer, size_t bytes, void *descriptor,
                               uint64_t data, fi_addr_t address, uint64_t tag, void *context)
{
    (void)descriptor;
    return send_one(
        fid, buffer, bytes, address,
        (struct call){
            .context = context, .tag = tag, .data = data, .flags = FI_TAGGED | FI_REMOTE_CQ_DATA});
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buffer, size_t bytes, fi_addr_t address,
                             uint64_t tag)
{
    return send_one(fid, buffer, bytes, address, (struct call){.tag = tag, .flags = FI_TAGGED | FI_INJECT});
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buffer, size_t bytes, uint64_t data,
                                 fi_addr_t address, uint64_t tag)
{
    return send_one(
        fid, buffer, bytes, address,
        (struct call){.tag = tag, .data = data, .flags = FI_TAGGED | FI_INJECT | FI_REMOTE_CQ_DATA});
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **descriptors, size_t count,
                            fi_addr_t address, uint64_t tag, void *context)
{
    (void)descriptors;
    const struct call call = {.iov = iov,
                              .count = count,
                              .address = address,
                              .tag = tag,
                              .context = context,
                              .flags = FI_TAGGED | send_flags(endpoint_of(fid))};
    return send_call(fid, &call);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    bool is_selective = endpoint_of(fid)->is_send_selective;
    const struct call call = {.iov = msg->msg_iov,
                              .count = msg->iov_count,
                              .address = msg->addr,
                              .tag = msg->tag,
                              .data = msg->data,
                              .context = msg->context,
                              .flags = FI_TAGGED | flags | (is_selective ? 0 : FI_COMPLETION)};
    ssize_t error = check_flags(flags, SEND_FLAGS);
    return error ? error : send_call(fid, &call);
}

/* ---- receiving ----------------------------------------------------------------------------------------- */

static fi_addr_t wanted_source(const struct ofi_endpoint *endpoint, fi_addr_t address)
{
    return endpoint->caps & FI_DIRECTED_RECV ? address : FI_ADDR_UNSPEC;
}

static ssize_t recv_call(struct fid_ep *fid, const struct call *call)
{
    struct ofi_endpoint *endpoint = endpoint_of(fid);
    struct ofi_operation *operation = NULL;
    if (!endpoint->is_enabled)
        return -FI_EOPBADSTATE;
    if (call->flags & FI_MULTI_RECV && call->count != 1)
        return -FI_EINVAL;
    ssize_t error = new_operation(endpoint, call, &operation);
    if (error)
        return error;
    operation->flags |= FI_RECV;
    operation->address = wanted_source(endpoint, call->address);
    pthread_mutex_lock(&endpoint->domain->lock);
    ofi_link_receive(endpoint, operation);
    ofi_link_work(endpoint->domain);
    pthread_mutex_unlock(&endpoint->domain->lock);
    return 0;
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **descriptors, size_t count,
                         fi_addr_t address, void *context)
{
    (void)descriptors;
    const struct call call = {.iov = iov,
                              .count = count,
                              .address = address,
                              .context = context,
                              .flags = recv_flags(endpoint_of(fid))};
    return recv_call(fid, &call);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buffer, size_t bytes, void *descriptor, fi_addr_t address,
                        void *context)
{
    const struct iovec iov = {.iov_base = buffer, .iov_len = bytes};
    (void)descriptor;
    return msg_recvv(fid, &iov, NULL, 1, address, context);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    bool is_selective = endpoint_of(fid)->is_recv_selective;
    const struct call call = {.iov = msg->msg_iov,
                              .count = msg->iov_count,
                              .address = msg->addr,
                              .context = msg->context,
                              .flags = flags | (is_selective ? 0 : FI_COMPLETION)};
    ssize_t error = check_flags(flags, RECV_FLAGS);
    return error ? error : recv_call(fid, &call);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **descriptors, size_t count,
                            fi_addr_t address, uint64_t tag, uint64_t ignore, void *context)
{
    (void)descriptors;
    const struct call call = {.iov = iov,
                              .count = count,
                              .address = address,
                              .tag = tag,
                              .ignore = ignore,
                              .context = context,
                              .flags = FI_TAGGED | (recv_flags(endpoint_of(fid)) & ~FI_MULTI_RECV)};
    return recv_call(fid, &call);
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buffer, size_t bytes, void *descriptor,
                           fi_addr_t address, uint64_t tag, uint64_t ignore, void *context)
{
    const struct iovec iov = {.iov_base = buffer, .iov_len = bytes};
    (void)descriptor;
    return tagged_recvv(fid, &iov, NULL, 1, address, tag, ignore, context);
}

/* ---- peek, claim, discard ------------------------------------------------------------------------------ */

static void report_peek(struct ofi_endpoint *endpoint, const struct fi_msg_tagged *msg,
                        const struct ofi_arrival *arrival)
{
    struct ofi_entry entry = {.source = arrival ? arrival->source : FI_ADDR_NOTAVAIL};
    bool has_data = arrival && arrival->frame.flags & OFI_FRAME_DATA;
    entry.completion = (struct fi_cq_err_entry){
        .op_context = msg->context,
        .flags = FI_RECV | FI_TAGGED | (has_data ? FI_REMOTE_CQ_DATA : 0),
        .len = arrival ? arrival->frame.bytes : 0,
        .data = arrival ? arrival->frame.data : 0,
        .tag = arrival ? arrival->frame.tag : msg->tag,
        .err = arrival ? 0 : FI_ENOMSG,
        .prov_errno = 0,
    };
    if (endpoint->recv_cq)
        ofi_cq_add(endpoint->recv_cq, &entry);
}

/* Locked. */
static void peek(struct ofi_endpoint *endpoint, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct ofi_matching *matching = &endpoint->matching[1];
    const struct ofi_wanted wanted = {msg->tag, msg->ignore, wanted_source(endpoint, msg->addr)};
    struct ofi_arrival *arrival = ofi_link_find(endpoint, true, &wanted);
    report_peek(endpoint, msg, arrival);
    if (!arrival || !(flags & (FI_CLAIM | FI_DISCARD)))
        return;
    ofi_arrivals_remove(&matching->arrived, arrival);
    if (flags & FI_DISCARD) {
        ofi_link_discard(arrival);
        return;
    }
    arrival->claim = msg->context;
    ofi_arrivals_add(&matching->claimed, arrival);
}

/* Locked. Receives, or discards, the message that this context has claimed. */
static ssize_t claim(struct ofi_endpoint *endpoint, const struct call *call, uint64_t flags)
{
    struct ofi_matching *matching = &endpoint->matching[1];
    struct ofi_arrival *arrival = ofi_matching_claimed(matching, call->context);
    struct ofi_operation *operation = NULL;
    if (!arrival)
        return -FI_EINVAL;
    ssize_t error = flags & FI_DISCARD ? 0 : new_operation(endpoint, call, &operation);
    if (error)
        return error;
    ofi_arrivals_remove(&matching->claimed, arrival);
    if (!operation) {
        const struct fi_msg_tagged msg = {.context = call->context, .tag = call->tag};
        report_peek(endpoint, &msg, arrival);
        ofi_link_discard(arrival);
        return 0;
    }
    operation->flags |= FI_RECV;
    ofi_link_deliver(arrival, operation);
    return 0;
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct ofi_endpoint *endpoint = endpoint_of(fid);
    bool is_selective = endpoint->is_recv_selective;
    const struct call call = {.iov = msg->msg_iov,
                              .count = msg->iov_count,
                              .address = msg->addr,
                              .tag = msg->tag,
                              .ignore = msg->ignore,
                              .context = msg->context,
                              .flags =
                                  FI_TAGGED | (flags & FI_COMPLETION) | (is_selective ? 0 : FI_COMPLETION)};
    ssize_t error = check_flags(flags, RECV_TAGGED_FLAGS);
    if (error || !(flags & (FI_PEEK | FI_CLAIM)))
        return error ? error : flags & FI_DISCARD ? -FI_EINVAL : recv_call(fid, &call);
    if (!endpoint->is_enabled)
        return -FI_EOPBADSTATE;
    pthread_mutex_lock(&endpoint->domain->lock);
    ofi_domain_poll(endpoint->domain);
    if (flags & FI_PEEK)
        peek(endpoint, msg, flags);
    else
        error = claim(endpoint, &call, flags);
    ofi_link_work(endpoint->domain);
    pthread_mutex_unlock(&endpoint->domain->lock);
    return error;
}

/* ---- the endpoint -------------------------------------------------------------------------------------- */

static ssize_t ep_cancel(fid_t fid, void *context)
{
    struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    bool found = false;
    pthread_mutex_lock(&endpoint->domain->lock);
    for (int i = 0; i < 2 && !found; i++) {
        struct ofi_list *posted = &endpoint->matching[i].posted;
        struct ofi_operation *operation = posted->first;
        while (operation && operation->context != context)
            operation = operation->next;
        found = operation && ofi_list_remove(posted, operation);
        if (found)
            ofi_operation_end(operation, -FI_ECANCELED, -LH_ECANCELED);
    }
    pthread_mutex_unlock(&endpoint->domain->lock);
    return found ? 0 : -FI_ENOENT;
}

static int ep_getopt(fid_t fid, int level, int option, void *value, size_t *bytes)
{
    const struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (*bytes < sizeof endpoint->multi_recv_min)
        return -FI_ETOOSMALL;
    memcpy(value, &endpoint->multi_recv_min, sizeof endpoint->multi_recv_min);
    *bytes = sizeof endpoint->multi_recv_min;
    return 0;
}

static int ep_setopt(fid_t fid, int level, int option, const void *value, size_t bytes)
{
    struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (bytes != sizeof endpoint->multi_recv_min)
        return -FI_EINVAL;
    memcpy(&endpoint->multi_recv_min, value, bytes);
    return 0;
}

static int ep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **out,
                     void *context)
{
    (void)fid, (void)index, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int ep_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **out,
                     void *context)
{
    (void)fid, (void)index, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static ssize_t ep_size_left(struct fid_ep *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static int cm_getname(fid_t fid, void *address, size_t *bytes)
{
    const struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    size_t room = *bytes;
    *bytes = sizeof endpoint->name;
    if (address && room)
        memcpy(address, &endpoint->name, room < sizeof endpoint->name ? room : sizeof endpoint->name);
    return room < sizeof endpoint->name ? -FI_ETOOSMALL : 0;
}

static int cm_setname(fid_t fid, void *address, size_t bytes)
{
    (void)fid, (void)address, (void)bytes;
    return -FI_ENOSYS;
}

static int cm_getpeer(struct fid_ep *fid, void *address, size_t *bytes)
{
    (void)fid, (void)address, (void)bytes;
    return -FI_ENOSYS;
}

static int cm_connect(struct fid_ep *fid, const void *address, const void *parameter, size_t bytes)
{
    (void)fid, (void)address, (void)parameter, (void)bytes;
    return -FI_ENOSYS;
}

static int cm_listen(struct fid_pep *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static int cm_accept(struct fid_ep *fid, const void *parameter, size_t bytes)
{
    (void)fid, (void)parameter, (void)bytes;
    return -FI_ENOSYS;
}

static int cm_reject(struct fid_pep *fid, fid_t handle, const void *parameter, size_t bytes)
{
    (void)fid, (void)handle, (void)parameter, (void)bytes;
    return -FI_ENOSYS;
}

static int cm_shutdown(struct fid_ep *fid, uint64_t flags)
{
    (void)fid, (void)flags;
    return -FI_ENOSYS;
}

static int cm_join(struct fid_ep *fid, const void *address, uint64_t flags, struct fid_mc **mc,
                   void *context)
{
    (void)fid, (void)address, (void)flags, (void)mc, (void)context;
    return -FI_ENOSYS;
}

static int bind_cq(struct ofi_endpoint *endpoint, struct ofi_cq *cq, uint64_t flags)
{
    bool is_selective = flags & FI_SELECTIVE_COMPLETION;
    if (!(flags & (FI_TRANSMIT | FI_RECV)) || flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
        return -FI_EBADFLAGS;
    if ((flags & FI_TRANSMIT && endpoint->send_cq) || (flags & FI_RECV && endpoint->recv_cq))
        return -FI_EINVAL;
    if (flags & FI_TRANSMIT) {
        endpoint->send_cq = cq;
        endpoint->is_send_selective = is_selective;
        cq->references++;
    }
    if (flags & FI_RECV) {
        endpoint->recv_cq = cq;
        endpoint->is_recv_selective = is_selective;
        cq->references++;
    }
    return 0;
}

static int bind_counter(struct ofi_endpoint *endpoint, struct ofi_counter *counter, uint64_t flags)
{
    const uint64_t unused = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if (flags & ~(FI_SEND | FI_RECV | unused))
        return -FI_EBADFLAGS;
    if ((flags & FI_SEND && endpoint->send_counter) || (flags & FI_RECV && endpoint->recv_counter))
        return -FI_EINVAL;
    if (flags & FI_SEND) {
        endpoint->send_counter = counter;
        counter->references++;
    }
    if (flags & FI_RECV) {
        endpoint->recv_counter = counter;
        counter->references++;
    }
    return 0;
}

static int bind_av(struct ofi_endpoint *endpoint, struct ofi_av *av)
{
    if (endpoint->av)
        return -FI_EINVAL;
    endpoint->av = av;
    av->references++;
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
    struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    int error = -FI_ENOSYS;
    pthread_mutex_lock(&endpoint->domain->lock);
    if (endpoint->is_enabled)
        error = -FI_EOPBADSTATE;
    else if (bound->fclass == FI_CLASS_CQ)
        error = bind_cq(endpoint, container_of(bound, struct ofi_cq, fid.fid), flags);
    else if (bound->fclass == FI_CLASS_CNTR)
        error = bind_counter(endpoint, container_of(bound, struct ofi_counter, fid.fid), flags);
    else if (bound->fclass == FI_CLASS_AV)
        error = bind_av(endpoint, container_of(bound, struct ofi_av, fid.fid));
    else if (bound->fclass == FI_CLASS_EQ)
        error = 0; /* it never gets an event */
    pthread_mutex_unlock(&endpoint->domain->lock);
    return error;
}

static int ep_control(struct fid *fid, int command, void *argument)
{
    struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    (void)argument;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    if (!endpoint->av)
        return -FI_ENOAV;
    if ((!endpoint->send_cq && !endpoint->send_counter) || (!endpoint->recv_cq && !endpoint->recv_counter))
        return -FI_ENOCQ;
    pthread_mutex_lock(&endpoint->domain->lock);
    endpoint->is_enabled = true;
    endpoint->sources_epoch = endpoint->av->epoch;
    pthread_mutex_unlock(&endpoint->domain->lock);
    return 0;
}

/* Locked. What was accepted leaves, then the links end. */
static void end_links(struct ofi_endpoint *endpoint)
{
    struct ofi_domain *domain = endpoint->domain;
    uint64_t until_ns = ofi_now_ns() + CLOSE_TIMEOUT_NS;
    while (endpoint->unsent > 0 && ofi_now_ns() < until_ns) {
        ofi_domain_poll(domain);
        if (endpoint->unsent > 0)
            ofi_domain_wait(domain, &domain->changed, ofi_now_ns() + CLOSE_TURN_NS);
    }
    struct ofi_endpoint **at = &domain->endpoints;
    while (*at != endpoint) /* it is in the list */
        at = &(*at)->next;
    *at = endpoint->next;
    endpoint->is_closing = true;
    ofi_link_end_all(endpoint);
    while (ofi_link_has_any(endpoint)) {
        if (ofi_link_reap(domain))
            continue;
        ofi_domain_poll(domain);
        if (ofi_link_has_any(endpoint))
            ofi_domain_wait(domain, &domain->changed, ofi_now_ns() + CLOSE_TURN_NS);
    }
}

static int ep_close(struct fid *fid)
{
    struct ofi_endpoint *endpoint = container_of(fid, struct ofi_endpoint, fid.fid);
    struct ofi_domain *domain = endpoint->domain;
    pthread_mutex_lock(&domain->lock);
    end_links(endpoint);
    if (endpoint->av)
        endpoint->av->references--;
    if (endpoint->send_cq)
        endpoint->send_cq->references--;
    if (endpoint->recv_cq)
        endpoint->recv_cq->references--;
    if (endpoint->send_counter)
        endpoint->send_counter->references--;
    if (endpoint->recv_counter)
        endpoint->recv_counter->references--;
    domain->references--;
    pthread_mutex_unlock(&domain->lock);
    free(endpoint->out);
    free(endpoint);
    return 0;
}

static struct fi_ops ops = {.size = sizeof ops,
                            .close = ep_close,
                            .bind = ep_bind,
                            .control = ep_control,
                            .ops_open = ofi_no_ops_open};
static struct fi_ops_ep ep_ops = {.size = sizeof ep_ops,
                                  .cancel = ep_cancel,
                                  .getopt = ep_getopt,
                                  .setopt = ep_setopt,
                                  .tx_ctx = ep_tx_ctx,
                                  .rx_ctx = ep_rx_ctx,
                                  .rx_size_left = ep_size_left,
                                  .tx_size_left = ep_size_left};
static struct fi_ops_cm cm_ops = {.size = sizeof cm_ops,
                                  .setname = cm_setname,
                                  .getname = cm_getname,
                                  .getpeer = cm_getpeer,
                                  .connect = cm_connect,
                                  .listen = cm_listen,
                                  .accept = cm_accept,
                                  .reject = cm_reject,
                                  .shutdown = cm_shutdown,
                                  .join = cm_join};
static struct fi_ops_msg msg_ops = {.size = sizeof msg_ops,
                                    .recv = msg_recv,
                                    .recvv = msg_recvv,
                                    .recvmsg = msg_recvmsg,
                                    .send = msg_send,
                                    .sendv = msg_sendv,
                                    .sendmsg = msg_sendmsg,
                                    .inject = msg_inject,
                                    .senddata = msg_senddata,
                                    .injectdata = msg_injectdata};
static struct fi_ops_tagged tagged_ops = {.size = sizeof tagged_ops,
                                          .recv = tagged_recv,
                                          .recvv = tagged_recvv,
                                          .recvmsg = tagged_recvmsg,
                                          .send = tagged_send,
                                          .sendv = tagged_sendv,
                                          .sendmsg = tagged_sendmsg,
                                          .inject = tagged_inject,
                                          .senddata = tagged_senddata,
                                          .injectdata = tagged_injectdata};

int ofi_endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
    struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid);
    if (!info || !info->ep_attr ||
        (info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC))
        return -FI_EINVAL;
    struct ofi_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return -FI_ENOMEM;
    endpoint->fid.fid = (struct fid){.fclass = FI_CLASS_EP, .context = context, .ops = &ops};
    endpoint->fid.ops = &ep_ops;
    endpoint->fid.cm = &cm_ops;
    endpoint->fid.msg = &msg_ops;
    endpoint->fid.tagged = &tagged_ops;
    endpoint->domain = domain;
    endpoint->name = domain->name;
    endpoint->caps = info->caps;
    endpoint->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->recv_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->multi_recv_min = MULTI_RECV_MIN_DEFAULT;
    if (getrandom(endpoint->name.token, OFI_TOKEN_BYTES, 0) != OFI_TOKEN_BYTES) {
        free(endpoint);
        return -FI_EIO;
    }
    pthread_mutex_lock(&domain->lock);
    endpoint->next = domain->endpoints;
    domain->endpoints = endpoint;
    domain->references++;
    pthread_mutex_unlock(&domain->lock);
    *out = &endpoint->fid;
    return 0;
}
