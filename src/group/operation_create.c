/*
 * operation_create.c - makes operations: what a rank sends and receives, and the memory for that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/operation_create.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "base/error.h"
#include "collective/run/digest.h"
#include "collective/run/names.h"
#include "group/bounded.h"
#include "message/completion_queue.h"

/* ---- arrays ------------------------------------------------------------------------------------------ */

/* Arrays in one piece of memory; without it they are measured. */
struct carver {
    uint8_t *base;
    size_t used;
};

static void *carve(struct carver *carver, size_t count, size_t bytes)
{
    void *at = carver->base ? carver->base + carver->used : NULL;
    carver->used += (count * bytes + 15) / 16 * 16;
    return at;
}

static void carve_arrays(struct lh_collective *op, struct carver *c)
{
    struct progress *progress = &op->progress;
    size_t sends = op->pieces.send_count, receives = op->pieces.receive_count;
    size_t blocks = layout_blocks_of_all(&op->layout);
    op->peers = carve(c, op->group->size, sizeof *op->peers);
    op->pieces.numbers = carve(c, 2 * op->group->size, sizeof *op->pieces.numbers);
    op->pieces.sends = carve(c, sends, sizeof *op->pieces.sends);
    op->pieces.receives = carve(c, receives, sizeof *op->pieces.receives);
    op->next_ready = carve(c, sends, sizeof *op->next_ready);
    op->receives_of = carve(c, receives, sizeof *op->receives_of);
    op->arrivals = carve(c, receives, sizeof *op->arrivals);
    progress->states = carve(c, receives, sizeof *progress->states);
    progress->next_of_sends = carve(c, sends, sizeof *progress->next_of_sends);
    progress->next_of_receives = carve(c, receives, sizeof *progress->next_of_receives);
    progress->next = carve(c, blocks, sizeof *progress->next);
    progress->reduced_until = carve(c, blocks, sizeof *progress->reduced_until);
    progress->received = carve(c, blocks, sizeof *progress->received);
    progress->follows = carve(c, op->pieces.blocks_received, sizeof *progress->follows);
}

/* Receives by peer and number: a piece's tag has its number only. */
static void index_receives(struct lh_collective *op)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        op->peers[op->pieces.receives[i].peer].receives++;
    for (uint32_t r = 0; r < op->group->size; r++) {
        op->peers[r].ready = (struct progress_list){PROGRESS_NONE, PROGRESS_NONE};
        op->peers[r].first_receive = first;
        op->peers[r].left = op->peers[r].receives;
        first += op->peers[r].receives;
    }
    for (uint32_t i = 0; i < op->pieces.receive_count; i++) {
        const struct piece *piece = &op->pieces.receives[i];
        op->receives_of[op->peers[piece->peer].first_receive + piece->number] = i;
    }
    for (uint32_t i = 0; i < op->pieces.send_count; i++)
        op->peers[op->pieces.sends[i].peer].sends++;
    op->unsent = op->pieces.send_count;
    for (uint32_t r = 0; r < op->group->size; r++) {
        op->peers[r].unsent = op->peers[r].sends;
        op->unsigned_peers += op->peers[r].receives > 0 || op->peers[r].sends > 0;
    }
}

static int take_arrays(struct lh_collective *op, const struct pieces_plan *plan)
{
    struct carver carver = {0};
    if (!pieces_make(plan, &op->pieces))
        return lh_fail(LH_EINVAL, "%s: too many blocks (raise block_bytes)", op->schedule->name);
    carve_arrays(op, &carver);
    op->arrays = calloc(1, carver.used);
    if (!op->arrays)
        return lh_fail(LH_ENOMEM, "%s: no memory for %zu bytes of tables (raise block_bytes)",
                       op->schedule->name, carver.used);
    carver = (struct carver){.base = op->arrays};
    carve_arrays(op, &carver);
    op->pieces.send_count = op->pieces.receive_count = 0;
    op->pieces.blocks_received = 0;
    pieces_make(plan, &op->pieces);
    op->progress.sends = op->pieces.sends;
    op->progress.receives = op->pieces.receives;
    op->progress.send_count = op->pieces.send_count;
    op->progress.receive_count = op->pieces.receive_count;
    index_receives(op);
    progress_begin(&op->progress, layout_blocks_of_all(&op->layout));
    return 0;
}

