/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/xp_pacing.h"

#include <assert.h>
#include <string.h>

#include <longhaul/types.h>

#include "congestion/dcqcn.h"

/* ---- rate ------------------------------------------------------------------------------------------ */

_Static_assert(sizeof(struct xp_rate) == 32, "as in the OptiNIC paper, section 5.3.4");

#define UNIT_NS    ((lh_time)8)
#define BPS_A_KBPS UINT64_C(1000)
#define LINE_MIN   UINT64_C(1000000)
/* On the wire, IP included. */
#define PACKET_BYTES_MAX 4352u
/* What a queue pair may send at once, of its own rate, when it comes late. */
#define BURST_NS (250 * LH_NS_PER_US)

enum {
    QUIET = 1, /* no notification yet: alpha and decrease never */
    FULL = 2,  /* at the line's rate: increase never */
    CNP_FOR_ALPHA = 4,
    CNP_FOR_DECREASE = 8,
};

void xp_rate_config_init(struct xp_rate_config *config, uint64_t line_bps)
{
    assert(line_bps >= LINE_MIN && line_bps / BPS_A_KBPS <= UINT32_MAX);
    *config = (struct xp_rate_config){
        .dcqcn = {.alpha_ns = DCQCN_ALPHA_NS,
                  .decrease_ns = DCQCN_DECREASE_NS,
                  .increase_ns = DCQCN_INCREASE_NS,
                  .additive_bps = DCQCN_ADDITIVE_BPS,
                  .hyper_bps = DCQCN_HYPER_BPS,
                  .min_bps = DCQCN_MIN_BPS,
                  .recovery_stages = DCQCN_RECOVERY_STAGES,
                  .gain = DCQCN_GAIN},
        .line_bps = line_bps,
    };
}

/* ---- 32 bits of time ---------------------------------------------------------------------------------- */

static uint32_t packed_time(lh_time at)
{
    return (uint32_t)(at / UNIT_NS);
}

/* In units. The one nearest to now; what would lie more than `most` ahead is past. */
static uint64_t unpacked(uint32_t packed, uint64_t now, uint64_t maximum)
{
    int64_t ahead = (int32_t)(packed - (uint32_t)now);
    if (ahead > 0 && (uint64_t)ahead > maximum)
        ahead -= INT64_C(1) << 32;
    return ahead < 0 && (uint64_t)-ahead > now ? 0 : now + (uint64_t)ahead;
}

static lh_time unpacked_time(uint32_t packed, lh_time now, lh_time maximum)
{
    return unpacked(packed, now / UNIT_NS, maximum / UNIT_NS + 1) * UNIT_NS;
}

static lh_time longest(const struct dcqcn_config *config)
{
    lh_time span = config->alpha_ns > config->decrease_ns ? config->alpha_ns : config->decrease_ns;
    return span > config->increase_ns ? span : config->increase_ns;
}

/* ---- DCQCN -------------------------------------------------------------------------------------------- */

static struct dcqcn unpack(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    lh_time maximum = longest(&config->dcqcn);
    bool quiet = rate->flags & QUIET, full = rate->flags & FULL;
    return (struct dcqcn){
        .line_bps = config->line_bps,
        .rate_bps = full ? config->line_bps : rate->rate_kbps * BPS_A_KBPS,
        .target_bps = full ? config->line_bps : rate->target_kbps * BPS_A_KBPS,
        .alpha = (double)rate->alpha,
        .alpha_at = quiet ? LH_TIME_NEVER : unpacked_time(rate->alpha_at, now, maximum),
        .decrease_at = quiet ? LH_TIME_NEVER : unpacked_time(rate->decrease_at, now, maximum),
        .increase_at = full ? LH_TIME_NEVER : unpacked_time(rate->increase_at, now, maximum),
        .time_stage = rate->time_stage,
        .cnp_for_alpha = rate->flags & CNP_FOR_ALPHA,
        .cnp_for_decrease = rate->flags & CNP_FOR_DECREASE,
    };
}

static void pack(struct xp_rate *rate, const struct dcqcn *dcqcn)
{
    rate->rate_kbps = (uint32_t)(dcqcn->rate_bps / BPS_A_KBPS);
    rate->target_kbps = (uint32_t)((dcqcn->target_bps + BPS_A_KBPS - 1) / BPS_A_KBPS);
    rate->alpha = (float)dcqcn->alpha;
    rate->alpha_at = packed_time(dcqcn->alpha_at);
    rate->decrease_at = packed_time(dcqcn->decrease_at);
    rate->increase_at = packed_time(dcqcn->increase_at);
    rate->time_stage = dcqcn->time_stage < UINT8_MAX ? (uint8_t)dcqcn->time_stage : UINT8_MAX;
    rate->flags = (uint8_t)((dcqcn->alpha_at == LH_TIME_NEVER ? QUIET : 0) |
                            (dcqcn->increase_at == LH_TIME_NEVER ? FULL : 0) |
                            (dcqcn->cnp_for_alpha ? CNP_FOR_ALPHA : 0) |
                            (dcqcn->cnp_for_decrease ? CNP_FOR_DECREASE : 0));
}

void xp_rate_start(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, config->line_bps);
    *rate = (struct xp_rate){.pace_at = (uint32_t)now};
    pack(rate, &dcqcn);
}

void xp_rate_on_notification(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    struct dcqcn dcqcn = unpack(rate, config, now);
    dcqcn_on_cnp(&dcqcn, &config->dcqcn, now);
    pack(rate, &dcqcn);
}

uint64_t xp_rate_bps(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    if (rate->flags & QUIET)
        return config->line_bps;
    struct dcqcn dcqcn = unpack(rate, config, now);
    dcqcn_on_time(&dcqcn, &config->dcqcn, now);
    return dcqcn.rate_bps;
}

/* ---- pacing ------------------------------------------------------------------------------------------- */

static lh_time duration(uint32_t bytes, uint64_t bps)
{
    return (lh_time)bytes * 8 * LH_NS_PER_S / bps;
}

static lh_time next_departure(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    uint64_t min_bps = config->dcqcn.min_bps < config->line_bps ? config->dcqcn.min_bps : config->line_bps;
    return unpacked(rate->pace_at, now, duration(PACKET_BYTES_MAX, min_bps));
}

bool xp_rate_may_send(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now,
                      lh_time *next)
{
    *next = next_departure(rate, config, now);
    return *next <= now;
}

void xp_rate_on_sent(struct xp_rate *rate, const struct xp_rate_config *config, uint32_t bytes, lh_time now)
{
    lh_time at = next_departure(rate, config, now);
    if (!(rate->flags & QUIET)) {
        struct dcqcn dcqcn = unpack(rate, config, now);
        dcqcn_on_time(&dcqcn, &config->dcqcn, now);
        pack(rate, &dcqcn);
    }
    uint64_t bps = rate->flags & FULL ? config->line_bps : rate->rate_kbps * BPS_A_KBPS;
    lh_time earliest = now > BURST_NS ? now - BURST_NS : 0;
    rate->pace_at = (uint32_t)((at > earliest ? at : earliest) + duration(bytes, bps));
}

/* ---- wheel ----------------------------------------------------------------------------------------- */

/*
 * A timer lies in the slot of the lowest level that reaches its tick, and moves down as that comes
 * closer: at most three times.
 */

/* Times further ahead than this many ticks are set to it: no timer of a deadline is. */
#define WHEEL_TICKS_MAX (UINT32_C(1) << 31)

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
