/*
 * loss.h - which bytes of a message did not come.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_LOSS_H
#define LH_GROUP_LOSS_H

#include <stdbool.h>

#include <longhaul/connection.h>

struct loss {
    uint64_t count;
    struct lh_range ranges[]; /* by offset, none adjacent to the next */
};

/* Of a receive that is done without an error; NULL: every byte came. Without memory all counts as lost. */
struct loss *loss_of(struct lh_request *request, const struct lh_result *result);
/* Nothing came. */
struct loss *loss_of_all(void);
/* Whether a byte of these is missing. from: where to look, moves on; bytes are asked for in ascending
 * order. */
bool loss_hits(const struct loss *loss, uint64_t *from, uint64_t offset, uint64_t bytes);
/* NULL is allowed. */
void loss_free(struct loss *loss);

#endif
