/*
 * sim_endpoint.h - what belongs to one SDR queue pair on a simulated host: its ports, QPs, slots and receive
 * queues.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_SIM_ENDPOINT_H
#define LH_NETSIM_FABRIC_SIM_ENDPOINT_H

#include "fabric/rx_check.h"
#include "netsim/fabric/sim_packets.h"
#include "netsim/fabric/sim_world.h"

/* Bytes that wait in one receive queue when the context does not say. */

struct sim_fabric {
    struct fabric base;
    struct sim_world *world;
    uint32_t host;
    uint64_t receive_buffer_bytes;
};

/* Why the last send did not take everything. */
enum sim_refusal {
    SIM_REFUSED_NOT = 0,
    SIM_REFUSED_BY_LINK, /* its queue is full */
    SIM_REFUSED_BY_POOL, /* SIM_PACKETS_MAX packets are about */
};

/* One UDP port: a channel, or control. */
struct sim_path {
    struct sim_queue arrived; /* guarded by the world's lock, as what follows */
    lh_time read_arrived_ns;  /* when that had arrived which was read last; 0: nothing was */
    uint16_t port;
    uint16_t peer_port;
    uint32_t
        psn[QP_INFO_GENERATIONS_MAX]; /* of the next packet; the path's caller owns it, and what follows */
    enum sim_refusal refused;
    struct sim_checksum sent;     /* of packets to the peer's end of the path */
    struct sim_checksum received; /* of packets from there */
};

struct sim_endpoint {
    struct fabric_endpoint base;
    struct sim_world *world;
    uint32_t host;
    uint32_t peer_host; /* SIM_HOSTS_MAX until it is connected */
    struct rx_table table;
    struct qp_info_endpoint own;
    struct qp_info_endpoint peer;
    struct sim_path paths[QP_INFO_CHANNELS_MAX + 1]; /* one a channel, then control */
};

/* FABRIC_CONTROL or a channel. */
static inline struct sim_path *sim_path_of(struct sim_endpoint *endpoint, uint32_t channel)
{
    return &endpoint->paths[channel == FABRIC_CONTROL ? endpoint->table.attr.channels : channel];
}

/* The fabric_ops of an endpoint's life. */
int sim_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                        struct fabric_endpoint **endpoint);
void sim_endpoint_destroy(struct fabric_endpoint *endpoint);
void sim_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info);
int sim_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);
int sim_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                  struct fabric_slot_key *key);
void sim_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot);
void sim_slots_idle(struct fabric_endpoint *endpoint);
bool sim_takes_pieces(struct fabric_endpoint *endpoint);

#endif
