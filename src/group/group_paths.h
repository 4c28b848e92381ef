/*
 * group_paths.h - the measured paths between the members of a group, and the order of ranks and choice of
 * schedules by them.
 *
 * At creation they agree on round trips, and on the rates and losses that their attributes name; after
 * lh_group_measure() on what was measured. All compute the same from the same rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_PATHS_H
#define LH_GROUP_GROUP_PATHS_H

#include <pthread.h>

#include <longhaul/group.h>

#include "collective/choose/schedule_choice.h"
#include "collective/operation_progress.h"
#include "collective/schedule.h"
#include "group/group_link.h"

/* Kept by the group and by each operation that follows it. */
struct group_order {
    struct site_map map;
    uint32_t users;
    uint32_t numbers[];
};

/* Schedules that were chosen; the same at all members. */
struct choosing {
    const struct schedule **chosen; /* by collective and size; NULL: none was asked for */
};

/* The same at all members, as far as `measured` is. */
struct group_paths {
    const struct members *members;
    char (*sites)[LH_GROUP_SITE_MAX]; /* by rank, the group's */
    size_t block_bytes;
    pthread_mutex_t *lock;              /* of the mesh: what operations read changes under it */
    struct path_figures inside, across; /* the worst, in sites and between */
    struct path_figures *pairs;         /* by sender * size + receiver; NULL: not measured */
    uint32_t measured;                  /* hash of what all told; 0: not measured */
    struct group_order *order;          /* of operations that begin; sites: 1 at least */
    bool named;                         /* a rank has a site's name: these are the sites */
    uint32_t processors;                /* of the one machine of all, that they may run on; 0: of several */
    struct {
        struct path_figures inside, across;
        struct group_order *order; /* by rank in sites */
    } created;                     /* as of lh_group_create(), which all members have */
    struct choosing choosing;
};

/* NULL: no memory. */
struct group_order *group_order_create(const uint32_t *site_of, const uint32_t *order, uint32_t ranks);
/* One user less, under the lock of the mesh. NULL is allowed. */
void group_order_release(struct group_order *order);

/* Sites by their names, when those of all members are known. -LH_ENOMEM. */
int paths_create(struct group_paths *paths);
void paths_free(struct group_paths *paths);

/* What a rank tells of its paths: a row of so many bytes. */
size_t paths_row_bytes(const struct group_paths *paths);
/* By attributes. */
void paths_announce_given(struct group_paths *paths, const struct lh_group_attr *attr, uint8_t *row);
/* rates_bps: measured from each rank; 0: unknown. */
void paths_announce_measured(struct group_paths *paths, const uint64_t *rates_bps, uint8_t *row);
/* The rows of all. measured: and the order of ranks follows it. -LH_ENOMEM. */
int paths_agree(struct group_paths *paths, const uint8_t *rows, bool measured);
/* Of a group of these of its ranks. follows: all of them have measured the same. -LH_ENOMEM. */
int paths_inherit(struct group_paths *part, const struct group_paths *of, const uint32_t *ranks,
                  bool follows);

/* ---- choosing -------------------------------------------------------------------------------------- */

/*
 * Which schedule an operation takes: the fastest over the paths that all members have agreed on,
 * by collective/choose/schedule_choice.h, as `longhaul plan --collective` does. Its blocks are the
 * group's: on a machine smaller ones take longer than the model says.
 */

void choosing_free(struct choosing *choosing);
/* Whether a collective follows the order of the group's map: unless that is by rank, in one site. */
bool choosing_uses_map(const struct group_paths *paths, enum collective collective);
/* For an operation whose row has that many bytes. Under the lock of the mesh. -LH_ENOMEM. */
int choosing_find(struct group_paths *paths, enum collective collective, uint64_t bytes,
                  const struct schedule **schedule);

#endif
