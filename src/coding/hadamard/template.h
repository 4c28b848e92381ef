/*
 * template.h - a kernel, from the vector of its CPU. The file that includes this defines
 *
 *   LANES_LOG, REGISTERS_LOG   log2 of the floats of a vector; of the vectors that are transformed at once
 *   TARGET, TEMPLATE           attributes of functions; of those that are inlined with constant arguments
 *   vector                     the type; with + - * between vectors
 *   load_float, store_float    at a multiple of the vector's size
 *   load_typed, store_typed    of any type, anywhere (type is constant; stream: at a multiple of the size)
 *   broadcast                  of a float
 *   flip(v, signs, at)         changes signs by the bits from `at` on, a multiple of the lanes
 *   lane_butterfly(v, bit)     sum and difference of the lanes whose numbers differ in this bit
 *   exchange(&a, &b, bit)      of the lanes with this bit in a, and of those without it in b
 *   fetch(from, at, type)      what will be read soon
 *   struct range, range_none(), range_add(), range_ok()
 *                              whether all results are finite and fit the type
 *
 * and gets encode(), decode() and combine() of struct hadamard_kernel.
 *
 * The bits of a coefficient's number can be transformed in any order. A group has 2^shared blocks of which
 * lanes are shared when its runs are shorter than a vector: then exchange() makes their low bits numbers of
 * registers, and lanes those of blocks, so that a vector is a whole piece of a packet. Either way a bit of
 * the lanes costs one shuffle a vector.
 *
 * Encoding: from the blocks, REGISTERS_LOG bits and those of the lanes, to scratch; bits in scratch; the
 * last ones on the way from scratch to the packets. Decoding is the mirror image.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>

#include "coding/hadamard/kernel.h"

#if defined(LANES_LOG)

/* Sanitizers keep loops as they are; then the compiler also takes what is never reached for out of bounds. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL(times)
#pragma GCC diagnostic ignored "-Warray-bounds"
#else
#define UNROLL_PRAGMA(text) _Pragma(#text)
#define UNROLL(times)       UNROLL_PRAGMA(GCC unroll times)
#endif

#define LANES        (1u << LANES_LOG)
#define REGISTERS    (1u << REGISTERS_LOG)
#define EDGE_LOG_MAX (LANES_LOG - 1u)
/* Vectors that are written one after the other: the CPU merges stores past the caches for a few lines at a
 * time only. */
#define LINE_LOG (GROUP_LINE_LOG - LANES_LOG)
/* Lines of packets that are fetched ahead: packets are a power of two apart, so that more than some hundred
 * would drive each other out of the cache. */
#define FETCH_LINES 16u
/* CPUs fetch longer runs by themselves. */
#define FETCH_RUN_LOG 8u

/* What follows from the task, for a sub-group whose blocks share vectors. */
struct shape {
    uint32_t shared_log; /* blocks that share a vector */
    uint32_t lane_log;   /* bits of a coefficient in the lanes */
    uint32_t lines_log;  /* vectors of a sub-group */
    uint32_t edge_log;   /* bits transformed between scratch and packets */
    uint32_t sub_groups;
};

static struct shape shape_of(const struct group_task *task)
{
    struct shape shape;
    shape.lane_log = task->run_log < LANES_LOG ? task->run_log : LANES_LOG;
    shape.shared_log = LANES_LOG - shape.lane_log;
    shape.lines_log = task->block_log - shape.lane_log;
    uint32_t left = shape.lines_log - REGISTERS_LOG;
    shape.edge_log = left < EDGE_LOG_MAX ? left : EDGE_LOG_MAX;
    shape.sub_groups = task->blocks >> shape.shared_log;
    return shape;
}

TEMPLATE void butterflies(vector *v, uint32_t bits)
{
    UNROLL(4)
    for (uint32_t bit = 0; bit < bits; bit++)
        UNROLL(16)
    for (uint32_t i = 0; i < 1u << bits; i++)
        if (!(i >> bit & 1)) {
            vector a = v[i], b = v[i | 1u << bit];
            v[i] = a + b;
            v[i | 1u << bit] = a - b;
        }
}

TEMPLATE void lane_butterflies(vector *v, uint32_t lane_log)
{
    UNROLL(4)
    for (uint32_t bit = 0; bit < lane_log; bit++)
        UNROLL(16)
    for (uint32_t i = 0; i < REGISTERS; i++)
        v[i] = lane_butterfly(v[i], bit);
}

/* Bit t of a register's number with bit lane_log + t of the lanes. */
TEMPLATE void exchanges(vector *v, uint32_t shared_log)
{
    UNROLL(4)
    for (uint32_t t = 0; t < shared_log; t++)
        UNROLL(16)
    for (uint32_t i = 0; i < REGISTERS; i++)
        if (!(i >> t & 1))
            exchange(&v[i], &v[i | 1u << t], LANES_LOG - shared_log + t);
}

