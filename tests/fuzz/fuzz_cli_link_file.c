/*
 * fuzz_cli_link_file.c - what longhaul plan --link-file reads, with anything in it.
 *
 * Whatever it says: each number of a link that is taken can be one, and every refusal has words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"
#define take take_member
#include "cli/plan/plan_parts.h"

#include <string.h>
#include <stdlib.h>
#include <stdint.h>
#include <math.h>
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_link_file link = {-7, -7, -7, -7, -7, -7};
    char wrong[CLI_LINK_FILE_WRONG_MAX] = "";
    /* Of its own size, so that a sanitizer sees a byte too far. */
    char *text = malloc(size ? size : 1);
    assert(text);
    if (size)
        memcpy(text, data, size);
    if (cli_link_file_parse(text, size, &link, wrong)) {
        assert(*wrong && strlen(wrong) < sizeof wrong && link.loss == -7);
    } else {
        assert(isnan(link.bandwidth_bps) || (link.bandwidth_bps >= 1 && link.bandwidth_bps < 1e18));
        assert(isnan(link.rtt_s) || (link.rtt_s > 0 && link.rtt_s < 1e6));
        assert(isnan(link.loss) || (link.loss >= 0 && link.loss < 1));
        assert(isnan(link.loss_high) || isnan(link.loss) || link.loss_high >= link.loss);
        assert(isnan(link.burst_packets) || link.burst_packets >= 0);
        assert(isnan(link.mtu_bytes) || (link.mtu_bytes >= 256 && link.mtu_bytes <= 4096));
    }
    free(text);
    return 0;
}
