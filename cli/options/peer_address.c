/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/peer_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

#include "cli/terminal/terminal.h"

/* ---- address --------------------------------------------------------------------------------------- */

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

/* ---- path file ------------------------------------------------------------------------------------- */

/* Of the library's files (history/path_history.h); it writes over no other. */
#define BEGINNING "# paths of longhaul"

/* False: too long. */
static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int bytes = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return bytes > 0 && bytes < PATH_MAX;
}

/* The XDG Base Directory Specification: paths that are not absolute are ignored. */
static bool cache_folder(char out[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return snprintf(out, PATH_MAX, "%s", cache) < PATH_MAX;
    return home && *home == '/' && join(out, home, ".cache");
}

static const char *default_file(void)
{
    static char file[PATH_MAX];
    char cache[PATH_MAX], folder[PATH_MAX];
    if (!cache_folder(cache) || !join(folder, cache, "longhaul") || !join(file, folder, "paths"))
        return NULL;
    /* What cannot be created is found out where the file cannot be written, which is no error. */
    (void)mkdir(cache, 0700);
    (void)mkdir(folder, 0700);
    return file;
}

/* Whether the library would leave the file alone, as it is not one of its own. */
static bool is_foreign(const char *file)
{
    struct stat status;
    char text[sizeof BEGINNING - 1];
    if (stat(file, &status) || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return false; /* there is none, or no file of anybody's; it is no error */
    int fd = S_ISREG(status.st_mode) ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    return bytes != 0 && (bytes != (ssize_t)sizeof text || memcmp(text, BEGINNING, sizeof text));
}

int cli_path_file(const char *given, const char **file)
{
    *file = given ? given : default_file();
    if (!given)
        return CLI_PROCEED;
    if (!strcmp(given, "none"))
        *file = NULL;
    else if (is_foreign(given))
        return cli_misused("--path-file %s: not a file of remembered paths (name a new file, or none)",
                           given);
    return CLI_PROCEED;
}

/* ---- connecting ------------------------------------------------------------------------------------ */

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

/* ---- listening ------------------------------------------------------------------------------------- */

/* Without this a device that does not exist would be found with the first connection only. */
static int try_device(const struct lh_attr *attr)
{
    struct lh_connection *unused;
    struct lh_attr alone = *attr;
    alone.security = NULL; /* of a rendezvous */
    int code = attr->device ? lh_open(&alone, &unused) : 0;
    if (code)
        return cli_library_failed("--device", attr->device, code);
    if (attr->device)
        lh_close(unused);
    return CLI_PROCEED;
}

/* A client whose packets do not arrive: a matter for the user of this side, too. */
static bool listening_on_notice(void *context, enum lh_notice notice, const char *text)
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
        {EADDRINUSE, "another process uses this port; use another port, or port 0 for a free one"},
        {EADDRNOTAVAIL, "not an address of this machine; use one of its addresses, or :PORT for all"},
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
    with_notices.on_notice = listening_on_notice;
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
