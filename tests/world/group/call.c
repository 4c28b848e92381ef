/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/group/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "collective/schedules.h"
#include "world/world.h"

/* ---- what is called ---------------------------------------------------------------------------------- */

static const char *some_schedule(enum collective collective, struct lh_prng *prng)
{
    const char *name = collective_name(collective);
    uint32_t count = 0;
    while (lh_collective_schedule(name, count))
        count++;
    bool chosen = lh_prng_chance(prng, 0.6);
    const char *one = lh_collective_schedule(name, (uint32_t)lh_prng_below(prng, count));
    return chosen ? one : NULL;
}

static bool has_root(enum collective collective)
{
    return collective == COLLECTIVE_BROADCAST || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER;
}

static bool has_parts(enum collective collective)
{
    return collective == COLLECTIVE_REDUCE_SCATTER || collective == COLLECTIVE_ALLGATHER ||
           collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER ||
           collective == COLLECTIVE_ALLTOALL;
}

static bool may_be_in_place(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_ALLGATHER;
}

/* What the library takes over hops that may lose something. */
static bool may_be_bounded(const struct collective_call *call)
{
    if (call->collective == COLLECTIVE_BROADCAST || call->collective == COLLECTIVE_ALLGATHER)
        return true;
    return (call->collective == COLLECTIVE_ALLREDUCE || call->collective == COLLECTIVE_REDUCE_SCATTER) &&
           (call->reduction == LH_SUM || call->reduction == LH_AVG) &&
           (call->type == LH_F32 || call->type == LH_F16 || call->type == LH_BF16);
}

/* What seeds draw from, so that those that are recorded stay the same: f32 to u8, and sum to avg. */
#define TYPES      (LH_U8 + 1)
#define REDUCTIONS (LH_AVG + 1)

static void make_odd(struct call_plan *made, uint64_t kind, uint32_t size)
{
    struct collective_call *call = &made->call;
    if (kind == 2)
        call->type = (enum lh_type)((call->type + 1) % TYPES);
    else if (kind == 3 && collective_call_reduces(call->collective))
        call->reduction = (enum lh_reduction)((call->reduction + 1) % REDUCTIONS);
    else if (kind == 4 && has_root(call->collective))
        call->root = (call->root + 1) % size;
    else if (kind == 5 && call->collective != COLLECTIVE_BARRIER)
        call->collective = COLLECTIVE_BARRIER;
    else if (kind == 6 && call->count > 0)
        call->count = 0;
    else if (kind == 7 && collective_call_may_be_uneven(call->collective))
        call->uneven = !call->uneven;
    else
        call->count += 1;
    if (kind == 5)
        call->uneven = false;
    if (kind == 5 || kind == 7)
        made->options.schedule = NULL;
}

void call_plan_make(const struct plan_event *event, uint32_t block_bytes, uint32_t size, bool odd,
                    struct call_plan *made)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, event->seed ^ 0xCA11);
    *made = (struct call_plan){0};
    struct collective_call *call = &made->call;
    call->collective = (enum collective)lh_prng_below(&prng, COLLECTIVES);
    call->type = (enum lh_type)lh_prng_below(&prng, TYPES);
    call->reduction = (enum lh_reduction)lh_prng_below(&prng, REDUCTIONS);
    call->root = (uint32_t)(lh_prng_next(&prng) % size);
    call->count = event->bytes / lh_type_bytes(call->type) / (has_parts(call->collective) ? size : 1);
    bool in_place = lh_prng_chance(&prng, 0.3);
    made->in_place = in_place && may_be_in_place(call->collective);
    lh_collective_options_init(&made->options);
    made->options.schedule = some_schedule(call->collective, &prng);
    bool smaller = lh_prng_chance(&prng, 0.3);
    size_t own = 64 + lh_prng_below(&prng, block_bytes);
    made->options.block_bytes = smaller ? own : 0;
    made->options.deadline_ns = event->delay_ns;
    bool reliable = lh_prng_chance(&prng, 0.2), uneven = lh_prng_chance(&prng, 0.3);
    call->uneven = uneven && collective_call_may_be_uneven(call->collective);
    if (call->uneven) {
        made->options.schedule = NULL;
        call->count = (call->count + 1) / 2; /* the arena has room for rows of equal parts */
    }
    if (odd)
        make_odd(made, event->room, size);
    made->options.reliable = reliable || !may_be_bounded(call);
}

