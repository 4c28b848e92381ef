/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan_list.h"

#include <assert.h>
#include <math.h>

uint32_t plan_list_chunks(const struct lh_plan_question *question, uint64_t *out)
{
    static const unsigned packets[PLAN_CHUNKS] = {64, 16, 4, 1};
    const struct lh_model_path *link = &question->link;
    if (link->chunk_bytes != 0) {
        out[0] = link->chunk_bytes;
        return 1;
    }
    for (unsigned i = 0; i < PLAN_CHUNKS; i++)
        out[i] = (uint64_t)packets[i] * link->mtu_bytes;
    return PLAN_CHUNKS;
}

/* The entry of the next higher rank that has candidates; NULL: there is none. */
static const struct scheme_entry *next_entry(const struct scheme_entry *const *table,
                                             const struct scheme_entry *last)
{
    const struct scheme_entry *next = NULL;
    for (; *table; table++) {
        bool behind = !last || (*table)->planner_rank > last->planner_rank;
        if ((*table)->candidates && behind && (!next || (*table)->planner_rank < next->planner_rank))
            next = *table;
    }
    return next;
}

uint32_t plan_list_schemes(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                           bool stream, struct lh_model_scheme *out)
{
    bool bursty = question->link.burst_packets > 1;
    struct lh_model_scheme of_one[SCHEME_CANDIDATES_MAX];
    uint32_t count = 0;
    for (int unspread = 0; unspread <= (int)bursty; unspread++)
        for (const struct scheme_entry *e = next_entry(table, NULL); e; e = next_entry(table, e)) {
            uint32_t listed = stream && e->for_ends ? 0 : e->candidates(unspread, of_one);
            assert(listed <= SCHEME_CANDIDATES_MAX && count + listed <= PLAN_SCHEMES_MAX);
            for (uint32_t i = 0; i < listed && count < PLAN_SCHEMES_MAX; i++)
                out[count++] = of_one[i];
        }
    return count;
}

struct lh_model_scheme plan_list_simplest(const struct scheme_entry *const *table)
{
    struct lh_model_scheme schemes[SCHEME_CANDIDATES_MAX];
    uint32_t count = next_entry(table, NULL)->candidates(false, schemes);
    assert(count > 0);
    (void)count;
    return schemes[0];
}

const struct scheme_entry *plan_list_find(const struct scheme_entry *const *table, enum lh_model_kind kind)
{
    while (*table && (*table)->shown.kind != kind)
        table++;
    return *table;
}

bool plan_list_is_cheaper(const struct lh_plan_choice *one, const struct lh_plan_choice *other)
{
    double less = round(other->overhead * PLAN_SHARE_STEPS) - round(one->overhead * PLAN_SHARE_STEPS);
    if (less == 0)
        less = round(other->cores * PLAN_CORE_STEPS) - round(one->cores * PLAN_CORE_STEPS);
    return less != 0 ? less > 0 : one->chunk_bytes > other->chunk_bytes;
}
