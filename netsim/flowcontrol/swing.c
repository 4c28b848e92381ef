/*
 * swing.c - our model of SWING's relay: the deep buffer is apart from the switch whose queues decide
 * when to pause.
 *
 * Forwarding makes the upstream repeat, a delay later, what the relay does: the relay then holds at most
 * what the link carries in a round trip. What it holds and what is in flight never grow together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>

enum lh_flow_signal lh_swing_on_signal(struct lh_swing *swing, uint8_t priority, bool pause)
{
    assert(priority < LH_PFC_PRIORITIES);
    uint8_t bit = (uint8_t)(1u << priority);
    if (!swing->forward || ((swing->stopped & bit) != 0) == pause)
        return LH_FLOW_NONE;
    swing->stopped ^= bit;
    return pause ? LH_FLOW_PAUSE : LH_FLOW_RESUME;
}

enum lh_flow_signal lh_swing_on_queue(struct lh_swing *swing, uint8_t priority, uint64_t held_bytes)
{
    if (swing->forward)
        return LH_FLOW_NONE;
    return lh_pfc_update(&swing->thresholds, held_bytes, 0, priority, &swing->stopped);
}
