/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/waker.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

void waker_wake(struct waker *waker)
{
    atomic_store(&waker->kicked, true);
    if (!atomic_load(&waker->asleep))
        return;
    uint64_t one = 1;
    /* A full counter means that it is being woken already. */
    while (write(waker->fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}
