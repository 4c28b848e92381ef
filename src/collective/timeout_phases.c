/*
 * timeout_phases.c - a timeout shared out among phases.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/timeout.h>

__extension__ typedef unsigned __int128 wide;

lh_time lh_timeout_phase_end(lh_time timeout_ns, const uint64_t *bytes, uint32_t phases, uint32_t phase)
{
    wide total = 0, until = 0;
    for (uint32_t i = 0; i < phases; i++) {
        total += bytes[i];
        if (i <= phase)
            until += bytes[i];
    }
    if (total == 0) {
        total = phases;
        until = phase < phases ? phase + 1 : phases;
    }
    /* 64 bits each at most, so that their product fits. */
    while (total >> 64) {
        total >>= 1;
        until >>= 1;
    }
    return (lh_time)(timeout_ns * until / total);
}
