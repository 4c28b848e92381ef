/*
 * sr_world.h - two machines of any scheme, coupled over a simulated path in virtual time, for tests.
 *
 * One way for chunks, one for messages each way, each with delay, loss, doubling, jitter. The sender's link
 * takes one chunk after the other; messages travel behind the chunks that were given to it before.
 * A scheme that codes gets memory, a thread that encodes, and the bytes of each message are compared.
 * Everything follows from the seed. The world checks each action (range, budget, the `again` flag,
 * completion) and fails the test itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_SR_WORLD_H
#define SUPPORT_SR_WORLD_H

#include <longhaul/scheme.h>
#include <longhaul/stats.h>

#include "base/prng.h"

struct sr_world;

struct sr_world_spec {
    const struct lh_scheme *scheme;
    const char *params;   /* what the user would type after the name; NULL: "" */
    uint32_t chunks;      /* of the message */
    uint32_t room_chunks; /* of the receive buffer; 0: as many */
    lh_time chunk_ns;     /* that the link takes for one */
    lh_time rtt_ns;
    lh_time window_ns;  /* reordering window that both ends are told; 0: rtt / 8 */
    bool rtt_unknown;   /* both ends are told that there is no sample yet */
    uint32_t in_flight; /* most chunks under way; 0: no limit */
    double chunk_loss;
    double burst_chunks; /* 0: each chunk is lost by itself; else the mean length of a row of losses */
    double message_loss;
    bool
        /* the hybrid scheme is told chunk_loss and burst_chunks, as a connection that knows its path */
        measured;
    double duplicate;
    lh_time jitter_ns;    /* uniform extra delay of each */
    lh_time host_ns;      /* that the receiving host takes for each chunk; messages do not wait */
    bool tells_caught_up; /* the receiver's view says how far the host is */
    uint64_t seed;
    lh_time give_up_ns;    /* 0: 1000 round trips */
    lh_time encode_ns;     /* that one LH_ACTION_ENCODE takes, one after the other */
    lh_time extra_open_ns; /* after the start, that extra chunks may be injected */
    /* Loses a chunk by choice: its number (from `chunks` on: extra) and which injection of it this is, from
     * 0. May be NULL. */
    bool (*lose_chunk)(void *context, uint32_t chunk, uint32_t injection);
    /* Loses a message by choice: its direction, its number in that direction, its bytes. May be NULL. */
    bool (*lose_message)(void *context, bool to_receiver, uint32_t number, const uint8_t *data,
                         uint32_t bytes);
    void *context;
};

struct sr_world_result {
    bool complete;      /* the sender was told in time */
    lh_time arrived_ns; /* the receiver's machine said COMPLETE */
    lh_time done_ns;    /* arrived_ns and the way back, as if that message were never lost */
    uint32_t injected;  /* chunks in all, extra ones too */
    uint32_t extra;     /* of those extra */
    uint32_t again;     /* of those said to have been injected before */
    uint32_t needless;  /* of those that had arrived, or were still to arrive from an earlier injection */
    uint32_t lost;      /* chunks that the path lost */
    uint32_t recovered; /* chunks that were decoded */
    uint32_t encodings;
    uint32_t messages; /* of the machines, both ways */
    uint32_t steps;    /* of the machines */
    struct lh_stats sender;
    struct lh_stats receiver;
};

/* message bits / rate + RTT */
lh_time sr_world_ideal_ns(const struct sr_world_spec *spec);
struct sr_world_result sr_world_run(const struct sr_world_spec *spec);
/* The built-in scheme of this name. */
const struct lh_scheme *sr_world_scheme(const char *name);

#endif
