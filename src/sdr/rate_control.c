/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate_control.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <longhaul/congestion.h>
#include <longhaul/types.h>

#include "base/min_max.h"
#include "congestion/congestion_table.h"
#include "congestion/flight.h"
#include "congestion/pacer.h"

/* ---- delay log ------------------------------------------------------------------------------------- */

#define QUARTERS_LOG 2u
#define SMOOTHING    8

/* Below 4 ns each value has a bucket; from there on four an octave. */
static uint32_t bucket_of(lh_time delay_ns)
{
    if (delay_ns < 1u << QUARTERS_LOG)
        return (uint32_t)delay_ns;
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(delay_ns);
    uint32_t quarter = (uint32_t)(delay_ns >> (octave - QUARTERS_LOG)) & ((1u << QUARTERS_LOG) - 1);
    uint32_t bucket = ((octave - QUARTERS_LOG + 1) << QUARTERS_LOG) + quarter;
    return bucket < DELAY_LOG_BUCKETS ? bucket : DELAY_LOG_BUCKETS - 1;
}

/* The longest delay of a bucket. */
static lh_time end_of(uint32_t bucket)
{
    if (bucket < 1u << QUARTERS_LOG)
        return bucket;
    uint32_t shift = (bucket >> QUARTERS_LOG) - 1;
    lh_time first = (lh_time)((1u << QUARTERS_LOG) + (bucket & ((1u << QUARTERS_LOG) - 1))) << shift;
    return first + ((lh_time)1 << shift) - 1;
}

static void add_recent(struct delay_log *log, lh_time rtt_ns)
{
    bool first = log->samples % DELAY_LOG_RECENT == 0;
    if (first)
        log->recent_ns[0] = log->recent_ns[1];
    log->recent_ns[1] = first ? rtt_ns : lh_earlier(log->recent_ns[1], rtt_ns);
}

void delay_log_add(struct delay_log *log, lh_time rtt_ns)
{
    if (log->minimum_ns == 0 || rtt_ns < log->minimum_ns)
        log->minimum_ns = rtt_ns;
    lh_time delay_ns = rtt_ns - log->minimum_ns;
    log->smoothed_ns = log->samples == 0
                           ? delay_ns
                           : log->smoothed_ns - log->smoothed_ns / SMOOTHING + delay_ns / SMOOTHING;
    add_recent(log, rtt_ns);
    log->samples++;
    if (log->buckets != NULL) {
        log->buckets[bucket_of(delay_ns)]++;
        log->counted++;
    }
}

lh_time delay_log_standing(const struct delay_log *log)
{
    if (log->samples < DELAY_LOG_RECENT)
        return 0;
    /* The first of these are all there is. */
    bool whole = log->samples % DELAY_LOG_RECENT == 0;
    lh_time shortest_ns = whole ? log->recent_ns[1] : lh_earlier(log->recent_ns[0], log->recent_ns[1]);
    return shortest_ns - log->minimum_ns;
}

lh_time delay_log_quantile(const struct delay_log *log, double share)
{
    double wanted = share * (double)log->counted;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < DELAY_LOG_BUCKETS && log->counted > 0; i++) {
        seen += log->buckets[i];
        if ((double)seen >= wanted)
            return end_of(i);
    }
    return 0;
}

/* ---- read rate ------------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

#define BITS_PER_BYTE 8u
#define FASTER        4u /* by this part it has read more */

static uint64_t rate_of(uint64_t bytes, lh_time span_ns)
{
    wide bps = span_ns > 0 ? (wide)bytes * BITS_PER_BYTE * LH_NS_PER_S / span_ns : 0;
    return bps < UINT64_MAX ? (uint64_t)bps : UINT64_MAX;
}

/* Drops of one pause are reported in two spans, maybe. */
static void end_span(struct read_rate *rate, uint64_t bps, bool dropped)
{
    rate->best_bps = lh_max(rate->best_bps, bps);
    if (dropped && !rate->dropped_before)
        rate->receiver_bps = lh_max(bps, 1);
    else if (dropped || rate->dropped_before)
        rate->receiver_bps = lh_max(rate->receiver_bps, bps);
    else if (lh_sub_sat(bps, rate->receiver_bps) > rate->receiver_bps / FASTER)
        rate->receiver_bps = 0;
    rate->dropped_before = dropped;
}

