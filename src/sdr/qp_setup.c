/*
 * qp_setup.c - a QP from its creation to its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <string.h>
#include <time.h>

#include <longhaul/units.h>

#include "base/bitmap.h"
#include "base/error.h"
#include "base/prng.h"
#include "fabric/seal.h"
#include "link/link.h"
#include "sdr/qp.h"
#include "sdr/qp_parts.h"
#include "sdr/qp_path.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_worker.h"

/* ---- qp create ------------------------------------------------------------------------------------- */

#define DRAIN_MAX_NS (5 * LH_NS_PER_S)

static uint32_t power_of_two(uint32_t at_min)
{
    uint32_t power = 1;
    while (power < at_min)
        power *= 2;
    return power;
}

/* The QP in one piece: its channels, itself, a bit for each clear-to-send of the window. */
static size_t qp_bytes(uint32_t channels, uint32_t window)
{
    return channels * sizeof(struct qp_channel) + sizeof(struct sdr_qp) +
           LH_BITMAP_WORDS((size_t)window) * sizeof(uint64_t);
}

static void free_qp(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        gate_destroy(&qp->channels[c].gate);
    gate_destroy(&qp->lock);
    pthread_mutex_destroy(&qp->driver_lock);
    pthread_mutex_destroy(&qp->pacer_lock);
    qp_memory_free(qp);
    qp_rate_free(qp);
    store_give(qp->store, qp->device_reason, DEVICE_REASON_MAX);
    if (qp->own_link)
        qp->own_link->ops->close(qp->own_link);
    store_give(qp->store, qp->channels, qp_bytes(qp->channel_count, qp->cts.size));
}

/* What a QP has while it is idle, too. */
static struct sdr_qp *allocate_qp(struct sdr_context *context, const struct qp_plan *plan,
                                  uint32_t channels, struct store *store)
{
    uint32_t slots = plan->shape.slots;
    uint32_t window = power_of_two(2 * slots < 64 ? 64 : 2 * slots);
    struct qp_channel *memory = store_take_aligned(store, qp_bytes(channels, window));
    if (!memory)
        return NULL;
    memset(memory, 0, qp_bytes(channels, window));
    struct sdr_qp *qp = (struct sdr_qp *)(void *)(memory + channels);
    qp->context = context;
    qp->store = store;
    qp->channel_count = channels;
    qp->shape = plan->shape;
    qp->send_enable = plan->send_enable;
    qp->recv_enable = plan->recv_enable;
    gate_init(&qp->lock);
    pthread_mutex_init(&qp->driver_lock, NULL);
    pthread_mutex_init(&qp->pacer_lock, NULL);
    qp->free_count = slots;
    qp->sends.maximum = 2 * slots + 16; /* some are injected and not polled yet */
    qp->path.challenges = store_take(store, PATH_CHALLENGES_BYTES);
    message_table_init(&qp->table, &plan->shape, NULL);
    cts_announcer_init(&qp->announcer, window);
    cts_queue_init(&qp->cts, (uint64_t *)(qp + 1), window);
    qp->upper_max = CONTROL_MESSAGE_MAX;
    path_mtu_init(&qp->path_mtu, plan->shape.mtu_bytes);
    atomic_store_explicit(&qp->pieces, 1, memory_order_relaxed);
    ring_init(&qp->outbox.ring, sizeof(struct qp_upper_message) + CONTROL_MESSAGE_MAX, QP_MESSAGES_WAITING);
    ring_init(&qp->inbox.ring, sizeof(struct qp_upper_message) + CONTROL_MESSAGE_MAX, QP_MESSAGES_WAITING);
    idle_init(&qp->idle);
    qp->channels = memory;
    for (uint32_t c = 0; c < channels; c++) {
        gate_init(&qp->channels[c].gate);
        send_channel_init(&qp->channels[c].sends);
    }
    if (qp->path.challenges)
        return qp;
    free_qp(qp);
    return NULL;
}

