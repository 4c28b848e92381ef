/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_search.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/probe.h>

/* ---- mtu search ------------------------------------------------------------------------------------ */

/* Tries of each size in a round: with 1 packet in 10 lost, 1 size in 1000 is misjudged, and found out in
 * the end. */
#define MTU_SEARCH_TRIES         3u
#define MTU_SEARCH_TRIES_CONFIRM 12u

/* IPv6's least, tunnels, PPPoE, Ethernet, jumbo frames of several makers, loopback. */
static const uint32_t usual_bytes[] = {576, 1280, 1400, 1420, 1480, 1492, 1500, 4352, 9000, 9216, 65535};
_Static_assert(sizeof usual_bytes / sizeof *usual_bytes < MTU_SEARCH_SIZES_MAX, "they fit a round");

void mtu_search_init(struct mtu_search *search, uint32_t floor_bytes, uint32_t ceiling_bytes)
{
    assert(floor_bytes > 0 && floor_bytes <= ceiling_bytes);
    *search = (struct mtu_search){
        .passed_bytes = floor_bytes - 1, .failed_bytes = ceiling_bytes + 1, .ceiling_bytes = ceiling_bytes};
}

static struct mtu_search_round usual_round(const struct mtu_search *search)
{
    struct mtu_search_round round = {.tries = MTU_SEARCH_TRIES};
    for (uint32_t i = 0; i < sizeof usual_bytes / sizeof *usual_bytes; i++)
        if (usual_bytes[i] > search->passed_bytes && usual_bytes[i] < search->ceiling_bytes)
            round.sizes[round.count++] = usual_bytes[i];
    round.sizes[round.count++] = search->ceiling_bytes;
    return round;
}

struct mtu_search_round mtu_search_next(const struct mtu_search *search)
{
    if (search->done)
        return (struct mtu_search_round){.count = 0};
    if (search->confirming)
        return (struct mtu_search_round){
            .count = 1, .sizes = {search->failed_bytes}, .tries = MTU_SEARCH_TRIES_CONFIRM};
    if (search->rounds == 0)
        return usual_round(search);
    struct mtu_search_round round = {.tries = MTU_SEARCH_TRIES};
    uint32_t between = search->failed_bytes - search->passed_bytes - 1;
    assert(between > 0);
    /* The first is the one above what passed: links have round numbers, and the usual ones were tried. */
    round.count = between < MTU_SEARCH_SIZES_MAX ? between : MTU_SEARCH_SIZES_MAX;
    for (uint32_t i = 0; i < round.count; i++)
        round.sizes[i] = search->passed_bytes + 1 + i * between / round.count;
    return round;
}

/* Nothing is left between: either the end, or what failed is tried again. */
static void close_in(struct mtu_search *search)
{
    if (search->failed_bytes > search->passed_bytes + 1)
        return;
    search->confirming = search->failed_bytes <= search->ceiling_bytes;
    search->done = !search->confirming;
}

void mtu_search_on_round(struct mtu_search *search, const struct mtu_search_round *round,
                         const bool *passed)
{
    assert(!search->done && round->count > 0);
    search->rounds++;
    if (search->confirming && !passed[0]) {
        search->done = true;
        return;
    }
    if (search->confirming)
        search->failed_bytes = search->ceiling_bytes + 1; /* misjudged; so may what is above it have been */
    search->confirming = false;
    for (uint32_t i = 0; i < round->count; i++)
        if (passed[i])
            search->passed_bytes = round->sizes[i];
    for (uint32_t i = 0; i < round->count; i++)
        if (round->sizes[i] > search->passed_bytes && round->sizes[i] < search->failed_bytes)
            search->failed_bytes = round->sizes[i];
    close_in(search);
    if (search->rounds >= MTU_SEARCH_ROUNDS_MAX)
        search->done = true;
}

/* ---- rate search ----------------------------------------------------------------------------------- */

/* Faster than any NIC; growing by four, 15 rounds. */
#define RATE_SEARCH_MAX_BPS       ((uint64_t)20 * 1000 * 1000 * 1000 * 1000)
#define RATE_SEARCH_CONFIRM_MAX   5u
#define RATE_SEARCH_SATURATED_MAX 3u

#define GROWTH 4u
/* Where it is not known whether the path or a pause of a host held the last train up. */
#define GROWTH_SATURATED 2u
/* Loss that the rate explains: more than twice what there is anyway, and 15 % more, which the few packets of
 * a train on a lossy path seldom reach by chance, and not twice. A train that is four times too fast loses
 * 75 %. */
#define LOSS_GROWTH 2.0
#define LOSS_SLACK  0.15
/* A path that loses more than this at the slowest rate is too slow for it. */
#define BASE_LOSS_MAX 0.5
/* Arriving at less than this share of the pace is arriving late. */
#define ON_TIME 0.9
/* Below what came through, and further down with each try. */
#define CONFIRM_FIRST 0.95
#define CONFIRM_NEXT  0.8

void rate_search_init(struct rate_search *search, uint64_t cap_bps)
{
    uint64_t cap = cap_bps > 0 && cap_bps < RATE_SEARCH_MAX_BPS ? cap_bps : RATE_SEARCH_MAX_BPS;
    *search = (struct rate_search){
        .cap_bps = cap, .offered_bps = cap < RATE_SEARCH_FIRST_BPS ? cap : RATE_SEARCH_FIRST_BPS};
}

/* What the path took to let that much through. */
static double carried(const struct rate_outcome *outcome)
{
    return outcome->loss < 1 ? outcome->delivered_bps / (1 - outcome->loss) : 0;
}

