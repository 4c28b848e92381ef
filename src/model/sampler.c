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
        if (terms->longhaul)
            failed = model_segments_start(&sampler->of.segments, path, scheme);
        else
            model_coded_start(&sampler->of.coded, scheme, terms);
        sampler->cells = terms->loss.bursty ? model_lacking_cells(sampler) : 0;
    } else if (scheme->kind != LH_MODEL_IDEAL && scheme->kind != LH_MODEL_GBN) {
        model_terms_repeat(terms, &sampler->of.repeat);
    }
    return failed;
}

static double draw_coded(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_coded *coded = &sampler->of.coded;
    double lacking = model_draw_lacking(sampler, &coded->lacks, prng, cells).chunks;
    if (lacking <= 0)
        return coded->whole_s;
    double excess = model_draw_repeat(&coded->repeat, sampler->log_loss, lacking, prng);
    return coded->asked_s + (lacking + excess) * coded->inject_s;
}

/* With bursts. */
static double draw_segment(const struct model_sampler *sampler, const struct model_running_code *code,
                           struct lh_prng *prng, uint8_t *cells)
{
    const struct lh_model_scheme *scheme = &sampler->scheme;
    struct model_lacking lacking = model_draw_lacking(sampler, &code->lacks, prng, cells);
    if (lacking.chunks <= 0)
        return code->sent_s + lacking.parity * code->inject_s;
    double rounds = 1;
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        rounds = model_draw_rounds(&sampler->terms.loss, lacking.data, prng);
    else if (scheme->kind == LH_MODEL_EC_XOR)
        rounds = model_draw_rounds(&sampler->terms.loss, lacking.chunks, prng);
    return code->asked_s + lacking.chunks * code->inject_s + (rounds - 1) * code->round_s;
}

static double draw_segments(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_segments *segments = &sampler->of.segments;
    if (!sampler->terms.loss.bursty)
        return model_segments_quantile(segments, lh_prng_double(prng));
    double latest = 0;
    for (double i = 0; i < segments->before; i++)
        latest = fmax(latest, i * segments->apart_s + draw_segment(sampler, &segments->full, prng, cells));
    double last_s = segments->before * segments->apart_s;
    return fmax(latest, last_s + draw_segment(sampler, &segments->last, prng, cells));
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
        return terms->longhaul ? draw_segments(sampler, prng, cells) : draw_coded(sampler, prng, cells);
    case LH_MODEL_SR_RTO:
    case LH_MODEL_SR_NACK:
        excess = terms->loss.bursty
                     ? model_draw_repeat_bursts(&sampler->of.repeat, &terms->loss, terms->chunks, prng)
                     : model_draw_repeat(&sampler->of.repeat, sampler->log_loss, terms->chunks, prng);
        break;
    }
    assert(excess >= 0);
    return model_terms_whole(terms) + excess * terms->inject_s;
}
