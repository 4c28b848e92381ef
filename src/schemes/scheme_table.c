/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/scheme_table.h"

#include <string.h>

#include "schemes/bounded/scheme.h"
#include "schemes/ec/scheme.h"
#include "schemes/hybrid/scheme.h"
#include "schemes/reference/scheme.h"
#include "schemes/sr/scheme.h"

/* Every scheme, in the order in which `longhaul plan` lists them. X(scheme, its place in lh_schemes(), from
 * 0: the first is the default), M(scheme that only the model knows). A new one comes last, with the next
 * place. */
#define SCHEMES(X, M)                                                                                      \
    X(sr_rto, 1)                                                                                           \
    X(sr_nack, 0)                                                                                          \
    M(go_back_n)                                                                                           \
    X(ec_mds, 2)                                                                                           \
    X(ec_xor, 3)                                                                                           \
    X(bounded, 4)                                                                                          \
    X(hybrid, 5)                                                                                           \
    M(ideal)

#define NOTHING(scheme)
#define PLACED(scheme, place)       [place] = &scheme##_scheme,
#define COUNTED(scheme, place)      +1
#define ENTRY_OF(scheme)            &scheme##_entry,
#define ENTRY_PLACED(scheme, place) ENTRY_OF(scheme)
#define SHOWN_OF(scheme)            &scheme##_entry.shown,
#define SHOWN_PLACED(scheme, place) SHOWN_OF(scheme)

const struct lh_scheme *const *lh_schemes(void)
{
    static const struct lh_scheme *const all[SCHEMES(COUNTED, NOTHING) + 1] = {SCHEMES(PLACED, NOTHING)};
    return all;
}

const struct lh_model_entry *const *lh_model_schemes(void)
{
    static const struct lh_model_entry *const all[] = {SCHEMES(SHOWN_PLACED, SHOWN_OF) NULL};
    return all;
}

const struct scheme_entry *const *scheme_table(void)
{
    static const struct scheme_entry *const all[] = {SCHEMES(ENTRY_PLACED, ENTRY_OF) NULL};
    return all;
}

const struct scheme_entry *scheme_table_named(const char *name, size_t bytes)
{
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++)
        if (strlen((*e)->shown.name) == bytes && memcmp((*e)->shown.name, name, bytes) == 0)
            return *e;
    return NULL;
}

size_t scheme_table_name(const char *text, const char **rest)
{
    size_t bytes = strcspn(text, ","), before = strcspn(text, ":");
    if (before < bytes && !scheme_table_named(text, bytes) && scheme_table_named(text, before))
        bytes = before;
    *rest = text[bytes] == '\0' ? "" : text + bytes + 1;
    return bytes;
}

const struct scheme_entry *scheme_table_kind(enum lh_model_kind kind)
{
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++)
        if ((*e)->shown.kind == kind)
            return *e;
    return NULL;
}

const struct lh_scheme *scheme_table_machines(const char *name, size_t bytes)
{
    const struct scheme_entry *entry = scheme_table_named(name, bytes);
    return entry ? entry->shown.machines : NULL;
}

uint16_t scheme_table_announced(const struct lh_scheme *scheme)
{
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++)
        if ((*e)->shown.machines && (*e)->shown.machines->id == scheme->id)
            return (*e)->announced;
    return 0; /* one of the caller's own */
}

uint16_t scheme_table_announcements(void)
{
    uint16_t flags = 0;
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++)
        flags |= (*e)->announced;
    return flags;
}
