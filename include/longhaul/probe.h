/*
 * probe.h - what a path between two machines is like: delay, loss, bursts, order, rate, MTU.
 *
 * One side serves, the other measures the direction from itself to the server, with UDP packets; a TCP
 * connection beside them says what is sent and what arrived. Nothing is kept busy: a probe has a time, a
 * highest rate, and ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_PROBE_H
#define LONGHAUL_PROBE_H

#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_PROBE_SIZES_MAX  16
#define LH_PROBE_TRIALS_MAX 64
#define LH_PROBE_FLOWS_MAX  16
/* Packets of one trial. */
#define LH_PROBE_PACKETS_MAX 1000000
/* UDP payload: our header, and the largest packet that IP has. */
#define LH_PROBE_PAYLOAD_MIN 64
#define LH_PROBE_PAYLOAD_MAX 65000
#define LH_PROBE_TIME_MIN    LH_NS_PER_S
#define LH_PROBE_TIME_MAX    (600 * LH_NS_PER_S)

/* Zero means the default. */
struct lh_probe_attr {
    size_t struct_bytes;      /* set by lh_probe_attr_init: lets the struct grow */
    struct lh_link_spec link; /* emulated by both sides, each at its sending end; all zero: none */
    lh_time time_ns;          /* about how long it may take; default 10 s */
    uint64_t rate_bps;        /* never sends faster; 0: as fast as the path takes */
    uint32_t trials;          /* of each payload size; default 5, fewer where time is short */
    uint32_t packets;         /* of each trial; default what the time allows */
    uint32_t flows;           /* of each trial: source ports, between which packets alternate; default 1 */
    uint32_t size_count;      /* default: 256 B, 1, 4, 8 KiB and the largest below, as far as they pass */
    uint32_t payload_bytes[LH_PROBE_SIZES_MAX]; /* of UDP */
};

/* Where packets went that did not arrive. */
struct lh_probe_trial {
    uint64_t sent;
    uint64_t lost;
    /* Dropped by the receiving host, by its kernel's counters: a trial with any is left out of the loss,
     * since nobody knows which packets those were. */
    uint64_t endpoint_drops;
    bool excluded;
};

/* Of loss: of one payload size, or of several together. Low and high are 95 % intervals, which know that
 * losses of a burst are not independent. */
struct lh_probe_loss {
    uint64_t sent, lost; /* in trials that count */
    double loss, loss_low, loss_high;
    double burst_packets, burst_low, burst_high; /* mean length of a burst (Gilbert-Elliott) */
    bool bursty;                                 /* losses come together, beyond doubt */
};

struct lh_probe_size {
    uint32_t payload_bytes;
    uint32_t trial_count;
    struct lh_probe_trial trials[LH_PROBE_TRIALS_MAX];
    struct lh_probe_loss loss;
    double trial_low, trial_high; /* loss of the best and the worst trial that counts */
    double reorder;               /* share of what arrived that a later packet overtook (RFC 4737) */
};

enum lh_probe_limit {
    LH_PROBE_LIMIT_PATH = 1, /* packets are lost, or pushed back, above this rate */
    LH_PROBE_LIMIT_SENDER,   /* this host sends no faster */
    LH_PROBE_LIMIT_RECEIVER, /* the other host receives no faster */
    LH_PROBE_LIMIT_ASKED,    /* lh_probe_attr.rate_bps */
    LH_PROBE_LIMIT_TIME,     /* there was no time to try faster */
};

struct lh_probe_result {
    bool ipv6;
    /* Round trips of small packets. */
    uint64_t rtt_samples;
    lh_time rtt_ns; /* the median */
    lh_time rtt_min_ns, rtt_mean_ns, rtt_p99_ns, rtt_max_ns;
    lh_time rtt_jitter_ns;   /* mean difference between one and the next */
    uint32_t path_mtu_bytes; /* the largest IP packet that passes whole, from here to the server */
    uint32_t mtu_bytes;      /* the largest RoCE payload that fits it: 256 … 4096; 0: none */
    double rate_bps;         /* that the path carries, counted from the IP header up */
    enum lh_probe_limit rate_limit;
    uint32_t size_count;
    struct lh_probe_size sizes[LH_PROBE_SIZES_MAX];
    /* Of all sizes together; of the largest up to 4 KiB only, where loss clearly depends on the size. */
    struct lh_probe_loss loss;
    uint32_t loss_payload_bytes; /* 0: all sizes */
    double reorder;              /* share of what arrived that a later packet overtook */
    double reorder_extent_mean;  /* by how many packets, of those that were; 0: none was */
    uint64_t reorder_extent_max;
    lh_time reorder_late_max_ns;
    double duplicate; /* share of what arrived that arrived again */
    uint64_t sent, received;
    uint64_t endpoint_drops_socket; /* of the server's socket: it did not read fast enough */
    uint64_t endpoint_drops_host;   /* of the server's network stack, before any socket */
    uint64_t trials, trials_excluded;
    uint32_t flows;
    double flow_loss_low, flow_loss_high; /* of the best and of the worst flow */
};

struct lh_probe_server;

LH_API void lh_probe_attr_init(struct lh_probe_attr *attr);
/* Measures the path to a server, where: "HOST:PORT"; tries to reach it for wait_ns. Blocks for about the
 * time that was asked for and what eight round trips take, never for ever.
 * -LH_EINVAL, -LH_ERANGE: an attribute. -LH_EADDR, -LH_ETIMEDOUT, -LH_EPEER: no server, or it went away; or
 * TCP gets through and UDP does not. -LH_EHANDSHAKE, -LH_EVERSION, -LH_EPROTOCOL. -LH_EMTU: a payload that
 * was asked for does not pass. */
LH_API int lh_probe_run(const char *where, const struct lh_probe_attr *attr, lh_time wait_ns,
                        struct lh_probe_result *result);

/* where: as for lh_listen(). */
LH_API int lh_probe_listen(const char *where, struct lh_probe_server **server);
LH_API uint16_t lh_probe_server_port(const struct lh_probe_server *server);
/* Waits for a client and serves it to its end; strangers and silent ones keep nobody waiting. 0: a client
 * was served. -LH_ETIMEDOUT: nobody came. -LH_EHANDSHAKE, -LH_EVERSION, -LH_EPROTOCOL, -LH_EPEER: one came
 * and it went wrong; others may follow. */
LH_API int lh_probe_serve(struct lh_probe_server *server, lh_time timeout_ns);
/* "[::1]:40000": who was served last, or spoke last, for people. */
LH_API const char *lh_probe_server_peer(const struct lh_probe_server *server);
LH_API void lh_probe_server_close(struct lh_probe_server *server);

#ifdef __cplusplus
}
#endif
#endif
