/*
 * arrivals.h - segments that fill up: their bitmaps are polled, and their scheme's machine decides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_ARRIVALS_H
#define LH_MESSAGE_RX_ARRIVALS_H

#include "message/rx/rx.h"

/* A segment was posted; params are those of its scheme. */
void arrivals_start(struct rx *rx, struct rx_segment *segment, const uint8_t params[LH_SCHEME_PARAMS],
                    lh_time now);
/* Polls for chunks that have arrived; whether there are any. */
bool arrivals_poll(struct rx *rx, lh_time now);
/* Something of this segment was seen: those before it were overtaken. */
void arrivals_note_seen(struct rx *rx, uint32_t sequence, lh_time now);
/* Bytes of the sender's machine. */
void arrivals_on_scheme(struct rx *rx, struct rx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now);
/* Lets the machines act to which something happened, or whose timer has expired, of the segments from `from`
 * on; lowers *next. Returns the newest timer that expired, 0: none did. */
lh_time arrivals_step(struct rx *rx, uint32_t from, lh_time now, lh_time *next);

#endif
