/*
 * link_spec.c - reads the text of an emulated link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/link.h>

#include <string.h>

#include <longhaul/units.h>

#include "base/decimal.h"
#include "base/error.h"

/* Longer values are not valid numbers. */
#define VALUE_BYTES_MAX 64

/* The spec in the making, with which keys were there. */
struct link_text {
    struct lh_link_spec spec;
    bool seen_rtt;
    bool seen_delay;
};

#define FIBRE_NS_PER_KM 5000u /* light in fibre: 200,000 km a second */

static int parse_time(const char *value, lh_time *ns)
{
    lh_time parsed = 0;
    int rc = lh_parse_time(value, &parsed);
    if (rc != 0)
        return rc;
    if (parsed > LH_LINK_TIME_MAX)
        return lh_fail(LH_ERANGE, "%s: out of range (at most 1h)", value);
    *ns = parsed;
    return 0;
}

static int set_rtt(struct link_text *link, const char *value)
{
    lh_time rtt = 0;
    int rc = parse_time(value, &rtt);
    link->spec.delay_ns = rtt / 2;
    link->seen_rtt = true;
    return rc;
}

/* One way, as a distance too. */
static int set_delay(struct link_text *link, const char *value)
{
    struct lh_decimal km = {0};
    const char *at = value;
    uint64_t ns = 0;
    link->seen_delay = true;
    if (lh_decimal_read(&at, &km) != 0 || strcmp(at, "km") != 0)
        return parse_time(value, &link->spec.delay_ns);
    if (lh_decimal_scale(&km, FIBRE_NS_PER_KM, &ns) != 0 || ns > LH_LINK_TIME_MAX)
        return lh_fail(LH_ERANGE, "%s: out of range (at most 1h of light in fibre, 720000000km)", value);
    link->spec.delay_ns = ns;
    return 0;
}

static int set_jitter(struct link_text *link, const char *value)
{
    return parse_time(value, &link->spec.jitter_ns);
}

static int set_rate(struct link_text *link, const char *value)
{
    return lh_parse_rate(value, &link->spec.rate_bps);
}

static int set_queue(struct link_text *link, const char *value)
{
    return lh_parse_size(value, &link->spec.queue_bytes);
}

static int set_drop(struct link_text *link, const char *value)
{
    if (strcmp(value, "tail") != 0)
        return lh_fail(LH_EINVAL, "%s: unknown queue discipline (drop=tail)",
                       *value != '\0' ? value : "\"\"");
    link->spec.drop_tail = true;
    return 0;
}

static int set_loss(struct link_text *link, const char *value)
{
    return lh_parse_ratio(value, &link->spec.loss);
}

static int set_burst(struct link_text *link, const char *value)
{
    const char *at = value;
    double packets = 0;
    int rc = lh_decimal_read_double(&at, &packets);
    if (rc == -LH_EINVAL || (rc == 0 && *at != '\0'))
        return lh_fail(LH_EINVAL, "%s: invalid number of packets (example: 8)", value);
    if (rc != 0 || packets < 1 || packets > LH_LINK_BURST_MAX)
        return lh_fail(LH_ERANGE, "%s: out of range (1 to 1e9 packets)", value);
    link->spec.burst_packets = packets;
    return 0;
}

static int set_reorder(struct link_text *link, const char *value)
{
    return lh_parse_ratio(value, &link->spec.reorder);
}

static int set_duplicate(struct link_text *link, const char *value)
{
    return lh_parse_ratio(value, &link->spec.duplicate);
}

static int set_corrupt(struct link_text *link, const char *value)
{
    return lh_parse_ratio(value, &link->spec.corrupt);
}

static int set_seed(struct link_text *link, const char *value)
{
    struct lh_decimal seed = {0};
    const char *at = value;
    int rc = lh_decimal_read(&at, &seed);
    if (rc == -LH_ERANGE)
        return lh_fail(LH_ERANGE, "%s: out of range (64 bits)", value);
    if (rc != 0 || *at != '\0' || seed.fraction_digits != 0)
        return lh_fail(LH_EINVAL, "%s: invalid integer (example: 7)", value);
    link->spec.seed = seed.whole;
    return 0;
}