void read_rate_note(struct read_rate *rate, uint64_t arrived_bytes, uint64_t dropped_packets,
                    lh_time rtt_ns, lh_time now)
{
    lh_time span_ns = now - rate->since_ns;
    uint64_t bps = rate_of(arrived_bytes - rate->since_bytes, span_ns);
    bool dropped = dropped_packets > rate->since_dropped, first = rate->since_ns == 0;
    if (dropped && rate->receiver_bps == 0)
        rate->receiver_bps = first ? 1 : lh_max(bps, 1);
    if (!first && span_ns < lh_max(READ_RATE_ROUNDS * rtt_ns, READ_RATE_MIN_NS))
        return;
    if (!first)
        end_span(rate, bps, dropped);
    rate->since_ns = now;
    rate->since_bytes = arrived_bytes;
    rate->since_dropped = dropped_packets;
}

/* ---- rate control ---------------------------------------------------------------------------------- */

#define RATE_HOST_SHARE_NS (500 * LH_NS_PER_US) /* of a round trip: two hosts that are not always running */
#define RATE_BURST_MAX     ((uint64_t)256 * 1024)
#define RATE_BURST_SPAN_NS (250 * LH_NS_PER_US)

#define RECEIVER_SHARE   2u  /* of the peer's buffer is used: packets may take twice their usual memory */
#define RECEIVER_MIN     2u  /* packets */
#define RECEIVER_FIRST   64u /* likewise: many senders may begin at once, and have one socket at first */
#define BURST_PACKETS    2u
#define ARREARS_SHARE    16u /* of a round trip */
#define ARREARS_MAX_NS   (2 * LH_NS_PER_MS)
#define ARREARS_MIN_NS   LH_NS_PER_MS /* workers wake late by as much, on any path */
#define GIVEN_ARREARS_NS LH_NS_PER_MS /* likewise, where the rate is told */
#define SILENCE_OVERDUES 4u
#define PROBE_OVERDUES                                                                                     \
    2u /* an answer takes a round trip more when its first report is lost; doubled with each */
#define SILENCE_MIN_NS (10 * LH_NS_PER_MS) /* the peer's host may not have run for so long */
/* What is in flight there waits in the peer's sockets: counted as lost too early, as much comes to it again.
 * The packets that ask after that are one at a time. */
#define SILENCE_NO_PATH_NS  (250 * LH_NS_PER_MS)
#define SILENCE_UNKNOWN_NS  LH_NS_PER_S
#define SILENCE_DOUBLES_MAX 3u
#define SILENCE_CHANCE      1e-3 /* of so many losses, one after the other, at random: it is the path, then */
#define PROBE_CHANCE        (1.0 / 16) /* all packets of a probe: as above */
#define RANDOM_MIN          1e-2       /* random loss is taken for no less: a lone packet proves nothing, */
#define RANDOM_MAX          0.5        /* and for no more */
#define REORDERING_MIN_NS   (250 * LH_NS_PER_US) /* channels are served in turn */
#define REACH_MAX           ((uint64_t)1 << 62)  /* places wrap */
#define DRAIN_CUT_MAX       8u
#define DRAIN_RISE          8u          /* a round trip without drops raises it by this part */
#define RECEIVER_RISE       8u          /* likewise */
#define RECEIVER_RISE_NS    LH_NS_PER_S /* without drops */

static uint64_t bytes_in(uint64_t rate_bps, lh_time span_ns)
{
    wide bytes = (wide)rate_bps * span_ns / (BITS_PER_BYTE * LH_NS_PER_S);
    return bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX;
}

/* ---- set-up ------------------------------------------------------------------------------------------ */

/* What leaves at once. */
static uint64_t burst_of(const struct rate_control *rate, uint64_t rate_bps)
{
    uint64_t minimum = (uint64_t)BURST_PACKETS * rate->path.mtu_bytes;
    uint64_t wanted = rate->decision.burst_bytes;
    if (wanted == 0)
        wanted = lh_min(bytes_in(rate_bps, RATE_BURST_SPAN_NS), RATE_BURST_MAX);
    return lh_max(wanted, minimum);
}

