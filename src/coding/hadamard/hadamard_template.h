/*
 * hadamard_template.h - a kernel, from the vector of its CPU. The file that includes this defines
 *
 *   LANES_LOG, REGISTERS_LOG   log2 of the floats of a vector; of the vectors that are transformed at once
 *   TARGET, TEMPLATE           attributes of functions; of those that are inlined with constant arguments
 *   vector                     the type; with + - * between vectors
 *   load_float, store_float    at a multiple of the vector's size
 *   load_typed(v, from, at, more, type, signs)
 *                              elements at + more, … of any type, anywhere: a vector of F32 or F16; of BF16
 *                              two, those of even and of odd numbers (type is constant). signs: NULL, or
 *                              their bits: then `at` and `more` are multiples of LANES. `more` is constant,
 *                              or does not change in a loop, and costs nothing by itself
 *   store_typed(v, to, at, more, type, signs, stream, range)
 *                              the other way round; stream: at a multiple of the size. Adds to the range
 *   broadcast                  of a float
 *   multiply_add(a, b, c), multiply_subtract(a, b, c)
 *                              a * b + c, a * b - c
 *   lane_butterfly(v, bit)     sum and difference of the lanes whose numbers differ in this bit
 *   exchange(&a, &b, bit)      of the lanes with this bit in a, and of those without it in b
 *   struct range, range_none(), range_ok()
 *                              whether all results are finite and fit the type
 *
 * and gets encode(), decode() and combine() of struct hadamard_kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>

#include "coding/hadamard/hadamard_kernel.h"

/*
 * The bits of a coefficient's number can be transformed in any order. A group has 2^shared blocks of which
 * lanes are shared when its runs are shorter than a vector: then exchange() makes their low bits numbers of
 * registers, and lanes those of blocks, so that a vector is a whole piece of a packet. Either way a bit of
 * the lanes costs one shuffle a vector. Of BF16 the lowest bit of an element's number is that of a vector,
 * which spares the conversions their shuffles: lanes begin at the next one.
 *
 * Encoding: from the blocks, REGISTERS_LOG bits and those of the lanes, to scratch; bits in scratch, of as
 * many vectors at once as they combine; the last ones on the way from scratch to the packets. Decoding is
 * the mirror image.
 */

#if defined(LANES_LOG)

/* Sanitizers keep loops as they are; then the compiler also takes what is never reached for out of bounds. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL(times)
#pragma GCC diagnostic ignored "-Warray-bounds"
#else
#define UNROLL_PRAGMA(text) _Pragma(#text)
#define UNROLL(times)       UNROLL_PRAGMA(GCC unroll times)
#endif

#define LANES         (1u << LANES_LOG)
#define BLOCK_LOG_MIN (LANES_LOG + REGISTERS_LOG)
#define REGISTERS_MAX (2u << LANES_LOG) /* of blocks that share all lanes */
#define EDGE_LOG_MAX  (LANES_LOG - 1u)
/* Vectors that are written one after the other: the CPU merges stores past the caches for a few lines at a
 * time only. */
#define LINE_LOG (GROUP_LINE_LOG - LANES_LOG)
/* Lines of packets that are fetched ahead: packets are a power of two apart, so that more than some hundred
 * would drive each other out of the cache. */
#define FETCH_LINES 16u
/* log2 of the vectors that are loaded or stored together. */
#define PAIR_LOG(type) ((type) == LH_HADAMARD_BF16 ? 1u : 0u)

/* What follows from the task, for a sub-group whose blocks share vectors. A vector of it is a `line`: its
 * number has the bits of a coefficient that are not those of lanes. */
struct shape {
    uint32_t shared_log; /* blocks that share a vector */
    uint32_t lane_log;   /* bits of a coefficient in the lanes */
    uint32_t set_log;    /* lines transformed at once on the blocks' side */
    uint32_t lines_log;  /* of a sub-group */
    uint32_t edge_log;   /* bits transformed between scratch and packets */
    uint32_t sub_groups;
};

TEMPLATE uint32_t set_log_of(enum lh_hadamard_type type, uint32_t shared_log)
{
    const uint32_t minimum = shared_log + PAIR_LOG(type);
    return minimum > REGISTERS_LOG ? minimum : REGISTERS_LOG;
}

