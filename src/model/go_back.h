/*
 * go_back.h - go-back-N as NICs do it for reliable connections.
 *
 * The receiver takes packets in order only. The first that follows a gap makes it send one NAK; the sender
 * goes back to the lost packet and sends everything from there again. A lost packet so costs
 *     C = RTT + 2 T + (the rest of the burst) T
 * with T the injection of a packet. A packet that is lost again when it is repeated is not reported again
 * (the responder has already sent its NAK for it): that waits for the timeout, RTO + T, as do losses behind
 * which nothing of the message arrives. The timer is taken to be longer than what a NAK needs,
 * acknowledgements as never lost, and the window of the sender as never full.
 *
 * First losses come with the chance `enter` after a packet that arrived (`packet` at the message's begin), a
 * repeat is lost with the chance `packet`. The mean of this is exact. The distribution takes the burst's rest
 * as its mean, counts first losses as Binomial and timeouts as negative binomial; where more than
 * MODEL_GO_BACK_FEW losses are expected, it goes by three moments (Edgeworth).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_GO_BACK_H
#define LH_MODEL_GO_BACK_H

#include "model/terms.h"

#define MODEL_GO_BACK_FEW 12.0

struct model_go_back {
    double packets;
    double inject_s; /* T */
    double clean_s;  /* nothing is lost */
    double nak_s;    /* C, on average */
    double timeout_s;
    double burst_more; /* chance that a burst goes on with another packet */
    double first_loss; /* per packet */
    double again;      /* chance that a repeat is lost */
    double losses;     /* mean of first losses */
    double unseen;     /* mean of those behind which nothing arrives */
};

void model_go_back_start(struct model_go_back *go, const struct model_terms *terms);
double model_go_back_mean(const struct model_go_back *go);
double model_go_back_cdf(const struct model_go_back *go, double seconds);
double model_go_back_quantile(const struct model_go_back *go, double share);
/* Mean of packets that are sent beyond those of the message. */
double model_go_back_repeated(const struct model_go_back *go);

#endif