size_t call_row(const struct call_plan *plan, uint32_t size)
{
    return plan->call.count * (has_parts(plan->call.collective) ? size : 1);
}

bool call_is_same(const struct call_plan *plan)
{
    enum collective collective = plan->call.collective;
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_BROADCAST ||
           collective == COLLECTIVE_ALLGATHER;
}

/* ---- elements ---------------------------------------------------------------------------------------- */

/* How a float is stored. */
static const struct format {
    uint32_t mantissa; /* bits */
    uint32_t exponent;
} formats[] = {[LH_F32] = {23, 8}, [LH_F64] = {52, 11}, [LH_F16] = {10, 5}, [LH_BF16] = {7, 8}};

static bool is_float(enum lh_type type)
{
    return type <= LH_BF16;
}

static uint64_t load(enum lh_type type, const uint8_t *from, size_t index)
{
    uint64_t raw = 0;
    memcpy(&raw, from + index * lh_type_bytes(type),
           lh_type_bytes(type)); /* little-endian, as all we have */
    return raw;
}

/* Of random bits: a float within 1/8 and 2, for products within 1/2 and 2, so that nothing overflows. */
static uint64_t tame(enum lh_type type, enum lh_reduction reduction, uint64_t raw)
{
    const struct format *format = &formats[type];
    uint64_t bias = (1u << (format->exponent - 1)) - 1, ones = ((uint64_t)1 << format->mantissa) - 1;
    uint64_t sign = raw >> (format->mantissa + format->exponent) & 1, some = raw >> format->mantissa & 3;
    uint64_t exponent = reduction == LH_PROD ? bias - 1 + some % 2 : bias - 3 + some;
    return sign << (format->mantissa + format->exponent) | exponent << format->mantissa | (raw & ones);
}

static long double decoded(enum lh_type type, uint64_t raw)
{
    const struct format *format = &formats[type];
    uint64_t ones = ((uint64_t)1 << format->mantissa) - 1, top = ((uint64_t)1 << format->exponent) - 1;
    uint64_t exponent = raw >> format->mantissa & top;
    int bias = (1 << (format->exponent - 1)) - 1;
    bool negative = raw >> (format->mantissa + format->exponent) & 1;
    if (exponent == top)
        return NAN; /* no result here is infinite */
    uint64_t mantissa = (raw & ones) | (exponent > 0 ? ones + 1 : 0);
    long double value =
        ldexpl((long double)mantissa, (int)(exponent > 0 ? exponent : 1) - bias - (int)format->mantissa);
    return negative ? -value : value;
}

/* Sign-extended where the type has a sign. */
static int64_t as_integer(enum lh_type type, uint64_t raw)
{
    return type == LH_I32 ? (int32_t)raw : type == LH_U8 ? (uint8_t)raw : (int64_t)raw;
}

/* ---- data -------------------------------------------------------------------------------------------- */

static const uint8_t *content_of(const struct plan_event *event, const struct call_plan *plan, uint8_t host,
                                 size_t elements)
{
    uint64_t number = event->seed * 31 + host * 7919u;
    return world_content(number, elements * lh_type_bytes(plan->call.type));
}

static bool is_tamed(const struct call_plan *plan)
{
    return is_float(plan->call.type) && collective_call_reduces(plan->call.collective);
}

static uint64_t element_of(const struct call_plan *plan, const uint8_t *content, size_t index)
{
    uint64_t raw = load(plan->call.type, content, index);
    return is_tamed(plan) ? tame(plan->call.type, plan->call.reduction, raw) : raw;
}

