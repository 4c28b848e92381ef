/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/flow_machines.h"

#include <assert.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <string.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>

#include "base/bytes.h"
#include "base/error.h"
#include "netsim/flowcontrol/link_rules.h"

/* ---- pause frame ----------------------------------------------------------------------------------- */

/*
 * The MAC control frame of priority flow control (IEEE 802.3, annex 31D; 802.1Qbb).
 *
 * destination 6 | source 6 | type 2 | opcode 2 | enabled 2 | times 8 x 2 | pad 26 | frame check sequence 4
 */

#define TYPE_MAC_CONTROL 0x8808u
#define OPCODE_PFC       0x0101u

#define SOURCE_AT  6u
#define TYPE_AT    12u
#define OPCODE_AT  14u
#define ENABLED_AT 16u
#define TIMES_AT   18u
#define CHECK_AT   (LH_PFC_FRAME_BYTES - 4u)

/* Bridges do not forward what goes there. */
static const uint8_t destination[SOURCE_AT] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

/* Ethernet's CRC goes out with the lowest byte first. */
static void check_sequence(const uint8_t *frame, uint8_t out[4])
{
    uint32_t crc = crc32_gzip_refl(0, frame, CHECK_AT);
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(crc >> 8 * i);
}

void lh_pfc_frame_encode(const struct lh_pfc_frame *frame, uint8_t out[LH_PFC_FRAME_BYTES])
{
    memset(out, 0, LH_PFC_FRAME_BYTES);
    memcpy(out, destination, sizeof destination);
    memcpy(out + SOURCE_AT, frame->source, sizeof frame->source);
    lh_put_be16(out + TYPE_AT, TYPE_MAC_CONTROL);
    lh_put_be16(out + OPCODE_AT, OPCODE_PFC);
    lh_put_be16(out + ENABLED_AT, frame->enabled);
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++)
        if ((frame->enabled >> p & 1) != 0)
            lh_put_be16(out + TIMES_AT + 2 * p, frame->quanta[p]);
    check_sequence(out, out + CHECK_AT);
}

static int check(const uint8_t *data, size_t bytes)
{
    uint8_t sequence[4];
    /* MAC control frames have one length; there is nothing behind the padding. */
    if (bytes != LH_PFC_FRAME_BYTES)
        return lh_fail(LH_EPROTOCOL,
                       "pause frame of %zu bytes: invalid length (%u with the check sequence)", bytes,
                       LH_PFC_FRAME_BYTES);
    if (memcmp(data, destination, sizeof destination) != 0)
        return lh_fail(LH_EPROTOCOL, "pause frame: invalid destination (01:80:c2:00:00:01)");
    if (lh_get_be16(data + TYPE_AT) != TYPE_MAC_CONTROL)
        return lh_fail(LH_EPROTOCOL, "type 0x%04x: not MAC control (0x%04x)", lh_get_be16(data + TYPE_AT),
                       TYPE_MAC_CONTROL);
    if (lh_get_be16(data + OPCODE_AT) != OPCODE_PFC)
        return lh_fail(LH_EPROTOCOL, "opcode 0x%04x: not priority flow control (0x%04x)",
                       lh_get_be16(data + OPCODE_AT), OPCODE_PFC);
    check_sequence(data, sequence);
    if (memcmp(data + CHECK_AT, sequence, sizeof sequence) != 0)
        return lh_fail(LH_EPROTOCOL, "pause frame: frame check sequence mismatch (drop it)");
    return 0;
}

int lh_pfc_frame_decode(const uint8_t *data, size_t bytes, struct lh_pfc_frame *frame)
{
    int rc = check(data, bytes);
    if (rc != 0)
        return rc;
    memcpy(frame->source, data + SOURCE_AT, sizeof frame->source);
    frame->enabled = data[ENABLED_AT + 1]; /* the upper byte is reserved and not looked at */
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++) {
        bool enabled = (frame->enabled >> p & 1) != 0;
        frame->quanta[p] = enabled ? lh_get_be16(data + TIMES_AT + 2 * (size_t)p) : 0;
    }
    return 0;
}

