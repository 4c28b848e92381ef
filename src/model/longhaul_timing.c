/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/longhaul_timing.h"

#include <assert.h>
#include <math.h>

/* How long the last chunk waits in the send queue. Its timer runs meanwhile. The queue is filled to its
 * limit first, and again by half of it whenever it is half empty. */
static double queued_s(const struct lh_model_path *path, const struct model_message *message)
{
    double chunk_bytes = (double)path->chunk_bytes;
    double limit = fmax((double)MODEL_QUEUE_BYTES, MODEL_QUEUE_CHUNKS * chunk_bytes);
    double chunks = fmax(1, floor(limit / chunk_bytes));
    double fillings = fmax(0, ceil((message->chunks - chunks) / (chunks / 2)));
    return (message->chunks - fillings * chunks / 2) * message->inject_s;
}

static void set_window(const struct lh_model_path *path, struct model_message *message)
{
    message->longhaul = true;
    message->window_s =
        path->reorder_window_s > 0 ? path->reorder_window_s : MODEL_WINDOW_RTTS * message->rtt_s;
}

void model_timing_by_timeout(const struct lh_model_path *path, struct model_message *message)
{
    double least_s = (MODEL_OVERDUE_RTTS + MODEL_ACK_SPACING_RTTS) * message->rtt_s;
    double queue_s = queued_s(path, message);
    set_window(path, message);
    message->first_s = fmax(message->rto_s - queue_s, least_s); /* a queue of hours would round it away */
    message->rto_s = fmax(message->rto_s, least_s);
    assert(message->first_s >= message->rtt_s * (1 - 1e-9));
}

void model_timing_by_report(const struct lh_model_path *path, double rto_rtts,
                            struct model_message *message)
{
    double rtts = rto_rtts > 0 ? rto_rtts : MODEL_RTO_NACK;
    set_window(path, message);
    message->rto_s = rtts * message->rtt_s + message->window_s;
    message->first_s = message->rto_s;
    assert(message->first_s >= message->rtt_s * (1 - 1e-9));
}

void model_timing_repairs(struct model_message *message)
{
    double sent_s = message->chunks * message->inject_s;
    message->repairs_s = message->loss.chunk / (1 - message->loss.chunk) *
                         fmax(0, sent_s - message->first_s - message->inject_s);
    assert(message->repairs_s >= 0);
}
