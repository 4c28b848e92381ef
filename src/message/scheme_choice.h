/*
 * scheme_choice.h - which reliability scheme: by the text that a user types, by the id that a peer sent.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_SCHEME_CHOICE_H
#define LH_MESSAGE_SCHEME_CHOICE_H

#include <longhaul/connection.h>
#include <longhaul/plan.h>

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
