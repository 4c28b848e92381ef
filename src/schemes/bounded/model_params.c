/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/model_params.h"

#include <math.h>
#include <stdio.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "model/binomial.h"
#include "schemes/bounded/params.h"
#include "schemes/ec/model_params.h"
#include "schemes/ec/params.h"

#define TIME_MAX 32u

static int take_deadline(const struct model_parameter *parameter, double *deadline_s)
{
    char value[TIME_MAX];
    lh_time ns;
    int bytes = parameter->value ? parameter->length - (int)(parameter->value - parameter->text) : 0;
    *deadline_s = 0;
    if (model_parameter_value_is(parameter, "auto") || model_parameter_value_is(parameter, "none"))
        return 0;
    snprintf(value, sizeof value, "%.*s", bytes, parameter->value ? parameter->value : "");
    int failed = lh_parse_time(value, &ns);
    if (!failed && (ns < LH_NS_PER_US || ns > BOUNDED_DEADLINE_MAX_NS))
        failed = lh_fail(LH_ERANGE, "bounded: deadline \"%s\": out of range (1us to 60min, auto, or none)",
                         value);
    if (!failed)
        *deadline_s = (double)ns / (double)LH_NS_PER_S;
    return failed;
}

static int take_code(const struct model_parameter *parameter, struct lh_model_scheme *scheme)
{
    scheme->xor_code = model_parameter_value_is(parameter, "xor");
    if (!scheme->xor_code && !model_parameter_value_is(parameter, "mds"))
        return lh_fail(LH_EINVAL, "%.*s: invalid code (code=mds or code=xor)", parameter->length,
                       parameter->text);
    if (scheme->k == 0)
        scheme->k = EC_K_DEFAULT;
    if (scheme->m == 0)
        scheme->m = EC_M_DEFAULT;
    return 0;
}

bool bounded_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme,
                        int *failed)
{
    if (model_parameter_is(parameter, "deadline"))
        *failed = take_deadline(parameter, &scheme->deadline_s);
    else if (model_parameter_is(parameter, "code"))
        *failed = take_code(parameter, scheme);
    else if (model_parameter_is(parameter, "k"))
        *failed = model_parameter_whole(parameter, &scheme->k);
    else if (model_parameter_is(parameter, "m"))
        *failed = model_parameter_whole(parameter, &scheme->m);
    else
        return false;
    return true;
}

void bounded_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    bool has_deadline = scheme->deadline_s > 0;
    if (has_deadline)
        model_text_add(text, ":deadline=%.0fus", scheme->deadline_s * 1e6);
    if (scheme->k == 0)
        return;
    model_text_add(text, "%ccode=%s", has_deadline ? ',' : ':', scheme->xor_code ? "xor" : "mds");
    model_text_add_number(text, "k", scheme->k);
    model_text_add_number(text, "m", scheme->m);
}

int bounded_model_check(const struct lh_model_scheme *scheme)
{
    if ((scheme->k == 0) != (scheme->m == 0) || scheme->k > MODEL_COUNT_MAX ||
        scheme->m > MODEL_COUNT_MAX || scheme->k + scheme->m > MODEL_COUNT_MAX)
        return lh_fail(LH_EINVAL,
                       "bounded: k=%u,m=%u: out of range (both at least 1, together at most %u, as in "
                       "code=mds,k=32,m=2; none without a code)",
                       scheme->k, scheme->m, MODEL_COUNT_MAX);
    if (scheme->xor_code && scheme->m > scheme->k)
        return lh_fail(LH_EINVAL,
                       "bounded: xor has no use for more parity (m=%u) than data (k=%u); make m at most %u",
                       scheme->m, scheme->k, scheme->k);
    if (!(scheme->deadline_s >= 0) || !isfinite(scheme->deadline_s))
        return lh_fail(LH_ERANGE, "bounded: deadline %g s: out of range (at least 0; 0: auto)",
                       scheme->deadline_s);
    return 0;
}

double bounded_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    if (scheme->k == 0)
        return 0;
    return scheme->xor_code ? ec_xor_encode_rate(question, scheme) : ec_mds_encode_rate(question, scheme);
}
