/*
 * file_patience.h - how long each side of a file transfer waits for what, so that neither waits for ever.
 *
 * A peer that is dead or cut off is found by the library (--peer-timeout). These are for one that lives and
 * does nothing, which is either a slow disk or malice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_FILE_PATIENCE_H
#define CLI_FILE_PATIENCE_H

#include <longhaul/types.h>

/* Nothing has to be read from a disk to make an offer. */
#define CLI_OFFER_PATIENCE_NS (10 * LH_NS_PER_S)
/* A disk that is busy with others can stall for a minute. */
#define CLI_PATIENCE_NS (120 * LH_NS_PER_S)
/* For a message that says why it ends. */
#define CLI_GOODBYE_NS (5 * LH_NS_PER_S)
/* Slower disks than this count as broken. */
#define CLI_DISK_BYTES_PER_MS ((uint64_t)10000)

/* For a peer that has to read, or bring to its disk, that much before it can answer. */
static inline lh_time cli_disk_patience(uint64_t bytes)
{
    return CLI_PATIENCE_NS + bytes / CLI_DISK_BYTES_PER_MS * LH_NS_PER_MS;
}

#endif
