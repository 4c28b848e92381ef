/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/config/config_keys.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/link.h>
#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "base/error.h"
#include "base/units.h"
#include "congestion/congestion_table.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"
#include "netsim/workload/workload.h"

/* ---- key value ------------------------------------------------------------------------------------- */

/* Reads the values of configuration keys. */

/* What one reading is about. */
struct reading {
    const struct netsim_value_rule *rule;
    const char *key;
    const char *choices;
    const char *value;
};

/* How much of a wrong value is shown. */
#define SHOWN "\"%.64s\""

/* ", or the words" for keys that take any. */
static const char *or_words(const struct reading *reading, char *out, size_t size)
{
    out[0] = '\0';
    if (reading->rule->words != NULL)
        snprintf(out, size, ", or %s", reading->rule->words);
    return out;
}

static void show(enum netsim_value_kind kind, uint64_t value, char *out, size_t size)
{
    if (kind == NETSIM_VALUE_SIZE || kind == NETSIM_VALUE_SIZE32)
        lh_format_size(value, out, size);
    else if (kind == NETSIM_VALUE_RATE)
        lh_format_rate((double)value, out, size);
    else if (kind == NETSIM_VALUE_TIME && value != 0)
        lh_format_time((double)value / (double)NETSIM_PS_PER_S, out, size);
    else
        snprintf(out, size, "%" PRIu64, value);
}

static int out_of_range(const struct reading *reading)
{
    char from[LH_FORMAT_MAX];
    char to[LH_FORMAT_MAX];
    char words[40];
    const struct netsim_value_rule *rule = reading->rule;
    show(rule->kind, rule->min, from, sizeof from);
    show(rule->kind, rule->max, to, sizeof to);
    return lh_fail(LH_ERANGE, "%s " SHOWN ": out of range (%s to %s%s%s)", reading->key, reading->value,
                   from, to, or_words(reading, words, sizeof words),
                   rule->kind == NETSIM_VALUE_RATIO ? "; a half is 0.5 or 50%" : "");
}

/* Not even the form is right. */
static int malformed(const struct reading *reading, const char *what)
{
    char words[40];
    return lh_fail(LH_EINVAL, "%s " SHOWN ": invalid (%s%s)", reading->key, reading->value, what,
                   or_words(reading, words, sizeof words));
}

/* The reason that lh_last_error() gives names the value. */
static int refused_by_parser(const struct reading *reading, int rc)
{
    char words[40];
    if (rc == -LH_ERANGE)
        return out_of_range(reading);
    return lh_fail(LH_EINVAL, "%s: %s%s", reading->key, lh_last_error(),
                   or_words(reading, words, sizeof words));
}

/* Picoseconds of the unit; 0: there is no such unit. */
static uint64_t time_unit(const char *name)
{
    static const struct {
        const char *name;
        uint64_t ps;
    } units[] = {
        {"ps", 1},
        {"ns", NETSIM_PS_PER_NS},
        {"us", NETSIM_PS_PER_US},
        {"ms", NETSIM_PS_PER_MS},
        {"s", NETSIM_PS_PER_S},
        {"min", 60 * NETSIM_PS_PER_S},
        /* Light in fibre: 200,000 km a second. */
        {"km", 5 * NETSIM_PS_PER_US},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ps;
    return 0;
}

static int read_time(const struct reading *reading, uint64_t *ps)
{
    struct lh_decimal number = {0};
    const char *at = reading->value;
    int rc = lh_decimal_read(&at, &number);
    bool zero = rc == 0 && number.whole == 0 && number.fraction == 0;
    uint64_t unit = *at == '\0' && zero ? 1 : time_unit(at);
    if (rc == -LH_EINVAL || (rc == 0 && unit == 0))
        return malformed(reading, "a time such as 500ns, 1us or 25ms, or a distance such as 600km");
    if (rc != 0 || lh_decimal_scale(&number, unit, ps) != 0)
        return out_of_range(reading);
    return 0;
}

static int read_count(const struct reading *reading, uint64_t *count)
{
    struct lh_decimal number = {0};
    const char *at = reading->value;
    int rc = lh_decimal_read(&at, &number);
    if (rc == -LH_EINVAL || (rc == 0 && (*at != '\0' || number.fraction_digits != 0)))
        return malformed(reading, "a whole number");
    if (rc != 0)
        return out_of_range(reading);
    *count = number.whole;
    return 0;
}

/* A number of rule->min to rule->max; above 0 where a word stands for no number at all, and is kept as 0. */
static int read_number(const struct reading *reading, double *number)
{
    bool ratio = reading->rule->kind == NETSIM_VALUE_RATIO;
    const char *at = reading->value;
    double read = 0;
    int rc = ratio ? lh_decimal_read_ratio(&at, &read) : lh_decimal_read_double(&at, &read);
    if (rc == -LH_EINVAL || (rc == 0 && *at != '\0'))
        return malformed(reading, ratio ? "a share such as 0.3 or 30%" : "a number such as 2 or 0.5");
    if (rc == 0 && read <= 0 && reading->rule->words != NULL)
        return malformed(reading, "a number above 0");
    if (rc != 0 || read < (double)reading->rule->min || read > (double)reading->rule->max)
        return out_of_range(reading);
    *number = read;
    return 0;
}

/* Sizes, rates, times and counts. */
static int read_integer(const struct reading *reading, uint64_t *number)
{
    int rc = 0;
    if (reading->rule->kind == NETSIM_VALUE_TIME) {
        rc = read_time(reading, number);
    } else if (reading->rule->kind == NETSIM_VALUE_RATE) {
        if (lh_parse_rate(reading->value, number) != 0)
            return malformed(reading, "a rate such as 400Gbit");
    } else if (reading->rule->kind == NETSIM_VALUE_SIZE || reading->rule->kind == NETSIM_VALUE_SIZE32) {
        rc = lh_parse_size(reading->value, number);
        if (rc != 0)
            return refused_by_parser(reading, rc);
    } else {
        rc = read_count(reading, number);
    }
    if (rc == 0 && (*number < reading->rule->min || *number > reading->rule->max))
        rc = out_of_range(reading);
    return rc;
}

/* The place of the value in "a|b|c"; negative: it is not there. */
static int find_word(const char *words, const char *value)
{
    size_t length = strlen(value);
    for (int place = 0;; place++) {
        size_t word_length = strcspn(words, "|");
        if (word_length == length && memcmp(words, value, length) == 0)
            return place;
        if (words[word_length] == '\0')
            return -1;
        words += word_length + 1;
    }
}

static int read_choice(const struct reading *reading, uint64_t *number)
{
    int place = find_word(reading->choices, reading->value);
    if (place < 0)
        return lh_fail(LH_EINVAL, "%s " SHOWN ": unknown (one of %s)", reading->key, reading->value,
                       reading->choices);
    *number = (uint64_t)place;
    return 0;
}

static int read_faults(const struct reading *reading, struct lh_link_spec *spec)
{
    struct lh_link_spec read;
    int rc = lh_link_parse(reading->value, &read);
    if (rc != 0)
        return lh_fail((enum lh_error)(-rc), "%s " SHOWN ": %s", reading->key, reading->value,
                       lh_last_error());
    if (read.rate_bps != 0 || read.delay_ns != 0)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": rate and delay of cables have keys of their own, such as "
                       "topology.rate and topology.delay (leave them out here)",
                       reading->key, reading->value);
    if (read.burst_packets > 1 && read.loss <= 0)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": a burst of losses needs loss=, such as loss=1e-4,burst=8 (in a list "
                       "such values have | between them)",
                       reading->key, reading->value);
    if (read.queue_bytes != 0 || read.drop_tail)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": queues are in the switches, see switch.buffer and switch.queue "
                       "(leave queue= and drop= out here)",
                       reading->key, reading->value);
    *spec = read;
    return 0;
}

