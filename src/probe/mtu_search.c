/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mtu_search.h"

#include <assert.h>

/* IPv6's least, tunnels, PPPoE, Ethernet, jumbo frames of several makers, loopback. */
static const uint32_t usual_bytes[] = {576, 1280, 1400, 1420, 1480, 1492, 1500, 4352, 9000, 9216, 65535};
_Static_assert(sizeof usual_bytes / sizeof *usual_bytes < MTU_SEARCH_SIZES_MAX, "they fit a round");

void mtu_search_init(struct mtu_search *search, uint32_t floor_bytes, uint32_t ceiling_bytes)
{
    assert(floor_bytes > 0 && floor_bytes <= ceiling_bytes);
    *search = (struct mtu_search){
        .passed_bytes = floor_bytes - 1, .failed_bytes = ceiling_bytes + 1, .ceiling_bytes = ceiling_bytes};
}

static struct mtu_search_round usual_round(const struct mtu_search *search)
{
    struct mtu_search_round round = {.tries = MTU_SEARCH_TRIES};
    for (uint32_t i = 0; i < sizeof usual_bytes / sizeof *usual_bytes; i++)
        if (usual_bytes[i] > search->passed_bytes && usual_bytes[i] < search->ceiling_bytes)
            round.sizes[round.count++] = usual_bytes[i];
    round.sizes[round.count++] = search->ceiling_bytes;
    return round;
}

struct mtu_search_round mtu_search_next(const struct mtu_search *search)
{
    if (search->done)
        return (struct mtu_search_round){.count = 0};
    if (search->confirming)
        return (struct mtu_search_round){
            .count = 1, .sizes = {search->failed_bytes}, .tries = MTU_SEARCH_TRIES_CONFIRM};
    if (search->rounds == 0)
        return usual_round(search);
    struct mtu_search_round round = {.tries = MTU_SEARCH_TRIES};
    uint32_t between = search->failed_bytes - search->passed_bytes - 1;
    assert(between > 0);
    /* The first is the one above what passed: links have round numbers, and the usual ones were tried. */
    round.count = between < MTU_SEARCH_SIZES_MAX ? between : MTU_SEARCH_SIZES_MAX;
    for (uint32_t i = 0; i < round.count; i++)
        round.sizes[i] = search->passed_bytes + 1 + i * between / round.count;
    return round;
}

/* Nothing is left between: either the end, or what failed is tried again. */
static void close_in(struct mtu_search *search)
{
    if (search->failed_bytes > search->passed_bytes + 1)
        return;
    search->confirming = search->failed_bytes <= search->ceiling_bytes;
    search->done = !search->confirming;
}

void mtu_search_on_round(struct mtu_search *search, const struct mtu_search_round *round,
                         const bool *passed)
{
    assert(!search->done && round->count > 0);
    search->rounds++;
    if (search->confirming && !passed[0]) {
        search->done = true;
        return;
    }
    if (search->confirming)
        search->failed_bytes = search->ceiling_bytes + 1; /* misjudged; so may what is above it have been */
    search->confirming = false;
    for (uint32_t i = 0; i < round->count; i++)
        if (passed[i])
            search->passed_bytes = round->sizes[i];
    for (uint32_t i = 0; i < round->count; i++)
        if (round->sizes[i] > search->passed_bytes && round->sizes[i] < search->failed_bytes)
            search->failed_bytes = round->sizes[i];
    close_in(search);
    if (search->rounds >= MTU_SEARCH_ROUNDS_MAX)
        search->done = true;
}
