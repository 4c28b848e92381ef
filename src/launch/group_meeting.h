/*
 * group_rank.h - any rank but 0 of a rendezvous over TCP: joins rank 0 and takes part in exchanges.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_GROUP_RANK_H
#define LH_LAUNCH_GROUP_GROUP_RANK_H

#include <longhaul/types.h>

/* What a rank waits beyond its own timeout, so that the reason of rank 0 comes first. */
#define GROUP_GRACE_NS (2 * LH_NS_PER_S)

struct group_rank {
    int fd;
    const char *where; /* rank 0; for messages */
    uint32_t rank, size, round;
};

/* What a rank claims to be, and where rank 0 listens; all texts stay the caller's until group_rank_close().
 */
struct group_rank_terms {
    const char *where;
    uint32_t rank, size;
    const char *secret; /* "": none */
    const char *job;    /* "": not known */
};

/* Connects to rank 0 until it answers, again where rank 0 had no place or the connection failed, and waits
 * until all ranks have joined: at most twice the timeout, and GROUP_GRACE_NS. -LH_EHANDSHAKE: rank 0
 * refuses, or has another secret or job; -LH_ETIMEDOUT; -LH_EPEER: rank 0 has answered, and has ended
 * since. */
int group_rank_join(struct group_rank *rank, const struct group_rank_terms *terms, lh_time timeout_ns);
/* As group_exchange(). */
int group_rank_exchange(struct group_rank *rank, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns);
void group_rank_close(struct group_rank *rank);

#endif
