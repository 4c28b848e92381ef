/*
 * longhaul_timing.h - the times of Longhaul's own machines, where they are not the paper's (docs/model.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_LONGHAUL_TIMING_H
#define LH_MODEL_LONGHAUL_TIMING_H

#include "model/message.h"

#define MODEL_RTO_DEFAULT 3.0 /* of sr-rto and of a fallback to selective repeat: paper, section 5.1.1 */
#define MODEL_RTO_NACK    1.0 /* the paper's best case of negative acknowledgements */

/* Of a path that lh_connection_path() has not measured: base/rtt.h begins with these. */
#define MODEL_WINDOW_RTTS      0.125
#define MODEL_OVERDUE_RTTS     1.125
#define MODEL_ACK_SPACING_RTTS 0.25
/* What the connection puts into the send queue ahead of the wire. */
#define MODEL_QUEUE_BYTES  ((uint64_t)512 << 10)
#define MODEL_QUEUE_CHUNKS 2u

/* Losses are found by a timeout, which runs from the moment a chunk is queued. Sets rto_s, first_s,
 * window_s and longhaul; everything else in the message is set. */
void model_timing_by_timeout(const struct lh_model_path *path, struct model_message *message);
/* Losses are reported by the receiver, after a reordering window; rto_rtts 0: as soon as possible. */
void model_timing_by_report(const struct lh_model_path *path, double rto_rtts,
                            struct model_message *message);
/* Then, by selective repeat: repairs share the link with the first injections. Sets repairs_s. */
void model_timing_repairs(struct model_message *message);

#endif
