/*
 * data_path.h - do packets of data pass at all? Control and data go to different UDP ports, and a firewall
 * may let the first alone through: the peer is there, and nothing ever arrives.
 *
 * The receiving side decides. It knows what the peer has sent from the lengths that the peer announces for
 * each segment, and retransmits while nothing answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_DATA_PATH_H
#define LH_CONNECTION_DATA_PATH_H

#include <longhaul/types.h>

struct lh_connection;

struct data_path {
    bool passes;
    uint32_t evidence; /* packets of segments whose lengths came while no packet had */
    lh_time since_ns;  /* the first of them */
};

/* The peer announced a segment of that many bytes, at least one, and sends them. Ends the connection when
 * none of many arrived. */
void data_path_on_announced(struct lh_connection *c, uint32_t bytes, lh_time now);

#endif
