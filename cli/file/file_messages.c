/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/message_io.h"

#include "cli/terminal/diagnostic.h"
#include "cli/terminal/wait.h"

#include <assert.h>
#include <stdio.h>

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
    if (!code && came.kind != kind)
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
