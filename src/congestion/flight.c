/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/flight.h"

#include <assert.h>
#include <math.h>

#include <longhaul/congestion.h>

#include "base/min_max.h"

/* ---- flight ---------------------------------------------------------------------------------------- */

/*
 * What arrived and what is lost are counts, not sets of packets. Their sum is a position in the sequence of
 * sends: where the newest packet would be, had nothing been reordered. `tail` is the entry of that position.
 */

#define MERGED_PAUSE 16 /* part of a round trip: entries of one flow of packets are closer than that */

__extension__ typedef unsigned __int128 wide;

static uint64_t since(uint64_t earlier, uint64_t later)
{
    return later > earlier ? later - earlier : 0;
}

/* ---- the ring ---------------------------------------------------------------------------------------- */

static struct flight_entry *entry_at(const struct flight *flight, uint32_t index)
{
    return &flight->ring[index & (flight->size - 1)];
}

static uint64_t packets_before(const struct flight *flight, uint32_t index)
{
    return index == flight->head ? flight->sent_packets : entry_at(flight, index)->packets_before;
}

static uint64_t bytes_before(const struct flight *flight, uint32_t index)
{
    return index == flight->head ? flight->sent_bytes : entry_at(flight, index)->bytes_before;
}

static uint64_t settled_packets(const struct flight *flight)
{
    return flight->arrived_packets + flight->lost_packets;
}

static uint64_t settled_bytes(const struct flight *flight)
{
    return flight->arrived_bytes + flight->lost_bytes;
}

/* Bytes of the sends up to that position, which lies in that entry. */
static uint64_t bytes_until(const struct flight *flight, uint32_t index, uint64_t packets)
{
    uint64_t start = packets_before(flight, index), start_bytes = bytes_before(flight, index);
    uint64_t entry_packets = packets_before(flight, index + 1) - start;
    uint64_t entry_bytes = bytes_before(flight, index + 1) - start_bytes;
    return start_bytes + (uint64_t)((wide)entry_bytes * (packets - start) / entry_packets);
}

/* Bytes of the first so many packets; they end in the entry at tail, or just before it. */
static uint64_t bytes_of_first(const struct flight *flight, uint64_t packets)
{
    uint64_t start = packets_before(flight, flight->tail);
    assert(packets >= start);
    if (packets == start)
        return bytes_before(flight, flight->tail);
    return bytes_until(flight, flight->tail, packets);
}

/* The later one, extended by the earlier one. As if all of it had been sent at the start: none of it counts
 * as too new to have arrived, and round trips seem longer, not shorter; but not by a pause between the two,
 * which would look like a queue. */
static struct flight_entry merged(const struct flight *flight, const struct flight_entry *earlier,
                                  const struct flight_entry *later)
{
    struct flight_entry entry = *later;
    bool follows = later->key == earlier->key + earlier->packets;
    bool pause = flight->rtt_ns > 0 && later->keys_ns - earlier->keys_ns > flight->rtt_ns / MERGED_PAUSE;
    if (follows && !pause && later->packets <= UINT32_MAX - earlier->packets) {
        entry.key = earlier->key;
        entry.keys_ns = earlier->keys_ns;
        entry.packets += earlier->packets;
    }
    entry.sent_ns = earlier->sent_ns;
    entry.packets_before = earlier->packets_before;
    entry.bytes_before = earlier->bytes_before;
    entry.limited |= earlier->limited;
    return entry;
}

static void merge_all(struct flight *flight)
{
    for (uint32_t i = 0; i < flight->size / 2; i++)
        *entry_at(flight, flight->first + i) = merged(flight, entry_at(flight, flight->first + 2 * i),
                                                      entry_at(flight, flight->first + 2 * i + 1));
    flight->head = flight->first + flight->size / 2;
    flight->reachable = flight->first + (flight->reachable - flight->first) / 2;
}

static void make_space(struct flight *flight)
{
    if (flight->head - flight->first < flight->size)
        return;
    if (flight->first != flight->tail)
        flight->first++;
    else
        merge_all(flight);
}

/* ---- sends ------------------------------------------------------------------------------------------- */

void flight_init(struct flight *flight, struct flight_entry *ring, uint32_t size)
{
    assert(size == 0 || (size >= 2 && (size & (size - 1)) == 0));
    *flight = (struct flight){.ring = ring, .size = size};
}

bool flight_is_settled(const struct flight *flight)
{
    return flight->tail == flight->head;
}

