/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- designs --------------------------------------------------------------------------------------- */

#define NODES        15000.0
#define BITS_OF_BRAM 36864.0

/* Failures per hour of all nodes: the four points of Celeris, table II, lie on this line within 0.2 %. */
#define FAILURES_BASE     0.00613
#define FAILURES_PER_BRAM 1.188e-5

/* As stated (Celeris, section IV.C). */
#define STATED_RATE_PER_BIT 1e-11
#define STATED_ESSENTIAL    0.1

#define CELERIS "Celeris, table II"
#define OPTINIC "OptiNIC, table 5, rounded"

const struct cli_nic_design cli_nic_designs[CLI_NIC_DESIGNS] = {
    {"RoCE", 407, 2, 1450.5, CELERIS, {10e3, 5e3, 42.8}},
    {"IRN", 596, 2, 2200, OPTINIC, {8e3, 4e3, 30.9}},
    {"SRNIC", 242, 2, 939.5, CELERIS, {20e3, 10e3, 57.8}},
    {"Falcon", 350, 2, 1600, OPTINIC, {12e3, 6e3, 40.5}},
    {"UCCL", 407, 256, 1450.5, "RoCE's hardware", {10e3, 256, 42.8}},
    {"OptiNIC", 52, 2, 529.5, CELERIS, {80e3, 40e3, 80.5}},
};

struct cli_nic_derived cli_nic_derive(const struct cli_nic_design *design, uint64_t sram_bytes)
{
    uint64_t queue_pairs = sram_bytes / design->state_bytes;
    return (struct cli_nic_derived){
        .queue_pairs = queue_pairs,
        .nodes = queue_pairs / design->connections_per_peer,
        .mtbf_hours = 1 / (FAILURES_BASE + FAILURES_PER_BRAM * design->bram),
    };
}

double cli_nic_off(double computed, double printed)
{
    return computed / printed - 1;
}

double cli_nic_mtbf_stated_hours(const struct cli_nic_design *design)
{
    return 1 / (design->bram * BITS_OF_BRAM * STATED_RATE_PER_BIT * STATED_ESSENTIAL * NODES);
}

/* ---- command --------------------------------------------------------------------------------------- */

/* Longhaul plan --nic: options, table, JSON. */

/* More is worth a colour. */
#define FAR_OFF 0.05

struct order {
    uint64_t sram_bytes;
    const char *json;
};

/* ---- the table --------------------------------------------------------------------------------------- */

static const struct cli_column columns[] = {
    {"design", 8, true}, {"state", 6, false},   {"QPs", 6, false},     {"printed", 7, false},
    {"off", 8, false},   {"nodes", 6, false},   {"printed", 7, false}, {"off", 8, false},
    {"MTBF", 6, false},  {"printed", 7, false}, {"off", 8, false},     {NULL, 0, false},
};

static void put_off(struct cli_cell *cell, double computed, double printed)
{
    double off = cli_nic_off(computed, printed);
    snprintf(cell->text, sizeof cell->text, "%+.1f %%", 100 * off);
    cell->colour = fabs(off) > FAR_OFF ? CLI_YELLOW : CLI_PLAIN;
}

static void put_pair(struct cli_cell cells[3], const char *format, double computed, double printed,
                     bool comparable)
{
    snprintf(cells[0].text, sizeof cells[0].text, format, computed);
    snprintf(cells[1].text, sizeof cells[1].text, format, printed);
    if (comparable)
        put_off(&cells[2], computed, printed);
    else
        snprintf(cells[2].text, sizeof cells[2].text, "-");
}

/* What is printed is for the default budget. */
static bool comparable(const struct order *order)
{
    return order->sram_bytes == CLI_NIC_SRAM_DEFAULT;
}

static void print_design(const struct cli_table *table, const struct order *order,
                         const struct cli_nic_design *design)
{
    struct cli_cell cells[CLI_COLUMNS_MAX] = {0};
    struct cli_nic_derived derived = cli_nic_derive(design, order->sram_bytes);
    snprintf(cells[0].text, sizeof cells[0].text, "%s", design->name);
    snprintf(cells[1].text, sizeof cells[1].text, "%u B", design->state_bytes);
    put_pair(&cells[2], "%.0f", (double)derived.queue_pairs, design->printed.queue_pairs,
             comparable(order));
    put_pair(&cells[5], "%.0f", (double)derived.nodes, design->printed.nodes, comparable(order));
    put_pair(&cells[8], "%.1f", derived.mtbf_hours, design->printed.mtbf_hours, true);
    cli_table_row(table, cells);
}

