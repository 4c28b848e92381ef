/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_results.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <longhaul/netsim.h>
#include <longhaul/types.h>
#include <longhaul/units.h>

#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"
#include "cli/terminal/terminal.h"

/* ---- progress -------------------------------------------------------------------------------------- */

/* How far a simulation is, on stderr; nothing at all when stderr is no terminal. */

struct cli_sim_progress {
    const char *label; /* which of several runs */
    bool shown;
    lh_time started_ns, drawn_ns;
};

#define DRAW_EVERY_NS (100 * LH_NS_PER_MS)
#define PS_PER_S      1e12
#define LABEL_COLUMNS 32
/* Columns right of the bar, and the brackets with their blanks. */
#define RIGHT_COLUMNS 54
/* Below that share of the work the duration is unknown. */
#define GUESS_FROM 0.01

/* The label must stay. */
static void cli_sim_progress_start(struct cli_sim_progress *progress, const char *label)
{
    *progress = (struct cli_sim_progress){
        .label = label, .shown = isatty(STDERR_FILENO) != 0, .started_ns = cli_now()};
}

/* What is nearer: the last flow, or the end of time. */
static double share_done(const struct lh_netsim_totals *totals, uint64_t until_ps)
{
    double flows = totals->flows ? (double)totals->flows_done / (double)totals->flows : 1;
    double time = until_ps != UINT64_MAX ? (double)totals->now_ps / (double)until_ps : 0;
    double share = flows > time ? flows : time;
    return share < 1 ? share : 1;
}

/* The line into out[size]: flows that are done, virtual time, speed, time left; columns wide at most. */
static void cli_sim_progress_line(const char *label, const struct lh_netsim_totals *totals,
                                  uint64_t until_ps, double elapsed_s, unsigned columns, char *out,
                                  size_t size)
{
    char time[LH_FORMAT_MAX], left[LH_FORMAT_MAX] = "", bar[CLI_BAR_MAX] = "", right[4 * LH_FORMAT_MAX];
    double share = share_done(totals, until_ps);
    double hops_per_s = elapsed_s > 0 ? (double)totals->hops / elapsed_s : 0;
    if (share >= GUESS_FROM)
        cli_progress_left(elapsed_s * (1 - share) / share, left, sizeof left);
    lh_format_time((double)totals->now_ps / PS_PER_S, time, sizeof time);
    snprintf(right, sizeof right, "%3d %%  at %-7s  %5.1f M hops/s  %s", (int)(share * 100), time,
             hops_per_s / 1e6, left);
    unsigned room = columns > RIGHT_COLUMNS ? columns - RIGHT_COLUMNS : 0;
    unsigned label_columns = cli_text_columns(label);
    if (label_columns > LABEL_COLUMNS)
        label_columns = LABEL_COLUMNS;
    room -= room > label_columns ? label_columns : room;
    if (room >= 10)
        cli_progress_bar(share, room < CLI_BAR_COLUMNS_MAX ? room : CLI_BAR_COLUMNS_MAX, bar);
    snprintf(out, size < columns ? size : columns, "%.*s%s%s%s%s", (int)label_columns, label,
             label_columns ? "  " : "", bar, *bar ? "  " : "", right);
}

/* Draws at most ten times a second. until_ps: where it will end, UINT64_MAX: unknown. */
static void cli_sim_progress_show(struct cli_sim_progress *progress, const struct lh_netsim_totals *totals,
                                  uint64_t until_ps)
{
    char line[256];
    lh_time now = cli_now();
    if (!progress->shown || now - progress->drawn_ns < DRAW_EVERY_NS)
        return;
    progress->drawn_ns = now;
    cli_sim_progress_line(progress->label, totals, until_ps, cli_seconds(now - progress->started_ns),
                          cli_terminal_columns(STDERR_FILENO), line, sizeof line);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

static void cli_sim_progress_clear(struct cli_sim_progress *progress)
{
    if (progress->shown && progress->drawn_ns) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->drawn_ns = 0;
}

/* ---- run ------------------------------------------------------------------------------------------- */

/* Between two looks at the clock: a few milliseconds. */
#define EVENTS_AT_ONCE 100000

/* Packets that are written down while it runs. */
struct capture {
    FILE *file; /* NULL: nothing is captured */
    uint64_t written, left, missed;
    uint32_t header_bytes;
    bool full;
};

struct course {
    const struct cli_sim_plan *plan;
    struct cli_sim_run *run;
    struct lh_netsim *simulation;
    struct cli_series queues, rates;
    struct cli_observation observation;
    struct capture capture;
    struct cli_sim_progress progress;
    struct lh_netsim_totals totals;
    double wall_s;
    bool over; /* nothing is left to happen */
};

/* ---- capture -------------------------------------------------------------------------------------- */

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct capture *capture = context;
    if (!capture->left) {
        capture->missed++;
        return;
    }
    cli_pcap_packet(capture->file, packet, capture->header_bytes, capture->full);
    capture->written++;
    capture->left--;
}

/* Each link that is asked for. */
static int watch(struct course *course, const char *patterns)
{
    struct lh_netsim_link link;
    uint32_t links = lh_netsim_links_count(course->simulation);
    for (uint32_t i = 0; i < links && !lh_netsim_link(course->simulation, i, &link); i++)
        if (cli_link_matches(patterns, link.from, link.to) &&
            lh_netsim_watch(course->simulation, i, on_packet, &course->capture))
            return cli_failed("output.pcap: %s", lh_last_error());
    return CLI_PROCEED;
}

