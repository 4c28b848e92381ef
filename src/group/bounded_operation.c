/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/bounded_operation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/timeout.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "collective/operation_digest.h"
#include "collective/reduce.h"
#include "collective/schedules.h"

#define WORK_ALIGNMENT 64u
#define SEED_STEP      UINT64_C(0x9E3779B97F4A7C15)
#define BITS_A_SECOND  (UINT64_C(8) * LH_NS_PER_S)
#define RATE_BPS       UINT64_C(10000000000) /* where none is known */

/* ---- which operations ---------------------------------------------------------------------------------- */

static bool group_is_bounded(const struct op_context *context)
{
    const bool *bounded = context->bounded;
    uint32_t sites = context->paths->named ? context->paths->order->map.sites : 1;
    return (bounded[0] && context->members->size > sites) || (bounded[1] && sites > 1);
}

static bool transforms(enum lh_type type, enum lh_hadamard_type *as)
{
    switch (type) {
    case LH_F32:
        *as = LH_HADAMARD_F32;
        return true;
    case LH_F16:
        *as = LH_HADAMARD_F16;
        return true;
    case LH_BF16:
        *as = LH_HADAMARD_BF16;
        return true;
    default:
        return false;
    }
}

int bounded_check(const struct op_context *context, const struct op_request *request, bool *is)
{
    const char *name = call_name(request->collective, request->form);
    enum lh_hadamard_type type;
    uint64_t elements = layout_elements(request->collective, context->members->size, request->count);
    bool sums =
        request->collective == COLLECTIVE_ALLREDUCE || request->collective == COLLECTIVE_REDUCE_SCATTER;
    *is = group_is_bounded(context) && !(request->options && request->options->reliable) &&
          (request->form == CALL_UNEVEN || elements * lh_type_bytes(request->type) > BOUNDED_BYTES_MIN);
    if (!*is)
        return 0;
    if (!sums && request->collective != COLLECTIVE_ALLGATHER && request->collective != COLLECTIVE_BROADCAST)
        return lh_fail(LH_EINVAL,
                       "%s: unsupported with the reliability bounded (allreduce, reduce-scatter, "
                       "allgather, broadcast; else set lh_collective_options.reliable)",
                       name);
    if (sums && !transforms(request->type, &type))
        return lh_fail(LH_EINVAL,
                       "%s: the reliability bounded supports f32, f16 and bf16, not %s (set "
                       "lh_collective_options.reliable)",
                       name, lh_type_name(request->type));
    if (sums && request->reduction != LH_SUM && request->reduction != LH_AVG)
        return lh_fail(
            LH_EINVAL,
            "%s: the reliability bounded supports sum and avg, not %s (set lh_collective_options.reliable)",
            name, lh_reduction_name(request->reduction));
    return 0;
}

bool bounded_hop(const struct lh_collective *op, uint32_t rank)
{
    return op->bounded && rank != op->members->rank &&
           member_link(op->members, rank)->lanes[LANE_BOUNDED].connection;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static uint64_t row_bytes(const struct lh_collective *op)
{
    return op->layout.elements * op->layout.element_bytes;
}

/* Whether the encoded sum is apart from the encoded input. */
static bool has_two(const struct lh_collective *op)
{
    return op->schedule->exchanges || op->layout.collective == COLLECTIVE_REDUCE_SCATTER;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + WORK_ALIGNMENT - 1) / WORK_ALIGNMENT * WORK_ALIGNMENT;
}

uint64_t bounded_work_bytes(const struct lh_collective *op)
{
    return op->bounded->transforms ? WORK_ALIGNMENT + aligned(row_bytes(op)) * (has_two(op) ? 2 : 1) : 0;
}

void bounded_set_work(struct lh_collective *op, uint8_t *work)
{
    struct bounded *bounded = op->bounded;
    bounded->in = op->layout.in;
    bounded->out = op->layout.out;
    if (!bounded->transforms)
        return;
    bounded->encoded = work + (WORK_ALIGNMENT - (uintptr_t)work % WORK_ALIGNMENT) % WORK_ALIGNMENT;
    op->layout.in = bounded->encoded;
    op->layout.out = bounded->encoded + (has_two(op) ? aligned(row_bytes(op)) : 0);
}

