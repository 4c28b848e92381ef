/* SPDX-License-Identifier: BSD-3-Clause */
#include "connecting.h"

#include "options.h"
#include "say.h"

#include <stdbool.h>

#define WAIT_NS (10 * LH_NS_PER_S)

struct patience {
    bool said;
    bool endless;
};

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    struct patience *patience = context;
    if (notice == LH_NOTICE_BUSY && !patience->said)
        cli_note("%s: receiver busy, waiting", text);
    patience->said = true;
    return patience->endless;
}

int cli_connect(const struct cli_address *address, const struct lh_attr *attr, lh_time wait_ns,
                struct lh_connection **connection)
{
    struct patience patience = {.endless = !wait_ns};
    struct lh_attr with_notices = *attr;
    with_notices.on_notice = on_notice;
    with_notices.notice_context = &patience;
    int code = lh_connect(address->where, &with_notices, wait_ns ? wait_ns : WAIT_NS, connection);
    if (code)
        return cli_library_failed("cannot connect", address->where, code);
    return CLI_PROCEED;
}
