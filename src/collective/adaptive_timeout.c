/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/adaptive_timeout.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/timeout.h>

#include "base/bytes.h"
#include "base/error.h"

/* ---- median ---------------------------------------------------------------------------------------- */

/* Heapsort: no more than n log n steps, whatever a peer sends, and no memory. */

static void swap(double *a, double *b)
{
    double held = *a;
    *a = *b;
    *b = held;
}

/* The greatest of a heap of count values is first, but for the one at `at`, which moves down. */
static void sift(double *values, uint32_t at, uint32_t count)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && values[child + 1] > values[child])
            child++;
        if (values[at] >= values[child])
            return;
        swap(&values[at], &values[child]);
    }
}

static void sort(double *values, uint32_t count)
{
    for (uint32_t at = count / 2; at-- > 0;)
        sift(values, at, count);
    for (uint32_t left = count; left-- > 1;) {
        swap(&values[0], &values[left]);
        sift(values, 0, left);
    }
}

double median_of(double *values, uint32_t count)
{
    sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- normal margin --------------------------------------------------------------------------------- */

#define MARGIN_MAX 6.0 /* one in a billion */

/* E[(X - z)+] = phi(z) - z * Q(z). */
static double lost_at(double z)
{
    return exp(-z * z / 2) / sqrt(2 * M_PI) - z * erfc(z / M_SQRT2) / 2;
}

double normal_margin(double lost)
{
    double low = 0, high = MARGIN_MAX;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (lost_at(middle) > lost)
            low = middle;
        else
            high = middle;
    }
    return high > MARGIN_MAX / (1 << 29) ? high : 0;
}

/* ---- group timeout --------------------------------------------------------------------------------- */

/* The median of a group's measurements, smoothed, and a margin. */

#define GROUP_TIMEOUT_ALL 1000000u /* of lh_timeout_proposal.delivered */

/* Whether a proposal can be one, whoever sent it. */
static inline bool group_timeout_is_valid(const struct lh_timeout_proposal *proposal)
{
    return proposal->round != 0 && proposal->cost != 0 && proposal->delivered <= GROUP_TIMEOUT_ALL;
}

/* OptiNIC paper, section 3.1.2. */
#define GAIN           0.2
#define FIRST_MARGIN   0.25
#define FIRST_SLACK_NS (50 * LH_NS_PER_US)

#define GAIN_CUT_OFF   0.5
#define STALE_ROUNDS   16u
#define CLAMP          8.0
#define SIGMA_OF_MAD   1.4826 /* of a normal distribution */
#define MARGIN_MIN     0.02   /* of the center: timers, and members that hardly differ */
#define CORRECTION_MIN 0.5
#define CORRECTION_MAX 1.4 /* what false reports of loss can reach */
#define CORRECTION     0.1 /* step */
#define FS_PER_NS      1e6

/* Of zeroed memory. votes and scratch have attr->members entries. */
static void group_timeout_start(struct lh_timeout *timeout, const struct lh_timeout_attr *attr,
                                struct vote *votes, double *scratch)
{
    timeout->attr = *attr;
    timeout->correction = 1;
    timeout->votes = votes;
    timeout->scratch = scratch;
}

static lh_time bounded(const struct lh_timeout *timeout, double ns)
{
    if (!(ns > (double)timeout->attr.minimum_ns))
        return timeout->attr.minimum_ns;
    return ns < (double)timeout->attr.maximum_ns ? (lh_time)ns : timeout->attr.maximum_ns;
}

int lh_timeout_warm_up(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t bytes)
{
    if (timeout->warm)
        return lh_fail(LH_ESTATE, "the group's timeout already has a warm-up: operation %u is next",
                       timeout->state.round + 1);
    if (elapsed_ns == 0 || bytes == 0)
        return lh_fail(LH_EINVAL, "warm-up of %llu bytes in %llu ns: out of range (both above 0)",
                       (unsigned long long)bytes, (unsigned long long)elapsed_ns);
    struct lh_timeout_state *state = &timeout->state;
    double measured = fmin((double)elapsed_ns, (double)timeout->attr.maximum_ns);
    state->center = measured / (double)bytes;
    state->cost = ((1 + FIRST_MARGIN) * measured + (double)FIRST_SLACK_NS) / (double)bytes;
    state->deviation = FIRST_MARGIN * state->center / 2;
    timeout->warm = true;
    return 0;
}

/* ---- the median --------------------------------------------------------------------------------------- */

static bool votes_now(const struct lh_timeout *timeout, const struct vote *vote)
{
    return vote->round != 0 && vote->round + STALE_ROUNDS > timeout->state.round;
}

