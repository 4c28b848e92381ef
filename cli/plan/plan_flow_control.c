/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- flow ways ------------------------------------------------------------------------------------- */

/*
 * What buffer each way of flow control needs for a link.
 *
 * Each way of flow control on a link: what it needs, and what happens with less.
 */

/* What was asked. */
struct cli_flow_order {
    struct lh_flow_link link; /* with its longest delay */
    lh_time drift_ns;         /* of that delay may be missing */
    uint32_t guard_slots;     /* Bifrost; 0: none */
    uint64_t buffer_bytes;    /* what there is; 0: not given */
    const char *json;         /* NULL: not asked for */
};

#define CLI_FLOW_METHODS  4
#define CLI_FLOW_RISK_MAX 160

/* One way of flow control on that link. */
struct cli_flow_method {
    const char *name;
    uint64_t buffer_bytes;   /* that it needs */
    uint64_t min_bytes;      /* with less it is not run: the simulator refuses it, too */
    uint64_t xoff_bytes;     /* 0: it has none */
    uint64_t headroom_bytes; /* of the buffer: for what comes after the signal */
    uint64_t signal_bytes;   /* comes at most, beyond the buffer, for a signal that is lost */
    /* With the buffer there is, at worst; NAN: not asked, or less than min_bytes. */
    double lost_bytes;            /* when the way out stops for long */
    double idle_s;                /* of the way out, when it goes on */
    double rate_share;            /* of what the way out takes, at the constant rate that is worst */
    char risk[CLI_FLOW_RISK_MAX]; /* a sentence */
};

enum { WAY_PFC, WAY_BIFROST, WAY_CREDITS, WAY_SWING };

/* Nothing is known of a buffer there is. */
static struct cli_flow_method method_of(const char *name, uint64_t buffer, uint64_t minimum, uint64_t xoff,
                                        uint64_t headroom)
{
    return (struct cli_flow_method){name, buffer, minimum, xoff, headroom, 0, NAN, NAN, NAN, ""};
}

/* Bifrost as it is planned. */
/* A pause is late by what it waits behind, and its own length: that is a part of what is under way. The
 * headroom is what Bifrost cannot do without. */
static struct lh_bifrost_config cli_flow_bifrost(const struct cli_flow_order *order,
                                                 const struct lh_flow_needs *needs)
{
    const struct lh_flow_link *link = &order->link;
    uint64_t late = (uint64_t)link->mtu_bytes + LH_PFC_FRAME_BYTES;
    struct lh_bifrost_config config = {
        .rate_bps = link->rate_bps,
        .delay_ns = link->delay_ns,
        .slot_ns = link->slot_ns,
        .delta_bytes = needs->bdp_bytes + late,
        .buffer_bytes = needs->bifrost_h_bytes + late,
        .leak_slots = link->leak_slots,
        .mtu_bytes = link->mtu_bytes,
        .guard_slots = order->guard_slots,
    };
    config.headroom_bytes =
        (uint64_t)link->leak_slots * link->mtu_bytes + lh_bifrost_guard_headroom(&config);
    return config;
}

/* Each slot under way may have let a packet through. While the delay grows pauses come further apart than
 * slots; a guard of one slot ends that. */
static struct cli_flow_method bifrost_method(const struct cli_flow_order *order,
                                             const struct lh_flow_needs *needs)
{
    const struct lh_bifrost_config config = cli_flow_bifrost(order, needs);
    uint64_t minimum = config.buffer_bytes + config.headroom_bytes;
    uint64_t buffer = needs->bifrost_buffer_bytes + lh_bifrost_guard_headroom(&config);
    if (order->guard_slots != 1)
        buffer += (uint64_t)((double)order->drift_ns * (double)order->link.rate_bps / 8e9);
    return method_of("Bifrost", buffer, minimum, 0, buffer - needs->bifrost_h_bytes);
}

static double short_of(uint64_t needed, uint64_t given)
{
    return needed > given ? (double)(needed - given) : 0;
}

/* A way out of a constant rate, a share r of the link's, makes PFC stop and go when XOFF is a part x of what
 * still comes after a signal, H. In a cycle, by H at the link's rate: x / (1 - r) until XOFF is crossed, 1
 * until the pause is felt, (1 - r) / r until what came since has left, 1 until the resume is felt; the way
 * out idles for the last part less x / r. The worst is r = 1 + x - sqrt(x). */
