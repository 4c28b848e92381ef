/*
 * observation.h - what holds while a network is busy: how flows share it, and how long its queues are.
 * Counted between output.from and output.to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_OBSERVATION_H
#define LH_CLI_SIM_RUN_OBSERVATION_H

#include "cli/sim/scenario/keys.h"
#include "cli/sim/scenario/link_list.h"

#include <longhaul/netsim.h>

#include <stdbool.h>
#include <stddef.h>

struct cli_observation {
    struct cli_link_list links; /* of output.queues */
    uint64_t from_ps, to_ps;    /* CLI_NO_END as from: nothing is observed */
    uint64_t began_ps, ended_ps;
    bool begun;
    size_t count, room; /* samples of queues */
    double *queues;     /* bytes, each link at each sample */
    uint64_t *before;   /* of each flow: delivered when it began */
    uint64_t *after;    /* and at the last sample */
};

void cli_observation_open(struct cli_observation *observation, const struct cli_sim_output *output,
                          const struct lh_netsim *simulation);
/* Whether samples are wanted now or later. */
bool cli_observation_goes_on(const struct cli_observation *observation);
/* Looks at flows and queues, if it is time. 0, or -LH_ENOMEM. */
int cli_observation_sample(struct cli_observation *observation, const struct lh_netsim *simulation,
                           uint64_t now_ps);
/* CLI_FIGURE_JAIN, _SHARE, _QUEUE_MEAN and _QUEUE_P99; NaN: not observed. */
void cli_observation_collect(struct cli_observation *observation, const struct lh_netsim *simulation,
                             double *value);
void cli_observation_close(struct cli_observation *observation);

#endif
