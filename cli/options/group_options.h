/*
 * group_options.h - the group of all ranks that a launcher has started: options of the commands that are
 * its ranks, and its creation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_GROUP_OPTIONS_H
#define LH_CLI_OPTIONS_GROUP_OPTIONS_H

#include "cli/options/option_values.h"

#include <longhaul/group.h>

#define CLI_GROUP_OPTIONS_MAX 9

struct cli_group {
    struct lh_group_attr attr;
    struct cli_connection connection;
    struct lh_attr across;
    const char *reliability_across; /* NULL: as inside */
    bool partial;                   /* it may deliver parts of messages */
    struct cli_option options[CLI_GROUP_OPTIONS_MAX];
};

/* Defaults, and the table of options that change them. The struct must stay where it is. partial: a scheme
 * may deliver parts of messages. */
void cli_group_options(struct cli_group *group, bool partial);
/* After parsing. CLI_PROCEED, or CLI_EXIT_USAGE. */
int cli_group_check(struct cli_group *group);
/* Whether some hop of it delivers parts of messages. */
bool cli_group_is_partial(const struct cli_group *group);
/* The schedule of a collective, NULL for the chosen one: CLI_PROCEED, or CLI_EXIT_USAGE. */
int cli_group_check_schedule(const char *collective, const char *schedule);
/* Whether this process is rank 0, before there is a group: CLI_PROCEED; else the exit status. example: how to
 * start it, "allreduce". */
int cli_group_is_first(const char *example, bool *is_first);
/* CLI_PROCEED, and *created; else the exit status. */
int cli_group_create(struct cli_group *group, const char *example, struct lh_group **created);

/* Number of sites, by their names or as found, and a rank's, from 0 on. */
uint32_t cli_group_sites(struct lh_group *group);
uint32_t cli_group_site(struct lh_group *group, uint32_t rank);
/* The schemes inside a site, and between sites: the same where these have no names. */
const char *cli_group_inside(const struct cli_group *group);
const char *cli_group_across(const struct cli_group *group, const struct lh_group *created);

#endif
