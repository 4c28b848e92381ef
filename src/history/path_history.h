/*
 * path_history.h - what connections and probes learned of paths: as text, one line a path, newest first, and
 * in memory.
 *
 *   PEER LOCAL RATE RTT TIME
 *
 * PEER and LOCAL are host addresses without port, as inet_ntop() writes them; RATE is in bits of payload a
 * second, RTT the shortest round trip in ns, TIME seconds since 1970. Integers in decimal, one space between
 * fields. Anything else in the text is skipped: comments, damage, lines of later versions. The text is
 * hostile: what it may cost is bounded, and what is used of it is tried with care.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_HISTORY_PATH_HISTORY_H
#define LH_HISTORY_PATH_HISTORY_H

#include <longhaul/congestion.h>
#include <longhaul/types.h>

/* What a text begins with; whatever follows on the line. */
#define PATH_HISTORY_BEGINNING "# paths of longhaul"

#define PATH_HISTORY_MAX         256u /* paths; the oldest leave */
#define PATH_HISTORY_ADDRESS_MAX 46u  /* INET6_ADDRSTRLEN */
#define PATH_HISTORY_LINE_MAX    160u /* two addresses, three numbers of 20 digits, spaces and newline */
#define PATH_HISTORY_TEXT_MAX    ((PATH_HISTORY_MAX + 1) * PATH_HISTORY_LINE_MAX) /* the rest is not read */

/* Paths change: routes, shapers, other users. */
#define PATH_HISTORY_AGE_MAX_S (7 * UINT64_C(86400))

/* Bounds of what can be meant. */
#define PATH_HISTORY_RATE_MIN_BPS UINT64_C(1000)
#define PATH_HISTORY_RATE_MAX_BPS UINT64_C(100000000000000)
#define PATH_HISTORY_RTT_MAX_NS   (3600 * LH_NS_PER_S)

struct path_record {
    char peer[PATH_HISTORY_ADDRESS_MAX];
    char local[PATH_HISTORY_ADDRESS_MAX];
    uint64_t rate_bps;
    lh_time rtt_ns;
    uint64_t time_s; /* wall clock */
};

struct path_history {
    uint32_t count;
    struct path_record records[PATH_HISTORY_MAX]; /* newest first; no path twice */
};

/* Reads up to PATH_HISTORY_TEXT_MAX bytes. Of lines about the same path the first counts. */
void path_history_parse(const char *text, size_t bytes, struct path_history *history);
/* Writes the text, which is not terminated, into out[PATH_HISTORY_TEXT_MAX]; returns its bytes. */
size_t path_history_format(const struct path_history *history, char *out);
/* Whether such a text begins like that, or is empty: nobody loses anything but paths where it is replaced. */
bool path_history_is_text(const char *text, size_t bytes);
/* What is known of a path, no older than PATH_HISTORY_AGE_MAX_S and not from the future; else NULL. */
const struct path_record *path_history_find(const struct path_history *history, const char *peer,
                                            const char *local, uint64_t now_s);
/* Replaces what is known of the record's path; what is too old at the record's time leaves. False, and
 * nothing changes: the record is out of bounds, and would not be read back. */
bool path_history_put(struct path_history *history, const struct path_record *record);

/* Whether a round trip measured now can be of the path that was remembered: within a factor of 2, as a route
 * that changed or a queue that stands makes what was remembered useless. */
bool path_history_rtt_agrees(lh_time remembered_ns, lh_time measured_ns);

/* ---- known paths ----------------------------------------------------------------------------------- */

/*
 * What connections of an engine have measured of paths to peers, while it lasts. Pure.
 *
 * A new connection starts from there, with the care that lh_congestion_path asks for. Not several at once:
 * together they would fill the path more than once. One that comes within KNOWN_PATHS_TURN round trips of
 * another finds nothing, and measures for itself.
 */

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