uint32_t lh_pfc_quanta(uint64_t bytes)
{
    uint64_t quanta = bytes / LH_PFC_QUANTUM_BYTES + (bytes % LH_PFC_QUANTUM_BYTES != 0);
    return quanta < LH_PFC_QUANTA_MAX ? (uint32_t)quanta : LH_PFC_QUANTA_MAX;
}

uint32_t lh_pfc_part(uint32_t quanta, uint32_t *after)
{
    bool all = quanta <= LH_PFC_QUANTA_MAX;
    *after = all ? 0 : LH_PFC_QUANTA_MAX / 2;
    return all ? quanta : LH_PFC_QUANTA_MAX;
}

/* ---- bifrost --------------------------------------------------------------------------------------- */

/*
 * The downstream port of Bifrost (Yu et al., ICNP 2023, algorithm 1).
 *
 * F is what may arrive from now on within a round trip and a slot: what was granted and has not come.
 * Each slot grants c = H - L - F, between nothing and a whole slot, so L + F never exceeds H; and with H
 * of a round trip and two slots L + F is never less than a round trip and a slot: then the queue lasts
 * until what is granted now arrives (theorem 1).
 *
 * Where the printed algorithm cannot be meant as it stands:
 * - Line 10 would grant less than nothing when L + F exceeds H; here it grants nothing. What leaked past
 *   a pause is then deducted by itself, in every slot: lines 12 and 13 have nothing left to do, and k
 *   is only the headroom for leaks.
 * - A pause has whole quanta. What is booked in F is what the pause leaves of the slot, not the c that it
 *   was rounded from, or F would drift; so H needs a quantum more.
 * - A pause that grants nothing lasts for two slots, so that the next is there though it waits behind a
 *   packet on the path, the path gets longer, or one is lost. What slips in could be deducted from nothing.
 * - Line 10 counts what arrived in the slot twice, in L and in F, which line 15 corrects too late for it. So
 *   grants swing: c(n) = d + c(n-N-2) - c(n-N-1), of a drain d and a round trip of N slots. With even_grants
 *   line 15 comes first, and c(n) = d: L + F is then H, but for what a slot can grant.
 * - Line 15 takes what arrived off F, the proof takes off what was granted; see lh_bifrost_init().
 */

#define GUARD_SLOTS_MAX 1000u
#define SLOT_BYTES_MAX  (1u << 30)
#define MTU_MAX         (1u << 20)

/* ---- configuration ----------------------------------------------------------------------------------- */

static uint64_t slot_bytes(const struct lh_bifrost_config *config)
{
    return flow_bytes_in(config->rate_bps, config->slot_ns);
}

/* A frame is late by what it waits behind, and its own length. */
static uint64_t late_bytes(const struct lh_bifrost_config *config)
{
    return (uint64_t)config->mtu_bytes + LH_PFC_FRAME_BYTES;
}

static int check_link(const struct lh_bifrost_config *config)
{
    if (config->mtu_bytes > MTU_MAX)
        return lh_fail(LH_ERANGE, "packets of %u bytes: out of range (at most %u)", config->mtu_bytes,
                       MTU_MAX);
    if (config->rate_bps < FLOW_RATE_MIN || config->rate_bps > FLOW_RATE_MAX)
        return lh_fail(LH_ERANGE, "link rate of %" PRIu64 " bit/s: out of range (1e6 to 1e14)",
                       config->rate_bps);
    if (config->delay_ns > FLOW_SPAN_MAX / 2)
        return lh_fail(LH_ERANGE, "link delay of %" PRIu64 " ns: out of range (at most a second, one way)",
                       config->delay_ns);
    if (config->mtu_bytes == 0 || config->leak_slots == 0)
        return lh_fail(LH_EINVAL, "mtu_bytes (%u) and leak_slots (%u): out of range (both at least 1)",
                       config->mtu_bytes, config->leak_slots);
    uint64_t holds = flow_bytes_in(config->rate_bps, 2 * config->delay_ns);
    if (config->delta_bytes < holds)
        return lh_fail(LH_EINVAL,
                       "delta is %" PRIu64 " bytes: the link carries %" PRIu64
                       " in a round trip, and what exceeds delta would overflow (raise delta)",
                       config->delta_bytes, holds);
    return 0;
}

