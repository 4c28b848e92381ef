/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/units.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_records.h"
#include "cli/results/json.h"
#include "cli/terminal/terminal.h"

#define JSON_EVERY_NS LH_NS_PER_S

/* ---- lines of JSON --------------------------------------------------------------------------------- */

static void json_open(struct cli_json *json, const struct cli_tree_report *report, const char *event)
{
    *json = (struct cli_json){.out = stdout, .line = true};
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "event", event);
    if (report->names_peer)
        cli_json_text(json, "peer", report->peer);
}

static void json_close(struct cli_json *json)
{
    cli_json_close(json, '}');
    cli_json_end(json);
}

/* Bytes that are no text become U+FFFD. */
static void json_path(struct cli_json *json, const char *prefix, const char *path, size_t bytes)
{
    char text[2 * CLI_TREE_PATH_MAX + 2];
    snprintf(text, sizeof text, "%s%.*s", prefix, (int)bytes, path);
    cli_json_text(json, "path", text);
}

static void json_counts(struct cli_json *json, const struct cli_tree_report *report)
{
    cli_json_count(json, "files", report->files);
    cli_json_count(json, "skipped", report->skipped);
    cli_json_count(json, "failed", report->failed);
    cli_json_count(json, "deleted", report->deleted);
    cli_json_count(json, "bytes", report->bytes);
    cli_json_count(json, "spared_bytes", report->spared_bytes);
    cli_json_count(json, "total_bytes", report->total_bytes);
    cli_json_number(json, "elapsed_s", cli_seconds(cli_now() - report->started_ns));
}

/* ---- events ---------------------------------------------------------------------------------------- */

void cli_tree_report_begin(struct cli_tree_report *report, const char *peer)
{
    struct cli_json json;
    report->started_ns = report->printed_ns = cli_now();
    snprintf(report->label, sizeof report->label, "0 files");
    snprintf(report->peer, sizeof report->peer, "%s", peer);
    cli_progress_start(&report->progress, report->label, 0, 0);
    if (!report->json)
        return;
    cli_output_lock();
    json_open(&json, report, "begin");
    if (!report->names_peer)
        cli_json_text(&json, "peer", peer);
    json_close(&json);
    cli_output_flush();
    cli_output_unlock();
}

void cli_tree_report_next(struct cli_tree_report *report, const char *path, size_t path_bytes)
{
    const char *slash = memrchr(path, '/', path_bytes), *name = slash ? slash + 1 : path;
    cli_output_lock();
    cli_tree_path_shown(name, path_bytes - (size_t)(name - path), report->name, sizeof report->name);
    cli_output_unlock();
}

void cli_tree_report_file(struct cli_tree_report *report, const char *path, size_t path_bytes,
                          uint64_t bytes, const uint8_t digest[CLI_DIGEST_BYTES])
{
    char text[CLI_DIGEST_TEXT_MAX];
    struct cli_json json;
    char shown[CLI_TREE_SHOWN_MAX];
    cli_output_lock();
    report->files++;
    report->digest_known = digest != NULL;
    if (digest)
        memcpy(report->digest, digest, sizeof report->digest);
    if (report->json) {
        json_open(&json, report, "file");
        json_path(&json, "", path, path_bytes);
        cli_json_count(&json, "bytes", bytes);
        if (digest)
            cli_json_text(&json, "xxh3_128", cli_digest_text(digest, text));
        json_close(&json);
    } else if (report->dry_run && !report->names_peer) {
        printf("%s\n", cli_tree_path_shown(path, path_bytes, shown, sizeof shown));
    }
    cli_output_unlock();
}

void cli_tree_report_skip(struct cli_tree_report *report, const char *path, size_t path_bytes)
{
    struct cli_json json;
    cli_output_lock();
    report->skipped++;
    if (report->json) {
        json_open(&json, report, "skip");
        json_path(&json, "", path, path_bytes);
        json_close(&json);
    }
    cli_output_unlock();
}

void cli_tree_report_deletion(struct cli_tree_report *report, const char *path, size_t path_bytes)
{
    struct cli_json json;
    char shown[CLI_TREE_SHOWN_MAX];
    cli_output_lock();
    report->deleted++;
    if (report->json) {
        json_open(&json, report, "delete");
        json_path(&json, "", path, path_bytes);
        json_close(&json);
    } else if (report->dry_run && !report->names_peer) {
        printf("would delete %s\n", cli_tree_path_shown(path, path_bytes, shown, sizeof shown));
    }
    cli_output_unlock();
}

