/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/address.h"

#include "cli/terminal/diagnostic.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Longest name that DNS has, and an address with a scope is shorter. */
#define HOST_MAX 253

/* "host:folder" is what scp takes. */
static int no_port(const char *what, const char *text, const char *typed, int listening)
{
    if (!listening && *typed && strchr("/~.", *typed))
        return cli_misused(
            "%s %s: port \"%s\": not a number (the receiver chooses the folder: longhaul recv "
            "--output %s)",
            what, text, typed, typed);
    return cli_misused("%s %s: port \"%s\": not a number (%d to 65535; example: %s:%d)", what, text, typed,
                       !listening, listening ? "" : "host", CLI_PORT_FILES);
}

static int parse_port(const char *what, const char *text, const char *digits, int listening, uint16_t *port)
{
    if (!*digits || digits[strspn(digits, "0123456789")])
        return no_port(what, text, digits, listening);
    unsigned long value = strtoul(digits, NULL, 10);
    if (value > UINT16_MAX || (!value && !listening))
        return cli_misused("%s %s: port out of range (%d to 65535)", what, text, !listening);
    *port = (uint16_t)value;
    return CLI_PROCEED;
}

static int bad_host(const char *what, const char *text)
{
    return cli_misused("%s %s: invalid address (examples: example.org, 10.0.0.7:%d, [fe80::1]:%d)", what,
                       text, CLI_PORT_FILES, CLI_PORT_FILES);
}

static int is_host(const char *host, size_t length)
{
    if (length > HOST_MAX)
        return 0;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr("-._:%", host[i]))
            return 0;
    return 1;
}

static bool is_ipv6(const char *text, size_t length)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr unused;
    const char *scope = memchr(text, '%', length);
    if (scope && memchr(scope, ':', (size_t)(text + length - scope)))
        return false;
    length = scope ? (size_t)(scope - text) : length;
    snprintf(address, sizeof address, "%.*s", (int)length, text);
    return length < sizeof address && inet_pton(AF_INET6, address, &unused) == 1;
}

/* Two colons and more are of an IPv6 address, and none of them is a port's. */
static int check_colons(const char *what, const char *text)
{
    const char *last = strrchr(text, ':');
    if (*text == '[' || last == strchr(text, ':') || is_ipv6(text, strlen(text)))
        return CLI_PROCEED;
    if (last[1] && !last[1 + strspn(last + 1, "0123456789")] && is_ipv6(text, (size_t)(last - text)))
        return cli_misused("%s %s: IPv6 address without brackets (use [%.*s]%s)", what, text,
                           (int)(last - text), text, last);
    return bad_host(what, text);
}

/* Where the host ends and the port's digits begin (NULL: none). */
static int split(const char *text, const char **host, size_t *length, const char **digits)
{
    const char *colon = strchr(text, ':');
    *host = text;
    *digits = NULL;
    if (*text == '[') {
        const char *bracket = strchr(text, ']');
        if (!bracket || (bracket[1] && bracket[1] != ':'))
            return 0;
        *host = text + 1;
        *length = (size_t)(bracket - *host);
        *digits = bracket[1] ? bracket + 2 : NULL;
        return *length > 0;
    }
    /* More than one colon and no brackets: an IPv6 address without a port. */
    bool has_port = colon && !strchr(colon + 1, ':');
    *length = has_port ? (size_t)(colon - text) : strlen(text);
    *digits = has_port ? colon + 1 : NULL;
    return 1;
}

int cli_address_parse(const char *what, const char *text, uint16_t port, int listening,
                      struct cli_address *address)
{
    const char *host, *digits;
    size_t length;
    struct cli_address parsed;
    if (!split(text, &host, &length, &digits) || !is_host(host, length) || (!length && !listening))
        return bad_host(what, text);
    int status = check_colons(what, text);
    if (status != CLI_PROCEED)
        return status;
    if (listening && length && strspn(host, "0123456789") == length)
        return cli_misused("%s %s: invalid address (for a port: :%.*s)", what, text, (int)length, host);
    if (digits) {
        status = parse_port(what, text, digits, listening, &port);
        if (status != CLI_PROCEED)
            return status;
    }
    bool brackets = memchr(host, ':', length) != NULL;
    snprintf(parsed.host, sizeof parsed.host, "%s%.*s%s", brackets ? "[" : "", (int)length, host,
             brackets ? "]" : "");
    cli_address_set_port(&parsed, port);
    *address = parsed;
    return CLI_PROCEED;
}

void cli_address_set_port(struct cli_address *address, uint16_t port)
{
    address->port = port;
    snprintf(address->where, sizeof address->where, "%.262s:%u", address->host, port);
}

const char *cli_address_any(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EAFNOSUPPORT)
        return "0.0.0.0";
    if (fd >= 0)
        close(fd);
    return "[::]";
}
