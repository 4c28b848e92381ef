/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "base/prng.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/line_reader.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* ---- flow file ------------------------------------------------------------------------------------- */

/*
 * A list of flows from a text: "SOURCE DESTINATION BYTES START" in each line, like "0 5 8MB
 * 10us". COUNT behind it repeats the flow that often; GAP behind that, one every such interval.
 *
 * Hosts are numbers, or names where the word is no number. Lines need not be in the order of start.
 */

#define KEY "workload.flows"

static int read_sizes(const struct netsim_line *line, struct netsim_flow_request *flow)
{
    lh_time start_ns = 0;
    int rc = lh_parse_size(line->words[2], &flow->bytes);
    if (rc == 0)
        rc = lh_parse_time(line->words[3], &start_ns);
    if (rc != 0)
        return netsim_line_blame(line, rc);
    if (flow->bytes < 1 || flow->bytes > NETSIM_FLOW_BYTES_MAX)
        return netsim_line_fail(line, LH_ERANGE, "size %.64s: a flow has 1 byte to 16TiB", line->words[2]);
    if (start_ns > NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        return netsim_line_fail(line, LH_ERANGE, "start %.64s is beyond 106 days, the end of virtual time",
                                line->words[3]);
    flow->start_ps = start_ns * NETSIM_PS_PER_NS;
    return 0;
}

/* Bounded by the hosts there are. */
static int read_host(const struct netsim_line *line, const char *what, const char *word,
                     const struct netsim_graph *graph, uint32_t *host)
{
    bool is_name = word[strspn(word, "0123456789")] != '\0';
    for (uint32_t i = 0; is_name && graph->nodes != NULL && i < graph->hosts; i++) {
        if (strcmp(graph->nodes[i].name, word) == 0) {
            *host = i;
            return 0;
        }
    }
    if (is_name)
        return netsim_line_fail(line, LH_EINVAL, "unknown %s \"%.64s\" (its name, or 0 to %u)", what, word,
                                graph->hosts - 1);
    return netsim_line_number(line, what, word, graph->hosts - 1, host);
}

/* How often the flow of a line comes, and how long after each other. */
struct repeat {
    uint32_t count;
    netsim_time gap_ps;
};

static int read_repeat(const struct netsim_line *line, const struct netsim_flow_request *flow,
                       struct repeat *repeat)
{
    lh_time gap_ns = 0;
    *repeat = (struct repeat){.count = 1};
    int rc = 0;
    if (line->words_count > 4)
        rc = netsim_line_number(line, "number of flows", line->words[4], NETSIM_FLOWS_MAX, &repeat->count);
    if (rc != 0)
        return rc;
    if (line->words_count > 5)
        rc = lh_parse_time(line->words[5], &gap_ns);
    if (rc != 0)
        return netsim_line_blame(line, rc);
    if (repeat->count == 0)
        return netsim_line_fail(line, LH_ERANGE, "0 flows (write 1 or more, or remove the line)");
    if (gap_ns > (NETSIM_TIME_MAX - flow->start_ps) / NETSIM_PS_PER_NS / repeat->count)
        return netsim_line_fail(line, LH_ERANGE,
                                "the last of %u flows would start beyond 106 days, the end of virtual time",
                                repeat->count);
    repeat->gap_ps = gap_ns * NETSIM_PS_PER_NS;
    return 0;
}

static int read_flow(const struct netsim_line *line, const struct netsim_graph *graph,
                     struct netsim_flow_request *flow, struct repeat *repeat)
{
    if (line->words_count < 4 || line->words_count > 6)
        return netsim_line_fail(line, LH_EINVAL,
                                "%u words (write source, destination, bytes and start, like \"0 5 8MB "
                                "10us\", then optionally count and gap, like \"100 50us\")",
                                line->words_count);
    int rc = read_host(line, "source host", line->words[0], graph, &flow->source);
    if (rc == 0)
        rc = read_host(line, "destination host", line->words[1], graph, &flow->destination);
    if (rc == 0 && flow->source == flow->destination)
        rc =
            netsim_line_fail(line, LH_EINVAL, "host %u would send to itself (use two hosts)", flow->source);
    if (rc == 0)
        rc = read_sizes(line, flow);
    if (rc == 0)
        rc = read_repeat(line, flow, repeat);
    return rc;
}

/* Reads all lines. Keeps the flows when list->flows is not NULL; sets list->count and whether they are in
 * order. */
static int scan(const struct netsim_workload *workload, bool *sorted)
{
    struct netsim_line_reader reader;
    struct netsim_line line;
    struct netsim_flow_list *list = workload->list;
    netsim_time last_ps = 0;
    int rc;
    list->count = 0;
    *sorted = true;
    netsim_line_reader_init(&reader, KEY, &workload->config->flows);
    while ((rc = netsim_line_next(&reader, &line)) > 0) {
        struct netsim_flow_request flow = {0};
        struct repeat repeat;
        rc = read_flow(&line, workload->graph, &flow, &repeat);
        if (rc != 0)
            return rc;
        if (repeat.count > NETSIM_FLOWS_MAX - list->count)
            return netsim_line_fail(&line, LH_ERANGE, "more than %u flows (remove some)", NETSIM_FLOWS_MAX);
        *sorted = *sorted && flow.start_ps >= last_ps;
        for (uint32_t i = 0; i < repeat.count; i++, flow.start_ps += repeat.gap_ps) {
            last_ps = flow.start_ps;
            if (list->flows != NULL)
                list->flows[list->count] = flow;
            list->count++;
        }
    }
    if (rc == 0 && list->count == 0)
        rc = lh_fail(LH_EINVAL, "%s has no flows (write lines like \"0 5 8MB 10us\")", reader.name);
    return rc;
}

static int netsim_workload_flow_file(const struct netsim_workload *workload)
{
    bool sorted = true;
    struct netsim_flow_list *list = workload->list;
    int rc = scan(workload, &sorted);
    if (rc != 0)
        return rc;
    list->flows = netsim_arena_take(workload->arena, list->count, sizeof *list->flows);
    struct netsim_flow_request *scratch =
        netsim_arena_take(workload->arena, sorted ? 0 : list->count, sizeof *scratch);
    if (workload->arena->base == NULL)
        return 0;
    rc = scan(workload, &sorted);
    assert(rc == 0);
    if (!sorted)
        netsim_flow_list_sort(list, scratch);
    return 0;
}

/* ---- workload -------------------------------------------------------------------------------------- */

static int (*const kinds[])(const struct netsim_workload *workload) = {
    [NETSIM_PERMUTATION] = netsim_workload_rounds, [NETSIM_INCAST] = netsim_workload_rounds,
    [NETSIM_ALL_TO_ALL] = netsim_workload_rounds,  [NETSIM_FLOWS_FILE] = netsim_workload_flow_file,
    [NETSIM_POISSON] = netsim_workload_poisson,    [NETSIM_COLLECTIVE] = netsim_workload_collective,
};

int netsim_workload_scratch(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                            struct netsim_arena *scratch)
{
    uint64_t numbers = 0;
    int rc =
        config->kind == NETSIM_COLLECTIVE ? netsim_workload_collective_scratch(config, graph, &numbers) : 0;
    if (rc == 0)
        netsim_arena_take(scratch, numbers, sizeof(uint32_t));
    return rc;
}

int netsim_workload_build(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                          const struct lh_prng *prng, void *scratch, struct netsim_arena *arena,
                          struct netsim_flow_list *list)
{
    struct netsim_workload workload = {config, graph, prng, arena, list, scratch};
    assert(graph->hosts >= 2 && (size_t)config->kind < sizeof kinds / sizeof kinds[0]);
    *list = (struct netsim_flow_list){0};
    int rc = kinds[config->kind](&workload);
    assert(rc != 0 || list->flows == NULL || netsim_flow_list_is_sorted(list));
    return rc;
}
