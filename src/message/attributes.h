/*
 * attributes.h - what a caller asks of a connection: checked value by value, then completed with the
 * defaults.
 *
 * In two steps, because over TCP both sides must see what was asked before defaults hide it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ATTRIBUTES_H
#define LH_MESSAGE_ATTRIBUTES_H

#include <longhaul/connection.h>

#define ATTR_MTU_MIN                 256u
#define ATTR_MTU_DEFAULT             4096u      /* where packets of any size pass */
#define ATTR_SLOTS_MAX               1024u      /* 10 bits of the immediate (paper, section 3.2.4) */
#define ATTR_PACKETS_MAX             (1u << 18) /* of a slot: 18 bits of the immediate */
#define ATTR_CHANNELS_MAX            32u
#define ATTR_GENERATIONS_MAX         8u
#define ATTR_WORKERS_MAX             64u
#define ATTR_CODERS_MAX              64u
#define ATTR_SLOT_BYTES_DEFAULT      ((uint64_t)4 << 20)
#define ATTR_SLOTS_DEFAULT           64u
#define ATTR_GENERATIONS_DEFAULT     4u
#define ATTR_WINDOW_BYTES_DEFAULT    ((uint64_t)64 << 20)
#define ATTR_RECEIVE_BUFFER_DEFAULT  ((uint64_t)32 << 20)
#define ATTR_PEER_TIMEOUT_MAX_NS     (24 * 3600 * LH_NS_PER_S)
#define ATTR_PEER_TIMEOUT_DEFAULT_NS (10 * LH_NS_PER_S)
#define ATTR_SPIN_MAX_NS             LH_NS_PER_S
#define ATTR_RATE_MAX_BPS            UINT64_C(100000000000000)
#define ATTR_CHUNK_MAX               (1u << 30)
#define ATTR_MTU_UNKNOWN_PATH        1024u /* fits an Ethernet of 1500 bytes, over IPv6 too */

/* Copies `given` (as far as its struct_bytes says; NULL: all defaults) and checks each value that is set.
 * Zeros stay. -LH_EINVAL names the value and what would be right. */
int attr_check(const struct lh_attr *given, struct lh_attr *checked);
/* Fills the zeros of checked attributes, and checks what the values mean together. -LH_EINVAL. */
int attr_complete(struct lh_attr *attr);
/* attr_complete() with the largest MTU of at most fits_bytes that goes with what was asked for: chunks, slots
 * or codes may be too small for it. fits_bytes: ROCE_MTU_MIN or more. */
int attr_complete_for(struct lh_attr *attr, uint32_t fits_bytes);
/* Whether a device is at an address that packets never leave this machine from. */
bool attr_is_loopback(const char *device);

#endif
