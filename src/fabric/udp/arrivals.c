/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/arrivals.h"

#include <assert.h>

void udp_arrivals_begin(struct udp_arrivals *arrivals, struct fabric_arrival *out, uint32_t room)
{
    arrivals->out = out;
    arrivals->count = 0;
    arrivals->room = room;
    while (arrivals->count < arrivals->room && arrivals->next < arrivals->end)
        arrivals->out[arrivals->count++] = arrivals->waiting[arrivals->next++];
    if (arrivals->next == arrivals->end)
        arrivals->next = arrivals->end = 0;
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
