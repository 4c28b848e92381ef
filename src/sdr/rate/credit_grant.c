/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate/credit_grant.h"

#include "congestion/congestion_table.h"

uint8_t credit_grant_number(const struct lh_congestion *controller)
{
    return controller->receiver_credit ? congestion_wire_number(controller) : 0;
}

const struct lh_congestion *credit_grant_of(uint8_t number)
{
    const struct lh_congestion *controller = congestion_of_wire_number(number);
    return controller && controller->receiver_credit ? controller : NULL;
}

void credit_grant_start(struct credit_grant *grant, const struct lh_congestion *controller, void *state,
                        const struct lh_congestion_path *path, lh_time now)
{
    uint8_t params[LH_CONGESTION_PARAMS] = {0};
    *grant = (struct credit_grant){
        .controller = controller, .state = state, .mtu_bytes = path->mtu_bytes, .next_ns = now};
    controller->parse("", params);
    controller->receiver_start(state, path, params, now);
}

static uint64_t newly(uint64_t *known, uint64_t total)
{
    uint64_t more = total > *known ? total - *known : 0;
    *known += more;
    return more;
}

uint64_t credit_grant_renew(struct credit_grant *grant, uint64_t arrived_packets, uint64_t marked_packets,
                            lh_time now)
{
    if (!grant->controller)
        return UINT64_MAX;
    uint64_t arrived = newly(&grant->arrived_packets, arrived_packets);
    uint64_t marked = newly(&grant->marked_packets, marked_packets);
    if (arrived > 0)
        grant->controller->receiver_on_arrived(grant->state, arrived * grant->mtu_bytes,
                                               (marked < arrived ? marked : arrived) * grant->mtu_bytes,
                                               now);
    grant->next_ns = LH_TIME_NEVER;
    return grant->controller->receiver_credit(grant->state, now, &grant->next_ns);
}
