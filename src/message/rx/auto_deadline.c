/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/auto_deadline.h"

#include <assert.h>

#define FIRST_SHARE  10u /* of the limit */
#define MARGIN       1.25
#define SLACK_NS     (50 * LH_NS_PER_US)
#define ROUND_TRIPS  2u
#define SMOOTHING    0.2
#define NOTHING_MOST 16u

lh_time auto_deadline_of(const struct auto_deadline *automatic, uint64_t bytes, lh_time rtt_ns,
                         lh_time limit_ns)
{
    assert(limit_ns >= LH_NS_PER_US);
    double ns = (double)(limit_ns / FIRST_SHARE);
    if (automatic->cost_ns > 0)
        ns = MARGIN * automatic->cost_ns * (double)bytes + (double)(ROUND_TRIPS * rtt_ns + SLACK_NS);
    ns *= (double)(1u << automatic->nothing);
    if (ns >= (double)limit_ns)
        return limit_ns;
    return ns < (double)LH_NS_PER_US ? LH_NS_PER_US : (lh_time)ns;
}

void auto_deadline_on_end(struct auto_deadline *automatic, lh_time took_ns, uint64_t arrived_bytes)
{
    if (arrived_bytes == 0) {
        automatic->nothing += automatic->nothing < NOTHING_MOST;
        return;
    }
    double cost_ns = (double)took_ns / (double)arrived_bytes;
    double before_ns = automatic->cost_ns > 0 ? automatic->cost_ns : cost_ns;
    automatic->cost_ns = before_ns + SMOOTHING * (cost_ns - before_ns);
    automatic->nothing = 0;
}