static double pfc_rate_share(uint64_t xoff, uint64_t headroom)
{
    double lack = 1 - sqrt(fmin(1, (double)xoff / (double)headroom));
    return 1 / (1 + lack * lack);
}

/* Packets per round trip that the buffer admits, of those that the full rate needs. */
static double credits_rate_share(uint64_t buffer, uint64_t needed, uint32_t mtu_bytes)
{
    uint64_t blocks = lh_cbfc_blocks(mtu_bytes);
    uint64_t packets = buffer / LH_CBFC_BLOCK_BYTES / blocks;
    return fmin(1, (double)(packets * blocks * LH_CBFC_BLOCK_BYTES) / (double)needed);
}

static void pfc_with_buffer(struct cli_flow_method *method, const struct lh_flow_needs *needs,
                            const struct cli_flow_order *order)
{
    uint64_t xoff = order->buffer_bytes - needs->pfc_headroom_bytes;
    method->lost_bytes = 0;
    method->idle_s = 8 * short_of(needs->pfc_xoff_bytes, xoff) / (double)order->link.rate_bps;
    method->rate_share = pfc_rate_share(xoff, needs->pfc_headroom_bytes);
}

/* PFC idles for what the threshold lacks when a stop ends. Bifrost loses what slips past pauses and finds no
 * headroom. Credits grant only what there is room for, and so carry a part of the rate. A relay that passes
 * pauses on has no limit but its buffer. */
static void with_buffer(struct cli_flow_method *method, const struct lh_flow_needs *needs,
                        const struct cli_flow_order *order, unsigned number)
{
    if (order->buffer_bytes < method->min_bytes)
        return;
    method->lost_bytes = short_of(method->buffer_bytes, order->buffer_bytes);
    method->idle_s = 0;
    method->rate_share = 1;
    if (number == WAY_PFC)
        pfc_with_buffer(method, needs, order);
    if (number != WAY_CREDITS)
        return;
    method->lost_bytes = 0;
    method->rate_share =
        credits_rate_share(order->buffer_bytes, needs->cbfc_buffer_bytes, order->link.mtu_bytes);
}

/* A pause has at most 65,535 quanta. Where it is refreshed before it ends, a lost one lets through
 * what the link carries in that time, whatever its rate. A guard has its headroom. */
static void lost_signals(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                         struct cli_flow_method methods[CLI_FLOW_METHODS])
{
    uint64_t slot_bytes = (needs->bifrost_h_bytes - needs->bdp_bytes - LH_PFC_QUANTUM_BYTES) / 2;
    methods[WAY_PFC].signal_bytes = methods[WAY_SWING].signal_bytes =
        (uint64_t)LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES;
    methods[WAY_BIFROST].signal_bytes = order->guard_slots != 0 ? 0 : slot_bytes;
}

static void put_risks(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                      struct cli_flow_method methods[CLI_FLOW_METHODS])
{
    char time[LH_FORMAT_MAX], reach[LH_FORMAT_MAX];
    lh_format_time(2e-9 * (double)order->link.delay_ns, time, sizeof time);
    snprintf(methods[WAY_PFC].risk, sizeof methods[WAY_PFC].risk,
             "less headroom loses packets; a lower xoff leaves the output idle for up to %s after a pause",
             time);
    snprintf(
        methods[WAY_BIFROST].risk, sizeof methods[WAY_BIFROST].risk,
        order->guard_slots != 0
            ? "lost frames cause no overflow, and stop the link for their slots; frames take %.3f %% of "
              "the reverse direction"
            : "a lost pause lets a slot through, a late one packets (headroom for k); pauses take up to "
              "%.3f %% of the reverse direction",
        100 * needs->bifrost_pause_share);
    lh_format_time(1e-9 * (double)needs->cbfc_reach_ns, reach, sizeof reach);
    snprintf(methods[WAY_CREDITS].risk, sizeof methods[WAY_CREDITS].risk,
             needs->cbfc_fits_12_bits
                 ? "less buffer, lower rate; InfiniBand's 12 bits suffice up to %s one way: this link"
                 : "less buffer, lower rate; InfiniBand's 12 bits suffice up to %s one way: not this link",
             reach);
    snprintf(methods[WAY_SWING].risk, sizeof methods[WAY_SWING].risk,
             "a relay with the buffer at each end; modelled with pauses relayed at once");
}

