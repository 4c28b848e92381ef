/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "base/units.h"
#include "collective/schedule.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* ---- pairs ----------------------------------------------------------------------------------------- */

#define TIMES_MAX 1000.0

/* The letter's site; NETSIM_SITES_MAX: it is none. */
static unsigned pairs_site_of(char letter)
{
    unsigned site = (unsigned)(letter - 'a');
    return site < NETSIM_SITES_MAX ? site : NETSIM_SITES_MAX;
}

static const char *behind_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* One pair, and what is behind it. */
static const char *read_pair(const char *at, unsigned *from, unsigned *to, double *times)
{
    *from = pairs_site_of(at[0]);
    if (*from == NETSIM_SITES_MAX || at[1] != '>')
        return NULL;
    *to = pairs_site_of(at[2]);
    if (*to == NETSIM_SITES_MAX)
        return NULL;
    at += 3;
    *times = 1;
    if (*at != '=')
        return behind_blanks(at);
    at++;
    if (lh_decimal_read_double(&at, times) != 0 || !(*times > 0 && *times <= TIMES_MAX))
        return NULL;
    return behind_blanks(at);
}

int netsim_pairs_read(const char *key, const char *value, struct netsim_pairs *pairs)
{
    struct netsim_pairs read = {0};
    const char *at = behind_blanks(value);
    bool none = strcmp(at, "none") == 0;
    while (!none) {
        unsigned from = 0;
        unsigned to = 0;
        double times = 0;
        at = read_pair(at, &from, &to, &times);
        if (at == NULL || (*at != ',' && *at != '\0'))
            return lh_fail(LH_EINVAL,
                           "%s \"%.64s\": invalid pairs of sites (a to %c; example: a>c,b>c=2, where b "
                           "sends twice workload.load, at most %g times; or none)",
                           key, value, 'a' + NETSIM_SITES_MAX - 1, TIMES_MAX);
        if (read.times[from][to] != 0)
            return lh_fail(LH_EINVAL, "%s \"%.64s\": %c>%c is repeated (write %c>%c=2)", key, value,
                           'a' + (char)from, 'a' + (char)to, 'a' + (char)from, 'a' + (char)to);
        read.times[from][to] = times;
        read.any = true;
        if (*at == '\0')
            break;
        at = behind_blanks(at + 1);
    }
    *pairs = read;
    return 0;
}

/* ---- host groups ----------------------------------------------------------------------------------- */

uint32_t netsim_host_group(const struct netsim_host_groups *groups, uint32_t host)
{
    const struct netsim_graph *graph = groups->graph;
    if (groups->matrix == NETSIM_UNIFORM)
        return 0;
    if (groups->matrix == NETSIM_ACROSS && graph->sites == 1)
        return host < graph->hosts / 2 ? 0 : 1;
    return graph->nodes[host].site;
}

int netsim_host_groups_count(struct netsim_host_groups *groups, enum netsim_matrix matrix,
                             const struct netsim_graph *graph)
{
    uint32_t hosts = graph->hosts;
    bool across = matrix == NETSIM_ACROSS;
    bool pairs = matrix == NETSIM_PAIRS;
    *groups = (struct netsim_host_groups){.matrix = matrix, .graph = graph};
    for (uint32_t host = 0; host < hosts; host++)
        groups->first[netsim_host_group(groups, host) + 1]++;
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++) {
        if (!across && !pairs && groups->first[group + 1] == 1)
            return lh_fail(LH_EINVAL,
                           "workload.matrix: inside: site %u has only one host (give each site two, or "
                           "choose uniform)",
                           group);
        groups->first[group + 1] += groups->first[group];
    }
    groups->senders = across ? groups->first[1] : hosts;
    if (groups->senders == 0 || (across && groups->senders == hosts))
        return lh_fail(
            LH_EINVAL,
            "workload.matrix: across needs hosts in site 0 and in others (place them, or choose uniform)");
    return 0;
}

void netsim_host_groups_sort(struct netsim_host_groups *groups)
{
    uint32_t next[NETSIM_GROUPS_MAX];
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++)
        next[group] = groups->first[group];
    for (uint32_t host = 0; host < groups->graph->hosts; host++)
        groups->order[next[netsim_host_group(groups, host)]++] = host;
}

/* ---- transfers ------------------------------------------------------------------------------------- */

static bool next_of_schedule(const struct transfers *transfers, struct transfer *transfer)
{
    const struct schedule_shape *shape = &transfers->shape;
    uint32_t steps = schedule_steps(transfers->schedule, shape);
    while (transfer->step < steps) {
        if (schedule_next_send(transfers->schedule, shape, transfer->from, transfer->step,
                               &transfer->cursor, &transfer->rest))
            return true;
        transfer->cursor = (struct schedule_cursor){0};
        transfer->from = (transfer->from + 1) % shape->ranks;
        transfer->step += transfer->from == 0;
    }
    return false;
}

bool transfers_next(const struct transfers *transfers, struct transfer *transfer)
{
    struct schedule_transfer *rest = &transfer->rest;
    assert(transfers->together >= 1);
    if (rest->count == 0 && !next_of_schedule(transfers, transfer))
        return false;
    transfer->to = rest->peer;
    transfer->first = rest->first;
    transfer->count = rest->count < transfers->together ? rest->count : transfers->together;
    transfer->reduce = rest->reduce;
    rest->first += transfer->count;
    rest->count -= transfer->count;
    return true;
}

uint32_t transfers_count(const struct transfers *transfers, uint32_t maximum, uint64_t *blocks)
{
    struct transfer transfer = {0};
    uint32_t count = 0;
    *blocks = 0;
    for (; count <= maximum && transfers_next(transfers, &transfer); count++)
        *blocks += transfer.count;
    return count;
}

/* Bytes before a block: products have at most 48 bits. */
static uint64_t offset(uint64_t bytes, uint32_t blocks, uint64_t block)
{
    return bytes / blocks * block + bytes % blocks * block / blocks;
}

uint64_t transfer_bytes(const struct transfers *transfers, const struct transfer *transfer, uint64_t bytes)
{
    uint32_t blocks = transfers->shape.blocks;
    uint64_t first = transfer->first % blocks;
    return offset(bytes, blocks, first + transfer->count) - offset(bytes, blocks, first);
}

/* ---- kind ------------------------------------------------------------------------------------------ */

int netsim_workload_check_bytes(const struct netsim_workload_config *config)
{
    char text[LH_FORMAT_MAX];
    if (config->bytes >= 1 && config->bytes <= NETSIM_FLOW_BYTES_MAX)
        return 0;
    return lh_fail(LH_ERANGE, "workload.bytes %s: out of range (1 byte to 16TiB)",
                   lh_format_size(config->bytes, text, sizeof text));
}

int netsim_workload_check_count(double flows)
{
    if (flows <= NETSIM_FLOWS_MAX)
        return 0;
    return lh_fail(LH_ERANGE, "workload.kind: %.3g flows, at most %u (make it shorter or smaller)", flows,
                   NETSIM_FLOWS_MAX);
}
