/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/running.h"

#include <assert.h>
#include <math.h>

#include "model/scheme.h"

/* How long the last chunk waits in the send queue. Its timer runs meanwhile. The queue is filled to its
 * limit first, and again by half of it whenever it is half empty. */
static double queued_s(const struct lh_model_path *path, const struct model_terms *terms)
{
    double chunk_bytes = (double)path->chunk_bytes;
    double limit = fmax((double)MODEL_QUEUE_BYTES, MODEL_QUEUE_CHUNKS * chunk_bytes);
    double chunks = fmax(1, floor(limit / chunk_bytes));
    double fillings = fmax(0, ceil((terms->chunks - chunks) / (chunks / 2)));
    return (terms->chunks - fillings * chunks / 2) * terms->inject_s;
}

static void by_timeout(const struct lh_model_path *path, struct model_terms *terms)
{
    double overdue_s = MODEL_OVERDUE_RTTS * terms->rtt_s;
    double queue_s = queued_s(path, terms);
    terms->first_s = fmax(terms->rto_s - queue_s, overdue_s); /* a queue of hours would round it away */
    terms->rto_s = fmax(terms->rto_s, overdue_s);
}

void model_running_terms(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                         struct model_terms *terms)
{
    terms->longhaul = true;
    terms->window_s =
        path->reorder_window_s > 0 ? path->reorder_window_s : MODEL_WINDOW_RTTS * terms->rtt_s;
    if (scheme->kind == LH_MODEL_SR_RTO) {
        by_timeout(path, terms);
    } else if (scheme->kind == LH_MODEL_SR_NACK || model_scheme_codes(scheme)) {
        double rtts = scheme->rto_rtts > 0 ? scheme->rto_rtts : MODEL_RTO_NACK; /* a fallback asks, too */
        terms->rto_s = rtts * terms->rtt_s + terms->window_s;
        terms->first_s = terms->rto_s;
    } else {
        return;
    }
    double sent_s = terms->chunks * terms->inject_s;
    if (!model_scheme_codes(scheme))
        terms->repairs_s = terms->loss.chunk / (1 - terms->loss.chunk) *
                           fmax(0, sent_s - terms->first_s - terms->inject_s);
    assert(terms->first_s >= terms->rtt_s * (1 - 1e-9) && terms->repairs_s >= 0);
}
