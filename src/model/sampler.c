/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/sampler.h"

#include <assert.h>
#include <math.h>

#include "model/scheme.h"

int model_sampler_start(struct model_sampler *sampler, const struct lh_model_path *path,
                        const struct lh_model_scheme *scheme)
{
    int failed = model_terms_of(path, scheme, &sampler->terms);
    if (failed)
        return failed;
    const struct model_terms *terms = &sampler->terms;
    sampler->scheme = *scheme;
    sampler->log_loss = log(terms->loss.chunk);
    sampler->cells = 0;
    if (model_scheme_codes(scheme)) {
        model_coded_start(&sampler->of.coded, scheme, terms);
        sampler->cells = terms->loss.bursty ? model_lacking_cells(sampler) : 0;
    } else if (scheme->kind != LH_MODEL_IDEAL && scheme->kind != LH_MODEL_GBN) {
        model_repeat_start(&sampler->of.repeat, &terms->loss, model_terms_overhead(terms), terms->chunks);
    }
    return 0;
}

static double draw_coded(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_coded *coded = &sampler->of.coded;
    double lacking = model_draw_lacking(sampler, prng, cells);
    if (lacking <= 0)
        return coded->whole_s;
    double excess = model_draw_repeat(&coded->repeat, sampler->log_loss, lacking, prng);
    return coded->asked_s + (lacking + excess) * coded->inject_s;
}

double model_sampler_draw(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_terms *terms = &sampler->terms;
    double excess = 0;
    switch (sampler->scheme.kind) {
    case LH_MODEL_IDEAL:
        break;
    case LH_MODEL_GBN:
        return model_draw_go_back(terms, prng);
    case LH_MODEL_EC_MDS:
    case LH_MODEL_EC_XOR:
        return draw_coded(sampler, prng, cells);
    case LH_MODEL_SR_RTO:
    case LH_MODEL_SR_NACK:
        excess = terms->loss.bursty
                     ? model_draw_repeat_bursts(&sampler->of.repeat, &terms->loss, terms->chunks, prng)
                     : model_draw_repeat(&sampler->of.repeat, sampler->log_loss, terms->chunks, prng);
        break;
    }
    assert(excess >= 0);
    return terms->ideal_s + excess * terms->inject_s;
}
