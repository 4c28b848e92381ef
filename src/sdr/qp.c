/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <longhaul/units.h>

#include "base/bitmap.h"
#include "base/error.h"
#include "base/prng.h"
#include "sdr/context.h"
#include "sdr/notice.h"
#include "wire/roce.h"

#define DEFAULT_CHUNK_LOG     16u
#define DEFAULT_IN_FLIGHT_LOG 30u
#define DEFAULT_SLOTS_LOG     7u
#define DEFAULT_GENERATIONS   4u
/* Bytes that may leave at once after a pause of a paced QP: some bursts, little against any long link. */
#define PACER_BURST_BYTES ((uint64_t)256 * 1024)

/* Everything that a QP is created with, after defaults. */
struct qp_plan {
    struct message_shape shape;
    uint64_t rate_bps;
    bool send_enable;
    bool recv_enable;
};

static uint32_t mtu_of(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more)
{
    if (more->mtu_bytes)
        return more->mtu_bytes;
    if (attr->mtu == SDR_MTU_64) /* zero: the default */
        return ROCE_MTU_MAX;
    return attr->mtu <= SDR_MTU_4096 ? 64u << attr->mtu : 0;
}

static int check_sizes(const struct message_shape *shape, uint64_t chunk_bytes)
{
    if (shape->mtu_bytes < ROCE_PAYLOAD_MIN || shape->mtu_bytes > ROCE_MTU_MAX ||
        (shape->mtu_bytes & (shape->mtu_bytes - 1)))
        return lh_fail(LH_EINVAL, "MTU %u: use a power of two from %u to %u", shape->mtu_bytes,
                       ROCE_PAYLOAD_MIN, ROCE_MTU_MAX);
    if (chunk_bytes < shape->mtu_bytes || (chunk_bytes & (chunk_bytes - 1)) ||
        chunk_bytes > (UINT64_C(1) << 31))
        return lh_fail(LH_EINVAL, "chunk of %llu bytes: use a power of two, at least the MTU (%u)",
                       (unsigned long long)chunk_bytes, shape->mtu_bytes);
    if (shape->slot_bytes < shape->mtu_bytes || shape->slot_bytes > UINT32_MAX)
        return lh_fail(LH_EINVAL, "messages of up to %llu bytes: use the MTU (%u) to 4 GiB - 1",
                       (unsigned long long)shape->slot_bytes, shape->mtu_bytes);
    return 0;
}

static int check_split(const struct message_shape *shape)
{
    struct immediate_split split = shape->split;
    if (split.message_bits < 1 || split.message_bits > 16 || split.fragment_bits < 1 ||
        split.fragment_bits > 8 || 32 % split.fragment_bits)
        return lh_fail(LH_EINVAL, "immediate split %u + %u + %u: use 10 + 18 + 4 or 8 + 22 + 2",
                       split.message_bits, split.offset_bits, split.fragment_bits);
    if ((shape->slots & (shape->slots - 1)) || shape->slots > 1u << split.message_bits)
        return lh_fail(LH_EINVAL,
                       "%u messages in flight: use a power of two up to %u (%u bits of the immediate)",
                       shape->slots, 1u << split.message_bits, split.message_bits);
    uint64_t packets = (shape->slot_bytes + shape->mtu_bytes - 1) / shape->mtu_bytes;
    if (packets > UINT64_C(1) << split.offset_bits)
        return lh_fail(LH_ERANGE,
                       "messages of up to %llu bytes are %llu packets: %u bits of packet offset hold %u",
                       (unsigned long long)shape->slot_bytes, (unsigned long long)packets,
                       split.offset_bits, 1u << split.offset_bits);
    if (shape->generations < 1 || shape->generations > QP_INFO_GENERATIONS_MAX)
        return lh_fail(LH_EINVAL, "%u generations: use 1 to %u", shape->generations,
                       QP_INFO_GENERATIONS_MAX);
    return 0;
}

