/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_messages.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/types.h>

#include "cli/terminal/terminal.h"

/* ---- message --------------------------------------------------------------------------------------- */

static const char magic[6] = {'L', 'H', 'F', 'I', 'L', 'E'};

#define FLAGS_KNOWN ((uint32_t)(CLI_FILE_RESUME | CLI_FILE_NO))

size_t cli_file_encode(const struct cli_file_message *message, uint8_t *out)
{
    size_t text = strlen(message->text);
    assert(text <= CLI_FILE_TEXT_MAX && message->kind >= CLI_FILE_OFFER && message->kind <= CLI_FILE_TREE);
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
    if (data[7] < CLI_FILE_OFFER || data[7] > CLI_FILE_TREE || flags & ~FLAGS_KNOWN || !right_length ||
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

/* ---- message io ------------------------------------------------------------------------------------ */

int cli_file_send(struct lh_connection *connection, struct cli_file_io *io,
                  const struct cli_file_message *message)
{
    assert(!io->request);
    size_t bytes = cli_file_encode(message, io->bytes);
    return lh_send(connection, io->bytes, bytes, NULL, &io->request);
}

int cli_file_expect(struct lh_connection *connection, struct cli_file_io *io)
{
    assert(!io->request);
    return lh_recv(connection, io->bytes, sizeof io->bytes, NULL, &io->request);
}

int cli_file_await(struct cli_file_io *io, lh_time timeout_ns, enum cli_file_kind kind,
                   struct cli_file_message *message)
{
    struct lh_result result;
    struct cli_file_message came;
    int code = cli_wait(io->request, timeout_ns, &result);
    if (!code)
        code = result.error == -LH_ETRUNCATED ? -LH_EPROTOCOL : result.error;
    if (!code)
        code = cli_file_decode(io->bytes, result.bytes, &came);
    if (!code && kind != CLI_FILE_ANY && came.kind != kind)
        code = -LH_EPROTOCOL;
    if (!code)
        *message = came;
    return code;
}

void cli_file_io_end(struct cli_file_io *io)
{
    lh_request_free(io->request);
    io->request = NULL;
}

static const char *predicate_of(int code)
{
    switch (-code) {
    case LH_ECLOSED:
    case LH_ECANCELED:
        return "closed the connection";
    case LH_ETIMEDOUT:
        return "is stalled";
    case LH_EPROTOCOL:
        return "violated the file protocol";
    case LH_EVERSION:
        return "uses another version of the file protocol";
    default:
        return NULL;
    }
}

const char *cli_file_strerror(struct lh_connection *connection, int code, const char *other)
{
    static char text[96];
    const char *what = predicate_of(code);
    if (!what)
        return cli_connection_strerror(connection, code);
    snprintf(text, sizeof text, "the %s %s", other, what);
    return text;
}
