/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/operation_progress.h"

#include <assert.h>
#include <stddef.h>

#include "base/error.h"
#include "collective/operation_digest.h"
#include "collective/schedule.h"
#include "collective/schedules.h"

/* ---- parts ----------------------------------------------------------------------------------------- */

const char *parts_collective_name(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return "gatherv";
    case COLLECTIVE_SCATTER:
        return "scatterv";
    case COLLECTIVE_ALLTOALL:
        return "alltoallv";
    default:
        return NULL;
    }
}

const struct schedule *parts_schedule(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return &sequential_gather;
    case COLLECTIVE_SCATTER:
        return &sequential_scatter;
    default:
        assert(collective == COLLECTIVE_ALLTOALL);
        return &pairwise_alltoall;
    }
}

/* ---- making them ------------------------------------------------------------------------------------- */

static bool is_root(const struct parts_request *request)
{
    return request->rank == request->root;
}

/* What a rank has for another one. */
static uint64_t in_count(const struct parts_request *request, uint32_t rank)
{
    switch (request->collective) {
    case COLLECTIVE_GATHER:
        return rank == request->root ? request->count : 0;
    case COLLECTIVE_SCATTER:
        return is_root(request) ? request->in_counts[rank] : 0;
    default:
        return request->in_counts[rank];
    }
}

static uint64_t out_count(const struct parts_request *request, uint32_t rank)
{
    switch (request->collective) {
    case COLLECTIVE_SCATTER:
        return rank == request->root ? request->count : 0;
    case COLLECTIVE_GATHER:
        return is_root(request) ? request->out_counts[rank] : 0;
    default:
        return request->out_counts[rank];
    }
}

static int add(struct parts *parts, const struct parts_request *request, uint32_t rank, uint64_t elements,
               uint64_t *before, struct part *part)
{
    bool own = rank == request->rank;
    uint64_t per_block = parts->per_block;
    if (elements > LAYOUT_ELEMENTS_MAX - parts->elements)
        return lh_fail(LH_EINVAL, "%s: %llu elements for or of rank %u: out of range",
                       parts_collective_name(request->collective), (unsigned long long)elements, rank);
    uint64_t blocks = own ? 0 : elements / per_block + (elements % per_block > 0);
    if (blocks > SCHEDULE_BLOCKS_MAX - parts->blocks)
        return lh_fail(LH_EINVAL,
                       "%s: %llu elements for or of rank %u: too many blocks (raise block_bytes)",
                       parts_collective_name(request->collective), (unsigned long long)elements, rank);
    *part = (struct part){
        .before = *before, .elements = elements, .first = parts->blocks, .blocks = (uint32_t)blocks};
    *before += elements;
    parts->blocks += (uint32_t)blocks;
    parts->elements += elements;
    return 0;
}

static struct schedule_extent extent_of(const struct part *part)
{
    return (struct schedule_extent){part->first, part->blocks};
}

static void set_extents(struct parts *parts, const struct parts_request *request)
{
    uint32_t ranks = request->ranks, own = request->rank;
    bool gathers = request->collective == COLLECTIVE_GATHER;
    for (uint32_t r = 0; r < ranks; r++) {
        if (request->collective == COLLECTIVE_ALLTOALL) {
            parts->extents[(size_t)own * ranks + r] = extent_of(&parts->in[r]);
            if (r != own)
                parts->extents[(size_t)r * ranks + own] = extent_of(&parts->out[r]);
        } else if (is_root(request)) {
            parts->extents[r] = extent_of(gathers ? &parts->out[r] : &parts->in[r]);
        } else if (r == own) {
            parts->extents[r] = extent_of(gathers ? &parts->in[request->root] : &parts->out[request->root]);
        }
    }
}

static int fill(struct parts *parts, const struct parts_request *request)
{
    uint64_t before = 0;
    int error = 0;
    for (uint32_t r = 0; r < request->ranks && !error; r++)
        error = add(parts, request, r, in_count(request, r), &before, &parts->in[r]);
    parts->in_blocks = parts->blocks;
    before = 0;
    for (uint32_t r = 0; r < request->ranks && !error; r++)
        error = add(parts, request, r, out_count(request, r), &before, &parts->out[r]);
    const struct part *in = &parts->in[request->rank], *out = &parts->out[request->rank];
    if (!error && in->elements != out->elements)
        return lh_fail(LH_EINVAL, "%s: rank %u has %llu elements for itself, but expects %llu",
                       parts_collective_name(request->collective), request->rank,
                       (unsigned long long)in->elements, (unsigned long long)out->elements);
    if (!error)
        set_extents(parts, request);
    return error;
}

