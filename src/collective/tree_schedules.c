/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedules.h"

#include "collective/schedule.h"

/* ---- binomial pipeline ----------------------------------------------------------------------------- */

/*
 * The vertices of a hypercube of l = floor(log2 n) dimensions exchange blocks along
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
 */

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

/* ---- binomial tree --------------------------------------------------------------------------------- */

/*
 * Distances are halved from step to step, so that a rank serves consecutive ones: what it
 * scatters is in one piece, and of sites that are aligned each gets a block once.
 */

static uint32_t binomial_tree_steps(const struct schedule_shape *shape)
{
    return log2_ceil(shape->ranks);
}

static uint32_t distance_in(const struct schedule_shape *shape, uint32_t step)
{
    return 1u << (binomial_tree_steps(shape) - 1 - step);
}

/* How many ranks the one that receives from this one in the step serves, itself among them; 0: there is
 * none. */
static uint32_t passes(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    uint32_t place = rank_before(shape, rank, shape->root);
    if (place % (2 * distance) != 0 || place + distance >= shape->ranks)
        return 0;
    uint32_t left = shape->ranks - place - distance;
    return distance < left ? distance : left;
}

static bool send_all(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                     struct schedule_transfer *transfer)
{
    uint32_t distance = distance_in(shape, step);
    return index == 0 && passes(shape, rank, distance) > 0 &&
           transfer_set(transfer, rank_after(shape, rank, distance),
                        (struct schedule_extent){0, shape->blocks}, false);
}

static bool send_parts(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    struct schedule_extent extent;
    uint32_t distance = distance_in(shape, step), count = passes(shape, rank, distance);
    uint32_t peer = rank_after(shape, rank, distance);
    return count > 0 && parts_at(shape, peer, count, index, &extent) &&
           transfer_set(transfer, peer, extent, false);
}

static bool binomial_tree_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                                 uint32_t index, uint32_t *peer)
{
    uint32_t distance = distance_in(shape, step), place = rank_before(shape, rank, shape->root);
    *peer = rank_before(shape, rank, distance);
    return index == 0 && place % (2 * distance) == distance;
}

const struct schedule binomial_broadcast = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_BROADCAST,
    .steps = binomial_tree_steps,
    .send = send_all,
    .source = binomial_tree_source,
};

const struct schedule binomial_reduce = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &binomial_broadcast,
};

const struct schedule binomial_scatter = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_SCATTER,
    .steps = binomial_tree_steps,
    .send = send_parts,
    .source = binomial_tree_source,
};

const struct schedule binomial_gather = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_GATHER,
    .reverse_of = &binomial_scatter,
};

/* ---- double tree ----------------------------------------------------------------------------------- */

/*
 * The ranks but the root, numbered from 1, are an in-order binary tree: odd numbers are
 * leaves, and the lowest bit that is set tells a number's height. A second tree has them in another order,
 * in which odd ones are inner: of an even count reversed, of an odd count each one place further.
 *
 * The root passes blocks in turn to the roots of the two trees, in each step one to both. A number at depth d
 * gets block j of its tree in step j + d, and passes it to its children in the next.
 */

#define TREES 2u

static uint32_t count_of(const struct schedule_shape *shape)
{
    return shape->ranks - 1;
}

static uint32_t blocks_of(const struct schedule_shape *shape, uint32_t tree)
{
    return (shape->blocks + 1 - tree) / TREES;
}

/* ---- a tree ------------------------------------------------------------------------------------------ */

static uint32_t top_of(uint32_t count)
{
    return 1u << log2_floor(count);
}

/* 0: it has none. */
static uint32_t parent_of(uint32_t number, uint32_t count)
{
    uint32_t bit = number & -number, parent = (number ^ bit) | bit << 1;
    if (number == top_of(count))
        return 0;
    return parent <= count ? parent : number ^ bit;
}

/* Child 0 is before the number, child 1 behind it, where a subtree may be cut off. 0: it has none. */
static uint32_t child_of(uint32_t number, uint32_t count, uint32_t side)
{
    uint32_t half = (number & -number) >> 1;
    if (side == 0)
        return half ? number - half : 0;
    while (half > 0 && number + half > count)
        half >>= 1;
    return half ? number + half : 0;
}

