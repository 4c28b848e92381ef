/*
 * params.h - the parameters of the erasure-code schemes: as text, and as the bytes that travel.
 *
 * Bytes: 0 kind of the code (1 xor, 2 mds) | 1 k | 2 m | 3 fallback (0 ir, 1 sr) | 4-5 spread | 6-7 beta in
 * hundredths. Big-endian.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_PARAMS_H
#define LH_SCHEMES_EC_PARAMS_H

#include <longhaul/scheme.h>

#define EC_K_DEFAULT               32u /* (32, 8) is the paper's most balanced split, section 5.2.1 */
#define EC_M_DEFAULT               8u
#define EC_BETA_DEFAULT_HUNDREDTHS 50u    /* half a round trip, paper section 4.2.3 */
#define EC_BETA_MAX_HUNDREDTHS     10000u /* 100 round trips */
#define EC_ROWS_MAX                255u   /* k + m: a symbol of the code is a byte */

/* As in <longhaul/code.h>, and on the wire. */
enum ec_kind {
    EC_XOR = 1,
    EC_MDS = 2,
};

/* What the receiver does about a submessage that it cannot decode. */
enum ec_fallback {
    EC_FALLBACK_IR = 0, /* incremental redundancy: asks for as many chunks as it lacks, new parity first */
    EC_FALLBACK_SR = 1, /* the paper's: the submessage falls back to selective repeat */
};

struct ec_params {
    enum ec_kind kind;
    enum ec_fallback fallback;
    uint32_t k;               /* data chunks of a submessage */
    uint32_t m;               /* its parity chunks */
    uint32_t spread;          /* submessages that share a block of the message; 0: all */
    uint32_t beta_hundredths; /* of a round trip, that the receiver waits before it asks */
};

/* "" or "k=K,m=M,spread=S,beta=B,fallback=ir|sr" in any order. -LH_EINVAL. */
int ec_mds_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
int ec_xor_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
/* Every byte is looked at. */
bool ec_mds_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
bool ec_xor_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
/* Valid ones. */
struct ec_params ec_params_of(const uint8_t params[LH_SCHEME_PARAMS]);

/* Parity rows of a submessage that are computed only when they are asked for (incremental redundancy): as
 * many as the code has left, at most m, and at most k - m, so that all parity of a segment fits a slot as
 * large as its data. */
uint32_t ec_fresh_rows(const struct ec_params *params);

#endif
