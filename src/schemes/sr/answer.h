/*
 * answer.h - the answer of a receiver: an ACK of all chunks from the first missing one to the highest
 * that has arrived or is known to be lost, in as many messages as that takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_ANSWER_H
#define LH_SCHEMES_SR_ANSWER_H

#include "schemes/sr/arrivals.h"
#include "schemes/sr/nack.h"

enum sr_answer_kind {
    SR_ANSWER_NONE,
    SR_ANSWER_ACK,
    SR_ANSWER_NACK,
};

struct sr_answer {
    enum sr_answer_kind writing; /* words next_word … end_word - 1 are still to be reported */
    uint32_t next_word;
    uint32_t end_word;
};

void sr_answer_init(struct sr_answer *answer);
/* kind: not SR_ANSWER_NONE. nack: of a scheme without reports one that was only initialised. */
void sr_answer_begin(struct sr_answer *answer, enum sr_answer_kind kind, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack);
/* Appends its messages as far as the list has capacity: at most LH_ACTIONS_MAX. answer->writing is
 * SR_ANSWER_NONE afterwards when all are there. */
void sr_answer_write(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack, struct lh_stats *stats, struct lh_actions *actions);

#endif
