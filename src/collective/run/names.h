/*
 * names.h - types, reductions and schedules by name: the calls of longhaul/collective.h, and this one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_NAMES_H
#define LH_COLLECTIVE_RUN_NAMES_H

#include <stddef.h>

#include "collective/schedule/schedule.h"

/* What a call makes of a collective. Ranks send the number to each other. */
enum call_form {
    CALL_PLAIN = 0,
    CALL_UNEVEN = 1,  /* its v-variant */
    CALL_COMPARE = 2, /* lh_compare(): of an all-gather, of digests */
    CALL_FORMS
};

/* Whether a collective has that form. */
bool call_exists(enum collective collective, enum call_form form);
/* "gather", "gatherv"; of one that exists. */
const char *call_name(enum collective collective, enum call_form form);
/* The schedule of a collective by its name. NULL: there is none, and names[size] has those that there are. */
const struct schedule *named_schedule(enum collective collective, const char *name, char *names,
                                      size_t size);

#endif
