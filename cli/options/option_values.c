/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/connection.h"

#include "cli/options/limits.h"
#include "cli/options/path_file.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_NS (10 * LH_NS_PER_S)

static struct cli_option *add(struct cli_option *next, struct cli_option option)
{
    *next = option;
    return next + 1;
}

const char *cli_reliability_help(char out[static CLI_RELIABILITY_HELP_MAX], bool partial)
{
    const struct lh_scheme *const *schemes = lh_schemes();
    size_t used =
        (size_t)snprintf(out, CLI_RELIABILITY_HELP_MAX, "reliability scheme of data received here: ");
    for (const struct lh_scheme *const *s = schemes; *s && used < CLI_RELIABILITY_HELP_MAX; s++)
        if (partial || !(*s)->deadline)
            used += (size_t)snprintf(out + used, CLI_RELIABILITY_HELP_MAX - used, "%s, ", (*s)->name);
    if (used < CLI_RELIABILITY_HELP_MAX)
        snprintf(out + used, CLI_RELIABILITY_HELP_MAX - used, "or auto, which adapts to the path (auto)");
    return out;
}

static const char *congestion_help(char out[static CLI_RELIABILITY_HELP_MAX])
{
    size_t used =
        (size_t)snprintf(out, CLI_RELIABILITY_HELP_MAX, "congestion controller of data sent here:");
    for (const struct lh_congestion *const *c = lh_congestions(); *c && used < CLI_RELIABILITY_HELP_MAX;
         c++)
        used += (size_t)snprintf(out + used, CLI_RELIABILITY_HELP_MAX - used, " %s,", (*c)->name);
    if (used < CLI_RELIABILITY_HELP_MAX)
        snprintf(out + used - 1, CLI_RELIABILITY_HELP_MAX - used + 1,
                 " (fixed where the rate or a link's is given, else bbr)");
    return out;
}

static struct cli_option *add_receiving(struct cli_option *next, struct cli_connection *connection,
                                        bool partial)
{
    return add(next, (struct cli_option){"reliability", "SCHEME",
                                         cli_reliability_help(connection->reliability_help, partial),
                                         &connection->attr.reliability, .kind = CLI_SCHEME});
}

static struct cli_option *add_connecting(struct cli_option *next, struct cli_connection *connection)
{
    struct lh_attr *attr = &connection->attr;
    next =
        add(next, (struct cli_option){
                      "link", "LINK",
                      "emulated link, in both directions; example: rtt=25ms,rate=10Gbit,loss=1e-4 (none)",
                      &attr->link, .kind = CLI_LINK});
    next = add(next, (struct cli_option){
                         "rate", "RATE", "the path's rate: pace of what is sent (found by the controller)",
                         &attr->rate_bps, .kind = CLI_RATE, .min = 1, .max = CLI_RATE_MAX_BPS});
    next = add(next, (struct cli_option){"wait", "TIME",
                                         "connection timeout (10s, extended while the receiver is busy)",
                                         &connection->wait_ns, .kind = CLI_TIME, .min = LH_NS_PER_MS});
    return add(next, (struct cli_option){"path-file", "FILE", CLI_PATH_FILE_HELP, &attr->path_file,
                                         .kind = CLI_TEXT});
}

static struct cli_option *add_congestion(struct cli_option *next, struct cli_connection *connection)
{
    next = add(next, (struct cli_option){"congestion", "NAME", congestion_help(connection->congestion_help),
                                         &connection->attr.congestion, .kind = CLI_CONGESTION});
    return add(next, (struct cli_option){"max-rate", "RATE", "sending rate never to be exceeded (none)",
                                         &connection->attr.rate_max_bps, .kind = CLI_RATE, .min = 1,
                                         .max = CLI_RATE_MAX_BPS});
}

static struct cli_option *add_shape(struct cli_option *next, struct lh_attr *attr)
{
    next = add(next, (struct cli_option){"mtu", "SIZE", "RoCE payload of a packet (largest for the path)",
                                         &attr->mtu_bytes, CLI_SIZE32, 0, true, 256, 4 * CLI_KIB});
    next = add(next, (struct cli_option){"chunk", "SIZE",
                                         "chunk size: data per bit of the receive bitmap (one packet)",
                                         &attr->chunk_bytes, CLI_SIZE32, 0, true, 256, CLI_GIB});
    next = add(next, (struct cli_option){"slots", "N", "SDR messages in flight (64)", &attr->slots,
                                         CLI_COUNT, 0, true, 1, CLI_SLOTS_MAX});
    next = add(next,
               (struct cli_option){"slot-size", "SIZE", "maximum SDR message; longer ones are split (4MiB)",
                                   &attr->slot_bytes, CLI_SIZE, 0, false, 4 * CLI_KIB, CLI_SLOT_MAX});
    next = add(next,
               (struct cli_option){"window", "SIZE", "maximum bytes in flight (64MiB)", &attr->window_bytes,
                                   CLI_SIZE, 0, false, 64 * CLI_KIB, CLI_WINDOW_MAX});
    next = add(next, (struct cli_option){"channels", "N", "parallel paths (1)", &attr->channels, CLI_COUNT,
                                         0, false, 1, 32});
    next = add(next, (struct cli_option){"coders", "N", "threads that encode and decode (1)", &attr->coders,
                                         CLI_COUNT, 0, false, 1, 64});
    return add(next, (struct cli_option){"workers", "N", "threads that move packets (1)", &attr->workers,
                                         CLI_COUNT, 0, false, 1, 64});
}

void cli_connection_options(struct cli_connection *connection, unsigned roles)
{
    struct lh_attr *attr = &connection->attr;
    struct cli_option *next = connection->options;
    memset(connection, 0, sizeof *connection);
    lh_attr_init(attr);
    attr->peer_timeout_ns = TIMEOUT_NS;
    if (roles & CLI_RECEIVES)
        next = add_receiving(next, connection, roles & CLI_PARTIAL);
    if (roles & CLI_CONNECTS)
        next = add_connecting(next, connection);
    next = add_congestion(next, connection);
    next = add_shape(next, attr);
    next = add(next, (struct cli_option){"peer-timeout", "TIME",
                                         "silence after which the peer counts as lost (10s)",
                                         &attr->peer_timeout_ns, .kind = CLI_TIME, .min = LH_NS_PER_MS});
    add(next, (struct cli_option){
                  "device", "DEVICE",
                  "udp:ADDRESS or verbs:DEVICE; see 'longhaul devices' (udp on the address in use)",
                  &attr->device, .kind = CLI_TEXT});
}
