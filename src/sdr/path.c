/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/path.h"

#include <assert.h>

#define PING_QUIET_OVERDUES 4u

void path_init(struct path *path, lh_time now, lh_time keepalive_ns, uint64_t secret, uint64_t *challenges)
{
    assert(keepalive_ns > 0);
    *path = (struct path){.challenges = challenges,
                          .keepalive_ns = keepalive_ns,
                          .ping_at = now,
                          .ping_span = PATH_FIRST_PING_NS};
    path->origin_ns = secret >> 2 | 1; /* with any clock, neither 0 nor too long */
    path->last_echo_ns = path->origin_ns - 1;
    lh_rtt_init(&path->rtt);
}

void path_keepalive_set(struct path *path, lh_time keepalive_ns)
{
    assert(keepalive_ns > 0);
    path->keepalive_ns = keepalive_ns;
    if (path->proven && path->ping_span > keepalive_ns)
        path->ping_span = keepalive_ns;
}

/* True from the first echo on of something that was sent there. */
static bool check_proof(struct path *path, uint64_t echo_ns, lh_time now)
{
    for (uint32_t i = 0; i < PATH_CHALLENGES && !path->proven; i++)
        path->proven = echo_ns != 0 && path->challenges[i] == echo_ns;
    if (path->proven && path->ping_span > path->keepalive_ns)
        path->ping_span = path->keepalive_ns;
    if (path->proven && path->ping_at > now + path->ping_span)
        path->ping_at = now + path->ping_span;
    return path->proven;
}

static void take_echo(struct path *path, const struct control_header *header, lh_time now)
{
    if (!path->proven && !check_proof(path, header->echo_ns, now))
        return;
    /* An echo of the future, or one that was held longer than it exists, is forged or garbage. */
    if (header->echo_ns <= path->last_echo_ns || header->echo_ns - path->origin_ns > now)
        return;
    lh_time age_ns = now - (header->echo_ns - path->origin_ns);
    if (age_ns < header->echo_delay_ns)
        return;
    path->last_echo_ns = header->echo_ns;
    if (header->echo_delay_ns != UINT32_MAX)
        lh_rtt_on_sample(&path->rtt, age_ns - header->echo_delay_ns);
}

/* A peer that sends needs no ping for a while. */
static void postpone_ping(struct path *path, lh_time now)
{
    lh_time quiet = PING_QUIET_OVERDUES * lh_rtt_overdue_ns(&path->rtt);
    if (quiet == 0)
        return;
    path->ping_span = quiet < path->keepalive_ns ? quiet : path->keepalive_ns;
    path->ping_at = now + path->ping_span;
}

static bool is_keepalive(enum control_type type)
{
    return type == CONTROL_PING || type == CONTROL_PONG || type == CONTROL_KEEPALIVE ||
           type == CONTROL_ALIVE || type == CONTROL_PROBE || type == CONTROL_PROBED;
}

void path_on_control(struct path *path, const struct control_header *header, lh_time now)
{
    if (header->sent_ns > path->newest_ns) {
        path->newest_ns = header->sent_ns;
        path->newest_received_ns = now;
    }
    path->last_received_ns = now;
    take_echo(path, header, now);
    /* A pong answers our ping: it must not restart the span, or two idle peers would ping for ever at full
     * pace. */
    if (!is_keepalive(header->type))
        postpone_ping(path, now);
}

void path_on_traffic(struct path *path, lh_time now)
{
    path->last_received_ns = now;
}

void path_stamp(struct path *path, lh_time now, struct control_header *header)
{
    header->sent_ns = path->origin_ns + now;
    if (!path->proven)
        path->challenges[path->challenge_next++ % PATH_CHALLENGES] = header->sent_ns;
    header->echo_ns = path->newest_ns;
    header->echo_delay_ns = 0;
    if (path->newest_ns) {
        lh_time delay = now - path->newest_received_ns;
        header->echo_delay_ns = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
    }
}

bool path_ping_due(struct path *path, lh_time now)
{
    if (now < path->ping_at)
        return false;
    lh_time longest = path->proven ? path->keepalive_ns : PATH_CHALLENGE_SPAN_MAX_NS;
    path->ping_at = now + path->ping_span;
    path->ping_span = path->ping_span * 2 < longest ? path->ping_span * 2 : longest;
    return true;
}
