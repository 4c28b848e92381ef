/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "collective/operation_digest.h"
#include "collective/operation_progress.h"
#include "collective/reduce.h"
#include "group/bounded_operation.h"
#include "message/completion_queue.h"

/* ---- operation create ------------------------------------------------------------------------------ */

/* Makes operations: what a rank sends and receives, and the memory for that. */

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
    op->peers = carve(c, op->members->size, sizeof *op->peers);
    op->pieces.numbers = carve(c, 2 * op->members->size, sizeof *op->pieces.numbers);
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
    for (uint32_t r = 0; r < op->members->size; r++) {
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
    for (uint32_t r = 0; r < op->members->size; r++) {
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
    if (op->members->size == 1)
        return 0;
    return copies_input(op) ? op->layout.elements * op->layout.element_bytes
                            : layout_work_bytes(&op->layout, forwards(op->schedule));
}

/* Untouched memory costs nothing, and touched one is kept for the next operation: page faults cost more than
 * sums. */
static int take_work(struct lh_collective *op)
{
    struct op_context *context = op->context;
    uint64_t own_bytes = work_bytes_of(op);
    uint64_t bytes = own_bytes + (op->bounded ? bounded_work_bytes(op) : 0);
    if (op->bounded && bytes == own_bytes)
        bounded_set_work(op, NULL);
    if (bytes == 0)
        return 0;
    if (!context->work_taken && context->work_bytes >= bytes) {
        context->work_taken = true;
        op->work = context->work;
        op->work_bytes = context->work_bytes;
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

/* What only passes through is not needed any more. */
static void op_give_work(struct lh_collective *op)
{
    struct op_context *context = op->context;
    if (!op->work)
        return;
    if (op->work == context->work) {
        context->work_taken = false;
    } else if (!context->work_taken && op->work_bytes > context->work_bytes) {
        if (context->work)
            munmap(context->work, context->work_bytes);
        context->work = op->work;
        context->work_bytes = op->work_bytes;
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
        .rank = op->members->rank,
        .ranks = op->members->size,
        .root = request->root,
        .elements = layout_elements(request->collective, op->members->size, request->count),
        .element_bytes = lh_type_bytes(request->type),
        .in = request->in,
        .out = request->out,
    };
}

/* Of a v-variant, the parts. */
static int set_parts(struct lh_collective *op, const struct op_request *request, size_t block_bytes)
{
    const struct parts_request parts = {.collective = request->collective,
                                        .rank = op->members->rank,
                                        .ranks = op->members->size,
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

static bool follows_order(const struct op_context *context, const struct op_request *request)
{
    return !request->by_rank && request->form != CALL_UNEVEN &&
           choosing_uses_map(context->paths, request->collective);
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
    op->shape = (struct schedule_shape){.ranks = op->members->size,
                                        .blocks = op->layout.blocks,
                                        .root = request->root,
                                        .extents = op->layout.parts ? op->parts.extents : NULL};
    if (follows_order(op->context, request)) {
        op->order = op->context->paths->order;
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
        .paths = follows_order(op->context, request) ? op->context->paths->measured : 0,
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
    size_t block_bytes = op->context->block_bytes;
    if (options && options->block_bytes > 0 && options->block_bytes < block_bytes)
        block_bytes = options->block_bytes;
    set_layout(op, request);
    if (block_bytes < op->layout.element_bytes)
        return lh_fail(LH_EINVAL, "block_bytes %zu: below an element of %zu bytes", block_bytes,
                       op->layout.element_bytes);
    sign(op, request, block_bytes);
    bool bounded;
    int error = bounded_check(op->context, request, &bounded);
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

int op_create(struct op_context *context, const struct op_request *request, const struct schedule *schedule,
              struct lh_collective **op)
{
    struct lh_collective *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory for a collective");
    made->context = context;
    made->members = context->members;
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

/* ---- deadlines ------------------------------------------------------------------------------------- */

/* Of a collective. -LH_ENOMEM. */
static int timeout_of(struct op_context *context, uint32_t collective, struct lh_timeout **timeout)
{
    struct lh_timeout_attr attr;
    *timeout = context->timeouts[collective];
    if (*timeout)
        return 0;
    lh_timeout_attr_init(&attr);
    attr.members = context->members->size;
    attr.member = context->members->rank;
    attr.maximum_ns = context->peer_timeout_ns / 2;
    if (attr.minimum_ns > attr.maximum_ns)
        attr.minimum_ns = attr.maximum_ns;
    int error = lh_timeout_create(&attr, &context->timeouts[collective]);
    *timeout = context->timeouts[collective];
    return error;
}

static bool learns(const struct lh_collective *op)
{
    for (uint32_t r = 0; r < op->members->size && op->bounded; r++)
        if (bounded_hop(op, r) && member_link(op->members, r)->deadline_ns == LH_DEADLINE_AUTO)
            return true;
    return false;
}

/* Over hops that may lose something. */
static uint64_t received_bytes(const struct lh_collective *op)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        bytes += bounded_hop(op, op->pieces.receives[i].peer) ? op->pieces.receives[i].bytes : 0;
    return bytes;
}

/* To the rank that is sent most: who receives nothing waits for that one. */
static uint64_t sent_bytes(const struct lh_collective *op)
{
    uint64_t maximum = 0;
    for (uint32_t r = 0; r < op->members->size; r++) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < op->pieces.send_count && bounded_hop(op, r); i++)
            bytes += op->pieces.sends[i].peer == r ? op->pieces.sends[i].bytes : 0;
        maximum = bytes > maximum ? bytes : maximum;
    }
    return maximum;
}

/* The deadline of an operation that begins, if one is learned. -LH_ENOMEM. */
static int deadlines_begin(struct lh_collective *op)
{
    struct lh_timeout *timeout;
    if (!learns(op))
        return 0;
    int error = timeout_of(op->context, op->layout.collective, &timeout);
    if (error)
        return error;
    uint64_t bytes = received_bytes(op);
    op->bounded->expected = bytes;
    if (bytes == 0)
        bytes = sent_bytes(op);
    group_timeout_begin(timeout, bytes > 0 ? bytes : 1, &op->bounded->learned);
    op->bounded->deadline_ns = op->bounded->learned.timeout_ns;
    return 0;
}

static void propose(struct lh_collective *op, const struct lh_timeout_proposal *proposal)
{
    const struct tag tag = {.group = op->members->id,
                            .kind = TAG_TIMEOUT,
                            .operation = TAG_NO_OPERATION,
                            .piece = op->layout.collective};
    uint8_t body[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(proposal, body);
    for (uint32_t r = 0; r < op->members->size; r++)
        if (r != op->members->rank && !member_link(op->members, r)->error)
            link_send_control(member_link(op->members, r), &tag, body,
                              sizeof body); /* one that is lost is no vote */
}

/* An operation has ended well: proposes. */
static int deadlines_end(struct lh_collective *op)
{
    const struct bounded *bounded = op->bounded;
    struct lh_timeout_proposal proposal;
    struct lh_timeout *timeout;
    uint64_t received = bounded->expected;
    if (!learns(op) || bounded->expected == 0 || bounded->took_ns == 0)
        return 0;
    for (uint32_t r = 0; r < op->members->size; r++)
        received -= bounded->missing[r];
    int error = timeout_of(op->context, op->layout.collective, &timeout);
    if (error)
        return error;
    if (!timeout->warm)
        return received > 0 ? lh_timeout_warm_up(timeout, bounded->took_ns, received) : 0;
    error = group_timeout_end(timeout, &bounded->learned, bounded->took_ns, received, &proposal);
    if (!error)
        propose(op, &proposal);
    return error;
}

int deadlines_on_proposal(struct op_context *context, uint32_t rank, uint32_t collective,
                          const uint8_t *data, size_t bytes)
{
    struct lh_timeout_proposal proposal;
    struct lh_timeout *timeout;
    if (collective >= COLLECTIVES || lh_timeout_proposal_decode(data, bytes, &proposal) != 0)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a malformed proposal of a timeout", rank);
    int error = timeout_of(context, collective, &timeout);
    if (!error)
        lh_timeout_propose(timeout, rank, &proposal); /* counts those that it refuses */
    return error;
}

/* ---- operation ------------------------------------------------------------------------------------- */

/* Of a piece of 4 MiB, in blocks that end with a part of a granule. */
#define COUNTS_BYTES_MAX (2u * ((4u << 20) / GRANULE_BYTES + PIECE_BLOCKS_MAX))

/* ---- the end ----------------------------------------------------------------------------------------- */

static void release_arrival(struct arrival *arrival)
{
    if (arrival->bounce)
        link_repost(arrival->bounce); /* of a connection that has ended: its entries say so */
    free(arrival->copy);
    free(arrival->counts);
    loss_free(arrival->loss);
    arrival->bounce = NULL;
    arrival->copy = NULL;
    arrival->counts = NULL;
    arrival->loss = NULL;
}

/* Whoever is asked for a piece from now on answers for himself. */
static void forgive_early(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    struct link *link = member_link(op->members, rank);
    for (enum lane lane = 0; lane < LANES; lane++) {
        link->early[lane] -= peer->early[lane];
        peer->early[lane] = 0;
    }
}

static void end(struct lh_collective *op, lh_time now, int error)
{
    assert(op->state == OP_RUNNING && op->waiting.count == 0);
    op->state = OP_DONE;
    op->result.error = error;
    op->result.ended_ns = now;
    for (uint32_t r = 0; r < op->members->size; r++)
        forgive_early(op, r);
    op_give_work(op);
    if (op->queue) {
        const struct lh_completion entry = {
            .user = op->user,
            .operation = LH_OPERATION_COLLECTIVE,
            .result = {.error = error,
                       .bytes = op->result.bytes_received,
                       .started_ns = op->result.started_ns,
                       .ended_ns = now},
        };
        completion_ring_begin(&op->queue->ring);
        completion_ring_put(&op->queue->ring, &entry);
        completion_ring_end(&op->queue->ring);
    }
    pthread_cond_broadcast(op->context->changed);
}

void op_fail(struct lh_collective *op, lh_time now, const struct notice *notice)
{
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        release_arrival(&op->arrivals[i]);
    sent_cancel(&op->waiting);
    op->result.failed_rank = notice->rank < op->members->size ? notice->rank : LH_NO_RANK;
    snprintf(op->result.message, sizeof op->result.message, "%s", notice->text);
    end(op, now, notice->error);
}

/* ---- sending ----------------------------------------------------------------------------------------- */

/* Where the blocks of a piece are: adjacent ones are one part. Returns the number of parts. */
static uint32_t parts_of(const struct lh_collective *op, const struct piece *piece, struct lh_part *parts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t bytes = layout_bytes(&op->layout, block);
        bool summed = op->progress.received[block] && !op->schedule->exchanges;
        uint8_t *at =
            summed ? layout_to(&op->layout, block) : (uint8_t *)(uintptr_t)layout_from(&op->layout, block);
        if (op->layout.collective == COLLECTIVE_BARRIER || bytes == 0)
            continue;
        if (count > 0 && (uint8_t *)parts[count - 1].address + parts[count - 1].bytes == at)
            parts[count - 1].bytes += bytes;
        else
            parts[count++] = (struct lh_part){.address = at, .bytes = bytes};
    }
    return count;
}

static enum lane lane_of(const struct lh_collective *op, const struct piece *piece)
{
    return link_lane_of(member_link(op->members, piece->peer), piece->bytes, op->bounded != NULL);
}

/* Whether what is sent must not be the memory of the sum: without a deadline a block that comes to be stored
 * says that it has arrived; with one, its receiver may be left behind, and still be waiting for it. */
static bool copies(const struct lh_collective *op, const struct piece *piece, enum lane lane)
{
    return (op->bounded && piece->reduce) ||
           link_copies(member_link(op->members, piece->peer), lane, piece->bytes);
}

static int send_piece(struct lh_collective *op, const struct piece *piece)
{
    struct lh_part parts[PIECE_BLOCKS_MAX];
    uint8_t counts[COUNTS_BYTES_MAX];
    uint32_t count = parts_of(op, piece, parts);
    struct link *link = member_link(op->members, piece->peer);
    enum lane lane = lane_of(op, piece);
    size_t counts_bytes = 0;
    struct tag tag = {.group = op->members->id, .kind = TAG_PIECE, .operation = op->number};
    tag.piece = op->bounded ? bounded_tag(op, piece, counts, &counts_bytes) : piece->number;
    const struct link_message message = {
        .tag = tag,
        .parts = parts,
        .count = count,
        .owner = copies(op, piece, lane) ? NULL : &op->waiting,
        .until = op->bounded ? bounded_until(op, piece->peer) : LH_TIME_NEVER,
    };
    int error = link_send(link, lane, &message);
    if (error || counts_bytes == 0)
        return error;
    tag.kind = TAG_COUNTS; /* after the piece: one that cannot be sent now is tried again */
    tag.piece = piece->number;
    return link_send_control(link, &tag, counts, counts_bytes);
}

/* A peer that has not begun takes only so much. */
static bool may_send(const struct lh_collective *op, const struct piece *piece)
{
    const struct link *link = member_link(op->members, piece->peer);
    enum lane lane = lane_of(op, piece);
    if (!link_may_send(link, lane))
        return false;
    return op->peers[piece->peer].agreed || link->early[lane] < link->lanes[lane].places / 2;
}

static void count_early(struct lh_collective *op, const struct piece *piece)
{
    struct op_peer *peer = &op->peers[piece->peer];
    enum lane lane = lane_of(op, piece);
    if (peer->agreed)
        return;
    peer->early[lane]++;
    member_link(op->members, piece->peer)->early[lane]++;
}

/* One that may leave. -LH_EAGAIN: not now. */
static int send_next(struct lh_collective *op, uint32_t rank, uint32_t send)
{
    const struct piece *piece = &op->pieces.sends[send];
    if (bounded_abandons(op, rank)) {
        op->bounded->dropped[send] = true;
        return 0;
    }
    int error = may_send(op, piece) ? send_piece(op, piece) : -LH_EAGAIN;
    if (error)
        return error;
    count_early(op, piece);
    op->result.bytes_sent += piece->bytes;
    return 0;
}

static int send_to(struct lh_collective *op, uint32_t rank)
{
    struct op_peer *peer = &op->peers[rank];
    while (peer->ready.first != PROGRESS_NONE) {
        uint32_t send = peer->ready.first;
        int error = send_next(op, rank, send);
        if (error)
            return error == -LH_EAGAIN ? 0 : error;
        peer->ready.first = op->next_ready[send];
        peer->unsent--;
        op->unsent--;
    }
    return 0;
}

static int send_ready(struct lh_collective *op, uint32_t *rank)
{
    uint32_t send;
    while (progress_next_send(&op->progress, &send)) {
        struct progress_list *list = &op->peers[op->pieces.sends[send].peer].ready;
        op->next_ready[send] = PROGRESS_NONE;
        if (list->first == PROGRESS_NONE)
            list->first = send;
        else
            op->next_ready[list->last] = send;
        list->last = send;
    }
    for (uint32_t r = 0; r < op->members->size; r++) {
        int error = send_to(op, r);
        if (error) {
            *rank = r;
            return error;
        }
    }
    return 0;
}

/* ---- arrivals ---------------------------------------------------------------------------------------- */

static void reduce(const struct lh_collective *op, uint8_t *to, const void *one, const void *other,
                   size_t bytes)
{
    reduce_elements((enum element_type)op->signature.type, reduction_operation(op->signature.reduction), to,
                    one, other, bytes / op->layout.element_bytes);
}

static uint32_t place_of(const struct lh_collective *op, uint32_t rank)
{
    return op->shape.map ? op->shape.map->place_of[rank] : rank;
}

/* The contributions come in the order of the places; this rank's is added behind that of the place before. */
static void reduce_in_order(const struct lh_collective *op, uint32_t peer, uint32_t block,
                            const uint8_t *data)
{
    const struct layout *layout = &op->layout;
    size_t bytes = layout_bytes(layout, block);
    uint8_t *to = layout_to(layout, block);
    const uint8_t *own = layout_from(layout, block);
    uint32_t place = place_of(op, layout->rank);
    bool first = !op->progress.received[block], own_next = place_of(op, peer) + 1 == place;
    if (!first) {
        reduce(op, to, to, data, bytes);
        if (own_next)
            reduce(op, to, to, own, bytes);
    } else if (place == 0) {
        reduce(op, to, own, data, bytes);
    } else if (own_next) {
        reduce(op, to, data, own, bytes);
    } else {
        lh_copy(to, data, bytes);
    }
}

static void reduce_block(const struct lh_collective *op, uint32_t peer, uint32_t block, const uint8_t *data)
{
    const struct layout *layout = &op->layout;
    uint8_t *to = layout_to(layout, block);
    const uint8_t *own = op->progress.received[block] ? to : layout_from(layout, block);
    size_t bytes = layout_bytes(layout, block);
    if (op->schedule->exchanges)
        reduce_in_order(op, peer, block, data);
    else if (peer < layout->rank) /* by rank: where two add each other's, both get the same bits */
        reduce(op, to, data, own, bytes);
    else
        reduce(op, to, own, data, bytes);
}

static void apply(struct lh_collective *op, uint32_t receive)
{
    const struct piece *piece = &op->pieces.receives[receive];
    struct arrival *arrival = &op->arrivals[receive];
    uint8_t *data = arrival->bounce ? arrival->bounce->memory : arrival->copy;
    if (!data && op->bounded)
        data = op->bounded->zeroes;
    op->result.bytes_received += piece->bytes;
    if (op->bounded)
        bounded_apply(op, receive, data);
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t bytes = layout_bytes(&op->layout, block);
        if (op->layout.collective == COLLECTIVE_BARRIER || bytes == 0)
            continue;
        if (piece->reduce)
            reduce_block(op, piece->peer, block, data);
        else if (!op->bounded)
            lh_copy(layout_to(&op->layout, block), data, bytes);
        if (op->signature.reduction == LH_AVG && !op->bounded &&
            progress_is_final(&op->progress, receive, i))
            reduce_divide((enum element_type)op->signature.type, layout_to(&op->layout, block),
                          bytes / op->layout.element_bytes, op->layout.ranks);
        data += bytes;
    }
    release_arrival(arrival);
}

static bool has_peer(const struct lh_collective *op, uint32_t rank)
{
    return op->peers[rank].receives > 0 || op->peers[rank].sends > 0;
}

/* For a rank: of a v-variant, with what both have for each other. */
static struct signature signature_for(const struct lh_collective *op, uint32_t rank)
{
    struct signature signature = op->signature;
    if (op->layout.parts) {
        signature.count = op->parts.in[rank].elements;
        signature.returned = op->parts.out[rank].elements;
    }
    return signature;
}

int op_on_signature(struct lh_collective *op, uint32_t rank, const struct signature *signature, char *text,
                    size_t size)
{
    const struct signature own = signature_for(op, rank);
    if (signature_differs(&own, op->members->rank, signature, rank, text, size))
        return -LH_EPROTOCOL;
    op->unsigned_peers -= !op->peers[rank].agreed && !op->peers[rank].excused && has_peer(op, rank);
    op->peers[rank].agreed = true;
    forgive_early(op, rank);
    return 0;
}

static int copy_piece(struct arrival *arrival, const uint8_t *data, size_t bytes, size_t of)
{
    arrival->copy = calloc(1, of > 0 ? of : 1);
    if (!arrival->copy)
        return lh_fail(LH_ENOMEM, "no memory for a piece of %zu bytes", of);
    if (bytes > 0)
        lh_copy(arrival->copy, data, bytes);
    return 0;
}

static uint32_t number_of(const struct lh_collective *op, uint32_t piece)
{
    return op->bounded ? piece & (BOUNDED_PIECES_MAX - 1) : piece;
}

/* The receive of a piece of a rank. -LH_EPROTOCOL: there is none. */
static int find_receive(const struct lh_collective *op, uint32_t rank, uint32_t piece, uint32_t *receive)
{
    const struct op_peer *peer = &op->peers[rank];
    uint32_t number = number_of(op, piece);
    assert(op->state == OP_RUNNING && peer->agreed);
    if (number >= peer->receives)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a piece %u of %u", rank, number, peer->receives);
    *receive = op->receives_of[peer->first_receive + number];
    return 0;
}

static void note_arrival(struct lh_collective *op, uint32_t receive)
{
    struct arrival *arrival = &op->arrivals[receive];
    if (!arrival->arrived || (op->bounded && arrival->contributions == 0 && !arrival->counts))
        return;
    arrival->complete = true;
    progress_on_arrival(&op->progress, receive);
}

int op_on_piece(struct lh_collective *op, uint32_t rank, struct op_piece *in)
{
    uint32_t receive = 0;
    int error = find_receive(op, rank, in->piece, &receive);
    if (error)
        return error;
    struct arrival *arrival = &op->arrivals[receive];
    size_t bytes = op->pieces.receives[receive].bytes;
    if (arrival->given_up)
        return 0;
    if (arrival->arrived || (in->bytes != bytes && in->loss != loss_of_all()))
        return lh_fail(LH_EPROTOCOL, "rank %u sent piece %u %s", rank, number_of(op, in->piece),
                       arrival->arrived ? "twice" : "in another length");
    bool whole = in->bounce && in->bytes == bytes;
    error = whole ? 0 : copy_piece(arrival, in->data, in->bytes < bytes ? in->bytes : bytes, bytes);
    if (error)
        return error;
    arrival->bounce = whole ? in->bounce : NULL;
    arrival->loss = in->loss;
    arrival->contributions = op->bounded ? (uint16_t)(in->piece >> BOUNDED_NUMBER_BITS) : 0;
    arrival->arrived = true;
    in->bounce = whole ? NULL : in->bounce;
    in->loss = NULL;
    op->peers[rank].left--;
    note_arrival(op, receive);
    return 0;
}

int op_on_counts(struct lh_collective *op, uint32_t rank, const struct op_piece *in)
{
    uint32_t receive = 0;
    int error = find_receive(op, rank, in->piece, &receive);
    if (error)
        return error;
    struct arrival *arrival = &op->arrivals[receive];
    if (!op->bounded || in->bytes != bounded_counts_bytes(op, &op->pieces.receives[receive]))
        return lh_fail(LH_EPROTOCOL, "rank %u sent contributions of another length", rank);
    if (arrival->complete || arrival->counts)
        return 0;
    arrival->counts = malloc(in->bytes);
    if (!arrival->counts)
        return lh_fail(LH_ENOMEM, "no memory for contributions of %zu bytes", in->bytes);
    memcpy(arrival->counts, in->data, in->bytes);
    note_arrival(op, receive);
    return 0;
}

int op_unload(struct lh_collective *op, uint32_t rank, uint32_t piece)
{
    uint32_t receive = op->receives_of[op->peers[rank].first_receive + number_of(op, piece)];
    struct arrival *arrival = &op->arrivals[receive];
    struct bounce *bounce = arrival->bounce;
    if (!bounce || (bounce->lane != LANE_SMALL && !link_is_short(bounce->link, bounce->lane)))
        return 0;
    size_t bytes = op->pieces.receives[receive].bytes;
    int error = copy_piece(arrival, bounce->memory, bytes, bytes);
    if (error)
        return error;
    arrival->bounce = NULL;
    link_repost(bounce);
    return 0;
}

/* ---- running ----------------------------------------------------------------------------------------- */

int op_begin(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    const struct tag tag = {.group = op->members->id, .kind = TAG_SIGNATURE, .operation = op->number};
    uint8_t body[SIGNATURE_BYTES];
    const uint8_t *from;
    uint8_t *to;
    uint64_t own = layout_own(&op->layout, &from, &to);
    if (own > 0)
        lh_copy(to, from, (size_t)own);
    op->result.started_ns = now;
    *rank = LH_NO_RANK;
    int refused = deadlines_begin(op); /* first: all ranks count an operation, also one that fails */
    if (!refused && op->bounded)
        refused = bounded_begin(op);
    if (refused) {
        *rank = refused == -LH_ERANGE ? op->members->rank : LH_NO_RANK;
        return refused;
    }
    for (uint32_t r = 0; r < op->members->size; r++) {
        if (!has_peer(op, r))
            continue;
        const struct signature signature = signature_for(op, r);
        signature_encode(&signature, body);
        int error = link_send_control(member_link(op->members, r), &tag, body, sizeof body);
        if (error && error != -LH_EPEER && error != -LH_ECLOSED) { /* the others wait for theirs */
            *rank = r;
            return error;
        }
    }
    return 0;
}

static int end_bounded(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    int error = bounded_end(op, now);
    if (!error)
        error = bounded_announce_over(op, rank);
    return error ? error : deadlines_end(op);
}

int op_run(struct lh_collective *op, lh_time now, uint32_t *rank)
{
    uint32_t receive;
    *rank = LH_NO_RANK;
    if (op->state == OP_DONE)
        return 0;
    int error = send_ready(op, rank);
    while (!error && progress_next_due(&op->progress, &receive)) {
        apply(op, receive);
        progress_on_applied(&op->progress, receive);
        error = send_ready(op, rank);
    }
    if (error)
        return error;
    if (progress_is_complete(&op->progress) && op->unsent == 0 && op->waiting.count == 0 &&
        op->unsigned_peers == 0) {
        if (op->bounded)
            error = end_bounded(op, now, rank);
        if (error)
            return error;
        if (op->comparison.digests)
            digests_compare(op->comparison.digests, op->members->size, op->comparison.buffers,
                            op->comparison.differs);
        past_note(&op->context->past, op->number, &op->signature);
        end(op, lh_sdr_now(op->context->clock), 0); /* decoding took a while */
    }
    return 0;
}

bool op_needs(const struct lh_collective *op, uint32_t rank)
{
    return op->state == OP_RUNNING && has_peer(op, rank) &&
           (op->peers[rank].left > 0 || op->peers[rank].unsent > 0 || !op->peers[rank].agreed);
}
