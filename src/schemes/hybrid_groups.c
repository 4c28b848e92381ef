/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/groups.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "schemes/hybrid/params.h"

static_assert(HYBRID_DECODABLE >= EC_ROWS_MAX, "no number of rows");

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

size_t hybrid_groups_bytes(uint32_t chunks_max)
{
    return ((size_t)chunks_max / HYBRID_SIZE_LEAST + 1) * sizeof(struct hybrid_group);
}

void hybrid_groups_init(struct hybrid_groups *groups, const struct ec_layout *layout, void *memory)
{
    *groups = (struct hybrid_groups){.layout = layout, .all = memory, .work_from = layout->groups};
    memset(memory, 0, layout->groups * sizeof(struct hybrid_group));
    if (layout->places == 0) { /* copies need no encoder */
        groups->all[0].asked = HYBRID_COPIES_MAX;
        groups->all[0].ready = HYBRID_COPIES_MAX;
    }
}

uint32_t hybrid_groups_rows_max(const struct hybrid_groups *groups)
{
    return groups->layout->places > 0 ? groups->layout->places : HYBRID_COPIES_MAX;
}

struct hybrid_loss hybrid_groups_loss(const struct hybrid_loss *loss, uint32_t block_groups)
{
    double goes_on = pow(1 - 1 / loss->burst, block_groups);
    return (struct hybrid_loss){loss->chunk, 1 / (1 - goes_on)};
}

/* ---- what the receiver reports ----------------------------------------------------------------------- */

static uint32_t in_flight(const struct hybrid_group *group)
{
    uint32_t known = larger(group->settled, group->arrived);
    return group->sent > known ? group->sent - known : 0;
}

static void settle(struct hybrid_group *group, uint32_t mark)
{
    if (mark >= group->stamp)
        group->settled = group->sent;
    else if (mark >= group->stamp_before)
        group->settled = (uint8_t)larger(group->settled, group->sent_before);
}

static bool rows_possible(const struct hybrid_groups *groups, const struct hybrid_rows *rows)
{
    if (rows->first >= groups->layout->groups || rows->count > groups->layout->groups - rows->first)
        return false;
    for (uint32_t i = 0; i < rows->count; i++) /* at most HYBRID_ROWS_MAX */
        if (rows->rows[i] != HYBRID_DECODABLE && rows->rows[i] > groups->all[rows->first + i].sent)
            return false;
    return true;
}

bool hybrid_groups_on_rows(struct hybrid_groups *groups, const struct hybrid_rows *rows)
{
    if (!rows_possible(groups, rows))
        return false;
    for (uint32_t i = 0; i < rows->count; i++) { /* at most HYBRID_ROWS_MAX */
        struct hybrid_group *group = &groups->all[rows->first + i];
        uint32_t before = in_flight(group);
        if (rows->rows[i] == HYBRID_DECODABLE) {
            group->met = true;
            group->settled = group->sent;
        } else if (rows->rows[i] > group->arrived) {
            groups->rows_arrived += rows->rows[i] - group->arrived;
            group->arrived = rows->rows[i];
        }
        settle(group, rows->mark);
        groups->rows_in_flight -= before - in_flight(group);
    }
    return true;
}

void hybrid_groups_settle_copies(struct hybrid_groups *groups, uint32_t mark)
{
    struct hybrid_group *group = &groups->all[0];
    assert(groups->layout->places == 0);
    uint32_t before = in_flight(group);
    settle(group, mark);
    groups->rows_in_flight -= before - in_flight(group);
}

/* ---- what is needed ---------------------------------------------------------------------------------- */

/* The data of a submessage. */
struct count {
    uint32_t arrived;
    uint32_t in_flight;
    uint32_t lost;
};

static struct count count_data(const struct sr_ledger *ledger, const struct ec_group *of,
                               uint32_t from_stamp)
{
    struct count count = {0};
    for (uint32_t p = 0, chunk = of->first_chunk; p < of->size; p++, chunk += of->stride) {
        uint64_t bit = (uint64_t)1 << (chunk % 64);
        if (ledger->acked_bits[chunk / 64] & bit)
            count.arrived++;
        else if (ledger->lost_bits[chunk / 64] & bit)
            count.lost++;
        else if (ledger->stamps[chunk] < from_stamp)
            count.arrived++;
        else
            count.in_flight++;
    }
    return count;
}