static int check_slot(const struct lh_bifrost_config *config)
{
    if (config->slot_ns == 0 || config->slot_ns > FLOW_SPAN_MAX ||
        slot_bytes(config) < LH_PFC_QUANTUM_BYTES)
        return lh_fail(LH_ERANGE,
                       "a slot of %" PRIu64
                       " ns: the link must carry a quantum of %u bytes in it (lengthen it)",
                       config->slot_ns, LH_PFC_QUANTUM_BYTES);
    if (config->delay_ns != 0 && config->slot_ns > config->delay_ns)
        return lh_fail(LH_EINVAL,
                       "a slot of %" PRIu64 " ns is longer than the link's delay of %" PRIu64
                       " ns: its pause would arrive too late (shorten it)",
                       config->slot_ns, config->delay_ns);
    if (slot_bytes(config) > SLOT_BYTES_MAX)
        return lh_fail(LH_ERANGE,
                       "a slot of %" PRIu64 " ns has %" PRIu64
                       " bytes: out of range (at most %u; shorten it)",
                       config->slot_ns, slot_bytes(config), SLOT_BYTES_MAX);
    return 0;
}

static int check_headroom(const struct lh_bifrost_config *config)
{
    uint64_t leaks = (uint64_t)config->leak_slots * config->mtu_bytes;
    if (config->headroom_bytes < leaks)
        return lh_fail(LH_EINVAL,
                       "the headroom is %" PRIu64 " bytes: %u packets of %u for leaks are %" PRIu64
                       " (raise it)",
                       config->headroom_bytes, config->leak_slots, config->mtu_bytes, leaks);
    if (config->guard_slots > GUARD_SLOTS_MAX)
        return lh_fail(LH_ERANGE,
                       "a guard of %u slots: out of range (at most %u, to stop the upstream within a "
                       "fraction of a round trip)",
                       config->guard_slots, GUARD_SLOTS_MAX);
    uint64_t longest = slot_bytes(config) + late_bytes(config);
    if (config->guard_slots != 0 && longest > LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES)
        return lh_fail(LH_ERANGE,
                       "a guard and a slot of %" PRIu64 " ns: with the delay of a frame %" PRIu64
                       " bytes, more than the %u that one frame can pause (shorten the slot)",
                       config->slot_ns, longest, LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES);
    uint64_t guard = lh_bifrost_guard_headroom(config);
    if (config->headroom_bytes - leaks < guard)
        return lh_fail(LH_EINVAL,
                       "the headroom is %" PRIu64 " bytes: leaks and a guard of %u slots need %" PRIu64
                       " + %" PRIu64 " (raise it)",
                       config->headroom_bytes, config->guard_slots, leaks, guard);
    return 0;
}

int lh_bifrost_check(const struct lh_bifrost_config *config)
{
    int rc = check_link(config);
    if (rc == 0)
        rc = check_slot(config);
    if (rc != 0)
        return rc;
    uint64_t beyond = 2 * slot_bytes(config) + LH_PFC_QUANTUM_BYTES;
    if (config->buffer_bytes < beyond || config->buffer_bytes - beyond < config->delta_bytes)
        return lh_fail(LH_EINVAL,
                       "H is %" PRIu64 " bytes: delta, two slots and a quantum are %" PRIu64 " + %" PRIu64
                       " (raise H or shorten the slot)",
                       config->buffer_bytes, config->delta_bytes, beyond);
    return check_headroom(config);
}

/* ---- the guard --------------------------------------------------------------------------------------- */

lh_time lh_bifrost_guard_ns(const struct lh_bifrost_config *config)
{
    if (config->guard_slots == 0)
        return 0;
    uint64_t rate_bps = config->rate_bps > 0 ? config->rate_bps : 1;
    lh_time late_ns = (late_bytes(config) * FLOW_BIT_NS_PER_BYTE + rate_bps - 1) / rate_bps;
    return config->guard_slots * config->slot_ns + late_ns;
}

