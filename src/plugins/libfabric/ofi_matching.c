/*
 * ofi_matching.c - which message a receive gets: the first that fits, in the order of arrival from a peer;
 * and which receive a message gets: the first that fits, in the order of posting. Receives may name a
 * source, so one list has the receives for all peers: the library's tags choose among the messages of one
 * connection. And the end of operations, with their completions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists --------------------------------------------------------------------------------------------- */

void ofi_list_add(struct ofi_list *list, struct ofi_operation *operation)
{
    operation->next = NULL;
    if (list->last)
        list->last->next = operation;
    else
        list->first = operation;
    list->last = operation;
}

struct ofi_operation *ofi_list_take(struct ofi_list *list)
{
    struct ofi_operation *operation = list->first;
    if (!operation)
        return NULL;
    list->first = operation->next;
    if (!list->first)
        list->last = NULL;
    operation->next = NULL;
    return operation;
}

bool ofi_list_remove(struct ofi_list *list, const struct ofi_operation *operation)
{
    struct ofi_operation *before = NULL;
    for (struct ofi_operation *at = list->first; at; before = at, at = at->next) {
        if (at != operation)
            continue;
        if (before)
            before->next = at->next;
        else
            list->first = at->next;
        if (list->last == at)
            list->last = before;
        at->next = NULL;
        return true;
    }
    return false;
}

void ofi_arrivals_add(struct ofi_arrivals *arrivals, struct ofi_arrival *arrival)
{
    arrival->next = NULL;
    if (arrivals->last)
        arrivals->last->next = arrival;
    else
        arrivals->first = arrival;
    arrivals->last = arrival;
}

void ofi_arrivals_remove(struct ofi_arrivals *arrivals, const struct ofi_arrival *arrival)
{
    struct ofi_arrival *before = NULL, *at = arrivals->first;
    for (; at && at != arrival; at = at->next)
        before = at;
    if (!at)
        return;
    if (before)
        before->next = at->next;
    else
        arrivals->first = at->next;
    if (arrivals->last == at)
        arrivals->last = before;
    at->next = NULL;
}

/* ---- the choice ---------------------------------------------------------------------------------------- */

bool ofi_wanted_fits(const struct ofi_wanted *wanted, uint64_t tag, fi_addr_t source)
{
    bool is_source = wanted->source == FI_ADDR_UNSPEC || wanted->source == source;
    return is_source && ((wanted->tag ^ tag) & ~wanted->ignore) == 0;
}

struct ofi_operation *ofi_matching_receive(struct ofi_matching *matching, uint64_t tag, fi_addr_t source)
{
    for (struct ofi_operation *at = matching->posted.first; at; at = at->next) {
        struct ofi_wanted wanted = {at->tag, at->ignore, at->address};
        if (ofi_wanted_fits(&wanted, tag, source))
            return at;
    }
    return NULL;
}

struct ofi_arrival *ofi_matching_arrival(const struct ofi_matching *matching,
                                         const struct ofi_wanted *wanted)
{
    for (struct ofi_arrival *at = matching->arrived.first; at; at = at->next)
        if (ofi_wanted_fits(wanted, at->frame.tag, at->source))
            return at;
    return NULL;
}

struct ofi_arrival *ofi_matching_claimed(const struct ofi_matching *matching, const void *context)
{
    struct ofi_arrival *at = matching->claimed.first;
    while (at && at->claim != context)
        at = at->next;
    return at;
}

/* ---- the end of operations ----------------------------------------------------------------------------- */

void ofi_operation_free(struct ofi_operation *operation)
{
    free(operation->copy);
    free(operation);
}

static void report(struct ofi_operation *operation, const struct ofi_entry *entry, bool is_send)
{
    struct ofi_endpoint *endpoint = operation->endpoint;
    struct ofi_cq *cq = is_send ? endpoint->send_cq : endpoint->recv_cq;
    struct ofi_counter *counter = is_send ? endpoint->send_counter : endpoint->recv_counter;
    bool is_error = entry->completion.err != 0;
    if (endpoint->is_closing)
        return;
    if (cq && (is_error || operation->flags & FI_COMPLETION))
        ofi_cq_add(cq, entry);
    if (counter)
        ofi_counter_add(counter, is_error);
}