void flight_move(struct flight *flight, struct flight_entry *ring, uint32_t size)
{
    assert(size == 0 ? flight_is_settled(flight) : size > flight->size && (size & (size - 1)) == 0);
    if (size == 0)
        flight->first = flight->reachable = flight->head;
    for (uint32_t i = flight->first; i != flight->head; i++)
        ring[i & (size - 1)] = *entry_at(flight, i);
    flight->ring = ring;
    flight->size = size;
}

uint64_t flight_in_flight_bytes(const struct flight *flight)
{
    return flight->sent_bytes - settled_bytes(flight);
}

void flight_on_sent(struct flight *flight, uint64_t key, uint32_t packets, uint64_t bytes, lh_time now)
{
    assert(packets > 0 && flight->size > 0);
    make_space(flight);
    if (settled_packets(flight) == flight->sent_packets)
        flight->base_peer_ns = 0;
    bool known = flight->base_peer_ns != 0;
    *entry_at(flight, flight->head++) = (struct flight_entry){
        .key = key,
        .packets = packets,
        .limited = flight->limited_until_packets != 0,
        .sent_ns = now,
        .keys_ns = now,
        .packets_before = flight->sent_packets,
        .bytes_before = flight->sent_bytes,
        .arrived_bytes = flight->arrived_bytes,
        .lost_bytes = flight->lost_bytes,
        .arrived_peer_ns = known ? flight->arrived_peer_ns : 0,
        .arrived_sent_ns = known ? flight->arrived_sent_ns : 0,
    };
    flight->sent_packets += packets;
    flight->sent_bytes += bytes;
}

void flight_on_limited(struct flight *flight)
{
    flight->limited_until_packets = lh_max(flight->sent_packets, 1);
}

/* ---- what arrived, what is lost ---------------------------------------------------------------------- */

/* Moves on to the entries that were sent a least round trip ago: the others cannot have arrived. */
static void reach(struct flight *flight, lh_time min_rtt_ns, lh_time now)
{
    lh_time until_ns = now > min_rtt_ns ? now - min_rtt_ns : 0;
    while (flight->reachable != flight->head && entry_at(flight, flight->reachable)->sent_ns <= until_ns)
        flight->reachable++;
}

static bool contains(const struct flight *flight, uint32_t index, uint64_t key)
{
    const struct flight_entry *entry = entry_at(flight, index);
    return key - entry->key < entry->packets;
}

static lh_time rtt_of(const struct flight *flight, uint32_t index, const struct flight_report *report,
                      lh_time now)
{
    return since(report->held_ns, since(entry_at(flight, index)->keys_ns, now));
}

/* The entry of a report's key: a packet that was retransmitted has several, and the one with a round trip as
 * that of the report before is taken. One that cannot have arrived yet is not, so no sample is below the
 * shortest round trip. At most one turn an entry of the ring. False: there is none. */
static bool find(const struct flight *flight, const struct flight_report *report, lh_time now,
                 uint32_t *index)
{
    lh_time nearest_ns = LH_TIME_NEVER;
    *index = 0;
    for (uint32_t i = flight->reachable; i != flight->first;) {
        lh_time rtt_ns = rtt_of(flight, --i, report, now);
        lh_time longer_ns = since(flight->rtt_ns, rtt_ns), shorter_ns = since(rtt_ns, flight->rtt_ns);
        if (nearest_ns != LH_TIME_NEVER && longer_ns >= nearest_ns)
            break; /* and so are those before */
        if (!contains(flight, i, report->key) || longer_ns + shorter_ns >= nearest_ns)
            continue;
        *index = i;
        nearest_ns = longer_ns + shorter_ns;
    }
    return nearest_ns != LH_TIME_NEVER;
}

/* Of the packet with that key, from 1. Where entries were merged, the keys are those of its last packets. */
static uint64_t position_in(const struct flight *flight, uint32_t index, uint64_t key)
{
    const struct flight_entry *entry = entry_at(flight, index);
    return packets_before(flight, index + 1) - (entry->packets - 1 - (key - entry->key));
}

static void on_missing(struct flight *flight, uint64_t missing, lh_time sent_ns)
{
    if (sent_ns >= flight->window_ns + flight->reordering_ns) {
        flight->missing_before = flight->reordering_ns > 0 ? flight->missing_now : missing;
        flight->missing_now = missing;
        flight->window_ns = sent_ns;
    }
    flight->missing_now = lh_min(flight->missing_now, missing);
}