/* The upstream sends guard_slots - 1 slots too many when a burst of losses begins; and, at the end of what
 * it may send, for as long as a frame may be late: that once in a slot at most. */
uint64_t lh_bifrost_guard_headroom(const struct lh_bifrost_config *config)
{
    if (config->guard_slots == 0)
        return 0;
    uint64_t slots = (uint64_t)lh_bifrost_grants(config) + 2;
    return (config->guard_slots - 1) * slot_bytes(config) + slots * late_bytes(config);
}

/* ---- the port ---------------------------------------------------------------------------------------- */

uint32_t lh_bifrost_grants(const struct lh_bifrost_config *config)
{
    uint64_t slot = slot_bytes(config);
    uint64_t slots = slot > 0 ? config->delta_bytes / slot + 2 : 0;
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

void lh_bifrost_init(struct lh_bifrost *bifrost, const struct lh_bifrost_config *config, uint32_t *grants)
{
    uint64_t slot = slot_bytes(config);
    assert(slot > 0 && slot <= UINT32_MAX);
    *bifrost = (struct lh_bifrost){
        .buffer_bytes = config->buffer_bytes,
        .slot_bytes = slot,
        .most_bytes = config->delta_bytes + slot,
        .incoming_bytes = config->delta_bytes + slot,
        .grants = grants,
        .grants_count = grants != NULL ? lh_bifrost_grants(config) : 0,
        .rest_bytes = config->delta_bytes % slot,
        .late_bytes = late_bytes(config),
        .even = config->even_grants,
    };
    for (uint32_t i = 0; i < bifrost->grants_count; i++)
        grants[i] = (uint32_t)slot;
}

/* What a backlogged upstream made arrive in the slot that ended. A slot's grant arrives a round trip
 * after it was made, its pause first; a round trip is whole slots and a rest, so the last part of the
 * oldest grant came in this slot, and the first part of the next one. Each grant lies at the end of its
 * slot. */
static uint64_t granted_arrival(const struct lh_bifrost *bifrost)
{
    uint32_t second = bifrost->next + 1 < bifrost->grants_count ? bifrost->next + 1 : 0;
    uint64_t rest = bifrost->rest_bytes;
    uint64_t before = bifrost->grants[bifrost->next];
    uint64_t after = bifrost->grants[second];
    return (before < rest ? before : rest) + (after > rest ? after - rest : 0);
}

/* Nothing, where there is less than what is taken away: of F by arrivals, leaks. */
static uint64_t less(uint64_t bytes, uint64_t gone)
{
    return bytes > gone ? bytes - gone : 0;
}

static void remember(struct lh_bifrost *bifrost, uint64_t granted)
{
    bifrost->grants[bifrost->next++] = (uint32_t)granted;
    if (bifrost->next == bifrost->grants_count)
        bifrost->next = 0;
}

/* As lh_pfc_quanta(), of a pause that may take several frames. */
static uint32_t quanta_of(uint64_t bytes)
{
    return (uint32_t)((bytes + LH_PFC_QUANTUM_BYTES - 1) / LH_PFC_QUANTUM_BYTES);
}

/* Two slots, if one frame can carry that; at least until the next frame is there. */
static uint32_t whole_pause(const struct lh_bifrost *bifrost)
{
    uint32_t minimum = quanta_of(bifrost->slot_bytes + bifrost->late_bytes);
    uint32_t maximum = lh_pfc_quanta(2 * bifrost->slot_bytes);
    return minimum > maximum ? minimum : maximum;
}

uint32_t lh_bifrost_on_slot(struct lh_bifrost *bifrost, uint64_t queue_bytes, uint64_t received_bytes)
{
    uint64_t slot = bifrost->slot_bytes;
    uint64_t gone = bifrost->grants != NULL ? granted_arrival(bifrost) : received_bytes;
    uint64_t taken =
        queue_bytes + (bifrost->even ? less(bifrost->incoming_bytes, gone) : bifrost->incoming_bytes);
    uint64_t left = taken < bifrost->buffer_bytes ? bifrost->buffer_bytes - taken : 0;
    uint32_t quanta = quanta_of(left < slot ? slot - left : 0);
    uint64_t paused = (uint64_t)quanta * LH_PFC_QUANTUM_BYTES;
    uint64_t granted = paused < slot ? slot - paused : 0;
    uint64_t incoming = less(bifrost->incoming_bytes + granted, gone);
    bifrost->incoming_bytes = incoming < bifrost->most_bytes ? incoming : bifrost->most_bytes;
    if (bifrost->grants != NULL)
        remember(bifrost, granted);
    bifrost->tells = quanta > 0 || bifrost->stopped;
    bifrost->stopped = granted == 0;
    return bifrost->stopped ? whole_pause(bifrost) : quanta;
}

/* ---- cbfc ------------------------------------------------------------------------------------------ */

/*
 * Credits as InfiniBand has them: the receiver announces up to which block, counted from the
 * beginning, the sender may send.
 *
 * Counters are as wide as the message carries them: 12 bits, or 64. With 12 bits a limit is ahead of the
 * sender by at most half their range, so that it differs from one behind.
 */

#define MASK_12BIT ((uint64_t)2 * LH_CBFC_BLOCKS_12BIT - 1)

static uint64_t mask(bool wide)
{
    return wide ? UINT64_MAX : MASK_12BIT;
}

/* How far a limit may be ahead. */
static uint64_t ahead_max(bool wide)
{
    return wide ? UINT64_MAX / 2 : LH_CBFC_BLOCKS_12BIT;
}

uint64_t lh_cbfc_blocks(uint64_t bytes)
{
    return bytes / LH_CBFC_BLOCK_BYTES + (bytes % LH_CBFC_BLOCK_BYTES != 0);
}

/* ---- upstream ---------------------------------------------------------------------------------------- */

void lh_cbfc_sender_init(struct lh_cbfc_sender *sender, bool wide, uint64_t limit)
{
    *sender = (struct lh_cbfc_sender){.limit_blocks = limit & mask(wide), .wide = wide};
}

bool lh_cbfc_may_send(const struct lh_cbfc_sender *sender, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    uint64_t left = (sender->limit_blocks - sender->sent_blocks) & mask(sender->wide);
    return left <= ahead_max(sender->wide) && blocks <= left;
}

void lh_cbfc_on_sent(struct lh_cbfc_sender *sender, uint64_t bytes)
{
    assert(lh_cbfc_may_send(sender, bytes));
    sender->sent_blocks = (sender->sent_blocks + lh_cbfc_blocks(bytes)) & mask(sender->wide);
}

void lh_cbfc_on_limit(struct lh_cbfc_sender *sender, uint64_t limit)
{
    uint64_t announced = limit & mask(sender->wide);
    uint64_t left = (announced - sender->sent_blocks) & mask(sender->wide);
    uint64_t before = (sender->limit_blocks - sender->sent_blocks) & mask(sender->wide);
    if (left <= ahead_max(sender->wide) && left > before)
        sender->limit_blocks = announced;
}

/* ---- downstream -------------------------------------------------------------------------------------- */

void lh_cbfc_receiver_init(struct lh_cbfc_receiver *receiver, bool wide, uint64_t buffer_bytes,
                           uint64_t tell_bytes)
{
    uint64_t step = lh_cbfc_blocks(tell_bytes);
    *receiver = (struct lh_cbfc_receiver){
        .buffer_blocks = buffer_bytes / LH_CBFC_BLOCK_BYTES,
        .tell_blocks = step > 0 ? step : 1,
        .wide = wide,
    };
}

bool lh_cbfc_on_packet(struct lh_cbfc_receiver *receiver, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    receiver->received_blocks = (receiver->received_blocks + blocks) & mask(receiver->wide);
    if (blocks > receiver->buffer_blocks - receiver->held_blocks)
        return false;
    receiver->held_blocks += blocks;
    return true;
}

/* What may be sent beyond what has come. */
static uint64_t limit_now(const struct lh_cbfc_receiver *receiver)
{
    uint64_t left = receiver->buffer_blocks - receiver->held_blocks;
    uint64_t maximum = ahead_max(receiver->wide);
    return (receiver->received_blocks + (left < maximum ? left : maximum)) & mask(receiver->wide);
}

bool lh_cbfc_is_due(const struct lh_cbfc_receiver *receiver)
{
    uint64_t grown = (limit_now(receiver) - receiver->told_blocks) & mask(receiver->wide);
    return grown <= ahead_max(receiver->wide) && grown >= receiver->tell_blocks;
}

bool lh_cbfc_on_freed(struct lh_cbfc_receiver *receiver, uint64_t bytes)
{
    uint64_t blocks = lh_cbfc_blocks(bytes);
    assert(receiver->held_blocks >= blocks);
    receiver->held_blocks -= blocks;
    return lh_cbfc_is_due(receiver);
}

uint64_t lh_cbfc_limit(struct lh_cbfc_receiver *receiver)
{
    receiver->told_blocks = limit_now(receiver);
    return receiver->told_blocks;
}

void lh_cbfc_on_total(struct lh_cbfc_receiver *receiver, uint64_t sent_blocks)
{
    receiver->received_blocks = sent_blocks & mask(receiver->wide);
}

/* ---- pfc ------------------------------------------------------------------------------------------- */

/*
 * Priority flow control (IEEE 802.1Qbb) of an ingress port: by a threshold of its own, or by a
 * share of what is free (Choudhury and Hahne 1998).
 */

#define ALPHA_MAX 65536.0

int lh_pfc_check(const struct lh_pfc_thresholds *thresholds)
{
    if (thresholds->xon_bytes > thresholds->xoff_bytes)
        return lh_fail(LH_EINVAL,
                       "xon is %" PRIu64 " bytes, above xoff of %" PRIu64
                       ": it would resume before it pauses (lower xon)",
                       thresholds->xon_bytes, thresholds->xoff_bytes);
    if (!(thresholds->alpha >= 0 && thresholds->alpha <= ALPHA_MAX))
        return lh_fail(LH_ERANGE, "alpha %g: out of range (a share of the free buffer, 0 (none) to %g)",
                       thresholds->alpha, ALPHA_MAX);
    return 0;
}

uint64_t lh_pfc_threshold(const struct lh_pfc_thresholds *thresholds, uint64_t free_bytes)
{
    double share = thresholds->alpha * (double)free_bytes;
    if (!(share > (double)thresholds->xoff_bytes))
        return thresholds->xoff_bytes;
    return share < (double)(UINT64_MAX / 2) ? (uint64_t)share : UINT64_MAX / 2;
}

enum lh_flow_signal lh_pfc_update(const struct lh_pfc_thresholds *thresholds, uint64_t held_bytes,
                                  uint64_t free_bytes, uint8_t priority, uint8_t *stopped)
{
    assert(priority < LH_PFC_PRIORITIES && thresholds->xon_bytes <= thresholds->xoff_bytes);
    uint8_t bit = (uint8_t)(1u << priority);
    uint64_t threshold = lh_pfc_threshold(thresholds, free_bytes);
    uint64_t hysteresis = thresholds->xoff_bytes - thresholds->xon_bytes;
    if ((*stopped & bit) == 0) {
        if (held_bytes <= threshold)
            return LH_FLOW_NONE;
        *stopped |= bit;
        return LH_FLOW_PAUSE;
    }
    if (held_bytes > threshold - hysteresis)
        return LH_FLOW_NONE;
    *stopped &= (uint8_t)~bit;
    return LH_FLOW_RESUME;
}

/* ---- refresh --------------------------------------------------------------------------------------- */

/*
 * A signal that still holds is refreshed, so that a lost frame costs at most a period.
 *
 * One timer: due_ns, of the next refresh.
 */

/* Pauses take at most one part in SHARE of the link back. */
#define SHARE 10u

#define PAUSE_BYTES     ((uint64_t)LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES)
#define REFRESH_MTU_MAX 65535u

/* ---- configuration ----------------------------------------------------------------------------------- */

static lh_time span_ns(uint64_t bytes, uint64_t rate_bps)
{
    assert(rate_bps > 0 && bytes <= PAUSE_BYTES);
    return bytes * FLOW_BIT_NS_PER_BYTE / rate_bps;
}

lh_time lh_pfc_refresh_max(uint64_t rate_bps, uint32_t mtu_bytes)
{
    assert(rate_bps > 0 && mtu_bytes <= REFRESH_MTU_MAX);
    return span_ns(PAUSE_BYTES - mtu_bytes - LH_PFC_FRAME_BYTES, rate_bps);
}

lh_time lh_pfc_refresh_min(uint64_t rate_bps)
{
    return span_ns((uint64_t)SHARE * LH_PFC_FRAME_BYTES, rate_bps) + 1;
}

int lh_pfc_refresh_check(lh_time period_ns, uint64_t rate_bps, uint32_t mtu_bytes)
{
    if (rate_bps < FLOW_RATE_MIN || rate_bps > FLOW_RATE_MAX)
        return lh_fail(LH_ERANGE, "a rate of %" PRIu64 " bit/s: %" PRIu64 " to %" PRIu64, rate_bps,
                       FLOW_RATE_MIN, FLOW_RATE_MAX);
    if (mtu_bytes > REFRESH_MTU_MAX)
        return lh_fail(LH_ERANGE, "packets of %u bytes: out of range (at most %u)", mtu_bytes,
                       REFRESH_MTU_MAX);
    if (period_ns > lh_pfc_refresh_max(rate_bps, mtu_bytes))
        return lh_fail(LH_ERANGE,
                       "refresh of a pause every %" PRIu64
                       " ns: too late, with packets of %u bytes at %" PRIu64 " bit/s at most every %" PRIu64
                       " ns (shorten it)",
                       period_ns, mtu_bytes, rate_bps, lh_pfc_refresh_max(rate_bps, mtu_bytes));
    if (period_ns < lh_pfc_refresh_min(rate_bps))
        return lh_fail(LH_ERANGE,
                       "refresh of a pause every %" PRIu64 " ns: takes more than a tenth of %" PRIu64
                       " bit/s: %" PRIu64 " ns or more (lengthen it)",
                       period_ns, rate_bps, lh_pfc_refresh_min(rate_bps));
    return 0;
}

/* ---- the machine ------------------------------------------------------------------------------------- */

void lh_flow_refresh_init(struct lh_flow_refresh *refresh, lh_time period_ns)
{
    assert(period_ns > 0);
    *refresh = (struct lh_flow_refresh){.period_ns = period_ns, .due_ns = LH_TIME_NEVER};
}

void lh_flow_refresh_on_said(struct lh_flow_refresh *refresh, lh_time now)
{
    assert(now < LH_TIME_NEVER - refresh->period_ns);
    refresh->due_ns = now + refresh->period_ns;
}

void lh_flow_refresh_end(struct lh_flow_refresh *refresh)
{
    refresh->due_ns = LH_TIME_NEVER;
}

bool lh_flow_refresh_on_expired(struct lh_flow_refresh *refresh, lh_time now)
{
    if (now < refresh->due_ns)
        return false;
    /* A refresh that was missed is not made up for. */
    lh_time late_ns = (now - refresh->due_ns) % refresh->period_ns;
    lh_flow_refresh_on_said(refresh, now - late_ns);
    assert(refresh->due_ns > now);
    return true;
}

/* ---- swing ----------------------------------------------------------------------------------------- */

/*
 * Our model of SWING's relay: the deep buffer is apart from the switch whose queues decide
 * when to pause.
 *
 * Forwarding makes the upstream repeat, a delay later, what the relay does: the relay then holds at most
 * what the link carries in a round trip. What it holds and what is in flight never grow together.
 */

enum lh_flow_signal lh_swing_on_signal(struct lh_swing *swing, uint8_t priority, bool pause)
{
    assert(priority < LH_PFC_PRIORITIES);
    uint8_t bit = (uint8_t)(1u << priority);
    if (!swing->forward || ((swing->stopped & bit) != 0) == pause)
        return LH_FLOW_NONE;
    swing->stopped ^= bit;
    return pause ? LH_FLOW_PAUSE : LH_FLOW_RESUME;
}

enum lh_flow_signal lh_swing_on_queue(struct lh_swing *swing, uint8_t priority, uint64_t held_bytes)
{
    if (swing->forward)
        return LH_FLOW_NONE;
    return lh_pfc_update(&swing->thresholds, held_bytes, 0, priority, &swing->stopped);
}

/* ---- buffer needs ---------------------------------------------------------------------------------- */

/*
 * How much buffer each way of flow control needs for a link.
 *
 * A signal takes a delay to the upstream, and what it stops or starts another delay back: a BDP of the
 * round trip passes between. Besides, the signal may wait behind a packet on the way back, and a packet
 * that has begun is sent to its end.
 */

static int buffer_needs_check(const struct lh_flow_link *link)
{
    if (link->rate_bps < FLOW_RATE_MIN || link->rate_bps > FLOW_RATE_MAX)
        return lh_fail(LH_ERANGE, "link rate of %" PRIu64 " bit/s: out of range (1e6 to 1e14)",
                       link->rate_bps);
    if (link->delay_ns > FLOW_SPAN_MAX / 2)
        return lh_fail(LH_ERANGE, "link delay of %" PRIu64 " ns: out of range (at most a second, one way)",
                       link->delay_ns);
    if (link->slot_ns == 0 || link->slot_ns > LH_NS_PER_S)
        return lh_fail(LH_ERANGE, "a slot of %" PRIu64 " ns: out of range (1 ns to a second)",
                       link->slot_ns);
    if (link->mtu_bytes == 0 || link->leak_slots == 0)
        return lh_fail(LH_ERANGE, "packets of %u bytes, %u leak slots: out of range (both at least 1)",
                       link->mtu_bytes, link->leak_slots);
    return 0;
}

/* Credits count blocks, of which each packet takes whole ones. */
static void cbfc_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    uint64_t packets = (needs->bdp_bytes + LH_PFC_FRAME_BYTES) / link->mtu_bytes + 4;
    uint64_t blocks = packets * lh_cbfc_blocks(link->mtu_bytes);
    uint64_t bits = (uint64_t)LH_CBFC_BLOCKS_12BIT * LH_CBFC_BLOCK_BYTES * 8;
    needs->cbfc_buffer_bytes = blocks * LH_CBFC_BLOCK_BYTES;
    needs->cbfc_fits_12_bits = blocks <= LH_CBFC_BLOCKS_12BIT;
    needs->cbfc_reach_ns = bits * LH_NS_PER_S / link->rate_bps / 2;
}

