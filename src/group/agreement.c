/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "group/group.h"

int agreement_init(struct agreement *agreement, uint32_t ranks)
{
    agreement->reports = calloc(ranks, sizeof *agreement->reports);
    agreement->rounds = calloc(ranks, sizeof *agreement->rounds);
    return agreement->reports && agreement->rounds
               ? 0
               : lh_fail(LH_ENOMEM, "group: no memory for %u ranks", ranks);
}

void agreement_free(struct agreement *agreement)
{
    free(agreement->reports);
    free(agreement->rounds);
}

bool agreement_has(const struct agreement_set *set, uint32_t rank)
{
    return set->bits[rank / 8] >> rank % 8 & 1;
}

static struct agreement_set failed_of(const struct lh_group *group)
{
    struct agreement_set set = {0};
    for (uint32_t r = 0; r < group->size; r++)
        if (r != group->rank && group_link(group, r)->error)
            set.bits[r / 8] |= (uint8_t)(1u << r % 8);
    return set;
}

static void report(struct lh_group *group)
{
    const struct tag tag = {.group = group->id, .kind = TAG_AGREE};
    uint8_t body[AGREEMENT_BYTES];
    lh_put_be32(body, group->mesh->next_group);
    lh_put_be32(body + 4, group->agreement.round);
    memcpy(body + 8, group->agreement.own.bits, AGREEMENT_SET_BYTES);
    for (uint32_t r = 0; r < group->size; r++)
        if (r != group->rank && !agreement_has(&group->agreement.own, r))
            link_send_control(group_link(group, r), &tag, body, sizeof body); /* or its link fails */
}

uint32_t agreement_missing(const struct lh_group *group)
{
    const struct agreement *agreement = &group->agreement;
    for (uint32_t r = 0; r < group->size; r++)
        if (r != group->rank && !agreement_has(&agreement->own, r) &&
            (agreement->rounds[r] < agreement->round ||
             memcmp(&agreement->reports[r], &agreement->own, sizeof agreement->own) != 0))
            return r;
    return LH_GROUP_RANKS_MAX;
}

static void settle(struct lh_group *group)
{
    if (group->agreement.active && agreement_missing(group) == LH_GROUP_RANKS_MAX)
        group->agreement.active = false;
}

void agreement_begin(struct lh_group *group)
{
    group->agreement.round++;
    group->agreement.active = true;
    group->agreement.own = failed_of(group);
    if (group->agreement.next_group < group->mesh->next_group)
        group->agreement.next_group = group->mesh->next_group;
    report(group);
    settle(group);
}

void agreement_on_link_failed(struct lh_group *group)
{
    struct agreement_set failed = failed_of(group);
    if (!group->agreement.active || memcmp(&failed, &group->agreement.own, sizeof failed) == 0)
        return;
    group->agreement.own = failed;
    report(group);
    settle(group);
}

bool agreement_on_report(struct lh_group *group, uint32_t rank, const uint8_t *in, size_t bytes)
{
    struct agreement *agreement = &group->agreement;
    if (bytes != AGREEMENT_BYTES || lh_get_be32(in) > 1u << TAG_GROUP_BITS)
        return false;
    if (agreement->next_group < lh_get_be32(in))
        agreement->next_group = lh_get_be32(in);
    memcpy(agreement->reports[rank].bits, in + 8, AGREEMENT_SET_BYTES);
    agreement->rounds[rank] = lh_get_be32(in + 4);
    settle(group);
    return true;
}

bool agreement_next_failed(const struct lh_group *group, uint32_t *rank)
{
    const struct agreement *agreement = &group->agreement;
    for (; agreement->active && *rank < group->size; ++*rank)
        for (uint32_t r = 0; r < group->size; r++)
            if (*rank != group->rank && !agreement_has(&agreement->own, *rank) &&
                !agreement_has(&agreement->own, r) && agreement->rounds[r] >= agreement->round &&
                agreement_has(&agreement->reports[r], *rank))
                return true;
    return false;
}

bool agreement_is_reached(const struct lh_group *group)
{
    return group->agreement.round > 0 && !group->agreement.active;
}
