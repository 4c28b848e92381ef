/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/option_values.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/collective.h>
#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/launch.h>
#include <longhaul/scheme.h>
#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

/* ---- limits ---------------------------------------------------------------------------------------- */

#define CLI_RATE_MAX_BPS UINT64_C(100000000000000)

/* ---- connection ------------------------------------------------------------------------------------ */

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
                 " (fixed if a rate is given, else bbr)");
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
                         "rate", "RATE", "the path's rate, and pace of packets (found by the controller)",
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
    return add(next, (struct cli_option){"max-rate", "RATE", "maximum sending rate (none)",
                                         &connection->attr.rate_max_bps, .kind = CLI_RATE, .min = 1,
                                         .max = CLI_RATE_MAX_BPS});
}

static struct cli_option *add_shape(struct cli_option *next, struct lh_attr *attr)
{
    next = add(next, (struct cli_option){"mtu", "SIZE", "RoCE payload of a packet (largest for the path)",
                                         &attr->mtu_bytes, CLI_SIZE32, 0, 64, 256, CLI_MTU_MAX});
    next = add(next, (struct cli_option){"chunk", "SIZE",
                                         "chunk size: data per bit of the receive bitmap (one packet)",
                                         &attr->chunk_bytes, CLI_SIZE32, 0, 64, 256, CLI_GIB});
    next = add(next, (struct cli_option){"slots", "N", "SDR messages in flight (64)", &attr->slots,
                                         CLI_COUNT, 0, CLI_POWER_OF_TWO, 1, CLI_SLOTS_MAX});
    next = add(next,
               (struct cli_option){"slot-size", "SIZE", "maximum SDR message; longer ones are split (4MiB)",
                                   &attr->slot_bytes, CLI_SIZE, 0, 0, 4 * CLI_KIB, CLI_SLOT_MAX});
    next =
        add(next, (struct cli_option){"window", "SIZE", "maximum bytes in flight (64MiB)",
                                      &attr->window_bytes, CLI_SIZE, 0, 0, 64 * CLI_KIB, CLI_WINDOW_MAX});
    next = add(next, (struct cli_option){"channels", "N", "parallel paths (1)", &attr->channels, CLI_COUNT,
                                         0, 0, 1, 32});
    next = add(next, (struct cli_option){"coders", "N", "threads that encode and decode (1)", &attr->coders,
                                         CLI_COUNT, 0, 0, 1, 64});
    return add(next, (struct cli_option){"workers", "N", "threads that move packets (1)", &attr->workers,
                                         CLI_COUNT, 0, 0, 1, 64});
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
    next = add(next, (struct cli_option){
                         "device", "DEVICE",
                         "udp:ADDRESS, xdp:INTERFACE or verbs:DEVICE; see 'longhaul devices' (udp on the "
                         "address in use)",
                         &attr->device, .kind = CLI_TEXT});
    lh_security_init(&connection->security);
    next = add(next, (struct cli_option){"code", "CODE",
                                         "code for one connection: that of the peer, or new where this "
                                         "side listens (LONGHAUL_CODE)",
                                         &connection->security.code, .kind = CLI_TEXT});
    next = add(next, (struct cli_option){"insecure", NULL,
                                         "without a key: serve and connect to other hosts, too, in clear "
                                         "text",
                                         &connection->insecure, .kind = CLI_FLAG});
    next = add(next, (struct cli_option){"key-file", "FILE", "key of both sides (LONGHAUL_KEY_FILE)",
                                         &connection->security.key_file, .kind = CLI_TEXT});
    add(next,
        (struct cli_option){"encryption", "HOW",
                            "full, auth (of the handshake alone) or off; the same on both sides (full "
                            "with a key, else off)",
                            &connection->encryption, .kind = CLI_TEXT});
}

static const char *const encryptions[] = {
    [LH_ENCRYPTION_FULL] = "full", [LH_ENCRYPTION_AUTH] = "auth", [LH_ENCRYPTION_OFF] = "off"};

