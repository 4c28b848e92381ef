/*
 * seats.h - which sockets of a port have an owner of their own, and whose is taken for another. Pure.
 *
 * A seat is a socket of a port beside the shared one. An endpoint's channel takes a free seat; where there is
 * none, the owner that has been quiet longest is asked to leave, and the seat is free once it has. Who is
 * quiet is found by sweeps, one at each request (the clock algorithm of page replacement): an owner marks its
 * seat as active, a sweep takes the mark back.
 *
 * A seat that was left stays empty for a while: a packet that was on its way through the kernel may still
 * come to its socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_SEATS_H
#define LH_FABRIC_UDP_SEATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#define UDP_SEATS_MAX     64u
#define UDP_SEAT_REST_NS  (10 * LH_NS_PER_MS)  /* a packet is through the kernel in microseconds */
#define UDP_SEAT_QUIET_NS (100 * LH_NS_PER_MS) /* shorter pauses belong to a transfer */

struct udp_seat {
    bool taken;
    bool leaving;  /* its owner was asked to */
    lh_time since; /* free: when it was left; taken: of the first sweep that found it quiet, 0: none did */
    _Atomic bool active;
};

/* All zero: no seats yet. */
struct udp_seats {
    uint32_t count;
    struct udp_seat seats[UDP_SEATS_MAX];
};

/* A new one, free at once. At most UDP_SEATS_MAX. */
void udp_seats_add(struct udp_seats *seats);
/* One that may be taken, or UDP_SEATS_MAX. */
uint32_t udp_seats_free(const struct udp_seats *seats, lh_time now);
void udp_seats_take(struct udp_seats *seats, uint32_t seat);
void udp_seats_leave(struct udp_seats *seats, uint32_t seat, lh_time now);
/* A sweep. Whom to ask to leave now, or UDP_SEATS_MAX: all are active, or as many leave as sweeps found. */
uint32_t udp_seats_sweep(struct udp_seats *seats, lh_time now);

/* By the owner, any time; often, so it writes only what changes. */
static inline void udp_seat_mark_active(struct udp_seat *seat)
{
    if (!atomic_load_explicit(&seat->active, memory_order_relaxed))
        atomic_store_explicit(&seat->active, true, memory_order_relaxed);
}

#endif
