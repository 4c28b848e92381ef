/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/line.h"

#include <assert.h>

#define NS_PER_S 1000000000u

void path_line_init(struct path_line *line, const struct path_line_config *config)
{
    assert(config->delay_ns >= 0 && config->loss >= 0 && config->loss <= 1);
    *line = (struct path_line){.config = *config, .random = config->seed};
}

/* splitmix64: any seed will do. */
static double draw(struct path_line *line)
{
    uint64_t x = line->random += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53;
}

uint64_t path_line_backlog(const struct path_line *line, int64_t now_ns)
{
    if (line->free_ns <= now_ns)
        return 0;
    return (uint64_t)((double)(line->free_ns - now_ns) * 1e-9 * (double)line->config.rate_bps / 8);
}

/* Puts the packet behind all others; exact to the nanosecond over any number of packets. */
static void take_time(struct path_line *line, int64_t now_ns, uint32_t bytes)
{
    if (line->free_ns < now_ns) {
        line->free_ns = now_ns;
        line->carry_bits = 0;
    }
    if (!line->config.rate_bps)
        return;
    uint64_t bits = 8ull * bytes * NS_PER_S + line->carry_bits;
    line->free_ns += (int64_t)(bits / line->config.rate_bps);
    line->carry_bits = bits % line->config.rate_bps;
}

struct path_verdict path_line_arrival(struct path_line *line, int64_t now_ns, uint32_t bytes, bool capable)
{
    const struct path_line_config *config = &line->config;
    struct path_line_counts *counts = &line->counts;
    uint64_t backlog = path_line_backlog(line, now_ns);
    int64_t wait_ns = line->free_ns > now_ns ? line->free_ns - now_ns : 0;
    counts->packets++;
    counts->bytes += bytes;
    /* One packet always fits: a queue shorter than that is none. */
    if (config->queue_bytes != PATH_NO_LIMIT && backlog && backlog + bytes > config->queue_bytes) {
        counts->queue_dropped_packets++;
        counts->queue_dropped_bytes += bytes;
        return (struct path_verdict){.fate = PATH_QUEUE_FULL};
    }
    if (backlog + bytes > counts->queue_peak_bytes)
        counts->queue_peak_bytes = backlog + bytes;
    take_time(line, now_ns, bytes);
    path_histogram_add(&counts->queueing, wait_ns);
    if (config->loss > 0 && draw(line) < config->loss) {
        counts->lost_packets++;
        counts->lost_bytes += bytes;
        return (struct path_verdict){.fate = PATH_LOST};
    }
    struct path_verdict verdict = {
        .fate = PATH_DELIVERED,
        .marked = capable && config->mark_bytes != PATH_NO_LIMIT && backlog > config->mark_bytes,
        .leave_ns = line->free_ns + config->delay_ns,
    };
    counts->delivered_packets++;
    counts->delivered_bytes += bytes;
    counts->marked_packets += verdict.marked;
    return verdict;
}

struct path_rate_change path_line_set_rate(struct path_line *line, int64_t now_ns, uint64_t rate_bps)
{
    assert(rate_bps && line->config.rate_bps);
    struct path_rate_change change = {
        .now_ns = now_ns,
        .delay_ns = line->config.delay_ns,
        .stretch = (double)line->config.rate_bps / (double)rate_bps,
    };
    line->free_ns = path_line_moved(&change, line->free_ns + change.delay_ns) - change.delay_ns;
    line->carry_bits = 0;
    line->config.rate_bps = rate_bps;
    return change;
}

int64_t path_line_moved(const struct path_rate_change *change, int64_t leave_ns)
{
    int64_t sent_ns = leave_ns - change->delay_ns;
    if (sent_ns <= change->now_ns)
        return leave_ns;
    return change->now_ns + (int64_t)((double)(sent_ns - change->now_ns) * change->stretch) +
           change->delay_ns;
}
