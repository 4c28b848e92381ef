/*
 * sim_notes.h - what whoever reads the results should know besides, on stderr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_NOTES_H
#define CLI_SIM_NOTES_H

#include "sim_results.h"

/* Of results: packets that were sent again although none was lost. */
void cli_sim_notes_after(const struct cli_sim_results *results);

#endif
