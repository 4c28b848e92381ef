/*
 * option_values.h - the options that several commands share: those that fill a struct lh_attr, and those
 * of a group of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_OPTION_VALUES_H
#define LH_CLI_OPTIONS_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/group.h>

#include "cli/options/cli_options.h"

/* What a command does with its connection, and so which of the options it has. */
enum cli_role {
    CLI_RECEIVES = 1, /* --reliability */
    CLI_CONNECTS = 2, /* --link, --rate, --wait, --path-file */
    CLI_PARTIAL = 4,  /* what it receives may be incomplete: schemes with a deadline, too */
};

#define CLI_CONNECTION_OPTIONS_MAX 23
#define CLI_RELIABILITY_HELP_MAX   256

struct cli_connection {
    struct lh_attr attr;
    struct lh_security security; /* of --key-file and --code */
    const char *encryption;      /* as it was given; NULL: it was not */
    bool insecure;               /* any host, in clear text */
    lh_time wait_ns;             /* as of cli_connect() */
    char code[LH_KEY_CODE_MAX];  /* "": none was made */
    struct cli_option options[CLI_CONNECTION_OPTIONS_MAX];
    char reliability_help[CLI_RELIABILITY_HELP_MAX];
    char congestion_help[CLI_RELIABILITY_HELP_MAX];
};

/* Defaults, and the table of options that change them. The struct must stay where it is. */
void cli_connection_options(struct cli_connection *connection, unsigned roles);
/* After parsing: the attributes get the key or the code, of the options or else of LONGHAUL_CODE and
 * LONGHAUL_KEY_FILE. Without one only this host is served and connected to, unless the user says --insecure,
 * which is reported. CLI_PROCEED; or CLI_EXIT_USAGE after reporting what does not fit. */
int cli_connection_secure(struct cli_connection *connection);
/* The same for a side that listens, where "new" as the code makes one, and prints the other side's command.
 * client: that command's arguments, "perf HOST". */
int cli_connection_secure_listener(struct cli_connection *connection, const char *client);
/* Reports that nothing is authenticated nor encrypted. */
void cli_report_insecure(void);
/* "full", "auth" or "off": what both sides have, for such a connection stands only if the other wants the
 * same. */
const char *cli_encryption_name(const struct lh_attr *attr);

/* Help of --reliability: the schemes of the library; partial: those with a deadline, too. Returns out. */
const char *cli_reliability_help(char out[static CLI_RELIABILITY_HELP_MAX], bool partial);

/* ---- deadline -------------------------------------------------------------------------------------- */

/* Reliability with a deadline: not every byte arrives. */

/* Whether messages of this reliability (NULL: the default) have a deadline. */
bool cli_has_deadline(const char *reliability);

/* ---- limits ---------------------------------------------------------------------------------------- */

/* Limits and defaults of the connection options, as longhaul(1) lists them. */

#define CLI_KIB ((uint64_t)1 << 10)
#define CLI_MIB ((uint64_t)1 << 20)
#define CLI_GIB ((uint64_t)1 << 30)

#define CLI_WINDOW_DEFAULT (64 * CLI_MIB)
#define CLI_WINDOW_MAX     (64 * CLI_GIB)
#define CLI_SLOTS_DEFAULT  64u
#define CLI_SLOTS_MAX      1024u
#define CLI_MTU_MAX        8896u /* payload: of lh_attr.mtu_bytes */
#define CLI_SLOT_DEFAULT   (4 * CLI_MIB)
#define CLI_SLOT_MAX       CLI_GIB

/* ---- loss list ------------------------------------------------------------------------------------- */

/* Shares of lost packets as text: "0,1e-4,1%", or "1e-6..1e-2" in decades. */

#define CLI_LOSSES_MAX 16

struct cli_loss_list {
    unsigned count;
    double ratio[CLI_LOSSES_MAX];
};

/* CLI_PROCEED; or CLI_EXIT_USAGE after reporting the cause for that option. */
int cli_loss_list_parse(const char *option, const char *text, struct cli_loss_list *list);
/* As people write one: "0", "1e-5", "2.5e-3"; into out, which is cut at size. */
void cli_loss_format(double loss, char *out, size_t size);

/* ---- size list ------------------------------------------------------------------------------------- */

/*
 * Sizes of a sweep as text: "64KiB", "64KiB,1MiB", "64KiB..64MiB" (doubling), or a mix of
 * those.
 */

#define CLI_SIZES_MAX 64

struct cli_size_list {
    unsigned count;
    uint64_t bytes[CLI_SIZES_MAX];
};

/* Each size from 1 to max_bytes. CLI_PROCEED; or CLI_EXIT_USAGE after reporting the cause for that option. */
int cli_size_list_parse(const char *option, const char *text, uint64_t max_bytes,
                        struct cli_size_list *list);

/* ---- groups ---------------------------------------------------------------------------------------- */

/*
 * The group of all ranks that a launcher has started: options of the commands that are its ranks, and its
 * creation.
 */

#define CLI_GROUP_OPTIONS_MAX 12

struct cli_group {
    struct lh_group_attr attr;
    struct cli_connection connection;
    struct lh_attr across;
    const char *reliability_across; /* NULL: as inside */
    bool partial;                   /* it may deliver parts of messages */
    struct cli_option options[CLI_GROUP_OPTIONS_MAX];
};

/* Defaults, and the table of options that change them. The struct must stay where it is. partial: a scheme
 * may deliver parts of messages. */
void cli_group_options(struct cli_group *group, bool partial);
/* After parsing. CLI_PROCEED, or CLI_EXIT_USAGE. */
int cli_group_check(struct cli_group *group);
/* Whether some hop of it delivers parts of messages. */
bool cli_group_is_partial(const struct cli_group *group);
/* The schedule of a collective, NULL for the chosen one: CLI_PROCEED, or CLI_EXIT_USAGE. */
int cli_group_check_schedule(const char *collective, const char *schedule);
/* Whether this process is rank 0, before there is a group: CLI_PROCEED; else the exit status. example: how to
 * start it, "allreduce". */
int cli_group_is_first(const char *example, bool *is_first);
/* CLI_PROCEED, and *created; else the exit status. */
int cli_group_create(struct cli_group *group, const char *example, struct lh_group **created);

/* "full", "auth" or "off". */
const char *cli_group_encryption(const struct lh_group *created);

/* Number of sites, by their names or as found, and a rank's, from 0 on. */
uint32_t cli_group_sites(struct lh_group *group);
uint32_t cli_group_site(struct lh_group *group, uint32_t rank);
/* The schemes inside a site, and between sites: the same where these have no names. */
const char *cli_group_inside(const struct cli_group *group);
const char *cli_group_across(const struct cli_group *group, const struct lh_group *created);

#endif