/* Adds so many chunks: rows as far as there are, the rest of it lost chunks. What is certain to be needed
 * does not wait for the encoder, or for other data, where a lost chunk serves as well. */
static void add(struct hybrid_groups *groups, struct hybrid_group *group, uint32_t more, uint32_t certain,
                uint32_t lost, bool waits)
{
    uint32_t ready = waits ? 0 : group->ready - group->sent;
    uint32_t repeats = certain > ready ? smaller(certain - ready, lost) : 0;
    uint32_t rows = smaller(more - repeats, hybrid_groups_rows_max(groups) - group->sent);
    repeats = smaller(more - rows, lost);
    group->want = (uint8_t)(group->sent + rows);
    group->repeats = (uint8_t)smaller(repeats, UINT8_MAX);
}

static void evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t index,
                     const struct hybrid_rule *rule)
{
    struct hybrid_group *group = &groups->all[index];
    struct ec_group of = ec_layout_group(groups->layout, index);
    struct count data = count_data(ledger, &of, rule->from_stamp);
    uint32_t have = data.arrived + group->arrived;
    group->repeats = 0;
    if (group->met || have >= of.size) {
        group->want = group->sent;
        return;
    }
    uint32_t needed = of.size - have;
    uint32_t flying = data.in_flight + in_flight(group);
    uint32_t certain = needed > flying ? needed - flying : 0;
    struct hybrid_loss loss = hybrid_groups_loss(&rule->loss, of.stride);
    uint32_t most = hybrid_groups_rows_max(groups) - group->sent + data.lost;
    bool planned = group->sent > 0 && group->want == group->sent; /* and all of it was injected */
    double bearable = planned ? fmin(0.5, HYBRID_PATIENCE * rule->failure) : rule->failure;
    group->covered |= planned;
    if (certain == 0 && rule->waits)
        return;
    if (certain == 0 && hybrid_failure(&loss, flying, needed) <= bearable) {
        group->want = group->sent;
        group->covered = true;
        return;
    }
    bool fails = certain > 0 && group->covered;
    groups->newly_failed += fails && !group->failed;
    group->failed |= fails;
    uint32_t more = hybrid_strength(&loss, flying, needed, rule->failure, most);
    add(groups, group, more, certain, data.lost, rule->waits);
}

void hybrid_groups_evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t first,
                            uint32_t end, const struct hybrid_rule *rule)
{
    assert(end <= groups->layout->groups);
    for (uint32_t index = first; index < end; index++)
        evaluate(groups, ledger, index, rule);
    groups->work_from = smaller(groups->work_from, first);
}

/* ---- what is injected -------------------------------------------------------------------------------- */

uint32_t hybrid_group_rows_due(const struct hybrid_group *group)
{
    uint32_t end = smaller(group->want, group->ready);
    return end > group->sent ? end - group->sent : 0;
}

/* Something is wanted of it, whether the encoder has it or not. */
static bool wants(const struct hybrid_group *group)
{
    return group->repeats > 0 || group->want > group->sent;
}

uint32_t hybrid_groups_work(struct hybrid_groups *groups, bool rows_may_leave)
{
    uint32_t all = groups->layout->groups;
    while (groups->work_from < all && !wants(&groups->all[groups->work_from]))
        groups->work_from++;
    uint32_t index = groups->work_from;
    while (index < all && groups->all[index].repeats == 0 &&
           !(rows_may_leave && hybrid_group_rows_due(&groups->all[index]) > 0))
        index++;
    return index;
}

uint32_t hybrid_groups_take_row(struct hybrid_groups *groups, uint32_t index, uint32_t stamp)
{
    struct hybrid_group *group = &groups->all[index];
    assert(hybrid_group_rows_due(group) > 0);
    uint32_t before = in_flight(group);
    if (group->sent == 0 || group->stamp != stamp) {
        group->stamp_before = group->stamp;
        group->sent_before = group->sent;
        group->stamp = stamp;
    }
    uint32_t row = group->sent++;
    groups->rows_in_flight += in_flight(group) - before;
    return row;
}

uint32_t hybrid_groups_lost_chunk(const struct hybrid_groups *groups, const struct sr_ledger *ledger,
                                  uint32_t index)
{
    struct ec_group of = ec_layout_group(groups->layout, index);
    for (uint32_t p = 0, chunk = of.first_chunk; p < of.size; p++, chunk += of.stride)
        if (ledger->lost_bits[chunk / 64] >> (chunk % 64) & 1)
            return chunk;
    return UINT32_MAX;
}
