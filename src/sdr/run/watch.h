/*
 * watch.h - the descriptors that a worker waits for, of all its QPs: an epoll set.
 *
 * What is reported is registered, whoever it belongs to: an entry may be removed only under the gate under
 * which reports are read (worker.h). Descriptors that several QPs have in common are registered for one, who
 * reads for all.
 *
 * Beside them are descriptors of the layers above, each with a function that is called when it is ready
 * (watch_other.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WATCH_H
#define LH_SDR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sdr/run/watch_other.h"

struct run_entry;

#define WATCH_BATCH       64u
#define WATCH_REMOVED_MAX 256u /* of a QP: all its channels and control */

struct watch {
    int fd;           /* of the epoll set, readable when any is; -1: there is none yet */
    uint32_t entries; /* with descriptors in it */
    uint32_t others;  /* descriptors of layers above */
    uint32_t *users;  /* of each descriptor: channels that wait for it */
    uint32_t users_room;
    /* Those that were removed, and which others have in common: the user registers them again. */
    int removed[WATCH_REMOVED_MAX];
    uint32_t removed_count;
};

/* Those of one channel, or of control, that are registered. */
#define WATCH_FDS_MAX 4u
struct watch_fds {
    int fds[WATCH_FDS_MAX];
    uint32_t count;
};

struct watch_report {
    struct run_entry *ready[WATCH_BATCH];
    uint32_t count;
    struct watch_other *others[WATCH_BATCH];
    uint32_t other_count;
};

void watch_init(struct watch *watch);
void watch_close(struct watch *watch);
/* These, instead of what is registered, from now on. One that is there already stays as it is. 0,
 * -LH_ESYSTEM or -LH_ENOMEM. */
int watch_set(struct watch *watch, struct run_entry *entry, struct watch_fds *registered, const int *fds,
              uint32_t count);
/* Waits for it, too. 0, or -LH_ESYSTEM. */
int watch_add_other(struct watch *watch, struct watch_other *other);
/* No effect on one that is not watched. */
void watch_remove_other(struct watch *watch, struct watch_other *other);
/* Whether it is also ready when it can be written. Any thread, while it is watched. */
void watch_writable(const struct watch *watch, struct watch_other *other, bool wanted);
/* What is readable now, a batch at most: each in its turn. */
void watch_look(struct watch *watch, struct watch_report *report);

#endif
