/*
 * data.h - what ranks give to a collective, by rank and element, and whether the result is right: each
 * element of integers exactly, of floats within the rounding of any order of summation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_DATA_H
#define LH_CLI_COLLECTIVE_DATA_H

#include "cli/collective/kind.h"

/* Fills this rank's input; of a broadcast, the root's `out`. out gets bytes that no result has. */
void cli_data_fill(const struct cli_call *call, void *in, void *out);
/* Number of wrong elements of this rank's result. missing: some of it is, so that elements may be 0, and
 * sums are not compared. */
uint64_t cli_data_check(const struct cli_call *call, const void *out, bool missing);

#endif
