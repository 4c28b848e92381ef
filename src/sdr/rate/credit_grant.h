/*
 * credit_grant.h - the receiver's half of a controller by credits: what the peer may have sent in all. Pure.
 *
 * The peer asks for it in its QP info, by number. Without one its credit has no limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_CREDIT_GRANT_H
#define LH_SDR_RATE_CREDIT_GRANT_H

#include <longhaul/congestion.h>

struct credit_grant {
    const struct lh_congestion *controller; /* NULL: no limit */
    void *state;
    uint32_t mtu_bytes;
    uint64_t arrived_packets; /* that the controller knows of */
    uint64_t marked_packets;
    lh_time next_ns; /* when it has more to grant; LH_TIME_NEVER */
};

/* The number of a controller in QP info; 0: it has no receiver's half. */
uint8_t credit_grant_number(const struct lh_congestion *controller);
/* The controller of a number, or NULL: there is none. Any number may come from the peer. */
const struct lh_congestion *credit_grant_of(uint8_t number);
/* state: receiver_bytes of the controller, aligned to 64, owned by the caller. */
void credit_grant_start(struct credit_grant *grant, const struct lh_congestion *controller, void *state,
                        const struct lh_congestion_path *path, lh_time now);
/* Totals of packets that arrived and were marked. Bytes that the peer may have sent in all; UINT64_MAX: no
 * limit. */
uint64_t credit_grant_renew(struct credit_grant *grant, uint64_t arrived_packets, uint64_t marked_packets,
                            lh_time now);

#endif
