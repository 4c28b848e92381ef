/*
 * loss_model.h - loss of packets and chunks, independent or in bursts: distributions, samples, confidence.
 *
 * Bursts are those of a link text (longhaul/link.h), Gilbert-Elliott with a bad state that loses every
 * packet: a packet after one that passed is lost with the chance `enter`, one after a lost one passes with
 * the chance 1 / burst. Independent loss is the same process with enter = loss and burst = 1 / (1 - loss).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_LOSS_MODEL_H
#define LH_MODEL_LOSS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"

struct model_loss {
    double packet;        /* share of packets that are lost */
    double burst;         /* mean packets of a row of lost ones */
    double enter;         /* chance that a packet after one that passed is lost */
    double chunk_packets; /* packets of a chunk */
    double chunk;  /* share of chunks that are lost: 1 - (1 - packet)^chunk_packets when independent */
    double leaves; /* chance that the chunk after a lost one is not lost; 1 - chunk when independent */
    bool bursty;
};

/* packet in [0, 1); burst 0: independent, else at least packet / (1 - packet); chunk_packets >= 1. */
struct model_loss model_loss_of_packets(double packet, double burst, double chunk_packets);
/* The same, told by the chunk's. The burst must allow the packets' loss that this comes to. */
struct model_loss model_loss_of_chunks(double chunk, double burst, double chunk_packets);

/* Chance that a packet is lost which is sent `steps` packets after one that was (after_lost) or was not. */
double model_loss_after(const struct model_loss *loss, bool after_lost, double steps);

/* ---- loss runs ------------------------------------------------------------------------------------- */

/*
 * Loss as a path shows it, packet after packet: how much, and how much of it together.
 *
 * Counts what follows what, in the order of sending, and fits the simple Gilbert-Elliott chain that a link
 * text means with loss= and burst= (longhaul/link.h): a good state that loses nothing and a bad one that
 * loses everything. Its two chances have maximum-likelihood estimates that are plain ratios of the counts.
 */

/* Sums of any number of stretches; all zero is none. Adding two member by member joins them. */
struct model_loss_runs {
    uint64_t packets;
    uint64_t lost;
    uint64_t after_arrived;      /* packets whose predecessor arrived … */
    uint64_t lost_after_arrived; /* … and were lost: a burst begins */
    uint64_t after_lost;
    uint64_t arrived_after_lost; /* a burst ends */
};

/* Where a stretch stands; all zero before its first packet. */
struct model_loss_before {
    bool any, lost;
};

void model_loss_runs_add(struct model_loss_runs *runs, struct model_loss_before *before, bool lost);
void model_loss_runs_join(struct model_loss_runs *runs, const struct model_loss_runs *others);
/* Whether the counts can be of such stretches: what came over a wire is checked with it. */
bool model_loss_runs_possible(const struct model_loss_runs *runs);

/* Low and high: 95 % intervals. That of the loss knows that losses of one burst are not independent. */
struct model_loss_fit {
    double loss, loss_low, loss_high; /* without packets: 0, 0, 1 */
    /* Mean length of a burst, at least 1. Without two neighbours to judge by: 1, 1, and infinity. */
    double burst_packets, burst_low, burst_high;
    bool bursty; /* a packet behind a lost one is lost more often than others, beyond doubt */
};

struct model_loss_fit model_loss_runs_fit(const struct model_loss_runs *runs);
/* The same of a part of what was measured; how losses depend on each other is taken from all of it. A part
 * that met no burst by chance does not know that there are any. */
struct model_loss_fit model_loss_runs_fit_part(const struct model_loss_runs *runs,
                                               const struct model_loss_runs *all);

/* ---- loss sampler ---------------------------------------------------------------------------------- */

/* Drawing only what is lost. */

/* How many pass before the first that does not, each with the chance exp(log_pass): infinite when it is 1.
 * */
double model_sample_gap(struct lh_prng *prng, double log_pass);
/* How many of n, each with the chance p. Takes time with their number while few are expected. */
double model_sample_binomial(struct lh_prng *prng, double n, double p);

/* A row of lost packets. */
struct model_burst {
    double first;
    double last;
};

/* The rows of lost packets on a link, which is looked at in stretches of packets, numbered in their order
 * in time. Between two stretches nothing is sent, but time passes. */
struct model_bursts {
    const struct model_loss *loss;
    double log_enter;
    double log_stay;
    double at;   /* the last packet that was decided; -1: none */
    bool lost;   /* it is lost */
    bool untold; /* and no row with it was told */
};

/* loss is kept by its address. */
void model_bursts_start(struct model_bursts *bursts, const struct model_loss *loss);
/* A stretch begins with packet `from`, which is behind the last one's end. */
void model_bursts_skip(struct model_bursts *bursts, struct lh_prng *prng, double from);
/* The next row of the stretch that ends before `end`; false: there is none. */
bool model_bursts_next(struct model_bursts *bursts, struct lh_prng *prng, double end,
                       struct model_burst *row);

/* ---- confidence ------------------------------------------------------------------------------------ */

/*
 * How sure a share is that was counted: 95 % intervals of a binomial proportion.
 *
 * Wilson's score interval (1927): unlike the normal approximation it is right when few or none were hit,
 * which is how packet loss usually looks.
 */

struct model_confidence {
    double low, high;
};

/* Of a share of which `hits` of `draws` were seen, 0 <= hits <= draws. Both may be fractions: of draws that
 * depend on each other, the number of independent ones that tell as much. Without draws: 0 to 1. */
struct model_confidence model_confidence_of(double hits, double samples);

/* ---- binomial -------------------------------------------------------------------------------------- */

/* How many of n are lost: probabilities that keep their digits far out in the tails. */

#define MODEL_COUNT_MAX 255u /* chunks of a submessage with its parity: a symbol of the code is a byte */

/* P(X = x) for x = 0 ... n of X ~ Binomial(n, p), into chance[n + 1]; n at most MODEL_COUNT_MAX. */
void model_binomial(unsigned n, double p, double *chance);
/* P(X = x) of one x, for any n: -infinity where it is 0. */
double model_binomial_log(double n, double x, double p);
/* That many or fewer of n, with the chance `share` (0 to below 1), where the mean is that. */
double model_binomial_quantile(double mean, double n, double share);

/* P(X = x), X of n chunks being lost that are sent `between` packets apart, into chance[n + 1]. With bursts,
 * exact: the state of the link after each chunk is followed. */
void model_lost_chunks(const struct model_loss *loss, unsigned n, double between, double *chance);

/* The same for one n after the other: with bursts, each costs as much as what it adds. */
struct model_lost {
    const struct model_loss *loss; /* the caller's: it stays */
    unsigned n;
    double next[2][2][2];                    /* with bursts: of a chunk, by the packet before it */
    double of_state[2][MODEL_COUNT_MAX + 1]; /* and by the last packet so far */
};
void model_lost_start(struct model_lost *lost, const struct model_loss *loss, double between);
/* One chunk more; at most MODEL_COUNT_MAX. */
void model_lost_more(struct model_lost *lost);
/* P(X = x), X of lost->n. */
void model_lost_chances(const struct model_lost *lost, double *chance);

#endif
