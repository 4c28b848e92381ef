/*
 * link.h - the text form of an emulated or simulated link.
 *
 *   rtt=25ms,rate=10Gbit,loss=1e-4
 *
 * Keys, comma separated, each at most once, in any order:
 *   rtt=TIME        round trip; each direction gets half (not with delay)
 *   delay=TIME      one way delay of each direction (not with rtt); also as a distance, 2500km: light in
 *                   fibre needs 5us for each
 *   rate=RATE       bottleneck; a packet takes its wire bits / rate; 0 or absent: no limit
 *   queue=SIZE      capacity of the bottleneck's queue; default 2ms at the rate, within 64KiB and 1MiB.
 *                   A full queue pushes back on the sender, as a NIC's send queue does; with drop=tail it
 *                   drops instead
 *   drop=tail       see queue
 *   loss=RATIO      independent loss of each packet
 *   burst=N         mean length, in packets, of a loss burst: loss= becomes Gilbert-Elliott with that mean
 *                   burst length and the same average loss (bad state loses every packet)
 *   reorder=RATIO   share of packets delayed by one more jitter time (or rtt/8 without jitter)
 *   duplicate=RATIO share of packets that arrive twice
 *   corrupt=RATIO   share of packets in which one bit flips on the wire
 *   jitter=TIME     extra delay, uniform in 0..TIME, sampled for each packet (so packets may be reordered)
 *   seed=N          of the random generator; default 1
 * A TIME is at most an hour. burst=N needs a loss of at most N / (N + 1): a packet passes between two bursts.
 *
 * The empty text and "none" mean no emulation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_LINK_H
#define LONGHAUL_LINK_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_link_spec {
    lh_time delay_ns; /* one way */
    lh_time jitter_ns;
    uint64_t rate_bps;    /* 0: no limit */
    uint64_t queue_bytes; /* 0: the default */
    double loss;
    double burst_packets; /* 0 or 1: independent loss */
    double reorder;
    double duplicate;
    double corrupt;
    uint64_t seed;
    bool drop_tail;
};

/* Maxima of rtt, delay and jitter, and of the mean burst length. */
#define LH_LINK_TIME_MAX  ((lh_time)3600 * LH_NS_PER_S)
#define LH_LINK_BURST_MAX 1e9

/* Buffer size that suffices for lh_link_format, with the final zero. */
#define LH_LINK_TEXT_MAX 384

/* Parses a text. -LH_EINVAL, -LH_ERANGE; lh_last_error() names the key and the value. */
LH_API int lh_link_parse(const char *text, struct lh_link_spec *spec);
/* Formats a spec as a text that parses to it, into out[size], and returns out. "none": no emulation. */
LH_API char *lh_link_format(const struct lh_link_spec *spec, char *out, size_t size);
/* Returns whether the spec emulates nothing. */
LH_API bool lh_link_is_none(const struct lh_link_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
