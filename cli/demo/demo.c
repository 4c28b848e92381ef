/*
 * demo.c - longhaul demo: options, data, and one transfer after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/demo/demo.h"

#include "cli/demo/report.h"
#include "cli/demo/run.h"
#include "cli/demo/short_messages.h"
#include "cli/demo/tcp.h"
#include "cli/file/digest.h"
#include "cli/file/message.h"
#include "cli/file/source.h"
#include "cli/options/deadline.h"
#include "cli/options/loss_list.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define USUAL_LINK   "rtt=25ms,rate=2Gbit"
#define USUAL_LOSSES "0,1e-5,1e-4,1e-3,1e-2"
#define USUAL_BYTES  ((uint64_t)128 << 20)
#define QUICK_LOSSES "0,1e-3"
#define QUICK_BYTES  ((uint64_t)16 << 20)
#define BYTES_MAX    ((uint64_t)4 << 30)
#define BYTES_MIN    ((uint64_t)1 << 20)

/* Short messages, after the long ones. */
#define SHORT_BYTES    ((uint64_t)1 << 20)
#define SHORT_MESSAGES 20
#define QUICK_MESSAGES 10
#define SHORT_LOSSES   2 /* the worst of those that there are */

/* The size is chosen to fit this time unless it is given. */
#define SHOW_S         25.0
#define SET_UP_S       0.4 /* of each transfer: processes, memory, digest */
#define LATE_S         3.0
#define NO_RATE_S      35.0 /* timeout on a link without a rate */
#define LATE_TIMES     8    /* the ideal */
#define LATE_DEADLINES 4    /* a deadline is for losses: what keeps hosts busy shall not cut anything off */
#define TCP_TIMES      6    /* the ideal, for TCP */
#define TCP_MAX        8

struct stage {
    struct lh_link_spec link;
    struct cli_loss_list losses;
    const char *only; /* scheme; NULL: all */
    const char *path;
    uint64_t bytes; /* 0: what fits */
    uint32_t short_messages;
    uint8_t *data, *landing;
    uint8_t digest[CLI_DIGEST_BYTES];
    bool tcp_late[TCP_MAX]; /* by its congestion control: it was late once, and more loss makes it later */
    char no_tcp[160];       /* why it is not measured at all */
};

static unsigned count_schemes(const struct stage *stage)
{
    unsigned count = 0;
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme; scheme++)
        count++;
    return stage->only ? 1 : count;
}

/* As much as the show has time for. */
static uint64_t fitting_bytes(const struct stage *stage)
{
    unsigned transfers = stage->losses.count * count_schemes(stage);
    uint64_t bytes = USUAL_BYTES;
    double ideal = cli_demo_ideal_s(&stage->link, bytes, 1);
    while (bytes > BYTES_MIN && transfers * (SET_UP_S + ideal) > SHOW_S) {
        bytes /= 2;
        ideal = cli_demo_ideal_s(&stage->link, bytes, 1);
    }
    return bytes;
}

/* Bytes that no compression and no stale memory looks like. */
static void generate(uint8_t *data, uint64_t bytes)
{
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(data + i, &state, 8);
    }
}

static int load(struct stage *stage, struct cli_source *source)
{
    if (!cli_source_read(source, 0, stage->data, stage->bytes))
        return cli_failed("%s %s", stage->path, source->reason);
    return CLI_PROCEED;
}

static int digest_data(const struct stage *stage, uint64_t bytes, uint8_t out[CLI_DIGEST_BYTES])
{
    struct cli_digest digest;
    if (cli_digest_open(&digest))
        return cli_failed("out of memory");
    cli_digest_add(&digest, stage->data, bytes);
    cli_digest_get(&digest, out);
    cli_digest_close(&digest);
    return CLI_PROCEED;
}

