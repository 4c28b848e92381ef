/*
 * fuzz_timeout.c - the timeout of a group: proposals and measurements of any kind, in any order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/timeout.h>

#include <assert.h>
#include <math.h>
#include <string.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMBERS 3u

static void check(const struct lh_timeout *timeout)
{
    struct lh_timeout_state state;
    lh_timeout_state(timeout, &state);
    assert(isfinite(state.cost) && state.cost > 0 && isfinite(state.deviation) && state.deviation >= 0);
    assert(state.lost >= 0 && state.lost <= 1 && state.voters <= MEMBERS);
}

/* What is decoded encodes to the same bytes. */
static void propose(struct lh_timeout *timeout, const uint8_t *data, size_t bytes)
{
    struct lh_timeout_proposal proposal;
    uint8_t again[LH_TIMEOUT_PROPOSAL_BYTES];
    if (lh_timeout_proposal_decode(data, bytes, &proposal) != 0)
        return;
    lh_timeout_proposal_encode(&proposal, again);
    assert(memcmp(again, data, sizeof again) == 0);
    lh_timeout_propose(timeout, data[LH_TIMEOUT_PROPOSAL_BYTES - 1] % (MEMBERS + 1), &proposal);
}

static void operate(struct lh_timeout *timeout, const struct lh_timeout_attr *attr, struct input *input)
{
    lh_time timeout_ns;
    struct lh_timeout_proposal proposal;
    uint64_t bytes = take_scaled(input);
    if (lh_timeout_begin(timeout, bytes, &timeout_ns) != 0)
        return;
    assert(timeout_ns >= attr->minimum_ns && timeout_ns <= attr->maximum_ns);
    if (lh_timeout_end(timeout, take_scaled(input), take_scaled(input), &proposal) == 0) {
        uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES];
        lh_timeout_proposal_encode(&proposal, wire);
        struct lh_timeout_proposal read;
        assert(lh_timeout_proposal_decode(wire, sizeof wire, &read) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct lh_timeout_attr attr;
    struct lh_timeout *timeout;
    lh_timeout_attr_init(&attr);
    attr.members = MEMBERS;
    attr.rule = take8(&input) % 2 ? LH_TIMEOUT_PAPER : LH_TIMEOUT_MARGIN;
    if (lh_timeout_create(&attr, &timeout) != 0)
        return 0;
    if (lh_timeout_warm_up(timeout, take_scaled(&input), take_scaled(&input)) == 0) {
        while (input.left > 0) {
            if (take8(&input) % 2)
                operate(timeout, &attr, &input);
            size_t bytes = input.left < LH_TIMEOUT_PROPOSAL_BYTES ? input.left : LH_TIMEOUT_PROPOSAL_BYTES;
            propose(timeout, input.at, bytes);
            input.at += bytes;
            input.left -= bytes;
            check(timeout);
        }
    }
    lh_timeout_destroy(timeout);
    return 0;
}
