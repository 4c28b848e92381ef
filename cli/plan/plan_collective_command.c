/*
 * plan_collective_command.c - longhaul plan --collective: options, table, JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/plan_parts.h"

#include "cli/options/cli_options.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

#include <longhaul/plan.h>
#include <longhaul/units.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As they are typed. */
struct settings {
    const char *loss, *burst, *by, *json;
    uint64_t bandwidth_bps, inside_bps;
    lh_time rtt_ns, inside_rtt_ns;
    uint32_t mtu_bytes;
    struct lh_plan_collective_question question;
};

/* ---- what is asked ----------------------------------------------------------------------------------- */

static int take_by(const char *by, enum lh_plan_by *measure)
{
    static const char *const names[] = {
        [LH_PLAN_BY_MEAN] = "mean", [LH_PLAN_BY_P50] = "p50", [LH_PLAN_BY_P99] = "p99"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(by, names[i]) == 0) {
            *measure = (enum lh_plan_by)i;
            return CLI_PROCEED;
        }
    return cli_misused("--by %s: unknown measure (mean, p50 or p99)", by);
}

static int take_loss(const struct settings *settings, struct lh_model_path *link)
{
    char *end = NULL;
    if (settings->loss && (lh_parse_ratio(settings->loss, &link->loss) || !(link->loss < 1)))
        return cli_misused("--loss %s: invalid loss ratio (example: 1e-3; below 1)", settings->loss);
    if (settings->burst)
        link->burst_packets = strtod(settings->burst, &end);
    if (settings->burst && (*end || !(link->burst_packets >= 1)))
        return cli_misused("--burst %s: invalid burst length (example: 16)", settings->burst);
    return CLI_PROCEED;
}

static bool has_data(const struct lh_plan_collective_question *question)
{
    return strcmp(question->collective, "barrier") != 0;
}

/* An unknown name is wrong whatever else is missing. */
static int check_name(const char *collective)
{
    struct lh_plan_collective_question question;
    lh_plan_collective_init(&question);
    question.collective = collective;
    question.bytes = 1;
    return lh_plan_collective_memory(&question) > 0 ? CLI_PROCEED : cli_misused("%s", lh_last_error());
}

