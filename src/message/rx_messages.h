/*
 * messages.h - messages to receive: added, ended when all their segments have arrived or by an error,
 * retired.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_MESSAGES_H
#define LH_MESSAGE_RX_MESSAGES_H

#include "message/rx/rx.h"
#include "message/rx/waiting.h"

/* The next message; rx->next - rx->oldest must be below MESSAGES_MAX. An error that came ahead of it is in
 * notice.error. */
struct rx_message *rx_add_message(struct rx *rx, struct message_request *request,
                                  const struct message_buffer *buffer, uint64_t capacity);
/* A message before rx->next that has no receive gets one. */
struct rx_message *rx_bind_message(struct rx *rx, uint32_t number, const struct rx_receive *receive);
/* The next message came without a receive, and is over; likewise. */
void rx_take_message(struct rx *rx);
/* Closes the slots of an open segment, which becomes `state`: no packet changes its buffer any more. */
void rx_close_segment(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state);
/* One more segment of an open message has all its bytes, and is closed: copies them to the user's parts. The
 * message ends with the last one. */
void rx_finish_segment(struct rx *rx, struct rx_segment *segment, lh_time now);
/* All segments that an open message will have are finished. Of one that was cut the sender is told so. */
void rx_deliver_message(struct rx *rx, struct rx_message *message, lh_time now);
/* Ends an open message with this error (negative): from the return on nothing changes its buffer. Nothing
 * of it may be left to be decoded. */
void rx_end_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state, lh_time now);
/* Moves on past segments and messages that are over. */
void rx_retire(struct rx *rx);

#endif
