/*
 * test_tree_changes.c - hashes of the blocks of a large file: which there are, and what they find.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "cli/file/tree_records.h"

#define BLOCK ((size_t)131072)
#define SIZE  (CLI_TREE_LARGE_BYTES + 2 * BLOCK + 5)

static uint8_t block[CLI_BLOCK_BYTES], hashes[CLI_TREE_CHANGES_BYTES_MAX],
    others[CLI_TREE_CHANGES_BYTES_MAX];
static int stop_after;

static int stopped(void)
{
    return stop_after && !--stop_after;
}

static void blocks_grow_with_the_file(void **state)
{
    (void)state;
    assert_int_equal(cli_tree_changes_block(0), 0);
    assert_int_equal(cli_tree_changes_block(CLI_TREE_LARGE_BYTES), 0);
    assert_int_equal(cli_tree_changes_block(CLI_TREE_LARGE_BYTES + 1), BLOCK);
    assert_int_equal(cli_tree_changes_block((uint64_t)8 << 30), BLOCK);
    assert_int_equal(cli_tree_changes_block(((uint64_t)8 << 30) + BLOCK), 2 * BLOCK);
    assert_int_equal(cli_tree_changes_block((uint64_t)256 << 30), CLI_BLOCK_BYTES);
    assert_int_equal(cli_tree_changes_block(((uint64_t)256 << 30) + CLI_BLOCK_BYTES), 0);
    assert_int_equal(cli_tree_changes_block(UINT64_MAX), 0);
}

static void only_possible_lengths_are_right(void **state)
{
    size_t all = CLI_TREE_CHANGES_HEADER + SIZE / BLOCK * CLI_DIGEST_BYTES;
    (void)state;
    assert_true(cli_tree_changes_right(CLI_TREE_CHANGES_HEADER + CLI_DIGEST_BYTES, SIZE));
    assert_true(cli_tree_changes_right(all, SIZE));
    assert_false(cli_tree_changes_right(all + CLI_DIGEST_BYTES, SIZE));
    assert_false(cli_tree_changes_right(all - 1, SIZE));
    assert_false(cli_tree_changes_right(CLI_TREE_CHANGES_HEADER, SIZE));
    assert_false(cli_tree_changes_right(0, SIZE));
    assert_false(cli_tree_changes_right(all, CLI_TREE_LARGE_BYTES));
    assert_false(cli_tree_changes_right(all, UINT64_MAX));
}

static void changed_blocks_are_found(void **state)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    uint64_t from = 3 * BLOCK;
    (void)state;
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, SIZE), 0);
    assert_int_equal(pwrite(file, "x", 1, 5 * BLOCK), 1);
    size_t bytes = cli_tree_changes_hash(file, SIZE, SIZE, from, block, stopped, hashes);
    assert_int_equal(bytes, CLI_TREE_CHANGES_HEADER + SIZE / BLOCK * CLI_DIGEST_BYTES);
    assert_true(cli_tree_changes_right(bytes, SIZE));
    memset(block, 0, BLOCK);
    assert_false(cli_tree_changes_same(hashes, bytes, 2 * BLOCK, block, BLOCK)); /* was not hashed */
    assert_true(cli_tree_changes_same(hashes, bytes, 4 * BLOCK, block, BLOCK));
    assert_false(cli_tree_changes_same(hashes, bytes, 5 * BLOCK, block, BLOCK));
    block[0] = 'x';
    assert_true(cli_tree_changes_same(hashes, bytes, 5 * BLOCK, block, BLOCK));
    assert_false(cli_tree_changes_same(hashes, bytes, SIZE / BLOCK * BLOCK, block, BLOCK));
    /* Nobody can prepare blocks for it. */
    cli_tree_changes_hash(file, SIZE, SIZE, from, block, stopped, others);
    assert_int_not_equal(memcmp(hashes, others, CLI_TREE_CHANGES_HEADER), 0);
    assert_int_not_equal(
        memcmp(hashes + bytes - CLI_DIGEST_BYTES, others + bytes - CLI_DIGEST_BYTES, CLI_DIGEST_BYTES), 0);
    /* Of the shorter file; none before its end; interrupted; one that shrinks. */
    assert_int_equal(cli_tree_changes_hash(file, 7 * BLOCK + 1, SIZE, 0, block, stopped, hashes),
                     CLI_TREE_CHANGES_HEADER + 7 * CLI_DIGEST_BYTES);
    assert_int_equal(cli_tree_changes_hash(file, 3 * BLOCK, SIZE, from, block, stopped, hashes), 0);
    assert_int_equal(cli_tree_changes_hash(file, BLOCK - 1, SIZE, 0, block, stopped, hashes), 0);
    stop_after = 9;
    assert_int_equal(cli_tree_changes_hash(file, SIZE, SIZE, 0, block, stopped, hashes), 0);
    assert_int_equal(ftruncate(file, 9 * BLOCK), 0);
    assert_int_equal(cli_tree_changes_hash(file, SIZE, SIZE, 0, block, stopped, hashes), 0);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_grow_with_the_file),
        cmocka_unit_test(only_possible_lengths_are_right),
        cmocka_unit_test(changed_blocks_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
