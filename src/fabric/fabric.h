/*
 * fabric.h - the narrow interface to what moves packets (UDP sockets, verbs, a simulated network), checks of
 * endpoints, and packets in pieces.
 *
 * A fabric offers unreliable one-packet writes with immediate. It has no order, no acknowledgement and no
 * memory of what it sent. Everything is batched and nothing blocks.
 *
 * An *endpoint* belongs to one SDR queue pair: channels x generations data QPs and one control QP. The
 * message table of a receiver is passed to the fabric slot by slot: a bound slot takes writes of its
 * generation into its buffer; an unbound one takes none, from the moment that unbind returns (late-packet
 * protection, paper section 3.3).
 *
 * Threads: calls on different channels of an endpoint may run in parallel; calls on the same channel (pump
 * too), and control calls, are serialised by the caller. slot_bind and slot_unbind are called while no poll
 * of any channel of that endpoint runs (the SDR layer holds their locks). The arrivals that a poll returned
 * have been handed to the bitmap before the next poll of that channel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_FABRIC_H
#define LH_FABRIC_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/device.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#include "wire/control_messages.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* Raised with each change of a struct or of a meaning in this header: lh_fabric_register() compares it. */
#define FABRIC_INTERFACE_VERSION 9u

#define FABRIC_BATCH_MAX              64u /* writes in one call, arrivals from one poll */
#define FABRIC_POLL_AGAIN             ((int)FABRIC_BATCH_MAX + 1) /* of a poll: see there */
#define FABRIC_POLL_FDS_MAX           4u
#define FABRIC_NAME_MAX               64u
#define FABRIC_RECEIVE_BUFFER_DEFAULT ((uint64_t)32 << 20)

struct fabric;
struct fabric_device_list;
struct fabric_endpoint;
struct store;

struct fabric_attr {
    const char *address;           /* device name after the colon: "[::1]", "127.0.0.1", "world/host" */
    uint64_t receive_buffer_bytes; /* asked of each data socket; 0: the default */
};

struct fabric_endpoint_attr {
    uint32_t channels;    /* 1 … QP_INFO_CHANNELS_MAX */
    uint32_t generations; /* 1 … QP_INFO_GENERATIONS_MAX */
    uint32_t mtu_bytes;   /* payload of a full packet */
    uint32_t slots;       /* size of the message table */
    uint64_t slot_bytes;
    uint32_t stripe_packets; /* packet p of a message travels on channel (p / stripe_packets) % channels */
    struct immediate_split split;
    /* Data packets leave as ECN-capable (RFC 3168), so that queues on the path mark them instead of dropping
     * them: only where the sender reacts to marks. Arriving marks are counted in any case. */
    bool ecn_capable;
    struct lh_stats *stats; /* counters to add to; several threads add, with fabric_count() */
    /* Called (from any thread) when work for a channel, or for FABRIC_CONTROL, was put aside by another
     * one's poll or by shared_poll, so that its owner polls: nobody polls a channel whose descriptors are not
     * readable. FABRIC_FDS_CHANGED: poll_fds would give others than before. Locks are held: it must not call
     * the fabric. May be NULL. */
    void (*wake)(void *wake_context, uint32_t channel);
    void *wake_context;
    struct store *store; /* that memory of the endpoint is taken from; NULL: it is not counted */
};

/* A receive that is posted. */
struct fabric_slot {
    uint8_t *base;
    uint64_t length_bytes;
    uint32_t lkey;
    uint8_t generation;
    const _Atomic uint64_t *received; /* one bit a packet; no packet whose bit is 1 is put in place */
};

#define FABRIC_SECRET_BYTES 32u

/* What both ends of an encrypted connection derive their keys of. */
struct fabric_secret {
    uint8_t bytes[FABRIC_SECRET_BYTES];
    bool connecting; /* this end is the connecting side: the other is not */
};

/* What the sender must put into its writes to reach a bound slot. */
struct fabric_slot_key {
    uint32_t rkey;
    uint64_t base;
};

