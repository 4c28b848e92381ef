/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/message_times.h"

#include <assert.h>
#include <math.h>

#include "schemes/ec/model_params.h"

#define DONE (-1e-15) /* log P: nothing is missing to any digit that counts */

static int start_one(struct ec_segment_times *code, const struct lh_model_path *path, uint64_t bytes,
                     const struct lh_model_scheme *scheme, struct model_message *message)
{
    struct lh_model_path segment = *path;
    segment.message_bytes = bytes;
    int failed = model_message_of(&segment, ec_model_rto(scheme), message);
    if (failed)
        return failed;
    ec_model_longhaul(&segment, scheme, message);
    ec_segment_start(code, scheme, message);
    return 0;
}

/* Returns the number of rounds in log_done. */
static unsigned list_rounds(const struct ec_rounds *rounds, double log_done[MODEL_ROUNDS_MAX + 1])
{
    unsigned count = 0;
    log_done[0] = rounds->log_none;
    while (count < MODEL_ROUNDS_MAX && log_done[count] < DONE) {
        count++;
        log_done[count] = ec_rounds_log(rounds, count);
    }
    if (count > 0)
        log_done[count] = 0;
    return count;
}

int ec_message_start(struct ec_message_times *segments, const struct lh_model_path *path,
                     const struct lh_model_scheme *scheme)
{
    uint64_t bytes = model_message_segment(path);
    uint64_t before = bytes > 0 ? (path->message_bytes - 1) / bytes : 0;
    struct ec_segment_times *full = &segments->full;
    struct model_message message;
    int failed = start_one(&segments->last, path, path->message_bytes - before * bytes, scheme, &message);
    if (failed)
        return failed;
    if (before == 0)
        *full = segments->last;
    else if ((failed = start_one(full, path, bytes, scheme, &message)) != 0)
        return failed;
    segments->before = (double)before;
    segments->apart_s =
        message.ideal_s - message.rtt_s + full->missing.submessages * full->missing.rows * full->inject_s;
    segments->rounds = before > 0 ? list_rounds(&full->rounds, segments->log_done) : 0;
    segments->last_rounds = before > 0 ? list_rounds(&segments->last.rounds, segments->log_last) : 0;
    return 0;
}

/* When the last segment begins. */
static double last_s(const struct ec_message_times *segments)
{
    return segments->before * segments->apart_s;
}

/* Segments before the last whose round r would have ended by then. */
static double segments_over(const struct ec_message_times *segments, double seconds, unsigned round)
{
    const struct ec_segment_times *full = &segments->full;
    double first_s = full->asked_s + full->requested * full->inject_s;
    double since = (seconds - first_s - (round - 1) * full->round_s) / segments->apart_s;
    return fmin(segments->before, fmax(0, floor(since) + 1));
}

/* log P(all segments before the last are complete), behind the last one's data. */
static double log_before(const struct ec_message_times *segments, double seconds)
{
    double sum = 0;
    double reached = segments->before; /* that have had r rounds at least */
    for (unsigned r = 0; r < segments->rounds && reached > 0; r++) {
        double next = segments_over(segments, seconds, r + 1);
        sum += (reached - next) * segments->log_done[r];
        reached = next;
    }
    return segments->rounds > 0 ? sum : segments->before * segments->log_done[0];
}

/* log P(the last segment is complete), so long after its begin. */
static double log_of_last(const struct ec_message_times *segments, double seconds)
{
    const struct ec_segment_times *last = &segments->last;
    double first_s = last->asked_s + last->requested * last->inject_s;
    if (seconds < first_s)
        return ec_partial_log(&last->partial, floor((seconds - last->sent_s) / last->inject_s));
    double rounds = fmin(segments->last_rounds, 1 + floor((seconds - first_s) / last->round_s));
    return segments->log_last[(unsigned)rounds];
}

double ec_message_cdf(const struct ec_message_times *segments, double seconds)
{
    if (segments->before <= 0)
        return ec_segment_cdf(&segments->last, seconds);
    double since = seconds - last_s(segments);
    if (since < segments->last.sent_s)
        return 0;
    return exp(log_of_last(segments, since) + log_before(segments, seconds));
}

/* ---- quantile ---------------------------------------------------------------------------------------- */

#define HALVINGS 60
#define CLOSE    1e-12

double ec_message_quantile(const struct ec_message_times *segments, double share)
{
    assert(share >= 0 && share < 1);
    if (segments->before <= 0)
        return ec_segment_quantile(&segments->last, share);
    double low = last_s(segments) + segments->last.sent_s;
    double step = segments->full.round_s;
    double high = last_s(segments) + ec_segment_quantile(&segments->last, share);
    if (ec_message_cdf(segments, low) >= share)
        return low;
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && ec_message_cdf(segments, high) < share; i++) {
        low = high;
        high += step;
    }
    for (int i = 0; i < HALVINGS && high - low > CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(ec_message_cdf(segments, middle) < share ? &low : &high) = middle;
    }
    return high;
}

/* ---- mean -------------------------------------------------------------------------------------------- */

#define STEPS        128
#define MEAN_IGNORED 1e-10 /* chance that a message takes longer */

/* Of 1 - P, the values in the middle of steps. */
static double missing_between(const struct ec_message_times *segments, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += 1 - ec_message_cdf(segments, from + (to - from) * (i + 0.5) / STEPS);
    return sum * (to - from) / STEPS;
}

double ec_message_mean(const struct ec_message_times *segments)
{
    if (segments->before <= 0)
        return ec_segment_mean(&segments->last);
    const struct ec_segment_times *last = &segments->last;
    double sent_s = last_s(segments) + last->sent_s;
    double parity_s = last->missing.submessages * last->missing.rows * last->inject_s;
    double asked_s = last_s(segments) + fmax(last->asked_s + last->requested * last->inject_s,
                                             segments->full.asked_s - segments->apart_s);
    double mean = sent_s + missing_between(segments, sent_s, sent_s + parity_s);
    double from = sent_s + parity_s;
    double to = fmax(from, asked_s);
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && ec_message_cdf(segments, from) < 1 - MEAN_IGNORED; i++) {
        mean += missing_between(segments, from, to);
        from = to;
        to += segments->full.round_s;
    }
    return mean;
}

/* ---- what is sent ------------------------------------------------------------------------------------ */

double ec_message_fallback(const struct ec_message_times *segments)
{
    return -expm1(segments->last.rounds.log_none + segments->before * segments->full.rounds.log_none);
}

double ec_message_parity(const struct ec_message_times *segments)
{
    return segments->last.missing.parity_chunks + segments->before * segments->full.missing.parity_chunks;
}

double ec_message_requested(const struct ec_message_times *segments)
{
    return segments->last.missing.mean + segments->before * segments->full.missing.mean;
}
