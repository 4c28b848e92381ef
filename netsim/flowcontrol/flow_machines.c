/*
 * bifrost.c - the downstream port of Bifrost (Yu et al., ICNP 2023, algorithm 1).
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
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "netsim/flowcontrol/link_bytes.h"

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
        return lh_fail(LH_EINVAL, "mtu_bytes (%u) and leak_slots (%u): both are at least 1",
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
                       " ns: it would answer too late (shorten it)",
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
                       "the headroom is %" PRIu64 " bytes: %u packets of %u that leak are %" PRIu64
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
                       "a guard, and a slot of %" PRIu64 " ns, with what a frame waits for %" PRIu64
                       " bytes: one frame can pause %u, by its 16 bits (shorten the slot)",
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
    uint32_t least = quanta_of(bifrost->slot_bytes + bifrost->late_bytes);
    uint32_t most = lh_pfc_quanta(2 * bifrost->slot_bytes);
    return least > most ? least : most;
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
