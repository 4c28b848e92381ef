/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/control/keepalive.h"

#include <stdio.h>

#include "base/earlier.h"
#include "base/error.h"
#include "sdr/driver.h"

#define LIFELINE_LATE_NS     (10 * LH_NS_PER_MS) /* what the operating system takes to deliver a reason */
#define PING_FRACTION        4u                  /* of the timeout: interval of pings to a silent peer */
#define DEAF_FRACTION        8u /* of the timeout: after such an interval without a step, nobody listened */
#define STEP_FRACTION        16u /* of the timeout: interval of steps */
#define PING_INTERVAL_MAX_NS LH_NS_PER_S

static lh_time ping_interval(const struct keepalive *k)
{
    return lh_earlier(k->timeout_ns / PING_FRACTION + 1, PING_INTERVAL_MAX_NS);
}

void keepalive_start(struct keepalive *k, struct sdr_qp *qp, lh_time timeout_ns, lh_time now)
{
    k->qp = qp;
    k->timeout_ns = timeout_ns;
    k->since_ns = now;
    k->stepped_ns = now;
    k->silent_at = now;
    sdr_qp_keepalive_set(qp, ping_interval(k));
}

static bool gone(struct keepalive_end *end, enum lh_error error, const char *reason)
{
    end->error = error;
    snprintf(end->reason, sizeof end->reason, "%s", reason);
    return true;
}

static bool on_silence_expired(const struct keepalive *k, struct keepalive_end *end)
{
    end->error = LH_EPEER;
    snprintf(end->reason, sizeof end->reason, "no packet from the peer for %llu ms%s",
             (unsigned long long)(k->timeout_ns / LH_NS_PER_MS),
             k->lost           ? ", its TCP connection has failed: the path or the peer is down"
             : k->lifeline_ops ? ", its TCP connection has not ended: the path or the peer is down, or a "
                                 "firewall drops UDP"
                               : "");
    return true;
}

static void restart(struct keepalive *k, lh_time now)
{
    k->since_ns = now;
    k->silent_at = now;
}

/* Silence counts while this side waits and listens. Another queue pair listens in place of one that it asks
 * for, and would have noted two intervals without an answer. */
static void note_listening(struct keepalive *k, bool waits, bool is_asked_for, lh_time now)
{
    lh_time answered_ns = now - lh_earlier(now, 2 * ping_interval(k));
    bool deaf = k->listens && now > k->stepped_ns && now - k->stepped_ns > k->timeout_ns / DEAF_FRACTION;
    if (!waits || !k->waits || deaf)
        restart(k, now);
    else if (!is_asked_for && !k->listens && k->since_ns < answered_ns)
        k->since_ns = answered_ns;
    k->stepped_ns = now;
    k->waits = waits;
    k->listens = waits && !is_asked_for;
}

static bool check_silence(struct keepalive *k, const struct keepalive_view *view, lh_time now,
                          lh_time *next, struct keepalive_end *end)
{
    bool waits = view->pending || k->lost;
    bool is_asked_for = sdr_qp_keepalive_want(k->qp, waits, now);
    note_listening(k, waits, is_asked_for, now);
    if (!waits || k->timeout_ns == LH_TIME_NEVER)
        return false;
    if (k->silent_at <= now) {
        struct lh_sdr_path path;
        lh_sdr_path(k->qp, &path);
        lh_time received_ns = path.last_heard_ns > k->since_ns ? path.last_heard_ns : k->since_ns;
        k->silent_at = received_ns + k->timeout_ns;
    }
    if (k->silent_at <= now && !is_asked_for)
        return on_silence_expired(k, end);
    if (k->silent_at <= now) { /* nobody listened */
        k->since_ns = now;
        k->silent_at = now + k->timeout_ns;
    }
    lh_keep_earlier(next, k->silent_at);
    if (!is_asked_for)
        lh_keep_earlier(next, now + k->timeout_ns / STEP_FRACTION + 1);
    return false;
}

/* With the peer's reason, if it gave one. */
static bool on_refused(struct keepalive_end *end)
{
    char reason[KEEPALIVE_REASON_MAX];
    snprintf(reason, sizeof reason, "%.*s", (int)end->last_bytes, (const char *)end->last);
    end->last_bytes = 0;
    return gone(end, LH_EPATH, *reason ? reason : lh_strerror(LH_EPATH));
}

/* Whoever owns the lifeline has this called when there is something to see. */
static bool look(struct keepalive *k, struct keepalive_end *end)
{
    int state = k->lifeline_ops->look(k->lifeline, end->last, &end->last_bytes);
    k->lost = state == LIFELINE_LOST && k->timeout_ns != LH_TIME_NEVER;
    if (state == 0 || k->lost)
        return false;
    if (state == LIFELINE_LOST)
        return gone(end, LH_EPEER, "its TCP connection has failed");
    if (state == -LH_ECLOSED)
        return gone(end, LH_ECLOSED, "the peer closed it");
    if (state == -LH_EPATH)
        return on_refused(end);
    return gone(end, LH_EPEER, "the peer's process has ended");
}

/* The peer closed by packets. Acknowledgements that it sent before may be reordered behind that; and so may
 * the reason, which comes by the lifeline. */
static bool on_fin(struct keepalive *k, const struct keepalive_view *view, lh_time now, lh_time *next,
                   struct keepalive_end *end)
{
    if (k->closed_at == 0)
        k->closed_at = now + view->rtt_ns / 2 + (k->lifeline_ops ? LIFELINE_LATE_NS : 0);
    if (k->lifeline_ops && look(k, end))
        return true;
    if (k->closed_at <= now || !view->sends_open)
        return gone(end, LH_ECLOSED, "the peer closed it");
    lh_keep_earlier(next, k->closed_at);
    return false;
}

bool keepalive_step(struct keepalive *k, const struct keepalive_view *view, lh_time now, lh_time *next,
                    struct keepalive_end *end)
{
    int ended = lh_sdr_error(k->qp);
    end->last_bytes = 0;
    if (ended && ended != -LH_ECLOSED)
        return gone(end, (enum lh_error) - ended, lh_last_error());
    if (ended && on_fin(k, view, now, next, end))
        return true;
    if (k->lifeline_ops && look(k, end))
        return true;
    return check_silence(k, view, now, next, end);
}
