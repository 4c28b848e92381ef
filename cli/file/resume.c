/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/resume.h"

#include "cli/file/little_endian.h"
#include "cli/file/whole_io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RESUME_HEADER  24
#define HEADER_SIZE_AT 16
#define RESUME_VERSION 1

static const char magic[8] = {'L', 'H', 'R', 'E', 'S', 'U', 'M', 'E'};

static void make_header(uint64_t size_bytes, uint8_t out[RESUME_HEADER])
{
    memcpy(out, magic, sizeof magic);
    cli_put_u32(out + 8, RESUME_VERSION);
    cli_put_u32(out + 12, (uint32_t)CLI_BLOCK_BYTES);
    cli_put_u64(out + HEADER_SIZE_AT, size_bytes);
}

static uint64_t record_offset(uint64_t block)
{
    return RESUME_HEADER + block * CLI_DIGEST_BYTES;
}

int cli_resume_start(int sidecar, uint64_t size_bytes, uint64_t keep)
{
    uint8_t header[RESUME_HEADER];
    make_header(size_bytes, header);
    if (ftruncate(sidecar, (off_t)record_offset(keep)))
        return -errno;
    return cli_write_at(sidecar, header, sizeof header, 0);
}

int cli_resume_record(int sidecar, uint64_t block, const uint8_t digest[CLI_DIGEST_BYTES])
{
    return cli_write_at(sidecar, digest, CLI_DIGEST_BYTES, record_offset(block));
}

/* 1: it belongs to a file of that size; 0: it does not, perhaps to one of *other_bytes; or -errno. */
static int is_ours(int sidecar, uint64_t size_bytes, uint64_t *other_bytes)
{
    uint8_t header[RESUME_HEADER + CLI_DIGEST_BYTES], expected[RESUME_HEADER];
    int64_t got = cli_read_at(sidecar, header, sizeof header, 0);
    if (got < 0)
        return (int)got;
    make_header(size_bytes, expected);
    if (got < RESUME_HEADER || memcmp(header, expected, HEADER_SIZE_AT) != 0)
        return 0;
    if (!memcmp(header, expected, sizeof expected))
        return 1;
    if (got == (int64_t)sizeof header) /* there is a record */
        *other_bytes = cli_get_u64(header + HEADER_SIZE_AT);
    return 0;
}

/* 1: the block is there, whole, and as its record says (digest has taken it in); 0: it is not; or -errno.
 */
static int check_block(int sidecar, int file, uint64_t index, uint8_t *block, struct cli_digest *digest,
                       uint8_t found[CLI_DIGEST_BYTES])
{
    uint8_t record[CLI_DIGEST_BYTES];
    int64_t got = cli_read_at(sidecar, record, sizeof record, record_offset(index));
    if (got < 0 || got < CLI_DIGEST_BYTES)
        return got < 0 ? (int)got : 0;
    got = cli_read_at(file, block, CLI_BLOCK_BYTES, index * CLI_BLOCK_BYTES);
    if (got < 0 || (size_t)got < CLI_BLOCK_BYTES)
        return got < 0 ? (int)got : 0;
    cli_digest_add(digest, block, CLI_BLOCK_BYTES);
    cli_digest_get(digest, found);
    return !memcmp(found, record, sizeof record);
}

int cli_resume_check(int sidecar, int file, uint64_t size_bytes, uint64_t blocks_max, uint8_t *block,
                     struct cli_digest *digest, int (*stopped)(void), struct cli_resume_point *point)
{
    uint64_t whole = size_bytes / CLI_BLOCK_BYTES, blocks = blocks_max < whole ? blocks_max : whole;
    struct cli_digest before;
    struct cli_resume_point reached = {0};
    int found = is_ours(sidecar, size_bytes, &reached.other_size_bytes);
    cli_digest_reset(digest);
    if (cli_digest_open(&before))
        return -ENOMEM;
    /* Ends at the end of the records or of the file, whichever comes first. */
    while (found == 1 && reached.blocks < blocks) {
        uint8_t here[CLI_DIGEST_BYTES];
        cli_digest_copy(&before, digest);
        found = stopped() ? -EINTR : check_block(sidecar, file, reached.blocks, block, digest, here);
        if (found != 1) {
            cli_digest_copy(digest, &before);
            break;
        }
        memcpy(reached.digest, here, sizeof here);
        reached.blocks++;
    }
    cli_digest_close(&before);
    if (found < 0)
        return found;
    *point = reached;
    return 0;
}
