/*
 * sim_packets.h - the simulated network as tests and benchmarks hold it: hosts in virtual time, addresses,
 * packets and their pool.
 *
 * Endpoints are opened through the fabric interface, device "sim:<world name>/<host number>". Between each
 * two hosts lies one link a direction. Packets travel as real RoCEv2 bytes over IPv6 (host h is fd77::h),
 * so that damage and hostile bytes meet the same decoders as on a wire. Everything that happens follows
 * from the seed and the order of calls.
 *
 * Time stands still but for sim_world_advance(). What has arrived waits in the receiver's queues, and is
 * judged when it is polled.
 *
 * Threads: every call may come from any thread; only with one thread is the order, and with it the run, the
 * same each time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_SIM_PACKETS_H
#define LH_NETSIM_FABRIC_SIM_PACKETS_H

#include <longhaul/link.h>

#include "fabric/fabric.h"
#include "wire/roce_packet.h"

#define SIM_HOSTS_MAX      128u
#define SIM_HOSTS_FEW      8u /* of sim_world_create() */
#define SIM_WORLD_NAME_MAX 32u
#define SIM_WORLDS_MAX     64u
/* UDP payload of the longest datagram: the largest packet, and room for hostile ones that are longer. */
#define SIM_DATAGRAM_MAX 4224u
/* Packets on the way and in receive queues, all hosts together; past it the fabric pushes back (1.1 GiB).
 */
#define SIM_PACKETS_MAX 262144u
#define SIM_PORT_FIRST  49152u
#define SIM_PORTS_MAX   4096u /* of each host: one a channel and one for control */

struct sim_world;
struct netsim; /* netsim/run/simulation_run.h */

extern const struct fabric_ops fabric_sim_ops;

/* One datagram, as a tap sees it or a test injects it. */
struct sim_datagram {
    lh_time at_ns; /* tap: when it was sent; inject: when it arrives */
    uint8_t *data; /* UDP payload, BTH to iCRC */
    uint32_t bytes;
    uint16_t source_port;
    uint16_t destination_port;
    uint8_t from; /* host numbers */
    uint8_t to;
    bool control; /* tap: sent by a control QP; inject: ignored */
};

/* Sees every packet as it is sent, ahead of the link, and may change its bytes and length (up to
 * SIM_DATAGRAM_MAX); false drops it. Of this header it may call sim_world_inject(), sim_world_now() and the
 * sim_datagram_ functions. */
typedef bool sim_tap(void *context, struct sim_datagram *datagram);

/* What became of a packet that reached its host. */
enum sim_arrival {
    SIM_DELIVERED,  /* into the receive queue of its port */
    SIM_OVERFLOWED, /* that queue was full */
    SIM_UNKNOWN,    /* no endpoint has the port */
};

/* Sees every packet as it arrives; it may not call any function of this header but sim_world_now(). */
typedef void sim_watch(void *context, const struct sim_datagram *datagram, enum sim_arrival arrival);

/* How many of the packets that wait for a port a poll may take, 1 … count: a worker that looks at few of
 * them at a time. (One that looks at none is not run.) */
typedef uint32_t sim_poll_share(void *context, uint32_t host, uint16_t port, uint32_t count);

/* What a host believes the time to be. */
struct sim_clock {
    lh_time ahead_ns; /* of the world's time, when it is set */
    int32_t skew_ppb; /* it gains so many nanoseconds a second, or loses them; above -10^9 */
};

struct sim_counts {
    uint64_t sent;       /* handed to a link */
    uint64_t delivered;  /* put into a receive queue */
    uint64_t lost;       /* by the link */
    uint64_t tapped;     /* dropped by the tap */
    uint64_t cut;        /* sent while the link was cut */
    uint64_t overflowed; /* receive queue was full */
    uint64_t unknown;    /* no endpoint has that port */
};

/* NULL with lh_last_error(): name in use, empty, too long or with a '/'; too many worlds. link NULL: none.
 */
struct sim_world *sim_world_create(const char *name, uint64_t seed, const struct lh_link_spec *link);
/* The same with 1 to SIM_HOSTS_MAX hosts; 0, or the error. */
int sim_world_open(const char *name, uint32_t hosts, uint64_t seed, const struct lh_link_spec *link,
                   struct sim_world **world);
/* Every fabric in it is closed before (asserted). */
void sim_world_destroy(struct sim_world *world);

lh_time sim_world_now(struct sim_world *world);
/* When the next packet arrives; LH_TIME_NEVER when none is on the way. What a sender could not get rid of
 * because a link pushed back is not on the way: the fabric's pump says when to try again. */
lh_time sim_world_next_event(struct sim_world *world);
/* Virtual time becomes `to`, never going back; what arrives up to then is put into the receivers' queues in
 * the order of arrival, ties in the order of sending. -LH_ENOMEM, from then on: the pool of the
 * world's network was used up; a packet was lost for that, or flows of the network are stuck. */
int sim_world_advance(struct sim_world *world, lh_time to);

/* Changes the links of all directions from now on; packets on the way keep their fate. */
void sim_world_set_link(struct sim_world *world, const struct lh_link_spec *link);
/* Changes the link of one direction. */
void sim_world_set_direction(struct sim_world *world, uint32_t from, uint32_t to,
                             const struct lh_link_spec *link);
/* Cuts (or heals) one direction: what is sent while it is cut is lost. */
void sim_world_cut(struct sim_world *world, uint32_t from, uint32_t to, bool cut);
/* Cuts (or heals) every direction. */
void sim_world_partition(struct sim_world *world, bool cut);
/* Leaves 32 packets of SIM_PACKETS_MAX. Before any packet was sent (asserted). */
void sim_world_few_packets(struct sim_world *world);

