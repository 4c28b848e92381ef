/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/rounds.h"

#include <assert.h>

/* ---- a tournament: each meets each ------------------------------------------------------------------- */

static uint32_t tournament_rounds(uint32_t players)
{
    return players < 2 ? 0 : players - 1 + players % 2;
}

/* The circle method: those whose sum is the round's, modulo. Who would meet itself meets the last of an even
 * number, and rests in an odd one. */
static uint32_t opponent(uint32_t players, uint32_t player, uint32_t round)
{
    uint32_t circle = tournament_rounds(players);
    if (round >= circle)
        return ROUNDS_NONE;
    if (player == circle) /* 2 * its opponent is the round */
        return round % 2 == 0 ? round / 2 : (round + circle) / 2;
    uint32_t other = (round + circle - player) % circle;
    if (other != player)
        return other;
    return players > circle ? circle : ROUNDS_NONE;
}

/* ---- of ranks ---------------------------------------------------------------------------------------- */

static uint32_t size_of(const struct site_map *map, uint32_t site)
{
    return map->first[site + 1] - map->first[site];
}

/* Fewer ranks may need more rounds: an odd number. */
uint32_t rounds_inside(const struct site_map *map)
{
    uint32_t most = 0;
    for (uint32_t site = 0; site < map->sites; site++)
        if (tournament_rounds(size_of(map, site)) > most)
            most = tournament_rounds(size_of(map, site));
    return most;
}

uint32_t rounds_count(const struct site_map *map)
{
    return rounds_inside(map) + tournament_rounds(map->sites) * map->largest;
}

/* Two sites take turns of their ranks, the smaller one from the beginning again. */
static uint32_t partner_across(const struct site_map *map, uint32_t place, uint32_t round)
{
    uint32_t site = map->site_of[place], turn = round % map->largest;
    uint32_t other = opponent(map->sites, site, round / map->largest);
    if (other == ROUNDS_NONE)
        return ROUNDS_NONE;
    uint32_t own_size = size_of(map, site), size = size_of(map, other);
    uint32_t turns = own_size > size ? own_size : size;
    if (turn >= turns || turn % own_size != place - map->first[site])
        return ROUNDS_NONE;
    return map->rank_at[map->first[other] + turn % size];
}

uint32_t rounds_partner(const struct site_map *map, uint32_t rank, uint32_t round)
{
    uint32_t place = map->place_of[rank], site = map->site_of[place], inside = rounds_inside(map);
    assert(round < rounds_count(map));
    if (round >= inside)
        return partner_across(map, place, round - inside);
    uint32_t other = opponent(size_of(map, site), place - map->first[site], round);
    return other == ROUNDS_NONE ? ROUNDS_NONE : map->rank_at[map->first[site] + other];
}

/* ---- what was not measured --------------------------------------------------------------------------- */

/* The highest rate that a rank had with a site that was measured; sends: from it. */
static uint64_t rate_with(const struct site_map *map, const struct path_figures *pairs, uint32_t rank,
                          uint32_t site, bool sends)
{
    uint32_t ranks = map->first[map->sites];
    uint64_t rate = 0;
    for (uint32_t round = rounds_inside(map); round < rounds_count(map); round++) {
        uint32_t other = rounds_partner(map, rank, round);
        if (other == ROUNDS_NONE || map->site_of[map->place_of[other]] != site)
            continue;
        const struct path_figures *pair = &pairs[sends ? rank * ranks + other : other * ranks + rank];
        rate = pair->rate_bps > rate ? pair->rate_bps : rate;
    }
    return rate;
}

void rounds_fill(const struct site_map *map, struct path_figures *pairs)
{
    uint32_t ranks = map->first[map->sites];
    for (uint32_t from = 0; from < ranks; from++)
        for (uint32_t to = 0; to < ranks; to++) {
            uint32_t site = map->site_of[map->place_of[from]], other = map->site_of[map->place_of[to]];
            struct path_figures *pair = &pairs[from * ranks + to];
            if (site == other || pair->rate_bps > 0)
                continue;
            uint64_t sent = rate_with(map, pairs, from, other, true);
            uint64_t received = rate_with(map, pairs, to, site, false);
            pair->rate_bps = sent < received ? sent : received;
        }
}
