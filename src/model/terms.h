/*
 * terms.h - a path in the model's terms, checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_TERMS_H
#define LH_MODEL_TERMS_H

#include <longhaul/model.h>

#include "model/loss.h"
#include "model/repeat.h"

struct model_terms {
    double chunks;  /* M */
    double packets; /* of the message */
    double
        inject_s; /* T_inj: of a chunk; M T_inj is what the message takes, though its last may be shorter */
    double packet_inject_s;
    double rtt_s;
    double rto_s;     /* from an injection that is lost to the next; behind the first, see first_s */
    double first_s;   /* the same behind the first injection of a chunk */
    double repairs_s; /* what repairs take of the link before the last first injection */
    double window_s;  /* of reordering */
    bool longhaul;    /* Longhaul's timing, not the paper's: first_s, repairs_s and window_s are its */
    double message_wire_bytes; /* all packets once */
    double ideal_s;
    struct model_loss loss;
};

/* -LH_EINVAL, -LH_ERANGE in words: path or scheme is nonsense, or loses too much for the model. */
int model_terms_of(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                   struct model_terms *terms);
/* O = RTO + T_inj, in T_inj. */
double model_terms_overhead(const struct model_terms *terms);
/* Selective repeat of the whole message. */
void model_terms_repeat(const struct model_terms *terms, struct model_repeat *repeat);
/* Without a loss of the last chunks: M T, what is repeated meanwhile, RTT. */
double model_terms_whole(const struct model_terms *terms);

#endif
