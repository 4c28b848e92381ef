/*
 * receiver.h - buffers to fill: cut into segments, which are posted in order as places are free.
 *
 * A message may be shorter than its buffer. When the sender tells the lengths, segments past the end are
 * given back, and are not posted any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_RECEIVER_H
#define LH_CONNECTION_RECEIVER_H

#include "connection/connection.h"

#define MESSAGE_BYTES_UNKNOWN UINT64_MAX

int receiver_init(struct lh_connection *c); /* -LH_ENOMEM */
void receiver_free(struct lh_connection *c);

/* Posts what there is room for. */
void receiver_post(struct lh_connection *c, lh_time now);
/* Lengths, and what the sender's machine says; answers when the segment is over. */
void receiver_on_to_receiver(struct lh_connection *c, const struct transfer_message *message, lh_time now);

/* An open segment has arrived: whole, or as much of it as the rest can be decoded from. */
void receiver_segment_done(struct lh_connection *c, struct recv_segment *segment, bool whole, lh_time now);
/* The coder has recovered the rest. */
void receiver_segment_decoded(struct lh_connection *c, struct recv_segment *segment, lh_time now);
/* Ends an open message with this error (negative): from the return on nothing changes its buffer. */
void receiver_end_message(struct lh_connection *c, struct recv_message *message, int error,
                          enum recv_state state, lh_time now);
void receiver_end_all(struct lh_connection *c, int error, lh_time now);
/* Moves on past segments and messages that are over. */
void receiver_retire(struct lh_connection *c);

#endif
