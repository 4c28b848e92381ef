/*
 * xp.h - XP, the transport of OptiNIC's NIC (section 3.1), over UDP sockets: best effort, unordered, and
 * every operation ends by its deadline.
 *
 * Each packet carries the number of its message and the address of its payload. A queue pair has one active
 * message in each direction, whose packets are placed as they arrive. A packet of a later message ends it,
 * with the data that has arrived (preemption); a packet of an earlier message is dropped. Nothing is
 * retransmitted. XP counts bytes, but does not know which bytes are missing or arrived twice; the scheme
 * `bounded` of reliable messages does.
 *
 * The NIC's state is 52 bytes per queue pair: 20 of transport and 32 of rate control by DCQCN. Posted work,
 * timer links and addresses are in the host's memory. lh_xp_create() allocates all of it.
 *
 *   SEND       takes a receive of the peer: the n-th operation that takes one takes the n-th, despite losses
 *   WRITE      to memory exposed by the peer; the peer gets no notification, and has no deadline
 *   WRITE_IMM  as WRITE, and takes a receive, which gets 32 bits of immediate
 *   READ       from memory exposed by the peer; the peer stops at the request's deadline
 *   RECV       a buffer for a SEND, or none for a WRITE_IMM
 *
 * A deadline counts from the time at which the operation is the first of its queue (sends and receives have
 * one queue each): an operation ends within its timeout and one tick from then. XP identifies a peer by the
 * address and port given to lh_xp_connect(), and by the numbers of its queue pair. It neither encrypts nor
 * authenticates.
 *
 * Use an object from one thread at a time. Only lh_xp_progress() makes progress.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_XP_H
#define LONGHAUL_XP_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_XP_MESSAGE_MAX (UINT32_C(1) << 31) /* bytes */
#define LH_XP_TIMEOUT_MAX (60 * LH_NS_PER_S)
#define LH_XP_ADDRESS_MAX 80 /* bytes of an address as text, with its final zero */

enum lh_xp_verb {
    LH_XP_SEND,
    LH_XP_WRITE,
    LH_XP_WRITE_IMM,
    LH_XP_READ,
    LH_XP_RECV,
};

enum lh_xp_status {
    LH_XP_COMPLETE,  /* receiver, READ: the last fragment arrived; sender: all was transmitted */
    LH_XP_TIMED_OUT, /* the deadline passed */
    LH_XP_PREEMPTED, /* receiver: a later message began */
    LH_XP_FLUSHED,   /* the queue pair was closed */
};

enum lh_xp_access {
    LH_XP_REMOTE_WRITE = 1,
    LH_XP_REMOTE_READ = 2,
};

struct lh_xp_request {
    enum lh_xp_verb verb;
    /* `bytes` bytes, not touched by the caller until the operation completes. NULL: XP only counts bytes
     * (simulation; over sockets only if bytes is 0). */
    void *buffer;
    uint32_t bytes;     /* to LH_XP_MESSAGE_MAX */
    uint64_t remote;    /* WRITE, WRITE_IMM, READ: offset in the peer's region */
    uint32_t key;       /* WRITE, WRITE_IMM, READ: key of that region */
    uint32_t immediate; /* WRITE_IMM */
    uint16_t stride;    /* reported to the receiver: longhaul/hadamard.h */
    lh_time timeout_ns; /* above 0, at most LH_XP_TIMEOUT_MAX */
    uint64_t user;      /* in the completion */
};

struct lh_xp_completion {
    uint64_t user;
    uint32_t qpn;
    uint32_t bytes;  /* transmitted or placed; duplicates count, up to the length */
    uint32_t length; /* RECV: of the message, from its packets; 0: no packet arrived; else as posted */
    uint32_t immediate;
    uint16_t stride; /* of the message's packets */
    uint8_t verb;    /* enum lh_xp_verb */
    uint8_t status;  /* enum lh_xp_status */
    bool has_immediate;
};

struct lh_xp_counters {
    uint64_t rx_packets, tx_packets;
    uint64_t bad_packets;   /* not XP packets, or damaged */
    uint64_t late;          /* packets of messages or receives that had ended */
    uint64_t preempted;     /* messages ended by a later message */
    uint64_t timed_out;     /* operations */
    uint64_t no_receive;    /* packets without a posted receive */
    uint64_t bad_qpn;       /* no such queue pair, or not from its peer */
    uint64_t bad_seq;       /* messages or receives out of sequence */
    uint64_t bad_range;     /* beyond the buffer or region, or the key is unknown or does not permit it */
    uint64_t marked;        /* packets with congestion experienced (RFC 3168) */
    uint64_t notifications; /* of congestion, received */
    uint64_t reads_refused; /* more READs at once than lh_xp_attr.responses */
};

