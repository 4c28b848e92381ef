/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/collective_measure.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/collective.h>

#include "cli/options/cli_options.h"
#include "cli/terminal/terminal.h"

/* ---- kind ------------------------------------------------------------------------------------------ */

/* Names are compared up to this length. */
#define NAME_MAX_BYTES 32

enum place {
    ALLREDUCE,
    REDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALLTOALL,
    BARRIER,
    GATHERV,
    SCATTERV,
    ALLTOALLV,
    KINDS
};

static const struct cli_kind kinds[KINDS] = {
    [ALLREDUCE] = {"allreduce", .reduces = true, .same = true},
    [REDUCE] = {"reduce", .reduces = true, .rooted = true, .out_root = true},
    [BROADCAST] = {"broadcast", .rooted = true, .same = true},
    [ALLGATHER] = {"allgather", .out_parts = true, .same = true},
    [REDUCE_SCATTER] = {"reduce-scatter", .reduces = true, .in_parts = true},
    [GATHER] = {"gather", .rooted = true, .out_parts = true, .out_root = true},
    [SCATTER] = {"scatter", .rooted = true, .in_parts = true, .in_root = true},
    [ALLTOALL] = {"alltoall", .in_parts = true, .out_parts = true},
    [BARRIER] = {"barrier", .no_data = true},
    [GATHERV] = {"gatherv", .rooted = true, .out_parts = true, .out_root = true, .uneven = true},
    [SCATTERV] = {"scatterv", .rooted = true, .in_parts = true, .in_root = true, .uneven = true},
    [ALLTOALLV] = {"alltoallv", .in_parts = true, .out_parts = true, .uneven = true},
};

static enum place place_of(const struct cli_call *call)
{
    return (enum place)(call->kind - kinds);
}

const struct cli_kind *cli_kind_find(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

/* Small letters alone, and without what nccl-tests call their programs. */
static void simplify(const char *name, char out[NAME_MAX_BYTES])
{
    size_t used = 0;
    for (; *name && strcmp(name, "_perf") != 0; name++)
        if (isalpha((unsigned char)*name) && used + 1 < NAME_MAX_BYTES)
            out[used++] = (char)tolower((unsigned char)*name);
    out[used] = '\0';
}

const char *cli_kind_close(const char *typed)
{
    char name[NAME_MAX_BYTES], kind[NAME_MAX_BYTES];
    simplify(typed, name);
    if (!strcmp(name, "bcast"))
        return kinds[BROADCAST].name;
    for (int exact = 1; exact >= 0; exact--)
        for (size_t i = 0; i < KINDS; i++) {
            simplify(kinds[i].name, kind);
            if (exact ? !strcmp(name, kind) : cli_is_close(name, kind))
                return kinds[i].name;
        }
    return NULL;
}

const char *cli_kind_names(void)
{
    return "allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, alltoall, barrier, "
           "gatherv, scatterv, alltoallv";
}

/* ---- buffers ----------------------------------------------------------------------------------------- */

static bool has_parts(const struct cli_call *call)
{
    return call->kind->in_parts || call->kind->out_parts;
}

/* Elements that a rank has for another one. Of a v-variant all rows, and all columns, have the same sum. */
static size_t part(const struct cli_call *call, uint32_t source, uint32_t destination)
{
    uint64_t place = (uint64_t)source + destination;
    return call->count * (call->kind->uneven ? 1 + (size_t)(place % call->ranks) : 1);
}

/* Counts of a row of parts. */
static size_t counts_of_row(const struct cli_call *call)
{
    size_t ranks = call->ranks;
    return !has_parts(call) ? 1 : call->kind->uneven ? ranks * (ranks + 1) / 2 : ranks;
}

size_t cli_call_in(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->in_root && call->rank != call->root))
        return 0;
    return call->kind->in_parts ? cli_call_total(call) : part(call, call->rank, call->root);
}

size_t cli_call_out(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->out_root && call->rank != call->root))
        return 0;
    return call->kind->out_parts ? cli_call_total(call) : part(call, call->root, call->rank);
}

size_t cli_call_total(const struct cli_call *call)
{
    return place_of(call) == BARRIER ? 0 : call->count * counts_of_row(call);
}