/* Puts a switched network between the hosts: host h of the world is host h of the network, and a packet
 * that a link lets through crosses the network before it arrives. The world turns it from now on; the
 * caller owns it, and keeps it as long as the world. Before any packet was sent (asserted). NULL: none. */
void sim_world_set_network(struct sim_world *world, struct netsim *network);

/* NULL: no tap. */
void sim_world_tap(struct sim_world *world, sim_tap *tap, void *context);
/* NULL: none. */
void sim_world_watch(struct sim_world *world, sim_watch *watch, void *context);
void sim_world_poll_share(struct sim_world *world, sim_poll_share *share, void *context);
/* Lets a datagram arrive at at_ns (now, when that is past), past every link: hostile bytes, replays. The
 * bytes are copied. -LH_EINVAL: over SIM_DATAGRAM_MAX or no such host; -LH_ENOMEM. */
int sim_world_inject(struct sim_world *world, const struct sim_datagram *datagram);

/* ---- hosts ---- */

/* The clock of a host, which is its fabric's `now`: without this it shows the world's time. It never goes
 * back. */
void sim_world_set_clock(struct sim_world *world, uint32_t host, const struct sim_clock *clock);
/* It jumps forward by so much. */
void sim_world_jump_clock(struct sim_world *world, uint32_t host, lh_time forward_ns);
lh_time sim_world_host_now(struct sim_world *world, uint32_t host);
/* The world's time at which the host's clock will show at least this; now, when it does already. */
lh_time sim_world_host_when(struct sim_world *world, uint32_t host, lh_time shown_ns);

/* The next endpoint of the host takes free ports from this one on: a host that comes back may get the
 * ports of its earlier life. Until then each endpoint gets ports that have rested longest. */
void sim_world_next_port(struct sim_world *world, uint32_t host, uint16_t port);
/* Bytes that wait to be polled at a port, and how many may; false when nobody has the port. */
bool sim_world_waiting(struct sim_world *world, uint32_t host, uint16_t port, uint64_t *bytes,
                       uint64_t *bytes_max);
/* Makes the iCRC right again after the bytes were changed. At least 16 bytes. */
void sim_datagram_seal(struct sim_datagram *datagram);

struct sim_counts sim_world_counts(struct sim_world *world);
/* A hash over each arrival so far: time, ports, length, contents. Two runs of one seed have the same. */
uint64_t sim_world_trace(struct sim_world *world);

/* ---- packet pool ----------------------------------------------------------------------------------- */

/* The packets of a simulated world, allocated in slabs and used again and again. */

struct sim_packet {
    struct sim_packet *next; /* in the pool or in a receive queue */
    uint32_t bytes;          /* of data */
    uint16_t source_port;
    uint16_t destination_port;
    uint8_t from;
    uint8_t to;
    bool crosses_network; /* at the end of the link it enters the world's network, */
    bool ecn_capable;     /* which may mark it then, */
    bool marked;          /* and has: congestion experienced */
    lh_time arrived_ns;   /* at its host, by that one's clock */
    uint32_t
        last_bytes; /* of data, the iCRC if it has one: kept here for the trace, as data is cold by then */
    _Alignas(64) uint8_t data[SIM_DATAGRAM_MAX]; /* BTH to iCRC */
};

#define SIM_SLAB_BYTES   ((size_t)2 * 1024 * 1024) /* a huge page */
#define SIM_SLAB_PACKETS (SIM_SLAB_BYTES / sizeof(struct sim_packet))
#define SIM_SLABS_MAX    (SIM_PACKETS_MAX / SIM_SLAB_PACKETS)

/* All zero is an empty pool. */
struct packet_pool {
    struct sim_packet *free; /* last in, first out: the warmest first */
    uint32_t slabs_count;
    bool is_small; /* one slab is all */
    struct sim_packet *slabs[SIM_SLABS_MAX];
};

/* NULL when SIM_SLABS_MAX slabs are in use or memory ran out. */
struct sim_packet *packet_pool_get(struct packet_pool *pool);
/* Whether one has been given back since. */
static inline bool packet_pool_has_room(const struct packet_pool *pool)
{
    return pool->free != NULL;
}
void packet_pool_put(struct packet_pool *pool, struct sim_packet *packet);
/* Frees every packet, used or not. */
void packet_pool_clear(struct packet_pool *pool);

/* The packet as tests see it. */
struct sim_datagram sim_packet_view(struct sim_packet *packet, lh_time at_ns);
/* Flips this bit of it, modulo its length; nothing when it has none: a tap left nothing. */
void sim_packet_flip(struct sim_packet *packet, uint32_t bit);

/* Packets that wait to be polled, in the order of arrival. */
struct sim_queue {
    struct sim_packet *first;
    struct sim_packet *last;
    uint64_t bytes;
    uint64_t bytes_max;
};

/* False when it is full. A queue takes one packet at least, however small its bound. */
bool sim_queue_push(struct sim_queue *queue, struct sim_packet *packet);
struct sim_packet *sim_queue_pop(struct sim_queue *queue);

/* ---- checksum -------------------------------------------------------------------------------------- */

/* The iCRC of packets between two ports, with what all of them have in common worked out once. */

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

/* ---- address --------------------------------------------------------------------------------------- */

/* The IPv6 addresses of simulated hosts: host h is fd77::h. */

void sim_address_of(uint32_t host, uint8_t address[16]);
/* SIM_HOSTS_MAX when the address belongs to no simulated host. */
uint32_t sim_host_of(const uint8_t address[16]);

#endif
