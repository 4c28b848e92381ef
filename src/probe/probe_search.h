/*
 * probe_search.h - searches of a probe: largest packet that passes, rate, schedule of packets.
 *
 * Several sizes are tried at once, so that a long path costs few round trips: first the MTUs that links
 * have, then sizes spread evenly over what is left. What passed, passed: the answer is always a size that
 * was seen to pass. What did not may have been lost; so when nothing is left between the two, the next size
 * up is tried again, many times, and if it passes the search goes on above it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_PROBE_SEARCH_H
#define LH_PROBE_PROBE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/probe.h>

#define MTU_SEARCH_SIZES_MAX 12u
/* Rounds that a search may take: each leaves a thirteenth of a range of 65536, or ends it, so six are
 * enough; the rest is for sizes that were misjudged. */
#define MTU_SEARCH_ROUNDS_MAX 24u

struct mtu_search {
    uint32_t passed_bytes;  /* the largest that passed; 0: none */
    uint32_t failed_bytes;  /* the smallest above it that seems not to */
    uint32_t ceiling_bytes; /* nothing is larger */
    uint32_t rounds;
    bool confirming;
    bool done;
};

struct mtu_search_round {
    uint32_t count; /* sizes, ascending; 0: done */
    uint32_t sizes[MTU_SEARCH_SIZES_MAX];
    uint32_t tries; /* of each */
};

/* Of IP packets of floor to ceiling bytes. */
void mtu_search_init(struct mtu_search *search, uint32_t floor_bytes, uint32_t ceiling_bytes);
struct mtu_search_round mtu_search_next(const struct mtu_search *search);
/* The outcome of that round: passed[i] belongs to sizes[i]. */
void mtu_search_on_round(struct mtu_search *search, const struct mtu_search_round *round,
                         const bool *passed);

/* ---- rate search ----------------------------------------------------------------------------------- */

/*
 * Which rate to try next, to find how much a path carries.
 *
 * Rates grow by four until packets are lost that slower ones did not lose, or arrive slower than they were
 * sent. What arrives then is what the narrowest place lets through. Where that costs packets, a little less
 * is tried, and less again, until it no longer does.
 */

/* Slow enough for any link worth probing, fast enough that a few packets take little time. */
#define RATE_SEARCH_FIRST_BPS ((uint64_t)20 * 1000 * 1000)

struct rate_search {
    uint64_t cap_bps;
    uint64_t offered_bps; /* to try next */
    double rate_bps;      /* the best that was seen to work; 0: none */
    double base_loss;     /* at the first rate: what has nothing to do with the rate */
    enum lh_probe_limit limit;
    uint32_t rounds, confirmed, saturated;
    bool confirming, done;
    bool again; /* the last train lost much: is that so? */
};

struct rate_outcome {
    double sent_bps;
    double delivered_bps;
    double loss;
    bool pushed_back;    /* the sending host pushed back */
    bool endpoint_drops; /* the receiving host dropped packets */
};

/* cap_bps 0: none. */
void rate_search_init(struct rate_search *search, uint64_t cap_bps);
void rate_search_on_outcome(struct rate_search *search, const struct rate_outcome *outcome);

/* ---- schedule -------------------------------------------------------------------------------------- */

/* How the time of a probe is divided: trials, packets and pace for each payload size. */

/* Small packets come no faster than any host can handle beside its other work. */
#define SCHEDULE_GAP_MIN_NS  (20 * LH_NS_PER_US)
#define SCHEDULE_PACKETS_MIN 100u

struct schedule_wish {
    lh_time left_ns;       /* for all trials */
    lh_time overhead_ns;   /* of a trial: its first and last messages */
    uint64_t rate_bps;     /* not faster; above 0 */
    uint32_t header_bytes; /* below the payload: IP and UDP */
    uint32_t size_count;
    const uint32_t *payload_bytes;
    uint32_t trials;
    uint32_t packets; /* 0: what time allows */
};

struct schedule {
    uint32_t trials;
    uint32_t packets[LH_PROBE_SIZES_MAX]; /* of a trial */
    lh_time gap_ns[LH_PROBE_SIZES_MAX];
};

/* From one packet to the next, for that rate. */
lh_time schedule_gap_ns(uint64_t rate_bps, uint32_t wire_bytes);
struct schedule schedule_make(const struct schedule_wish *wish);

#endif