static int read_text(const struct reading *reading, char *field)
{
    size_t bytes = strlen(reading->value);
    if (bytes >= reading->rule->max)
        return lh_fail(LH_ERANGE, "%s: %zu characters (at most %" PRIu64 ")", reading->key, bytes,
                       reading->rule->max - 1);
    memcpy(field, reading->value, bytes + 1);
    return 0;
}

static int read_congestion(const struct reading *reading, struct netsim_congestion_config *field)
{
    struct congestion_choice choice;
    struct netsim_congestion_config read = {.kind = NETSIM_CONGESTION_NONE};
    if (strlen(reading->value) >= sizeof read.controller)
        return lh_fail(LH_ERANGE, "%s: %zu characters (at most %u)", reading->key, strlen(reading->value),
                       NETSIM_CONTROLLER_BYTES - 1);
    if (strcmp(reading->value, "dcqcn") == 0) {
        read.kind = NETSIM_CONGESTION_DCQCN;
    } else if (strcmp(reading->value, "none") != 0) {
        read.kind = NETSIM_CONGESTION_CONTROLLER;
        if (congestion_choice_parse(reading->value, &choice) != 0)
            return lh_fail(LH_EINVAL, "%s: %s, or none", reading->key, lh_last_error());
        memcpy(read.controller, reading->value, strlen(reading->value) + 1);
    }
    *field = read;
    return 0;
}

/* Puts the number into a field of the type that its kind has. */
static void store(enum netsim_value_kind kind, uint64_t number, void *field)
{
    switch (kind) {
    case NETSIM_VALUE_SIZE:
    case NETSIM_VALUE_RATE:
    case NETSIM_VALUE_TIME:
        *(uint64_t *)field = number;
        break;
    case NETSIM_VALUE_SIZE32:
    case NETSIM_VALUE_COUNT:
    case NETSIM_VALUE_CHOICE:
        assert(number <= UINT32_MAX);
        *(uint32_t *)field = (uint32_t)number;
        break;
    case NETSIM_VALUE_PRIORITY:
        assert(number <= UINT8_MAX);
        *(uint8_t *)field = (uint8_t)number;
        break;
    case NETSIM_VALUE_SWITCH:
        *(bool *)field = number == 1;
        break;
    case NETSIM_VALUE_RATIO:
    case NETSIM_VALUE_NUMBER:
        *(double *)field = (double)number;
        break;
    case NETSIM_VALUE_FAULTS:
    case NETSIM_VALUE_PAIRS:
    case NETSIM_VALUE_CONGESTION:
    case NETSIM_VALUE_TEXT:
    case NETSIM_VALUE_FILE:
        assert(false);
    }
}

/* Reads the value of a key into *field, which stays as it is when that fails: -LH_EINVAL or -LH_ERANGE with
 * key, value, range and remedy in lh_last_error(). `choices`: "a|b|c". */
