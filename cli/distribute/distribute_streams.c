/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/distribute/incoming.h"

#include "cli/file/output_folder.h"
#include "cli/file/name.h"
#include "cli/terminal/stop.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        return give_reason(incoming,
                           "%s (ranks on one machine need folders of their own: --output 'DIR/%%r', %%r "
                           "is the rank)",
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
    return cli_output_folder_open(path, &incoming->folder, reason) || give_reason(incoming, "%s", reason);
}

static bool check_offer(struct cli_incoming *incoming, const struct cli_file_message *offer)
{
    const char *wrong = cli_file_name_wrong(offer->text, strlen(offer->text));
    if (wrong)
        return give_reason(incoming, "the name %s", wrong);
    if (cli_file_attributes_decode(offer->digest, &incoming->attributes))
        return give_reason(incoming, "the file's attributes are not valid");
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
