/*
 * coding.h - computes the parity of a submessage, and from it what was lost.
 *
 * The last chunk of a message may be short, and counts as filled up with zeros. Nobody reads or writes past
 * its end: the columns that it has are coded with all chunks of its group, the columns that it lacks with
 * one chunk less. It has the last position in its group, so that a code shortened by one is meant.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_CODING_H
#define LH_SCHEMES_EC_CODING_H

#include <longhaul/scheme.h>

extern const struct lh_scheme_coding ec_coding;

#endif