void rate_control_init(struct rate_control *rate, uint64_t rate_bps, uint32_t mtu_bytes)
{
    *rate = (struct rate_control){.drain_bps = LH_RATE_NONE, .receiver_packets = UINT64_MAX};
    rate->path.mtu_bytes = mtu_bytes;
    if (rate_bps == 0)
        return;
    rate->burst_bytes = burst_of(rate, rate_bps);
    uint64_t arrears = lh_min(bytes_in(rate_bps, GIVEN_ARREARS_NS), RATE_BURST_MAX);
    pacer_init(&rate->pacer, rate_bps, lh_max(arrears, rate->burst_bytes));
}

void rate_control_init_controlled(struct rate_control *rate, const struct lh_congestion *controller,
                                  void *state, struct flight_entry *ring)
{
    rate_control_init(rate, 0, 0);
    rate->controller = controller;
    rate->state = state;
    flight_init(&rate->flight, ring, ring ? RATE_FLIGHT_ENTRIES : 0);
}

static void take_measured(struct rate_control *rate, const struct rate_path *measured)
{
    rate->min_rtt_ns = measured->minimum_ns;
    rate->overdue_ns = measured->overdue_ns;
    rate->flight.reordering_ns = lh_max(measured->reordering_ns, REORDERING_MIN_NS);
}

/* What may be made up for when the worker did not run in time: little against what the path's queue takes. */
static uint64_t arrears_of(const struct rate_control *rate, uint64_t rate_bps)
{
    lh_time span_ns = lh_min(rate->min_rtt_ns / ARREARS_SHARE, ARREARS_MAX_NS);
    uint64_t late = lh_min(bytes_in(rate_bps, ARREARS_MIN_NS), RATE_BURST_MAX);
    uint64_t arrears = lh_max(bytes_in(rate_bps, span_ns), late);
    return lh_max(rate->burst_bytes, rate->decision.burst_bytes ? 0 : arrears);
}

/* A delay that is emulated makes a network of it. */
static bool is_local(const struct rate_control *rate)
{
    return rate->same_host && rate->min_rtt_ns < RATE_HOST_SHARE_NS && rate->receiver_packets != UINT64_MAX;
}

static void decide(struct rate_control *rate, lh_time now)
{
    rate->controller->decide(rate->state, now, &rate->decision);
    if (is_local(rate)) {
        rate->decision.rate_bps = LH_RATE_NONE;
        rate->decision.window_bytes = UINT64_MAX;
    }
    uint64_t rate_bps = lh_min(rate->decision.rate_bps, rate->path.rate_max_bps);
    rate_bps = lh_max(lh_min(rate_bps, rate->drain_bps), 1);
    if (rate_bps == LH_RATE_NONE)
        rate_bps = 0;
    else
        rate_bps = lh_min(rate_bps, RATE_MAX_BPS);
    rate->burst_bytes = burst_of(rate, rate_bps);
    pacer_change(&rate->pacer, now, rate_bps, arrears_of(rate, rate_bps));
}

static void start_controller(struct rate_control *rate, lh_time now)
{
    rate->controller->start(rate->state, &rate->path, rate->params, now);
    decide(rate, now);
}

void rate_control_start(struct rate_control *rate, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], uint64_t receiver_bytes,
                        const struct rate_path *measured, lh_time now)
{
    assert(rate->controller && !rate->started && path->mtu_bytes > 0);
    rate->path = *path;
    if (receiver_bytes > 0)
        rate->receiver_packets = lh_max(receiver_bytes / RECEIVER_SHARE / path->mtu_bytes, RECEIVER_MIN);
    rate->receiver_max = rate->receiver_packets;
    memcpy(rate->params, params, sizeof rate->params);
    rate->started = true;
    take_measured(rate, measured);
    start_controller(rate, now);
}