void bounded_free(struct bounded *bounded)
{
    if (!bounded)
        return;
    free(bounded->counts);
    free(bounded->until);
    free(bounded->dropped);
    free(bounded->over);
    free(bounded->missing);
    free(bounded->zeroes);
    free(bounded);
}

/* ---- contributions ------------------------------------------------------------------------------------- */

static uint32_t granules_of(const struct lh_collective *op, uint32_t block)
{
    return (uint32_t)((layout_bytes(&op->layout, block) + GRANULE_BYTES - 1) / GRANULE_BYTES);
}

static uint16_t *counts_of(const struct lh_collective *op, uint32_t block)
{
    return op->bounded->counts + (size_t)block * op->bounded->granules;
}

static bool is_sum(const struct lh_collective *op)
{
    return op->bounded->transforms;
}

/* Whether a block is there at the start. */
static bool has_block(const struct lh_collective *op, uint32_t block)
{
    const struct layout *layout = &op->layout;
    if (layout->collective == COLLECTIVE_BROADCAST)
        return layout->rank == layout->root;
    return is_sum(op) || block / (layout->blocks / layout->ranks) == layout->rank;
}

static void count_own(struct lh_collective *op)
{
    for (uint32_t block = 0; block < op->layout.blocks; block++)
        for (uint32_t g = 0; g < op->bounded->granules && has_block(op, block); g++)
            counts_of(op, block)[g] = 1;
}

size_t bounded_counts_bytes(const struct lh_collective *op, const struct piece *piece)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < piece->count; i++)
        bytes += granules_of(op, piece->first + i) * sizeof(uint16_t);
    return bytes;
}

/* What is sent of a block: in an exchange this rank's contribution alone. */
static uint16_t count_sent(const struct lh_collective *op, uint32_t block, uint32_t granule)
{
    return op->schedule->exchanges ? 1 : counts_of(op, block)[granule];
}

uint32_t bounded_tag(const struct lh_collective *op, const struct piece *piece, uint8_t *out,
                     size_t *counts)
{
    uint16_t first = count_sent(op, piece->first, 0);
    bool same = first != 0;
    *counts = 0;
    for (uint32_t i = 0; i < piece->count; i++)
        for (uint32_t g = 0; g < granules_of(op, piece->first + i); g++) {
            uint16_t count = count_sent(op, piece->first + i, g);
            same = same && count == first;
            lh_put_be16(out + *counts, count);
            *counts += sizeof count;
        }
    if (same)
        *counts = 0;
    return piece->number | (same ? (uint32_t)first << BOUNDED_NUMBER_BITS : 0);
}

/* ---- phases -------------------------------------------------------------------------------------------- */

/* What receiving a piece takes, but for what its phase waits for anyway. */
static uint64_t weight_of(const struct lh_collective *op, const struct piece *piece)
{
    uint64_t rate_bps = op->context->paths->across.rate_bps;
    return piece->bytes * BITS_A_SECOND / (rate_bps ? rate_bps : RATE_BPS);
}

/* Whether blocks follow one another through the ranks, in as many steps as there are blocks. */
static bool is_pipelined(const struct lh_collective *op)
{
    struct schedule_shape twice = op->shape;
    twice.blocks *= 2;
    return schedule_steps(op->schedule, &twice) > schedule_steps(op->schedule, &op->shape);
}

/* The receives of a phase follow one another: those of a step, which have the same number of receives
 * before them; of a pipeline, whose steps overlap, those of its direction. */
static bool is_same_phase(const struct lh_collective *op, uint32_t one, uint32_t other)
{
    const struct piece *a = &op->pieces.receives[one], *b = &op->pieces.receives[other];
    return op->bounded->pipelined ? a->reduce == b->reduce : a->before == b->before;
}

static void weigh(struct lh_collective *op)
{
    struct bounded *bounded = op->bounded;
    uint32_t count = op->pieces.receive_count, first = 0;
    bounded->pipelined = is_pipelined(op);
    while (first < count) {
        uint32_t end = first;
        lh_time latency_ns = 0;
        for (; end < count && is_same_phase(op, first, end); end++) {
            const struct piece *piece = &op->pieces.receives[end];
            if (!bounded_hop(op, piece->peer))
                continue;
            lh_time half_ns = link_rtt_ns(member_link(op->members, piece->peer)) / 2;
            latency_ns = half_ns > latency_ns ? half_ns : latency_ns;
            bounded->total.weight += weight_of(op, piece);
        }
        bounded->total.weight += latency_ns;
        bounded->total.latency_ns += latency_ns;
        while (first < end)
            bounded->until[first++] = bounded->total;
    }
}

