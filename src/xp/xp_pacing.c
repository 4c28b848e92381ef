/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/rate.h"

#include <assert.h>

#define UNIT_NS    ((lh_time)8)
#define BPS_A_KBPS UINT64_C(1000)
#define LINE_MIN   UINT64_C(1000000)
/* On the wire, IP included. */
#define PACKET_BYTES_MAX 4352u
/* What a queue pair may send at once, of its own rate, when it comes late. */
#define BURST_NS (250 * LH_NS_PER_US)

enum {
    QUIET = 1, /* no notification yet: alpha and decrease never */
    FULL = 2,  /* at the line's rate: increase never */
    CNP_FOR_ALPHA = 4,
    CNP_FOR_DECREASE = 8,
};

void xp_rate_config_init(struct xp_rate_config *config, uint64_t line_bps)
{
    assert(line_bps >= LINE_MIN && line_bps / BPS_A_KBPS <= UINT32_MAX);
    *config = (struct xp_rate_config){
        .dcqcn = {.alpha_ns = DCQCN_ALPHA_NS,
                  .decrease_ns = DCQCN_DECREASE_NS,
                  .increase_ns = DCQCN_INCREASE_NS,
                  .additive_bps = DCQCN_ADDITIVE_BPS,
                  .hyper_bps = DCQCN_HYPER_BPS,
                  .least_bps = DCQCN_LEAST_BPS,
                  .recovery_stages = DCQCN_RECOVERY_STAGES,
                  .gain = DCQCN_GAIN},
        .line_bps = line_bps,
    };
}

/* ---- 32 bits of time ---------------------------------------------------------------------------------- */

static uint32_t packed_time(lh_time at)
{
    return (uint32_t)(at / UNIT_NS);
}

/* In units. The one nearest to now; what would lie more than `most` ahead is past. */
static uint64_t unpacked(uint32_t packed, uint64_t now, uint64_t most)
{
    int64_t ahead = (int32_t)(packed - (uint32_t)now);
    if (ahead > 0 && (uint64_t)ahead > most)
        ahead -= INT64_C(1) << 32;
    return ahead < 0 && (uint64_t)-ahead > now ? 0 : now + (uint64_t)ahead;
}

static lh_time unpacked_time(uint32_t packed, lh_time now, lh_time most)
{
    return unpacked(packed, now / UNIT_NS, most / UNIT_NS + 1) * UNIT_NS;
}

static lh_time longest(const struct dcqcn_config *config)
{
    lh_time span = config->alpha_ns > config->decrease_ns ? config->alpha_ns : config->decrease_ns;
    return span > config->increase_ns ? span : config->increase_ns;
}

/* ---- DCQCN -------------------------------------------------------------------------------------------- */

static struct dcqcn unpack(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    lh_time most = longest(&config->dcqcn);
    bool quiet = rate->flags & QUIET, full = rate->flags & FULL;
    return (struct dcqcn){
        .line_bps = config->line_bps,
        .rate_bps = full ? config->line_bps : rate->rate_kbps * BPS_A_KBPS,
        .target_bps = full ? config->line_bps : rate->target_kbps * BPS_A_KBPS,
        .alpha = (double)rate->alpha,
        .alpha_at = quiet ? LH_TIME_NEVER : unpacked_time(rate->alpha_at, now, most),
        .decrease_at = quiet ? LH_TIME_NEVER : unpacked_time(rate->decrease_at, now, most),
        .increase_at = full ? LH_TIME_NEVER : unpacked_time(rate->increase_at, now, most),
        .time_stage = rate->time_stage,
        .cnp_for_alpha = rate->flags & CNP_FOR_ALPHA,
        .cnp_for_decrease = rate->flags & CNP_FOR_DECREASE,
    };
}

static void pack(struct xp_rate *rate, const struct dcqcn *dcqcn)
{
    rate->rate_kbps = (uint32_t)(dcqcn->rate_bps / BPS_A_KBPS);
    rate->target_kbps = (uint32_t)((dcqcn->target_bps + BPS_A_KBPS - 1) / BPS_A_KBPS);
    rate->alpha = (float)dcqcn->alpha;
    rate->alpha_at = packed_time(dcqcn->alpha_at);
    rate->decrease_at = packed_time(dcqcn->decrease_at);
    rate->increase_at = packed_time(dcqcn->increase_at);
    rate->time_stage = dcqcn->time_stage < UINT8_MAX ? (uint8_t)dcqcn->time_stage : UINT8_MAX;
    rate->flags = (uint8_t)((dcqcn->alpha_at == LH_TIME_NEVER ? QUIET : 0) |
                            (dcqcn->increase_at == LH_TIME_NEVER ? FULL : 0) |
                            (dcqcn->cnp_for_alpha ? CNP_FOR_ALPHA : 0) |
                            (dcqcn->cnp_for_decrease ? CNP_FOR_DECREASE : 0));
}

void xp_rate_start(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, config->line_bps);
    *rate = (struct xp_rate){.pace_at = (uint32_t)now};
    pack(rate, &dcqcn);
}

void xp_rate_on_notification(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    struct dcqcn dcqcn = unpack(rate, config, now);
    dcqcn_on_cnp(&dcqcn, &config->dcqcn, now);
    pack(rate, &dcqcn);
}

uint64_t xp_rate_bps(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    if (rate->flags & QUIET)
        return config->line_bps;
    struct dcqcn dcqcn = unpack(rate, config, now);
    dcqcn_on_time(&dcqcn, &config->dcqcn, now);
    return dcqcn.rate_bps;
}

/* ---- pacing ------------------------------------------------------------------------------------------- */

static lh_time duration(uint32_t bytes, uint64_t bps)
{
    return (lh_time)bytes * 8 * LH_NS_PER_S / bps;
}

static lh_time next_departure(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now)
{
    uint64_t least_bps =
        config->dcqcn.least_bps < config->line_bps ? config->dcqcn.least_bps : config->line_bps;
    return unpacked(rate->pace_at, now, duration(PACKET_BYTES_MAX, least_bps));
}

bool xp_rate_may_send(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now,
                      lh_time *next)
{
    *next = next_departure(rate, config, now);
    return *next <= now;
}

void xp_rate_on_sent(struct xp_rate *rate, const struct xp_rate_config *config, uint32_t bytes, lh_time now)
{
    lh_time at = next_departure(rate, config, now);
    if (!(rate->flags & QUIET)) {
        struct dcqcn dcqcn = unpack(rate, config, now);
        dcqcn_on_time(&dcqcn, &config->dcqcn, now);
        pack(rate, &dcqcn);
    }
    uint64_t bps = rate->flags & FULL ? config->line_bps : rate->rate_kbps * BPS_A_KBPS;
    lh_time earliest = now > BURST_NS ? now - BURST_NS : 0;
    rate->pace_at = (uint32_t)((at > earliest ? at : earliest) + duration(bytes, bps));
}
