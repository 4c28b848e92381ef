/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/whim.h"

#include "base/prng.h"
#include "schemes/auto_choice.h"

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
uint32_t __real_auto_choice_get(struct auto_choice *choice, uint64_t message_bytes,
                                const struct auto_path *path);
uint32_t __wrap_auto_choice_get(struct auto_choice *choice, uint64_t message_bytes,
                                const struct auto_path *path);

static bool whims;
static uint64_t whim_seed;

void whim_set(bool on, uint64_t seed)
{
    whims = on;
    whim_seed = seed;
}

/* Of the chooser's own count: what another one is asked moves nothing here. */
uint32_t __wrap_auto_choice_get(struct auto_choice *choice, uint64_t message_bytes,
                                const struct auto_path *path)
{
    uint32_t chosen = __real_auto_choice_get(choice, message_bytes, path);
    struct lh_prng prng;
    if (!whims)
        return chosen;
    lh_prng_seed(&prng, whim_seed + choice->asked);
    return (uint32_t)lh_prng_below(&prng, choice->count);
}
/* NOLINTEND(bugprone-reserved-identifier) */
