/*
 * devices.c - longhaul devices [--json]: what can be used here, and what cannot and why.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/devices.h"

#include "cli/options/options.h"
#include "cli/results/json.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"

#include <longhaul/device.h>
#include <longhaul/error.h>
#include <longhaul/units.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_column columns[] = {
    {"device", 22, true},     {"interface", 10, true}, {"address", 16, true},
    {"MTU", 5, false},        {"rate", 10, false},     {"late packets", 12, true},
    {"congestion", 13, true}, {"features", 10, true},  {.title = NULL},
};

static void set(struct cli_cell *cell, const char *text)
{
    snprintf(cell->text, sizeof cell->text, "%s", text[0] != '\0' ? text : "-");
}

static void print_device(const struct cli_table *table, const struct lh_device *device)
{
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    char mtu[16] = "";
    char rate[LH_FORMAT_MAX] = "";
    if (device->mtu_bytes != 0)
        snprintf(mtu, sizeof mtu, "%u", device->mtu_bytes);
    if (device->rate_bps != 0)
        lh_format_rate((double)device->rate_bps, rate, sizeof rate);
    set(&cells[0], device->name);
    set(&cells[1], device->interface);
    set(&cells[2], device->address);
    set(&cells[3], mtu);
    set(&cells[4], rate);
    set(&cells[5], device->late_packets);
    set(&cells[6], device->congestion);
    set(&cells[7], device->features);
    cli_table_row(table, cells);
}

static void print_table(const struct lh_device *devices, size_t count)
{
    struct cli_table table = {columns, stdout, "", cli_terminal_colours(STDOUT_FILENO)};
    cli_table_titles(&table);
    for (size_t i = 0; i < count; i++)
        if (devices[i].trouble[0] == '\0')
            print_device(&table, &devices[i]);
    for (size_t i = 0; i < count; i++) {
        const struct lh_device *device = &devices[i];
        if (device->trouble[0] != '\0')
            printf("%s%s%s: %s\n", device->fabric, device->interface[0] != '\0' ? " " : "",
                   device->interface, device->trouble);
    }
}

static void put_device(struct cli_json *json, const struct lh_device *device)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "device", device->name);
    cli_json_text(json, "fabric", device->fabric);
    cli_json_text(json, "interface", device->interface);
    cli_json_text(json, "address", device->address);
    cli_json_count(json, "mtu_bytes", device->mtu_bytes);
    cli_json_count(json, "rate_bps", device->rate_bps);
    cli_json_text(json, "late_packets", device->late_packets);
    cli_json_text(json, "congestion", device->congestion);
    cli_json_text(json, "features", device->features);
    cli_json_text(json, "trouble", device->trouble);
    cli_json_close(json, '}');
}

static void print_json(const struct lh_device *devices, size_t count)
{
    struct cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '[');
    for (size_t i = 0; i < count; i++)
        put_device(&json, &devices[i]);
    cli_json_close(&json, ']');
    cli_json_end(&json);
}

int cli_devices(int argc, char **argv)
{
    bool as_json = false;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"json", NULL, "print an array of objects instead of a table", &as_json, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "devices",
        .operands = "[--json]",
        .about = "Lists what this machine can send and receive with: what to give to --device, and what "
                 "it can do.\nUnusable devices are listed below, with the reason.",
        .groups = {own},
        .operands_max = 0,
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    struct lh_device *devices;
    size_t count;
    if (lh_devices(&devices, &count) != 0)
        return cli_failed("%s", lh_last_error());
    if (as_json)
        print_json(devices, count);
    else
        print_table(devices, count);
    lh_devices_free(devices);
    return CLI_EXIT_OK;
}
