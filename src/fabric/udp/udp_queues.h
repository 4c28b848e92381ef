/*
 * udp_queues.h - queues of the udp fabric: packets read for other endpoints, socket slots, QPNs, prefixes.
 *
 * One writer at a time (the reader of the shared sockets holds the fabric's lock) puts packets into all
 * inboxes of a fabric; each inbox has one reader, its owner; no lock between them. Raw copies: the reader
 * validates them. The memory is a pool of the fabric's, bounded for all of them together: one for data, one
 * for control messages, so that these wait for nobody's data. How many packets an inbox may hold depends on
 * what is left of its pool (dynamic thresholds, Choudhury and Hahne 1998): a few owners that do not read
 * leave room for all others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_QUEUES_H
#define LH_FABRIC_UDP_UDP_QUEUES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/types.h>

#include "fabric/fabric.h"
#include "fabric/seal.h"
#include "fabric/udp/udp_address.h"
#include "wire/roce_packet.h"

#define UDP_POOL_PACKETS       4096u /* of data or control about 36 MiB, taken as they are needed */
#define UDP_INBOX_SHARE        4u    /* an inbox holds at most a quarter of what is free */
#define UDP_INBOX_PACKET_BYTES (SEAL_BYTES + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_PAYLOAD_MAX)

struct udp_packet {
    struct udp_packet *next;
    union udp_address from;
    uint32_t bytes;
    uint32_t place; /* in the message of the kernel: 0, 1, 2 … */
    bool sealed;    /* a control datagram that is still encrypted */
    bool marked;    /* congestion experienced */
    uint8_t data[]; /* as many bytes as the pool's packets have */
};

struct udp_packet_slab;

/* All zero but packet_bytes is an empty one. */
struct udp_packet_pool {
    uint32_t packet_bytes;                 /* that a packet holds */
    _Atomic(struct udp_packet *) returned; /* by readers */
    _Atomic uint32_t in_use;
    struct udp_packet *spare; /* the writer's */
    struct udp_packet_slab *slabs;
    uint32_t made;
    uint32_t held_at;   /* the writer's: in use, when there was no room last; 0: there was */
    uint32_t held_asks; /* the writer's: since some were taken */
};

/* All zero is an empty one. */
struct udp_inbox {
    _Atomic(struct udp_packet *) fresh; /* newest first */
    _Atomic uint32_t waiting;
    struct udp_packet *oldest; /* the reader's, in order */
};

/* Every inbox is empty by now. */
void udp_pool_free(struct udp_packet_pool *pool);

/* A datagram, or a part of what the kernel joined. */
struct udp_part {
    const union udp_address *from;
    const uint8_t *data;
    uint32_t bytes; /* at most packet_bytes of the pool to go into an inbox */
    uint32_t place;
    bool marked;
    bool sealed; /* of control datagrams */
};

enum udp_put {
    UDP_PUT_REFUSED, /* the inbox has its share, or there is no memory */
    UDP_PUT_FIRST,   /* the owner has taken all that was put before, and may be asleep */
    UDP_PUT_MORE,
};

/* Whether to read more, under the writer's lock. Above half of the pool what comes next waits in the socket,
 * as long as owners take some from time to time; those that do not hold nobody up: none was taken while this
 * was asked so often (at least 1). */
bool udp_pool_has_room(struct udp_packet_pool *pool, uint32_t patience);
/* Copies the data. */
enum udp_put udp_inbox_put(struct udp_packet_pool *pool, struct udp_inbox *inbox,
                           const struct udp_part *part);
/* Whether that many more would fit. */
bool udp_inbox_has_room(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t packets);
/* For the writer and the reader. */
static inline uint32_t udp_inbox_waiting(struct udp_inbox *inbox)
{
    return atomic_load_explicit(&inbox->waiting, memory_order_relaxed);
}
/* The oldest packet, or NULL. It is the reader's until udp_packet_return(). */
struct udp_packet *udp_inbox_take(struct udp_inbox *inbox);
void udp_packet_return(struct udp_packet_pool *pool, struct udp_packet *packet);
/* Of an endpoint that ends; nobody puts anything in any more. */
void udp_inbox_clear(struct udp_packet_pool *pool, struct udp_inbox *inbox);

/* ---- arrivals -------------------------------------------------------------------------------------- */

/*
 * The arrivals of a poll, and those that wait for the next one: a message of the kernel may hold
 * more than the caller takes. Pure.
 */

/* All zero: nothing waits, and there is no room for it. */
struct udp_arrivals {
    struct fabric_arrival *out; /* the caller's */
    uint32_t count;             /* in it */
    uint32_t room;
    struct fabric_arrival *waiting; /* waiting[next … end) */
    uint32_t next;
    uint32_t end;
    uint32_t waiting_room;
};

/* A poll for at most that many. What waits comes first. */
void udp_arrivals_begin(struct udp_arrivals *arrivals, struct fabric_arrival *out, uint32_t room);
void udp_arrivals_add(struct udp_arrivals *arrivals, const struct fabric_arrival *arrival);
/* Takes back those of a slot that wait; returns their number. */
uint32_t udp_arrivals_withdraw_slot(struct udp_arrivals *arrivals, struct immediate_split split,
                                    uint32_t slot);
/* Whether some do. */
static inline bool udp_arrivals_wait(const struct udp_arrivals *arrivals)
{
    return arrivals->next < arrivals->end;
}

/* ---- socket slots ---------------------------------------------------------------------------------- */

