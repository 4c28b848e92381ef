/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/rto.h"

#include <assert.h>

#include "base/least.h"

static struct sr_rto_group *group_at(struct sr_rto *rto, uint32_t number)
{
    return &rto->groups[number % SR_RTO_GROUPS];
}

void sr_rto_init(struct sr_rto *rto, uint32_t alpha_hundredths)
{
    rto->oldest = 1;
    rto->next = 1;
    rto->alpha_hundredths = alpha_hundredths;
}

lh_time sr_rto_span(const struct sr_rto *rto, const struct sr_timing *timing)
{
    lh_time span = timing->rtt_ns + timing->rtt_ns / 100 * rto->alpha_hundredths;
    return lh_most(span, sr_after(timing->overdue_ns, sr_ack_spacing(timing)));
}

uint32_t sr_rto_stamp(struct sr_rto *rto, const struct sr_timing *timing, lh_time now)
{
    uint32_t alive = rto->next - rto->oldest; /* numbers may wrap */
    assert(alive <= SR_RTO_GROUPS);
    if (alive == SR_RTO_GROUPS)
        return rto->next - 1;
    lh_time share = sr_rto_span(rto, timing) / 64;
    if (alive > 0 && now - group_at(rto, rto->next - 1)->first_ns < share)
        return rto->next - 1;
    *group_at(rto, rto->next) = (struct sr_rto_group){.first_ns = now, .last_ns = now, .low = UINT32_MAX};
    return rto->next++;
}

void sr_rto_on_injection(struct sr_rto *rto, struct sr_run run, lh_time now)
{
    assert(rto->next != rto->oldest && run.count > 0);
    struct sr_rto_group *group = group_at(rto, rto->next - 1);
    uint32_t last = run.first + run.count - 1;
    group->last_ns = now;
    if (run.first < group->low)
        group->low = run.first;
    if (last > group->high)
        group->high = last;
}

lh_time sr_rto_expiry(const struct sr_rto *rto, const struct sr_timing *timing)
{
    if (rto->oldest == rto->next)
        return LH_TIME_NEVER;
    return sr_after(rto->groups[rto->oldest % SR_RTO_GROUPS].last_ns, sr_rto_span(rto, timing));
}

/* What of one word was last injected with this group and is still under way. */
static uint64_t expired_of_word(const struct sr_ledger *ledger, uint32_t word, uint32_t number)
{
    uint64_t expired = 0;
    for (uint64_t left = sr_ledger_under_way(ledger, word); left != 0; left &= left - 1) { /* at most 64 */
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        if (ledger->stamps[word * 64 + bit] == number)
            expired |= (uint64_t)1 << bit;
    }
    return expired;
}

static uint32_t expire_group(struct sr_ledger *ledger, const struct sr_rto_group *group, uint32_t number)
{
    uint32_t count = 0;
    if (group->low == UINT32_MAX) /* opened, and nothing was injected after all */
        return 0;
    assert(group->low <= group->high && group->high < ledger->chunks);
    for (uint32_t word = group->low / 64; word <= group->high / 64; word++) {
        uint64_t expired = expired_of_word(ledger, word, number);
        sr_ledger_lose_word(ledger, word, expired);
        count += (uint32_t)__builtin_popcountll(expired);
    }
    return count;
}

uint32_t sr_rto_on_expired(struct sr_rto *rto, struct sr_ledger *ledger, const struct sr_timing *timing,
                           lh_time now)
{
    uint32_t count = 0;
    while (sr_rto_expiry(rto, timing) <= now) { /* at most SR_RTO_GROUPS */
        count += expire_group(ledger, group_at(rto, rto->oldest), rto->oldest);
        rto->oldest++;
    }
    return count;
}
