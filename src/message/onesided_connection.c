/*
 * onesided_connection.c - one-sided operations of a sub-connection: headers to the peer and from it, and the
 * messages that carry their bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/min_max.h"
#include "control/message_control.h"
#include "message/connection_state.h"
#include "message/requests.h"
#include "message/rx_messages.h"
#include "message/rx_receiver.h"
#include "message/tx_messages.h"
#include "message/tx_sender.h"
#include "sdr/sdr_driver.h"

#define HEADERS_A_STEP  256u /* of the peer, so that a flood cannot hold the worker */
#define RETRY_FRACTION  8u   /* of an overdue round trip: is there memory, or a place in a queue, now? */
#define BYTES_OF_A_READ 2u   /* messages: the answer, and its bytes */
/* What is left is for answers to reads of the peer. Else two sides whose places are all taken by operations
 * would wait for each other. */
#define OPERATIONS_MESSAGES (MESSAGES_MAX - BYTES_OF_A_READ * LH_READS_MAX)

/* ---- operations of the user -------------------------------------------------------------------------- */

/* For messages to be sent, however many are in flight. -LH_ENOMEM. */
static int hold_sends(struct lh_connection *c, uint32_t count)
{
    int error = storage_hold_send(c, count);
    return error ? error : small_messages_prepare(&c->small, count);
}

static void send_own(struct lh_connection *c, struct own_message *own, uint8_t *data, uint32_t bytes,
                     lh_time now)
{
    const struct tx_content content = {.buffer = {.address = data}, .bytes = bytes};
    sender_send(&c->tx, &own->request, &content, now);
}

static void start_write(struct lh_connection *c, struct onesided_operation *operation, lh_time now)
{
    const struct tx_content content = {.buffer = operation->buffer, .bytes = operation->bytes};
    struct lh_request *request = operation->request;
    operation->request = NULL;
    operation->answered = true;
    request->waiting = NULL;
    request->message = c->tx.next;
    sender_send(&c->tx, &request->part, &content, now);
}

static bool may_start(struct lh_connection *c, const struct onesided_operation *operation)
{
    uint32_t messages = operation->writes ? 2 : 1;
    if (!operation->writes && c->onesided->asked.count == LH_READS_MAX)
        return false;
    if (c->tx.next - c->tx.oldest + messages > OPERATIONS_MESSAGES)
        return false;
    return hold_sends(c, messages) == 0;
}

/* Returns the number of messages that were sent for them. */
static uint32_t start_waiting(struct lh_connection *c, lh_time now)
{
    struct onesided *o = c->onesided;
    uint32_t before = c->tx.next;
    while (c->attached && o->waiting.first &&
           may_start(c, o->waiting.first)) { /* at most LH_REQUESTS_MAX */
        struct onesided_operation *operation = onesided_pop(&o->waiting);
        operation->started = true;
        send_own(c, &operation->header, operation->data, operation->header_bytes, now);
        if (operation->writes) {
            start_write(c, operation, now);
            continue;
        }
        onesided_push(&o->asked, operation);
    }
    return c->tx.next - before;
}

void onesided_start(struct lh_connection *c, struct onesided_operation *operation,
                    struct lh_request *request, const struct onesided_wanted *wanted, lh_time now)
{
    struct onesided *o = c->onesided;
    operation->request = request;
    operation->buffer = wanted->buffer;
    operation->bytes = wanted->header.bytes;
    operation->writes = wanted->header.kind == ONESIDED_WRITE;
    operation->header_bytes = (uint32_t)onesided_header_encode(&wanted->header, operation->data);
    request->waiting = operation;
    onesided_push(&o->waiting, operation);
    o->operations++;
    uint32_t messages = start_waiting(c, now);
    if (messages > 0)
        small_messages_on_send(&c->small, messages, now);
    effects_carry_out(c);
    c->needs_step = true;
}

/* ---- operations of the peer -------------------------------------------------------------------------- */

static void break_protocol(struct lh_connection *c, const char *reason)
{
    effects_fail(&c->effects, LH_EPROTOCOL, reason);
    effects_carry_out(c);
}