/* H, and what slips past pauses: each slot's may let a packet through, which is known when it has come; k
 * more; and a pause is late by what it waits behind. */
static void bifrost_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    uint64_t slot = flow_bytes_in(link->rate_bps, link->slot_ns);
    uint64_t late = (uint64_t)link->mtu_bytes + LH_PFC_FRAME_BYTES;
    uint64_t slots = (needs->bdp_bytes + late) / slot + 4; /* as lh_bifrost_grants(), and two that begin */
    needs->bifrost_h_bytes = needs->bdp_bytes + 2 * slot + LH_PFC_QUANTUM_BYTES;
    needs->bifrost_headroom_bytes = late + (slots + link->leak_slots) * link->mtu_bytes;
    needs->bifrost_buffer_bytes = needs->bifrost_h_bytes + needs->bifrost_headroom_bytes;
    needs->bifrost_pause_share = (double)LH_PFC_FRAME_BYTES / (double)slot;
}

int lh_flow_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    int rc = buffer_needs_check(link);
    if (rc != 0)
        return rc;
    uint64_t bdp = flow_bytes_in(link->rate_bps, 2 * link->delay_ns);
    uint64_t packets = 2 * (uint64_t)link->mtu_bytes;
    *needs = (struct lh_flow_needs){
        .bdp_bytes = bdp,
        .pfc_headroom_bytes = bdp + packets + LH_PFC_FRAME_BYTES,
        .pfc_xoff_bytes = bdp + packets,
        .swing_relay_bytes = bdp + packets + LH_PFC_FRAME_BYTES,
    };
    needs->pfc_buffer_bytes = needs->pfc_headroom_bytes + needs->pfc_xoff_bytes;
    bifrost_needs(link, needs);
    cbfc_needs(link, needs);
    return 0;
}
