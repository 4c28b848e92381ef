/*
 * memory.h - registered memory of a context; the interface is sdr_mr.h and context_memory_covers().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_MEMORY_H
#define LH_SDR_MEMORY_H

#include <sdr_mr.h>

/* sdr_mr_dereg() for a layer that knows that nothing uses the memory any more: it asks no QP, takes no lock
 * but that of the list, and so may be called from a driver's step. */
void sdr_mr_drop(struct sdr_mr *mr);

#endif
