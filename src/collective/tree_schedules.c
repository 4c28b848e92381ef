/*
 * binomial_pipeline.c - the vertices of a hypercube of l = floor(log2 n) dimensions exchange blocks along
 * dimension j mod l in step j. A vertex is a rank, or a pair of ranks where n is no power of two.
 *
 * Step j crosses a vertex's dimension where bit j mod l of the vertex is set: a crossing. The formula of
 * RDMC 4.4 says the following, when r is the number of steps to the next crossing. In the steps from behind
 * a crossing to the next one a vertex sends the block that it received at the first of them. It receives
 * block j - l, or at a crossing the block j - l of the next crossing; none below 0, and the last in place of
 * those beyond. So a vertex receives a block in each step once blocks have come, each once. The root's
 * vertex sends block j to one for which that step is the only crossing.
 *
 * The two ranks of a pair change roles behind each crossing: one receives from outside and passes the other
 * what it received last and has not passed; the other has received the block that the vertex sends, and
 * sends it. So each has one block to pass at the end, and a last step swaps these. That is
 * ceil(log2 n) + blocks - 1 steps, the least that is possible, for any n.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/binomial_pipeline.h"

#include "collective/schedule/split.h"

/* Where a rank is, counted from the root. */
struct vertex {
    uint32_t number;
    uint32_t member; /* 0 or 1 */
    bool paired;
};

static uint32_t vertices(const struct schedule_shape *shape)
{
    return 1u << log2_floor(shape->ranks);
}

/* The root's vertex is no pair: there is one vertex less to pair than ranks beyond. */
static inline struct vertex vertex_of(const struct schedule_shape *shape, uint32_t rank)
{
    uint32_t place = rank_before(shape, rank, shape->root), count = vertices(shape);
    uint32_t beyond = shape->ranks - count;
    if (place >= count)
        return (struct vertex){place - count + 1, 1, true};
    return (struct vertex){place, 0, place > 0 && place <= beyond};
}

static uint32_t rank_of(const struct schedule_shape *shape, uint32_t number, uint32_t member)
{
    uint32_t place = member ? vertices(shape) + number - 1 : number;
    return rank_after(shape, place, shape->root);
}

static bool is_pair(const struct schedule_shape *shape, uint32_t number)
{
    return number > 0 && number <= shape->ranks - vertices(shape);
}

static uint32_t exchanges(const struct schedule_shape *shape)
{
    return log2_floor(shape->ranks) + shape->blocks - 1;
}

static uint32_t steps(const struct schedule_shape *shape)
{
    return exchanges(shape) + (shape->ranks != vertices(shape));
}

/* ---- a vertex but the root's ------------------------------------------------------------------------- */

/* The vertex's number, rotated so that bit 0 is that of the step's dimension. */
static uint32_t rotated(const struct schedule_shape *shape, uint32_t number, uint32_t step)
{
    uint32_t dimensions = log2_floor(shape->ranks), by = step % dimensions;
    return (number >> by | number << (dimensions - by)) & (vertices(shape) - 1);
}

static bool is_crossing(const struct schedule_shape *shape, uint32_t number, uint32_t step)
{
    return rotated(shape, number, step) & 1;
}

/* The last crossing before a step; below 0: there is none. */
static int64_t crossing_before(const struct schedule_shape *shape, uint32_t number, uint32_t step)
{
    uint32_t highest = log2_floor(rotated(shape, number, step));
    return (int64_t)step + highest - log2_floor(shape->ranks);
}

/* The block that comes from outside in a step; false: none. */
static bool arrives(const struct schedule_shape *shape, uint32_t number, int64_t step, uint32_t *block)
{
    uint32_t dimensions = log2_floor(shape->ranks), last = shape->blocks - 1;
    if (step < 0)
        return false;
    uint32_t at = (uint32_t)step;
    if (is_crossing(shape, number, at))
        at += 1 + (uint32_t)__builtin_ctz(rotated(shape, number, at + 1));
    if (at < dimensions)
        return false;
    *block = at - dimensions < last ? at - dimensions : last;
    return true;
}

/* Whether the vertex has crossed an odd number of times before the step. */
static uint32_t receiver_in(const struct schedule_shape *shape, uint32_t number, uint32_t step)
{
    uint32_t dimensions = log2_floor(shape->ranks), round = step / dimensions;
    uint32_t rest = number & ((1u << (step - round * dimensions)) - 1);
    if (!is_pair(shape, number))
        return 0;
    return (round & (uint32_t)__builtin_parity(number)) ^ (uint32_t)__builtin_parity(rest);
}

/* ---- the pair of a vertex ---------------------------------------------------------------------------- */

/* The last step before this one in which a member of a pair received from outside, unless it is below 0. */
static int64_t receipt_before(const struct schedule_shape *shape, struct vertex v, uint32_t step)
{
    int64_t crossing = crossing_before(shape, v.number, step);
    if (receiver_in(shape, v.number, step) != v.member)
        return crossing;
    return crossing == (int64_t)step - 1 && step > 0 ? crossing_before(shape, v.number, step - 1)
                                                     : (int64_t)step - 1;
}

/* The receiver, and in the last step both, pass the block of their last receipt. */
static bool pass(const struct schedule_shape *shape, struct vertex v, uint32_t step,
                 struct schedule_transfer *transfer)
{
    uint32_t block;
    return arrives(shape, v.number, receipt_before(shape, v, step), &block) &&
           transfer_set(transfer, rank_of(shape, v.number, 1 - v.member),
                        (struct schedule_extent){block, 1}, false);
}

/* ---- transfers --------------------------------------------------------------------------------------- */

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    struct vertex v = vertex_of(shape, rank);
    if (index > 0)
        return false;
    if (step == exchanges(shape) || (v.paired && receiver_in(shape, v.number, step) == v.member))
        return v.paired && pass(shape, v, step, transfer);
    uint32_t peer = v.number ^ 1u << step % log2_floor(shape->ranks);
    uint32_t last = shape->blocks - 1, block = step < last ? step : last;
    if (peer == 0 ||
        (v.number > 0 && !arrives(shape, v.number, crossing_before(shape, v.number, step), &block)))
        return false;
    return transfer_set(transfer, rank_of(shape, peer, receiver_in(shape, peer, step)),
                        (struct schedule_extent){block, 1}, false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    struct vertex v = vertex_of(shape, rank);
    if (index > 0 || v.number == 0)
        return false;
    if (step == exchanges(shape) || receiver_in(shape, v.number, step) != v.member) {
        *peer = rank_of(shape, v.number, 1 - v.member);
        return v.paired;
    }
    uint32_t number = v.number ^ 1u << step % log2_floor(shape->ranks);
    uint32_t sender = is_pair(shape, number) ? 1 - receiver_in(shape, number, step) : 0;
    *peer = rank_of(shape, number, sender);
    return true;
}

const struct schedule pipeline_broadcast = {
    .name = "binomial-pipeline",
    .collective = COLLECTIVE_BROADCAST,
    .steps = steps,
    .send = send,
    .source = source,
};

const struct schedule pipeline_reduce = {
    .name = "binomial-pipeline",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &pipeline_broadcast,
};
