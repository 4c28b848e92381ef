/*
 * known_paths.h - what connections of an engine have measured of paths to peers, while it lasts. Pure.
 *
 * A new connection starts from there, with the care that lh_congestion_path asks for. Not several at once:
 * together they would fill the path more than once. One that comes within KNOWN_PATHS_TURN round trips of
 * another finds nothing, and measures for itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_HISTORY_KNOWN_PATHS_H
#define LH_HISTORY_KNOWN_PATHS_H

#include <longhaul/congestion.h>
#include <longhaul/types.h>

#define KNOWN_PATHS      64u
#define KNOWN_PATHS_TURN 8u

struct known_path {
    uint8_t family; /* of the peer's address; 0: none */
    uint8_t address[16];
    uint64_t rate_bps;
    lh_time rtt_ns;
    lh_time measured_ns;
    lh_time taken_ns; /* by a new connection, the last time; 0: never */
};

/* Zeroed: empty. One that comes takes the place of another. */
struct known_paths {
    struct known_path paths[KNOWN_PATHS];
};

/* A path is known once the sender was as fast as path and host allow for a round trip, and what the path
 * holds has arrived; before, what the application sent is all that was measured. */
bool known_paths_is_learned(const struct lh_congestion_report *report);
void known_paths_put(struct known_paths *paths, uint8_t family, const uint8_t address[16],
                     const struct lh_congestion_report *report, lh_time now);
/* False: nothing is known, or another connection has just taken it. */
bool known_paths_take(struct known_paths *paths, uint8_t family, const uint8_t address[16], lh_time now,
                      struct known_path *known);

#endif