static int netsim_value_read(const struct netsim_value_rule *rule, const char *key, const char *choices,
                             const char *value, void *field)
{
    const struct reading reading = {rule, key, choices, value};
    uint64_t number = 0;
    int word = rule->words == NULL ? -1 : find_word(rule->words, value);
    if (word >= 0) {
        store(rule->kind, word == 0 ? rule->word_value : 0, field);
        return 0;
    }
    if (rule->kind == NETSIM_VALUE_FILE)
        return lh_fail(LH_EINVAL, "%s takes the text of a file, which lh_netsim_config_text() gives", key);
    if (rule->kind == NETSIM_VALUE_TEXT)
        return read_text(&reading, field);
    if (rule->kind == NETSIM_VALUE_FAULTS)
        return read_faults(&reading, field);
    if (rule->kind == NETSIM_VALUE_CONGESTION)
        return read_congestion(&reading, field);
    if (rule->kind == NETSIM_VALUE_PAIRS)
        return netsim_pairs_read(key, value, field);
    if (rule->kind == NETSIM_VALUE_RATIO || rule->kind == NETSIM_VALUE_NUMBER)
        return read_number(&reading, field);
    bool choice = rule->kind == NETSIM_VALUE_CHOICE || rule->kind == NETSIM_VALUE_SWITCH;
    int rc = choice ? read_choice(&reading, &number) : read_integer(&reading, &number);
    if (rc == 0)
        store(rule->kind, number, field);
    return rc;
}

/* ---- key table ------------------------------------------------------------------------------------- */

/*
 * Every key in one line or two: name, kind for people, default, help; then how it is read.
 *
 *   X(name, kind, default, help, value kind, field, min, max, words, what the first stands for)
 *
 * The default is read like any other value. Sections stand together; their order is that of the help.
 */

#define NETSIM_TOPOLOGY_KINDS "two-hosts|dumbbell|leaf-spine|fat-tree|two-datacenters|datacenters|file"
#define NETSIM_WORKLOAD_KINDS "permutation|incast|all-to-all|flows|poisson|collective"

#define NETSIM_SPAN_MAX  (3600 * NETSIM_PS_PER_S) /* as for links: an hour */
#define NETSIM_BURST_MAX ((uint64_t)1 << 30)      /* all of its packets are alive at once */
#define NETSIM_BYTES_MAX ((uint64_t)1 << 44)      /* of what can be held somewhere */

#define NETSIM_TOPOLOGY_KEYS(X)                                                                            \
    X("topology.kind", NETSIM_TOPOLOGY_KINDS, "two-hosts",                                                 \
      "how hosts and switches are connected; a fat tree has k^3/4 hosts, a datacenter is a fat tree",      \
      CHOICE, topology.kind, 0, 0, NULL, 0)                                                                \
    X("topology.hosts", "count", "4",                                                                      \
      "hosts per side of a dumbbell, per leaf, or per ToR of a datacenter", COUNT, topology.hosts, 1,      \
      65536, NULL, 0)                                                                                      \
    X("topology.leaves", "count", "4", "leaf-spine: switches with hosts", COUNT, topology.leaves, 1,       \
      65536, NULL, 0)                                                                                      \
    X("topology.spines", "count", "4", "leaf-spine: switches above the leaves", COUNT, topology.spines, 1, \
      4096, NULL, 0)                                                                                       \
    X("topology.k", "count", "4", "fat-tree, datacenters: ports of each switch, an even number", COUNT,    \
      topology.k, 2, 64, NULL, 0)                                                                          \
    X("topology.sites", "count", "3", "datacenters: number of sites, in a line: a, b, c", COUNT,           \
      topology.sites, 2, NETSIM_SITES_MAX, NULL, 0)                                                        \
    X("topology.rate", "rate", "100Gbit", "rate of all other cables", RATE, topology.rate_bps,             \
      NETSIM_RATE_MIN, NETSIM_RATE_MAX, NULL, 0)                                                           \
    X("topology.core_rate", "rate", "same", "dumbbell: the middle cable; leaf-spine: leaf to spine", RATE, \
      topology.core_rate_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, "same", 0)                                 \
    X("topology.long_rate", "rate", "full",                                                                \
      "datacenters: rate of a long cable; full: the sum of a site's core switches", RATE,                  \
      topology.long_rate_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, "full", 0)                                 \
    X("topology.delay", "time", "1us", "one-way delay of all other cables", TIME, topology.delay_ps, 0,    \
      NETSIM_SPAN_MAX, NULL, 0)                                                                            \
    X("topology.core_delay", "time", "same", "dumbbell: the middle cable; leaf-spine: leaf to spine",      \
      TIME, topology.core_delay_ps, 0, NETSIM_SPAN_MAX, "same", NETSIM_NEVER)                              \
    X("topology.long_delay", "time", "12.5ms",                                                             \
      "datacenters: one-way delay of a long cable, or its length: 2500km", TIME, topology.long_delay_ps,   \
      0, NETSIM_SPAN_MAX, NULL, 0)                                                                         \
    X("topology.link", "link", "none",                                                                     \
      "faults such as loss=1e-4,burst=8 on the only, middle or long cable, or all between switches",       \
      FAULTS, topology.faults, 0, 0, NULL, 0)                                                              \
    X("topology.change_rate", "rate", "none",                                                              \
      "temporary rate of the cables of topology.link; none: no change", RATE, topology.change_rate_bps,    \
      NETSIM_RATE_MIN, NETSIM_RATE_MAX, "none", 0)                                                         \
    X("topology.change_from", "time", "0", "time of the change of rate", TIME, topology.change_from_ps, 0, \
      NETSIM_SPAN_MAX, NULL, 0)                                                                            \
    X("topology.change_for", "time", "ever", "duration of the change; ever: until the end", TIME,          \
      topology.change_for_ps, 1, NETSIM_SPAN_MAX, "ever", NETSIM_NEVER)                                    \
    X("topology.file", "file", "", "with kind file: list of hosts, switches and cables", FILE,             \
      topology.file, 0, 0, NULL, 0)

