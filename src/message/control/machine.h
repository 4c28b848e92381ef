/*
 * machine.h - memory for the state of a scheme's machine, as large as its transfer needs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_MACHINE_H
#define LH_MESSAGE_CONTROL_MACHINE_H

#include <stdbool.h>

#include "store/store.h"

#define MACHINE_BYTES_LEAST 256u

/* At least that many bytes, aligned to 64; what is large enough already stays. False: no memory. */
static inline bool machine_hold(void **machine, uint32_t *has, struct store *store, size_t bytes)
{
    if (bytes <= *has)
        return true;
    size_t rounded = MACHINE_BYTES_LEAST;
    while (rounded < bytes) /* at most 32 times */
        rounded *= 2;
    void *taken = store_take_aligned(store, rounded);
    if (!taken)
        return false;
    store_give(store, *machine, *has);
    *machine = taken;
    *has = (uint32_t)rounded;
    return true;
}

#endif