/* Where register i of the vectors from `line` on is in the blocks of a sub-group: its block, and its place.
 */
TEMPLATE size_t block_of(uint32_t i, uint32_t shared_log)
{
    return i & ((1u << shared_log) - 1);
}

TEMPLATE size_t place_of(size_t line, uint32_t i, uint32_t shared_log)
{
    return ((line + i) >> shared_log) << LANES_LOG;
}

/* From the blocks of a sub-group, the first of which is number `first`, to scratch. */
TEMPLATE void from_blocks(const struct group_task *task, const struct shape *shape, size_t first,
                          float *scratch, enum lh_hadamard_type type, uint32_t shared_log)
{
    const size_t block = (size_t)1 << task->block_log;
    const vector scale = broadcast(task->scale);
    for (size_t line = 0; line < (size_t)1 << shape->lines_log; line += REGISTERS) {
        vector v[REGISTERS];
        UNROLL(16)
        for (uint32_t i = 0; i < REGISTERS; i++) {
            size_t at = (first + block_of(i, shared_log)) * block + place_of(line, i, shared_log);
            v[i] = flip(load_typed(task->in, at, type) * scale, task->signs, at);
            fetch(task->in, at + (block << shared_log), type);
        }
        exchanges(v, shared_log);
        butterflies(v, REGISTERS_LOG);
        lane_butterflies(v, LANES_LOG - shared_log);
        UNROLL(16)
        for (uint32_t i = 0; i < REGISTERS; i++)
            store_float(scratch + (line + i) * LANES, v[i]);
    }
}

/* The mirror image of from_blocks(). */
TEMPLATE void to_blocks(const struct group_task *task, const struct shape *shape, size_t first,
                        const float *scratch, enum lh_hadamard_type type, uint32_t shared_log, bool stream,
                        struct range *range)
{
    const size_t block = (size_t)1 << task->block_log;
    for (size_t line = 0; line < (size_t)1 << shape->lines_log; line += REGISTERS) {
        vector v[REGISTERS];
        UNROLL(16)
        for (uint32_t i = 0; i < REGISTERS; i++)
            v[i] = load_float(scratch + (line + i) * LANES);
        lane_butterflies(v, LANES_LOG - shared_log);
        butterflies(v, REGISTERS_LOG);
        exchanges(v, shared_log);
        /* Those of a block one after the other. */
        UNROLL(16)
        for (uint32_t n = 0; n < REGISTERS; n++) {
            const uint32_t columns_log = REGISTERS_LOG - shared_log;
            const uint32_t i = (n & ((1u << columns_log) - 1)) << shared_log | n >> columns_log;
            size_t at = (first + block_of(i, shared_log)) * block + place_of(line, i, shared_log);
            vector result = flip(v[i], task->signs, at);
            range_add(range, result, type);
            store_typed(task->out, at, result, type, stream);
        }
    }
}

/* Where a line of a sub-group is in the packets. */
TEMPLATE size_t packet_place(const struct group_task *task, const struct shape *shape, size_t line,
                             size_t sub)
{
    size_t coefficient = line << shape->lane_log;
    size_t packet = coefficient >> task->run_log;
    size_t in_run = coefficient & (((size_t)1 << task->run_log) - 1);
    return (packet << task->block_log) + (sub << shape->shared_log << task->run_log) + in_run;
}

/* 2^bits vectors from `data` on, `distance` floats apart. */
TEMPLATE void pass(float *data, size_t distance, uint32_t bits)
{
    vector v[16];
    UNROLL(16)
    for (uint32_t i = 0; i < 1u << bits; i++)
        v[i] = load_float(data + i * distance);
    butterflies(v, bits);
    UNROLL(16)
    for (uint32_t i = 0; i < 1u << bits; i++)
        store_float(data + i * distance, v[i]);
}

TEMPLATE void passes(float *scratch, size_t floats, size_t distance, uint32_t bits)
{
    for (size_t at = 0; at < floats; at += distance << bits)
        for (size_t i = 0; i < distance; i += LANES)
            pass(scratch + at + i, distance, bits);
}

/* Those bits of a sub-group in scratch that neither its blocks' side nor its packets' side transforms. */
TARGET static void in_scratch(const struct shape *shape, float *scratch)
{
    const size_t floats = (size_t)1 << (shape->lines_log + LANES_LOG);
    uint32_t bit = REGISTERS_LOG;
    for (; bit + 3 <= shape->lines_log - shape->edge_log; bit += 3)
        passes(scratch, floats, (size_t)LANES << bit, 3);
    if (bit + 2 == shape->lines_log - shape->edge_log)
        passes(scratch, floats, (size_t)LANES << bit, 2);
    if (bit + 1 == shape->lines_log - shape->edge_log)
        passes(scratch, floats, (size_t)LANES << bit, 1);
}

