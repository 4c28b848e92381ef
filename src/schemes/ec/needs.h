/*
 * needs.h - what a receiver's submessages lack, and what it asks for.
 *
 * A submessage is met when all its data can be there: as many chunks as it has data (mds), at most one chunk
 * missing of each class (xor), or, where it has fallen back to selective repeat, its data itself.
 *
 * Of one that is not, incremental redundancy asks for as many chunks as it lacks and a margin
 * (margin.h): first rows of parity that were never asked for, since these are of use whatever else still
 * comes, then missing data; never for more data than is missing. With xor: for the missing data of each
 * class that lacks more than one. Selective repeat asks for all its data once, then for what of it is
 * missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_NEEDS_H
#define LH_SCHEMES_EC_NEEDS_H

#include "schemes/ec/layout.h"
#include "wire/erasure_coding.h"

/* One byte a chunk, as in struct lh_receiver_view; extra may be NULL. Others write them meanwhile, and clear
 * nothing. */
struct ec_bitmaps {
    const uint8_t *chunks;
    const uint8_t *extra;
};

struct ec_needs {
    uint32_t first_unmet; /* all groups before are met */
    uint8_t *asked; /* a byte a group: 0 never; else mds: one more than the first row never asked for */
};

/* What of the path a request takes into account. */
struct ec_path_seen {
    uint32_t injected;
    uint32_t arrived;
};

/* Bytes behind it: a group has at least one chunk. */
static inline size_t ec_needs_bytes(uint32_t chunks_max)
{
    return chunks_max;
}
/* memory: ec_needs_bytes(chunks), stays the caller's. */
void ec_needs_init(struct ec_needs *needs, uint32_t chunks, void *memory);
/* Whether every group is met. Costs no more than one group when the first that is not still is not. */
bool ec_needs_met(struct ec_needs *needs, const struct ec_layout *layout, const struct ec_bitmaps *bitmaps);
/* Whether all data of a group can be there, when nothing was asked for. */
bool ec_needs_group_met(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group);
/* The runs to be asked for now, into runs[room], room >= 128: whole groups, in order. Returns how many; adds
 * groups that are asked for the first time to *failed. 0 only when every group is met. */
uint32_t ec_needs_ask(struct ec_needs *needs, const struct ec_layout *layout,
                      const struct ec_bitmaps *bitmaps, const struct ec_path_seen *seen,
                      struct ec_run *runs, uint32_t room, uint32_t *failed);

#endif
