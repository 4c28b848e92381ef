/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/scheme_choice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "schemes/auto_choice.h"
#include "schemes/scheme_table.h"

#define CODED_CHUNKS 65536u /* a code that has no parity for so many has none */

static bool name_is(const struct lh_scheme *scheme, const char *name, size_t bytes)
{
    return strlen(scheme->name) == bytes && memcmp(scheme->name, name, bytes) == 0;
}

static const struct lh_scheme *find_by_name(const struct lh_scheme *own, const char *name, size_t bytes)
{
    if (own && name_is(own, name, bytes))
        return own;
    return scheme_table_machines(name, bytes);
}

static int fail_unknown(const struct lh_scheme *own, const char *name, size_t bytes)
{
    char known[256];
    size_t used = 0;
    known[0] = '\0';
    if (own)
        used = (size_t)snprintf(known, sizeof known, " %s", own->name);
    for (const struct lh_scheme *const *s = lh_schemes(); *s && used < sizeof known; s++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", (*s)->name);
    return lh_fail(LH_EINVAL, "reliability \"%.*s\": unknown (use one of auto%s)", (int)bytes, name, known);
}

/* A scheme of the caller's own may have that name, too. */
static bool is_auto(const struct lh_scheme *own, const char *name, size_t bytes)
{
    return strlen(SCHEME_NAME_AUTO) == bytes && memcmp(SCHEME_NAME_AUTO, name, bytes) == 0 &&
           !(own && name_is(own, name, bytes));
}

static int choose_auto(const char *rest, struct scheme_choice *choice)
{
    struct scheme_choice chosen = {.automatic = true};
    int error = auto_params_parse(rest, &chosen.by, &chosen.max_overhead);
    if (error)
        return error;
    chosen.scheme = scheme_table_machines(SCHEME_NAME_PLAIN, strlen(SCHEME_NAME_PLAIN));
    error = chosen.scheme->parse("", chosen.params);
    if (!error)
        *choice = chosen;
    return error;
}

int scheme_choose(const struct lh_attr *attr, struct scheme_choice *choice)
{
    const char *preset = attr->scheme ? attr->scheme->name : SCHEME_NAME_DEFAULT;
    const char *text = attr->reliability ? attr->reliability : preset;
    const char *rest;
    size_t name_bytes = scheme_table_name(text, &rest);
    if (name_bytes > 0 && text[name_bytes] != '\0' && *rest == '\0')
        return lh_fail(LH_EINVAL, "reliability \"%s\": no parameter after the %s (leave it out)", text,
                       text[name_bytes] == ',' ? "comma" : "colon");
    if (attr->scheme && attr->scheme->id < LH_SCHEME_ID_USER)
        return lh_fail(LH_EINVAL, "scheme %s: id %u out of range (%u to 255 for your own)",
                       attr->scheme->name, attr->scheme->id, LH_SCHEME_ID_USER);
    if (is_auto(attr->scheme, text, name_bytes))
        return choose_auto(rest, choice);
    const struct lh_scheme *scheme = find_by_name(attr->scheme, text, name_bytes);
    if (!scheme)
        return fail_unknown(attr->scheme, text, name_bytes);
    struct scheme_choice chosen = {.scheme = scheme};
    int error = scheme->parse(rest, chosen.params);
    if (error)
        return error;
    *choice = chosen;
    return 0;
}

const struct lh_scheme *scheme_find(const struct lh_scheme *own, uint8_t id)
{
    if (own && own->id == id)
        return own;
    for (const struct lh_scheme *const *s = lh_schemes(); *s; s++)
        if ((*s)->id == id)
            return *s;
    return NULL;
}

uint16_t scheme_announcements(void)
{
    return scheme_table_announcements();
}

bool scheme_is_known(const struct scheme_choice *choice, uint16_t flags)
{
    return (scheme_table_announced(choice->scheme) & ~flags) == 0;
}

bool scheme_codes(const struct scheme_choice *choice)
{
    const struct lh_scheme_coding *coding = choice->scheme->coding;
    return coding && coding->extra_chunks(choice->params, CODED_CHUNKS) > 0;
}

uint64_t scheme_segment_bytes(const struct scheme_choice *choice, const struct lh_attr *attr)
{
    if (!choice->scheme->coding)
        return attr->slot_bytes;
    uint32_t slot_chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes);
    uint64_t chunks = choice->scheme->coding->transfer_chunks_max(choice->params, slot_chunks);
    assert(chunks <= slot_chunks);
    return chunks * attr->chunk_bytes;
}
