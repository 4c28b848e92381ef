/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/choice.h"

void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question)
{
    *question = order->question;
    question->link.loss = order->losses.ratio[loss];
    if (order->mix)
        return;
    question->sizes[0] = (struct lh_plan_size){order->sizes.bytes[size], 1};
    question->sizes_count = 1;
}

const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point)
{
    const struct lh_plan *plan = &point->plan;
    return &plan->choices[plan->best != LH_PLAN_NONE ? plan->best : plan->unlimited];
}

bool cli_plan_loses_much(const struct cli_plan_point *point)
{
    const struct lh_model_path *link = &point->question.link;
    double lost = link->loss;
    uint32_t packets = (uint32_t)(cli_plan_choice(point)->chunk_bytes / link->mtu_bytes);
    /* What cannot be is refused before. */
    if (!link->loss_of_chunk && lh_model_chunk_loss(link->loss, link->burst_packets, packets, &lost))
        return false;
    return lost > CLI_PLAN_CHUNK_LOSS_SURE;
}
