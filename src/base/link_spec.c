/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/link_spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/link.h>
#include <longhaul/units.h>

#include "base/error.h"
#include "base/prng.h"
#include "base/units.h"

/* ---- link spec ------------------------------------------------------------------------------------- */

/* Reads the text of an emulated link. */

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

/* ---- link format ----------------------------------------------------------------------------------- */

/* Writes an emulated link as the text that parses to it. */

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

/* ---- link fate ------------------------------------------------------------------------------------- */

/*
 * One packet at a time: bottleneck, loss, delay, damage.
 *
 * In the order of a real path: the sender's queue, the bottleneck, then the long haul, where packets are
 * lost after they have used the bottleneck. What a packet draws never depends on what another fault
 * decided.
 */

/* What may wait for the bottleneck when the text gives no queue=: so much time at its rate, within these
 * bounds. It bridges the moments in which a busy host does not run the sender. */
#define LH_LINK_QUEUE_DEFAULT_NS        (2 * LH_NS_PER_MS)
#define LH_LINK_QUEUE_DEFAULT_MIN_BYTES ((uint64_t)64 * 1024)
#define LH_LINK_QUEUE_DEFAULT_MAX_BYTES ((uint64_t)1024 * 1024)

__extension__ typedef unsigned __int128 uint128;

#define BITS_PER_BYTE 8u

/* Numbers of the generators, forked from one that seed and direction make. */
enum link_component {
    LINK_LOSS = 1,
    LINK_TIMING = 2,
    LINK_DAMAGE = 3,
};

static bool is_bursty(const struct lh_link_spec *spec)
{
    return spec->burst_packets > 1 && spec->loss < 1;
}

void lh_link_state_init(struct lh_link_state *link, const struct lh_link_spec *spec, uint64_t direction)
{
    struct lh_prng root;
    lh_prng_seed(&root, spec->seed);
    root = lh_prng_fork(&root, direction);
    *link = (struct lh_link_state){
        .spec = *spec,
        .loss_prng = lh_prng_fork(&root, LINK_LOSS),
        .timing_prng = lh_prng_fork(&root, LINK_TIMING),
        .damage_prng = lh_prng_fork(&root, LINK_DAMAGE),
    };
    /* Begins as likely in a burst as it is at any other packet: short runs too have the average loss. */
    double draw = lh_prng_double(&link->loss_prng);
    link->in_burst = is_bursty(spec) && draw < spec->loss;
}

uint64_t lh_link_queue_bytes(const struct lh_link_spec *spec)
{
    if (spec->queue_bytes != 0)
        return spec->queue_bytes;
    uint128 bytes = (uint128)spec->rate_bps * LH_LINK_QUEUE_DEFAULT_NS / (BITS_PER_BYTE * LH_NS_PER_S);
    if (bytes < LH_LINK_QUEUE_DEFAULT_MIN_BYTES)
        return LH_LINK_QUEUE_DEFAULT_MIN_BYTES;
    return bytes < LH_LINK_QUEUE_DEFAULT_MAX_BYTES ? (uint64_t)bytes : LH_LINK_QUEUE_DEFAULT_MAX_BYTES;
}

/* How long the bytes that may wait take to pass. */
static lh_time queue_span_ns(const struct lh_link_spec *spec)
{
    uint64_t bytes = lh_link_queue_bytes(spec);
    uint128 span = (uint128)bytes * BITS_PER_BYTE * LH_NS_PER_S / spec->rate_bps;
    return span < LH_TIME_NEVER ? (lh_time)span : LH_TIME_NEVER;
}

/* When at most so many full queues wait. */
static lh_time ready_ns(const struct lh_link_state *link, lh_time now, lh_time queues)
{
    if (link->spec.rate_bps == 0 || link->bottleneck_free_ns <= now)
        return now;
    lh_time span = queue_span_ns(&link->spec);
    lh_time waiting = link->bottleneck_free_ns - now;
    return waiting / queues > span ? now + (waiting - queues * span) : now;
}

lh_time lh_link_ready_ns(const struct lh_link_state *link, lh_time now)
{
    return ready_ns(link, now, 1);
}

