/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/scheme.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"
#include "model/binomial.h"

static const char *const kind_names[] = {
    [LH_MODEL_IDEAL] = "ideal",   [LH_MODEL_SR_RTO] = "sr-rto", [LH_MODEL_SR_NACK] = "sr-nack",
    [LH_MODEL_EC_MDS] = "ec:mds", [LH_MODEL_EC_XOR] = "ec:xor", [LH_MODEL_GBN] = "gbn",
};

#define KINDS (sizeof kind_names / sizeof kind_names[0])

bool model_scheme_codes(const struct lh_model_scheme *scheme)
{
    return scheme->kind == LH_MODEL_EC_MDS || scheme->kind == LH_MODEL_EC_XOR;
}

static double default_rto(const struct lh_model_scheme *scheme)
{
    bool asked = scheme->kind == LH_MODEL_SR_NACK ||
                 (model_scheme_codes(scheme) && scheme->fallback == LH_MODEL_FALLBACK_IR);
    return asked ? MODEL_RTO_NACK : MODEL_RTO_DEFAULT;
}

double model_scheme_rto(const struct lh_model_scheme *scheme)
{
    return scheme->rto_rtts > 0 ? scheme->rto_rtts : default_rto(scheme);
}

/* ---- what can be ------------------------------------------------------------------------------------- */

static int check_code(const struct lh_model_scheme *scheme)
{
    const char *name = kind_names[scheme->kind];
    if (scheme->k < 1 || scheme->m < 1)
        return lh_fail(LH_EINVAL, "%s with k=%u and m=%u is no code; both are at least 1, as in k=32,m=8",
                       name, scheme->k, scheme->m);
    if (scheme->k > MODEL_COUNT_MAX || scheme->m > MODEL_COUNT_MAX ||
        scheme->k + scheme->m > MODEL_COUNT_MAX)
        return lh_fail(LH_EINVAL, "k=%u and m=%u are more than %u together; make one of them smaller",
                       scheme->k, scheme->m, MODEL_COUNT_MAX);
    if (scheme->kind == LH_MODEL_EC_XOR && scheme->m > scheme->k)
        return lh_fail(LH_EINVAL,
                       "ec:xor has no use for more parity (m=%u) than data (k=%u); make m at most %u",
                       scheme->m, scheme->k, scheme->k);
    if (!(scheme->beta >= 0) || !(scheme->beta <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE, "beta=%g cannot be; it is a number of round trips from 0, such as 0.5",
                       scheme->beta);
    if (scheme->fallback != LH_MODEL_FALLBACK_IR && scheme->fallback != LH_MODEL_FALLBACK_SR)
        return lh_fail(LH_EINVAL, "fallback %d is none; use LH_MODEL_FALLBACK_IR or LH_MODEL_FALLBACK_SR",
                       (int)scheme->fallback);
    if (!(scheme->encode_bytes_per_s >= 0) || !isfinite(scheme->encode_bytes_per_s))
        return lh_fail(LH_ERANGE,
                       "a core that encodes %g bytes a second cannot be; use 0 when it is not known",
                       scheme->encode_bytes_per_s);
    return 0;
}

int model_scheme_check(const struct lh_model_scheme *scheme)
{
    if ((unsigned)scheme->kind >= KINDS)
        return lh_fail(LH_EINVAL, "scheme %d is none of enum lh_model_kind", (int)scheme->kind);
    if (scheme->timing != LH_MODEL_TIMING_PAPER && scheme->timing != LH_MODEL_TIMING_LONGHAUL)
        return lh_fail(LH_EINVAL,
                       "timing %d is none; use LH_MODEL_TIMING_PAPER or LH_MODEL_TIMING_LONGHAUL",
                       (int)scheme->timing);
    if (scheme->rto_rtts != 0 && !(scheme->rto_rtts >= 1 && scheme->rto_rtts <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE,
                       "a timeout of %g round trips cannot be; it has at least 1, or 0 for the default",
                       scheme->rto_rtts);
    return model_scheme_codes(scheme) ? check_code(scheme) : 0;
}

/* ---- as text ----------------------------------------------------------------------------------------- */

/* One "key=value", not ended by zero. */
struct item {
    const char *text;
    int length;
    const char *value; /* NULL: there is no '=' */
    int key_length;
};

static struct item item_of(const char *text)
{
    struct item item = {.text = text, .length = (int)strcspn(text, ",")};
    const char *equals = memchr(text, '=', (size_t)item.length);
    item.key_length = equals ? (int)(equals - text) : item.length;
    item.value = equals ? equals + 1 : NULL;
    return item;
}

static bool is_key(const struct item *item, const char *key)
{
    return item->value && strlen(key) == (size_t)item->key_length &&
           memcmp(key, item->text, strlen(key)) == 0;
}

static int number(const struct item *item, double *value)
{
    const char *end = item->value;
    if (lh_decimal_read_double(&end, value) != 0 || end != item->text + item->length)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a number; write it like %.*s=2", item->length,
                       item->text, item->key_length, item->text);
    return 0;
}

static int whole_number(const struct item *item, uint32_t *value)
{
    double read;
    int failed = number(item, &read);
    if (failed)
        return failed;
    if (read != floor(read) || read > 65535)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a whole number up to 65535; write it like %.*s=8",
                       item->length, item->text, item->key_length, item->text);
    *value = (uint32_t)read;
    return 0;
}