#define NETSIM_SWITCH_KEYS(X)                                                                              \
    X("switch.buffer", "size", "16MiB", "buffer of a switch, shared by its ports", SIZE,                   \
      switches.buffer_bytes, 1, NETSIM_BYTES_MAX, NULL, 0)                                                 \
    X("switch.queue", "size", "none",                                                                      \
      "limit of a queue, per port and priority; excess packets are dropped", SIZE, switches.queue_bytes,   \
      1, NETSIM_BYTES_MAX, "none", 0)                                                                      \
    X("switch.alpha", "number", "none",                                                                    \
      "limit of a queue, as a multiple (above 0) of the free buffer; none: no such limit", NUMBER,         \
      switches.alpha, 0, 65536, "none", 0)                                                                 \
    X("switch.ecn_min", "size", "0", "queues shorter than this mark no packet", SIZE,                      \
      switches.ecn_min_bytes, 0, NETSIM_BYTES_MAX, NULL, 0)                                                \
    X("switch.ecn_max", "size", "none", "queues from this length on mark every packet; none: no marks",    \
      SIZE, switches.ecn_max_bytes, 1, NETSIM_BYTES_MAX, "none", 0)                                        \
    X("switch.ecn_probability", "ratio", "1",                                                              \
      "probability of a mark just below ecn_max; it rises from 0 at ecn_min", RATIO,                       \
      switches.ecn_probability, 0, 1, NULL, 0)                                                             \
    X("switch.ecn_rate", "rate", "same",                                                                   \
      "port rate for which ecn_min and ecn_max hold; others scale them in proportion", RATE,               \
      switches.ecn_rate_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, "same", 0)                                  \
    X("switch.routing", "ecmp|spray", "ecmp",                                                              \
      "each flow keeps its path, or each packet takes a random one", SWITCH, switches.spray, 0, 0, NULL,   \
      0)                                                                                                   \
    X("switch.pfc", "off|on", "off", "priority flow control: pause the sender instead of dropping",        \
      SWITCH, switches.pfc, 0, 0, NULL, 0)                                                                 \
    X("switch.xoff", "size", "128KiB", "PFC: pauses a port whose packets occupy more than this", SIZE,     \
      switches.pfc_xoff_bytes, 1, NETSIM_BYTES_MAX, NULL, 0)                                               \
    X("switch.xon", "size", "96KiB", "PFC: resumes the port at this size", SIZE, switches.pfc_xon_bytes,   \
      0, NETSIM_BYTES_MAX, NULL, 0)                                                                        \
    X("switch.pfc_alpha", "number", "none",                                                                \
      "PFC: threshold as a multiple of the free buffer, if that exceeds xoff", NUMBER, switches.pfc_alpha, \
      0, 65536, "none", 0)                                                                                 \
    X("switch.pfc_refresh", "time", "none",                                                                \
      "PFC: refresh interval of pauses, which expire after 65535 quanta; none: they last until resumed",   \
      TIME, switches.pfc_refresh_ps, 100 * NETSIM_PS_PER_NS, NETSIM_PS_PER_S, "none", 0)                   \
    X("switch.credits", "size", "none",                                                                    \
      "buffer of each link with credits, which replace PFC; none: no credits", SIZE,                       \
      switches.credit_bytes, 1, NETSIM_BYTES_MAX, "none", 0)                                               \
    X("switch.credit_step", "size", "packet",                                                              \
      "credits: announces credit when this much buffer is newly free; packet: a full packet", SIZE,        \
      switches.credit_step_bytes, 1, NETSIM_BYTES_MAX, "packet", 0)

#define NETSIM_LONG_KINDS "same|none|pfc|bifrost|cbfc|swing"

