/*
 * collective_call.h - a collective as data, and the call of it, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_COLLECTIVE_CALL_H
#define LH_TESTS_SUPPORT_COLLECTIVE_CALL_H

#include <longhaul/collective.h>

#include "collective/schedule/schedule.h"

struct collective_call {
    enum collective collective;
    enum lh_type type;
    enum lh_reduction reduction;
    size_t count;
    uint32_t root;
};

bool collective_call_reduces(enum collective collective);
/* Elements of a rank's input and output, in a group of that size; at a root, where only it has some. */
size_t collective_call_in(const struct collective_call *call, uint32_t size);
size_t collective_call_out(const struct collective_call *call, uint32_t size);
/* Calls it; a broadcast has `out` alone, and what only the root has to give is NULL elsewhere. */
int collective_call_start(struct lh_group *group, const struct collective_call *call, const void *in,
                          void *out, const struct lh_collective_options *options,
                          struct lh_collective **op);

#endif
