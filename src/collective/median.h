/*
 * median.h - the median of a few thousand numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_MEDIAN_H
#define LH_COLLECTIVE_MEDIAN_H

#include <stdint.h>

/* Of count > 0 finite values, which are sorted; the mean of the two in the middle if count is even. */
double median_of(double *values, uint32_t count);

#endif
