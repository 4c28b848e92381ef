/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/matching.h"

#include <assert.h>

#include "base/error.h"
#include "control/message_control.h"
#include "message/connection_state.h"
#include "message/rx_messages.h"

/* ---- what arrived ------------------------------------------------------------------------------------ */

static void close_segments(struct rx *rx, const struct rx_message *message)
{
    if (message->posted == 0)
        return;
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->message == message->number)
            rx_close_segment(rx, segment, SEGMENT_UNNEEDED);
    }
}

/* The first that is known of a message: it is a small one, of this length. False: it is not received. */
static bool begin_small(struct lh_connection *c, struct rx_message *message, uint64_t bytes, uint64_t tag,
                        lh_time now)
{
    if (message->bytes != MESSAGE_BYTES_UNKNOWN || message->is_long) {
        c->stats->bad_control++;
        return false;
    }
    message->tag = tag;
    if (bytes > message->capacity) {
        refuse_message(&c->rx, message, LH_ETRUNCATED, now);
        return false;
    }
    message->small = true;
    message->bytes = bytes;
    close_segments(&c->rx, message);
    return true;
}

static void note_units(struct lh_connection *c, struct rx_message *message, uint8_t units, lh_time now)
{
    message->units |= units;
    if (message->units == eager_unit_mask(message->bytes))
        rx_end_message(&c->rx, message, 0, RX_OVER, now);
}

void arrived_unit(struct lh_connection *c, struct rx_message *message, const struct eager_entry *entry,
                  lh_time now)
{
    uint8_t unit = (uint8_t)(1u << entry->unit);
    if (!message->small && !begin_small(c, message, entry->bytes, entry->tag, now))
        return;
    if (message->bytes != entry->bytes || message->tag != entry->tag) {
        c->stats->bad_control++;
        return;
    }
    if (message->units & unit)
        return;
    if (entry->data_bytes > 0)
        buffer_write(&message->buffer, (uint64_t)entry->unit * EAGER_UNIT_BYTES, entry->data,
                     entry->data_bytes);
    note_units(c, message, unit, now);
}

/* No long message fits its receive. */
static bool is_short(const struct lh_connection *c, const struct rx_message *message)
{
    return message->capacity <= eager_small_max(c->attr.mtu_bytes);
}

void arrived_long(struct lh_connection *c, struct rx_message *message, lh_time now)
{
    if (message->small)
        c->stats->bad_control++;
    else if (is_short(c, message))
        refuse_message(&c->rx, message, LH_ETRUNCATED, now);
    else
        message->is_long = true;
}

/* A long message got its receive, after it was announced. */
static void begin_long(struct lh_connection *c, struct rx_message *message, uint64_t bytes, uint64_t tag,
                       lh_time now)
{
    message->tag = tag;
    if (bytes > message->capacity || is_short(c, message)) {
        refuse_message(&c->rx, message, LH_ETRUNCATED, now);
        return;
    }
    message->bytes = bytes;
    message->is_long = true;
}

void arrived_hold(struct lh_connection *c, const struct eager_entry *entry)
{
    struct early *early = &c->small.early;
    if (!early->memory) { /* for them none waits: the peer sends them again */
        struct early_memory *memory = store_take_aligned(c->store.whole, sizeof *memory);
        if (!memory)
            return; /* as if it had been lost */
        early_give_memory(early, memory);
    }
    enum early_put put = c->matching.on ? early_put_any(early, entry) : early_put(early, c->rx.next, entry);
    if (put == EARLY_REFUSED)
        c->stats->bad_control++;
}

/* Of a buffer in parts all bytes are written: those that are not here come later. */
static void copy_early(const struct early *early, const struct early_message *held,
                       const struct rx_message *message)
{
    uint8_t bytes[EAGER_MAX] = {0};
    if (!message->buffer.parts) {
        early_copy(early, held, message->buffer.address);
        return;
    }
    early_copy(early, held, bytes);
    buffer_write(&message->buffer, 0, bytes, held->bytes);
}

