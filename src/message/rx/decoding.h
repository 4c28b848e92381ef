/*
 * decoding.h - segments that have arrived: whole, or as much of them as the rest can be decoded from.
 *
 * Decoding begins when the slots are closed and the bitmaps are copied: no packet changes the buffer under
 * the decoder's hands. The sender is notified before; what it was told to have arrived is handed over,
 * whatever comes between.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_DECODING_H
#define LH_MESSAGE_RX_DECODING_H

#include "message/rx/rx.h"

/* An open segment of a known length has arrived. whole: nothing is to be decoded. */
void decoding_segment_done(struct rx *rx, struct rx_segment *segment, bool whole, lh_time now);
/* An open segment ends with what has arrived of it, and what can be recovered. end: why its message does,
 * unless nothing of that is missing. */
void decoding_segment_partial(struct rx *rx, struct rx_segment *segment, enum lh_end end, lh_time now);
/* A job of the coder for one of the segments is done. */
void decoding_on_decoded(struct rx *rx, const struct coder_result *result, lh_time now);
/* All that is to be decoded has been when this returns. Messages may end thereby. */
void decoding_finish(struct rx *rx, lh_time now);

#endif
