/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/path_line.h"

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* ---- histogram ------------------------------------------------------------------------------------- */

/* Times below PATH_HISTOGRAM_STEPS have a bucket each; above, each power of two has that many. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned octave = 0;
    while (ns >= 2 * PATH_HISTOGRAM_STEPS) {
        ns >>= 1;
        octave++;
    }
    unsigned bucket = octave * PATH_HISTOGRAM_STEPS + (unsigned)ns;
    return bucket < PATH_HISTOGRAM_BUCKETS ? bucket : PATH_HISTOGRAM_BUCKETS - 1;
}

static int64_t bucket_end(unsigned bucket)
{
    if (bucket < 2 * PATH_HISTOGRAM_STEPS)
        return (int64_t)bucket;
    unsigned octave = bucket / PATH_HISTOGRAM_STEPS - 1;
    uint64_t step = bucket % PATH_HISTOGRAM_STEPS + PATH_HISTOGRAM_STEPS;
    return (int64_t)(((step + 1) << octave) - 1);
}

void path_histogram_add(struct path_histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    histogram->bucket[bucket_of((uint64_t)ns)]++;
    histogram->count++;
    histogram->sum_ns += (double)ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

double path_histogram_mean_ns(const struct path_histogram *histogram)
{
    return histogram->count ? histogram->sum_ns / (double)histogram->count : 0;
}

int64_t path_histogram_quantile_ns(const struct path_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; histogram->count && i < PATH_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->bucket[i];
        if ((double)seen >= wanted && seen)
            return bucket_end(i) < histogram->max_ns ? bucket_end(i) : histogram->max_ns;
    }
    return histogram->max_ns;
}

/* ---- line ------------------------------------------------------------------------------------------ */

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

/* In which the bucket fills. */
static int64_t bucket_ns(const struct path_line *line)
{
    const struct path_line_config *config = &line->config;
    return config->rate_bps ? (int64_t)((double)config->bucket_bytes * 8e9 / (double)config->rate_bps) : 0;
}

/* When all before it has been sent, or the bucket was full: it holds no more than that. */
static int64_t start_ns(const struct path_line *line, int64_t now_ns)
{
    int64_t full_ns = now_ns - bucket_ns(line);
    return line->free_ns > full_ns ? line->free_ns : full_ns;
}

/* Puts the packet behind all others; exact to the nanosecond over any number of packets. */
static void take_time(struct path_line *line, int64_t now_ns, uint32_t bytes)
{
    int64_t start = start_ns(line, now_ns);
    if (line->free_ns < start) {
        line->free_ns = start;
        line->carry_bits = 0;
    }
    if (!line->config.rate_bps)
        return;
    uint64_t bits = 8ull * bytes * NS_PER_S + line->carry_bits;
    line->free_ns += (int64_t)(bits / line->config.rate_bps);
    line->carry_bits = bits % line->config.rate_bps;
}

/* One packet always fits, where there is no bucket: a queue shorter than that is none. */
static bool is_full(const struct path_line *line, int64_t now_ns, uint64_t backlog, uint32_t bytes)
{
    const struct path_line_config *config = &line->config;
    if (config->queue_bytes == PATH_NO_LIMIT)
        return false;
    if (config->bucket_bytes == 0)
        return backlog && backlog + bytes > config->queue_bytes;
    double debt = (double)(start_ns(line, now_ns) - now_ns) * 1e-9 * (double)config->rate_bps / 8;
    return debt + bytes > (double)config->queue_bytes;
}

