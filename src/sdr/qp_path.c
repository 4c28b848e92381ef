/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/qp_path.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "base/min_max.h"
#include "congestion/congestion_table.h"
#include "sdr/message_table.h"
#include "sdr/rate_control.h"
#include "wire/control_messages.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- round trip: RFC 6298 section 2, alpha = 1/8, beta = 1/4 ----------------------------------------- */

/* Samples are made from a peer's clock echo, so any value may come: above this (36 years) sums would wrap.
 */
#define SAMPLE_MAX_NS (LH_TIME_NEVER / 16)

void lh_rtt_init(struct lh_rtt *rtt)
{
    *rtt = (struct lh_rtt){0};
}

void lh_rtt_on_sample(struct lh_rtt *rtt, lh_time sample_ns)
{
    lh_time sample = lh_min(lh_max(sample_ns, 1), SAMPLE_MAX_NS);
    rtt->latest_ns = sample;
    if (rtt->samples++ == 0) {
        rtt->smoothed_ns = sample;
        rtt->variance_ns = sample / 2;
        rtt->minimum_ns = sample;
        return;
    }
    lh_time distance = lh_max(rtt->smoothed_ns, sample) - lh_min(rtt->smoothed_ns, sample);
    rtt->variance_ns = (3 * rtt->variance_ns + distance) / 4;
    rtt->smoothed_ns = (7 * rtt->smoothed_ns + sample) / 8;
    rtt->minimum_ns = lh_min(rtt->minimum_ns, sample);
    assert(rtt->smoothed_ns >= rtt->minimum_ns && rtt->smoothed_ns <= SAMPLE_MAX_NS);
}

lh_time lh_rtt_overdue_ns(const struct lh_rtt *rtt)
{
    return rtt->smoothed_ns + lh_max(rtt->smoothed_ns / 8, 4 * rtt->variance_ns);
}

lh_time lh_rtt_reorder_window_ns(const struct lh_rtt *rtt)
{
    return lh_min(lh_max(rtt->minimum_ns / 8, 2 * rtt->variance_ns), rtt->smoothed_ns / 2);
}

/* ---- path ------------------------------------------------------------------------------------------ */

#define PATH_FIRST_PING_NS LH_NS_PER_MS

#define PING_QUIET_OVERDUES 4u

void path_init(struct path *path, lh_time now, lh_time keepalive_ns, uint64_t secret, uint64_t *challenges)
{
    assert(keepalive_ns > 0);
    *path = (struct path){.challenges = challenges,
                          .keepalive_ns = keepalive_ns,
                          .ping_at = now,
                          .ping_span = PATH_FIRST_PING_NS};
    path->origin_ns = secret >> 2 | 1; /* with any clock, neither 0 nor too long */
    path->last_echo_ns = path->origin_ns - 1;
    lh_rtt_init(&path->rtt);
}

void path_keepalive_set(struct path *path, lh_time keepalive_ns)
{
    assert(keepalive_ns > 0);
    path->keepalive_ns = keepalive_ns;
    if (path->proven && path->ping_span > keepalive_ns)
        path->ping_span = keepalive_ns;
}

/* True from the first echo on of something that was sent there. */
static bool check_proof(struct path *path, uint64_t echo_ns, lh_time now)
{
    for (uint32_t i = 0; i < PATH_CHALLENGES && !path->proven; i++)
        path->proven = echo_ns != 0 && path->challenges[i] == echo_ns;
    if (path->proven && path->ping_span > path->keepalive_ns)
        path->ping_span = path->keepalive_ns;
    if (path->proven && path->ping_at > now + path->ping_span)
        path->ping_at = now + path->ping_span;
    return path->proven;
}

