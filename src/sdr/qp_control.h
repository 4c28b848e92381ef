/*
 * qp_control.h - the control half of a QP: messages from and to the peer, timers, the driver's step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_CONTROL_H
#define LH_SDR_QP_CONTROL_H

#include "sdr/qp.h"

/* A round of the control worker is a poll, for messages from the peer, and what follows from them. Returns
 * whether there were any. */
bool qp_control_poll(struct sdr_qp *qp, lh_time now);
/* After messages came: the driver's step alone. Whether it is to go on in the next round, after the program
 * has seen what it delivered. */
bool qp_control_deliver(struct sdr_qp *qp, lh_time now);
/* The driver's step, and messages to the peer. Returns whether any left; *next is lowered to when the next
 * round is due. */
bool qp_control_act(struct sdr_qp *qp, lh_time now, lh_time *next);
/* Sends a CLOSE that waits, before the QP is destroyed. */
void qp_close_flush(struct sdr_qp *qp);

#endif
