/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/loss.h"

#include <stdlib.h>

static const struct {
    uint64_t count;
    struct lh_range range;
} everything = {1, {0, UINT64_MAX}};

struct loss *loss_of_all(void)
{
    return (struct loss *)(uintptr_t)&everything;
}

void loss_free(struct loss *loss)
{
    if (loss != loss_of_all())
        free(loss);
}

struct loss *loss_of(struct lh_request *request, const struct lh_result *result)
{
    struct lh_delivery delivery;
    if (result->missing_bytes == 0)
        return NULL;
    if (result->missing_bytes == result->bytes || lh_delivery(request, &delivery) != 0)
        return loss_of_all();
    struct loss *loss = malloc(sizeof *loss + delivery.missing_ranges * sizeof *loss->ranges);
    if (!loss)
        return loss_of_all();
    int64_t got = lh_missing(request, 0, loss->ranges, delivery.missing_ranges);
    loss->count = got > 0 ? (uint64_t)got : 0;
    return loss;
}

bool loss_hits(const struct loss *loss, uint64_t *from, uint64_t offset, uint64_t bytes)
{
    while (loss && *from < loss->count) {
        const struct lh_range *range = &loss->ranges[*from];
        if (range->offset + range->bytes > offset)
            return range->offset < offset + bytes;
        ++*from;
    }
    return false;
}