static void take_echo(struct path *path, const struct control_header *header, lh_time now)
{
    if (!path->proven && !check_proof(path, header->echo_ns, now))
        return;
    /* An echo of the future, or one that was held longer than it exists, is forged or garbage. */
    if (header->echo_ns <= path->last_echo_ns || header->echo_ns - path->origin_ns > now)
        return;
    lh_time age_ns = now - (header->echo_ns - path->origin_ns);
    if (age_ns < header->echo_delay_ns)
        return;
    path->last_echo_ns = header->echo_ns;
    if (header->echo_delay_ns != UINT32_MAX)
        lh_rtt_on_sample(&path->rtt, age_ns - header->echo_delay_ns);
}

/* A peer that sends needs no ping for a while. */
static void postpone_ping(struct path *path, lh_time now)
{
    lh_time quiet = PING_QUIET_OVERDUES * lh_rtt_overdue_ns(&path->rtt);
    if (quiet == 0)
        return;
    path->ping_span = quiet < path->keepalive_ns ? quiet : path->keepalive_ns;
    path->ping_at = now + path->ping_span;
}

static bool is_keepalive(enum control_type type)
{
    return type == CONTROL_PING || type == CONTROL_PONG || type == CONTROL_KEEPALIVE ||
           type == CONTROL_ALIVE || type == CONTROL_PROBE || type == CONTROL_PROBED;
}

void path_on_control(struct path *path, const struct control_header *header, lh_time now)
{
    if (header->sent_ns > path->newest_ns) {
        path->newest_ns = header->sent_ns;
        path->newest_received_ns = now;
    }
    path->last_received_ns = now;
    take_echo(path, header, now);
    /* A pong answers our ping: it must not restart the span, or two idle peers would ping for ever at full
     * pace. */
    if (!is_keepalive(header->type))
        postpone_ping(path, now);
}

void path_on_traffic(struct path *path, lh_time now)
{
    path->last_received_ns = now;
}

void path_stamp(struct path *path, lh_time now, struct control_header *header)
{
    header->sent_ns = path->origin_ns + now;
    if (!path->proven)
        path->challenges[path->challenge_next++ % PATH_CHALLENGES] = header->sent_ns;
    header->echo_ns = path->newest_ns;
    header->echo_delay_ns = 0;
    if (path->newest_ns) {
        lh_time delay = now - path->newest_received_ns;
        header->echo_delay_ns = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
    }
}

bool path_ping_due(struct path *path, lh_time now)
{
    if (now < path->ping_at)
        return false;
    lh_time longest = path->proven ? path->keepalive_ns : PATH_CHALLENGE_SPAN_MAX_NS;
    path->ping_at = now + path->ping_span;
    path->ping_span = path->ping_span * 2 < longest ? path->ping_span * 2 : longest;
    return true;
}

/* ---- qp plan --------------------------------------------------------------------------------------- */

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
    if (!roce_payload_is_valid(shape->mtu_bytes))
        return lh_fail(LH_EINVAL, "MTU %u: invalid (use a multiple of %u up to %u)", shape->mtu_bytes,
                       ROCE_PAYLOAD_STEP, ROCE_PAYLOAD_MAX);
    if (chunk_bytes < shape->mtu_bytes || chunk_bytes > (UINT64_C(1) << 31) ||
        chunk_bytes != qp_info_chunk_for(chunk_bytes, shape->mtu_bytes))
        return lh_fail(LH_EINVAL, "chunk of %llu bytes: invalid (use the MTU, %u, times a power of two)",
                       (unsigned long long)chunk_bytes, shape->mtu_bytes);
    if (shape->slot_bytes < shape->mtu_bytes || shape->slot_bytes > UINT32_MAX)
        return lh_fail(LH_EINVAL, "messages of up to %llu bytes: out of range (%u, the MTU, to 4 GiB - 1)",
                       (unsigned long long)shape->slot_bytes, shape->mtu_bytes);
    return 0;
}

