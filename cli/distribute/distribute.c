/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/launch.h>

#include "cli/distribute/distribute_streams.h"
#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/options/option_values.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/run/run_ranks.h"
#include "cli/terminal/terminal.h"

/* ---- transfer -------------------------------------------------------------------------------------- */

/* One file from rank 0 of a group to all others, as distribute_streams.h has it. */

struct cli_transfer_options {
    const char *path;
    const char *schedule; /* NULL: hybrid between sites, named or found, else binomial-pipeline */
    struct cli_incoming_options incoming;
};

/* Of a file that is at all ranks. */
struct cli_transferred {
    const char *schedule; /* that was run; NULL: no block was sent */
    uint64_t size_bytes, resumed_bytes;
    lh_time elapsed_ns; /* from the first block until all have it on disk */
    uint8_t digest[CLI_DIGEST_BYTES];
};

struct transfer {
    const struct cli_transfer_options *options;
    struct lh_group *group;
    uint32_t rank, ranks;
    struct cli_source *source;    /* of rank 0; NULL at others */
    struct cli_incoming incoming; /* not of rank 0 */
    struct cli_digest digest;     /* of rank 0: of what it has read */
    struct cli_file_message offer;
    struct cli_file_message *all; /* by rank */
    struct cli_stream stream;
    struct cli_site_progress progress; /* of rank 0 */
    uint64_t from_bytes;
    uint32_t failed_rank; /* all have seen that it has failed; LH_NO_RANK: none */
    bool agreed;          /* on the fault, by all */
    lh_time started_ns;
    struct cli_transferred done;
    struct cli_fault own;   /* this rank's, which it is to tell the others; text "": none */
    struct cli_fault fault; /* the one that ends the transfer */
};

/* ---- this rank's failures ---------------------------------------------------------------------------- */

static void fail(struct transfer *t, const char *text)
{
    if (*t->own.text)
        return;
    t->own.rank = t->rank;
    snprintf(t->own.text, sizeof t->own.text, "%s", text);
}

static void check_source(struct transfer *t, bool right)
{
    char text[CLI_FILE_TEXT_MAX + 1];
    if (right)
        return;
    snprintf(text, sizeof text, "the file %s", t->source->reason);
    fail(t, text);
}

static void check_incoming(struct transfer *t, bool right)
{
    if (!right)
        fail(t, t->incoming.reason);
}

static struct cli_file_message message_of(const struct transfer *t)
{
    struct cli_file_message message = {.flags = *t->own.text ? CLI_FILE_NO : 0};
    memcpy(message.text, t->own.text, sizeof message.text);
    return message;
}

/* Whether all go on; else there is a fault. */
static bool agree(struct transfer *t, enum cli_file_kind kind, const struct cli_file_message *mine)
{
    if (!cli_exchange_gather(t->group, kind, mine, t->all, &t->fault))
        return false;
    cli_exchange_find_fault(t->all, t->ranks, &t->fault);
    t->agreed = *t->fault.text;
    return !t->agreed;
}

/* ---- before the blocks ------------------------------------------------------------------------------- */

static bool offer(struct transfer *t)
{
    const struct cli_source *source = t->source;
    if (source) {
        const struct cli_file_attributes attributes = cli_file_attributes_of(source->mode, source->written);
        t->offer = (struct cli_file_message){.flags = t->options->incoming.resume ? CLI_FILE_RESUME : 0,
                                             .size_bytes = source->size_bytes};
        snprintf(t->offer.text, sizeof t->offer.text, "%s", source->name);
        cli_file_attributes_encode(&attributes, t->offer.digest);
    }
    return cli_exchange_announce(t->group, CLI_FILE_OFFER, &t->offer, &t->fault);
}

