/*
 * link_fate.c - one packet at a time: bottleneck, loss, delay, damage.
 *
 * In the order of a real path: the sender's queue, the bottleneck, then the long haul, where packets are
 * lost after they have used the bottleneck. What a packet draws never depends on what another fault
 * decided.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/link_fate.h"

#include <assert.h>

__extension__ typedef unsigned __int128 uint128;

#define BITS_PER_BYTE 8u

/* Numbers of the generators, forked from one that seed and direction make. */
enum link_component {
    LINK_LOSS = 1,
    LINK_TIMING = 2,
    LINK_DAMAGE = 3,
};

static bool is_bursty(const struct lh_link_spec *spec)
{
    return spec->burst_packets > 1 && spec->loss < 1;
}

void lh_link_state_init(struct lh_link_state *link, const struct lh_link_spec *spec, uint64_t direction)
{
    struct lh_prng root;
    lh_prng_seed(&root, spec->seed);
    root = lh_prng_fork(&root, direction);
    *link = (struct lh_link_state){
        .spec = *spec,
        .loss_prng = lh_prng_fork(&root, LINK_LOSS),
        .timing_prng = lh_prng_fork(&root, LINK_TIMING),
        .damage_prng = lh_prng_fork(&root, LINK_DAMAGE),
    };
    /* Begins as likely in a burst as it is at any other packet: short runs too have the average loss. */
    double draw = lh_prng_double(&link->loss_prng);
    link->in_burst = is_bursty(spec) && draw < spec->loss;
}

uint64_t lh_link_queue_bytes(const struct lh_link_spec *spec)
{
    if (spec->queue_bytes != 0)
        return spec->queue_bytes;
    uint128 bytes = (uint128)spec->rate_bps * LH_LINK_QUEUE_DEFAULT_NS / (BITS_PER_BYTE * LH_NS_PER_S);
    if (bytes < LH_LINK_QUEUE_DEFAULT_MIN_BYTES)
        return LH_LINK_QUEUE_DEFAULT_MIN_BYTES;
    return bytes < LH_LINK_QUEUE_DEFAULT_MAX_BYTES ? (uint64_t)bytes : LH_LINK_QUEUE_DEFAULT_MAX_BYTES;
}

/* How long the bytes that may wait take to pass. */
static lh_time queue_span_ns(const struct lh_link_spec *spec)
{
    uint64_t bytes = lh_link_queue_bytes(spec);
    uint128 span = (uint128)bytes * BITS_PER_BYTE * LH_NS_PER_S / spec->rate_bps;
    return span < LH_TIME_NEVER ? (lh_time)span : LH_TIME_NEVER;
}

/* When at most so many full queues wait. */
static lh_time ready_ns(const struct lh_link_state *link, lh_time now, lh_time queues)
{
    if (link->spec.rate_bps == 0 || link->bottleneck_free_ns <= now)
        return now;
    lh_time span = queue_span_ns(&link->spec);
    lh_time waiting = link->bottleneck_free_ns - now;
    return waiting / queues > span ? now + (waiting - queues * span) : now;
}

lh_time lh_link_ready_ns(const struct lh_link_state *link, lh_time now)
{
    return ready_ns(link, now, 1);
}

/* Takes the packet through the bottleneck; returns when its last bit has left. */
static lh_time pass_bottleneck(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    if (link->spec.rate_bps == 0)
        return now;
    if (link->bottleneck_free_ns <= now) {
        link->bottleneck_free_ns = now;
        link->bottleneck_rest = 0;
    }
    uint128 bit_ns = (uint128)wire_bytes * BITS_PER_BYTE * LH_NS_PER_S + link->bottleneck_rest;
    link->bottleneck_free_ns += (lh_time)(bit_ns / link->spec.rate_bps);
    link->bottleneck_rest = (uint64_t)(bit_ns % link->spec.rate_bps);
    return link->bottleneck_free_ns;
}

/* Gilbert-Elliott: the bad state loses every packet and lasts `burst` packets in the mean, so it ends with
 * chance 1 / burst; the chance that it begins follows from the average. Exactly one draw a packet. */
static bool draw_loss(struct lh_link_state *link)
{
    const struct lh_link_spec *spec = &link->spec;
    double draw = lh_prng_double(&link->loss_prng);
    if (!is_bursty(spec))
        return draw < spec->loss;
    double leave = 1 / spec->burst_packets;
    double enter = leave * spec->loss / (1 - spec->loss);
    link->in_burst = link->in_burst ? draw >= leave : draw < enter;
    return link->in_burst;
}

static void draw_timing(struct lh_link_state *link, struct lh_link_fate *fate, lh_time left_ns)
{
    const struct lh_link_spec *spec = &link->spec;
    lh_time arrive_ns = left_ns + spec->delay_ns;
    fate->arrive_ns[0] = arrive_ns;
    fate->arrive_ns[1] = arrive_ns;
    if (spec->jitter_ns == 0 && !(spec->reorder > 0))
        return;
    fate->reordered = lh_prng_double(&link->timing_prng) < spec->reorder;
    /* An eighth of the round trip is a quarter of one way. */
    lh_time held_ns = spec->jitter_ns != 0 ? spec->jitter_ns : spec->delay_ns / 4;
    for (unsigned i = 0; i < 2; i++) {
        fate->arrive_ns[i] += lh_prng_below(&link->timing_prng, spec->jitter_ns + 1);
        fate->arrive_ns[i] += fate->reordered ? held_ns : 0;
    }
}

static void draw_damage(struct lh_link_state *link, struct lh_link_fate *fate)
{
    const struct lh_link_spec *spec = &link->spec;
    if (!(spec->duplicate > 0) && !(spec->corrupt > 0))
        return;
    fate->copies = lh_prng_double(&link->damage_prng) < spec->duplicate ? 2 : 1;
    fate->corrupted = lh_prng_double(&link->damage_prng) < spec->corrupt;
    fate->corrupt_bit = (uint32_t)(lh_prng_next(&link->damage_prng) >> 32);
}

static struct lh_link_fate decide(struct lh_link_state *link, lh_time now, uint32_t wire_bytes, bool full)
{
    struct lh_link_fate fate = {.accepted = true, .copies = 1};
    if (full && !link->spec.drop_tail)
        return (struct lh_link_fate){.accepted = false};
    lh_time left_ns = full ? now : pass_bottleneck(link, now, wire_bytes);
    /* Drawn for a packet that the queue drops too: each packet has its draws, whatever the rate. */
    bool lost = draw_loss(link);
    draw_timing(link, &fate, left_ns);
    draw_damage(link, &fate);
    assert(fate.arrive_ns[0] >= now && fate.arrive_ns[1] >= now);
    if (full || lost)
        return (struct lh_link_fate){.accepted = true, .dropped = true};
    return fate;
}

struct lh_link_fate lh_link_decide(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    return decide(link, now, wire_bytes, ready_ns(link, now, 1) > now);
}

struct lh_link_fate lh_link_decide_control(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    return decide(link, now, wire_bytes, ready_ns(link, now, link->spec.drop_tail ? 1 : 2) > now);
}
