/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/answer.h"

#include <assert.h>
#include <string.h>

#include "wire/selective_repeat.h"

void sr_answer_init(struct sr_answer *answer)
{
    *answer = (struct sr_answer){.writing = SR_ANSWER_NONE};
}

void sr_answer_begin(struct sr_answer *answer, enum sr_answer_kind kind, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack)
{
    uint32_t end = arrivals->highest > nack->horizon ? arrivals->highest : nack->horizon;
    assert(kind != SR_ANSWER_NONE);
    answer->writing = kind;
    answer->next_word = arrivals->cumulative / 64;
    answer->end_word = (end + 63) / 64;
}

static void write_ack(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                      const struct sr_nack *nack, struct lh_stats *stats, struct lh_action *action)
{
    /* The first missing chunk may have come since the answer was begun. */
    if (answer->next_word < arrivals->cumulative / 64)
        answer->next_word = arrivals->cumulative / 64;
    uint32_t left = answer->end_word > answer->next_word ? answer->end_word - answer->next_word : 0;
    struct sr_ack ack = {
        .flags = answer->writing == SR_ANSWER_NACK ? SR_FLAG_NACK : 0,
        .mark = nack->mark,
        .cumulative = arrivals->cumulative,
        .base = answer->next_word * 64,
        .horizon = nack->horizon,
        .arrived = arrivals->seen,
        .words = (uint16_t)(left < SR_ACK_WORDS_MAX ? left : SR_ACK_WORDS_MAX),
    };
    memcpy(ack.bitmap, arrivals->bits + answer->next_word, ack.words * sizeof(uint64_t));
    action->what.message.bytes = (uint32_t)sr_ack_encode(&ack, action->what.message.data);
    answer->next_word += ack.words;
    sr_count(ack.flags & SR_FLAG_NACK ? &stats->nacks_sent : &stats->acks_sent);
}

void sr_answer_write(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack, struct lh_stats *stats, struct lh_actions *actions)
{
    while (answer->writing != SR_ANSWER_NONE) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        if (action == NULL)
            return;
        write_ack(answer, arrivals, nack, stats, action);
        if (answer->next_word >= answer->end_word)
            answer->writing = SR_ANSWER_NONE;
    }
}
