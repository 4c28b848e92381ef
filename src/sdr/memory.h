/*
 * memory.h - registered memory of a context; the interface is sdr_mr.h and context_memory_covers().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_MEMORY_H
#define LH_SDR_MEMORY_H

#include <sdr_mr.h>

#endif
