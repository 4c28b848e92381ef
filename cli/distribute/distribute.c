/*
 * distribute.c - longhaul distribute FILE: the options, and the report of rank 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/distribute/distribute.h"

#include "cli/distribute/transfer.h"
#include "cli/file/output_folder.h"
#include "cli/file/summary.h"
#include "cli/group/options.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/run/hosts.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <longhaul/launch.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXAMPLE "distribute FILE"

struct settings {
    struct cli_group group;
    struct cli_transfer_options transfer;
    const char *json;  /* NULL: none; "-": standard output */
    const char *shell; /* that starts the other ranks; NULL: the default */
};

/* Of rank 0. */
struct report {
    struct cli_source source;
    FILE *json; /* NULL: none */
};

/* ---- the report -------------------------------------------------------------------------------------- */

static void print_summary(const struct settings *settings, const struct cli_transferred *done,
                          const struct report *report, struct lh_group *group)
{
    struct cli_file_summary summary = {.done = "distributed",
                                       .name = report->source.name,
                                       .size_bytes = done->size_bytes,
                                       .resumed_bytes = done->resumed_bytes,
                                       .elapsed_ns = done->elapsed_ns};
    uint32_t sites = cli_group_sites(group);
    memcpy(summary.digest, done->digest, sizeof summary.digest);
    if (report->json == stdout)
        return;
    cli_file_summary_print(&summary);
    printf("to %" PRIu32 " rank%s", lh_group_size(group) - 1, cli_plural(lh_group_size(group) - 1));
    if (sites > 1)
        printf(", sites %" PRIu32, sites);
    if (done->schedule)
        printf(", schedule %s", done->schedule);
    printf(", reliability %s", cli_group_inside(&settings->group));
    if (sites > 1)
        printf(", between sites %s", cli_group_across(&settings->group, group));
    putchar('\n');
    cli_output_flush();
}

static void write_json(const struct settings *settings, const struct cli_transferred *done,
                       const struct report *report, struct lh_group *group)
{
    char digest[CLI_DIGEST_TEXT_MAX];
    struct cli_json json = {.out = report->json};
    double seconds = cli_seconds(done->elapsed_ns);
    double moved = (double)(done->size_bytes - done->resumed_bytes);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "name", report->source.name);
    cli_json_count(&json, "size_bytes", done->size_bytes);
    cli_json_count(&json, "resumed_bytes", done->resumed_bytes);
    cli_json_text(&json, "xxh3_128", cli_digest_text(done->digest, digest));
    cli_json_text(&json, "schedule", done->schedule ? done->schedule : "");
    cli_json_count(&json, "ranks", lh_group_size(group));
    cli_json_count(&json, "sites", cli_group_sites(group));
    cli_json_text(&json, "reliability", cli_group_inside(&settings->group));
    cli_json_text(&json, "reliability_across", cli_group_across(&settings->group, group));
    cli_json_number(&json, "time_s", seconds);
    cli_json_number(&json, "rate_bps", seconds > 0 && moved > 0 ? 8 * moved / seconds : NAN);
    cli_json_close(&json, '}');
    cli_json_end(&json);
    cli_output_flush();
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

/* *group: for leave(). */
static int run_group(struct settings *settings, struct report *report, struct lh_group **group)
{
    struct cli_transferred done;
    int status = cli_group_create(&settings->group, EXAMPLE, group);
    if (status != CLI_PROCEED)
        return status;
    cli_stop_at_once(false);
    if (lh_group_size(*group) == 1)
        status = cli_misused("1 rank: no receiver (start two ranks or more)");
    else
        status = cli_transfer(&settings->transfer, *group, report ? &report->source : NULL, &done);
    if (status == CLI_EXIT_OK && report)
        print_summary(settings, &done, report, *group);
    if (status == CLI_EXIT_OK && report && report->json)
        write_json(settings, &done, report, *group);
    return status;
}

/* The last: it waits for ranks of which a signal may tell that they are gone. */
static void leave(struct lh_group *group)
{
    cli_stop_leaving();
    lh_group_destroy(group);
}

static int close_json(const char *json, FILE *file, int status)
{
    if (status != CLI_EXIT_OK) {
        cli_result_drop(file);
        return status;
    }
    int written = cli_result_close("--json ", json, file);
    return written == CLI_PROCEED ? CLI_EXIT_OK : written;
}

/* Of rank 0: what is wrong with its files ends it before there is a group. */
static int run_first(struct settings *settings)
{
    struct report report = {0};
    struct lh_group *group = NULL;
    const char *path = settings->transfer.path, *json = settings->json;
    bool to_stdout = json && !strcmp(json, "-");
    if (!cli_source_open(&report.source, path))
        return cli_failed("%s %s", path, report.source.reason);
    int status = json ? cli_result_spare("--json ", json, path) : CLI_PROCEED;
    if (status != CLI_PROCEED) {
        cli_source_close(&report.source);
        return status;
    }
    status = CLI_EXIT_FAILED;
    if (json)
        report.json = to_stdout ? stdout : cli_result_open("--json ", json);
    if (!json || report.json)
        status = run_group(settings, &report, &group);
    cli_source_close(&report.source);
    if (report.json && !to_stdout)
        status = close_json(json, report.json, status);
    leave(group);
    return status;
}

