/*
 * params.h - the parameters of bounded completion: as text, and as the bytes that travel.
 *
 * Bytes: 0-3 deadline in us, 0: auto, all ones: none | 4 kind of the code (0 none, 1 xor, 2 mds) | 5 k | 6
 * m | 7 zero. Big-endian.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_PARAMS_H
#define LH_SCHEMES_BOUNDED_PARAMS_H

#include <longhaul/scheme.h>

#define BOUNDED_DEADLINE_MAX_NS (3600 * LH_NS_PER_S)

struct bounded_params {
    lh_time deadline_ns; /* LH_DEADLINE_AUTO: by what the path did before; LH_DEADLINE_NONE */
    bool codes;
    uint8_t code[LH_SCHEME_PARAMS]; /* of schemes/ec, when it codes */
};

/* "deadline=20ms", "deadline=auto" (the default), "deadline=none", and "code=mds,k=32,m=2", in any order.
 * -LH_EINVAL, -LH_ERANGE. */
int bounded_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
/* Every byte is looked at. */
bool bounded_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
/* Valid ones. */
struct bounded_params bounded_params_of(const uint8_t params[LH_SCHEME_PARAMS]);
/* See struct lh_scheme. */
lh_time bounded_deadline(const uint8_t params[LH_SCHEME_PARAMS]);

#endif
