/*
 * ranges.h - what came of a message with a deadline: bytes that came are right, the others are as they
 * were, or 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_RANGES_H
#define LH_TESTS_WORLD_RANGES_H

#include "world/world.h"

struct ranges_view {
    uint32_t event;
    struct lh_request *request; /* NULL: there is none to ask */
    const struct lh_result *result;
    const uint8_t *expected;
    uint64_t bytes; /* that were sent */
    const uint8_t *buffer;
    uint64_t room;
    uint8_t blank; /* missing bytes of the buffer */
};

/* Of a receive that is done without an error. */
void ranges_check(struct world *world, const struct ranges_view *view);

#endif
