/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_parts.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/verbs_queue_pair.h"
#include "wire/roce_packet.h"

/* ---- rx -------------------------------------------------------------------------------------------- */

/*
 * Data packets that arrived: the device has checked them and put the payload in place; what is left
 * is to read the completion and to post another receive.
 *
 * A receive queue is never empty while its channel is polled: as many receives as completions were taken
 * are posted again at once. Packets that find none are dropped by the device, silently, like any that is
 * lost.
 */

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

/* ---- tx -------------------------------------------------------------------------------------------- */

/*
 * Sending data packets: one RDMA write with immediate each, in linked batches.
 *
 * A batch goes to one queue pair (one generation) in one post; only its last write asks for a completion, and
 * the completion names the batch. The device reads payload after the post, straight from the user's memory;
 * borrowed payload is copied into the bounce memory first, to a place that is free because the write that had
 * it is released.
 */

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

/* ---- control --------------------------------------------------------------------------------------- */

/* Control messages: UC SEND on a queue pair of its own, from and into buffers of its own. */

/* A device that has not sent in that time will not. */
#define LET_OUT_NS_MAX (10 * LH_NS_PER_MS)

/* What any one packet brings fits: a longer one than its receive would stop the queue pair. */
#define RECEIVE_BYTES ROCE_MTU_MAX

#define SEND_BUFFERS_BYTES ((size_t)VERBS_CONTROL_SENDS * CONTROL_MESSAGE_MAX)
#define BUFFERS_BYTES      (SEND_BUFFERS_BYTES + (size_t)VERBS_CONTROL_RECEIVES * RECEIVE_BYTES)

static uint8_t *send_buffer(const struct verbs_control *control, uint64_t number)
{
    return control->buffers + (number & (VERBS_CONTROL_SENDS - 1)) * CONTROL_MESSAGE_MAX;
}

static uint8_t *receive_buffer(const struct verbs_control *control, uint64_t number)
{
    return control->buffers + SEND_BUFFERS_BYTES + number * RECEIVE_BYTES;
}

static int post_receive(struct verbs_endpoint *endpoint, uint64_t number)
{
    struct verbs_control *control = &endpoint->control;
    struct ibv_sge piece = {(uint64_t)(uintptr_t)receive_buffer(control, number), RECEIVE_BYTES,
                            control->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = number, .sg_list = &piece, .num_sge = 1};
    struct ibv_recv_wr *bad;
    int error = ibv_post_recv(control->qp, &receive, &bad);
    if (error == 0)
        return 0;
    verbs_endpoint_fail(endpoint, "control receives cannot be posted: %s", strerror(error));
    return verbs_endpoint_check(endpoint);
}

static int make_buffers(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    size_t bytes = BUFFERS_BYTES;
    control->ring.writes_max = VERBS_CONTROL_SENDS;
    control->ring.batches = calloc(VERBS_CONTROL_SENDS, sizeof(struct tx_batch));
    control->buffers = aligned_alloc(4096, bytes);
    if (control->buffers == NULL || control->ring.batches == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %zu bytes of control messages", bytes);
    control->mr =
        ibv_reg_mr(verbs_fabric_of(endpoint)->pd, control->buffers, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (control->mr == NULL)
        return lh_fail(LH_ENOMEM,
                       "the device cannot hold %zu bytes of control messages in memory (%s): raise the "
                       "limit of locked memory (ulimit -l unlimited)",
                       bytes, strerror(errno));
    return 0;
}

int verbs_control_open(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    int error = make_buffers(endpoint);
    if (error == 0)
        error = verbs_cqs_open(endpoint, &control->cqs, 0, VERBS_CONTROL_RECEIVES, VERBS_CONTROL_SENDS);
    if (error != 0)
        return error;
    struct ibv_qp_init_attr attr = {
        .send_cq = control->cqs.send.cq,
        .recv_cq = control->cqs.recv.cq,
        .cap =
            {
                .max_send_wr = VERBS_CONTROL_SENDS,
                .max_recv_wr = VERBS_CONTROL_RECEIVES,
                .max_send_sge = 1,
                .max_recv_sge = 1,
            },
    };
    error = verbs_qp_create(endpoint, &attr, &control->qp);
    for (uint32_t i = 0; i < VERBS_CONTROL_RECEIVES && error == 0; i++)
        error = post_receive(endpoint, i);
    return error;
}

static void control_reap(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    struct ibv_wc completions[FABRIC_BATCH_MAX];
    int count = ibv_poll_cq(control->cqs.send.cq, FABRIC_BATCH_MAX, completions);
    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS)
            verbs_endpoint_fail(endpoint, "control queue pair failed: a send ended in \"%s\"",
                                ibv_wc_status_str(completions[i].status));
        tx_ring_complete(&control->ring, completions[i].wr_id);
    }
}

