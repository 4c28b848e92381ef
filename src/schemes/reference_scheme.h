/*
 * reference_scheme.h - schemes of the model alone: the bound of all schemes, and go-back-N as NICs do it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_REFERENCE_SCHEME_H
#define LH_SCHEMES_REFERENCE_SCHEME_H

#include "model/predictor.h"
#include "model/repeat_model.h"

extern const struct scheme_entry go_back_n_entry; /* "gbn" */
extern const struct scheme_entry ideal_entry;     /* "ideal" */

/* ---- go back n ------------------------------------------------------------------------------------- */

/*
 * Go-back-N as NICs do it for reliable connections.
 *
 * The receiver takes packets in order only. The first that follows a gap makes it send one NAK; the sender
 * goes back to the lost packet and sends everything from there again. A lost packet so costs
 *     C = RTT + 2 T + (the rest of the burst) T
 * with T the injection of a packet. A packet that is lost again when it is repeated is not reported again
 * (the responder has already sent its NAK for it): that waits for the timeout, RTO + T, as do losses behind
 * which nothing of the message arrives. The timer is taken to be longer than what a NAK needs,
 * acknowledgements as never lost, and the window of the sender as never full.
 *
 * First losses come with the chance `enter` after a packet that arrived (`packet` at the message's begin),
 * a repeat is lost with the chance `packet`. The mean of this is exact. The distribution takes the burst's
 * rest as its mean, counts first losses as Binomial and timeouts as negative binomial; where more than
 * GO_BACK_N_FEW losses are expected, it goes by three moments (Edgeworth).
 */

struct go_back_n {
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

void go_back_n_start(struct go_back_n *go, const struct model_message *message);
double go_back_n_mean(const struct go_back_n *go);
double go_back_n_cdf(const struct go_back_n *go, double seconds);
double go_back_n_quantile(const struct go_back_n *go, double share);
/* Mean of packets that are sent beyond those of the message. */
double go_back_n_repeated(const struct go_back_n *go);

#endif
