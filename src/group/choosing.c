/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/choosing.h"

#include <stdlib.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "collective/choose/choose.h"
#include "collective/schedule/schedule_table.h"
#include "group/group.h"

/* Two sizes for each power of two: 64, 96, 128 … */
#define SIZES 128u
/* Elements of all types. */
#define UNIT_BYTES    8u
#define FIGURES_BYTES (CHOOSING_BYTES / 2)

void choosing_free(struct choosing *choosing)
{
    free(choosing->chosen);
    choosing->chosen = NULL;
}

/* ---- agreeing on paths ------------------------------------------------------------------------------- */

static uint64_t lower_rate(uint64_t one, uint64_t other)
{
    return one == 0 || (other > 0 && other < one) ? other : one;
}

static uint32_t least_packet(uint32_t one, uint32_t other)
{
    return one == 0 || (other > 0 && other < one) ? other : one;
}

static void worsen(struct path_figures *figures, const struct path_figures *other)
{
    figures->rtt_ns = other->rtt_ns > figures->rtt_ns ? other->rtt_ns : figures->rtt_ns;
    figures->rate_bps = lower_rate(figures->rate_bps, other->rate_bps);
    figures->loss = other->loss > figures->loss ? other->loss : figures->loss;
    figures->packet_bytes = least_packet(figures->packet_bytes, other->packet_bytes);
}

static void add_link(struct lh_group *group, uint32_t rank, const struct lh_group_attr *attr,
                     struct choosing *own)
{
    bool across = group->map.site_of[group->map.place_of[rank]] !=
                  group->map.site_of[group->map.place_of[group->rank]];
    const struct lh_attr *given = across && attr->attr_across ? attr->attr_across : attr->attr;
    struct link *link = group_link(group, rank);
    struct path_figures known = {.rtt_ns = link_rtt_ns(link)};
    struct lh_attr negotiated;
    if (given) {
        known.rate_bps = given->rate_bps ? given->rate_bps : given->link.rate_bps;
        known.loss = (uint32_t)(given->link.loss / PATHS_LOSS_UNIT);
    }
    if (lh_connection_attr(link->lanes[LANE_BULK].connection, &negotiated) == 0)
        known.packet_bytes = negotiated.mtu_bytes;
    worsen(across ? &own->across : &own->inside, &known);
}

static void put(const struct path_figures *figures, uint8_t *to)
{
    lh_put_be64(to, figures->rtt_ns);
    lh_put_be64(to + 8, figures->rate_bps);
    lh_put_be32(to + 16, figures->loss);
    lh_put_be32(to + 20, figures->packet_bytes);
}

static struct path_figures get(const uint8_t *from)
{
    return (struct path_figures){.rtt_ns = lh_get_be64(from),
                                 .rate_bps = lh_get_be64(from + 8),
                                 .loss = lh_get_be32(from + 16),
                                 .packet_bytes = lh_get_be32(from + 20)};
}

void choosing_measure(struct lh_group *group, const struct lh_group_attr *attr,
                      uint8_t body[CHOOSING_BYTES])
{
    struct choosing own = {0};
    for (uint32_t r = 0; r < group->size; r++)
        if (r != group->rank)
            add_link(group, r, attr, &own);
    put(&own.inside, body);
    put(&own.across, body + FIGURES_BYTES);
}

void choosing_agree(struct lh_group *group, const uint8_t *all)
{
    struct choosing *choosing = &group->choosing;
    for (uint32_t r = 0; r < group->size; r++) {
        const uint8_t *from = all + r * (size_t)CHOOSING_BYTES;
        struct path_figures inside = get(from), across = get(from + FIGURES_BYTES);
        worsen(&choosing->inside, &inside);
        worsen(&choosing->across, &across);
    }
    choosing_free(choosing); /* chosen without */
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

/* Without a part per rank any order of ranks does. */
static bool ranks_are_equal(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_BROADCAST ||
           collective == COLLECTIVE_REDUCE;
}

static bool is_in_order(const struct site_map *map, uint32_t ranks)
{
    uint32_t rank = 0;
    while (rank < ranks && map->place_of[rank] == rank)
        rank++;
    return rank == ranks;
}

bool choosing_uses_map(const struct lh_group *group, enum collective collective)
{
    return group->map.sites > 1 && (ranks_are_equal(collective) || (collective == COLLECTIVE_ALLTOALL &&
                                                                    is_in_order(&group->map, group->size)));
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

static int ask(const struct lh_group *group, enum collective collective, uint64_t bytes,
               const struct schedule **schedule)
{
    struct choice choices[CHOOSE_MAX];
    struct path_figures inside = group->choosing.inside;
    bool mapped = choosing_uses_map(group, collective);
    size_t block_bytes = group->mesh->block_bytes;
    if (!mapped) /* all ranks count as in one site */
        worsen(&inside, &group->choosing.across);
    struct flow_network network = paths_network(&inside, &group->choosing.across, (double)block_bytes);
    const struct choose_question question = {
        .collective = collective,
        .ranks = group->size,
        .map = mapped ? &group->map : NULL,
        .bytes = bytes,
        .unit_bytes = UNIT_BYTES,
        .block_bytes_max = block_bytes,
        .block_bytes_min = block_bytes,
        .network = &network,
    };
    int error = choose_check(&question);
    void *memory = error ? NULL : malloc(choose_memory(&question));
    if (!error && !memory)
        error = lh_fail(LH_ENOMEM, "%s: no memory to choose a schedule", collective_name(collective));
    if (error)
        return error;
    choose(&question, memory, choices);
    *schedule = choices[0].schedule;
    free(memory);
    return 0;
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
        return lh_fail(LH_ENOMEM, "%s: no memory to choose a schedule", collective_name(collective));
    const struct schedule **known = &choosing->chosen[(size_t)collective * SIZES + index];
    int error = *known ? 0 : ask(group, collective, size, known);
    *schedule = *known;
    return error;
}