static int plan_qp(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more, struct qp_plan *plan)
{
    size_t in_flight =
        attr->max_in_flight_log_bytes ? attr->max_in_flight_log_bytes : DEFAULT_IN_FLIGHT_LOG;
    uint32_t slots = attr->max_log_num_msgs ? attr->max_log_num_msgs : DEFAULT_SLOTS_LOG;
    uint32_t chunk =
        attr->bitmap_chunk_size_log_bytes ? attr->bitmap_chunk_size_log_bytes : DEFAULT_CHUNK_LOG;
    if (slots > 16 || in_flight > 48 || chunk > 31)
        return lh_fail(LH_EINVAL,
                       "log2 of messages %u, bytes in flight %zu, chunk %u: at most 16, 48 and 31", slots,
                       in_flight, chunk);
    uint8_t message_bits = more->immediate_message_bits ? more->immediate_message_bits : 10;
    uint8_t fragment_bits = more->immediate_fragment_bits ? more->immediate_fragment_bits : 4;
    struct message_shape *shape = &plan->shape;
    *shape = (struct message_shape){
        .slots = more->slots ? more->slots : 1u << slots,
        .mtu_bytes = mtu_of(attr, more),
        .slot_bytes = more->slot_bytes ? more->slot_bytes
                                       : UINT64_C(1) << (in_flight > slots ? in_flight - slots : 0),
        .generations = more->generations ? more->generations : DEFAULT_GENERATIONS,
        .split = {message_bits, (uint8_t)(32 - message_bits - fragment_bits), fragment_bits},
    };
    uint64_t chunk_bytes = more->chunk_bytes ? more->chunk_bytes : UINT64_C(1) << chunk;
    int error = check_sizes(shape, chunk_bytes);
    if (!error)
        error = check_split(shape);
    if (error)
        return error;
    shape->chunk_packets = (uint32_t)(chunk_bytes / shape->mtu_bytes);
    plan->rate_bps = more->rate_bps ? more->rate_bps : (uint64_t)attr->rate_limit * 1000000;
    bool both = !attr->send_enable && !attr->recv_enable;
    plan->send_enable = both || attr->send_enable;
    plan->recv_enable = both || attr->recv_enable;
    return 0;
}

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

static void free_qp(struct sdr_qp *qp)
{
    for (uint32_t c = 0; qp->channels && c < qp->context->channels; c++)
        gate_destroy(&qp->channels[c].gate);
    gate_destroy(&qp->lock);
    pthread_mutex_destroy(&qp->driver_lock);
    pthread_mutex_destroy(&qp->pacer_lock);
    free(qp->table_memory);
    free(qp->recvs);
    free(qp->free_slots);
    free(qp->announcer.ring);
    free(qp->cts.ring);
    free(qp->cts.present);
    free(qp->sends);
    free(qp->outbox.ring);
    free(qp->inbox.ring);
    free(qp->channels);
    free(qp);
}

static void *zeroed(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, rounded);
    return memory ? memset(memory, 0, rounded) : NULL;
}

/* All memory that the QP will ever use. */
static struct sdr_qp *allocate_qp(struct sdr_context *context, const struct qp_plan *plan)
{
    struct sdr_qp *qp = zeroed(sizeof *qp);
    if (!qp)
        return NULL;
    uint32_t slots = plan->shape.slots;
    uint32_t window = power_of_two(2 * slots < 64 ? 64 : 2 * slots);
    qp->context = context;
    qp->shape = plan->shape;
    qp->send_enable = plan->send_enable;
    qp->recv_enable = plan->recv_enable;
    gate_init(&qp->lock);
    pthread_mutex_init(&qp->driver_lock, NULL);
    pthread_mutex_init(&qp->pacer_lock, NULL);
    qp->table_memory = zeroed(message_table_bytes(&plan->shape));
    qp->recvs = zeroed(slots * sizeof *qp->recvs);
    qp->free_slots = zeroed(slots * sizeof *qp->free_slots);
    qp->send_count = 2 * slots + 16; /* some are injected and not polled yet */
    qp->sends = zeroed(qp->send_count * sizeof *qp->sends);
    struct control_cts *announced = zeroed(window * sizeof *announced);
    struct control_cts *heard = zeroed(window * sizeof *heard);
    uint64_t *present = zeroed(LH_BITMAP_WORDS((size_t)window) * sizeof *present);
    cts_announcer_init(&qp->announcer, announced, window);
    cts_queue_init(&qp->cts, heard, present, window);
    qp->outbox.ring = zeroed(QP_MESSAGES_WAITING * sizeof *qp->outbox.ring);
    qp->inbox.ring = zeroed(QP_MESSAGES_WAITING * sizeof *qp->inbox.ring);
    qp->channels = zeroed(context->channels * sizeof *qp->channels);
    for (uint32_t c = 0; qp->channels && c < context->channels; c++)
        gate_init(&qp->channels[c].gate);
    if (qp->table_memory && qp->recvs && qp->free_slots && qp->sends && announced && heard && present &&
        qp->outbox.ring && qp->inbox.ring && qp->channels)
        return qp;
    free_qp(qp);
    return NULL;
}

