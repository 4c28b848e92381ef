/*
 * to_receiver.h - TO_RECEIVER: the lengths of a segment and its message, and what its machine sends.
 *
 * A machine's message is held back until the chunks injected before it have left, so that it speaks of
 * chunks that are in flight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_TO_RECEIVER_H
#define LH_MESSAGE_TX_TO_RECEIVER_H

#include "message/tx/tx.h"

/* Announces the lengths, without bytes of the scheme. Sets segment->lengths_at. */
void to_receiver_lengths(struct tx *tx, struct tx_segment *segment, lh_time now);
/* Sends a message of the segment's machine; the lengths go with it. Lost when HELD_MAX messages wait. */
void to_receiver_scheme(struct tx *tx, struct tx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now);
/* Sends held messages whose chunks have left by now. */
void to_receiver_send_held(struct tx *tx);

#endif
