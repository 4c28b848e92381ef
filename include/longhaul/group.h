/*
 * group.h - groups of ranks for collectives (longhaul/collective.h), each rank connected to all others.
 *
 * A rank, 0 to size - 1, is one lh_group_create() call, usually one process. A group, its splits, and its
 * shrunken and grown groups share connections, over one engine per rank. All ranks create, split, shrink,
 * grow and destroy groups in the same order.
 *
 * Progress: with workers in the engine, lh_collective_test() and lh_collective_wait() make progress, or a
 * thread of the group does (`thread`). Without workers (LH_NO_WORKERS) the caller calls lh_group_progress().
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

/* Gathers a blob from each rank: copies rank r's `mine` to every rank's `all`, at r * bytes. All ranks call
 * it with the same `bytes`. Returns 0, or a negative lh_error, which lh_group_create() returns. */
typedef int (*lh_exchange_fn)(void *context, const void *mine, size_t bytes, void *all);

#define LH_GROUP_RANKS_MAX 256
#define LH_GROUP_SITE_MAX  64 /* bytes of a site's name, with the final zero */

/* Zero means the default. Call lh_group_attr_init() first. The group copies all attributes. */
struct lh_group_attr {
    size_t struct_bytes; /* set by lh_group_attr_init, so that the struct can grow */
    uint32_t rank;
    uint32_t size; /* number of ranks: 1 to LH_GROUP_RANKS_MAX */
    /* Required for more than one rank; called only by lh_group_create() and lh_group_grow(). */
    lh_exchange_fn exchange;
    void *exchange_context;
    /* Name of this rank's site; NULL: no name; ranks without a name form one site. If no rank has a name,
     * schedules derive sites from measured round trips. */
    const char *site;
    /* Engine shared with other connections and groups: see longhaul/engine.h. NULL: the group's own, on
     * `device`. */
    struct lh_engine *engine;
    const char
        *device; /* "udp:10.0.0.1": for the group's own engine, an address that the peers can reach */
    /* Attributes of connections: reliability, congestion, rate, emulated link, MTU. The group sets engine,
     * device, workers and match_tags; with the reliability `bounded` also zero_missing
     * (longhaul/collective.h). With `security` all packets between ranks are encrypted, and ranks without
     * the key are refused; of lh_group_create only LH_ENCRYPTION_FULL and _OFF. Default MTU: the largest
     * that the interfaces of all ranks take. NULL: the defaults. */
    const struct lh_attr *attr;
    const struct lh_attr *attr_across; /* attributes of connections to other sites; NULL: as attr */
    lh_time timeout_ns;                /* until all ranks are connected; default 30 s */
    lh_time peer_timeout_ns;           /* silence after which a rank has failed; default 10 s */
    size_t block_bytes;                /* maximum bytes of a block, and so of a message; default 256 KiB */
    /* Receive buffer per peer, at least 4 blocks; default 16 MiB. A path carries at most this much per round
     * trip. */
    size_t buffer_bytes;
    bool thread; /* a thread of the group makes progress, even while no call waits; needs workers */
};

LH_API void lh_group_attr_init(struct lh_group_attr *attr);
/* All calls that return int: -LH_EINVAL: a required pointer, named in the message, is NULL. */

/* Connects all ranks with each other, and returns when every pair has a path. -LH_EINVAL; -LH_ETIMEDOUT: a
 * rank, named in the message, is missing; the errors of the exchange and of lh_attach(). */
LH_API int lh_group_create(const struct lh_group_attr *attr, struct lh_group **group);
/* Cancels pending collectives, waits until the peers have received all messages or have failed, but no longer
 * than peer_timeout_ns, and frees the group. The last group that uses the connections closes them. NULL is
 * allowed. -LH_ESTATE, without effect: collectives are not freed. */
LH_API int lh_group_destroy(struct lh_group *group);

LH_API uint32_t lh_group_rank(const struct lh_group *group);
LH_API uint32_t lh_group_size(const struct lh_group *group);
/* Returns the name of a rank's site, "" without a name; NULL: no such rank. Valid as long as the group. */
LH_API const char *lh_group_site(const struct lh_group *group, uint32_t rank);
/* Returns 0, or the error of a failed rank: -LH_EPEER, -LH_ECLOSED. -LH_EINVAL: no such rank. */
LH_API int lh_group_error(struct lh_group *group, uint32_t rank);
/* Returns the engine that the group uses. */
LH_API struct lh_engine *lh_group_engine(const struct lh_group *group);
/* Returns the largest mtu_bytes that the interfaces of all ranks take, for connections beside the group's; 0:
 * not known, as on loopback. */
LH_API uint32_t lh_group_mtu(const struct lh_group *group);
/* Returns the encryption of the group, the same at all ranks; of lh_group_create(), whose exchange is the
 * caller's, LH_ENCRYPTION_FULL is all packets. */