static bool answer(struct transfer *t)
{
    struct cli_file_message mine = {0};
    if (!t->source)
        check_incoming(t, cli_incoming_open(&t->incoming, t->rank, &t->offer, &mine));
    uint64_t offset_bytes = *t->own.text ? 0 : mine.offset_bytes;
    if (!t->incoming.resumes && !*t->own.text)
        cli_file_note_replaced(t->offer.text, t->incoming.partial.found_bytes);
    if (t->incoming.other_size_bytes > 0 && !*t->own.text)
        cli_file_note_other_size(t->offer.text, t->incoming.other_size_bytes, t->offer.size_bytes);
    mine = message_of(t);
    mine.offset_bytes = offset_bytes;
    return agree(t, CLI_FILE_ANSWER, &mine);
}

/* The offset that all receivers have reached. */
static uint64_t min_offset(const struct transfer *t)
{
    uint64_t minimum = t->offer.size_bytes - t->offer.size_bytes % CLI_BLOCK_BYTES;
    for (uint32_t rank = 1; rank < t->ranks; rank++)
        if (t->all[rank].offset_bytes < minimum)
            minimum = t->all[rank].offset_bytes;
    return minimum - minimum % CLI_BLOCK_BYTES;
}

/* Rank 0: the digest of what lies before the offset. */
static void read_start(struct transfer *t, uint64_t offset_bytes, uint8_t digest[CLI_DIGEST_BYTES])
{
    uint8_t *block = malloc(CLI_BLOCK_BYTES);
    if (!block)
        fail(t, "out of memory");
    for (uint64_t at = 0; at < offset_bytes && !*t->own.text; at += CLI_BLOCK_BYTES) {
        check_source(t, cli_source_read(t->source, at, block, CLI_BLOCK_BYTES));
        cli_digest_add(&t->digest, block, CLI_BLOCK_BYTES);
        if (cli_stopped())
            fail(t, "stopped by a signal");
    }
    cli_digest_get(&t->digest, digest);
    free(block);
}

/* Where all go on: from where the slowest of an earlier try ended, if all have the same file. */
static bool resume(struct transfer *t)
{
    uint64_t offset_bytes = min_offset(t);
    struct cli_file_message start = {0}, mine;
    uint8_t digest[CLI_DIGEST_BYTES] = {0};
    if (offset_bytes == 0)
        return true;
    if (t->source) {
        read_start(t, offset_bytes, digest);
        start = message_of(t);
        start.offset_bytes = offset_bytes;
        memcpy(start.digest, digest, sizeof start.digest);
    }
    if (!cli_exchange_announce(t->group, CLI_FILE_START, &start, &t->fault))
        return false;
    if (!t->source)
        check_incoming(t, cli_incoming_rewind(&t->incoming, offset_bytes, digest));
    mine = message_of(t);
    bool same = !memcmp(digest, start.digest, sizeof digest);
    if (!same && !*t->own.text)
        cli_file_note_other_digest(t->offer.text, offset_bytes);
    mine.offset_bytes = same ? offset_bytes : 0;
    if (!agree(t, CLI_FILE_ANSWER, &mine))
        return false;
    t->from_bytes = min_offset(t);
    if (t->source && t->from_bytes == 0)
        cli_digest_reset(&t->digest);
    return true;
}

/* ---- the blocks -------------------------------------------------------------------------------------- */

static bool begin_block(struct transfer *t)
{
    struct cli_stream *stream = &t->stream;
    size_t bytes;
    uint8_t *block = cli_stream_head(stream, &bytes);
    uint64_t written_bytes = t->source ? stream->begun_bytes : t->incoming.written_bytes;
    if (t->source && !*t->own.text) {
        check_source(t, cli_source_read(t->source, stream->begun_bytes, block, bytes));
        cli_digest_add(&t->digest, block, bytes);
    }
    return cli_stream_begin(stream, written_bytes, *t->own.text, &t->fault);
}

static void take_block(struct transfer *t)
{
    size_t bytes;
    const uint8_t *block = cli_stream_tail(&t->stream, &bytes);
    t->failed_rank = cli_stream_failed_rank(&t->stream);
    if (!t->source && t->failed_rank == LH_NO_RANK && !*t->own.text)
        check_incoming(t, cli_incoming_write(&t->incoming, block, bytes));
    cli_stream_take(&t->stream);
}