TEMPLATE struct shape shape_of(const struct group_task *task, enum lh_hadamard_type type)
{
    struct shape shape;
    shape.lane_log = task->run_log > PAIR_LOG(type) ? task->run_log - PAIR_LOG(type) : 0;
    if (shape.lane_log > LANES_LOG)
        shape.lane_log = LANES_LOG;
    shape.shared_log = LANES_LOG - shape.lane_log;
    shape.set_log = set_log_of(type, shape.shared_log);
    shape.lines_log = task->block_log - shape.lane_log;
    const uint32_t left = shape.lines_log - shape.set_log;
    shape.edge_log = left < EDGE_LOG_MAX ? left : EDGE_LOG_MAX;
    shape.sub_groups = task->blocks >> shape.shared_log;
    return shape;
}

/* What will be read soon. */
TEMPLATE void fetch(const void *from, size_t at, size_t more, enum lh_hadamard_type type)
{
    const size_t bytes = type == LH_HADAMARD_F32 ? 4 : 2;
    uintptr_t place = (uintptr_t)from + at * bytes + more * bytes;
    __builtin_prefetch((const void *)place, 0, 2);
}

/* Of bits `from` … bits - 1 of the vectors' numbers. */
TEMPLATE void butterflies(vector *v, uint32_t from, uint32_t bits)
{
    UNROLL(8)
    for (uint32_t bit = from; bit < bits; bit++)
        UNROLL(32)
    for (uint32_t i = 0; i < 1u << bits; i++)
        if (!(i >> bit & 1)) {
            vector a = v[i], b = v[i | 1u << bit];
            v[i] = a + b;
            v[i | 1u << bit] = a - b;
        }
}

TEMPLATE void scaled_butterflies(vector *v, uint32_t bits, float factor)
{
    const vector scale = broadcast(factor);
    if (bits == 0)
        v[0] = v[0] * scale;
    UNROLL(32)
    for (uint32_t i = 0; i + 1 < 1u << bits; i += 2) {
        vector a = v[i], b = v[i + 1] * scale;
        v[i] = multiply_add(a, scale, b);
        v[i + 1] = multiply_subtract(a, scale, b);
    }
    butterflies(v, 1, bits);
}

TEMPLATE void lane_butterflies(vector *v, uint32_t lane_log, uint32_t set_log)
{
    UNROLL(4)
    for (uint32_t bit = 0; bit < lane_log; bit++)
        UNROLL(32)
    for (uint32_t i = 0; i < 1u << set_log; i++)
        v[i] = lane_butterfly(v[i], bit);
}

/* Bit `low` + t of a register's number with bit lane_log + t of the lanes. */
TEMPLATE void exchanges(vector *v, uint32_t low, uint32_t shared_log, uint32_t set_log)
{
    UNROLL(4)
    for (uint32_t t = 0; t < shared_log; t++)
        UNROLL(32)
    for (uint32_t i = 0; i < 1u << set_log; i++)
        if (!(i >> (low + t) & 1))
            exchange(&v[i], &v[i | 1u << (low + t)], LANES_LOG - shared_log + t);
}

/* Where the lines of a sub-group's blocks are: all but what registers of a set differ by. */
struct block_rows {
    size_t first; /* element of line 0 */
    size_t pitch; /* elements between blocks that share lanes */
};

TEMPLATE struct block_rows block_rows_of(const struct group_task *task, size_t sub,
                                         enum lh_hadamard_type type, uint32_t shared_log)
{
    if (PAIR_LOG(type) > 0 && task->run_log == 0) /* neighbours in a packet are of a pair */
        return (struct block_rows){(sub >> 1 << (shared_log + 1) | (sub & 1)) << task->block_log,
                                   (size_t)2 << task->block_log};
    return (struct block_rows){sub << shared_log << task->block_log, (size_t)1 << task->block_log};
}

/* Of the set that begins with `line`. */
TEMPLATE size_t block_place(const struct block_rows *rows, size_t line, enum lh_hadamard_type type,
                            uint32_t shared_log)
{
    return rows->first + (line >> (shared_log + PAIR_LOG(type)) << (LANES_LOG + PAIR_LOG(type)));
}

/* From there to register i, before exchanges(): its number's bits are that of a pair, those of the block, and
 * those of the place in it. */
TEMPLATE size_t block_offset(const struct block_rows *rows, uint32_t i, enum lh_hadamard_type type,
                             uint32_t shared_log)
{
    const uint32_t pair_log = PAIR_LOG(type);
    const size_t block = i >> pair_log & ((1u << shared_log) - 1);
    return block * rows->pitch + ((size_t)i >> (shared_log + pair_log) << (LANES_LOG + pair_log));
}