bool rate_control_on_measured(struct rate_control *rate, const struct rate_path *measured, lh_time now)
{
    lh_time known_ns = rate->path.rtt_ns;
    if (rate->delays.minimum_ns !=
        0) /* the controller knows what packets took: less than half is worth it */
        known_ns = lh_min(known_ns, rate->delays.minimum_ns) / 2;
    take_measured(rate, measured);
    if (!rate->started || measured->minimum_ns == 0 || (known_ns != 0 && measured->minimum_ns >= known_ns))
        return false;
    rate->path.rtt_ns = measured->minimum_ns;
    start_controller(rate, now);
    return true;
}

/* ---- room -------------------------------------------------------------------------------------------- */

static uint64_t packets_in_flight(const struct rate_control *rate)
{
    const struct flight *flight = &rate->flight;
    return flight->sent_packets - flight->arrived_packets - flight->lost_packets + rate->reserved_packets;
}

static uint64_t bytes_in_flight(const struct rate_control *rate)
{
    return flight_in_flight_bytes(&rate->flight) + rate->reserved_bytes;
}

/* Packets that are on the path, and not at either host, when it is full. */
static uint64_t packets_on_path(const struct rate_control *rate)
{
    lh_time rtt_ns = rate->min_rtt_ns;
    if (rtt_ns <= RATE_HOST_SHARE_NS || rate->no_path)
        return 0;
    lh_time path_ns = rtt_ns - RATE_HOST_SHARE_NS;
    uint64_t bytes = rate->pacer.rate_bps != 0
                         ? bytes_in(rate->pacer.rate_bps, path_ns)
                         : (uint64_t)((wide)rate->decision.window_bytes * path_ns / rtt_ns);
    return bytes / rate->path.mtu_bytes;
}

/* The controller's window is for the path; what leaves at its rate while a report is held, or while a host
 * does not run, is beside that. Not more than has arrived at all. */
static uint64_t window_now(const struct rate_control *rate)
{
    uint64_t held = bytes_in(rate->pacer.rate_bps, RATE_HOST_SHARE_NS + ARREARS_MIN_NS);
    uint64_t window = rate->decision.window_bytes;
    if (rate->decision.window_is_exact)
        return window;
    held = lh_min(held, rate->flight.arrived_bytes);
    return window < UINT64_MAX - held ? window + held : UINT64_MAX;
}

static void bound_bytes(struct rate_room *room, uint64_t bytes, enum lh_limit limit)
{
    if (bytes >= room->bytes)
        return;
    room->bytes = bytes;
    room->limit = limit;
}

static void bound_packets(struct rate_room *room, uint64_t packets, uint32_t mtu, enum lh_limit limit)
{
    room->packets = lh_min(room->packets, packets);
    if (packets < UINT64_MAX / mtu)
        bound_bytes(room, packets * mtu, limit);
}

static uint64_t receiver_room(const struct rate_control *rate)
{
    uint64_t maximum = rate->receiver_packets;
    if (maximum == UINT64_MAX)
        return UINT64_MAX;
    if (is_local(rate)) /* where no controller starts slowly */
        maximum = lh_min(maximum, RECEIVER_FIRST + rate->flight.arrived_packets);
    return lh_sub_sat(maximum + packets_on_path(rate), packets_in_flight(rate));
}

/* Packets that are all lost at random no more often than that, where as many are lost as so far. */
static uint64_t packets_beyond_chance(const struct rate_control *rate, double chance)
{
    double lost = (double)lh_sub_sat(rate->flight.lost_packets, rate->vanished_packets);
    double share = lost / (lost + (double)rate->flight.arrived_packets + 1);
    uint64_t packets = 0;
    share = share < RANDOM_MIN ? RANDOM_MIN : share < RANDOM_MAX ? share : RANDOM_MAX;
    for (double all_lost = 1; all_lost > chance; all_lost *= share) /* at most 10 times */
        packets++;
    return packets;
}

