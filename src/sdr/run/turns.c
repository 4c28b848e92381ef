/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/turns.h"

#include "base/least.h"

void turns_init(struct turn_order *turns, struct due **places, uint32_t room)
{
    *turns = (struct turn_order){0};
    due_heap_init(&turns->waiting, places, room);
}

void turns_enter(struct turn_order *turns, struct turn *turn)
{
    if (turn->start.place == 0)
        due_heap_set(&turns->waiting, &turn->start,
                     lh_most(turn->ended, lh_left(turns->now, TURNS_CREDIT)));
}

void turns_leave(struct turn_order *turns, struct turn *turn)
{
    due_heap_set(&turns->waiting, &turn->start, LH_TIME_NEVER);
}

struct turn *turns_next(struct turn_order *turns)
{
    struct turn *turn = (struct turn *)due_heap_pop(&turns->waiting, LH_TIME_NEVER);
    if (!turn)
        return NULL;
    turn->ended = turn->start.at_ns;
    turns->now = lh_most(turns->now, turn->ended);
    return turn;
}

void turns_charge(struct turn *turn, uint64_t cost)
{
    turn->ended += cost;
}
