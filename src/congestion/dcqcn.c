/*
 * dcqcn.c - see dcqcn.h.
 *
 * Timers, all of which first run at the first notification:
 *   alpha_at     every alpha_ns, for ever. It changes no rate, so it is only caught up with when a cut or a
 *                notification asks for alpha.
 *   decrease_at  every decrease_ns, for ever. Cuts when a notification has come since the last cut; otherwise
 *                nothing happens, so it too is only caught up with.
 *   increase_at  increase_ns after the last cut or increase by time; stops at the line's rate.
 * When several are due at one moment they go in this order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/dcqcn.h"

#include <assert.h>

#include "base/error.h"

/* ---- configuration ----------------------------------------------------------------------------------- */

static int check_span(const char *name, lh_time span_ns)
{
    if (span_ns >= DCQCN_SPAN_MIN_NS && span_ns <= DCQCN_SPAN_MAX_NS)
        return 0;
    return lh_fail(LH_ERANGE, "DCQCN: %s interval of %llu ns: out of range (100ns to 60min)", name,
                   (unsigned long long)span_ns);
}

static int check_rate(const char *name, uint64_t rate_bps)
{
    if (rate_bps >= DCQCN_STEP_MIN_BPS && rate_bps <= DCQCN_RATE_MAX_BPS)
        return 0;
    return lh_fail(LH_ERANGE, "DCQCN: %s of %llu bit/s: out of range (100kbit to 100Tbit)", name,
                   (unsigned long long)rate_bps);
}

int dcqcn_check(const struct dcqcn_config *config)
{
    int rc = check_span("alpha", config->alpha_ns);
    if (rc == 0)
        rc = check_span("decrease", config->decrease_ns);
    if (rc == 0)
        rc = check_span("increase", config->increase_ns);
    if (rc == 0)
        rc = check_rate("additive step", config->additive_bps);
    if (rc == 0)
        rc = check_rate("hyper step", config->hyper_bps);
    if (rc == 0)
        rc = check_rate("least rate", config->least_bps);
    if (rc != 0)
        return rc;
    if (!(config->gain > 0 && config->gain <= 1))
        return lh_fail(LH_ERANGE, "DCQCN: gain out of range (above 0, at most 1; example: 1/256)");
    if (config->increase_bytes != 0 && config->increase_bytes < DCQCN_BYTES_MIN)
        return lh_fail(LH_ERANGE,
                       "DCQCN: byte counter of %llu bytes: out of range (minimum %llu, or 0 for none)",
                       (unsigned long long)config->increase_bytes, (unsigned long long)DCQCN_BYTES_MIN);
    if (config->recovery_stages > DCQCN_STAGES_MAX)
        return lh_fail(LH_ERANGE, "DCQCN: %u recovery stages exceed the maximum of %u",
                       config->recovery_stages, DCQCN_STAGES_MAX);
    return 0;
}

/* ---- alpha ------------------------------------------------------------------------------------------- */

/* By squaring: the number of turns is that of the bits in `times`. */
static double power(double base, uint64_t times)
{
    double product = 1;
    for (; times > 0; times >>= 1, base *= base)
        if ((times & 1) != 0)
            product *= base;
    return product;
}

/* Whole periods from `at` to `now`, both ends counted. */
static uint64_t due_count(lh_time at, lh_time now, lh_time period_ns)
{
    return now < at ? 0 : (now - at) / period_ns + 1;
}

/* Only the first of the updates that are due knows of a notification. */
static void alpha_until(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    uint64_t updates = due_count(dcqcn->alpha_at, now, config->alpha_ns);
    if (updates == 0)
        return;
    dcqcn->alpha *= power(1 - config->gain, updates);
    if (dcqcn->cnp_for_alpha)
        dcqcn->alpha += config->gain * power(1 - config->gain, updates - 1);
    dcqcn->cnp_for_alpha = false;
    dcqcn->alpha_at += updates * config->alpha_ns;
    assert(dcqcn->alpha >= 0 && dcqcn->alpha <= 1 + 1e-9);
}

/* ---- the rate ---------------------------------------------------------------------------------------- */

static void cut(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time at)
{
    alpha_until(dcqcn, config, at);
    bool raised = dcqcn->time_stage > 0 || dcqcn->bytes_stage > 0; /* since the last cut */
    if (config->clamp || raised)
        dcqcn->target_bps = dcqcn->rate_bps;
    uint64_t rate_bps = (uint64_t)((double)dcqcn->rate_bps * (1 - dcqcn->alpha / 2));
    uint64_t least_bps = config->least_bps < dcqcn->line_bps ? config->least_bps : dcqcn->line_bps;
    dcqcn->rate_bps = rate_bps > least_bps ? rate_bps : least_bps;
    assert(dcqcn->target_bps >= dcqcn->rate_bps);
    dcqcn->time_stage = dcqcn->bytes_stage = 0;
    dcqcn->bytes_left = config->increase_bytes;
    dcqcn->increase_at = at + config->increase_ns;
    dcqcn->decrease_at = at + config->decrease_ns;
    dcqcn->cnp_for_decrease = false;
}