#define NETSIM_LONG_KEYS(X)                                                                                \
    X("long.flow_control", NETSIM_LONG_KINDS, "same",                                                      \
      "flow control of links between sites; same: that of all other links and switches", CHOICE,           \
      longs.control, 0, 0, NULL, 0)                                                                        \
    X("long.buffer", "size", "auto",                                                                       \
      "buffer of such a link at its far end; auto: as much as its flow control needs", SIZE,               \
      longs.buffer_bytes, 1, NETSIM_BYTES_MAX, "auto", 0)                                                  \
    X("long.port_buffer", "size", "shared",                                                                \
      "buffer of each other port of these switches; shared: switch.buffer for all", SIZE,                  \
      longs.port_bytes, 1, NETSIM_BYTES_MAX, "shared", 0)                                                  \
    X("long.xoff", "size", "auto",                                                                         \
      "pfc: pauses above this size; auto: buffer minus headroom; swing: the relay's threshold", SIZE,      \
      longs.xoff_bytes, 1, NETSIM_BYTES_MAX, "auto", 0)                                                    \
    X("long.xon", "size", "auto", "pfc, swing: resumes at this size; auto: at xoff", SIZE,                 \
      longs.xon_bytes, 1, NETSIM_BYTES_MAX, "auto", 0)                                                     \
    X("long.overbook", "number", "1",                                                                      \
      "bifrost, cbfc: overbooking factor of the buffer; excess packets are dropped", NUMBER,               \
      longs.overbook, 1, 65536, NULL, 0)                                                                   \
    X("long.drift", "time", "0",                                                                           \
      "growth of such a link's delay in half a drift_period, before it falls again", TIME, longs.drift_ps, \
      0, NETSIM_PS_PER_S, NULL, 0)                                                                         \
    X("long.drift_period", "time", "1s", "period of the drift; more than twice the drift", TIME,           \
      longs.drift_period_ps, NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)                                   \
    X("long.slot", "time", "10us", "bifrost: time slot T; one pause decision per slot", TIME,              \
      longs.slot_ps, NETSIM_PS_PER_NS, NETSIM_PS_PER_S, NULL, 0)                                           \
    X("long.delta", "size", "auto", "bifrost: bytes on the link in a round trip", SIZE, longs.delta_bytes, \
      1, NETSIM_BYTES_MAX, "auto", 0)                                                                      \
    X("long.leak_slots", "count", "1", "bifrost: packets of headroom for late pauses, k", COUNT,           \
      longs.leak_slots, 1, 1000000, NULL, 0)                                                               \
    X("long.guard", "count", "none",                                                                       \
      "bifrost: the sender pauses after this many slots without a frame; each slot gets a frame", COUNT,   \
      longs.guard_slots, 1, 1000, "none", 0)                                                               \
    X("long.incoming", "granted|arrived", "granted",                                                       \
      "bifrost: F decreases by grants (as in the proof) or by arrivals (as printed)", SWITCH,              \
      longs.by_arrivals, 0, 0, NULL, 0)                                                                    \
    X("long.grants", "printed|even", "printed",                                                            \
      "bifrost: subtracts arrivals from F after a slot's grant (printed) or before it (even)", SWITCH,     \
      longs.even_grants, 0, 0, NULL, 0)                                                                    \
    X("long.credits", "ideal|12bit", "ideal", "cbfc: without or with the limit of InfiniBand's 12 bits",   \
      SWITCH, longs.credits_12bit, 0, 0, NULL, 0)                                                          \
    X("long.credit_step", "size", "packet",                                                                \
      "cbfc: announces credit when this much buffer is newly free; packet: a full packet", SIZE,           \
      longs.credit_step_bytes, 1, NETSIM_BYTES_MAX, "packet", 0)                                           \
    X("long.relay", "forward|threshold", "forward",                                                        \
      "swing: the relay forwards pauses, or pauses by long.xoff", SWITCH, longs.relay_threshold, 0, 0,     \
      NULL, 0)                                                                                             \
    X("long.pfc_refresh", "time", "same", "pfc, swing: switch.pfc_refresh of the long link", TIME,         \
      longs.pfc_refresh_ps, 100 * NETSIM_PS_PER_NS, NETSIM_PS_PER_S, "same|none", NETSIM_NEVER)            \
    X("long.credit_refresh", "time", "none", "cbfc: refresh interval of a limit; none: sent once", TIME,   \
      longs.credit_refresh_ps, 100 * NETSIM_PS_PER_NS, NETSIM_PS_PER_S, "none", 0)                         \
    X("long.signal_loss", "ratio", "0",                                                                    \
      "loss ratio of pauses, resumes and credits on such links, at most 90%", RATIO, longs.signal_loss, 0, \
      1, NULL, 0)                                                                                          \
    X("long.signal_burst", "number", "1", "mean burst length of such losses, in signals", NUMBER,          \
      longs.signal_burst, 1, 10000, NULL, 0)                                                               \
    X("long.mute_from", "time", "0", "begin of an outage in which all signals on such links are lost",     \
      TIME, longs.mute_from_ps, 0, NETSIM_SPAN_MAX, NULL, 0)                                               \
    X("long.mute_for", "time", "none", "duration of this outage; none: no outage", TIME,                   \
      longs.mute_for_ps, 0, NETSIM_SPAN_MAX, "none", 0)