static int open_capture(struct course *course)
{
    const struct cli_sim_output *output = &course->plan->output;
    struct capture *capture = &course->capture;
    uint64_t header_bytes = 0;
    if (!*output->pcap || !*course->run->folder.path)
        return CLI_PROCEED;
    capture->file = cli_folder_open(&course->run->folder, "capture.pcap");
    if (!capture->file)
        return CLI_EXIT_FAILED;
    lh_parse_size(cli_sim_plan_text(course->plan, course->run->point, "transport.header"), &header_bytes);
    capture->header_bytes = (uint32_t)header_bytes;
    capture->left = output->packets;
    capture->full = output->full_packets;
    cli_pcap_start(capture->file);
    return watch(course, output->pcap);
}

/* What a run has left that did not end is no capture. */
static int close_capture(struct course *course, int status)
{
    FILE *file = course->capture.file;
    const struct cli_folder *folder = &course->run->folder;
    course->run->captured = course->capture.written;
    course->run->uncaptured = course->capture.missed;
    course->capture = (struct capture){0};
    if (file && status == CLI_PROCEED)
        return cli_folder_close(folder, "capture.pcap", file);
    if (file)
        cli_result_drop(file);
    return status;
}

/* ---- the run -------------------------------------------------------------------------------------- */

/* Runs until that time or until nothing is left: 1, or 0, or negative, as lh_netsim_run(). */
static int advance(struct course *course, uint64_t until_ps)
{
    struct lh_netsim_totals *totals = &course->totals;
    for (;;) {
        uint64_t before = totals->events;
        int code = lh_netsim_run(course->simulation, until_ps, EVENTS_AT_ONCE);
        lh_netsim_totals(course->simulation, totals);
        cli_sim_progress_show(&course->progress, totals, course->plan->output.until_ps);
        if (code || totals->now_ps >= until_ps || cli_stopped())
            return code;
        if (totals->events == before) /* nothing, until time itself ends */
            return 1;
    }
}

/* The next sample, or the end. While nothing is under way, samples are left out up to the last one before a
 * flow begins: a flow in a hundred seconds would cost ten million of them. */
static uint64_t next_stop(const struct course *course, uint64_t last_ps)
{
    const struct cli_sim_output *output = &course->plan->output;
    const struct lh_netsim_totals *totals = &course->totals;
    struct lh_netsim_flow flow;
    uint64_t next_ps = last_ps;
    if (!cli_series_goes_on(&course->queues) && !cli_series_goes_on(&course->rates) &&
        !cli_observation_goes_on(&course->observation))
        return output->until_ps;
    bool idle =
        !totals->packets_alive && totals->flows_started == totals->flows_done + totals->flows_failed;
    if (idle && !lh_netsim_flow(course->simulation, totals->flows_started, &flow) &&
        flow.start_ps > last_ps + output->period_ps)
        next_ps = (flow.start_ps - 1) / output->period_ps * output->period_ps;
    else if (output->until_ps - last_ps > output->period_ps)
        next_ps += output->period_ps;
    else
        next_ps = output->until_ps;
    return next_ps < output->until_ps ? next_ps : output->until_ps;
}

static int go(struct course *course)
{
    uint64_t until_ps = course->plan->output.until_ps, now_ps = 0;
    lh_time started = cli_now();
    int code = 0;
    lh_netsim_totals(course->simulation, &course->totals);
    while (!code && now_ps < until_ps && !cli_stopped()) {
        now_ps = next_stop(course, now_ps);
        code = advance(course, now_ps);
        if (code > 0)
            now_ps = course->totals.now_ps; /* it ended before */
        if (code >= 0 && !cli_stopped()) {
            cli_series_sample(&course->queues, course->simulation, now_ps);
            cli_series_sample(&course->rates, course->simulation, now_ps);
            if (cli_observation_sample(&course->observation, course->simulation, now_ps))
                return cli_failed("out of memory");
        }
    }
    course->over = code > 0;
    course->wall_s = cli_seconds(cli_now() - started);
    cli_sim_progress_clear(&course->progress);
    if (cli_stopped())
        return cli_stopped();
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

static int close_files(struct course *course, int status)
{
    course->run->queues = course->queues.shape;
    course->run->rates = course->rates.shape;
    status = cli_series_close(&course->queues, status);
    status = cli_series_close(&course->rates, status);
    return close_capture(course, status);
}

static int look(struct course *course)
{
    const struct cli_folder *folder = &course->run->folder;
    if (cli_figures_collect(&course->run->figures, course->simulation, &course->plan->output,
                            course->wall_s, course->over))
        return cli_failed("out of memory");
    cli_observation_collect(&course->observation, course->simulation, course->run->figures.value);
    if (!*folder->path)
        return CLI_PROCEED;
    int status = cli_csv_flows(folder, course->simulation);
    return status == CLI_PROCEED ? cli_csv_links(folder, course->simulation) : status;
}

int cli_sim_run(const struct cli_sim_plan *plan, struct cli_sim_run *run, const char *label)
{
    struct course course = {.plan = plan, .run = run};
    int status = cli_sim_plan_create(plan, run->point, run->seed, &course.simulation);
    if (status != CLI_PROCEED)
        return status;
    cli_sim_progress_start(&course.progress, label);
    status = cli_sim_check_links(plan, run->point, course.simulation);
    if (status == CLI_PROCEED)
        status = open_files(&course);
    cli_observation_open(&course.observation, &plan->output, course.simulation);
    if (status == CLI_PROCEED)
        status = go(&course);
    status = close_files(&course, status);
    if (status == CLI_PROCEED)
        status = look(&course);
    cli_observation_close(&course.observation);
    lh_netsim_destroy(course.simulation);
    return status;
}
