/*
 * posting.h - buffers to fill: cut into segments, which are posted in order as places are free.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_POSTING_H
#define LH_MESSAGE_RX_POSTING_H

#include "message/rx/rx.h"

/* Posts what there are places for. */
void posting_step(struct rx *rx, lh_time now);

#endif