/* So many more arrived, and that many are lost in all. */
static void settle(struct flight *flight, uint64_t newly_arrived, uint64_t lost_packets)
{
    uint64_t packets = settled_packets(flight), bytes = settled_bytes(flight);
    uint64_t lost_before = flight->lost_packets;
    flight->arrived_packets += newly_arrived;
    flight->lost_packets = lost_packets;
    assert(settled_packets(flight) >= packets && settled_packets(flight) <= flight->sent_packets);
    while (flight->tail != flight->head &&
           packets_before(flight, flight->tail + 1) <= settled_packets(flight))
        flight->tail++;
    if ((int32_t)(flight->tail - flight->reachable) > 0) /* a timer found them */
        flight->reachable = flight->tail;

    uint64_t newly = since(bytes, bytes_of_first(flight, settled_packets(flight)));
    if (lost_packets > lost_before) {
        uint64_t lost =
            (uint64_t)((wide)newly * (lost_packets - lost_before) / (settled_packets(flight) - packets));
        flight->lost_bytes += lost;
        flight->arrived_bytes += newly - lost;
    } else {
        uint64_t late =
            lost_before == 0
                ? 0
                : (uint64_t)((wide)flight->lost_bytes * (lost_before - lost_packets) / lost_before);
        flight->lost_bytes -= late;
        flight->arrived_bytes += newly + late;
    }
    if (settled_packets(flight) > flight->limited_until_packets)
        flight->limited_until_packets = 0;
}

/* ---- feedback ---------------------------------------------------------------------------------------- */

static uint64_t rate_of(uint64_t bytes, lh_time interval_ns)
{
    if (interval_ns == 0)
        return 0;
    wide rate_bps = (wide)bytes * 8 * LH_NS_PER_S / interval_ns;
    return rate_bps < LH_RATE_NONE ? (uint64_t)rate_bps : LH_RATE_NONE - 1;
}

/* When the newest of the settled packets was sent. */
static lh_time settled_sent_ns(const struct flight *flight)
{
    bool within = settled_packets(flight) > packets_before(flight, flight->tail);
    uint32_t index = within ? flight->tail : flight->tail - 1;
    return !within && flight->tail == flight->first ? 0 : entry_at(flight, index)->sent_ns;
}

/* Packets of the receiver's counts, as bytes of packets of the mean size. */
static uint64_t as_bytes(const struct flight *flight, uint64_t packets)
{
    return flight->sent_packets == 0
               ? 0
               : (uint64_t)((wide)packets * flight->sent_bytes / flight->sent_packets);
}

/* The receiver grants it on top of what arrived by its own count. That is behind this one once a lie has come
 * to light: what it claimed may have been lost, and no credit ever comes for that. */
static uint64_t credit_of(const struct flight *flight)
{
    uint64_t claimed = as_bytes(flight, since(flight->arrived_reported, flight->arrived_packets));
    return flight->credit_bytes < UINT64_MAX - claimed ? flight->credit_bytes + claimed : UINT64_MAX;
}

static void fill_totals(const struct flight *flight, struct lh_congestion_feedback *feedback)
{
    feedback->in_flight_bytes = flight_in_flight_bytes(flight);
    feedback->arrived_total_bytes = flight->arrived_bytes;
    feedback->lost_total_bytes = flight->lost_bytes;
    feedback->passed_total_bytes = lh_max(flight->passed_bytes, flight->arrived_bytes);
    feedback->credit_bytes = credit_of(flight);
}

static void fill_rate(const struct flight *flight, const struct flight_entry *entry, lh_time peer_ns,
                      lh_time sent_ns, struct lh_congestion_feedback *feedback)
{
    bool own = entry->arrived_peer_ns != 0;
    if (!own && flight->base_peer_ns == 0)
        return;
    lh_time sends_ns = since(own ? entry->arrived_sent_ns : flight->base_sent_ns, sent_ns);
    lh_time arrivals_ns = since(own ? entry->arrived_peer_ns : flight->base_peer_ns, peer_ns);
    uint64_t before = own ? entry->arrived_bytes : flight->base_arrived_bytes;
    uint64_t settled = before + (own ? entry->lost_bytes : flight->base_lost_bytes);
    if (sends_ns == 0 || arrivals_ns == 0)
        return;
    feedback->rate_bps = rate_of(flight->arrived_bytes - before, lh_max(sends_ns, arrivals_ns));
    feedback->sends_bps = rate_of(settled_bytes(flight) - settled, sends_ns);
    feedback->rate_is_limited = entry->limited;
}

