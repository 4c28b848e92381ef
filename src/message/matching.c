/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/matching.h"

#include <assert.h>

#include "base/error.h"
#include "control/message_control.h"
#include "message/requests.h"
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
static bool begin_small(struct matching *m, struct rx_message *message, uint64_t bytes, uint64_t tag,
                        lh_time now)
{
    if (message->bytes != MESSAGE_BYTES_UNKNOWN || message->is_long) {
        m->rx->stats->bad_control++;
        return false;
    }
    message->tag = tag;
    if (bytes > message->capacity) {
        refuse_message(m->rx, message, LH_ETRUNCATED, now);
        return false;
    }
    message->small = true;
    message->bytes = bytes;
    close_segments(m->rx, message);
    return true;
}

static void note_units(struct matching *m, struct rx_message *message, uint8_t units, lh_time now)
{
    message->units |= units;
    if (message->units == eager_unit_mask(message->bytes))
        rx_end_message(m->rx, message, 0, RX_OVER, now);
}

void arrived_unit(struct matching *m, struct rx_message *message, const struct eager_entry *entry,
                  lh_time now)
{
    uint8_t unit = (uint8_t)(1u << entry->unit);
    if (!message->small && !begin_small(m, message, entry->bytes, entry->tag, now))
        return;
    if (message->bytes != entry->bytes || message->tag != entry->tag) {
        m->rx->stats->bad_control++;
        return;
    }
    if (message->units & unit)
        return;
    if (entry->data_bytes > 0)
        buffer_write(&message->buffer, (uint64_t)entry->unit * EAGER_UNIT_BYTES, entry->data,
                     entry->data_bytes);
    note_units(m, message, unit, now);
}

/* No long message fits its receive. */
static bool is_short(const struct matching *m, const struct rx_message *message)
{
    return message->capacity <= eager_small_max(m->rx->attr->mtu_bytes);
}

void arrived_long(struct matching *m, struct rx_message *message, lh_time now)
{
    if (message->small)
        m->rx->stats->bad_control++;
    else if (is_short(m, message))
        refuse_message(m->rx, message, LH_ETRUNCATED, now);
    else
        message->is_long = true;
}

/* A long message got its receive, after it was announced. */
static void begin_long(struct matching *m, struct rx_message *message, uint64_t bytes, uint64_t tag,
                       lh_time now)
{
    message->tag = tag;
    if (bytes > message->capacity || is_short(m, message)) {
        refuse_message(m->rx, message, LH_ETRUNCATED, now);
        return;
    }
    message->bytes = bytes;
    message->is_long = true;
}

