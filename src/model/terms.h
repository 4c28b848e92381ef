/*
 * terms.h - a path in the model's terms, checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_TERMS_H
#define LH_MODEL_TERMS_H

#include <longhaul/model.h>

#include "model/loss.h"

struct model_terms {
    double chunks;  /* M */
    double packets; /* of the message */
    double
        inject_s; /* T_inj: of a chunk; M T_inj is what the message takes, though its last may be shorter */
    double packet_inject_s;
    double rtt_s;
    double rto_s;              /* of the scheme */
    double message_wire_bytes; /* all packets once */
    double ideal_s;
    struct model_loss loss;
};

/* -LH_EINVAL, -LH_ERANGE in words: path or scheme is nonsense, or loses too much for the model. */
int model_terms_of(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                   struct model_terms *terms);
/* O = RTO + T_inj, in T_inj. */
double model_terms_overhead(const struct model_terms *terms);

#endif