/*
 * Which sockets of a port have an owner of their own, and whose is taken for another. Pure.
 *
 * A socket slot is a socket of a port beside the shared one. An endpoint's channel takes a free socket slot;
 * where there is none, the owner that has been quiet longest is asked to leave, and the socket slot is free
 * once it has. Who is quiet is found by sweeps, one at each request (the clock algorithm of page
 * replacement): an owner marks its socket slot as active, a sweep takes the mark back.
 *
 * A socket slot that was left stays empty for a while: a packet that was on its way through the kernel may
 * still come to its socket.
 */

#define UDP_SOCKET_SLOTS_MAX     64u
#define UDP_SOCKET_SLOT_IDLE_NS  (10 * LH_NS_PER_MS)  /* a packet is through the kernel in microseconds */
#define UDP_SOCKET_SLOT_QUIET_NS (100 * LH_NS_PER_MS) /* shorter pauses belong to a transfer */

struct udp_socket_slot {
    bool taken;
    bool leaving;  /* its owner was asked to */
    lh_time since; /* free: when it was left; taken: of the first sweep that found it quiet, 0: none did */
    _Atomic bool active;
};

/* All zero: no socket slots yet. */
struct udp_socket_slots {
    uint32_t count;
    struct udp_socket_slot socket_slots[UDP_SOCKET_SLOTS_MAX];
};

/* A new one, free at once. At most UDP_SOCKET_SLOTS_MAX. */
void udp_socket_slots_add(struct udp_socket_slots *socket_slots);
/* One that may be taken, or UDP_SOCKET_SLOTS_MAX. */
uint32_t udp_socket_slots_free(const struct udp_socket_slots *socket_slots, lh_time now);
void udp_socket_slots_take(struct udp_socket_slots *socket_slots, uint32_t socket_slot);
void udp_socket_slots_leave(struct udp_socket_slots *socket_slots, uint32_t socket_slot, lh_time now);
/* A sweep. Whom to ask to leave now, or UDP_SOCKET_SLOTS_MAX: all are active, or as many leave as sweeps
 * found. */
uint32_t udp_socket_slots_sweep(struct udp_socket_slots *socket_slots, lh_time now);

/* By the owner, any time; often, so it writes only what changes. */
static inline void udp_socket_slot_mark_active(struct udp_socket_slot *socket_slot)
{
    if (!atomic_load_explicit(&socket_slot->active, memory_order_relaxed))
        atomic_store_explicit(&socket_slot->active, true, memory_order_relaxed);
}

/* ---- qpn table ------------------------------------------------------------------------------------- */

/*
 * Which endpoint and which of its queue pairs has a QPN: for what arrives at the shared port.
 *
 * Open addressing with linear probing. Grows in set-up calls only; look-ups allocate nothing. What is added
 * and removed costs the same, however many there are, but for a table that grows or shrinks by half.
 */

struct udp_endpoint;

/* The channel of a control QP. */
#define UDP_QP_CONTROL UINT8_MAX

struct udp_qp {
    uint32_t qpn; /* 0: no entry */
    uint8_t channel;
    uint8_t generation;
    struct udp_endpoint *endpoint;
};

struct qpn_table {
    struct udp_qp *entries;
    uint32_t capacity; /* 0 or a power of two, at least 4/3 of the count */
    uint32_t count;
};

/* All zero is the empty table. */
void qpn_table_free(struct qpn_table *table);
/* Picks a random free QPN, puts the entry in and returns its QPN in qp->qpn. -LH_ENOMEM,
 * -LH_ESYSTEM. */
int qpn_table_add(struct qpn_table *table, struct udp_qp *qp);
/* NULL when it is free. Valid until the next change. */
const struct udp_qp *qpn_table_find(const struct qpn_table *table, uint32_t qpn);
/* Takes it out; the others may move. One that is not there, such as 0, is no harm. */
void qpn_table_remove(struct qpn_table *table, uint32_t qpn);

/* ---- prefix ---------------------------------------------------------------------------------------- */

/* The part of the iCRC that packets of one flow and length share, cached. Pure. */

/* Segments of a GSO burst: kernels before 6.9 take no more. */
#define UDP_GSO_SEGMENTS_MAX 64u

/* iCRC state behind the IP and UDP headers, for the datagram length and port that came last, and IP ID 0. */
struct udp_prefix {
    uint32_t bytes; /* 0: nothing cached */
    uint16_t port;
    uint32_t state;
};

/* What the IP ID changes of the state. CRCs are affine over GF(2): that depends on the ID alone, since as
 * many bytes follow it in each prefix, and is the sum of what its bits change. */
extern const uint32_t udp_prefix_low_bits[16];
extern const uint32_t udp_prefix_high_bits[16];

void udp_prefix_fill(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes,
                     uint16_t port);

/* icrc_begin() for a data packet, cached. `port` is the one that varies between flows; ip_id counts only for
 * IPv4. Inline: each packet needs it. */
static inline uint32_t udp_prefix_get(struct udp_prefix *prefix, const struct icrc_flow *flow,
                                      uint32_t bytes, uint16_t port, uint32_t ip_id)
{
    if (prefix->bytes != bytes || prefix->port != port)
        udp_prefix_fill(prefix, flow, bytes, port);
    if (!flow->ipv4)
        return prefix->state; /* there is no ID */
    if (ip_id > UINT8_MAX)
        return icrc_begin(flow, bytes, (uint16_t)ip_id, true);
    return prefix->state ^ udp_prefix_low_bits[ip_id & 15] ^ udp_prefix_high_bits[ip_id >> 4];
}

#endif