/* Half of the way to the target, which first grows when the stages of recovery are over: by the large step
 * when both counters are past them, by the small one when one of them is. */
static void raise(struct dcqcn *dcqcn, const struct dcqcn_config *config)
{
    uint32_t time_stage = dcqcn->time_stage;
    uint32_t bytes_stage = config->increase_bytes != 0 ? dcqcn->bytes_stage : time_stage;
    uint32_t most = time_stage > bytes_stage ? time_stage : bytes_stage;
    uint32_t least = time_stage > bytes_stage ? bytes_stage : time_stage;
    if (least > config->recovery_stages)
        dcqcn->target_bps += config->hyper_bps;
    else if (most >= config->recovery_stages)
        dcqcn->target_bps += config->additive_bps;
    if (dcqcn->target_bps > dcqcn->line_bps)
        dcqcn->target_bps = dcqcn->line_bps;
    dcqcn->rate_bps += (dcqcn->target_bps - dcqcn->rate_bps + 1) / 2;
    assert(dcqcn->rate_bps <= dcqcn->target_bps);
    if (dcqcn->rate_bps == dcqcn->line_bps)
        dcqcn->increase_at = LH_TIME_NEVER;
}

static void count_stage(uint32_t *stage)
{
    if (*stage < UINT32_MAX)
        (*stage)++;
}

static void raise_by_time(struct dcqcn *dcqcn, const struct dcqcn_config *config)
{
    dcqcn->increase_at += config->increase_ns;
    raise(dcqcn, config);
    count_stage(&dcqcn->time_stage);
}

/* ---- events ------------------------------------------------------------------------------------------ */

void dcqcn_init(struct dcqcn *dcqcn, uint64_t line_bps)
{
    assert(line_bps > 0 && line_bps <= DCQCN_RATE_MAX_BPS);
    *dcqcn = (struct dcqcn){.line_bps = line_bps,
                            .rate_bps = line_bps,
                            .target_bps = line_bps,
                            .alpha = 1,
                            .alpha_at = LH_TIME_NEVER,
                            .decrease_at = LH_TIME_NEVER,
                            .increase_at = LH_TIME_NEVER};
}

lh_time dcqcn_next_expiry(const struct dcqcn *dcqcn)
{
    lh_time cut_at = dcqcn->cnp_for_decrease ? dcqcn->decrease_at : LH_TIME_NEVER;
    return cut_at <= dcqcn->increase_at ? cut_at : dcqcn->increase_at;
}

/* A cut leaves none to come, and increases end at the line's rate, which each brings nearer: both bound the
 * turns. */
void dcqcn_on_time(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    for (lh_time at = dcqcn_next_expiry(dcqcn); at <= now; at = dcqcn_next_expiry(dcqcn)) {
        if (at == LH_TIME_NEVER)
            return;
        if (dcqcn->cnp_for_decrease && dcqcn->decrease_at == at)
            cut(dcqcn, config, at);
        else
            raise_by_time(dcqcn, config);
    }
}

void dcqcn_on_cnp(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    if (dcqcn->alpha_at == LH_TIME_NEVER) { /* the first one: alpha begins at 1 */
        dcqcn->alpha_at = now + config->alpha_ns;
        dcqcn->decrease_at = now + config->decrease_ns;
        dcqcn->cnp_for_decrease = true;
        return;
    }
    dcqcn_on_time(dcqcn, config, now);
    alpha_until(dcqcn, config, now);
    dcqcn->decrease_at += due_count(dcqcn->decrease_at, now, config->decrease_ns) * config->decrease_ns;
    dcqcn->cnp_for_alpha = true;
    dcqcn->cnp_for_decrease = true;
}

/* Each turn takes a counter's worth of the bytes. */
void dcqcn_on_bytes(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now, uint64_t bytes)
{
    dcqcn_on_time(dcqcn, config, now);
    if (config->increase_bytes == 0)
        return;
    for (; dcqcn->increase_at != LH_TIME_NEVER && bytes >= dcqcn->bytes_left;
         count_stage(&dcqcn->bytes_stage)) {
        bytes -= dcqcn->bytes_left;
        dcqcn->bytes_left = config->increase_bytes;
        raise(dcqcn, config);
    }
    if (dcqcn->increase_at != LH_TIME_NEVER)
        dcqcn->bytes_left -= bytes;
}
