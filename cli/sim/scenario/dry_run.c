/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/dry_run.h"

#include "cli/results/folder.h"
#include "cli/sim/scenario/link_list.h"
#include "cli/sim/scenario/plan.h"
#include "cli/sim/scenario/unused_keys.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"

#include <string.h>

int cli_sim_check_links(const struct cli_sim_plan *plan, unsigned point, const struct lh_netsim *simulation)
{
    const struct {
        const char *key, *patterns;
    } asked[] = {
        {"output.queues", plan->output.queues},
        {"output.rates", plan->output.rates},
        {"output.pcap", plan->output.pcap},
    };
    char label[CLI_POINT_LABEL_MAX];
    struct cli_link_list found;
    struct lh_netsim_link first = {0}, last = {0};
    cli_sim_plan_label(plan, point, label, sizeof label);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        cli_link_list_find(&found, simulation, asked[i].patterns);
        if (!*asked[i].patterns || found.count)
            continue;
        uint32_t links = lh_netsim_links_count(simulation);
        lh_netsim_link(simulation, 0, &first);
        lh_netsim_link(simulation, links - 1, &last);
        return cli_misused("%s = %s: no such link%s%s (%s>%s to %s>%s, %u link%s)", asked[i].key,
                           asked[i].patterns, *label ? " with " : "", label, first.from, first.to,
                           last.from, last.to, links, cli_plural(links));
    }
    return CLI_PROCEED;
}

/* Values that differ only in characters that names of files cannot have, or far behind. */
static int check_folders(const struct cli_sim_plan *plan)
{
    char one[CLI_POINT_LABEL_MAX], other[CLI_POINT_LABEL_MAX];
    char folder[CLI_FOLDER_NAME_MAX], other_folder[CLI_FOLDER_NAME_MAX];
    for (unsigned i = 1; i < plan->points; i++) {
        cli_folder_name(cli_sim_plan_label(plan, i, one, sizeof one), folder);
        for (unsigned j = 0; j < i; j++) {
            cli_folder_name(cli_sim_plan_label(plan, j, other, sizeof other), other_folder);
            if (!strcmp(folder, other_folder))
                return cli_misused("%s, %s: same folder %s (change one of the values)", other, one, folder);
        }
    }
    return CLI_PROCEED;
}

int cli_sim_dry_run(const struct cli_sim_plan *plan)
{
    int status = check_folders(plan);
    for (unsigned point = 0; point < plan->points && status == CLI_PROCEED; point++) {
        struct lh_netsim *simulation = NULL;
        status = cli_sim_plan_create(plan, point, plan->seed, &simulation);
        if (status == CLI_PROCEED)
            status = cli_sim_check_links(plan, point, simulation);
        lh_netsim_destroy(simulation);
    }
    return status == CLI_PROCEED ? cli_sim_check_unused(plan) : status;
}
