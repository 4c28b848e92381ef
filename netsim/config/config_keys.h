/*
 * config_keys.h - the configuration of a simulation: its keys, reading and checking of values.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_CONFIG_KEYS_H
#define LH_NETSIM_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/netsim.h>

#include "netsim/base/netsim_config.h"

/* ---- key value ------------------------------------------------------------------------------------- */

/* The values of configuration keys: from words to numbers, with their ranges. */

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

/* ---- keys ------------------------------------------------------------------------------------------ */

/* Its place in lh_netsim_keys(); -LH_EINVAL when there is no such key, with what may have been meant in
 * lh_last_error(). */
int netsim_key_find(const char *name);
/* How the key of that place is read. */
const struct netsim_value_rule *netsim_key_rule(int place);

/* Every key has its default, and no file is given. */
void netsim_config_init(struct netsim_config *config);
/* Sets one key from text, but for files: those keep their text. -LH_EINVAL or
 * -LH_ERANGE with key, value and remedy in lh_last_error(). */
int netsim_key_set(struct netsim_config *config, const char *key, const char *value);

/* ---- simulation config ----------------------------------------------------------------------------- */

/* The configuration as its owner sees it: keys as text, and the files that it keeps. */

const struct netsim_config *netsim_config_values(const struct lh_netsim_config *config);

/* ---- config check ---------------------------------------------------------------------------------- */

/* Conditions on several keys of a configuration together. */

/* 0; -LH_EINVAL or -LH_ERANGE with keys, values and remedy in lh_last_error(). */
int netsim_config_check(const struct netsim_config *config);

/* ---- key use --------------------------------------------------------------------------------------- */

/*
 * Which keys a configuration does not read: those of another topology or workload, and those of
 * what is switched off.
 */

/* The key whose value makes that nothing reads `key`, such as "workload.kind"; NULL: it is read. `key` is one
 * of the table's. */
const char *netsim_key_unread(const struct netsim_config *config, const char *key);

#endif
