/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/link_file.h"

#include "cli/results/json_read.h"
#include "cli/results/read_text.h"
#include "cli/terminal/diagnostic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A measurement with all its trials is some kilobytes. */
#define FILE_MAX ((size_t)16 << 20)

/* A member, and what its number can be. */
struct member {
    const char *name;
    size_t offset; /* of a double in struct cli_link_file */
    double least, below;
    const char *range;
};

static const struct member members[] = {
    {"bandwidth_bps", offsetof(struct cli_link_file, bandwidth_bps), 1, 1e18, "1 to below 1e18"},
    {"rtt_s", offsetof(struct cli_link_file, rtt_s), 1e-9, 1e6, "1e-9 to below 1e6"},
    {"loss", offsetof(struct cli_link_file, loss), 0, 1, "0 to below 1"},
    {"loss_high", offsetof(struct cli_link_file, loss_high), 0, 1, "0 to below 1"},
    {"burst_packets", offsetof(struct cli_link_file, burst_packets), 0, 1e9, "0 to below 1e9"},
    {"mtu_bytes", offsetof(struct cli_link_file, mtu_bytes), 0, 4097, "256, 512, 1024, 2048 or 4096"},
};

#define MEMBERS (sizeof members / sizeof members[0])

static double *place(struct cli_link_file *link, const struct member *member)
{
    return (double *)(void *)((char *)link + member->offset);
}

static int refuse(char *wrong, const char *name, const char *why)
{
    snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "%s: %s", name, why);
    return -1;
}

static int take(struct cli_link_file *link, const struct member *member, const struct cli_json_value *value,
                char *wrong)
{
    if (!isnan(*place(link, member)))
        return refuse(wrong, member->name, "given twice");
    if (value->kind == CLI_JSON_NULL)
        return 0;
    if (value->kind != CLI_JSON_NUMBER)
        return refuse(wrong, member->name, "invalid number");
    if (value->number < member->least || value->number >= member->below) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "%s %g: out of range (%s)", member->name, value->number,
                 member->range);
        return -1;
    }
    *place(link, member) = value->number;
    return 0;
}

/* A power of two, or nothing. */
static bool check_mtu(double *mtu_bytes)
{
    if (isnan(*mtu_bytes) || *mtu_bytes == 0) {
        *mtu_bytes = NAN;
        return true;
    }
    for (double mtu = 256; mtu <= 4096; mtu *= 2)
        if (*mtu_bytes == mtu)
            return true;
    return false;
}

int cli_link_file_parse(const char *text, size_t bytes, struct cli_link_file *link, char *wrong)
{
    struct cli_json_cursor cursor = {text, text + bytes};
    struct cli_json_value all, name, value;
    struct cli_link_file read = {NAN, NAN, NAN, NAN, NAN, NAN};
    bool right = cli_json_read(&cursor, &all) && cursor.at == cursor.end;
    if (!right) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "invalid JSON at byte %zu",
                 (size_t)(cursor.at - text) + 1);
        return -1;
    }
    if (all.kind != CLI_JSON_OBJECT)
        return refuse(wrong, "JSON", "not an object (example: {\"rtt_s\": 0.025})");
    cursor = cli_json_enter(&all);
    while (cli_json_next(&cursor, &name, &value))
        for (size_t i = 0; i < MEMBERS; i++)
            if (strlen(members[i].name) == name.bytes && !memcmp(members[i].name, name.text, name.bytes) &&
                take(&read, &members[i], &value, wrong))
                return -1;
    if (!check_mtu(&read.mtu_bytes)) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX,
                 "mtu_bytes %g: out of range (256, 512, 1024, 2048 or 4096)", read.mtu_bytes);
        return -1;
    }
    if (read.loss_high < read.loss) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "loss_high %g: below loss %g", read.loss_high, read.loss);
        return -1;
    }
    *link = read;
    return 0;
}

int cli_link_file_read(const char *path, struct cli_link_file *link)
{
    char wrong[CLI_LINK_FILE_WRONG_MAX];
    size_t bytes = 0;
    char *text = cli_read_text("--link-file ", path, FILE_MAX, &bytes);
    if (!text)
        return CLI_EXIT_FAILED;
    int failed = cli_link_file_parse(text, bytes, link, wrong);
    free(text);
    return failed ? cli_misused("--link-file %s: %s", path, wrong) : CLI_PROCEED;
}
