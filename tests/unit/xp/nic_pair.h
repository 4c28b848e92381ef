/*
 * nic_pair.h - two NICs, and what is between them, in virtual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_UNIT_XP_NIC_PAIR_H
#define LH_TESTS_UNIT_XP_NIC_PAIR_H

#include "xp/xp_nic.h"

#include <stdlib.h>
#include <string.h>

#define PAIR_QPS       8u
#define PAIR_WORKS     64u
#define PAIR_RESPONSES 4u
#define PAIR_REGIONS   4u
#define PAIR_MTU       256u
#define PAIR_TICK      (4 * LH_NS_PER_US)
#define PAIR_LINE_BPS  UINT64_C(4000000000000) /* no packet waits for its pace */

struct pair_memory {
    struct xp_qp qps[PAIR_QPS];
    struct xp_host_qp host[PAIR_QPS];
    struct wheel_timer timers[PAIR_QPS * XP_TIMERS];
    uint32_t due[PAIR_QPS * XP_TIMERS];
    struct xp_work works[PAIR_WORKS + PAIR_RESPONSES];
    struct lh_xp_completion completions[PAIR_WORKS];
    struct xp_region regions[PAIR_REGIONS];
};

/* Side 0 and side 1; each knows the other as peer 7. */
struct nic_pair {
    struct xp_nic nics[2];
    struct pair_memory memory[2];
    lh_time now;
};

static inline void pair_start(struct nic_pair *pair, lh_time now)
{
    const struct xp_limits limits = {PAIR_QPS, PAIR_WORKS, PAIR_RESPONSES, PAIR_REGIONS};
    memset(pair, 0, sizeof *pair);
    pair->now = now;
    for (int i = 0; i < 2; i++) {
        struct pair_memory *m = &pair->memory[i];
        const struct xp_memory memory = {m->qps,   m->host,        m->timers, m->due,
                                         m->works, m->completions, m->regions};
        struct xp_rate_config rate;
        xp_rate_config_init(&rate, PAIR_LINE_BPS);
        xp_nic_init(&pair->nics[i], &limits, &memory, &rate, PAIR_MTU, PAIR_TICK, now);
    }
}

/* Opens a queue pair on both sides; both have the same number. The first messages have those numbers. */
static inline uint32_t pair_connect(struct nic_pair *pair, uint32_t seq0, uint32_t seq1)
{
    uint32_t qpn[2];
    for (int i = 0; i < 2; i++)
        if (xp_nic_open(&pair->nics[i], &qpn[i]))
            abort();
    for (int i = 0; i < 2; i++) {
        struct xp_peer peer = {7, qpn[!i], i ? seq1 : seq0, i ? seq0 : seq1};
        if (xp_nic_connect(&pair->nics[i], qpn[i], &peer, pair->now))
            abort();
    }
    return qpn[0];
}

#endif
