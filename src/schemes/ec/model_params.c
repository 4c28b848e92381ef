/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/model_params.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/binomial.h"
#include "model/longhaul_timing.h"
#include "schemes/ec/params.h"

#define BETA_DEFAULT 0.5 /* paper, section 4.2.3 */

/* Parity chunks that a kernel makes of one reading of the data (docs/erasure-codes.md, "Kernels"). */
#define ROWS_AT_ONCE 8

static const char *name_of(const struct lh_model_scheme *scheme)
{
    return scheme->kind == LH_MODEL_EC_MDS ? "ec:mds" : "ec:xor";
}

int ec_model_check(const struct lh_model_scheme *scheme)
{
    if (scheme->k < 1 || scheme->m < 1)
        return lh_fail(LH_EINVAL, "%s: k=%u,m=%u: out of range (both at least 1, as in k=32,m=8)",
                       name_of(scheme), scheme->k, scheme->m);
    if (scheme->k > MODEL_COUNT_MAX || scheme->m > MODEL_COUNT_MAX ||
        scheme->k + scheme->m > MODEL_COUNT_MAX)
        return lh_fail(LH_EINVAL, "k=%u and m=%u are more than %u together; make one of them smaller",
                       scheme->k, scheme->m, MODEL_COUNT_MAX);
    if (scheme->kind == LH_MODEL_EC_XOR && scheme->m > scheme->k)
        return lh_fail(LH_EINVAL,
                       "ec:xor has no use for more parity (m=%u) than data (k=%u); make m at most %u",
                       scheme->m, scheme->k, scheme->k);
    if (!(scheme->beta >= 0) || !(scheme->beta <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE, "beta=%g: out of range (round trips, at least 0, such as 0.5)",
                       scheme->beta);
    if (scheme->fallback != LH_MODEL_FALLBACK_IR && scheme->fallback != LH_MODEL_FALLBACK_SR)
        return lh_fail(LH_EINVAL, "fallback %d is none; use LH_MODEL_FALLBACK_IR or LH_MODEL_FALLBACK_SR",
                       (int)scheme->fallback);
    if (!(scheme->encode_bytes_per_s >= 0) || !isfinite(scheme->encode_bytes_per_s))
        return lh_fail(LH_ERANGE,
                       "encoding rate of %g bytes a second: out of range (at least 0; 0: unknown)",
                       scheme->encode_bytes_per_s);
    return 0;
}

double ec_model_rto(const struct lh_model_scheme *scheme)
{
    return scheme->fallback == LH_MODEL_FALLBACK_IR ? MODEL_RTO_NACK : MODEL_RTO_DEFAULT;
}

/* A fallback asks, too. */
void ec_model_longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_message *message)
{
    model_timing_by_report(path, scheme->rto_rtts, message);
}

/* ---- as text ----------------------------------------------------------------------------------------- */

void ec_model_defaults(struct lh_model_scheme *scheme)
{
    scheme->k = EC_K_DEFAULT;
    scheme->m = EC_M_DEFAULT;
    scheme->beta = BETA_DEFAULT;
}

static int take_fallback(const struct model_parameter *parameter, enum lh_model_fallback *fallback)
{
    bool sr = model_parameter_value_is(parameter, "sr");
    if (!sr && !model_parameter_value_is(parameter, "ir"))
        return lh_fail(LH_EINVAL, "%.*s: invalid fallback (fallback=ir or fallback=sr)", parameter->length,
                       parameter->text);
    *fallback = sr ? LH_MODEL_FALLBACK_SR : LH_MODEL_FALLBACK_IR;
    return 0;
}

bool ec_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed)
{
    if (model_parameter_is(parameter, "k"))
        *failed = model_parameter_whole(parameter, &scheme->k);
    else if (model_parameter_is(parameter, "m"))
        *failed = model_parameter_whole(parameter, &scheme->m);
    else if (model_parameter_is(parameter, "spread"))
        *failed = model_parameter_whole(parameter, &scheme->spread);
    else if (model_parameter_is(parameter, "beta"))
        *failed = model_parameter_number(parameter, &scheme->beta);
    else if (model_parameter_is(parameter, "fallback"))
        *failed = take_fallback(parameter, &scheme->fallback);
    else
        return false;
    return true;
}

void ec_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    model_text_add_number(text, "k", scheme->k);
    model_text_add_number(text, "m", scheme->m);
    if (scheme->spread != 0)
        model_text_add_number(text, "spread", scheme->spread);
    if (scheme->beta != BETA_DEFAULT)
        model_text_add_number(text, "beta", scheme->beta);
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        model_text_add(text, ",fallback=sr");
    if (scheme->rto_rtts != 0 && scheme->rto_rtts != ec_model_rto(scheme))
        model_text_add_number(text, "rto", scheme->rto_rtts);
}

/* ---- for the planner --------------------------------------------------------------------------------- */

static uint32_t candidates(enum lh_model_kind kind, bool unspread, struct lh_model_scheme *out)
{
    static const uint32_t ks[] = {8, 16, 32, 64, 128};
    uint32_t count = 0;
    for (unsigned i = 0; i < sizeof ks / sizeof ks[0]; i++)
        for (uint32_t m = 1; m <= ks[i] && m <= 64; m *= 2) {
            assert(count < SCHEME_CANDIDATES_MAX);
            out[count++] = (struct lh_model_scheme){
                .kind = kind, .k = ks[i], .m = m, .spread = unspread, .beta = BETA_DEFAULT};
        }
    return count;
}

uint32_t ec_mds_candidates(bool unspread, struct lh_model_scheme *out)
{
    return candidates(LH_MODEL_EC_MDS, unspread, out);
}

uint32_t ec_xor_candidates(bool unspread, struct lh_model_scheme *out)
{
    return candidates(LH_MODEL_EC_XOR, unspread, out);
}

double ec_mds_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    return question->mds_bytes_per_s / ceil((double)scheme->m / ROWS_AT_ONCE);
}

double ec_xor_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return question->xor_bytes_per_s;
}
