/*
 * scheme.h - selective repeat in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_SCHEME_H
#define LH_SCHEMES_SR_SCHEME_H

#include "model/scheme_entry.h"

extern const struct lh_scheme sr_nack_scheme;
extern const struct lh_scheme sr_rto_scheme;
extern const struct scheme_entry sr_nack_entry;
extern const struct scheme_entry sr_rto_entry;

#endif