static void wake_channel(void *context, uint32_t channel)
{
    struct sdr_qp *qp = context;
    struct sdr_context *owner = qp->context;
    if (owner->worker_count == 0)
        return;
    worker_wake(&owner->workers[channel == FABRIC_CONTROL ? 0 : channel % owner->worker_count]);
}

static int create_endpoint(struct sdr_qp *qp)
{
    struct sdr_context *context = qp->context;
    struct fabric_endpoint_attr attr = {
        .channels = context->channels,
        .generations = qp->shape.generations,
        .mtu_bytes = qp->shape.mtu_bytes,
        .slots = qp->shape.slots,
        .slot_bytes = qp->shape.slot_bytes,
        .stripe_packets = QP_STRIPE_PACKETS,
        .split = qp->shape.split,
        .stats = &qp->stats,
        .wake = wake_channel,
        .wake_context = qp,
    };
    return context->fabric->ops->endpoint_create(context->fabric, &attr, &qp->endpoint);
}

/* A token that no earlier life of this address had: the QP number is random, the clock moves on. */
static uint32_t make_token(const struct qp_info_endpoint *info, lh_time now)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, now ^ ((uint64_t)info->control_qpn << 40) ^ ((uint64_t)info->qpn[0][0] << 16));
    uint32_t token = (uint32_t)lh_prng_next(&prng);
    return token ? token : 1;
}

static void start_qp(struct sdr_qp *qp, const struct qp_plan *plan)
{
    struct sdr_context *context = qp->context;
    lh_time now = context->fabric->ops->now(context->fabric);
    struct qp_info_endpoint info = {0};
    context->fabric->ops->endpoint_info(qp->endpoint, &info);
    qp->receive_buffer_bytes = info.receive_buffer_bytes;
    qp->created_ns = now;
    message_table_init(&qp->table, &qp->shape, qp->table_memory);
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        qp->free_slots[i] = i;
    qp->free_count = qp->shape.slots;
    for (uint32_t i = 0; i < qp->send_count; i++)
        qp->sends[i].qp = qp;
    qp->send_shape =
        (struct send_shape){qp->shape.split, qp->shape.mtu_bytes, context->channels, QP_STRIPE_PACKETS};
    pacer_init(&qp->pacer, plan->rate_bps, PACER_BURST_BYTES);
    path_init(&qp->path, now, QP_KEEPALIVE_NS, qp->endpoint->secret);
    qp->token = make_token(&info, now);
}

int lh_sdr_qp_create(struct sdr_context *context, const struct sdr_qp_attr *attr,
                     const struct lh_qp_attr *more, struct sdr_qp **out)
{
    const struct sdr_qp_attr no_attr = {0};
    const struct lh_qp_attr no_more = {0};
    struct qp_plan plan;
    if (!context)
        return lh_fail(LH_EINVAL, "no context");
    int error = plan_qp(attr ? attr : &no_attr, more ? more : &no_more, &plan);
    if (error)
        return error;
    struct sdr_qp *qp = allocate_qp(context, &plan);
    if (!qp)
        return lh_fail(LH_ENOMEM, "no memory for a QP of %u messages of %llu bytes", plan.shape.slots,
                       (unsigned long long)plan.shape.slot_bytes);
    error = create_endpoint(qp);
    if (error)
        goto free_memory;
    start_qp(qp, &plan);
    error = context_add_qp(context, qp);
    if (error)
        goto destroy_endpoint;
    *out = qp;
    return 0;
destroy_endpoint:
    context->fabric->ops->endpoint_destroy(qp->endpoint);
free_memory:
    free_qp(qp);
    return error;
}

