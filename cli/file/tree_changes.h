/*
 * tree_changes.h - changed blocks of a large file that the receiver has in another version.
 *
 * The receiver hashes its file in blocks at fixed offsets; the sender compares, and sends the blocks that
 * differ. So it finds what was overwritten in place or appended, but after an insertion every block differs.
 * The hashes have a random seed: whoever chooses the content of a file cannot prepare two blocks with one
 * hash. The digest of the whole file is compared at its end, as for all files.
 *
 *   0 seed u64 | 8 hash of each block, 16 bytes each (XXH3-128, big-endian)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_CHANGES_H
#define LH_CLI_FILE_TREE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/file/file_blocks.h"

#define CLI_TREE_CHANGES_HEADER 8u
/* Blocks of one file: up to 8 GiB they have 128 KiB, beyond that a power of two more. */
#define CLI_TREE_CHANGES_BLOCKS_MAX 65536u
#define CLI_TREE_CHANGES_BYTES_MAX                                                                         \
    (CLI_TREE_CHANGES_HEADER + CLI_TREE_CHANGES_BLOCKS_MAX * CLI_DIGEST_BYTES)

/* Bytes of a block of a file of that size, at most CLI_BLOCK_BYTES; 0: it is sent as a whole. */
size_t cli_tree_changes_block(uint64_t size_bytes);

/* Of the receiver's file: hashes of its whole blocks up to the end of either file, into
 * out[CLI_TREE_CHANGES_BYTES_MAX]; those before `from` are left zero. block: memory of CLI_BLOCK_BYTES. Bytes
 * used; 0: there is nothing to compare, or it cannot be read, or stopped() is not 0. */
size_t cli_tree_changes_hash(int file, uint64_t file_bytes, uint64_t size_bytes, uint64_t from,
                             uint8_t *block, int (*stopped)(void), uint8_t *out);

/* Whether that is what a receiver answers for a file of that size. */
bool cli_tree_changes_right(size_t bytes, uint64_t size_bytes);
/* Whether the block at that offset, a multiple of cli_tree_changes_block(), is one of `bytes` of hashes, and
 * has this content. */
bool cli_tree_changes_same(const uint8_t *changes, size_t bytes, uint64_t offset, const void *data,
                           size_t block_bytes);

#endif