/* ---- work memory ------------------------------------------------------------------------------------- */

/* Whether ranks pass on what is neither theirs nor for them. */
static bool forwards(const struct schedule *schedule)
{
    return strcmp(schedule->name, "pairwise") != 0;
}

/* What it exchanges stays apart from the sum. */
static bool copies_input(const struct lh_collective *op)
{
    return op->schedule->exchanges && op->layout.in == op->layout.out && !op->bounded;
}

static uint64_t work_bytes_of(const struct lh_collective *op)
{
    if (op->group->size == 1)
        return 0;
    return copies_input(op) ? op->layout.elements * op->layout.element_bytes
                            : layout_work_bytes(&op->layout, forwards(op->schedule));
}

/* Untouched memory costs nothing, and touched one is kept for the next operation: page faults cost more than
 * sums. */
static int take_work(struct lh_collective *op)
{
    struct lh_group *group = op->group;
    uint64_t own_bytes = work_bytes_of(op);
    uint64_t bytes = own_bytes + (op->bounded ? bounded_work_bytes(op) : 0);
    if (op->bounded && bytes == own_bytes)
        bounded_set_work(op, NULL);
    if (bytes == 0)
        return 0;
    if (!group->work_taken && group->work_bytes >= bytes) {
        group->work_taken = true;
        op->work = group->work;
        op->work_bytes = group->work_bytes;
    } else {
        void *memory = bytes > SIZE_MAX / 2 ? MAP_FAILED
                                            : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return lh_fail(LH_ENOMEM, "%s: no memory for %llu bytes of blocks", op->schedule->name,
                           (unsigned long long)bytes);
        op->work = memory;
        op->work_bytes = (size_t)bytes;
    }
    op->layout.work = op->work;
    if (op->bounded && bytes > own_bytes)
        bounded_set_work(op, op->work + own_bytes);
    if (copies_input(op)) {
        lh_copy(op->work, op->layout.in, (size_t)bytes);
        op->layout.in = op->work;
    }
    return 0;
}

void op_give_work(struct lh_collective *op)
{
    struct lh_group *group = op->group;
    if (!op->work)
        return;
    if (op->work == group->work) {
        group->work_taken = false;
    } else if (!group->work_taken && op->work_bytes > group->work_bytes) {
        if (group->work)
            munmap(group->work, group->work_bytes);
        group->work = op->work;
        group->work_bytes = op->work_bytes;
    } else {
        munmap(op->work, op->work_bytes);
    }
    op->work = NULL;
}

/* ---- operations -------------------------------------------------------------------------------------- */

static void set_layout(struct lh_collective *op, const struct op_request *request)
{
    op->layout = (struct layout){
        .collective = request->collective,
        .rank = op->group->rank,
        .ranks = op->group->size,
        .root = request->root,
        .elements = layout_elements(request->collective, op->group->size, request->count),
        .element_bytes = lh_type_bytes(request->type),
        .in = request->in,
        .out = request->out,
    };
}

/* Of a v-variant, the parts. */
static int set_parts(struct lh_collective *op, const struct op_request *request, size_t block_bytes)
{
    const struct parts_request parts = {.collective = request->collective,
                                        .rank = op->group->rank,
                                        .ranks = op->group->size,
                                        .root = request->root,
                                        .count = request->count,
                                        .in_counts = request->in_counts,
                                        .out_counts = request->out_counts,
                                        .per_block = block_bytes / op->layout.element_bytes};
    if (request->form != CALL_UNEVEN)
        return 0;
    op->parts_memory = calloc(1, parts_memory(&parts));
    if (!op->parts_memory)
        return lh_fail(LH_ENOMEM, "%s: no memory for the parts of %u ranks",
                       parts_collective_name(request->collective), parts.ranks);
    int error = parts_make(&parts, op->parts_memory, &op->parts);
    op->layout.parts = &op->parts;
    op->layout.elements = op->parts.elements;
    return error;
}

static bool follows_order(const struct lh_group *group, const struct op_request *request)
{
    return !request->by_rank && request->form != CALL_UNEVEN &&
           choosing_uses_map(group, request->collective);
}