/* In place of the risk. */
static void put_refusals(const struct cli_flow_order *order,
                         struct cli_flow_method methods[CLI_FLOW_METHODS])
{
    static const char *const causes[CLI_FLOW_METHODS] = {
        [WAY_PFC] = "the whole buffer is headroom",
        [WAY_BIFROST] = "H is a BDP, two slots and a quantum",
        [WAY_CREDITS] = "less than a packet",
        [WAY_SWING] = "less than a packet",
    };
    for (unsigned i = 0; i < CLI_FLOW_METHODS; i++)
        if (order->buffer_bytes != 0 && order->buffer_bytes < methods[i].min_bytes)
            snprintf(methods[i].risk, sizeof methods[i].risk,
                     "%" PRIu64 " bytes: %s (at least %" PRIu64 " bytes)", order->buffer_bytes, causes[i],
                     methods[i].min_bytes);
}

static void cli_flow_methods(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                             struct cli_flow_method methods[CLI_FLOW_METHODS])
{
    uint64_t packet = order->link.mtu_bytes;
    methods[WAY_PFC] = method_of("PFC", needs->pfc_buffer_bytes, needs->pfc_headroom_bytes + 1,
                                 needs->pfc_xoff_bytes, needs->pfc_headroom_bytes);
    methods[WAY_BIFROST] = bifrost_method(order, needs);
    methods[WAY_CREDITS] =
        method_of("credits", needs->cbfc_buffer_bytes, packet + LH_CBFC_BLOCK_BYTES, 0, 0);
    methods[WAY_SWING] = method_of("SWING", needs->swing_relay_bytes, packet, 0, needs->swing_relay_bytes);
    for (unsigned i = 0; order->buffer_bytes != 0 && i < CLI_FLOW_METHODS; i++)
        with_buffer(&methods[i], needs, order, i);
    lost_signals(order, needs, methods);
    put_risks(order, needs, methods);
    put_refusals(order, methods);
}

/* ---- flow control ---------------------------------------------------------------------------------- */

/* Longhaul plan --flow-control: options, table, JSON. */

/* Light in glass: 200,000 km/s. */
#define NS_PER_KM 5000.0
/* A second one way, longer than any cable on earth. */
#define KM_MAX 200000.0
/* The paper's T. A shorter link has a shorter one: a slot is at most the delay. */
#define SLOT_NS 10000

/* ---- what is asked ----------------------------------------------------------------------------------- */

static int take_distance(const char *text, lh_time *delay_ns)
{
    char *end = NULL;
    double km = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    if (isnan(km) || strcmp(end, "km") != 0 || strpbrk(text, "xX"))
        return cli_misused("--distance %s: invalid distance (example: 600km)", text);
    if (!(km > 0 && km <= KM_MAX))
        return cli_misused("--distance %s: out of range (above 0km, at most %gkm)", text, KM_MAX);
    *delay_ns = (lh_time)ceil(km * NS_PER_KM);
    return CLI_PROCEED;
}

static int take_delay(const char *distance, lh_time rtt_ns, lh_time *delay_ns)
{
    if (distance && rtt_ns)
        return cli_misused("--distance, --rtt: mutually exclusive");
    if (!distance && !rtt_ns)
        return cli_misused("missing --rtt TIME or --distance KM (example: --distance 600km)");
    if (distance)
        return take_distance(distance, delay_ns);
    *delay_ns = (rtt_ns + 1) / 2;
    return CLI_PROCEED;
}

