/*
 * params.h - the parameters of `auto`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_AUTO_PARAMS_H
#define LH_SCHEMES_AUTO_PARAMS_H

#include <longhaul/plan.h>

/* The text behind "auto,": "" or "by=mean|p50|p99|p999,overhead=SHARE". -LH_EINVAL. */
int auto_params_parse(const char *text, enum lh_plan_by *by, double *max_overhead);

#endif
