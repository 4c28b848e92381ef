/*
 * scheme_text.c - schemes of the model as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <string.h>

#include "base/error.h"
#include "schemes/scheme_table.h"

static int fail_unknown(const char *name, size_t bytes)
{
    char known[256];
    struct model_text text = {known, sizeof known, 0};
    for (const struct scheme_entry *const *e = scheme_table(); *e; e++)
        model_text_add(&text, "%s%s", text.used > 0 ? ", " : "", (*e)->shown.name);
    return lh_fail(LH_EINVAL, "unknown scheme \"%.*s\" (use one of %s)", (int)bytes, name, known);
}

/* Of a scheme whose parameters mean nothing to the model. */
static int check_by_machines(const struct scheme_entry *entry, const char *text)
{
    uint8_t params[LH_SCHEME_PARAMS];
    return entry->shown.machines->parse(text, params);
}

static int take(const struct scheme_entry *entry, const struct model_parameter *parameter,
                struct lh_model_scheme *scheme)
{
    int failed = 0;
    if (entry->take && entry->take(parameter, scheme, &failed))
        return failed;
    if (entry->predictor->rto_rtts && model_parameter_is(parameter, "rto"))
        return model_parameter_rto(parameter, 0, &scheme->rto_rtts);
    return lh_fail(LH_EINVAL, "%s has no parameter \"%.*s\"; it has %s", entry->shown.name,
                   parameter->length, parameter->text, entry->parameters);
}

/* What stands behind the name, from its comma or colon on. */
static int take_all(const struct scheme_entry *entry, const char *text, struct lh_model_scheme *scheme)
{
    if (!entry->parameters)
        return check_by_machines(entry, *text != '\0' ? text + 1 : text);
    while (*text != '\0') { /* each round takes a parameter off the text */
        struct model_parameter parameter = model_parameter_at(text + 1);
        int failed = take(entry, &parameter, scheme);
        if (failed)
            return failed;
        text = parameter.text + parameter.length;
    }
    return 0;
}

int lh_model_scheme_parse(const char *text, struct lh_model_scheme *scheme)
{
    const char *rest;
    size_t length = scheme_table_name(text, &rest);
    const struct scheme_entry *entry = scheme_table_named(text, length);
    if (!entry)
        return fail_unknown(text, length);
    struct lh_model_scheme read = {.kind = entry->shown.kind};
    if (entry->defaults)
        entry->defaults(&read);
    int failed = take_all(entry, text + length, &read);
    if (!failed)
        failed = model_predictor_check(entry->predictor, &read);
    if (failed)
        return failed;
    *scheme = read;
    return 0;
}

char *lh_model_scheme_format(const struct lh_model_scheme *scheme, char *out, size_t size)
{
    const struct scheme_entry *entry = scheme_table_kind(scheme->kind);
    struct model_text text = {out, size, 0};
    model_text_add(&text, "%s", entry ? entry->shown.name : "?");
    if (entry && entry->format)
        entry->format(scheme, &text);
    else if (entry && entry->predictor->rto_rtts && scheme->rto_rtts != 0 &&
             scheme->rto_rtts != entry->predictor->rto_rtts(scheme))
        model_text_add_number(&text, "rto", scheme->rto_rtts);
    return out;
}

bool lh_model_scheme_codes(const struct lh_model_scheme *scheme)
{
    const struct scheme_entry *entry = scheme_table_kind(scheme->kind);
    return entry && entry->shown.codes && (scheme->k > 0 || !entry->code_is_optional);
}