static int read_encryption(const char *given, struct lh_security *security)
{
    unsigned count = sizeof encryptions / sizeof *encryptions, found = 0;
    while (given && found < count && strcmp(encryptions[found], given) != 0)
        found++;
    if (found == count)
        return cli_misused("--encryption %s: unknown (use full, auth or off)", given);
    security->encryption = (enum lh_encryption)found;
    return CLI_PROCEED;
}

void cli_report_insecure(void)
{
    cli_note(
        "--insecure: nothing is authenticated nor encrypted; hosts that reach this one can be the peer, "
        "read and change all");
}

/* Of the environment what no option says. */
static void read_keys(struct lh_security *security)
{
    const char *code = getenv("LONGHAUL_CODE"), *file = getenv("LONGHAUL_KEY_FILE");
    if (security->code || security->key_file || security->encryption == LH_ENCRYPTION_OFF)
        return;
    if (code && *code)
        security->code = code;
    else if (file && *file)
        security->key_file = file;
}

static int check_keys(const struct cli_connection *connection)
{
    const struct lh_security *security = &connection->security;
    bool off = security->encryption == LH_ENCRYPTION_OFF;
    const char *given = security->code ? "--code" : security->key_file ? "--key-file" : NULL;
    if (security->code && security->key_file)
        return cli_misused("--code: there is --key-file, too (omit one)");
    if (security->code && off)
        return cli_misused("--encryption off: contradicts --code (omit one)");
    if (connection->insecure && (connection->encryption ? !off : given != NULL))
        return cli_misused("--insecure: contradicts %s (omit one)",
                           connection->encryption ? "--encryption" : given);
    return CLI_PROCEED;
}

int cli_connection_secure(struct cli_connection *connection)
{
    struct lh_security *security = &connection->security;
    const char *given = connection->encryption;
    int status = read_encryption(given, security);
    if (status == CLI_PROCEED)
        status = check_keys(connection);
    if (status != CLI_PROCEED)
        return status;
    if (connection->insecure) {
        cli_report_insecure();
        return CLI_PROCEED;
    }
    read_keys(security);
    bool has_key = security->code || security->key_file;
    if (given && !has_key && security->encryption != LH_ENCRYPTION_OFF)
        return cli_misused("--encryption %s: no key (add --key-file FILE, or --code CODE)", given);
    if (!has_key)
        security->encryption = LH_ENCRYPTION_OFF;
    security->loopback_only = security->encryption == LH_ENCRYPTION_OFF;
    connection->attr.security = security;
    return CLI_PROCEED;
}

int cli_connection_secure_listener(struct cli_connection *connection, const char *client)
{
    int status = cli_connection_secure(connection);
    struct lh_security *security = &connection->security;
    if (status != CLI_PROCEED || !security->code || strcmp(security->code, "new") != 0)
        return status;
    int code = lh_key_code(connection->code);
    if (code)
        return cli_library_failed("--code", "new", code);
    security->code = connection->code;
    cli_note("for one connection; on the other host: LONGHAUL_CODE=%s longhaul %s", connection->code,
             client);
    return CLI_PROCEED;
}

const char *cli_encryption_name(const struct lh_attr *attr)
{
    return encryptions[attr->security ? attr->security->encryption : LH_ENCRYPTION_OFF];
}

/* ---- deadline -------------------------------------------------------------------------------------- */

bool cli_has_deadline(const char *reliability)
{
    size_t bytes = strcspn(reliability ? reliability : "", ":,");
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme; scheme++)
        if ((*scheme)->deadline && strlen((*scheme)->name) == bytes &&
            memcmp((*scheme)->name, reliability, bytes) == 0)
            return true;
    return false;
}

/* ---- comma-separated lists ---------------------------------------------------------------------------- */

/* Longer than any ratio or size, or two with dots between them, that make sense. */
#define PIECE_MAX 64

/* Takes the text up to the next comma; *at becomes the text behind it, NULL after the last piece. False: the
 * piece is too long, and nothing is taken. */
