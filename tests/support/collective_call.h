/*
 * collective_call.h - a collective as data, and the call of it, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_COLLECTIVE_CALL_H
#define LH_TESTS_SUPPORT_COLLECTIVE_CALL_H

#include <longhaul/collective.h>

#include "collective/schedule.h"

struct collective_call {
    enum collective collective;
    enum lh_type type;
    enum lh_reduction reduction;
    size_t count;
    uint32_t root;
    bool uneven; /* the v-variant of a gather, scatter or all-to-all: parts of 0, 1 or 2 counts */
};

bool collective_call_reduces(enum collective collective);
bool collective_call_may_be_uneven(enum collective collective);
/* Elements that a rank has for another one, of a collective with a part per rank. */
size_t collective_call_part(const struct collective_call *call, uint32_t source, uint32_t destination);
/* Elements of a rank's input and output, in a group of that size; at a root, where only it has some. */
size_t collective_call_in(const struct collective_call *call, uint32_t size, uint32_t rank);
size_t collective_call_out(const struct collective_call *call, uint32_t size, uint32_t rank);
/* Elements of an input before the part for a rank: of all-to-all and scatter; of an output before the part of
 * a rank: of all-to-all, gather and all-gather. */
size_t collective_call_before(const struct collective_call *call, uint32_t source, uint32_t destination);
size_t collective_call_behind(const struct collective_call *call, uint32_t source, uint32_t destination);
/* Calls it; a broadcast has `out` alone, and what only the root has to give is NULL elsewhere. */
int collective_call_start(struct lh_group *group, const struct collective_call *call, const void *in,
                          void *out, const struct lh_collective_options *options,
                          struct lh_collective **op);

#endif
