/*
 * key_value.h - the values of configuration keys: from words to numbers, with their ranges.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_KEY_VALUE_H
#define LH_NETSIM_CONFIG_KEY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is written, and the type of its field. */
enum netsim_value_kind {
    NETSIM_VALUE_SIZE,       /* uint64_t, bytes */
    NETSIM_VALUE_SIZE32,     /* uint32_t, bytes */
    NETSIM_VALUE_RATE,       /* uint64_t, bit/s */
    NETSIM_VALUE_TIME,       /* netsim_time; also a distance: light in fibre needs 5 us a km */
    NETSIM_VALUE_RATIO,      /* double; 30% or 0.3 */
    NETSIM_VALUE_NUMBER,     /* double */
    NETSIM_VALUE_COUNT,      /* uint32_t */
    NETSIM_VALUE_PRIORITY,   /* uint8_t */
    NETSIM_VALUE_SWITCH,     /* bool: the second of the choices is true */
    NETSIM_VALUE_CHOICE,     /* an enum from 0, in the order of the choices */
    NETSIM_VALUE_FAULTS,     /* struct lh_link_spec without rate and delay */
    NETSIM_VALUE_PAIRS,      /* struct netsim_pairs */
    NETSIM_VALUE_CONGESTION, /* struct netsim_congestion_config */
    NETSIM_VALUE_TEXT,       /* char[max], checked when the simulation is created */
    NETSIM_VALUE_FILE,       /* struct netsim_text */
};

struct netsim_value_rule {
    enum netsim_value_kind kind;
    size_t offset;       /* of the field, in struct netsim_config */
    uint64_t min;        /* of sizes, rates, times (ps), counts */
    uint64_t max;        /* of these, and of ratios and numbers */
    const char *words;   /* "a" or "a|b": a stands for word_value, b for 0; NULL: there are none */
    uint64_t word_value; /* of sizes, rates, times, counts; a ratio or number is 0 then */
};

/* Reads the value of a key into *field, which stays as it is when that fails: -LH_EINVAL or -LH_ERANGE with
 * key, value, range and remedy in lh_last_error(). `choices`: "a|b|c". */
int netsim_value_read(const struct netsim_value_rule *rule, const char *key, const char *choices,
                      const char *value, void *field);

#endif
