/*
 * link_list.h - links of a simulation that match patterns such as "leaf0>host*,spine*>leaf0".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_LINK_LIST_H
#define LH_CLI_SIM_SCENARIO_LINK_LIST_H

#include <longhaul/netsim.h>

/* More lines are in no picture, and more columns in no table. */
#define CLI_LINK_LIST_MAX 64

struct cli_link_list {
    unsigned count;
    bool more; /* than fit */
    uint32_t numbers[CLI_LINK_LIST_MAX];
};

/* Whether a link of these ends is meant. */
bool cli_link_matches(const char *patterns, const char *from, const char *to);
/* In the order of their numbers. */
void cli_link_list_find(struct cli_link_list *list, const struct lh_netsim *simulation,
                        const char *patterns);

#endif