/* What Bifrost itself would refuse. */
static int check(const struct cli_flow_order *order, const struct lh_flow_needs *needs)
{
    const struct lh_bifrost_config config = cli_flow_bifrost(order, needs);
    if (lh_bifrost_check(&config))
        return cli_misused("--slot: %s", lh_last_error());
    return CLI_PROCEED;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static void put_size(struct cli_cell *cell, double bytes)
{
    lh_format_size((uint64_t)bytes, cell->text, sizeof cell->text);
}

static const struct cli_column columns[] = {
    {"way", 8, true},       {"buffer", 9, false},       {"of a BDP", 8, false}, {"xoff", 9, false},
    {"headroom", 9, false}, {"lost signal", 11, false}, {NULL, 0, false},
};
static const struct cli_column columns_with[] = {
    {"way", 8, true},       {"buffer", 9, false},       {"of a BDP", 8, false}, {"xoff", 9, false},
    {"headroom", 9, false}, {"lost signal", 11, false}, {"lost", 9, false},     {"idle", 9, false},
    {"rate", 6, false},     {NULL, 0, false},
};

static void print_method(const struct cli_table *table, const struct cli_flow_method *method,
                         uint64_t bdp_bytes, bool asked)
{
    struct cli_cell cells[CLI_COLUMNS_MAX] = {0};
    snprintf(cells[0].text, sizeof cells[0].text, "%s", method->name);
    put_size(&cells[1], (double)method->buffer_bytes);
    snprintf(cells[2].text, sizeof cells[2].text, "%.2f", (double)method->buffer_bytes / (double)bdp_bytes);
    if (method->xoff_bytes)
        put_size(&cells[3], (double)method->xoff_bytes);
    if (method->headroom_bytes)
        put_size(&cells[4], (double)method->headroom_bytes);
    put_size(&cells[5], (double)method->signal_bytes);
    if (asked && isnan(method->lost_bytes)) {
        for (unsigned i = 6; i < 9; i++)
            snprintf(cells[i].text, sizeof cells[i].text, "-");
    } else if (asked) {
        put_size(&cells[6], method->lost_bytes);
        cells[6].colour = method->lost_bytes > 0 ? CLI_RED : CLI_PLAIN;
        lh_format_time(method->idle_s, cells[7].text, sizeof cells[7].text);
        cells[7].colour = method->idle_s > 0 ? CLI_YELLOW : CLI_PLAIN;
        snprintf(cells[8].text, sizeof cells[8].text, "%.0f %%", floor(100 * method->rate_share));
        cells[8].colour = method->rate_share < 1 ? CLI_YELLOW : CLI_PLAIN;
    }
    cli_table_row(table, cells);
}

static void print_all(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                      const struct cli_flow_method *methods)
{
    char rate[LH_FORMAT_MAX], delay[LH_FORMAT_MAX], bdp[LH_FORMAT_MAX], slot[LH_FORMAT_MAX];
    struct cli_table table = {order->buffer_bytes ? columns_with : columns, stdout, "  ",
                              cli_terminal_colours(STDOUT_FILENO)};
    lh_format_rate((double)order->link.rate_bps, rate, sizeof rate);
    lh_format_time(1e-9 * (double)order->link.delay_ns, delay, sizeof delay);
    lh_format_time(1e-9 * (double)order->link.slot_ns, slot, sizeof slot);
    lh_format_size(needs->bdp_bytes, bdp, sizeof bdp);
    printf("\n  %s, %s one way: a round trip carries %s (BDP); slots of %s, packets of %u bytes\n\n", rate,
           delay, bdp, slot, order->link.mtu_bytes);
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (unsigned i = 0; i < CLI_FLOW_METHODS; i++)
        print_method(&table, &methods[i], needs->bdp_bytes, order->buffer_bytes != 0);
    printf("\n");
    for (unsigned i = 0; i < CLI_FLOW_METHODS; i++)
        printf("  %-8s  %s\n", methods[i].name, methods[i].risk);
    printf(
        "\n  Lost signal: bytes beyond the buffer after one lost pause; with PFC and SWING if pauses are\n"
        "  refreshed before they end, else all data of the sender.\n");
    if (order->buffer_bytes) {
        lh_format_size(order->buffer_bytes, bdp, sizeof bdp);
        printf("  With %s, worst case: lost when the output stops, idle when it resumes; rate: share of a "
               "constant\n"
               "  output rate, at the worst one.\n",
               bdp);
    }
    printf("\n");
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

static void put_method(struct cli_json *json, const struct cli_flow_method *method)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "way", method->name);
    cli_json_count(json, "buffer_bytes", method->buffer_bytes);
    cli_json_count(json, "least_buffer_bytes", method->min_bytes);
    cli_json_count(json, "xoff_bytes", method->xoff_bytes);
    cli_json_count(json, "headroom_bytes", method->headroom_bytes);
    cli_json_count(json, "lost_signal_bytes", method->signal_bytes);
    cli_json_number(json, "lost_bytes", method->lost_bytes);
    cli_json_number(json, "idle_s", method->idle_s);
    cli_json_number(json, "rate_share", method->rate_share);
    cli_json_text(json, "risk", method->risk);
    cli_json_close(json, '}');
}

