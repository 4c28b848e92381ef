/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/data_path.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "wire/roce.h"

/* What a firewall's absence cannot explain: all packets of the announced segments lost, each announcement one
 * overdue round trip after the one before. And not before people would notice. Where half of all packets are
 * lost, some announcements of a lone packet come before the packet does: its repeats become rarer, to eight
 * round trips, and announcements do not. So a lone packet is weaker evidence than several. */
#define EVIDENCE_MIN    32u
#define EVIDENCE_MAX    4u /* of one announcement: its packets */
#define SILENCE_MIN_NS  (2 * LH_NS_PER_S)
#define SILENCE_OVERDUE 8u
#define SILENCE_STEPS   8u /* at least: a clock that jumps, or a host that did not run, is no silence */
#define SILENCE_WHOLE   (1 - 1e-12) /* of sums of shares, which are rounded */
#define PORTS           "let UDP ports 4791 and 49152-65535 through"

static void on_arrived(struct data_path_kind *kind)
{
    kind->passed = true;
    kind->evidence = 0;
}

/* True when so many were announced, for so long, that all of them cannot just be lost. A path that worked
 * gets the time that a silent peer gets. A gap counts as a share of that, by the round trip as it is known
 * when it ends: after a clock's jump that is long, and becomes shorter again. */
static bool on_announced(struct data_path_kind *kind, uint32_t packets, const struct data_path_view *view,
                         lh_time now)
{
    lh_time silence_ns = SILENCE_MIN_NS + SILENCE_OVERDUE * view->overdue_ns;
    const lh_time step_max_ns = silence_ns / SILENCE_STEPS;
    if (packets == 0)
        return false;
    if (kind->evidence == 0) {
        kind->silent = 0;
        kind->last_ns = now;
    }
    lh_time step_ns = now - kind->last_ns < step_max_ns ? now - kind->last_ns : step_max_ns;
    if (kind->passed && silence_ns < view->timeout_ns)
        silence_ns = view->timeout_ns;
    kind->silent += (double)step_ns / (double)silence_ns;
    kind->last_ns = now;
    if (kind->evidence < EVIDENCE_MIN)
        kind->evidence += packets < EVIDENCE_MAX ? packets : EVIDENCE_MAX;
    return kind->evidence >= EVIDENCE_MIN && kind->silent >= SILENCE_WHOLE;
}

enum data_path_state data_path_on_announced(struct data_path *path, const struct data_path_view *view,
                                            lh_time now)
{
    assert(view->bytes > 0 && view->mtu_bytes > 0);
    uint32_t full = view->bytes / view->mtu_bytes;
    uint32_t packets = full + (view->bytes % view->mtu_bytes != 0);
    if (view->packets != path->packets) {
        on_arrived(&path->any);
        path->small = false;
    }
    path->packets = view->packets;
    if (view->full)
        on_arrived(&path->full);
    path->small |= full == 0; /* in a burst with long ones it may be lost with them */
    if (on_announced(&path->any, packets, view, now))
        return DATA_PATH_BLOCKED;
    return on_announced(&path->full, full, view, now) && path->any.passed ? DATA_PATH_TOO_SMALL
                                                                          : DATA_PATH_PASSES;
}

lh_time data_path_since(const struct data_path_view *view, lh_time now)
{
    lh_time silence_ns = SILENCE_MIN_NS + SILENCE_OVERDUE * view->overdue_ns;
    return now > silence_ns ? now - silence_ns : 0;
}

char *data_path_reason(const struct data_path *path, enum data_path_state state, uint32_t mtu_bytes,
                       uint32_t probed_bytes, char *out, size_t size)
{
    assert(state != DATA_PATH_PASSES);
    const char *when = path->any.passed ? " any more" : "";
    bool is_small = state == DATA_PATH_TOO_SMALL && mtu_bytes > ROCE_MTU_MIN;
    char remedy[64] = "or use the --mtu of longhaul probe";
    if (probed_bytes > 0 && probed_bytes < mtu_bytes)
        snprintf(remedy, sizeof remedy, "or use --mtu %u", probed_bytes);
    if (is_small)
        snprintf(out, size,
                 "data packets of MTU %u do not pass%s, smaller ones do: a link on the path takes only "
                 "smaller packets (%s)",
                 mtu_bytes, path->full.passed ? " any more" : "", remedy + strlen("or "));
    else if (path->small || mtu_bytes <= ROCE_MTU_MIN || probed_bytes >= mtu_bytes)
        snprintf(out, size,
                 "data packets do not pass%s, control packets do: a firewall or NAT on the path (" PORTS
                 ")",
                 when);
    else
        snprintf(
            out, size,
            "data packets do not pass%s, control packets do: a firewall, NAT, or a link that takes only "
            "smaller packets (" PORTS ", %s)",
            when, remedy);
    return out;
}
