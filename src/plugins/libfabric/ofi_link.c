/*
 * ofi_link.c - the messages in the connections between endpoints.
 *
 * Messages from one endpoint to another have a connection of their own, which the sender opens with the first
 * of them: a link of frames. A frame is a small message of the library: 40 bytes that describe the message,
 * and its payload if that fits. Frames keep their order, and are matched in it (ofi_matching.c).
 *
 * A longer message is a rendezvous: its frame has no payload. When it has a receive, the receiver posts the
 * buffer in a second connection, the link of bulk, and sends a grant. The sender then sends the payload
 * there: the n-th grant is for the n-th send. So neither side holds what has no receive, and the clear-to-
 * send of the library travels beside the grant: from the frame to the first payload one round trip passes.
 * A grant has the number of bytes that the receive has room for; 0: the message is over.
 *
 * A link that ends is closed by ofi_link_reap(), and freed when its requests and arrivals have gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_link.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Messages of a peer that have no receive: beyond, its next ones stay with it. */
#define HELD_MAX ((size_t)64 << 20)

bool ofi_is_exhaustion(int error)
{
    return error == -LH_EAGAIN || error == -LH_ENOMEM;
}

void ofi_link_add_work(struct ofi_link *link)
{
    struct ofi_domain *domain = link->domain;
    if (link->is_in_work)
        return;
    link->is_in_work = true;
    link->next_work = NULL;
    if (domain->last_work)
        domain->last_work->next_work = link;
    else
        domain->first_work = link;
    domain->last_work = link;
}

static void end_list(struct ofi_list *list, int error)
{
    struct ofi_operation *operation;
    while ((operation = ofi_list_take(list)))
        ofi_operation_end(operation, ofi_error(error), error);
}

/* ---- links: beginning and end -------------------------------------------------------------------------- */

struct ofi_link *ofi_link_new(struct ofi_domain *domain, enum ofi_link_kind kind)
{
    struct ofi_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->domain = domain;
    link->kind = kind;
    link->address = link->source = FI_ADDR_NOTAVAIL;
    link->grants_end = &link->grants;
    link->next = domain->links;
    domain->links = link;
    return link;
}

static void link_free_if_over(struct ofi_link *link)
{
    if (link->state != OFI_LINK_CLOSED || link->requests || link->references || link->is_in_work)
        return;
    struct ofi_link **at = &link->domain->links;
    while (*at != link) /* it is in the list */
        at = &(*at)->next;
    *at = link->next;
    if (link->other)
        link->other->other = NULL;
    pthread_cond_broadcast(&link->domain->changed);
    free(link->slots);
    free(link->memory);
    free(link);
}

static void arrival_free(struct ofi_arrival *arrival)
{
    struct ofi_link *link = arrival->link;
    size_t bytes =
        sizeof *arrival + (arrival->frame.kind == OFI_FRAME_EAGER ? (size_t)arrival->frame.bytes : 0);
    link->held -= bytes;
    link->references--;
    if (link->state == OFI_LINK_UP)
        ofi_link_add_work(link); /* it may have been over its limit */
    link_free_if_over(link);
    free(arrival);
}

/* Rendezvous of a link that has ended can never be received. */
static void drop_arrivals(struct ofi_arrivals *arrivals, const struct ofi_link *link)
{
    for (struct ofi_arrival *at = arrivals->first, *next; at; at = next) {
        next = at->next;
        if (at->link != link || at->frame.kind != OFI_FRAME_RENDEZVOUS)
            continue;
        ofi_arrivals_remove(arrivals, at);
        arrival_free(at);
    }
}

static fi_addr_t source_of(struct ofi_link *link)
{
    const struct ofi_av *av = link->endpoint ? link->endpoint->av : NULL;
    if (av && (!link->has_source || link->source_epoch != av->epoch)) {
        link->source = ofi_av_find(av, &link->peer);
        link->source_epoch = av->epoch;
        link->has_source = true;
    }
    return link->source;
}