static bool take_piece(const char **at, char piece[PIECE_MAX])
{
    size_t length = strcspn(*at, ",");
    if (length >= PIECE_MAX)
        return false;
    memcpy(piece, *at, length);
    piece[length] = 0;
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return true;
}

/* ---- loss list ------------------------------------------------------------------------------------- */

/* Ten times as much, without the last digit of rounding that would show. */
static double next_decade(double ratio)
{
    char text[PIECE_MAX];
    snprintf(text, sizeof text, "%.12g", ratio * 10);
    return strtod(text, NULL);
}

static int add_share(const char *option, struct cli_loss_list *list, double ratio)
{
    if (list->count == CLI_LOSSES_MAX)
        return cli_misused("--%s: more than %d ratios", option, CLI_LOSSES_MAX);
    list->ratio[list->count++] = ratio;
    return CLI_PROCEED;
}

/* One piece between commas: a share, or from..to. */
static int parse_shares(const char *option, char *piece, struct cli_loss_list *list)
{
    double from, to;
    char *dots = strstr(piece, "..");
    if (dots)
        *dots = 0;
    if (lh_parse_ratio(piece, &from) || (dots && lh_parse_ratio(dots + 2, &to)))
        return cli_misused("--%s %s", option, lh_last_error());
    if (!dots)
        return add_share(option, list, from);
    if (!(from > 0) || to < from)
        return cli_misused("--%s %s..%s: invalid range (example: 1e-6..1e-2)", option, piece, dots + 2);
    int status = CLI_PROCEED;
    /* As many rounds as the list has places. */
    for (double ratio = from; status == CLI_PROCEED && ratio <= to; ratio = next_decade(ratio))
        status = add_share(option, list, ratio);
    return status;
}

int cli_loss_list_parse(const char *option, const char *text, struct cli_loss_list *list)
{
    struct cli_loss_list parsed = {0};
    char piece[PIECE_MAX];
    int status = CLI_PROCEED;
    for (const char *at = text; at && status == CLI_PROCEED;) {
        if (!take_piece(&at, piece))
            return cli_misused("--%s %s: invalid ratio (example: 0,1e-4,1%%)", option, at);
        status = parse_shares(option, piece, &parsed);
    }
    if (status == CLI_PROCEED)
        *list = parsed;
    return status;
}

void cli_loss_format(double loss, char *out, size_t size)
{
    int exponent = loss > 0 ? (int)floor(log10(loss) + 1e-9) : 0;
    if (loss <= 0 || loss >= 1)
        snprintf(out, size, "%.3g", loss);
    else
        snprintf(out, size, "%.3ge%d", loss / pow(10, exponent), exponent);
}

/* ---- size list ------------------------------------------------------------------------------------- */

static int parse_size(const char *option, const char *text, uint64_t max_bytes, uint64_t *bytes)
{
    char maximum[LH_FORMAT_MAX];
    uint64_t parsed;
    int code = lh_parse_size(text, &parsed);
    if (code)
        return cli_misused("--%s %s", option, lh_last_error());
    lh_format_size(max_bytes, maximum, sizeof maximum);
    if (!parsed || parsed > max_bytes)
        return cli_misused("--%s %s: out of range (1B to %s)", option, text, maximum);
    *bytes = parsed;
    return CLI_PROCEED;
}

static int append(const char *option, struct cli_size_list *list, uint64_t bytes)
{
    if (list->count == CLI_SIZES_MAX)
        return cli_misused("--%s: more than %d sizes", option, CLI_SIZES_MAX);
    list->bytes[list->count++] = bytes;
    return CLI_PROCEED;
}

/* One piece between commas: a size, or from..to. */
static int parse_piece(const char *option, char *piece, uint64_t max_bytes, struct cli_size_list *list)
{
    uint64_t from, to;
    char *dots = strstr(piece, "..");
    if (dots)
        *dots = 0;
    int status = parse_size(option, piece, max_bytes, &from);
    to = from;
    if (status == CLI_PROCEED && dots)
        status = parse_size(option, dots + 2, max_bytes, &to);
    if (status == CLI_PROCEED && to < from)
        return cli_misused("--%s %s..%s: invalid range (smaller size first)", option, piece, dots + 2);
    for (uint64_t bytes = from; status == CLI_PROCEED && bytes <= to; bytes *= 2)
        status = append(option, list, bytes);
    return status;
}

