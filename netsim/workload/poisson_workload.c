/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <math.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "base/prng.h"
#include "base/units.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/line_reader.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"

/* ---- arrivals -------------------------------------------------------------------------------------- */

/*
 * One Poisson process: flows that begin at hosts of one group, for hosts of another.
 *
 * The hosts that send are independent Poisson processes. Their sum is one too, and each of its arrivals
 * belongs to a host with the chance of that host's share of the sum: so one process is drawn, in the order
 * of time.
 */

struct netsim_arrivals {
    const struct netsim_host_groups *groups;
    uint32_t sender_first; /* places in the order of the groups */
    uint32_t senders;
    uint32_t receiver_first;
    uint32_t receivers; /* 0: all of the sender's own group */
    const uint64_t
        *base_bps;         /* of each host: its share of the flows; not looked at until hosts are drawn */
    uint64_t base_max_bps; /* of the senders */
    double flows_per_ps;
    double at_ps; /* the next one */
    struct lh_prng gaps;
    struct lh_prng sources;
    struct lh_prng destinations;
    struct lh_prng sizes;
};

static void netsim_arrivals_next(struct netsim_arrivals *arrivals);

/* From time 0 on: everything above at_ps is set. */
static void netsim_arrivals_begin(struct netsim_arrivals *arrivals, const struct lh_prng *prng)
{
    arrivals->gaps = lh_prng_fork(prng, NETSIM_SAMPLE_GAPS);
    arrivals->sources = lh_prng_fork(prng, NETSIM_SAMPLE_SOURCES);
    arrivals->destinations = lh_prng_fork(prng, NETSIM_SAMPLE_DESTINATIONS);
    arrivals->sizes = lh_prng_fork(prng, NETSIM_SAMPLE_SIZES);
    arrivals->at_ps = 0;
    netsim_arrivals_next(arrivals);
}

/* On to the flow after this one. */
static void netsim_arrivals_next(struct netsim_arrivals *arrivals)
{
    arrivals->at_ps -= log1p(-lh_prng_double(&arrivals->gaps)) / arrivals->flows_per_ps;
}

/* A host that sends, as its place in the order: by its share of the sum. Hosts with the fastest cable are
 * taken at once. Others are drawn again with the chance that they lack, so a draw takes as many turns in
 * the mean as the fastest is faster than the mean. */
static uint32_t sample_sender(struct netsim_arrivals *arrivals)
{
    for (;;) {
        uint32_t place =
            arrivals->sender_first + (uint32_t)lh_prng_below(&arrivals->sources, arrivals->senders);
        double base_bps = (double)arrivals->base_bps[arrivals->groups->order[place]];
        if (lh_prng_chance(&arrivals->sources, base_bps / (double)arrivals->base_max_bps))
            return place;
    }
}

/* Any but the sender itself. */
static uint32_t sample_receiver(struct netsim_arrivals *arrivals, uint32_t sender)
{
    const struct netsim_host_groups *groups = arrivals->groups;
    uint32_t first = arrivals->receiver_first;
    uint32_t count = arrivals->receivers;
    if (count == 0) {
        uint32_t group = netsim_host_group(groups, groups->order[sender]);
        first = groups->first[group];
        count = groups->first[group + 1] - first;
    }
    bool among = sender - first < count;
    uint32_t place = first + (uint32_t)lh_prng_below(&arrivals->destinations, count - (among ? 1 : 0));
    return among && place >= sender ? place + 1 : place;
}

/* Who sends it to whom; once for each flow. */
static void netsim_arrivals_hosts(struct netsim_arrivals *arrivals, uint32_t *source, uint32_t *destination)
{
    uint32_t sender = sample_sender(arrivals);
    *source = arrivals->groups->order[sender];
    *destination = arrivals->groups->order[sample_receiver(arrivals, sender)];
}