/* The peer is dead: receives that wait for it alone end, and later ones, until there is a connection. */
static void end_directed(struct ofi_link *link, int error)
{
    fi_addr_t source = link->kind == OFI_LINK_IN_FRAMES ? source_of(link) : link->address;
    if (source == FI_ADDR_NOTAVAIL)
        return;
    ofi_av_note(link->endpoint->av, source, error);
    for (int i = 0; i < 2; i++) {
        struct ofi_list *posted = &link->endpoint->matching[i].posted;
        for (struct ofi_operation *at = posted->first, *next; at; at = next) {
            next = at->next;
            if (at->address == source && ofi_list_remove(posted, at))
                ofi_operation_end(at, ofi_error(error), error);
        }
    }
}

static void free_grants(struct ofi_link *link)
{
    while (link->grants) {
        struct ofi_grant *grant = link->grants;
        link->grants = grant->next;
        link->endpoint->unsent--;
        free(grant);
    }
    link->grants_end = &link->grants;
}

/* Ends a link, and the other one of its pair. error: of the library, negative. */
void ofi_link_end(struct ofi_link *link, int error)
{
    struct ofi_endpoint *endpoint = link->endpoint;
    if (link->state >= OFI_LINK_OVER)
        return;
    link->domain->strangers -= link->kind == OFI_LINK_NEW;
    link->state = OFI_LINK_OVER;
    if (endpoint && link->kind == OFI_LINK_OUT_FRAMES && link->address < endpoint->out_count &&
        endpoint->out[link->address] == link)
        endpoint->out[link->address] = NULL;
    end_list(&link->unsent, error);
    end_list(&link->granted, error);
    end_list(&link->waiting, error);
    end_list(&link->landing, error);
    free_grants(link);
    if (endpoint && link->kind == OFI_LINK_IN_FRAMES) {
        for (int i = 0; i < 2; i++) {
            drop_arrivals(&endpoint->matching[i].arrived, link);
            drop_arrivals(&endpoint->matching[i].claimed, link);
        }
    }
    bool has_frames = link->kind == OFI_LINK_IN_FRAMES || link->kind == OFI_LINK_OUT_FRAMES;
    if (endpoint && has_frames && error != -LH_ECLOSED && !endpoint->is_closing)
        end_directed(link, error);
    if (link->other)
        ofi_link_end(link->other, error);
    pthread_cond_signal(&link->domain->wake);
}

void ofi_link_fail(struct ofi_link *link, const char *what, int error, const char *why)
{
    char where[OFI_WHERE_MAX] = "unknown peer";
    bool is_wanted = error == -LH_ECLOSED || !link->endpoint || link->endpoint->is_closing;
    if (link->state >= OFI_LINK_OVER)
        return;
    if (link->kind != OFI_LINK_NEW)
        ofi_name_where(&link->peer, where);
    FI_LOG(&ofi_provider, is_wanted ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_EP_CTRL, "%s: %s: %s\n", where,
           what, why);
    ofi_link_end(link, error);
}

bool ofi_link_reap(struct ofi_domain *domain)
{
    struct ofi_link *link = domain->links;
    while (link && (link->state != OFI_LINK_OVER || link->is_in_thread))
        link = link->next;
    if (!link)
        return false;
    link->state = OFI_LINK_CLOSING;
    pthread_mutex_unlock(&domain->lock);
    if (link->connection)
        lh_close(link->connection);
    pthread_mutex_lock(&domain->lock);
    link->connection = NULL;
    link->state = OFI_LINK_CLOSED;
    link_free_if_over(link);
    return true;
}

/* ---- frames -------------------------------------------------------------------------------------------- */

bool ofi_link_make_slots(struct ofi_link *link, uint64_t count, size_t bytes)
{
    free(link->slots);
    free(link->memory);
    link->slots = calloc(count, sizeof *link->slots);
    link->memory = malloc(count * bytes);
    link->slot_count = count;
    link->slot_bytes = bytes;
    link->posted = link->taken = 0;
    for (uint64_t i = 0; link->slots && i < count; i++)
        link->slots[i].transfer = (struct ofi_transfer){OFI_FRAME_RECV, link, NULL};
    return link->slots && link->memory;
}