/* Until all are taken, or all have seen that a rank has failed. */
static bool move_blocks(struct transfer *t)
{
    struct cli_stream *stream = &t->stream;
    while (t->failed_rank == LH_NO_RANK && !cli_stream_is_done(stream)) {
        while (cli_stream_may_begin(stream))
            if (!begin_block(t))
                return false;
        int code = cli_stream_wait(stream, &t->fault);
        cli_site_progress_show(&t->progress, stream->positions);
        if (!code)
            take_block(t);
        else if (code != -LH_ETIMEDOUT)
            return false;
    }
    return true;
}

static bool stream(struct transfer *t)
{
    if (!t->source)
        check_incoming(t, cli_incoming_start(&t->incoming, t->from_bytes));
    else
        cli_site_progress_start(&t->progress, t->group, t->source->name, t->offer.size_bytes,
                                t->from_bytes);
    t->started_ns = cli_now();
    cli_stream_start(&t->stream, t->offer.size_bytes, t->from_bytes);
    bool moved = move_blocks(t);
    cli_site_progress_clear(&t->progress);
    t->done.schedule = t->stream.schedule;
    cli_stream_close(&t->stream);
    return moved;
}

/* ---- the end ----------------------------------------------------------------------------------------- */

/* This rank's digest, which is to be rank 0's. */
static struct cli_file_message digest_of(const struct transfer *t)
{
    struct cli_file_message mine = message_of(t);
    mine.size_bytes = t->offer.size_bytes;
    cli_digest_get(t->source ? &t->digest : &t->incoming.digest, mine.digest);
    return mine;
}

/* All have found the same; returns false. */
static bool agreed_fault(struct transfer *t, uint32_t rank, const char *text)
{
    t->fault.rank = rank;
    snprintf(t->fault.text, sizeof t->fault.text, "%s", text);
    t->agreed = true;
    return false;
}

/* All have all blocks: nobody's file gets its name before all are on disk and verified. */
static bool verify(struct transfer *t)
{
    if (t->source)
        check_source(t, cli_source_unchanged(t->source));
    else if (t->failed_rank == LH_NO_RANK && !*t->own.text)
        check_incoming(t, cli_incoming_sync(&t->incoming));
    const struct cli_file_message mine = digest_of(t);
    if (!agree(t, CLI_FILE_DIGEST, &mine))
        return false;
    if (t->failed_rank != LH_NO_RANK)
        return agreed_fault(t, t->failed_rank, "failed without a reason");
    for (uint32_t rank = 1; rank < t->ranks; rank++)
        if (memcmp(t->all[rank].digest, t->all[0].digest, CLI_DIGEST_BYTES) != 0) {
            t->incoming.partial.blocks_recorded = 0; /* what is recorded may be wrong, too */
            return agreed_fault(t, rank, "digest mismatch: data differ from those of rank 0");
        }
    memcpy(t->done.digest, t->all[0].digest, sizeof t->done.digest);
    return true;
}

static bool commit(struct transfer *t)
{
    if (!t->source)
        check_incoming(t, cli_incoming_commit(&t->incoming));
    const struct cli_file_message mine = message_of(t);
    if (t->incoming.committed && t->incoming.attributes.known && t->incoming.partial.attributes_lost)
        cli_file_note_attributes_lost(t->offer.text);
    return agree(t, CLI_FILE_VERDICT, &mine);
}

static bool run(struct transfer *t)
{
    return offer(t) && answer(t) && resume(t) && stream(t) && verify(t) && commit(t);
}

/* What ranks agree on, all have learned before one ends: launchers end the others then. */
static void meet(struct transfer *t)
{
    struct lh_collective *op;
    struct cli_fault fault = {0};
    if (!lh_barrier(t->group, NULL, &op))
        cli_exchange_await(t->group, op, &fault);
}

