/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_paths.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include <longhaul/group.h>

#include "base/bytes.h"
#include "base/error.h"
#include "collective/choose/schedule_choice.h"
#include "collective/choose/site_order.h"
#include "collective/schedule.h"
#include "collective/schedules.h"

/* ---- choosing -------------------------------------------------------------------------------------- */

/* Two sizes for each power of two: 64, 96, 128 … */
#define SIZES 128u
/* Elements of all types. */
#define UNIT_BYTES 8u

void choosing_free(struct choosing *choosing)
{
    free(choosing->chosen);
    choosing->chosen = NULL;
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

static bool is_in_order(const struct site_map *map, uint32_t ranks)
{
    uint32_t rank = 0;
    while (rank < ranks && map->place_of[rank] == rank)
        rank++;
    return rank == ranks;
}

bool choosing_uses_map(const struct group_paths *paths, enum collective collective)
{
    const struct site_map *map = &paths->order->map;
    bool ordered = is_in_order(map, paths->members->size);
    if (collective == COLLECTIVE_BARRIER || (map->sites == 1 && ordered))
        return false;
    return collective != COLLECTIVE_ALLTOALL || ordered; /* it sends parts of adjacent ranks together */
}

/* The first size of the list that is not below it, in bytes. *index: its place there. */
static uint64_t size_of(uint64_t bytes, uint32_t *index)
{
    uint32_t log = 63 - (uint32_t)__builtin_clzll(bytes | 1);
    uint64_t power = UINT64_C(1) << log;
    if (bytes > power && log < 62) {
        bool above = bytes > power + power / 2 || log == 0;
        *index = 2 * log + (above ? 2 : 1);
        return above ? 2 * power : power + power / 2;
    }
    *index = 2 * log;
    return power;
}

/* What was measured of all paths. NULL: nothing was, or *error: no memory. */
static struct flow_pair *pairs_of(const struct group_paths *paths, int *error)
{
    size_t count = (size_t)paths->members->size * paths->members->size;
    struct flow_pair *pairs = paths->pairs ? malloc(count * sizeof *pairs) : NULL;
    *error = paths->pairs && !pairs ? -LH_ENOMEM : 0;
    for (size_t i = 0; pairs && i < count; i++)
        pairs[i] = paths_pair(&paths->pairs[i]);
    return pairs;
}

static int fail_memory(enum collective collective)
{
    return lh_fail(LH_ENOMEM, "%s: no memory to choose a schedule", collective_name(collective));
}

static int ask(const struct group_paths *paths, enum collective collective, uint64_t bytes,
               const struct schedule **schedule)
{
    struct choice choices[CHOOSE_MAX];
    struct path_figures inside = paths->inside;
    bool mapped = choosing_uses_map(paths, collective);
    size_t block_bytes = paths->block_bytes;
    int error;
    if (!mapped) /* all ranks count as in one site */
        paths_worsen(&inside, &paths->across);
    struct flow_network network = paths_network(&inside, &paths->across, (double)block_bytes);
    const struct choose_question question = {
        .collective = collective,
        .ranks = paths->members->size,
        .map = mapped ? &paths->order->map : NULL,
        .bytes = bytes,
        .unit_bytes = UNIT_BYTES,
        .block_bytes_max = block_bytes,
        .block_bytes_min = block_bytes,
        .network = &network,
    };
    struct flow_pair *pairs = pairs_of(paths, &error);
    void *memory = NULL;
    network.pairs = pairs;
    network.processors = paths->processors;
    if (!error)
        error = choose_check(&question);
    if (!error)
        memory = malloc(choose_memory(&question));
    if (error == -LH_ENOMEM || (!error && !memory))
        error = fail_memory(collective);
    if (!error) {
        choose(&question, memory, choices);
        *schedule = choices[0].schedule;
    }
    free(memory);
    free(pairs);
    return error;
}

int choosing_find(struct group_paths *paths, enum collective collective, uint64_t bytes,
                  const struct schedule **schedule)
{
    struct choosing *choosing = &paths->choosing;
    uint32_t index;
    uint64_t size = size_of(bytes, &index);
    *schedule = paths->members->size == 1 ? schedule_find(collective, NULL) : NULL;
    if (*schedule)
        return 0;
    if (!choosing->chosen)
        choosing->chosen = calloc((size_t)COLLECTIVES * SIZES, sizeof *choosing->chosen);
    if (!choosing->chosen)
        return fail_memory(collective);
    const struct schedule **known = &choosing->chosen[(size_t)collective * SIZES + index];
    int error = *known ? 0 : ask(paths, collective, size, known);
    *schedule = *known;
    return error;
}

/* ---- paths ----------------------------------------------------------------------------------------- */

/* Of a path, in a row: round trip, rate from the other rank: 8 bytes each; loss from it, bytes of a packet,
 * loss to it, whether the other is on this machine: 4 each. Of a rank to itself: what it had measured before,
 * as a round trip, and as the last two numbers a hash of the processors it may run on, and how many. */
#define CELL_BYTES   32u
#define LOSS_UNKNOWN UINT32_MAX
#define FNV_BASIS    2166136261u
#define FNV_PRIME    16777619u

/* ---- orders ------------------------------------------------------------------------------------------ */

struct group_order *group_order_create(const uint32_t *site_of, const uint32_t *order, uint32_t ranks)
{
    struct group_order *made = calloc(1, sizeof *made + site_map_numbers(ranks) * sizeof *made->numbers);
    if (!made) {
        lh_fail(LH_ENOMEM, "group: no memory for %u ranks", ranks);
        return NULL;
    }
    made->users = 1;
    site_map_build(&made->map, site_of, order, ranks, made->numbers);
    return made;
}

void group_order_release(struct group_order *order)
{
    if (order && --order->users == 0)
        free(order);
}

static void set_order(struct group_order **at, struct group_order *order)
{
    group_order_release(*at);
    *at = order;
}

static uint32_t site_at(const struct site_map *map, uint32_t rank)
{
    return map->site_of[map->place_of[rank]];
}

static int create_by_sites(struct group_paths *paths, const uint32_t *site_of)
{
    for (uint32_t r = 0; r < paths->members->size; r++)
        paths->named = paths->named || paths->sites[r][0] != 0;
    struct group_order *order = group_order_create(site_of, NULL, paths->members->size);
    if (!order)
        return -LH_ENOMEM;
    order->users = 2;
    set_order(&paths->created.order, order);
    set_order(&paths->order, order);
    return 0;
}

/* A site's number: its first member. */
int paths_create(struct group_paths *paths)
{
    uint32_t site_of[LH_GROUP_RANKS_MAX];
    for (uint32_t r = 0; r < paths->members->size; r++) {
        site_of[r] = 0;
        while (strcmp(paths->sites[site_of[r]], paths->sites[r]) != 0)
            site_of[r]++; /* up to r */
    }
    return create_by_sites(paths, site_of);
}

void paths_free(struct group_paths *paths)
{
    group_order_release(paths->order);
    group_order_release(paths->created.order);
    free(paths->pairs);
    choosing_free(&paths->choosing);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

struct cell {
    struct path_figures figures;
    uint32_t loss_back; /* of a rank to itself, which processors are its own */
    uint32_t near;      /* not 0: on this machine; of a rank to itself, how many those are */
};

size_t paths_row_bytes(const struct group_paths *paths)
{
    return (size_t)paths->members->size * CELL_BYTES;
}

static void put(const struct cell *cell, uint8_t *to)
{
    lh_put_be64(to, cell->figures.rtt_ns);
    lh_put_be64(to + 8, cell->figures.rate_bps);
    lh_put_be32(to + 16, cell->figures.loss);
    lh_put_be32(to + 20, cell->figures.packet_bytes);
    lh_put_be32(to + 24, cell->loss_back);
    lh_put_be32(to + 28, cell->near);
}

static struct cell get(const uint8_t *from)
{
    return (struct cell){.figures = {.rtt_ns = lh_get_be64(from),
                                     .rate_bps = lh_get_be64(from + 8),
                                     .loss = lh_get_be32(from + 16),
                                     .packet_bytes = lh_get_be32(from + 20)},
                         .loss_back = lh_get_be32(from + 24),
                         .near = lh_get_be32(from + 28)};
}

static struct cell cell_of(struct group_paths *paths, uint32_t rank)
{
    struct link *link = member_link(paths->members, rank);
    struct cell cell = {.figures.rtt_ns = link_rtt_ns(link), .near = link->near};
    struct lh_attr negotiated;
    if (lh_connection_attr(link->lanes[LANE_BULK].connection, &negotiated) == 0)
        cell.figures.packet_bytes = negotiated.mtu_bytes;
    return cell;
}

static uint32_t hash_of(const uint8_t *data, size_t bytes)
{
    uint32_t hash = FNV_BASIS;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * FNV_PRIME;
    return hash ? hash : 1;
}

/* A container, a batch system or a launcher may allow fewer than the machine has. */
static struct cell processors_allowed(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return (struct cell){.near = (uint32_t)get_nprocs()};
    return (struct cell){.loss_back = hash_of((const uint8_t *)&set, sizeof set),
                         .near = (uint32_t)CPU_COUNT(&set)};
}

void paths_announce_given(struct group_paths *paths, const struct lh_group_attr *attr, uint8_t *row)
{
    const struct cell own = processors_allowed();
    memset(row, 0, paths_row_bytes(paths));
    put(&own, row + (size_t)paths->members->rank * CELL_BYTES);
    for (uint32_t r = 0; r < paths->members->size; r++) {
        if (r == paths->members->rank)
            continue;
        bool across = strcmp(paths->sites[r], paths->sites[paths->members->rank]) != 0;
        const struct lh_attr *given = across && attr->attr_across ? attr->attr_across : attr->attr;
        struct cell cell = cell_of(paths, r);
        if (given) {
            cell.figures.rate_bps = given->rate_bps ? given->rate_bps : given->link.rate_bps;
            cell.figures.loss = cell.loss_back = (uint32_t)(given->link.loss / PATHS_LOSS_UNIT);
        }
        put(&cell, row + (size_t)r * CELL_BYTES);
    }
}

/* Of packets: a chunk that lacks one is lost. */
static uint32_t packet_loss(uint64_t lost, uint64_t seen, uint32_t packets)
{
    return seen == 0 ? LOSS_UNKNOWN : (uint32_t)((double)lost / (double)seen / packets / PATHS_LOSS_UNIT);
}

/* What came is known best where schemes are chosen by it; what was sent, by its retransmissions. */
static void set_losses(struct link *link, struct cell *cell)
{
    struct lh_connection *connection = link->lanes[LANE_BULK].connection;
    struct lh_scheme_report report;
    struct lh_stats stats;
    struct lh_attr attr;
    cell->figures.loss = cell->loss_back = LOSS_UNKNOWN;
    if (lh_connection_attr(connection, &attr) == 0 && lh_connection_scheme(connection, &report) == 0 &&
        report.automatic)
        cell->figures.loss =
            packet_loss(report.chunks_lost, report.chunks_seen, attr.chunk_bytes / attr.mtu_bytes);
    if (lh_connection_stats(connection, &stats) == 0)
        cell->loss_back = packet_loss(stats.tx_retransmitted_packets, stats.tx_packets, 1);
}

void paths_announce_measured(struct group_paths *paths, const uint64_t *rates_bps, uint8_t *row)
{
    const struct cell own = {.figures.rtt_ns = paths->measured};
    memset(row, 0, paths_row_bytes(paths));
    put(&own, row + (size_t)paths->members->rank * CELL_BYTES);
    for (uint32_t r = 0; r < paths->members->size; r++) {
        if (r == paths->members->rank)
            continue;
        struct cell cell = cell_of(paths, r);
        cell.figures.rate_bps = rates_bps[r];
        set_losses(member_link(paths->members, r), &cell);
        put(&cell, row + (size_t)r * CELL_BYTES);
    }
}

static bool is_near(const struct group_paths *paths, const uint8_t *rows, uint32_t one, uint32_t other)
{
    return one != other && get(rows + ((size_t)one * paths->members->size + other) * CELL_BYTES).near &&
           get(rows + ((size_t)other * paths->members->size + one) * CELL_BYTES).near;
}

static struct cell own_cell(const struct group_paths *paths, const uint8_t *rows, uint32_t rank)
{
    return get(rows + ((size_t)rank * paths->members->size + rank) * CELL_BYTES);
}

/* Of the machine of all, that some may run on; 0: not all ranks are on one. Those that two sets have in
 * common count twice. */
static uint32_t shared_processors(const struct group_paths *paths, const uint8_t *rows)
{
    uint32_t sum = 0;
    for (uint32_t one = 0; one < paths->members->size; one++) {
        const struct cell own = own_cell(paths, rows, one);
        bool measured_by = false;
        for (uint32_t other = 0; other < one; other++) {
            if (!is_near(paths, rows, one, other))
                return 0;
            measured_by |= own_cell(paths, rows, other).loss_back == own.loss_back;
        }
        sum += measured_by ? 0 : own.near;
    }
    return sum;
}

/* Between ranks of a machine what is measured differs by when its scheduler let them run: all have the best
 * of it. A round trip of 0 is unknown. Rates that attributes name are bounds, and stay as they are. */
static void level_near(const struct group_paths *paths, const uint8_t *rows, bool measured,
                       struct path_figures *pairs)
{
    struct path_figures best = {0};
    uint32_t size = paths->members->size;
    for (uint32_t i = 0; i < size * size; i++) {
        uint64_t rtt_ns = pairs[i].rtt_ns;
        if (!is_near(paths, rows, i / size, i % size))
            continue;
        best.rtt_ns = best.rtt_ns == 0 || (rtt_ns > 0 && rtt_ns < best.rtt_ns) ? rtt_ns : best.rtt_ns;
        best.rate_bps = pairs[i].rate_bps > best.rate_bps ? pairs[i].rate_bps : best.rate_bps;
    }
    for (uint32_t i = 0; i < size * size; i++)
        if (is_near(paths, rows, i / size, i % size)) {
            pairs[i].rtt_ns = best.rtt_ns;
            pairs[i].rate_bps = measured ? best.rate_bps : pairs[i].rate_bps;
        }
}

/* near: ranks of a machine have no distance, however busy it is. */
static void read_rows(const struct group_paths *paths, const uint8_t *rows, bool near,
                      struct path_figures *pairs)
{
    uint32_t size = paths->members->size;
    for (uint32_t from = 0; from < size; from++)
        for (uint32_t to = 0; to < size; to++) {
            struct cell cell = get(rows + ((size_t)to * size + from) * CELL_BYTES);
            struct cell back = get(rows + ((size_t)from * size + to) * CELL_BYTES);
            struct path_figures *pair = &pairs[from * size + to];
            *pair = cell.figures;
            if (near && is_near(paths, rows, from, to))
                pair->rtt_ns = 1;
            if (pair->loss == LOSS_UNKNOWN)
                pair->loss = back.loss_back == LOSS_UNKNOWN ? 0 : back.loss_back;
        }
}

/* ---- agreeing ---------------------------------------------------------------------------------------- */

static int find_sites(const struct group_paths *paths, const uint8_t *rows, struct path_figures *pairs,
                      uint32_t *site_of)
{
    const struct site_map *map = &paths->order->map;
    if (paths->named) {
        for (uint32_t r = 0; r < paths->members->size; r++)
            site_of[r] = site_at(map, r);
        return 0;
    }
    uint64_t *joins = calloc(3 * (size_t)paths->members->size, sizeof *joins);
    if (!joins)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", paths->members->size);
    read_rows(paths, rows, true, pairs);
    found_sites(pairs, paths->members->size, site_of, joins);
    free(joins);
    return 0;
}

/* What was not measured is as was given. */
static void fill_rates(const struct group_paths *paths, struct path_figures *pairs)
{
    const struct site_map *map = &paths->created.order->map;
    rounds_fill(map, pairs);
    for (uint32_t from = 0; from < paths->members->size; from++)
        for (uint32_t to = 0; to < paths->members->size; to++) {
            struct path_figures *pair = &pairs[from * paths->members->size + to];
            bool across = site_at(map, from) != site_at(map, to);
            if (pair->rate_bps == 0)
                pair->rate_bps = across ? paths->created.across.rate_bps : paths->created.inside.rate_bps;
        }
}

/* Whether all had measured the same before, and so have one order. */
static bool had_same(const struct group_paths *paths, const uint8_t *rows)
{
    size_t bytes = paths_row_bytes(paths);
    for (uint32_t r = 0; r < paths->members->size; r++)
        if (get(rows + r * (bytes + CELL_BYTES)).figures.rtt_ns != paths->measured)
            return false;
    return true;
}

/* By the present order, where all have that. */
static struct group_order *find_order(const struct group_paths *paths, const uint8_t *rows,
                                      const uint32_t *site_of, const struct path_figures *pairs)
{
    const struct group_order *before = had_same(paths, rows) ? paths->order : paths->created.order;
    uint32_t order[LH_GROUP_RANKS_MAX];
    void *memory = malloc(place_order_memory(paths->members->size));
    struct group_order *present = group_order_create(site_of, before->map.rank_at, paths->members->size);
    struct group_order *found = NULL;
    if (memory && present) {
        place_order(pairs, paths->members->size, &present->map, order, memory);
        found = group_order_create(site_of, order, paths->members->size);
    }
    group_order_release(present);
    free(memory);
    return found;
}

static void set_worst(struct group_paths *paths, const struct path_figures *pairs, uint32_t size)
{
    const struct site_map *map = &paths->order->map;
    paths->inside = paths->across = (struct path_figures){0};
    for (uint32_t from = 0; from < size; from++)
        for (uint32_t to = 0; to < size; to++)
            if (from != to)
                paths_worsen(site_at(map, from) != site_at(map, to) ? &paths->across : &paths->inside,
                             &pairs[from * size + to]);
}

static void set_measured(struct group_paths *paths, struct group_order *order, struct path_figures *pairs,
                         uint32_t measured)
{
    pthread_mutex_lock(paths->lock);
    set_order(&paths->order, order);
    free(paths->pairs);
    paths->pairs = pairs;
    paths->measured = measured;
    set_worst(paths, pairs, paths->members->size);
    choosing_free(&paths->choosing); /* chosen without */
    pthread_mutex_unlock(paths->lock);
}

static int set_created(struct group_paths *paths, const uint32_t *site_of, const struct path_figures *pairs)
{
    pthread_mutex_lock(paths->lock);
    int error = create_by_sites(paths, site_of);
    if (!error)
        set_worst(paths, pairs, paths->members->size);
    paths->created.inside = paths->inside;
    paths->created.across = paths->across;
    choosing_free(&paths->choosing);
    pthread_mutex_unlock(paths->lock);
    return error;
}

int paths_agree(struct group_paths *paths, const uint8_t *rows, bool measured)
{
    uint32_t site_of[LH_GROUP_RANKS_MAX], size = paths->members->size;
    struct path_figures *pairs = calloc((size_t)size * size, sizeof *pairs);
    struct group_order *order = NULL;
    int error = pairs ? find_sites(paths, rows, pairs, site_of)
                      : lh_fail(LH_ENOMEM, "group: no memory for %u ranks", size);
    if (!error) {
        read_rows(paths, rows, false, pairs);
        if (measured) {
            level_near(paths, rows, true, pairs);
            fill_rates(paths, pairs);
        } else {
            paths->processors = shared_processors(paths, rows);
            if (paths->processors > 0)
                level_near(paths, rows, false, pairs);
            error = set_created(paths, site_of, pairs);
        }
    }
    if (!error && measured) {
        order = find_order(paths, rows, site_of, pairs);
        error = order ? 0 : lh_fail(LH_ENOMEM, "group: no memory to order %u ranks", size);
    }
    if (error || !measured)
        free(pairs);
    else
        set_measured(paths, order, pairs, hash_of(rows, size * paths_row_bytes(paths)));
    return error;
}

/* ---- of a part --------------------------------------------------------------------------------------- */

/* Its ranks in the group's order, by its own numbers. */
static void order_part(const struct site_map *map, const uint32_t *ranks, uint32_t count, uint32_t *order)
{
    for (uint32_t r = 0; r < count; r++) {
        uint32_t at = r;
        for (; at > 0 && map->place_of[ranks[order[at - 1]]] > map->place_of[ranks[r]]; at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
}

static int follow(struct group_paths *part, const struct group_paths *of, const uint32_t *ranks)
{
    const struct site_map *map = &of->order->map;
    uint32_t site_of[LH_GROUP_RANKS_MAX], order[LH_GROUP_RANKS_MAX], size = part->members->size;
    order_part(map, ranks, size, order);
    for (uint32_t r = 0; r < size; r++)
        site_of[r] = site_at(map, ranks[r]);
    struct group_order *followed = group_order_create(site_of, order, size);
    part->pairs = calloc((size_t)size * size, sizeof *part->pairs);
    if (!followed || !part->pairs) {
        group_order_release(followed);
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", size);
    }
    for (uint32_t from = 0; from < size; from++)
        for (uint32_t to = 0; to < size; to++)
            part->pairs[from * size + to] = of->pairs[ranks[from] * of->members->size + ranks[to]];
    set_order(&part->order, followed);
    set_worst(part, part->pairs, size);
    part->measured = of->measured;
    return 0;
}

int paths_inherit(struct group_paths *part, const struct group_paths *of, const uint32_t *ranks,
                  bool follows)
{
    uint32_t site_of[LH_GROUP_RANKS_MAX];
    for (uint32_t r = 0; r < part->members->size; r++)
        site_of[r] = site_at(&of->created.order->map, ranks[r]);
    int error = create_by_sites(part, site_of);
    part->processors = of->processors;
    part->inside = part->created.inside = of->created.inside;
    part->across = part->created.across = of->created.across;
    if (!error && follows && of->measured)
        error = follow(part, of, ranks);
    return error;
}