struct rate_room rate_control_room(const struct rate_control *rate, lh_time now)
{
    struct rate_room room = {pacer_allowance(&rate->pacer, now), UINT64_MAX, LH_LIMIT_RATE};
    if (!rate->controller)
        return room;
    if (rate->idle && rate->pacer.rate_bps != 0)
        room.bytes = lh_min(room.bytes, rate->burst_bytes);
    uint64_t in_flight = bytes_in_flight(rate);
    bool none = packets_in_flight(rate) == 0;
    if (!rate->started || (rate->silent && !none))
        return (struct rate_room){0, 0, LH_LIMIT_WINDOW};
    /* When nothing is in flight a packet may leave, or nothing would ever move. */
    uint64_t minimum = none ? rate->path.mtu_bytes : 0;
    bound_bytes(&room, lh_max(lh_sub_sat(window_now(rate), in_flight), minimum), LH_LIMIT_WINDOW);
    bound_bytes(&room, lh_max(lh_sub_sat(rate->path.window_max_bytes, in_flight), minimum),
                LH_LIMIT_USER_WINDOW);
    bound_packets(&room, receiver_room(rate), rate->path.mtu_bytes, LH_LIMIT_RECEIVER);
    if (rate->silent)
        bound_packets(&room, packets_beyond_chance(rate, PROBE_CHANCE), rate->path.mtu_bytes,
                      LH_LIMIT_WINDOW);
    /* A packet without credit asks again: the report that granted more may have been lost. */
    uint64_t sent = rate->flight.sent_bytes + rate->reserved_bytes;
    bound_bytes(&room, lh_max(lh_sub_sat(rate->decision.total_bytes, sent), minimum), LH_LIMIT_CREDIT);
    return room;
}

uint64_t rate_control_reach(const struct rate_control *rate, const struct rate_room *room)
{
    return rate->passed_bytes + lh_min(room->bytes, REACH_MAX);
}

lh_time rate_control_ready(const struct rate_control *rate, enum lh_limit limit, lh_time now,
                           uint64_t queued_bytes, uint64_t ahead_bytes)
{
    if (limit != LH_LIMIT_RATE)
        return LH_TIME_NEVER;
    /* Half a burst: a worker that wakes for each packet does nothing else. An empty packet waits, too, while
     * nothing may leave. */
    uint64_t wanted = lh_max(lh_min(rate->burst_bytes / 2, queued_bytes), 1);
    return pacer_ready(&rate->pacer, now, ahead_bytes + wanted);
}

lh_time rate_control_full(const struct rate_control *rate)
{
    return rate->pacer.rate_bps != 0 ? rate->pacer.free_ns : LH_TIME_NEVER;
}

/* ---- sends ------------------------------------------------------------------------------------------- */

void rate_control_reserve(struct rate_control *rate, uint64_t packets, uint64_t bytes, lh_time now)
{
    bool all = pacer_allowance(&rate->pacer, now) >= rate->pacer.burst_bytes;
    if (rate->idle && bytes > 0) {
        pacer_bound(&rate->pacer, now, rate->burst_bytes);
        rate->idle = false;
    }
    pacer_on_sent(&rate->pacer, now, bytes);
    rate->passed_bytes += bytes;
    if (!rate->controller)
        return;
    /* This host did not keep up with the rate, and no window held it back: what is measured is not the
     * path. */
    uint64_t in_flight = bytes_in_flight(rate);
    if (all && in_flight > 0 && in_flight < rate->decision.window_bytes / 4 * 3)
        flight_on_limited(&rate->flight);
    rate->reserved_packets += packets;
    rate->reserved_bytes += bytes;
}

static void unreserve(struct rate_control *rate, uint64_t packets, uint64_t bytes)
{
    assert(rate->reserved_packets >= packets && rate->reserved_bytes >= bytes);
    rate->reserved_packets -= packets;
    rate->reserved_bytes -= bytes;
}

void rate_control_on_dropped(struct rate_control *rate, uint64_t bytes)
{
    rate->passed_bytes += bytes;
}

void rate_control_on_refused(struct rate_control *rate, uint64_t packets, uint64_t bytes)
{
    rate->passed_bytes -= bytes;
    pacer_on_refused(&rate->pacer, bytes);
    if (rate->controller)
        unreserve(rate, packets, bytes);
}

void rate_control_on_run(struct rate_control *rate, uint64_t key, uint32_t packets, uint64_t bytes,
                         lh_time now)
{
    unreserve(rate, packets, bytes);
    rate->probes +=
        rate->silent && flight_is_settled(&rate->flight); /* what follows at once is the same probe */
    flight_on_sent(&rate->flight, key, packets, bytes, now);
}

