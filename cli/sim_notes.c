/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_notes.h"

#include "say.h"

#include <stdbool.h>

/* Nothing was lost, and all the same something was sent again. Where flows have not ended, the table says
 * why. */
static bool is_needless(const double *value)
{
    return value[CLI_FIGURE_REPEATED] > 0 && value[CLI_FIGURE_DROPPED] + value[CLI_FIGURE_LOST] <= 0 &&
           value[CLI_FIGURE_FAILED] + value[CLI_FIGURE_STUCK] <= 0;
}

void cli_sim_notes_after(const struct cli_sim_results *results)
{
    double repeated = 0, timeouts = 0;
    unsigned runs = 0;
    char where[48] = "";
    for (unsigned i = 0; i < results->done; i++) {
        const double *value = results->runs[i].figures.value;
        if (!is_needless(value))
            continue;
        runs++;
        repeated += value[CLI_FIGURE_REPEATED];
        timeouts += value[CLI_FIGURE_TIMEOUTS];
    }
    if (!runs)
        return;
    if (results->done > 1)
        snprintf(where, sizeof where, " in %u of %u runs", runs, results->done);
    cli_note("%.0f packets were sent again%s though nothing was lost: raise %s", repeated, where,
             timeouts > 0
                 ? "transport.rto_min or transport.rto, or transport.reorder where packets overtake"
                 : "transport.reorder, since packets overtake each other");
}
