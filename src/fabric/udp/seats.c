/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/seats.h"

#include <assert.h>

void udp_seats_add(struct udp_seats *seats)
{
    assert(seats->count < UDP_SEATS_MAX);
    seats->seats[seats->count++] = (struct udp_seat){0};
}

uint32_t udp_seats_free(const struct udp_seats *seats, lh_time now)
{
    for (uint32_t i = 0; i < seats->count; i++)
        if (!seats->seats[i].taken && now - seats->seats[i].since >= UDP_SEAT_REST_NS)
            return i;
    return UDP_SEATS_MAX;
}

void udp_seats_take(struct udp_seats *seats, uint32_t seat)
{
    assert(seat < seats->count && !seats->seats[seat].taken);
    struct udp_seat *taken = &seats->seats[seat];
    taken->taken = true;
    taken->leaving = false;
    taken->since = 0;
    udp_seat_mark_active(taken);
}

void udp_seats_leave(struct udp_seats *seats, uint32_t seat, lh_time now)
{
    assert(seat < seats->count && seats->seats[seat].taken);
    seats->seats[seat].taken = false;
    seats->seats[seat].leaving = false;
    seats->seats[seat].since = now;
}

uint32_t udp_seats_sweep(struct udp_seats *seats, lh_time now)
{
    uint32_t quietest = UDP_SEATS_MAX;
    for (uint32_t i = 0; i < seats->count; i++) {
        struct udp_seat *seat = &seats->seats[i];
        if (!seat->taken || seat->leaving)
            continue;
        if (atomic_exchange_explicit(&seat->active, false, memory_order_relaxed)) {
            seat->since = 0;
        } else if (seat->since == 0) {
            seat->since = now;
        } else if (now - seat->since >= UDP_SEAT_QUIET_NS &&
                   (quietest == UDP_SEATS_MAX || seat->since < seats->seats[quietest].since)) {
            quietest = i;
        }
    }
    if (quietest != UDP_SEATS_MAX)
        seats->seats[quietest].leaving = true;
    return quietest;
}
