/*
 * adaptive_timeout.h - the state behind <longhaul/timeout.h>: median, margin, proposals. Its memory is the
 * caller's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_ADAPTIVE_TIMEOUT_H
#define LH_COLLECTIVE_ADAPTIVE_TIMEOUT_H

#include <stdint.h>

#include <longhaul/timeout.h>

/* The newest proposal of a member. */
struct vote {
    uint32_t round; /* 0: none yet */
    float lost;
    double cost; /* ns per byte */
};

/* One of several operations that run at the same time. */
struct group_timeout_operation {
    uint32_t round;
    uint64_t bytes;
    lh_time timeout_ns; /* LH_TIME_NEVER: there was no warm-up yet */
};

struct lh_timeout {
    struct lh_timeout_attr attr;
    struct lh_timeout_state state;
    double correction;                        /* of the margin, by what was lost */
    struct group_timeout_operation operation; /* that runs; bytes 0: none does */
    bool warm;
    bool voted;         /* a proposal came since the last median */
    struct vote *votes; /* one per member */
    double *scratch;    /* likewise */
};

/* As lh_timeout_begin() and lh_timeout_end(), for any number at a time. A member without a warm-up takes
 * that of the others, by their proposals. */
void group_timeout_begin(struct lh_timeout *timeout, uint64_t bytes,
                         struct group_timeout_operation *operation);
int group_timeout_end(struct lh_timeout *timeout, const struct group_timeout_operation *operation,
                      lh_time elapsed_ns, uint64_t received, struct lh_timeout_proposal *proposal);

/* ---- median ---------------------------------------------------------------------------------------- */

/* The median of a few thousand numbers. */

/* Of count > 0 finite values, which are sorted; the mean of the two in the middle if count is even. */
double median_of(double *values, uint32_t count);

/* ---- normal margin --------------------------------------------------------------------------------- */

/* How many deviations above the mean a deadline loses a given share. */

/* z >= 0 with E[(X - z)+] = lost, X normal with mean 0 and deviation 1; 0 if more than that is lost at 0. A
 * member that needs X deviations more than the mean receives all but about (X - z) * deviation / mean of
 * its bytes. */
double normal_margin(double lost);

#endif
