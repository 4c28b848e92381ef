/*
 * address.h - HOST[:PORT] as typed, to HOST:PORT as the library expects it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_ADDRESS_H
#define LH_CLI_OPTIONS_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

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

#endif
