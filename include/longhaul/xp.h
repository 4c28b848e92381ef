/*
 * xp.h - XP, the transport that OptiNIC (section 3.1) puts into a NIC, over UDP sockets: best effort, no
 * order, and an end of every operation by its deadline.
 *
 * Each packet says which message it is of and where its payload goes. A queue pair has one active message
 * in each direction: its packets are placed as they come; one of a later message ends it, with what has
 * come (preemption); one of an earlier message is dropped. Nothing is retransmitted. Bytes are counted;
 * which ones are missing, and whether some came twice, XP does not know: the scheme `bounded` of reliable
 * messages does.
 *
 * State of the NIC: 52 bytes a queue pair, 20 of transport and 32 of rate control by DCQCN. Posted work,
 * the timers' links and addresses lie in the host's memory; all of it is allocated by lh_xp_create().
 *
 *   SEND       takes a receive of the peer: the n-th of those that take one takes the n-th, whatever is lost
 *   WRITE      to memory that the peer has exposed; the peer is told nothing, and has no deadline
 *   WRITE_IMM  likewise, and takes a receive, which gets 32 bits of immediate
 *   READ       from memory that the peer has exposed; the request has the deadline, when the peer stops
 *   RECV       a buffer for a SEND, or none for a WRITE_IMM
 *
 * A deadline counts from when the operation is the first of its queue (sends and receives have one each):
 * an operation ends within its timeout and a tick from then. A peer is whoever sends from the address and
 * the port that lh_xp_connect() was told, with the numbers of its queue pair; nothing is encrypted or
 * authenticated.
 *
 * One thread at a time calls for an object. Nothing happens but in lh_xp_progress().
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
    LH_XP_COMPLETE,  /* receiver, READ: the last fragment came; sender: all was transmitted */
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
    /* Of `bytes`, untouched by the caller until the operation has completed; NULL: bytes are only counted
     * (simulation; not over sockets, unless bytes is 0). */
    void *buffer;
    uint32_t bytes;     /* to LH_XP_MESSAGE_MAX */
    uint64_t remote;    /* WRITE, WRITE_IMM, READ: offset in the peer's region */
    uint32_t key;       /* likewise: its key */
    uint32_t immediate; /* WRITE_IMM */
    uint16_t stride;    /* for the receiver's information: longhaul/hadamard.h */
    lh_time timeout_ns; /* above 0, to LH_XP_TIMEOUT_MAX */
    uint64_t user;      /* in the completion */
};

struct lh_xp_completion {
    uint64_t user;
    uint32_t qpn;
    uint32_t bytes;  /* transmitted or placed; copies of packets count, up to the length */
    uint32_t length; /* RECV: of the message, as its packets say, 0 when none came; else what was posted */
    uint32_t immediate;
    uint16_t stride; /* of the message's packets */
    uint8_t verb;    /* enum lh_xp_verb */
    uint8_t status;  /* enum lh_xp_status */
    bool has_immediate;
};

struct lh_xp_counters {
    uint64_t rx_packets, tx_packets;
    uint64_t bad_packets;   /* that are none of XP, or damaged */
    uint64_t late;          /* packets of messages that had ended, or whose receive had */
    uint64_t preempted;     /* messages that a later one ended */
    uint64_t timed_out;     /* operations */
    uint64_t no_receive;    /* packets for which none was posted */
    uint64_t bad_qpn;       /* no such queue pair, or from elsewhere than its peer */
    uint64_t bad_seq;       /* messages, or receives, that cannot be next */
    uint64_t bad_range;     /* beyond the buffer or region; or no such key, or not for that */
    uint64_t marked;        /* packets with congestion experienced (RFC 3168) */
    uint64_t notifications; /* of congestion, received */
    uint64_t reads_refused; /* more at once than there is memory for */
};