void rate_control_on_sent(struct rate_control *rate, uint64_t bytes, uint64_t queued_bytes, lh_time now)
{
    if (rate->controller->on_sent)
        rate->controller->on_sent(rate->state, bytes, bytes_in_flight(rate), now);
    /* Less than a packet waits: what is delivered meanwhile is all that there was to send. So has Linux it,
     * in tcp_rate_check_app_limited(). */
    rate->idle = queued_bytes < rate->path.mtu_bytes;
    if (rate->idle)
        flight_on_limited(&rate->flight);
    decide(rate, now);
}

/* ---- reports, time ----------------------------------------------------------------------------------- */

/* A round trip's worth that even the smallest socket holds. */
static uint64_t drain_min_bps(const struct rate_control *rate)
{
    wide bits = (wide)RECEIVER_MIN * rate->path.mtu_bytes * BITS_PER_BYTE * LH_NS_PER_S;
    return (uint64_t)(bits / (rate->min_rtt_ns + RATE_HOST_SHARE_NS));
}

/* The receiver's kernel had no room: from now on at most what the receiver reads, and less at once. One cut a
 * round trip. */
static void on_drops(struct rate_control *rate, const struct lh_congestion_feedback *feedback)
{
    if (feedback->now < rate->drained_ns + rate->min_rtt_ns + RATE_HOST_SHARE_NS)
        return;
    uint64_t rate_bps = rate->pacer.rate_bps ? rate->pacer.rate_bps : RATE_MAX_BPS;
    uint64_t read_bps = feedback->rate_bps ? feedback->rate_bps : rate_bps / 2;
    /* A host that did not run for a minute reads fast again when it does; and it may say what it likes. */
    uint64_t min_bps = lh_max(rate->pacer.rate_bps / DRAIN_CUT_MAX, drain_min_bps(rate));
    rate->drain_bps = lh_max(lh_min(read_bps, rate_bps), min_bps);
    rate->drained_ns = feedback->now;
    if (rate->receiver_packets != UINT64_MAX)
        rate->receiver_packets = lh_max(rate->receiver_packets - rate->receiver_packets / 4, RECEIVER_MIN);
    rate->receiver_ns = feedback->now;
}

/* Slowly back: a pause of the receiver, or somebody else's packets, may have been all that it was. */
static void raise_receiver(struct rate_control *rate, lh_time now)
{
    if (rate->receiver_packets >= rate->receiver_max || now < rate->receiver_ns + RECEIVER_RISE_NS)
        return;
    rate->receiver_packets += rate->receiver_packets / RECEIVER_RISE + 1;
    rate->receiver_packets = lh_min(rate->receiver_packets, rate->receiver_max);
    rate->receiver_ns = now;
}

static void raise_drain(struct rate_control *rate, lh_time now)
{
    if (rate->drain_bps == LH_RATE_NONE || now < rate->drained_ns + rate->min_rtt_ns + RATE_HOST_SHARE_NS)
        return;
    rate->drain_bps += rate->drain_bps / DRAIN_RISE + 1;
    rate->drained_ns = now;
    if (rate->drain_bps / 2 > rate->decision.rate_bps || rate->drain_bps >= RATE_MAX_BPS)
        rate->drain_bps = LH_RATE_NONE;
}

bool rate_control_on_report(struct rate_control *rate, const struct flight_report *report,
                            uint32_t notifications, const struct rate_path *measured, lh_time now)
{
    struct lh_congestion_feedback feedback;
    if (!rate->started)
        return false;
    rate_control_on_measured(rate, measured, now);
    uint64_t arrived = rate->flight.arrived_packets;
    bool news = flight_on_report(&rate->flight, report, rate->min_rtt_ns, now, &feedback);
    if (!news && notifications == 0)
        return false;
    if (rate->flight.arrived_packets > arrived) {
        rate->silent = false;
        rate->probes = 0;
        rate->vanished_packets = 0;
    }
    if (feedback.rtt_ns > 0)
        delay_log_add(&rate->delays, feedback.rtt_ns);
    feedback.notifications = notifications;
    rate->marked_bytes += feedback.marked_bytes;
    read_rate_note(&rate->read, rate->flight.arrived_bytes, rate->flight.dropped_packets, rate->min_rtt_ns,
                   now);
    if (feedback.dropped_bytes > 0) {
        on_drops(rate, &feedback);
    } else {
        raise_drain(rate, now);
        raise_receiver(rate, now);
    }
    rate->controller->on_feedback(rate->state, &feedback);
    decide(rate, now);
    return true;
}

