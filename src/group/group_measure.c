/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/min_max.h"
#include "collective/choose/schedule_choice.h"
#include "message/engine.h"

#define BLOCKS          4u /* of the first burst */
#define BURST_GROWTH    4u
#define BLOCK_BYTES_MAX (256u << 10)
/* A burst tells the rate when it lasts as long: what precedes the first block, and what delays the last, is
 * little beside that. */
#define ENOUGH_TRIPS 8u
#define ENOUGH_NS    (2 * LH_NS_PER_MS)
/* In less several blocks may have arrived before this rank looked. */
#define KNOWN_NS (LH_NS_PER_MS / 2)
#define BITS     8u

/* ---- memory ------------------------------------------------------------------------------------------ */

static size_t block_bytes(const struct lh_group *group)
{
    size_t bytes = group->mesh->block_bytes;
    return bytes < BLOCK_BYTES_MAX ? bytes : BLOCK_BYTES_MAX;
}

static size_t burst_bytes(const struct group_measure *m, uint32_t burst)
{
    size_t bytes = m->burst_bytes;
    while (burst-- > 0)
        bytes *= BURST_GROWTH;
    return bytes;
}

static uint8_t *map_burst(const struct group_measure *m)
{
    void *memory = mmap(NULL, burst_bytes(m, MEASURE_BURSTS - 1), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_burst(const struct group_measure *m, uint8_t *memory)
{
    if (memory)
        munmap(memory, burst_bytes(m, MEASURE_BURSTS - 1));
}

void measure_end(struct group_measure *measure)
{
    lh_collective_free(measure->op);
    free(measure->counts);
    free(measure->rates_bps);
    free(measure->rows);
    unmap_burst(measure, measure->in);
    unmap_burst(measure, measure->out);
    *measure = (struct group_measure){.group = measure->group};
}

/* ---- a pair ------------------------------------------------------------------------------------------ */

/* The bytes that each of the two sends to the other; 0: none. */
static int exchange(struct group_measure *m, size_t bytes, const void *in, void *out)
{
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.reliable = true;
    options.block_bytes = block_bytes(m->group);
    for (uint32_t r = 0; r < m->group->members.size; r++)
        m->counts[r] = r == m->partner ? bytes : 0;
    return lh_alltoallv(m->group, in, m->counts, out, m->counts, LH_U8, &options, &m->op);
}

/* The best of those that lasted for a while; before one has, any. */
static void note_rate(struct group_measure *m, uint64_t bytes, lh_time span_ns)
{
    double rate = (double)bytes * BITS * LH_NS_PER_S / (double)span_ns;
    uint64_t rate_bps = rate < 1 ? 1 : (uint64_t)rate, *best_bps = &m->rates_bps[m->partner];
    bool known = span_ns >= KNOWN_NS;
    if ((known && !m->known) || (known == m->known && rate_bps > *best_bps))
        *best_bps = rate_bps;
    m->known = m->known || known;
}

/* What came of the burst that is done. */
static void take_burst(struct group_measure *m)
{
    struct mesh *mesh = m->group->mesh;
    if (m->partner == LH_NO_RANK || m->enough)
        return;
    pthread_mutex_lock(&mesh->lock);
    struct link *link = member_link(&m->group->members, m->partner);
    const struct link_train *train = &link->train;
    bool known = train->group == m->group->members.id && train->operation == m->op->number;
    m->own = (struct measure_record){.rtt_ns = link_rtt_ns(link)};
    if (known)
        m->own.span_ns = train->last_ns - train->first_ns;
    if (m->own.span_ns > 0)
        note_rate(m, train->bytes, m->own.span_ns);
    pthread_mutex_unlock(&mesh->lock);
}

static void decide(struct group_measure *m)
{
    uint64_t span_ns = m->own.span_ns < m->other.span_ns ? m->own.span_ns : m->other.span_ns;
    uint64_t rtt_ns = lh_max(m->own.rtt_ns, m->other.rtt_ns);
    m->enough = span_ns >= ENOUGH_NS && span_ns / ENOUGH_TRIPS >= rtt_ns;
}

/* ---- rounds ------------------------------------------------------------------------------------------ */

/* Steps of a round: a barrier, so that no pair disturbs another, and nobody waits for more than a round; then
 * for each burst a record and the burst. */
enum { STEP_BARRIER, STEP_RECORD, STEP_BURST };
#define STEPS (1 + 2 * MEASURE_BURSTS)

static uint32_t kind_of(uint32_t step)
{
    return step == 0 ? STEP_BARRIER : step % 2 == 1 ? STEP_RECORD : STEP_BURST;
}

/* By what all ranks know, whatever they have measured. */
static const struct site_map *map_of(const struct group_measure *m)
{
    return &m->group->paths.created.order->map;
}

static int begin_rows(struct group_measure *m)
{
    size_t bytes = paths_row_bytes(&m->group->paths);
    uint8_t *mine = m->rows + m->group->members.size * bytes;
    paths_announce_measured(&m->group->paths, m->rates_bps, mine);
    return gather_begin(m->group, mine, bytes, m->rows, &m->op);
}

static void enter_round(struct group_measure *m)
{
    uint32_t partner = rounds_partner(map_of(m), m->group->members.rank, m->round);
    m->step = 0;
    m->partner = partner == ROUNDS_NONE ? LH_NO_RANK : partner;
    m->enough = m->known = false;
    m->own = m->other = (struct measure_record){0};
}

static int begin_step(struct group_measure *m)
{
    if (m->round == rounds_count(map_of(m)))
        return begin_rows(m);
    switch (kind_of(m->step)) {
    case STEP_BARRIER:
        return lh_barrier(m->group, NULL, &m->op);
    case STEP_RECORD:
        return exchange(m, m->enough ? 0 : sizeof m->own, &m->own, &m->other);
    default:
        return exchange(m, m->enough ? 0 : burst_bytes(m, m->step / 2 - 1), m->out, m->in);
    }
}

int measure_begin(struct lh_group *group, size_t first_bytes, struct group_measure *measure)
{
    uint32_t size = group->members.size;
    *measure = (struct group_measure){.group = group, .burst_bytes = first_bytes};
    measure->counts = calloc(size, sizeof *measure->counts);
    measure->rates_bps = calloc(size, sizeof *measure->rates_bps);
    measure->rows = calloc(size + 1, paths_row_bytes(&group->paths));
    measure->in = map_burst(measure);
    measure->out = map_burst(measure);
    int error = 0;
    if (!measure->counts || !measure->rates_bps || !measure->rows || !measure->in || !measure->out)
        error = lh_fail(LH_ENOMEM, "group: no memory to measure the paths of %u ranks", size);
    if (!error && rounds_count(map_of(measure)) > 0)
        enter_round(measure);
    if (!error)
        error = begin_step(measure);
    if (error)
        measure_end(measure);
    return error;
}

static void leave_step(struct group_measure *m)
{
    if (++m->step < STEPS)
        return;
    if (++m->round < rounds_count(map_of(m)))
        enter_round(m);
}

/* The step's operation is done. */
static void finish_step(struct group_measure *m)
{
    if (kind_of(m->step) == STEP_BURST)
        take_burst(m);
    else if (kind_of(m->step) == STEP_RECORD && m->step > 1)
        decide(m);
    leave_step(m);
}

/* Others may be in operations that this rank has not begun: all that are left are begun and canceled, so that
 * each has its number everywhere. */
static void cancel_others(struct group_measure *m)
{
    bool last = false;
    while (!last) {
        last = m->round == rounds_count(map_of(m));
        m->enough = true;
        if (begin_step(m) != 0)
            return; /* a rank is gone: nothing more comes of this group */
        lh_collective_free(m->op);
        m->op = NULL;
        if (!last)
            leave_step(m);
    }
}

int measure_go_on(struct group_measure *measure, int waited)
{
    bool last = measure->round == rounds_count(map_of(measure));
    if (!last)
        finish_step(measure);
    int error = gather_end(measure->op, waited);
    measure->op = NULL;
    if (!error && last)
        return paths_agree(&measure->group->paths, measure->rows, true);
    if (!error)
        error = begin_step(measure);
    if (error && !last)
        cancel_others(measure);
    return error;
}

int lh_group_measure(struct lh_group *group)
{
    struct group_measure measure;
    if (!group)
        return lh_fail_if_null("lh_group_measure", "group", group);
    if (group->members.size == 1)
        return 0;
    if (group->mesh->engine->workers == LH_NO_WORKERS)
        return lh_fail(LH_ESTATE, "lh_group_measure() without workers");
    int error = measure_begin(group, BLOCKS * block_bytes(group), &measure);
    while (!error && measure.op)
        error = measure_go_on(&measure, lh_collective_wait(measure.op, group->mesh->timeout_ns, NULL));
    measure_end(&measure);
    return error;
}