int cli_size_list_parse(const char *option, const char *text, uint64_t max_bytes,
                        struct cli_size_list *list)
{
    struct cli_size_list parsed = {0};
    char piece[PIECE_MAX];
    int status = CLI_PROCEED;
    for (const char *at = text; at && status == CLI_PROCEED;) {
        if (!take_piece(&at, piece))
            return cli_misused("--%s %s: invalid size (example: 64KiB or 64KiB..64MiB)", option, at);
        status = parse_piece(option, piece, max_bytes, &parsed);
    }
    if (status == CLI_PROCEED)
        *list = parsed;
    return status;
}

/* ---- groups ---------------------------------------------------------------------------------------- */

#define NAMES_MAX 256

/* Messages of all ranks meet on one terminal. */
static void name_rank(void)
{
    uint32_t rank, size;
    if (!lh_group_rank_env(&rank, &size) && size > 1)
        cli_diagnostic_rank(rank);
}

void cli_group_options(struct cli_group *group, bool partial)
{
    static const char *const picked[] = {"reliability", "rate",         "congestion",
                                         "mtu",         "peer-timeout", "device",
                                         "insecure",    "key-file",     "encryption"};
    unsigned count = 0;
    name_rank();
    memset(group, 0, sizeof *group);
    lh_group_attr_init(&group->attr);
    group->partial = partial;
    cli_connection_options(&group->connection, CLI_RECEIVES | CLI_CONNECTS);
    cli_reliability_help(group->connection.reliability_help, partial);
    group->options[count++] =
        (struct cli_option){"reliability-across", "SCHEME", "scheme between sites (as --reliability)",
                            &group->reliability_across, .kind = CLI_SCHEME};
    group->options[count++] = (struct cli_option){"wait",
                                                  "TIME",
                                                  "until all ranks have joined (30s)",
                                                  &group->attr.timeout_ns,
                                                  .kind = CLI_TIME,
                                                  .min = LH_NS_PER_MS};
    for (unsigned i = 0; i < sizeof picked / sizeof *picked; i++)
        for (const struct cli_option *option = group->connection.options; option->name; option++)
            if (!strcmp(option->name, picked[i]))
                group->options[count++] = *option;
    group->options[count - 2].help = "key of all ranks (LONGHAUL_SECRET)";
    group->options[count - 1].help =
        "full, auth (of the rendezvous alone) or off; the same for all ranks (full with a key or "
        "LONGHAUL_SECRET, else off)";
}

static int check_reliability(const char *option, const char *scheme)
{
    if (!cli_has_deadline(scheme))
        return CLI_PROCEED;
    return cli_misused("%s %s: delivers parts of messages, a file needs all (example: auto)", option,
                       scheme);
}

bool cli_group_is_partial(const struct cli_group *group)
{
    return cli_has_deadline(group->connection.attr.reliability) ||
           cli_has_deadline(group->reliability_across);
}

/* Without a key, of the launcher neither, only ranks of this host. */
static void secure_group(struct cli_connection *connection)
{
    struct lh_security *security = &connection->security;
    if (connection->insecure)
        security->encryption = LH_ENCRYPTION_OFF;
    bool asks = connection->encryption || security->key_file;
    bool off = security->encryption == LH_ENCRYPTION_OFF;
    security->loopback_only = !connection->insecure && (off || !asks);
    connection->attr.security = security;
}