/* False: later. */
static bool post_slots(struct ofi_link *link)
{
    while (link->state == OFI_LINK_UP && link->posted < link->taken + link->slot_count) {
        uint64_t index = link->posted % link->slot_count;
        struct ofi_slot *slot = &link->slots[index];
        slot->has_arrived = false;
        int error =
            lh_post_recv(link->connection, link->memory + index * link->slot_bytes, link->slot_bytes, NULL,
                         link->domain->queue, (uint64_t)(uintptr_t)&slot->transfer, NULL);
        if (ofi_is_exhaustion(error))
            return false;
        if (error && link->posted == link->taken)
            ofi_link_fail(link, "receive", error, lh_strerror(error));
        if (error)
            return true; /* the receives before this one end with the reason */
        link->requests++;
        link->posted++;
    }
    return true;
}

/* Sends a message of up to OFI_IOV_MAX + 1 parts. */
int ofi_link_post(struct ofi_link *link, const struct lh_part *parts, uint32_t count,
                  struct ofi_transfer *transfer)
{
    struct lh_message message = {.parts = parts,
                                 .count = count,
                                 .queue = link->domain->queue,
                                 .user = (uint64_t)(uintptr_t)transfer};
    int error = lh_sendmsg(link->connection, &message, NULL);
    link->requests += !error;
    return error;
}

struct ofi_frame ofi_frame_to_wire(const struct ofi_frame *frame)
{
    struct ofi_frame wire = {.kind = frame->kind, .flags = frame->flags};
    wire.tag = htole64(frame->tag);
    wire.data = htole64(frame->data);
    wire.bytes = htole64(frame->bytes);
    wire.id = htole64(frame->id);
    return wire;
}

static struct ofi_frame from_wire(const uint8_t *bytes)
{
    struct ofi_frame frame;
    memcpy(&frame, bytes, sizeof frame);
    frame.tag = le64toh(frame.tag);
    frame.data = le64toh(frame.data);
    frame.bytes = le64toh(frame.bytes);
    frame.id = le64toh(frame.id);
    return frame;
}

/* The parts of up to `bytes` of an operation. */
static uint32_t add_parts(const struct ofi_operation *operation, uint64_t bytes, struct lh_part *parts)
{
    uint32_t count = 0;
    if (operation->copy) {
        parts[count++] = (struct lh_part){.address = operation->copy, .bytes = bytes};
        return count;
    }
    for (size_t i = 0; i < operation->count && bytes > 0; i++) {
        size_t part = operation->iov[i].iov_len < bytes ? operation->iov[i].iov_len : bytes;
        if (part == 0)
            continue;
        parts[count++] = (struct lh_part){.address = operation->iov[i].iov_base, .bytes = part};
        bytes -= part;
    }
    return count;
}

int ofi_link_send_frame(struct ofi_link *link, struct ofi_operation *operation)
{
    struct lh_part parts[OFI_IOV_MAX + 1] = {
        {.address = &operation->frame, .bytes = sizeof operation->frame}};
    uint32_t count = 1;
    operation->link = link;
    operation->frame_transfer = (struct ofi_transfer){OFI_FRAME_SEND, link, operation};
    if (!operation->is_rendezvous)
        count += add_parts(operation, operation->bytes, parts + 1);
    int error = ofi_link_post(link, parts, count, &operation->frame_transfer);
    if (error)
        return error;
    operation->active++;
    if (operation->is_rendezvous)
        ofi_list_add(&link->waiting, operation);
    return 0;
}

/* False: later. */
static bool send_queued(struct ofi_link *link)
{
    while (link->state == OFI_LINK_UP && link->unsent.first) {
        struct ofi_operation *operation = ofi_list_take(&link->unsent);
        int error = ofi_link_send_frame(link, operation);
        if (ofi_is_exhaustion(error)) { /* it stays the first */
            operation->next = link->unsent.first;
            link->unsent.first = operation;
            link->unsent.last = link->unsent.last ? link->unsent.last : operation;
            return false;
        }
        link->unsent_count--;
        if (error) {
            ofi_operation_end(operation, ofi_error(error), error);
            ofi_link_fail(link, "send", error, lh_last_error());
        }
    }
    return true;
}

/* ---- bulk ---------------------------------------------------------------------------------------------- */

