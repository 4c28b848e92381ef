/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/segments.h"

#include <assert.h>
#include <math.h>

#define DONE (-1e-15) /* log P: nothing is missing to any digit that counts */

static int start_one(struct model_running_code *code, const struct lh_model_path *path, uint64_t bytes,
                     const struct lh_model_scheme *scheme, struct model_terms *terms)
{
    struct lh_model_path segment = *path;
    segment.message_bytes = bytes;
    int failed = model_terms_of(&segment, scheme, terms);
    if (!failed)
        model_running_code_start(code, scheme, terms);
    return failed;
}

/* Bytes of a segment: whole chunks. */
static uint64_t segment_of(const struct lh_model_path *path)
{
    if (path->segment_bytes == 0 || path->chunk_bytes == 0 || path->segment_bytes >= path->message_bytes)
        return path->message_bytes;
    uint64_t whole = path->segment_bytes - path->segment_bytes % path->chunk_bytes;
    return whole > 0 ? whole : path->chunk_bytes;
}

/* Returns the number of rounds in log_done. */
static unsigned list_rounds(const struct model_rounds *rounds, double log_done[MODEL_ROUNDS_MAX + 1])
{
    unsigned count = 0;
    log_done[0] = rounds->log_none;
    while (count < MODEL_ROUNDS_MAX && log_done[count] < DONE) {
        count++;
        log_done[count] = model_rounds_log(rounds, count);
    }
    if (count > 0)
        log_done[count] = 0;
    return count;
}

int model_segments_start(struct model_segments *segments, const struct lh_model_path *path,
                         const struct lh_model_scheme *scheme)
{
    uint64_t bytes = segment_of(path);
    uint64_t before = bytes > 0 ? (path->message_bytes - 1) / bytes : 0;
    struct model_running_code *full = &segments->full;
    struct model_terms terms;
    int failed = start_one(&segments->last, path, path->message_bytes - before * bytes, scheme, &terms);
    if (failed)
        return failed;
    if (before == 0)
        *full = segments->last;
    else if ((failed = start_one(full, path, bytes, scheme, &terms)) != 0)
        return failed;
    segments->before = (double)before;
    segments->apart_s =
        terms.ideal_s - terms.rtt_s + full->lacks.submessages * full->lacks.rows * full->inject_s;
    segments->rounds = before > 0 ? list_rounds(&full->rounds, segments->log_done) : 0;
    segments->last_rounds = before > 0 ? list_rounds(&segments->last.rounds, segments->log_last) : 0;
    return 0;
}

/* When the last segment begins. */
static double last_s(const struct model_segments *segments)
{
    return segments->before * segments->apart_s;
}

/* Segments before the last whose round r would have ended by then. */
static double segments_over(const struct model_segments *segments, double seconds, unsigned round)
{
    const struct model_running_code *full = &segments->full;
    double first_s = full->asked_s + full->lacking * full->inject_s;
    double since = (seconds - first_s - (round - 1) * full->round_s) / segments->apart_s;
    return fmin(segments->before, fmax(0, floor(since) + 1));
}

/* log P(all segments before the last are complete), behind the last one's data. */
static double log_before(const struct model_segments *segments, double seconds)
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
static double log_of_last(const struct model_segments *segments, double seconds)
{
    const struct model_running_code *last = &segments->last;
    double first_s = last->asked_s + last->lacking * last->inject_s;
    if (seconds < first_s)
        return model_early_log(&last->early, floor((seconds - last->sent_s) / last->inject_s));
    double rounds = fmin(segments->last_rounds, 1 + floor((seconds - first_s) / last->round_s));
    return segments->log_last[(unsigned)rounds];
}

double model_segments_cdf(const struct model_segments *segments, double seconds)
{
    if (segments->before <= 0)
        return model_running_code_cdf(&segments->last, seconds);
    double since = seconds - last_s(segments);
    if (since < segments->last.sent_s)
        return 0;
    return exp(log_of_last(segments, since) + log_before(segments, seconds));
}

/* ---- quantile ---------------------------------------------------------------------------------------- */

#define HALVINGS 60
#define CLOSE    1e-12

double model_segments_quantile(const struct model_segments *segments, double share)
{
    assert(share >= 0 && share < 1);
    if (segments->before <= 0)
        return model_running_code_quantile(&segments->last, share);
    double low = last_s(segments) + segments->last.sent_s;
    double step = segments->full.round_s;
    double high = last_s(segments) + model_running_code_quantile(&segments->last, share);
    if (model_segments_cdf(segments, low) >= share)
        return low;
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && model_segments_cdf(segments, high) < share; i++) {
        low = high;
        high += step;
    }
    for (int i = 0; i < HALVINGS && high - low > CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(model_segments_cdf(segments, middle) < share ? &low : &high) = middle;
    }
    return high;
}

/* ---- mean -------------------------------------------------------------------------------------------- */

#define STEPS        128
#define MEAN_IGNORED 1e-10 /* chance that a message takes longer */

/* Of 1 - P, the values in the middle of steps. */
static double missing_between(const struct model_segments *segments, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += 1 - model_segments_cdf(segments, from + (to - from) * (i + 0.5) / STEPS);
    return sum * (to - from) / STEPS;
}

double model_segments_mean(const struct model_segments *segments)
{
    if (segments->before <= 0)
        return model_running_code_mean(&segments->last);
    const struct model_running_code *last = &segments->last;
    double sent_s = last_s(segments) + last->sent_s;
    double parity_s = last->lacks.submessages * last->lacks.rows * last->inject_s;
    double asked_s = last_s(segments) + fmax(last->asked_s + last->lacking * last->inject_s,
                                             segments->full.asked_s - segments->apart_s);
    double mean = sent_s + missing_between(segments, sent_s, sent_s + parity_s);
    double from = sent_s + parity_s;
    double to = fmax(from, asked_s);
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && model_segments_cdf(segments, from) < 1 - MEAN_IGNORED;
         i++) {
        mean += missing_between(segments, from, to);
        from = to;
        to += segments->full.round_s;
    }
    return mean;
}

/* ---- what is sent ------------------------------------------------------------------------------------ */

double model_segments_fallback(const struct model_segments *segments)
{
    return -expm1(segments->last.rounds.log_none + segments->before * segments->full.rounds.log_none);
}

double model_segments_parity(const struct model_segments *segments)
{
    return segments->last.lacks.parity_chunks + segments->before * segments->full.lacks.parity_chunks;
}

double model_segments_lacking(const struct model_segments *segments)
{
    return segments->last.lacks.mean + segments->before * segments->full.lacks.mean;
}