size_t cli_call_count(const struct cli_call *call, size_t elements)
{
    return place_of(call) == BARRIER ? 0 : elements / counts_of_row(call);
}

size_t cli_call_elements_min(const struct cli_call *call)
{
    return counts_of_row(call);
}

double cli_call_bus_factor(const struct cli_call *call)
{
    double others = (double)(call->ranks - 1) / call->ranks;
    if (place_of(call) == ALLREDUCE)
        return 2 * others;
    return has_parts(call) ? others : 1;
}

/* The rank that an element of this rank's output is of, and its place in that part. */
static uint32_t source_of(const struct cli_call *call, size_t *index)
{
    uint32_t source = 0;
    while (*index >= part(call, source, call->rank))
        *index -= part(call, source++, call->rank);
    return source;
}

/* Elements of a rank's input before those for this one. */
static size_t before(const struct cli_call *call, uint32_t source)
{
    size_t sum = 0;
    for (uint32_t r = 0; r < call->rank; r++)
        sum += part(call, source, r);
    return sum;
}

/* Element of the result that this rank gets: element *index of rank *source; of a reduction, of each rank. */
static void cli_call_source(const struct cli_call *call, size_t element, uint32_t *source, size_t *index)
{
    *source = call->root;
    *index = element;
    switch (place_of(call)) {
    case ALLGATHER:
    case GATHER:
        *source = (uint32_t)(element / call->count);
        *index = element % call->count;
        break;
    case ALLTOALL:
        *source = (uint32_t)(element / call->count);
        *index = call->rank * call->count + element % call->count;
        break;
    case REDUCE_SCATTER:
    case SCATTER:
        *index = call->rank * call->count + element;
        break;
    case GATHERV:
        *source = source_of(call, index);
        break;
    case SCATTERV:
        *index = before(call, call->root) + element;
        break;
    case ALLTOALLV:
        *source = source_of(call, index);
        *index += before(call, *source);
        break;
    default:
        break;
    }
}

static int start_uneven(const struct cli_call *c, struct lh_group *group, const void *in, void *out,
                        const struct lh_collective_options *options, struct lh_collective **op)
{
    size_t ins[LH_GROUP_RANKS_MAX], outs[LH_GROUP_RANKS_MAX];
    for (uint32_t r = 0; r < c->ranks; r++) {
        ins[r] = part(c, c->rank, r);
        outs[r] = part(c, r, c->rank);
    }
    if (place_of(c) == GATHERV)
        return lh_gatherv(group, in, ins[c->root], out, outs, c->type, c->root, options, op);
    if (place_of(c) == SCATTERV)
        return lh_scatterv(group, in, ins, out, outs[c->root], c->type, c->root, options, op);
    return lh_alltoallv(group, in, ins, out, outs, c->type, options, op);
}

/* Starts it. A broadcast is of `out`, where the root has its input. */
static int cli_call_start(const struct cli_call *c, struct lh_group *group, const void *in, void *out,
                          const struct lh_collective_options *options, struct lh_collective **op)
{
    if (c->kind->uneven)
        return start_uneven(c, group, in, out, options, op);
    switch (place_of(c)) {
    case ALLREDUCE:
        return lh_allreduce(group, in, out, c->count, c->type, c->reduction, options, op);
    case REDUCE:
        return lh_reduce(group, in, out, c->count, c->type, c->reduction, c->root, options, op);
    case BROADCAST:
        return lh_broadcast(group, out, c->count, c->type, c->root, options, op);
    case ALLGATHER:
        return lh_allgather(group, in, out, c->count, c->type, options, op);
    case REDUCE_SCATTER:
        return lh_reduce_scatter(group, in, out, c->count, c->type, c->reduction, options, op);
    case GATHER:
        return lh_gather(group, in, out, c->count, c->type, c->root, options, op);
    case SCATTER:
        return lh_scatter(group, in, out, c->count, c->type, c->root, options, op);
    case ALLTOALL:
        return lh_alltoall(group, in, out, c->count, c->type, options, op);
    default:
        return lh_barrier(group, options, op);
    }
}

/* ---- data ------------------------------------------------------------------------------------------ */

#define STALE 0xA5
/* A sum of encoded tensors: roundings of the size of a block's norm; of halves they are as coarse as what
 * is added. */