static void put_all(FILE *out, const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                    const struct cli_flow_method *methods)
{
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "link", '{');
    cli_json_count(&json, "rate_bps", order->link.rate_bps);
    cli_json_number(&json, "delay_s", 1e-9 * (double)order->link.delay_ns);
    cli_json_number(&json, "slot_s", 1e-9 * (double)order->link.slot_ns);
    cli_json_number(&json, "drift_s", 1e-9 * (double)order->drift_ns);
    cli_json_count(&json, "leak_slots", order->link.leak_slots);
    cli_json_count(&json, "guard_slots", order->guard_slots);
    cli_json_count(&json, "packet_bytes", order->link.mtu_bytes);
    cli_json_close(&json, '}');
    cli_json_count(&json, "bdp_bytes", needs->bdp_bytes);
    cli_json_count(&json, "bifrost_h_bytes", needs->bifrost_h_bytes);
    cli_json_number(&json, "bifrost_pause_share", needs->bifrost_pause_share);
    cli_json_number(&json, "cbfc_reach_s", 1e-9 * (double)needs->cbfc_reach_ns);
    cli_json_open(&json, "ways", '[');
    for (unsigned i = 0; i < CLI_FLOW_METHODS; i++)
        put_method(&json, &methods[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int carry_out(const struct cli_flow_order *order)
{
    struct lh_flow_needs needs;
    struct cli_flow_method methods[CLI_FLOW_METHODS];
    if (lh_flow_needs(&order->link, &needs))
        return cli_misused("%s", lh_last_error());
    int status = check(order, &needs);
    if (status != CLI_PROCEED)
        return status;
    cli_flow_methods(order, &needs, methods);
    if (!order->json || strcmp(order->json, "-") != 0)
        print_all(order, &needs, methods);
    if (!order->json)
        return CLI_EXIT_OK;
    if (!strcmp(order->json, "-")) {
        put_all(stdout, order, &needs, methods);
        return CLI_EXIT_OK;
    }
    FILE *out = cli_result_open("--json ", order->json);
    if (!out)
        return CLI_EXIT_FAILED;
    put_all(out, order, &needs, methods);
    status = cli_result_close("--json ", order->json, out);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

int cli_plan_flow(int argc, char **argv)
{
    struct cli_flow_order order = {.link = {.leak_slots = 1, .mtu_bytes = 4174}};
    bool asked = false;
    const char *distance = NULL;
    lh_time rtt_ns = 0;
    struct cli_operands operands;
    const struct cli_option options[] = {
        {"flow-control", NULL, "buffer that a switch at the end of a link needs", &asked, .kind = CLI_FLAG},
        {"bandwidth", "RATE", "rate of the link; example: 400Gbit", &order.link.rate_bps, .kind = CLI_RATE,
         .min = 1},
        {"rtt", "TIME", "round trip of the link; example: 6ms", &rtt_ns, .kind = CLI_TIME, .min = 1},
        {"distance", "KM", "instead of --rtt: 600km is 6ms, at 5 us per km one way", &distance,
         .kind = CLI_TEXT},
        {"packet", "SIZE", "maximum packet on the wire, with headers (4174)", &order.link.mtu_bytes,
         .kind = CLI_SIZE32, .min = 1, .max = 65535},
        {"slot", "TIME", "Bifrost: T (10us, or the delay one way if that is less)", &order.link.slot_ns,
         .kind = CLI_TIME, .min = 1},
        {"leak-slots", "N", "Bifrost: k, packets of headroom (1)", &order.link.leak_slots,
         .kind = CLI_COUNT, .min = 1, .max = 1000000},
        {"guard", "N",
         "Bifrost: the sender stops after N slots without a frame (no overflow by lost frames)",
         &order.guard_slots, .kind = CLI_COUNT, .min = 1, .max = 1000},
        {"drift", "TIME", "growth of the one-way delay; buffers are for the longest delay", &order.drift_ns,
         .kind = CLI_TIME, .min = 1},
        {"buffer", "SIZE", "available buffer: shows loss, idle time and rate with it", &order.buffer_bytes,
         .kind = CLI_SIZE, .min = 1},
        {"json", "FILE", "write results to FILE; - is standard output", &order.json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "plan --flow-control",
        .operands = "--bandwidth RATE --distance KM",
        .about = "Computes the buffer that each kind of flow control needs at the far end of a link, for "
                 "one\npriority, to lose no packet and never idle the link; and its risks.",
        .groups = {options},
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED && !order.link.rate_bps)
        status = cli_misused("missing --bandwidth RATE (example: --bandwidth 400Gbit)");
    if (status == CLI_PROCEED)
        status = take_delay(distance, rtt_ns, &order.link.delay_ns);
    order.link.delay_ns += order.drift_ns;
    if (!order.link.slot_ns)
        order.link.slot_ns = order.link.delay_ns < SLOT_NS ? order.link.delay_ns : SLOT_NS;
    return status == CLI_PROCEED ? carry_out(&order) : status;
}
