/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/data_path.h"

#include "connection/connection.h"

/* What a firewall's absence cannot explain: all packets of the announced segments lost, each announcement one
 * overdue round trip after the one before. And not before people would notice. Where half of all packets are
 * lost, some announcements of a lone packet come before the packet does: its repeats become rarer, to eight
 * round trips, and announcements do not. So a lone packet is weaker evidence than several. */
#define EVIDENCE_MIN    32u
#define EVIDENCE_MAX    4u /* of one announcement: its packets */
#define SILENCE_MIN_NS  (2 * LH_NS_PER_S)
#define SILENCE_OVERDUE 8u

static bool anything_arrived(struct lh_connection *c)
{
    struct lh_stats stats;
    return lh_sdr_stats(c->qp, &stats) || stats.rx_packets > 0;
}

void data_path_on_announced(struct lh_connection *c, uint32_t bytes, lh_time now)
{
    uint32_t packets = (bytes - 1) / c->attr.mtu_bytes + 1;
    struct data_path *path = &c->data_path;
    if (path->passes)
        return;
    if (anything_arrived(c)) {
        path->passes = true;
        return;
    }
    if (path->evidence == 0)
        path->since_ns = now;
    path->evidence += packets < EVIDENCE_MAX ? packets : EVIDENCE_MAX;
    if (path->evidence < EVIDENCE_MIN ||
        now - path->since_ns < SILENCE_MIN_NS + SILENCE_OVERDUE * c->path.overdue_ns)
        return;
    const char *reason = lh_strerror(LH_EPATH);
    /* First by the stream: packets that say goodbye say no reason. */
    if (c->liveness.lifeline_ops)
        c->liveness.lifeline_ops->refuse(c->liveness.lifeline, reason);
    connection_fail(c, LH_EPATH, reason);
}
