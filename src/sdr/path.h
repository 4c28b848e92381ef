/*
 * path.h - what a QP knows of the path to its peer: liveness, round trip from echoed times, silence, when to
 * ping. Pure.
 *
 * A peer's address comes from its blob, unauthenticated. So the address is challenged: until a
 * stamp that went there, and nowhere else, is echoed, nothing goes there but pings, and a pong for each ping
 * that came from there. Stamps count from a secret origin, so an echo cannot be made up.
 *
 * Timers:
 *   ping   until the address is proven: after 1 ms, then at doubling intervals, up to
 *          PATH_CHALLENGE_SPAN_MAX_NS. From then on after silence (4 overdue times, doubling up to the
 *          keepalive interval).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_PATH_H
#define LH_SDR_PATH_H

#include "base/rtt.h"
#include "wire/control.h"

#define PATH_FIRST_PING_NS LH_NS_PER_MS
/* Whoever is named by a foreign blob gets 12 pings in the first 2 s, all that a handshake over TCP waits for,
 * then one in this time. Fewer do not connect where losses come in bursts. */
#define PATH_CHALLENGE_SPAN_MAX_NS (1024 * LH_NS_PER_MS)
/* The newest stamps that prove the address when one is echoed: pings and pongs of a round trip of 20 s. */
#define PATH_CHALLENGES       64u
#define PATH_CHALLENGES_BYTES (PATH_CHALLENGES * sizeof(uint64_t))

struct path {
    struct lh_rtt rtt;
    uint64_t newest_ns;         /* newest `sent` received from the peer (its clock); 0: none */
    lh_time newest_received_ns; /* when (our clock) */
    uint64_t origin_ns;         /* of our stamps; secret */
    uint64_t last_echo_ns;      /* newest echo that gave a sample: each gives one */
    uint64_t *challenges;       /* PATH_CHALLENGES, of the owner, until it is proven; 0: none */
    uint32_t challenge_next;
    bool proven;              /* the peer is at the address of its blob */
    lh_time last_received_ns; /* 0: never */
    lh_time keepalive_ns;
    lh_time ping_at;
    lh_time ping_span;
};

/* secret: from a random source that no peer sees. challenges: zeroed. */
void path_init(struct path *path, lh_time now, lh_time keepalive_ns, uint64_t secret, uint64_t *challenges);
/* The next ping is due after that span of silence at the latest. */
void path_keepalive_set(struct path *path, lh_time keepalive_ns);
/* A control message with a valid token arrived. */
void path_on_control(struct path *path, const struct control_header *header, lh_time now);
/* A data packet of the peer arrived. */
void path_on_traffic(struct path *path, lh_time now);
/* Fills the times of a header that is about to be sent to the peer. */
void path_stamp(struct path *path, lh_time now, struct control_header *header);
/* True when a ping is due; the next one is then scheduled. */
bool path_ping_due(struct path *path, lh_time now);

#endif
