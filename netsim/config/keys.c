/*
 * keys.c - the table of keys, the key that was meant, and a configuration at its defaults.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/config/keys.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "netsim/config/key_table.h"

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
