/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/random.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

int fabric_random(void *out, size_t bytes)
{
    uint8_t *next = out;
    while (bytes > 0) { /* each round gets at least a byte */
        ssize_t got = getrandom(next, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return lh_fail(LH_ESYSTEM, "no random numbers from the kernel: %s", strerror(errno));
        next += got;
        bytes -= (size_t)got;
    }
    return 0;
}
