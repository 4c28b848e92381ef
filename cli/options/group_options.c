/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/group_options.h"

#include "cli/options/option_values.h"
#include "cli/terminal/terminal.h"

#include <longhaul/collective.h>
#include <longhaul/launch.h>

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 256

/* Messages of all ranks meet on one terminal. */
static void name_rank(void)
{
    uint32_t rank, size;
    if (!lh_group_rank_env(&rank, &size) && size > 1)
        cli_diagnostic_rank(rank);
}

void cli_group_options(struct cli_group *group, bool partial)
{
    static const char *const picked[] = {"reliability", "rate",         "congestion",
                                         "mtu",         "peer-timeout", "device"};
    unsigned count = 0;
    name_rank();
    memset(group, 0, sizeof *group);
    lh_group_attr_init(&group->attr);
    group->partial = partial;
    cli_connection_options(&group->connection, CLI_RECEIVES | CLI_CONNECTS);
    cli_reliability_help(group->connection.reliability_help, partial);
    group->options[count++] =
        (struct cli_option){"reliability-across", "SCHEME", "scheme between sites (as --reliability)",
                            &group->reliability_across, .kind = CLI_SCHEME};
    group->options[count++] = (struct cli_option){"wait",
                                                  "TIME",
                                                  "until all ranks have joined (30s)",
                                                  &group->attr.timeout_ns,
                                                  .kind = CLI_TIME,
                                                  .min = LH_NS_PER_MS};
    for (unsigned i = 0; i < sizeof picked / sizeof *picked; i++)
        for (const struct cli_option *option = group->connection.options; option->name; option++)
            if (!strcmp(option->name, picked[i]))
                group->options[count++] = *option;
}

static int check_reliability(const char *option, const char *scheme)
{
    if (!cli_has_deadline(scheme))
        return CLI_PROCEED;
    return cli_misused("%s %s: delivers parts of messages, a file needs all (example: auto)", option,
                       scheme);
}

bool cli_group_is_partial(const struct cli_group *group)
{
    return cli_has_deadline(group->connection.attr.reliability) ||
           cli_has_deadline(group->reliability_across);
}

int cli_group_check(struct cli_group *group)
{
    struct lh_attr *attr = &group->connection.attr;
    int status = group->partial ? CLI_PROCEED : check_reliability("--reliability", attr->reliability);
    if (status == CLI_PROCEED && !group->partial)
        status = check_reliability("--reliability-across", group->reliability_across);
    if (status != CLI_PROCEED)
        return status;
    group->attr.attr = attr;
    group->attr.device = attr->device;
    group->attr.peer_timeout_ns = attr->peer_timeout_ns;
    if (group->reliability_across) {
        group->across = *attr;
        group->across.reliability = group->reliability_across;
        group->attr.attr_across = &group->across;
    }
    return CLI_PROCEED;
}

int cli_group_check_schedule(const char *collective, const char *schedule)
{
    char names[NAMES_MAX] = "";
    const char *name;
    for (uint32_t i = 0; (name = lh_collective_schedule(collective, i)) != NULL; i++) {
        if (!schedule || !strcmp(name, schedule))
            return CLI_PROCEED;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", name);
    }
    if (!schedule)
        return CLI_PROCEED;
    return cli_misused("--schedule %s: unknown schedule of %s (%s)", schedule, collective, names);
}

/* ---- creation ---------------------------------------------------------------------------------------- */

static int no_group(const char *example, int code)
{
    if (code == -LH_ESTATE)
        return cli_misused("no launcher has started this process (start ranks with: longhaul run -n 4 -- "
                           "longhaul %s; or with mpirun, srun, torchrun)",
                           example);
    bool misused = code == -LH_EINVAL || code == -LH_ERANGE || code == -LH_EDEVICE;
    return misused ? cli_misused("%s", lh_last_error()) : cli_failed("%s", lh_last_error());
}

int cli_group_is_first(const char *example, bool *is_first)
{
    uint32_t rank, size;
    int code = lh_group_rank_env(&rank, &size);
    if (code)
        return no_group(example, code);
    *is_first = rank == 0;
    return CLI_PROCEED;
}

static bool names_sites(const struct lh_group *created)
{
    for (uint32_t rank = 0; rank < lh_group_size(created); rank++)
        if (*lh_group_site(created, rank) != '\0')
            return true;
    return false;
}

static void note_unused(const struct cli_group *group, const struct lh_group *created)
{
    if (group->reliability_across && lh_group_rank(created) == 0 && !names_sites(created))
        cli_note(
            "--reliability-across %s: without effect, no rank names its site (set LONGHAUL_SITE, or use "
            "longhaul run --sites)",
            group->reliability_across);
}

int cli_group_create(struct cli_group *group, const char *example, struct lh_group **created)
{
    int code = lh_group_create_env(&group->attr, created);
    if (code)
        return no_group(example, code);
    note_unused(group, *created);
    return CLI_PROCEED;
}

/* ---- what it is -------------------------------------------------------------------------------------- */

uint32_t cli_group_site(struct lh_group *group, uint32_t rank)
{
    uint32_t site = 0;
    lh_group_place(group, rank, NULL, &site);
    return site;
}

uint32_t cli_group_sites(struct lh_group *group)
{
    uint32_t last = 0;
    for (uint32_t rank = 0; rank < lh_group_size(group); rank++) {
        uint32_t site = cli_group_site(group, rank);
        last = site > last ? site : last;
    }
    return last + 1;
}

const char *cli_group_inside(const struct cli_group *group)
{
    const char *scheme = group->connection.attr.reliability;
    return scheme ? scheme : "auto";
}

const char *cli_group_across(const struct cli_group *group, const struct lh_group *created)
{
    bool has = group->reliability_across && names_sites(created);
    return has ? group->reliability_across : cli_group_inside(group);
}
