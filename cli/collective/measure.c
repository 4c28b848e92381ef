/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/measure.h"

#include "cli/collective/data.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

#include <stdlib.h>

/* Waits, and frees the operation. */
static int finish(const char *name, uint32_t rank, struct lh_collective *op,
                  struct lh_collective_result *result)
{
    struct lh_collective_result own;
    int pending;
    if (!result)
        result = &own;
    do
        pending = lh_collective_wait(op, CLI_SLICE_NS, result);
    while (pending == -LH_ETIMEDOUT && !cli_stopped());
    lh_collective_free(op);
    if (cli_stopped())
        return cli_stopped();
    if (pending)
        return cli_failed("rank %u: %s: %s", rank, name, lh_last_error());
    if (result->error)
        return cli_failed("rank %u: %s: %s", rank, name,
                          *result->message ? result->message : lh_strerror(result->error));
    return CLI_PROCEED;
}

static int run_once(const struct cli_measure *measure, const struct cli_call *call,
                    struct lh_collective_result *result)
{
    struct lh_collective *op;
    if (cli_call_start(call, measure->group, measure->in, measure->out, &measure->options, &op))
        return cli_failed("rank %u: %s: %s", call->rank, call->kind->name, lh_last_error());
    return finish(call->kind->name, call->rank, op, result);
}

static int synchronize(const struct cli_measure *measure, uint32_t rank)
{
    struct lh_collective *op;
    if (lh_barrier(measure->group, NULL, &op))
        return cli_failed("rank %u: barrier: %s", rank, lh_last_error());
    return finish("barrier", rank, op, NULL);
}

/* Sums of all ranks, in place of each's own. */
static int sum_up(const struct cli_measure *measure, uint32_t rank, const void *in, void *out, size_t count,
                  enum lh_type type)
{
    struct lh_collective *op;
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.reliable = true;
    if (lh_allreduce(measure->group, in, out, count, type, LH_SUM, &options, &op))
        return cli_failed("rank %u: results: %s", rank, lh_last_error());
    return finish("results", rank, op, NULL);
}

/* Results that are right within rounding are yet to be the same at all ranks: else every element is wrong. */
static int check_same(const struct cli_measure *measure, const struct cli_call *call, int64_t *wrong)
{
    struct lh_collective *op;
    const struct lh_buffer buffer = {measure->out, cli_call_out(call) * lh_type_bytes(call->type)};
    int status = CLI_PROCEED;
    bool *differs = calloc(call->ranks, sizeof *differs);
    if (!differs || lh_compare(measure->group, &buffer, 1, differs, NULL, &op))
        status = cli_failed("rank %u: compare: %s", call->rank, differs ? lh_last_error() : "no memory");
    else
        status = finish("compare", call->rank, op, NULL);
    if (status == CLI_PROCEED && differs[call->rank])
        *wrong += (int64_t)cli_call_out(call);
    free(differs);
    return status;
}

static int run_checked(const struct cli_measure *measure, const struct cli_call *call,
                       const char **schedule, int64_t *wrong)
{
    struct lh_collective_result result;
    cli_data_fill(call, measure->in, measure->out);
    int status = run_once(measure, call, &result);
    if (status != CLI_PROCEED)
        return status;
    *schedule = result.schedule;
    *wrong += (int64_t)cli_data_check(call, measure->out, result.missing_bytes > 0);
    bool same = call->kind->same && !call->encoded; /* of a bounded one each rank may lack other bytes */
    return same ? check_same(measure, call, wrong) : CLI_PROCEED;
}

static int run_measured(const struct cli_measure *measure, const struct cli_call *call, int64_t *missing)
{
    struct lh_collective_result result = {0};
    int status = CLI_PROCEED;
    for (uint32_t i = 0; i < measure->iterations && status == CLI_PROCEED; i++) {
        status = synchronize(measure, call->rank);
        lh_time start = cli_now();
        if (status == CLI_PROCEED)
            status = run_once(measure, call, &result);
        measure->times_s[i] = cli_seconds(cli_now() - start);
        *missing += (int64_t)result.missing_bytes;
    }
    return status;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The smallest of which at least that share is not above. */
static double percentile(const double *sorted, uint32_t count, double share)
{
    uint32_t index = (uint32_t)(share * count);
    if (index > 0 && (double)index >= share * count)
        index--;
    return sorted[index < count ? index : count - 1];
}

static void summarize(const struct cli_measure *measure, uint32_t ranks, struct cli_measured *measured)
{
    double *times = measure->others_s, sum = 0;
    uint32_t count = measure->iterations;
    for (uint32_t i = 0; i < count; i++) {
        times[i] /= ranks;
        sum += times[i];
    }
    qsort(times, count, sizeof *times, by_size);
    measured->mean_s = sum / count;
    measured->p50_s = percentile(times, count, 0.5);
    measured->p99_s = percentile(times, count, 0.99);
}

int cli_measure(const struct cli_measure *measure, const struct cli_call *call,
                struct cli_measured *measured)
{
    int64_t wrong = 0, own[2] = {0}, all[2] = {0}; /* wrong elements, missing bytes */
    int status = run_checked(measure, call, &measured->schedule, &wrong);
    for (uint32_t i = 1; i < measure->warmup && status == CLI_PROCEED; i++)
        status = run_once(measure, call, NULL);
    if (status == CLI_PROCEED)
        status = run_measured(measure, call, &own[1]);
    if (status == CLI_PROCEED)
        status = run_checked(measure, call, &measured->schedule, &wrong);
    if (status == CLI_PROCEED)
        status =
            sum_up(measure, call->rank, measure->times_s, measure->others_s, measure->iterations, LH_F64);
    own[0] = wrong;
    if (status == CLI_PROCEED)
        status = sum_up(measure, call->rank, own, all, 2, LH_I64);
    if (status != CLI_PROCEED)
        return status;
    double bytes =
        (double)cli_call_out(call) * (double)lh_type_bytes(call->type) * call->ranks * measure->iterations;
    measured->wrong = (uint64_t)all[0];
    measured->missing_share = all[1] > 0 ? (double)all[1] / bytes : 0;
    summarize(measure, call->ranks, measured);
    return CLI_PROCEED;
}