static int create_endpoint(struct sdr_qp *qp)
{
    struct fabric *fabric = qp->own_link ? qp->own_link : qp->context->fabric;
    struct fabric_endpoint_attr attr = {
        .channels = qp->channel_count,
        .generations = qp->shape.generations,
        .mtu_bytes = qp->shape.mtu_bytes,
        .slots = qp->shape.slots,
        .slot_bytes = qp->shape.slot_bytes,
        .stripe_packets = QP_STRIPE_PACKETS,
        .split = qp->shape.split,
        .ecn_capable = rate_control_is_on(&qp->rate),
        .stats = &qp->stats,
        .wake = qp_wake_channel,
        .wake_context = qp,
        .store = qp->store,
    };
    return fabric->ops->endpoint_create(fabric, &attr, &qp->endpoint);
}

static void destroy_endpoint(struct sdr_qp *qp)
{
    qp->endpoint->fabric->ops->endpoint_destroy(qp->endpoint);
}

static int open_link(struct sdr_qp *qp, const struct lh_link_spec *link)
{
    qp->link_has_rate = qp->context->link_has_rate || link->rate_bps != 0;
    return lh_link_is_none(link) ? 0 : fabric_link_over(qp->context->fabric, link, &qp->own_link);
}

/* A token that no earlier incarnation at this address had: the QP number is random, the clock moves on. */
static uint32_t make_token(const struct qp_info_endpoint *info, lh_time now)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, now ^ ((uint64_t)info->control_qpn << 40) ^ ((uint64_t)info->qpn[0][0] << 16));
    uint32_t token = (uint32_t)lh_prng_next(&prng);
    return token ? token : 1;
}

static void start_qp(struct sdr_qp *qp, const struct qp_info_endpoint *info)
{
    struct sdr_context *context = qp->context;
    lh_time now = context->fabric->ops->now(context->fabric);
    qp->receive_buffer_bytes = info->receive_buffer_bytes;
    qp->created_ns = now;
    qp->send_shape =
        (struct send_shape){qp->shape.split, qp->shape.mtu_bytes, qp->channel_count, QP_STRIPE_PACKETS};
    path_init(&qp->path, now, QP_KEEPALIVE_NS, qp->endpoint->secret, qp->path.challenges);
    qp->token = make_token(info, now);
}

static int check_own(const struct sdr_context *context, const struct sdr_qp_own *own)
{
    if (own->channels <= context->channels)
        return 0;
    return lh_fail(LH_EINVAL, "channels %u: the context has %u (use at most as many)", own->channels,
                   context->channels);
}

int sdr_qp_open(struct sdr_context *context, const struct sdr_qp_attr *attr, const struct lh_qp_attr *more,
                const struct sdr_qp_own *own, struct sdr_qp **out)
{
    struct qp_plan plan;
    int error = check_own(context, own);
    if (!error)
        error = qp_plan_make(attr, more, &plan);
    if (error)
        return error;
    struct sdr_qp *qp = allocate_qp(context, &plan, own->channels ? own->channels : context->channels,
                                    own->store ? own->store : &context->store);
    if (!qp)
        return -LH_ENOMEM;
    error = open_link(qp, &own->link);
    if (!error)
        error = qp_rate_create(qp, &plan);
    if (!error)
        error = create_endpoint(qp);
    if (error)
        goto free_memory;
    struct qp_info_endpoint info = {0};
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &info);
    start_qp(qp, &info);
    error = context_add_qp(context, qp);
    if (error)
        goto destroy_endpoint;
    *out = qp;
    return 0;
destroy_endpoint:
    destroy_endpoint(qp);
free_memory:
    free_qp(qp);
    return error;
}

int lh_sdr_qp_create(struct sdr_context *context, const struct sdr_qp_attr *attr,
                     const struct lh_qp_attr *more, struct sdr_qp **out)
{
    const struct sdr_qp_attr no_attr = {0};
    const struct lh_qp_attr no_more = {0};
    const struct sdr_qp_own no_own = {0};
    if (!context)
        return lh_fail(LH_EINVAL, "no context");
    return sdr_qp_open(context, attr ? attr : &no_attr, more ? more : &no_more, &no_own, out);
}

