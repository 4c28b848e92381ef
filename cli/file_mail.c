/* SPDX-License-Identifier: BSD-3-Clause */
#include "file_mail.h"

#include "wait.h"

#include <assert.h>
#include <stdio.h>

int cli_file_send(struct lh_connection *connection, struct cli_file_mail *mail,
                  const struct cli_file_message *message)
{
    assert(!mail->request);
    size_t bytes = cli_file_encode(message, mail->bytes);
    return lh_send(connection, mail->bytes, bytes, NULL, &mail->request);
}

int cli_file_delivered(struct cli_file_mail *mail, lh_time patience_ns)
{
    struct lh_result result;
    int code = cli_wait(mail->request, patience_ns, &result);
    return code ? code : result.error;
}

int cli_file_expect(struct lh_connection *connection, struct cli_file_mail *mail)
{
    assert(!mail->request);
    return lh_recv(connection, mail->bytes, sizeof mail->bytes, NULL, &mail->request);
}

int cli_file_await(struct cli_file_mail *mail, lh_time patience_ns, enum cli_file_kind kind,
                   struct cli_file_message *message)
{
    struct lh_result result;
    struct cli_file_message came;
    int code = cli_wait(mail->request, patience_ns, &result);
    if (!code)
        code = result.error == -LH_ETRUNCATED ? -LH_EPROTOCOL : result.error;
    if (!code)
        code = cli_file_decode(mail->bytes, result.bytes, &came);
    if (!code && came.kind != kind)
        code = -LH_EPROTOCOL;
    if (!code)
        *message = came;
    return code;
}

void cli_file_mail_end(struct cli_file_mail *mail)
{
    lh_request_free(mail->request);
    mail->request = NULL;
}

static const char *predicate(int code)
{
    switch (-code) {
    case LH_EPEER:
        return "is gone: nothing is heard from it any more";
    case LH_ECLOSED:
    case LH_ECANCELED:
        return "ended the connection";
    case LH_ETIMEDOUT:
        return "is there, but does nothing";
    case LH_EPROTOCOL:
        return "broke the file protocol";
    case LH_EVERSION:
        return "speaks another version of the file protocol";
    default:
        return NULL;
    }
}

const char *cli_file_words(int code, const char *other)
{
    static char words[96];
    const char *what = predicate(code);
    if (!what)
        return lh_strerror(code);
    snprintf(words, sizeof words, "the %s %s", other, what);
    return words;
}
