/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/choosing.h"

#include <stdlib.h>

#include "base/error.h"
#include "collective/choose/choose.h"
#include "collective/schedule/schedule_table.h"
#include "group/group.h"

/* Two sizes for each power of two: 64, 96, 128 … */
#define SIZES 128u
/* Elements of all types. */
#define UNIT_BYTES 8u

void choosing_free(struct choosing *choosing)
{
    free(choosing->chosen);
    choosing->chosen = NULL;
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

static bool is_in_order(const struct site_map *map, uint32_t ranks)
{
    uint32_t rank = 0;
    while (rank < ranks && map->place_of[rank] == rank)
        rank++;
    return rank == ranks;
}

bool choosing_uses_map(const struct lh_group *group, enum collective collective)
{
    const struct site_map *map = &group->paths.order->map;
    bool ordered = is_in_order(map, group->size);
    if (collective == COLLECTIVE_BARRIER || (map->sites == 1 && ordered))
        return false;
    return collective != COLLECTIVE_ALLTOALL || ordered; /* it sends parts of adjacent ranks together */
}

/* The first size of the list that is not below it, in bytes. *index: its place there. */
static uint64_t size_of(uint64_t bytes, uint32_t *index)
{
    uint32_t log = 63 - (uint32_t)__builtin_clzll(bytes | 1);
    uint64_t power = UINT64_C(1) << log;
    if (bytes > power && log < 62) {
        bool above = bytes > power + power / 2 || log == 0;
        *index = 2 * log + (above ? 2 : 1);
        return above ? 2 * power : power + power / 2;
    }
    *index = 2 * log;
    return power;
}

/* What was measured of all paths. NULL: nothing was, or *error: no memory. */
static struct flow_pair *pairs_of(const struct lh_group *group, int *error)
{
    size_t count = (size_t)group->size * group->size;
    struct flow_pair *pairs = group->paths.pairs ? malloc(count * sizeof *pairs) : NULL;
    *error = group->paths.pairs && !pairs ? -LH_ENOMEM : 0;
    for (size_t i = 0; pairs && i < count; i++)
        pairs[i] = paths_pair(&group->paths.pairs[i]);
    return pairs;
}

static int fail_memory(enum collective collective)
{
    return lh_fail(LH_ENOMEM, "%s: no memory to choose a schedule", collective_name(collective));
}

static int ask(const struct lh_group *group, enum collective collective, uint64_t bytes,
               const struct schedule **schedule)
{
    struct choice choices[CHOOSE_MAX];
    struct path_figures inside = group->paths.inside;
    bool mapped = choosing_uses_map(group, collective);
    size_t block_bytes = group->mesh->block_bytes;
    int error;
    if (!mapped) /* all ranks count as in one site */
        paths_worsen(&inside, &group->paths.across);
    struct flow_network network = paths_network(&inside, &group->paths.across, (double)block_bytes);
    const struct choose_question question = {
        .collective = collective,
        .ranks = group->size,
        .map = mapped ? &group->paths.order->map : NULL,
        .bytes = bytes,
        .unit_bytes = UNIT_BYTES,
        .block_bytes_max = block_bytes,
        .block_bytes_min = block_bytes,
        .network = &network,
    };
    struct flow_pair *pairs = pairs_of(group, &error);
    void *memory = NULL;
    network.pairs = pairs;
    network.processors = group->paths.processors;
    if (!error)
        error = choose_check(&question);
    if (!error)
        memory = malloc(choose_memory(&question));
    if (error == -LH_ENOMEM || (!error && !memory))
        error = fail_memory(collective);
    if (!error) {
        choose(&question, memory, choices);
        *schedule = choices[0].schedule;
    }
    free(memory);
    free(pairs);
    return error;
}

int choosing_find(struct lh_group *group, enum collective collective, uint64_t bytes,
                  const struct schedule **schedule)
{
    struct choosing *choosing = &group->choosing;
    uint32_t index;
    uint64_t size = size_of(bytes, &index);
    *schedule = group->size == 1 ? schedule_find(collective, NULL) : NULL;
    if (*schedule)
        return 0;
    if (!choosing->chosen)
        choosing->chosen = calloc((size_t)COLLECTIVES * SIZES, sizeof *choosing->chosen);
    if (!choosing->chosen)
        return fail_memory(collective);
    const struct schedule **known = &choosing->chosen[(size_t)collective * SIZES + index];
    int error = *known ? 0 : ask(group, collective, size, known);
    *schedule = *known;
    return error;
}