/* Starts the sends that are granted, or the receives that land, in the link of bulk. False: later. */
static bool move_bulk(struct ofi_link *link, struct ofi_list *list, bool is_send)
{
    struct ofi_link *bulk = link->other;
    while (link->state == OFI_LINK_UP && list->first && bulk && bulk->state == OFI_LINK_UP) {
        struct ofi_operation *operation = list->first;
        struct lh_part parts[OFI_IOV_MAX];
        uint64_t bytes = is_send ? operation->granted : operation->bytes;
        operation->bulk_transfer =
            (struct ofi_transfer){is_send ? OFI_BULK_SEND : OFI_BULK_RECV, bulk, operation};
        struct lh_message message = {.parts = parts,
                                     .count = add_parts(operation, bytes, parts),
                                     .queue = link->domain->queue,
                                     .user = (uint64_t)(uintptr_t)&operation->bulk_transfer};
        int error = is_send ? lh_sendmsg(bulk->connection, &message, NULL)
                            : lh_recvmsg(bulk->connection, &message, NULL);
        if (ofi_is_exhaustion(error))
            return false;
        if (error) {
            ofi_link_fail(link, is_send ? "send" : "receive", error, lh_last_error());
            break;
        }
        bulk->requests++;
        operation->active++;
        ofi_list_take(list);
    }
    return true;
}

/* False: later. */
static bool send_grants(struct ofi_link *link)
{
    while (link->state == OFI_LINK_UP && link->grants) {
        struct ofi_grant *grant = link->grants;
        struct lh_part part = {.address = &grant->frame, .bytes = sizeof grant->frame};
        int error = ofi_link_post(link, &part, 1, &grant->transfer);
        if (ofi_is_exhaustion(error))
            return false;
        if (error) {
            ofi_link_fail(link, "grant", error, lh_last_error());
            break;
        }
        link->grants = grant->next;
        if (!link->grants)
            link->grants_end = &link->grants;
    }
    return true;
}

/* A rendezvous gets room for `bytes`. */
static bool add_grant(struct ofi_link *link, uint64_t id, uint64_t bytes)
{
    struct ofi_grant *grant = calloc(1, sizeof *grant);
    if (!grant) {
        ofi_link_fail(link, "grant", -LH_ENOMEM, "out of memory");
        return false;
    }
    const struct ofi_frame frame = {.kind = OFI_FRAME_GRANT, .bytes = bytes, .id = id};
    grant->transfer = (struct ofi_transfer){OFI_CONTROL_SEND, link, NULL};
    grant->frame = ofi_frame_to_wire(&frame);
    link->endpoint->unsent++;
    *link->grants_end = grant;
    link->grants_end = &grant->next;
    ofi_link_add_work(link);
    return true;
}

/* ---- a message and its receive ------------------------------------------------------------------------- */

/* The operation has left its list. */
static void deliver(struct ofi_link *link, const struct ofi_frame *frame, const uint8_t *payload,
                    struct ofi_operation *operation)
{
    operation->link = link;
    operation->tag = frame->tag;
    operation->data = frame->data;
    operation->address = source_of(link);
    operation->message_bytes = frame->bytes;
    if (frame->flags & OFI_FRAME_DATA)
        operation->flags |= FI_REMOTE_CQ_DATA;
    if (frame->kind == OFI_FRAME_EAGER) {
        ofi_scatter(operation->iov, operation->count, 0, payload, frame->bytes);
        ofi_operation_end(operation, 0, 0);
        return;
    }
    if (link->state != OFI_LINK_UP) {
        ofi_operation_end(operation, -FI_ECONNRESET, -LH_EPEER);
        return;
    }
    uint64_t room = operation->bytes < frame->bytes ? operation->bytes : frame->bytes;
    if (room > 0)
        ofi_list_add(&link->landing, operation);
    bool is_granted = add_grant(link, frame->id, room);
    if (room == 0)
        ofi_operation_end(operation, is_granted ? 0 : -FI_ENOMEM, is_granted ? 0 : -LH_ENOMEM);
}

