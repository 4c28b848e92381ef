/*
 * watch.h - the descriptors that a worker waits for, of all its QPs: an epoll set.
 *
 * What is reported is registered, whoever it belongs to: an entry may be removed only under the gate under
 * which reports are read (worker.h). Descriptors that several QPs have in common are registered for one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WATCH_H
#define LH_SDR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct run_entry;

#define WATCH_BATCH 64u

struct watch {
    int fd;           /* of the epoll set, readable when any is; -1: there is none yet */
    uint32_t entries; /* with descriptors in it */
};

struct watch_report {
    struct run_entry *ready[WATCH_BATCH]; /* NULL: the fabric's own */
    uint32_t count;
};

void watch_init(struct watch *watch);
void watch_close(struct watch *watch);
/* Those that are there already stay as they are. 0, or -LH_ESYSTEM. entry NULL: the fabric's own. */
int watch_add(struct watch *watch, struct run_entry *entry, const int *fds, uint32_t count);
void watch_remove(struct watch *watch, const int *fds, uint32_t count);
/* What is readable now, a batch at most: each in its turn. */
void watch_look(struct watch *watch, struct watch_report *report);

#endif
