/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/format/bottleneck.h"

/* Retransmitted: a message of 16 MiB needs four rounds or more then. Codes with the parity that they have by
 * default leave nothing to retransmit until about twice that is lost. */
#define LOSS_SHARE 0.05
/* A queue stands that is this part of a round trip, and no scheduler's noise. What jitter, reordering and a
 * pace of a few packets a round trip add to some packets is no queue: the shortest delay counts. */
#define STANDING_SHARE    4u
#define STANDING_NS       LH_NS_PER_MS
#define COMPETITION_SHARE 2u /* of the best rate */
#define BOTTLENECKS       (LH_BOTTLENECK_HOST + 1)

/* ---- where the time went ----------------------------------------------------------------------------- */

/* The part of a time that is in proportion to one of two others. */
static lh_time part_of(lh_time whole, lh_time one, lh_time others)
{
    return one + others > 0 ? (lh_time)((double)whole * ((double)one / (double)(one + others))) : 0;
}

struct bottleneck_times bottleneck_times_of(const lh_time limited_ns[LH_LIMITS],
                                            const struct tx_waits *waits)
{
    const lh_time *waited = waits->ns;
    lh_time idle = limited_ns[LH_LIMIT_IDLE], window = limited_ns[LH_LIMIT_USER_WINDOW];
    lh_time known = waited[TX_WAIT_MESSAGE] + waited[TX_WAIT_ACKNOWLEDGEMENT] + waited[TX_WAIT_SLOTS] +
                    waited[TX_WAIT_RECEIVE];
    lh_time buffer = part_of(window, waited[TX_WAIT_BUFFER], waited[TX_WAIT_WINDOW]);
    struct bottleneck_times times = {
        .acknowledgement_ns =
            part_of(idle, waited[TX_WAIT_ACKNOWLEDGEMENT], known - waited[TX_WAIT_ACKNOWLEDGEMENT]),
        .window_ns = window - buffer,
        .slots_ns = part_of(idle, waited[TX_WAIT_SLOTS], known - waited[TX_WAIT_SLOTS]),
        .receiver_ns = limited_ns[LH_LIMIT_RECEIVER] + buffer +
                       part_of(idle, waited[TX_WAIT_RECEIVE], known - waited[TX_WAIT_RECEIVE]),
        .pace_ns = limited_ns[LH_LIMIT_RATE] + limited_ns[LH_LIMIT_WINDOW] + limited_ns[LH_LIMIT_CREDIT],
        .device_ns = limited_ns[LH_LIMIT_FABRIC],
        .cpu_ns = limited_ns[LH_LIMIT_HOST],
    };
    times.message_ns =
        known > 0 ? part_of(idle, waited[TX_WAIT_MESSAGE], known - waited[TX_WAIT_MESSAGE]) : idle;
    return times;
}

static enum lh_bottleneck of_the_pace(const struct bottleneck_facts *facts)
{
    if (facts->given || facts->at_most)
        return LH_BOTTLENECK_RATE;
    return facts->receiver_slow ? LH_BOTTLENECK_RECEIVER : LH_BOTTLENECK_PATH;
}

static void add_up(const struct bottleneck_times *times, const struct bottleneck_facts *facts,
                   lh_time spent[BOTTLENECKS])
{
    spent[LH_BOTTLENECK_APPLICATION] = times->message_ns + times->acknowledgement_ns;
    spent[LH_BOTTLENECK_WINDOW] = times->window_ns;
    spent[LH_BOTTLENECK_SLOTS] = times->slots_ns;
    spent[LH_BOTTLENECK_RECEIVER] = times->receiver_ns;
    spent[of_the_pace(facts)] += times->pace_ns;
    spent[facts->emulated ? LH_BOTTLENECK_RATE : LH_BOTTLENECK_HOST] += times->device_ns;
    spent[LH_BOTTLENECK_HOST] += times->cpu_ns;
}

static enum lh_bottleneck largest_of(const lh_time spent[BOTTLENECKS], lh_time *total)
{
    enum lh_bottleneck largest = LH_BOTTLENECK_NONE;
    *total = 0;
    for (unsigned i = 0; i < BOTTLENECKS; i++) {
        *total += spent[i];
        if (spent[i] > spent[largest])
            largest = (enum lh_bottleneck)i;
    }
    return largest;
}

/* ---- what is behind it ------------------------------------------------------------------------------- */

static bool queue_stands(const struct bottleneck_facts *facts, const struct lh_bottleneck_report *report)
{
    return facts->queue_known && facts->standing_ns >= STANDING_NS &&
           facts->standing_ns >= report->rtt_ns / STANDING_SHARE;
}

/* A load beside ours, or a path that became slower: of the queue, packets of ours are as large a part as of
 * what comes through. */
static bool others_fill_the_queue(const struct bottleneck_facts *facts,
                                  const struct lh_bottleneck_report *report)
{
    return queue_stands(facts, report) && report->rate_bps > 0 &&
           report->rate_bps <= report->rate_best_bps / COMPETITION_SHARE;
}

/* Not by a queue of our own, as far as is known: a flood without rate and controller loses, too. */
static bool loses_too_much(const struct bottleneck_facts *facts, const struct lh_bottleneck_report *report)
{
    return report->retransmitted >= LOSS_SHARE && !queue_stands(facts, report) &&
           (facts->queue_known || facts->given);
}

static enum lh_bottleneck behind(enum lh_bottleneck largest, const struct bottleneck_times *times,
                                 const struct bottleneck_facts *facts,
                                 const struct lh_bottleneck_report *report)
{
    bool own = largest == LH_BOTTLENECK_HOST || largest == LH_BOTTLENECK_RECEIVER ||
               (largest == LH_BOTTLENECK_APPLICATION && times->message_ns > times->acknowledgement_ns);
    if (largest == LH_BOTTLENECK_PATH && others_fill_the_queue(facts, report))
        return LH_BOTTLENECK_COMPETITION;
    if (!own && report->receiver_drops == 0 && loses_too_much(facts, report))
        return LH_BOTTLENECK_LOSS;
    return largest;
}

void bottleneck_decide(const struct bottleneck_times *times, const struct bottleneck_facts *facts,
                       struct lh_bottleneck_report *report)
{
    lh_time spent[BOTTLENECKS] = {0}, total;
    add_up(times, facts, spent);
    enum lh_bottleneck largest = largest_of(spent, &total);
    report->bottleneck = behind(largest, times, facts, report);
    report->share = total > 0 ? (double)spent[largest] / (double)total : 0;
    report->device = !facts->emulated && times->device_ns > times->cpu_ns;
    report->emulated = facts->emulated && times->device_ns >= times->pace_ns;
}
