/*
 * model.h - how long a message takes over a long, lossy link, by each reliability scheme.
 *
 * The model of the SDR-RDMA paper (sections 4.2 and 5, appendices A to C): a path injects the M chunks of a
 * message one after another, some are lost, and each scheme repairs that in its way. Times are seconds from
 * the injection of the first chunk to the sender's receipt of the last acknowledgement; sizes bytes; rates
 * bits a second; shares 0 to 1. docs/model.md has the formulas, and says what is exact.
 *
 * All calls return 0, or -LH_EINVAL or -LH_ERANGE with the value and the remedy in lh_last_error(). They may
 * come from any thread, and allocate nothing unless they say so.
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

/* ---- what is asked ----------------------------------------------------------------------------------- */

/* A message and the link that it crosses. */
struct lh_model_path {
    uint64_t message_bytes; /* 1 to 2^63 - 1 */
    uint64_t chunk_bytes;   /* of one bit of the receive bitmap: a whole number of packets */
    uint32_t mtu_bytes;     /* payload of a packet */
    uint32_t header_bytes;  /* of a packet beside its payload; 0: not counted, as in the paper */
    double bandwidth_bps;
    double rtt_s;
    double loss;        /* share that is lost, 0 to below 1 */
    bool loss_of_chunk; /* loss is that of a chunk; false: of a packet */
    double
        burst_packets; /* mean length of a row of lost packets (see longhaul/link.h); 0 or 1: independent */
    double
        reorder_window_s; /* how long a gap stands before it is reported, as lh_connection_path() measures it;
                           * 0: an eighth of rtt_s. Only LH_MODEL_TIMING_LONGHAUL waits for it */
    /* Of a message that have parity of their own (lh_attr.slot_bytes), in whole chunks; 0: all of it. Only
     * LH_MODEL_TIMING_LONGHAUL looks at it. */
    uint64_t segment_bytes;
};

enum lh_model_kind {
    LH_MODEL_IDEAL,   /* nothing is lost */
    LH_MODEL_SR_RTO,  /* selective repeat after a timeout, 3 RTT unless said */
    LH_MODEL_SR_NACK, /* selective repeat after a report: 1 RTT unless said */
    LH_MODEL_EC_MDS,  /* erasure code: any m of k + m chunks may be lost */
    LH_MODEL_EC_XOR,  /* erasure code: one chunk of each of m classes may be lost */
    LH_MODEL_GBN,     /* go-back-N, as NICs do it for reliable connections */
};

/* What is done about submessages that cannot be decoded. */
enum lh_model_fallback {
    LH_MODEL_FALLBACK_IR, /* as many chunks as they lack are sent: Longhaul's default */
    LH_MODEL_FALLBACK_SR, /* all their data, by selective repeat: the paper's */
};

/* Whose time is counted. */
enum lh_model_timing {
    LH_MODEL_TIMING_PAPER,    /* the paper's machines */
    LH_MODEL_TIMING_LONGHAUL, /* Longhaul's: gaps stand for a window before they are reported, parity is not
                               * waited for by a message that lost nothing, and so on (docs/model.md) */
};

struct lh_model_scheme {
    enum lh_model_kind kind;
    enum lh_model_timing timing; /* of gbn and ideal the same */
    double
        rto_rtts; /* until a lost chunk is sent again, in RTT, at least 1; 0: 3, but 1 for sr-nack and ir */
    /* Erasure codes: */
    uint32_t k;      /* data chunks of a submessage */
    uint32_t m;      /* its parity chunks; k + m <= 255, for xor m <= k */
    uint32_t spread; /* submessages that share a block; 0: all. Counts when loss comes in bursts */
    double beta;     /* RTT that the receiver waits before it asks for what it lacks */
    enum lh_model_fallback fallback;
    double encode_bytes_per_s; /* data that one core encodes; 0: not known */
};

/* Bytes that lh_model_scheme_format needs, with the final zero. */
#define LH_MODEL_SCHEME_TEXT_MAX 160

/* The scheme of a text as lh_attr.reliability takes it, defaults filled in: "sr-rto,alpha=2", "sr-nack",
 * "ec:mds,k=32,m=8,spread=0,beta=0.5,fallback=ir", "ec:xor", and also "ideal" and "gbn". Any may have
 * rto=RTTS. encode_bytes_per_s is 0. -LH_EINVAL. */
LH_API int lh_model_scheme_parse(const char *text, struct lh_model_scheme *scheme);
/* The shortest text that lh_model_scheme_parse reads as this scheme, but with k and m always, into out;
 * returns out. Cuts at size. */
LH_API char *lh_model_scheme_format(const struct lh_model_scheme *scheme, char *out, size_t size);

/* ---- what is to be expected: formulas, microseconds to compute ---------------------------------------- */

