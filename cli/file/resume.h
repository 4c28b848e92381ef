/*
 * resume.h - the record file of an unfinished file: its verified blocks.
 *
 * A header, then one record for each complete block: the digest of the file from its start to the end
 * of that block. On resumption the unfinished file is read again and compared, so that nothing is believed
 * that was not written, whatever ended the first try.
 *
 *   0 magic "LHRESUME" | 8 version u32 | 12 block bytes u32 | 16 size of the whole file u64 | 24 records,
 * 16 bytes each
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_RESUME_H
#define LH_CLI_FILE_RESUME_H

#include "cli/file/digest.h"
#include "cli/file/message.h"

#include <stdbool.h>

/* Calls return 0 or -errno. */

/* Writes the header and truncates after `keep` records. */
int cli_resume_start(int sidecar, uint64_t size_bytes, uint64_t keep);
int cli_resume_record(int sidecar, uint64_t block, const uint8_t digest[CLI_DIGEST_BYTES]);

struct cli_resume_point {
    uint64_t blocks;                  /* that are right, from the start on */
    uint64_t other_size_bytes;        /* the records are of a file of that size: not of this one; else 0 */
    uint8_t digest[CLI_DIGEST_BYTES]; /* of those */
};

/* Reads the unfinished file as far as its records agree with it, up to blocks_max; block holds
 * CLI_BLOCK_BYTES. `digest` has then taken in just those blocks. stopped() is asked after each block, and
 * true ends it with -EINTR. */
int cli_resume_check(int sidecar, int file, uint64_t size_bytes, uint64_t blocks_max, uint8_t *block,
                     struct cli_digest *digest, int (*stopped)(void), struct cli_resume_point *point);

#endif
