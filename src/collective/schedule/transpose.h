/*
 * transpose.h - all-to-all over two levels: ranks of a site first collect what goes to the same ranks
 * elsewhere, so that a long link carries few large messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_TRANSPOSE_H
#define LH_COLLECTIVE_SCHEDULE_TRANSPOSE_H

#include "collective/schedule/schedule.h"

extern const struct schedule transpose_alltoall;

#endif
