/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_meeting.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static int open_root(const struct launcher_settings *settings, lh_time timeout_ns,
                     struct group_meeting *meeting)
{
    char cause[256];
    int error =
        group_root_open(settings->listen, settings->size, settings->secret, settings->job, &meeting->root);
    if (error == -LH_EADDR) {
        snprintf(cause, sizeof cause, "%s", lh_last_error());
        return lh_fail(LH_EADDR, "rank 0 cannot listen at %s (set MASTER_PORT to a free port)", cause);
    }
    if (error)
        return error;
    error = group_root_join(meeting->root, timeout_ns);
    if (error)
        group_meeting_close(meeting);
    return error;
}

int group_meeting_open(const struct launcher_settings *settings, lh_time timeout_ns,
                       struct group_meeting *meeting)
{
    *meeting =
        (struct group_meeting){.rank = settings->rank, .size = settings->size, .timeout_ns = timeout_ns};
    if (settings->size == 1)
        return 0;
    if (settings->rank == 0)
        return open_root(settings, timeout_ns, meeting);
    const struct group_rank_terms terms = {
        .where = settings->where,
        .rank = settings->rank,
        .size = settings->size,
        .secret = settings->secret,
        .job = settings->job,
    };
    return group_rank_join(&meeting->member, &terms, timeout_ns);
}

int group_meeting_exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct group_meeting *meeting = context;
    if (meeting->rank > 0)
        return group_rank_exchange(&meeting->member, mine, bytes, all, meeting->timeout_ns);
    if (meeting->root)
        return group_root_exchange(meeting->root, mine, bytes, all, meeting->timeout_ns);
    if (bytes)
        memcpy(all, mine, bytes);
    return 0;
}

int group_meeting_socket(const struct group_meeting *meeting, uint32_t rank)
{
    if (meeting->rank > 0)
        return rank == 0 ? meeting->member.fd : -1;
    return meeting->root && rank > 0 ? group_root_socket(meeting->root, rank) : -1;
}

void group_meeting_close(struct group_meeting *meeting)
{
    char kept[512];
    snprintf(kept, sizeof kept, "%s", lh_last_error());
    if (meeting->rank > 0)
        group_rank_close(&meeting->member);
    else if (meeting->root)
        group_root_close(meeting->root);
    lh_error_set(LH_EHANDSHAKE, kept);
}
