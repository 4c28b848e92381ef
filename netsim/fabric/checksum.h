/*
 * checksum.h - the iCRC of packets between two ports, with what all of them have in common worked out once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_CHECKSUM_H
#define LH_NETSIM_FABRIC_CHECKSUM_H

#include "netsim/fabric/packet_pool.h"

struct sim_checksum {
    struct icrc_flow flow;
    uint32_t bytes; /* of the UDP payload for which state is kept: most packets are as long as the last. 0:
                       none */
    uint32_t state; /* after the IP and UDP headers */
};

void sim_checksum_init(struct sim_checksum *checksum, uint32_t from, uint16_t source_port, uint32_t to,
                       uint16_t destination_port);
/* Packets of 16 bytes or more, whose addresses and ports are those of the checksum. */
void sim_checksum_seal(struct sim_checksum *checksum, struct sim_packet *packet);
bool sim_checksum_holds(struct sim_checksum *checksum, const struct sim_packet *packet);

#endif