/* Cuts the place of a message off a buffer for several. NULL: no memory. */
static struct ofi_operation *cut_part(struct ofi_matching *matching, struct ofi_operation *parent,
                                      uint64_t bytes)
{
    struct ofi_operation *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    size_t room = parent->bytes - parent->used;
    *part = *parent;
    part->next = NULL;
    part->parent = parent;
    part->iov[0].iov_base = (uint8_t *)parent->iov[0].iov_base + parent->used;
    part->iov[0].iov_len = part->bytes = room < bytes ? room : (size_t)bytes;
    part->count = 1;
    part->flags &= ~FI_MULTI_RECV;
    parent->used += part->bytes;
    parent->children++;
    if (parent->bytes - parent->used < parent->endpoint->multi_recv_min || parent->used == parent->bytes) {
        ofi_list_remove(&matching->posted, parent);
        parent->is_done = true;
    }
    return part;
}

/* The receive, which is in the list, leaves it, or a part of it does. NULL: no memory. */
static struct ofi_operation *take_receive(struct ofi_matching *matching, struct ofi_operation *operation,
                                          uint64_t bytes)
{
    if (operation->flags & FI_MULTI_RECV)
        return cut_part(matching, operation, bytes);
    ofi_list_remove(&matching->posted, operation);
    return operation;
}

/* A message waits for its receive. False: no memory. */
static bool hold(struct ofi_link *link, struct ofi_matching *matching, const struct ofi_frame *frame,
                 const uint8_t *payload)
{
    size_t bytes = frame->kind == OFI_FRAME_EAGER ? (size_t)frame->bytes : 0;
    struct ofi_arrival *arrival = malloc(sizeof *arrival + bytes);
    if (!arrival)
        return false;
    *arrival = (struct ofi_arrival){.link = link, .frame = *frame, .source = source_of(link)};
    memcpy(arrival->payload, payload, bytes);
    link->held += sizeof *arrival + bytes;
    link->references++;
    ofi_arrivals_add(&matching->arrived, arrival);
    return true;
}

void ofi_link_deliver(struct ofi_arrival *arrival, struct ofi_operation *operation)
{
    deliver(arrival->link, &arrival->frame, arrival->payload, operation);
    arrival_free(arrival);
}

void ofi_link_discard(struct ofi_arrival *arrival)
{
    if (arrival->frame.kind == OFI_FRAME_RENDEZVOUS && arrival->link->state == OFI_LINK_UP)
        add_grant(arrival->link, arrival->frame.id, 0);
    arrival_free(arrival);
}

static void refresh_sources(struct ofi_endpoint *endpoint)
{
    if (endpoint->sources_epoch == endpoint->av->epoch)
        return;
    endpoint->sources_epoch = endpoint->av->epoch;
    for (int i = 0; i < 2; i++)
        for (struct ofi_arrival *at = endpoint->matching[i].arrived.first; at; at = at->next)
            at->source = source_of(at->link);
}

struct ofi_arrival *ofi_link_find(struct ofi_endpoint *endpoint, bool is_tagged,
                                  const struct ofi_wanted *wanted)
{
    refresh_sources(endpoint);
    return ofi_matching_arrival(&endpoint->matching[is_tagged], wanted);
}

/* No message has come for a receive that waits for one source, to which connections fail. */
static void end_if_dead(struct ofi_matching *matching, struct ofi_operation *operation)
{
    const struct ofi_address *source = ofi_av_address(operation->endpoint->av, operation->address);
    if (!source || !source->error)
        return;
    ofi_list_remove(&matching->posted, operation);
    ofi_operation_end(operation, ofi_error(source->error), source->error);
}

void ofi_link_receive(struct ofi_endpoint *endpoint, struct ofi_operation *operation)
{
    bool is_tagged = operation->flags & FI_TAGGED, is_multi = operation->flags & FI_MULTI_RECV;
    struct ofi_matching *matching = &endpoint->matching[is_tagged];
    const struct ofi_wanted wanted = {operation->tag, operation->ignore, operation->address};
    ofi_list_add(&matching->posted, operation);
    for (;;) { /* once, or for each message in a buffer for several */
        struct ofi_arrival *arrival = ofi_link_find(endpoint, is_tagged, &wanted);
        struct ofi_operation *part =
            arrival ? take_receive(matching, operation, arrival->frame.bytes) : NULL;
        if (!arrival)
            end_if_dead(matching, operation);
        if (!part)
            return;
        bool is_over = !is_multi || operation->is_done;
        ofi_arrivals_remove(&matching->arrived, arrival);
        ofi_link_deliver(arrival, part);
        if (is_over)
            return;
    }
}