void call_fill(const struct plan_event *event, const struct call_plan *plan, uint8_t host, uint8_t *to,
               size_t elements)
{
    size_t width = lh_type_bytes(plan->call.type);
    const uint8_t *content = content_of(event, plan, host, elements);
    memcpy(to, content, elements * width);
    for (size_t i = 0; is_tamed(plan) && i < elements; i++) {
        uint64_t raw = element_of(plan, content, i);
        memcpy(to + i * width, &raw, width);
    }
}

/* ---- sums -------------------------------------------------------------------------------------------- */

/* Contributions of all to one element. */
struct contributions {
    const struct call_plan *plan;
    uint32_t count;
    uint64_t raw[PLAN_HOSTS_MAX];
};

static uint64_t integer_sum(const struct contributions *c)
{
    enum lh_type type = c->plan->call.type;
    uint64_t sum = c->raw[0];
    for (uint32_t i = 1; i < c->count; i++) {
        int64_t one = as_integer(type, sum), other = as_integer(type, c->raw[i]);
        switch (c->plan->call.reduction) {
        case LH_PROD:
            sum *= c->raw[i];
            break;
        case LH_MIN:
            sum = (uint64_t)(one < other ? one : other);
            break;
        case LH_MAX:
            sum = (uint64_t)(one > other ? one : other);
            break;
        default:
            sum += c->raw[i];
        }
    }
    if (c->plan->call.reduction == LH_AVG)
        sum = (uint64_t)(as_integer(type, sum) / (int64_t)c->count);
    return sum;
}

/* Of an encoded sum: coefficients are as large as a block's norm, and their roundings are spread over it. */
static long double encoded_bound(const struct contributions *c)
{
    enum lh_type type = c->plan->call.type;
    return ldexpl(1, -(int)formats[type].mantissa - 1) * c->count * (type == LH_F32 ? 1024 : 64);
}

/* Of a sum that lacks contributions: what is missing is as large as random elements of up to 2 are together,
 * and what is in its place, another rank's, up to `count` times as large as one's. */
static bool energy_is_right(const struct contributions *c, const struct call_loss *loss)
{
    size_t width = lh_type_bytes(c->plan->call.type);
    long double bound = encoded_bound(c), maximum = 32.0L * c->count * (c->count + 1);
    return loss->energy <= maximum * (long double)(loss->missing / width) +
                               (long double)c->plan->call.count * bound * bound;
}

static bool float_is_right(const struct contributions *c, struct call_loss *loss, uint64_t raw)
{
    enum lh_type type = c->plan->call.type;
    enum lh_reduction reduction = c->plan->call.reduction;
    long double unit = ldexpl(1, -(int)formats[type].mantissa - 1), value = decoded(type, c->raw[0]);
    long double size = fabsl(value);
    for (uint32_t i = 1; i < c->count; i++) {
        long double other = decoded(type, c->raw[i]);
        size += fabsl(other);
        if (reduction == LH_PROD)
            value *= other;
        else if (reduction == LH_MIN)
            value = other < value ? other : value;
        else if (reduction == LH_MAX)
            value = other > value ? other : value;
        else
            value += other;
    }
    if (reduction == LH_PROD)
        size = fabsl(value);
    if (reduction == LH_AVG) {
        value /= c->count;
        size /= c->count;
    }
    /* One rounding an addition, and one of the division. */
    long double bound = reduction == LH_MIN || reduction == LH_MAX ? 0 : 1.1L * c->count * unit * size;
    long double off = decoded(type, raw) - value;
    if (loss->bounded)
        bound += encoded_bound(c);
    if (!loss->bounded || loss->missing == 0)
        return fabsl(off) <= bound;
    off *= reduction == LH_AVG ? c->count : 1;
    loss->energy += off * off;
    return isfinite(off);
}

