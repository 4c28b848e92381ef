/*
 * wheel.c - a timer lies in the slot of the lowest level that reaches its tick, and moves down as that comes
 * closer: at most three times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/wheel.h"

#include <string.h>

#define BITS         8u
#define SLOT_EXPIRED (WHEEL_LEVELS * WHEEL_SLOTS)

void wheel_init(struct wheel *wheel, lh_time tick_ns, lh_time now, uint32_t count,
                struct wheel_timer *timers, uint32_t *due)
{
    *wheel = (struct wheel){.tick_ns = tick_ns,
                            .tick = now / tick_ns,
                            .count = count,
                            .timers = timers,
                            .due = due,
                            .expired = WHEEL_NONE};
    memset(wheel->heads, 0xFF, sizeof wheel->heads);
    for (uint32_t i = 0; i < count; i++)
        timers[i] = (struct wheel_timer){WHEEL_NONE, WHEEL_NONE, WHEEL_NONE};
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static uint32_t *head_of(struct wheel *wheel, uint32_t slot)
{
    return slot == SLOT_EXPIRED ? &wheel->expired : &wheel->heads[slot];
}

static void mark(struct wheel *wheel, uint32_t slot, bool used)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (slot == SLOT_EXPIRED)
        return;
    uint64_t *word = &wheel->used[slot / WHEEL_SLOTS][slot % WHEEL_SLOTS / 64];
    *word = used ? *word | bit : *word & ~bit;
}

static void insert(struct wheel *wheel, uint32_t slot, uint32_t timer)
{
    uint32_t *head = head_of(wheel, slot);
    wheel->timers[timer] = (struct wheel_timer){.next = *head, .prev = WHEEL_NONE, .slot = slot};
    if (*head != WHEEL_NONE)
        wheel->timers[*head].prev = timer;
    *head = timer;
    mark(wheel, slot, true);
}

static void take_out(struct wheel *wheel, uint32_t timer)
{
    struct wheel_timer *at = &wheel->timers[timer];
    uint32_t *head = head_of(wheel, at->slot);
    if (at->next != WHEEL_NONE)
        wheel->timers[at->next].prev = at->prev;
    if (at->prev != WHEEL_NONE)
        wheel->timers[at->prev].next = at->next;
    else
        *head = at->next;
    if (*head == WHEEL_NONE)
        mark(wheel, at->slot, false);
    at->slot = WHEEL_NONE;
}

/* ---- setting ------------------------------------------------------------------------------------------ */

/* Where a timer lies that is due `ahead` ticks from now. */
static uint32_t slot_of(uint64_t due, uint64_t ahead)
{
    uint32_t level = 0;
    while (level + 1 < WHEEL_LEVELS && ahead >= UINT64_C(1) << BITS * (level + 1))
        level++;
    return level * WHEEL_SLOTS + (uint32_t)(due >> BITS * level) % WHEEL_SLOTS;
}

static void place(struct wheel *wheel, uint32_t timer)
{
    uint32_t ahead = wheel->due[timer] - (uint32_t)wheel->tick;
    if (ahead == 0 || ahead > WHEEL_TICKS_MAX)
        insert(wheel, SLOT_EXPIRED, timer);
    else
        insert(wheel, slot_of(wheel->tick + ahead, ahead), timer);
}

void wheel_set(struct wheel *wheel, uint32_t timer, lh_time at, lh_time now)
{
    uint64_t due = at / wheel->tick_ns + (at % wheel->tick_ns != 0);
    wheel_cancel(wheel, timer);
    if (wheel->armed == 0 && now / wheel->tick_ns > wheel->tick)
        wheel->tick = now / wheel->tick_ns;
    if (due <= wheel->tick)
        due = wheel->tick + 1; /* its tick may still run */
    if (due - wheel->tick > WHEEL_TICKS_MAX)
        due = wheel->tick + WHEEL_TICKS_MAX;
    wheel->due[timer] = (uint32_t)due;
    wheel->armed++;
    place(wheel, timer);
}

void wheel_cancel(struct wheel *wheel, uint32_t timer)
{
    if (wheel->timers[timer].slot == WHEEL_NONE)
        return;
    take_out(wheel, timer);
    wheel->armed--;
}

/* ---- time --------------------------------------------------------------------------------------------- */

/* The timers of a slot, to where they are now closer. */
static void spill(struct wheel *wheel, uint32_t slot)
{
    while (wheel->heads[slot] != WHEEL_NONE) {
        uint32_t timer = wheel->heads[slot];
        take_out(wheel, timer);
        place(wheel, timer);
    }
}

/* Ticks until one at which something lies in level 0, or at which a higher level is looked at. */
static uint64_t ticks_of_silence(const struct wheel *wheel)
{
    uint32_t from = (uint32_t)(wheel->tick + 1) % WHEEL_SLOTS;
    for (uint32_t slot = from; slot < WHEEL_SLOTS && slot != 0; slot++) {
        uint64_t word = wheel->used[0][slot / 64] >> slot % 64;
        if (word & 1)
            return slot - from;
        if (word == 0)
            slot |= 63;
    }
    return from == 0 ? 0 : WHEEL_SLOTS - from;
}

static void step(struct wheel *wheel)
{
    wheel->tick++;
    for (uint32_t level = WHEEL_LEVELS - 1; level > 0; level--) {
        if ((wheel->tick & ((UINT64_C(1) << BITS * level) - 1)) == 0)
            spill(wheel, level * WHEEL_SLOTS + (uint32_t)(wheel->tick >> BITS * level) % WHEEL_SLOTS);
    }
    spill(wheel, (uint32_t)wheel->tick % WHEEL_SLOTS);
}

static void advance(struct wheel *wheel, uint64_t until)
{
    while (wheel->tick < until && wheel->expired == WHEEL_NONE) {
        uint64_t silent = wheel->armed ? ticks_of_silence(wheel) : until - wheel->tick;
        if (silent > until - wheel->tick)
            silent = until - wheel->tick;
        wheel->tick += silent;
        if (wheel->tick < until)
            step(wheel);
    }
}

uint32_t wheel_expired(struct wheel *wheel, lh_time now)
{
    if (wheel->expired == WHEEL_NONE)
        advance(wheel, now / wheel->tick_ns);
    uint32_t timer = wheel->expired;
    if (timer != WHEEL_NONE)
        wheel_cancel(wheel, timer);
    return timer;
}

lh_time wheel_next(const struct wheel *wheel)
{
    if (wheel->armed == 0)
        return LH_TIME_NEVER;
    if (wheel->expired != WHEEL_NONE)
        return wheel->tick * wheel->tick_ns;
    return (wheel->tick + 1 + ticks_of_silence(wheel)) * wheel->tick_ns;
}
