/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/small_messages.h"

#include "base/min_max.h"
#include "control/message_control.h"
#include "message/rx_messages.h"
#include "message/tx_messages.h"
#include "sdr/sdr_driver.h"

#define RING_FIRST    32u
#define WINDOW_BYTES  65536u /* what the socket buffer of a peer holds, whatever the path holds */
#define LONG_RTT_NS   LH_NS_PER_MS
#define RUNS_BESIDE   16u /* of an acknowledgement, with which a unit still fits a packet */
#define BESIDE_UNITS  96u /* of a message: an acknowledgement, and what stands before each */
#define FULL_AGAIN_NS (20 * LH_NS_PER_US)
#define BITS_PER_BYTE 8u

void small_messages_init(struct small_messages *s, struct tx *tx, struct rx *rx)
{
    s->tx = tx;
    s->matching.rx = rx;
}

void small_messages_start(struct small_messages *s, bool peer_understands)
{
    s->on = peer_understands;
    s->tx->eager = s->on;
    s->matching.rx->eager = s->on;
}

uint64_t small_messages_max(const struct small_messages *s)
{
    return s->on ? eager_small_max(s->tx->attr->mtu_bytes) : 0;
}

static void move_ring(struct small_messages *s, void *ring, uint32_t capacity)
{
    size_t bytes = outgoing_ring_bytes(s->tx->outgoing.capacity);
    store_give(s->tx->store, outgoing_move(&s->tx->outgoing, ring, capacity), bytes);
}

void small_messages_give_back(struct small_messages *s)
{
    if (outgoing_is_empty(&s->tx->outgoing))
        move_ring(s, NULL, 0);
}

