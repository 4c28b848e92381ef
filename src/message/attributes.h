/*
 * attributes.h - what a caller asks of a connection: checked value by value, then completed with the
 * defaults; and which reliability scheme that is.
 *
 * In two steps, because over TCP both sides must see what was asked before defaults hide it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ATTRIBUTES_H
#define LH_MESSAGE_ATTRIBUTES_H

#include <longhaul/connection.h>
#include <longhaul/plan.h>

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
/* Sets an MTU that was not asked for to the largest one of at most fits_bytes that goes with the rest. Where
 * none does, to fits_bytes: lh_open() says why. fits_bytes 0, not known: without effect. */
void attr_fill_packets(struct lh_attr *attr, uint32_t fits_bytes);
/* Whether a device is at an address that packets never leave this machine from. */
bool attr_is_loopback(const char *device);

/* ---- scheme ---------------------------------------------------------------------------------------- */

/* Which reliability scheme: by the text that a user types, by the id that a peer sent. */

#define SCHEME_NAME_PLAIN   "sr-nack" /* of `auto`, while nothing is known */
#define SCHEME_NAME_AUTO    "auto"
#define SCHEME_NAME_DEFAULT SCHEME_NAME_AUTO

struct scheme_choice {
    const struct lh_scheme *scheme;
    uint8_t params[LH_SCHEME_PARAMS];
    bool automatic; /* each message gets its own, and the scheme is only what comes first */
    enum lh_plan_by by;
    double max_overhead;
};

/* From attr->scheme and attr->reliability. -LH_EINVAL lists the schemes there are. */
int scheme_choose(const struct lh_attr *attr, struct scheme_choice *choice);
/* Among the caller's own (may be NULL) and those of this build; NULL when there is none with that id. */
const struct lh_scheme *scheme_find(const struct lh_scheme *own, uint8_t id);
/* The flags of a blob by which this build announces schemes that not every peer knows. */
uint16_t scheme_announcements(void);
/* Whether a peer that announced these flags can send by the scheme. */
bool scheme_is_known(const struct scheme_choice *choice, uint16_t flags);
/* Whether its segments have parity. */
bool scheme_codes(const struct scheme_choice *choice);
/* Bytes of a message that one segment takes at most: slot_bytes, or less where more parity than data must
 * fit a slot. 0: not even one group does. */
uint64_t scheme_segment_bytes(const struct scheme_choice *choice, const struct lh_attr *attr);

#endif
