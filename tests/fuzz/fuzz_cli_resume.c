/*
 * fuzz_cli_resume.c - the small file beside an unfinished one, with anything in it.
 *
 * Whatever it says, no test_block may be believed whose digest it does not have: the unfinished file is
 * two blocks of zeros, so of the records only those that are right for zeros can count.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/file_partial.c"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BLOCKS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int sidecar = -1, file = -1;
static uint8_t *test_block;
static uint8_t right[BLOCKS][CLI_DIGEST_BYTES];

static int never(void)
{
    return 0;
}

static void set_up(void)
{
    struct cli_digest digest;
    sidecar = memfd_create("sidecar", 0);
    file = memfd_create("file", 0);
    test_block = calloc(1, CLI_BLOCK_BYTES);
    assert(sidecar >= 0 && file >= 0 && test_block && !ftruncate(file, BLOCKS * CLI_BLOCK_BYTES));
    assert(!cli_digest_open(&digest));
    for (unsigned i = 0; i < BLOCKS; i++) {
        cli_digest_add(&digest, test_block, CLI_BLOCK_BYTES);
        cli_digest_get(&digest, right[i]);
    }
    cli_digest_close(&digest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_digest digest;
    struct cli_resume_point point;
    if (sidecar < 0)
        set_up();
    assert(!ftruncate(sidecar, 0) && !cli_write_at(sidecar, data, size, 0));
    assert(!cli_digest_open(&digest));
    assert(!cli_resume_check(sidecar, file, BLOCKS * CLI_BLOCK_BYTES, UINT64_MAX, test_block, &digest,
                             never, &point));
    assert(point.blocks <= BLOCKS && (!point.blocks || record_offset(point.blocks) <= size));
    for (uint64_t i = 0; i < point.blocks; i++)
        assert(!memcmp(data + record_offset(i), right[i], CLI_DIGEST_BYTES));
    cli_digest_close(&digest);
    return 0;
}
