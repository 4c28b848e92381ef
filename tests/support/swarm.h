/*
 * swarm.h - one random life of two connections, from one seed: its options, its run, its verdict.
 *
 * Faults first: a lossy link, lost control messages, blackouts, cancels from both sides, buffers that are
 * too short. Then everything heals, and everything must end. The checks look at buffers and results only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_SWARM_H
#define LH_TESTS_SUPPORT_SWARM_H

#include <longhaul/connection.h>

#define SWARM_MESSAGES_MAX 48u
#define SWARM_TEXT_MAX     1200u

struct swarm_options {
    uint64_t seed;
    struct lh_link_spec link;
    struct lh_attr attr[2];
    uint32_t messages[2]; /* that each side sends */
    size_t bytes_max;
    double control_loss; /* on top of the link's */
    double cancels;      /* share of requests that are canceled */
    double too_short;    /* share of buffers that are too short */
    double blackouts;    /* chance of one, each step */
    lh_time step_ns;     /* mean time between two things that a user does */
};

struct swarm_report {
    char failure[SWARM_TEXT_MAX]; /* empty: all is well */
    uint64_t trace;               /* hash over every packet */
    uint32_t delivered;
    uint32_t canceled;
    uint32_t truncated;
    lh_time took_ns; /* virtual */
};

enum swarm_sabotage {
    SWARM_HONEST,
    SWARM_LATE_WRITE,   /* a buffer changes after it was handed back: the checker must see it */
    SWARM_WRONG_BYTE,   /* a delivered byte is wrong */
    SWARM_NEVER_HEALED, /* the link stays cut: requests must be missed */
};

void swarm_draw(uint64_t seed, struct swarm_options *options);
/* One line for people, to see what failed. Into out[SWARM_TEXT_MAX]; returns out. */
char *swarm_describe(const struct swarm_options *options, char *out);
void swarm_run(const struct swarm_options *options, enum swarm_sabotage sabotage,
               struct swarm_report *report);

#endif
