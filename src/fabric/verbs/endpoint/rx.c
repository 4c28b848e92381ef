/*
 * rx.c - data packets that arrived: the device has checked them and put the payload in place; what is left
 * is to read the completion and to post another receive.
 *
 * A receive queue is never empty while its channel is polled: as many receives as completions were taken
 * are posted again at once. Packets that find none are dropped by the device, silently, like any that is
 * lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/rx.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/completion.h"
#include "fabric/verbs/endpoint/failure.h"

/* Posts at most a batch. */
static int post_batch(struct verbs_channel *channel, uint32_t generation, uint32_t count)
{
    struct ibv_recv_wr *last = &channel->receives[count - 1];
    struct ibv_recv_wr *next = last->next;
    struct ibv_recv_wr *bad;
    last->next = NULL;
    int error = channel->srq != NULL ? ibv_post_srq_recv(channel->srq, channel->receives, &bad)
                                     : ibv_post_recv(channel->qp[generation], channel->receives, &bad);
    last->next = next;
    if (error == 0)
        return 0;
    verbs_endpoint_fail(channel->endpoint, "receives cannot be posted to channel %u: %s", channel->index,
                        strerror(error));
    return verbs_endpoint_check(channel->endpoint);
}

int verbs_post_receives(struct verbs_channel *channel, uint32_t generation, uint32_t count)
{
    int error = 0;
    while (count > 0 && error == 0) { /* each round posts one or more */
        uint32_t batch = count < FABRIC_BATCH_MAX ? count : FABRIC_BATCH_MAX;
        error = post_batch(channel, generation, batch);
        count -= batch;
    }
    return error;
}

/* The generation of a queue pair, or `generations` when it is none of the channel's. */
static uint32_t generation_of(const struct verbs_channel *channel, uint32_t qpn)
{
    uint32_t generations = channel->endpoint->attr.generations;
    for (uint32_t i = 0; i < generations; i++)
        if (channel->qp[i]->qp_num == qpn)
            return i;
    return generations;
}

/* Packets that a device reports as bad, and that leave their queue pair as it was. */
static bool count_bad(struct lh_stats *stats, enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_REM_ACCESS_ERR: /* Soft-RoCE with a shared queue: a key that does not fit */
        fabric_count(stats, bad_key, 1);
        return true;
    case IBV_WC_REM_INV_REQ_ERR: /* the same: a length that does not fit */
        fabric_count(stats, bad_length, 1);
        return true;
    default:
        return false;
    }
}

/* What the device cannot know: that the immediate names a slot, and travels on this channel. */
static bool immediate_is_good(const struct verbs_channel *channel, uint32_t immediate, uint32_t bytes)
{
    const struct fabric_endpoint_attr *attr = &channel->endpoint->attr;
    struct immediate_fields fields = immediate_part(attr->split, immediate);
    if (fields.message >= attr->slots) {
        fabric_count(attr->stats, bad_range, 1);
        return false;
    }
    if (bytes > attr->mtu_bytes) {
        fabric_count(attr->stats, bad_length, 1);
        return false;
    }
    if (fabric_channel_of(fields.packet, attr->stripe_packets, attr->channels) != channel->index) {
        fabric_count(attr->stats, bad_channel, 1);
        return false;
    }
    return true;
}

/* Whether the completion is an error, which ends the endpoint unless it is only a bad packet. */
static bool is_error(struct verbs_channel *channel, const struct ibv_wc *completion)
{
    if (completion->status == IBV_WC_SUCCESS)
        return false;
    if (!count_bad(channel->endpoint->attr.stats, completion->status))
        verbs_endpoint_fail(channel->endpoint, "queue pair %u failed: a receive ended in \"%s\"",
                            completion->qp_num, ibv_wc_status_str(completion->status));
    return true;
}

