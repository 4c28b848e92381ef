/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/collective_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/reduce.h"
#include "collective/schedules.h"
#include "support/collective_call.h"

/* ---- elements ---------------------------------------------------------------------------------------- */

/* Of a small integer that the type holds. */
static uint16_t f16_of(uint32_t value)
{
    if (value == 0)
        return 0;
    uint32_t exponent = 31 - (uint32_t)__builtin_clz(value);
    return (uint16_t)((exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3ff));
}

static void store(enum lh_type type, uint8_t *at, size_t index, uint32_t value)
{
    float f32 = (float)value;
    double f64 = (double)value;
    uint32_t bits;
    uint16_t half = f16_of(value);
    uint64_t wide = value;
    memcpy(&bits, &f32, sizeof bits);
    uint16_t brain = (uint16_t)(bits >> 16);
    const void *const from[LH_TYPES] = {&f32, &f64, &half, &brain, &value, &wide, &value, &value, &value};
    memcpy(at + index * lh_type_bytes(type), from[type], lh_type_bytes(type));
}

/* Sums and products of nine are exact in each type, but for those of 8 bits, which wrap around. */
static uint32_t value_of(const struct collective_case *c, uint32_t rank, size_t index)
{
    uint32_t mixed = (uint32_t)(rank * 7 + index * 3 + index / 64);
    return c->reduction == LH_PROD ? 1 + mixed % 2 : mixed % 11;
}

static uint32_t reduced(const struct collective_case *c, size_t index)
{
    uint32_t result = value_of(c, 0, index);
    for (uint32_t r = 1; r < c->size; r++) {
        uint32_t value = value_of(c, r, index);
        switch (c->reduction) {
        case LH_PROD:
            result *= value;
            break;
        case LH_MIN:
            result = value < result ? value : result;
            break;
        case LH_MAX:
            result = value > result ? value : result;
            break;
        case LH_BAND:
            result &= value;
            break;
        case LH_BOR:
            result |= value;
            break;
        case LH_BXOR:
            result ^= value;
            break;
        default:
            result += value;
        }
    }
    return result;
}

/* ---- buffers ----------------------------------------------------------------------------------------- */

static struct collective_call call_of(const struct collective_case *c)
{
    return (struct collective_call){.collective = c->collective,
                                    .type = c->type,
                                    .reduction = c->reduction,
                                    .count = c->count,
                                    .root = c->root,
                                    .uneven = c->uneven};
}

static size_t in_elements(const struct collective_case *c, uint32_t rank)
{
    const struct collective_call call = call_of(c);
    return collective_call_in(&call, c->size, rank);
}

static size_t out_elements(const struct collective_case *c, uint32_t rank)
{
    const struct collective_call call = call_of(c);
    return collective_call_out(&call, c->size, rank);
}

/* The rank that an element of an output is of, and its place in that part. */
static uint32_t source_of(const struct collective_call *call, uint32_t destination, size_t *index)
{
    uint32_t source = 0;
    while (*index >= collective_call_part(call, source, destination))
        *index -= collective_call_part(call, source++, destination);
    return source;
}

static uint32_t expected(const struct collective_case *c, uint32_t rank, size_t index)
{
    const struct collective_call call = call_of(c);
    uint32_t source;
    switch (c->collective) {
    case COLLECTIVE_BROADCAST:
        return value_of(c, c->root, index);
    case COLLECTIVE_ALLGATHER:
    case COLLECTIVE_GATHER:
        source = source_of(&call, c->root, &index);
        return value_of(c, source, index);
    case COLLECTIVE_SCATTER:
        return value_of(c, c->root, collective_call_before(&call, c->root, rank) + index);
    case COLLECTIVE_ALLTOALL:
        source = source_of(&call, rank, &index);
        return value_of(c, source, collective_call_before(&call, source, rank) + index);
    case COLLECTIVE_REDUCE_SCATTER:
        return reduced(c, rank * c->count + index);
    default:
        return reduced(c, index);
    }
}

static bool in_place(const struct collective_case *c)
{
    return c->in_place && (c->collective == COLLECTIVE_ALLREDUCE || c->collective == COLLECTIVE_REDUCE);
}

