/*
 * qp_round.h - one channel of a QP: arrivals into bitmaps, ranges into packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_ROUND_H
#define LH_SDR_QP_ROUND_H

#include "sdr/qp.h"

/* One round, by the channel's worker. Returns whether anything moved; *next is lowered to when the next round
 * is due. */
bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, lh_time now, lh_time *next);

#endif
