/*
 * verbs_sizes.h - sizes and names of the verbs fabric: depth of queues so that none can overflow, GIDs. Pure.
 *
 * A completion queue that overflows is the end of its queue pairs, so it has room for a completion of each
 * receive that is posted, and for each send in flight (in an error all of them complete, signalled or not).
 * There is one pair of completion queues a channel: Soft-RoCE has at most 32767 entries in one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_SIZES_H
#define LH_FABRIC_VERBS_VERBS_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/error.h>
#include <longhaul/types.h>

#define VERBS_RECV_DEPTH       16384u /* receives of a channel that are posted; packets that may wait */
#define VERBS_RECV_DEPTH_MIN   64u    /* one batch */
#define VERBS_SEND_DEPTH       1024u  /* writes of a channel in flight */
#define VERBS_SEND_DEPTH_MIN   128u
#define VERBS_BOUNCE_BYTES_MAX ((uint64_t)32 << 20) /* of an endpoint, for borrowed payload */
#define VERBS_CONTROL_RECEIVES 256u
#define VERBS_CONTROL_SENDS    128u

/* What a device can do. */
struct verbs_limits {
    uint32_t max_qp_wr;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_cqe;
};

struct verbs_sizes {
    bool shared;         /* receive queue: one a channel, else one a queue pair */
    uint32_t recv_depth; /* of each receive queue; a power of two */
    uint32_t recv_cqe;
    uint32_t send_depth; /* of each channel, over all its queue pairs; a power of two */
    uint32_t send_cqe;
};

/* -LH_EDEVICE: the device has not even the least. */
int verbs_sizes_choose(const struct verbs_limits *limits, uint32_t channels, uint32_t generations,
                       uint32_t mtu_bytes, bool own_queues, struct verbs_sizes *sizes);

/* ---- gid ------------------------------------------------------------------------------------------- */

/*
 * Which of a port's addresses (GIDs) to use. Pure.
 *
 * A RoCE port has an entry for each IP address of its interface, often twice: for RoCE v1, which is no IP,
 * and v2.
 */

struct verbs_gid {
    uint8_t bytes[16];
    uint32_t index;
    bool roce_v2;
};

/* What a GID is good for; the larger the better. */
enum verbs_gid_rank {
    VERBS_GID_USELESS = 0, /* not RoCE v2, or empty, or of no IP unicast address */
    VERBS_GID_LINK_LOCAL,
    VERBS_GID_IPV6,
    VERBS_GID_IPV4, /* on a port that has both, the one that the peer most likely has, too */
};

enum verbs_gid_rank verbs_gid_rank(const struct verbs_gid *gid);
/* 4 for an IPv4 address in IPv6 form (::ffff:192.0.2.7), else 6. */
uint32_t verbs_gid_family(const uint8_t bytes[16]);
/* Place in `gids` of the one to use, or -1. wanted_index >= 0: only that entry. family 4 or 6: only of
 * those; 0: any. Of equals the first. */
int verbs_gid_choose(const struct verbs_gid *gids, uint32_t count, int32_t wanted_index, uint32_t family);
/* The address as the connection blob has it: IPv4 in the first 4 bytes; and back. */
void verbs_gid_to_address(const uint8_t gid[16], uint8_t address[16]);
void verbs_gid_from_address(uint32_t family, const uint8_t address[16], uint8_t gid[16]);

/* ---- name ------------------------------------------------------------------------------------------ */

/*
 * What a verbs device name asks for. Pure.
 *
 * [DEVICE][/PORT][/gid=INDEX][/ip=4|6][/protect=indirect|window|mr][/srq=yes|no], all parts optional but in
 * this order only for DEVICE and PORT: "", "rxe0", "mlx5_0/1", "mlx5_0/1/gid=3", "rxe0/protect=mr".
 */

#define VERBS_DEVICE_NAME_MAX 64u /* with the final zero; the kernel's own limit */

/* How packets that come after their receive was completed are kept out of its buffer; best first. */
enum verbs_protection {
    VERBS_PROTECT_ANY = 0,  /* the best that the device has */
    VERBS_PROTECT_INDIRECT, /* mlx5: the slot's indirect key is pointed elsewhere; never chosen by itself */
    VERBS_PROTECT_WINDOW,   /* a memory window of type 1 is bound again for each receive */
    VERBS_PROTECT_MR,       /* each receive registers its memory, and its end takes that back */
    VERBS_PROTECTIONS
};

struct verbs_name {
    char device[VERBS_DEVICE_NAME_MAX]; /* "": the first that can be used */
    uint32_t port;                      /* 0: the first that can be used */
    int32_t gid_index;                  /* -1: the best */
    uint32_t family;                    /* 4 or 6; 0: any */
    enum verbs_protection protection;
    bool own_queues; /* no shared receive queue even where the device has them */
};

/* -LH_EDEVICE names the part that cannot be read, and what would be right. */
int verbs_name_parse(const char *text, struct verbs_name *name);
/* "indirect", "window", "mr", "any". */
const char *verbs_protection_name(enum verbs_protection protection);

/* ---- tx limit -------------------------------------------------------------------------------------- */

/*
 * Limit of the writes that a device may hold unsent. Pure.
 *
 * What waits in a device has left as far as anybody above knows, and control messages pass it by: a deep
 * queue of a slow device makes repairs of what was never sent. A shallow one makes a fast device wait. So
 * the limit follows what the device sends in TX_LIMIT_NS: it doubles when the device had run dry behind it,
 * and falls to what was measured when it had not.
 */

#define TX_LIMIT_NS LH_NS_PER_MS /* what may wait unseen; a worker comes round far more often */

struct tx_limit {
    uint32_t minimum; /* the limit never leaves these two */
    uint32_t maximum;
    uint32_t writes; /* in flight, at most */
    bool reached;    /* a write had to wait for it since the last check */
    lh_time since_ns;
    uint64_t released; /* at that time */
};

void tx_limit_init(struct tx_limit *limit, uint32_t minimum, uint32_t maximum);
/* So many of all writes ever taken are released now, and in_flight are not. */
void tx_limit_on_released(struct tx_limit *limit, uint64_t released, uint32_t in_flight, lh_time now);
/* Writes that may be added to those in flight, of `wanted`. */
uint32_t tx_limit_room(struct tx_limit *limit, uint32_t in_flight, uint32_t wanted);

/* ---- tx ring --------------------------------------------------------------------------------------- */

/*
 * Writes that were given to a device and not released yet, in batches, in the order in which they
 * were taken. Pure.
 *
 * A batch goes to one queue pair and has one completion. Queue pairs of one channel complete out of each
 * other's order, but writes are released in order: a batch that completes early waits for those before it.
 */

#define TX_RING_NONE UINT64_MAX /* the number of no batch */

struct tx_batch {
    uint32_t writes;
    bool done;
};

struct tx_ring {
    struct tx_batch *batches; /* writes_max of them, owned by the caller */
    uint32_t writes_max;      /* in flight; a power of two */
    uint64_t next;            /* number of the next batch */
    uint64_t oldest;          /* of the oldest that is not released */
    uint64_t taken;           /* writes, ever */
    uint64_t released;
};

/* Writes that may be added now. */
uint32_t tx_ring_room(const struct tx_ring *ring);
/* Adds a batch of 1 … room writes; its number is what ring->next was. */
void tx_ring_push(struct tx_ring *ring, uint32_t writes);
/* The batch of that number is done. False, and nothing changes, when it is not in flight. */
bool tx_ring_complete(struct tx_ring *ring, uint64_t number);

#endif
