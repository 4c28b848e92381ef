/*
 * scheme.h - what a scheme of the model says, checked and with its defaults.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_SCHEME_H
#define LH_MODEL_SCHEME_H

#include <longhaul/model.h>

#define MODEL_RTO_DEFAULT  3.0 /* of sr-rto and of a fallback to selective repeat: paper, section 5.1.1 */
#define MODEL_RTO_NACK     1.0 /* the paper's best case of negative acknowledgements */
#define MODEL_BETA_DEFAULT 0.5 /* paper, section 4.2.3 */
#define MODEL_RTTS_MAX     1e6

/* -LH_EINVAL, -LH_ERANGE in words. */
int model_scheme_check(const struct lh_model_scheme *scheme);
/* In RTT. */
double model_scheme_rto(const struct lh_model_scheme *scheme);
bool model_scheme_codes(const struct lh_model_scheme *scheme);

#endif
