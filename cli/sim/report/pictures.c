/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/pictures.h"

#include "cli/sim/report/picture_series.h"
#include "cli/sim/report/picture_slowdowns.h"
#include "cli/sim/report/picture_sweep.h"
#include "cli/terminal/diagnostic.h"

int cli_pictures(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    /* One that fails does not keep the others, or their scripts, from being there. */
    const int statuses[] = {
        cli_picture_slowdowns(results, folder),
        cli_picture_series(results, folder, false),
        cli_picture_series(results, folder, true),
        results->plan->points > 1 ? cli_picture_sweep(results, folder) : CLI_PROCEED,
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i] != CLI_PROCEED)
            return statuses[i];
    return CLI_PROCEED;
}