/* Takes the packet through the bottleneck; returns when its last bit has left. */
static lh_time pass_bottleneck(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    if (link->spec.rate_bps == 0)
        return now;
    if (link->bottleneck_free_ns <= now) {
        link->bottleneck_free_ns = now;
        link->bottleneck_remainder = 0;
    }
    uint128 bit_ns = (uint128)wire_bytes * BITS_PER_BYTE * LH_NS_PER_S + link->bottleneck_remainder;
    link->bottleneck_free_ns += (lh_time)(bit_ns / link->spec.rate_bps);
    link->bottleneck_remainder = (uint64_t)(bit_ns % link->spec.rate_bps);
    return link->bottleneck_free_ns;
}

/* Gilbert-Elliott: the bad state loses every packet and lasts `burst` packets in the mean, so it ends with
 * chance 1 / burst; the chance that it begins follows from the average. Exactly one draw a packet. */
static bool draw_loss(struct lh_link_state *link)
{
    const struct lh_link_spec *spec = &link->spec;
    double draw = lh_prng_double(&link->loss_prng);
    if (!is_bursty(spec))
        return draw < spec->loss;
    double leave = 1 / spec->burst_packets;
    double enter = leave * spec->loss / (1 - spec->loss);
    link->in_burst = link->in_burst ? draw >= leave : draw < enter;
    return link->in_burst;
}

static void draw_timing(struct lh_link_state *link, struct lh_link_fate *fate, lh_time left_ns)
{
    const struct lh_link_spec *spec = &link->spec;
    lh_time arrive_ns = left_ns + spec->delay_ns;
    fate->arrive_ns[0] = arrive_ns;
    fate->arrive_ns[1] = arrive_ns;
    if (spec->jitter_ns == 0 && !(spec->reorder > 0))
        return;
    fate->reordered = lh_prng_double(&link->timing_prng) < spec->reorder;
    /* An eighth of the round trip is a quarter of one way. */
    lh_time held_ns = spec->jitter_ns != 0 ? spec->jitter_ns : spec->delay_ns / 4;
    for (unsigned i = 0; i < 2; i++) {
        fate->arrive_ns[i] += lh_prng_below(&link->timing_prng, spec->jitter_ns + 1);
        fate->arrive_ns[i] += fate->reordered ? held_ns : 0;
    }
}

static void draw_damage(struct lh_link_state *link, struct lh_link_fate *fate)
{
    const struct lh_link_spec *spec = &link->spec;
    if (!(spec->duplicate > 0) && !(spec->corrupt > 0))
        return;
    fate->copies = lh_prng_double(&link->damage_prng) < spec->duplicate ? 2 : 1;
    fate->corrupted = lh_prng_double(&link->damage_prng) < spec->corrupt;
    fate->corrupt_bit = (uint32_t)(lh_prng_next(&link->damage_prng) >> 32);
}

static struct lh_link_fate decide(struct lh_link_state *link, lh_time now, uint32_t wire_bytes, bool full)
{
    struct lh_link_fate fate = {.accepted = true, .copies = 1};
    if (full && !link->spec.drop_tail)
        return (struct lh_link_fate){.accepted = false};
    lh_time left_ns = full ? now : pass_bottleneck(link, now, wire_bytes);
    /* Drawn for a packet that the queue drops too: each packet has its draws, whatever the rate. */
    bool lost = draw_loss(link);
    draw_timing(link, &fate, left_ns);
    draw_damage(link, &fate);
    assert(fate.arrive_ns[0] >= now && fate.arrive_ns[1] >= now);
    if (full || lost)
        return (struct lh_link_fate){.accepted = true, .dropped = true};
    return fate;
}

struct lh_link_fate lh_link_decide(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    return decide(link, now, wire_bytes, ready_ns(link, now, 1) > now);
}

struct lh_link_fate lh_link_decide_control(struct lh_link_state *link, lh_time now, uint32_t wire_bytes)
{
    return decide(link, now, wire_bytes, ready_ns(link, now, link->spec.drop_tail ? 1 : 2) > now);
}
