/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/distribute/distribute_streams.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/file_partial.h"
#include "cli/options/option_values.h"
#include "cli/terminal/terminal.h"

/* ---- message --------------------------------------------------------------------------------------- */

static const char magic[6] = {'L', 'H', 'F', 'I', 'L', 'E'};

#define FLAGS_KNOWN ((uint32_t)(CLI_FILE_RESUME | CLI_FILE_NO))

size_t cli_file_encode(const struct cli_file_message *message, uint8_t *out)
{
    size_t text = strlen(message->text);
    assert(text <= CLI_FILE_TEXT_MAX && message->kind >= CLI_FILE_OFFER &&
           message->kind <= CLI_FILE_VERDICT);
    memcpy(out, magic, sizeof magic);
    out[6] = CLI_FILE_VERSION;
    out[7] = (uint8_t)message->kind;
    cli_put_u32(out + 8, message->flags);
    cli_put_u32(out + 12, (uint32_t)text);
    cli_put_u64(out + 16, message->size_bytes);
    cli_put_u64(out + 24, message->offset_bytes);
    memcpy(out + 32, message->digest, CLI_DIGEST_BYTES);
    memcpy(out + CLI_FILE_HEADER, message->text, text);
    return CLI_FILE_HEADER + text;
}

int cli_file_decode(const uint8_t *data, size_t bytes, struct cli_file_message *message)
{
    if (bytes < CLI_FILE_HEADER || memcmp(data, magic, sizeof magic))
        return -LH_EPROTOCOL;
    if (data[6] != CLI_FILE_VERSION)
        return -LH_EVERSION;
    uint32_t flags = cli_get_u32(data + 8), text = cli_get_u32(data + 12);
    bool right_length = text <= CLI_FILE_TEXT_MAX && bytes == CLI_FILE_HEADER + (size_t)text;
    if (data[7] < CLI_FILE_OFFER || data[7] > CLI_FILE_VERDICT || flags & ~FLAGS_KNOWN || !right_length ||
        memchr(data + CLI_FILE_HEADER, 0, text))
        return -LH_EPROTOCOL;
    *message = (struct cli_file_message){
        .kind = (enum cli_file_kind)data[7],
        .flags = flags,
        .size_bytes = cli_get_u64(data + 16),
        .offset_bytes = cli_get_u64(data + 24),
    };
    memcpy(message->digest, data + 32, CLI_DIGEST_BYTES);
    memcpy(message->text, data + CLI_FILE_HEADER, text);
    return 0;
}

/* ---- exchange -------------------------------------------------------------------------------------- */

/* All have the same length: length of the message u32 | message | zeros */
#define LENGTH_BYTES 4u
#define RECORD_BYTES (LENGTH_BYTES + CLI_FILE_MESSAGE_MAX)

/* ---- faults ------------------------------------------------------------------------------------------ */

static bool fault_of(struct cli_fault *fault, uint32_t rank, const char *text)
{
    if (*fault->text)
        return false;
    fault->rank = rank;
    snprintf(fault->text, sizeof fault->text, "%s", text);
    return false;
}

static bool fault_is_lost(struct cli_fault *fault, uint32_t rank)
{
    return fault_of(fault, rank, "lost: no answer (start all again; --resume continues)");
}

/* The fault of an operation that ended with an error; returns false. */
static bool cli_exchange_failed(struct lh_group *group, const struct lh_collective_result *result,
                                struct cli_fault *fault)
{
    uint32_t rank = result->failed_rank != LH_NO_RANK ? result->failed_rank : lh_group_rank(group);
    fault->interrupted |= result->error == -LH_ECANCELED;
    if (result->error == -LH_ECANCELED)
        return fault_of(fault, rank, "stopped by a signal");
    if (result->error == -LH_ECLOSED)
        return fault_of(fault, rank, "ended early (its output has the reason)");
    if (result->error == -LH_EPEER)
        return fault_is_lost(fault, rank);
    return fault_of(fault, rank, *result->message ? result->message : lh_strerror(result->error));
}

