/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/loss_runs.h"

#include <assert.h>
#include <math.h>

#include "model/confidence.h"

void model_loss_runs_add(struct model_loss_runs *runs, struct model_loss_before *before, bool lost)
{
    runs->packets++;
    runs->lost += lost;
    if (before->any && before->lost) {
        runs->after_lost++;
        runs->arrived_after_lost += !lost;
    } else if (before->any) {
        runs->after_arrived++;
        runs->lost_after_arrived += lost;
    }
    *before = (struct model_loss_before){.any = true, .lost = lost};
}

void model_loss_runs_join(struct model_loss_runs *runs, const struct model_loss_runs *others)
{
    runs->packets += others->packets;
    runs->lost += others->lost;
    runs->after_arrived += others->after_arrived;
    runs->lost_after_arrived += others->lost_after_arrived;
    runs->after_lost += others->after_lost;
    runs->arrived_after_lost += others->arrived_after_lost;
}

bool model_loss_runs_possible(const struct model_loss_runs *runs)
{
    return runs->lost <= runs->packets && runs->after_lost <= runs->lost &&
           runs->after_arrived <= runs->packets - runs->lost &&
           runs->lost_after_arrived <= runs->after_arrived && runs->lost_after_arrived <= runs->lost &&
           runs->arrived_after_lost <= runs->after_lost;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* How many independent packets tell as much about the mean as one: neighbours of a two-state chain
 * correlate by 1 - (chance that a burst begins) - (chance that it ends), and that to the n-th power n
 * packets on. */
static double independent_share(const struct model_loss_runs *runs)
{
    if (runs->after_lost == 0)
        return 1;
    double correlation = 1 - ratio(runs->lost_after_arrived, runs->after_arrived) -
                         ratio(runs->arrived_after_lost, runs->after_lost);
    return correlation > 0 ? (1 - correlation) / (1 + correlation) : 1;
}

static void fit_bursts(const struct model_loss_runs *runs, struct model_loss_fit *fit)
{
    double ended = (double)runs->arrived_after_lost;
    double behind = (double)runs->after_lost;
    struct model_confidence ends = model_confidence_of(ended, behind);
    fit->burst_packets = ended > 0 ? behind / ended : fmax(behind, 1);
    fit->burst_low = fmax(1 / ends.high, 1);
    fit->burst_high = ends.low > 0 ? 1 / ends.low : INFINITY;
    fit->bursty = behind > 0 && 1 - ends.high > fit->loss;
}

struct model_loss_fit model_loss_runs_fit(const struct model_loss_runs *runs)
{
    return model_loss_runs_fit_part(runs, runs);
}

struct model_loss_fit model_loss_runs_fit_part(const struct model_loss_runs *runs,
                                               const struct model_loss_runs *all)
{
    assert(model_loss_runs_possible(runs) && model_loss_runs_possible(all));
    struct model_loss_fit fit = {.loss = ratio(runs->lost, runs->packets)};
    double packets = (double)runs->packets;
    double draws = runs->packets > 0 ? fmax(packets * independent_share(all), 1) : 0;
    struct model_confidence loss = model_confidence_of(fit.loss * draws, draws);
    fit.loss_low = loss.low;
    fit.loss_high = loss.high;
    fit_bursts(runs, &fit);
    assert(fit.loss_low <= fit.loss && fit.loss <= fit.loss_high);
    return fit;
}
