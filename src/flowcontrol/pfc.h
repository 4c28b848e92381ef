/*
 * pfc.h - priority flow control (IEEE 802.1Qbb) of one ingress port: when to stop the upstream, when to let
 * it go on.
 *
 * The caller counts the bytes that came by a port and priority and have not left the switch; this decides.
 * A pause is asked for when they exceed xoff, a resume when they are at most xon; between the two nothing
 * changes. What still arrives after a pause needs headroom: 2 × delay × rate + 2 packets (802.1Qbb,
 * annex O).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FLOWCONTROL_PFC_H
#define LH_FLOWCONTROL_PFC_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a pause frame on the wire without preamble and gap: the least that Ethernet sends. */
#define PFC_FRAME_BYTES 64u

struct pfc_thresholds {
    uint64_t xoff_bytes;
    uint64_t xon_bytes; /* at most xoff_bytes */
};

/* Whether to send a pause now, after an arrival. Bit p of *stopped is set while priority p is paused. */
static inline bool pfc_on_arrival(const struct pfc_thresholds *thresholds, uint64_t held_bytes,
                                  uint8_t priority, uint8_t *stopped)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (held_bytes <= thresholds->xoff_bytes || (*stopped & bit) != 0)
        return false;
    *stopped |= bit;
    return true;
}

/* Whether to send a resume now, after a departure. */
static inline bool pfc_on_departure(const struct pfc_thresholds *thresholds, uint64_t held_bytes,
                                    uint8_t priority, uint8_t *stopped)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if ((*stopped & bit) == 0 || held_bytes > thresholds->xon_bytes)
        return false;
    *stopped &= (uint8_t)~bit;
    return true;
}

#endif
