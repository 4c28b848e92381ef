/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

#include "cli/commands.h"
#include "cli/options/cli_options.h"
#include "cli/terminal/terminal.h"

/*
 * Longhaul key.
 *
 * Longhaul key new [FILE] makes a key file; longhaul key show FILE tells which key it has. Neither prints a
 * key.
 */

#define FILE_DEFAULT "longhaul.key"

static int failed(int code)
{
    return code == -LH_EINVAL ? cli_misused("%s", lh_last_error()) : cli_failed("%s", lh_last_error());
}

static int make(const char *file)
{
    char fingerprint[LH_KEY_FINGERPRINT_MAX];
    int code = lh_key_create(file);
    if (!code)
        code = lh_key_fingerprint(file, fingerprint);
    if (code)
        return failed(code);
    printf("%s: a new key, fingerprint %s\n"
           "copy it to the other hosts: scp -p %s HOST:\n"
           "use it on all of them: --key-file %s\n",
           file, fingerprint, file, file);
    cli_output_flush();
    return CLI_EXIT_OK;
}

static int show(const char *file)
{
    char fingerprint[LH_KEY_FINGERPRINT_MAX];
    int code = lh_key_fingerprint(file, fingerprint);
    if (code)
        return failed(code);
    printf("%s  %s\n", fingerprint, file);
    cli_output_flush();
    return CLI_EXIT_OK;
}

int cli_key(int argc, char **argv)
{
    struct cli_operands operands;
    const struct cli_option own[] = {{.name = NULL}};
    const struct cli_usage usage = {
        .command = "key",
        .operands = "new [FILE] | show FILE",
        .about = "new: makes a key file (" FILE_DEFAULT ") for this user alone, and tells how to copy it.\n"
                 "show: prints the fingerprint of a key file, the same wherever the key is the same.",
        .groups = {own},
        .operands_min = 1,
        .operands_max = 2,
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    const char *file = operands.count > 1 ? operands.text[1] : NULL;
    if (!strcmp(operands.text[0], "new"))
        return make(file ? file : FILE_DEFAULT);
    if (strcmp(operands.text[0], "show") != 0)
        return cli_misused("key %s: unknown (use new or show)", operands.text[0]);
    return file ? show(file)
                : cli_misused("key show: no FILE (example: longhaul key show " FILE_DEFAULT ")");
}
