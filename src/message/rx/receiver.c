/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/receiver.h"

#include "base/error.h"
#include "message/control/number.h"
#include "message/rx/arrivals.h"
#include "message/rx/auto_scheme.h"
#include "message/rx/deadline.h"
#include "message/rx/decoding.h"
#include "message/rx/done.h"
#include "message/rx/messages.h"
#include "message/rx/posting.h"
#include "message/rx/refuse.h"
#include "sdr/driver.h"

void receiver_init(struct rx *rx, const struct lh_attr *attr, const struct scheme_choice *choice,
                   const struct lh_sdr_path *path, struct coder *coder, struct parity_pool *parity,
                   struct store *store)
{
    *rx = (struct rx){
        .attr = attr, .path = path, .coder = coder, .parity = parity, .choice = *choice, .store = store};
    rx->active_bytes = MESSAGE_BYTES_UNKNOWN;
    ring_init(&rx->messages, sizeof(struct rx_message), MESSAGES_MAX);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static size_t segments_bytes(const struct rx *rx)
{
    return rx->attr->slots * sizeof *rx->segments;
}

/* What it learns of the path stays. */
static int hold_automatic(struct rx *rx)
{
    struct auto_scheme *memory = store_take(rx->store, sizeof *memory);
    if (!memory)
        return -LH_ENOMEM;
    auto_scheme_init(rx, memory);
    return 0;
}

int receiver_hold(struct rx *rx, uint32_t count)
{
    bool measures = rx->choice.automatic || rx->choice.scheme->measured;
    if (measures && !rx->automatic && hold_automatic(rx))
        return -LH_ENOMEM;
    if (!rx->matched && !ring_hold(&rx->messages, rx->store, rx->oldest, rx->next - rx->oldest + count))
        return -LH_ENOMEM;
    if (!rx->segments)
        rx->segments = store_take(rx->store, segments_bytes(rx));
    return rx->segments ? 0 : -LH_ENOMEM;
}

static void free_segments(struct rx *rx)
{
    for (uint32_t i = 0; rx->segments && i < rx->attr->slots; i++)
        store_give(rx->store, rx->segments[i].machine, rx->segments[i].machine_bytes);
    store_give(rx->store, rx->segments, segments_bytes(rx));
    rx->segments = NULL;
}

void receiver_give_back(struct rx *rx)
{
    rx_retire(rx);
    if (rx->oldest != rx->next || rx->segment_oldest != rx->segment_next)
        return;
    free_segments(rx);
    auto_scheme_give_back(rx);
    if (!number_before(rx->next, rx->ahead))
        ring_free(&rx->messages, rx->store);
}

void receiver_close(struct rx *rx)
{
    free_segments(rx);
    auto_scheme_give_back(rx);
    store_give(rx->store, rx->automatic, sizeof *rx->automatic);
    ring_free(&rx->messages, rx->store);
}

/* ---- the user ---------------------------------------------------------------------------------------- */

int receiver_check(const struct rx *rx, uint64_t capacity)
{
    if (capacity > TRANSFER_ROOM_MAX || capacity / scheme_segment_bytes(&rx->choice, rx->attr) >= INT32_MAX)
        return lh_fail(LH_EINVAL, "buffer of %llu bytes: too long", (unsigned long long)capacity);
    if (!rx->matched && rx->next - rx->oldest == MESSAGES_MAX)
        return lh_fail(LH_EAGAIN, "%u messages are in flight: wait for one", MESSAGES_MAX);
    return 0;
}

void receiver_recv(struct rx *rx, struct message_request *request, const struct message_buffer *buffer,
                   uint64_t capacity, lh_time now)
{
    struct rx_message *message = rx_add_message(rx, request, buffer, capacity);
    if (message->forgotten)
        rx_end_message(rx, message, -message->notice.error, RX_OVER, now);
    else if (message->notice.error)
        refuse_message(rx, message, message->notice.error, now);
    rx_retire(rx);
}

void receiver_cancel(struct rx *rx, uint32_t number, lh_time now)
{
    refuse_message(rx, rx_message_at(rx, number), LH_ECANCELED, now);
}

void receiver_end_all(struct rx *rx, int error, lh_time now)
{
    decoding_finish(rx, now);
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (message->state == RX_OPEN)
            rx_end_message(rx, message, error, RX_OVER, now);
    }
}

void receiver_rest(struct rx *rx)
{
    for (uint32_t n = rx->oldest; n != rx->next; n++) /* at most MESSAGES_MAX */
        rx_message_at(rx, n)->state = RX_OVER;
    rx->refusing = 0;
    rx->ahead = rx->next;
    rx_retire(rx);
}

/* ---- time -------------------------------------------------------------------------------------------- */

void receiver_step(struct rx *rx, lh_time now, lh_time *next)
{
    lh_time expired = arrivals_step(rx, rx->segment_oldest, now, next);
    deadline_step(rx, now, next);
    /* A machine may wait for what other workers still have to poll, and those may be asleep. */
    if (rx->caught_up_ns < expired)
        sdr_qp_catch_up(rx->qp, expired);
}

void receiver_post(struct rx *rx, lh_time now, lh_time *next)
{
    uint32_t posted = rx->segment_next;
    posting_step(rx, now);
    arrivals_step(rx, posted, now, next); /* the machines of those that were just posted */
    deadline_on_posted(rx, now, next);
}

void receiver_announce(struct rx *rx, lh_time now, lh_time *next)
{
    refuse_on_refresh_expired(rx, now, next);
    done_step(rx, now, next);
}
