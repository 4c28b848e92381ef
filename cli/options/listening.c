/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/listening.h"

#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

#include <longhaul/error.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Without this a device that does not exist would be found with the first connection only. */
static int try_device(const struct lh_attr *attr)
{
    struct lh_connection *unused;
    int code = attr->device ? lh_open(attr, &unused) : 0;
    if (code)
        return cli_library_failed("--device", attr->device, code);
    if (attr->device)
        lh_close(unused);
    return CLI_PROCEED;
}

/* A client whose packets do not arrive: a matter for the user of this side, too. */
static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    (void)context;
    if (notice == LH_NOTICE_REFUSED)
        cli_note("%s", text);
    return false;
}

int cli_listening_failed(const struct cli_address *address, int code)
{
    static const struct {
        int error;
        const char *remedy;
    } remedies[] = {
        {EADDRINUSE, "another process listens there; use another port, or port 0 for a free one"},
        {EADDRNOTAVAIL, "this machine has no such address; use one of its own, or :PORT for all"},
        {EACCES, "no permission for this port; use one from 1024 on"},
    };
    const char *reason = lh_last_error();
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (code == -LH_EADDR && strstr(reason, strerror(remedies[i].error)))
            return cli_failed("cannot listen: %s (%s)", reason, remedies[i].remedy);
    return cli_library_failed("cannot listen", address->where, code);
}

int cli_listening_start(const struct cli_address *address, const struct lh_attr *attr,
                        struct lh_listener **listener)
{
    int status = try_device(attr);
    if (status != CLI_PROCEED)
        return status;
    struct lh_attr with_notices = *attr;
    with_notices.on_notice = on_notice;
    int code = lh_listen(address->where, &with_notices, listener);
    if (code)
        return cli_listening_failed(address, code);
    printf("listening on %s:%u\n", *address->host ? address->host : cli_address_any(),
           lh_listener_port(*listener));
    cli_output_flush();
    return CLI_PROCEED;
}

static int report(struct lh_connection *accepted, int code)
{
    if (code)
        return cli_library_failed("cannot accept connections", "", code);
    const char *warning = lh_connection_warning(accepted);
    if (warning)
        cli_note("%s", warning);
    return CLI_PROCEED;
}

int cli_listening_accept(struct lh_listener *listener, lh_time timeout_ns,
                         struct lh_connection **connection)
{
    cli_stop_at_once(true);
    /* One that came just before. */
    if (cli_stopped())
        return cli_stopped();
    int code = lh_accept(listener, timeout_ns, connection);
    cli_stop_at_once(false);
    return report(*connection, code);
}

int cli_listening_look(struct lh_listener *listener, struct lh_connection **connection)
{
    *connection = NULL;
    int code = lh_accept(listener, CLI_SLICE_NS, connection);
    return code == -LH_ETIMEDOUT ? CLI_PROCEED : report(*connection, code);
}
