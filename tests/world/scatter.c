/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/scatter.h"

#include <string.h>

#include "world/checks.h"

static void cut(struct scatter *scatter, uint64_t bytes, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    scatter->count = 1 + (uint32_t)lh_prng_below(&prng, LH_PARTS_MAX);
    for (uint32_t i = 0; i < scatter->count; i++) {
        bool little = lh_prng_chance(&prng, 0.5);
        uint64_t maximum = little && bytes > GUARD_BYTES ? GUARD_BYTES : bytes;
        uint64_t part = lh_prng_below(&prng, maximum + 1);
        scatter->parts[i].bytes = i + 1 < scatter->count ? part : bytes;
        bytes -= scatter->parts[i].bytes;
    }
}

void scatter_make(struct world *world, struct scatter *scatter, uint64_t bytes, uint64_t seed)
{
    cut(scatter, bytes, seed);
    scatter->area_bytes = bytes + (scatter->count + 1) * (size_t)GUARD_BYTES;
    scatter->area = world_memory(world, scatter->area_bytes);
    memset(scatter->area, GUARD_BYTE, scatter->area_bytes);
    uint8_t *at = scatter->area + GUARD_BYTES;
    for (uint32_t i = 0; i < scatter->count; i++) {
        scatter->parts[i].address = at;
        scatter->parts[i].memory = NULL;
        at += scatter->parts[i].bytes + GUARD_BYTES;
    }
    scatter_blank(scatter);
}

static uint64_t within(const struct lh_part *part, uint64_t bytes)
{
    return part->bytes < bytes ? part->bytes : bytes;
}

void scatter_put(const struct scatter *scatter, const uint8_t *from, uint64_t bytes)
{
    for (uint32_t i = 0; i < scatter->count; i++) {
        uint64_t part = within(&scatter->parts[i], bytes);
        memcpy(scatter->parts[i].address, from, part);
        from += part;
        bytes -= part;
    }
}

void scatter_get(const struct scatter *scatter, uint8_t *to, uint64_t bytes)
{
    for (uint32_t i = 0; i < scatter->count; i++) {
        uint64_t part = within(&scatter->parts[i], bytes);
        memcpy(to, scatter->parts[i].address, part);
        to += part;
        bytes -= part;
    }
}

void scatter_blank(const struct scatter *scatter)
{
    for (uint32_t i = 0; i < scatter->count; i++)
        memset(scatter->parts[i].address, BLANK_BYTE, scatter->parts[i].bytes);
}

bool scatter_is_whole(const struct scatter *scatter, bool blank)
{
    const uint8_t *guard = scatter->area;
    for (uint32_t i = 0; i < scatter->count; i++) {
        const uint8_t *part = scatter->parts[i].address;
        if (!check_filled(guard, GUARD_BYTES, GUARD_BYTE))
            return false;
        if (blank && !check_filled(part, scatter->parts[i].bytes, BLANK_BYTE))
            return false;
        guard = part + scatter->parts[i].bytes;
    }
    return check_filled(guard, GUARD_BYTES, GUARD_BYTE);
}
