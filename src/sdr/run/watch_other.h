/*
 * watch_other.h - a descriptor of a layer above, which a worker waits for beside those of its QPs (watch.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WATCH_OTHER_H
#define LH_SDR_WATCH_OTHER_H

#include <stdbool.h>

/* Its owner keeps it. */
struct watch_other {
    int fd;
    /* It is readable, or writable while that is asked for, or broken. Cheap; false: it is watched no
     * longer. */
    bool (*on_ready)(void *context);
    void *context;
    bool watched; /* the watch's own */
};

#endif