/* A benchmark that means one message, or packets of 64 bytes, must not believe that it measures them. */
static void print_defaults(struct sdr_qp *qp)
{
    const struct message_shape *shape = &qp->shape;
    char chunk[LH_FORMAT_MAX], message[LH_FORMAT_MAX];
    lh_format_size((uint64_t)shape->chunk_packets * shape->mtu_bytes, chunk, sizeof chunk);
    lh_format_size(shape->slot_bytes, message, sizeof message);
    sdk_warn(qp->context, SDK_WARNING_DEFAULTS,
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
 * Bounded by the turns of this loop, by the pauses, for the link may be one that the peer proposed, and by a
 * time, for a slow one may hold packets for minutes. */
static void drain_link(struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (!ops->pump || qp->context->worker_count == 0)
        return;
    lh_time now = ops->now(qp->endpoint->fabric), end = now + DRAIN_MAX_NS;
    lh_time longest = longest_pause(qp, now);
    for (uint32_t turn = 0; turn < 100000 && now < end; turn++) {
        lh_time next = ops->pump(qp->endpoint, FABRIC_CONTROL, now);
        for (uint32_t c = 0; c < qp->channel_count; c++) {
            lh_time due = ops->pump(qp->endpoint, c, now);
            next = due < next ? due : next;
        }
        if (next == LH_TIME_NEVER || (next > now && next - now > longest))
            return;
        lh_time span = lh_min(lh_sub_sat(next, now), end - now);
        struct timespec pause = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
        nanosleep(&pause, NULL);
        now = ops->now(qp->endpoint->fabric);
    }
}

int sdr_qp_destroy(struct sdr_qp *qp)
{
    if (!qp)
        return SDR_SUCCESS;
    sdr_qp_driver_set(qp, NULL, NULL);
    if (atomic_load(&qp->connected) && !atomic_load(&qp->error))
        lh_sdr_goodbye(qp, LH_ECLOSED);
    qp_close_flush(qp);
    context_remove_qp(qp->context, qp);
    drain_link(qp);
    destroy_endpoint(qp);
    free_qp(qp);
    return SDR_SUCCESS;
}

/* ---- qp connect ------------------------------------------------------------------------------------ */

/* The exchange of QP information, and the connection to the peer that it describes. */

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
        .wants_feedback = rate_control_is_on(&qp->rate),
        .credits = rate_control_is_on(&qp->rate) ? credit_grant_number(qp->congestion.controller) : 0,
    };
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &info->endpoint);
}

int sdr_qp_info_size_get(struct sdr_qp *qp, size_t *info_size)
{
    *info_size = qp_info_bytes(qp->channel_count, qp->shape.generations);
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
        return lh_fail(LH_EHANDSHAKE, "MTU mismatch: peer %u, this side %u (use the same on both)",
                       peer->mtu_bytes, mine->mtu_bytes);
    if (peer->chunk_bytes != chunk_bytes)
        return lh_fail(LH_EHANDSHAKE,
                       "chunk size mismatch: peer %u bytes, this side %u (use the same on both)",
                       peer->chunk_bytes, chunk_bytes);
    if (peer->immediate_message_bits != mine->split.message_bits ||
        peer->immediate_fragment_bits != mine->split.fragment_bits)
        return lh_fail(LH_EHANDSHAKE, "immediate split mismatch: peer %u and %u bits, this side %u and %u",
                       peer->immediate_message_bits, peer->immediate_fragment_bits,
                       mine->split.message_bits, mine->split.fragment_bits);
    if (peer->slots > 1u << mine->split.message_bits || peer->slot_bytes > UINT32_MAX ||
        (peer->slot_bytes + mine->mtu_bytes - 1) / mine->mtu_bytes > UINT64_C(1) << mine->split.offset_bits)
        return lh_fail(LH_EHANDSHAKE, "peer has %u slots of %llu bytes: exceeds the bits of the immediate",
                       peer->slots, (unsigned long long)peer->slot_bytes);
    if (peer->endpoint.channels != qp->channel_count || peer->endpoint.generations != mine->generations)
        return lh_fail(
            LH_EHANDSHAKE,
            "channel mismatch: peer %u of %u generations, this side %u of %u (use the same on both)",
            peer->endpoint.channels, peer->endpoint.generations, qp->channel_count, mine->generations);
    if ((qp->send_enable && !peer->recv_enable) || (qp->recv_enable && !peer->send_enable))
        return lh_fail(LH_EHANDSHAKE, "peer sends %u and receives %u: a sender needs a peer that receives",
                       peer->send_enable, peer->recv_enable);
    return 0;
}

static struct fabric_peer_traits qp_peer_traits(const struct sdr_qp *qp,
                                                const struct qp_info_endpoint *peer)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    return ops->peer_traits ? ops->peer_traits(peer) : (struct fabric_peer_traits){0};
}

