/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/arrivals.h"

#include <assert.h>

static void hand_out(struct udp_arrivals *arrivals)
{
    while (arrivals->count < arrivals->room && arrivals->next < arrivals->end)
        arrivals->out[arrivals->count++] = arrivals->waiting[arrivals->next++];
    if (arrivals->next == arrivals->end)
        arrivals->next = arrivals->end = 0;
}

void udp_arrivals_begin(struct udp_arrivals *arrivals, struct fabric_arrival *out, uint32_t room)
{
    arrivals->out = out;
    arrivals->count = 0;
    arrivals->room = room;
    hand_out(arrivals);
}

void udp_arrivals_add(struct udp_arrivals *arrivals, const struct fabric_arrival *arrival)
{
    if (arrivals->count < arrivals->room) {
        arrivals->out[arrivals->count++] = *arrival;
        return;
    }
    assert(arrivals->end < arrivals->waiting_room);
    arrivals->waiting[arrivals->end++] = *arrival;
}

/* Of list[first … end), whatever their fragments; returns its new end. */
static uint32_t without(struct fabric_arrival *list, uint32_t first, uint32_t end,
                        struct immediate_split split, uint32_t immediate)
{
    uint32_t kept = first;
    for (uint32_t i = first; i < end; i++)
        if ((list[i].immediate ^ immediate) >> split.fragment_bits != 0)
            list[kept++] = list[i];
    return kept;
}

void udp_arrivals_withdraw(struct udp_arrivals *arrivals, struct immediate_split split, uint32_t immediate)
{
    arrivals->count = without(arrivals->out, 0, arrivals->count, split, immediate);
    arrivals->end = without(arrivals->waiting, arrivals->next, arrivals->end, split, immediate);
    hand_out(arrivals);
}

uint32_t udp_arrivals_withdraw_slot(struct udp_arrivals *arrivals, struct immediate_split split,
                                    uint32_t slot)
{
    const uint32_t before = arrivals->end;
    uint32_t kept = arrivals->next;
    for (uint32_t i = arrivals->next; i < arrivals->end; i++)
        if (immediate_part(split, arrivals->waiting[i].immediate).message != slot)
            arrivals->waiting[kept++] = arrivals->waiting[i];
    arrivals->end = kept;
    if (arrivals->next == arrivals->end)
        arrivals->next = arrivals->end = 0;
    return before - kept;
}
