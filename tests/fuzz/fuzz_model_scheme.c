/*
 * fuzz_model_scheme.c - a scheme of the model from a command line; and what it makes can be predicted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A timeout as alpha is one more than its text: the last bits may differ. */
static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

/* What a parser made formats to a text that parses to the same. */
static void check_round_trip(const struct lh_model_scheme *scheme)
{
    char out[LH_MODEL_SCHEME_TEXT_MAX];
    struct lh_model_scheme back;
    assert(strlen(lh_model_scheme_format(scheme, out, sizeof out)) + 1 < sizeof out);
    assert(lh_model_scheme_parse(out, &back) == 0);
    assert(back.kind == scheme->kind && back.k == scheme->k && back.m == scheme->m);
    assert(back.spread == scheme->spread && back.fallback == scheme->fallback);
    assert(near(back.beta, scheme->beta));
    /* A default that was given is left out. */
    assert(back.rto_rtts == 0 || near(back.rto_rtts, scheme->rto_rtts));
}

static void check_prediction(const struct lh_model_scheme *scheme)
{
    const struct lh_model_path path = {.message_bytes = 10000000,
                                       .chunk_bytes = 4096,
                                       .mtu_bytes = 4096,
                                       .bandwidth_bps = 100e9,
                                       .rtt_s = 0.01,
                                       .loss = 1e-3};
    struct lh_model_times times;
    assert(lh_model_predict(&path, scheme, &times) == 0);
    assert(isfinite(times.mean_s) && times.mean_s >= times.ideal_s * (1 - 1e-9));
    assert(times.p50_s <= times.p99_s && times.p99_s <= times.p999_s && isfinite(times.p999_s));
    assert(times.p_fallback >= 0 && times.p_fallback <= 1 && isfinite(times.paper_mean_s));
    assert(isfinite(times.wire_bytes) && times.overhead_bytes >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct lh_model_scheme untouched = {.k = 12345};
    struct lh_model_scheme scheme = untouched;
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int rc = lh_model_scheme_parse(text, &scheme);
    assert(rc == 0 || rc == -LH_EINVAL || rc == -LH_ERANGE);
    if (rc == 0) {
        check_round_trip(&scheme);
        check_prediction(&scheme);
    } else {
        assert(lh_last_error()[0] != '\0' && scheme.k == untouched.k);
    }
    free(text);
    return 0;
}
