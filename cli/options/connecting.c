/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/connecting.h"

#include "cli/options/path_file.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>

#include <stdbool.h>
#include <string.h>

#define WAIT_NS (10 * LH_NS_PER_S)

struct busy_notice {
    bool shown;
    bool endless;
};

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    struct busy_notice *busy = context;
    if (notice == LH_NOTICE_BUSY && !busy->shown)
        cli_note("%s: receiver busy, waiting", text);
    busy->shown = true;
    return busy->endless;
}

/* The peer had another client, and took no more. */
static bool has_closed(int code)
{
    bool refused = code == -LH_EHANDSHAKE || code == -LH_EPEER;
    return refused && (strstr(lh_last_error(), "listener was closed") ||
                       strstr(lh_last_error(), "listener closed before it answered"));
}

int cli_connect(const struct cli_address *address, const struct lh_attr *attr, lh_time wait_ns,
                const char *several, struct lh_connection **connection)
{
    struct busy_notice busy = {.endless = !wait_ns};
    struct lh_attr with_notices = *attr;
    with_notices.on_notice = on_notice;
    with_notices.notice_context = &busy;
    int status = cli_path_file(attr->path_file, &with_notices.path_file);
    if (status != CLI_PROCEED)
        return status;
    int code = lh_connect(address->where, &with_notices, wait_ns ? wait_ns : WAIT_NS, connection);
    if (has_closed(code))
        return cli_failed("cannot connect: %s: the remote side served another client and ended (%s)",
                          address->where, several);
    if (code)
        return cli_library_failed("cannot connect", address->where, code);
    return CLI_PROCEED;
}