#define NETSIM_TRANSPORT_KEYS(X)                                                                           \
    X("transport.kind", "sr|irn|gbn|longhaul|xp", "sr",                                                    \
      "selective repeat; as IRN, with two fixed timeouts; go-back-N; the real protocol; "                  \
      "XP",                                                                                                \
      CHOICE, transport.kind, 0, 0, NULL, 0)                                                               \
    X("transport.schemes", "schemes", "sr-nack",                                                           \
      "longhaul: sr-nack, ec:mds, auto ...; of N separated by spaces, host h uses number h mod N", TEXT,   \
      schemes, 0, NETSIM_SCHEMES_BYTES, NULL, 0)                                                           \
    X("transport.congestion", "controller", "none",                                                        \
      "none; dcqcn: a NIC slows down for marks, by the keys below; bbr, swift ...: as for --congestion",   \
      CONGESTION, transport.congestion, 0, 0, NULL, 0)                                                     \
    X("transport.payload", "size", "4096", "payload of a full packet", SIZE32, transport.payload_bytes, 1, \
      65000, NULL, 0)                                                                                      \
    X("transport.header", "size", "78",                                                                    \
      "headers of a data packet: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4, FCS 4", SIZE32,     \
      transport.header_bytes, 0, 500, NULL, 0)                                                             \
    X("transport.ack", "size", "64", "size of an acknowledgement; 0: none, and no retransmission", SIZE32, \
      transport.ack_bytes, 0, 65000, NULL, 0)                                                              \
    X("transport.deadline", "time", "path",                                                                \
      "xp: time limit of a message; path: 10ms, or twice its time in an empty network if that is more",    \
      TIME, transport.deadline_ps, 1, NETSIM_SPAN_MAX, "path", NETSIM_NEVER)                               \
    X("transport.queue_pair", "flow|peer", "flow",                                                         \
      "sr, irn, gbn: one per flow, or one per pair of hosts, with flows as messages "                      \
      "in order",                                                                                          \
      SWITCH, transport.one_queue_pair, 0, 0, NULL, 0)                                                     \
    X("transport.window", "size", "bdp",                                                                   \
      "limit of a flow's payload in flight; bdp: its path's bandwidth-delay product; none: no limit",      \
      SIZE, transport.window_bytes, 1, NETSIM_BYTES_MAX, "bdp|none", NETSIM_WINDOW_BDP)                    \
    X("transport.rto", "number", "3",                                                                      \
      "retransmission timeout, in measured round trips, at least those of the empty path", NUMBER,         \
      transport.rto, 1, 1000000, NULL, 0)                                                                  \
    X("transport.rto_min", "time", "320us", "minimum of the timeout, an allowance for queueing delays",    \
      TIME, transport.rto_min_ps, 0, NETSIM_SPAN_MAX, NULL, 0)                                             \
    X("transport.rto_low", "time", "path",                                                                 \
      "irn: timeout with few packets in flight; path: 100us or 3 round trips of the empty path", TIME,     \
      transport.rto_low_ps, 0, NETSIM_SPAN_MAX, "path", NETSIM_NEVER)                                      \
    X("transport.rto_high", "time", "path",                                                                \
      "irn: timeout with more packets in flight; path: 320us, 3 round trips or rto_low", TIME,             \
      transport.rto_high_ps, 0, NETSIM_SPAN_MAX, "path", NETSIM_NEVER)                                     \
    X("transport.rto_low_packets", "count", "3", "irn: maximum number of packets that counts as few",      \
      COUNT, transport.rto_low_packets, 0, 1000000000, NULL, 0)                                            \
    X("transport.retries", "count", "7", "consecutive timeouts before a flow fails; none: it never fails", \
      COUNT, transport.retries, 1, 200, "none", 0)                                                         \
    X("transport.reorder", "count", "3", "later packets received before a missing packet counts as lost",  \
      COUNT, transport.reorder_packets, 0, 1000000000, NULL, 0)                                            \
    X("transport.rate", "rate", "line", "pace of each flow; line: the rate of its host's cable", RATE,     \
      transport.rate_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, "line", 0)                                     \
    X("transport.nack", "time", "none",                                                                    \
      "gbn: interval of reports of a persistent gap; none: reported once", TIME, transport.nack_ps, 1,     \
      NETSIM_SPAN_MAX, "none", 0)                                                                          \
    X("transport.cnp", "time", "none",                                                                     \
      "dcqcn: minimum interval of a flow's notifications; none: one per marked packet", TIME,              \
      transport.cnp_ps, 1, NETSIM_SPAN_MAX, "none", 0)                                                     \
    X("transport.dcqcn_alpha", "time", "1us",                                                              \
      "dcqcn: update interval of alpha, the estimate of congestion", TIME, transport.dcqcn.alpha_ps,       \
      100 * NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)                                                    \
    X("transport.dcqcn_gain", "ratio", "0.00390625",                                                       \
      "dcqcn: weight of the newest interval in alpha; 1/256", RATIO, transport.dcqcn.gain, 0, 1, NULL, 0)  \
    X("transport.dcqcn_decrease", "time", "4us", "dcqcn: minimum interval between rate cuts", TIME,        \
      transport.dcqcn.decrease_ps, 100 * NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)                       \
    X("transport.dcqcn_increase", "time", "900us",                                                         \
      "dcqcn: interval from a cut or increase to the next increase", TIME, transport.dcqcn.increase_ps,    \
      100 * NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)                                                    \
    X("transport.dcqcn_bytes", "size", "none", "dcqcn: bytes after which the rate increases too", SIZE,    \
      transport.dcqcn.increase_bytes, 1000, NETSIM_BYTES_MAX, "none", 0)                                   \
    X("transport.dcqcn_recovery", "count", "1",                                                            \
      "dcqcn: recovery steps after a cut, each half way back to the target", COUNT,                        \
      transport.dcqcn.recovery_stages, 0, 1000, NULL, 0)                                                   \
    X("transport.dcqcn_additive", "rate", "50Mbit",                                                        \
      "dcqcn: increase of the target by the first step after recovery", RATE,                              \
      transport.dcqcn.additive_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, NULL, 0)                             \
    X("transport.dcqcn_hyper", "rate", "100Mbit", "dcqcn: increase of the target by each later step",      \
      RATE, transport.dcqcn.hyper_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, NULL, 0)                          \
    X("transport.dcqcn_least", "rate", "100Mbit", "dcqcn: minimum rate after a cut", RATE,                 \
      transport.dcqcn.min_bps, NETSIM_RATE_MIN, NETSIM_RATE_MAX, NULL, 0)                                  \
    X("transport.dcqcn_clamp", "off|on", "off",                                                            \
      "dcqcn: a second cut without an increase in between also lowers the target", SWITCH,                 \
      transport.dcqcn.clamp, 0, 0, NULL, 0)                                                                \
    X("transport.data_priority", "count", "3", "0 to 7; higher priorities go first", PRIORITY,             \
      transport.data_priority, 0, 7, NULL, 0)                                                              \
    X("transport.ack_priority", "count", "6", "0 to 7; higher priorities go first", PRIORITY,              \
      transport.ack_priority, 0, 7, NULL, 0)

