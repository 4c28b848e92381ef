/*
 * double_tree.c - the ranks but the root, numbered from 1, are an in-order binary tree: odd numbers are
 * leaves, and the lowest bit that is set tells a number's height. A second tree has them in another order,
 * in which odd ones are inner: of an even count reversed, of an odd count each one place further.
 *
 * The root passes blocks in turn to the roots of the two trees, in each step one to both. A number at depth d
 * gets block j of its tree in step j + d, and passes it to its children in the next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/double_tree.h"

#include "collective/schedule/split.h"

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

static uint32_t rank_of(const struct schedule_shape *shape, uint32_t number, uint32_t tree)
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

static uint32_t steps(const struct schedule_shape *shape)
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
static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
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
           transfer_set(transfer, rank_of(shape, to, tree), block, false);
}

static uint32_t parent_in(const struct schedule_shape *shape, uint32_t rank, uint32_t tree)
{
    uint32_t parent = parent_of(number_of(shape, rank, tree), count_of(shape));
    return parent == 0 ? shape->root : rank_of(shape, parent, tree);
}

/* In both trees the same for few ranks. */
static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
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
    .steps = steps,
    .send = send,
    .source = source,
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