static int report_fault(struct transfer *t, uint64_t kept_bytes)
{
    char fate[CLI_FILE_FATE_MAX];
    if (t->incoming.committed)
        snprintf(fate, sizeof fate, "; the file is in place here");
    else
        cli_file_fate(t->incoming.written_bytes, kept_bytes, t->offer.size_bytes, fate);
    /* Mostly by a launcher, for a failure of another rank. */
    if (!cli_stopped() || kept_bytes > 0)
        cli_failed("%s: rank %u: %s%s", t->options->path, t->fault.rank, t->fault.text, fate);
    if (t->agreed)
        meet(t);
    return cli_stopped() ? cli_stopped() : CLI_EXIT_FAILED;
}

static bool open_transfer(struct transfer *t, const struct cli_transfer_options *options)
{
    const char *chosen = cli_group_sites(t->group) > 1 ? "hybrid" : "binomial-pipeline";
    cli_incoming_init(&t->incoming, &options->incoming);
    t->all = calloc(t->ranks, sizeof *t->all);
    return t->all &&
           cli_stream_open(&t->stream, t->group, options->schedule ? options->schedule : chosen) &&
           (!t->source || !cli_digest_open(&t->digest));
}

/* source: of rank 0; NULL at others. Returns the exit status: CLI_EXIT_OK where the file is at all ranks; any
 * failure, with its rank, is printed at all that learn of it. */
static int cli_transfer(const struct cli_transfer_options *options, struct lh_group *group,
                        struct cli_source *source, struct cli_transferred *transferred)
{
    struct transfer t = {.options = options,
                         .failed_rank = LH_NO_RANK,
                         .group = group,
                         .rank = lh_group_rank(group),
                         .ranks = lh_group_size(group),
                         .source = source};
    bool opened = open_transfer(&t, options), whole = opened && run(&t);
    t.done.size_bytes = t.offer.size_bytes;
    t.done.resumed_bytes = t.from_bytes;
    t.done.elapsed_ns = cli_now() - t.started_ns;
    cli_stream_close(&t.stream);
    int status = CLI_EXIT_OK;
    uint64_t kept_bytes = cli_incoming_end(&t.incoming, cli_stopped() || t.fault.interrupted);
    if (!opened)
        status = cli_failed("%s: rank %u: out of memory", options->path, t.rank);
    else if (!whole)
        status = report_fault(&t, kept_bytes);
    if (t.digest.state)
        cli_digest_close(&t.digest);
    free(t.all);
    *transferred = t.done;
    return status;
}

/* ---- distribute ------------------------------------------------------------------------------------ */

/* Longhaul distribute FILE: the options, and the report of rank 0. */

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
    printf(", encryption %s", cli_group_encryption(group));
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
    cli_json_text(&json, "encryption", cli_group_encryption(group));
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
        status = cli_misused("1 rank: no receiver (start at least two ranks)");
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
        return cli_misused("%s: unused, since a launcher has started this process (omit HOST)", host);
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
        {"output", "DIR", "folder for the file at all ranks except 0; %r stands for the rank (.)",
         &incoming->output, .kind = CLI_TEXT, .letter = 'o'},
        {"force", NULL, "replace existing files", &incoming->force, .kind = CLI_FLAG},
        {"dotfiles", NULL, "accept names that begin with a dot, such as .profile", &incoming->dotfiles,
         .kind = CLI_FLAG},
        {"resume", NULL, "continue an interrupted transfer, and keep this one resumable", &incoming->resume,
         .kind = CLI_FLAG},
        {"schedule", "NAME",
         "schedule: hybrid, binomial-pipeline, chain, ... (hybrid between sites, else binomial-pipeline)",
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
        .about = "Sends a file to many machines: to each HOST, where ssh starts the same command; or from "
                 "rank 0 to\nall other ranks started by a launcher. The file appears at a rank once it is "
                 "complete, on disk and\nverified by its digest.",
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