void small_messages_free(struct small_messages *s)
{
    store_give(s->tx->store, s->tx->outgoing.ring, outgoing_ring_bytes(s->tx->outgoing.capacity));
    store_give(s->tx->store->whole, s->matching.early.memory, sizeof *s->matching.early.memory);
    s->tx->outgoing.ring = NULL;
    s->matching.early.memory = NULL;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

int small_messages_prepare(struct small_messages *s, uint32_t count)
{
    const struct outgoing *outgoing = &s->tx->outgoing;
    if (!s->on || outgoing->next - outgoing->oldest + count <= outgoing->capacity)
        return 0;
    uint32_t capacity = outgoing->capacity ? 2 * outgoing->capacity : RING_FIRST;
    void *ring = store_take(s->tx->store, outgoing_ring_bytes(capacity));
    if (!ring)
        return -LH_ENOMEM;
    move_ring(s, ring, capacity);
    return 0;
}

static void on_ack(struct small_messages *s, const struct eager_ack *ack, lh_time now)
{
    struct outgoing *outgoing = &s->tx->outgoing;
    if (outgoing_on_ack(outgoing, ack, now) != 0) {
        s->tx->stats->bad_control++;
        return;
    }
    uint32_t number = outgoing->oldest;
    while (outgoing_next_delivered(outgoing, &number)) /* ending it forgets it */
        tx_end_message(s->tx, tx_message_at(s->tx, number), 0, TX_OVER, now);
    tx_retire(s->tx);
}

/* A receive of few bytes waits for carriers alone: who does not get a clear-to-send announces his message. */
static void announce_long(struct small_messages *s, lh_time now, lh_time *next)
{
    struct small_messages *small = s;
    const struct tx *tx = s->tx;
    const struct tx_message *message = tx->current != tx->next ? tx_message_at(tx, tx->current) : NULL;
    bool waits = message && message->state == TX_OPEN && !message->small && message->started == 0 &&
                 !tx->outgoing.matched; /* there all are announced */
    if (waits && (!small->waits || small->waiting != tx->current))
        small->waiting_since_ns = now;
    small->waits = waits;
    small->waiting = tx->current;
    lh_time announce_at = small->waiting_since_ns + timing_refresh_interval(s->tx->path, 0);
    if (waits && announce_at <= now)
        outgoing_announce(&s->tx->outgoing, tx->current);
    else if (waits)
        lh_keep_earlier(next, announce_at);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

static void on_entry(struct small_messages *s, const struct eager_entry *entry, lh_time now)
{
    struct rx *rx = s->matching.rx;
    if (entry->message - rx->oldest >= MESSAGES_MAX)
        return; /* over, or no place to remember it: it is sent again */
    inbound_on_message(&s->matching.inbound, entry->message);
    bool added = number_before(entry->message, rx->next);
    struct rx_message *message = added ? rx_message_at(rx, entry->message) : NULL;
    if (s->matching.on && (!message || message->state == RX_EMPTY))
        matching_on_entry(&s->matching, entry, now);
    else if (!message)
        arrived_hold(&s->matching, entry);
    else if (message->state == RX_OPEN && entry->is_long)
        arrived_long(&s->matching, message, now);
    else if (message->state == RX_OPEN)
        arrived_unit(&s->matching, message, entry, now);
}

void small_messages_on_receive(struct small_messages *s, uint32_t number, lh_time now)
{
    struct rx_message *message = rx_message_at(s->matching.rx, number);
    const struct early_message *held = early_find(&s->matching.early, number);
    if (!held)
        return;
    bool open = message->state == RX_OPEN && message->number == number;
    if (open && held->state == EARLY_LONG)
        arrived_long(&s->matching, message, now);
    else if (open)
        arrived_take_small(&s->matching, message, held, now);
    arrived_want_ack(&s->matching, now); /* its cells are free, over or not */
    arrived_drop(&s->matching, number);
    rx_retire(s->matching.rx);
}

const struct early_message *small_messages_next(const struct small_messages *s)
{
    const struct early_message *held = early_find(&s->matching.early, s->matching.rx->next);
    return held && held->state != EARLY_PARTIAL ? held : NULL;
}

void small_messages_take(struct small_messages *s, uint8_t *out, lh_time now)
{
    const struct early *early = &s->matching.early;
    uint32_t number = s->matching.rx->next;
    early_copy(early, early_find(early, number), out);
    rx_take_message(s->matching.rx);
    arrived_want_ack(&s->matching, now);
    arrived_drop(&s->matching, number);
    rx_retire(s->matching.rx);
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static enum eager_state early_state_of(const struct small_messages *s, uint32_t number)
{
    switch (early_state(&s->matching.early, number)) {
    case EARLY_LONG:
        return s->matching.on ? EAGER_HELD : EAGER_OTHER;
    case EARLY_WHOLE:
        return EAGER_HELD;
    case EARLY_NOTHING:
    case EARLY_PARTIAL:
        break;
    }
    return EAGER_MISSING;
}

static enum eager_state state_of(const struct small_messages *s, uint32_t number)
{
    if (!rx_message_known(s->matching.rx, number))
        return early_state_of(s, number);
    const struct rx_message *message = rx_message_at(s->matching.rx, number);
    switch (message->state) {
    case RX_OPEN:
        return message->is_long ? EAGER_OTHER : EAGER_MISSING;
    case RX_REFUSED:
        return EAGER_OTHER;
    case RX_OVER:
        return EAGER_DELIVERED;
    case RX_EMPTY:
        break;
    }
    return message->notice.error ? EAGER_OTHER : early_state_of(s, number);
}

/* Returns the first message that it does not reach. */
static uint32_t make_ack(struct small_messages *s, struct eager_ack *ack)
{
    const struct inbound *inbound = &s->matching.inbound;
    rx_retire(s->matching.rx);
    ack->newest = inbound->newest;
    ack->received = inbound->received;
    ack->base = s->matching.rx->oldest;
    ack->posted = s->matching.rx->next;
    ack->run_count = 0;
    ack->is_part = s->reported_in_part && number_before(ack->base, s->reported);
    if (ack->is_part)
        ack->base = s->reported;
    uint32_t end = inbound->seen ? inbound->seen_next : ack->base;
    uint32_t from = ack->base;
    while (number_before(from, end) && eager_ack_add(ack, state_of(s, from))) /* at most MESSAGES_MAX */
        from++;
    return from;
}

/* Messages that did not fit an acknowledgement are reported when the first are over; or next, where those may
 * wait for long. */
static void on_acknowledged(struct small_messages *s, uint32_t reported, lh_time now)
{
    struct inbound *inbound = &s->matching.inbound;
    inbound_on_acknowledged(inbound);
    s->reported = reported;
    s->reported_in_part = s->matching.on && inbound->seen && number_before(reported, inbound->seen_next);
    if (s->reported_in_part)
        arrived_want_ack(&s->matching, now);
}

size_t small_messages_last(struct small_messages *s, uint8_t *out)
{
    struct eager_ack ack;
    struct eager_writer writer;
    if (!s->on || !s->matching.inbound.any)
        return 0;
    make_ack(s, &ack);
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, 0, &ack);
    return writer.bytes;
}

/* ---- packets ----------------------------------------------------------------------------------------- */

void small_messages_on_packet(struct small_messages *s, const uint8_t *data, size_t bytes, lh_time now)
{
    struct eager_packet packet;
    struct eager_entry entry;
    if (!s->on || eager_decode(data, bytes, &packet) != 0) {
        s->tx->stats->bad_control++;
        return;
    }
    inbound_on_carrier(&s->matching.inbound, &packet, s->tx->path->rtt_minimum_ns, now);
    while (!s->tx->effects->failure &&
           eager_next_entry(&packet, &entry)) /* each takes bytes of the packet */
        on_entry(s, &entry, now);
    matching_consider(&s->matching, now);
    /* After its messages: the program looks at those first, and may answer them. */
    if (packet.flags & EAGER_HAS_ACK)
        on_ack(s, &packet.ack, now);
}

static struct outgoing_path path_now(const struct small_messages *s)
{
    const struct lh_sdr_path *path = s->tx->path;
    double held = (double)path->pace_bps / BITS_PER_BYTE * (double)path->rtt_ns / (double)LH_NS_PER_S;
    uint64_t window_bytes = WINDOW_BYTES;
    if (path->rtt_minimum_ns >= LONG_RTT_NS && held > (double)window_bytes)
        window_bytes =
            held < (double)s->tx->attr->window_bytes ? (uint64_t)held : s->tx->attr->window_bytes;
    return (struct outgoing_path){
        .rtt_ns = path->rtt_ns,
        .rtt_minimum_ns = path->rtt_minimum_ns,
        .overdue_ns = timing_refresh_interval(path, 0),
        .reorder_window_ns = path->reorder_window_ns,
        .window_bytes = window_bytes < s->tx->attr->window_bytes ? window_bytes : s->tx->attr->window_bytes,
    };
}

/* Whether there may be another one. */
static bool send_one(struct small_messages *s, const struct outgoing_path *path, uint32_t limit,
                     bool with_ack, lh_time now)
{
    struct outgoing *outgoing = &s->tx->outgoing;
    uint8_t out[EAGER_LONG_MAX];
    struct eager_writer writer;
    struct eager_ack ack;
    uint32_t reported = 0;
    bool due = with_ack && s->matching.inbound.ack_at <= now;
    if (with_ack)
        reported = make_ack(s, &ack);
    bool alone = with_ack && ack.run_count > RUNS_BESIDE;
    eager_write_begin(&writer, out, limit, outgoing->carrier, with_ack ? &ack : NULL);
    bool filled = !alone && outgoing_fill(outgoing, path, now, &writer);
    if (!filled && !due && !alone)
        return false;
    lh_sdr_message_send(s->tx->qp, out,
                        writer.bytes); /* there is a place; else it is lost, and sent again */
    if (with_ack)
        on_acknowledged(s, reported, now);
    return filled || alone;
}

/* What several units of a message take in one packet has all the packet may have; else many small messages
 * would wait for each other. Of a message's packets the last one takes an acknowledgement along: the others
 * are of one size then, and leave as one burst. */
static bool send_packet(struct small_messages *s, const struct outgoing_path *path, lh_time now)
{
    bool ack_wanted = s->matching.inbound.ack_wanted;
    uint64_t bytes = outgoing_several_units(&s->tx->outgoing);
    uint32_t limit = bytes > 0 ? s->packet_max : eager_packet_max(s->tx->attr->mtu_bytes);
    if (ack_wanted && bytes > 0 && bytes + BESIDE_UNITS > limit && send_one(s, path, limit, false, now))
        return true;
    return send_one(s, path, limit, ack_wanted, now);
}

void small_messages_on_send(struct small_messages *s, uint32_t count, lh_time now)
{
    const struct outgoing *outgoing = &s->tx->outgoing;
    bool alone = outgoing->used && outgoing->next - outgoing->oldest == count &&
                 outgoing->unsent == outgoing->oldest;
    if (!s->on || !alone)
        return;
    const struct outgoing_path path = path_now(s);
    bool sent = false;
    while (outgoing->unsent != outgoing->next && sdr_qp_messages_room(s->tx->qp) > 0 &&
           send_packet(s, &path, now)) /* at most the units of the messages */
        sent = true;
    if (sent)
        sdr_qp_messages_flush(s->tx->qp);
}

/* A timer that was set stays, whatever is acknowledged meanwhile: what is sent before it needs no new one,
 * and no step to set it. */
static void keep_alarm(struct small_messages *s, lh_time now, lh_time *next)
{
    lh_time *alarm = &s->alarm_ns;
    if (*alarm <= now)
        *alarm = LH_TIME_NEVER;
    lh_keep_earlier(alarm, s->tx->outgoing.due_ns);
    lh_keep_earlier(next, *alarm);
}

void small_messages_step(struct small_messages *s, lh_time now, lh_time *next)
{
    if (!s->on)
        return;
    const struct outgoing_path path = path_now(s);
    announce_long(s, now, next);
    outgoing_poll(&s->tx->outgoing, &path, now);
    bool more = true;
    while (more && sdr_qp_messages_room(s->tx->qp) > 0) /* at most what the queue holds */
        more = send_packet(s, &path, now);
    if (more) { /* what is due now waits, too */
        lh_keep_earlier(next, now + FULL_AGAIN_NS);
        return;
    }
    if (s->tx->outgoing.used)
        keep_alarm(s, now, next);
    if (s->matching.inbound.ack_wanted)
        lh_keep_earlier(next, s->matching.inbound.ack_at);
}

/* Whether a step comes in time for what is due, whatever was asked for since the last one. */
static bool timers_are_set(const struct small_messages *s, lh_time due_ns)
{
    const struct outgoing *outgoing = &s->tx->outgoing;
    const struct inbound *inbound = &s->matching.inbound;
    return (!outgoing->used || due_ns <= outgoing->due_ns) &&
           (!inbound->ack_wanted || due_ns <= inbound->ack_at);
}

bool small_messages_need_step(const struct small_messages *s, uint64_t bytes, bool sending,
                              uint32_t pending, lh_time due_ns)
{
    const struct outgoing *outgoing = &s->tx->outgoing;
    bool first = pending <= 1; /* from now on the peer's silence counts */
    bool waits =
        sending ? outgoing->unsent != outgoing->next : s->matching.on || deadline_waits(s->matching.rx);
    return first || waits || !s->on || bytes > small_messages_max(s) || !timers_are_set(s, due_ns);
}