void cli_tree_report_fault(struct cli_tree_report *report, const char *prefix, const char *path,
                           size_t path_bytes, const char *reason)
{
    struct cli_json json;
    char shown[CLI_TREE_SHOWN_MAX];
    cli_output_lock();
    if (report->json) {
        json_open(&json, report, "error");
        json_path(&json, prefix, path, path_bytes);
        cli_json_text(&json, "reason", reason);
        json_close(&json);
    } else if (report->failed < CLI_TREE_FAULTS_SHOWN) {
        cli_output_erase_bars();
        cli_failed("%s%s%s%s: %s", report->names_peer ? report->peer : "", report->names_peer ? ": " : "",
                   prefix, cli_tree_path_shown(path, path_bytes, shown, sizeof shown), reason);
    } else if (report->failed == CLI_TREE_FAULTS_SHOWN) {
        cli_note("further failed entries are counted only");
    }
    report->failed++;
    cli_output_unlock();
}

void cli_tree_report_refusal(struct cli_tree_report *report, const char *path, size_t path_bytes,
                             const char *reason)
{
    cli_output_lock();
    report->refused++;
    cli_tree_report_fault(report, "", path, path_bytes, reason);
    cli_output_unlock();
}

uint64_t cli_tree_report_own(struct cli_tree_report *report)
{
    cli_output_lock();
    uint64_t failed = report->failed - report->refused;
    cli_output_unlock();
    return failed;
}

uint64_t cli_tree_report_failures(struct cli_tree_report *report)
{
    cli_output_lock();
    uint64_t failed = report->failed;
    cli_output_unlock();
    return failed;
}

uint64_t cli_tree_report_bytes(struct cli_tree_report *report)
{
    cli_output_lock();
    uint64_t bytes = report->bytes;
    cli_output_unlock();
    return bytes;
}

void cli_tree_report_expect(struct cli_tree_report *report, uint64_t bytes)
{
    cli_output_lock();
    report->total_bytes += bytes;
    cli_output_unlock();
}

void cli_tree_report_moved(struct cli_tree_report *report, uint64_t bytes)
{
    cli_output_lock();
    report->bytes += bytes;
    cli_output_unlock();
}

void cli_tree_report_spared(struct cli_tree_report *report, uint64_t bytes)
{
    cli_output_lock();
    report->spared_bytes += bytes;
    cli_output_unlock();
}

void cli_tree_report_copied(struct cli_tree_report *report, uint64_t bytes)
{
    cli_output_lock();
    report->spared_bytes += bytes;
    report->copied = true;
    cli_output_unlock();
}

void cli_tree_report_compared(struct cli_tree_report *report, uint64_t bytes)
{
    cli_output_lock();
    report->compared_bytes += bytes;
    cli_output_unlock();
}

uint64_t cli_tree_report_work(struct cli_tree_report *report)
{
    cli_output_lock();
    uint64_t entries = report->files + report->skipped + report->folders + report->links;
    uint64_t bytes = report->bytes + report->compared_bytes + entries * CLI_PACE_ENTRY_BYTES;
    cli_output_unlock();
    return bytes;
}

void cli_tree_report_progress(struct cli_tree_report *report)
{
    struct cli_json json;
    cli_output_lock();
    if (report->json && cli_now() - report->printed_ns >= JSON_EVERY_NS) {
        report->printed_ns = cli_now();
        json_open(&json, report, "progress");
        json_counts(&json, report);
        json_close(&json);
        cli_output_flush();
    }
    if (report->files < 2 && *report->name)
        snprintf(report->label, sizeof report->label, "%s", report->name);
    else
        snprintf(report->label, sizeof report->label, "%" PRIu64 " file%s", report->files,
                 cli_plural((double)report->files));
    /* A file may have grown since it was listed; a pipe has no total. */
    uint64_t passed = report->bytes + report->spared_bytes;
    report->progress.total_bytes = report->total_bytes > passed ? report->total_bytes : passed;
    cli_progress_show(&report->progress, passed);
    cli_output_unlock();
}

/* ---- summary --------------------------------------------------------------------------------------- */

static void print_count(const char *before, uint64_t count, const char *noun)
{
    if (count)
        printf("%s%" PRIu64 " %s%s", before, count, noun, cli_plural((double)count));
}

/* One file, and nothing besides. */
static bool is_one_file(const struct cli_tree_report *report)
{
    return report->files == 1 && !report->skipped && !report->folders && !report->links &&
           !report->failed && !report->deleted && !report->sender_failed && !report->dry_run &&
           report->digest_known;
}