/* ---- frames that arrive -------------------------------------------------------------------------------- */

static bool is_valid(const struct ofi_link *link, const struct ofi_frame *frame, size_t payload)
{
    if (link->kind == OFI_LINK_OUT_FRAMES)
        return frame->kind == OFI_FRAME_GRANT && payload == 0;
    if (frame->flags & ~(OFI_FRAME_TAGGED | OFI_FRAME_DATA))
        return false;
    if (frame->kind == OFI_FRAME_EAGER)
        return frame->bytes == payload;
    return frame->kind == OFI_FRAME_RENDEZVOUS && payload == 0 && frame->bytes <= OFI_MESSAGE_MAX;
}

static void on_grant(struct ofi_link *link, const struct ofi_frame *frame)
{
    struct ofi_operation *operation = link->waiting.first;
    while (operation && le64toh(operation->frame.id) != frame->id)
        operation = operation->next;
    if (!operation || frame->bytes > operation->bytes) {
        ofi_link_fail(link, "grant", -LH_EPROTOCOL, "of no message");
        return;
    }
    ofi_list_remove(&link->waiting, operation);
    operation->granted = frame->bytes;
    if (frame->bytes == 0) {
        ofi_operation_end(operation, 0, 0);
        return;
    }
    ofi_list_add(&link->granted, operation);
    ofi_link_add_work(link);
}

/* False: no memory now. */
static bool on_message(struct ofi_link *link, const struct ofi_frame *frame, const uint8_t *payload)
{
    struct ofi_matching *matching = &link->endpoint->matching[frame->flags & OFI_FRAME_TAGGED ? 1 : 0];
    struct ofi_operation *operation = ofi_matching_receive(matching, frame->tag, source_of(link));
    if (!operation)
        return hold(link, matching, frame, payload);
    operation = take_receive(matching, operation, frame->bytes);
    if (operation)
        deliver(link, frame, payload, operation);
    return operation != NULL;
}

/* Takes the frames that have arrived, in their order. False: later. */
static bool take_frames(struct ofi_link *link)
{
    while (link->state == OFI_LINK_UP && link->taken < link->posted) {
        struct ofi_slot *slot = &link->slots[link->taken % link->slot_count];
        const uint8_t *bytes = link->memory + link->taken % link->slot_count * link->slot_bytes;
        if (!slot->has_arrived)
            return true;
        if (slot->error) {
            ofi_link_fail(link, "receive", slot->error, lh_strerror(slot->error));
            return true;
        }
        if (link->kind == OFI_LINK_NEW)
            return link->on_hello(link, slot->bytes);
        struct ofi_frame frame = {0};
        if (slot->bytes >= sizeof frame)
            frame = from_wire(bytes);
        if (slot->bytes < sizeof frame || !is_valid(link, &frame, slot->bytes - sizeof frame)) {
            ofi_link_fail(link, "receive", -LH_EPROTOCOL, "malformed frame");
            return true;
        }
        if (link->held > HELD_MAX)
            return true; /* until arrivals go: arrival_free() */
        if (link->kind == OFI_LINK_OUT_FRAMES)
            on_grant(link, &frame);
        else if (!on_message(link, &frame, bytes + sizeof frame))
            return false;
        link->taken++;
    }
    return true;
}

/* Does what can be done; what has to wait for the library is tried again with the next progress. */
static void push(struct ofi_link *link)
{
    bool is_complete = take_frames(link);
    is_complete &= post_slots(link);
    is_complete &= send_queued(link);
    is_complete &= send_grants(link);
    is_complete &= move_bulk(link, &link->granted, true);
    is_complete &= move_bulk(link, &link->landing, false);
    if (!is_complete && link->state == OFI_LINK_UP)
        ofi_link_add_work(link);
}

void ofi_link_work(struct ofi_domain *domain)
{
    /* A link may add its other one; a third round finds only what has to wait. */
    for (int round = 0; round < 3 && domain->first_work; round++) {
        struct ofi_link *link = domain->first_work;
        domain->first_work = domain->last_work = NULL;
        while (link) {
            struct ofi_link *next = link->next_work;
            link->is_in_work = false;
            if (link->state == OFI_LINK_UP)
                push(link);
            link_free_if_over(link);
            link = next;
        }
    }
}