/* One packet to send. */
struct fabric_write {
    const uint8_t *payload; /* must stay valid and unchanged until the write is released */
    uint32_t bytes;         /* 0 … mtu */
    uint32_t lkey;
    uint64_t va;
    uint32_t rkey;
    uint32_t immediate;
    uint32_t
        corrupt_bit; /* link emulation: flip bit corrupt_bit - 1 (mod packet bits) on the wire; 0: none. A
                        fabric that cannot (verbs) loses the packet, and counts it as link_dropped */
    uint8_t generation;
    bool borrowed; /* the payload is only valid until the call returns, and lkey does not cover it */
};

/* One packet that arrived, was checked and whose payload is in place. */
struct fabric_arrival {
    uint32_t immediate;
    uint16_t bytes;
    uint8_t generation;
};

struct fabric_datagram {
    const uint8_t *data;
    uint32_t bytes;       /* at most CONTROL_MESSAGE_MAX, or (long_control) CONTROL_LONG_MAX and the MTU, or
                             (takes_pieces) CONTROL_PROBE_MAX */
    uint32_t corrupt_bit; /* as above */
};

struct fabric_control_arrival {
    uint8_t data[CONTROL_PROBE_MAX];
    uint32_t bytes;
    uint16_t source; /* the fabric's own */
};

/* What the layers above have to know about the kind of a peer. */
struct fabric_peer_traits {
    /* Its packets may come from another address than it says: NAT rewrites them on the path. */
    bool may_be_translated;
    /* Its control port belongs to a context, for all endpoints of that; else each endpoint has its own. */
    bool shares_control_port;
    /* Packets wait for their reader in sockets: what exceeds qp_info_endpoint.receive_buffer_bytes is
     * lost. */
    bool drops_unread;
};

struct fabric_ops {
    const char *name; /* "udp", "verbs", "sim" */

    /* Adds what can be opened here, and what cannot and why. NULL ops: nothing to list. */
    int (*devices)(struct fabric_device_list *list);
    /* 0, or a negative lh_error with lh_last_error() set. */
    int (*open)(const struct fabric_attr *attr, struct fabric **fabric);
    void (*close)(struct fabric *fabric); /* all its endpoints are destroyed before */
    lh_time (*now)(struct fabric *fabric);
    /* The largest mtu_bytes that its endpoints take. NULL ops: the path decides. */
    uint32_t (*mtu)(struct fabric *fabric);

    int (*endpoint_create)(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                           struct fabric_endpoint **endpoint);
    void (*endpoint_destroy)(struct fabric_endpoint *endpoint);
    void (*endpoint_info)(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info);
    /* Before endpoint_connect: all that leaves is encrypted from then on, and nothing else is taken. A packet
     * that is not the peer's, or that came before, changes no byte, and no counter but rx_auth_failures,
     * rx_replays, and those of packets without a source, a queue pair or a length that fit. The secret stays
     * the caller's. -LH_EMTU: packets are longer by ROCE_SEALED_EXTRA; -LH_ENOMEM, -LH_ESYSTEM. NULL
     * ops: the fabric does not encrypt. */
    int (*secure)(struct fabric_endpoint *endpoint, const struct fabric_secret *secret);
    /* Checks that the peer can be reached from here at this MTU: -LH_EADDR, -LH_EMTU, -LH_EHANDSHAKE. */
    int (*endpoint_connect)(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);
    /* This side is behind NAT: from now on each data channel sends a packet to the peer now and then, even
     * where it has nothing to send, so that the peer sees where the channel's packets come from; `proof` is
     * what the peer expects in them (qp_info_endpoint.proof). Any thread; after endpoint_connect. NULL ops:
     * the fabric does not pass NAT. */
    void (*punch)(struct fabric_endpoint *endpoint, uint32_t proof);

