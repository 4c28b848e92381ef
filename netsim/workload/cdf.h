/*
 * cdf.h - how large flows are: a measured distribution, as points of its cumulative function.
 *
 * The text has a point a line, "SIZE CUMULATIVE": that share of all flows has at most that size. CUMULATIVE
 * is a probability (the last is 1) or percent (the last is 100). Neither may decrease. Between two points
 * sizes are uniform, so the function is linear; what the first point has (above 0) has just its size.
 *
 *     0       0
 *     10kB    0.15
 *     1MB     0.7
 *     30MB    1
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_CDF_H
#define LH_NETSIM_WORKLOAD_CDF_H

#include "base/prng.h"
#include "netsim/base/arena.h"
#include "netsim/base/config.h"

#define NETSIM_CDF_POINTS_MAX 65536u

struct netsim_cdf {
    double *bytes;      /* of each point: whole numbers */
    double *cumulative; /* 0 … 1 */
    uint32_t points;
    double mean_bytes; /* of what is drawn, exactly: whole bytes, at least 1 */
};

/* While the arena only counts, bytes and cumulative are NULL, and all else is right. `key` stands for
 * a text without a name in errors. -LH_EINVAL, -LH_ERANGE with the line named in lh_last_error(). */
int netsim_cdf_read(struct netsim_cdf *cdf, const char *key, const struct netsim_text *text,
                    struct netsim_arena *arena);
/* The size below which that share of all flows lies; 0 <= share < 1. */
double netsim_cdf_quantile(const struct netsim_cdf *cdf, double share);
/* One size: to the nearest byte, at least 1. */
uint64_t netsim_cdf_draw(const struct netsim_cdf *cdf, struct lh_prng *prng);

#endif