static lh_time deadline_of(const struct lh_collective *op, uint32_t rank)
{
    lh_time told_ns = member_link(op->members, rank)->deadline_ns;
    return told_ns == LH_DEADLINE_AUTO ? op->bounded->deadline_ns : told_ns;
}

static lh_time after(lh_time from, lh_time ns)
{
    return ns < LH_TIME_NEVER - from ? from + ns : LH_TIME_NEVER;
}

/* A peer that has not begun has the slice of a phase. One that has, and is slow, may take what the phases
 * behind it do not need for their latency: where steps overlap, the first ends late, and all is well. */
static lh_time expiry_of(const struct lh_collective *op, uint32_t receive)
{
    const struct bounded *bounded = op->bounded;
    const struct bounded_phase *phase = &bounded->until[receive];
    uint32_t peer = op->pieces.receives[receive].peer;
    lh_time deadline_ns = deadline_of(op, peer), behind_ns = bounded->total.latency_ns - phase->latency_ns;
    const uint64_t weights[] = {phase->weight, bounded->total.weight - phase->weight};
    if (deadline_ns == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    lh_time end_ns = lh_timeout_phase_end(deadline_ns, weights, 2, 0);
    if (op->peers[peer].agreed && !bounded->pipelined && deadline_ns - end_ns > behind_ns)
        end_ns = deadline_ns - behind_ns;
    return after(op->result.started_ns, end_ns);
}

lh_time bounded_until(const struct lh_collective *op, uint32_t rank)
{
    return bounded_hop(op, rank) ? after(op->result.started_ns, deadline_of(op, rank)) : LH_TIME_NEVER;
}

/* The deadlines of all hops have passed. */
static lh_time last_expiry(const struct lh_collective *op)
{
    lh_time last = op->result.started_ns;
    for (uint32_t r = 0; r < op->members->size; r++)
        if (bounded_hop(op, r) && bounded_until(op, r) > last)
            last = bounded_until(op, r);
    return last;
}

/* ---- giving up ----------------------------------------------------------------------------------------- */

/* In place of pieces of which nothing has come. */
static int take_zeroes(struct lh_collective *op)
{
    uint32_t bytes = 1;
    if (op->bounded->zeroes)
        return 0;
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        bytes = op->pieces.receives[i].bytes > bytes ? op->pieces.receives[i].bytes : bytes;
    op->bounded->zeroes = calloc(1, bytes);
    return op->bounded->zeroes ? 0 : lh_fail(LH_ENOMEM, "no memory for a piece of %u bytes", bytes);
}

static int give_up(struct lh_collective *op, uint32_t receive)
{
    struct arrival *arrival = &op->arrivals[receive];
    const struct piece *piece = &op->pieces.receives[receive];
    if (!arrival->arrived) {
        int error = take_zeroes(op);
        if (error)
            return error;
        arrival->arrived = true;
        op->peers[piece->peer].left--;
    }
    loss_free(arrival->loss);
    arrival->loss = loss_of_all();
    arrival->complete = arrival->given_up = true;
    progress_on_arrival(&op->progress, receive);
    return 0;
}

static bool is_awaited(const struct lh_collective *op, uint32_t receive)
{
    return bounded_hop(op, op->pieces.receives[receive].peer) && !op->arrivals[receive].complete;
}

/* Nobody is waited for any more who could not come in time. */
static void excuse(struct lh_collective *op)
{
    for (uint32_t r = 0; r < op->members->size; r++) {
        struct op_peer *peer = &op->peers[r];
        bool needed = peer->receives > 0 || peer->sends > 0;
        if (!bounded_hop(op, r) || peer->agreed || peer->excused || !needed)
            continue;
        peer->excused = true;
        op->unsigned_peers--;
    }
}

/* All that may be given up has come, or was. */
static void note_time(struct lh_collective *op, lh_time now)
{
    if (op->bounded->took_ns == 0 && now > op->result.started_ns)
        op->bounded->took_ns = now - op->result.started_ns;
}

/* What is due; bounded->next_at: nothing is before. */
static int give_up_due(struct lh_collective *op, lh_time now)
{
    struct bounded *bounded = op->bounded;
    bounded->next_at = bounded->expired ? LH_TIME_NEVER : last_expiry(op);
    for (uint32_t i = bounded->pending; i < op->pieces.receive_count; i++) {
        lh_time at = is_awaited(op, i) ? expiry_of(op, i) : LH_TIME_NEVER;
        int error = at <= now ? give_up(op, i) : 0;
        if (error)
            return error;
        if (at > now)
            lh_keep_earlier(&bounded->next_at, at);
    }
    return 0;
}

/* Whose piece a message has. */
struct due {
    const struct lh_collective *op;
    uint32_t rank;
    lh_time now;
};

static bool is_due(const struct lh_collective *op, uint32_t receive, lh_time now)
{
    return is_awaited(op, receive) && expiry_of(op, receive) <= now;
}

/* Whether a message's tag is that of a piece that is given up now. */
static bool has_due(const void *context, uint64_t encoded)
{
    const struct due *due = context;
    const struct op_peer *peer = &due->op->peers[due->rank];
    struct tag tag;
    if (!tag_decode(encoded, &tag) || tag.kind != TAG_PIECE || tag.group != due->op->members->id ||
        tag.operation != due->op->number)
        return false;
    uint32_t number = tag.piece & (BOUNDED_PIECES_MAX - 1);
    return number < peer->receives &&
           is_due(due->op, due->op->receives_of[peer->first_receive + number], due->now);
}

bool bounded_end_due(const struct lh_collective *op, lh_time now)
{
    uint32_t last = LH_NO_RANK;
    if (now < op->bounded->next_at)
        return false;
    for (uint32_t i = op->bounded->pending; i < op->pieces.receive_count; i++) {
        uint32_t rank = op->pieces.receives[i].peer;
        if (rank == last || !is_due(op, i, now))
            continue;
        const struct due due = {op, rank, now};
        link_end_receives(member_link(op->members, rank), has_due, &due);
        last = rank;
    }
    return last != LH_NO_RANK;
}

int bounded_on_expired(struct lh_collective *op, lh_time now)
{
    struct bounded *bounded = op->bounded;
    if (!bounded->expired && last_expiry(op) <= now) {
        bounded->expired = true;
        excuse(op);
    }
    int error = now >= bounded->next_at ? give_up_due(op, now) : 0;
    while (bounded->pending < op->pieces.receive_count && !is_awaited(op, bounded->pending))
        bounded->pending++;
    if (bounded->pending == op->pieces.receive_count)
        note_time(op, now);
    return error;
}

lh_time bounded_next(const struct lh_collective *op)
{
    return op->bounded->next_at;
}

bool bounded_abandons(const struct lh_collective *op, uint32_t rank)
{
    return bounded_hop(op, rank) && (op->bounded->expired || op->bounded->over[rank]);
}

/* ---- the notice ---------------------------------------------------------------------------------------- */

/* The next run of pieces that were not sent to a rank; false: there are no more. */
static bool next_dropped(const struct lh_collective *op, uint32_t rank, uint32_t *from, uint8_t range[8])
{
    uint32_t first = 0, count = 0;
    for (; *from < op->pieces.send_count; ++*from) {
        const struct piece *piece = &op->pieces.sends[*from];
        if (piece->peer != rank)
            continue;
        if (op->bounded->dropped[*from])
            first = count++ == 0 ? piece->number : first;
        else if (count > 0)
            break;
    }
    lh_put_be32(range, first);
    lh_put_be32(range + 4, count);
    return count > 0;
}

static bool gave_up(const struct lh_collective *op, uint32_t rank)
{
    const struct op_peer *peer = &op->peers[rank];
    for (uint32_t i = 0; i < peer->receives; i++)
        if (op->arrivals[op->receives_of[peer->first_receive + i]].given_up)
            return true;
    return false;
}

static int announce_to(struct lh_collective *op, uint32_t rank)
{
    const struct tag tag = {.group = op->members->id, .kind = TAG_OVER, .operation = op->number};
    uint8_t body[8 * BOUNDED_OVER_RANGES];
    uint32_t from = 0;
    size_t bytes;
    bool needed = gave_up(op, rank);
    do { /* each turn takes ranges */
        bytes = 0;
        while (bytes < sizeof body && next_dropped(op, rank, &from, body + bytes))
            bytes += 8;
        if (!needed && bytes == 0)
            return 0;
        int error = link_send_control(member_link(op->members, rank), &tag, body, bytes);
        if (error)
            return error;
        needed = false;
    } while (bytes == sizeof body);
    return 0;
}

int bounded_announce_over(struct lh_collective *op, uint32_t *rank)
{
    for (uint32_t r = 0; r < op->members->size; r++) {
        bool tells = bounded_hop(op, r) && !member_link(op->members, r)->error;
        int error = tells ? announce_to(op, r) : 0;
        if (error && error != -LH_ECLOSED) { /* of a rank that has left nothing is needed any more */
            *rank = r;
            return error;
        }
    }
    return 0;
}

/* Those of a peer's pieces that have not come. */
static int give_up_some(struct lh_collective *op, uint32_t rank, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t receive = op->receives_of[op->peers[rank].first_receive + i];
        int error = is_awaited(op, receive) ? give_up(op, receive) : 0;
        if (error)
            return error;
    }
    return 0;
}