static size_t extents_of(const struct parts_request *request)
{
    size_t ranks = request->ranks;
    return request->collective == COLLECTIVE_ALLTOALL ? ranks * ranks : ranks;
}

size_t parts_memory(const struct parts_request *request)
{
    return 2 * (size_t)request->ranks * sizeof(struct part) +
           extents_of(request) * sizeof(struct schedule_extent);
}

int parts_make(const struct parts_request *request, void *memory, struct parts *parts)
{
    struct part *of = memory;
    assert(request->per_block > 0 && request->rank < request->ranks);
    *parts = (struct parts){.ranks = request->ranks,
                            .in = of,
                            .out = of + request->ranks,
                            .extents = (struct schedule_extent *)(of + 2 * (size_t)request->ranks),
                            .per_block = request->per_block};
    return fill(parts, request);
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

/* The part of a block. */
static const struct part *parts_find(const struct parts *parts, uint32_t block)
{
    const struct part *of = block < parts->in_blocks ? parts->in : parts->out;
    uint32_t low = 0,
             high = parts->ranks; /* the last that begins at the block, or before: it is not empty */
    assert(block < parts->blocks);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (of[middle].first <= block)
            low = middle;
        else
            high = middle;
    }
    assert(block - of[low].first < of[low].blocks);
    return &of[low];
}

/* Elements before a block of a part in its buffer; in it. */
static uint64_t parts_before(const struct parts *parts, const struct part *part, uint32_t block)
{
    return part->before + (block - part->first) * parts->per_block;
}

static uint64_t parts_elements(const struct parts *parts, const struct part *part, uint32_t block)
{
    uint64_t left = part->elements - (block - part->first) * parts->per_block;
    return left < parts->per_block ? left : parts->per_block;
}

/* ---- layout ---------------------------------------------------------------------------------------- */

/* A part per rank in the whole row. */
static bool has_parts(enum collective collective)
{
    return collective == COLLECTIVE_REDUCE_SCATTER || collective == COLLECTIVE_ALLGATHER ||
           collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER ||
           collective == COLLECTIVE_ALLTOALL;
}

uint64_t layout_elements(enum collective collective, uint32_t ranks, uint64_t count)
{
    uint64_t factor = has_parts(collective) ? ranks : 1;
    /* An all-to-all has a row per rank. */
    uint64_t rows = collective == COLLECTIVE_ALLTOALL ? ranks : 1;
    return count <= LAYOUT_ELEMENTS_MAX / factor / rows ? count * factor : 0;
}

static uint64_t divided_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by > 0);
}

uint32_t layout_blocks(const struct layout *layout, size_t block_bytes)
{
    uint64_t rows = layout->collective == COLLECTIVE_ALLTOALL ? layout->ranks : 1;
    uint64_t per_block = block_bytes / layout->element_bytes;
    uint64_t parts = layout->ranks;
    assert(per_block > 0);
    if (layout->collective == COLLECTIVE_BARRIER)
        return 1;
    if (layout->parts)
        return layout->parts->blocks + (layout->parts->blocks == 0);
    if (layout->collective == COLLECTIVE_BROADCAST || layout->collective == COLLECTIVE_REDUCE)
        parts = 1;
    uint64_t of_part = divided_up(divided_up(layout->elements, parts), per_block);
    of_part += of_part == 0;
    return of_part <= SCHEDULE_BLOCKS_MAX / parts / rows ? (uint32_t)(of_part * parts) : 0;
}

uint32_t layout_blocks_of_all(const struct layout *layout)
{
    bool rows = layout->collective == COLLECTIVE_ALLTOALL && !layout->parts;
    return rows ? layout->ranks * layout->blocks : layout->blocks;
}

/* Bytes before a block of a row. The remainder's product has at most 48 bits. */
static uint64_t before(const struct layout *layout, uint32_t block)
{
    uint64_t each = layout->elements / layout->blocks, rest = layout->elements % layout->blocks;
    return (each * block + rest * block / layout->blocks) * layout->element_bytes;
}

