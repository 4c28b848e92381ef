/*
 * memory.h - memory of the connection's own that a segment needs: for its parity, and for what is copied of a
 * message in several parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_MEMORY_H
#define LH_MESSAGE_TX_MEMORY_H

#include "message/buffer/pieces.h"
#include "message/tx/tx.h"

/* Where the bytes of a segment lie. */
struct tx_place {
    const uint8_t *payload; /* in one place; NULL: in pieces, or no bytes */
    uint32_t lkey;
    struct parity_buffer *copied;  /* NULL: nothing is to be copied */
    struct segment_pieces *pieces; /* in its notes; NULL: nothing was cut */
};

/* Memory for parity; bytes 0: none. False when there is none now: segments in flight will give theirs back,
 * and where no segment has any the message ends. */
bool memory_take(struct tx *tx, struct tx_message *message, size_t bytes, size_t notes_bytes,
                 struct parity_buffer **buffer, lh_time now);
/* Where a segment of the message lies, with memory for what is to be copied; whole: all of it is to be in
 * one place. False: as above. */
bool memory_place(struct tx *tx, struct tx_message *message, const struct segment_range *range, bool whole,
                  struct tx_place *place, lh_time now);
/* Copies what is to be copied of a segment that was given its place. */
void memory_copy(const struct tx_message *message, const struct segment_range *range,
                 struct tx_segment *segment);

#endif
