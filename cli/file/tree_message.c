/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_message.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_records.h"
#include "cli/terminal/terminal.h"

/* A receiver waits longer, by far: CLI_DISK_TIMEOUT_NS. */
#define IDLE_NS (20 * LH_NS_PER_S)

bool cli_tree_packer_open(struct cli_tree_packer *packer, struct lh_connection *connection, uint32_t blocks,
                          const _Atomic bool *stop)
{
    *packer = (struct cli_tree_packer){.stop = stop, .stall_ns = LH_TIME_NEVER};
    packer->code = cli_block_ring_open(&packer->ring, connection, blocks);
    return !packer->code;
}

void cli_tree_packer_close(struct cli_tree_packer *packer)
{
    cli_block_ring_close(&packer->ring);
    packer->used = 0;
}

static bool fail(struct cli_tree_packer *packer, int code)
{
    packer->code = packer->code ? packer->code : code;
    return !packer->code;
}

/* Waits for the oldest message: its error, or that of the wait. */
static int retire(struct cli_tree_packer *packer, lh_time timeout_ns)
{
    struct lh_result result;
    lh_time since = cli_now();
    int code;
    while ((code = cli_block_ring_wait(&packer->ring, timeout_ns ? CLI_SLICE_NS : 0, &result)) ==
           -LH_ETIMEDOUT) {
        if (!timeout_ns || cli_now() - since > timeout_ns)
            return -LH_ETIMEDOUT;
        if (cli_stopped() || atomic_load(packer->stop))
            return -LH_ECANCELED;
    }
    if (!code)
        code = result.error;
    if (!code)
        cli_block_ring_release(&packer->ring);
    return code;
}

/* Gives back what is acknowledged: 0, or an error; -LH_ETIMEDOUT: some is not. */
static int reap(struct cli_tree_packer *packer)
{
    int code = 0;
    while (!code && !cli_block_ring_empty(&packer->ring))
        code = retire(packer, 0);
    return code;
}

uint64_t cli_tree_packer_in_flight(struct cli_tree_packer *packer)
{
    int code = reap(packer);
    if (code && code != -LH_ETIMEDOUT)
        fail(packer, code);
    return packer->ring.head - packer->ring.tail;
}

/* Waits for one block if there is none. */
static bool make_place(struct cli_tree_packer *packer)
{
    int code = reap(packer);
    if (code == -LH_ETIMEDOUT)
        code = cli_block_ring_full(&packer->ring) ? retire(packer, packer->stall_ns) : 0;
    return fail(packer, code);
}

bool cli_tree_packer_flush(struct cli_tree_packer *packer)
{
    if (packer->code || !packer->used)
        return !packer->code;
    int code = cli_block_ring_send(&packer->ring, packer->used);
    packer->used = 0;
    return fail(packer, code);
}

uint8_t *cli_tree_packer_reserve(struct cli_tree_packer *packer, size_t bytes)
{
    assert(bytes <= CLI_TREE_MESSAGE_MAX);
    if (bytes > CLI_TREE_MESSAGE_MAX - packer->used && !cli_tree_packer_flush(packer))
        return NULL;
    if (packer->code || (!packer->used && !make_place(packer)))
        return NULL;
    return cli_block_ring_head(&packer->ring) + packer->used;
}

bool cli_tree_packer_add(struct cli_tree_packer *packer, const struct cli_tree_record *record)
{
    for (;;) { /* once more in an empty message, in which each record fits */
        uint8_t *at = cli_tree_packer_reserve(packer, 1);
        if (!at)
            return false;
        size_t bytes = cli_tree_encode(record, at, CLI_TREE_MESSAGE_MAX - packer->used);
        packer->used += bytes;
        if (bytes)
            return true;
        assert(packer->used);
        if (!cli_tree_packer_flush(packer))
            return false;
    }
}

bool cli_tree_packer_fault(struct cli_tree_packer *packer, const char *path, size_t path_bytes,
                           const char *reason)
{
    size_t bytes = strlen(reason);
    const struct cli_tree_record fault = {.kind = CLI_TREE_FAULT,
                                          .path = path,
                                          .path_bytes = path_bytes,
                                          .rest = reason,
                                          .rest_bytes =
                                              bytes < CLI_TREE_TEXT_MAX ? bytes : CLI_TREE_TEXT_MAX};
    return !path_bytes || cli_tree_packer_add(packer, &fault);
}

bool cli_tree_packer_idle(struct cli_tree_packer *packer, lh_time *since)
{
    const struct cli_tree_record idle = {.kind = CLI_TREE_IDLE};
    if (cli_now() - *since < IDLE_NS)
        return true;
    *since = cli_now();
    return cli_tree_packer_add(packer, &idle) && cli_tree_packer_flush(packer);
}

bool cli_tree_packer_drain(struct cli_tree_packer *packer)
{
    if (!cli_tree_packer_flush(packer))
        return false;
    while (!cli_block_ring_empty(&packer->ring)) { /* at most a ring of them */
        int code = retire(packer, packer->stall_ns);
        if (code)
            return fail(packer, code);
    }
    return true;
}