void arrived_take_small(struct lh_connection *c, struct rx_message *message,
                        const struct early_message *held, lh_time now)
{
    if (!begin_small(c, message, held->bytes, held->tag, now))
        return;
    copy_early(&c->small.early, held, message);
    note_units(c, message, held->units, now);
}

void arrived_take_held(struct lh_connection *c, struct rx_message *message,
                       const struct early_message *held, lh_time now)
{
    if (held->state == EARLY_LONG)
        begin_long(c, message, held->bytes, held->tag, now);
    else
        arrived_take_small(c, message, held, now);
}

void arrived_take_entry(struct lh_connection *c, struct rx_message *message,
                        const struct eager_entry *entry, lh_time now)
{
    if (entry->is_long)
        begin_long(c, message, entry->bytes, entry->tag, now);
    else
        arrived_unit(c, message, entry, now);
}

void arrived_drop(struct lh_connection *c, uint32_t number)
{
    struct early *early = &c->small.early;
    early_forget(early, number);
    store_give(c->store.whole, early_take_memory(early), sizeof *early->memory);
}

void arrived_want_ack(struct lh_connection *c, lh_time now)
{
    inbound_want_ack(&c->small.inbound, c->path.rtt_minimum_ns, now);
}

/* ---- a message and its receive ----------------------------------------------------------------------- */

int matching_start(struct lh_connection *c)
{
    c->matching.on = c->attr.match_tags;
    c->rx.matched = c->matching.on;
    c->tx.outgoing.matched = c->peer_flags & BLOB_MATCHES;
    if (c->matching.on && !(c->peer_flags & BLOB_MATCH))
        return lh_fail(LH_EVERSION, "match_tags: unsupported by the peer's release (update it)");
    return 0;
}

static struct rx_message *bind(struct lh_connection *c, uint32_t number, const struct rx_receive *receive)
{
    struct lh_request *request = (struct lh_request *)receive->request;
    request->message = number;
    return rx_bind_message(&c->rx, number, receive);
}

/* What is held of it is in the receive's buffer from here on. */
static void bind_held(struct lh_connection *c, const struct early_message *held,
                      const struct rx_receive *receive, lh_time now)
{
    uint32_t number = held->number;
    arrived_take_held(c, bind(c, number, receive), held, now);
    arrived_drop(c, number);
    arrived_want_ack(c, now);
}

static bool is_canceled(const struct rx *rx, uint32_t number)
{
    return rx_message_known(rx, number) && rx_message_at(rx, number)->notice.error != 0;
}

/* The next message to be considered has a place. False: no memory, or too many are not over. */
static bool hold_next(struct rx *rx)
{
    uint32_t count = rx->next - rx->oldest + 1;
    return count <= MESSAGES_MAX && ring_hold(&rx->messages, rx->store, rx->oldest, count);
}

/* False: nothing is known of it yet. */
static bool consider_next(struct lh_connection *c, lh_time now)
{
    struct rx *rx = &c->rx;
    struct rx_receive receive;
    const struct early_message *held = early_find(&c->small.early, rx->next);
    bool canceled = is_canceled(rx, rx->next);
    if ((!held && !canceled) || !hold_next(rx))
        return false;
    uint32_t number = rx->next++;
    rx_message_at(rx, number)->number = number;
    if (canceled) {
        rx_message_at(rx, number)->state = RX_OVER;
        arrived_drop(c, number);
        arrived_want_ack(c, now);
    } else if (waiting_take(&c->matching.waiting, rx->store, held->tag, &receive)) {
        bind_held(c, held, &receive, now);
    } else {
        c->matching.unmatched++;
    }
    return true;
}

