/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/summary.h"

#include "cli/file/digest.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <stdio.h>

/* A transfer of fewer round trips is over before it could fill a path. */
#define FEW_ROUND_TRIPS 20u

/* What limited it. `send` chooses neither the size of messages nor how many are in flight: what the library
 * advises there is of no use. */
static void print_limit(const struct cli_file_summary *summary)
{
    const struct lh_bottleneck_report *report = summary->bottleneck;
    char words[LH_BOTTLENECK_WORDS_MAX], rtt[LH_FORMAT_MAX];
    bool brief = report->rtt_ns > 0 && summary->elapsed_ns / report->rtt_ns < FEW_ROUND_TRIPS;
    lh_bottleneck_words(report, words, sizeof words);
    if (report->bottleneck == LH_BOTTLENECK_APPLICATION && brief)
        snprintf(words, sizeof words,
                 "the round trip (%s: a file of this size is sent before it fills the path)",
                 lh_format_time(cli_seconds(report->rtt_ns), rtt, sizeof rtt));
    else if (report->bottleneck == LH_BOTTLENECK_APPLICATION)
        snprintf(words, sizeof words,
                 "reading the file (nothing to send for %.0f %% of the time: storage or CPU of this host)",
                 100 * report->share);
    printf("limited by: %s\n", words);
}

void cli_file_summary_print(const struct cli_file_summary *summary)
{
    char size[LH_FORMAT_MAX], resumed[LH_FORMAT_MAX], elapsed[LH_FORMAT_MAX], rate[LH_FORMAT_MAX];
    char digest[CLI_DIGEST_TEXT_MAX];
    double seconds = cli_seconds(summary->elapsed_ns);
    uint64_t moved = summary->size_bytes - summary->resumed_bytes;
    lh_format_size(summary->size_bytes, size, sizeof size);
    lh_format_size(summary->resumed_bytes, resumed, sizeof resumed);
    lh_format_time(seconds, elapsed, sizeof elapsed);
    lh_format_rate(seconds > 0 ? 8 * (double)moved / seconds : 0, rate, sizeof rate);
    printf("%s %s: %s", summary->done, summary->name, size);
    if (summary->resumed_bytes)
        printf(" (%s resumed)", resumed);
    printf(" in %s", elapsed);
    if (moved > 0 && seconds > 0)
        printf(", %s", rate);
    if (summary->stats && summary->stats->tx_packets)
        printf(", %.2g %% retransmitted",
               100 * (double)summary->stats->tx_retransmitted_packets / (double)summary->stats->tx_packets);
    if (summary->stats && summary->stats->parity_chunks_sent)
        printf(", %" PRIu64 " parity chunk%s", summary->stats->parity_chunks_sent,
               cli_plural((double)summary->stats->parity_chunks_sent));
    if (summary->recovered)
        printf(", %" PRIu64 " chunk%s recovered", summary->recovered,
               cli_plural((double)summary->recovered));
    printf(", xxh3-128 %s\n", cli_digest_text(summary->digest, digest));
    if (moved && summary->bottleneck && summary->bottleneck->bottleneck != LH_BOTTLENECK_NONE)
        print_limit(summary);
    cli_output_flush();
}

void cli_file_fate(uint64_t arrived_bytes, uint64_t kept_bytes, uint64_t size_bytes,
                   char out[CLI_FILE_FATE_MAX])
{
    char part[LH_FORMAT_MAX], size[LH_FORMAT_MAX];
    lh_format_size(kept_bytes ? kept_bytes : arrived_bytes, part, sizeof part);
    lh_format_size(size_bytes, size, sizeof size);
    out[0] = 0;
    if (kept_bytes)
        snprintf(out, CLI_FILE_FATE_MAX, "; kept %s of %s (--resume continues)", part, size);
    else if (arrived_bytes)
        snprintf(out, CLI_FILE_FATE_MAX, "; discarded %s of %s (--resume keeps it)", part, size);
}

void cli_file_note_replaced(const char *name, uint64_t found_bytes)
{
    char found[LH_FORMAT_MAX];
    if (found_bytes < CLI_BLOCK_BYTES)
        return;
    lh_format_size(found_bytes, found, sizeof found);
    cli_note("%s: replacing %s of an unfinished transfer (--resume continues one)", name, found);
}

void cli_file_note_other_size(const char *name, uint64_t unfinished_bytes, uint64_t size_bytes)
{
    cli_note("%s: the file has changed since the unfinished transfer: %" PRIu64 " bytes then, %" PRIu64
             " now; starting from the beginning",
             name, unfinished_bytes, size_bytes);
}

void cli_file_note_other_digest(const char *name, uint64_t compared_bytes)
{
    char compared[LH_FORMAT_MAX];
    lh_format_size(compared_bytes, compared, sizeof compared);
    cli_note("%s: the file has changed since the unfinished transfer: its first %s have another digest; "
             "starting from the beginning",
             name, compared);
}

void cli_file_note_attributes_lost(const char *name)
{
    cli_note("%s: permissions and time not preserved by the file system", name);
}
