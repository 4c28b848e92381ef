/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/message_control.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <longhaul/connection.h>
#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>

#include "base/error.h"
#include "base/min_max.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "wire/control_messages.h"

/* ---- control tx ------------------------------------------------------------------------------------ */

bool control_tx_send(struct sdr_qp *qp, const struct transfer_message *message)
{
    uint8_t bytes[TRANSFER_BYTES_MAX];
    return lh_sdr_message_send(qp, bytes, transfer_encode(message, bytes)) == 0;
}

bool control_tx_abort(struct sdr_qp *qp, enum transfer_kind kind, uint32_t number, int error)
{
    struct transfer_message message = {.kind = kind};
    message.body.verdict.message = number;
    message.body.verdict.error = (uint32_t)error;
    return control_tx_send(qp, &message);
}

void control_tx_to_sender(struct sdr_qp *qp, uint32_t segment, const uint8_t *data, uint32_t bytes)
{
    struct transfer_message message = {.kind = TRANSFER_TO_SENDER};
    message.body.to_sender.segment = segment;
    message.body.to_sender.scheme = data;
    message.body.to_sender.scheme_bytes = bytes;
    control_tx_send(qp, &message);
}

/* ---- effects --------------------------------------------------------------------------------------- */

void effects_finish(struct effects *effects, struct message_request *request, int error, uint64_t bytes,
                    lh_time now)
{
    request->result.error = error;
    request->result.bytes = bytes;
    /* A round may have begun before the call that started what ends in it. */
    request->result.ended_ns = lh_max(now, request->result.started_ns);
    request->next = NULL;
    if (effects->finished)
        effects->last->next = request;
    else
        effects->finished = request;
    effects->last = request;
}

void effects_fail(struct effects *effects, enum lh_error error, const char *reason)
{
    if (effects->failure)
        return;
    effects->failure = (int)error;
    effects->reason = store_try(effects->store, REASON_MAX);
    if (effects->reason)
        snprintf(effects->reason, REASON_MAX, "%s", reason);
}

const char *effects_reason(const struct effects *effects)
{
    return effects->reason ? effects->reason : lh_strerror((enum lh_error)effects->failure);
}

/* ---- keepalive ------------------------------------------------------------------------------------- */

#define CONTROL_CONNECTION_LATE_NS                                                                         \
    (10 * LH_NS_PER_MS)         /* what the operating system takes to deliver a reason */
#define PING_FRACTION        4u /* of the timeout: interval of pings to a silent peer */
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
             k->lost ? ", its TCP connection has failed: the path or the peer is down"
             : k->control_connection_ops
                 ? ", its TCP connection has not ended: the path or the peer is down, or a "
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

/* Whoever owns the control connection has this called when there is something to see. */
static bool look(struct keepalive *k, struct keepalive_end *end)
{
    int state = k->control_connection_ops->look(k->control_connection, end->last, &end->last_bytes);
    k->lost = state == CONTROL_CONNECTION_LOST && k->timeout_ns != LH_TIME_NEVER;
    if (state == 0 || k->lost)
        return false;
    if (state == CONTROL_CONNECTION_LOST)
        return gone(end, LH_EPEER, "its TCP connection has failed");
    if (state == -LH_ECLOSED)
        return gone(end, LH_ECLOSED, "the peer closed it");
    if (state == -LH_EPATH)
        return on_refused(end);
    return gone(end, LH_EPEER, "the peer's process has ended");
}

/* The peer closed by packets. Acknowledgements that it sent before may be reordered behind that; and so may
 * the reason, which comes by the control connection. */
static bool on_fin(struct keepalive *k, const struct keepalive_view *view, lh_time now, lh_time *next,
                   struct keepalive_end *end)
{
    if (k->closed_at == 0)
        k->closed_at =
            now + view->rtt_ns / 2 + (k->control_connection_ops ? CONTROL_CONNECTION_LATE_NS : 0);
    if (k->control_connection_ops && look(k, end))
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
    if (k->control_connection_ops && look(k, end))
        return true;
    return check_silence(k, view, now, next, end);
}

/* ---- timing ---------------------------------------------------------------------------------------- */

#define FIRST_INTERVAL_NS (100 * LH_NS_PER_MS) /* before the first round-trip sample */
#define DOUBLINGS_MAX     6u

lh_time timing_refresh_interval(const struct lh_sdr_path *path, uint32_t retransmissions)
{
    lh_time interval_ns = path->overdue_ns ? path->overdue_ns : FIRST_INTERVAL_NS;
    return interval_ns << (retransmissions < DOUBLINGS_MAX ? retransmissions : DOUBLINGS_MAX);
}

struct lh_path_view timing_path_view(const struct lh_sdr_path *path)
{
    return (struct lh_path_view){
        .rtt_ns = path->rtt_ns,
        .rtt_minimum_ns = path->rtt_minimum_ns,
        .overdue_ns = path->overdue_ns,
        .reorder_window_ns = path->reorder_window_ns,
    };
}

/* ---- abort ----------------------------------------------------------------------------------------- */

#define QUEUE_FULL_FRACTION 8u /* of the interval: a user may cancel thousands of messages at once */

int abort_error(int error)
{
    return lh_error_known(error) ? error : LH_EPROTOCOL;
}

void abort_send(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind, uint32_t number,
                const struct lh_sdr_path *path, lh_time now)
{
    if (control_tx_abort(qp, kind, number, notice->error))
        notice->refresh_at = now + timing_refresh_interval(path, notice->sent++);
    else
        notice->refresh_at = now + timing_refresh_interval(path, 0) / QUEUE_FULL_FRACTION;
}

void abort_on_refresh_expired(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind,
                              uint32_t number, const struct lh_sdr_path *path, lh_time now, lh_time *next)
{
    if (notice->refresh_at <= now)
        abort_send(notice, qp, kind, number, path, now);
    lh_keep_earlier(next, notice->refresh_at);
}
