/*
 * sim_engines.h - engines on the hosts of a simulated network, whose progress the caller makes in virtual
 * time, for tests.
 *
 * Any failure to set up ends the test. Everything follows from the seed and the order of calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_SIM_ENGINES_H
#define LH_TESTS_SUPPORT_SIM_ENGINES_H

#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include "netsim/fabric/sim_packets.h"

#define SIM_ENGINES_MAX 9u

struct sim_engines {
    struct sim_world *world;
    uint32_t count;
    struct lh_engine *engines[SIM_ENGINES_MAX]; /* one a host */
    /* In each round of a turn, after the engines; or NULL. */
    void (*on_round)(void *context);
    void *context;
};

/* Ends the test when the code is an error. */
void sim_engines_must(int code, const char *what);
/* link: text, both ways. attrs: one for each engine; device and workers are set here. NULL: the defaults. */
void sim_engines_open(struct sim_engines *net, const char *world, uint64_t seed, const char *link,
                      uint32_t count, const struct lh_engine_attr *attrs);
/* All connections are closed. */
void sim_engines_close(struct sim_engines *net);
/* An engine without workers. */
struct lh_engine *sim_engine_create(const char *device, const struct lh_engine_attr *attr);
/* Opens both ends, and attaches them to each other. */
void sim_engines_join(struct lh_connection *ends[2], const struct lh_attr *one,
                      const struct lh_attr *other);

/* All that is due now, then on to the next event, at most to `limit`. */
void sim_engines_turn(struct sim_engines *net, lh_time limit);
void sim_engines_run(struct sim_engines *net, lh_time span);
/* Runs until the request is done, and frees it; a minute of virtual time ends the test. */
struct lh_result sim_engines_finish(struct sim_engines *net, struct lh_request *request);

#endif
