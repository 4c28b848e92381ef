/*
 * tell.h - saying things to the peer's connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_TELL_H
#define LH_CONNECTION_TELL_H

#include "connection/connection.h"

/* False when the queue is full: the message is lost then, as the network may lose it. */
bool tell(struct lh_connection *c, const struct transfer_message *message);
/* The lengths of a segment and its message, without a word of the scheme. */
void tell_lengths(struct lh_connection *c, struct send_segment *segment, lh_time now);
/* What a sender's machine says: behind the chunks that were posted before it. */
void tell_receiver(struct lh_connection *c, struct send_segment *segment, const uint8_t *data,
                   uint32_t bytes, lh_time now);
/* What a receiver's machine says. */
void tell_sender(struct lh_connection *c, const struct recv_segment *segment, const uint8_t *data,
                 uint32_t bytes);
/* Sends what was held back behind chunks that have left by now. */
void tell_held(struct lh_connection *c);

#endif