#define NETSIM_WORKLOAD_KEYS(X)                                                                            \
    X("workload.kind", NETSIM_WORKLOAD_KINDS, "permutation",                                               \
      "pattern: each host to another; many to one; each to all; a list; random times; a collective",       \
      CHOICE, workload.kind, 0, 0, NULL, 0)                                                                \
    X("workload.matrix", "uniform|across|inside", "uniform",                                               \
      "poisson, permutation: any hosts; first half or site to the rest; within a site", CHOICE,            \
      workload.matrix, 0, 0, NULL, 0)                                                                      \
    X("workload.pairs", "pairs", "none",                                                                   \
      "poisson: pairs of sites, such as a>c,b>c=2, where =2 doubles the load", PAIRS, workload.pairs, 0,   \
      0, NULL, 0)                                                                                          \
    X("workload.bytes", "size", "1MiB", "size of flows, unless another key sets it", SIZE, workload.bytes, \
      1, NETSIM_BYTES_MAX, NULL, 0)                                                                        \
    X("workload.senders", "count", "all", "incast: number of senders; all: all hosts except the receiver", \
      COUNT, workload.senders, 1, 65535, "all", 0)                                                         \
    X("workload.receiver", "count", "any", "incast: the receiving host; any: a random one", COUNT,         \
      workload.receiver, 0, 65535, "any", UINT32_MAX)                                                      \
    X("workload.rounds", "count", "1",                                                                     \
      "permutation, incast, all-to-all: number of random rounds; collective: of operations", COUNT,        \
      workload.rounds, 1, 16777216, NULL, 0)                                                               \
    X("workload.gap", "time", "0", "interval between the starts of two rounds", TIME, workload.gap_ps, 0,  \
      NETSIM_SPAN_MAX, NULL, 0)                                                                            \
    X("workload.jitter", "time", "0", "maximum random delay of each flow's start in a round", TIME,        \
      workload.jitter_ps, 0, NETSIM_SPAN_MAX, NULL, 0)                                                     \
    X("workload.load", "ratio", "50%", "poisson: offered payload, as a share of each sender's load_base",  \
      RATIO, workload.load, 0, 10, NULL, 0)                                                                \
    X("workload.load_base", "rate", "line", "poisson: rate to which load refers; line: the host's cable",  \
      RATE, workload.load_base_bps, 1, NETSIM_RATE_MAX, "line", 0)                                         \
    X("workload.duration", "time", "10ms", "poisson: flows begin during this time", TIME,                  \
      workload.duration_ps, 1, NETSIM_SPAN_MAX, NULL, 0)                                                   \
    X("workload.sizes", "file", "",                                                                        \
      "poisson: distribution of sizes; without it all flows have workload.bytes", FILE, workload.sizes, 0, \
      0, NULL, 0)                                                                                          \
    X("workload.flows", "file", "", "flows: the list, one flow per line", FILE, workload.flows, 0, 0,      \
      NULL, 0)                                                                                             \
    X("workload.collective", "collective", "allreduce",                                                    \
      "allreduce, broadcast, alltoall, barrier, ...; bytes: the whole tensor", TEXT, workload.collective,  \
      0, NETSIM_COLLECTIVE_BYTES, NULL, 0)                                                                 \
    X("workload.schedule", "schedule", "default", "collective: ring, binomial-tree, ...", TEXT,            \
      workload.schedule, 0, NETSIM_COLLECTIVE_BYTES, NULL, 0)                                              \
    X("workload.block", "size", "auto",                                                                    \
      "collective: maximum of a flow; auto: 256KiB for broadcast and reduce, else whole transfers", SIZE,  \
      workload.block_bytes, 1, NETSIM_BYTES_MAX, "auto", 0)                                                \
    X("workload.wait", "blocks|steps", "blocks",                                                           \
      "collective: a flow waits for its blocks, or for all data of earlier steps", SWITCH,                 \
      workload.by_steps, 0, 0, NULL, 0)                                                                    \
    X("workload.members", "count", "all", "collective: number of members, evenly spread over all hosts",   \
      COUNT, workload.members, 2, 65536, "all", 0)                                                         \
    X("workload.compute", "time", "0", "collective: compute time of each member between two operations",   \
      TIME, workload.compute_ps, 0, NETSIM_SPAN_MAX, NULL, 0)

