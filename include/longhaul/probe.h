/*
 * probe.h - measures the path between two machines: delay, loss, bursts, order, rate, MTU.
 *
 * The client measures the path to the server with UDP packets. A control connection over TCP announces trials
 * and reports arrivals. A probe's time and rate are bounded.
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
/* UDP payload: at least the probe's header, at most what an IP packet holds. */
#define LH_PROBE_PAYLOAD_MIN 64
#define LH_PROBE_PAYLOAD_MAX 65000
#define LH_PROBE_TIME_MIN    LH_NS_PER_S
#define LH_PROBE_TIME_MAX    (600 * LH_NS_PER_S)

/* Zero means the default. */
struct lh_probe_attr {
    size_t struct_bytes;      /* set by lh_probe_attr_init, so that the struct can grow */
    struct lh_link_spec link; /* emulated by both sides, for the packets that they send; all zero: none */
    lh_time time_ns;          /* approximate duration; default 10 s */
    uint64_t rate_bps;        /* maximum rate; 0: the path's maximum */
    uint32_t trials;          /* per payload size; default 5, fewer if time is short */
    uint32_t packets;         /* per trial; default: as the time allows */
    uint32_t flows;           /* per trial: number of source ports, used in turn; default 1 */
    uint32_t size_count;      /* default: 256 B, 1, 4, 8 KiB and the largest below, up to the path MTU */
    uint32_t payload_bytes[LH_PROBE_SIZES_MAX]; /* of UDP */
    /* A file that stores the measured rate for later connections to this server, as lh_attr.path_file; NULL:
     * none. A rate limited by the attributes is not stored. */
    const char *path_file;
    /* A server on another host is refused, before anything is sent: probes are in clear text, and any host
     * may answer. As lh_security.loopback_only */
    bool loopback_only;
};

/* Packets of one trial. */
struct lh_probe_trial {
    uint64_t sent;
    uint64_t lost;
    /* Dropped by the receiving host, according to its kernel's counters. A trial with such drops is excluded
     * from the loss, since the dropped packets are unknown. */
    uint64_t endpoint_drops;
    bool excluded;
};

/* Loss of one payload size, or of several together. Low and high bound 95 % intervals, which account for
 * dependent losses within a burst. */
struct lh_probe_loss {
    uint64_t sent, lost; /* in trials that are not excluded */
    double loss, loss_low, loss_high;
    double burst_packets, burst_low, burst_high; /* mean length of a burst (Gilbert-Elliott) */
    bool bursty;                                 /* losses are significantly bursty */
};

struct lh_probe_size {
    uint32_t payload_bytes;
    uint32_t trial_count;
    struct lh_probe_trial trials[LH_PROBE_TRIALS_MAX];
    struct lh_probe_loss loss;
    double trial_low, trial_high; /* loss of the best and the worst trial that is not excluded */
    double reorder;               /* ratio of reordered packets (RFC 4737) */
};

enum lh_probe_limit {
    LH_PROBE_LIMIT_PATH = 1, /* packets are lost, or pushed back, above this rate */
    LH_PROBE_LIMIT_SENDER,   /* this host cannot send faster */
    LH_PROBE_LIMIT_RECEIVER, /* the remote host cannot receive faster */
    LH_PROBE_LIMIT_ASKED,    /* lh_probe_attr.rate_bps */
    LH_PROBE_LIMIT_TIME,     /* no time left for higher rates */
};

struct lh_probe_result {
    bool ipv6;
    /* Round trips of small packets. */
    uint64_t rtt_samples;
    lh_time rtt_ns; /* the median */
    lh_time rtt_min_ns, rtt_mean_ns, rtt_p99_ns, rtt_max_ns;
    lh_time rtt_jitter_ns;   /* mean difference of consecutive samples */
    uint32_t path_mtu_bytes; /* largest IP packet that passes unfragmented, from here to the server */
    uint32_t mtu_bytes;      /* largest payload that fits it: 256 … 8896; 0: none */
    double rate_bps;         /* of the path, counted from the IP header up */
    enum lh_probe_limit rate_limit;
    uint32_t size_count;
    struct lh_probe_size sizes[LH_PROBE_SIZES_MAX];
    /* Of all sizes together; if loss clearly depends on the size, only of the largest size up to 4 KiB. */
    struct lh_probe_loss loss;
    uint32_t loss_payload_bytes; /* 0: all sizes */
    double reorder;              /* ratio of reordered packets */
    double reorder_extent_mean;  /* mean extent of reordering, in packets; 0: none */
    uint64_t reorder_extent_max;
    lh_time reorder_late_max_ns;
    double duplicate; /* ratio of duplicates */
    uint64_t sent, received;
    uint64_t endpoint_drops_socket; /* of the server's socket: its buffer was full */
    uint64_t endpoint_drops_host;   /* of the server's network stack, before any socket */
    uint64_t trials, trials_excluded;
    uint32_t flows;
    double flow_loss_low, flow_loss_high; /* of the best and of the worst flow */
};

struct lh_probe_server;

LH_API void lh_probe_attr_init(struct lh_probe_attr *attr);
/* Measures the path to a server. Blocks for about the configured time and eight round trips, always bounded.
 * where: "HOST:PORT". wait_ns: time to reach the server. -LH_EINVAL, -LH_ERANGE: an attribute is invalid.
 * -LH_EADDR, -LH_ETIMEDOUT, -LH_EPEER: there is no server, it disappeared, or only TCP passes and UDP does
 * not. -LH_EHANDSHAKE, -LH_EVERSION, -LH_EPROTOCOL. -LH_EMTU: a requested payload does not pass. */
LH_API int lh_probe_run(const char *where, const struct lh_probe_attr *attr, lh_time wait_ns,
                        struct lh_probe_result *result);

/* Starts a server. where: as for lh_listen(). */
LH_API int lh_probe_listen(const char *where, struct lh_probe_server **server);
/* From now on clients on other hosts are refused, with a reason on both sides: as lh_probe_attr. */
LH_API void lh_probe_server_loopback_only(struct lh_probe_server *server);
LH_API uint16_t lh_probe_server_port(const struct lh_probe_server *server);
/* Waits for a client and serves it to its end. Invalid and silent clients do not block others. 0: a client
 * was served. -LH_ETIMEDOUT: no client came. -LH_EHANDSHAKE, -LH_EVERSION, -LH_EPROTOCOL, -LH_EPEER: a client
 * failed; call again for the next. */
LH_API int lh_probe_serve(struct lh_probe_server *server, lh_time timeout_ns);
/* Returns the address of the last client for display, "[::1]:40000". */
LH_API const char *lh_probe_server_peer(const struct lh_probe_server *server);
LH_API void lh_probe_server_close(struct lh_probe_server *server);

#ifdef __cplusplus
}
#endif
#endif
