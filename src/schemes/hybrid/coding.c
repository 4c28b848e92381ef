/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/coding.h"

#include "schemes/ec/coding.h"
#include "schemes/hybrid/params.h"

struct ec_layout hybrid_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_layout_of(code, chunks);
}

static uint32_t transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_transfer_chunks_max(code, slot_chunks);
}

static uint32_t extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_extra_chunks(code, chunks);
}

static uint32_t groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_groups(code, chunks);
}

/* The same memory, as schemes/ec sees it. */
static struct lh_coding coded(const struct lh_coding *coding)
{
    struct lh_coding of = *coding;
    hybrid_code_params(coding->params[0], of.params);
    return of;
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct lh_coding of = coded(coding);
    ec_coding.encode(&of, group, first_row, rows);
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct lh_coding of = coded(coding);
    return ec_coding.decode(&of, group, chunk_bitmap, extra_bitmap);
}

const struct lh_scheme_coding hybrid_coding = {
    .transfer_chunks_max = transfer_chunks_max,
    .extra_chunks = extra_chunks,
    .groups = groups,
    .encode = encode,
    .decode = decode,
};
