/*
 * file_mail.h - one message of file_message.h on its way in or out, with the buffer it needs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_FILE_MAIL_H
#define CLI_FILE_MAIL_H

#include "file_message.h"

#include <longhaul/connection.h>

/* Zero it first. Must stay where it is until cli_file_mail_end(). */
struct cli_file_mail {
    struct lh_request *request;
    uint8_t bytes[CLI_FILE_MESSAGE_MAX + 1]; /* one more than fits: a longer message is seen as too long */
};

/* Sends the message; cli_file_delivered() waits until it was taken. 0, or what lh_send says. */
int cli_file_send(struct lh_connection *connection, struct cli_file_mail *mail,
                  const struct cli_file_message *message);
/* As cli_wait: 0, and the other side has it; -LH_ETIMEDOUT, -LH_ECANCELED (a signal), or why it never will.
 */
int cli_file_delivered(struct cli_file_mail *mail, lh_time patience_ns);

/* Makes room for the next message that comes in. 0, or what lh_recv says. */
int cli_file_expect(struct lh_connection *connection, struct cli_file_mail *mail);
/* As cli_wait, for a message of that kind. -LH_EPROTOCOL, -LH_EVERSION: something else came. */
int cli_file_await(struct cli_file_mail *mail, lh_time patience_ns, enum cli_file_kind kind,
                   struct cli_file_message *message);

/* A code of the calls above in words; other: what the other side is. Valid until the next call. */
const char *cli_file_words(int code, const char *other);

/* Forgets it, done or not. May be called for one that was never used. */
void cli_file_mail_end(struct cli_file_mail *mail);

#endif
