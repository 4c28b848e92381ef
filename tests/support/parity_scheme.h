/*
 * parity_scheme.h - a user's own scheme that codes, as simple as can be: one XOR a group of PARITY_GROUP
 * chunks. The sender injects the message and its parity, and again whenever a round trip has passed. The
 * machines never say a word to each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_PARITY_SCHEME_H
#define LH_TESTS_SUPPORT_PARITY_SCHEME_H

#include <longhaul/scheme.h>

#define PARITY_GROUP 4u

extern const struct lh_scheme parity_scheme;

#endif