static uint64_t row_bytes(const struct layout *layout)
{
    return layout->elements * layout->element_bytes;
}

uint64_t layout_work_bytes(const struct layout *layout, bool forwards)
{
    if (layout->parts)
        return 0;
    switch (layout->collective) {
    case COLLECTIVE_REDUCE_SCATTER:
        return row_bytes(layout);
    case COLLECTIVE_REDUCE:
        return layout->rank == layout->root ? 0 : row_bytes(layout);
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
        return forwards && layout->rank != layout->root ? row_bytes(layout) : 0;
    case COLLECTIVE_ALLTOALL:
        return forwards ? layout->ranks * row_bytes(layout) : 0;
    default:
        return 0;
    }
}

size_t layout_bytes(const struct layout *layout, uint32_t block)
{
    if (layout->parts)
        return (size_t)parts_elements(layout->parts, parts_find(layout->parts, block), block) *
               layout->element_bytes;
    uint32_t of_row = block % layout->blocks;
    return (size_t)(before(layout, of_row + 1) - before(layout, of_row));
}

/* ---- the part of a rank ------------------------------------------------------------------------------ */

static uint32_t part_of(const struct layout *layout, uint32_t block)
{
    return block % layout->blocks / (layout->blocks / layout->ranks);
}

static uint64_t part_bytes(const struct layout *layout)
{
    return row_bytes(layout) / layout->ranks;
}

