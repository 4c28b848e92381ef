/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/control.h"

#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

int cli_perf_send(struct lh_connection *control, const struct cli_perf_message *message)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct lh_request *request;
    struct lh_result result;
    int code = lh_send(control, bytes, cli_perf_encode(message, bytes), NULL, &request);
    if (code)
        return code;
    code = cli_wait(request, CLI_PERF_TIMEOUT_NS, &result);
    lh_request_free(request);
    return code ? code : result.error;
}

int cli_perf_receive(struct lh_connection *control, enum cli_perf_kind kind, lh_time timeout_ns,
                     struct cli_perf_message *message)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct cli_perf_message came;
    struct lh_request *request;
    struct lh_result result;
    int code = lh_recv(control, bytes, sizeof bytes, NULL, &request);
    if (code)
        return code;
    code = cli_wait(request, timeout_ns, &result);
    lh_request_free(request);
    if (!code)
        code = result.error;
    if (!code)
        code = cli_perf_decode(bytes, result.bytes, &came);
    if (!code && came.kind != kind)
        code = -LH_EPROTOCOL;
    if (!code)
        *message = came;
    return code;
}

static uint64_t packets_moved(struct lh_connection *connection)
{
    struct lh_stats stats;
    return lh_connection_stats(connection, &stats) ? 0 : stats.tx_packets + stats.rx_packets;
}

int cli_perf_wait(struct lh_connection *connection, struct lh_request *request, struct lh_result *result)
{
    lh_time since = cli_now();
    uint64_t moved = 0;
    for (;;) {
        int code = lh_wait(request, CLI_SLICE_NS, result);
        if (code != -LH_ETIMEDOUT)
            return code;
        if (cli_stopped())
            return -LH_ECANCELED;
        uint64_t now_moved = packets_moved(connection);
        if (now_moved != moved)
            since = cli_now();
        moved = now_moved;
        if (cli_now() - since > CLI_PERF_TIMEOUT_NS)
            return -LH_ETIMEDOUT;
    }
}