/* A benchmark that means one message, or packets of 64 bytes, must not believe that it measures them. */
static void print_defaults(struct sdr_qp *qp)
{
    const struct message_shape *shape = &qp->shape;
    char chunk[LH_FORMAT_MAX], message[LH_FORMAT_MAX];
    lh_format_size((uint64_t)shape->chunk_packets * shape->mtu_bytes, chunk, sizeof chunk);
    lh_format_size(shape->slot_bytes, message, sizeof message);
    notice_print(
        qp->context, NOTICE_DEFAULTS,
        "sdr_qp_create: a zero in sdr_qp_attr is the default: MTU %u, chunk %s, %u messages of up to "
        "%s in flight (for other values see lh_sdr_qp_create(3))",
        shape->mtu_bytes, chunk, shape->slots, message);
}

struct sdr_qp *sdr_qp_create(struct sdr_context *context, struct sdr_qp_attr *qp_attr)
{
    struct sdr_qp *qp;
    if (lh_sdr_qp_create(context, qp_attr, NULL, &qp))
        return NULL;
    if (qp_attr && (qp_attr->max_log_num_msgs == 0 || qp_attr->mtu == SDR_MTU_64))
        print_defaults(qp);
    return qp;
}

/* The longest pause in which a link that works lets nothing out: an answer takes longer. Before the first
 * one the peer knew of this QP at most since it was created. */
static lh_time longest_pause(const struct sdr_qp *qp, lh_time now)
{
    lh_time overdue_ns = lh_rtt_overdue_ns(&qp->path.rtt);
    return overdue_ns ? overdue_ns : now - qp->created_ns;
}

/* Lets what an emulated link still holds go out: a host's last packets leave it even when the program ends.
 * Bounded by the turns of this loop and by the pauses, for the link may be one that the peer proposed. */
static void drain_link(struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (!ops->pump || qp->context->worker_count == 0)
        return;
    lh_time longest = longest_pause(qp, ops->now(qp->endpoint->fabric));
    for (uint32_t turn = 0; turn < 100000; turn++) {
        lh_time now = ops->now(qp->endpoint->fabric);
        lh_time next = ops->pump(qp->endpoint, FABRIC_CONTROL, now);
        for (uint32_t c = 0; c < qp->context->channels; c++) {
            lh_time due = ops->pump(qp->endpoint, c, now);
            next = due < next ? due : next;
        }
        if (next == LH_TIME_NEVER || (next > now && next - now > longest))
            return;
        lh_time span = next > now ? next - now : 0;
        struct timespec pause = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
        nanosleep(&pause, NULL);
    }
}

int sdr_qp_destroy(struct sdr_qp *qp)
{
    if (!qp)
        return SDR_SUCCESS;
    sdr_qp_driver_set(qp, NULL, NULL);
    if (atomic_load(&qp->connected) && !atomic_load(&qp->error))
        lh_sdr_goodbye(qp, LH_ECLOSED);
    qp_goodbye_flush(qp);
    context_remove_qp(qp->context, qp);
    drain_link(qp);
    qp->context->fabric->ops->endpoint_destroy(qp->endpoint);
    free_qp(qp);
    return SDR_SUCCESS;
}

