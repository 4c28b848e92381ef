/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/choice.h"

#include "base/prng.h"

#define BLOCK       8u  /* receives, posted in any order among themselves */
#define NUMBER_BITS 10u /* of a tag */

struct choice choice_of(uint64_t seed, uint32_t number, bool tagged, bool matched)
{
    uint64_t any = seed * 0x9E3779B97F4A7C15u;
    struct choice choice = {.tag = tagged ? any : 0};
    if (!matched)
        return choice;
    choice.tag = any << NUMBER_BITS | number;
    choice.ignored = (seed >> 43 & 1 ? any : any >> 32) << NUMBER_BITS;
    choice.wanted = choice.tag ^ (choice.ignored & seed);
    return choice;
}

void choice_order(uint32_t *order, uint32_t count, bool matched, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = i / BLOCK * BLOCK;
        uint32_t other = matched ? from + (uint32_t)lh_prng_below(&prng, i - from + 1) : i;
        order[i] = i;
        order[i] = order[other];
        order[other] = i;
    }
}

uint32_t choice_block_end(uint32_t number)
{
    return (number + BLOCK - 1) / BLOCK * BLOCK;
}

bool choice_may_be_canceled(const struct plan *plan, uint32_t event)
{
    for (uint32_t i = 0; i < plan->event_count; i++)
        if (plan->events[i].kind == EVENT_cancel && plan->events[i].target == event)
            return true;
    return false;
}
