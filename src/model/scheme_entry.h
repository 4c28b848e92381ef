/*
 * scheme_entry.h - one entry of the table of schemes (schemes/scheme_table.c): all that anybody outside the
 * scheme's own folder knows of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_SCHEME_ENTRY_H
#define LH_MODEL_SCHEME_ENTRY_H

#include <longhaul/plan.h>
#include <longhaul/scheme.h>

#include "model/parameter.h"
#include "model/predictor.h"

struct scheme_entry {
    struct lh_model_entry shown; /* name, help line, machines */
    const struct model_predictor *predictor;

    /* The flag by which a peer announces that it can send by the machines (enum wire_announcement); 0: each
     * peer can. */
    uint16_t announced;
    /* What `auto` weighs, the plainest first, ended by NULL: "ec:mds,k=8,m=2". NULL: `auto` does not choose
     * the scheme. */
    const char *const *automatic;
    bool code_is_optional; /* without k it sends no parity */

    /* Parameters, as the model reads them: those of the machines, and others that only the model has. All
     * of it NULL: the text is what the machines' parse() takes, and the model has no use for it. */
    const char *parameters; /* "alpha and rto": for messages */
    void (*defaults)(struct lh_model_scheme *scheme);
    /* False: the key is not one of the scheme's. Else *failed is 0, -LH_EINVAL or -LH_ERANGE. */
    bool (*take)(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);
    void (*format)(const struct lh_model_scheme *scheme, struct model_text *text);

    /* What the planner weighs: parameters with which the scheme comes into question, into out, which has
     * room for SCHEME_CANDIDATES_MAX; returns their number. Where loss comes in bursts it asks a second
     * time, unspread: a code whose submessages are not interleaved. NULL: the planner does not choose it.
     * */
    uint32_t (*candidates)(bool unspread, struct lh_model_scheme *out);
    uint32_t
        planner_rank; /* of choices that are equal otherwise, the planner takes the one of lowest rank */
    /* Its times are those of a message that no other follows at once: in a stream it repairs otherwise. */
    bool for_ends;
    /* Data that one core encodes a second. NULL: nothing is encoded. */
    double (*encode_rate)(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);
};

#define SCHEME_CANDIDATES_MAX 32u

#endif
