/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/path_estimate.h"

#include <assert.h>
#include <math.h>

/* Before so many chunks were seen, none lost means little. */
#define SEEN_LEAST 1000.0
/* Runs by which the newest chunks must differ from what was expected, in standard deviations, and besides.
 * */
#define SURPRISE_DEVIATIONS 4.0
#define SURPRISE_RUNS       4.0
#define LOSS_MOST           0.5
/* Busy time after which what is known of the rate counts half. */
#define RATE_MEMORY_NS (2.0 * (double)LH_NS_PER_S)

void path_estimate_init(struct path_estimate *estimate)
{
    *estimate = (struct path_estimate){.last_at = LH_TIME_NEVER};
}

static struct path_counts sum(const struct path_counts *a, const struct path_counts *b)
{
    return (struct path_counts){a->seen + b->seen, a->lost + b->lost, a->runs + b->runs};
}

/* Whether the newest chunks can hardly be of the path that the older ones are of. */
static bool is_surprise(const struct path_counts *known, const struct path_counts *recent)
{
    double expected = known->runs * recent->seen / known->seen;
    double distance = fabs(recent->runs - expected);
    return distance > SURPRISE_DEVIATIONS * sqrt(expected) + SURPRISE_RUNS;
}

void path_estimate_on_chunks(struct path_estimate *estimate, uint32_t seen, uint32_t lost, uint32_t runs)
{
    assert(lost <= seen && runs <= lost);
    struct path_counts *known = &estimate->known, *recent = &estimate->recent;
    estimate->chunks_seen += seen;
    estimate->chunks_lost += lost;
    *recent = sum(recent, &(struct path_counts){seen, lost, runs});
    if (recent->seen < PATH_ESTIMATE_RECENT)
        return;
    if (known->seen > 0 && is_surprise(known, recent))
        *known = (struct path_counts){0};
    *known = sum(known, recent);
    *recent = (struct path_counts){0};
    if (known->seen >= PATH_ESTIMATE_MEMORY)
        *known = (struct path_counts){known->seen / 2, known->lost / 2, known->runs / 2};
}

void path_estimate_on_arrivals(struct path_estimate *estimate, lh_time now, uint32_t chunks, uint64_t bytes,
                               lh_time pause_ns)
{
    assert(estimate->last_at == LH_TIME_NEVER || now >= estimate->last_at);
    bool paused = estimate->last_at == LH_TIME_NEVER || now - estimate->last_at > pause_ns;
    estimate->last_at = now;
    if (paused) { /* when its chunks came is not known, only that they have */
        estimate->period_at = now;
        estimate->period_bytes = 0;
        estimate->period_chunks = 0;
        return;
    }
    estimate->period_bytes += bytes;
    estimate->period_chunks += chunks;
    if (estimate->period_chunks < PATH_ESTIMATE_PERIOD || now == estimate->period_at)
        return;
    estimate->rate_bytes += (double)estimate->period_bytes;
    estimate->rate_ns += (double)(now - estimate->period_at);
    estimate->period_at = now;
    estimate->period_bytes = 0;
    estimate->period_chunks = 0;
    if (estimate->rate_ns >= RATE_MEMORY_NS) {
        estimate->rate_bytes /= 2;
        estimate->rate_ns /= 2;
    }
}

double path_estimate_loss(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    return all.seen > 0 ? all.lost / all.seen : 0;
}

double path_estimate_loss_upper(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    double runs = all.runs + 0.5 + sqrt(all.runs + 0.25);
    double upper = path_estimate_run_chunks(estimate) * runs / fmax(all.seen, SEEN_LEAST);
    return fmin(upper, LOSS_MOST);
}

double path_estimate_run_chunks(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    return all.runs > 0 ? all.lost / all.runs : 1;
}

/* Lengths are geometric: their variance is mean (mean - 1). */
double path_estimate_run_upper(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    double mean = path_estimate_run_chunks(estimate);
    return all.runs > 0 ? mean + sqrt(mean * (mean - 1) / all.runs) : mean;
}

double path_estimate_burst_packets(const struct path_estimate *estimate, uint32_t chunk_packets)
{
    assert(chunk_packets > 0);
    return 1 + (path_estimate_run_chunks(estimate) - 1) * chunk_packets;
}

double path_estimate_rate_bps(const struct path_estimate *estimate)
{
    return estimate->rate_ns > 0 ? estimate->rate_bytes * 8 * (double)LH_NS_PER_S / estimate->rate_ns : 0;
}
