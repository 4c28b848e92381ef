/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

int agreement_init(struct agreement *agreement, const struct members *members)
{
    agreement->members = members;
    agreement->reports = calloc(members->size, sizeof *agreement->reports);
    return agreement->reports ? 0 : lh_fail(LH_ENOMEM, "group: no memory for %u ranks", members->size);
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

static struct agreement_report *own_report(const struct agreement *agreement)
{
    return &agreement->reports[agreement->members->rank];
}

const struct agreement_set *agreement_failed(const struct agreement *agreement)
{
    return &own_report(agreement)->failed;
}

static bool is_left(const struct agreement *agreement, uint32_t rank)
{
    return rank != agreement->members->rank && !agreement_has(agreement_failed(agreement), rank);
}

/* ---- reports ----------------------------------------------------------------------------------------- */

static struct agreement_set failed_of(const struct agreement *agreement)
{
    struct agreement_set set = {0};
    for (uint32_t r = 0; r < agreement->members->size; r++)
        if (r != agreement->members->rank && member_link(agreement->members, r)->error)
            set.bits[r / 8] |= (uint8_t)(1u << r % 8);
    return set;
}

static void send_report(struct agreement *agreement, uint32_t rank)
{
    const struct tag tag = {
        .group = agreement->members->id, .kind = TAG_AGREE, .operation = TAG_NO_OPERATION};
    const struct agreement_report *own = own_report(agreement);
    uint8_t body[AGREEMENT_BYTES];
    lh_put_be32(body, own->next_group);
    lh_put_be32(body + 4, own->round);
    lh_put_be32(body + 8, own->final);
    lh_put_be32(body + 12, own->measured);
    memcpy(body + 16, own->failed.bits, AGREEMENT_SET_BYTES);
    link_send_control(member_link(agreement->members, rank), &tag, body,
                      sizeof body); /* or its link fails */
}

static void report(struct agreement *agreement)
{
    for (uint32_t r = 0; r < agreement->members->size; r++)
        if (is_left(agreement, r))
            send_report(agreement, r);
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

uint32_t agreement_missing(const struct agreement *agreement)
{
    for (uint32_t r = 0; r < agreement->members->size; r++)
        if (is_left(agreement, r) && (agreement->reports[r].round < agreement->round ||
                                      !is_same(&agreement->reports[r].failed, agreement_failed(agreement))))
            return r;
    return LH_GROUP_RANKS_MAX;
}

/* The id of what is left is the same at all: it is made of what each reported with this result. */
static void settle(struct agreement *agreement)
{
    if (!agreement->active || agreement_missing(agreement) != LH_GROUP_RANKS_MAX)
        return;
    struct agreement_report *own = own_report(agreement);
    for (uint32_t r = 0; r < agreement->members->size; r++) {
        const struct agreement_report *other = &agreement->reports[r];
        if (!is_left(agreement, r))
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

static void take_over(struct agreement *agreement, const struct agreement_report *report)
{
    if (!agreement->active || !report->final || report->round != agreement->round ||
        agreement_has(&report->failed, agreement->members->rank))
        return;
    *own_report(agreement) = *report;
    agreement->next_group = report->next_group;
    agreement->measured = report->measured;
    agreement->active = false;
    agreement->taken = true;
}

void agreement_begin(struct agreement *agreement, uint32_t next_group, uint32_t measured)
{
    if (agreement->open)
        return;
    agreement->round++;
    agreement->active = agreement->open = true;
    *own_report(agreement) = (struct agreement_report){.round = agreement->round,
                                                       .next_group = next_group,
                                                       .measured = measured,
                                                       .failed = failed_of(agreement)};
    report(agreement);
    settle(agreement);
}

void agreement_end(struct agreement *agreement)
{
    agreement->open = false;
}

void agreement_on_link_failed(struct agreement *agreement)
{
    struct agreement_set failed = failed_of(agreement);
    if (!agreement->active || is_same(&failed, agreement_failed(agreement)))
        return;
    own_report(agreement)->failed = failed;
    report(agreement);
    settle(agreement);
}

bool agreement_on_report(struct agreement *agreement, uint32_t rank, const uint8_t *in, size_t bytes)
{
    struct agreement_report *report = &agreement->reports[rank];
    if (!read_report(in, bytes, report))
        return false;
    settle(agreement);
    take_over(agreement, report);
    return true;
}

void agreement_answer(struct agreement *agreement, uint32_t rank)
{
    const struct agreement_report *of = &agreement->reports[rank];
    if (agreement->taken)
        report(agreement); /* who told this rank may be dead */
    else if (!agreement->active && !of->final && of->round > 0 && of->round == agreement->round &&
             !is_same(&of->failed, agreement_failed(agreement)))
        send_report(agreement, rank);
    agreement->taken = false;
}

bool agreement_next_failed(const struct agreement *agreement, uint32_t *rank)
{
    for (; agreement->active && *rank < agreement->members->size; ++*rank)
        for (uint32_t r = 0; r < agreement->members->size; r++)
            if (is_left(agreement, *rank) && is_left(agreement, r) &&
                agreement->reports[r].round >= agreement->round &&
                agreement_has(&agreement->reports[r].failed, *rank))
                return true;
    return false;
}

bool agreement_is_reached(const struct agreement *agreement)
{
    return agreement->round > 0 && !agreement->active;
}
