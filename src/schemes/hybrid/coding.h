/*
 * coding.h - the code of the hybrid scheme: that of schemes/ec, with the parameters of params.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_CODING_H
#define LH_SCHEMES_HYBRID_CODING_H

#include "schemes/ec/layout.h"

extern const struct lh_scheme_coding hybrid_coding;

/* params must be valid. A message of one chunk has no parity (layout->places is 0). */
struct ec_layout hybrid_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);

#endif