TEMPLATE void to_packets(const struct group_task *task, const struct shape *shape, const float *scratch,
                         enum lh_hadamard_type type, uint32_t edge_log, bool stream, struct range *range)
{
    const size_t floats = (size_t)1 << (shape->lines_log + LANES_LOG);
    const size_t distance = floats >> edge_log;
    const size_t lines = distance >> LANES_LOG;
    /* The vectors of a cache line are of several sub-groups when runs are shorter. */
    const uint32_t subs_log = LINE_LOG < (uint32_t)__builtin_ctz(shape->sub_groups)
                                  ? LINE_LOG
                                  : (uint32_t)__builtin_ctz(shape->sub_groups);
    const uint32_t along_log = LINE_LOG - subs_log;
    for (size_t line = 0; line < lines; line += (size_t)1 << along_log) {
        vector v[1u << LINE_LOG][1u << EDGE_LOG_MAX];
        UNROLL(4)
        for (uint32_t w = 0; w < 1u << LINE_LOG; w++) {
            const float *from =
                scratch + (w >> along_log) * floats + (line + (w & ((1u << along_log) - 1))) * LANES;
            UNROLL(8)
            for (uint32_t i = 0; i < 1u << edge_log; i++)
                v[w][i] = load_float(from + i * distance);
            butterflies(v[w], edge_log);
        }
        UNROLL(8)
        for (uint32_t i = 0; i < 1u << edge_log; i++) {
            /* Sub-groups and lines of a cache line are consecutive there. */
            const size_t at = packet_place(task, shape, line + i * lines, 0);
            UNROLL(4)
            for (uint32_t w = 0; w < 1u << LINE_LOG; w++) {
                range_add(range, v[w][i], type);
                store_typed(task->out, at + w * LANES, v[w][i], type, stream);
            }
        }
    }
}

TEMPLATE void from_packets(const struct group_task *task, const struct shape *shape, float *scratch,
                           enum lh_hadamard_type type, uint32_t edge_log)
{
    const size_t floats = (size_t)1 << (shape->lines_log + LANES_LOG);
    const size_t distance = floats >> edge_log;
    const size_t lines = distance >> LANES_LOG;
    const size_t next_group = (size_t)task->blocks << task->run_log;
    const bool far_apart = task->run_log < FETCH_RUN_LOG;
    const vector scale = broadcast(task->scale);
    for (size_t line = 0; line < lines; line++) {
        const bool inside = line + FETCH_LINES < lines;
        const size_t ahead = inside ? line + FETCH_LINES : (line + FETCH_LINES) & (lines - 1);
        for (size_t sub = 0; sub < shape->sub_groups; sub++) {
            vector v[1u << EDGE_LOG_MAX];
            UNROLL(8)
            for (uint32_t i = 0; i < 1u << edge_log; i++) {
                v[i] = load_typed(task->in, packet_place(task, shape, line + i * lines, sub), type) * scale;
                if (far_apart)
                    fetch(task->in,
                          packet_place(task, shape, ahead + i * lines, sub) + (inside ? 0 : next_group),
                          type);
            }
            butterflies(v, edge_log);
            UNROLL(8)
            for (uint32_t i = 0; i < 1u << edge_log; i++)
                store_float(scratch + sub * floats + i * distance + line * LANES, v[i]);
        }
    }
}

/* ---- each with all values of its constants ------------------------------------------------------------
 */

#define BLOCKS_CASE(shared)                                                                                \
    case shared:                                                                                           \
        if (shared <= LANES_LOG && shared <= REGISTERS_LOG)                                                \
            BLOCKS_CALL((shared) <= LANES_LOG ? (shared) : 0);                                             \
        break;
#define BLOCKS_CASES BLOCKS_CASE(0) BLOCKS_CASE(1) BLOCKS_CASE(2) BLOCKS_CASE(3) BLOCKS_CASE(4)
#define EDGE_CASES   EDGE_CASE(0) EDGE_CASE(1) EDGE_CASE(2) EDGE_CASE(3)
#define EDGE_CASE(edge)                                                                                    \
    case edge:                                                                                             \
        EDGE_CALL(edge);                                                                                   \
        break;

