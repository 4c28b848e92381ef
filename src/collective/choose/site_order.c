/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/site_order.h"

#include <assert.h>
#include <stddef.h>

#include "collective/choose/schedule_choice.h"

/* ---- found sites ----------------------------------------------------------------------------------- */

#define FOUND_SITES_RATIO  4u
#define FOUND_SITES_GAP_NS 1000000u
#define FOUND_SITES_ALIKE  2u /* between two sites, the longest and the shortest: less than that apart */

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

/* ---- place order ----------------------------------------------------------------------------------- */

#define PLACE_ORDER_EXACT 8u
#define PLACE_ORDER_GAIN  1.25

#define PASSES_MAX 32u /* over all pairs of nodes */

/* Of a path, or of all of a ring. */
struct score {
    uint64_t rate_bps; /* the lowest */
    uint64_t rtt_ns;   /* the sum */
    uint32_t slow;     /* how many have the lowest */
};

/* Nodes in a ring, of which the first stays. Its last one is beside `closing`. */
struct walk {
    const struct score *edges; /* between nodes, by one * stride + other */
    uint32_t stride;
    uint32_t count;
    uint32_t closing;
    uint32_t *nodes;
};

/* Its highest bit and two more: four steps an octave. */
static uint64_t rate_class(uint64_t rate_bps)
{
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(rate_bps | 1);
    return bits > 3 ? rate_bps >> (bits - 3) << (bits - 3) : rate_bps;
}

static uint64_t rate_of(const struct path_figures *path)
{
    return path->rate_bps ? path->rate_bps : (uint64_t)PATHS_RATE_BPS;
}

static struct score edge_of(const struct path_figures *pairs, uint32_t ranks, uint32_t a, uint32_t b)
{
    const struct path_figures *there = &pairs[a * ranks + b], *back = &pairs[b * ranks + a];
    uint64_t one = rate_of(there), other = rate_of(back);
    return (struct score){.rate_bps = one < other ? one : other,
                          .rtt_ns = there->rtt_ns > back->rtt_ns ? there->rtt_ns : back->rtt_ns,
                          .slow = 1};
}

static void add(struct score *sum, const struct score *edge)
{
    uint64_t rate = rate_class(edge->rate_bps), lowest = rate_class(sum->rate_bps);
    sum->slow = rate < lowest ? edge->slow : sum->slow + (rate == lowest ? edge->slow : 0);
    sum->rate_bps = edge->rate_bps < sum->rate_bps ? edge->rate_bps : sum->rate_bps;
    sum->rtt_ns += edge->rtt_ns;
}

/* slow: their number counts, too: a search that goes on by small steps needs it. */
static bool is_better(const struct score *one, const struct score *other, bool slow)
{
    uint64_t rate = rate_class(one->rate_bps), than = rate_class(other->rate_bps);
    if (rate != than)
        return rate > than;
    if (slow && one->slow != other->slow)
        return one->slow < other->slow;
    return one->rtt_ns < other->rtt_ns;
}

/* By so much that it is no noise. */
static bool is_clearly_better(const struct score *one, const struct score *other)
{
    if ((double)one->rate_bps >= (double)other->rate_bps * PLACE_ORDER_GAIN)
        return true;
    return rate_class(one->rate_bps) >= rate_class(other->rate_bps) &&
           (double)one->rtt_ns * PLACE_ORDER_GAIN <= (double)other->rtt_ns && one->rtt_ns < other->rtt_ns;
}

/* ---- a ring ------------------------------------------------------------------------------------------ */

static struct score score_of(const struct walk *walk)
{
    struct score sum = {.rate_bps = UINT64_MAX};
    for (uint32_t i = 0; i < walk->count; i++) {
        uint32_t next = i + 1 < walk->count ? walk->nodes[i + 1] : walk->closing;
        if (next != walk->nodes[i])
            add(&sum, &walk->edges[walk->nodes[i] * walk->stride + next]);
    }
    return sum;
}

static void swap(uint32_t *one, uint32_t *other)
{
    uint32_t held = *one;
    *one = *other;
    *other = held;
}

static void reverse(uint32_t *nodes, uint32_t from, uint32_t to)
{
    while (from < to)
        swap(&nodes[from++], &nodes[to--]);
}

