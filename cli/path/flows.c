/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/flows.h"

void path_flows_add(struct path_flows *flows, int64_t now_ns, uint8_t flow, uint32_t bytes)
{
    int64_t interval = (now_ns - flows->started_ns) / PATH_INTERVAL_NS;
    if (interval < 0 || interval >= PATH_INTERVALS)
        return;
    flows->bytes[interval][flow] += bytes;
    if ((unsigned)interval >= flows->intervals)
        flows->intervals = (unsigned)interval + 1;
}
