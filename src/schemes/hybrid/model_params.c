/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/model_params.h"

#include "base/error.h"
#include "schemes/hybrid/params.h"

#define TAIL_MAX_RTTS (HYBRID_TAIL_MAX / 8.0)
/* Parity chunks that a kernel makes of one reading of the data (docs/erasure-codes.md, "Kernels"), and
 * how often data is read for the rows that the end of a message has at a loss of 1e-2. */
#define READINGS 2

int hybrid_model_check(const struct lh_model_scheme *scheme)
{
    if (!(scheme->target >= HYBRID_TARGET_MIN && scheme->target <= HYBRID_TARGET_MAX))
        return lh_fail(LH_ERANGE, "hybrid: target=%g: out of range (1e-12 to 0.5, as in target=1e-4)",
                       scheme->target);
    if (!(scheme->tail_rtts >= 0 && scheme->tail_rtts <= TAIL_MAX_RTTS))
        return lh_fail(LH_ERANGE, "hybrid: tail=%g: out of range (0 to 2 round trips, as in tail=1)",
                       scheme->tail_rtts);
    return 0;
}

/* No chunk is in flight for longer than two round trips: as good as all. */
void hybrid_model_defaults(struct lh_model_scheme *scheme)
{
    scheme->target = HYBRID_TARGET_DEFAULT;
    scheme->tail_rtts = TAIL_MAX_RTTS;
}

bool hybrid_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed)
{
    if (model_parameter_is(parameter, "target"))
        *failed = model_parameter_number(parameter, &scheme->target);
    else if (model_parameter_is(parameter, "tail"))
        *failed = model_parameter_number(parameter, &scheme->tail_rtts);
    else
        return false;
    return true;
}

void hybrid_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    if (scheme->target != HYBRID_TARGET_DEFAULT)
        model_text_add_number(text, "target", scheme->target);
    if (scheme->tail_rtts != TAIL_MAX_RTTS)
        model_text_add_number(text, "tail", scheme->tail_rtts);
}

uint32_t hybrid_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_HYBRID};
    hybrid_model_defaults(&out[0]);
    return 1;
}

double hybrid_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return question->mds_bytes_per_s / READINGS;
}