static int set_shape(struct lh_collective *op, const struct op_request *request, size_t block_bytes)
{
    if (op->layout.elements == 0 && request->count > 0 && request->form != CALL_UNEVEN)
        return lh_fail(LH_EINVAL, "%s: %zu elements: out of range",
                       call_name(request->collective, request->form), request->count);
    op->layout.blocks = layout_blocks(&op->layout, block_bytes);
    if (op->layout.blocks == 0)
        return lh_fail(LH_EINVAL, "%s: %zu elements in blocks of %zu bytes: too many (raise block_bytes)",
                       call_name(request->collective, request->form), request->count, block_bytes);
    op->shape = (struct schedule_shape){.ranks = op->group->size,
                                        .blocks = op->layout.blocks,
                                        .root = request->root,
                                        .extents = op->layout.parts ? op->parts.extents : NULL};
    if (follows_order(op->group, request)) {
        op->order = op->group->paths.order;
        op->order->users++;
        op->shape.map = &op->order->map;
    }
    op->result.schedule = op->schedule->name;
    op->result.block_bytes =
        op->layout.parts ? block_bytes : layout_bytes(&op->layout, op->layout.blocks - 1);
    return schedule_shape_check(op->schedule, &op->shape);
}

static void sign(struct lh_collective *op, const struct op_request *request, size_t block_bytes)
{
    const struct lh_collective_options *options = request->options;
    op->signature = (struct signature){
        .collective = request->collective,
        .type = request->type,
        .reduction = request->reduces ? request->reduction : 0,
        .root = request->root,
        .count = request->count,
        .block_bytes = block_bytes,
        .reliable = options && options->reliable,
        .form = request->form,
        .paths = follows_order(op->group, request) ? op->group->paths.measured : 0,
    };
    if (request->form == CALL_UNEVEN)
        op->signature.count = 0; /* to whom it has nothing for */
    if (request->form == CALL_COMPARE)
        op->signature.count = request->count / DIGEST_BYTES;
    strncpy(op->signature.schedule, op->schedule->name, SIGNATURE_NAME_MAX - 1);
}

static int fill(struct lh_collective *op, const struct op_request *request)
{
    const struct lh_collective_options *options = request->options;
    size_t block_bytes = op->group->mesh->block_bytes;
    if (options && options->block_bytes > 0 && options->block_bytes < block_bytes)
        block_bytes = options->block_bytes;
    set_layout(op, request);
    if (block_bytes < op->layout.element_bytes)
        return lh_fail(LH_EINVAL, "block_bytes %zu: below an element of %zu bytes", block_bytes,
                       op->layout.element_bytes);
    sign(op, request, block_bytes);
    bool bounded;
    int error = bounded_check(op->group, request, &bounded);
    if (!error)
        error = set_parts(op, request, block_bytes);
    if (!error)
        error = set_shape(op, request, block_bytes);
    const struct pieces_plan plan = {
        .schedule = op->schedule, .shape = &op->shape, .layout = &op->layout, .piece_bytes = block_bytes};
    if (!error)
        error = take_arrays(op, &plan);
    if (!error && bounded)
        error = bounded_create(op);
    if (!error)
        error = take_work(op);
    if (!error && options && options->queue) {
        op->queue = options->queue;
        op->user = options->user;
        error = completion_ring_reserve(&op->queue->ring, LH_OPERATION_COLLECTIVE);
    }
    return error;
}

int op_create(struct lh_group *group, const struct op_request *request, const struct schedule *schedule,
              struct lh_collective **op)
{
    struct lh_collective *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory for a collective");
    made->group = group;
    made->schedule = schedule;
    made->deadline_at = LH_TIME_NEVER;
    made->result.failed_rank = LH_NO_RANK;
    int error = fill(made, request);
    if (error) {
        op_destroy(made);
        return error;
    }
    made->comparison = request->comparison;
    *op = made;
    return 0;
}

void op_destroy(struct lh_collective *op)
{
    op_give_work(op);
    group_order_release(op->order);
    bounded_free(op->bounded);
    free(op->arrays);
    free(op->parts_memory);
    free(op->comparison.digests);
    free(op);
}
