/*
 * echo_scheme.h - a reliability scheme of a user's own, as simple as can be: the sender injects everything,
 * and again whenever a round trip has passed. The machines never say a word to each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_ECHO_SCHEME_H
#define LH_TESTS_SUPPORT_ECHO_SCHEME_H

#include <longhaul/scheme.h>

extern const struct lh_scheme echo_scheme;

#endif
