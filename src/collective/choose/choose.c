/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/choose.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "collective/schedule/schedule_table.h"

/* Blocks of a candidate, of all ranks and of a rank, so that a choice of few ranks takes milliseconds. */
#define COST_MAX   (1u << 16)
#define BLOCKS_MAX 1024u
/* Ranks that exchange all they have with all others. */
#define EXCHANGE_MAX 16u
/* From one size of blocks to the next. */
#define SIZE_STEP   4u
#define BLOCK_BYTES 4096u /* smaller ones are no faster */
#define ROUNDING    1e-6

/* Collectives whose data has a part per rank, so that there are as many blocks or a multiple. */
static bool has_parts(const struct schedule *schedule)
{
    switch (schedule->collective) {
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
        return false;
    default:
        return true;
    }
}

int choose_check(const struct choose_question *question)
{
    struct schedule_shape shape = {
        .ranks = question->ranks, .blocks = 1, .root = question->root, .map = question->map};
    if ((unsigned)question->collective >= COLLECTIVES)
        return lh_fail(LH_EINVAL, "collective %u: out of range (0 to %u)", (unsigned)question->collective,
                       (unsigned)COLLECTIVES - 1);
    if (question->bytes == 0 || question->unit_bytes == 0 ||
        question->block_bytes_max < question->unit_bytes)
        return lh_fail(LH_EINVAL, "%s of %llu bytes in blocks of %llu: out of range (at least an element)",
                       collective_name(question->collective), (unsigned long long)question->bytes,
                       (unsigned long long)question->block_bytes_max);
    return schedule_shape_check(schedule_find(question->collective, NULL), &shape);
}

struct schedule_shape choose_shape(const struct choose_question *question, const struct choice *choice)
{
    return (struct schedule_shape){
        .ranks = question->ranks, .blocks = choice->blocks, .root = question->root, .map = question->map};
}

/* Blocks of at most that many bytes, of a whole number of elements. */
static uint32_t blocks_for(const struct choose_question *question, const struct schedule *schedule,
                           uint64_t block_bytes)
{
    uint64_t units = (question->bytes + question->unit_bytes - 1) / question->unit_bytes;
    uint64_t most = block_bytes / question->unit_bytes, blocks;
    most = most > 0 ? most : 1;
    if (schedule->collective == COLLECTIVE_BARRIER)
        return 1;
    if (has_parts(schedule)) {
        uint64_t part = (units + question->ranks - 1) / question->ranks;
        blocks = question->ranks * ((part + most - 1) / most);
    } else {
        blocks = (units + most - 1) / most;
    }
    return blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX + 1;
}

static size_t memory_of(const struct choose_question *question, uint32_t blocks)
{
    struct schedule_shape shape = {.ranks = question->ranks, .blocks = blocks, .map = question->map};
    return flow_time_memory(&shape);
}

/* Enough for one of each part. */
static uint32_t blocks_most(const struct choose_question *question)
{
    uint32_t most = COST_MAX / question->ranks;
    most = most < BLOCKS_MAX ? most : BLOCKS_MAX;
    return most > question->ranks ? most : question->ranks;
}

size_t choose_memory(const struct choose_question *question)
{
    return memory_of(question, blocks_most(question));
}

static void insert(struct choice *choices, uint32_t count, struct choice choice)
{
    uint32_t at = count < CHOOSE_MAX ? count : CHOOSE_MAX - 1;
    if (count == CHOOSE_MAX && choices[at].seconds <= choice.seconds)
        return;
    for (; at > 0 && choices[at - 1].seconds > choice.seconds; at--)
        choices[at] = choices[at - 1];
    choices[at] = choice;
}

static bool consider(const struct choose_question *question, struct choice *choice, void *memory)
{
    struct schedule_shape shape = choose_shape(question, choice);
    if (schedule_shape_check(choice->schedule, &shape) != 0)
        return false;
    choice->block_bytes = (double)question->bytes / choice->blocks;
    choice->seconds =
        flow_time(choice->schedule, &shape,
                  choice->schedule->collective == COLLECTIVE_BARRIER ? 1 : (double)question->bytes,
                  question->network, NULL, memory);
    return true;
}

/* Of the sizes of blocks from the greatest on, those that fit; where none does, the greatest. */
static uint32_t add_schedule(const struct choose_question *question, const struct schedule *schedule,
                             void *memory, struct choice *choices, uint32_t count)
{
    uint32_t last = 0, most = blocks_most(question);
    for (uint64_t bytes = question->block_bytes_max;; bytes /= SIZE_STEP) {
        struct choice choice = {.schedule = schedule, .blocks = blocks_for(question, schedule, bytes)};
        if (choice.blocks > most &&
            last == 0) /* larger blocks than messages: the time is nearly the same */
            choice.blocks = most;
        if (choice.blocks > most)
            break;
        if (choice.blocks != last && consider(question, &choice, memory)) {
            insert(choices, count, choice);
            count += count < CHOOSE_MAX;
        }
        last = choice.blocks;
        if (bytes / SIZE_STEP < BLOCK_BYTES || bytes / SIZE_STEP < question->unit_bytes ||
            bytes / SIZE_STEP < question->block_bytes_min)
            break;
    }
    return count;
}

/* Of larger blocks, so fewer messages; or as fast but for rounding, and of fewer steps. */
static bool is_calmer(const struct choose_question *question, const struct choice *one,
                      const struct choice *other)
{
    struct schedule_shape of_one = choose_shape(question, one), of_other = choose_shape(question, other);
    if (one->block_bytes < other->block_bytes || one->block_bytes > other->block_bytes)
        return one->block_bytes > other->block_bytes;
    if (one->seconds > other->seconds * (1 + ROUNDING))
        return false;
    return schedule_steps(one->schedule, &of_one) < schedule_steps(other->schedule, &of_other);
}

/* The first is the calmest of those that are as fast. */
static void prefer_calm(const struct choose_question *question, struct choice *choices, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count && choices[i].seconds <= choices[0].seconds * (1 + CHOOSE_TIE); i++)
        if (is_calmer(question, &choices[i], &choices[best]))
            best = i;
    struct choice first = choices[best];
    for (uint32_t i = best; i > 0; i--)
        choices[i] = choices[i - 1];
    choices[0] = first;
}

static bool is_candidate(const struct choose_question *question, const struct schedule *schedule)
{
    return schedule->collective == question->collective &&
           !(schedule->exchanges && question->ranks > EXCHANGE_MAX);
}

uint32_t choose(const struct choose_question *question, void *memory, struct choice choices[CHOOSE_MAX])
{
    uint32_t count = 0;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        if (question->only ? *s == question->only : is_candidate(question, *s))
            count = add_schedule(question, *s, memory, choices, count);
    assert(count > 0);
    prefer_calm(question, choices, count);
    return count;
}
