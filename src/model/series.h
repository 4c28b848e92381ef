/*
 * series.h - the geometric series that the model's closed sums are made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_SERIES_H
#define LH_MODEL_SERIES_H

/* Sum over j = 0 ... count - 1 of 1 - exp(first + j * rise), to 12 digits however small it is. count is whole
 * and may be large; first, rise >= 0 and first + (count - 1) * rise <= 0 but for rounding. */
double model_series_missing(double first, double rise, double count);

#endif
