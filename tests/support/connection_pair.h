/*
 * connection_pair.h - two connections over a simulated network, driven in virtual time, for tests.
 *
 * Any failure to set up ends the test. Everything follows from the seed and the order of calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_CONNECTION_PAIR_H
#define LH_TESTS_SUPPORT_CONNECTION_PAIR_H

#include <longhaul/connection.h>

#include "netsim/fabric/sim_packets.h"

struct connection_pair {
    struct sim_world *world;
    struct lh_connection *ends[2]; /* end i is on host i */
    lh_time next[2];               /* when each wants to be called */
    uint64_t turns;                /* of the loop, so far */
};

/* Attributes that suit small tests: no workers, MTU 1024, slots of 16 KiB, 8 of them. */
void connection_pair_attr(struct lh_attr *attr);
/* attr: the same at both ends, or two of them; device and workers are set here. link: text, both ways. */
void connection_pair_open(struct connection_pair *pair, const char *world, uint64_t seed, const char *link,
                          const struct lh_attr *attr, const struct lh_attr *other);
void connection_pair_close(struct connection_pair *pair);

lh_time connection_pair_now(const struct connection_pair *pair);
/* Does what is due at both ends, then moves time on to the next event, at most to `limit`. */
void connection_pair_turn(struct connection_pair *pair, lh_time limit);
/* Runs for a span of virtual time. */
void connection_pair_run(struct connection_pair *pair, lh_time span);
/* Runs until the request is done; false when it is not after the span. */
bool connection_pair_wait(struct connection_pair *pair, struct lh_request *request, lh_time span,
                          struct lh_result *result);

/* Pseudorandom bytes, allocated. */
uint8_t *connection_pair_bytes(size_t bytes, uint64_t seed);
/* Ask end `end`; any error ends the test. */
struct lh_request *connection_pair_send(struct connection_pair *pair, int end, const void *data,
                                        size_t bytes);
struct lh_request *connection_pair_recv(struct connection_pair *pair, int end, void *buffer, size_t room);
/* Runs until the request is done (a hang ends the test) and frees it. */
struct lh_result connection_pair_finish(struct connection_pair *pair, struct lh_request *request);
/* One message into a buffer of `room` bytes: exact, acknowledged, and nothing behind it is touched. */
void connection_pair_transfer(struct connection_pair *pair, int from, size_t bytes, size_t room);

#endif
