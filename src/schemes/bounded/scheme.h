/*
 * scheme.h - bounded completion in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_SCHEME_H
#define LH_SCHEMES_BOUNDED_SCHEME_H

#include "model/scheme_entry.h"

extern const struct lh_scheme bounded_scheme;
extern const struct scheme_entry bounded_entry;

#endif
