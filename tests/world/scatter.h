/*
 * scatter.h - the memory of a message in parts: of any length, some of them empty, with guards between them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_SCATTER_H
#define LH_TESTS_WORLD_SCATTER_H

#include "world/world.h"

struct scatter {
    uint8_t *area;
    size_t area_bytes;
    uint32_t count;
    struct lh_part parts[LH_PARTS_MAX];
};

/* Cuts so many bytes, by the seed, and blanks them. */
void scatter_make(struct world *world, struct scatter *scatter, uint64_t bytes, uint64_t seed);
/* Copies the first `bytes` of a message into the parts, or from them. */
void scatter_put(const struct scatter *scatter, const uint8_t *from, uint64_t bytes);
void scatter_get(const struct scatter *scatter, uint8_t *to, uint64_t bytes);
void scatter_blank(const struct scatter *scatter);
/* Nothing between the parts has changed; and if they are blank, nothing within them. */
bool scatter_is_whole(const struct scatter *scatter, bool blank);

#endif