struct lh_xp_attr {
    size_t struct_bytes;
    const char *address; /* of this host, "127.0.0.1" or "::1"; XP chooses the port */
    uint32_t qps;        /* queue pairs, to 2^24 - 1 */
    uint32_t works;      /* operations posted, or completed but not polled */
    uint32_t responses;  /* READs of peers answered at a time; one per queue pair */
    uint32_t regions;    /* exposed memory, to 65535 */
    uint32_t peers;      /* hosts and ports that queue pairs are connected to */
    uint32_t mtu_bytes;  /* payload of a packet, 64 to 4096 */
    uint64_t rate_bps;   /* initial and maximum rate of a queue pair: 1 Mbit/s to 4 Tbit/s */
    lh_time tick_ns;     /* of the timers */
};

struct lh_xp;

/* Sets the defaults: 1,024 queue pairs, 4,096 works, 64 responses, regions and peers each, 4,096 bytes, 100
 * Gbit/s, 10 us. The caller sets the address. */
LH_API void lh_xp_attr_init(struct lh_xp_attr *attr);
/* Creates an XP object. -LH_EINVAL, -LH_EADDR, -LH_ENOMEM, -LH_ESYSTEM. */
LH_API int lh_xp_create(const struct lh_xp_attr *attr, struct lh_xp **xp);
/* Frees an XP object. Pending operations do not complete. NULL is allowed. */
LH_API void lh_xp_destroy(struct lh_xp *xp);
/* Writes address and port, for the peers: "127.0.0.1:50000", "[::1]:50000". Returns out. */
LH_API char *lh_xp_address(const struct lh_xp *xp, char out[LH_XP_ADDRESS_MAX]);

/* Opens a queue pair. *qpn, *seq: its number and the number of its first message, both for the peer.
 * -LH_EAGAIN: all queue pairs are open. */
LH_API int lh_xp_open(struct lh_xp *xp, uint32_t *qpn, uint32_t *seq);
/* Connects to a peer's queue pair, with the peer's results of lh_xp_address() and lh_xp_open(). -LH_EADDR;
 * -LH_EAGAIN: too many peers; -LH_EINVAL: no such queue pair; -LH_ESTATE: already connected. */
LH_API int lh_xp_connect(struct lh_xp *xp, uint32_t qpn, const char *peer_address, uint32_t peer_qpn,
                         uint32_t peer_seq);
/* Closes a queue pair. Its posted operations complete as LH_XP_FLUSHED. */
LH_API int lh_xp_close(struct lh_xp *xp, uint32_t qpn);

/* Exposes memory: until it is withdrawn, any peer that knows the key may access it at any time. -LH_EAGAIN:
 * all regions are in use. */
LH_API int lh_xp_expose(struct lh_xp *xp, void *base, uint64_t bytes, uint32_t access, uint32_t *key);
/* Withdraws exposed memory: no packet touches it afterwards. -LH_EKEY: no such key. */
LH_API int lh_xp_withdraw(struct lh_xp *xp, uint32_t key);

/* Posts an operation. -LH_EINVAL: queue pair, verb, size, timeout or buffer; -LH_ESTATE: not connected;
 * -LH_EAGAIN: lh_xp_attr.works operations are posted, or completed but not polled. */
LH_API int lh_xp_post(struct lh_xp *xp, uint32_t qpn, const struct lh_xp_request *request);
/* Takes up to `count` completions, and returns their number. */
LH_API uint32_t lh_xp_poll(struct lh_xp *xp, struct lh_xp_completion *completions, uint32_t count);

/* Receives and sends packets, and ends expired operations; never waits. Returns 1 if there was work, 0 if
 * not, or a negative error (-LH_ESYSTEM) if the socket fails. */
LH_API int lh_xp_progress(struct lh_xp *xp);
/* Return the descriptor for poll(2) and epoll(7), readable when packets have arrived, and the maximum time to
 * wait for it. LH_TIME_NEVER: no timer is pending; 0: call lh_xp_progress() now. */
LH_API int lh_xp_fd(const struct lh_xp *xp);
LH_API lh_time lh_xp_wait_ns(const struct lh_xp *xp);

LH_API void lh_xp_counters(const struct lh_xp *xp, struct lh_xp_counters *counters);

/* ---- the machine ------------------------------------------------------------------------------------- */

/* Gets the bytes of a queue pair in the NIC, and in the host's memory (without posted work). */
LH_API void lh_xp_qp_bytes(uint32_t *nic, uint32_t *host);

#ifdef __cplusplus
}
#endif
#endif
