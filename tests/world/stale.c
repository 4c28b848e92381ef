/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/stale.h"

#include <string.h>

#include "sdr/message_table.h"
#include "world/inside.h"

#define KEPT_REPORTS 16u /* of each end */
#define ENDS_MAX     (2 * PLAN_PAIRS_MAX)

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void __real_message_table_on_arrivals(struct message_table *table, const struct fabric_arrival *arrivals,
                                      uint32_t count, struct lh_stats *stats);
void __wrap_message_table_on_arrivals(struct message_table *table, const struct fabric_arrival *arrivals,
                                      uint32_t count, struct lh_stats *stats);

static struct world *where;
static struct lh_prng prng;
static struct {
    struct fabric_arrival reports[KEPT_REPORTS];
    uint32_t count; /* ever */
} kept[ENDS_MAX];

void stale_begin(struct world *world)
{
    where = world && plan_has(world->plan, FEATURE_stale) ? world : NULL;
    if (!where)
        return;
    lh_prng_seed(&prng, world->plan->seed ^ 0x57A1E);
    memset(kept, 0, sizeof kept);
}

void stale_forget(const struct end *end)
{
    if (where)
        kept[world_end_number(where, end)].count = 0;
}

static uint32_t number_of(const struct message_table *table)
{
    for (uint32_t i = 0; i < 2 * where->plan->pair_count; i++) {
        const struct end *end = world_end(where, i);
        if (end->open && inside_qp_table(end->qp) == table)
            return i;
    }
    return ENDS_MAX;
}

/* Whether the slot is open for packets of that generation: another use of it, perhaps, but no table can
 * tell. */
static bool fits(const struct message_table *table, const struct fabric_arrival *report)
{
    struct immediate_fields fields = immediate_part(table->shape.split, report->immediate);
    return fields.message < table->shape.slots && table->slots[fields.message].open &&
           table->slots[fields.message].generation == report->generation;
}

/* One of an earlier use, or of a slot that the table does not have. */
static struct fabric_arrival draw_report(const struct message_table *table, uint32_t number)
{
    uint32_t count = kept[number].count < KEPT_REPORTS ? kept[number].count : KEPT_REPORTS;
    struct fabric_arrival report = kept[number].reports[lh_prng_below(&prng, count)];
    struct immediate_fields fields = immediate_part(table->shape.split, report.immediate);
    uint64_t slots = (uint64_t)1 << table->shape.split.message_bits;
    bool beyond = lh_prng_chance(&prng, 0.2);
    uint64_t slot = lh_prng_below(&prng, slots);
    if (beyond && slot >= table->shape.slots)
        fields.message = (uint32_t)slot;
    report.immediate = immediate_join(table->shape.split, fields);
    return report;
}

/* Of the bitmap, as far as the slot has memory for it. */
static uint64_t word_at(const struct message_table *table, const struct message_slot *slot, uint32_t packet)
{
    return packet / table->shape.chunk_packets < slot->chunk_room ? slot->packets[packet / 64] : 0;
}

/* A packet that lies behind the buffer of a slot that is open marks nothing, and is counted as stale. */
static void report_beyond(struct message_table *table, uint32_t number, struct fabric_arrival *report,
                          struct lh_stats *stats)
{
    struct immediate_fields fields = immediate_part(table->shape.split, report->immediate);
    const struct message_slot *slot = &table->slots[fields.message];
    if (report->bytes == 0 || slot->packet_count == table->packets_max)
        return;
    uint64_t beyond = lh_prng_below(&prng, table->packets_max - slot->packet_count);
    fields.packet = slot->packet_count + (uint32_t)beyond;
    report->immediate = immediate_join(table->shape.split, fields);
    uint64_t word = word_at(table, slot, fields.packet);
    const struct lh_stats before = *stats;
    __real_message_table_on_arrivals(table, report, 1, stats);
    if (word_at(table, slot, fields.packet) != word ||
        stats->rx_stale_packets != before.rx_stale_packets + 1)
        world_fail(where, "stale", "end %u takes packet %u of slot %u, which has %u", number, fields.packet,
                   fields.message, slot->packet_count);
    *stats = before; /* nothing has come */
}

static void report_late(struct message_table *table, uint32_t number, struct lh_stats *stats)
{
    struct fabric_arrival report = draw_report(table, number);
    if (fits(table, &report)) {
        report_beyond(table, number, &report, stats);
        return;
    }
    uint64_t before = stats->rx_stale_packets;
    __real_message_table_on_arrivals(table, &report, 1, stats);
    if (world_sings_once(where, CANARY_stale))
        before++;
    if (stats->rx_stale_packets != before + 1)
        world_fail(where, "stale", "end %u got a packet of slot %u that is over, and counts %llu", number,
                   immediate_part(table->shape.split, report.immediate).message,
                   (unsigned long long)(stats->rx_stale_packets - before));
    stats->rx_stale_packets--; /* all others are the fabric's */
}

void __wrap_message_table_on_arrivals(struct message_table *table, const struct fabric_arrival *arrivals,
                                      uint32_t count, struct lh_stats *stats)
{
    __real_message_table_on_arrivals(table, arrivals, count, stats);
    uint32_t number = where ? number_of(table) : ENDS_MAX;
    if (number == ENDS_MAX || count == 0)
        return;
    kept[number].reports[kept[number].count++ % KEPT_REPORTS] = arrivals[lh_prng_below(&prng, count)];
    if (lh_prng_chance(&prng, 0.5))
        report_late(table, number, stats);
}
/* NOLINTEND(bugprone-reserved-identifier) */
