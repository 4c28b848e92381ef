/*
 * cdf.c - see cdf.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/cdf.h"

#include <assert.h>

#include <longhaul/units.h>

#include "base/decimal.h"
#include "base/error.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/line_reader.h"

struct point {
    double bytes;
    double cumulative; /* as it is written: to 1 or to 100 */
};

static int read_point(const struct netsim_line *line, struct point *point)
{
    if (line->words_count != 2)
        return netsim_line_fail(
            line, LH_EINVAL, "%u words (write a size and the share of flows up to it, like \"10kB 0.15\")",
            line->words_count);
    uint64_t bytes = 0;
    int rc = lh_parse_size(line->words[0], &bytes);
    if (rc != 0)
        return netsim_line_blame(line, rc);
    if (bytes > NETSIM_FLOW_BYTES_MAX)
        return netsim_line_fail(line, LH_ERANGE, "size %.64s is over 16TiB", line->words[0]);
    const char *at = line->words[1];
    rc = lh_decimal_read_double(&at, &point->cumulative);
    if (rc == -LH_EINVAL || *at != '\0')
        return netsim_line_fail(line, LH_EINVAL,
                                "invalid share \"%.64s\" (write 0 to 1, or 0 to 100 in percent)",
                                line->words[1]);
    if (rc != 0 || point->cumulative > 100)
        return netsim_line_fail(line, LH_ERANGE,
                                "share %.64s is out of range (write 0 to 1, or 0 to 100 in percent)",
                                line->words[1]);
    point->bytes = (double)bytes;
    return 0;
}

static int check_order(const struct netsim_line *line, const struct point *before,
                       const struct point *point)
{
    if (point->bytes < before->bytes)
        return netsim_line_fail(line, LH_EINVAL, "size %.64s is below the one before (sort the lines)",
                                line->words[0]);
    if (point->cumulative < before->cumulative)
        return netsim_line_fail(line, LH_EINVAL,
                                "share %.64s is below the one before (shares add up, they never decrease)",
                                line->words[1]);
    return 0;
}

/* What the flows between two points add to the mean. Sizes are whole, so rounding to the nearest takes as
 * much as it gives, save that those below half a byte get 1 in place of 0. */
static double share_of_mean(const struct point *from, const struct point *to)
{
    double share = to->cumulative - from->cumulative;
    double mean = (from->bytes + to->bytes) / 2;
    double vanishing = 0;
    if (from->bytes < 1)
        vanishing = to->bytes < 1 ? 1 : 0.5 / to->bytes;
    return share * (mean + vanishing);
}

/* Reads all points, and keeps them unless the arena only counts. Sets points, mean_bytes and what 1 is
 * written as. */
static int scan(struct netsim_cdf *cdf, const char *key, const struct netsim_text *text, double *whole)
{
    struct netsim_line_reader reader;
    struct netsim_line line;
    struct point last = {0};
    double before = 0; /* the last share */
    uint32_t last_line = 0;
    int rc;
    cdf->points = 0;
    cdf->mean_bytes = 0;
    netsim_line_reader_init(&reader, key, text);
    while ((rc = netsim_line_next(&reader, &line)) > 0) {
        struct point point = {0};
        rc = read_point(&line, &point);
        if (rc == 0)
            rc = check_order(&line, &last, &point);
        if (rc != 0)
            return rc;
        if (cdf->points == NETSIM_CDF_POINTS_MAX)
            return netsim_line_fail(&line, LH_ERANGE, "point %u, at most %u (remove some)", cdf->points + 1,
                                    NETSIM_CDF_POINTS_MAX);
        if (cdf->points == 0)
            last.bytes = point.bytes;
        if (cdf->bytes != NULL) {
            cdf->bytes[cdf->points] = point.bytes;
            cdf->cumulative[cdf->points] = point.cumulative;
        }
        cdf->mean_bytes += share_of_mean(&last, &point);
        cdf->points++;
        before = last.cumulative;
        last = point;
        last_line = line.number;
    }
    if (rc != 0)
        return rc;
    if (cdf->points == 0)
        return lh_fail(LH_EINVAL, "%s has no points (write lines like \"10kB 0.15\", the last with 1)",
                       reader.name);
    line.number = last_line;
    if (last.cumulative != 1 && last.cumulative != 100)
        return netsim_line_fail(&line, LH_EINVAL, "the last share must be 1, or 100 in percent");
    if (last.cumulative > 1 && before > 0 && before <= 1)
        return netsim_line_fail(&line, LH_EINVAL,
                                "the share before is at most 1 and this one 100: it may be a share or "
                                "percent (write all as 0 to 1)");
    if (last.bytes < 1)
        return netsim_line_fail(&line, LH_EINVAL,
                                "all flows would be empty (let the last size be at least 1)");
    *whole = last.cumulative;
    return 0;
}

int netsim_cdf_read(struct netsim_cdf *cdf, const char *key, const struct netsim_text *text,
                    struct netsim_arena *arena)
{
    double whole = 1;
    *cdf = (struct netsim_cdf){0};
    int rc = scan(cdf, key, text, &whole);
    if (rc != 0)
        return rc;
    cdf->bytes = netsim_arena_take(arena, cdf->points, sizeof *cdf->bytes);
    cdf->cumulative = netsim_arena_take(arena, cdf->points, sizeof *cdf->cumulative);
    if (arena->base != NULL) {
        rc = scan(cdf, key, text, &whole);
        assert(rc == 0);
        for (uint32_t i = 0; i < cdf->points; i++)
            cdf->cumulative[i] /= whole;
    }
    cdf->mean_bytes /= whole;
    assert(cdf->mean_bytes >= 0.5 && cdf->mean_bytes <= (double)NETSIM_FLOW_BYTES_MAX);
    return 0;
}

double netsim_cdf_quantile(const struct netsim_cdf *cdf, double share)
{
    assert(share >= 0 && share < 1 && cdf->cumulative[cdf->points - 1] == 1);
    /* The first point above `share` is in [low, high]. */
    uint32_t low = 0;
    uint32_t high = cdf->points - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cdf->cumulative[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0)
        return cdf->bytes[0];
    double before = cdf->cumulative[low - 1];
    double part = (share - before) / (cdf->cumulative[low] - before);
    return cdf->bytes[low - 1] + (cdf->bytes[low] - cdf->bytes[low - 1]) * part;
}

uint64_t netsim_cdf_draw(const struct netsim_cdf *cdf, struct lh_prng *prng)
{
    uint64_t bytes = (uint64_t)(netsim_cdf_quantile(cdf, lh_prng_double(prng)) + 0.5);
    return bytes > 0 ? bytes : 1;
}
