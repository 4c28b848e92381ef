/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/step.h"

#include "connection/arrivals.h"
#include "connection/auto_scheme.h"
#include "connection/done.h"
#include "connection/liveness.h"
#include "connection/receiver.h"
#include "connection/sender.h"
#include "connection/verdict.h"

#define MESSAGES_A_STEP 256u /* of the peer, so that a flood cannot hold the worker */
/* How soon to look again for what another worker does (it injects, and does not wake this one). */
#define OTHERS_NS           (20 * LH_NS_PER_US)
#define POST_AGAIN_FRACTION 8u /* of a round trip */

void step_on_message(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now)
{
    struct transfer_message message;
    if (transfer_decode(data, bytes, &message) != 0) {
        c->stats.bad_control++;
        return;
    }
    switch (message.kind) {
    case TRANSFER_TO_RECEIVER:
        receiver_on_to_receiver(c, &message, now);
        return;
    case TRANSFER_TO_SENDER:
        sender_on_to_sender(c, &message, now);
        return;
    case TRANSFER_DONE:
        sender_on_done(c, &message, now);
        return;
    case TRANSFER_REFUSE:
        verdict_on_refuse(c, &message, now);
        return;
    case TRANSFER_CANCEL:
        verdict_on_cancel(c, &message, now);
        return;
    case TRANSFER_FORGET:
        verdict_on_forget(c, &message);
        return;
    }
}

static bool hear(struct lh_connection *c, lh_time now)
{
    uint8_t data[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    uint32_t count = 0;
    while (count < MESSAGES_A_STEP && lh_sdr_message_recv(c->qp, data, &bytes) == 0) {
        if (count++ == 0)
            lh_sdr_path(c->qp, &c->path);
        step_on_message(c, data, bytes, now);
    }
    return count > 0;
}

/* Everything that is due. */
static void act(struct lh_connection *c, lh_time now)
{
    const struct sender *s = &c->sender;
    lh_time next = LH_TIME_NEVER;
    c->touched = false;
    lh_sdr_path(c->qp, &c->path);
    uint32_t posted = c->receiver.segment_next;
    arrivals_step(c, now, &next);
    receiver_post(c, now);
    auto_scheme_step(c, now, &next);
    if (c->receiver.segment_next != posted)
        arrivals_step(c, now, &next); /* the timers of those that were just posted */
    sender_step(c, now, &next);
    verdict_step(c, now, &next);
    done_step(c, now, &next);
    bool others = c->attr.workers != LH_NO_WORKERS && c->attr.workers > 1;
    if (others && (s->starved || s->ending_count > 0 || s->held_head != s->held_tail))
        lh_keep_earlier(&next, now + OTHERS_NS);
    if (c->receiver.post_refused)
        lh_keep_earlier(&next, now + connection_repeat_span(c, 0) / POST_AGAIN_FRACTION);
    c->due_ns = next;
}

static lh_time step_locked(struct lh_connection *c, lh_time now)
{
    if (!c->attached || c->error)
        return LH_TIME_NEVER;
    lh_time next = LH_TIME_NEVER;
    bool arrived = arrivals_look(c, now);
    bool heard = hear(c, now);
    bool coded = coder_has_news(c->coder);
    if (coded)
        coder_collect(c, now);
    liveness_step(c, now, &next);
    if (!c->error && (heard || arrived || coded || c->touched || c->due_ns <= now || sender_has_work(c)))
        act(c, now);
    if (c->error)
        return LH_TIME_NEVER;
    lh_keep_earlier(&next, c->due_ns);
    return next;
}

lh_time connection_step(void *connection, lh_time now)
{
    struct lh_connection *c = connection;
    pthread_mutex_lock(&c->requests->lock);
    lh_time next = step_locked(c, now);
    pthread_mutex_unlock(&c->requests->lock);
    return next;
}
