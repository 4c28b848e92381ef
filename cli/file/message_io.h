/*
 * message_io.h - one message of message.h being sent or received, with the buffer it needs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_MESSAGE_IO_H
#define LH_CLI_FILE_MESSAGE_IO_H

#include "cli/file/message.h"

#include <longhaul/connection.h>

/* Zero it first. Must stay where it is until cli_file_io_end(). */
struct cli_file_io {
    struct lh_request *request;
    uint8_t bytes[CLI_FILE_MESSAGE_MAX + 1]; /* one more than fits: a longer message is seen as too long */
};

/* Sends the message. 0, or the error of lh_send. */
int cli_file_send(struct lh_connection *connection, struct cli_file_io *io,
                  const struct cli_file_message *message);

/* Posts a receive for the next message. 0, or the error of lh_recv. */
int cli_file_expect(struct lh_connection *connection, struct cli_file_io *io);
/* As cli_wait, for a message of that kind. -LH_EPROTOCOL, -LH_EVERSION: something else came. */
int cli_file_await(struct cli_file_io *io, lh_time timeout_ns, enum cli_file_kind kind,
                   struct cli_file_message *message);

/* A code of the calls above in words; other: what the peer is. Valid until the next call. */
const char *cli_file_strerror(struct lh_connection *connection, int code, const char *other);

/* Forgets it, done or not. May be called for one that was never used. */
void cli_file_io_end(struct cli_file_io *io);

#endif
