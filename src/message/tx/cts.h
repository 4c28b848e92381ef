/*
 * cts.h - clear-to-sends of the receiver: each starts a segment, or opens the way for the parity
 * of one, or is passed by.
 *
 * They are taken in order. One of an earlier message is passed by: its receiver posted more segments than
 * the message needed. One of a later message waits: the receiver has ended the current one, and says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_CTS_H
#define LH_MESSAGE_TX_CTS_H

#include "message/tx/tx.h"

/* Clear-to-sends of parity belong to the segment right before them, unless that is over. Whether there were
 * any. */
bool cts_use_parity(struct tx *tx);
/* Starts segments as they are cleared to be sent and there is room. Lowers *next. */
void cts_start_segments(struct tx *tx, lh_time now, lh_time *next);

#endif
