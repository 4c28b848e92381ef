/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_changes.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/tree_records.h"

#define BLOCK_MIN ((size_t)128 << 10)

size_t cli_tree_changes_block(uint64_t size_bytes)
{
    size_t block = BLOCK_MIN;
    while (block < CLI_BLOCK_BYTES && size_bytes / block > CLI_TREE_CHANGES_BLOCKS_MAX)
        block *= 2;
    bool fits = size_bytes / block <= CLI_TREE_CHANGES_BLOCKS_MAX;
    return fits && size_bytes > CLI_TREE_LARGE_BYTES ? block : 0;
}

static void hash(uint64_t seed, const void *data, size_t bytes, uint8_t out[CLI_DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(data, bytes, seed));
    memcpy(out, canonical.digest, CLI_DIGEST_BYTES);
}

size_t cli_tree_changes_hash(int file, uint64_t file_bytes, uint64_t size_bytes, uint64_t from,
                             uint8_t *block, int (*stopped)(void), uint8_t *out)
{
    size_t bytes = cli_tree_changes_block(size_bytes);
    uint64_t shorter = file_bytes < size_bytes ? file_bytes : size_bytes;
    uint64_t blocks = bytes ? shorter / bytes : 0, seed;
    if (!blocks || from / bytes >= blocks || getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return 0;
    cli_put_u64(out, seed);
    memset(out + CLI_TREE_CHANGES_HEADER, 0, (size_t)(from / bytes) * CLI_DIGEST_BYTES);
    for (uint64_t i = from / bytes; i < blocks; i++) { /* each block */
        if (stopped() || cli_read_at(file, block, bytes, i * bytes) != (int64_t)bytes)
            return 0;
        hash(seed, block, bytes, out + CLI_TREE_CHANGES_HEADER + i * CLI_DIGEST_BYTES);
    }
    return CLI_TREE_CHANGES_HEADER + (size_t)blocks * CLI_DIGEST_BYTES;
}

bool cli_tree_changes_right(size_t bytes, uint64_t size_bytes)
{
    size_t block = cli_tree_changes_block(size_bytes);
    return block && bytes > CLI_TREE_CHANGES_HEADER &&
           (bytes - CLI_TREE_CHANGES_HEADER) % CLI_DIGEST_BYTES == 0 &&
           (bytes - CLI_TREE_CHANGES_HEADER) / CLI_DIGEST_BYTES <= size_bytes / block;
}

bool cli_tree_changes_same(const uint8_t *changes, size_t bytes, uint64_t offset, const void *data,
                           size_t block_bytes)
{
    uint8_t found[CLI_DIGEST_BYTES];
    uint64_t at = CLI_TREE_CHANGES_HEADER + offset / block_bytes * CLI_DIGEST_BYTES;
    assert(offset % block_bytes == 0);
    if (at + CLI_DIGEST_BYTES > bytes)
        return false;
    hash(cli_get_u64(changes), data, block_bytes, found);
    return !memcmp(found, changes + at, sizeof found);
}