    /* Of a peer, before it is connected, too; its information is not checked yet. NULL ops: none of them. */
    struct fabric_peer_traits (*peer_traits)(const struct qp_info_endpoint *peer);
    /* It takes packets as fast as a host makes them, and the path may drop them: without a given rate, a
     * connection needs a congestion controller. */
    bool outruns_path;
    /* Between endpoints of one address there is no network, only the peer's sockets. */
    bool local_is_direct;

    int (*slot_bind)(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                     struct fabric_slot_key *key);
    void (*slot_unbind)(struct fabric_endpoint *endpoint, uint32_t slot);
    /* No slot is bound, and none has been for a while: memory for them is given back. Called as the two
     * above. NULL ops: there is none. */
    void (*slots_idle)(struct fabric_endpoint *endpoint);

    /* How many of the writes were taken: fewer than count means full for now. Negative: the device is gone.
     */
    int (*post_writes)(struct fabric_endpoint *endpoint, uint32_t channel,
                       const struct fabric_write *writes, uint32_t count);
    /* How many writes of the channel, of all that were ever taken, are released: their payload is not read
     * any more. They are released in the order in which they were taken; borrowed ones count, too; all,
     * soon, when the device is gone. NULL ops: all, at once. */
    uint64_t (*released)(struct fabric_endpoint *endpoint, uint32_t channel);
    /* Arrivals, 0 … count. Bad packets were counted and dropped. Negative: the device is gone. More may
     * wait than poll_fds show when it filled all of `arrivals`: poll again before sleeping. 0: all that
     * had reached the host for bound slots was read; where only bad packets came, and more wait behind
     * them, it is FABRIC_POLL_AGAIN. */
    int (*poll)(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
                uint32_t count);

    /* From now on packets may come in pieces ("packet pieces" below); the poll returns each when all of it
     * has come. False: no memory. Of the thread that polls control. NULL ops: packets come whole, and no
     * control datagram is as long as CONTROL_PROBE_MAX. */
    bool (*takes_pieces)(struct fabric_endpoint *endpoint);

    /* When the packet that was read last of a channel, or of the control QP, had reached this host, by now():
     * from then on it waited for its reader. Where endpoints share what is read, another's that was read
     * later. A system call. 0: unknown. NULL ops: it is. */
    lh_time (*arrived)(struct fabric_endpoint *endpoint, uint32_t channel);

    /* A control datagram costs this host a system call, so its owner puts several messages into one. False
     * where each is lost by itself on an emulated path. */
    bool bundles_control;
    bool long_control; /* takes control datagrams that are longer than CONTROL_MESSAGE_MAX */
    /* Control datagrams may be dropped like any packet; returns the number taken. */
    int (*control_send)(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                        uint32_t count);
    int (*control_poll)(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                        uint32_t count);

    /* What control_poll returned is the peer's: behind NAT, what is sent from now on goes to where that came
     * from. Of the thread that polls. NULL ops: the fabric knows where its peer is. */
    void (*control_proven)(struct fabric_endpoint *endpoint, const struct fabric_control_arrival *arrival);

    /* Memory that packets may be sent from or land in. NULL ops: nothing to register, lkey is 0. */
    int (*memory_register)(struct fabric *fabric, void *address, size_t bytes, uint32_t *lkey,
                           void **handle);
    void (*memory_deregister)(struct fabric *fabric, void *handle);