struct path_verdict path_line_arrival(struct path_line *line, int64_t now_ns, uint32_t bytes, bool capable)
{
    const struct path_line_config *config = &line->config;
    struct path_line_counts *counts = &line->counts;
    uint64_t backlog = path_line_backlog(line, now_ns);
    int64_t wait_ns = line->free_ns > now_ns ? line->free_ns - now_ns : 0;
    counts->packets++;
    counts->bytes += bytes;
    if (is_full(line, now_ns, backlog, bytes)) {
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
        .leave_ns = (line->free_ns > now_ns ? line->free_ns : now_ns) + config->delay_ns,
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

/* ---- ring ------------------------------------------------------------------------------------------ */

static size_t stride_of(size_t bytes)
{
    return (sizeof(struct path_packet) + bytes + 15) & ~(size_t)15;
}

static struct path_packet *at(const struct path_ring *ring, size_t offset)
{
    return (struct path_packet *)(void *)(ring->memory + offset);
}

bool path_ring_open(struct path_ring *ring, size_t capacity, size_t packet_max)
{
    /* Two of the largest packets: the unused end before the start is used again, and what parts full
     * from empty. */
    *ring = (struct path_ring){.size = capacity + 2 * stride_of(packet_max) + 16, .packet_max = packet_max};
    /* Pages are taken when packets reach them. */
    void *memory =
        mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ring->memory = memory == MAP_FAILED ? NULL : memory;
    return ring->memory;
}

void path_ring_close(struct path_ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, ring->size);
    ring->memory = NULL;
}

/* Packets lie in [head, tail), or in [head, end) and [0, tail). The mark of an end needs a header's
 * room. */
struct path_packet *path_ring_space(struct path_ring *ring)
{
    size_t need = stride_of(ring->packet_max) + sizeof(struct path_packet);
    if (ring->head == ring->tail)
        ring->head = ring->tail = 0;
    if (ring->tail < ring->head)
        return ring->head - ring->tail > need ? at(ring, ring->tail) : NULL;
    if (ring->size - ring->tail >= need)
        return at(ring, ring->tail);
    if (ring->head <= need)
        return NULL;
    at(ring, ring->tail)->stride = 0;
    ring->tail = 0;
    return at(ring, 0);
}

void path_ring_push(struct path_ring *ring, struct path_packet *packet)
{
    assert(packet == at(ring, ring->tail) && packet->bytes <= ring->packet_max);
    packet->stride = (uint32_t)stride_of(packet->bytes);
    ring->tail += packet->stride;
}

static struct path_packet *packet_at(const struct path_ring *ring, size_t offset)
{
    if (offset == ring->tail)
        return NULL;
    if (offset > ring->tail && at(ring, offset)->stride == 0)
        return ring->tail ? at(ring, 0) : NULL;
    return at(ring, offset);
}

struct path_packet *path_ring_first(const struct path_ring *ring)
{
    return packet_at(ring, ring->head);
}

struct path_packet *path_ring_next(const struct path_ring *ring, const struct path_packet *packet)
{
    return packet_at(ring, (size_t)((const uint8_t *)packet - ring->memory) + packet->stride);
}

void path_ring_pop(struct path_ring *ring)
{
    struct path_packet *first = path_ring_first(ring);
    assert(first);
    ring->head = (size_t)((uint8_t *)first - ring->memory) + first->stride;
}

/* ---- flows ----------------------------------------------------------------------------------------- */

void path_flows_add(struct path_flows *flows, int64_t now_ns, uint8_t flow, uint32_t bytes)
{
    int64_t interval = (now_ns - flows->started_ns) / PATH_INTERVAL_NS;
    if (interval < 0 || interval >= PATH_INTERVALS)
        return;
    flows->bytes[interval][flow] += bytes;
    if ((unsigned)interval >= flows->intervals)
        flows->intervals = (unsigned)interval + 1;
}

/* ---- processors ------------------------------------------------------------------------------------ */

bool path_processors_divide(const cpu_set_t *all, cpu_set_t *path, cpu_set_t *ends)
{
    CPU_ZERO(path);
    CPU_ZERO(ends);
    if (CPU_COUNT(all) < 2)
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, all))
            CPU_SET(cpu, CPU_COUNT(path) == 0 ? path : ends);
    return true;
}

bool path_processors_take(cpu_set_t *ends)
{
    cpu_set_t all, path;
    CPU_ZERO(ends);
    if (sched_getaffinity(0, sizeof all, &all) || !path_processors_divide(&all, &path, ends))
        return false;
    if (sched_setaffinity(0, sizeof path, &path) == 0)
        return true;
    CPU_ZERO(ends);
    return false;
}

void path_processors_give(const cpu_set_t *ends)
{
    if (CPU_COUNT(ends) > 0)
        sched_setaffinity(0, sizeof *ends, ends);
}
