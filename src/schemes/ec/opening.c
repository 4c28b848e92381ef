/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/opening.h"

#include <assert.h>

#define COPIES_MAX 2u /* beside the chunk itself */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void ec_opening_init(struct ec_opening *opening, const struct ec_layout *layout)
{
    *opening = (struct ec_opening){0};
    if (layout->chunks == 1)
        opening->copies = smaller(layout->params.m, COPIES_MAX);
    if (layout->places == 0) {
        opening->next_group = layout->groups;
        opening->done_groups = layout->groups;
    }
}

bool ec_opening_done(const struct ec_opening *opening, const struct ec_layout *layout)
{
    return opening->next_chunk == layout->chunks && opening->copies == 0 &&
           opening->done_groups == layout->groups;
}

static bool take_data(struct ec_opening *opening, const struct ec_layout *layout, uint32_t limit,
                      struct ec_sending *sending)
{
    uint32_t count = smaller(limit, layout->chunks - opening->next_chunk);
    *sending = (struct ec_sending){.first = opening->next_chunk, .count = count};
    opening->next_chunk += count;
    return count > 0;
}

/* Row 0 of a block can follow its encoding group by group, the other rows when all its groups are ready. */
static uint32_t parity_ready(const struct ec_block *block, uint32_t encoded)
{
    uint32_t groups = encoded > block->first_group ? encoded - block->first_group : 0;
    return groups >= block->groups ? block->parity : groups;
}

static bool take_parity(struct ec_opening *opening, const struct ec_layout *layout,
                        const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    struct ec_block block = ec_layout_block(layout, opening->done_groups);
    uint32_t end = ready->extra_open ? parity_ready(&block, ready->encoded) : 0;
    if (end <= opening->next_parity)
        return false;
    uint32_t count = smaller(limit, end - opening->next_parity);
    *sending = (struct ec_sending){
        .first = layout->chunks + block.first_place + opening->next_parity, .count = count, .parity = true};
    opening->next_parity += count;
    assert(opening->next_parity <= block.parity);
    if (opening->next_parity == block.parity) {
        opening->done_groups += block.groups;
        opening->next_parity = 0;
    }
    return count > 0;
}

bool ec_opening_take(struct ec_opening *opening, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    if (limit == 0 || ec_opening_done(opening, layout))
        return false;
    if (opening->next_chunk < layout->chunks)
        return take_data(opening, layout, limit, sending);
    if (opening->copies == 0)
        return take_parity(opening, layout, ready, limit, sending);
    opening->copies--;
    *sending = (struct ec_sending){.count = 1, .parity = true};
    return true;
}

bool ec_opening_encode(struct ec_opening *opening, const struct ec_layout *layout,
                       struct ec_encoding *encoding)
{
    if (opening->next_group == layout->groups)
        return false;
    struct ec_group group = ec_layout_group(layout, opening->next_group);
    *encoding = (struct ec_encoding){.group = opening->next_group++, .rows = group.rows};
    assert(encoding->rows >= 1);
    return true;
}
