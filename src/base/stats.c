/*
 * stats.c - names, meanings and values of the counters by index; all from the one list in stats.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/stats.h>

#include <assert.h>
#include <string.h>

struct counter {
    const char *name;
    const char *meaning;
    size_t offset;
};

static const struct counter counters[] = {
#define STATS_COUNTER(field, meaning) {#field, meaning, offsetof(struct lh_stats, field)},
    LH_STATS(STATS_COUNTER)
#undef STATS_COUNTER
};

#define COUNTERS (sizeof counters / sizeof counters[0])

static_assert(COUNTERS * sizeof(uint64_t) == sizeof(struct lh_stats),
              "every field is a counter of the list");

size_t lh_stats_count(void)
{
    return COUNTERS;
}

const char *lh_stats_name(size_t index)
{
    return index < COUNTERS ? counters[index].name : NULL;
}

const char *lh_stats_meaning(size_t index)
{
    return index < COUNTERS ? counters[index].meaning : NULL;
}

uint64_t lh_stats_value(const struct lh_stats *stats, size_t index)
{
    if (index >= COUNTERS)
        return 0;
    const char *field = (const char *)stats + counters[index].offset;
    /* Another thread may be counting: relaxed, so that a value is never torn. */
    return __atomic_load_n((const uint64_t *)(const void *)field, __ATOMIC_RELAXED);
}

uint64_t lh_stats_bad_packets(const struct lh_stats *stats)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNTERS; i++) {
        if (strncmp(counters[i].name, "bad_", 4) == 0)
            sum += lh_stats_value(stats, i);
    }
    return sum;
}