static uint64_t kind_flags(const struct ofi_operation *operation)
{
    return (operation->flags & FI_TAGGED ? FI_TAGGED : FI_MSG) | (operation->flags & FI_REMOTE_CQ_DATA);
}

static void report_send(struct ofi_operation *operation, int error, int provider_error)
{
    struct ofi_entry entry = {.source = FI_ADDR_NOTAVAIL};
    entry.completion = (struct fi_cq_err_entry){.op_context = operation->context,
                                                .flags = FI_SEND | kind_flags(operation),
                                                .len = operation->bytes,
                                                .tag = operation->tag,
                                                .err = -error,
                                                .prov_errno = -provider_error};
    bool is_unasked = operation->flags & FI_INJECT && !(operation->flags & FI_COMPLETION);
    if (!error || !(operation->is_accepted || is_unasked))
        report(operation, &entry, true);
    else if (!operation->endpoint->is_closing)
        FI_WARN(&ofi_provider, FI_LOG_EP_DATA, "message lost: %s\n", lh_strerror(provider_error));
}

void ofi_operation_accept(struct ofi_operation *operation)
{
    report_send(operation, 0, 0);
    operation->is_accepted = true;
}

/* The buffer of a receive of several messages is the program's again with this completion. */
static bool is_last_part(const struct ofi_operation *parent)
{
    return parent->is_done && parent->children == 0;
}

static void report_recv(struct ofi_operation *operation, int error, int provider_error)
{
    size_t capacity = operation->bytes;
    bool is_cut = !error && operation->message_bytes > capacity;
    struct ofi_entry entry = {.source = operation->address};
    entry.completion = (struct fi_cq_err_entry){
        .op_context = operation->context,
        .flags = FI_RECV | kind_flags(operation),
        .len = error    ? 0
               : is_cut ? capacity
                        : operation->message_bytes,
        .buf = operation->count ? operation->iov[0].iov_base : NULL,
        .data = operation->data,
        .tag = operation->tag,
        .olen = is_cut ? operation->message_bytes - capacity : 0,
        .err = error    ? -error
               : is_cut ? FI_ETRUNC
                        : 0,
        .prov_errno = error    ? -provider_error
                      : is_cut ? LH_ETRUNCATED
                               : 0,
    };
    struct ofi_operation *parent = operation->parent;
    if (parent) {
        parent->children--;
        if (is_last_part(parent)) {
            entry.completion.flags |= FI_MULTI_RECV;
            ofi_operation_free(parent);
        }
    }
    report(operation, &entry, false);
}

void ofi_operation_end(struct ofi_operation *operation, int error, int provider_error)
{
    bool is_send = operation->flags & FI_SEND;
    if (!operation->is_done) {
        operation->is_done = true;
        operation->endpoint->unsent -= is_send && !operation->is_rendezvous;
        if (is_send && (error || !operation->is_accepted))
            report_send(operation, error, provider_error);
        else if (!is_send)
            report_recv(operation, error, provider_error);
    }
    if (operation->active == 0 && operation->children == 0) /* else the last of those frees it */
        ofi_operation_free(operation);
}

/* ---- buffers in parts ---------------------------------------------------------------------------------- */

size_t ofi_scatter(const struct iovec *iov, size_t count, size_t offset, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    size_t copied = 0;
    for (size_t i = 0; i < count && copied < bytes; i++) {
        if (offset >= iov[i].iov_len) {
            offset -= iov[i].iov_len;
            continue;
        }
        size_t part = iov[i].iov_len - offset;
        part = part < bytes - copied ? part : bytes - copied;
        memcpy((uint8_t *)iov[i].iov_base + offset, at + copied, part);
        copied += part;
        offset = 0;
    }
    return copied;
}

void ofi_gather(void *to, const struct iovec *iov, size_t count)
{
    uint8_t *at = to;
    for (size_t i = 0; i < count; i++) {
        if (iov[i].iov_len)
            memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
}
