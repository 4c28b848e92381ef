/*
 * partial.h - which packets of a message with a deadline have come, and what is done about the others.
 *
 * The bits are taken with the message's first segment, so that none that ends lacks memory for them. A
 * segment's are set when it is closed: whatever comes later changes neither them nor the buffer. Those of
 * a message that lacks something go to its request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_PARTIAL_H
#define LH_MESSAGE_RX_PARTIAL_H

#include "message/rx/rx.h"

/* Whether this side receives with deadlines. */
bool partial_is_allowed(const struct rx *rx);
/* Memory for the bits of a message, if it has a deadline. False: none now. */
bool partial_hold(struct rx *rx, struct rx_message *message);
/* Closes the receive of a segment's bytes. */
void partial_close(struct rx *rx, const struct rx_segment *segment);
/* A segment is whole, or these chunks of it are recovered by its parity: they count as arrived. */
void partial_add_segment(struct rx *rx, const struct rx_segment *segment);
void partial_add_recovered(struct rx *rx, const struct rx_segment *segment, const uint8_t *recovered);
/* Copies what has come of a segment from its memory to the user's parts. */
void partial_copy(const struct rx *rx, const struct rx_segment *segment);
/* The message ends so: its request gets what is missing, and its memory. */
void partial_end(struct rx *rx, struct rx_message *message, int error);

#endif
