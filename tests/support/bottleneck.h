/*
 * bottleneck.h - flows with congestion controllers through one bottleneck, in virtual time.
 *
 * Each flow is what a connection has: a flight, a controller, a pacer, and a receiver that reports as the
 * real one does. The bottleneck is a queue of bytes that drops what does not fit, or a token bucket with or
 * without one; after it packets are lost at random. Packets go in batches of one pacer's burst, so a path of
 * 400 Gbit/s costs no more than a slow one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_SUPPORT_BOTTLENECK_H
#define TESTS_SUPPORT_BOTTLENECK_H

#include <longhaul/congestion.h>

#include "base/prng.h"
#include "congestion/flight.h"
#include "congestion/pacer.h"

#define BOTTLENECK_FLOWS_MAX 20
#define BOTTLENECK_TIMES_MAX 512

struct bottleneck_path {
    uint64_t rate_bps;
    uint64_t queue_bytes;
    /* A token bucket (policer, or tbf with a queue): after a pause so many bytes pass at once. 0: none. */
    uint64_t bucket_bytes;
    uint64_t mark_bytes; /* packets that find more in the queue are marked; 0: none are */
    double loss;         /* at random, after the queue */
    uint32_t loss_burst; /* consecutive packets that one loss takes; 0 and 1: one */
    double report_loss;  /* of reports */
    double late;         /* share of batches that come late_ns later */
    lh_time late_ns;
    lh_time change_ns; /* from then on the rate is another; 0: never */
    uint64_t change_bps;
    uint64_t seed;
};

struct bottleneck_flow_config {
    const struct lh_congestion *controller;
    const char *params; /* NULL: "" */
    lh_time rtt_ns;
    lh_time start_ns;
    uint32_t mtu_bytes;     /* 0: 4096 */
    uint64_t message_bytes; /* 0: an endless stream */
    lh_time gap_ns;         /* from the end of a message to the start of the next one */
    lh_time report_ns;      /* shortest time between two reports; 0: as the real receiver does */
    lh_time
        burst_ns; /* a burst is what the rate sends in that time; 0: 50 us, or a 40th of the round trip */
    uint64_t rate_bps; /* told */
    uint64_t remembered_bps;
    bool rtt_unknown; /* at the start */
    /* Both hosts: on the average they run for so long, then pause for up to so long. What waits is made up
     * for as far as a real connection's pacer does. 0: they always run. */
    lh_time run_ns, pause_ns;
};

struct batch {
    uint64_t newest_key;
    uint32_t packets;
    uint32_t marked;
    uint64_t bytes;
    lh_time at_ns;
};

/* First in, first out. */
struct batch_queue {
    struct batch *ring;
    uint32_t size, head, tail;
};

struct report_queue {
    struct flight_report *ring;
    lh_time *at_ns;
    uint32_t size, head, tail;
};

/* When a host does not run: the next time, or this one. */
struct host_pause {
    lh_time start_ns, end_ns;
};

struct bottleneck_flow {
    struct bottleneck_flow_config config;
    struct host_pause sender_pause, receiver_pause;
    void *state;
    struct flight flight;
    struct flight_entry *entries;
    struct pacer pacer;
    struct lh_congestion_decision decision;
    lh_time next_ns; /* of the events below */
    /* sender */
    uint64_t key;
    uint64_t waiting_bytes; /* to be sent, with what was lost */
    uint64_t goal_bytes;    /* arrived in all at the end of the message */
    lh_time message_ns;     /* start of this message, or of the next one, */
    bool message_waits;     /* which has not begun */
    uint64_t burst_bytes;   /* what leaves at once */
    lh_time send_ns;        /* LH_TIME_NEVER: waits for a report */
    lh_time last_rtt_ns;
    /* path */
    struct batch_queue arrivals, late;
    struct report_queue reports;
    /* receiver */
    struct flight_report receiver; /* totals so far */
    uint64_t reported_packets;
    lh_time reported_ns, report_due_ns;
    void *receiver_state; /* NULL: the controller has no receiver's half */
    lh_time credit_ns;    /* when there may be more credits */
    /* results */
    uint64_t sent_bytes, arrived_bytes, queue_dropped_bytes, random_lost_bytes;
    double queue_ns_bytes; /* queueing delay, times bytes that passed the queue */
    uint64_t queued_bytes;
    uint32_t messages;
    lh_time times_ns[BOTTLENECK_TIMES_MAX]; /* of messages */
};

struct bottleneck {
    struct bottleneck_path path;
    struct lh_prng prng;
    lh_time now;
    uint64_t rate_bps;
    double free_ns;      /* when the queue is empty; with a bucket: when that has what it needs */
    uint64_t peak_bytes; /* the longest queue so far */
    uint64_t until_loss; /* packets */
    uint32_t flow_count;
    struct bottleneck_flow flows[BOTTLENECK_FLOWS_MAX];
};

/* On the heap; with bottleneck_free(). */
struct bottleneck *bottleneck_create(const struct bottleneck_path *path);
void bottleneck_free(struct bottleneck *bottleneck);
struct bottleneck_flow *bottleneck_add(struct bottleneck *bottleneck,
                                       const struct bottleneck_flow_config *config);
void bottleneck_run(struct bottleneck *bottleneck, lh_time until_ns);
/* Until the first flow has completed that many messages, or until_ns. False: it has not. */
bool bottleneck_run_messages(struct bottleneck *bottleneck, uint32_t messages, lh_time until_ns);

#endif
