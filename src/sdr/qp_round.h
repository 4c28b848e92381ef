/*
 * qp_round.h - one channel of a QP: arrivals into bitmaps, ranges into packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_ROUND_H
#define LH_SDR_QP_ROUND_H

#include "sdr/run/channel_order.h"
#include "sdr/qp.h"

/* The order of a round over the channels index, index + count, ... of a worker: any, where nothing paces. */
void qp_order_channels(const struct sdr_qp *qp, uint32_t index, uint32_t count,
                       struct channel_order *order);
/* Arrivals alone, by the channel's worker. Returns whether there were any; *cost as below. */
bool qp_channel_poll(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost);
/* One round, by the channel's worker: a batch of arrivals, and up to `batches` of packets to send. Returns
 * whether anything moved; *order learns what is left, *next is lowered to when the next round is due, *cost
 * raised by what moved (turns.h). */
bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, struct channel_order *order, uint32_t batches,
                      lh_time now, lh_time *next, uint64_t *cost);

#endif
