/*
 * spin_wait.h - a thread that waits for a word to change spins for a while before it sleeps, where its
 * engine was told to and where that pays: the rule of workers (sdr/run/spin.h), learned from the last waits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_SPIN_WAIT_H
#define LH_MESSAGE_SPIN_WAIT_H

#include <stdatomic.h>
#include <time.h>

#include <longhaul/types.h>

#include "sdr/run/spin.h"

/* What the threads that wait for the same object learned. */
struct spin_wait {
    lh_time spin_ns; /* 0: none of them spins */
    _Atomic unsigned short_pauses;
};

void spin_wait_init(struct spin_wait *wait, lh_time spin_ns);
/* A wait begins: spins while *word is `value`, at most timeout_ns, and returns. */
void spin_wait_begin(struct spin_wait *wait, struct spin *spin, const _Atomic uint32_t *word,
                     uint32_t value, lh_time timeout_ns);
/* The wait is over, whatever came of it. */
void spin_wait_end(struct spin_wait *wait, struct spin *spin);
/* When a wait that begins now has lasted that long, on CLOCK_MONOTONIC: until when to sleep. */
struct timespec spin_wait_deadline(lh_time timeout_ns);

#endif