int bounded_on_lost(struct lh_collective *op, uint32_t rank)
{
    return give_up_some(op, rank, 0, op->peers[rank].receives);
}

int bounded_on_over(struct lh_collective *op, uint32_t rank, const uint8_t *data, size_t bytes)
{
    const struct op_peer *peer = &op->peers[rank];
    if (!bounded_hop(op, rank) || bytes % 8 != 0)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a malformed end of an operation", rank);
    op->bounded->over[rank] = true;
    for (; bytes > 0; bytes -= 8, data += 8) {
        uint32_t first = lh_get_be32(data), count = lh_get_be32(data + 4);
        if (first >= peer->receives || count > peer->receives - first)
            return lh_fail(LH_EPROTOCOL, "rank %u did not send piece %u of %u", rank, first,
                           peer->receives);
        int error = give_up_some(op, rank, first, count);
        if (error)
            return error;
    }
    return 0;
}

/* ---- arrivals ------------------------------------------------------------------------------------------ */

/* Contributions that the `index`-th granule of a piece came with. */
static uint16_t count_in(const struct lh_collective *op, const struct arrival *arrival, uint32_t index)
{
    uint16_t count = arrival->contributions;
    if (count == 0)
        count = arrival->counts ? lh_get_be16(arrival->counts + 2 * (size_t)index) : 0;
    return count <= op->members->size ? count : (uint16_t)op->members->size;
}

