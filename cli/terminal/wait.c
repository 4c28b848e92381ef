/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/wait.h"

#include "cli/terminal/stop.h"

#include <time.h>

lh_time cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

double cli_seconds(lh_time ns)
{
    return (double)ns / (double)LH_NS_PER_S;
}

int cli_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result)
{
    lh_time started = cli_now();
    if (!timeout_ns)
        return lh_test(request, result) ? 0 : -LH_ETIMEDOUT;
    for (;;) {
        int code = lh_wait(request, CLI_SLICE_NS, result);
        if (code != -LH_ETIMEDOUT)
            return code;
        if (cli_stopped())
            return -LH_ECANCELED;
        if (cli_now() - started >= timeout_ns)
            return -LH_ETIMEDOUT;
    }
}
