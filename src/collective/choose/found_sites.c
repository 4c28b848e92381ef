/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/found_sites.h"

#define RTT_NS_MAX (UINT64_MAX / 2) /* whatever a rank tells */

static uint64_t rtt_of(const struct path_figures *pairs, uint32_t ranks, uint32_t a, uint32_t b)
{
    uint64_t there = pairs[a * ranks + b].rtt_ns, back = pairs[b * ranks + a].rtt_ns;
    uint64_t rtt_ns = there == 0 || (back > 0 && back < there) ? back : there;
    return rtt_ns < RTT_NS_MAX ? rtt_ns : RTT_NS_MAX;
}

/* ---- joining: the edges of a minimum spanning tree --------------------------------------------------- */

struct joins {
    uint64_t *rtt_ns;  /* by rank: of its edge to one that was joined before */
    uint64_t *with;    /* that one */
    uint64_t *ordered; /* the edges' round trips, ascending; the last place is not used */
};

/* Prim's algorithm. */
static void join(const struct path_figures *pairs, uint32_t ranks, const struct joins *joins,
                 uint32_t *joined)
{
    for (uint32_t r = 0; r < ranks; r++) {
        joins->rtt_ns[r] = rtt_of(pairs, ranks, 0, r);
        joins->with[r] = 0;
        joined[r] = r == 0;
    }
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t next = 0, at = i - 1;
        for (uint32_t r = 1; r < ranks; r++)
            if (!joined[r] && (next == 0 || joins->rtt_ns[r] < joins->rtt_ns[next]))
                next = r;
        joined[next] = true;
        for (; at > 0 && joins->ordered[at - 1] > joins->rtt_ns[next]; at--)
            joins->ordered[at] = joins->ordered[at - 1];
        joins->ordered[at] = joins->rtt_ns[next];
        for (uint32_t r = 1; r < ranks; r++)
            if (!joined[r] && rtt_of(pairs, ranks, next, r) < joins->rtt_ns[r]) {
                joins->rtt_ns[r] = rtt_of(pairs, ranks, next, r);
                joins->with[r] = next;
            }
    }
}

/* The longest round trip in a site; UINT64_MAX: there is no gap. */
static uint64_t find_gap(const uint64_t *ordered, uint32_t edges)
{
    uint64_t longest = UINT64_MAX, below = 1, above = 1;
    for (uint32_t i = 1; i < edges; i++) {
        uint64_t one = ordered[i - 1] + 1, other = ordered[i] + 1;
        if (other / one < FOUND_SITES_RATIO || other - one < FOUND_SITES_GAP_NS)
            continue;
        if ((double)other * (double)below > (double)above * (double)one) {
            longest = ordered[i - 1];
            below = one;
            above = other;
        }
    }
    return longest;
}

/* ---- sites ------------------------------------------------------------------------------------------- */

static void set_sites(const struct joins *joins, uint32_t ranks, uint64_t longest, uint32_t *site_of)
{
    for (uint32_t r = 0; r < ranks; r++)
        site_of[r] = r;
    for (uint32_t r = 1; r < ranks; r++) {
        uint32_t own = site_of[r], other = site_of[joins->with[r]];
        uint32_t lower = own < other ? own : other;
        for (uint32_t i = 0; joins->rtt_ns[r] <= longest && i < ranks; i++)
            if (site_of[i] == own || site_of[i] == other)
                site_of[i] = lower;
    }
}

/* Between two sites. */
static bool are_alike(const struct path_figures *pairs, uint32_t ranks, const uint32_t *site_of,
                      uint32_t one, uint32_t other)
{
    uint64_t shortest = UINT64_MAX, longest = 0;
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++) {
            if (site_of[a] != one || site_of[b] != other)
                continue;
            uint64_t rtt_ns = rtt_of(pairs, ranks, a, b);
            shortest = rtt_ns < shortest ? rtt_ns : shortest;
            longest = rtt_ns > longest ? rtt_ns : longest;
        }
    return longest / FOUND_SITES_ALIKE < shortest;
}

void found_sites(const struct path_figures *pairs, uint32_t ranks, uint32_t *site_of, uint64_t *joins)
{
    const struct joins of = {.rtt_ns = joins, .with = joins + ranks, .ordered = joins + 2 * ranks};
    join(pairs, ranks, &of, site_of);
    set_sites(&of, ranks, find_gap(of.ordered, ranks - 1), site_of);
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < a; b++)
            if (site_of[a] == a && site_of[b] == b && !are_alike(pairs, ranks, site_of, a, b)) {
                set_sites(&of, ranks, UINT64_MAX, site_of);
                return;
            }
}