int cli_group_check(struct cli_group *group)
{
    struct lh_attr *attr = &group->connection.attr;
    int status = group->partial ? CLI_PROCEED : check_reliability("--reliability", attr->reliability);
    if (status == CLI_PROCEED && !group->partial)
        status = check_reliability("--reliability-across", group->reliability_across);
    if (status != CLI_PROCEED)
        return status;
    status = read_encryption(group->connection.encryption, &group->connection.security);
    if (status == CLI_PROCEED)
        status = check_keys(&group->connection);
    if (status != CLI_PROCEED)
        return status;
    secure_group(&group->connection);
    group->attr.attr = attr;
    group->attr.device = attr->device;
    group->attr.peer_timeout_ns = attr->peer_timeout_ns;
    if (group->reliability_across) {
        group->across = *attr;
        group->across.reliability = group->reliability_across;
        group->attr.attr_across = &group->across;
    }
    return CLI_PROCEED;
}

int cli_group_check_schedule(const char *collective, const char *schedule)
{
    char names[NAMES_MAX] = "";
    const char *name;
    for (uint32_t i = 0; (name = lh_collective_schedule(collective, i)) != NULL; i++) {
        if (!schedule || !strcmp(name, schedule))
            return CLI_PROCEED;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", name);
    }
    if (!schedule)
        return CLI_PROCEED;
    return cli_misused("--schedule %s: unknown schedule of %s (%s)", schedule, collective, names);
}

const char *cli_group_encryption(const struct lh_group *created)
{
    return encryptions[lh_group_encryption(created)];
}

/* ---- creation ---------------------------------------------------------------------------------------- */

static int no_group(const char *example, int code)
{
    if (code == -LH_ESTATE)
        return cli_misused("no launcher has started this process (start ranks with: longhaul run -n 4 -- "
                           "longhaul %s; or with mpirun, srun, torchrun)",
                           example);
    bool misused = code == -LH_EINVAL || code == -LH_ERANGE || code == -LH_EDEVICE;
    return misused ? cli_misused("%s", lh_last_error()) : cli_failed("%s", lh_last_error());
}

int cli_group_is_first(const char *example, bool *is_first)
{
    uint32_t rank, size;
    int code = lh_group_rank_env(&rank, &size);
    if (code)
        return no_group(example, code);
    *is_first = rank == 0;
    return CLI_PROCEED;
}

static bool names_sites(const struct lh_group *created)
{
    for (uint32_t rank = 0; rank < lh_group_size(created); rank++)
        if (*lh_group_site(created, rank) != '\0')
            return true;
    return false;
}

static void note_unused(const struct cli_group *group, const struct lh_group *created)
{
    if (group->reliability_across && lh_group_rank(created) == 0 && !names_sites(created))
        cli_note(
            "--reliability-across %s: without effect, no rank names its site (set LONGHAUL_SITE, or use "
            "longhaul run --sites)",
            group->reliability_across);
}

int cli_group_create(struct cli_group *group, const char *example, struct lh_group **created)
{
    uint32_t rank, size;
    if (group->connection.insecure && !lh_group_rank_env(&rank, &size) && rank == 0)
        cli_report_insecure();
    int code = lh_group_create_env(&group->attr, created);
    if (code)
        return no_group(example, code);
    note_unused(group, *created);
    return CLI_PROCEED;
}

/* ---- what it is -------------------------------------------------------------------------------------- */

uint32_t cli_group_site(struct lh_group *group, uint32_t rank)
{
    uint32_t site = 0;
    lh_group_place(group, rank, NULL, &site);
    return site;
}

uint32_t cli_group_sites(struct lh_group *group)
{
    uint32_t last = 0;
    for (uint32_t rank = 0; rank < lh_group_size(group); rank++) {
        uint32_t site = cli_group_site(group, rank);
        last = site > last ? site : last;
    }
    return last + 1;
}

const char *cli_group_inside(const struct cli_group *group)
{
    const char *scheme = group->connection.attr.reliability;
    return scheme ? scheme : "auto";
}

const char *cli_group_across(const struct cli_group *group, const struct lh_group *created)
{
    bool has = group->reliability_across && names_sites(created);
    return has ? group->reliability_across : cli_group_inside(group);
}
