/*
 * timeout_proposal.c - a proposal on the wire, big endian: version 8, zero 24, round 32, cost 64, delivered
 * 32 bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/timeout.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "collective/group_timeout.h"

#define VERSION 1

void lh_timeout_proposal_encode(const struct lh_timeout_proposal *proposal,
                                uint8_t out[LH_TIMEOUT_PROPOSAL_BYTES])
{
    out[0] = VERSION;
    lh_put_be24(out + 1, 0);
    lh_put_be32(out + 4, proposal->round);
    lh_put_be64(out + 8, proposal->cost);
    lh_put_be32(out + 16, proposal->delivered);
}

int lh_timeout_proposal_decode(const uint8_t *in, size_t bytes, struct lh_timeout_proposal *proposal)
{
    if (bytes != LH_TIMEOUT_PROPOSAL_BYTES)
        return lh_fail(LH_EINVAL, "a timeout proposal of %zu bytes (it has %d)", bytes,
                       LH_TIMEOUT_PROPOSAL_BYTES);
    struct lh_timeout_proposal got = {
        .round = lh_get_be32(in + 4), .cost = lh_get_be64(in + 8), .delivered = lh_get_be32(in + 16)};
    if (in[0] != VERSION || lh_get_be24(in + 1) != 0)
        return lh_fail(LH_EINVAL, "a timeout proposal of version %u (this library knows %d)", in[0],
                       VERSION);
    if (!group_timeout_is_valid(&got))
        return lh_fail(LH_EINVAL,
                       "a timeout proposal for operation %u, %llu fs per byte, %u of a million bytes",
                       got.round, (unsigned long long)got.cost, got.delivered);
    *proposal = got;
    return 0;
}