void arrived_hold(struct matching *m, const struct eager_entry *entry)
{
    struct early *early = &m->early;
    if (!early->memory) { /* for them none waits: the peer sends them again */
        struct early_memory *memory = store_take_aligned(m->rx->store->whole, sizeof *memory);
        if (!memory)
            return; /* as if it had been lost */
        early_give_memory(early, memory);
    }
    enum early_put put = m->on ? early_put_any(early, entry) : early_put(early, m->rx->next, entry);
    if (put == EARLY_REFUSED)
        m->rx->stats->bad_control++;
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

void arrived_take_small(struct matching *m, struct rx_message *message, const struct early_message *held,
                        lh_time now)
{
    if (!begin_small(m, message, held->bytes, held->tag, now))
        return;
    copy_early(&m->early, held, message);
    note_units(m, message, held->units, now);
}

void arrived_take_held(struct matching *m, struct rx_message *message, const struct early_message *held,
                       lh_time now)
{
    if (held->state == EARLY_LONG)
        begin_long(m, message, held->bytes, held->tag, now);
    else
        arrived_take_small(m, message, held, now);
}

void arrived_take_entry(struct matching *m, struct rx_message *message, const struct eager_entry *entry,
                        lh_time now)
{
    if (entry->is_long)
        begin_long(m, message, entry->bytes, entry->tag, now);
    else
        arrived_unit(m, message, entry, now);
}

void arrived_drop(struct matching *m, uint32_t number)
{
    struct early *early = &m->early;
    early_forget(early, number);
    store_give(m->rx->store->whole, early_take_memory(early), sizeof *early->memory);
}

void arrived_want_ack(struct matching *m, lh_time now)
{
    inbound_want_ack(&m->inbound, m->rx->path->rtt_minimum_ns, now);
}

/* ---- a message and its receive ----------------------------------------------------------------------- */

int matching_start(struct matching *m, bool peer_understands)
{
    m->on = m->rx->attr->match_tags;
    m->rx->matched = m->on;
    if (m->on && !peer_understands)
        return lh_fail(LH_EVERSION, "match_tags: unsupported by the peer's release (update it)");
    return 0;
}

static struct rx_message *bind(struct matching *m, uint32_t number, const struct rx_receive *receive)
{
    struct lh_request *request = (struct lh_request *)receive->request;
    request->message = number;
    return rx_bind_message(m->rx, number, receive);
}

/* What is held of it is in the receive's buffer from here on. */
static void bind_held(struct matching *m, const struct early_message *held,
                      const struct rx_receive *receive, lh_time now)
{
    uint32_t number = held->number;
    arrived_take_held(m, bind(m, number, receive), held, now);
    arrived_drop(m, number);
    arrived_want_ack(m, now);
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
static bool consider_next(struct matching *m, lh_time now)
{
    struct rx *rx = m->rx;
    struct rx_receive receive;
    const struct early_message *held = early_find(&m->early, rx->next);
    bool canceled = is_canceled(rx, rx->next);
    if ((!held && !canceled) || !hold_next(rx))
        return false;
    uint32_t number = rx->next++;
    rx_message_at(rx, number)->number = number;
    if (canceled) {
        rx_message_at(rx, number)->state = RX_OVER;
        arrived_drop(m, number);
        arrived_want_ack(m, now);
    } else if (waiting_take(&m->waiting, rx->store, held->tag, &receive)) {
        bind_held(m, held, &receive, now);
    } else {
        m->unmatched++;
    }
    return true;
}

void matching_consider(struct matching *m, lh_time now)
{
    if (!m->on)
        return;
    while (consider_next(m, now)) /* at most EAGER_CELLS are held, and MESSAGES_MAX are canceled */
        continue;
    rx_retire(m->rx);
}

static bool is_unmatched(const struct rx *rx, uint32_t number)
{
    return number - rx->oldest < rx->next - rx->oldest && rx_message_at(rx, number)->state == RX_EMPTY;
}

/* The first message that has no receive, and fits this one; or NULL. */
static const struct early_message *find_unmatched(const struct matching *m,
                                                  const struct rx_receive *receive)
{
    const struct rx *rx = m->rx;
    uint32_t left = m->unmatched;
    for (uint32_t n = rx->oldest; left > 0 && n != rx->next; n++) { /* at most MESSAGES_MAX */
        if (!is_unmatched(rx, n))
            continue;
        const struct early_message *held = early_find(&m->early, n);
        if (receive_fits(receive, held->tag))
            return held;
        left--;
    }
    return NULL;
}

int matching_hold(struct matching *m)
{
    return !m->on || waiting_hold(&m->waiting, m->rx->store) ? 0 : -LH_ENOMEM;
}

void matching_give_back(struct matching *m)
{
    waiting_give_back(&m->waiting, m->rx->store);
}

void matching_recv(struct matching *m, const struct rx_receive *receive, lh_time now)
{
    const struct early_message *held = find_unmatched(m, receive);
    if (!held) {
        waiting_add(&m->waiting, receive);
        return;
    }
    m->unmatched--;
    bind_held(m, held, receive, now);
    rx_retire(m->rx);
}

/* ---- the peer ---------------------------------------------------------------------------------------- */

/* It is the next one, all of it is new, and a receive waits for it. */
static bool bind_at_once(struct matching *m, const struct eager_entry *entry, lh_time now)
{
    struct rx *rx = m->rx;
    struct rx_receive receive;
    if (entry->message != rx->next || early_find(&m->early, rx->next) || is_canceled(rx, rx->next) ||
        !hold_next(rx) || !waiting_take(&m->waiting, rx->store, entry->tag, &receive))
        return false;
    rx->next++;
    arrived_take_entry(m, bind(m, entry->message, &receive), entry, now);
    return true;
}

void matching_on_entry(struct matching *m, const struct eager_entry *entry, lh_time now)
{
    if (number_before(entry->message, m->rx->next)) {
        if (is_unmatched(m->rx, entry->message))
            arrived_hold(m, entry);
        return;
    }
    if (!bind_at_once(m, entry, now))
        arrived_hold(m, entry);
    matching_consider(m, now);
}

void matching_on_cancel(struct matching *m, uint32_t number)
{
    if (!m->on || !is_unmatched(m->rx, number))
        return;
    m->unmatched--;
    rx_message_at(m->rx, number)->state = RX_OVER;
    rx_message_at(m->rx, number)->notice.error = LH_ECANCELED;
    arrived_drop(m, number);
}

/* ---- the user ---------------------------------------------------------------------------------------- */

static void end_waiting(struct matching *m, struct message_request *request, int error, lh_time now)
{
    effects_finish(m->rx->effects, request, error, 0, now);
    m->rx->stats->messages_failed++;
}

bool matching_cancel(struct matching *m, struct message_request *request, lh_time now)
{
    if (!m->on || !waiting_remove(&m->waiting, m->rx->store, request))
        return false;
    end_waiting(m, request, -LH_ECANCELED, now);
    return true;
}

void matching_end_all(struct matching *m, int error, lh_time now)
{
    struct rx_receive receive;
    while (waiting_pop(&m->waiting, m->rx->store, &receive)) /* at most LH_REQUESTS_MAX */
        end_waiting(m, receive.request, error, now);
}
