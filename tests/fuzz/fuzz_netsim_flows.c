/*
 * fuzz_netsim_flows.c - the text of a list of flows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <stdlib.h>

#include <longhaul/error.h>

#define HOSTS 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct netsim_workload_config config = {
        .kind = NETSIM_FLOWS_FILE, .flows = {.data = size > 0 ? (const char *)data : "", .bytes = size}};
    struct netsim_graph graph = {.hosts = HOSTS, .sites = 1};
    struct netsim_arena counting = {0};
    struct netsim_flow_list list;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    int rc = netsim_workload_build(&config, &graph, &prng, NULL, &counting, &list);
    if (rc != 0) {
        assert(rc == -LH_EINVAL || rc == -LH_ERANGE);
        assert(lh_last_error()[0] != '\0');
        return 0;
    }
    uint32_t count = list.count;
    struct netsim_arena arena = {.base = aligned_alloc(64, counting.used_bytes),
                                 .capacity_bytes = counting.used_bytes};
    assert(arena.base != NULL);
    rc = netsim_workload_build(&config, &graph, &prng, NULL, &arena, &list);
    assert(rc == 0 && arena.used_bytes == counting.used_bytes && list.count == count && count > 0);
    assert(netsim_flow_list_is_sorted(&list));
    for (uint32_t i = 0; i < list.count; i++) {
        const struct netsim_flow_request *flow = &list.flows[i];
        assert(flow->source < HOSTS && flow->destination < HOSTS && flow->source != flow->destination);
        assert(flow->bytes >= 1 && flow->bytes <= NETSIM_FLOW_BYTES_MAX &&
               flow->start_ps <= NETSIM_TIME_MAX);
    }
    free(arena.base);
    return 0;
}
