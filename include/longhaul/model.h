/*
 * model.h - completion time of a message over a long, lossy link, by reliability scheme.
 *
 * The model of the SDR-RDMA paper (sections 4.2 and 5, appendices A to C): the sender injects the M chunks of
 * a message in order, the path loses some, and the scheme repairs the losses. Times are seconds from the
 * injection of the first chunk to the sender's receipt of the last acknowledgement; sizes bytes; rates bits
 * per second; shares 0 to 1. docs/planning.md has the formulas, and their accuracy.
 *
 * All calls return 0, or -LH_EINVAL or -LH_ERANGE with the value and the remedy in lh_last_error(). They may
 * come from any thread, and allocate nothing unless noted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_MODEL_H
#define LONGHAUL_MODEL_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_scheme;

/* ---- parameters -------------------------------------------------------------------------------------- */

/* A message and the link that it crosses. */
struct lh_model_path {
    uint64_t message_bytes; /* 1 to 2^63 - 1 */
    uint64_t chunk_bytes;   /* per bit of the receive bitmap: a whole number of packets */
    uint32_t mtu_bytes;     /* payload of a packet */
    uint32_t header_bytes;  /* of a packet; 0: not counted, as in the paper */
    double bandwidth_bps;
    double rtt_s;
    double loss;             /* loss ratio, 0 to below 1 */
    bool loss_of_chunk;      /* loss is a chunk's; false: a packet's */
    double burst_packets;    /* mean burst length in packets (see longhaul/link.h); 0 or 1: independent */
    double reorder_window_s; /* age at which a gap is reported, as measured by lh_connection_path(); 0: an
                           * eighth of rtt_s. LH_MODEL_TIMING_LONGHAUL only */
    /* Bytes of a separately coded part of a message (lh_attr.slot_bytes), whole chunks; 0: the whole message.
     * LH_MODEL_TIMING_LONGHAUL only. */
    uint64_t segment_bytes;
};

enum lh_model_kind {
    LH_MODEL_IDEAL,   /* nothing is lost */
    LH_MODEL_SR_RTO,  /* selective repeat after a timeout, 3 RTT by default */
    LH_MODEL_SR_NACK, /* selective repeat after a report, 1 RTT by default */
    LH_MODEL_EC_MDS,  /* erasure code: any m of k + m chunks may be lost */
    LH_MODEL_EC_XOR,  /* erasure code: one chunk of each of m classes may be lost */
    LH_MODEL_GBN,     /* go-back-N, as in reliable connections of NICs */
    LH_MODEL_BOUNDED, /* each chunk once, delivered by a deadline */
    LH_MODEL_HYBRID,  /* selective repeat, and parity for the chunks in flight at the end */
};

/* Repair of submessages that cannot be decoded. */
enum lh_model_fallback {
    LH_MODEL_FALLBACK_IR, /* incremental redundancy: as many chunks as are missing; Longhaul's default */
    LH_MODEL_FALLBACK_SR, /* all data of the submessage, by selective repeat; the paper's */
};

/* The protocol that the model describes. */
enum lh_model_timing {
    LH_MODEL_TIMING_PAPER,    /* the paper's */
    LH_MODEL_TIMING_LONGHAUL, /* Longhaul's: for example, gaps are reported after a window, and a message
                                 without losses does not wait for parity (docs/planning.md) */
};

