/*
 * normal_margin.h - how many deviations above the mean a deadline loses a given share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_NORMAL_MARGIN_H
#define LH_COLLECTIVE_NORMAL_MARGIN_H

/* z >= 0 with E[(X - z)+] = lost, X normal with mean 0 and deviation 1; 0 if more than that is lost at 0. A
 * member that needs X deviations more than the mean receives all but about (X - z) * deviation / mean of
 * its bytes. */
double normal_margin(double lost);

#endif
