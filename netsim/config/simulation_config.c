/*
 * simulation_config.c - see simulation_config.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/config/simulation_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "netsim/config/key_use.h"
#include "netsim/config/keys.h"

/* The texts in it are its own. */
struct lh_netsim_config {
    struct netsim_config config;
};

/* A list of 16 million flows is shorter. */
#define TEXT_BYTES_MAX ((size_t)1 << 30)

static struct netsim_text *text_of(struct lh_netsim_config *config, const struct netsim_value_rule *rule)
{
    return (struct netsim_text *)(void *)((unsigned char *)&config->config + rule->offset);
}

const struct netsim_config *netsim_config_values(const struct lh_netsim_config *config)
{
    return &config->config;
}

int lh_netsim_config_create(struct lh_netsim_config **config)
{
    struct lh_netsim_config *made = malloc(sizeof *made);
    if (made == NULL)
        return lh_fail(LH_ENOMEM, "no memory for the configuration of a simulation");
    netsim_config_init(&made->config);
    *config = made;
    return 0;
}

static void forget_text(struct netsim_text *text)
{
    /* Both are ours, made by keep_text(); const only for those who read them. */
    free((void *)(uintptr_t)text->data);
    free((void *)(uintptr_t)text->name);
    *text = (struct netsim_text){0};
}

void lh_netsim_config_destroy(struct lh_netsim_config *config)
{
    size_t count = 0;
    lh_netsim_keys(&count);
    if (config == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        if (netsim_key_rule((int)i)->kind == NETSIM_VALUE_FILE)
            forget_text(text_of(config, netsim_key_rule((int)i)));
    free(config);
}

static int keep_text(struct netsim_text *kept, const char *name, const char *text, size_t bytes)
{
    char *data = malloc(bytes + 1);
    char *own_name = strdup(name);
    if (data == NULL || own_name == NULL) {
        free(data);
        free(own_name);
        return lh_fail(LH_ENOMEM, "%.64s: no memory for a copy of its %zu bytes", name, bytes);
    }
    if (bytes > 0)
        memcpy(data, text, bytes);
    data[bytes] = '\0';
    forget_text(kept);
    *kept = (struct netsim_text){.data = data, .bytes = bytes, .name = own_name};
    return 0;
}

int lh_netsim_config_text(struct lh_netsim_config *config, const char *key, const char *name,
                          const char *text, size_t bytes)
{
    int place = netsim_key_find(key);
    if (place < 0)
        return place;
    if (name == NULL)
        name = key;
    if (netsim_key_rule(place)->kind != NETSIM_VALUE_FILE)
        return lh_fail(LH_EINVAL, "%s is not a file but a %s (use lh_netsim_config_set())", key,
                       lh_netsim_keys(&(size_t){0})[place].kind);
    if (text == NULL && bytes > 0)
        return lh_fail(LH_EINVAL, "%s: %.64s has %zu bytes and no text (give it)", key, name, bytes);
    if (bytes > TEXT_BYTES_MAX)
        return lh_fail(LH_EINVAL, "%s: %.64s has %zu bytes, at most %zu are read", key, name, bytes,
                       TEXT_BYTES_MAX);
    return keep_text(text_of(config, netsim_key_rule(place)), name, text, bytes);
}

int lh_netsim_config_set(struct lh_netsim_config *config, const char *key, const char *value)
{
    int place = netsim_key_find(key);
    if (place >= 0 && netsim_key_rule(place)->kind == NETSIM_VALUE_FILE)
        return lh_netsim_config_text(config, key, key, value, strlen(value));
    return netsim_key_set(&config->config, key, value);
}

const char *lh_netsim_config_unread(const struct lh_netsim_config *config, const char *key)
{
    return netsim_key_unread(&config->config, key);
}
