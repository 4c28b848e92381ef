/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/block_ring.h"

#include "cli/file/message.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

static size_t memory_bytes(const struct cli_block_ring *ring)
{
    return (size_t)ring->blocks * CLI_BLOCK_BYTES;
}

/* Memory that is not touched is not used: a small file takes a small part of the ring. */
static int allocate(struct cli_block_ring *ring)
{
    void *memory = mmap(NULL, memory_bytes(ring), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -LH_ENOMEM;
    ring->memory = memory;
    ring->requests = calloc(ring->blocks, sizeof *ring->requests);
    return ring->requests ? 0 : -LH_ENOMEM;
}

int cli_block_ring_open(struct cli_block_ring *ring, struct lh_connection *connection)
{
    struct lh_attr attr;
    int code = lh_connection_attr(connection, &attr);
    if (code)
        return code;
    uint64_t blocks = (attr.window_bytes + CLI_BLOCK_BYTES - 1) / CLI_BLOCK_BYTES + CLI_RING_EXTRA;
    /* Requests for control messages are in flight as well. */
    uint64_t most = LH_REQUESTS_MAX / 2;
    *ring = (struct cli_block_ring){
        .connection = connection,
        .blocks = (uint32_t)(blocks < most ? blocks : most),
    };
    code = allocate(ring);
    if (!code)
        code = lh_register(connection, ring->memory, memory_bytes(ring), &ring->registered);
    if (code)
        cli_block_ring_close(ring);
    return code;
}

void cli_block_ring_close(struct cli_block_ring *ring)
{
    while (ring->requests && !cli_block_ring_empty(ring))
        cli_block_ring_release(ring);
    if (ring->registered)
        lh_deregister(ring->registered);
    free(ring->requests);
    if (ring->memory)
        munmap(ring->memory, memory_bytes(ring));
    *ring = (struct cli_block_ring){0};
}

int cli_block_ring_full(const struct cli_block_ring *ring)
{
    return ring->head - ring->tail == ring->blocks;
}

int cli_block_ring_empty(const struct cli_block_ring *ring)
{
    return ring->head == ring->tail;
}

static uint8_t *block(const struct cli_block_ring *ring, uint64_t index)
{
    return ring->memory + (size_t)(index % ring->blocks) * CLI_BLOCK_BYTES;
}

uint8_t *cli_block_ring_head(const struct cli_block_ring *ring)
{
    return block(ring, ring->head);
}

uint8_t *cli_block_ring_tail(const struct cli_block_ring *ring)
{
    return block(ring, ring->tail);
}

static struct lh_request **request(const struct cli_block_ring *ring, uint64_t index)
{
    return &ring->requests[index % ring->blocks];
}

int cli_block_ring_send(struct cli_block_ring *ring, size_t bytes)
{
    assert(!cli_block_ring_full(ring) && bytes <= CLI_BLOCK_BYTES);
    int code = lh_send(ring->connection, cli_block_ring_head(ring), bytes, ring->registered,
                       request(ring, ring->head));
    ring->head += !code;
    return code;
}

int cli_block_ring_post(struct cli_block_ring *ring)
{
    assert(!cli_block_ring_full(ring));
    int code = lh_recv(ring->connection, cli_block_ring_head(ring), CLI_BLOCK_BYTES, ring->registered,
                       request(ring, ring->head));
    ring->head += !code;
    return code;
}

int cli_block_ring_wait(struct cli_block_ring *ring, lh_time timeout_ns, struct lh_result *result)
{
    assert(!cli_block_ring_empty(ring));
    return lh_wait(*request(ring, ring->tail), timeout_ns, result);
}

void cli_block_ring_cancel(struct cli_block_ring *ring)
{
    for (uint64_t i = ring->tail; i < ring->head; i++)
        lh_cancel(*request(ring, i));
}

void cli_block_ring_release(struct cli_block_ring *ring)
{
    assert(!cli_block_ring_empty(ring));
    struct lh_request **done = request(ring, ring->tail);
    lh_request_free(*done);
    *done = NULL;
    ring->tail++;
}
