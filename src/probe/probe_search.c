/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/rate_search.h"

#include <assert.h>

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
    uint64_t cap = cap_bps > 0 && cap_bps < RATE_SEARCH_MOST_BPS ? cap_bps : RATE_SEARCH_MOST_BPS;
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
