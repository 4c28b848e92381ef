/*
 * data_path.h - do packets of data pass at all? Control and data go to different UDP ports, and a firewall
 * may let the first alone through: the peer is there, and nothing ever arrives. Pure.
 *
 * The receiving side decides. It knows what the peer has sent from the lengths that the peer announces for
 * each segment, and retransmits while nothing answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_DATA_PATH_H
#define LH_MESSAGE_RX_DATA_PATH_H

#include <longhaul/types.h>

struct data_path {
    bool passes;
    uint32_t evidence; /* packets of segments whose lengths came while no packet had */
    lh_time since_ns;  /* the first of them */
};

/* The peer announced a segment of that many packets, at least one, and sends them; arrived: a packet of data
 * has arrived on this connection. False when none of many did: the path is broken. */
bool data_path_on_announced(struct data_path *path, uint32_t packets, bool arrived, lh_time overdue_ns,
                            lh_time now);

#endif
