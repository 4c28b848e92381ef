/*
 * group_meeting.h - the rendezvous of a group's ranks over TCP, the same for rank 0 and the others: all join,
 * and exchange blobs any number of times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_MEETING_H
#define LH_LAUNCH_GROUP_MEETING_H

#include <longhaul/types.h>

#include "launch/group_root.h"
#include "launch/launcher.h"
#include "launch/tls_channel.h"

/* ---- group rank ------------------------------------------------------------------------------------ */

/* Any rank but 0 of a rendezvous over TCP: joins rank 0 and takes part in exchanges. */

struct group_rank {
    struct channel channel;
    const char *where; /* rank 0; for messages */
    uint32_t rank, size, round;
};

/* ---- group meeting --------------------------------------------------------------------------------- */

struct group_meeting {
    uint32_t rank, size;
    lh_time timeout_ns;
    struct group_root *root;  /* of rank 0; NULL: alone */
    struct group_rank member; /* of the others */
};

/* Returns when all ranks have joined. settings, and tls, NULL for clear text, stay the caller's until
 * group_meeting_close(). timeout_ns: of this and of each exchange. Errors as of group_root_join() and
 * group_rank_join(). */
int group_meeting_open(const struct launcher_settings *settings, struct tls_context *tls,
                       lh_time timeout_ns, struct group_meeting *meeting);
/* An lh_exchange_fn: gathers `bytes` of each rank. context: the meeting. */
int group_meeting_exchange(void *context, const void *mine, size_t bytes, void *all);
/* lh_last_error() stays. */
void group_meeting_close(struct group_meeting *meeting);

#endif