static int run_other(struct settings *settings)
{
    struct lh_group *group = NULL;
    int status = run_group(settings, NULL, &group);
    leave(group);
    return status;
}

static bool is_host(const struct cli_operands *operands, const char *word)
{
    unsigned i = 1;
    while (i < operands->count && operands->text[i] != word)
        i++;
    return i < operands->count;
}

/* Without hosts a launcher gives them. */
static int check_launched(const char *host)
{
    uint32_t rank, size;
    bool launched = lh_group_rank_env(&rank, &size) != -LH_ESTATE;
    if (!launched && !host)
        return cli_misused("missing HOST (usage: longhaul distribute FILE HOST...; or start the ranks with "
                           "longhaul run, mpirun, srun or torchrun)");
    if (launched && host)
        return cli_misused("%s: a launcher has started this process, and has the hosts (omit HOST)", host);
    return CLI_PROCEED;
}

/* What this process was called with, but for the hosts, is what each rank is. */
static int run_on_hosts(const struct settings *settings, const struct cli_operands *operands, char **argv)
{
    struct cli_source source = {0};
    uint32_t count = 0;
    const char *path = settings->transfer.path;
    if (!cli_source_open(&source, path))
        return cli_failed("%s %s", path, source.reason);
    cli_source_close(&source);
    for (char **word = argv; *word; word++)
        if (!is_host(operands, *word))
            argv[count++] = *word;
    argv[count] = NULL;
    return cli_run_on_hosts(settings->shell, operands->text + 1, operands->count - 1, argv);
}

int cli_distribute(int argc, char **argv)
{
    struct settings settings = {.transfer.incoming.output = "."};
    struct cli_incoming_options *incoming = &settings.transfer.incoming;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"output", "DIR", "folder for the file at each rank but 0; %r in it is the rank (.)",
         &incoming->output, .kind = CLI_TEXT, .letter = 'o'},
        {"force", NULL, "replace existing files", &incoming->force, .kind = CLI_FLAG},
        {"dotfiles", NULL, "accept names that begin with a dot, such as .profile", &incoming->dotfiles,
         .kind = CLI_FLAG},
        {"resume", NULL, "continue where an interrupted try ended, and keep this one resumable",
         &incoming->resume, .kind = CLI_FLAG},
        {"schedule", "NAME",
         "who sends what to whom: hybrid, binomial-pipeline, chain, ... (hybrid between sites, else "
         "binomial-pipeline)",
         &settings.transfer.schedule, .kind = CLI_TEXT},
        {"rsh", "COMMAND", "remote shell that starts the command on each HOST (ssh)", &settings.shell,
         .kind = CLI_TEXT},
        {"json", "FILE", "rank 0 writes the result to FILE; - is standard output", &settings.json,
         .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "distribute",
        .operands = "FILE [HOST...]",
        .about =
            "Sends a file to many machines: to each HOST, where ssh starts the same command; or from rank "
            "0 "
            "to all\nother ranks that a launcher has started. At each it appears once it is complete, on "
            "disk and verified by\nits digest.",
        .more =
            "longhaul distribute model.bin a b user@c -o /data\n"
            "mpirun --host a:1,b:1,c:1 longhaul distribute model.bin -o /data\n"
            "longhaul run -n 8 --sites 3 -- longhaul distribute FILE -o 'out/%r'    (with folders out/1 to "
            "out/7)\n"
            "Each long link carries the file once.",
        .groups = {own, settings.group.options},
        .operands_min = 1,
        .operands_max = LH_GROUP_RANKS_MAX,
        .operands_taken = "one FILE, and up to 255 HOSTs",
    };
    bool is_first = false;
    cli_group_options(&settings.group, false);
    /* Ranks pass blocks on while they write. */
    settings.group.attr.thread = true;
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_group_check(&settings.group);
    if (status == CLI_PROCEED)
        status = cli_group_check_schedule("broadcast", settings.transfer.schedule);
    if (status == CLI_PROCEED)
        settings.transfer.path = operands.text[0];
    if (status == CLI_PROCEED)
        status = check_launched(operands.text[1]);
    if (status == CLI_PROCEED && operands.count > 1)
        return run_on_hosts(&settings, &operands, argv);
    if (status == CLI_PROCEED)
        status = cli_group_is_first(EXAMPLE, &is_first);
    if (status != CLI_PROCEED)
        return status;
    incoming->umask = cli_umask();
    return is_first ? run_first(&settings) : run_other(&settings);
}