static void store(const struct lh_collective *op, uint32_t block, uint32_t granule, const uint8_t *from,
                  size_t bytes, uint16_t count)
{
    uint16_t *own = &counts_of(op, block)[granule];
    uint8_t *to = layout_to(&op->layout, block) + (size_t)granule * GRANULE_BYTES;
    if (count > *own) {
        memcpy(to, from, bytes);
        *own = count;
    } else if (*own == 0) {
        memset(to, 0, bytes);
    }
}

static void add(const struct lh_collective *op, uint32_t block, uint32_t granule, uint16_t count)
{
    uint16_t *own = &counts_of(op, block)[granule];
    uint32_t sum = *own + (uint32_t)count;
    *own = (uint16_t)(sum < op->members->size ? sum : op->members->size);
}

void bounded_apply(struct lh_collective *op, uint32_t receive, uint8_t *data)
{
    const struct piece *piece = &op->pieces.receives[receive];
    const struct arrival *arrival = &op->arrivals[receive];
    uint64_t offset = 0, from = 0;
    uint32_t index = 0;
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t block = piece->first + i;
        size_t left = layout_bytes(&op->layout, block);
        for (uint32_t g = 0; left > 0; g++, index++) {
            size_t bytes = left < GRANULE_BYTES ? left : GRANULE_BYTES;
            bool lost = loss_hits(arrival->loss, &from, offset, bytes);
            uint16_t count = lost ? 0 : count_in(op, arrival, index);
            if (lost) {
                op->bounded->missing[piece->peer] += bytes;
                op->result.bytes_received -= bytes;
            }
            if (!piece->reduce)
                store(op, block, g, data + offset, bytes, count);
            else if (count == 0 && data != op->bounded->zeroes)
                memset(data + offset, 0, bytes);
            if (piece->reduce)
                add(op, block, g, count);
            offset += bytes;
            left -= bytes;
        }
    }
}

