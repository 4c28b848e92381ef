/*
 * pfc.c - priority flow control (IEEE 802.1Qbb) of an ingress port: by a threshold of its own, or by a
 * share of what is free (Choudhury and Hahne 1998).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"

#define ALPHA_MAX 65536.0

int lh_pfc_check(const struct lh_pfc_thresholds *thresholds)
{
    if (thresholds->xon_bytes > thresholds->xoff_bytes)
        return lh_fail(LH_EINVAL,
                       "xon is %" PRIu64 " bytes, above xoff of %" PRIu64
                       ": it would resume before it pauses (lower xon)",
                       thresholds->xon_bytes, thresholds->xoff_bytes);
    if (!(thresholds->alpha >= 0 && thresholds->alpha <= ALPHA_MAX))
        return lh_fail(LH_ERANGE, "alpha %g: out of range (a share of the free buffer, 0 (none) to %g)",
                       thresholds->alpha, ALPHA_MAX);
    return 0;
}

uint64_t lh_pfc_threshold(const struct lh_pfc_thresholds *thresholds, uint64_t free_bytes)
{
    double share = thresholds->alpha * (double)free_bytes;
    if (!(share > (double)thresholds->xoff_bytes))
        return thresholds->xoff_bytes;
    return share < (double)(UINT64_MAX / 2) ? (uint64_t)share : UINT64_MAX / 2;
}

enum lh_flow_signal lh_pfc_update(const struct lh_pfc_thresholds *thresholds, uint64_t held_bytes,
                                  uint64_t free_bytes, uint8_t priority, uint8_t *stopped)
{
    assert(priority < LH_PFC_PRIORITIES && thresholds->xon_bytes <= thresholds->xoff_bytes);
    uint8_t bit = (uint8_t)(1u << priority);
    uint64_t threshold = lh_pfc_threshold(thresholds, free_bytes);
    uint64_t hysteresis = thresholds->xoff_bytes - thresholds->xon_bytes;
    if ((*stopped & bit) == 0) {
        if (held_bytes <= threshold)
            return LH_FLOW_NONE;
        *stopped |= bit;
        return LH_FLOW_PAUSE;
    }
    if (held_bytes > threshold - hysteresis)
        return LH_FLOW_NONE;
    *stopped &= (uint8_t)~bit;
    return LH_FLOW_RESUME;
}