static int check_split(const struct message_shape *shape)
{
    struct immediate_split split = shape->split;
    if (split.message_bits < 1 || split.message_bits > 16 || split.fragment_bits < 1 ||
        split.fragment_bits > 8 || 32 % split.fragment_bits)
        return lh_fail(LH_EINVAL, "immediate split %u + %u + %u: invalid (use 10 + 18 + 4 or 8 + 22 + 2)",
                       split.message_bits, split.offset_bits, split.fragment_bits);
    if ((shape->slots & (shape->slots - 1)) || shape->slots > 1u << split.message_bits)
        return lh_fail(
            LH_EINVAL,
            "%u messages in flight: invalid (use a power of two up to %u: %u bits of the immediate)",
            shape->slots, 1u << split.message_bits, split.message_bits);
    uint64_t packets = (shape->slot_bytes + shape->mtu_bytes - 1) / shape->mtu_bytes;
    if (packets > UINT64_C(1) << split.offset_bits)
        return lh_fail(LH_ERANGE,
                       "messages of up to %llu bytes are %llu packets: %u bits of packet offset hold %u",
                       (unsigned long long)shape->slot_bytes, (unsigned long long)packets,
                       split.offset_bits, 1u << split.offset_bits);
    if (shape->generations < 1 || shape->generations > QP_INFO_GENERATIONS_MAX)
        return lh_fail(LH_EINVAL, "%u generations: out of range (1 to %u)", shape->generations,
                       QP_INFO_GENERATIONS_MAX);
    return 0;
}

static int check_rates(const struct lh_qp_attr *more)
{
    uint64_t rate_bps = more->rate_bps > more->rate_max_bps ? more->rate_bps : more->rate_max_bps;
    if (rate_bps > RATE_MAX_BPS)
        return lh_fail(LH_EINVAL,
                       "rate of %llu bit/s: out of range (at most %llu = 100 Tbit/s, or 0 for none)",
                       (unsigned long long)rate_bps, (unsigned long long)RATE_MAX_BPS);
    return 0;
}