static bool sums_are_right(const struct plan_event *event, const struct call_plan *plan,
                           const struct team *team, size_t first, const uint8_t *out,
                           struct call_loss *loss, char *what, size_t size)
{
    enum lh_type type = plan->call.type;
    size_t elements = collective_call_in(&plan->call, team->size, 0), width = lh_type_bytes(type);
    const uint8_t *content[PLAN_HOSTS_MAX];
    struct contributions c = {.plan = plan, .count = team->size};
    for (uint32_t r = 0; r < team->size; r++)
        content[r] = content_of(event, plan, team->hosts[r], elements);
    for (size_t i = 0; i < plan->call.count; i++) {
        uint64_t raw = load(type, out, i);
        for (uint32_t r = 0; r < team->size; r++)
            c.raw[r] = element_of(plan, content[r], first + i);
        uint64_t wanted = integer_sum(&c);
        bool right = is_float(type) ? float_is_right(&c, loss, raw) : memcmp(&raw, &wanted, width) == 0;
        if (right)
            continue;
        snprintf(what, size, "element %zu of %zu", i, plan->call.count);
        return false;
    }
    snprintf(what, size, "a sum that lacks %llu bytes, by %.3Lg", (unsigned long long)loss->missing,
             loss->energy);
    return !loss->bounded || loss->missing == 0 || energy_is_right(&c, loss);
}

/* ---- what is not added ------------------------------------------------------------------------------- */

/* What a rank had for another, elements from `first` on of its input. */
static bool part_is_right(const struct plan_event *event, const struct call_plan *plan,
                          const struct team *team, uint32_t source, size_t first, size_t count,
                          const uint8_t *out, struct call_loss *loss, char *what, size_t size)
{
    size_t width = lh_type_bytes(plan->call.type), bytes = count * width;
    uint8_t host = team->hosts[source];
    size_t elements = collective_call_in(&plan->call, team->size, source);
    const uint8_t *wanted = content_of(event, plan, host, elements) + first * width;
    for (size_t i = 0; i < bytes; i++) {
        loss->zero += out[i] == 0;
        if (out[i] == wanted[i])
            continue;
        loss->wrong++;
        if (out[i] == 0 && loss->wrong <= loss->missing)
            continue;
        snprintf(what, size, "byte %zu of %zu from host %u", i, bytes, host);
        return false;
    }
    return true;
}

static bool parts_are_right(const struct plan_event *event, const struct call_plan *plan,
                            const struct team *team, uint32_t rank, const uint8_t *out,
                            struct call_loss *loss, char *what, size_t size)
{
    const struct collective_call *call = &plan->call;
    size_t width = lh_type_bytes(call->type);
    bool right = true, rows = call->collective == COLLECTIVE_ALLTOALL;
    for (uint32_t r = 0; r < team->size && right; r++)
        right = part_is_right(event, plan, team, r, rows ? collective_call_before(call, r, rank) : 0,
                              collective_call_part(call, r, rank),
                              out + collective_call_behind(call, r, rank) * width, loss, what, size);
    return right;
}

bool call_is_right(const struct plan_event *event, const struct call_plan *plan, const struct team *team,
                   uint32_t rank, const uint8_t *out, struct call_loss *loss, char *what, size_t size)
{
    const struct collective_call *call = &plan->call;
    switch (call->collective) {
    case COLLECTIVE_BARRIER:
        return true;
    case COLLECTIVE_REDUCE:
        return rank != call->root || sums_are_right(event, plan, team, 0, out, loss, what, size);
    case COLLECTIVE_ALLREDUCE:
        return sums_are_right(event, plan, team, 0, out, loss, what, size);
    case COLLECTIVE_REDUCE_SCATTER:
        return sums_are_right(event, plan, team, rank * call->count, out, loss, what, size);
    case COLLECTIVE_BROADCAST:
        return part_is_right(event, plan, team, call->root, 0, call->count, out, loss, what, size);
    case COLLECTIVE_SCATTER:
        return part_is_right(event, plan, team, call->root, collective_call_before(call, call->root, rank),
                             collective_call_part(call, call->root, rank), out, loss, what, size);
    case COLLECTIVE_GATHER:
        return rank != call->root || parts_are_right(event, plan, team, rank, out, loss, what, size);
    default:
        return parts_are_right(event, plan, team, rank, out, loss, what, size);
    }
}
