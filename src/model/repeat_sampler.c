/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/repeat_sampler.h"

#include <assert.h>
#include <math.h>

#include "model/loss_sampler.h"

/* How often a chunk is lost that was lost `losses` times. */
static double further(const struct model_repeat *repeat, double losses, double log_loss,
                      struct lh_prng *prng)
{
    if (!repeat->packets)
        return losses + model_draw_gap(prng, log_loss);
    double share = (1 - lh_prng_double(prng)) * -expm1(repeat->log_pass[(unsigned)losses]);
    while (losses < repeat->levels && -expm1(repeat->log_pass[(unsigned)losses + 1]) >= share)
        losses++;
    return losses;
}

double model_draw_repeat(const struct model_repeat *repeat, double log_loss, double chunks,
                         struct lh_prng *prng)
{
    const double overhead = repeat->overhead;
    double latest = 0;
    double behind = 0; /* chunks between the one looked at and the message's end */
    /* Each round finds a later chunk, or goes on to where one more loss is needed: at most two rounds a
     * level, and behind the last level there is nothing. */
    while (behind < chunks) {
        double losses = fmax(0, floor((latest + behind - repeat->shift) / overhead)) + 1;
        if (losses > repeat->levels)
            break;
        double until = fmin(chunks, fmax(behind + 1, ceil(model_repeat_cost(repeat, losses) - latest)));
        behind += model_draw_gap(prng, repeat->log_pass[(unsigned)losses]);
        if (behind >= until) {
            behind = until;
            continue;
        }
        latest = model_repeat_cost(repeat, further(repeat, losses, log_loss, prng)) - behind;
        behind++;
    }
    return latest;
}

/* ---- bursts ------------------------------------------------------------------------------------------ */

/* A chunk that was lost so often ends the message in a time that nobody waits for. */
#define ROUNDS_MAX 256u

struct rounds {
    const struct model_repeat *repeat;
    const struct model_loss *loss;
    struct lh_prng *prng;
    double chunks;
    double latest;
    unsigned started;
    struct model_bursts link[ROUNDS_MAX]; /* of each transmission: bursts go by time, RTO apart */
};

static void send_again(struct rounds *rounds, unsigned round, double first, double last);

/* The pieces of a chunk that are lost and sent for themselves. */
static double pieces(const struct rounds *rounds)
{
    return rounds->repeat->packets ? rounds->loss->chunk_packets : 1;
}

/* Pieces first … last were lost in this round, 0 being the first transmission. */
static void on_lost(struct rounds *rounds, unsigned round, double first, double last)
{
    double behind = rounds->chunks - 1 - floor(last / pieces(rounds));
    double time = model_repeat_cost(rounds->repeat, round + 1) - behind;
    rounds->latest = fmax(rounds->latest, time);
    if (round + 1 < ROUNDS_MAX)
        send_again(rounds, round + 1, first, last);
}

/* Calls itself through on_lost, as deep as a chunk is lost in a row. */
static void send_again(struct rounds *rounds, unsigned round, double first, double last)
{
    const double size = rounds->loss->chunk_packets / pieces(rounds);
    struct model_bursts *link = &rounds->link[round];
    struct model_burst row;
    double lost_first = -1; /* none */
    double lost_last = -1;
    if (round == rounds->started) {
        model_bursts_start(link, rounds->loss);
        rounds->started++;
    }
    model_bursts_skip(link, rounds->prng, first * size);
    while (model_bursts_next(link, rounds->prng, (last + 1) * size, &row)) {
        double from = floor(row.first / size);
        if (lost_first >= 0 && from > lost_last + 1)
            on_lost(rounds, round, lost_first, lost_last);
        if (lost_first < 0 || from > lost_last + 1)
            lost_first = from;
        lost_last = floor(row.last / size);
    }
    if (lost_first >= 0)
        on_lost(rounds, round, lost_first, lost_last);
}

double model_draw_repeat_bursts(const struct model_repeat *repeat, const struct model_loss *loss,
                                double chunks, struct lh_prng *prng)
{
    struct rounds rounds = {.repeat = repeat, .loss = loss, .prng = prng, .chunks = chunks};
    if (loss->packet > 0)
        send_again(&rounds, 0, 0, chunks * pieces(&rounds) - 1);
    assert(rounds.latest >= 0);
    return rounds.latest;
}