    /* Descriptors that become readable when a channel has arrivals; FABRIC_CONTROL for the control QP.
     * Returns their number, at most FABRIC_POLL_FDS_MAX; none: the owner polls all the time. For
     * FABRIC_POLL_WAKES it polls when `wake` was called. Endpoints may have some in common: whoever polls
     * then wakes the others. */
    uint32_t (*poll_fds)(struct fabric_endpoint *endpoint, uint32_t channel, int *fds);
    /* Reads what waits in sockets that endpoints share, a bounded part of it, hands it to the endpoints, and
     * calls the `wake` of each that got something. Any thread; when another one is at it, it may do nothing.
     * True: more may wait. NULL ops: none is shared. */
    bool (*shared_poll)(struct fabric *fabric);
    /* The rate at which the owner injects: bits of payload a second, all channels together; UINT64_MAX: no
     * rate. The fabric may space packets within a burst by it, but delays nothing that keeps to it, or is
     * below 9/8 of it. From any thread, rarely: a system call for each channel. NULL ops: bursts leave as
     * they come. */
    void (*pace)(struct fabric_endpoint *endpoint, uint64_t rate_bps);
    /* Adds to the counters what the kernel has dropped and no arrival has reported yet. From any thread,
     * beside all other calls. NULL ops: nothing to add. */
    void (*count_drops)(struct fabric_endpoint *endpoint);
    /* Does what time alone demands of one channel, or of the control QP (an emulated link lets its packets
     * go), and returns when it must be called again for it: a packet falls due then, or what post_writes or
     * control_send did not take will be taken. The owner of a channel calls it once a round, before it
     * sleeps. NULL ops: never. */
    lh_time (*pump)(struct fabric_endpoint *endpoint, uint32_t channel, lh_time now);
    /* What the user should know though it is no error (too small receive buffers), or NULL. NULL ops:
     * nothing. */
    const char *(*warning)(struct fabric *fabric);
};

/* The channel argument of poll_fds, pump and wake that means the control QP. */
#define FABRIC_CONTROL UINT32_MAX
/* Of wake: see there. */
#define FABRIC_FDS_CHANGED (UINT32_MAX - 1)
/* Of poll_fds: there are no descriptors, and each arrival calls `wake`. */
#define FABRIC_POLL_WAKES UINT32_MAX

/* Every implementation starts its struct with this, so that a fabric can be used without knowing which. */
struct fabric {
    const struct fabric_ops *ops;
};

struct fabric_endpoint {
    struct fabric *fabric;
    uint64_t secret; /* random in each incarnation; no peer learns it */
};

/* A warning with its remedy, or NULL; valid as long as the fabric. A fabric prints nothing
 * itself. */
static inline const char *fabric_warning(struct fabric *fabric)
{
    return fabric->ops->warning == NULL ? NULL : fabric->ops->warning(fabric);
}

/* Adds to a counter that several threads add to. */
#define fabric_count(stats, field, n)                                                                      \
    ((void)__atomic_fetch_add(&(stats)->field, (uint64_t)(n), __ATOMIC_RELAXED))

static inline uint32_t fabric_channel_of(uint32_t packet, uint32_t stripe_packets, uint32_t channels)
{
    return channels == 1 ? 0 : (packet / stripe_packets) % channels;
}

/* ---- devices --------------------------------------------------------------------------------------- */

/* The list of devices, as each fabric adds its own. */

struct fabric_device_list {
    struct lh_device *devices;
    size_t count;
    size_t room;
    bool failed; /* there was no memory for one */
};

/* Adds one of that fabric. All else is zero, for the caller to set. NULL when there is no memory. */
struct lh_device *fabric_device_add(struct fabric_device_list *list, const char *fabric);

/* ---- endpoint check -------------------------------------------------------------------------------- */

/*
 * What every fabric of RoCE packets demands of an endpoint and of its peer, in one place.
 *
 * MTU, addresses and ports are each fabric's own matter.
 */

/* Counts of channels and generations, stripe, counters. -LH_ERANGE, -LH_EINVAL. */
int endpoint_check_shape(const struct fabric_endpoint_attr *attr);
/* The message table: that the immediate can name its slots and their packets; the MTU is right. The same
 * errors. */
int endpoint_check_table(const struct fabric_endpoint_attr *attr);
/* That the peer has as many channels and generations. -LH_EHANDSHAKE */
int endpoint_check_peer(const struct fabric_endpoint_attr *attr, const struct qp_info_endpoint *peer);
/* Of a peer over sockets, or with RoCE hardware: of both udp and verbs, which connect to each other. */
struct fabric_peer_traits endpoint_peer_traits(const struct qp_info_endpoint *peer);
/* Whether every queue pair of the peer has a number that can be one. */
bool endpoint_check_qpns(const struct qp_info_endpoint *peer);

