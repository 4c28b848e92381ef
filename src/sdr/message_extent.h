/*
 * message_extent.h - where a message ends, as far as its packets and its sender have shown.
 *
 * Pure. A message is full packets up to its end, where a shorter one may stand. So one short packet fixes
 * the end, and the length that its sender announces does, too; from then on whatever contradicts that end is
 * refused: a packet behind it, a second short one. A short packet is refused that packets have arrived
 * behind. What is not refused fits one length, in whatever order it came.
 *
 * One atomic word decides, without a lock, whichever threads ask at the same time: the end in bytes (of the
 * buffer while nothing is fixed), one past the highest full packet, and two flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_MESSAGE_EXTENT_H
#define LH_SDR_MESSAGE_EXTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct message_extent {
    _Atomic uint64_t word;
};

/* A buffer of that many bytes, fewer than 2^32. Not while another thread asks. */
void message_extent_open(struct message_extent *extent, uint64_t room_bytes);
/* Full packets of mtu bytes: `first` + i for each bit i of mask, of which there is one at least. Returns
 * those that lie before the end. */
uint64_t message_extent_full(struct message_extent *extent, uint32_t mtu, uint32_t first, uint64_t mask);
/* A packet of fewer bytes, but some. False: it is refused. */
bool message_extent_short(struct message_extent *extent, uint32_t mtu, uint32_t packet, uint32_t bytes);
/* The message has that many bytes. False, and nothing is changed, when a packet behind them has arrived, or
 * the end was fixed before them. A later call may fix a nearer end, unless the short packet has come. */
bool message_extent_fix(struct message_extent *extent, uint32_t mtu, uint64_t bytes);

/* Its end in bytes, as far as it is fixed; else that of the buffer. */
uint64_t message_extent_end(const struct message_extent *extent);

#endif