static void fill_info(struct sdr_qp *qp, struct qp_info *info)
{
    *info = (struct qp_info){
        .token = qp->token,
        .mtu_bytes = qp->shape.mtu_bytes,
        .chunk_bytes = qp->shape.mtu_bytes * qp->shape.chunk_packets,
        .slots = qp->shape.slots,
        .slot_bytes = qp->shape.slot_bytes,
        .immediate_message_bits = qp->shape.split.message_bits,
        .immediate_fragment_bits = qp->shape.split.fragment_bits,
        .send_enable = qp->send_enable,
        .recv_enable = qp->recv_enable,
    };
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &info->endpoint);
}

int sdr_qp_info_size_get(struct sdr_qp *qp, size_t *info_size)
{
    *info_size = qp_info_bytes(qp->context->channels, qp->shape.generations);
    return SDR_SUCCESS;
}

int sdr_qp_info_get(struct sdr_qp *qp, void *info)
{
    struct qp_info mine;
    fill_info(qp, &mine);
    qp_info_encode(&mine, info);
    return SDR_SUCCESS;
}

/* Both ends must cut messages alike. */
static int check_peer(struct sdr_qp *qp, const struct qp_info *peer)
{
    const struct message_shape *mine = &qp->shape;
    uint32_t chunk_bytes = mine->mtu_bytes * mine->chunk_packets;
    if (peer->mtu_bytes != mine->mtu_bytes)
        return lh_fail(LH_EHANDSHAKE, "peer has MTU %u, this side %u: give both the same", peer->mtu_bytes,
                       mine->mtu_bytes);
    if (peer->chunk_bytes != chunk_bytes)
        return lh_fail(LH_EHANDSHAKE, "peer has chunks of %u bytes, this side %u: give both the same",
                       peer->chunk_bytes, chunk_bytes);
    if (peer->immediate_message_bits != mine->split.message_bits ||
        peer->immediate_fragment_bits != mine->split.fragment_bits)
        return lh_fail(LH_EHANDSHAKE, "peer splits the immediate into %u and %u bits, this side %u and %u",
                       peer->immediate_message_bits, peer->immediate_fragment_bits,
                       mine->split.message_bits, mine->split.fragment_bits);
    if (peer->slots > 1u << mine->split.message_bits || peer->slot_bytes > UINT32_MAX ||
        (peer->slot_bytes + mine->mtu_bytes - 1) / mine->mtu_bytes > UINT64_C(1) << mine->split.offset_bits)
        return lh_fail(LH_EHANDSHAKE, "peer has %u slots of %llu bytes: more than the immediate can say",
                       peer->slots, (unsigned long long)peer->slot_bytes);
    if (peer->endpoint.channels != qp->context->channels || peer->endpoint.generations != mine->generations)
        return lh_fail(
            LH_EHANDSHAKE, "peer has %u channels of %u generations, this side %u of %u: give both the same",
            peer->endpoint.channels, peer->endpoint.generations, qp->context->channels, mine->generations);
    if ((qp->send_enable && !peer->recv_enable) || (qp->recv_enable && !peer->send_enable))
        return lh_fail(LH_EHANDSHAKE,
                       "peer sends %u and receives %u: one side's sending needs the other's receiving",
                       peer->send_enable, peer->recv_enable);
    return 0;
}

int lh_sdr_qp_connect(struct sdr_qp *qp, const void *remote_qp_info)
{
    struct qp_info peer;
    size_t bytes = remote_qp_info ? qp_info_peek_bytes(remote_qp_info) : 0;
    if (bytes == 0)
        return lh_fail(LH_EHANDSHAKE, "what the peer sent is no QP info");
    int error = qp_info_decode(remote_qp_info, bytes, &peer);
    if (!error)
        error = check_peer(qp, &peer);
    if (error)
        return error;
    qp_lock(qp);
    qp_gates_enter(qp);
    error = atomic_load(&qp->connected) ? lh_fail(LH_ESTATE, "QP is connected already") : 0;
    if (!error)
        error = qp->endpoint->fabric->ops->endpoint_connect(qp->endpoint, &peer.endpoint);
    if (!error) {
        qp->peer = peer;
        qp->path.ping_at = 0;
        atomic_store(&qp->connected, true);
    }
    qp_gates_leave(qp);
    qp_unlock(qp);
    context_wake_workers(qp->context);
    return error;
}

