/*
 * params.h - the parameters of the selective repeat schemes: as text, and as the bytes that travel.
 *
 * sr-rto: bytes 0-1 alpha in hundredths, big-endian; the rest zero. sr-nack: all zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_PARAMS_H
#define LH_SCHEMES_SR_PARAMS_H

#include <longhaul/scheme.h>

#define SR_ALPHA_DEFAULT_HUNDREDTHS 200u   /* RTO = 3 RTT, the paper's */
#define SR_ALPHA_MIN_HUNDREDTHS     25u    /* the receiver may take a quarter round trip to acknowledge */
#define SR_ALPHA_MAX_HUNDREDTHS     10000u /* RTO = 101 RTT */

/* "" or "alpha=NUMBER", 0.25 to 100. -LH_EINVAL. */
int sr_rto_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
bool sr_rto_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
uint32_t sr_rto_alpha_hundredths(const uint8_t params[LH_SCHEME_PARAMS]);

/* Only "". -LH_EINVAL. */
int sr_nack_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
bool sr_nack_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);

#endif