static void fill_sample(struct flight *flight, uint32_t index, const struct flight_report *report,
                        lh_time min_rtt_ns, struct lh_congestion_feedback *feedback)
{
    const struct flight_entry *entry = entry_at(flight, index);
    feedback->sent_ns = entry->keys_ns;
    feedback->rtt_ns = lh_max(rtt_of(flight, index, report, feedback->now), min_rtt_ns);
    flight->rtt_ns = feedback->rtt_ns;
    feedback->arrived_at_send_bytes = entry->arrived_bytes;
    feedback->lost_at_send_bytes = entry->lost_bytes;
    feedback->in_flight_at_send_bytes =
        bytes_before(flight, index + 1) - entry->arrived_bytes - entry->lost_bytes;
    /* Since one that a timer took for lost there was a silence. */
    if (packets_before(flight, index) >= flight->overdue_packets)
        fill_rate(flight, entry, report->arrived_ns, lh_max(entry->keys_ns, settled_sent_ns(flight)),
                  feedback);
}

/* The receiver's clock at the last report, and what is measured from one report to the next. */
static void on_clock(struct flight *flight, lh_time peer_ns, struct lh_congestion_feedback *feedback)
{
    lh_time sent_ns = settled_sent_ns(flight);
    if (flight->base_peer_ns != 0) {
        feedback->train_bps = rate_of(feedback->arrived_bytes, since(flight->arrived_peer_ns, peer_ns));
        feedback->train_bytes = feedback->train_bps != 0 ? feedback->arrived_bytes : 0;
    } else {
        flight->base_peer_ns = peer_ns;
        flight->base_sent_ns = sent_ns;
        flight->base_arrived_bytes = flight->arrived_bytes;
        flight->base_lost_bytes = flight->lost_bytes;
    }
    flight->arrived_peer_ns = peer_ns;
    flight->arrived_sent_ns = lh_max(flight->arrived_sent_ns, sent_ns);
}

static void on_arrivals(struct flight *flight, const struct flight_report *report, uint64_t newly,
                        uint64_t reachable, lh_time min_rtt_ns, struct lh_congestion_feedback *feedback)
{
    uint64_t arrived = flight->arrived_packets + newly;
    uint64_t bytes_before_it = flight->arrived_bytes, lost_before_it = flight->lost_bytes;
    uint32_t index;
    /* Where its newest packet is an old one, those that arrived since were of no use to the receiver: it does
     * not say which they are. */
    bool named = report->arrived_ns != flight->arrived_peer_ns || flight->arrived_packets == 0;
    bool found = named && find(flight, report, feedback->now, &index);
    if (found) {
        uint64_t position = position_in(flight, index, report->key);
        uint64_t passed = lh_max(position, flight->overdue_packets);
        flight->passed_bytes = lh_max(flight->passed_bytes, bytes_until(flight, index, position));
        on_missing(flight, since(arrived, passed), entry_at(flight, index)->sent_ns);
    }
    /* Those that come late after all are among the new ones, and nothing is settled before it can have
     * arrived. */
    uint64_t late = named ? newly : 0;
    uint64_t lost =
        lh_max(lh_min(flight->missing_now, flight->missing_before), since(late, flight->lost_packets));
    settle(flight, newly, lh_min(lost, reachable - arrived));

    feedback->arrived_bytes = flight->arrived_bytes - bytes_before_it;
    feedback->lost_bytes = since(lost_before_it, flight->lost_bytes);
    if (found)
        fill_sample(flight, index, report, min_rtt_ns, feedback);
    on_clock(flight, report->arrived_ns, feedback);
}

/* What is new of a total of the receiver, `room` of it at most. */
static uint64_t advance(uint64_t *known, uint64_t reported, uint64_t room, bool newest)
{
    uint64_t newly = lh_min(since(*known, reported), room);
    *known = reported < *known && newest ? reported : *known + newly;
    return newly;
}

