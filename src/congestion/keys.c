/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/controllers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define VALUE_MAX  32 /* bytes of a value, with the final zero */
#define SHOWN_MAX  32 /* bytes of an unknown parameter in a message */
#define VALUE_SIZE sizeof(uint64_t)

_Static_assert(CONGESTION_KEYS *VALUE_SIZE <= LH_CONGESTION_PARAMS, "the values fit");

static int fail_unknown(const struct congestion_keys *keys, const char *text, size_t bytes)
{
    char known[64] = "";
    for (size_t k = 0, used = 0; k < CONGESTION_KEYS && keys->key[k].name && used < sizeof known; k++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", k > 0 ? ", " : "",
                                 keys->key[k].name);
    return lh_fail(LH_EINVAL, "%s has no parameter \"%.*s\" (use %s)", keys->controller,
                   (int)(bytes < SHOWN_MAX ? bytes : SHOWN_MAX), text, known);
}

static int take_value(const struct congestion_keys *keys, const struct congestion_key *key,
                      const char *text, size_t bytes, uint64_t *value)
{
    char copy[VALUE_MAX];
    if (bytes >= sizeof copy)
        return lh_fail(LH_EINVAL, "%s: value of %s too long (use %s)", keys->controller, key->name,
                       key->range);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    int failed = key->parse(copy, value);
    if (failed == 0 && (*value < key->minimum || *value > key->maximum))
        return lh_fail(LH_EINVAL, "%s: %s=%s: out of range (%s)", keys->controller, key->name, copy,
                       key->range);
    return failed == 0 ? 0 : -LH_EINVAL; /* lh_parse_…() has said why */
}

static int take(const struct congestion_keys *keys, const char *text, size_t bytes,
                uint64_t values[CONGESTION_KEYS])
{
    const char *equals = memchr(text, '=', bytes);
    size_t name_bytes = equals ? (size_t)(equals - text) : bytes;
    for (size_t k = 0; k < CONGESTION_KEYS && keys->key[k].name; k++) {
        const struct congestion_key *key = &keys->key[k];
        if (strlen(key->name) != name_bytes || memcmp(key->name, text, name_bytes) != 0)
            continue;
        if (!equals)
            return lh_fail(LH_EINVAL, "%s: %s has no value (use %s=…, %s)", keys->controller, key->name,
                           key->name, key->range);
        if (values[k] != 0)
            return lh_fail(LH_EINVAL, "%s: %s is repeated (remove one)", keys->controller, key->name);
        return take_value(keys, key, equals + 1, bytes - name_bytes - 1, &values[k]);
    }
    return fail_unknown(keys, text, bytes);
}

int congestion_keys_parse(const struct congestion_keys *keys, const char *text,
                          uint8_t params[LH_CONGESTION_PARAMS])
{
    uint64_t values[CONGESTION_KEYS] = {0};
    while (*text != '\0') { /* each turn takes a parameter off the text */
        size_t bytes = strcspn(text, ",");
        int failed = take(keys, text, bytes, values);
        if (failed != 0)
            return failed;
        text += bytes;
        if (*text == ',' && *++text == '\0')
            return lh_fail(LH_EINVAL, "%s: no parameter after the last comma (remove it)",
                           keys->controller);
    }
    memset(params, 0, LH_CONGESTION_PARAMS);
    memcpy(params, values, sizeof values);
    return 0;
}

uint64_t congestion_keys_value(const uint8_t params[LH_CONGESTION_PARAMS], unsigned key, uint64_t otherwise)
{
    uint64_t value;
    assert(key < CONGESTION_KEYS);
    memcpy(&value, params + key * VALUE_SIZE, VALUE_SIZE);
    return value != 0 ? value : otherwise;
}
