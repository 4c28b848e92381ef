/*
 * lane.h - what one channel of an endpoint (or its control QP) has on an emulated link.
 *
 * A lane belongs to the owner of its channel; what all lanes of an endpoint share is in struct
 * link_shared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_LANE_H
#define LH_LINK_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/link_fate.h"
#include "fabric/fabric.h"
#include "link/held.h"
#include "link/timeline.h"

/* Of one endpoint. */
struct link_shared {
    struct fabric_endpoint *inner;
    const struct link_lane *lanes; /* all of the endpoint */
    uint32_t lane_count;
    struct lh_stats *stats;
    uint32_t ip_udp_bytes;  /* headers below RoCE */
    _Atomic bool emulating; /* false: the spec is none */
    /* Guards what follows, and the packets' memory. No call of the inner fabric is made with it held. */
    pthread_mutex_t lock;
    struct lh_link_state link;
    struct link_held *held;
    lh_time now_ns; /* the latest time that the link has seen */
};

/* Why the last send did not take everything. */
enum link_refusal {
    LINK_REFUSED_NOT = 0,
    LINK_REFUSED_BY_QUEUE, /* the bottleneck's queue is full */
    LINK_REFUSED_BY_HELD,  /* no memory for another packet in flight */
    LINK_REFUSED_BY_INNER, /* passed straight through; the inner fabric took no more and gives no
                              time for a retry */
};

struct link_lane {
    struct timeline in_flight;                 /* of struct link_packet; a duplicate is in it twice */
    uint64_t pushed;                           /* the order in which packets of this lane were taken */
    struct link_packet *due[FABRIC_BATCH_MAX]; /* offered to the inner fabric, in order */
    uint32_t due_count;
    uint32_t channel;        /* or FABRIC_CONTROL */
    _Atomic lh_time head_ns; /* when the first packet that has not left was due; control reads it */
    enum link_refusal refused;
    lh_time retry_ns; /* LINK_REFUSED_BY_INNER: when to try again; 0: not set yet */
};

/* Takes what the link takes; returns the number, or the inner fabric's error. */
int link_lane_post(struct link_lane *lane, struct link_shared *shared, const struct fabric_write *writes,
                   uint32_t count);
int link_lane_send(struct link_lane *lane, struct link_shared *shared,
                   const struct fabric_datagram *datagrams, uint32_t count);
/* Lets due packets go; when to call again. */
lh_time link_lane_pump(struct link_lane *lane, struct link_shared *shared, lh_time now);
/* Forgets what is in flight. */
void link_lane_clear(struct link_lane *lane, struct link_shared *shared);

#endif