/* ---- from the call to the end -------------------------------------------------------------------------- */

static int take_memory(struct lh_collective *op)
{
    struct bounded *bounded = op->bounded;
    uint32_t blocks = op->layout.blocks;
    bounded->granules = granules_of(op, blocks - 1); /* the longest: the remainder is spread upwards */
    for (uint32_t b = 0; b < blocks; b++)
        bounded->granules = granules_of(op, b) > bounded->granules ? granules_of(op, b) : bounded->granules;
    bounded->counts = calloc((size_t)blocks * bounded->granules + 1, sizeof *bounded->counts);
    bounded->until = calloc(op->pieces.receive_count + 1u, sizeof *bounded->until);
    bounded->dropped = calloc(op->pieces.send_count + 1u, sizeof *bounded->dropped);
    bounded->over = calloc(op->members->size, sizeof *bounded->over);
    bounded->missing = calloc(op->members->size, sizeof *bounded->missing);
    if (bounded->counts && bounded->until && bounded->dropped && bounded->over && bounded->missing)
        return 0;
    return lh_fail(LH_ENOMEM, "%s: no memory for counts of %u blocks", op->schedule->name, blocks);
}

int bounded_create(struct lh_collective *op)
{
    struct bounded *bounded = calloc(1, sizeof *bounded);
    enum lh_hadamard_type type = LH_HADAMARD_F32;
    if (!bounded)
        return lh_fail(LH_ENOMEM, "%s: no memory", op->schedule->name);
    op->bounded = bounded;
    bounded->deadline_ns = LH_TIME_NEVER;
    bounded->transforms =
        op->layout.collective == COLLECTIVE_ALLREDUCE || op->layout.collective == COLLECTIVE_REDUCE_SCATTER;
    if (op->pieces.send_count > BOUNDED_PIECES_MAX || op->pieces.receive_count > BOUNDED_PIECES_MAX)
        return lh_fail(LH_EINVAL, "%s: more than %u pieces (raise block_bytes)", op->schedule->name,
                       BOUNDED_PIECES_MAX);
    if (bounded->transforms) {
        transforms((enum lh_type)op->signature.type, &type);
        lh_hadamard_init(&bounded->transform, type);
        bounded->transform.block = (uint32_t)(GRANULE_BYTES / op->layout.element_bytes);
        bounded->transform.stride = bounded->transform.block;
    }
    int error = take_memory(op);
    if (!error)
        count_own(op);
    return error;
}

/* All ranks use one seed for a block, another in the next operation. */
static struct lh_hadamard transform_of(const struct lh_collective *op, uint32_t block)
{
    struct lh_hadamard transform = op->bounded->transform;
    transform.seed = (((uint64_t)op->members->id << 32 | op->number) + 1) * SEED_STEP + block;
    return transform;
}

static size_t elements_before(const struct lh_collective *op, const uint8_t *base, const uint8_t *at)
{
    return (size_t)(at - base) / op->layout.element_bytes;
}

int bounded_begin(struct lh_collective *op)
{
    const struct layout *layout = &op->layout;
    struct lh_hadamard_result found;
    weigh(op);
    for (uint32_t block = 0; block < layout->blocks && op->bounded->transforms; block++) {
        uint8_t *to = (uint8_t *)(uintptr_t)layout_from(layout, block);
        const uint8_t *from = op->bounded->in + (to - layout->in);
        const struct lh_hadamard transform = transform_of(op, block);
        size_t count = layout_bytes(layout, block) / layout->element_bytes;
        int error = lh_hadamard_encode(&transform, from, to, count, &found);
        if (error == -LH_ERANGE)
            return lh_fail(LH_ERANGE, "%s: element %zu at rank %u is not finite, or too large",
                           op->schedule->name,
                           elements_before(op, op->bounded->in, from) + (size_t)found.index, layout->rank);
        if (error)
            return error;
    }
    return 0;
}