/* The last message, a CLOSE, is still with the device: destroying its queue pair would discard it. */
void verbs_control_flush(struct verbs_endpoint *endpoint)
{
    const struct verbs_control *control = &endpoint->control;
    struct fabric *fabric = endpoint->base.fabric;
    lh_time end = fabric->ops->now(fabric) + LET_OUT_NS_MAX;
    while (control->ring.oldest < control->ring.next && fabric->ops->now(fabric) < end &&
           atomic_load(&endpoint->broken) == 0)
        control_reap(endpoint);
}

void verbs_control_close(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    if (control->qp != NULL)
        ibv_destroy_qp(control->qp);
    verbs_cqs_close(&control->cqs);
    if (control->mr != NULL)
        ibv_dereg_mr(control->mr);
    free(control->buffers);
    free(control->ring.batches);
}

/* 1: sent; 0: no room; or a negative error. */
static int send_one(struct verbs_endpoint *endpoint, const struct fabric_datagram *datagram)
{
    struct verbs_control *control = &endpoint->control;
    assert(datagram->bytes <= CONTROL_MESSAGE_MAX);
    uint8_t *buffer = send_buffer(control, control->ring.taken);
    memcpy(buffer, datagram->data, datagram->bytes);
    struct ibv_sge piece = {(uint64_t)(uintptr_t)buffer, datagram->bytes, control->mr->lkey};
    struct ibv_send_wr send = {
        .wr_id = control->ring.next,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_send_wr *bad;
    int error = ibv_post_send(control->qp, &send, &bad);
    if (error == ENOMEM)
        return 0;
    if (error != 0) {
        verbs_endpoint_fail(endpoint, "control queue pair refuses to send: %s", strerror(error));
        return verbs_endpoint_check(endpoint);
    }
    tx_ring_push(&control->ring, 1);
    return 1;
}

int verbs_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams,
                       uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    assert(endpoint->connected);
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    control_reap(endpoint);
    for (uint32_t i = 0; i < count; i++) {
        if (datagrams[i].corrupt_bit != 0) { /* the receiver would drop it; see verbs_traffic.c */
            fabric_count(endpoint->attr.stats, link_dropped, 1);
            continue;
        }
        int sent = tx_ring_room(&endpoint->control.ring) > 0 ? send_one(endpoint, &datagrams[i]) : 0;
        if (sent == 1)
            continue;
        if (sent == 0)
            fabric_count(endpoint->attr.stats, tx_backpressure, 1);
        return sent == 0 || i > 0 ? (int)i : sent;
    }
    return (int)count;
}

/* Whether the completion is a message; its bytes are copied out. */
static bool take(struct verbs_endpoint *endpoint, const struct ibv_wc *completion,
                 struct fabric_control_arrival *arrival)
{
    if (completion->status != IBV_WC_SUCCESS) {
        verbs_endpoint_fail(endpoint, "control queue pair failed: a receive ended in \"%s\"",
                            ibv_wc_status_str(completion->status));
        return false;
    }
    if (completion->opcode != IBV_WC_RECV || completion->byte_len > CONTROL_MESSAGE_MAX) {
        fabric_count(endpoint->attr.stats, bad_header, 1);
        return false;
    }
    arrival->bytes = completion->byte_len;
    memcpy(arrival->data, receive_buffer(&endpoint->control, completion->wr_id), completion->byte_len);
    return true;
}

int verbs_control_poll(struct fabric_endpoint *base, struct fabric_control_arrival *arrivals,
                       uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_control *control = &endpoint->control;
    if (control->polls++ % VERBS_ASYNC_PERIOD == 0)
        verbs_read_events(verbs_fabric_of(endpoint));
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    struct ibv_wc completions[FABRIC_BATCH_MAX];
    uint32_t room = count < FABRIC_BATCH_MAX ? count : FABRIC_BATCH_MAX;
    uint32_t found = 0;
    uint32_t got = 0;
    uint32_t looked = 0;
    do { /* again while all are bad: 0 messages means that none waits, and the next one gives an event */
        got = verbs_cqs_poll(&control->cqs, &control->cqs.recv, completions, room);
        looked += got;
        for (uint32_t i = 0; i < got; i++) {
            found += take(endpoint, &completions[i], &arrivals[found]);
            if (completions[i].status == IBV_WC_SUCCESS)
                post_receive(endpoint, completions[i].wr_id);
        }
    } while (got > 0 && found == 0 && looked <= VERBS_CONTROL_RECEIVES &&
             atomic_load(&endpoint->broken) == 0);
    if (got > 0 && found == 0 && endpoint->attr.wake != NULL) /* they come faster than they are read */
        endpoint->attr.wake(endpoint->attr.wake_context, FABRIC_CONTROL);
    return (int)found;
}