static void print_file(const struct cli_tree_report *report, lh_time elapsed_ns,
                       const struct lh_stats *stats)
{
    struct cli_file_summary summary = {
        .done = report->done,
        .name = report->name,
        .size_bytes = report->bytes + report->spared_bytes,
        .resumed_bytes = report->spared_bytes,
        .replaced = report->copied,
        .elapsed_ns = elapsed_ns,
        .stats = report->receives ? NULL : stats,
        .recovered = stats->chunks_recovered,
    };
    memcpy(summary.digest, report->digest, sizeof summary.digest);
    cli_file_summary_print(&summary);
}

static void print_files(const struct cli_tree_report *report, lh_time elapsed_ns,
                        const struct lh_stats *stats, bool whole)
{
    char size[LH_FORMAT_MAX], elapsed[LH_FORMAT_MAX], rate[LH_FORMAT_MAX];
    double seconds = cli_seconds(elapsed_ns);
    /* The receiver has confirmed nothing. */
    const char *before = report->dry_run             ? "dry run: would be "
                         : whole || report->receives ? ""
                                                     : "not confirmed: ";
    printf("%s%s %" PRIu64 " file%s", before, report->done, report->files,
           cli_plural((double)report->files));
    print_count(", ", report->folders, "folder");
    print_count(", ", report->links, "link");
    if (report->skipped)
        printf(", %" PRIu64 " unchanged", report->skipped);
    if (report->deleted)
        printf(", %" PRIu64 " deleted", report->deleted);
    if (report->failed)
        printf(", %" PRIu64 " failed", report->failed);
    printf(": %s", lh_format_size(report->bytes, size, sizeof size));
    if (!report->dry_run)
        printf(" in %s", lh_format_time(seconds, elapsed, sizeof elapsed));
    if (report->bytes && seconds > 0 && !report->dry_run)
        printf(", %s", lh_format_rate(8 * (double)report->bytes / seconds, rate, sizeof rate));
    if (!report->receives && !report->dry_run && stats->tx_packets)
        printf(", %.2g %% retransmitted",
               100 * (double)stats->tx_retransmitted_packets / (double)stats->tx_packets);
    putchar('\n');
}

/* What a receiver knows: the scheme that `auto` chose, if it had to; that its sockets dropped packets. The
 * sender alone knows what else may have limited it. */
static void print_reception(struct lh_connection *connection, const struct lh_stats *stats)
{
    char text[LH_SCHEME_WORDS_MAX];
    struct lh_scheme_report scheme;
    if (!lh_connection_scheme(connection, &scheme) && scheme.plans)
        printf("auto: %s\n", lh_scheme_report_words(&scheme, text, sizeof text));
    if (stats->rx_socket_drops)
        printf("limited by: this host's CPU (its sockets dropped %" PRIu64
               " packets: raise net.core.rmem_max, or use --workers)\n",
               stats->rx_socket_drops);
}

static void print_summary(const struct cli_tree_report *report, lh_time elapsed_ns,
                          struct lh_connection *connection, const struct lh_bottleneck_report *bottleneck,
                          bool whole)
{
    struct lh_stats stats = {0};
    lh_connection_stats(connection, &stats);
    if (report->names_peer)
        printf("%s: ", report->peer);
    if (whole && is_one_file(report))
        print_file(report, elapsed_ns, &stats);
    else
        print_files(report, elapsed_ns, &stats, whole);
    if (!report->bytes || !whole || report->dry_run)
        return;
    if (report->receives)
        print_reception(connection, &stats);
    else if (bottleneck)
        cli_file_limit_print(bottleneck, elapsed_ns);
}

static void json_end(const struct cli_tree_report *report, const char *reason, int status)
{
    static const char *const verdicts[] = {"all", "some failed", "usage", "lost"};
    struct cli_json json;
    json_open(&json, report, "end");
    cli_json_text(&json, "verdict", status >= 0 && status < 4 ? verdicts[status] : "interrupted");
    cli_json_count(&json, "status", (uint64_t)status);
    cli_json_text(&json, "reason", reason);
    json_counts(&json, report);
    json_close(&json);
}

void cli_tree_report_end(struct cli_tree_report *report, const char *reason, int status,
                         struct lh_connection *connection, const struct lh_bottleneck_report *bottleneck)
{
    lh_time elapsed_ns = cli_now() - report->started_ns;
    cli_progress_clear(&report->progress);
    cli_output_lock();
    cli_output_erase_bars();
    if (report->json) {
        json_end(report, reason, status);
    } else {
        if (!*reason || report->files || report->bytes)
            print_summary(report, elapsed_ns, connection, bottleneck, !*reason);
    }
    if (*reason)
        cli_failed("%s%s%s", report->names_peer ? report->peer : "", report->names_peer ? ": " : "",
                   reason);
    else if (report->sender_failed)
        cli_failed("%" PRIu64 " more failed at the sender", report->sender_failed);
    cli_output_flush();
    cli_output_unlock();
}
