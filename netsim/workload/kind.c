/*
 * kind.c - see kind.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/kind.h"

#include <longhaul/units.h>

#include "base/error.h"

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