lh_time rate_control_silence_ns(const struct rate_control *rate)
{
    bool asks = rate->probes > 0;
    lh_time overdues_ns = (asks ? PROBE_OVERDUES : SILENCE_OVERDUES) * rate->overdue_ns;
    lh_time silence_ns = rate->overdue_ns ? overdues_ns : SILENCE_UNKNOWN_NS;
    lh_time min_ns = rate->no_path && !asks ? SILENCE_NO_PATH_NS : SILENCE_MIN_NS;
    return lh_max(silence_ns, min_ns) << lh_min(lh_sub_sat(rate->probes, 1), SILENCE_DOUBLES_MAX);
}

bool rate_control_on_time(struct rate_control *rate, lh_time now)
{
    struct lh_congestion_feedback feedback;
    if (!rate->started)
        return false;
    uint64_t lost_packets = rate->flight.lost_packets;
    bool overdue = flight_on_timer(&rate->flight, rate_control_silence_ns(rate), now, &feedback);
    bool due = rate->decision.next_ns <= now;
    if (overdue) {
        rate->vanished_packets += lh_sub_sat(rate->flight.lost_packets, lost_packets);
        rate->silent |= rate->vanished_packets >= packets_beyond_chance(rate, SILENCE_CHANCE);
        rate->controller->on_feedback(rate->state, &feedback);
    }
    if (due && rate->controller->on_timer)
        rate->controller->on_timer(rate->state, now);
    if (overdue || due)
        decide(rate, now);
    return overdue || due;
}

lh_time rate_control_next(const struct rate_control *rate)
{
    if (!rate->started)
        return LH_TIME_NEVER;
    return lh_earlier(flight_next(&rate->flight, rate_control_silence_ns(rate)), rate->decision.next_ns);
}

/* ---- arrival report -------------------------------------------------------------------------------- */

#define REPORTS_A_ROUND_TRIP 8u
#define REPEAT_UNKNOWN_NS    (10 * LH_NS_PER_MS) /* while the round trip is not known */

lh_time arrival_report_span(lh_time rtt_ns)
{
    lh_time span_ns = rtt_ns / REPORTS_A_ROUND_TRIP;
    return span_ns > ARRIVAL_REPORT_SPAN_NS ? span_ns : ARRIVAL_REPORT_SPAN_NS;
}

static lh_time repeat_span(lh_time rtt_ns)
{
    lh_time span_ns = rtt_ns ? rtt_ns : REPEAT_UNKNOWN_NS;
    return span_ns > ARRIVAL_REPORT_SPAN_NS ? span_ns : ARRIVAL_REPORT_SPAN_NS;
}

lh_time arrival_report_next(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns)
{
    uint64_t unreported = packets - report->packets;
    if (unreported > 0 && (report->packets < ARRIVAL_REPORT_FIRST ||
                           (report->packets_max > 0 && unreported > report->packets_max)))
        return 0;
    if (unreported > 0)
        return report->sent_ns +
               (packets < ARRIVAL_REPORT_EARLY ? ARRIVAL_REPORT_SPAN_NS : arrival_report_span(rtt_ns));
    return report->repeat ? report->sent_ns + repeat_span(rtt_ns) : LH_TIME_NEVER;
}

bool arrival_report_due(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns, lh_time now)
{
    return arrival_report_next(report, packets, rtt_ns) <= now;
}

void arrival_report_on_sent(struct arrival_report *report, uint64_t packets, lh_time now)
{
    report->repeat = packets != report->packets;
    report->packets = packets;
    report->sent_ns = now;
}

/* ---- credit grant ---------------------------------------------------------------------------------- */

uint8_t credit_grant_number(const struct lh_congestion *controller)
{
    return controller->receiver_credit ? congestion_wire_number(controller) : 0;
}