/* Costs of those who vote; the number of them. */
static uint32_t gather(const struct lh_timeout *timeout, double *lost)
{
    double center = timeout->state.center;
    bool clamps = timeout->attr.rule == LH_TIMEOUT_MARGIN;
    uint32_t voters = 0;
    *lost = 0;
    for (uint32_t i = 0; i < timeout->attr.members; i++) {
        const struct vote *vote = &timeout->votes[i];
        if (!votes_now(timeout, vote))
            continue;
        double cost = vote->cost;
        timeout->scratch[voters++] = clamps ? fmin(fmax(cost, center / CLAMP), center * CLAMP) : cost;
        *lost += vote->lost;
    }
    if (voters)
        *lost /= voters;
    return voters;
}

/* Median distance from the center, of what median_of() has sorted. */
static double deviation_of(const struct lh_timeout *timeout, uint32_t voters)
{
    for (uint32_t i = 0; i < voters; i++)
        timeout->scratch[i] = fabs(timeout->scratch[i] - timeout->state.center);
    return SIGMA_OF_MAD * median_of(timeout->scratch, voters);
}

/* ---- the rules ---------------------------------------------------------------------------------------- */

static void follow_paper(struct lh_timeout_state *state)
{
    state->cost = GAIN * state->median + (1 - GAIN) * state->cost;
    state->center = state->cost;
}

/* More is lost than is to be: a wider margin; slowly, for one operation shows little. */
static void correct(struct lh_timeout *timeout)
{
    double target = timeout->attr.loss_target;
    double excess = fmin(fmax(timeout->state.lost / target - 1, -1), 1);
    timeout->correction =
        fmin(fmax(timeout->correction + CORRECTION * excess, CORRECTION_MIN), CORRECTION_MAX);
}

static void follow_margin(struct lh_timeout *timeout, uint32_t voters)
{
    struct lh_timeout_state *state = &timeout->state;
    double gain = state->median > state->cost ? GAIN_CUT_OFF : GAIN;
    double distance = deviation_of(timeout, voters);
    state->deviation += GAIN * (distance - state->deviation);
    state->center += gain * (state->median - state->center);
    correct(timeout);
    double relative = state->deviation / state->center;
    state->margin = timeout->correction * normal_margin(timeout->attr.loss_target / fmax(relative, 1e-9));
    state->cost = state->center + fmax(state->margin * state->deviation, MARGIN_MIN * state->center);
}

static void take_median(struct lh_timeout *timeout)
{
    double lost;
    uint32_t voters = gather(timeout, &lost);
    if (voters == 0)
        return;
    struct lh_timeout_state *state = &timeout->state;
    state->voters = voters;
    state->median = median_of(timeout->scratch, voters);
    state->lost += GAIN * (lost - state->lost);
    if (timeout->attr.rule == LH_TIMEOUT_PAPER)
        follow_paper(state);
    else
        follow_margin(timeout, voters);
}

/* What the others have measured is the warm-up of a member that has received nothing. */
static void adopt(struct lh_timeout *timeout, uint64_t bytes)
{
    struct lh_timeout_state *state = &timeout->state;
    uint32_t voters = 0;
    for (uint32_t i = 0; i < timeout->attr.members; i++)
        if (votes_now(timeout, &timeout->votes[i]))
            timeout->scratch[voters++] = timeout->votes[i].cost;
    if (voters == 0)
        return;
    state->center = median_of(timeout->scratch, voters);
    state->cost = (1 + FIRST_MARGIN) * state->center + (double)FIRST_SLACK_NS / (double)bytes;
    state->deviation = FIRST_MARGIN * state->center / 2;
    timeout->warm = true;
}

void group_timeout_begin(struct lh_timeout *timeout, uint64_t bytes,
                         struct group_timeout_operation *operation)
{
    if (timeout->voted && timeout->warm)
        take_median(timeout);
    else if (timeout->voted)
        adopt(timeout, bytes);
    timeout->voted = false;
    timeout->state.round++;
    *operation = (struct group_timeout_operation){
        .round = timeout->state.round,
        .bytes = bytes,
        .timeout_ns = timeout->warm ? bounded(timeout, timeout->state.cost * (double)bytes) : LH_TIME_NEVER,
    };
}

int lh_timeout_begin(struct lh_timeout *timeout, uint64_t bytes, lh_time *timeout_ns)
{
    if (!timeout->warm)
        return lh_fail(LH_ESTATE, "the group's timeout has no warm-up: call lh_timeout_warm_up() with the "
                                  "duration of a first operation");
    if (bytes == 0)
        return lh_fail(LH_EINVAL, "an operation of 0 bytes has no timeout");
    group_timeout_begin(timeout, bytes, &timeout->operation);
    *timeout_ns = timeout->operation.timeout_ns;
    return 0;
}

