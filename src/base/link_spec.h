/*
 * link_spec.h - an emulated link: its text, and the fate of each packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_LINK_SPEC_H
#define LH_BASE_LINK_SPEC_H

#include <longhaul/link.h>

#include "base/prng.h"

/* ---- link fate ------------------------------------------------------------------------------------- */

/*
 * What a link does to each packet: the one place where loss, delay and damage are drawn.
 *
 * The link emulation and the simulator both ask here, so a link text means the same in both.
 */

/* The bytes that may wait, given or by default. */
uint64_t lh_link_queue_bytes(const struct lh_link_spec *spec);

/* One direction of a link. */
struct lh_link_state {
    struct lh_link_spec spec;
    struct lh_prng loss_prng;   /* one generator a fault, so that faults do not shift each other's draws */
    struct lh_prng timing_prng; /* jitter and reordering */
    struct lh_prng damage_prng; /* duplication and corruption */
    lh_time bottleneck_free_ns; /* when the last accepted packet has left the bottleneck, rounded down */
    uint64_t bottleneck_remainder; /* what was rounded off, in units of 1 / rate_bps nanoseconds */
    bool in_burst;                 /* Gilbert-Elliott: in the bad state */
};

struct lh_link_fate {
    bool accepted;   /* false: the queue is full, and the link pushes back; ask again later */
    bool dropped;    /* lost (or tail-dropped) */
    bool corrupted;  /* one bit flips: bit corrupt_bit % (8 * wire bytes) */
    bool reordered;  /* held back */
    unsigned copies; /* 1, or 2 when duplicated; 0 when dropped */
    uint32_t corrupt_bit;
    lh_time arrive_ns[2]; /* of each copy; never before `now` */
};

void lh_link_state_init(struct lh_link_state *link, const struct lh_link_spec *spec, uint64_t direction);
/* Decides one packet of that many bytes on the wire, offered at `now` (which never goes back). A packet is
 * taken while the bytes before it that have not passed the bottleneck do not exceed the queue; so an idle
 * link takes any packet. */
struct lh_link_fate lh_link_decide(struct lh_link_state *link, lh_time now, uint32_t wire_bytes);
/* The same for a packet of control, which has a send queue of its own at a NIC: data that fills the queue of
 * the link holds it back only when as much again waits. Else data that is always there would take every place
 * that comes free, and control would go when the data is over. A queue that drops drops it, too. */
struct lh_link_fate lh_link_decide_control(struct lh_link_state *link, lh_time now, uint32_t wire_bytes);
/* When a packet that was not accepted at `now` would be. */
lh_time lh_link_ready_ns(const struct lh_link_state *link, lh_time now);

#endif