const struct lh_congestion *credit_grant_of(uint8_t number)
{
    const struct lh_congestion *controller = congestion_of_wire_number(number);
    return controller && controller->receiver_credit ? controller : NULL;
}

void credit_grant_start(struct credit_grant *grant, const struct lh_congestion *controller, void *state,
                        const struct lh_congestion_path *path, lh_time now)
{
    uint8_t params[LH_CONGESTION_PARAMS] = {0};
    *grant = (struct credit_grant){
        .controller = controller, .state = state, .mtu_bytes = path->mtu_bytes, .next_ns = now};
    controller->parse("", params);
    controller->receiver_start(state, path, params, now);
}

static uint64_t newly(uint64_t *known, uint64_t total)
{
    uint64_t more = total > *known ? total - *known : 0;
    *known += more;
    return more;
}

uint64_t credit_grant_renew(struct credit_grant *grant, uint64_t arrived_packets, uint64_t marked_packets,
                            lh_time now)
{
    if (!grant->controller)
        return UINT64_MAX;
    uint64_t arrived = newly(&grant->arrived_packets, arrived_packets);
    uint64_t marked = newly(&grant->marked_packets, marked_packets);
    if (arrived > 0)
        grant->controller->receiver_on_arrived(grant->state, arrived * grant->mtu_bytes,
                                               (marked < arrived ? marked : arrived) * grant->mtu_bytes,
                                               now);
    grant->next_ns = LH_TIME_NEVER;
    return grant->controller->receiver_credit(grant->state, now, &grant->next_ns);
}

/* ---- shared rate ----------------------------------------------------------------------------------- */

#define SHARED_RATE_SMALL 4096u /* bytes */

#define TURN_NS (250 * LH_NS_PER_US) /* of the rate */
/* A worker that comes late makes up for so much. */
#define ARREARS_NS  LH_NS_PER_MS
#define ARREARS_MAX ((uint64_t)256 * 1024)

static uint64_t shared_rate_bytes_in(uint64_t rate_bps, lh_time span_ns)
{
    return rate_bps / (BITS_PER_BYTE * LH_NS_PER_S / span_ns);
}

void shared_rate_init(struct shared_rate *rate, uint64_t rate_bps)
{
    uint64_t turn = lh_min(shared_rate_bytes_in(rate_bps, TURN_NS), SHARED_RATE_TURN_MAX);
    uint64_t arrears = lh_min(shared_rate_bytes_in(rate_bps, ARREARS_NS), ARREARS_MAX);
    *rate = (struct shared_rate){.turn_bytes = lh_max(turn, SHARED_RATE_TURN_MIN)};
    pacer_init(&rate->pacer, rate_bps, lh_max(arrears, rate->turn_bytes));
}

static void reserve(struct shared_rate *rate, struct rate_turn *turn, uint64_t bytes, uint64_t waiting,
                    lh_time now)
{
    uint64_t start = lh_max(turn->ended, lh_sub_sat(rate->virtual_bytes, rate->turn_bytes));
    bool passes = start < rate->virtual_bytes && waiting <= SHARED_RATE_SMALL;
    turn->at_ns = passes ? now : pacer_ready(&rate->pacer, now, bytes);
    turn->bytes += bytes;
    turn->ended = start + bytes;
    rate->virtual_bytes = lh_max(rate->virtual_bytes, start);
    pacer_on_sent(&rate->pacer, now, bytes);
}

uint64_t shared_rate_room(struct shared_rate *rate, struct rate_turn *turn, uint64_t waiting,
                          uint64_t first, lh_time now)
{
    assert(shared_rate_is_on(rate) && first <= rate->turn_bytes);
    uint64_t minimum = lh_max(first, 1); /* an empty packet counts, too */
    if (turn->bytes < minimum) {
        uint64_t more = lh_min(lh_sub_sat(waiting, turn->bytes), rate->turn_bytes);
        reserve(rate, turn, lh_max(more, minimum - turn->bytes), waiting, now);
    }
    return turn->at_ns <= now ? turn->bytes : 0;
}

void shared_rate_on_sent(struct rate_turn *turn, uint64_t bytes)
{
    assert(bytes <= turn->bytes);
    turn->bytes -= bytes;
}