/* ---- completions of the engine ------------------------------------------------------------------------- */

static void on_frame_sent(struct ofi_link *link, struct ofi_operation *operation, int error)
{
    operation->active--;
    if (!operation->is_rendezvous || operation->is_done)
        ofi_operation_end(operation, ofi_error(error), error);
    if (error)
        ofi_link_fail(link, "send", error, lh_strerror(error)); /* ends those that wait for a grant */
}

static void on_bulk(struct ofi_link *link, struct ofi_operation *operation, const struct lh_result *result)
{
    bool is_send = operation->flags & FI_SEND;
    uint64_t expected = is_send                                       ? operation->granted
                        : operation->message_bytes < operation->bytes ? operation->message_bytes
                                                                      : operation->bytes;
    int error = result->error;
    if (!error && result->bytes != expected)
        error = -LH_EPROTOCOL;
    operation->active--;
    ofi_operation_end(operation, ofi_error(error), error);
    if (error)
        ofi_link_fail(link, is_send ? "send" : "receive", error, lh_strerror(error));
}

void ofi_dispatch(const struct lh_completion *entries, int count)
{
    for (int i = 0; i < count; i++) {
        struct ofi_transfer *transfer = (struct ofi_transfer *)(uintptr_t)entries[i].user;
        const struct lh_result *result = &entries[i].result;
        struct ofi_link *link = transfer->link;
        struct ofi_slot *slot = (struct ofi_slot *)transfer;
        link->requests--;
        switch (transfer->kind) {
        case OFI_FRAME_RECV:
            slot->has_arrived = true;
            slot->error = result->error;
            slot->bytes = result->bytes;
            ofi_link_add_work(link);
            break;
        case OFI_FRAME_SEND:
            on_frame_sent(link, transfer->operation, result->error);
            break;
        case OFI_BULK_SEND:
        case OFI_BULK_RECV:
            on_bulk(link, transfer->operation, result);
            break;
        case OFI_CONTROL_SEND:
            if (result->error)
                ofi_link_fail(link, "send", result->error, lh_strerror(result->error));
            if (transfer != &link->hello_transfer) { /* a grant */
                link->endpoint->unsent--;
                free(transfer);
            }
            break;
        }
        link_free_if_over(link);
    }
}

void ofi_progress(struct ofi_domain *domain)
{
    struct lh_completion entries[OFI_TURN_ENTRIES];
    int count = lh_poll(domain->queue, entries, OFI_TURN_ENTRIES);
    if (count > 0)
        ofi_dispatch(entries, count);
    ofi_link_work(domain);
}

/* ---- the end of an endpoint ---------------------------------------------------------------------------- */

bool ofi_link_has_any(const struct ofi_endpoint *endpoint)
{
    const struct ofi_link *at = endpoint->domain->links;
    while (at && at->endpoint != endpoint)
        at = at->next;
    return at != NULL;
}

void ofi_link_end_rest(struct ofi_domain *domain)
{
    for (struct ofi_link *at = domain->links; at; at = at->next)
        ofi_link_end(at, -LH_ECLOSED);
}

void ofi_link_end_all(struct ofi_endpoint *endpoint)
{
    for (struct ofi_link *at = endpoint->domain->links; at; at = at->next) {
        if (at->endpoint != endpoint)
            continue;
        ofi_link_end(at, -LH_ECLOSED);
        if (at->is_in_thread)
            at->endpoint = NULL; /* its operations have ended */
    }
    for (int i = 0; i < 2; i++) {
        struct ofi_matching *matching = &endpoint->matching[i];
        end_list(&matching->posted, -LH_ECANCELED);
        for (int j = 0; j < 2; j++) {
            struct ofi_arrivals *arrivals = j ? &matching->claimed : &matching->arrived;
            while (arrivals->first) {
                struct ofi_arrival *arrival = arrivals->first;
                ofi_arrivals_remove(arrivals, arrival);
                arrival_free(arrival);
            }
        }
    }
}
