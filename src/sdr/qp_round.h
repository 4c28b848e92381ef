/*
 * qp_round.h - one channel of a QP: arrivals into bitmaps, ranges into packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_ROUND_H
#define LH_SDR_QP_ROUND_H

#include "sdr/qp.h"

/* Of the channels index, index + count, ... of a worker: the one to serve first. Where a pace lets little
 * out, packets leave in the order of their posts: the receiver takes what is overtaken for lost. */
uint32_t qp_first_channel(const struct sdr_qp *qp, uint32_t index, uint32_t count);
/* One round, by the channel's worker. Returns whether anything moved; *next is lowered to when the next round
 * is due, *cost raised by what moved (turns.h). */
bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, lh_time now, lh_time *next, uint64_t *cost);

#endif