static const struct link_key {
    const char *name;
    int (*set)(struct link_text *link, const char *value);
} link_keys[] = {
    {"rtt", set_rtt},         {"delay", set_delay},
    {"rate", set_rate},       {"queue", set_queue},
    {"drop", set_drop},       {"loss", set_loss},
    {"burst", set_burst},     {"reorder", set_reorder},
    {"jitter", set_jitter},   {"duplicate", set_duplicate},
    {"corrupt", set_corrupt}, {"seed", set_seed},
};

#define LINK_KEYS (sizeof link_keys / sizeof link_keys[0])
#define LINK_KEY_NAMES                                                                                     \
    "rtt, delay, rate, queue, drop, loss, burst, reorder, jitter, duplicate, corrupt, seed"

static size_t find_key(const char *name, size_t length)
{
    size_t i = 0;
    while (i < LINK_KEYS &&
           (strlen(link_keys[i].name) != length || memcmp(link_keys[i].name, name, length) != 0))
        i++;
    return i;
}

/* One "key=value" of that length. */
static int parse_item(struct link_text *link, const char *item, size_t length, uint32_t *seen)
{
    const char *equals = memchr(item, '=', length);
    size_t name_length = equals == NULL ? length : (size_t)(equals - item);
    int shown = length < 80 ? (int)length : 80;
    size_t key = find_key(item, name_length);
    if (equals == NULL || key == LINK_KEYS)
        return lh_fail(LH_EINVAL, "%.*s: unknown key (key=value; keys: " LINK_KEY_NAMES ")",
                       length == 0 ? 2 : shown, length == 0 ? "\"\"" : item);
    if (*seen & 1u << key)
        return lh_fail(LH_EINVAL, "%.*s: %s= given twice", shown, item, link_keys[key].name);
    size_t value_length = length - name_length - 1;
    char value[VALUE_BYTES_MAX];
    if (value_length >= sizeof value)
        return lh_fail(LH_EINVAL, "%.*s…: value too long (at most %d characters)", shown, item,
                       VALUE_BYTES_MAX - 1);
    memcpy(value, equals + 1, value_length);
    value[value_length] = '\0';
    *seen |= 1u << key;
    int rc = link_keys[key].set(link, value);
    if (rc == 0)
        return 0;
    /* The setter's message starts with the value. */
    return lh_fail((enum lh_error)(-rc), "%s=%s", link_keys[key].name, lh_last_error());
}

static int check_together(const struct link_text *link)
{
    const struct lh_link_spec *spec = &link->spec;
    if (link->seen_rtt && link->seen_delay)
        return lh_fail(LH_EINVAL, "rtt= and delay=: mutually exclusive");
    /* Between two bursts at least one packet passes, so at most N of N + 1 are lost. */
    if (spec->burst_packets > 1 && spec->loss > spec->burst_packets / (spec->burst_packets + 1)) {
        char loss[LH_DECIMAL_DOUBLE_MAX];
        char burst[LH_DECIMAL_DOUBLE_MAX];
        lh_decimal_format_double(spec->loss, loss, sizeof loss);
        lh_decimal_format_double(spec->burst_packets, burst, sizeof burst);
        return lh_fail(LH_ERANGE, "loss=%s: too high for burst=%s (raise burst=)", loss, burst);
    }
    return 0;
}

int lh_link_parse(const char *text, struct lh_link_spec *spec)
{
    struct link_text link = {.spec.seed = 1};
    uint32_t seen = 0;
    bool more = *text != '\0' && strcmp(text, "none") != 0;
    for (const char *item = text; more;) {
        size_t length = strcspn(item, ",");
        int rc = parse_item(&link, item, length, &seen);
        if (rc != 0)
            return rc;
        more = item[length] == ',';
        item += length + 1;
    }
    int rc = check_together(&link);
    if (rc == 0)
        *spec = link.spec;
    return rc;
}

bool lh_link_is_none(const struct lh_link_spec *spec)
{
    return spec->delay_ns == 0 && spec->jitter_ns == 0 && spec->rate_bps == 0 && !(spec->loss > 0) &&
           !(spec->reorder > 0) && !(spec->duplicate > 0) && !(spec->corrupt > 0);
}
