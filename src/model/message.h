/*
 * message.h - a message on a path: its chunks, the times they take, what is lost; checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_MESSAGE_H
#define LH_MODEL_MESSAGE_H

#include <longhaul/model.h>

#include "model/loss.h"
#include "model/repeat.h"

struct model_message {
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
    bool longhaul;    /* Longhaul's timing, not the paper's: sets first_s, repairs_s, window_s */
    double message_wire_bytes; /* all packets once */
    double ideal_s;
    struct model_loss loss;
};

/* By the paper's timing, with a timeout of rto_rtts round trips. -LH_EINVAL, -LH_ERANGE: the path is
 * invalid, or loses too much for the model. */
int model_message_of(const struct lh_model_path *path, double rto_rtts, struct model_message *message);
/* Bytes of a segment, whole chunks: the message is cut into these, and a last one that may be shorter. */
uint64_t model_message_segment(const struct lh_model_path *path);
/* O = RTO + T_inj, in T_inj. */
double model_message_overhead(const struct model_message *message);
/* Selective repeat of the whole message. */
void model_message_repeat(const struct model_message *message, struct model_repeat *repeat);
/* Without a loss of the last chunks: M T, what is repeated meanwhile, RTT. */
double model_message_whole(const struct model_message *message);

#endif
