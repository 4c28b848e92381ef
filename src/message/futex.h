/*
 * futex.h - threads of this process that sleep until a word changes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_FUTEX_H
#define LH_MESSAGE_FUTEX_H

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "a futex is 32 bits");

/* Sleeps while *word is `value`, until it is woken, for whatever reason. deadline: on CLOCK_MONOTONIC; NULL:
 * none. False: it has passed. */
static inline bool futex_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *deadline)
{
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

/* The memory of the word may be gone, which the kernel does not mind: nobody sleeps there then. */
static inline void futex_wake(_Atomic uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

#endif
