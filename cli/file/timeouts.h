/*
 * timeouts.h - timeouts of each side of a file transfer, so that neither waits for ever.
 *
 * A peer that is dead or cut off is found by the library (--peer-timeout). These are for one that lives and
 * does nothing, which is either a slow disk or malice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TIMEOUTS_H
#define LH_CLI_FILE_TIMEOUTS_H

#include <longhaul/types.h>

/* Where nothing has to be read from a disk: an offer, and what follows the answer to one. Whoever is silent
 * then holds up others. */
#define CLI_PROMPT_TIMEOUT_NS (5 * LH_NS_PER_S)
/* On a lossy link a message takes some round trips. */
#define CLI_PROMPT_ROUND_TRIPS 20
/* A disk that is busy with others can stall for a minute. */
#define CLI_DISK_TIMEOUT_NS (120 * LH_NS_PER_S)
/* For an abort message. */
#define CLI_ABORT_TIMEOUT_NS (5 * LH_NS_PER_S)
/* Slower disks than this count as broken. */
#define CLI_DISK_BYTES_PER_MS ((uint64_t)10000)

/* For a peer that has to read, or bring to its disk, that much before it can answer. */
static inline lh_time cli_disk_timeout(uint64_t bytes)
{
    return CLI_DISK_TIMEOUT_NS + bytes / CLI_DISK_BYTES_PER_MS * LH_NS_PER_MS;
}

/* For a peer that owes the next message at once, or has to read that much before. */
static inline lh_time cli_prompt_timeout(lh_time rtt_ns, uint64_t bytes)
{
    return CLI_PROMPT_TIMEOUT_NS + CLI_PROMPT_ROUND_TRIPS * rtt_ns + (bytes ? cli_disk_timeout(bytes) : 0);
}

#endif
