/*
 * backlog.h - data that is still to be injected, of all messages: parity comes after it.
 *
 * A segment's machine sees in its view what else waits (longhaul/scheme.h). What can be injected at once
 * makes its parity wait: data of other segments, and of messages whose next segment can be begun. It is
 * stepped again when nothing of that is left.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_BACKLOG_H
#define LH_MESSAGE_TX_BACKLOG_H

#include "message/tx/tx.h"

/* A message was added that clear-to-sends start; a segment of it was begun; one has ended, or the message. */
void backlog_on_message(struct tx *tx, struct tx_message *message);
void backlog_on_segment(struct tx *tx, struct tx_message *message, struct tx_segment *segment);
void backlog_on_segment_over(struct tx *tx, struct tx_segment *segment);
void backlog_on_message_over(struct tx *tx, struct tx_message *message);
/* A clear-to-send has taken a place of the ring, whatever it was for. */
void backlog_on_place(struct tx *tx);
/* Data chunks up to `end` of a segment have been injected at least once. */
void backlog_on_injected(struct tx *tx, struct tx_segment *segment, uint32_t end);
/* What a segment's machine sees of it. */
void backlog_view(struct tx *tx, const struct tx_segment *segment, struct lh_sender_view *view);
/* At the end of a step: parity that waited, and need not any more, has its machine stepped again. */
void backlog_release(struct tx *tx, lh_time now, lh_time *next);

#endif