/* ---- cdf ------------------------------------------------------------------------------------------- */

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
        return netsim_line_fail(line, LH_EINVAL, "size %.64s is below the previous one (sort the lines)",
                                line->words[0]);
    if (point->cumulative < before->cumulative)
        return netsim_line_fail(line, LH_EINVAL,
                                "share %.64s is below the previous one (shares are cumulative)",
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

uint64_t netsim_cdf_sample(const struct netsim_cdf *cdf, struct lh_prng *prng)
{
    uint64_t bytes = (uint64_t)(netsim_cdf_quantile(cdf, lh_prng_double(prng)) + 0.5);
    return bytes > 0 ? bytes : 1;
}

/* ---- poisson --------------------------------------------------------------------------------------- */

#define LOAD_MAX 10.0 /* more is most likely 50 for 50% */

#define PAIRS_MAX (NETSIM_SITES_MAX * NETSIM_SITES_MAX)
/* Pairs fork their generators beyond enum netsim_workload_sample. */
#define DRAW_PAIR 0x100u
#define ANY_GROUP UINT32_MAX

/* One process, and from whom. */
struct part {
    struct netsim_arrivals arrivals;
    uint32_t group;  /* that sends; ANY_GROUP: all do */
    uint32_t number; /* of the pair; ANY_GROUP: there are no pairs */
};

struct poisson {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    struct netsim_cdf sizes;
    bool has_sizes;
    struct netsim_host_groups groups;
    uint64_t *base_bps;  /* of each host: what its load is a share of */
    double flows_per_ps; /* of all parts */
    uint32_t parts_count;
    struct part parts[PAIRS_MAX];
};

/* ---- who sends how much ------------------------------------------------------------------------------ */

/* Sets the rate that each sender's load is a share of, and the largest of these. Returns their sum. */
static double sum_bases(struct poisson *poisson, struct part *part)
{
    const struct netsim_graph *graph = poisson->graph;
    uint64_t given_bps = poisson->config->load_base_bps;
    double sum_bps = 0;
    for (uint32_t end = 0; end < 2 * graph->cables_count; end++) {
        const struct netsim_cable *cable = &graph->cables[end / 2];
        uint32_t host = cable->ends[end % 2];
        uint64_t base_bps = given_bps != 0 ? given_bps : cable->rate_bps;
        bool sends = host < graph->hosts &&
                     (part->group == ANY_GROUP || netsim_host_group(&poisson->groups, host) == part->group);
        if (!sends)
            continue;
        sum_bps += (double)base_bps;
        if (base_bps > part->arrivals.base_max_bps)
            part->arrivals.base_max_bps = base_bps;
        if (poisson->base_bps != NULL)
            poisson->base_bps[host] = base_bps;
    }
    return sum_bps;
}

/* Who sends to whom is set; `times` the load. */
static void add_part(struct poisson *poisson, struct part *part, double times, double mean_bytes)
{
    struct netsim_arrivals *arrivals = &part->arrivals;
    double bps = poisson->config->load * times * sum_bases(poisson, part);
    arrivals->groups = &poisson->groups;
    arrivals->base_bps = poisson->base_bps;
    arrivals->flows_per_ps = bps / (8 * mean_bytes * (double)NETSIM_PS_PER_S);
    poisson->flows_per_ps += arrivals->flows_per_ps;
    assert(poisson->parts_count < PAIRS_MAX);
    poisson->parts[poisson->parts_count++] = *part;
}

static void add_matrix(struct poisson *poisson, double mean_bytes)
{
    bool across = poisson->config->matrix == NETSIM_ACROSS;
    uint32_t senders = poisson->groups.senders;
    struct part part = {.group = across ? 0 : ANY_GROUP, .number = ANY_GROUP};
    part.arrivals.senders = senders;
    if (across) {
        part.arrivals.receiver_first = senders;
        part.arrivals.receivers = poisson->graph->hosts - senders;
    }
    add_part(poisson, &part, 1, mean_bytes);
}

static uint32_t members(const struct poisson *poisson, uint32_t group)
{
    return poisson->groups.first[group + 1] - poisson->groups.first[group];
}

static int add_pair(struct poisson *poisson, uint32_t from, uint32_t to, double times, double mean_bytes)
{
    const uint32_t *first = poisson->groups.first;
    struct part part = {.group = from, .number = from * NETSIM_SITES_MAX + to};
    uint32_t minimum = from == to ? 2 : 1;
    if (members(poisson, from) < minimum || members(poisson, to) < minimum)
        return lh_fail(
            LH_EINVAL,
            "workload.pairs has %c>%c: site %c has %u hosts, site %c has %u, and each needs %u (leave it "
            "out, or raise topology.sites, or give the hosts of a topology file site=N)",
            'a' + (char)from, 'a' + (char)to, 'a' + (char)from, members(poisson, from), 'a' + (char)to,
            members(poisson, to), minimum);
    part.arrivals.sender_first = first[from];
    part.arrivals.senders = members(poisson, from);
    part.arrivals.receiver_first = first[to];
    part.arrivals.receivers = members(poisson, to);
    add_part(poisson, &part, times, mean_bytes);
    return 0;
}

static int add_pairs(struct poisson *poisson, double mean_bytes)
{
    const struct netsim_pairs *pairs = &poisson->config->pairs;
    for (uint32_t pair = 0; pair < PAIRS_MAX; pair++) {
        uint32_t from = pair / NETSIM_SITES_MAX;
        uint32_t to = pair % NETSIM_SITES_MAX;
        int rc = 0;
        if (pairs->times[from][to] > 0)
            rc = add_pair(poisson, from, to, pairs->times[from][to], mean_bytes);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- the flows --------------------------------------------------------------------------------------- */

static void begin_parts(struct poisson *poisson, const struct lh_prng *prng)
{
    for (uint32_t i = 0; i < poisson->parts_count; i++) {
        struct part *part = &poisson->parts[i];
        struct lh_prng own = *prng;
        if (part->number != ANY_GROUP)
            own = lh_prng_fork(prng, DRAW_PAIR + part->number);
        netsim_arrivals_begin(&part->arrivals, &own);
    }
}

static struct netsim_arrivals *earliest(struct poisson *poisson)
{
    struct netsim_arrivals *first = &poisson->parts[0].arrivals;
    for (uint32_t i = 1; i < poisson->parts_count; i++)
        if (poisson->parts[i].arrivals.at_ps < first->at_ps)
            first = &poisson->parts[i].arrivals;
    return first;
}

static struct netsim_flow_request sample_flow(const struct poisson *poisson,
                                              struct netsim_arrivals *arrivals)
{
    struct netsim_flow_request flow = {.bytes = poisson->config->bytes,
                                       .start_ps = (netsim_time)arrivals->at_ps};
    if (poisson->has_sizes)
        flow.bytes = netsim_cdf_sample(&poisson->sizes, &arrivals->sizes);
    netsim_arrivals_hosts(arrivals, &flow.source, &flow.destination);
    return flow;
}

/* Draws when flows arrive, and all else unless the arena only counts. Sets the count. */
static int sample_flows(struct poisson *poisson, const struct lh_prng *prng, struct netsim_flow_list *list)
{
    begin_parts(poisson, prng);
    for (list->count = 0;; list->count++) {
        struct netsim_arrivals *arrivals = earliest(poisson);
        if (arrivals->at_ps >= (double)poisson->config->duration_ps)
            return 0;
        if (list->count == NETSIM_FLOWS_MAX)
            return netsim_workload_check_count((double)NETSIM_FLOWS_MAX + 1);
        if (list->flows != NULL)
            list->flows[list->count] = sample_flow(poisson, arrivals);
        netsim_arrivals_next(arrivals);
    }
}

/* ---- set-up ------------------------------------------------------------------------------------------ */

static int check(const struct netsim_workload_config *config)
{
    if (!(config->load > 0 && config->load <= LOAD_MAX)) {
        char text[LH_DECIMAL_DOUBLE_MAX] = "no number";
        if (config->load >= 0 && isfinite(config->load))
            lh_decimal_format_double(config->load, text, sizeof text);
        return lh_fail(LH_ERANGE,
                       "workload.load %s: out of range (above 0, at most 10; half the rate is 0.5)", text);
    }
    if (config->load_base_bps != 0 &&
        (config->load_base_bps < NETSIM_RATE_MIN || config->load_base_bps > NETSIM_RATE_MAX))
        return lh_fail(
            LH_ERANGE,
            "workload.load_base %llu bit/s: out of range (1Mbit to 100Tbit, or 0 for the host's cable)",
            (unsigned long long)config->load_base_bps);
    if (config->duration_ps < 1 || config->duration_ps > NETSIM_TIME_MAX)
        return lh_fail(LH_ERANGE, "workload.duration %s: out of range (above 0, at most 106 days)",
                       config->duration_ps == 0 ? "0" : "too long");
    return 0;
}

/* Everything that sample_flows needs. Hosts are sorted unless the arena only counts. */
static int prepare(struct poisson *poisson, struct netsim_arena *arena)
{
    const struct netsim_workload_config *config = poisson->config;
    enum netsim_matrix matrix = config->pairs.any ? NETSIM_PAIRS : config->matrix;
    double mean_bytes = (double)config->bytes;
    int rc = check(config);
    if (rc == 0 && poisson->has_sizes)
        rc = netsim_cdf_read(&poisson->sizes, "workload.sizes", &config->sizes, arena);
    else if (rc == 0)
        rc = netsim_workload_check_bytes(config);
    if (rc == 0)
        rc = netsim_host_groups_count(&poisson->groups, matrix, poisson->graph);
    if (rc != 0)
        return rc;
    if (poisson->has_sizes)
        mean_bytes = poisson->sizes.mean_bytes;
    poisson->groups.order = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->groups.order);
    poisson->base_bps = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->base_bps);
    if (poisson->groups.order != NULL)
        netsim_host_groups_sort(&poisson->groups);
    if (config->pairs.any)
        rc = add_pairs(poisson, mean_bytes);
    else
        add_matrix(poisson, mean_bytes);
    if (rc != 0)
        return rc;
    return netsim_workload_check_count(poisson->flows_per_ps * (double)config->duration_ps);
}

int netsim_workload_poisson(const struct netsim_workload *workload)
{
    struct netsim_flow_list *list = workload->list;
    struct poisson poisson = {.config = workload->config,
                              .graph = workload->graph,
                              .has_sizes = workload->config->sizes.data != NULL};
    assert(workload->graph->nodes != NULL && workload->graph->cables != NULL);
    int rc = prepare(&poisson, workload->arena);
    if (rc == 0)
        rc = sample_flows(&poisson, workload->prng, list);
    if (rc != 0)
        return rc;
    uint32_t count = list->count;
    list->flows = netsim_arena_take(workload->arena, count, sizeof *list->flows);
    if (workload->arena->base == NULL)
        return 0;
    rc = sample_flows(&poisson, workload->prng, list);
    assert(rc == 0 && list->count == count);
    return 0;
}