static uint32_t depth_of(uint32_t number, uint32_t count)
{
    uint32_t depth = 0;
    for (; number != top_of(count); depth++)
        number = parent_of(number, count);
    return depth;
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

static uint32_t number_of(const struct schedule_shape *shape, uint32_t rank, uint32_t tree)
{
    uint32_t place = rank_before(shape, rank, shape->root), count = count_of(shape);
    if (tree == 0)
        return place;
    return count % 2 == 0 ? count + 1 - place : place % count + 1;
}

static uint32_t double_tree_rank_of(const struct schedule_shape *shape, uint32_t number, uint32_t tree)
{
    uint32_t count = count_of(shape), place = number;
    if (tree == 1)
        place = count % 2 == 0 ? count + 1 - number : (number + count - 2) % count + 1;
    return rank_after(shape, shape->root, place);
}

/* The tree's number in front is complete, so this is the deepest. */
static uint32_t depth(const struct schedule_shape *shape)
{
    return log2_floor(count_of(shape));
}

static uint32_t double_tree_steps(const struct schedule_shape *shape)
{
    return depth(shape) + blocks_of(shape, 0);
}

/* What a number at this depth gets in a step. */
static bool block_of(const struct schedule_shape *shape, uint32_t tree, uint32_t depth, uint32_t step,
                     struct schedule_extent *block)
{
    *block = (struct schedule_extent){TREES * (step - depth) + tree, 1};
    return step >= depth && step - depth < blocks_of(shape, tree);
}

/* The root to the top of tree index; others to child index % 2 in tree index / 2. */
static bool double_tree_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                             uint32_t index, struct schedule_transfer *transfer)
{
    bool is_root = rank == shape->root;
    uint32_t tree = is_root ? index : index / 2, count = count_of(shape), to, depth = 0;
    struct schedule_extent block;
    if (tree >= TREES)
        return false;
    if (is_root) {
        to = top_of(count);
    } else {
        uint32_t number = number_of(shape, rank, tree);
        to = child_of(number, count, index % 2);
        depth = depth_of(number, count) + 1;
    }
    transfer->count = 0;
    return to == 0 || !block_of(shape, tree, depth, step, &block) ||
           transfer_set(transfer, double_tree_rank_of(shape, to, tree), block, false);
}

static uint32_t parent_in(const struct schedule_shape *shape, uint32_t rank, uint32_t tree)
{
    uint32_t parent = parent_of(number_of(shape, rank, tree), count_of(shape));
    return parent == 0 ? shape->root : double_tree_rank_of(shape, parent, tree);
}

/* In both trees the same for few ranks. */
static bool double_tree_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                               uint32_t index, uint32_t *peer)
{
    (void)step;
    if (rank == shape->root)
        return false;
    *peer = parent_in(shape, rank, index);
    return index == 0 || (index == 1 && *peer != parent_in(shape, rank, 0));
}

const struct schedule tree_broadcast = {
    .name = "double-tree",
    .collective = COLLECTIVE_BROADCAST,
    .steps = double_tree_steps,
    .send = double_tree_send,
    .source = double_tree_source,
};

const struct schedule tree_reduce = {
    .name = "double-tree",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &tree_broadcast,
};

const struct schedule tree_allreduce = {
    .name = "double-tree",
    .collective = COLLECTIVE_ALLREDUCE,
    .first = &tree_reduce,
    .then = &tree_broadcast,
};

/* ---- halving doubling ------------------------------------------------------------------------------ */

/*
 * The ranks below the greatest power of two p exchange halves of what they still have
 * to reduce, then the sums the same way back. Each rank from p on first adds its blocks to those of one
 * below, and gets the sums at the end.
 */

enum phase { FOLD, HALVE, DOUBLE, UNFOLD };

static bool folds(const struct schedule_shape *shape)
{
    return shape->ranks != vertices(shape);
}

static uint32_t halving_doubling_steps(const struct schedule_shape *shape)
{
    return 2 * log2_floor(shape->ranks) + (folds(shape) ? 2 : 0);
}

/* distance: of the partners in an exchange. */
static enum phase phase_of(const struct schedule_shape *shape, uint32_t step, uint32_t *distance)
{
    uint32_t exchanges = log2_floor(shape->ranks);
    *distance = 0;
    if (folds(shape) && step-- == 0)
        return FOLD;
    if (step < exchanges) {
        *distance = 1u << (exchanges - 1 - step);
        return HALVE;
    }
    step -= exchanges;
    if (step == exchanges)
        return UNFOLD;
    *distance = 1u << step;
    return DOUBLE;
}

/* Of one part per rank below p, `count` from a multiple of count on, that of a rank among them. */
static struct schedule_extent parts_around(const struct schedule_shape *shape, uint32_t rank,
                                           uint32_t count)
{
    return split((struct schedule_extent){0, shape->blocks}, vertices(shape), rank & ~(count - 1), count);
}

static bool halving_doubling_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                                  uint32_t index, struct schedule_transfer *transfer)
{
    uint32_t distance, p = vertices(shape);
    struct schedule_extent all = {0, shape->blocks};
    enum phase phase = phase_of(shape, step, &distance);
    if (index > 0)
        return false;
    if (phase == FOLD)
        return rank >= p && transfer_set(transfer, rank - p, all, true);
    if (phase == UNFOLD)
        return rank < shape->ranks - p && transfer_set(transfer, rank + p, all, false);
    if (rank >= p)
        return false;
    uint32_t peer = rank ^ distance;
    if (phase == HALVE)
        return transfer_set(transfer, peer, parts_around(shape, peer, distance), true);
    return transfer_set(transfer, peer, parts_around(shape, rank, distance), false);
}

static bool halving_doubling_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                                    uint32_t index, uint32_t *peer)
{
    uint32_t distance, p = vertices(shape);
    enum phase phase = phase_of(shape, step, &distance);
    if (index > 0)
        return false;
    if (phase == FOLD) {
        *peer = rank + p;
        return *peer < shape->ranks;
    }
    *peer = phase == UNFOLD ? rank - p : rank ^ distance;
    return phase == UNFOLD ? rank >= p : rank < p;
}

const struct schedule halving_doubling = {
    .name = "halving-doubling",
    .collective = COLLECTIVE_ALLREDUCE,
    .steps = halving_doubling_steps,
    .send = halving_doubling_send,
    .source = halving_doubling_source,
};
