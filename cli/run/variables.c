/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/variables.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t cli_run_site(const struct cli_run_job *job, uint32_t rank)
{
    return (uint32_t)((uint64_t)rank * job->sites / job->ranks);
}

const char *cli_run_host(const struct cli_run_job *job, uint32_t rank)
{
    return job->remotes ? job->remotes[rank].host : NULL;
}

static void set_count(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* Not what a launcher around this one has set: it places all ranks. */
static void set_or_not(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void cli_run_set_variables(const struct cli_run_job *job, uint32_t rank)
{
    char site[24];
    snprintf(site, sizeof site, "site%u", cli_run_site(job, rank));
    set_count("RANK", rank);
    set_count("WORLD_SIZE", job->ranks);
    set_count("LOCAL_RANK", rank);
    set_count("LOCAL_WORLD_SIZE", job->ranks);
    setenv("MASTER_ADDR", job->master ? job->master : "127.0.0.1", 1);
    set_count("MASTER_PORT", job->port);
    setenv("LONGHAUL_SECRET", job->secret, 1);
    if (!job->remotes) {
        set_or_not("LONGHAUL_SITE", job->sites > 1 ? site : NULL);
        set_or_not("LONGHAUL_LINK", job->link);
    }
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
}