/* Receives the next message, the bytes of an operation. error: 0, or positive: it is refused with that. */
static void receive_bytes(struct lh_connection *c, struct message_request *request,
                          const struct message_buffer *buffer, uint64_t bytes, int error, lh_time now)
{
    uint32_t number = c->rx.next;
    receiver_recv(&c->rx, request, buffer, bytes, now);
    struct rx_message *message = rx_message_at(&c->rx, number);
    if (error && message->state == RX_OPEN)
        refuse_message(&c->rx, message, error, now);
    small_messages_on_receive(&c->small, number, now);
    effects_carry_out(c);
}

static struct message_buffer place_in(const struct lh_region *region, uint64_t offset)
{
    struct message_buffer buffer = region->buffer;
    buffer.address += offset;
    return buffer;
}

/* 0, or the positive lh_error with which the peer's operation ends. */
static int check_peer(struct lh_connection *c, const struct onesided_header *header, uint32_t access,
                      struct lh_region **region)
{
    const struct onesided *o = c->onesided;
    struct region *found = o->regions ? regions_find(o->regions, header->key) : NULL;
    int error = region_check(found, access, header->offset, header->bytes);
    *region = (struct lh_region *)found;
    if (!error && header->notify && !(*region)->queue)
        error = LH_EUNSUPPORTED;
    if (error)
        c->stats->operations_refused++;
    return error;
}

/* What becomes of the next header. */
enum taken {
    TAKEN,
    NOT_NOW, /* no memory, or no place: it stays */
};

static enum taken take_write(struct lh_connection *c, const struct onesided_header *header, lh_time now)
{
    uint8_t data[ONESIDED_HEADER_MAX];
    struct lh_region *region;
    if (c->rx.next - c->rx.oldest + 2 > MESSAGES_MAX || storage_hold_recv(c, 2) != 0)
        return NOT_NOW;
    struct onesided_remote *remote = onesided_add_remote(c->onesided, OWN_WRITTEN);
    if (!remote)
        return NOT_NOW;
    int error = check_peer(c, header, LH_ACCESS_WRITE, &region);
    remote->notify = !error && header->notify;
    if (remote->notify && completion_ring_reserve(&region->queue->ring, LH_OPERATION_NOTIFY) != 0) {
        onesided_remove_remote(c->onesided, remote);
        return NOT_NOW; /* until the user polls it */
    }
    small_messages_take(&c->small, data, now);
    remote->region = error ? NULL : region;
    remote->immediate = header->immediate;
    remote->number = c->rx.next;
    const struct message_buffer buffer =
        error ? (struct message_buffer){0} : place_in(region, header->offset);
    receive_bytes(c, &remote->bytes.request, &buffer, error ? 0 : header->bytes, error, now);
    return TAKEN;
}

static enum taken take_read(struct lh_connection *c, const struct onesided_header *header, lh_time now)
{
    struct onesided_header answer_header = {.kind = ONESIDED_ANSWER};
    uint8_t data[ONESIDED_HEADER_MAX];
    struct lh_region *region;
    if (c->onesided->reads == LH_READS_MAX || c->tx.next - c->tx.oldest + BYTES_OF_A_READ > MESSAGES_MAX ||
        c->rx.next - c->rx.oldest == MESSAGES_MAX)
        return NOT_NOW;
    if (storage_hold_recv(c, 1) != 0 || hold_sends(c, BYTES_OF_A_READ) != 0)
        return NOT_NOW;
    struct own_answer *own = store_take(c->tx.store, sizeof *own);
    struct onesided_remote *remote = own ? onesided_add_remote(c->onesided, OWN_READ) : NULL;
    if (!remote) {
        store_give(c->tx.store, own, sizeof *own);
        return NOT_NOW;
    }
    int error = check_peer(c, header, LH_ACCESS_READ, &region);
    answer_header.error = (uint32_t)error;
    small_messages_take(&c->small, data, now);
    own_init(&own->header, OWN_ANSWER);
    send_own(c, &own->header, own->data, (uint32_t)onesided_header_encode(&answer_header, own->data), now);
    if (error) {
        onesided_remove_remote(c->onesided, remote);
    } else {
        const struct tx_content content = {.buffer = place_in(region, header->offset),
                                           .bytes = header->bytes};
        remote->region = region;
        remote->number = c->tx.next;
        c->onesided->reads++;
        sender_send(&c->tx, &remote->bytes.request, &content, now);
    }
    effects_carry_out(c);
    return TAKEN;
}

