/*
 * probe_port.h - the UDP sockets of one side of a probe, behind its end of the emulated link.
 *
 * A packet that is sent first meets its fate (base/link_spec.h), as on any fabric; what arrives in the end
 * waits here until it is due. A damaged packet does not arrive: UDP's checksum would catch it. Of a packet
 * only the header is kept: what fills it up is the same for all.
 *
 * Timers: the due time of each packet on the emulated link; the retry, RETRY_NS after the kernel took no
 * more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_PROBE_PORT_H
#define LH_PROBE_PROBE_PORT_H

#include <netinet/in.h>
#include <stdint.h>

#include "base/link_spec.h"
#include "link/link_timeline.h"
#include "probe/probe_messages.h"

#define PORT_BATCH 32u

union port_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* On its way out. */
struct port_packet {
    uint8_t header[PROBE_HEADER_BYTES];
    uint32_t bytes;
    uint32_t flow;         /* which socket it leaves from */
    union port_address to; /* the server's answers; the client's sockets are connected */
};

struct port_arrival {
    struct probe_packet packet;
    union port_address from;
    lh_time at_ns; /* when the kernel got it */
};

struct probe_port {
    int fds[LH_PROBE_FLOWS_MAX];
    uint32_t flows;
    bool client, ipv6;
    union port_address peer; /* where its packets come from; of the server's peer only the host counts */
    uint32_t header_bytes;   /* IP and UDP */
    bool emulating;
    struct lh_link_state link;
    struct ring_store held;
    struct timeline in_flight;
    uint64_t pushed; /* onto the timeline */
    struct port_packet out[PORT_BATCH];
    uint32_t out_count;
    uint64_t pushed_back; /* sends that were refused */
    uint64_t too_long;    /* packets that this host does not even send, for their size */
    int send_error;       /* the last errno of a packet that could not be sent; 0: none */
};

/* The client's: `flows` sockets, connected to that UDP port of the host at the other end of the TCP
 * connection. -LH_EADDR, -LH_ESYSTEM, -LH_ENOMEM. */
int probe_port_open_client(struct probe_port *port, int tcp_fd, uint16_t udp_port, uint32_t flows,
                           const struct lh_link_spec *link);
/* The server's: one socket at the address of the TCP connection, on its port if that is free. */
int probe_port_open_server(struct probe_port *port, int tcp_fd, uint16_t *udp_port,
                           const struct lh_link_spec *link);
void probe_port_close(struct probe_port *port);

/* A new measurement: from here on the link's fates are those of this round, whatever was before. */
void probe_port_start_round(struct probe_port *port, uint32_t round);
/* False: not taken, the link or the kernel pushes back; try again after probe_port_pump(). */
bool probe_port_send(struct probe_port *port, const struct port_packet *packet, lh_time now);
/* Lets go what is due. When to call again. */
lh_time probe_port_pump(struct probe_port *port, lh_time now);
/* When the link would take another packet. */
lh_time probe_port_ready_ns(const struct probe_port *port, lh_time now);
/* Whether all that was sent has left. */
bool probe_port_is_empty(const struct probe_port *port);
/* Up to PORT_BATCH packets that came from the peer and carry the token; the rest is thrown away, and
 * counts. 0: there is nothing more. `arrivals` holds that many. */
uint32_t probe_port_receive(struct probe_port *port, uint64_t token, struct port_arrival *arrivals,
                            uint32_t *seen);
/* Waits until a packet comes, the other descriptor (or -1) is readable, or that moment. Whether the other
 * descriptor is. */
bool probe_port_wait(const struct probe_port *port, int other_fd, lh_time until_ns);

/* ---- host drops ------------------------------------------------------------------------------------ */

/* What the kernel of this machine dropped of what it had received: no fault of the path. */

/* Packets that found the backlog of a CPU full, before any socket, since the machine was started: of all
 * programs (second column of /proc/net/softnet_stat). 0 where the kernel does not report it. */
uint64_t host_drops_of_stack(void);

#endif