/* Whether the completion is an arrival; counts it, or ends the endpoint, when it is not. */
static bool validate(struct verbs_channel *channel, const struct ibv_wc *completion,
                     struct fabric_arrival *arrival)
{
    struct lh_stats *stats = channel->endpoint->attr.stats;
    uint32_t generation = generation_of(channel, completion->qp_num);
    if (is_error(channel, completion))
        return false;
    if (generation == channel->endpoint->attr.generations) {
        fabric_count(stats, bad_qpn, 1);
        return false;
    }
    if (completion->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
        fabric_count(stats, bad_header, 1);
        return false;
    }
    uint32_t immediate = ntohl(completion->imm_data);
    if (!immediate_is_good(channel, immediate, completion->byte_len))
        return false;
    *arrival = (struct fabric_arrival){immediate, (uint16_t)completion->byte_len, (uint8_t)generation};
    return true;
}

/* Every completion has used up a receive, a bad one too. */
static int post_again(struct verbs_channel *channel, uint32_t count)
{
    if (channel->srq != NULL)
        return verbs_post_receives(channel, 0, count);
    uint32_t used[QP_INFO_GENERATIONS_MAX + 1] = {0};
    for (uint32_t i = 0; i < count; i++)
        used[generation_of(channel, channel->completions[i].qp_num)]++;
    int error = 0;
    for (uint32_t i = 0; i < channel->endpoint->attr.generations && error == 0; i++)
        error = verbs_post_receives(channel, i, used[i]);
    return error;
}

/* A queue that is never seen empty: what waited at the mark has been read when as many have been as it
 * holds. */
static void note_read(struct verbs_channel *channel, uint32_t completions)
{
    channel->read += completions;
    if (channel->read - channel->mark_read < channel->endpoint->sizes.recv_cqe)
        return;
    if (channel->drained < channel->mark_binds)
        channel->drained = channel->mark_binds;
    channel->mark_read = channel->read;
    channel->mark_binds = channel->endpoint->binds;
}

int verbs_poll(struct fabric_endpoint *base, uint32_t index, struct fabric_arrival *arrivals,
               uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_channel *channel = endpoint->channels[index];
    struct verbs_cqs *cqs = &channel->cqs;
    uint32_t room = count < FABRIC_BATCH_MAX ? count : FABRIC_BATCH_MAX;
    uint32_t found = 0;
    /* Again while all are bad: 0 arrivals means that nothing waits. */
    uint32_t looked = 0;
    while (found == 0) {
        if (looked >
            endpoint->sizes.recv_cqe) { /* they come faster than they are read: others have their turn */
            if (endpoint->attr.wake != NULL)
                endpoint->attr.wake(endpoint->attr.wake_context, index);
            break;
        }
        int error = verbs_endpoint_check(endpoint);
        if (error != 0)
            return error;
        uint32_t completions = verbs_cqs_poll(cqs, &cqs->recv, channel->completions, room);
        if (completions == 0) {
            channel->drained = endpoint->binds;
            break;
        }
        looked += completions;
        note_read(channel, completions);
        for (uint32_t i = 0; i < completions; i++)
            found += validate(channel, &channel->completions[i], &arrivals[found]);
        error = post_again(channel, completions);
        if (error != 0)
            return found > 0 ? (int)found : error;
    }
    return (int)found;
}

void verbs_drain(struct verbs_channel *channel)
{
    struct verbs_cqs *cqs = &channel->cqs;
    struct verbs_endpoint *endpoint = channel->endpoint;
    uint32_t looked = 0;
    uint32_t completions = 0;
    do {
        completions = verbs_cqs_poll(cqs, &cqs->recv, channel->completions, FABRIC_BATCH_MAX);
        fabric_count(endpoint->attr.stats, rx_inbox_overflow, completions);
        looked += completions;
        for (uint32_t i = 0; i < completions; i++)
            is_error(channel, &channel->completions[i]);
    } while (completions > 0 && post_again(channel, completions) == 0 &&
             looked <= endpoint->sizes.recv_cqe);
    /* What came since is of now: the queue holds no more than that. */
    channel->drained = endpoint->binds;
}
