/*
 * The lifeline is looked at every few milliseconds: that is how often the operating system is asked, no
 * protocol waits for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/liveness.h"

#include <stdio.h>

#include "connection/sender.h"
#include "connection/step.h"
#include "sdr/driver.h"

#define LOOK_BUSY_NS     (5 * LH_NS_PER_MS)  /* while something is pending */
#define LOOK_IDLE_NS     (50 * LH_NS_PER_MS) /* costs an idle worker one waking */
#define LIFELINE_LATE_NS (10 * LH_NS_PER_MS) /* what the operating system takes to hand a word over */
#define PING_FRACTION    4u                  /* of the timeout: a silent peer is pinged so often */
#define DEAF_FRACTION    8u  /* of the timeout: so long without a step, and we were not listening */
#define STEP_FRACTION    16u /* of the timeout: so often we want to be called */
#define PING_SPAN_MAX_NS LH_NS_PER_S

void liveness_start(struct lh_connection *c, lh_time now)
{
    c->liveness.since_ns = now;
    c->liveness.stepped_ns = now;
    c->liveness.silent_at = now;
    c->liveness.lifeline_at = now;
    lh_time span = c->attr.peer_timeout_ns / PING_FRACTION + 1;
    sdr_qp_keepalive_set(c->qp, span < PING_SPAN_MAX_NS ? span : PING_SPAN_MAX_NS);
}

static bool anything_pending(const struct lh_connection *c)
{
    return c->requests->pending > 0 || c->sender.telling > 0 || c->receiver.telling > 0;
}

static void check_silence(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct liveness *l = &c->liveness;
    bool deaf = now > l->stepped_ns && now - l->stepped_ns > c->attr.peer_timeout_ns / DEAF_FRACTION;
    l->stepped_ns = now;
    if (!anything_pending(c) || deaf) {
        l->since_ns = now;
        l->silent_at = now;
    }
    if (!anything_pending(c) || c->attr.peer_timeout_ns == LH_TIME_NEVER)
        return;
    if (l->silent_at <= now) {
        struct lh_sdr_path path;
        lh_sdr_path(c->qp, &path);
        lh_time heard = path.last_heard_ns > l->since_ns ? path.last_heard_ns : l->since_ns;
        l->silent_at = heard + c->attr.peer_timeout_ns;
    }
    if (l->silent_at <= now) {
        char words[CONNECTION_TEXT_MAX];
        snprintf(words, sizeof words, "nothing was heard of the peer for %llu ms",
                 (unsigned long long)(c->attr.peer_timeout_ns / LH_NS_PER_MS));
        connection_fail(c, LH_EPEER, words);
        return;
    }
    lh_keep_earlier(next, l->silent_at);
    lh_keep_earlier(next, now + c->attr.peer_timeout_ns / STEP_FRACTION + 1);
}

static void look_at_lifeline(struct lh_connection *c, lh_time now)
{
    struct liveness *l = &c->liveness;
    uint8_t last[TRANSFER_BYTES_MAX];
    size_t bytes = 0;
    int state = l->lifeline_ops->look(l->lifeline, last, &bytes);
    l->lifeline_at = now + (anything_pending(c) ? LOOK_BUSY_NS : LOOK_IDLE_NS);
    if (state == 0)
        return;
    /* What it acknowledges counts, though its packets may have been lost. */
    if (bytes > 0)
        step_on_message(c, last, bytes, now);
    if (state == -LH_ECLOSED)
        connection_fail(c, LH_ECLOSED, "the peer closed it");
    else if (state == -LH_EPATH)
        connection_fail(c, LH_EPATH, lh_strerror(LH_EPATH));
    else
        connection_fail(c, LH_EPEER, "the peer's process has ended");
}

/* The peer said goodbye by packets. Acknowledgements that it sent before may have been overtaken; and so may
 * the reason, which comes by the lifeline. */
static void on_goodbye(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct liveness *l = &c->liveness;
    if (l->closed_at == 0)
        l->closed_at = now + c->path.rtt_ns / 2 + (l->lifeline_ops ? LIFELINE_LATE_NS : 0);
    if (l->lifeline_ops)
        look_at_lifeline(c, now);
    if (l->closed_at <= now || c->sender.oldest == c->sender.next)
        connection_fail(c, LH_ECLOSED, "the peer closed it");
    else
        lh_keep_earlier(next, l->closed_at);
}

void liveness_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct liveness *l = &c->liveness;
    int ended = lh_sdr_error(c->qp);
    if (ended == -LH_ECLOSED)
        on_goodbye(c, now, next);
    else if (ended)
        connection_fail(c, (enum lh_error) - ended, lh_last_error());
    if (!c->error)
        check_silence(c, now, next);
    if (!c->error && l->lifeline_ops && l->lifeline_at <= now)
        look_at_lifeline(c, now);
    if (!c->error && l->lifeline_ops)
        lh_keep_earlier(next, l->lifeline_at);
}