LH_API enum lh_encryption lh_group_encryption(const struct lh_group *group);

/* Makes a group of the ranks that have not failed, in their order. All of these ranks call it. Waits at most
 * timeout_ns of the group's attributes. Ranks keep their numbers in `group`. A rank that fails during the
 * call may become a member; the next call on the new group then fails, and the ranks shrink that group.
 * -LH_ETIMEDOUT: a surviving rank did not call in time; call again, before these ranks make another group.
 * -LH_ESTATE: no workers. */
LH_API int lh_group_shrink(struct lh_group *group, struct lh_group **smaller);
/* Makes a group of members of `group` and of newcomers; NULL: this rank is a newcomer, as with
 * lh_group_create(). All ranks of the new group call it, each with its new rank, and an exchange of all of
 * them. Connections between members are kept, with their keys and all that they have learned; only pairs with
 * a newcomer connect. Operations of `group` go on.
 *
 * attr: as of lh_group_create(), for connections to newcomers; members of an encrypted group give a key
 * again, the same one or another. A member keeps the engine (set NULL, or the same), device, block_bytes and
 * peer_timeout_ns of the group; its site, too, unless attr has one. timeout_ns: of each step, and of later
 * calls.
 *
 * Members of `group` that do not take part count as failed afterwards: a living one should have ended its
 * calls, as messages to it may be lost. After an error `group` is as before,
 * and may grow again. A rank that has an error tells the others: they have one, too, or, where their call had
 * returned, one from each call on the new group. The new group knows of paths what lh_group_create() would
 * (call lh_group_measure()).
 *
 * Errors as of lh_group_create(). -LH_EINVAL: attr differs from the group in encryption, in whether
 * reliability is bounded, or in the engine; -LH_EHANDSHAKE: cards of ranks do not fit together, or the
 * exchange gave ranks different ones; -LH_EPEER: a rank has failed for another; -LH_ESTATE: no workers, the
 * group is a part of another, or it grows already; -LH_ERANGE: 16384 groups were made over these
 * connections. */
LH_API int lh_group_grow(struct lh_group *group, const struct lh_group_attr *attr, struct lh_group **grown);
/* Makes a group of the ranks with the same color, ordered by key, then rank. All ranks call it. color:
 * LH_GROUP_NO_COLOR for a rank in no group; its *part is NULL. -LH_EPEER: a rank has failed; -LH_ETIMEDOUT;
 * -LH_ESTATE: no workers. */
LH_API int lh_group_split(struct lh_group *group, uint32_t color, uint32_t key, struct lh_group **part);
#define LH_GROUP_NO_COLOR UINT32_MAX

/* Measures the paths between all ranks, and orders the ranks by them. All ranks call it, in the same order as
 * collectives. Pairs of ranks exchange bursts of up to 21 MiB each way with the default block_bytes; a rank,
 * and a pair of sites, measures one pair at a time. Waits at most timeout_ns of the attributes for each
 * burst.
 *
 * Later schedules are chosen by the measured rates, losses and round trips instead of those of the
 * attributes: rings, trees and leaders avoid slow paths, then long ones. A sum of floats may then be rounded
 * differently than before, but equally on all ranks. Pending collectives keep their order, and disturb the
 * measurement. Groups that are split or shrunk from this one inherit the measurement.
 *
 * After an error nothing has changed here, but ranks may differ: call again. -LH_EPEER: a rank has failed;
 * -LH_ECLOSED: a rank has left; -LH_ETIMEDOUT; -LH_ECANCELED: another rank aborted; -LH_ESTATE: no
 * workers. */
LH_API int lh_group_measure(struct lh_group *group);

/* The measured path from one rank to another. */
struct lh_group_path {
    lh_time rtt_ns;
    uint64_t rate_bps; /* 0: unknown */
    double loss;       /* of packets, 0 to 1 */
};
/* Gets the measurement of a path. -LH_EINVAL: no such ranks; -LH_ESTATE: nothing was measured. */
LH_API int lh_group_path(struct lh_group *group, uint32_t from, uint32_t to, struct lh_group_path *path);
/* Gets a rank's place in the order of schedules, and the number of its site there. place, site: may be NULL.
 * -LH_EINVAL: no such rank. */
LH_API int lh_group_place(struct lh_group *group, uint32_t rank, uint32_t *place, uint32_t *site);

/* Makes progress on a group whose engine has no workers, and on all connections of that engine. *next_ns:
 * latest time of the next call; may be NULL. -LH_ESTATE: the engine has workers. */
LH_API int lh_group_progress(struct lh_group *group, lh_time *next_ns);

#ifdef __cplusplus
}
#endif
#endif
