/*
 * link_format.c - writes an emulated link as the text that parses to it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/link.h>

#include <assert.h>
#include <stdio.h>

#include <longhaul/units.h>

#include "base/decimal.h"

/* Text that grows and is cut at its size. */
struct text_out {
    char *out;
    size_t size;
    size_t used;
};

static void put_item(struct text_out *text, const char *key, const char *value)
{
    if (text->used >= text->size)
        return;
    const char *comma = text->used == 0 ? "" : ",";
    int length = snprintf(text->out + text->used, text->size - text->used, "%s%s=%s", comma, key, value);
    text->used += (size_t)length;
}

struct scale {
    const char *name;
    uint64_t scale;
};

static const struct scale time_scales[] = {
    {"s", LH_NS_PER_S}, {"ms", LH_NS_PER_MS}, {"us", LH_NS_PER_US}, {"ns", 1}, {NULL, 0}};
static const struct scale rate_scales[] = {{"Tbit", 1000000000000}, {"Gbit", 1000000000}, {"Mbit", 1000000},
                                           {"kbit", 1000},          {"bit", 1},           {NULL, 0}};
static const struct scale size_scales[] = {{"GiB", (uint64_t)1 << 30},
                                           {"MiB", (uint64_t)1 << 20},
                                           {"KiB", (uint64_t)1 << 10},
                                           {"B", 1},
                                           {NULL, 0}};

/* In the largest unit that divides it, so that nothing is lost; nothing for 0. */
static void put_integer(struct text_out *text, const char *key, uint64_t value, const struct scale *scales)
{
    if (value == 0)
        return;
    while (value % scales->scale != 0)
        scales++;
    char number[LH_FORMAT_MAX];
    snprintf(number, sizeof number, "%llu%s", (unsigned long long)(value / scales->scale), scales->name);
    put_item(text, key, number);
}

static void put_double(struct text_out *text, const char *key, double value)
{
    char number[LH_DECIMAL_DOUBLE_MAX];
    if (value > 0)
        put_item(text, key, lh_decimal_format_double(value, number, sizeof number));
}

char *lh_link_format(const struct lh_link_spec *spec, char *out, size_t size)
{
    struct text_out text = {.out = out, .size = size};
    if (lh_link_is_none(spec)) {
        snprintf(out, size, "none");
        return out;
    }
    /* People think in round trips; but twice the longest delay would be refused as a round trip. */
    if (spec->delay_ns <= LH_LINK_TIME_MAX / 2)
        put_integer(&text, "rtt", 2 * spec->delay_ns, time_scales);
    else
        put_integer(&text, "delay", spec->delay_ns, time_scales);
    put_integer(&text, "jitter", spec->jitter_ns, time_scales);
    put_integer(&text, "rate", spec->rate_bps, rate_scales);
    put_integer(&text, "queue", spec->queue_bytes, size_scales);
    if (spec->drop_tail)
        put_item(&text, "drop", "tail");
    put_double(&text, "loss", spec->loss);
    put_double(&text, "burst", spec->burst_packets);
    put_double(&text, "reorder", spec->reorder);
    put_double(&text, "duplicate", spec->duplicate);
    put_double(&text, "corrupt", spec->corrupt);
    if (spec->seed != 1) {
        char number[LH_FORMAT_MAX];
        snprintf(number, sizeof number, "%llu", (unsigned long long)spec->seed);
        put_item(&text, "seed", number);
    }
    return out;
}
