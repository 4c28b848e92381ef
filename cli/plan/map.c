/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/map.h"

#include "cli/plan/choice.h"
#include "cli/plan/map_cells.h"
#include "cli/plan/map_picture.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDENT "  "
/* Columns of a number, of a scheme, and of the head of a row. */
#define NUMBER_WIDTH 7
#define USE_WIDTH    11
#define ROW_WIDTH    8

/* What the paper's figure 9 compares. */
static const char *const compared[] = {"sr-rto", "ec:mds,k=32,m=8"};

/* Seconds by what was asked for. Chunks of one packet unless given, as in the paper's figure. */
static int weigh(const struct lh_plan_question *question, const char *text, double *seconds)
{
    struct lh_model_scheme scheme;
    struct lh_plan_choice choice;
    uint64_t chunk = question->link.chunk_bytes ? question->link.chunk_bytes : question->link.mtu_bytes;
    if (lh_model_scheme_parse(text, &scheme) || lh_plan_weigh(question, &scheme, chunk, &choice))
        return cli_misused("%s", lh_last_error());
    *seconds = choice.seconds;
    return CLI_PROCEED;
}

/* "ec:mds,k=32,m=8" as "mds 32+8". */
static void shorten(const struct lh_model_scheme *scheme, char *out, size_t size)
{
    if (scheme->k > 0)
        snprintf(out, size, "%s %u+%u", scheme->kind == LH_MODEL_EC_MDS ? "mds" : "xor", scheme->k,
                 scheme->m);
    else
        lh_model_scheme_format(scheme, out, size);
}

static int fill_cell(const struct lh_plan_question *question, struct lh_plan *plan,
                     struct cli_plan_cell *cell)
{
    double repeat = 0, code = 0;
    int status = weigh(question, compared[0], &repeat);
    if (status == CLI_PROCEED)
        status = weigh(question, compared[1], &code);
    if (status != CLI_PROCEED)
        return status;
    cell->speedup = repeat / code;
    if (lh_plan_make(question, plan))
        return cli_misused("%s", lh_last_error());
    snprintf(cell->use, sizeof cell->use, "-");
    cell->scheme = (struct lh_model_scheme){.kind = LH_MODEL_IDEAL};
    if (plan->best != LH_PLAN_NONE) {
        cell->scheme = plan->choices[plan->best].scheme;
        shorten(&cell->scheme, cell->use, sizeof cell->use);
    }
    return CLI_PROCEED;
}

static int fill(const struct cli_plan_order *order, struct cli_plan_cells *cells)
{
    struct lh_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return cli_failed("out of memory");
    int status = CLI_PROCEED;
    for (unsigned i = 0; i < cells->sizes * cells->losses && status == CLI_PROCEED; i++) {
        struct lh_plan_question question;
        cli_plan_question(order, i / cells->losses, i % cells->losses, &question);
        status = fill_cell(&question, plan, &cells->cell[i]);
    }
    free(plan);
    return status;
}

static void print_losses(const struct cli_plan_order *order, int width)
{
    printf(INDENT "%-*s", ROW_WIDTH, "");
    for (unsigned loss = 0; loss < order->losses.count; loss++) {
        char text[32];
        cli_loss_format(order->losses.ratio[loss], text, sizeof text);
        printf(" %*s", width, text);
    }
    putchar('\n');
}

static void print_size(const struct cli_plan_order *order, unsigned size)
{
    char text[LH_FORMAT_MAX];
    printf(INDENT "%*s", ROW_WIDTH, lh_format_size(order->sizes.bytes[size], text, sizeof text));
}

static void print_cell(const char *text, int width, enum cli_colour colour)
{
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    printf(" %s%*s%s", cli_colour(colour, colours), width, text, cli_colour(CLI_PLAIN, colours));
}

static void print_speedups(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    printf("\n" INDENT "Speed-up of %s over %s, by %s; green: faster, red: slower.\n\n", compared[1],
           compared[0], order->by);
    for (unsigned size = cells->sizes; size-- > 0;) {
        print_size(order, size);
        for (unsigned loss = 0; loss < cells->losses; loss++) {
            char text[32];
            double speedup = cells->cell[size * cells->losses + loss].speedup;
            snprintf(text, sizeof text, "%.2f", speedup);
            print_cell(text, NUMBER_WIDTH,
                       speedup > 1.05   ? CLI_GREEN
                       : speedup < 0.95 ? CLI_RED
                                        : CLI_PLAIN);
        }
        putchar('\n');
    }
    print_losses(order, NUMBER_WIDTH);
}

static void print_uses(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    printf("\n" INDENT "Best scheme of those that the planner considers (k+m of erasure codes):\n\n");
    for (unsigned size = cells->sizes; size-- > 0;) {
        print_size(order, size);
        for (unsigned loss = 0; loss < cells->losses; loss++) {
            const struct cli_plan_cell *cell = &cells->cell[size * cells->losses + loss];
            print_cell(cell->use, USE_WIDTH, lh_model_scheme_codes(&cell->scheme) ? CLI_GREEN : CLI_PLAIN);
        }
        putchar('\n');
    }
    print_losses(order, USE_WIDTH);
    putchar('\n');
}

int cli_plan_map(const struct cli_plan_order *order)
{
    struct cli_plan_cells cells = {order->sizes.count, order->losses.count, NULL};
    if (order->output && cli_plan_picture_check(order->output) != CLI_PROCEED)
        return CLI_EXIT_USAGE;
    cells.cell = calloc((size_t)cells.sizes * cells.losses, sizeof *cells.cell);
    if (!cells.cell)
        return cli_failed("out of memory");
    int status = fill(order, &cells);
    if (status == CLI_PROCEED) {
        print_speedups(order, &cells);
        print_uses(order, &cells);
    }
    if (status == CLI_PROCEED && order->output)
        status = cli_plan_picture(order, &cells);
    free(cells.cell);
    return status;
}