/* The answer to the oldest read. */
static enum taken take_answer(struct lh_connection *c, const struct onesided_header *header, lh_time now)
{
    struct onesided *o = c->onesided;
    uint8_t data[ONESIDED_HEADER_MAX];
    struct onesided_operation *operation = o->asked.first;
    if (!operation) {
        break_protocol(c, "unexpected answer from the peer: no such read");
        return NOT_NOW;
    }
    if (c->rx.next - c->rx.oldest + 2 > MESSAGES_MAX || storage_hold_recv(c, 2) != 0)
        return NOT_NOW;
    struct lh_request *request = operation->request;
    bool wanted = header->error == 0 && request;
    struct onesided_remote *unwanted =
        header->error == 0 && !request ? onesided_add_remote(c->onesided, OWN_WRITTEN) : NULL;
    if (header->error == 0 && !wanted && !unwanted)
        return NOT_NOW;
    small_messages_take(&c->small, data, now);
    onesided_pop(&o->asked);
    if (header->error != 0)
        onesided_finish_user(c->onesided, operation, -abort_error((int)header->error), now);
    if (wanted) {
        request->waiting = NULL;
        request->message = c->rx.next;
        receive_bytes(c, &request->part, &operation->buffer, operation->bytes, 0, now);
    } else if (unwanted) {
        unwanted->number = c->rx.next;
        receive_bytes(c, &unwanted->bytes.request, &(struct message_buffer){0}, 0, LH_ECANCELED, now);
    }
    onesided_on_answered(c->onesided, operation);
    effects_carry_out(c);
    return TAKEN;
}

static enum taken take_header(struct lh_connection *c, const struct early_message *held, lh_time now)
{
    struct onesided_header header;
    uint8_t data[ONESIDED_HEADER_MAX];
    bool fits = held->state == EARLY_WHOLE && held->bytes <= sizeof data;
    if (fits)
        early_copy(&c->small.matching.early, held, data);
    if (!fits || onesided_header_decode(data, held->bytes, &header) != 0) {
        break_protocol(c, "malformed header of a one-sided operation from the peer");
        return NOT_NOW;
    }
    switch (header.kind) {
    case ONESIDED_WRITE:
        return take_write(c, &header, now);
    case ONESIDED_READ:
        return take_read(c, &header, now);
    case ONESIDED_ANSWER:
        return take_answer(c, &header, now);
    }
    return NOT_NOW;
}

void onesided_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    const struct early_message *held;
    if (!c->parent)
        return;
    if (c->onesided->broken)
        break_protocol(c, "peer refused the header of a one-sided operation");
    for (uint32_t i = 0; !c->error && (held = small_messages_next(&c->small)) != NULL; i++) {
        if (i == HEADERS_A_STEP) {
            lh_keep_earlier(next, now);
            break;
        }
        if (take_header(c, held, now) == NOT_NOW) {
            lh_keep_earlier(next, now + timing_refresh_interval(&c->path, 0) / RETRY_FRACTION);
            break;
        }
    }
    if (c->error)
        return;
    start_waiting(c, now);
    effects_carry_out(c);
    if (c->onesided->waiting.first)
        lh_keep_earlier(next, now + timing_refresh_interval(&c->path, 0) / RETRY_FRACTION);
}

void onesided_end_region(struct lh_connection *c, const struct lh_region *region, lh_time now)
{
    decoding_finish(&c->rx, now); /* what is whole by it is done, and not in the list any more */
    effects_carry_out(c);
    for (struct onesided_remote *a = c->onesided->remotes; a; a = a->next) { /* at most MESSAGES_MAX */
        if (a->region != region)
            continue;
        if (a->bytes.kind == OWN_WRITTEN)
            refuse_message(&c->rx, rx_message_at(&c->rx, a->number), LH_EKEY, now);
        else
            cancel_message(&c->tx, tx_message_at(&c->tx, a->number), LH_EKEY, now);
    }
    effects_carry_out(c);
    c->needs_step = true;
}
