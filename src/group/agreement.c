/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "group/group.h"

int agreement_init(struct agreement *agreement, uint32_t ranks)
{
    agreement->reports = calloc(ranks, sizeof *agreement->reports);
    return agreement->reports ? 0 : lh_fail(LH_ENOMEM, "group: no memory for %u ranks", ranks);
}

void agreement_free(struct agreement *agreement)
{
    free(agreement->reports);
}

bool agreement_has(const struct agreement_set *set, uint32_t rank)
{
    return set->bits[rank / 8] >> rank % 8 & 1;
}

static bool is_same(const struct agreement_set *one, const struct agreement_set *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

static struct agreement_report *own_report(const struct lh_group *group)
{
    return &group->agreement.reports[group->rank];
}

const struct agreement_set *agreement_failed(const struct lh_group *group)
{
    return &own_report(group)->failed;
}

static bool is_left(const struct lh_group *group, uint32_t rank)
{
    return rank != group->rank && !agreement_has(agreement_failed(group), rank);
}

/* ---- reports ----------------------------------------------------------------------------------------- */

static struct agreement_set failed_of(const struct lh_group *group)
{
    struct agreement_set set = {0};
    for (uint32_t r = 0; r < group->size; r++)
        if (r != group->rank && group_link(group, r)->error)
            set.bits[r / 8] |= (uint8_t)(1u << r % 8);
    return set;
}

static void send_report(struct lh_group *group, uint32_t rank)
{
    const struct tag tag = {.group = group->id, .kind = TAG_AGREE, .operation = TAG_NO_OPERATION};
    const struct agreement_report *own = own_report(group);
    uint8_t body[AGREEMENT_BYTES];
    lh_put_be32(body, own->next_group);
    lh_put_be32(body + 4, own->round);
    lh_put_be32(body + 8, own->final);
    lh_put_be32(body + 12, own->measured);
    memcpy(body + 16, own->failed.bits, AGREEMENT_SET_BYTES);
    link_send_control(group_link(group, rank), &tag, body, sizeof body); /* or its link fails */
}

static void report(struct lh_group *group)
{
    for (uint32_t r = 0; r < group->size; r++)
        if (is_left(group, r))
            send_report(group, r);
}

static bool read_report(const uint8_t *in, size_t bytes, struct agreement_report *report)
{
    if (bytes != AGREEMENT_BYTES || lh_get_be32(in) > 1u << TAG_GROUP_BITS || lh_get_be32(in + 8) > 1)
        return false;
    *report = (struct agreement_report){.next_group = lh_get_be32(in),
                                        .round = lh_get_be32(in + 4),
                                        .final = lh_get_be32(in + 8),
                                        .measured = lh_get_be32(in + 12)};
    memcpy(report->failed.bits, in + 16, AGREEMENT_SET_BYTES);
    return true;
}

/* ---- agreeing ---------------------------------------------------------------------------------------- */

uint32_t agreement_missing(const struct lh_group *group)
{
    const struct agreement *agreement = &group->agreement;
    for (uint32_t r = 0; r < group->size; r++)
        if (is_left(group, r) && (agreement->reports[r].round < agreement->round ||
                                  !is_same(&agreement->reports[r].failed, agreement_failed(group))))
            return r;
    return LH_GROUP_RANKS_MAX;
}

/* The id of what is left is the same at all: it is made of what each reported with this result. */
static void settle(struct lh_group *group)
{
    struct agreement *agreement = &group->agreement;
    if (!agreement->active || agreement_missing(group) != LH_GROUP_RANKS_MAX)
        return;
    struct agreement_report *own = own_report(group);
    for (uint32_t r = 0; r < group->size; r++) {
        const struct agreement_report *other = &agreement->reports[r];
        if (!is_left(group, r))
            continue;
        if (own->next_group < other->next_group)
            own->next_group = other->next_group;
        if (own->measured != other->measured)
            own->measured = 0;
    }
    own->final = true;
    agreement->next_group = own->next_group;
    agreement->measured = own->measured;
    agreement->active = false;
}

static void take_over(struct lh_group *group, const struct agreement_report *report)
{
    struct agreement *agreement = &group->agreement;
    if (!agreement->active || !report->final || report->round != agreement->round ||
        agreement_has(&report->failed, group->rank))
        return;
    *own_report(group) = *report;
    agreement->next_group = report->next_group;
    agreement->measured = report->measured;
    agreement->active = false;
    agreement->taken = true;
}

void agreement_begin(struct lh_group *group)
{
    if (group->agreement.open)
        return;
    group->agreement.round++;
    group->agreement.active = group->agreement.open = true;
    *own_report(group) = (struct agreement_report){.round = group->agreement.round,
                                                   .next_group = group->mesh->next_group,
                                                   .measured = group->paths.measured,
                                                   .failed = failed_of(group)};
    report(group);
    settle(group);
}

void agreement_end(struct lh_group *group)
{
    group->agreement.open = false;
}

void agreement_on_link_failed(struct lh_group *group)
{
    struct agreement_set failed = failed_of(group);
    if (!group->agreement.active || is_same(&failed, agreement_failed(group)))
        return;
    own_report(group)->failed = failed;
    report(group);
    settle(group);
}

bool agreement_on_report(struct lh_group *group, uint32_t rank, const uint8_t *in, size_t bytes)
{
    struct agreement_report *report = &group->agreement.reports[rank];
    if (!read_report(in, bytes, report))
        return false;
    settle(group);
    take_over(group, report);
    return true;
}

void agreement_answer(struct lh_group *group, uint32_t rank)
{
    struct agreement *agreement = &group->agreement;
    const struct agreement_report *of = &agreement->reports[rank];
    if (agreement->taken)
        report(group); /* who told this rank may be dead */
    else if (!agreement->active && !of->final && of->round > 0 && of->round == agreement->round &&
             !is_same(&of->failed, agreement_failed(group)))
        send_report(group, rank);
    agreement->taken = false;
}

bool agreement_next_failed(const struct lh_group *group, uint32_t *rank)
{
    const struct agreement *agreement = &group->agreement;
    for (; agreement->active && *rank < group->size; ++*rank)
        for (uint32_t r = 0; r < group->size; r++)
            if (is_left(group, *rank) && is_left(group, r) &&
                agreement->reports[r].round >= agreement->round &&
                agreement_has(&agreement->reports[r].failed, *rank))
                return true;
    return false;
}

bool agreement_is_reached(const struct lh_group *group)
{
    return group->agreement.round > 0 && !group->agreement.active;
}
