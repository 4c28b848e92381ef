/*
 * tx.c - sending data packets: one RDMA write with immediate each, in linked batches.
 *
 * A batch goes to one queue pair (one generation) in one post; only its last write asks for a completion, and
 * the completion names the batch. The device reads payload after the post, straight from the user's memory;
 * borrowed payload is copied into the bounce memory first, to a place that is free because the write that had
 * it is released.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/tx.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/completion.h"
#include "fabric/verbs/endpoint/failure.h"
#include "wire/roce.h"

/* A device that has not flushed a queue pair in that time is gone. */
#define FLUSH_NS_MAX (100 * LH_NS_PER_MS)

static void describe_queue_pair_error(struct verbs_channel *channel, const struct ibv_wc *completion)
{
    verbs_endpoint_fail(channel->endpoint, "queue pair %u failed: a write ended in \"%s\"",
                        completion->qp_num, ibv_wc_status_str(completion->status));
}

/* Takes completions of sends until none wait, which arms the queue for the next. Bounded by what is in
 * flight. */
static void reap(struct verbs_channel *channel)
{
    struct verbs_cqs *cqs = &channel->cqs;
    struct tx_ring *ring = &channel->ring;
    struct ibv_wc completions[FABRIC_BATCH_MAX];
    while (ring->oldest < ring->next) {
        uint32_t count = verbs_cqs_poll(cqs, &cqs->send, completions, FABRIC_BATCH_MAX);
        for (uint32_t i = 0; i < count; i++) {
            if (completions[i].status != IBV_WC_SUCCESS)
                describe_queue_pair_error(channel, &completions[i]);
            tx_ring_complete(ring, completions[i].wr_id);
        }
        if (count == 0)
            break;
    }
    struct fabric *fabric = channel->endpoint->base.fabric;
    tx_limit_on_released(&channel->limit, ring->released, (uint32_t)(ring->taken - ring->released),
                         fabric->ops->now(fabric));
}

static uint32_t wire_bytes(const struct verbs_endpoint *endpoint, uint32_t payload_bytes)
{
    return endpoint->wire_overhead + payload_bytes + roce_pad_bytes(payload_bytes);
}

/* Fills request `at`, which becomes the (ring->taken + at)-th write of the channel. */
static void fill(struct verbs_channel *channel, const struct fabric_write *write, uint32_t at)
{
    const struct verbs_endpoint *endpoint = channel->endpoint;
    assert(write->bytes <= endpoint->attr.mtu_bytes);
    struct ibv_sge *piece = &channel->pieces[at];
    *piece = (struct ibv_sge){(uint64_t)(uintptr_t)write->payload, write->bytes, write->lkey};
    bool copies = write->bytes > 0 && write->bytes <= channel->inline_bytes;
    if (write->borrowed && !copies && write->bytes > 0) {
        uint64_t place = (channel->ring.taken + at) & (channel->ring.writes_max - 1);
        uint8_t *bounce = channel->bounce + place * endpoint->attr.mtu_bytes;
        memcpy(bounce, write->payload, write->bytes);
        piece->addr = (uint64_t)(uintptr_t)bounce;
        piece->lkey = channel->bounce_mr->lkey;
    }
    channel->writes[at] = (struct ibv_send_wr){
        .wr_id = TX_RING_NONE, /* when its queue pair fails, every write has a completion */
        .next = &channel->writes[at + 1],
        .sg_list = piece,
        .num_sge = write->bytes > 0 ? 1 : 0,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = copies ? (unsigned)IBV_SEND_INLINE : 0u,
        .imm_data = htonl(write->immediate),
        .wr.rdma = {.remote_addr = write->va, .rkey = write->rkey},
    };
}

/* Posts writes that all are of one generation. 1: they are posted; 0: no room; or a negative error. */
static int post_run(struct verbs_channel *channel, const struct fabric_write *writes, uint32_t count)
{
    uint64_t wire = 0;
    for (uint32_t i = 0; i < count; i++) {
        fill(channel, &writes[i], i);
        wire += wire_bytes(channel->endpoint, writes[i].bytes);
    }
    struct ibv_send_wr *last = &channel->writes[count - 1];
    last->next = NULL;
    last->send_flags |= IBV_SEND_SIGNALED;
    last->wr_id = channel->ring.next;
    struct ibv_qp *qp = channel->qp[writes[0].generation];
    struct ibv_send_wr *bad = NULL;
    int error = ibv_post_send(qp, channel->writes, &bad);
    if (error == ENOMEM && bad == channel->writes)
        return 0;
    if (error != 0) {
        verbs_endpoint_fail(channel->endpoint, "queue pair %u refuses to send: %s", qp->qp_num,
                            strerror(error));
        return verbs_endpoint_check(channel->endpoint);
    }
    tx_ring_push(&channel->ring, count);
    fabric_count(channel->endpoint->attr.stats, tx_wire_bytes, wire);
    return 1;
}

/* Link emulation: a device computes the iCRC itself, so a damaged packet cannot be sent. One that is not sent
 * is the same to the receiver, who would drop it. */
static void lose(struct verbs_channel *channel)
{
    uint64_t number = channel->ring.next;
    tx_ring_push(&channel->ring, 1);
    tx_ring_complete(&channel->ring, number);
    fabric_count(channel->endpoint->attr.stats, link_dropped, 1);
}

static uint32_t run_length(const struct fabric_write *writes, uint32_t count)
{
    uint32_t run = 1;
    while (run < count && writes[run].generation == writes[0].generation && writes[run].corrupt_bit == 0)
        run++;
    return run;
}

int verbs_post_writes(struct fabric_endpoint *base, uint32_t index, const struct fabric_write *writes,
                      uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    assert(index < endpoint->attr.channels && endpoint->connected && count <= FABRIC_BATCH_MAX);
    struct verbs_channel *channel = endpoint->channels[index];
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    struct tx_ring *ring = &channel->ring;
    uint32_t fits = tx_limit_room(&channel->limit, (uint32_t)(ring->taken - ring->released), count);
    if (fits < count) {
        reap(channel);
        fits = tx_limit_room(&channel->limit, (uint32_t)(ring->taken - ring->released), count);
    }
    uint32_t taken = 0;
    while (taken < fits) { /* each round takes a write or more */
        assert(writes[taken].generation < endpoint->attr.generations);
        if (writes[taken].corrupt_bit != 0) {
            lose(channel);
            taken++;
            continue;
        }
        uint32_t run = run_length(writes + taken, fits - taken);
        int posted = post_run(channel, writes + taken, run);
        if (posted < 0)
            return taken > 0 ? (int)taken : posted;
        if (posted == 0)
            break;
        taken += run;
    }
    if (taken < count)
        fabric_count(endpoint->attr.stats, tx_backpressure, 1);
    return (int)taken;
}

uint64_t verbs_released(struct fabric_endpoint *base, uint32_t index)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_channel *channel = endpoint->channels[index];
    reap(channel);
    if (atomic_load(&endpoint->broken) != 2)
        return channel->ring.released;
    /* Its queue pairs have been stopped; what they were sending then has been sent when all is flushed. */
    lh_time end = base->fabric->ops->now(base->fabric) + FLUSH_NS_MAX;
    while (channel->ring.oldest < channel->ring.next && base->fabric->ops->now(base->fabric) < end)
        reap(channel);
    return channel->ring.taken;
}