/* From the blocks of a sub-group to scratch: `lines` of them, a power of two. */
TEMPLATE void from_blocks(const struct group_task *task, size_t sub, size_t from_line, size_t lines,
                          float *scratch, enum lh_hadamard_type type, uint32_t shared_log)
{
    const uint32_t pair_log = PAIR_LOG(type), set_log = set_log_of(type, shared_log);
    const struct block_rows rows = block_rows_of(task, sub, type, shared_log);
    const size_t next_group = (size_t)task->blocks << task->block_log;
    const uint64_t *signs = task->signs;
    assert(signs);
    for (size_t line = from_line; line < from_line + lines; line += (size_t)1 << set_log) {
        const size_t at = block_place(&rows, line, type, shared_log);
        vector v[REGISTERS_MAX];
        UNROLL(32)
        for (uint32_t i = 0; i < 1u << set_log; i += 1u << pair_log) {
            const size_t more = block_offset(&rows, i, type, shared_log);
            load_typed(v + i, task->in, at, more, type, signs);
            fetch(task->in, at + next_group, more, type);
        }
        exchanges(v, pair_log, shared_log, set_log);
        scaled_butterflies(v, set_log, task->scale);
        lane_butterflies(v, LANES_LOG - shared_log, set_log);
        UNROLL(32)
        for (uint32_t i = 0; i < 1u << set_log; i++)
            store_float(scratch + (line + i) * LANES, v[i]);
    }
}

/* The mirror image of from_blocks(). */
TEMPLATE void to_blocks(const struct group_task *task, size_t sub, size_t from_line, size_t lines,
                        const float *scratch, enum lh_hadamard_type type, uint32_t shared_log, bool stream,
                        struct range *range)
{
    const uint32_t pair_log = PAIR_LOG(type), set_log = set_log_of(type, shared_log);
    const uint32_t columns_log = set_log - shared_log - pair_log;
    const struct block_rows rows = block_rows_of(task, sub, type, shared_log);
    const uint64_t *signs = task->signs;
    assert(signs);
    for (size_t line = from_line; line < from_line + lines; line += (size_t)1 << set_log) {
        const size_t at = block_place(&rows, line, type, shared_log);
        vector v[REGISTERS_MAX];
        UNROLL(32)
        for (uint32_t i = 0; i < 1u << set_log; i++)
            v[i] = load_float(scratch + (line + i) * LANES);
        lane_butterflies(v, LANES_LOG - shared_log, set_log);
        butterflies(v, 0, set_log);
        exchanges(v, pair_log, shared_log, set_log);
        /* Those of a block one after the other. */
        UNROLL(32)
        for (uint32_t n = 0; n < 1u << (set_log - pair_log); n++) {
            const uint32_t column = n & ((1u << columns_log) - 1);
            const uint32_t i = (column << shared_log | n >> columns_log) << pair_log;
            store_typed(v + i, task->out, at, block_offset(&rows, i, type, shared_log), type, signs, stream,
                        range);
        }
    }
}

/* Where a line of the first sub-group is in the packets: that of a sum of lines without common bits is the
 * sum. */
TEMPLATE size_t packet_place(const struct group_task *task, const struct shape *shape, size_t line,
                             enum lh_hadamard_type type)
{
    const uint32_t pair_log = PAIR_LOG(type);
    const size_t pair = line & ((1u << pair_log) - 1);
    const size_t coefficient = line >> pair_log << (pair_log + shape->lane_log) | pair;
    const size_t packet = coefficient >> task->run_log;
    const size_t in_run = coefficient & (((size_t)1 << task->run_log) - 1);
    return (packet << task->block_log) + in_run;
}

/* From a line to those `distance`, 2 * distance, … lines on. */
TEMPLATE void packet_offsets(size_t *offset, const struct group_task *task, const struct shape *shape,
                             size_t distance, uint32_t bits, enum lh_hadamard_type type)
{
    offset[0] = 0;
    UNROLL(8)
    for (uint32_t i = 1; i < 1u << bits; i++)
        offset[i] = offset[i & (i - 1)] + packet_place(task, shape, (i & -i) * distance, type);
}

