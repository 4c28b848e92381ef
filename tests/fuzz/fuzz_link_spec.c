/*
 * fuzz_link_spec.c - the text of a link from a command line; and a link that it makes carries packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/link.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>

#include "base/link_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ratios below what anyone means may be off by the last bit. */
static bool near(double a, double b)
{
    return a == b || (a > b * (1 - 1e-15) && a < b * (1 + 1e-15));
}

/* What is parsed formats to a text that parses to the same. */
static void check_round_trip(const struct lh_link_spec *spec)
{
    char out[LH_LINK_TEXT_MAX];
    struct lh_link_spec back;
    assert(strlen(lh_link_format(spec, out, sizeof out)) + 1 < sizeof out);
    assert(lh_link_parse(out, &back) == 0);
    assert(lh_link_is_none(spec) == lh_link_is_none(&back));
    if (lh_link_is_none(spec))
        return;
    assert(back.delay_ns == spec->delay_ns && back.jitter_ns == spec->jitter_ns);
    assert(back.rate_bps == spec->rate_bps && back.queue_bytes == spec->queue_bytes);
    assert(back.seed == spec->seed && back.drop_tail == spec->drop_tail);
    assert(near(back.loss, spec->loss) && near(back.burst_packets, spec->burst_packets));
    assert(near(back.reorder, spec->reorder) && near(back.duplicate, spec->duplicate));
    assert(near(back.corrupt, spec->corrupt));
}

static void check_link(const struct lh_link_spec *spec)
{
    struct lh_link_state link;
    lh_link_state_init(&link, spec, 0);
    lh_time now = 1000;
    for (int i = 0; i < 20; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, now, 4186);
        assert(fate.copies <= 2 && (fate.copies == 0) == (fate.dropped || !fate.accepted));
        if (!fate.accepted) {
            lh_time ready = lh_link_ready_ns(&link, now);
            assert(ready > now);
            now = ready;
            assert(lh_link_decide(&link, now, 4186).accepted);
        }
        for (unsigned copy = 0; copy < fate.copies; copy++)
            assert(fate.arrive_ns[copy] >= now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lh_link_spec spec;
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int rc = lh_link_parse(text, &spec);
    assert(rc == 0 || rc == -LH_EINVAL || rc == -LH_ERANGE);
    if (rc == 0) {
        check_round_trip(&spec);
        check_link(&spec);
    } else {
        assert(lh_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