TEMPLATE bool encode_typed(const struct group_task *task, float *scratch, enum lh_hadamard_type type)
{
    const struct shape shape = shape_of(task);
    const size_t floats = (size_t)1 << (shape.lines_log + LANES_LOG);
    struct range range = range_none();
    for (size_t sub = 0; sub < shape.sub_groups; sub++) {
        float *part = scratch + sub * floats;
#define BLOCKS_CALL(shared) from_blocks(task, &shape, sub << (shared), part, type, shared)
        switch (shape.shared_log) {
            BLOCKS_CASES
        }
#undef BLOCKS_CALL
        in_scratch(&shape, part);
    }
    if (task->stream) {
#define EDGE_CALL(edge) to_packets(task, &shape, scratch, type, edge, true, &range)
        switch (shape.edge_log) {
            EDGE_CASES
        }
#undef EDGE_CALL
    } else {
#define EDGE_CALL(edge) to_packets(task, &shape, scratch, type, edge, false, &range)
        switch (shape.edge_log) {
            EDGE_CASES
        }
#undef EDGE_CALL
    }
    return range_ok(&range, type);
}

TEMPLATE bool decode_typed(const struct group_task *task, float *scratch, enum lh_hadamard_type type)
{
    const struct shape shape = shape_of(task);
    const size_t floats = (size_t)1 << (shape.lines_log + LANES_LOG);
    struct range range = range_none();
#define EDGE_CALL(edge) from_packets(task, &shape, scratch, type, edge)
    switch (shape.edge_log) {
        EDGE_CASES
    }
#undef EDGE_CALL
    for (size_t sub = 0; sub < shape.sub_groups; sub++) {
        float *part = scratch + sub * floats;
        in_scratch(&shape, part);
        if (task->stream && shape.shared_log + LINE_LOG <= REGISTERS_LOG) {
#define BLOCKS_CALL(shared) to_blocks(task, &shape, sub << (shared), part, type, shared, true, &range)
            switch (shape.shared_log) {
                BLOCKS_CASES
            }
#undef BLOCKS_CALL
        } else {
#define BLOCKS_CALL(shared) to_blocks(task, &shape, sub << (shared), part, type, shared, false, &range)
            switch (shape.shared_log) {
                BLOCKS_CASES
            }
#undef BLOCKS_CALL
        }
    }
    return range_ok(&range, type);
}

#define TYPED_FUNCTIONS(name, type)                                                                        \
    TARGET static bool encode_##name(const struct group_task *task, float *scratch)                        \
    {                                                                                                      \
        return encode_typed(task, scratch, type);                                                          \
    }                                                                                                      \
    TARGET static bool decode_##name(const struct group_task *task, float *scratch)                        \
    {                                                                                                      \
        return decode_typed(task, scratch, type);                                                          \
    }
TYPED_FUNCTIONS(f32, LH_HADAMARD_F32)
TYPED_FUNCTIONS(bf16, LH_HADAMARD_BF16)
TYPED_FUNCTIONS(f16, LH_HADAMARD_F16)

static bool encode(const struct group_task *task, float *scratch)
{
    assert(!task->zeroed && task->block_log >= LANES_LOG + REGISTERS_LOG);
    switch (task->type) {
    case LH_HADAMARD_F32:
        return encode_f32(task, scratch);
    case LH_HADAMARD_BF16:
        return encode_bf16(task, scratch);
    case LH_HADAMARD_F16:
        return encode_f16(task, scratch);
    }
    return false;
}

static bool decode(const struct group_task *task, float *scratch)
{
    assert(!task->zeroed && task->block_log >= LANES_LOG + REGISTERS_LOG);
    switch (task->type) {
    case LH_HADAMARD_F32:
        return decode_f32(task, scratch);
    case LH_HADAMARD_BF16:
        return decode_bf16(task, scratch);
    case LH_HADAMARD_F16:
        return decode_f16(task, scratch);
    }
    return false;
}

TEMPLATE bool combine_bits(float *data, size_t distance, uint32_t bits, float factor)
{
    const vector scale = broadcast(factor);
    struct range range = range_none();
    for (size_t at = 0; at < distance; at += LANES) {
        vector v[16];
        UNROLL(16)
        for (uint32_t i = 0; i < 1u << bits; i++)
            v[i] = load_typed(data, at + i * distance, LH_HADAMARD_F32) * scale;
        butterflies(v, bits);
        UNROLL(16)
        for (uint32_t i = 0; i < 1u << bits; i++) {
            range_add(&range, v[i], LH_HADAMARD_F32);
            store_typed(data, at + i * distance, v[i], LH_HADAMARD_F32, false);
        }
    }
    return range_ok(&range, LH_HADAMARD_F32);
}

TARGET static bool combine(float *data, size_t distance, uint32_t bits, float scale)
{
    assert(distance % LANES == 0);
    switch (bits) {
    case 1:
        return combine_bits(data, distance, 1, scale);
    case 2:
        return combine_bits(data, distance, 2, scale);
    case 3:
        return combine_bits(data, distance, 3, scale);
    case 4:
        return combine_bits(data, distance, 4, scale);
    }
    assert(false);
    return false;
}

#endif