int qp_plan_congestion(const struct qp_plan *plan, bool given, struct congestion_choice *choice)
{
    return congestion_choice_parse(plan->congestion ? plan->congestion : given ? "fixed" : "bbr", choice);
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
    if (!more->chunk_bytes && shape->mtu_bytes > 0 && chunk_bytes > shape->mtu_bytes)
        chunk_bytes = qp_info_chunk_for(chunk_bytes, shape->mtu_bytes);
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

/* ---- path mtu -------------------------------------------------------------------------------------- */

#define PATH_MTU_CONFIRM_OVERDUES 8u

#define SHIFT_MASK    3u /* of an id: the length of its probe */
#define WAIT_UNKNOWN  LH_NS_PER_S
#define SILENT_SHIFTS 6u

static_assert(PATH_MTU_LENGTHS == SHIFT_MASK + 1, "an id has the length of its probe");

void path_mtu_init(struct path_mtu *mtu, uint32_t mtu_bytes)
{
    *mtu = (struct path_mtu){.mtu_bytes = mtu_bytes, .lengths = 1, .raise_span = PATH_MTU_RAISE_MIN_NS};
}

void path_mtu_start(struct path_mtu *mtu, uint32_t lengths)
{
    assert(lengths >= 1 && lengths <= PATH_MTU_LENGTHS);
    mtu->lengths = lengths;
}

/* ---- times ------------------------------------------------------------------------------------------- */

/* After that a probe counts as lost. */
static lh_time wait_ns(const struct path_mtu_view *view)
{
    if (view->overdue_ns == 0)
        return WAIT_UNKNOWN;
    return view->overdue_ns + view->overdue_ns / 2 + PATH_MTU_WAIT_MIN_NS;
}

static lh_time round_ns(const struct path_mtu *mtu, const struct path_mtu_view *view)
{
    lh_time minimum = lh_max(view->overdue_ns / 2, PATH_MTU_WAIT_MIN_NS);
    lh_time longest = lh_max(minimum, PATH_MTU_SEARCH_SPAN_NS);
    return lh_min(minimum << lh_min(mtu->silent, SILENT_SHIFTS), longest);
}

/* ---- states ------------------------------------------------------------------------------------------ */

/* The length in use passes, as far as is known. */
static void go_idle(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->state = PATH_MTU_IDLE;
    mtu->due = 0;
    mtu->sent_noted = view->sent_bytes;
    mtu->has_sent = false;
    mtu->at = view->now + lh_max(PATH_MTU_CONFIRM_NS, PATH_MTU_CONFIRM_OVERDUES * view->overdue_ns);
}

static void enter(struct path_mtu *mtu, enum path_mtu_state state)
{
    mtu->state = state;
    mtu->first_id = mtu->next_id;
    mtu->answered = false;
}

static void confirm(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    enter(mtu, PATH_MTU_CONFIRMING);
    mtu->due = 1u << mtu->shift;
    mtu->at = view->now + wait_ns(view);
}

static bool may_probe_longer(const struct path_mtu *mtu)
{
    return mtu->probes < PATH_MTU_RAISE_PROBES * mtu->shift;
}

/* One at a time, here and in the search: a burst might be more than a short queue holds, always at the same
 * length. */
static void probe_longer(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    assert(mtu->shift > 0);
    mtu->due = 1u << mtu->probes++ % mtu->shift;
    mtu->at = view->now + (may_probe_longer(mtu) ? round_ns(mtu, view) : wait_ns(view));
}

static void probe_next(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    bool is_silent = view->now - mtu->answered_ns > wait_ns(view);
    mtu->silent = is_silent ? mtu->silent + 1 : 0;
    uint32_t shift = is_silent ? mtu->lengths - 1 : mtu->probes++ % mtu->lengths;
    mtu->due = 1u << shift;
    mtu->at = view->now + round_ns(mtu, view) / (is_silent ? 1 : mtu->lengths);
}

/* An answer to the confirmation may still come: it counts. */
static void search(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->state = PATH_MTU_SEARCHING;
    mtu->answered_ns = view->now;
    mtu->silent = 0;
    mtu->probes = 0;
    for (uint32_t s = 0; s < PATH_MTU_LENGTHS; s++)
        mtu->answers[s] = 0;
    probe_next(mtu, view);
}

static void end_raising(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->raise_span = lh_min(2 * mtu->raise_span, PATH_MTU_RAISE_MAX_NS);
    mtu->raise_at = view->now + mtu->raise_span;
    go_idle(mtu, view);
    mtu->at = view->now; /* the confirmation has waited for this */
}

static void on_idle(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    if (!mtu->has_sent && view->sent_bytes - mtu->sent_noted >= mtu->mtu_bytes) {
        mtu->has_sent = true;
        mtu->at = lh_max(mtu->at, view->now + 2 * view->overdue_ns + PATH_MTU_WAIT_MIN_NS);
    }
    if (!mtu->has_sent)
        return;
    if (mtu->shift > 0 && view->now >= mtu->raise_at) {
        enter(mtu, PATH_MTU_RAISING);
        mtu->silent = 0;
        mtu->probes = 0;
        probe_longer(mtu, view);
    } else if (view->now >= mtu->at) {
        confirm(mtu, view);
    }
}

void path_mtu_on_time(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    if (mtu->lengths == 1)
        return;
    if (mtu->state == PATH_MTU_IDLE) {
        on_idle(mtu, view);
        return;
    }
    if (view->now < mtu->at)
        return;
    if (mtu->state == PATH_MTU_CONFIRMING)
        search(mtu, view);
    else if (mtu->state == PATH_MTU_RAISING && may_probe_longer(mtu))
        probe_longer(mtu, view);
    else if (mtu->state == PATH_MTU_RAISING)
        end_raising(mtu, view);
    else if (mtu->silent < PATH_MTU_SILENT_ROUNDS)
        probe_next(mtu, view);
    else
        go_idle(mtu, view);
}

bool path_mtu_take_probe(struct path_mtu *mtu, uint32_t *id, uint32_t *shift)
{
    if (mtu->due == 0)
        return false;
    *shift = (uint32_t)__builtin_ctz(mtu->due);
    *id = mtu->next_id + *shift;
    mtu->due = 0;
    mtu->next_id += PATH_MTU_LENGTHS;
    return true;
}

/* ---- answers ----------------------------------------------------------------------------------------- */

/* To that length. A path that falls soon after it was raised may do so again: it is asked ever more rarely.
 */
static void lower(struct path_mtu *mtu, uint32_t shift, const struct path_mtu_view *view)
{
    bool again = mtu->raised_ns != 0 && view->now - mtu->raised_ns < PATH_MTU_RAISE_MAX_NS / 8;
    mtu->shift = shift;
    mtu->raise_span = again ? lh_min(2 * mtu->raise_span, PATH_MTU_RAISE_MAX_NS) : PATH_MTU_RAISE_MIN_NS;
    mtu->raise_at = view->now + mtu->raise_span;
    go_idle(mtu, view);
}

static bool on_longer_answered(struct path_mtu *mtu, uint32_t shift, const struct path_mtu_view *view)
{
    if (shift >= mtu->shift)
        return false;
    mtu->shift = shift;
    mtu->raised_ns = view->now;
    if (shift == 0)
        go_idle(mtu, view);
    return true;
}

/* The longest of those that were answered, which are shorter than what is in use. */
static uint32_t longest_answered(const struct path_mtu *mtu)
{
    for (uint32_t s = mtu->shift + 1; s < mtu->lengths; s++)
        if (mtu->answers[s] > 0)
            return s;
    return mtu->shift;
}

static bool on_search_answered(struct path_mtu *mtu, uint32_t number, uint32_t shift,
                               const struct path_mtu_view *view)
{
    mtu->answered_ns = view->now;
    if (mtu->silent > 0)
        mtu->at = view->now;
    mtu->silent = 0;
    if (mtu->answers[shift] > 0 && (int32_t)(number - mtu->newest[shift]) <= 0)
        return false; /* the network has doubled it, or a later one came first */
    mtu->newest[shift] = number;
    if (++mtu->answers[shift] < PATH_MTU_SEARCH_ANSWERS)
        return false;
    lower(mtu, longest_answered(mtu), view);
    return true;
}

bool path_mtu_on_answer(struct path_mtu *mtu, uint32_t id, bool full, const struct path_mtu_view *view)
{
    const uint32_t shift = id & SHIFT_MASK, number = id & ~SHIFT_MASK;
    if (mtu->lengths == 1 || mtu->state == PATH_MTU_IDLE || shift >= mtu->lengths ||
        number - mtu->first_id >= mtu->next_id - mtu->first_id)
        return false;
    /* What arrived before the peer answered an earlier probe shows nothing of the time since. */
    bool data_pass = full && mtu->answered && (int32_t)(number - mtu->newest_id) > 0;
    if (!mtu->answered || (int32_t)(number - mtu->newest_id) > 0)
        mtu->newest_id = number;
    mtu->answered = true;
    if (mtu->state == PATH_MTU_RAISING)
        return on_longer_answered(mtu, shift, view);
    if (shift <= mtu->shift || data_pass) {
        go_idle(mtu, view);
        return false;
    }
    return mtu->state == PATH_MTU_SEARCHING && on_search_answered(mtu, number, shift, view);
}

lh_time path_mtu_next(const struct path_mtu *mtu)
{
    if (mtu->lengths == 1)
        return LH_TIME_NEVER;
    if (mtu->state != PATH_MTU_IDLE)
        return mtu->at;
    if (!mtu->has_sent)
        return LH_TIME_NEVER;
    return mtu->shift > 0 ? lh_earlier(mtu->at, mtu->raise_at) : mtu->at;
}