struct lh_xp_attr {
    size_t struct_bytes;
    const char *address; /* of this host, "127.0.0.1" or "::1"; its port is chosen */
    uint32_t qps;        /* queue pairs, to 2^24 - 1 */
    uint32_t works;      /* operations posted, or completed and not yet polled */
    uint32_t responses;  /* READs of peers that are answered at once; one a queue pair */
    uint32_t regions;    /* exposed memory, to 65535 */
    uint32_t peers;      /* hosts and ports that queue pairs are connected to */
    uint32_t mtu_bytes;  /* payload of a packet, 64 to 4096 */
    uint64_t rate_bps;   /* at which a queue pair begins, and its maximum: 1 Mbit/s to 4 Tbit/s */
    lh_time tick_ns;     /* of the timers */
};

struct lh_xp;

/* 1,024 queue pairs, 4,096 works, 64 responses, regions and peers each, 4,096 bytes, 100 Gbit/s, 10 us; the
 * address is the caller's to set. */
LH_API void lh_xp_attr_init(struct lh_xp_attr *attr);
/* -LH_EINVAL, -LH_EADDR, -LH_ENOMEM, -LH_ESYSTEM. */
LH_API int lh_xp_create(const struct lh_xp_attr *attr, struct lh_xp **xp);
/* Work that has not completed never does. NULL is allowed. */
LH_API void lh_xp_destroy(struct lh_xp *xp);
/* Address and port, for the peers: "127.0.0.1:50000", "[::1]:50000". Returns out. */
LH_API char *lh_xp_address(const struct lh_xp *xp, char out[LH_XP_ADDRESS_MAX]);

/* A queue pair's number, and that of the first message that it sends, both for the peer. -LH_EAGAIN: all
 * are open. */
LH_API int lh_xp_open(struct lh_xp *xp, uint32_t *qpn, uint32_t *seq);
/* To the queue pair of a peer, by what its lh_xp_address() and lh_xp_open() said. -LH_EADDR; -LH_EAGAIN:
 * too many peers; -LH_EINVAL: no such queue pair; -LH_ESTATE: connected already. */
LH_API int lh_xp_connect(struct lh_xp *xp, uint32_t qpn, const char *peer_address, uint32_t peer_qpn,
                         uint32_t peer_seq);
/* What is posted completes as flushed. */
LH_API int lh_xp_close(struct lh_xp *xp, uint32_t qpn);

/* Memory that peers may reach by key: as long as it is exposed, any of them that knows the key, at any time.
 * -LH_EAGAIN: all regions are in use. */
LH_API int lh_xp_expose(struct lh_xp *xp, void *base, uint64_t bytes, uint32_t access, uint32_t *key);
/* From then on no packet touches it. -LH_EKEY. */
LH_API int lh_xp_withdraw(struct lh_xp *xp, uint32_t key);

/* -LH_EINVAL: queue pair, verb, size, timeout or buffer; -LH_ESTATE: not connected; -LH_EAGAIN: as many are
 * posted, or completed and not polled, as there may be. */
LH_API int lh_xp_post(struct lh_xp *xp, uint32_t qpn, const struct lh_xp_request *request);
/* The number of completions taken, to count. */
LH_API uint32_t lh_xp_poll(struct lh_xp *xp, struct lh_xp_completion *completions, uint32_t count);

/* Receives and sends what it can, and ends what is due; never waits. Whether there was anything to do; a
 * negative error (-LH_ESYSTEM) when the socket fails. */
LH_API int lh_xp_progress(struct lh_xp *xp);
/* For poll(2) and epoll(7): readable when packets have come. To wait for no longer than lh_xp_wait_ns()
 * says, which is LH_TIME_NEVER when nothing is due; 0 when there is something to do now. */
LH_API int lh_xp_fd(const struct lh_xp *xp);
LH_API lh_time lh_xp_wait_ns(const struct lh_xp *xp);

LH_API void lh_xp_counters(const struct lh_xp *xp, struct lh_xp_counters *counters);

/* ---- the machine ------------------------------------------------------------------------------------- */

/* Bytes that a queue pair takes: of the NIC, and of the host's memory besides (without posted work). */
LH_API void lh_xp_qp_bytes(uint32_t *nic, uint32_t *host);

#ifdef __cplusplus
}
#endif
#endif
