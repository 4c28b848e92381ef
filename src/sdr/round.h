/*
 * round.h - a worker's round: it serves the QPs that are ready and those that are due, and no others.
 *
 * A QP is ready when it was marked (qp.h: qp_wake_channel and its like), when one of its descriptors is
 * readable, and when something moved in it the last time. It is due when it said so when it was served last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_ROUND_H
#define LH_SDR_ROUND_H

#include "sdr/worker.h"

/* One round of worker `index` (of `count`). Returns whether anything moved; *next: when the next round is due
 * at the latest. */
bool round_run(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next);
/* Under the gates of all workers: the QP has an entry in each worker's queue from then on, or in none. */
void round_add_qp(struct sdr_context *context, struct sdr_qp *qp);
void round_remove_qp(struct sdr_context *context, struct sdr_qp *qp);

#endif