/* The next of all orders of indices but the first, in lexicographic order. */
static bool next_order(uint32_t *at, uint32_t count)
{
    uint32_t i = count - 1, j = count - 1;
    while (i > 1 && at[i - 1] > at[i])
        i--;
    if (i <= 1)
        return false;
    while (at[j] < at[i - 1])
        j--;
    swap(&at[i - 1], &at[j]);
    reverse(at, i, count - 1);
    return true;
}

/* The first of the best. */
static void search_all(struct walk *walk)
{
    uint32_t at[PLACE_ORDER_EXACT], given[PLACE_ORDER_EXACT], best[PLACE_ORDER_EXACT];
    assert(walk->count <= PLACE_ORDER_EXACT);
    for (uint32_t i = 0; i < walk->count; i++) {
        at[i] = i;
        given[i] = best[i] = walk->nodes[i];
    }
    struct score minimum = score_of(walk);
    while (next_order(at, walk->count)) {
        for (uint32_t i = 0; i < walk->count; i++)
            walk->nodes[i] = given[at[i]];
        struct score score = score_of(walk);
        if (!is_better(&score, &minimum, false))
            continue;
        minimum = score;
        for (uint32_t i = 0; i < walk->count; i++)
            best[i] = walk->nodes[i];
    }
    for (uint32_t i = 0; i < walk->count; i++)
        walk->nodes[i] = best[i];
}

/* Turns parts round while that is better; at most PASSES_MAX times all pairs. */
static void improve(struct walk *walk)
{
    struct score minimum = score_of(walk);
    bool any = true;
    for (uint32_t pass = 0; any && pass < PASSES_MAX; pass++) {
        any = false;
        for (uint32_t from = 1; from + 1 < walk->count; from++)
            for (uint32_t to = from + 1; to < walk->count; to++) {
                reverse(walk->nodes, from, to);
                struct score score = score_of(walk);
                if (is_better(&score, &minimum, true)) {
                    minimum = score;
                    any = true;
                } else {
                    reverse(walk->nodes, from, to);
                }
            }
    }
}

/* From each node to the best that is left. */
static void go_to_nearest(struct walk *walk)
{
    for (uint32_t i = 1; i + 1 < walk->count; i++) {
        const struct score *from = &walk->edges[walk->nodes[i - 1] * walk->stride];
        uint32_t best = i;
        for (uint32_t j = i + 1; j < walk->count; j++)
            if (is_better(&from[walk->nodes[j]], &from[walk->nodes[best]], false))
                best = j;
        for (; best > i; best--) /* the others keep their order */
            swap(&walk->nodes[best], &walk->nodes[best - 1]);
    }
}

/* Of the given order and that of the nearest nodes, improved, the better. */
static void search(struct walk *walk, uint32_t *scratch)
{
    struct walk other = *walk;
    if (walk->count < 3)
        return;
    if (walk->count <= PLACE_ORDER_EXACT) {
        search_all(walk);
        return;
    }
    other.nodes = scratch;
    for (uint32_t i = 0; i < walk->count; i++)
        scratch[i] = walk->nodes[i];
    go_to_nearest(&other);
    improve(&other);
    improve(walk);
    struct score own = score_of(walk), its = score_of(&other);
    for (uint32_t i = 0; is_better(&its, &own, false) && i < walk->count; i++)
        walk->nodes[i] = scratch[i];
}

/* ---- sites ------------------------------------------------------------------------------------------- */

struct ordering {
    const struct site_map *map;
    uint32_t ranks;
    struct score *ranks_edges; /* by one * ranks + other */
    struct score *sites_edges; /* by one * sites + other: the best of their ranks */
    uint32_t *sites;           /* in their new order */
    uint32_t *leaders;         /* by site: a rank */
    uint32_t *scratch;
};

size_t place_order_memory(uint32_t ranks)
{
    return 2 * (size_t)ranks * ranks * sizeof(struct score) + 3 * (size_t)ranks * sizeof(uint32_t);
}

static struct ordering carve(const struct site_map *map, uint32_t ranks, void *memory)
{
    struct ordering o = {.map = map, .ranks = ranks, .ranks_edges = memory};
    o.sites_edges = o.ranks_edges + (size_t)ranks * ranks;
    o.sites = (uint32_t *)(o.sites_edges + (size_t)ranks * ranks);
    o.leaders = o.sites + ranks;
    o.scratch = o.leaders + ranks;
    return o;
}

