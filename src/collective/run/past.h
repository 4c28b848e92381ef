/*
 * past.h - what a rank called in operations that have ended without error: a rank whose signature comes for
 * one of them disagrees, as no other rank was waited for, and has to be told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_PAST_H
#define LH_COLLECTIVE_RUN_PAST_H

#include "collective/run/signature.h"

/* Operations that are remembered; who disagrees about an earlier one waits until its deadline. */
#define PAST_OPERATIONS 256u

struct past {
    struct past_operation {
        bool known;
        uint32_t number;
        struct signature signature;
    } of[PAST_OPERATIONS]; /* by number, modulo */
};

void past_note(struct past *past, uint32_t number, const struct signature *signature);
/* NULL: it is not remembered, or has failed. */
const struct signature *past_find(const struct past *past, uint32_t number);

#endif
