/*
 * short_messages.h - the demo's second table: messages so short that nothing hides a repair.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DEMO_SHORT_MESSAGES_H
#define LH_CLI_DEMO_SHORT_MESSAGES_H

#include "cli/demo/run.h"

struct cli_demo_short {
    uint64_t bytes;
    uint32_t messages;
    struct lh_link_spec link; /* without its loss */
    /* Kept from row to row for the verdict. */
    unsigned rows, whole;
    double last_loss;
    double best_loss, best_mean_s,
        best_worst_s; /* by the worst message, at the highest loss; 0: none yet */
    char best_scheme[32];
};

void cli_demo_short_start(struct cli_demo_short *table);
void cli_demo_short_row(struct cli_demo_short *table, const struct cli_demo_run *run,
                        const struct cli_demo_outcome *outcome);
void cli_demo_short_end(const struct cli_demo_short *table);

#endif