struct lh_model_times {
    double ideal_s; /* message bits / rate + RTT: on a link that loses nothing */
    double mean_s;
    double p50_s;
    double p99_s;
    double p999_s;
    double paper_mean_s;   /* the mean by the formula that the paper prints: for erasure codes another one
                            (section 4.2.3, fallback sr, independent loss), else mean_s */
    double p_fallback;     /* chance that a submessage cannot be decoded; 0 without erasure code */
    double wire_bytes;     /* mean bytes that are sent: message, parity, repeats, headers */
    double overhead_bytes; /* wire_bytes less those of a link that loses nothing, without parity */
    double encode_core_s;  /* time of one core to encode the message; 0: not known, or nothing to encode */
    double encode_cores;   /* cores that encode as fast as the link takes the message */
};

LH_API int lh_model_predict(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                            struct lh_model_times *times);
/* The time within which this share (0 to below 1) of the messages is complete, and the share that is
 * complete within seconds. */
LH_API int lh_model_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                             double share, double *seconds);
LH_API int lh_model_cdf(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                        double seconds, double *share);

/* ---- a deadline: what has come by then is handed over ------------------------------------------------- */

/* Selective repeat that ends at a deadline, whole or not. No scheme of Longhaul does this: it is what one
 * would bring. Shares are of a message's chunks. */
struct lh_model_bounded {
    double mean_s; /* of the completion time: the deadline, or earlier where all came before */
    double p50_s, p99_s, p999_s;
    double missing; /* in the mean */
    double missing_p99,
        missing_p999;      /* no more than that in 99 % and 99.9 % of the messages; NaN with bursts,
                                         where it is not known */
    double whole;          /* share of the messages that miss nothing */
    double overhead_bytes; /* of repeats until then */
};

/* scheme: sr-rto or sr-nack by the paper's timing, what repeats until then. deadline_s: from the injection of
 * the first chunk, as all times here; not before ideal_s. */
LH_API int lh_model_bounded(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                            double deadline_s, struct lh_model_bounded *bounded);
/* The earliest deadline by which no more than `missing` (above 0, below 1) is missing: in the mean where
 * share is 0, else in that share of the messages (-LH_EINVAL with bursts). */
LH_API int lh_model_deadline(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                             double missing, double share, double *deadline_s);

/* ---- message by message: Monte Carlo ----------------------------------------------------------------- */

/* Draws `count` completion times into seconds. Only what is lost is drawn, so a sample costs as much as it
 * has losses at most. The same seed gives the same samples, whatever the number of threads (the caller's and
 * others, 1 to 256 in all). Bursts and an erasure code need some bytes of memory a submessage and thread.
 * -LH_ENOMEM. */
LH_API int lh_model_sample(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                           uint64_t seed, uint32_t threads, double *seconds, size_t count);

struct lh_model_summary {
    double mean_s;
    double mean_error_s; /* standard error of the mean */
    double p50_s;        /* nearest rank */
    double p99_s;
    double p999_s;
};
/* Reorders the samples. -LH_EINVAL: there are none, or one is not a number. */
LH_API int lh_model_summarize(double *seconds, size_t count, struct lh_model_summary *summary);

/* ---- collectives: rounds of messages that wait for each other ----------------------------------------- */

/* path->message_bytes is the buffer of each datacenter. Messages do not slow each other down. */
enum lh_model_collective {
    LH_MODEL_RING_ALLREDUCE, /* 2 N - 2 rounds of an N-th of the buffer (appendix C) */
    LH_MODEL_TREE_ALLREDUCE, /* binomial tree: ceil(log2 N) rounds to the root, as many back; whole buffers */
    LH_MODEL_ALL_TO_ALL,     /* N - 1 rounds of an N-th of the buffer, in round r from the one r before */
};

/* Appendix C: the rounds times the mean of a message. No collective of this kind is faster in the mean;
 * ideal_s is the same without loss. 2 to 4096 datacenters. */
LH_API int lh_model_collective_bound(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                                     enum lh_model_collective collective, uint32_t datacenters,
                                     double *ideal_s, double *mean_s);
/* Draws the times at which the last datacenter is done; as lh_model_sample. */
LH_API int lh_model_collective_sample(const struct lh_model_path *path,
                                      const struct lh_model_scheme *scheme,
                                      enum lh_model_collective collective, uint32_t datacenters,
                                      uint64_t seed, uint32_t threads, double *seconds, size_t count);

/* ---- facts that need no scheme ------------------------------------------------------------------------ */

/* The share of chunks of so many packets that is lost: 1 - (1 - p)^packets (figure 15), or with bursts. */
LH_API int lh_model_chunk_loss(double packet_loss, double burst_packets, uint32_t packets,
                               double *chunk_loss);
/* How long 2^id_bits messages take at line rate: a packet that is later than that finds its message ID in use
 * again (section 3.3.2). */
LH_API int lh_model_wraparound(double bandwidth_bps, uint64_t message_bytes, uint32_t id_bits,
                               double *seconds);

#ifdef __cplusplus
}
#endif
#endif
