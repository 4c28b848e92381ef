/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/name.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

#define NUMBER_MAX 65535u

static const char *const protections[VERBS_PROTECTIONS] = {
    [VERBS_PROTECT_ANY] = "any",
    [VERBS_PROTECT_INDIRECT] = "indirect",
    [VERBS_PROTECT_WINDOW] = "window",
    [VERBS_PROTECT_MR] = "mr",
};

const char *verbs_protection_name(enum verbs_protection protection)
{
    return protections[protection];
}

/* A part of the name: `length` bytes from `text`. */
struct part {
    const char *text;
    size_t length;
};

static bool part_is(struct part part, const char *word)
{
    return strlen(word) == part.length && memcmp(part.text, word, part.length) == 0;
}

/* Whether the part is KEY=…; `value` is what stands behind. */
static bool part_has_key(struct part part, const char *key, struct part *value)
{
    size_t length = strlen(key);
    if (part.length <= length || memcmp(part.text, key, length) != 0 || part.text[length] != '=')
        return false;
    *value = (struct part){part.text + length + 1, part.length - length - 1};
    return true;
}

static bool read_number(struct part part, uint32_t *number)
{
    uint32_t value = 0;
    for (size_t i = 0; i < part.length; i++) {
        if (part.text[i] < '0' || part.text[i] > '9')
            return false;
        value = 10 * value + (uint32_t)(part.text[i] - '0');
        if (value > NUMBER_MAX)
            return false;
    }
    *number = value;
    return part.length > 0;
}

static bool read_protection(struct part part, enum verbs_protection *protection)
{
    for (uint32_t i = 0; i < VERBS_PROTECTIONS; i++) {
        if (part_is(part, protections[i])) {
            *protection = (enum verbs_protection)i;
            return true;
        }
    }
    return false;
}

static bool read_setting(struct part part, struct verbs_name *name)
{
    struct part value;
    uint32_t number;
    if (part_has_key(part, "gid", &value)) {
        bool valid = read_number(value, &number);
        name->gid_index = valid ? (int32_t)number : -1;
        return valid;
    }
    if (part_has_key(part, "ip", &value)) {
        name->family = part_is(value, "6") ? 6 : 4;
        return part_is(value, "4") || part_is(value, "6");
    }
    if (part_has_key(part, "protect", &value))
        return read_protection(value, &name->protection);
    if (part_has_key(part, "srq", &value)) {
        name->own_queues = part_is(value, "no");
        return part_is(value, "no") || part_is(value, "yes");
    }
    return false;
}

static bool read_part(struct part part, uint32_t index, struct verbs_name *name)
{
    if (memchr(part.text, '=', part.length) != NULL)
        return read_setting(part, name);
    if (index == 0) {
        if (part.length >= sizeof name->device)
            return false;
        memcpy(name->device, part.text, part.length);
        return true;
    }
    return index == 1 && read_number(part, &name->port) && name->port > 0;
}

int verbs_name_parse(const char *text, struct verbs_name *name)
{
    *name = (struct verbs_name){.gid_index = -1};
    struct part part = {text, 0};
    for (uint32_t index = 0;; index++) { /* each round takes a part; the last one ends the text */
        part.length = strcspn(part.text, "/");
        if (!read_part(part, index, name))
            return lh_fail(LH_EDEVICE,
                           "device \"verbs:%s\": invalid \"%.*s\" (syntax: DEVICE/PORT/gid=INDEX; options "
                           "ip=4, ip=6, protect=window, protect=mr, protect=indirect, srq=no)",
                           text, (int)part.length, part.text);
        part.text += part.length;
        if (*part.text == '\0')
            return 0;
        part.text++;
    }
}