/* A call of the library failed, perhaps for a rank that has; or this process was asked to stop; returns
 * false. */
static bool cli_exchange_call_failed(struct lh_group *group, struct cli_fault *fault)
{
    for (uint32_t rank = 0; rank < lh_group_size(group); rank++)
        if (lh_group_error(group, rank) == -LH_EPEER)
            return fault_is_lost(fault, rank);
    return fault_of(fault, lh_group_rank(group), lh_last_error());
}

static bool cli_exchange_stopped(struct lh_group *group, struct cli_fault *fault)
{
    return fault_of(fault, lh_group_rank(group), "stopped by a signal");
}

void cli_exchange_find_fault(const struct cli_file_message *all, uint32_t ranks, struct cli_fault *fault)
{
    for (uint32_t rank = 0; rank < ranks && !*fault->text; rank++)
        if (all[rank].flags & CLI_FILE_NO)
            fault_of(fault, rank, *all[rank].text ? all[rank].text : "refused");
}

/* ---- operations -------------------------------------------------------------------------------------- */

bool cli_exchange_await(struct lh_group *group, struct lh_collective *op, struct cli_fault *fault)
{
    struct lh_collective_result result;
    int pending;
    do
        pending = lh_collective_wait(op, CLI_SLICE_NS, &result);
    while (pending == -LH_ETIMEDOUT && !cli_stopped());
    lh_collective_free(op);
    if (cli_stopped())
        return cli_exchange_stopped(group, fault);
    if (pending)
        return cli_exchange_call_failed(group, fault);
    return !result.error || cli_exchange_failed(group, &result, fault);
}

static void put_record(const struct cli_file_message *message, uint8_t record[RECORD_BYTES])
{
    memset(record, 0, RECORD_BYTES);
    cli_put_u32(record, (uint32_t)cli_file_encode(message, record + LENGTH_BYTES));
}

static bool get_record(const uint8_t *record, enum cli_file_kind kind, struct cli_file_message *message)
{
    uint32_t bytes = cli_get_u32(record);
    if (bytes > CLI_FILE_MESSAGE_MAX || cli_file_decode(record + LENGTH_BYTES, bytes, message) ||
        message->kind != kind)
        return false;
    if (kind != CLI_FILE_OFFER)
        cli_text_clean(message->text, strlen(message->text));
    return true;
}

bool cli_exchange_announce(struct lh_group *group, enum cli_file_kind kind,
                           struct cli_file_message *message, struct cli_fault *fault)
{
    struct lh_collective *op;
    uint8_t record[RECORD_BYTES] = {0};
    message->kind = kind;
    if (lh_group_rank(group) == 0)
        put_record(message, record);
    if (lh_broadcast(group, record, sizeof record, LH_U8, 0, NULL, &op))
        return cli_exchange_call_failed(group, fault);
    if (!cli_exchange_await(group, op, fault))
        return false;
    return get_record(record, kind, message) || fault_of(fault, 0, "sent an invalid message");
}

bool cli_exchange_gather(struct lh_group *group, enum cli_file_kind kind,
                         const struct cli_file_message *mine, struct cli_file_message *all,
                         struct cli_fault *fault)
{
    struct lh_collective *op;
    struct cli_file_message message = *mine;
    uint32_t ranks = lh_group_size(group);
    uint8_t record[RECORD_BYTES], *records = malloc((size_t)ranks * RECORD_BYTES);
    message.kind = kind;
    put_record(&message, record);
    if (!records)
        return fault_of(fault, lh_group_rank(group), "out of memory");
    if (lh_allgather(group, record, records, sizeof record, LH_U8, NULL, &op)) {
        free(records);
        return cli_exchange_call_failed(group, fault);
    }
    bool right = cli_exchange_await(group, op, fault);
    for (uint32_t rank = 0; rank < ranks && right; rank++)
        right = get_record(records + (size_t)rank * RECORD_BYTES, kind, &all[rank]) ||
                fault_of(fault, rank, "sent an invalid message");
    free(records);
    return right;
}

