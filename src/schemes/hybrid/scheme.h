/*
 * scheme.h - the hybrid of repeats and parity in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_SCHEME_H
#define LH_SCHEMES_HYBRID_SCHEME_H

#include "model/scheme_entry.h"

extern const struct lh_scheme hybrid_scheme; /* "hybrid" */
extern const struct scheme_entry hybrid_entry;

#endif
