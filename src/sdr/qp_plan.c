/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/qp_plan.h"

#include "base/error.h"
#include "sdr/rate/rate_control.h"
#include "wire/qp_info.h"
#include "wire/roce.h"

#define DEFAULT_CHUNK_LOG     16u
#define DEFAULT_IN_FLIGHT_LOG 30u
#define DEFAULT_SLOTS_LOG     7u
#define DEFAULT_GENERATIONS   4u

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

static int check_rates(const struct lh_qp_attr *more)
{
    uint64_t rate_bps = more->rate_bps > more->rate_max_bps ? more->rate_bps : more->rate_max_bps;
    if (rate_bps > RATE_MAX_BPS)
        return lh_fail(LH_EINVAL, "rate of %llu bit/s: use at most %llu (100 Tbit/s), or 0 for none",
                       (unsigned long long)rate_bps, (unsigned long long)RATE_MAX_BPS);
    return 0;
}

int qp_plan_congestion(const struct qp_plan *plan, bool told, struct congestion_choice *choice)
{
    return congestion_choice_parse(plan->congestion ? plan->congestion : told ? "fixed" : "bbr", choice);
}

int qp_plan_make(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more, struct qp_plan *plan)
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
    if (!error)
        error = check_rates(more);
    if (error)
        return error;
    shape->chunk_packets = (uint32_t)(chunk_bytes / shape->mtu_bytes);
    plan->rate_bps = more->rate_bps ? more->rate_bps : (uint64_t)attr->rate_limit * 1000000;
    plan->rate_max_bps = more->rate_max_bps ? more->rate_max_bps : LH_RATE_NONE;
    plan->congestion = more->congestion;
    plan->window_bytes = more->window_bytes ? more->window_bytes : shape->slots * shape->slot_bytes;
    bool both = !attr->send_enable && !attr->recv_enable;
    plan->send_enable = both || attr->send_enable;
    plan->recv_enable = both || attr->recv_enable;
    return 0;
}