static int take_fallback(const struct item *item, enum lh_model_fallback *fallback)
{
    int length = item->length - item->key_length - 1;
    bool sr = length == 2 && memcmp(item->value, "sr", 2) == 0;
    if (!sr && (length != 2 || memcmp(item->value, "ir", 2) != 0))
        return lh_fail(LH_EINVAL, "\"%.*s\" is no fallback; write fallback=ir or fallback=sr", item->length,
                       item->text);
    *fallback = sr ? LH_MODEL_FALLBACK_SR : LH_MODEL_FALLBACK_IR;
    return 0;
}

static int take_rto(const struct item *item, double more, double *rto)
{
    double value;
    int failed = number(item, &value);
    if (failed)
        return failed;
    if (!(value + more >= 1))
        return lh_fail(LH_ERANGE, "\"%.*s\" makes a timeout of %g round trips; it has at least 1",
                       item->length, item->text, value + more);
    *rto = value + more;
    return 0;
}

static int take_item(const struct item *item, struct lh_model_scheme *scheme)
{
    bool codes = model_scheme_codes(scheme);
    if (scheme->kind != LH_MODEL_IDEAL && is_key(item, "rto"))
        return take_rto(item, 0, &scheme->rto_rtts);
    if (scheme->kind == LH_MODEL_SR_RTO && is_key(item, "alpha"))
        return take_rto(item, 1, &scheme->rto_rtts);
    if (codes && is_key(item, "k"))
        return whole_number(item, &scheme->k);
    if (codes && is_key(item, "m"))
        return whole_number(item, &scheme->m);
    if (codes && is_key(item, "spread"))
        return whole_number(item, &scheme->spread);
    if (codes && is_key(item, "beta"))
        return number(item, &scheme->beta);
    if (codes && is_key(item, "fallback"))
        return take_fallback(item, &scheme->fallback);
    return lh_fail(LH_EINVAL, "%s has no parameter \"%.*s\"; it has %s", kind_names[scheme->kind],
                   item->length, item->text,
                   codes                             ? "k, m, spread, beta, fallback and rto"
                   : scheme->kind == LH_MODEL_SR_RTO ? "alpha and rto"
                   : scheme->kind == LH_MODEL_IDEAL  ? "none"
                                                     : "rto");
}

int lh_model_scheme_parse(const char *text, struct lh_model_scheme *scheme)
{
    size_t length = strcspn(text, ",");
    struct lh_model_scheme read = {.kind = (enum lh_model_kind)KINDS};
    for (unsigned kind = 0; kind < KINDS; kind++)
        if (strlen(kind_names[kind]) == length && memcmp(kind_names[kind], text, length) == 0)
            read.kind = (enum lh_model_kind)kind;
    if ((unsigned)read.kind == KINDS)
        return lh_fail(
            LH_EINVAL,
            "the model knows no scheme \"%.*s\"; it knows ideal, sr-rto, sr-nack, ec:mds, ec:xor and gbn",
            (int)length, text);
    if (model_scheme_codes(&read)) {
        read.k = 32;
        read.m = 8;
        read.beta = MODEL_BETA_DEFAULT;
    }
    for (const char *at = text + length; *at != '\0';) { /* each round takes an item off the text */
        struct item item = item_of(at + 1);
        int failed = take_item(&item, &read);
        if (failed)
            return failed;
        at = item.text + item.length;
    }
    int failed = model_scheme_check(&read);
    if (failed)
        return failed;
    *scheme = read;
    return 0;
}

static size_t append(char *out, size_t size, size_t used, const char *name, double value)
{
    char text[LH_DECIMAL_DOUBLE_MAX];
    lh_decimal_format_double(value, text, sizeof text);
    int length =
        snprintf(used < size ? out + used : NULL, used < size ? size - used : 0, ",%s=%s", name, text);
    return used + (size_t)length;
}

char *lh_model_scheme_format(const struct lh_model_scheme *scheme, char *out, size_t size)
{
    bool known = (unsigned)scheme->kind < KINDS;
    size_t used = (size_t)snprintf(out, size, "%s", known ? kind_names[scheme->kind] : "?");
    if (known && model_scheme_codes(scheme)) {
        used = append(out, size, used, "k", scheme->k);
        used = append(out, size, used, "m", scheme->m);
        if (scheme->spread != 0)
            used = append(out, size, used, "spread", scheme->spread);
        if (scheme->beta != MODEL_BETA_DEFAULT)
            used = append(out, size, used, "beta", scheme->beta);
        if (scheme->fallback == LH_MODEL_FALLBACK_SR)
            used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                                     ",fallback=sr");
    }
    if (scheme->rto_rtts == 0 || scheme->rto_rtts == default_rto(scheme))
        return out;
    if (scheme->kind == LH_MODEL_SR_RTO)
        append(out, size, used, "alpha", scheme->rto_rtts - 1);
    else if (scheme->kind != LH_MODEL_IDEAL)
        append(out, size, used, "rto", scheme->rto_rtts);
    return out;
}