/* ---- stream ---------------------------------------------------------------------------------------- */

/* Of a rank, in an all-gather: bytes that it has written; or that it has failed. */
#define STATUS_FAILED (-1)

bool cli_stream_open(struct cli_stream *stream, struct lh_group *group, const char *schedule)
{
    uint32_t ranks = lh_group_size(group);
    *stream = (struct cli_stream){.group = group, .ranks = ranks};
    lh_collective_options_init(&stream->options);
    stream->options.schedule = schedule;
    stream->memory = malloc(CLI_WINDOW * CLI_BLOCK_BYTES);
    stream->statuses = calloc((size_t)CLI_WINDOW * (1 + ranks), sizeof *stream->statuses);
    stream->positions = calloc(ranks, sizeof *stream->positions);
    return stream->memory && stream->statuses && stream->positions;
}

void cli_stream_start(struct cli_stream *stream, uint64_t size_bytes, uint64_t from_bytes)
{
    stream->size_bytes = size_bytes;
    stream->begun_bytes = stream->taken_bytes = from_bytes;
}

void cli_stream_close(struct cli_stream *stream)
{
    for (uint32_t i = 0; i < CLI_WINDOW; i++) {
        lh_collective_free(stream->blocks[i]);
        lh_collective_free(stream->gathers[i]);
    }
    free(stream->memory);
    free(stream->statuses);
    free(stream->positions);
    *stream = (struct cli_stream){0};
}

static size_t block_bytes(const struct cli_stream *stream, uint64_t from_bytes)
{
    uint64_t rest = stream->size_bytes - from_bytes;
    return rest < CLI_BLOCK_BYTES ? (size_t)rest : CLI_BLOCK_BYTES;
}

static int64_t *statuses_of(const struct cli_stream *stream, uint64_t block)
{
    return stream->statuses + block % CLI_WINDOW * (1 + stream->ranks);
}

/* ---- beginning --------------------------------------------------------------------------------------- */

bool cli_stream_may_begin(const struct cli_stream *stream)
{
    return stream->begun_bytes < stream->size_bytes && stream->begun - stream->taken < CLI_WINDOW;
}

uint8_t *cli_stream_head(const struct cli_stream *stream, size_t *bytes)
{
    *bytes = block_bytes(stream, stream->begun_bytes);
    return stream->memory + stream->begun % CLI_WINDOW * CLI_BLOCK_BYTES;
}

bool cli_stream_begin(struct cli_stream *stream, uint64_t written_bytes, bool failed,
                      struct cli_fault *fault)
{
    uint32_t place = stream->begun % CLI_WINDOW;
    int64_t *statuses = statuses_of(stream, stream->begun);
    size_t bytes;
    uint8_t *block = cli_stream_head(stream, &bytes);
    assert(cli_stream_may_begin(stream) && !stream->blocks[place] && !stream->gathers[place]);
    statuses[0] = failed ? STATUS_FAILED : (int64_t)written_bytes;
    if (lh_broadcast(stream->group, block, bytes, LH_U8, 0, &stream->options, &stream->blocks[place]) ||
        lh_allgather(stream->group, statuses, statuses + 1, 1, LH_I64, NULL, &stream->gathers[place]))
        return cli_exchange_call_failed(stream->group, fault);
    stream->begun++;
    stream->begun_bytes += bytes;
    return true;
}

/* ---- taking ------------------------------------------------------------------------------------------ */

bool cli_stream_is_done(const struct cli_stream *stream)
{
    return stream->taken_bytes == stream->size_bytes;
}