static void keep_peer(struct sdr_qp *qp, const struct qp_info *info)
{
    const struct qp_info_endpoint *endpoint = &info->endpoint;
    qp->peer = (struct qp_peer){
        .traits = qp_peer_traits(qp, endpoint),
        .family = endpoint->family,
        .control_port = endpoint->control_port,
        .receive_buffer_bytes = endpoint->receive_buffer_bytes,
        .token = info->token,
        .slots = info->slots,
        .slot_bytes = info->slot_bytes,
        .wants_feedback = info->wants_feedback,
        .credits = info->credits,
    };
    memcpy(qp->peer.address, endpoint->address, sizeof endpoint->address);
}

int lh_sdr_qp_connect(struct sdr_qp *qp, const void *remote_qp_info)
{
    struct qp_info peer;
    size_t bytes = remote_qp_info ? qp_info_peek_bytes(remote_qp_info) : 0;
    if (bytes == 0)
        return lh_fail(LH_EHANDSHAKE, "malformed QP info from the peer");
    int error = qp_info_decode(remote_qp_info, bytes, &peer);
    if (!error)
        error = check_peer(qp, &peer);
    if (error)
        return error;
    peer.endpoint.translated = qp->translated;
    memcpy(peer.endpoint.seen_address, qp->seen_address, sizeof qp->seen_address);
    peer.endpoint.proof = qp->token;
    qp_lock(qp);
    qp_gates_enter(qp);
    error = atomic_load(&qp->connected) ? lh_fail(LH_ESTATE, "QP is connected already") : 0;
    if (!error)
        error = qp->endpoint->fabric->ops->endpoint_connect(qp->endpoint, &peer.endpoint);
    if (!error) {
        keep_peer(qp, &peer);
        qp->path.ping_at = 0;
        qp_join_keepalive_group(qp);
        atomic_store(&qp->connected, true);
    }
    qp_gates_leave(qp);
    qp_unlock(qp);
    qp_watch_again(qp);
    return error;
}

int sdr_qp_connect(struct sdr_qp *qp, void *remote_qp_info)
{
    return lh_sdr_qp_connect(qp, remote_qp_info) ? SDR_ERROR : SDR_SUCCESS;
}

bool sdr_qp_can_encrypt(const struct sdr_qp *qp)
{
    return qp->endpoint->fabric->ops->secure != NULL;
}

int sdr_qp_secure(struct sdr_qp *qp, const uint8_t secret[SDR_SECRET_BYTES], bool connecting)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct fabric_secret given = {.connecting = connecting};
    static_assert(SDR_SECRET_BYTES == FABRIC_SECRET_BYTES, "passed on as it is");
    if (!sdr_qp_can_encrypt(qp))
        return lh_fail(
            LH_EUNSUPPORTED,
            "%s does not encrypt data: use udp:, or --encryption auth where the network encrypts",
            ops->name);
    memcpy(given.bytes, secret, sizeof given.bytes);
    int error = ops->secure(qp->endpoint, &given);
    qp->encrypted = error == 0;
    seal_wipe(&given, sizeof given);
    return error;
}

int sdr_secret_derive(const uint8_t secret[SDR_SECRET_BYTES], const char *label,
                      uint8_t out[SDR_SECRET_BYTES])
{
    if (seal_derive(secret, label, NULL, 0, out, SDR_SECRET_BYTES))
        return 0;
    return lh_fail(LH_ESYSTEM, "HMAC-SHA-256: not available in this system's libcrypto");
}

uint64_t sdr_qp_secret(const struct sdr_qp *qp)
{
    return qp->endpoint->secret;
}

bool sdr_qp_peer_may_be_translated(const struct sdr_qp *qp, const struct qp_info_endpoint *peer)
{
    return qp_peer_traits(qp, peer).may_be_translated;
}

void sdr_qp_peer_seen_at(struct sdr_qp *qp, const uint8_t address[16])
{
    qp->translated = true;
    memcpy(qp->seen_address, address, sizeof qp->seen_address);
}

void sdr_qp_punch(struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    qp_lock(qp);
    if (atomic_load(&qp->connected) && ops->punch && !qp_device_gone(qp))
        ops->punch(qp->endpoint, qp->peer.token);
    qp->punches = true;
    qp_unlock(qp);
}