#define ENCODED_ROUNDINGS 1024
#define ENCODED_ERROR_MAX 0.125

static bool is_float(enum lh_type type)
{
    return type <= LH_BF16; /* the integers come behind */
}

/* splitmix64 of rank and element. */
static uint64_t mix(uint32_t rank, size_t element)
{
    uint64_t x = ((uint64_t)rank << 48) + element * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* ---- 16-bit floats ----------------------------------------------------------------------------------- */

/* Values here are multiples of 2^-8 below 2 in magnitude, or powers of two from 2^-4 to 2^4: exact. */
static uint16_t half_of(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    if (value == 0)
        return sign;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 0x3ff));
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* ---- elements ---------------------------------------------------------------------------------------- */

/* Of bf16 as many bits as it holds; sums of all are rounded there, and in f16. */
static double float_element(const struct cli_call *call, uint32_t rank, size_t element)
{
    uint64_t random = mix(rank, element);
    if (call->kind->reduces && call->reduction == LH_PROD) {
        /* The product of any number of ranks stays in the range of f16. */
        double size = rank < 4 ? ldexp(1, (int)(random >> 1 & 3) - 1) : 1;
        return random & 1 ? -size : size;
    }
    double fraction = call->type == LH_BF16  ? ldexp((double)(random & 0xff), -8)
                      : call->type == LH_F16 ? ldexp((double)(random & 0x3ff), -10)
                                             : ldexp((double)(random & 0xfffff), -20);
    return random >> 63 ? -fraction : fraction;
}

/* Of an average small enough that no sum wraps. */
static uint64_t integer_element(const struct cli_call *call, uint32_t rank, size_t element)
{
    uint64_t random = mix(rank, element);
    if (!call->kind->reduces || call->reduction != LH_AVG)
        return random;
    if (call->type == LH_U8)
        return random % (256 / call->ranks);
    uint64_t size = call->type == LH_I8    ? 127 / call->ranks
                    : call->type == LH_I16 ? 32767 / call->ranks
                                           : 1000000;
    return (uint64_t)((int64_t)(random % (2 * size + 1)) - (int64_t)size);
}

static void put_float(enum lh_type type, void *buffer, size_t index, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (type == LH_F32)
        ((float *)buffer)[index] = single;
    else if (type == LH_F64)
        ((double *)buffer)[index] = value;
    else
        ((uint16_t *)buffer)[index] = type == LH_F16 ? half_of(value) : (uint16_t)(bits >> 16);
}

static double get_float(enum lh_type type, const void *buffer, size_t index)
{
    float single;
    uint32_t bits;
    if (type == LH_F32)
        return ((const float *)buffer)[index];
    if (type == LH_F64)
        return ((const double *)buffer)[index];
    uint16_t half = ((const uint16_t *)buffer)[index];
    if (type == LH_F16)
        return half_value(half);
    bits = (uint32_t)half << 16;
    memcpy(&single, &bits, sizeof single);
    return single;
}

static void put_integer(enum lh_type type, void *buffer, size_t index, uint64_t value)
{
    switch (lh_type_bytes(type)) {
    case 1:
        ((uint8_t *)buffer)[index] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)buffer)[index] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)buffer)[index] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)buffer)[index] = value;
    }
}

/* As the type has it: u8 without, the others with a sign. */
static int64_t truncated(enum lh_type type, uint64_t value)
{
    switch (type) {
    case LH_U8:
        return (uint8_t)value;
    case LH_I8:
        return (int8_t)(uint8_t)value;
    case LH_I16:
        return (int16_t)(uint16_t)value;
    case LH_I32:
        return (int32_t)(uint32_t)value;
    default:
        return (int64_t)value;
    }
}

static int64_t get_integer(enum lh_type type, const void *buffer, size_t index)
{
    switch (lh_type_bytes(type)) {
    case 1:
        return truncated(type, ((const uint8_t *)buffer)[index]);
    case 2:
        return truncated(type, ((const uint16_t *)buffer)[index]);
    case 4:
        return truncated(type, ((const uint32_t *)buffer)[index]);
    default:
        return truncated(type, ((const uint64_t *)buffer)[index]);
    }
}

static void put(const struct cli_call *call, void *buffer, size_t index, uint32_t rank)
{
    if (is_float(call->type))
        put_float(call->type, buffer, index, float_element(call, rank, index));
    else
        put_integer(call->type, buffer, index, integer_element(call, rank, index));
}