static void *shared_memory(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Memory that the processes share, and the data in it. */
static int prepare(struct stage *stage, struct cli_source *source)
{
    char size[LH_FORMAT_MAX];
    if (stage->path)
        stage->bytes = source->size_bytes;
    else if (!stage->bytes)
        stage->bytes = fitting_bytes(stage);
    lh_format_size(BYTES_MAX, size, sizeof size);
    if (!stage->bytes || stage->bytes > BYTES_MAX)
        return cli_failed("%s: file size out of range (1B to %s)", stage->path, size);
    stage->data = shared_memory(stage->bytes);
    stage->landing = shared_memory(stage->bytes);
    if (!stage->data || !stage->landing)
        return cli_failed("out of memory for twice the data (try --size 16MiB)");
    if (!stage->path)
        generate(stage->data, stage->bytes);
    int status = stage->path ? load(stage, source) : CLI_PROCEED;
    return status == CLI_PROCEED ? digest_data(stage, stage->bytes, stage->digest) : status;
}

static struct cli_demo_run run_of(const struct stage *stage, uint64_t bytes, double loss,
                                  const char *scheme)
{
    struct cli_demo_run run = {
        .data = stage->data,
        .landing = stage->landing,
        .bytes = bytes,
        .messages = 1,
        .link = stage->link,
        .scheme = scheme,
    };
    double ideal = cli_demo_ideal_s(&stage->link, bytes, 1);
    run.link.loss = loss;
    run.timeout_ns =
        (lh_time)((isfinite(ideal) ? LATE_S + LATE_TIMES * ideal : NO_RATE_S) * (double)LH_NS_PER_S);
    if (cli_has_deadline(scheme) && !strstr(scheme, "deadline="))
        run.deadline_ns = run.timeout_ns / LATE_DEADLINES;
    return run;
}

static bool play(const struct stage *stage, struct cli_demo_report *report, double loss, const char *scheme)
{
    struct cli_demo_outcome outcome;
    struct cli_demo_run run = run_of(stage, stage->bytes, loss, scheme);
    memcpy(run.digest, stage->digest, sizeof run.digest);
    cli_demo_report_running(&run);
    cli_demo_run(&run, &outcome);
    cli_demo_report_row(report, &run, &outcome);
    return outcome.whole || outcome.late;
}

/* What Longhaul is compared with. That it fails is no failure of the demo. */
static void play_tcp(struct stage *stage, double loss)
{
    struct cli_demo_outcome outcome;
    struct cli_demo_run run = run_of(stage, stage->bytes, loss, NULL);
    memcpy(run.digest, stage->digest, sizeof run.digest);
    double ideal = cli_demo_ideal_s(&stage->link, stage->bytes, 1);
    if (isfinite(ideal))
        run.timeout_ns = (lh_time)(TCP_TIMES * ideal * (double)LH_NS_PER_S);
    for (unsigned i = 0; cli_demo_tcp_controls[i] && i < TCP_MAX && !*stage->no_tcp; i++) {
        char name[32];
        snprintf(name, sizeof name, "TCP %s", cli_demo_tcp_controls[i]);
        run.scheme = name;
        if (stage->tcp_late[i])
            continue;
        cli_demo_report_running(&run);
        if (cli_demo_tcp_run(&run, cli_demo_tcp_controls[i], &outcome))
            cli_demo_report_tcp_row(&run, &outcome);
        else if (i == 0)
            snprintf(stage->no_tcp, sizeof stage->no_tcp, "%s", outcome.error);
        stage->tcp_late[i] = !outcome.whole;
    }
}

static bool play_short(const struct stage *stage, struct cli_demo_short *table, double loss,
                       const char *scheme)
{
    struct cli_demo_outcome outcome;
    struct cli_demo_run run = run_of(stage, table->bytes, loss, scheme);
    run.messages = table->messages;
    if (digest_data(stage, run.bytes, run.digest) != CLI_PROCEED)
        return false;
    cli_demo_report_running(&run);
    cli_demo_run(&run, &outcome);
    cli_demo_short_row(table, &run, &outcome);
    return outcome.whole || outcome.late;
}

/* With loss and long data: short messages show the difference between the schemes. */
static bool play_shorts(const struct stage *stage)
{
    bool fine = true;
    struct cli_demo_short table = {
        .bytes = SHORT_BYTES, .messages = stage->short_messages, .link = stage->link};
    const struct cli_loss_list *losses = &stage->losses;
    unsigned first = losses->count > SHORT_LOSSES ? losses->count - SHORT_LOSSES : 0;
    bool ideal_known = isfinite(cli_demo_ideal_s(&stage->link, SHORT_BYTES, 1));
    if (stage->bytes <= SHORT_BYTES || !ideal_known || !(losses->ratio[losses->count - 1] > 0))
        return true;
    cli_demo_short_start(&table);
    for (unsigned i = first; i < losses->count; i++) {
        const struct lh_scheme *const *scheme = lh_schemes();
        if (losses->ratio[i] > 0 && stage->only)
            fine &= play_short(stage, &table, losses->ratio[i], stage->only);
        for (; losses->ratio[i] > 0 && !stage->only && *scheme; scheme++)
            fine &= play_short(stage, &table, losses->ratio[i], (*scheme)->name);
    }
    cli_demo_short_end(&table);
    return fine && table.whole == table.rows;
}

static int play_all(struct stage *stage)
{
    bool fine = true;
    struct cli_demo_report report = {
        .data = stage->path ? stage->path : "generated bytes",
        .bytes = stage->bytes,
        .link = stage->link,
    };
    cli_demo_report_start(&report);
    for (unsigned i = 0; i < stage->losses.count; i++) {
        if (stage->only)
            fine &= play(stage, &report, stage->losses.ratio[i], stage->only);
        for (const struct lh_scheme *const *scheme = lh_schemes(); !stage->only && *scheme; scheme++)
            fine &= play(stage, &report, stage->losses.ratio[i], (*scheme)->name);
        play_tcp(stage, stage->losses.ratio[i]);
    }
    report.no_tcp = *stage->no_tcp ? stage->no_tcp : NULL;
    cli_demo_report_end(&report);
    fine &= play_shorts(stage);
    return fine && report.whole ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static int run_demo(struct stage *stage)
{
    struct cli_source source = {.file = -1};
    if (stage->path && !cli_source_open(&source, stage->path))
        return cli_failed("%s %s", stage->path, source.reason);
    int status = prepare(stage, &source);
    cli_source_close(&source);
    return status == CLI_PROCEED ? play_all(stage) : status;
}

int cli_demo(int argc, char **argv)
{
    bool quick = false;
    const char *losses = NULL;
    struct stage stage = {0};
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"link", "LINK", "the link between the two processes, without its loss (" USUAL_LINK ")",
         &stage.link, .kind = CLI_LINK},
        {"size", "SIZE", "size of the generated data (64MiB; less for a slow link, more for few transfers)",
         &stage.bytes, .kind = CLI_SIZE, .min = 1, .max = BYTES_MAX},
        {"loss", "LIST", "loss ratios of packets (" USUAL_LOSSES ")", &losses, .kind = CLI_TEXT},
        {"reliability", "SCHEME", "this scheme only (all schemes)", &stage.only, .kind = CLI_SCHEME},
        {"quick", NULL, "a few seconds: 16MiB, losses " QUICK_LOSSES, &quick, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "demo",
        .operands = "[FILE]",
        .about =
            "Shows completion times over a long, lossy link, with each reliability scheme:\n"
            "two processes on this machine, and an emulated link between them. Needs no root, no hardware.",
        .groups = {own},
        .operands_max = 1,
    };
    lh_link_parse(USUAL_LINK, &stage.link);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    if (!losses)
        losses = quick ? QUICK_LOSSES : USUAL_LOSSES;
    if (quick && !stage.bytes)
        stage.bytes = QUICK_BYTES;
    stage.short_messages = quick ? QUICK_MESSAGES : SHORT_MESSAGES;
    status = cli_loss_list_parse("loss", losses, &stage.losses);
    if (status != CLI_PROCEED)
        return status;
    stage.path = operands.count ? operands.text[0] : NULL;
    return run_demo(&stage);
}
