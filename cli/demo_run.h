/*
 * demo_run.h - a row of the demo, one transfer or some: two processes of this machine, an emulated link
 * between them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_DEMO_RUN_H
#define CLI_DEMO_RUN_H

#include "digest.h"

#include <longhaul/connection.h>

#include <stdbool.h>

struct cli_demo_run {
    const uint8_t *data; /* what is sent */
    uint8_t *landing;    /* as large, and shared between processes: where it arrives */
    uint64_t bytes;
    uint32_t messages; /* of so many bytes each, one after the other, all from and to the same place */
    uint8_t digest[CLI_DIGEST_BYTES]; /* of the data */
    struct lh_link_spec link;
    const char *scheme;
    lh_time patience_ns; /* for each message */
};

struct cli_demo_outcome {
    bool whole; /* it got there within the patience, and its digest is right */
    bool digest_right;
    bool late;           /* given up when the patience was over */
    double completion_s; /* of a message, in the mean */
    double worst_s;
    struct lh_stats stats; /* of the sender */
    char error[160];       /* what went wrong otherwise */
};

/* Starts both processes and waits for them. Call it while this process has no threads. */
void cli_demo_run(const struct cli_demo_run *run, struct cli_demo_outcome *outcome);

#endif
