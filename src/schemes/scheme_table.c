/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/scheme_table.h"

#include <math.h>
#include <string.h>

#include <longhaul/model.h>

#include "base/error.h"
#include "model/predictor.h"
#include "schemes/bounded_scheme.h"
#include "schemes/ec_scheme.h"
#include "schemes/hybrid_scheme.h"
#include "schemes/reference_scheme.h"
#include "schemes/sr_scheme.h"

/* ---- scheme table ---------------------------------------------------------------------------------- */

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

/* ---- scheme text ----------------------------------------------------------------------------------- */

/* Schemes of the model as text. */

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

/* ---- scheme model ---------------------------------------------------------------------------------- */

static int find(const struct lh_model_scheme *scheme, const struct model_predictor **predictor)
{
    const struct scheme_entry *entry = scheme_table_kind(scheme->kind);
    if (!entry)
        return lh_fail(LH_EINVAL, "unknown scheme %d (enum lh_model_kind)", (int)scheme->kind);
    *predictor = entry->predictor;
    return 0;
}

int scheme_model_start(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_prediction *prediction)
{
    const struct model_predictor *predictor = NULL;
    int failed = find(scheme, &predictor);
    return failed ? failed : model_predictor_start(predictor, path, scheme, prediction);
}

int lh_model_predict(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct lh_model_times *times)
{
    const struct model_predictor *predictor = NULL;
    int failed = find(scheme, &predictor);
    return failed ? failed : model_predictor_times(predictor, path, scheme, times);
}

int lh_model_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double share,
                      double *seconds)
{
    struct model_prediction prediction;
    if (!(share >= 0) || !(share < 1))
        return lh_fail(LH_ERANGE, "quantile %g: out of range (0 to below 1)", share);
    int failed = scheme_model_start(path, scheme, &prediction);
    if (failed)
        return failed;
    *seconds = prediction.predictor->quantile(&prediction, share);
    return 0;
}

int lh_model_cdf(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double seconds,
                 double *share)
{
    struct model_prediction prediction;
    if (isnan(seconds))
        return lh_fail(LH_ERANGE, "time: not a number (use seconds)");
    int failed = scheme_model_start(path, scheme, &prediction);
    if (failed)
        return failed;
    *share = prediction.predictor->cdf(&prediction, seconds);
    return 0;
}

int lh_model_collective_bound(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                              enum lh_model_collective collective, uint32_t datacenters, double *ideal_s,
                              double *mean_s)
{
    struct lh_model_path one;
    struct lh_model_times times;
    int failed = model_collective_path(path, collective, datacenters, &one);
    if (!failed)
        failed = lh_model_predict(&one, scheme, &times);
    if (failed)
        return failed;
    uint32_t rounds = model_collective_rounds(collective, datacenters);
    *ideal_s = rounds * times.ideal_s;
    *mean_s = rounds * times.mean_s;
    return 0;
}
