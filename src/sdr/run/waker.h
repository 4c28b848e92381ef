/*
 * waker.h - ends the sleep of one worker, from any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WAKER_H
#define LH_SDR_WAKER_H

#include <stdatomic.h>
#include <stdbool.h>

struct waker {
    _Atomic bool asleep;
    _Atomic bool kicked; /* work was queued for the worker since its last round began */
    int fd;              /* eventfd; -1 without a thread, which then never sleeps */
};

/* Cheap while the worker is awake. */
void waker_wake(struct waker *waker);

#endif