static int wait_for(struct cli_stream *stream, struct lh_collective *op, const char **schedule,
                    struct cli_fault *fault)
{
    struct lh_collective_result result;
    int pending = lh_collective_wait(op, CLI_SLICE_NS, &result);
    if (cli_stopped()) {
        cli_exchange_stopped(stream->group, fault);
        return -LH_ECANCELED;
    }
    if (pending == -LH_ETIMEDOUT)
        return pending;
    if (pending) {
        cli_exchange_call_failed(stream->group, fault);
        return pending;
    }
    if (result.error)
        cli_exchange_failed(stream->group, &result, fault);
    else if (schedule)
        *schedule = result.schedule;
    return result.error == -LH_ETIMEDOUT ? -LH_ECANCELED : result.error;
}

int cli_stream_wait(struct cli_stream *stream, struct cli_fault *fault)
{
    uint32_t place = stream->taken % CLI_WINDOW;
    assert(stream->taken < stream->begun);
    int code = wait_for(stream, stream->blocks[place], &stream->schedule, fault);
    return code ? code : wait_for(stream, stream->gathers[place], NULL, fault);
}

const uint8_t *cli_stream_tail(const struct cli_stream *stream, size_t *bytes)
{
    *bytes = block_bytes(stream, stream->taken_bytes);
    return stream->memory + stream->taken % CLI_WINDOW * CLI_BLOCK_BYTES;
}

static bool is_position(const struct cli_stream *stream, int64_t status)
{
    return status >= 0 && (uint64_t)status <= stream->size_bytes;
}

uint32_t cli_stream_failed_rank(const struct cli_stream *stream)
{
    const int64_t *statuses = statuses_of(stream, stream->taken) + 1;
    for (uint32_t rank = 0; rank < stream->ranks; rank++)
        if (!is_position(stream, statuses[rank]))
            return rank;
    return LH_NO_RANK;
}

void cli_stream_take(struct cli_stream *stream)
{
    uint32_t place = stream->taken % CLI_WINDOW;
    const int64_t *statuses = statuses_of(stream, stream->taken) + 1;
    lh_collective_free(stream->blocks[place]);
    lh_collective_free(stream->gathers[place]);
    stream->blocks[place] = stream->gathers[place] = NULL;
    for (uint32_t rank = 0; rank < stream->ranks; rank++)
        if (is_position(stream, statuses[rank]))
            stream->positions[rank] = statuses[rank];
    stream->taken_bytes += block_bytes(stream, stream->taken_bytes);
    stream->taken++;
}

/* ---- incoming -------------------------------------------------------------------------------------- */