/* ---- votes -------------------------------------------------------------------------------------------- */

static void take_vote(struct lh_timeout *timeout, uint32_t member,
                      const struct lh_timeout_proposal *proposal)
{
    timeout->votes[member] =
        (struct vote){.round = proposal->round,
                      .lost = 1 - (float)proposal->delivered / (float)GROUP_TIMEOUT_ALL,
                      .cost = (double)proposal->cost / FS_PER_NS};
    timeout->voted = true;
}

/* What the whole would have taken, per byte. */
static double cost_of(const struct lh_timeout *timeout, const struct group_timeout_operation *operation,
                      lh_time elapsed_ns, uint64_t received)
{
    double elapsed = fmin((double)elapsed_ns, (double)timeout->attr.maximum_ns);
    lh_time timeout_ns =
        operation->timeout_ns < timeout->attr.maximum_ns ? operation->timeout_ns : timeout->attr.maximum_ns;
    return received ? elapsed / (double)received : 2 * (double)timeout_ns / (double)operation->bytes;
}

int group_timeout_end(struct lh_timeout *timeout, const struct group_timeout_operation *operation,
                      lh_time elapsed_ns, uint64_t received, struct lh_timeout_proposal *proposal)
{
    if (elapsed_ns == 0 || received > operation->bytes)
        return lh_fail(LH_EINVAL,
                       "%llu of %llu bytes in %llu ns: out of range (each byte once, time above 0)",
                       (unsigned long long)received, (unsigned long long)operation->bytes,
                       (unsigned long long)elapsed_ns);
    double cost = fmax(cost_of(timeout, operation, elapsed_ns, received) * FS_PER_NS, 1);
    double delivered = (double)received / (double)operation->bytes * GROUP_TIMEOUT_ALL;
    *proposal = (struct lh_timeout_proposal){.round = operation->round,
                                             .cost = cost < 1e19 ? (uint64_t)cost : (uint64_t)1e19,
                                             .delivered = (uint32_t)delivered};
    take_vote(timeout, timeout->attr.member, proposal);
    return 0;
}

int lh_timeout_end(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t received,
                   struct lh_timeout_proposal *proposal)
{
    if (timeout->operation.bytes == 0)
        return lh_fail(LH_ESTATE, "no operation has begun: call lh_timeout_begin() first");
    int error = group_timeout_end(timeout, &timeout->operation, elapsed_ns, received, proposal);
    if (!error)
        timeout->operation.bytes = 0;
    return error;
}

int lh_timeout_propose(struct lh_timeout *timeout, uint32_t member,
                       const struct lh_timeout_proposal *proposal)
{
    const struct lh_timeout_attr *attr = &timeout->attr;
    if (member < attr->members && member != attr->member && group_timeout_is_valid(proposal) &&
        proposal->round > timeout->votes[member].round &&
        proposal->round - 1 < timeout->state.round + LH_TIMEOUT_AHEAD) {
        take_vote(timeout, member, proposal);
        return 0;
    }
    timeout->state.refused++;
    return lh_fail(LH_EINVAL,
                   "a proposal of member %u for operation %u (%llu fs per byte, %u of a million bytes), in "
                   "operation %u of a group of %u",
                   member, proposal->round, (unsigned long long)proposal->cost, proposal->delivered,
                   timeout->state.round, attr->members);
}

void lh_timeout_state(const struct lh_timeout *timeout, struct lh_timeout_state *state)
{
    *state = timeout->state;
}

/* ---- timeout create -------------------------------------------------------------------------------- */

/* The memory of a group's timeout, and its attributes. */

#define LOSS_TARGET_DEFAULT 0.005
#define LOSS_TARGET_MAX     0.25
#define MINIMUM_DEFAULT_NS  (10 * LH_NS_PER_US)
#define MAXIMUM_DEFAULT_NS  (30 * LH_NS_PER_S)

void lh_timeout_attr_init(struct lh_timeout_attr *attr)
{
    *attr = (struct lh_timeout_attr){.struct_bytes = sizeof *attr,
                                     .loss_target = LOSS_TARGET_DEFAULT,
                                     .minimum_ns = MINIMUM_DEFAULT_NS,
                                     .maximum_ns = MAXIMUM_DEFAULT_NS};
}

