/*
 * address.h - HOST[:PORT] as people write it, to the HOST:PORT that the library takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_ADDRESS_H
#define CLI_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

/* Ports that the command listens on unless told otherwise; from the dynamic range, not registered with
 * anyone. */
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
 * 0. CLI_PROCEED; or says what is wrong with it, naming it `what`: CLI_EXIT_USAGE. */
int cli_address_parse(const char *what, const char *text, uint16_t port, int listening,
                      struct cli_address *address);

/* The same host with another port. */
void cli_address_set_port(struct cli_address *address, uint16_t port);

/* How "all addresses" is written on this host: "[::]", or "0.0.0.0" where there is no IPv6. */
const char *cli_address_any(void);

#endif