/* From a rank to a site. */
static struct score best_into(const struct ordering *o, uint32_t rank, uint32_t site)
{
    struct score best = {0};
    for (uint32_t place = o->map->first[site]; place < o->map->first[site + 1]; place++) {
        const struct score *edge = &o->ranks_edges[rank * o->ranks + o->map->rank_at[place]];
        if (best.rate_bps == 0 || is_better(edge, &best, false))
            best = *edge;
    }
    return best;
}

static void compare_sites(struct ordering *o)
{
    const struct site_map *map = o->map;
    for (uint32_t a = 0; a < map->sites; a++)
        for (uint32_t b = 0; b < map->sites; b++) {
            struct score *edge = &o->sites_edges[a * map->sites + b];
            *edge = (struct score){0};
            for (uint32_t place = map->first[a]; a != b && place < map->first[a + 1]; place++) {
                struct score into = best_into(o, map->rank_at[place], b);
                if (edge->rate_bps == 0 || is_better(&into, edge, false))
                    *edge = into;
            }
        }
}

/* To all other sites. */
static struct score reach_of(const struct ordering *o, uint32_t rank, uint32_t own)
{
    struct score sum = {.rate_bps = UINT64_MAX};
    for (uint32_t site = 0; site < o->map->sites; site++) {
        struct score into = site != own ? best_into(o, rank, site) : (struct score){0};
        if (site != own)
            add(&sum, &into);
    }
    return sum;
}

/* The present one stays unless another is clearly better. True: another leads. */
static bool choose_leader(struct ordering *o, uint32_t site)
{
    uint32_t first = o->map->first[site], best = o->map->rank_at[first];
    struct score present = reach_of(o, best, site), maximum = present;
    for (uint32_t place = first + 1; place < o->map->first[site + 1]; place++) {
        struct score score = reach_of(o, o->map->rank_at[place], site);
        if (!is_clearly_better(&score, &present) || !is_better(&score, &maximum, false))
            continue;
        maximum = score;
        best = o->map->rank_at[place];
    }
    o->leaders[site] = best;
    return best != o->map->rank_at[first];
}

static void order_sites(struct ordering *o)
{
    struct walk walk = {
        .edges = o->sites_edges, .stride = o->map->sites, .count = o->map->sites, .nodes = o->sites};
    for (uint32_t site = 0; site < o->map->sites; site++)
        o->sites[site] = site;
    search(&walk, o->scratch);
}

/* Ranks of a site behind its leader; the last of them is beside the leader of the next. Returns their
 * number. */
static uint32_t order_inside(const struct ordering *o, uint32_t site, uint32_t next, uint32_t *nodes)
{
    struct walk walk = {
        .edges = o->ranks_edges, .stride = o->ranks, .closing = o->leaders[next], .nodes = nodes};
    nodes[walk.count++] = o->leaders[site];
    for (uint32_t place = o->map->first[site]; place < o->map->first[site + 1]; place++)
        if (o->map->rank_at[place] != o->leaders[site])
            nodes[walk.count++] = o->map->rank_at[place];
    search(&walk, o->scratch);
    return walk.count;
}

static struct score ring_score(const struct ordering *o, const uint32_t *order)
{
    uint32_t *nodes = o->scratch;
    for (uint32_t i = 0; i < o->ranks; i++)
        nodes[i] = order[i];
    const struct walk walk = {.edges = o->ranks_edges,
                              .stride = o->ranks,
                              .count = o->ranks,
                              .closing = order[0],
                              .nodes = nodes};
    return score_of(&walk);
}

void place_order(const struct path_figures *pairs, uint32_t ranks, const struct site_map *map,
                 uint32_t *order, void *memory)
{
    struct ordering o = carve(map, ranks, memory);
    bool led = false;
    uint32_t count = 0;
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            o.ranks_edges[a * ranks + b] = edge_of(pairs, ranks, a, b);
    compare_sites(&o);
    for (uint32_t site = 0; site < map->sites; site++)
        if (choose_leader(&o, site))
            led = true;
    order_sites(&o);
    for (uint32_t i = 0; i < map->sites; i++)
        count += order_inside(&o, o.sites[i], o.sites[(i + 1) % map->sites], order + count);
    assert(count == ranks);
    struct score made = ring_score(&o, order), present = ring_score(&o, map->rank_at);
    for (uint32_t i = 0; !led && !is_clearly_better(&made, &present) && i < ranks; i++)
        order[i] = map->rank_at[i];
}
