/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_run.h"

#include "link_list.h"
#include "options.h"
#include "pcap.h"
#include "say.h"
#include "sim_csv.h"
#include "sim_progress.h"
#include "sim_series.h"
#include "wait.h"

#include <longhaul/units.h>

#include <stdlib.h>
#include <string.h>

/* Between two looks at the clock: a few milliseconds. */
#define EVENTS_AT_ONCE 100000

/* Packets that are written down while it runs. */
struct capture {
    FILE *file;   /* NULL: nothing is captured */
    bool *wanted; /* by link */
    uint32_t left;
    uint32_t header_bytes;
    bool full;
};

struct course {
    const struct cli_sim_plan *plan;
    struct cli_sim_run *run;
    struct lh_netsim *simulation;
    struct cli_series queues, rates;
    struct capture capture;
    struct cli_sim_progress progress;
    double wall_s;
};

/* ---- capture -------------------------------------------------------------------------------------- */

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct capture *capture = context;
    if (!capture->left || !capture->wanted[packet->link])
        return;
    cli_pcap_packet(capture->file, packet, capture->header_bytes, capture->full);
    capture->left--;
}

static int find_captured(struct course *course, const char *patterns)
{
    struct lh_netsim_link link;
    uint32_t links = lh_netsim_links_count(course->simulation);
    bool *wanted = course->capture.wanted = calloc(links, sizeof *wanted), any = false;
    if (!wanted)
        return cli_failed("out of memory");
    for (uint32_t i = 0; i < links && !lh_netsim_link(course->simulation, i, &link); i++)
        any |= wanted[i] = cli_link_matches(patterns, link.from, link.to);
    if (!any)
        return cli_misused("output.pcap is \"%s\": there is no such link; links.csv lists them", patterns);
    return CLI_PROCEED;
}

static int open_capture(struct course *course)
{
    const struct cli_sim_output *output = &course->plan->output;
    struct capture *capture = &course->capture;
    uint64_t header_bytes = 0;
    if (!*output->pcap || !*course->run->folder.path)
        return CLI_PROCEED;
    int status = find_captured(course, output->pcap);
    if (status != CLI_PROCEED)
        return status;
    capture->file = cli_folder_open(&course->run->folder, "capture.pcap");
    if (!capture->file)
        return CLI_EXIT_FAILED;
    lh_parse_size(cli_sim_plan_text(course->plan, course->run->point, "transport.header"), &header_bytes);
    capture->header_bytes = (uint32_t)header_bytes;
    capture->left = output->packets;
    capture->full = output->full_packets;
    cli_pcap_start(capture->file);
    lh_netsim_watch(course->simulation, UINT32_MAX, on_packet, capture);
    return CLI_PROCEED;
}

static int close_capture(struct course *course)
{
    FILE *file = course->capture.file;
    free(course->capture.wanted);
    course->capture = (struct capture){0};
    return file ? cli_folder_close(&course->run->folder, "capture.pcap", file) : CLI_PROCEED;
}

/* ---- the run -------------------------------------------------------------------------------------- */

static int create(struct course *course)
{
    char label[CLI_POINT_LABEL_MAX];
    struct lh_netsim_config *config = NULL;
    int status = cli_sim_plan_config(course->plan, course->run->point, &config);
    if (status != CLI_PROCEED)
        return status;
    int code = lh_netsim_create(config, course->run->seed, &course->simulation);
    lh_netsim_config_destroy(config);
    if (!code)
        return CLI_PROCEED;
    cli_sim_plan_label(course->plan, course->run->point, label, sizeof label);
    int (*fail)(const char *, ...) = code == -LH_ENOMEM ? cli_failed : cli_misused;
    return fail("%s: %s%s%s", course->plan->scenario.path, label, *label ? ": " : "", lh_last_error());
}

/* Runs until that time or until nothing is left: 1, or 0, or negative, as lh_netsim_run(). */
static int advance(struct course *course, uint64_t until_ps)
{
    struct lh_netsim_totals totals;
    for (;;) {
        int code = lh_netsim_run(course->simulation, until_ps, EVENTS_AT_ONCE);
        lh_netsim_totals(course->simulation, &totals);
        cli_sim_progress_show(&course->progress, &totals, course->plan->output.until_ps);
        if (code || totals.now_ps >= until_ps)
            return code;
    }
}

static int go(struct course *course)
{
    uint64_t until_ps = course->plan->output.until_ps, period_ps = course->plan->output.period_ps,
             next_ps = 0;
    bool sampled = course->queues.file || course->rates.file;
    lh_time started = cli_now();
    int code = 0;
    while (!code && next_ps < until_ps) {
        next_ps = sampled && until_ps - next_ps > period_ps ? next_ps + period_ps : until_ps;
        code = advance(course, next_ps);
        if (code >= 0 && sampled && next_ps != CLI_NO_END) {
            cli_series_sample(&course->queues, course->simulation, next_ps);
            cli_series_sample(&course->rates, course->simulation, next_ps);
        }
    }
    course->wall_s = cli_seconds(cli_now() - started);
    cli_sim_progress_clear(&course->progress);
    return code < 0 ? cli_failed("%s: %s", course->plan->scenario.path, lh_last_error()) : CLI_PROCEED;
}

static int open_files(struct course *course)
{
    const struct cli_sim_output *output = &course->plan->output;
    const struct cli_folder *folder = &course->run->folder;
    int status = cli_series_open(&course->queues, folder, false, course->simulation, output->queues);
    if (status == CLI_PROCEED)
        status = cli_series_open(&course->rates, folder, true, course->simulation, output->rates);
    if (status == CLI_PROCEED)
        status = open_capture(course);
    return status;
}

static int worse(int status, int other)
{
    return status != CLI_PROCEED ? status : other;
}

static int close_files(struct course *course, int status)
{
    course->run->queues = course->queues.shape;
    course->run->rates = course->rates.shape;
    status = worse(status, cli_series_close(&course->queues));
    status = worse(status, cli_series_close(&course->rates));
    return worse(status, close_capture(course));
}

static int look(struct course *course)
{
    const struct cli_folder *folder = &course->run->folder;
    if (cli_figures_collect(&course->run->figures, course->simulation, &course->plan->output,
                            course->wall_s))
        return cli_failed("out of memory");
    if (!*folder->path)
        return CLI_PROCEED;
    return worse(cli_csv_flows(folder, course->simulation), cli_csv_links(folder, course->simulation));
}

int cli_sim_run(const struct cli_sim_plan *plan, struct cli_sim_run *run, const char *label)
{
    struct course course = {.plan = plan, .run = run};
    int status = create(&course);
    if (status != CLI_PROCEED)
        return status;
    cli_sim_progress_start(&course.progress, label);
    status = open_files(&course);
    if (status == CLI_PROCEED)
        status = go(&course);
    status = close_files(&course, status);
    if (status == CLI_PROCEED)
        status = look(&course);
    lh_netsim_destroy(course.simulation);
    return status;
}