static void make_buffers(struct collective_case *c, uint32_t rank)
{
    size_t width = lh_type_bytes(c->type), in = in_elements(c, rank), out = out_elements(c, rank);
    c->in[rank] = malloc(in * width + 1);
    c->kept[rank] = malloc(in * width + 1);
    c->out[rank] = malloc(out * width + 1);
    assert_true(c->in[rank] && c->kept[rank] && c->out[rank]);
    for (size_t i = 0; i < in; i++)
        store(c->type, c->kept[rank], i, value_of(c, rank, i));
    memcpy(c->in[rank], c->kept[rank], in * width);
    memset(c->out[rank], 0xee, out * width + 1);
    if (c->collective == COLLECTIVE_BROADCAST && rank == c->root)
        memcpy(c->out[rank], c->kept[rank], in * width);
    if (in_place(c))
        memcpy(c->out[rank], c->kept[rank], in * width);
}

/* ---- running ----------------------------------------------------------------------------------------- */

void collective_case_start_at(struct collective_case *c, struct lh_group *group)
{
    uint32_t rank = lh_group_rank(group);
    if (c->size == 0) /* threads only read it */
        c->size = lh_group_size(group);
    assert_int_equal(c->size, lh_group_size(group));
    make_buffers(c, rank);
    void *out = c->out[rank];
    const void *in = in_place(c) ? out : c->in[rank];
    const struct collective_call call = call_of(c);
    int error = collective_call_start(group, &call, in, out, &c->options, &c->ops[rank]);
    sim_engines_must(error, collective_name(c->collective));
}

void collective_case_start(struct collective_case *c, struct group_world *world)
{
    for (uint32_t r = 0; r < world->size; r++)
        collective_case_start_at(c, world->groups[r]);
}

void collective_case_check_input(const struct collective_case *c, uint32_t rank)
{
    assert_memory_equal(c->in[rank], c->kept[rank], in_elements(c, rank) * lh_type_bytes(c->type));
}

static void check_output(const struct collective_case *c, uint32_t rank, const uint8_t *wanted,
                         size_t bytes, const char *schedule)
{
    size_t at = 0;
    while (at < bytes && c->out[rank][at] == wanted[at])
        at++;
    if (at < bytes)
        fail_msg("%s %s%s %s of %zu %s%s, root %u: rank %u of %u: byte %zu of %zu is %02x, not %02x",
                 schedule, collective_name(c->collective), c->uneven ? "v" : "",
                 lh_reduction_name(c->reduction), c->count, lh_type_name(c->type),
                 c->in_place ? " in place" : "", c->root, rank, c->size, at, bytes, c->out[rank][at],
                 wanted[at]);
}

void collective_case_check(const struct collective_case *c, uint32_t rank)
{
    size_t width = lh_type_bytes(c->type), count = out_elements(c, rank);
    bool at_root = c->collective == COLLECTIVE_REDUCE || c->collective == COLLECTIVE_GATHER;
    struct lh_collective_result result;
    uint8_t *wanted = malloc(count * width + 1);
    assert_non_null(wanted);
    assert_int_equal(lh_collective_test(c->ops[rank], &result), 1);
    if (result.error != 0)
        fail_msg("%s at rank %u: %s", collective_name(c->collective), rank, result.message);
    collective_case_check_input(c, rank);
    for (size_t i = 0; i < count; i++)
        store(c->type, wanted, i, expected(c, rank, i));
    if (collective_call_reduces(c->collective) && c->reduction == LH_AVG)
        reduce_divide((enum element_type)c->type, wanted, count, c->size);
    wanted[count * width] = 0xee;
    if (c->collective != COLLECTIVE_BARRIER && (!at_root || rank == c->root))
        check_output(c, rank, wanted, count * width + 1, result.schedule);
    free(wanted);
}

void collective_case_free(struct collective_case *c)
{
    for (uint32_t r = 0; r < c->size; r++) {
        lh_collective_free(c->ops[r]);
        free(c->in[r]);
        free(c->out[r]);
        free(c->kept[r]);
    }
}

void collective_cases_run(struct group_world *world, struct collective_case *cases, uint32_t count,
                          lh_time limit_ns)
{
    for (uint32_t i = 0; i < count; i++)
        collective_case_start(&cases[i], world);
    for (uint32_t i = 0; i < count; i++)
        assert_true(group_world_run(world, cases[i].ops, world->size, limit_ns));
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t r = 0; r < world->size; r++)
            collective_case_check(&cases[i], r);
        collective_case_free(&cases[i]);
    }
}
