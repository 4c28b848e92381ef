/*
 * sdr_memory.h - registered memory of a context; the rest of the interface is sdr_mr.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SDR_MEMORY_H
#define LH_SDR_SDR_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <sdr_mr.h>

/* sdr_mr_dereg() for a layer that knows that nothing uses the memory any more: it asks no QP, takes no lock
 * but that of the list, and so may be called from a driver's step. */
void sdr_mr_drop(struct sdr_mr *mr);
/* Whether a registered range with this key covers the bytes. An empty range always is covered. */
bool memory_covers(struct sdr_context *context, uint32_t lkey, uint64_t address, uint64_t bytes);

#endif