bool flight_on_report(struct flight *flight, const struct flight_report *report, lh_time min_rtt_ns,
                      lh_time now, struct lh_congestion_feedback *feedback)
{
    *feedback = (struct lh_congestion_feedback){.now = now};
    reach(flight, min_rtt_ns, now);
    uint64_t reachable = lh_max(packets_before(flight, flight->reachable), settled_packets(flight));
    uint64_t newly = advance(&flight->arrived_reported, report->arrived_packets,
                             reachable - flight->arrived_packets, report->newest);
    if (newly > 0)
        on_arrivals(flight, report, newly, reachable, min_rtt_ns, feedback);
    /* More than was sent are duplicates: they do not stand for what leaves next, which could not be timed. */
    if (flight->arrived_packets == flight->sent_packets && report->newest)
        flight->arrived_reported = report->arrived_packets;

    uint64_t marked = advance(&flight->marked_reported, report->marked_packets,
                              flight->arrived_packets - flight->marked_packets, report->newest);
    uint64_t undropped = since(flight->dropped_packets, flight->sent_packets - flight->arrived_packets);
    uint64_t dropped =
        advance(&flight->dropped_reported, report->dropped_packets, undropped, report->newest);
    uint64_t credit = advance(&flight->credit_bytes, report->credit_bytes, UINT64_MAX, report->newest);
    flight->marked_packets += marked;
    flight->dropped_packets += dropped;
    feedback->marked_bytes = lh_min(as_bytes(flight, marked), feedback->arrived_bytes);
    feedback->dropped_bytes = as_bytes(flight, dropped);
    fill_totals(flight, feedback);
    return newly > 0 || marked > 0 || dropped > 0 || credit > 0;
}

/* ---- what never arrives ------------------------------------------------------------------------------ */

lh_time flight_next(const struct flight *flight, lh_time overdue_ns)
{
    if (flight->tail == flight->head)
        return LH_TIME_NEVER;
    lh_time sent_ns = entry_at(flight, flight->tail)->sent_ns;
    return sent_ns < LH_TIME_NEVER - overdue_ns ? sent_ns + overdue_ns : LH_TIME_NEVER;
}

bool flight_on_timer(struct flight *flight, lh_time overdue_ns, lh_time now,
                     struct lh_congestion_feedback *feedback)
{
    if (flight_next(flight, overdue_ns) > now)
        return false;
    uint32_t index = flight->tail; /* ends at head, and passes an entry once only: it is settled then */
    while (index != flight->head && entry_at(flight, index)->sent_ns <= now - overdue_ns)
        index++;
    flight->overdue_packets = packets_before(flight, index);
    flight->passed_bytes = lh_max(flight->passed_bytes, bytes_before(flight, index));
    uint64_t lost_before = flight->lost_bytes;
    flight->missing_now = flight->missing_before = flight->overdue_packets - flight->arrived_packets;
    settle(flight, 0, flight->missing_now);
    *feedback = (struct lh_congestion_feedback){.now = now, .lost_bytes = flight->lost_bytes - lost_before};
    fill_totals(flight, feedback);
    return true;
}

/* ---- round trips ----------------------------------------------------------------------------------- */

#define DELAYED_ROUNDS 32
#define LITTLE_OVER    16 /* a part of the target: what is over by less is within its swings */
#define SAMPLE_PACKETS 64
#define CHANCE_LOSS    (1.0 / 16)

void round_trips_init(struct round_trips *rounds, const struct lh_congestion_path *path)
{
    *rounds = (struct round_trips){.mtu_bytes = path->mtu_bytes, .minimum_ns = path->rtt_ns};
}

static void keep_lower(lh_time *lowest_ns, lh_time ns)
{
    if (*lowest_ns == 0 || ns < *lowest_ns)
        *lowest_ns = ns;
}

/* The path has become longer, or somebody else keeps its queue full. With a packet in flight the queue is not
 * this flow's, and nobody aims at a longer one. */
static void raise_minimum(struct round_trips *rounds, lh_time target_ns, bool with_one)
{
    lh_time max_ns = with_one ? target_ns + target_ns / LITTLE_OVER : 2 * target_ns;
    if (rounds->queue_ns <= max_ns) {
        rounds->delayed_rounds = 0;
        rounds->delayed_lowest_ns = 0;
        return;
    }
    keep_lower(&rounds->delayed_lowest_ns, rounds->lowest_ns);
    if (++rounds->delayed_rounds < DELAYED_ROUNDS)
        return;
    rounds->minimum_ns = rounds->delayed_lowest_ns;
    rounds->delayed_rounds = 0;
    rounds->delayed_lowest_ns = 0;
}

