/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/path.h"

#include <assert.h>

#define PING_QUIET_OVERDUES 4u

void path_init(struct path *path, lh_time now, lh_time keepalive_ns)
{
    assert(keepalive_ns > 0);
    *path = (struct path){.keepalive_ns = keepalive_ns, .ping_at = now, .ping_span = PATH_FIRST_PING_NS};
    lh_rtt_init(&path->rtt);
}

void path_keepalive_set(struct path *path, lh_time keepalive_ns)
{
    assert(keepalive_ns > 0);
    path->keepalive_ns = keepalive_ns;
    if (path->ping_span > keepalive_ns)
        path->ping_span = keepalive_ns;
}

static void take_echo(struct path *path, const struct control_header *header, lh_time now)
{
    /* An echo of the future, or one that was held longer than it exists, is forged or garbage. */
    if (header->echo_ns <= path->last_echo_ns || header->echo_ns > now ||
        now - header->echo_ns < header->echo_delay_ns)
        return;
    path->last_echo_ns = header->echo_ns;
    if (header->echo_delay_ns != UINT32_MAX)
        lh_rtt_on_sample(&path->rtt, now - header->echo_ns - header->echo_delay_ns);
}

/* A peer that speaks needs no ping for a while. */
static void postpone_ping(struct path *path, lh_time now)
{
    lh_time quiet = PING_QUIET_OVERDUES * lh_rtt_overdue_ns(&path->rtt);
    if (quiet == 0)
        return;
    path->ping_span = quiet < path->keepalive_ns ? quiet : path->keepalive_ns;
    path->ping_at = now + path->ping_span;
}

void path_on_heard(struct path *path, const struct control_header *header, lh_time now)
{
    if (header->sent_ns > path->newest_ns) {
        path->newest_ns = header->sent_ns;
        path->newest_heard_ns = now;
    }
    path->last_heard_ns = now;
    take_echo(path, header, now);
    /* A pong answers our ping: it must not restart the span, or two idle peers would ping for ever at full
     * pace. */
    if (header->type != CONTROL_PONG && header->type != CONTROL_PING)
        postpone_ping(path, now);
}

void path_on_traffic(struct path *path, lh_time now)
{
    path->last_heard_ns = now;
}

void path_stamp(const struct path *path, lh_time now, struct control_header *header)
{
    header->sent_ns = now;
    header->echo_ns = path->newest_ns;
    header->echo_delay_ns = 0;
    if (path->newest_ns) {
        lh_time delay = now - path->newest_heard_ns;
        header->echo_delay_ns = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
    }
}

bool path_ping_due(struct path *path, lh_time now)
{
    if (now < path->ping_at)
        return false;
    path->ping_at = now + path->ping_span;
    path->ping_span = path->ping_span * 2 < path->keepalive_ns ? path->ping_span * 2 : path->keepalive_ns;
    return true;
}