void matching_consider(struct lh_connection *c, lh_time now)
{
    if (!c->matching.on)
        return;
    while (consider_next(c, now)) /* at most EAGER_CELLS are held, and MESSAGES_MAX are canceled */
        continue;
    rx_retire(&c->rx);
}

static bool is_unmatched(const struct rx *rx, uint32_t number)
{
    return number - rx->oldest < rx->next - rx->oldest && rx_message_at(rx, number)->state == RX_EMPTY;
}

/* The first message that has no receive, and fits this one; or NULL. */
static const struct early_message *find_unmatched(const struct lh_connection *c,
                                                  const struct rx_receive *receive)
{
    const struct rx *rx = &c->rx;
    uint32_t left = c->matching.unmatched;
    for (uint32_t n = rx->oldest; left > 0 && n != rx->next; n++) { /* at most MESSAGES_MAX */
        if (!is_unmatched(rx, n))
            continue;
        const struct early_message *held = early_find(&c->small.early, n);
        if (receive_fits(receive, held->tag))
            return held;
        left--;
    }
    return NULL;
}

int matching_hold(struct lh_connection *c)
{
    return !c->matching.on || waiting_hold(&c->matching.waiting, c->rx.store) ? 0 : -LH_ENOMEM;
}

void matching_give_back(struct lh_connection *c)
{
    waiting_give_back(&c->matching.waiting, c->rx.store);
}

void matching_recv(struct lh_connection *c, const struct rx_receive *receive, lh_time now)
{
    const struct early_message *held = find_unmatched(c, receive);
    if (!held) {
        waiting_add(&c->matching.waiting, receive);
        return;
    }
    c->matching.unmatched--;
    bind_held(c, held, receive, now);
    rx_retire(&c->rx);
}

/* ---- the peer ---------------------------------------------------------------------------------------- */

/* It is the next one, all of it is new, and a receive waits for it. */
static bool bind_at_once(struct lh_connection *c, const struct eager_entry *entry, lh_time now)
{
    struct rx *rx = &c->rx;
    struct rx_receive receive;
    if (entry->message != rx->next || early_find(&c->small.early, rx->next) || is_canceled(rx, rx->next) ||
        !hold_next(rx) || !waiting_take(&c->matching.waiting, rx->store, entry->tag, &receive))
        return false;
    rx->next++;
    arrived_take_entry(c, bind(c, entry->message, &receive), entry, now);
    return true;
}

void matching_on_entry(struct lh_connection *c, const struct eager_entry *entry, lh_time now)
{
    if (number_before(entry->message, c->rx.next)) {
        if (is_unmatched(&c->rx, entry->message))
            arrived_hold(c, entry);
        return;
    }
    if (!bind_at_once(c, entry, now))
        arrived_hold(c, entry);
    matching_consider(c, now);
}

void matching_on_cancel(struct lh_connection *c, uint32_t number)
{
    if (!c->matching.on || !is_unmatched(&c->rx, number))
        return;
    c->matching.unmatched--;
    rx_message_at(&c->rx, number)->state = RX_OVER;
    rx_message_at(&c->rx, number)->notice.error = LH_ECANCELED;
    arrived_drop(c, number);
}

/* ---- the user ---------------------------------------------------------------------------------------- */

static void end_waiting(struct lh_connection *c, struct message_request *request, int error, lh_time now)
{
    effects_finish(&c->effects, request, error, 0, now);
    c->stats->messages_failed++;
}

bool matching_cancel(struct lh_connection *c, struct message_request *request, lh_time now)
{
    if (!c->matching.on || !waiting_remove(&c->matching.waiting, c->rx.store, request))
        return false;
    end_waiting(c, request, -LH_ECANCELED, now);
    return true;
}

void matching_end_all(struct lh_connection *c, int error, lh_time now)
{
    struct rx_receive receive;
    while (waiting_pop(&c->matching.waiting, c->rx.store, &receive)) /* at most LH_REQUESTS_MAX */
        end_waiting(c, receive.request, error, now);
}