/* Whether the result has a block. */
static bool is_result(const struct lh_collective *op, uint32_t block)
{
    const struct layout *layout = &op->layout;
    return layout->collective != COLLECTIVE_REDUCE_SCATTER ||
           block / (layout->blocks / layout->ranks) == layout->rank;
}

static bool lacks_some(const struct lh_collective *op, uint32_t block, uint32_t granule)
{
    return counts_of(op, block)[granule] < (is_sum(op) ? op->members->size : 1);
}

/* Returns whether a granule of it lacks something. */
static bool count_missing(struct lh_collective *op, uint32_t block)
{
    size_t left = layout_bytes(&op->layout, block);
    bool lacks = false;
    for (uint32_t g = 0; left > 0; g++) {
        size_t bytes = left < GRANULE_BYTES ? left : GRANULE_BYTES;
        if (lacks_some(op, block, g)) {
            op->result.missing_bytes += bytes;
            lacks = true;
        }
        left -= bytes;
    }
    return lacks;
}

static int decode(struct lh_collective *op, uint32_t block, uint32_t *contributions)
{
    const struct layout *layout = &op->layout;
    const struct lh_hadamard transform = transform_of(op, block);
    const struct lh_hadamard_arrival arrival = {.contributions = contributions,
                                                .contributors = op->members->size};
    uint8_t *from = layout_to(layout, block), *to = op->bounded->out + (from - layout->out);
    size_t count = layout_bytes(layout, block) / layout->element_bytes;
    bool lacks = count_missing(op, block);
    for (uint32_t g = 0; g < granules_of(op, block) && lacks; g++)
        contributions[g] = counts_of(op, block)[g];
    int error = lh_hadamard_decode(&transform, lacks ? &arrival : NULL, from, to, count, NULL);
    if (error == -LH_ERANGE)
        return lh_fail(LH_ERANGE, "%s: the sum at rank %u exceeds %s", op->schedule->name, layout->rank,
                       lh_type_name((enum lh_type)op->signature.type));
    if (!error && op->signature.reduction == LH_AVG)
        reduce_divide((enum element_type)op->signature.type, to, count, layout->ranks);
    return error;
}

int bounded_end(struct lh_collective *op, lh_time now)
{
    uint32_t *contributions = calloc(op->bounded->granules + 1u, sizeof *contributions);
    int error = contributions ? 0 : lh_fail(LH_ENOMEM, "%s: no memory", op->schedule->name);
    note_time(op, now);
    for (uint32_t block = 0; block < op->layout.blocks && !error; block++) {
        if (!is_result(op, block))
            continue;
        if (is_sum(op))
            error = decode(op, block, contributions);
        else
            count_missing(op, block);
    }
    free(contributions);
    return error;
}

/* Ranges one after the other, adjacent ones as one. */
struct range_list {
    struct lh_range *ranges;
    uint64_t first; /* number of the first that is wanted */
    uint64_t maximum;
    uint64_t found;
    uint64_t end; /* of the last that was found */
};

static void add_range(struct range_list *list, uint64_t offset, uint64_t bytes)
{
    list->found += list->found == 0 || offset != list->end;
    uint64_t number = list->found - 1;
    bool wanted = number >= list->first && number - list->first < list->maximum;
    if (wanted && offset != list->end)
        list->ranges[number - list->first] = (struct lh_range){.offset = offset};
    if (wanted)
        list->ranges[number - list->first].bytes += bytes;
    list->end = offset + bytes;
}

uint64_t bounded_ranges(const struct lh_collective *op, uint64_t first, struct lh_range *ranges,
                        uint64_t count)
{
    struct range_list list = {.ranges = ranges, .first = first, .maximum = count, .end = UINT64_MAX};
    for (uint32_t block = 0; block < op->layout.blocks; block++) {
        size_t left = is_result(op, block) ? layout_bytes(&op->layout, block) : 0;
        uint64_t offset = left > 0 ? (uint64_t)(layout_to(&op->layout, block) - op->layout.out) : 0;
        for (uint32_t g = 0; left > 0; g++) {
            size_t bytes = left < GRANULE_BYTES ? left : GRANULE_BYTES;
            if (lacks_some(op, block, g))
                add_range(&list, offset, bytes);
            offset += bytes;
            left -= bytes;
        }
    }
    uint64_t beyond = list.found > first ? list.found - first : 0;
    return beyond < count ? beyond : count;
}
