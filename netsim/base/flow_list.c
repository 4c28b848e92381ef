/*
 * flow_list.c - see flow_list.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/base/flow_list.h"

#include <string.h>

bool netsim_flow_list_is_sorted(const struct netsim_flow_list *list)
{
    for (uint32_t i = 1; i < list->count; i++) {
        if (list->flows[i].start_ps < list->flows[i - 1].start_ps)
            return false;
    }
    return true;
}

/* Merges the runs [0, middle) and [middle, end). The first is set aside; what is written never passes what
 * is still to be read of the second. */
static void merge(struct netsim_flow_request *flows, uint32_t middle, uint32_t end,
                  struct netsim_flow_request *scratch)
{
    uint32_t left = 0;
    uint32_t right = middle;
    memcpy(scratch, flows, middle * sizeof *flows);
    for (uint32_t at = 0; left < middle; at++) {
        bool take_right = right < end && flows[right].start_ps < scratch[left].start_ps;
        flows[at] = take_right ? flows[right++] : scratch[left++];
    }
}

void netsim_flow_list_sort(struct netsim_flow_list *list, struct netsim_flow_request *scratch)
{
    uint64_t count = list->count;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t start = 0; start + width < count; start += 2 * width) {
            uint64_t rest = count - start;
            uint64_t length = rest < 2 * width ? rest : 2 * width;
            merge(list->flows + start, (uint32_t)width, (uint32_t)length, scratch);
        }
    }
}
