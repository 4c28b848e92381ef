/*
 * scheme.h - what only the model knows, in the table of schemes: the bound of all schemes, and what NICs
 * do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_REFERENCE_SCHEME_H
#define LH_SCHEMES_REFERENCE_SCHEME_H

#include "model/scheme_entry.h"

extern const struct scheme_entry go_back_n_entry; /* "gbn" */
extern const struct scheme_entry ideal_entry;     /* "ideal" */

#endif
