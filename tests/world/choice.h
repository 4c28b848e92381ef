/*
 * choice.h - tags of messages, and which receive takes which.
 *
 * Where receives choose messages by their tags, each message has a number of its own in its tag, so that one
 * receive takes it, and the others do not; of the other bits receives ignore some. They are posted in another
 * order than the messages are sent.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_CHOICE_H
#define LH_TESTS_WORLD_CHOICE_H

#include "world/plan.h"

struct choice {
    uint64_t tag;    /* of the message */
    uint64_t wanted; /* by its receive, in all bits but those ignored */
    uint64_t ignored;
};

/* seed: of the message; tagged: it has a tag in any case. */
struct choice choice_of(uint64_t seed, uint32_t number, bool tagged, bool matched);
/* The order in which receives are posted: of messages, unless they are matched. */
void choice_order(uint32_t *order, uint32_t count, bool matched, uint64_t seed);
/* Receives before this number are those of the messages before it, in any order. At least `number`. */
uint32_t choice_block_end(uint32_t number);
/* Whether the plan cancels one of the requests of this message. */
bool choice_may_be_canceled(const struct plan *plan, uint32_t event);

#endif
