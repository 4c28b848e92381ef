/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/plan_list.h"

#include <assert.h>
#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Parity chunks that a kernel makes of one reading of the data (docs/erasure-codes.md, "Kernels"). */
#define ROWS_AT_ONCE 8

uint32_t plan_list_chunks(const struct lh_plan_question *question, uint64_t *out)
{
    static const unsigned packets[PLAN_CHUNKS] = {64, 16, 4, 1};
    const struct lh_model_path *link = &question->link;
    if (link->chunk_bytes != 0) {
        out[0] = link->chunk_bytes;
        return 1;
    }
    for (unsigned i = 0; i < PLAN_CHUNKS; i++)
        out[i] = (uint64_t)packets[i] * link->mtu_bytes;
    return PLAN_CHUNKS;
}

/* Codes of one kind: m is a power of two, and at most k. */
static uint32_t list_codes(enum lh_model_kind kind, uint32_t spread, struct lh_model_scheme *out)
{
    static const uint32_t ks[] = {8, 16, 32, 64, 128};
    uint32_t count = 0;
    for (unsigned i = 0; i < COUNT(ks); i++)
        for (uint32_t m = 1; m <= ks[i] && m <= 64; m *= 2)
            out[count++] =
                (struct lh_model_scheme){.kind = kind, .k = ks[i], .m = m, .spread = spread, .beta = 0.5};
    return count;
}

uint32_t plan_list_schemes(const struct lh_plan_question *question, struct lh_model_scheme *out)
{
    static const struct lh_model_scheme repeats[] = {
        {.kind = LH_MODEL_SR_NACK},
        {.kind = LH_MODEL_SR_RTO},
        {.kind = LH_MODEL_SR_RTO, .rto_rtts = 2},
    };
    uint32_t spreads = question->link.burst_packets > 1 ? 2 : 1;
    uint32_t count = 0;
    for (unsigned i = 0; i < COUNT(repeats); i++)
        out[count++] = repeats[i];
    for (uint32_t spread = 0; spread < spreads; spread++) {
        count += list_codes(LH_MODEL_EC_XOR, spread, out + count);
        count += list_codes(LH_MODEL_EC_MDS, spread, out + count);
    }
    assert(count <= PLAN_SCHEMES_MAX);
    return count;
}

double plan_list_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    if (scheme->kind == LH_MODEL_EC_XOR)
        return question->xor_bytes_per_s;
    if (scheme->kind == LH_MODEL_EC_MDS)
        return question->mds_bytes_per_s / ceil((double)scheme->m / ROWS_AT_ONCE);
    return 0;
}
