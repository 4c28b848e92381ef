/*
 * arrivals.h - the arrivals of a poll, and those that wait for the next one: a message of the kernel may hold
 * more than the caller takes. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_ARRIVALS_H
#define LH_FABRIC_UDP_ARRIVALS_H

#include "fabric/fabric.h"

/* All zero: nothing waits, and there is no room for it. */
struct udp_arrivals {
    struct fabric_arrival *out; /* the caller's */
    uint32_t count;             /* in it */
    uint32_t room;
    struct fabric_arrival *waiting; /* waiting[next … end) */
    uint32_t next;
    uint32_t end;
    uint32_t waiting_room;
};

/* A poll for at most that many. What waits comes first. */
void udp_arrivals_begin(struct udp_arrivals *arrivals, struct fabric_arrival *out, uint32_t room);
void udp_arrivals_add(struct udp_arrivals *arrivals, const struct fabric_arrival *arrival);
/* Takes back those of a slot that wait; returns their number. */
uint32_t udp_arrivals_withdraw_slot(struct udp_arrivals *arrivals, struct immediate_split split,
                                    uint32_t slot);
/* Whether some do. */
static inline bool udp_arrivals_wait(const struct udp_arrivals *arrivals)
{
    return arrivals->next < arrivals->end;
}

#endif
