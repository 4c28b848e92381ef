/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/data_path.h"

/* What a firewall's absence cannot explain: all packets of the announced segments lost, each announcement one
 * overdue round trip after the one before. And not before people would notice. Where half of all packets are
 * lost, some announcements of a lone packet come before the packet does: its repeats become rarer, to eight
 * round trips, and announcements do not. So a lone packet is weaker evidence than several. */
#define EVIDENCE_MIN    32u
#define EVIDENCE_MAX    4u /* of one announcement: its packets */
#define SILENCE_MIN_NS  (2 * LH_NS_PER_S)
#define SILENCE_OVERDUE 8u

bool data_path_on_announced(struct data_path *path, uint32_t packets, bool arrived, lh_time overdue_ns,
                            lh_time now)
{
    path->passes |= arrived;
    if (path->passes)
        return true;
    if (path->evidence == 0)
        path->since_ns = now;
    path->evidence += packets < EVIDENCE_MAX ? packets : EVIDENCE_MAX;
    return path->evidence < EVIDENCE_MIN ||
           now - path->since_ns < SILENCE_MIN_NS + SILENCE_OVERDUE * overdue_ns;
}
