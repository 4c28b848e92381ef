/*
 * dcqcn.h - the rate of one flow by DCQCN (Zhu et al., SIGCOMM 2015): cut on notifications of congestion,
 * raised again by time and, if wanted, by bytes.
 *
 * Events in, a rate out. The owner reports each congestion notification (on_cnp) and what it sent
 * (on_bytes), calls on_time before it asks for the rate, and at next_expiry when it waits for a higher one.
 * Calls may be as late or as rare as the owner likes: what was due in between happens in its order, so the
 * rate is the same as if each moment had been met.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_DCQCN_H
#define LH_CONGESTION_DCQCN_H

#include <longhaul/congestion.h>
#include <longhaul/types.h>

struct dcqcn_config {
    lh_time alpha_ns;         /* alpha, the estimate of congestion: interval of its updates */
    lh_time decrease_ns;      /* at most one cut in this time */
    lh_time increase_ns;      /* since the last cut or increase: increase */
    uint64_t increase_bytes;  /* sent since then: increase too; 0: bytes count for nothing */
    uint64_t additive_bps;    /* the target grows by this */
    uint64_t hyper_bps;       /* and by this when it has long been quiet */
    uint64_t min_bps;         /* no cut goes below */
    uint32_t recovery_stages; /* increases after a cut that only go back half way to the target */
    double gain;              /* weight of the newest interval in alpha: above 0, at most 1 */
    bool clamp; /* each cut sets the target to the rate before it; else a second cut without an increase
                   between keeps the target */
};

/* What public simulations of RDMA congestion control run with at 100 Gbit/s (the configuration file of
 * HPCC's simulator: alpha 1 us, decrease 4 us, increase 900 us, g = 1/256, 50 and 100 Mbit/s). */
#define DCQCN_ALPHA_NS        (1 * LH_NS_PER_US)
#define DCQCN_DECREASE_NS     (4 * LH_NS_PER_US)
#define DCQCN_INCREASE_NS     (900 * LH_NS_PER_US)
#define DCQCN_ADDITIVE_BPS    UINT64_C(50000000)
#define DCQCN_HYPER_BPS       UINT64_C(100000000)
#define DCQCN_MIN_BPS         UINT64_C(100000000)
#define DCQCN_RECOVERY_STAGES 1u
#define DCQCN_GAIN            (1.0 / 256)
#define DCQCN_SPAN_MAX_NS     (3600 * LH_NS_PER_S)
#define DCQCN_RATE_MAX_BPS    UINT64_C(100000000000000)

struct dcqcn {
    uint64_t line_bps; /* a flow begins at it, and never goes above */
    uint64_t rate_bps;
    uint64_t target_bps;   /* where the rate goes back to */
    double alpha;          /* a cut takes away alpha / 2 of the rate */
    lh_time alpha_at;      /* next update of it; LH_TIME_NEVER: no notification has come yet */
    lh_time decrease_at;   /* next moment for a cut */
    lh_time increase_at;   /* LH_TIME_NEVER: at the line's rate */
    uint64_t bytes_left;   /* until the next increase by bytes */
    uint32_t time_stage;   /* increases since the last cut: by time, */
    uint32_t bytes_stage;  /* and by bytes */
    bool cnp_for_alpha;    /* one has come since alpha's last update, */
    bool cnp_for_decrease; /* or since the last cut */
};

/* 0, or -LH_ERANGE with the value and its range in lh_last_error(). */
int dcqcn_check(const struct dcqcn_config *config);

/* The configuration has been checked; line_bps is at most DCQCN_RATE_MAX_BPS and above 0. */
void dcqcn_init(struct dcqcn *dcqcn, uint64_t line_bps);

/* A notification of congestion arrived. */
void dcqcn_on_cnp(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now);
/* Everything that is due by now happens. */
void dcqcn_on_time(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now);
/* `bytes` were sent at `now`. */
void dcqcn_on_bytes(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now, uint64_t bytes);

/* When the rate changes next if nothing comes; LH_TIME_NEVER: then it does not. */
lh_time dcqcn_next_expiry(const struct dcqcn *dcqcn);

/* ---- dcqcn control --------------------------------------------------------------------------------- */

/*
 * DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015)
 * as a controller: the rate machine of dcqcn.h, driven by marks and notifications. Differences:
 * docs/congestion.md.
 */

extern const struct lh_congestion dcqcn_congestion;

#endif
