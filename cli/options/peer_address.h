/*
 * peer_address.h - how commands reach a peer: HOST:PORT as typed, connecting, listening, the path file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_PEER_ADDRESS_H
#define LH_CLI_OPTIONS_PEER_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>

/* Default ports; from the dynamic range, not registered. */
#define CLI_PORT_FILES 47910
#define CLI_PORT_PERF  47911
#define CLI_PORT_PROBE 47912

#define CLI_ADDRESS_MAX 280

struct cli_address {
    char where[CLI_ADDRESS_MAX]; /* "host:47910", "[::1]:47910" */
    char host[CLI_ADDRESS_MAX];  /* "host", "[::1]"; "" when none was given */
    uint16_t port;
};

/* "host", "host:1234", "[::1]", "[::1]:1234", "::1", "10.0.0.1:1234"; with listening also ":1234" and port
 * 0. CLI_PROCEED; or CLI_EXIT_USAGE after reporting the cause for `what`. */
int cli_address_parse(const char *what, const char *text, uint16_t port, int listening,
                      struct cli_address *address);

/* The same host with another port. */
void cli_address_set_port(struct cli_address *address, uint16_t port);

/* How "all addresses" is written on this host: "[::]", or "0.0.0.0" where there is no IPv6. */
const char *cli_address_any(void);

/* ---- connecting ------------------------------------------------------------------------------------ */

/* Connecting to a listener. */

/* Connects. wait_ns: timeout; 0: the default, extended while the peer reports that it is busy (reported
 * once). attr->path_file: as --path-file gives it. several: what lets the peer serve more than one client,
 * for the message when it has closed. CLI_PROCEED, or an exit status after reporting the cause. */
int cli_connect(const struct cli_address *address, const struct lh_attr *attr, lh_time wait_ns,
                const char *several, struct lh_connection **connection);

/* ---- listening ------------------------------------------------------------------------------------- */

/* Listening for connections. */

/* Listens there and prints "listening on ADDR:PORT" on stdout. CLI_PROCEED, or an exit status after
 * reporting the cause. */
int cli_listening_start(const struct cli_address *address, const struct lh_attr *attr,
                        struct lh_listener **listener);

/* Reports that listening there failed with that code, and the remedy; returns the exit status. */
int cli_listening_failed(const struct cli_address *address, int code);

/* The next connection. While it waits, a signal ends the process at once. CLI_PROCEED; CLI_EXIT_FAILED, and
 * after reporting it; or the value of cli_stopped(). */
int cli_listening_accept(struct lh_listener *listener, lh_time timeout_ns,
                         struct lh_connection **connection);
/* The next connection, if one comes soon, else NULL; a signal only shows in cli_stopped(). CLI_PROCEED, or
 * CLI_EXIT_FAILED after reporting it. */
int cli_listening_look(struct lh_listener *listener, struct lh_connection **connection);

/* ---- path file ------------------------------------------------------------------------------------- */

/* Where the command remembers paths. */

/* The help of --path-file. */
#define CLI_PATH_FILE_HELP "file of remembered paths, or 'none' (longhaul/paths in the user's cache folder)"

/* For lh_attr.path_file: what --path-file gives (NULL: not given). By default a file in the user's cache
 * folder, which is created. NULL: none. Valid until the next call. CLI_PROCEED, or reports that the given one
 * is a file of something else. */
int cli_path_file(const char *given, const char **file);

#endif