struct lh_model_scheme {
    enum lh_model_kind kind;
    enum lh_model_timing timing; /* no effect on gbn and ideal */
    /* RTT until a lost chunk is retransmitted, at least 1; 0: 3, but 1 for sr-nack and ir. */
    double rto_rtts;
    /* Erasure codes: */
    uint32_t k;      /* data chunks of a submessage */
    uint32_t m;      /* its parity chunks; k + m <= 255, for xor m <= k */
    uint32_t spread; /* submessages interleaved in a block; 0: all. Matters with burst loss */
    double beta;     /* RTT that the receiver waits before it requests missing chunks */
    enum lh_model_fallback fallback;
    double encode_bytes_per_s; /* data encoded by one core; 0: unknown */
    /* Bounded completion: k and m of its code, 0: none; and */
    bool xor_code; /* the code is xor; else mds */
    /* Counts from the post of the receive, half a round trip before the first injection; 0: auto. */
    double deadline_s;
    /* Hybrid: */
    double target;    /* target share of messages whose parity does not suffice */
    double tail_rtts; /* maximum round trips before the end that parity covers, 0 to 2 */
};

/* Buffer size that suffices for lh_model_scheme_format, with the final zero. */
#define LH_MODEL_SCHEME_TEXT_MAX 160

/* Parses a scheme as in lh_attr.reliability, with defaults: "sr-rto,alpha=2", "sr-nack",
 * "ec:mds,k=32,m=8,spread=0,beta=0.5,fallback=ir", "ec:xor", and also "ideal" and "gbn". Any may have
 * rto=RTTS. encode_bytes_per_s is 0. -LH_EINVAL. */
LH_API int lh_model_scheme_parse(const char *text, struct lh_model_scheme *scheme);
/* Formats a scheme as the shortest text that parses to it, always with k and m, into out[size]; returns out.
 * Truncates at size. */
LH_API char *lh_model_scheme_format(const struct lh_model_scheme *scheme, char *out, size_t size);

/* Returns whether the scheme sends parity with these parameters; for some schemes a code is optional. */
LH_API bool lh_model_scheme_codes(const struct lh_model_scheme *scheme);

/* A scheme under its user-visible name, as `--help`, `longhaul plan` and the planner list it. */
struct lh_model_entry {
    enum lh_model_kind kind;
    const char *name;     /* "ec:mds": the text before the first comma */
    const char *help;     /* its effect and its parameters, in one line */
    const char *compared; /* its text in comparisons, "ec:mds,k=32,m=8"; NULL: not compared */
    bool codes;           /* sends parity beside the data */
    const struct lh_scheme
        *machines; /* longhaul/scheme.h; NULL: predictions only, not usable in transfers */
};

/* Returns the schemes that the model knows, ended by NULL. */
LH_API const struct lh_model_entry *const *lh_model_schemes(void);

/* ---- predictions: formulas, microseconds to compute --------------------------------------------------- */

struct lh_model_times {
    double ideal_s; /* message bits / rate + RTT: without loss */
    double mean_s;
    double p50_s;
    double p99_s;
    double p999_s;
    double paper_mean_s;   /* the mean by the paper's formula: different for erasure codes (section 4.2.3,
                            fallback sr, independent loss), else mean_s */
    double p_fallback;     /* probability that a submessage cannot be decoded; 0 without erasure code; for
                              bounded completion: that data is missing */
    double wire_bytes;     /* mean bytes sent: message, parity, retransmissions, headers */
    double overhead_bytes; /* wire_bytes minus the wire bytes without loss and parity */
    double encode_core_s;  /* core time to encode the message; 0: unknown, or nothing to encode */
    double encode_cores;   /* cores that encode at line rate */
    double delivered;      /* mean share of the message that arrives: 1, except for bounded completion */
};

/* Predicts the completion time and the cost of a message. */
LH_API int lh_model_predict(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                            struct lh_model_times *times);
/* Convert between time and completion: lh_model_quantile() computes the time within which `share` (0 to below
 * 1) of the messages complete, lh_model_cdf() the share that completes within `seconds`. */
LH_API int lh_model_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                             double share, double *seconds);
LH_API int lh_model_cdf(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                        double seconds, double *share);

/* ---- bounded completion: a deadline ------------------------------------------------------------------- */

/* Selective repeat that delivers at a deadline, complete or not. Longhaul's own bounded completion
 * repeats nothing (LH_MODEL_BOUNDED, by lh_model_predict()). Shares are of a message's chunks. */