/* Bytes before a block of its part. */
static uint64_t in_part(const struct layout *layout, uint32_t block)
{
    return before(layout, block % layout->blocks) - part_of(layout, block) * part_bytes(layout);
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* Bytes before a block of a part of a given size, in its buffer. */
static uint64_t in_buffer(const struct layout *layout, uint32_t block)
{
    return parts_before(layout->parts, parts_find(layout->parts, block), block) * layout->element_bytes;
}

const uint8_t *layout_from(const struct layout *layout, uint32_t block)
{
    bool part = layout->collective == COLLECTIVE_ALLGATHER || layout->collective == COLLECTIVE_GATHER;
    if (layout->collective == COLLECTIVE_BARRIER)
        return NULL;
    if (layout->parts)
        return layout->in + in_buffer(layout, block);
    if (part) {
        assert(part_of(layout, block) == layout->rank);
        return layout->in + in_part(layout, block);
    }
    return layout->in + before(layout, block % layout->blocks);
}

static uint8_t *place_of_pair(const struct layout *layout, uint32_t block)
{
    uint32_t source = block / layout->blocks;
    if (part_of(layout, block) == layout->rank)
        return layout->out + source * part_bytes(layout) + in_part(layout, block);
    return layout->work + source * row_bytes(layout) + before(layout, block % layout->blocks);
}

uint8_t *layout_to(const struct layout *layout, uint32_t block)
{
    if (layout->parts)
        return layout->out + in_buffer(layout, block);
    switch (layout->collective) {
    case COLLECTIVE_ALLTOALL:
        return place_of_pair(layout, block);
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_SCATTER:
        if (part_of(layout, block) == layout->rank)
            return layout->out + in_part(layout, block);
        return layout->work + before(layout, block);
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_GATHER:
        return (layout->rank == layout->root ? layout->out : layout->work) + before(layout, block);
    case COLLECTIVE_BARRIER:
        return NULL;
    default:
        return layout->out + before(layout, block);
    }
}

static uint64_t own_part(const struct layout *layout, const uint8_t **from, uint8_t **to)
{
    const struct part *in = &layout->parts->in[layout->rank], *out = &layout->parts->out[layout->rank];
    if (in->elements == 0) /* either may be NULL */
        return 0;
    *from = layout->in + in->before * layout->element_bytes;
    *to = layout->out + out->before * layout->element_bytes;
    return *from == *to ? 0 : in->elements * layout->element_bytes;
}

uint64_t layout_own(const struct layout *layout, const uint8_t **from, uint8_t **to)
{
    if (layout->parts)
        return own_part(layout, from, to);
    uint64_t at = layout->rank * part_bytes(layout), bytes = part_bytes(layout);
    *from = layout->in;
    *to = layout->out;
    switch (layout->collective) {
    case COLLECTIVE_ALLTOALL:
        *from += at;
        *to += at;
        break;
    case COLLECTIVE_GATHER:
        *to += layout->rank == layout->root ? at : 0;
        bytes = layout->rank == layout->root ? bytes : 0;
        break;
    case COLLECTIVE_ALLGATHER:
        *to += at;
        break;
    case COLLECTIVE_SCATTER:
        *from += layout->rank == layout->root ? at : 0;
        bytes = layout->rank == layout->root ? bytes : 0;
        break;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_BARRIER:
        return 0;
    default:
        bytes = layout->ranks == 1 ? row_bytes(layout) : 0;
    }
    return *from == *to ? 0 : bytes;
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

/* Pieces of a rank, in each direction: their numbers are in tags. */
#define PIECES_MAX (1u << 28)

/* The first blocks of a transfer, as many as fit. */
static struct piece cut(const struct pieces_plan *plan, const struct schedule_transfer *transfer)
{
    struct piece piece = {.peer = transfer->peer, .first = transfer->first, .reduce = transfer->reduce};
    while (piece.count < transfer->count && piece.count < PIECE_BLOCKS_MAX) {
        size_t bytes = layout_bytes(plan->layout, piece.first + piece.count);
        if (piece.count > 0 && piece.bytes + bytes > plan->piece_bytes)
            break;
        piece.bytes += (uint32_t)bytes;
        piece.count++;
    }
    assert(piece.bytes <= plan->piece_bytes);
    return piece;
}

static void pieces_add(struct pieces *pieces, bool send, struct piece *piece, uint32_t before)
{
    struct piece *to = send ? pieces->sends : pieces->receives;
    uint32_t *count = send ? &pieces->send_count : &pieces->receive_count;
    piece->before = before;
    if (to) {
        piece->number = pieces->numbers[2 * piece->peer + (send ? 0 : 1)]++;
        to[*count] = *piece;
    }
    ++*count;
    if (!send)
        pieces->blocks_received += piece->count;
}

static void add_transfer(const struct pieces_plan *plan, struct pieces *pieces, bool send,
                         struct schedule_transfer *transfer, uint32_t before)
{
    while (transfer->count > 0) {
        struct piece piece = cut(plan, transfer);
        if (piece.bytes > 0 || plan->layout->collective == COLLECTIVE_BARRIER)
            pieces_add(pieces, send, &piece, before);
        transfer->first += piece.count;
        transfer->count -= piece.count;
    }
}

bool pieces_make(const struct pieces_plan *plan, struct pieces *pieces)
{
    uint32_t steps = schedule_steps(plan->schedule, plan->shape), rank = plan->layout->rank;
    assert(!pieces->sends == !pieces->receives);
    for (uint32_t step = 0; step < steps; step++) {
        struct schedule_cursor sends = {0}, receives = {0};
        struct schedule_transfer transfer;
        uint32_t before = pieces->receive_count;
        while (schedule_next_send(plan->schedule, plan->shape, rank, step, &sends, &transfer))
            add_transfer(plan, pieces, true, &transfer, before);
        while (schedule_next_receive(plan->schedule, plan->shape, rank, step, &receives, &transfer))
            add_transfer(plan, pieces, false, &transfer, before);
        if (pieces->send_count > PIECES_MAX || pieces->receive_count > PIECES_MAX ||
            pieces->blocks_received > UINT32_MAX)
            return false;
    }
    return true;
}

/* ---- progress -------------------------------------------------------------------------------------- */

/* In lists, sends and receives are told apart by this bit. */
#define IS_RECEIVE (UINT32_C(1) << 31)

static uint32_t *next_in_list(struct progress *progress, uint32_t item)
{
    return item & IS_RECEIVE ? &progress->next_of_receives[item & ~IS_RECEIVE]
                             : &progress->next_of_sends[item];
}

static void append(struct progress *progress, struct progress_list *list, uint32_t item)
{
    *next_in_list(progress, item) = PROGRESS_NONE;
    if (list->first == PROGRESS_NONE)
        list->first = item;
    else
        *next_in_list(progress, list->last) = item;
    list->last = item;
}

static bool take(struct progress *progress, struct progress_list *list, uint32_t *item)
{
    if (list->first == PROGRESS_NONE)
        return false;
    *item = list->first;
    list->first = *next_in_list(progress, *item);
    return true;
}

/* ---- who waits for whom ------------------------------------------------------------------------------ */

static void examine_send(struct progress *progress, uint32_t send)
{
    const struct piece *piece = &progress->sends[send];
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t next = progress->next[piece->first + i];
        if (next < piece->before) {
            append(progress, &progress->states[next].waiting, send);
            return;
        }
    }
    append(progress, &progress->ready, send);
}

static void examine_receive(struct progress *progress, uint32_t receive)
{
    const struct piece *piece = &progress->receives[receive];
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t next = progress->next[piece->first + i];
        assert(next <= receive);
        if (next != receive) {
            append(progress, &progress->states[next].waiting, receive | IS_RECEIVE);
            return;
        }
    }
    append(progress, &progress->due, receive | IS_RECEIVE);
}

