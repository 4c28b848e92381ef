/*
 * group.h - groups of ranks for collectives (longhaul/collective.h), each connected with each.
 *
 * A rank, 0 to size - 1, is one lh_group_create() call, mostly one process. A group, its splits and what it
 * shrinks to share their connections, over one engine per rank. Groups are created, split, shrunk and
 * destroyed by all their ranks in the same order.
 *
 * Progress: with workers in the engine, lh_collective_test() and lh_collective_wait() do a group's work, or a
 * thread of the group (`thread`). Without workers (LH_NO_WORKERS) the caller calls lh_group_progress().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_GROUP_H
#define LONGHAUL_GROUP_H

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_group;

/* Gathers a blob of each rank: copies the `bytes` of `mine` to each rank's `all`, rank r's at r * bytes.
 * Called by all ranks with the same bytes. Returns 0, or a negative lh_error, which lh_group_create()
 * returns. */
typedef int (*lh_exchange_fn)(void *context, const void *mine, size_t bytes, void *all);

#define LH_GROUP_RANKS_MAX 256
#define LH_GROUP_SITE_MAX  64 /* bytes of a site's name, with the final zero */

/* Zero means the default. Call lh_group_attr_init() first. All of it is copied. */
struct lh_group_attr {
    size_t struct_bytes; /* set by lh_group_attr_init: lets the struct grow */
    uint32_t rank;
    uint32_t size;           /* number of ranks: 1 to LH_GROUP_RANKS_MAX */
    lh_exchange_fn exchange; /* needed for more than one rank; called by lh_group_create() alone */
    void *exchange_context;
    /* Name of this rank's site; NULL: all ranks without a name are one site. Where no rank has a name,
     * schedules have sites by measured round trips. */
    const char *site;
    /* Shared with other connections and groups: see longhaul/engine.h. NULL: one of its own, on `device`. */
    struct lh_engine *engine;
    const char *device; /* "udp:10.0.0.1": of an engine of its own, at an address that the peers reach */
    /* Attributes of connections: reliability, congestion, rate, emulated link, MTU. engine, device, workers
     * and match_tags are set by the group; zero_missing, where reliability is `bounded`
     * (longhaul/collective.h). NULL: the defaults. */
    const struct lh_attr *attr;
    const struct lh_attr *attr_across; /* of connections to other sites; NULL: as attr */
    lh_time timeout_ns;                /* until all ranks are connected; default 30 s */
    lh_time peer_timeout_ns;           /* silence after which a rank counts as failed; default 10 s */
    size_t block_bytes;                /* maximum bytes of a block, so of a message; default 256 KiB */
    /* Buffer for blocks that arrive, per peer: at least 4 blocks. A path carries at most this much per round
     * trip. Default 16 MiB. */
    size_t buffer_bytes;
    bool thread; /* a thread of the group makes progress, also while no call waits; needs workers */
};

LH_API void lh_group_attr_init(struct lh_group_attr *attr);
/* Calls that return int: -LH_EINVAL where a pointer that they need is NULL, which the message names. */

/* Connects all ranks with each other. Returns when each has a path to each. -LH_EINVAL; -LH_ETIMEDOUT: a rank
 * is missing, which the message names; what the exchange and lh_attach() return. */
LH_API int lh_group_create(const struct lh_group_attr *attr, struct lh_group **group);
/* Cancels pending collectives, waits until the peers have all that was sent to them, or count as failed, and
 * frees the group; the connections are closed with the last group that uses them. NULL is allowed.
 * -LH_ESTATE: collectives are not freed, and nothing changes. */
LH_API int lh_group_destroy(struct lh_group *group);

LH_API uint32_t lh_group_rank(const struct lh_group *group);
LH_API uint32_t lh_group_size(const struct lh_group *group);
/* Name of a rank's site, "" without one. NULL: no such rank. Valid as long as the group. */
LH_API const char *lh_group_site(const struct lh_group *group, uint32_t rank);
/* 0, or the error of a rank that has failed: -LH_EPEER, -LH_ECLOSED. -LH_EINVAL: no such rank. */
LH_API int lh_group_error(struct lh_group *group, uint32_t rank);
/* The engine that the group uses. */
LH_API struct lh_engine *lh_group_engine(const struct lh_group *group);

/* Makes a group of the ranks that have not failed, in their order; all of these call it. Waits at most
 * timeout_ns of the group's attributes. Ranks of `group` keep their numbers there. One that fails while the
 * others agree may be a member: then what is called next fails, and this is called with that group.
 * -LH_ETIMEDOUT: the survivors do not agree in that time, since one of them does not call: call it again,
 * before these ranks make another group; -LH_ESTATE: no workers. */
LH_API int lh_group_shrink(struct lh_group *group, struct lh_group **smaller);
/* Makes a group of the ranks with the same color, ordered by key, then rank; all ranks call it.
 * color: LH_GROUP_NO_COLOR: the rank is in none, and *part is NULL. -LH_EPEER: a rank has failed;
 * -LH_ETIMEDOUT; -LH_ESTATE: no workers. */
LH_API int lh_group_split(struct lh_group *group, uint32_t color, uint32_t key, struct lh_group **part);
#define LH_GROUP_NO_COLOR UINT32_MAX

/* Measures the paths between all ranks, and orders the ranks by them; all ranks call it, in the same order
 * as collectives. Pairs of ranks exchange bursts, one pair of a rank and of two sites at a time: up to 21
 * MiB each way with the default block_bytes. From then on schedules are chosen by the rates, losses and
 * round trips that were measured, in place of those of attributes; rings, trees and leaders avoid slow
 * paths, then long ones. So a sum of floats may be rounded otherwise than before; ranks still have the
 * same. Collectives that are pending keep their order, and disturb what is measured. Groups that are split
 * from this one, or that it shrinks to, keep what it knows. Waits at most timeout_ns of the attributes for
 * each burst. On an error nothing has changed, but ranks may differ: call it again. -LH_EPEER: a rank has
 * failed; -LH_ECLOSED: has left; -LH_ETIMEDOUT; -LH_ECANCELED: another rank gave up; -LH_ESTATE: no
 * workers. */
LH_API int lh_group_measure(struct lh_group *group);

/* What was measured of the path from a rank to another. */
struct lh_group_path {
    lh_time rtt_ns;
    uint64_t rate_bps; /* 0: unknown */
    double loss;       /* of packets, 0 to 1 */
};
/* -LH_EINVAL: no such ranks; -LH_ESTATE: nothing was measured. */
LH_API int lh_group_path(struct lh_group *group, uint32_t from, uint32_t to, struct lh_group_path *path);
/* Place of a rank in the order that schedules follow, and the number of its site there; each may be NULL.
 * -LH_EINVAL: no such rank. */
LH_API int lh_group_place(struct lh_group *group, uint32_t rank, uint32_t *place, uint32_t *site);

/* Makes progress on a group whose engine has no workers, and on all connections of that engine. *next_ns:
 * time of the next call at the latest; NULL is allowed. -LH_ESTATE: the engine has workers. */
LH_API int lh_group_progress(struct lh_group *group, lh_time *next_ns);

#ifdef __cplusplus
}
#endif
#endif
