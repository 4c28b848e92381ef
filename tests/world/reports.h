/*
 * reports.h - acknowledgements, compared with the bitmaps that they report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_REPORTS_H
#define LH_TESTS_WORLD_REPORTS_H

#include "world/world.h"

/* A control message that leaves an honest end; most are no acknowledgements. */
void report_check_sent(struct world *world, struct end *end, const uint8_t *data, size_t bytes);

#endif