static void print_all(const struct order *order)
{
    char budget[LH_FORMAT_MAX];
    const struct cli_nic_design *roce = &cli_nic_designs[0];
    struct cli_table table = {columns, stdout, "  ", cli_terminal_colours(STDOUT_FILENO)};
    printf("\n  %s of NIC memory for queue pairs; printed: OptiNIC paper, tables 4 and 5 (4 MB)\n\n",
           lh_format_size(order->sram_bytes, budget, sizeof budget));
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (unsigned i = 0; i < CLI_NIC_DESIGNS; i++)
        print_design(&table, order, &cli_nic_designs[i]);
    printf(
        "\n  state  bytes per queue pair: the papers' own (OptiNIC: 20 of transport, 32 of DCQCN).\n"
        "  QPs    memory / state. IRN's and SRNIC's printed numbers do not follow from their state.\n"
        "  nodes  QPs / connections to a peer: 2, UCCL 256, whose printed 256 nodes do not follow.\n"
        "  MTBF   hours, of 15,000 nodes with 10,000 queue pairs each: 1 / (0.00613 + 1.188e-5 * blocks "
        "of\n"
        "         memory), fitted to the four points of Celeris, table II. The constants stated there "
        "(1e-11\n"
        "         failures per hour and bit, of which 10 %% matter) give %.2f hours for %s, not %.1f.\n\n",
        cli_nic_mtbf_stated_hours(roce), roce->name, roce->printed.mtbf_hours);
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

static void put_value(struct cli_json *json, const char *name, double computed, double printed,
                      bool compares, const char *source)
{
    cli_json_open(json, name, '{');
    cli_json_number(json, "value", computed);
    cli_json_number(json, "printed", printed);
    cli_json_number(json, "off", compares ? cli_nic_off(computed, printed) : NAN);
    cli_json_text(json, "source", source);
    cli_json_close(json, '}');
}

static void put_design(struct cli_json *json, const struct order *order,
                       const struct cli_nic_design *design)
{
    struct cli_nic_derived derived = cli_nic_derive(design, order->sram_bytes);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "design", design->name);
    cli_json_count(json, "state_bytes", design->state_bytes);
    cli_json_text(json, "state_source", "OptiNIC, table 4");
    cli_json_count(json, "connections_per_peer", design->connections_per_peer);
    cli_json_number(json, "bram_blocks", design->bram);
    cli_json_text(json, "bram_source", design->bram_source);
    put_value(json, "queue_pairs", (double)derived.queue_pairs, design->printed.queue_pairs,
              comparable(order), "OptiNIC, table 4");
    put_value(json, "nodes", (double)derived.nodes, design->printed.nodes, comparable(order),
              "OptiNIC, table 4");
    put_value(json, "mtbf_hours", derived.mtbf_hours, design->printed.mtbf_hours, true, "OptiNIC, table 5");
    cli_json_number(json, "mtbf_stated_constants_hours", cli_nic_mtbf_stated_hours(design));
    cli_json_close(json, '}');
}

static void put_all(FILE *out, const struct order *order)
{
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "sram_bytes", order->sram_bytes);
    cli_json_open(&json, "designs", '[');
    for (unsigned i = 0; i < CLI_NIC_DESIGNS; i++)
        put_design(&json, order, &cli_nic_designs[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int carry_out(const struct order *order)
{
    if (order->json && !strcmp(order->json, "-")) {
        put_all(stdout, order);
        return CLI_EXIT_OK;
    }
    print_all(order);
    if (!order->json)
        return CLI_EXIT_OK;
    FILE *out = cli_result_open("--json ", order->json);
    if (!out)
        return CLI_EXIT_FAILED;
    put_all(out, order);
    int status = cli_result_close("--json ", order->json, out);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

int cli_plan_nic(int argc, char **argv)
{
    struct order order = {.sram_bytes = CLI_NIC_SRAM_DEFAULT};
    bool asked = false;
    struct cli_operands operands;
    const struct cli_option options[] = {
        {"nic", NULL, "cost of a transport in a NIC", &asked, .kind = CLI_FLAG},
        {"sram", "SIZE", "memory of the NIC for queue pairs (4MiB)", &order.sram_bytes, .kind = CLI_SIZE,
         .min = 1024, .max = (uint64_t)1 << 40},
        {"json", "FILE", "write results to FILE; - is standard output", &order.json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "plan --nic",
        .operands = "",
        .about = "Computes the number of queue pairs and nodes that fit a NIC's memory for each transport, "
                 "and the\ntime between failures of a cluster; compared with the papers.",
        .groups = {options},
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    return status == CLI_PROCEED ? carry_out(&order) : status;
}
