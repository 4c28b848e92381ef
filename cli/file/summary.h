/*
 * summary.h - what is said of a file transfer, at its end and on the way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_SUMMARY_H
#define LH_CLI_FILE_SUMMARY_H

#include "cli/file/message.h"

#include <longhaul/connection.h>

struct cli_file_summary {
    const char *done; /* "sent", "received" */
    const char *name;
    uint64_t size_bytes;
    uint64_t resumed_bytes; /* of those were there before */
    lh_time elapsed_ns;
    uint8_t digest[CLI_DIGEST_BYTES];
    const struct lh_stats *stats;                  /* of the sender; NULL: none */
    uint64_t recovered;                            /* chunks that were decoded */
    const struct lh_bottleneck_report *bottleneck; /* of the sender; NULL: unknown */
};

/* On stdout. */
void cli_file_summary_print(const struct cli_file_summary *summary);

#define CLI_FILE_FATE_MAX 120

/* What became of the bytes that arrived of a file that did not, to be appended to the reason; "" when none
 * did. */
void cli_file_fate(uint64_t arrived_bytes, uint64_t kept_bytes, uint64_t size_bytes,
                   char out[CLI_FILE_FATE_MAX]);

/* On stderr: an unfinished file of that many bytes is lost, if it is worth words; it is of a file of another
 * size, or whose start has another digest; the file is right, but its attributes are not those of the
 * sender's. */
void cli_file_note_replaced(const char *name, uint64_t found_bytes);
void cli_file_note_other_size(const char *name, uint64_t unfinished_bytes, uint64_t size_bytes);
void cli_file_note_other_digest(const char *name, uint64_t compared_bytes);
void cli_file_note_attributes_lost(const char *name);

#endif
