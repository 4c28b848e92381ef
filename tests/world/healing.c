/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/healing.h"

#include "world/checks.h"
#include "world/engines.h"
#include "world/exchange.h"
#include "world/inside.h"
#include "world/remote.h"
#include "world/switches.h"
#include "world/talk.h"

#define HEALED_BPS          10000000000u /* as plan_clean_link() has it */
#define BITS_PER_BYTE       8u
#define TIMES               10u                  /* as long as it should take is too long */
#define UNMEASURED_NS       (100 * LH_NS_PER_MS) /* the first repeat when no round trip is known */
#define REPEAT_BACKOFF_MAX  64u
#define SILENCE_BACKOFF_MAX 8u
#define FIRST_WINDOW        10u /* packets (RFC 6928) */
/* A round trip that a fault made longer may be measured as late as now: smoothed + 4 variances, of which the
 * first is half of it, and one repeat. */
#define LATE_SAMPLE_SPANS 6u

/* Small queues in a switched network drop most of what comes faster than they let out, faults or not: then
 * it is a few packets a round trip that arrive. */
static lh_time switched_ns(const struct world *world, const struct pair *pair)
{
    if (!plan_has(world->plan, FEATURE_switches))
        return 0;
    uint64_t packets = world->bytes_asked / pair->plan->attr[0].mtu_bytes + 1;
    return packets * check_rtt_well(world, pair) + 8 * switches_max_ns(world->plan, world->bytes_asked);
}

/* A timer that has backed off waits about as long again as it has waited. */
static lh_time backed_off_ns(lh_time span_ns, lh_time elapsed_ns)
{
    lh_time max_ns = span_ns * REPEAT_BACKOFF_MAX;
    return span_ns + (elapsed_ns < max_ns ? elapsed_ns : max_ns);
}

static lh_time timer_of_ns(const struct world *world, struct sdr_qp *qp)
{
    struct lh_sdr_path path = {0};
    if (qp)
        lh_sdr_path(qp, &path);
    /* One that was set before a round trip was measured runs on. */
    lh_time own_ns =
        backed_off_ns(path.overdue_ns > UNMEASURED_NS ? path.overdue_ns : UNMEASURED_NS, world->now);
    lh_time silence_ns = qp ? SILENCE_BACKOFF_MAX * inside_qp_silence(qp) : 0;
    return own_ns > silence_ns ? own_ns : silence_ns;
}

/* The longest that may run at an end now. */
static lh_time timer_ns(const struct world *world, const struct end *end)
{
    lh_time own_ns = timer_of_ns(world, end->open ? end->qp : NULL);
    lh_time inner_ns = end->open && end->inner ? timer_of_ns(world, end->inner_qp) : 0;
    return own_ns > inner_ns ? own_ns : inner_ns;
}

static uint64_t rate_of(const struct pair *pair)
{
    uint64_t bps = HEALED_BPS;
    for (uint32_t side = 0; side < 2; side++) {
        uint64_t pace_bps = pair->plan->attr[side].rate_bps;
        bps = pace_bps && pace_bps < bps ? pace_bps : bps;
    }
    return bps;
}

/* An end whose peer is gone times out after its silence, which starts over when a host was not run. */
static bool waits_for_silence(const struct pair *pair)
{
    return !pair->up || pair->ends[0].error || pair->ends[1].error || !pair->trusted;
}

static lh_time pair_bound(const struct world *world, const struct pair *pair)
{
    struct work_left left = pair->plan->raw ? exchange_left(world, pair) : talk_left(world, pair);
    struct work_left remote = remote_left(world, pair);
    lh_time here_ns = timer_ns(world, &pair->ends[0]);
    lh_time there_ns = timer_ns(world, &pair->ends[1]);
    lh_time expected_ns = (left.rounds + remote.rounds) * check_rtt_well(world, pair);
    expected_ns += (left.bytes + remote.bytes) * BITS_PER_BYTE * LH_NS_PER_S / rate_of(pair);
    lh_time bound_ns = TIMES * expected_ns + left.waiting_ns + switched_ns(world, pair);
    bound_ns += 2 * (here_ns > there_ns ? here_ns : there_ns);
    bound_ns += 2 * pair->rtt_max_ns;                /* for what is on the way */
    bound_ns += LATE_SAMPLE_SPANS * pair->delays_ns; /* and for what it then makes of the round trip */
    for (uint32_t side = 0; side < 2; side++)
        bound_ns += engine_late_ns(&pair->ends[side]);
    if (waits_for_silence(pair))
        bound_ns += 2 * pair->plan->peer_timeout_ns;
    return bound_ns;
}

uint64_t healing_window_rounds(const struct world *world, const struct pair *pair, uint32_t from,
                               uint64_t bytes)
{
    if (!plan_congestion(world->plan, pair->plan, from))
        return 0;
    return bytes / (FIRST_WINDOW * pair->plan->attr[from].mtu_bytes);
}

lh_time healing_bound(struct world *world)
{
    lh_time bound_ns = 0;
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        lh_time own_ns = pair_bound(world, &world->pairs[i]);
        world->pairs[i].over_ns = world->now + own_ns;
        bound_ns = own_ns > bound_ns ? own_ns : bound_ns;
    }
    return bound_ns;
}
