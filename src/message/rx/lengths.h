/*
 * lengths.h - TO_RECEIVER: the lengths of a segment and its message, and what its machine sends.
 *
 * A message may be shorter than its buffer. When its length is announced, segments past the end are given
 * back, and are not posted any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_LENGTHS_H
#define LH_MESSAGE_RX_LENGTHS_H

#include "message/rx/rx.h"

/* Answered by DONE or REFUSE when the segment is over. */
void lengths_on_to_receiver(struct rx *rx, const struct transfer_message *message, lh_time now);

#endif