/* In one site the link is that between its ranks. */
static int take(struct settings *settings)
{
    struct lh_plan_collective_question *question = &settings->question;
    struct lh_model_path *link = question->sites > 1 ? &question->across : &question->inside;
    int status = check_name(question->collective);
    if (status != CLI_PROCEED)
        return status;
    if (!question->bytes && has_data(question))
        return cli_misused("missing --size SIZE (example: --size 64MiB)");
    if (!settings->bandwidth_bps)
        return cli_misused("missing --bandwidth RATE (example: --bandwidth 2Gbit)");
    if (!settings->rtt_ns)
        return cli_misused("missing --rtt TIME (example: --rtt 25ms)");
    if (question->sites < 2 && (settings->inside_bps || settings->inside_rtt_ns))
        return cli_misused("--inside-bandwidth, --inside-rtt: only with several sites (--sites 2)");
    if (settings->inside_bps)
        question->inside.bandwidth_bps = (double)settings->inside_bps;
    if (settings->inside_rtt_ns)
        question->inside.rtt_s = 1e-9 * (double)settings->inside_rtt_ns;
    link->bandwidth_bps = (double)settings->bandwidth_bps;
    link->rtt_s = 1e-9 * (double)settings->rtt_ns;
    question->inside.mtu_bytes = question->across.mtu_bytes = settings->mtu_bytes;
    status = take_loss(settings, link);
    return status == CLI_PROCEED ? take_by(settings->by, &question->by) : status;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static const struct cli_column columns[] = {
    {"schedule", 17, true}, {"blocks", 9, false}, {"across", 20, true}, {"without loss", 12, false},
    {"mean", 9, false},     {"p50", 9, false},    {"p99", 9, false},    {NULL, 0, false},
};

/* A chunk is a packet or more. */
static bool loses_much(const struct lh_plan_collective_question *question)
{
    const struct lh_model_path *link = question->sites > 1 ? &question->across : &question->inside;
    return link->loss > CLI_PLAN_CHUNK_LOSS_SURE;
}

static void put_time(struct cli_cell *cell, double seconds)
{
    lh_format_time(seconds, cell->text, sizeof cell->text);
}

static void print_choice(const struct cli_table *table, const struct lh_plan_collective_choice *choice,
                         bool best)
{
    struct cli_cell cells[CLI_COLUMNS_MAX] = {0};
    snprintf(cells[0].text, sizeof cells[0].text, "%s", choice->schedule);
    cells[0].colour = best ? CLI_GREEN : CLI_PLAIN;
    lh_format_size(choice->block_bytes, cells[1].text, sizeof cells[1].text);
    lh_model_scheme_format(&choice->across, cells[2].text, sizeof cells[2].text);
    put_time(&cells[3], choice->ideal_s);
    put_time(&cells[4], choice->mean_s);
    put_time(&cells[5], choice->p50_s);
    put_time(&cells[6], choice->p99_s);
    cli_table_row(table, cells);
}

static void print_all(const struct lh_plan_collective_question *question,
                      const struct lh_plan_collective_choice *choices, uint32_t count)
{
    char size[LH_FORMAT_MAX], block[LH_FORMAT_MAX], across[LH_MODEL_SCHEME_TEXT_MAX];
    char inside[LH_MODEL_SCHEME_TEXT_MAX];
    struct cli_table table = {columns, stdout, "  ", cli_terminal_colours(STDOUT_FILENO)};
    lh_format_size(question->bytes, size, sizeof size);
    lh_format_size(choices[0].block_bytes, block, sizeof block);
    lh_model_scheme_format(&choices[0].across, across, sizeof across);
    lh_model_scheme_format(&choices[0].inside, inside, sizeof inside);
    printf("\n  %s, ", question->collective);
    if (has_data(question))
        printf("%s, ", size);
    printf("%u ranks in %u site%s: %s, ", question->ranks, question->sites, question->sites > 1 ? "s" : "",
           choices[0].schedule);
    if (has_data(question))
        printf("blocks of %s, ", block);
    if (question->sites > 1)
        printf("%s across sites, %s inside\n\n", across, inside);
    else
        printf("%s\n\n", inside);
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (uint32_t i = 0; i < count; i++)
        print_choice(&table, &choices[i], i == 0);
    if (loses_much(question))
        printf("\n  Note: %s.\n", CLI_PLAN_CHUNK_LOSS_NOTE);
    printf("\n");
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

static void put_choice(struct cli_json *json, const struct lh_plan_collective_choice *choice)
{
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "schedule", choice->schedule);
    cli_json_count(json, "block_bytes", choice->block_bytes);
    cli_json_text(json, "inside", lh_model_scheme_format(&choice->inside, scheme, sizeof scheme));
    cli_json_text(json, "across", lh_model_scheme_format(&choice->across, scheme, sizeof scheme));
    cli_json_number(json, "ideal_s", choice->ideal_s);
    cli_json_number(json, "mean_s", choice->mean_s);
    cli_json_number(json, "p50_s", choice->p50_s);
    cli_json_number(json, "p99_s", choice->p99_s);
    cli_json_close(json, '}');
}

static void put_all(FILE *out, const struct lh_plan_collective_question *question,
                    const struct lh_plan_collective_choice *choices, uint32_t count)
{
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "collective", question->collective);
    cli_json_count(&json, "ranks", question->ranks);
    cli_json_count(&json, "sites", question->sites);
    cli_json_count(&json, "size_bytes", question->bytes);
    cli_json_open(&json, "choices", '[');
    for (uint32_t i = 0; i < count; i++)
        put_choice(&json, &choices[i]);
    cli_json_close(&json, ']');
    if (loses_much(question))
        cli_json_text(&json, "note", CLI_PLAN_CHUNK_LOSS_NOTE);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static int report(const struct settings *settings, const struct lh_plan_collective_choice *choices,
                  uint32_t count)
{
    bool to_stdout = settings->json && strcmp(settings->json, "-") == 0;
    FILE *out = stdout;
    if (!to_stdout)
        print_all(&settings->question, choices, count);
    if (!settings->json)
        return CLI_EXIT_OK;
    if (!to_stdout)
        out = cli_result_open("--json ", settings->json);
    if (!out)
        return CLI_EXIT_FAILED;
    put_all(out, &settings->question, choices, count);
    int status = to_stdout ? CLI_PROCEED : cli_result_close("--json ", settings->json, out);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int carry_out(const struct settings *settings)
{
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    uint32_t count;
    size_t bytes = lh_plan_collective_memory(&settings->question);
    if (bytes == 0)
        return cli_misused("%s", lh_last_error());
    void *memory = malloc(bytes);
    if (!memory)
        return cli_failed("out of memory");
    int failed = lh_plan_collective(&settings->question, memory, choices, &count);
    free(memory);
    return failed ? cli_misused("%s", lh_last_error()) : report(settings, choices, count);
}

int cli_plan_collective(int argc, char **argv)
{
    struct settings settings = {.by = "mean", .mtu_bytes = 4096};
    struct lh_plan_collective_question *question = &settings.question;
    struct cli_operands operands;
    lh_plan_collective_init(question);
    const struct cli_option options[] = {
        {"collective", "NAME", "allreduce, allgather, reduce-scatter, alltoall, broadcast, ...",
         &question->collective, .kind = CLI_TEXT},
        {"schedule", "NAME", "only this schedule (all of the collective)", &question->schedule,
         .kind = CLI_TEXT},
        {"ranks", "N", "number of ranks (2)", &question->ranks, .kind = CLI_COUNT, .min = 2, .max = 1024},
        {"sites", "N", "number of sites, with equal numbers of ranks (1)", &question->sites,
         .kind = CLI_COUNT, .min = 1, .max = 1024},
        {"size", "SIZE", "data of a rank (a barrier has none); example: 64MiB", &question->bytes,
         .kind = CLI_SIZE, .min = 1},
        {"block", "SIZE", "maximum message size (256KiB)", &question->block_bytes, .kind = CLI_SIZE,
         .min = 16384, .max = UINT64_C(1) << 31},
        {"bandwidth", "RATE", "rate of the link between two sites; with one site, of a rank",
         &settings.bandwidth_bps, .kind = CLI_RATE, .min = 1},
        {"rtt", "TIME", "round trip of the link between two sites; example: 25ms", &settings.rtt_ns,
         .kind = CLI_TIME, .min = 1},
        {"loss", "SHARE", "loss ratio of packets; example: 1e-3 (0)", &settings.loss, .kind = CLI_TEXT},
        {"burst", "N", "mean burst length of losses, in packets (independent losses)", &settings.burst,
         .kind = CLI_TEXT},
        {"inside-bandwidth", "RATE", "rate of a rank inside a site (10Gbit)", &settings.inside_bps,
         .kind = CLI_RATE, .min = 1},
        {"inside-rtt", "TIME", "round trip inside a site (50us)", &settings.inside_rtt_ns, .kind = CLI_TIME,
         .min = 1},
        {"mtu", "SIZE", "payload of a packet (4KiB)", &settings.mtu_bytes, CLI_SIZE32, 0, CLI_POWER_OF_TWO,
         256, 16384},
        {"by", "MEASURE", "measure to minimize: mean, p50 or p99 (mean)", &settings.by, .kind = CLI_TEXT},
        {"json", "FILE", "write results to FILE; - is standard output", &settings.json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "plan --collective NAME",
        .operands = "--ranks N --sites N --size SIZE --bandwidth RATE --rtt TIME --loss SHARE",
        .about = "Recommends a schedule, its block size and reliability schemes for a collective, by the "
                 "model\n(nothing is sent).",
        .groups = {options},
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = take(&settings);
    return status == CLI_PROCEED ? carry_out(&settings) : status;
}