static int check(const struct lh_timeout_attr *attr)
{
    if (attr->struct_bytes != sizeof *attr)
        return lh_fail(LH_EINVAL,
                       "struct_bytes %zu: call lh_timeout_attr_init() first (%zu in this library)",
                       attr->struct_bytes, sizeof *attr);
    if (attr->rule != LH_TIMEOUT_MARGIN && attr->rule != LH_TIMEOUT_PAPER)
        return lh_fail(LH_EINVAL, "rule %d: invalid (use LH_TIMEOUT_MARGIN or LH_TIMEOUT_PAPER)",
                       (int)attr->rule);
    if (attr->members == 0 || attr->members > LH_TIMEOUT_MEMBERS_MAX)
        return lh_fail(LH_EINVAL, "a group of %u members (use 1 to %d)", attr->members,
                       LH_TIMEOUT_MEMBERS_MAX);
    if (attr->member >= attr->members)
        return lh_fail(LH_EINVAL, "member %u of a group of %u (use 0 to %u)", attr->member, attr->members,
                       attr->members - 1);
    if (!(attr->loss_target > 0 && attr->loss_target <= LOSS_TARGET_MAX))
        return lh_fail(LH_EINVAL, "loss target %g (use a share above 0 and up to %g)", attr->loss_target,
                       LOSS_TARGET_MAX);
    if (attr->minimum_ns == 0 || attr->minimum_ns > attr->maximum_ns || attr->maximum_ns == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL, "timeouts of %llu to %llu ns (use bounds above 0, the greater one last)",
                       (unsigned long long)attr->minimum_ns, (unsigned long long)attr->maximum_ns);
    return 0;
}

int lh_timeout_create(const struct lh_timeout_attr *attr, struct lh_timeout **timeout)
{
    int failed = check(attr);
    if (failed)
        return failed;
    struct lh_timeout *created = calloc(1, sizeof *created);
    struct vote *votes = calloc(attr->members, sizeof *votes);
    double *scratch = calloc(attr->members, sizeof *scratch);
    if (!created || !votes || !scratch) {
        free(created);
        free(votes);
        free(scratch);
        return lh_fail(LH_ENOMEM, "no memory for the timeout of a group of %u", attr->members);
    }
    group_timeout_start(created, attr, votes, scratch);
    *timeout = created;
    return 0;
}

void lh_timeout_destroy(struct lh_timeout *timeout)
{
    if (!timeout)
        return;
    free(timeout->votes);
    free(timeout->scratch);
    free(timeout);
}

/* ---- timeout phases -------------------------------------------------------------------------------- */

/* A timeout shared out among phases. */

__extension__ typedef unsigned __int128 wide;

lh_time lh_timeout_phase_end(lh_time timeout_ns, const uint64_t *bytes, uint32_t phases, uint32_t phase)
{
    wide total = 0, until = 0;
    for (uint32_t i = 0; i < phases; i++) {
        total += bytes[i];
        if (i <= phase)
            until += bytes[i];
    }
    if (total == 0) {
        total = phases;
        until = phase < phases ? phase + 1 : phases;
    }
    /* 64 bits each at most, so that their product fits. */
    while (total >> 64) {
        total >>= 1;
        until >>= 1;
    }
    return (lh_time)(timeout_ns * until / total);
}

/* ---- timeout proposal ------------------------------------------------------------------------------ */

/*
 * A proposal on the wire, big endian: version 8, zero 24, round 32, cost 64, delivered
 * 32 bits.
 */

#define VERSION 1

void lh_timeout_proposal_encode(const struct lh_timeout_proposal *proposal,
                                uint8_t out[LH_TIMEOUT_PROPOSAL_BYTES])
{
    out[0] = VERSION;
    lh_put_be24(out + 1, 0);
    lh_put_be32(out + 4, proposal->round);
    lh_put_be64(out + 8, proposal->cost);
    lh_put_be32(out + 16, proposal->delivered);
}

int lh_timeout_proposal_decode(const uint8_t *in, size_t bytes, struct lh_timeout_proposal *proposal)
{
    if (bytes != LH_TIMEOUT_PROPOSAL_BYTES)
        return lh_fail(LH_EINVAL, "a timeout proposal of %zu bytes (it has %d)", bytes,
                       LH_TIMEOUT_PROPOSAL_BYTES);
    struct lh_timeout_proposal got = {
        .round = lh_get_be32(in + 4), .cost = lh_get_be64(in + 8), .delivered = lh_get_be32(in + 16)};
    if (in[0] != VERSION || lh_get_be24(in + 1) != 0)
        return lh_fail(LH_EINVAL, "a timeout proposal of version %u (this library knows %d)", in[0],
                       VERSION);
    if (!group_timeout_is_valid(&got))
        return lh_fail(LH_EINVAL,
                       "a timeout proposal for operation %u, %llu fs per byte, %u of a million bytes",
                       got.round, (unsigned long long)got.cost, got.delivered);
    *proposal = got;
    return 0;
}