int sdr_qp_connect(struct sdr_qp *qp, void *remote_qp_info)
{
    return lh_sdr_qp_connect(qp, remote_qp_info) ? SDR_ERROR : SDR_SUCCESS;
}

void qp_gates_enter(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->context->channels; c++)
        gate_enter(&qp->channels[c].gate);
}

void qp_gates_leave(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->context->channels; c++)
        gate_leave(&qp->channels[c].gate);
}

struct qp_memory_use qp_memory_use(struct sdr_qp *qp, uint32_t lkey)
{
    struct qp_memory_use use = {0};
    qp_lock(qp);
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        use.receives +=
            qp->table.slots[i].open && qp->recvs[i].length_bytes > 0 && qp->recvs[i].lkey == lkey;
    qp_gates_enter(qp);
    for (uint32_t c = 0; c < qp->context->channels; c++)
        use.sends += send_channel_uses(&qp->channels[c].sends, lkey);
    qp_gates_leave(qp);
    qp_unlock(qp);
    return use;
}

/* The first thread's words stay. Whoever sees the error finds them. */
static void keep_words(struct sdr_qp *qp)
{
    pthread_mutex_lock(&qp->pacer_lock);
    if (qp->device_words[0] == '\0')
        snprintf(qp->device_words, sizeof qp->device_words, "%s", lh_last_error());
    pthread_mutex_unlock(&qp->pacer_lock);
}

void qp_fail(struct sdr_qp *qp, int error)
{
    int none = 0;
    if (error == -LH_EDEVICE) {
        keep_words(qp);
        atomic_store(&qp->error, error);
    } else {
        atomic_compare_exchange_strong(&qp->error, &none, error);
    }
}

int qp_usable(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    if (error)
        return lh_fail((enum lh_error) - error, "QP has ended: %s",
                       error == -LH_EDEVICE ? qp->device_words : lh_strerror(error));
    if (!atomic_load(&qp->connected))
        return lh_fail(LH_ESTATE, "QP is not connected yet");
    return 0;
}

int sdr_qp_driver_set(struct sdr_qp *qp, sdr_driver_step *step, void *context)
{
    pthread_mutex_lock(&qp->driver_lock);
    qp->driver = step;
    qp->driver_context = context;
    atomic_store_explicit(&qp->driven, step != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&qp->driver_lock);
    sdr_qp_driver_kick(qp);
    return 0;
}

void sdr_qp_driver_kick(struct sdr_qp *qp)
{
    if (qp->context->worker_count)
        worker_wake(&qp->context->workers[0]);
}

void sdr_qp_keepalive_set(struct sdr_qp *qp, lh_time span_ns)
{
    qp_lock(qp);
    path_keepalive_set(&qp->path, span_ns);
    qp_unlock(qp);
    sdr_qp_driver_kick(qp);
}

lh_time sdr_qp_caught_up(struct sdr_qp *qp)
{
    lh_time oldest = LH_TIME_NEVER;
    for (uint32_t c = 0; c < qp->context->channels; c++) {
        lh_time drained = atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire);
        oldest = drained < oldest ? drained : oldest;
    }
    return oldest;
}

void sdr_qp_catch_up(struct sdr_qp *qp, lh_time since)
{
    for (uint32_t c = 0; c < qp->context->channels; c++)
        if (atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire) < since)
            wake_channel(qp, c);
}

uint64_t sdr_qp_rx_bytes(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_bytes, __ATOMIC_RELAXED);
}

int lh_sdr_error(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    return error == -LH_EDEVICE ? lh_fail(LH_EDEVICE, "%s", qp->device_words) : error;
}

int lh_sdr_stats(struct sdr_qp *qp, struct lh_stats *stats)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (ops->count_drops)
        ops->count_drops(qp->endpoint);
    const uint64_t *from = (const uint64_t *)&qp->stats;
    uint64_t *to = (uint64_t *)stats;
    for (size_t i = 0; i < sizeof *stats / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    return 0;
}
