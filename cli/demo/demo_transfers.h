/*
 * demo_transfers.h - a row of the demo: transfers between two processes of this machine over an emulated
 * link, and over TCP.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DEMO_DEMO_TRANSFERS_H
#define LH_CLI_DEMO_DEMO_TRANSFERS_H

#include <stdbool.h>

#include <longhaul/connection.h>

#include "cli/file/file_blocks.h"

struct cli_demo_run {
    const uint8_t *data; /* what is sent */
    uint8_t *landing;    /* as large, and shared between processes: where it arrives */
    uint64_t bytes;
    uint32_t messages;                /* of that size, in sequence, all from and to the same place */
    uint8_t digest[CLI_DIGEST_BYTES]; /* of the data */
    struct lh_link_spec link;
    const char *scheme;
    lh_time deadline_ns; /* of each message, where the scheme has one and does not say it; else 0 */
    lh_time timeout_ns;  /* for each message */
};

struct cli_demo_outcome {
    bool whole; /* delivered within the timeout and verified, but for missing_bytes */
    bool digest_right;
    bool late;              /* timed out */
    uint64_t missing_bytes; /* of all messages, by their deadlines */
    double completion_s;    /* of a message, in the mean */
    double worst_s;
    struct lh_stats stats; /* of the sender */
    char error[160];       /* what went wrong otherwise */
};

/* Starts both processes and waits for them. Call it while this process has no threads. */
void cli_demo_run(const struct cli_demo_run *run, struct cli_demo_outcome *outcome);

/* ---- tcp ------------------------------------------------------------------------------------------- */

/*
 * Rows of the demo for the kernel's TCP: its packets cross a path of ours, because the emulated
 * link is within Longhaul.
 */

/* The kernel's congestion controls that have a row; NULL at the end. */
extern const char *const cli_demo_tcp_controls[];

/* Sends the data once over TCP with that congestion control. False: this machine or this link does not
 * let us, outcome->error says why. */
bool cli_demo_tcp_run(const struct cli_demo_run *run, const char *control,
                      struct cli_demo_outcome *outcome);

#endif