void cli_data_fill(const struct cli_call *call, void *in, void *out)
{
    bool is_source = call->kind->rooted && !call->kind->reduces && !call->kind->in_parts &&
                     !call->kind->out_parts && call->rank == call->root;
    memset(out, STALE, cli_call_out(call) * lh_type_bytes(call->type));
    for (size_t i = 0; i < cli_call_in(call); i++)
        put(call, in, i, call->rank);
    for (size_t i = 0; is_source && i < call->count; i++)
        put(call, out, i, call->rank);
}

/* ---- the result -------------------------------------------------------------------------------------- */

/* Largest relative error of one rounding. */
static double rounding(enum lh_type type)
{
    static const double errors[] = {
        [LH_F32] = 0x1p-24, [LH_F64] = 0x1p-53, [LH_F16] = 0x1p-11, [LH_BF16] = 0x1p-8};
    return errors[type];
}

static bool float_is_right(const struct cli_call *call, size_t index, double got)
{
    double sum = 0, product = 1, minimum = INFINITY, maximum = -INFINITY, magnitude = 0;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        double x = float_element(call, rank, index);
        sum += x;
        product *= x;
        magnitude += fabs(x);
        minimum = fmin(minimum, x);
        maximum = fmax(maximum, x);
    }
    /* Each addition rounds a partial sum, which is at most the sum of magnitudes; so does the division. */
    double error = call->ranks * rounding(call->type) * magnitude;
    if (call->encoded)
        error +=
            call->ranks * fmin(call->ranks * ENCODED_ROUNDINGS * rounding(call->type), ENCODED_ERROR_MAX);
    switch (call->reduction) {
    case LH_SUM:
        return fabs(got - sum) <= error;
    case LH_AVG:
        return fabs(got - sum / call->ranks) <= 2 * error / call->ranks + 0x1p-24;
    case LH_PROD:
        return got == product;
    case LH_MIN:
        return got == minimum;
    default:
        return got == maximum;
    }
}

static bool integer_is_right(const struct cli_call *call, size_t index, int64_t got)
{
    uint64_t sum = 0, product = 1, all = UINT64_MAX, any = 0, odd = 0;
    int64_t minimum = INT64_MAX, maximum = INT64_MIN;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        uint64_t x = integer_element(call, rank, index);
        int64_t value = truncated(call->type, x);
        sum += x;
        product *= x;
        all &= x;
        any |= x;
        odd ^= x;
        minimum = value < minimum ? value : minimum;
        maximum = value > maximum ? value : maximum;
    }
    switch (call->reduction) {
    case LH_SUM:
        return got == truncated(call->type, sum);
    case LH_AVG:
        return got == (int64_t)sum / (int64_t)call->ranks;
    case LH_PROD:
        return got == truncated(call->type, product);
    case LH_MIN:
        return got == minimum;
    case LH_MAX:
        return got == maximum;
    case LH_BAND:
        return got == truncated(call->type, all);
    case LH_BOR:
        return got == truncated(call->type, any);
    default:
        return got == truncated(call->type, odd);
    }
}

static bool is_right(const struct cli_call *call, const void *out, size_t element)
{
    uint32_t source;
    size_t index;
    cli_call_source(call, element, &source, &index);
    if (is_float(call->type)) {
        double got = get_float(call->type, out, element);
        return call->kind->reduces ? float_is_right(call, index, got)
                                   : got == float_element(call, source, index);
    }
    int64_t got = get_integer(call->type, out, element);
    return call->kind->reduces ? integer_is_right(call, index, got)
                               : got == truncated(call->type, integer_element(call, source, index));
}

static bool is_zero(const struct cli_call *call, const void *out, size_t element)
{
    return is_float(call->type) ? get_float(call->type, out, element) == 0
                                : get_integer(call->type, out, element) == 0;
}

uint64_t cli_data_check(const struct cli_call *call, const void *out, bool missing)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < cli_call_out(call) && !(missing && call->kind->reduces); i++)
        wrong += !is_right(call, out, i) && !(missing && is_zero(call, out, i));
    return wrong;
}

/* ---- measure --------------------------------------------------------------------------------------- */

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