/* ---- random ---------------------------------------------------------------------------------------- */

/* Unpredictable random bytes, for secrets that a fabric keeps from its peers. */

/* Uniform, from the kernel. -LH_ESYSTEM when there is none. */
int fabric_random(void *out, size_t bytes);

/* ---- socket drops ---------------------------------------------------------------------------------- */

/* What the kernel dropped of what came for a socket. */

/* How many datagrams found its receive buffer full since it was opened (SO_MEMINFO); wraps. 0 where the
 * kernel does not report it. */
uint32_t socket_drops(int fd);

/* ---- packet pieces --------------------------------------------------------------------------------- */

/*
 * Packets in pieces, for a path whose MTU has become smaller than a packet. Pure.
 *
 * The bitmap of a message counts packets of the MTU that both ends agreed on, whatever the path takes. So a
 * packet that does not pass any more travels as 2, 4 or 8 pieces of equal length, the last of a message in
 * fewer, each a RDMA WRITE Only with the immediate of the packet. Its address says what it is: slots take
 * addresses from 0 to *extent* = slots x slot_bytes; what is k = 1 … 6 extents higher is a piece:
 *
 *   1, 2, 3   one of 2, 4 or 8, as long as all of them
 *   4, 5, 6   the last one of a packet that is shorter than the MTU
 *
 * Cut is always at eighths of the MTU, so pieces of any of these lengths fit together: after the path has
 * changed in between, and in any order. The receiver knows of each packet which eighths have come.
 */

#define PACKET_PIECES_MAX 8u    /* of a packet */
#define PACKET_LENGTHS    4u    /* 1, 2, 4 and 8 pieces a packet */
#define PACKET_PARTIALS   1024u /* packets of a channel of which some pieces have come; a power of two */
#define PACKET_PIECE_MIN  256u  /* ROCE_MTU_MIN: below that the headers are most of what is sent */

/* ---- sending ---- */

struct packet_receiver {
    uint64_t extent_bytes; /* of the receiver's slots */
    uint32_t mtu_bytes;
};

/* How many lengths there are for this MTU: 1, only whole packets, to PACKET_LENGTHS. */
uint32_t packet_lengths(uint32_t mtu_bytes);
/* Cuts a write into pieces of 1/`pieces` of the MTU, 2, 4 or 8. One that fits a piece stays as it is. Returns
 * their number. */
uint32_t packet_cut(const struct packet_receiver *peer, const struct fabric_write *write, uint32_t pieces,
                    struct fabric_write out[PACKET_PIECES_MAX]);

/* ---- receiving ---- */

/* Which part of a packet a write is. */
struct packet_piece {
    uint32_t slot;
    uint64_t offset;    /* in the slot */
    uint32_t first;     /* eighth */
    uint32_t end_bytes; /* where the packet ends that it is the last piece of; 0: it may be any */
};

/* A packet that has not come whole. rkey is new with each binding of a slot, so a late piece never completes
 * a packet of another one. */
struct packet_partial {
    uint32_t rkey;
    uint32_t packet; /* of the slot */
    uint16_t slot;
    uint16_t end_bytes; /* 0: not known */
    uint8_t eighths;    /* bit i: eighth i has come; 0: it is nobody's */
};

/* Reads the address of a write of `bytes` bytes. False: it is no piece, or not what a piece of that length
 * can be. */
bool packet_piece_read(const struct fabric_endpoint_attr *attr, uint64_t va, uint32_t packet,
                       uint32_t bytes, struct packet_piece *piece);
/* Notes a piece that was read, of that binding, when its bytes are in place; partials are PACKET_PARTIALS
 * of its channel. A packet whose place another one needs is forgotten, as if lost. Returns the bytes of the
 * packet that it made whole, or 0. */
uint32_t packet_piece_add(struct packet_partial *partials, const struct packet_piece *piece,
                          uint32_t mtu_bytes, uint32_t rkey, uint32_t packet, uint32_t bytes);

#endif