bool round_trips_on_feedback(struct round_trips *rounds, const struct lh_congestion_feedback *feedback,
                             lh_time target_ns)
{
    rounds->arrived_bytes += (double)feedback->arrived_bytes;
    rounds->lost_bytes += (double)feedback->lost_bytes;
    if (feedback->rtt_ns == 0)
        return false;
    keep_lower(&rounds->minimum_ns, feedback->rtt_ns);
    keep_lower(&rounds->lowest_ns, feedback->rtt_ns);
    if (feedback->arrived_at_send_bytes < rounds->end_bytes)
        return false;
    rounds->end_bytes = feedback->arrived_total_bytes;
    rounds->queue_ns = rounds->lowest_ns - rounds->minimum_ns;
    bool with_one = feedback->in_flight_at_send_bytes <= rounds->mtu_bytes;
    raise_minimum(rounds, target_ns, with_one && rounds->slowed_by_delay);
    rounds->lowest_ns = 0;
    if (rounds->unjudged_rounds > 0) {
        rounds->unjudged_rounds--;
        rounds->arrived_bytes = rounds->lost_bytes = 0;
    }
    return true;
}

lh_time round_trips_queue_ns(const struct round_trips *rounds,
                             const struct lh_congestion_feedback *feedback)
{
    return feedback->rtt_ns > rounds->minimum_ns ? feedback->rtt_ns - rounds->minimum_ns : 0;
}

double round_trips_excess_loss(struct round_trips *rounds)
{
    double lost = rounds->lost_bytes, all = rounds->arrived_bytes + lost;
    if (all < (double)SAMPLE_PACKETS * rounds->mtu_bytes)
        return 0;
    rounds->arrived_bytes = rounds->lost_bytes = 0;
    return lost > all * CHANCE_LOSS ? lost / all : 0;
}

/* A round trip until the first packet that left later arrives, and one because losses are seen later. */
void round_trips_on_cut(struct round_trips *rounds)
{
    rounds->unjudged_rounds = 2;
}

/* ---- share ----------------------------------------------------------------------------------------- */

#define FIRST_PACKETS    10
#define DOUBLINGS        20.0
#define TARGET_RANGE     4.0
#define BURST_OF_WINDOW  (1.0 / 16)
#define STEP_OF_ROOT     0.5
#define OF_REMEMBERED    0.5
#define BITS_NS_A_BYTE_S 8e9

double share_step_bytes(double window_bytes, uint32_t mtu_bytes)
{
    double step = STEP_OF_ROOT * sqrt(window_bytes * mtu_bytes);
    return step > mtu_bytes ? step : mtu_bytes;
}

double share_smallness(double window_bytes, uint32_t mtu_bytes)
{
    if (window_bytes <= mtu_bytes)
        return 1;
    double smallness = 1 - log2(window_bytes / mtu_bytes) / DOUBLINGS;
    return smallness > 0 ? smallness : 0;
}

double share_target_ns(double base_ns, double window_bytes, uint32_t mtu_bytes)
{
    return base_ns * (1 + TARGET_RANGE * share_smallness(window_bytes, mtu_bytes));
}

double share_first_window_bytes(const struct lh_congestion_path *path)
{
    double minimum = (double)FIRST_PACKETS * path->mtu_bytes;
    double window = 0;
    if (path->rate_bps != 0)
        window = share_bytes_of((double)path->rate_bps, (double)path->rtt_ns);
    else if (path->remembered_rate_bps != 0)
        window = OF_REMEMBERED * share_bytes_of((double)path->remembered_rate_bps, (double)path->rtt_ns);
    return window > minimum ? window : minimum;
}

double share_bytes_of(double rate_bps, double rtt_ns)
{
    return rate_bps * rtt_ns / BITS_NS_A_BYTE_S;
}

double share_rate_of(double bytes, double rtt_ns)
{
    assert(rtt_ns > 0);
    return bytes / rtt_ns * BITS_NS_A_BYTE_S;
}

double share_delivered_bps(const struct lh_congestion_feedback *feedback)
{
    return feedback->rate_is_limited ? 0 : (double)feedback->rate_bps;
}

uint64_t share_rate_within(double rate_bps, const struct lh_congestion_path *path)
{
    double bounded = fmin(fmax(rate_bps, SHARE_RATE_MIN_BPS), SHARE_RATE_MAX_BPS);
    uint64_t rate = (uint64_t)bounded;
    return rate < path->rate_max_bps ? rate : path->rate_max_bps;
}

uint64_t share_window_within(double window_bytes, const struct lh_congestion_path *path)
{
    uint64_t window = window_bytes < path->mtu_bytes ? path->mtu_bytes
                      : window_bytes < 9e18          ? (uint64_t)window_bytes
                                                     : UINT64_MAX;
    return window < path->window_max_bytes ? window : path->window_max_bytes;
}

uint64_t share_burst_bytes(double window_bytes, const struct lh_congestion_path *path)
{
    return share_window_within(window_bytes * BURST_OF_WINDOW, path);
}