static bool give_reason(struct cli_incoming *incoming, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool give_reason(struct cli_incoming *incoming, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(incoming->reason, sizeof incoming->reason, format, arguments);
    va_end(arguments);
    return false;
}

/* What the partial file's call says, with the remedy that there is here. */
static bool partial_failed(struct cli_incoming *incoming)
{
    const char *reason = incoming->partial.reason;
    switch (incoming->partial.fault) {
    case CLI_PARTIAL_EXISTS:
        return give_reason(incoming, "%s (--force replaces it)", reason);
    case CLI_PARTIAL_IN_USE:
        return give_reason(
            incoming,
            "%s (ranks on one machine need different folders: --output 'DIR/%%r', %%r stands for the rank)",
            reason);
    case CLI_PARTIAL_NO_SPACE:
        return give_reason(incoming, "%s: %s", incoming->path, reason);
    case CLI_PARTIAL_OTHER:
        break;
    }
    return give_reason(incoming, "%s", reason);
}

void cli_incoming_init(struct cli_incoming *incoming, const struct cli_incoming_options *options)
{
    *incoming =
        (struct cli_incoming){.options = options, .partial = {.file = -1, .sidecar = -1}, .folder = -1};
}

/* ---- opening ----------------------------------------------------------------------------------------- */

/* Replaces each %r by the rank. */
static bool folder_of_rank(const char *pattern, uint32_t rank, char *path, size_t size)
{
    size_t used = 0;
    for (const char *at = pattern; *at && used < size; at++) {
        if (at[0] == '%' && at[1] == 'r') {
            used += (size_t)snprintf(path + used, size - used, "%u", rank);
            at++;
        } else {
            path[used++] = *at;
        }
    }
    if (used >= size)
        return false;
    path[used] = 0;
    return true;
}

static bool open_folder(struct cli_incoming *incoming, uint32_t rank)
{
    const char *output = incoming->options->output;
    char path[PATH_MAX], reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    if (!folder_of_rank(output, rank, path, sizeof path))
        return give_reason(incoming, "--output: longer than %d characters", PATH_MAX - 1);
    snprintf(incoming->path, sizeof incoming->path, "%.*s", CLI_INCOMING_PATH_MAX - 1, path);
    return cli_output_folder_open("--output", path, &incoming->folder, reason) ||
           give_reason(incoming, "%s", reason);
}

static bool check_offer(struct cli_incoming *incoming, const struct cli_file_message *offer)
{
    const char *wrong = cli_file_name_wrong(offer->text, strlen(offer->text));
    if (wrong)
        return give_reason(incoming, "the name %s", wrong);
    if (cli_file_attributes_decode(offer->digest, &incoming->attributes))
        return give_reason(incoming, "invalid file attributes");
    if (offer->text[0] == '.' && !incoming->options->dotfiles)
        return give_reason(incoming, "name begins with a dot (--dotfiles accepts such names)");
    return true;
}

/* Reads what an earlier try left, up to that many blocks. */
static bool check_partial(struct cli_incoming *incoming, uint64_t blocks, struct cli_resume_point *point)
{
    uint8_t *block = malloc(CLI_BLOCK_BYTES);
    if (!block)
        return give_reason(incoming, "out of memory");
    cli_digest_reset(&incoming->digest);
    bool checked =
        cli_partial_check(&incoming->partial, blocks, block, &incoming->digest, cli_stopped, point);
    free(block);
    return checked || partial_failed(incoming);
}

bool cli_incoming_open(struct cli_incoming *incoming, uint32_t rank, const struct cli_file_message *offer,
                       struct cli_file_message *answer)
{
    const struct cli_incoming_options *options = incoming->options;
    struct cli_resume_point point = {0};
    incoming->resumes = options->resume || offer->flags & CLI_FILE_RESUME;
    if (!check_offer(incoming, offer) || !open_folder(incoming, rank))
        return false;
    if (cli_digest_open(&incoming->digest))
        return give_reason(incoming, "out of memory");
    if (!cli_partial_open(&incoming->partial, incoming->folder, offer->text, offer->size_bytes,
                          options->force, incoming->resumes))
        return partial_failed(incoming);
    if (incoming->resumes && !check_partial(incoming, UINT64_MAX, &point))
        return false;
    incoming->other_size_bytes = point.other_size_bytes;
    answer->offset_bytes = point.blocks * CLI_BLOCK_BYTES;
    memcpy(answer->digest, point.digest, sizeof answer->digest);
    return true;
}

bool cli_incoming_rewind(struct cli_incoming *incoming, uint64_t offset_bytes,
                         uint8_t digest[CLI_DIGEST_BYTES])
{
    struct cli_resume_point point;
    if (!check_partial(incoming, offset_bytes / CLI_BLOCK_BYTES, &point))
        return false;
    cli_digest_get(&incoming->digest, digest);
    return point.blocks * CLI_BLOCK_BYTES == offset_bytes ||
           give_reason(incoming, "the unfinished file was changed during the transfer");
}

bool cli_incoming_start(struct cli_incoming *incoming, uint64_t offset_bytes)
{
    if (offset_bytes == 0)
        cli_digest_reset(&incoming->digest);
    incoming->written_bytes = offset_bytes;
    return cli_partial_start(&incoming->partial, offset_bytes / CLI_BLOCK_BYTES) ||
           partial_failed(incoming);
}

/* ---- writing ----------------------------------------------------------------------------------------- */

bool cli_incoming_write(struct cli_incoming *incoming, const uint8_t *block, size_t bytes)
{
    struct cli_partial *partial = &incoming->partial;
    if (!cli_partial_append(partial, &incoming->digest, incoming->written_bytes, block, bytes))
        return partial_failed(incoming);
    incoming->written_bytes += bytes;
    return true;
}

bool cli_incoming_sync(struct cli_incoming *incoming)
{
    return cli_partial_sync(&incoming->partial) || partial_failed(incoming);
}

bool cli_incoming_commit(struct cli_incoming *incoming)
{
    const struct cli_file_attributes *attributes = &incoming->attributes;
    mode_t mode = (attributes->known ? attributes->mode : 0666) & ~incoming->options->umask;
    incoming->committed =
        cli_partial_commit(&incoming->partial, mode, attributes->known ? &attributes->written : NULL);
    return incoming->committed || partial_failed(incoming);
}

uint64_t cli_incoming_end(struct cli_incoming *incoming, bool stopped)
{
    /* Nothing of one that was not opened. */
    uint64_t kept = cli_partial_abandon(&incoming->partial, incoming->resumes || stopped);
    if (incoming->digest.state)
        cli_digest_close(&incoming->digest);
    if (incoming->folder >= 0)
        close(incoming->folder);
    return kept;
}

/* ---- site progress --------------------------------------------------------------------------------- */

static struct cli_site_bar *bar_of(struct cli_site_progress *progress, uint32_t rank)
{
    uint32_t site = cli_group_site(progress->group, rank), i = 0;
    while (i < progress->sites && progress->bars[i].site != site)
        i++;
    return i < progress->sites ? &progress->bars[i] : NULL;
}

static void start_bar(struct cli_site_bar *bar, struct lh_group *group, uint32_t rank, const char *name,
                      uint64_t size_bytes, uint64_t from_bytes)
{
    const char *site = lh_group_site(group, rank);
    if (cli_group_sites(group) == 1)
        snprintf(bar->label, sizeof bar->label, "%s", name);
    else if (*site)
        snprintf(bar->label, sizeof bar->label, "%s to %s", name, site);
    else
        snprintf(bar->label, sizeof bar->label, "%s to site %" PRIu32, name, bar->site);
    cli_text_clean(bar->label, strlen(bar->label));
    cli_progress_start(&bar->progress, bar->label, size_bytes, from_bytes);
}

void cli_site_progress_start(struct cli_site_progress *progress, struct lh_group *group, const char *name,
                             uint64_t size_bytes, uint64_t from_bytes)
{
    *progress = (struct cli_site_progress){.group = group};
    progress->bars = calloc(cli_group_sites(group), sizeof *progress->bars);
    for (uint32_t rank = 1; progress->bars && rank < lh_group_size(group); rank++) {
        if (bar_of(progress, rank))
            continue;
        struct cli_site_bar *bar = &progress->bars[progress->sites++];
        bar->site = cli_group_site(group, rank);
        start_bar(bar, group, rank, name, size_bytes, from_bytes);
    }
}

void cli_site_progress_show(struct cli_site_progress *progress, const int64_t *positions)
{
    for (uint32_t site = 0; site < progress->sites; site++)
        progress->bars[site].min_bytes = progress->bars[site].progress.total_bytes;
    for (uint32_t rank = 1; progress->sites > 0 && rank < lh_group_size(progress->group); rank++) {
        struct cli_site_bar *bar = bar_of(progress, rank);
        if ((uint64_t)positions[rank] < bar->min_bytes)
            bar->min_bytes = (uint64_t)positions[rank];
    }
    for (uint32_t site = 0; site < progress->sites; site++)
        cli_progress_show(&progress->bars[site].progress, progress->bars[site].min_bytes);
}

void cli_site_progress_clear(struct cli_site_progress *progress)
{
    for (uint32_t site = 0; site < progress->sites; site++)
        cli_progress_clear(&progress->bars[site].progress);
    free(progress->bars);
    *progress = (struct cli_site_progress){0};
}