static void end(struct rate_search *search, double rate_bps, enum lh_probe_limit limit)
{
    search->rate_bps = rate_bps;
    search->limit = limit;
    search->done = true;
}

static void grow(struct rate_search *search, uint64_t factor)
{
    uint64_t next = search->offered_bps * factor;
    search->offered_bps = next < search->cap_bps ? next : search->cap_bps;
}

static void confirm(struct rate_search *search, double offered_bps)
{
    search->confirming = true;
    search->offered_bps = offered_bps >= 1000 ? (uint64_t)offered_bps : 1000;
    if (search->offered_bps > search->cap_bps)
        search->offered_bps = search->cap_bps;
}

static void on_confirmation(struct rate_search *search, const struct rate_outcome *outcome, bool lossy)
{
    search->confirmed++;
    if (!lossy)
        end(search, carried(outcome), search->limit);
    else if (search->confirmed >= RATE_SEARCH_CONFIRM_MAX)
        end(search, outcome->delivered_bps, search->limit);
    else
        confirm(search, (double)search->offered_bps * CONFIRM_NEXT);
}

/* Less came than was to be sent, and nothing was lost: something held it up, perhaps only a pause of a busy
 * host. Then a faster train does better; else the best of a few is what can be. */
static void on_saturation(struct rate_search *search, const struct rate_outcome *outcome)
{
    bool sender = !outcome->pushed_back && outcome->sent_bps < ON_TIME * (double)search->offered_bps;
    if (carried(outcome) > search->rate_bps) {
        search->rate_bps = carried(outcome);
        search->limit = sender ? LH_PROBE_LIMIT_SENDER : LH_PROBE_LIMIT_PATH;
    }
    if (++search->saturated >= RATE_SEARCH_SATURATED_MAX)
        end(search, search->rate_bps, search->limit != 0 ? search->limit : LH_PROBE_LIMIT_PATH);
    else if (!outcome->pushed_back)
        grow(search, GROWTH_SATURATED);
}

void rate_search_on_outcome(struct rate_search *search, const struct rate_outcome *outcome)
{
    assert(!search->done && outcome->loss >= 0 && outcome->loss <= 1);
    double offered = (double)search->offered_bps;
    if (search->rounds++ == 0)
        search->base_loss = outcome->loss < BASE_LOSS_MAX ? outcome->loss : BASE_LOSS_MAX;
    bool lossy = outcome->loss > LOSS_GROWTH * search->base_loss + LOSS_SLACK || outcome->endpoint_drops;
    if (search->confirming) {
        on_confirmation(search, outcome, lossy);
    } else if (lossy && !outcome->endpoint_drops && !search->again) {
        search->again = true;
    } else if (lossy) {
        search->limit = outcome->endpoint_drops ? LH_PROBE_LIMIT_RECEIVER : LH_PROBE_LIMIT_PATH;
        confirm(search, outcome->delivered_bps / (1 - search->base_loss) * CONFIRM_FIRST);
    } else if (carried(outcome) < ON_TIME * offered) {
        on_saturation(search, outcome);
    } else if (search->offered_bps >= search->cap_bps) {
        end(search, offered, LH_PROBE_LIMIT_ASKED);
    } else {
        search->rate_bps = carried(outcome);
        search->saturated = 0;
        search->again = false;
        grow(search, GROWTH);
    }
}

/* ---- schedule -------------------------------------------------------------------------------------- */

/* Shorter trials show little, so there are fewer of them then; and a trial has some packets. */
#define SCHEDULE_SPAN_MIN_NS (40 * LH_NS_PER_MS)

#define BITS_PER_BYTE 8u

lh_time schedule_gap_ns(uint64_t rate_bps, uint32_t wire_bytes)
{
    assert(rate_bps > 0);
    return (lh_time)wire_bytes * BITS_PER_BYTE * LH_NS_PER_S / rate_bps;
}

static lh_time span_of(const struct schedule_wish *wish, uint32_t trials)
{
    lh_time each = wish->left_ns / (trials * wish->size_count);
    return each > wish->overhead_ns ? each - wish->overhead_ns : 0;
}

static uint32_t packets_in(lh_time span_ns, lh_time gap_ns)
{
    lh_time packets = span_ns / gap_ns;
    if (packets < SCHEDULE_PACKETS_MIN)
        return SCHEDULE_PACKETS_MIN;
    return packets < LH_PROBE_PACKETS_MAX ? (uint32_t)packets : LH_PROBE_PACKETS_MAX;
}

struct schedule schedule_make(const struct schedule_wish *wish)
{
    assert(wish->trials > 0 && wish->size_count > 0 && wish->size_count <= LH_PROBE_SIZES_MAX);
    struct schedule made = {.trials = wish->trials};
    while (wish->packets == 0 && made.trials > 1 && span_of(wish, made.trials) < SCHEDULE_SPAN_MIN_NS)
        made.trials--;
    for (uint32_t i = 0; i < wish->size_count; i++) {
        lh_time gap_ns = schedule_gap_ns(wish->rate_bps, wish->header_bytes + wish->payload_bytes[i]);
        made.gap_ns[i] = gap_ns > SCHEDULE_GAP_MIN_NS ? gap_ns : SCHEDULE_GAP_MIN_NS;
        made.packets[i] =
            wish->packets > 0 ? wish->packets : packets_in(span_of(wish, made.trials), made.gap_ns[i]);
    }
    return made;
}