#define NETSIM_DISTURB_KEYS(X)                                                                             \
    X("disturb.stragglers", "ratio", "0",                                                                  \
      "share of hosts that pause repeatedly and then send nothing; at least one", RATIO,                   \
      disturb.stragglers, 0, 1, NULL, 0)                                                                   \
    X("disturb.pause", "time", "1ms", "duration of a pause", TIME, disturb.pause_ps, 1, NETSIM_SPAN_MAX,   \
      NULL, 0)                                                                                             \
    X("disturb.pause_every", "time", "10ms", "mean time from the end of a host's pause to its next one",   \
      TIME, disturb.pause_every_ps, 1, NETSIM_SPAN_MAX, NULL, 0)                                           \
    X("disturb.burst", "size", "none", "background traffic: burst from one random host to another", SIZE,  \
      disturb.burst_bytes, 1, NETSIM_BURST_MAX, "none", 0)                                                 \
    X("disturb.burst_every", "time", "1ms", "mean time between two bursts in the network", TIME,           \
      disturb.burst_every_ps, NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)                                  \
    X("disturb.flap", "time", "none", "outage of a random cable between switches; none: never", TIME,      \
      disturb.flap_ps, 1, NETSIM_SPAN_MAX, "none", 0)                                                      \
    X("disturb.flap_every", "time", "100ms", "mean time between two flaps in the network", TIME,           \
      disturb.flap_every_ps, NETSIM_PS_PER_NS, NETSIM_SPAN_MAX, NULL, 0)

#define NETSIM_RUN_KEYS(X)                                                                                 \
    X("run.packets", "count", "4194304",                                                                   \
      "limit of packets in the network; memory grows with their number", COUNT, packets_max, 16,           \
      1000000000, NULL, 0)

#define NETSIM_KEYS(X)                                                                                     \
    NETSIM_TOPOLOGY_KEYS(X)                                                                                \
    NETSIM_SWITCH_KEYS(X)                                                                                  \
    NETSIM_LONG_KEYS(X)                                                                                    \
    NETSIM_TRANSPORT_KEYS(X) NETSIM_WORKLOAD_KEYS(X) NETSIM_DISTURB_KEYS(X) NETSIM_RUN_KEYS(X)

/* ---- keys ------------------------------------------------------------------------------------------ */

/* The table of keys, the key that was meant, and a configuration at its defaults. */

static const struct lh_netsim_key keys[] = {
#define X(name, kind, standard, help, ...) {name, kind, standard, help},
    NETSIM_KEYS(X)
#undef X
};

static const struct netsim_value_rule rules[] = {
#define X(name, kind, standard, help, value, field, min, max, words, word_value)                           \
    {NETSIM_VALUE_##value, offsetof(struct netsim_config, field), min, max, words, word_value},
    NETSIM_KEYS(X)
#undef X
};

#define KEYS (sizeof keys / sizeof keys[0])
_Static_assert(KEYS == sizeof rules / sizeof rules[0], "made from one list");

/* Names are compared up to this length; no key is longer. */
#define NAME_MAX_COMPARED 32u

const struct lh_netsim_key *lh_netsim_keys(size_t *count)
{
    *count = KEYS;
    return keys;
}

/* Letters to insert, take away or replace to make one out of the other. */
static size_t distance(const char *one, const char *other)
{
    size_t rows = strnlen(one, NAME_MAX_COMPARED);
    size_t columns = strnlen(other, NAME_MAX_COMPARED);
    size_t line[NAME_MAX_COMPARED + 1];
    for (size_t column = 0; column <= columns; column++)
        line[column] = column;
    for (size_t row = 1; row <= rows; row++) {
        size_t diagonal = line[0];
        line[0] = row;
        for (size_t column = 1; column <= columns; column++) {
            size_t best = diagonal + (one[row - 1] != other[column - 1]);
            diagonal = line[column];
            if (line[column] + 1 < best)
                best = line[column] + 1;
            if (line[column - 1] + 1 < best)
                best = line[column - 1] + 1;
            line[column] = best;
        }
    }
    return line[columns];
}

static const char *behind_section(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot == NULL ? name : dot + 1;
}

/* The key that is most like the name: in all of it, or in what follows the section. NULL: none is like
 * it. */
static const char *closest(const char *name)
{
    const char *best = NULL;
    size_t best_distance = 3;
    for (size_t i = 0; i < KEYS; i++) {
        size_t far = distance(name, keys[i].name);
        /* The right word in the wrong section, or in none. */
        if (strcmp(behind_section(name), behind_section(keys[i].name)) == 0 && far > 2)
            far = 2;
        if (far < best_distance) {
            best = keys[i].name;
            best_distance = far;
        }
    }
    return best;
}

int netsim_key_find(const char *name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return (int)i;
    const char *meant = closest(name);
    if (meant != NULL)
        return lh_fail(LH_EINVAL, "unknown key \"%.64s\" (did you mean %s?)", name, meant);
    return lh_fail(LH_EINVAL, "unknown key \"%.64s\" ('longhaul sim --keys' lists them)", name);
}

const struct netsim_value_rule *netsim_key_rule(int place)
{
    assert(place >= 0 && (size_t)place < KEYS);
    return &rules[place];
}

int netsim_key_set(struct netsim_config *config, const char *key, const char *value)
{
    int place = netsim_key_find(key);
    if (place < 0)
        return place;
    return netsim_value_read(&rules[place], key, keys[place].kind, value,
                             (unsigned char *)config + rules[place].offset);
}

void netsim_config_init(struct netsim_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < KEYS; i++) {
        if (rules[i].kind == NETSIM_VALUE_FILE)
            continue;
        int rc = netsim_key_set(config, keys[i].name, keys[i].default_value);
        assert(rc == 0);
        (void)rc;
    }
}
