/*
 * sim_pair.h - two connected endpoints in a simulated world, with one receive open at each: for tests of
 * fabrics.
 *
 * Endpoint i is on host i. Both have the same attributes; each has its buffer bound to slot 0, and
 * `received` is set from the arrivals that pair_poll() returns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TEST_SIM_PAIR_H
#define LH_TEST_SIM_PAIR_H

#include "netsim/fabric/sim_packets.h"

#define PAIR_PACKETS_MAX 4096u

struct pair_end {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct fabric_slot_key key; /* of its slot 0 */
    struct lh_stats stats;
    uint8_t *buffer;
    _Atomic uint64_t received[PAIR_PACKETS_MAX / 64];
    struct fabric_slot slot;
};

struct sim_pair {
    struct sim_world *world;
    struct fabric_endpoint_attr attr;
    uint32_t packets; /* of the message that fits a slot */
    struct pair_end ends[2];
    uint8_t *message; /* pseudorandom bytes, packets * mtu of them */
};

struct sim_pair_options {
    const char *world;
    uint64_t seed;
    struct lh_link_spec link;
    uint32_t channels;  /* 0: 2 */
    uint32_t mtu_bytes; /* 0: 1024 */
    uint32_t packets;   /* 0: 256 */
    uint64_t receive_buffer_bytes;
    /* When given: wraps each fabric after it was opened. */
    int (*wrap)(struct fabric *inner, struct fabric **outer);
};

/* Any failure ends the test. */
void pair_open(struct sim_pair *pair, const struct sim_pair_options *options);
void pair_close(struct sim_pair *pair);

/* Binds slot 0 of an end anew (with a cleared bitmap), and closes it. */
void pair_bind(struct sim_pair *pair, uint32_t end, uint8_t generation);
void pair_unbind(struct sim_pair *pair, uint32_t end);

/* Packet p of the message, to slot 0 of the other end. */
struct fabric_write pair_write(const struct sim_pair *pair, uint32_t from, uint32_t packet);
uint32_t pair_channel_of(const struct sim_pair *pair, uint32_t packet);
/* Posts that one packet; whether it was taken. */
bool pair_post(struct sim_pair *pair, uint32_t from, uint32_t packet);
/* Posts packets first … first + count - 1 and lets time run as far as the link asks for it. */
void pair_post_all(struct sim_pair *pair, uint32_t from, uint32_t first, uint32_t count);

/* Polls every channel of an end until nothing is left; returns how many arrivals there were. */
uint32_t pair_poll(struct sim_pair *pair, uint32_t end);
/* Lets time run, event by event, polling both ends, until nothing is on the way. */
uint32_t pair_settle(struct sim_pair *pair, uint32_t end);
/* Whether each packet that is marked as received stands in the end's buffer, and all others are untouched.
 */
bool pair_exact(const struct sim_pair *pair, uint32_t end);
uint32_t pair_received(const struct sim_pair *pair, uint32_t end);
/* End 0 posts as long as its link takes data, and each time the queue is full, control must still go. */
void pair_speak_while_full(struct sim_pair *pair);

#endif