static void chain_receives(struct progress *progress)
{
    uint32_t entry = 0;
    for (uint32_t i = 0; i < progress->receive_count; i++) {
        progress->states[i] = (struct progress_receive){{PROGRESS_NONE, PROGRESS_NONE}, entry};
        entry += progress->receives[i].count;
    }
    for (uint32_t i = progress->receive_count; i-- > 0;) {
        const struct piece *piece = &progress->receives[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            progress->follows[progress->states[i].entry + k] = progress->next[piece->first + k];
            progress->next[piece->first + k] = i;
        }
    }
}

static void note_reduced(struct progress *progress)
{
    for (uint32_t i = 0; i < progress->send_count; i++) {
        const struct piece *piece = &progress->sends[i];
        for (uint32_t k = 0; k < piece->count && piece->reduce; k++)
            progress->reduced_until[piece->first + k] = piece->before; /* sends are in order */
    }
}

void progress_begin(struct progress *progress, uint32_t blocks)
{
    assert(progress->send_count < IS_RECEIVE && progress->receive_count < IS_RECEIVE);
    progress->applied = 0;
    progress->ready = progress->due = (struct progress_list){PROGRESS_NONE, PROGRESS_NONE};
    for (uint32_t b = 0; b < blocks; b++) {
        progress->next[b] = PROGRESS_NONE;
        progress->reduced_until[b] = 0;
        progress->received[b] = false;
    }
    chain_receives(progress);
    note_reduced(progress);
    for (uint32_t i = 0; i < progress->send_count; i++)
        examine_send(progress, i);
}

/* ---- events ------------------------------------------------------------------------------------------ */

bool progress_next_send(struct progress *progress, uint32_t *send)
{
    return take(progress, &progress->ready, send);
}

void progress_on_arrival(struct progress *progress, uint32_t receive)
{
    assert(receive < progress->receive_count);
    examine_receive(progress, receive);
}

bool progress_next_due(struct progress *progress, uint32_t *receive)
{
    uint32_t item;
    if (!take(progress, &progress->due, &item))
        return false;
    *receive = item & ~IS_RECEIVE;
    return true;
}

void progress_on_applied(struct progress *progress, uint32_t receive)
{
    const struct piece *piece = &progress->receives[receive];
    struct progress_receive *state = &progress->states[receive];
    uint32_t item;
    for (uint32_t i = 0; i < piece->count; i++) {
        assert(progress->next[piece->first + i] == receive);
        progress->next[piece->first + i] = progress->follows[state->entry + i];
        progress->received[piece->first + i] = true;
    }
    progress->applied++;
    while (take(progress, &state->waiting, &item)) /* none of them waits for it again */
        if (item & IS_RECEIVE)
            examine_receive(progress, item & ~IS_RECEIVE);
        else
            examine_send(progress, item);
}

bool progress_is_final(const struct progress *progress, uint32_t receive, uint32_t index)
{
    const struct piece *piece = &progress->receives[receive];
    return piece->reduce && progress->follows[progress->states[receive].entry + index] == PROGRESS_NONE &&
           progress->reduced_until[piece->first + index] <= receive;
}

bool progress_is_complete(const struct progress *progress)
{
    return progress->applied == progress->receive_count;
}

/* ---- past ------------------------------------------------------------------------------------------ */

void past_note(struct past *past, uint32_t number, const struct signature *signature)
{
    past->of[number % PAST_OPERATIONS] =
        (struct past_operation){.known = true, .number = number, .signature = *signature};
}

const struct signature *past_find(const struct past *past, uint32_t number)
{
    const struct past_operation *operation = &past->of[number % PAST_OPERATIONS];
    return operation->known && operation->number == number ? &operation->signature : NULL;
}