struct lh_model_bounded {
    double mean_s; /* of the completion time: the deadline, or earlier if complete */
    double p50_s, p99_s, p999_s;
    double missing;                   /* mean share */
    double missing_p99, missing_p999; /* 99th and 99.9th percentiles; NaN:
                                                                          unknown, with bursts */
    double whole;                     /* share of complete messages */
    double overhead_bytes;            /* of retransmissions until the deadline */
};

/* Predicts the effect of a deadline. scheme: retransmissions until the deadline, sr-rto or sr-nack with the
 * paper's timing. deadline_s: from the injection of the first chunk; at least ideal_s. */
LH_API int lh_model_bounded(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                            double deadline_s, struct lh_model_bounded *bounded);
/* Computes the earliest deadline that leaves at most `missing` (above 0, below 1) of a message: in the mean
 * if share is 0, else in that share of the messages (-LH_EINVAL with bursts). */
LH_API int lh_model_deadline(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                             double missing, double share, double *deadline_s);

/* ---- message by message: Monte Carlo ----------------------------------------------------------------- */

/* Samples `count` completion times into `seconds`. The cost is proportional to the number of losses, since
 * only losses are sampled. threads: 1 to 256, including the caller's; the same seed gives the same samples
 * for any number. Bursts and erasure codes allocate some bytes per submessage and thread. -LH_ENOMEM. */
LH_API int lh_model_sample(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                           uint64_t seed, uint32_t threads, double *seconds, size_t count);

struct lh_model_summary {
    double mean_s;
    double mean_error_s; /* standard error of the mean */
    double p50_s;        /* nearest rank */
    double p99_s;
    double p999_s;
};
/* Summarizes samples, and reorders them. -LH_EINVAL: there are no samples, or one is not a number. */
LH_API int lh_model_summarize(double *seconds, size_t count, struct lh_model_summary *summary);

/* ---- collectives: rounds of messages that wait for each other ----------------------------------------- */

/* path->message_bytes is the buffer size of each datacenter. Messages do not share bandwidth. */
enum lh_model_collective {
    LH_MODEL_RING_ALLREDUCE, /* 2 N - 2 rounds of 1/N of the buffer (appendix C) */
    LH_MODEL_TREE_ALLREDUCE, /* binomial tree: ceil(log2 N) rounds to the root, and as many back; whole
                                buffers */
    LH_MODEL_ALL_TO_ALL,     /* N - 1 rounds of 1/N of the buffer; round r receives from the r-th before */
};

/* Computes appendix C's lower bound of the mean: the number of rounds times the mean of a message. ideal_s:
 * the same without loss. datacenters: 2 to 4096. */
LH_API int lh_model_collective_bound(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                                     enum lh_model_collective collective, uint32_t datacenters,
                                     double *ideal_s, double *mean_s);
/* Samples the times at which the last datacenter finishes; parameters as for lh_model_sample. */
LH_API int lh_model_collective_sample(const struct lh_model_path *path,
                                      const struct lh_model_scheme *scheme,
                                      enum lh_model_collective collective, uint32_t datacenters,
                                      uint64_t seed, uint32_t threads, double *seconds, size_t count);

/* ---- independent of a scheme -------------------------------------------------------------------------- */

/* Computes the loss of chunks of `packets` packets: 1 - (1 - p)^packets (figure 15), or with bursts. */
LH_API int lh_model_chunk_loss(double packet_loss, double burst_packets, uint32_t packets,
                               double *chunk_loss);
/* Computes the time of 2^id_bits messages at line rate. A packet that arrives later finds its message ID
 * reused (section 3.3.2). */
LH_API int lh_model_wraparound(double bandwidth_bps, uint64_t message_bytes, uint32_t id_bits,
                               double *seconds);

#ifdef __cplusplus
}
#endif
#endif
