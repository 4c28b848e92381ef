/*
 * link_file.h - what was measured of a link, out of a JSON file such as a measurement leaves.
 *
 * An object with some of the numbers bandwidth_bps, rtt_s, loss (of packets), loss_high (what it may be at
 * most, no less), burst_packets and mtu_bytes (payload of a packet; 0: none fits the path). null, and that 0,
 * are as if they were not there; other members are passed over, whatever they hold.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_LINK_FILE_H
#define LH_CLI_PLAN_LINK_FILE_H

#include <stddef.h>

/* A number that is not there is NaN. */
struct cli_link_file {
    double bandwidth_bps, rtt_s, loss, loss_high, burst_packets, mtu_bytes;
};

#define CLI_LINK_FILE_WRONG_MAX 160

/* 0, or -1 with the reason in wrong[CLI_LINK_FILE_WRONG_MAX]; the link is set only on success. */
int cli_link_file_parse(const char *text, size_t bytes, struct cli_link_file *link, char *wrong);
/* CLI_PROCEED, or reports the cause. */
int cli_link_file_read(const char *path, struct cli_link_file *link);

#endif