/* 2^bits vectors from `data` on, `distance` floats apart. */
TEMPLATE void pass(float *data, size_t distance, uint32_t bits)
{
    vector v[16];
    UNROLL(16)
    for (uint32_t i = 0; i < 1u << bits; i++)
        v[i] = load_float(data + i * distance);
    butterflies(v, 0, bits);
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

/* Lines of a sub-group that the bits combine which neither its blocks' side nor its packets' side
 * transforms: few enough for the first cache. */
TEMPLATE size_t part_lines(const struct shape *shape)
{
    return (size_t)1 << (shape->lines_log - shape->edge_log);
}

/* Those bits. */
TARGET static void in_scratch(const struct shape *shape, float *scratch)
{
    const size_t floats = part_lines(shape) * LANES;
    const uint32_t end = shape->lines_log - shape->edge_log;
    uint32_t bit = shape->set_log;
    for (; bit + 3 <= end; bit += 3)
        passes(scratch, floats, (size_t)LANES << bit, 3);
    if (bit + 2 == end)
        passes(scratch, floats, (size_t)LANES << bit, 2);
    if (bit + 1 == end)
        passes(scratch, floats, (size_t)LANES << bit, 1);
}

/* log2 of the sub-groups of which vectors are in one line of a packet. */
TEMPLATE uint32_t line_subs_log(const struct shape *shape)
{
    const uint32_t subs_log = (uint32_t)__builtin_ctz(shape->sub_groups);
    return LINE_LOG < subs_log ? LINE_LOG : subs_log;
}

TEMPLATE void to_packets(const struct group_task *task, const struct shape *shape, const float *scratch,
                         enum lh_hadamard_type type, uint32_t edge_log, bool stream, struct range *range)
{
    const size_t floats = (size_t)1 << (shape->lines_log + LANES_LOG);
    const size_t distance = floats >> edge_log;
    const size_t lines = distance >> LANES_LOG;
    const uint32_t along_log = LINE_LOG - line_subs_log(shape);
    const uint32_t pair = 1u << PAIR_LOG(type);
    size_t offset[1u << EDGE_LOG_MAX];
    packet_offsets(offset, task, shape, lines, edge_log, type);
    for (size_t line = 0; line < lines; line += (size_t)1 << along_log) {
        const size_t at = packet_place(task, shape, line, type);
        vector v[1u << LINE_LOG][1u << EDGE_LOG_MAX];
        UNROLL(8)
        for (uint32_t w = 0; w < 1u << LINE_LOG; w++) {
            const float *from =
                scratch + (w >> along_log) * floats + (line + (w & ((1u << along_log) - 1))) * LANES;
            UNROLL(8)
            for (uint32_t i = 0; i < 1u << edge_log; i++)
                v[w][i] = load_float(from + i * distance);
            butterflies(v[w], 0, edge_log);
        }
        UNROLL(8)
        for (uint32_t i = 0; i < 1u << edge_log; i++) {
            /* Sub-groups and lines of a cache line are consecutive there. */
            UNROLL(8)
            for (uint32_t w = 0; w < 1u << LINE_LOG; w += pair) {
                const vector both[2] = {v[w][i], v[w + pair - 1][i]};
                store_typed(both, task->out, at + offset[i], w * LANES, type, NULL, stream, range);
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
    const uint32_t along_log = LINE_LOG - line_subs_log(shape);
    const uint32_t pair = 1u << PAIR_LOG(type);
    size_t offset[1u << EDGE_LOG_MAX];
    packet_offsets(offset, task, shape, lines, edge_log, type);
    for (size_t line = 0; line < lines; line += (size_t)1 << along_log) {
        const size_t at = packet_place(task, shape, line, type);
        const bool inside = line + FETCH_LINES < lines;
        const size_t ahead =
            packet_place(task, shape, (line + FETCH_LINES) & (lines - 1), type) + (inside ? 0 : next_group);
        UNROLL(8)
        for (uint32_t w = 0; w < 1u << LINE_LOG; w += pair) {
            vector v[2][1u << EDGE_LOG_MAX];
            UNROLL(8)
            for (uint32_t i = 0; i < 1u << edge_log; i++) {
                vector both[2];
                load_typed(both, task->in, at + offset[i], w * LANES, type, NULL);
                v[0][i] = both[0];
                v[pair - 1][i] = both[pair - 1];
                /* Of long runs, too: a CPU loses track of 2^edge_log places in a page. */
                fetch(task->in, ahead + offset[i], w * LANES, type);
            }
            UNROLL(2)
            for (uint32_t n = 0; n < pair; n++) {
                float *to = scratch + ((w + n) >> along_log) * floats +
                            (line + ((w + n) & ((1u << along_log) - 1))) * LANES;
                scaled_butterflies(v[n], edge_log, task->scale);
                UNROLL(8)
                for (uint32_t i = 0; i < 1u << edge_log; i++)
                    store_float(to + i * distance, v[n][i]);
            }
        }
    }
}

/* ---- each with all values of its constants ------------------------------------------------------------
 */

#define BLOCKS_CASE(shared)                                                                                \
    case shared:                                                                                           \
        if (shared <= LANES_LOG)                                                                           \
            BLOCKS_CALL((shared) <= LANES_LOG ? (shared) : 0);                                             \
        break;
#define BLOCKS_CASES BLOCKS_CASE(0) BLOCKS_CASE(1) BLOCKS_CASE(2) BLOCKS_CASE(3) BLOCKS_CASE(4)
#define EDGE_CASES   EDGE_CASE(0) EDGE_CASE(1) EDGE_CASE(2) EDGE_CASE(3)
#define EDGE_CASE(edge)                                                                                    \
    case edge:                                                                                             \
        if (edge <= EDGE_LOG_MAX)                                                                          \
            EDGE_CALL((edge) <= EDGE_LOG_MAX ? (edge) : 0);                                                \
        break;

/* The part of a sub-group from `line` on, to scratch. */
TEMPLATE void encode_part(const struct group_task *task, const struct shape *shape, size_t sub, size_t line,
                          float *scratch, enum lh_hadamard_type type)
{
#define BLOCKS_CALL(shared) from_blocks(task, sub, line, part_lines(shape), scratch, type, shared)
    switch (shape->shared_log) {
        BLOCKS_CASES
    }
#undef BLOCKS_CALL
    in_scratch(shape, scratch + line * LANES);
}

TEMPLATE bool encode_typed(const struct group_task *task, float *scratch, enum lh_hadamard_type type)
{
    const struct shape shape = shape_of(task, type);
    const size_t lines = (size_t)1 << shape.lines_log;
    struct range range = range_none();
    for (size_t sub = 0; sub < shape.sub_groups; sub++)
        for (size_t line = 0; line < lines; line += part_lines(&shape))
            encode_part(task, &shape, sub, line, scratch + sub * lines * LANES, type);
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

/* The part of a sub-group from `line` on, from scratch. */
TEMPLATE void decode_part(const struct group_task *task, const struct shape *shape, size_t sub, size_t line,
                          float *scratch, enum lh_hadamard_type type, struct range *range)
{
    in_scratch(shape, scratch + line * LANES);
    /* Of a block, what is stored at once. */
    const uint32_t bytes_log =
        shape->set_log - shape->shared_log + LANES_LOG + (type == LH_HADAMARD_F32 ? 2 : 1);
    if (task->stream && 1u << bytes_log >= LINE_BYTES) {
#define BLOCKS_CALL(shared)                                                                                \
    to_blocks(task, sub, line, part_lines(shape), scratch, type, shared, true, range)
        switch (shape->shared_log) {
            BLOCKS_CASES
        }
#undef BLOCKS_CALL
    } else {
#define BLOCKS_CALL(shared)                                                                                \
    to_blocks(task, sub, line, part_lines(shape), scratch, type, shared, false, range)
        switch (shape->shared_log) {
            BLOCKS_CASES
        }
#undef BLOCKS_CALL
    }
}

TEMPLATE bool decode_typed(const struct group_task *task, float *scratch, enum lh_hadamard_type type)
{
    const struct shape shape = shape_of(task, type);
    const size_t lines = (size_t)1 << shape.lines_log;
    struct range range = range_none();
#define EDGE_CALL(edge) from_packets(task, &shape, scratch, type, edge)
    switch (shape.edge_log) {
        EDGE_CASES
    }
#undef EDGE_CALL
    for (size_t sub = 0; sub < shape.sub_groups; sub++)
        for (size_t line = 0; line < lines; line += part_lines(&shape))
            decode_part(task, &shape, sub, line, scratch + sub * lines * LANES, type, &range);
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
    assert(!task->zeroed && task->block_log >= BLOCK_LOG_MIN);
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
    assert(!task->zeroed && task->block_log >= BLOCK_LOG_MIN);
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

TEMPLATE bool combine_bits(float *data, size_t distance, uint32_t bits, float scale)
{
    struct range range = range_none();
    for (size_t at = 0; at < distance; at += LANES) {
        vector v[16];
        UNROLL(16)
        for (uint32_t i = 0; i < 1u << bits; i++)
            load_typed(v + i, data, at, i * distance, LH_HADAMARD_F32, NULL);
        scaled_butterflies(v, bits, scale);
        UNROLL(16)
        for (uint32_t i = 0; i < 1u << bits; i++)
            store_typed(v + i, data, at, i * distance, LH_HADAMARD_F32, NULL, false, &range);
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
