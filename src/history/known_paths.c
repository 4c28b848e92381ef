/* SPDX-License-Identifier: BSD-3-Clause */
#include "history/known_paths.h"

#include <string.h>

bool known_paths_is_learned(const struct lh_congestion_report *report)
{
    const lh_time *ns = report->limited_ns;
    lh_time busy_ns = ns[LH_LIMIT_HOST] + ns[LH_LIMIT_RATE] + ns[LH_LIMIT_WINDOW] + ns[LH_LIMIT_CREDIT] +
                      ns[LH_LIMIT_FABRIC];
    double holds = (double)report->bandwidth_bps / 8 * (double)report->rtt_minimum_ns / (double)LH_NS_PER_S;
    return report->feedback && report->bandwidth_bps > 0 && report->rtt_minimum_ns > 0 &&
           busy_ns >= report->rtt_minimum_ns && (double)report->arrived_bytes >= holds;
}

/* Peers name their own addresses: they can take each other's places, and no more. */
static struct known_path *place_of(struct known_paths *paths, const uint8_t address[16])
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < 16; i++)
        hash = (hash ^ address[i]) * UINT64_C(0x100000001B3);
    return &paths->paths[(hash ^ hash >> 32) % KNOWN_PATHS];
}

static bool is_of(const struct known_path *path, uint8_t family, const uint8_t address[16])
{
    return path->family == family && memcmp(path->address, address, sizeof path->address) == 0;
}

void known_paths_put(struct known_paths *paths, uint8_t family, const uint8_t address[16],
                     const struct lh_congestion_report *report, lh_time now)
{
    struct known_path *path = place_of(paths, address);
    if (!is_of(path, family, address)) {
        *path = (struct known_path){.family = family};
        memcpy(path->address, address, sizeof path->address);
    }
    path->rate_bps = report->bandwidth_bps;
    path->rtt_ns = report->rtt_minimum_ns;
    path->measured_ns = now;
}

bool known_paths_take(struct known_paths *paths, uint8_t family, const uint8_t address[16], lh_time now,
                      struct known_path *known)
{
    struct known_path *path = place_of(paths, address);
    if (!is_of(path, family, address) ||
        (path->taken_ns != 0 && now - path->taken_ns < KNOWN_PATHS_TURN * path->rtt_ns))
        return false;
    path->taken_ns = now;
    *known = *path;
    return true;
}
