/*
 * transfer.h - one file from rank 0 of a group to all others, as exchange.h has it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_TRANSFER_H
#define LH_CLI_DISTRIBUTE_TRANSFER_H

#include "cli/distribute/exchange.h"
#include "cli/distribute/incoming.h"
#include "cli/file/source.h"

struct cli_transfer_options {
    const char *path;
    const char *schedule; /* NULL: hybrid between sites, named or found, else binomial-pipeline */
    struct cli_incoming_options incoming;
};

/* Of a file that is at all ranks. */
struct cli_transferred {
    const char *schedule; /* that was run; NULL: no block was sent */
    uint64_t size_bytes, resumed_bytes;
    lh_time elapsed_ns; /* from the first block until all have it on disk */
    uint8_t digest[CLI_DIGEST_BYTES];
};

/* source: of rank 0; NULL at others. Returns the exit status: CLI_EXIT_OK where the file is at all ranks; any
 * failure, with its rank, is printed at all that learn of it. */
int cli_transfer(const struct cli_transfer_options *options, struct lh_group *group,
                 struct cli_source *source, struct cli_transferred *transferred);

#endif
