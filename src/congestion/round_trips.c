/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/round_trips.h"

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
    lh_time most_ns = with_one ? target_ns + target_ns / LITTLE_OVER : 2 * target_ns;
    if (rounds->queue_ns <= most_ns) {
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
