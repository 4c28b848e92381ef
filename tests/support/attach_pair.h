/*
 * attach_pair.h - two open connections learn of each other by their blobs, without a rendezvous.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_ATTACH_PAIR_H
#define LH_TESTS_SUPPORT_ATTACH_PAIR_H

#include <longhaul/connection.h>

/* Any failure ends the test. */
void attach_pair(struct lh_connection *one, struct lh_connection *other);

#endif
