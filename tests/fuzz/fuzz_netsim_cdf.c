/*
 * fuzz_netsim_cdf.c - the text of a distribution of sizes; and what is drawn from one that is taken.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <stdlib.h>

#include <longhaul/error.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cdf(const struct netsim_cdf *cdf)
{
    struct lh_prng prng;
    double maximum = cdf->bytes[cdf->points - 1];
    double last = 0;
    lh_prng_seed(&prng, 1);
    assert(maximum >= 1 && cdf->mean_bytes > 0 && cdf->mean_bytes <= maximum * (1 + 1e-9));
    for (int i = 0; i < 64; i++) {
        double bytes = netsim_cdf_quantile(cdf, i / 64.0);
        assert(bytes >= last && bytes >= cdf->bytes[0] && bytes <= maximum);
        last = bytes;
    }
    assert(netsim_cdf_quantile(cdf, 1 - 0x1p-53) <= maximum);
    for (int i = 0; i < 64; i++) {
        uint64_t bytes = netsim_cdf_sample(cdf, &prng);
        assert(bytes >= 1 && (double)bytes <= maximum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct netsim_text text = {.data = size > 0 ? (const char *)data : "", .bytes = size};
    struct netsim_arena counting = {0};
    struct netsim_cdf cdf;
    int rc = netsim_cdf_read(&cdf, "workload.sizes", &text, &counting);
    if (rc != 0) {
        assert(rc == -LH_EINVAL || rc == -LH_ERANGE);
        assert(lh_last_error()[0] != '\0');
        return 0;
    }
    struct netsim_arena arena = {.base = aligned_alloc(64, counting.used_bytes),
                                 .capacity_bytes = counting.used_bytes};
    assert(arena.base != NULL);
    rc = netsim_cdf_read(&cdf, "workload.sizes", &text, &arena);
    assert(rc == 0 && arena.used_bytes == counting.used_bytes);
    check_cdf(&cdf);
    free(arena.base);
    return 0;
}
