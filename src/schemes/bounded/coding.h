/*
 * coding.h - the code of bounded completion: that of schemes/ec, or none. What cannot be decoded stays
 * missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_CODING_H
#define LH_SCHEMES_BOUNDED_CODING_H

#include "schemes/bounded/params.h"
#include "schemes/ec/layout.h"

extern const struct lh_scheme_coding bounded_coding;

/* Of a transfer of that many chunks; without a code, one without groups and parity. */
struct ec_layout bounded_layout_of(const struct bounded_params *params, uint32_t chunks);
/* One past the last place that is injected: the chunks, then the parity that is always sent. */
uint32_t bounded_layout_end(const struct ec_layout *layout);

#endif
