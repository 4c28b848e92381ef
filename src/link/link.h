/*
 * link.h - link emulation: wraps any fabric at the sending side; its packets cross an emulated link first.
 *
 * Protocol code cannot tell: it is a fabric like any other. Data and control pass the same bottleneck.
 * Payload is copied when it is taken, so the sender's buffer may be reused as on hardware. Deterministic
 * from the link's seed for a given order of calls.
 *
 * Time: post_writes and control_send only take packets, at the moment of the call. pump lets those of one
 * channel (or control) go whose time has come, to the inner fabric, and returns when the next is due. When
 * packets were not taken (the queue before the bottleneck is full, or LINK_HELD bytes are in flight) it
 * returns when to try again, and once more when that moment has come.
 *
 * Threads: the rules of fabric.h hold on both sides. What a channel has in flight belongs to the owner of
 * the channel, who calls pump like post_writes, so the inner fabric's calls on a channel are
 * serialised without a lock of our own. Only the bottleneck and the memory of packets are shared by the
 * channels of an endpoint, under a mutex that is held for no call of the inner fabric.
 *
 * With a spec that emulates nothing, calls pass straight through.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_LINK_H
#define LH_LINK_LINK_H

#include <longhaul/link.h>

#include "fabric/fabric.h"
#include "link/link_timeline.h"

/* Memory for packets in flight of one endpoint: what its link can hold (rate x longest delay, and the
 * queue) and LINK_HELD_SLACK_BYTES; without a rate LINK_HELD_UNLIMITED_BYTES; in no case more than
 * LINK_HELD_MAX_BYTES: a link that would hold more carries less than its rate. Touched only as far as it is
 * used. */
#define LINK_HELD_SLACK_BYTES     ((uint64_t)1024 * 1024)
#define LINK_HELD_UNLIMITED_BYTES ((uint64_t)64 * 1024 * 1024)
#define LINK_HELD_MAX_BYTES       ((uint64_t)4 * 1024 * 1024 * 1024)
/* When to offer packets again that the inner fabric did not take and gives no time for. */
#define LINK_RETRY_NS (20 * LH_NS_PER_US)
/* Batches that one pump gives to the inner fabric at most, so that arrivals get their turn. */
#define LINK_PUMP_BATCHES 8u

/* Takes ownership of `inner` on success. Every endpoint created through the result has a link of its own.
 * The two ends of a connection sample different fates from the same seed: which end is which follows from
 * their addresses and control ports. */
int fabric_link_open(struct fabric *inner, const struct lh_link_spec *spec, struct fabric **fabric);
/* The same over a fabric that stays its owner's, and outlives this one. */
int fabric_link_over(struct fabric *inner, const struct lh_link_spec *spec, struct fabric **fabric);
/* Changes the spec of one endpoint's link while it runs (packets in flight keep their fate). From any
 * thread. */
void fabric_link_set(struct fabric_endpoint *endpoint, const struct lh_link_spec *spec);

/* ---- held ------------------------------------------------------------------------------------------ */

/*
 * The memory of packets that an emulated link holds. No fabric knows it: it lends them.
 *
 * A faster or longer link needs more of it: then a new one is used from there on, and the old one goes when
 * its last packet does.
 */

struct link_held {
    struct ring_store store;
    bool retired; /* goes with its last packet */
};

/* One packet in flight: a write, or a control datagram. The payload follows it. */
struct link_packet {
    struct link_held *held;
    lh_time due_ns; /* of its last copy */
    uint64_t va;
    uint32_t rkey;
    uint32_t immediate;
    uint32_t corrupt_bit;
    uint16_t bytes;
    uint8_t generation;
    _Alignas(RING_STORE_ALIGN) uint8_t payload[];
};

/* How much a link of that spec may hold. */
uint64_t link_held_bytes(const struct lh_link_spec *spec);

#endif
