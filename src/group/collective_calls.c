/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collective/operation_digest.h"
#include "collective/schedules.h"
#include "group/bounded_operation.h"
#include "group/group.h"
#include "group/group_operation.h"
#include "group/mesh.h"
#include "message/completion_queue.h"
#include "message/engine.h"

/* ---- calls ----------------------------------------------------------------------------------------- */

/*
 * Starts what the calls of longhaul/collective.h describe.
 *
 * The calls of longhaul/collective.h.
 */

void lh_collective_options_init(struct lh_collective_options *options)
{
    *options = (struct lh_collective_options){.struct_bytes = sizeof *options};
}

/* ---- starting ---------------------------------------------------------------------------------------- */

static int check_options(const struct lh_group *group, const struct lh_collective_options *options)
{
    if (options->struct_bytes != sizeof *options)
        return lh_fail(LH_EINVAL,
                       "lh_collective_options: %zu bytes, %zu expected (call "
                       "lh_collective_options_init())",
                       options->struct_bytes, sizeof *options);
    if (!options->queue)
        return 0;
    if (!group->mesh->threaded)
        return lh_fail(LH_EINVAL, "a completion queue of a collective needs lh_group_attr.thread");
    return completion_queue_check(options->queue, group->mesh->engine);
}

/* counts: by rank; NULL: each has `count`. */
static bool has_elements(const struct lh_group *group, const size_t *counts, size_t count)
{
    for (uint32_t r = 0; counts && r < group->members.size; r++)
        if (counts[r] > 0)
            return true;
    return !counts && count > 0;
}

/* What the elements lie in, by the names of the call. */
static int check_memory(const struct lh_group *group, const struct op_request *request)
{
    const char *name = call_name(request->collective, request->form);
    bool one = request->collective == COLLECTIVE_BROADCAST,
         all = request->collective == COLLECTIVE_ALLTOALL;
    int error = 0;
    if (request->needs_counts && request->collective != COLLECTIVE_GATHER)
        error = lh_fail_if_null(name, all ? "in_counts" : "counts", request->in_counts);
    if (!error && request->needs_counts && request->collective != COLLECTIVE_SCATTER)
        error = lh_fail_if_null(name, all ? "out_counts" : "counts", request->out_counts);
    if (!error && request->needs_in && has_elements(group, request->in_counts, request->count))
        error = lh_fail_if_null(name, one ? "buffer" : "in", request->in);
    if (!error && request->needs_out && has_elements(group, request->out_counts, request->count))
        error = lh_fail_if_null(name, "out", request->out);
    return error;
}

/* ---- overlaps ---------------------------------------------------------------------------------------- */

/* Bytes; SIZE_MAX where they exceed what can be addressed, which is refused later. */
static size_t extent_of(const size_t *counts, size_t count, uint32_t ranks, size_t element_bytes)
{
    size_t elements = 0, bytes;
    for (uint32_t r = 0; r < ranks; r++)
        if (__builtin_add_overflow(elements, counts ? counts[r] : count, &elements))
            return SIZE_MAX;
    return __builtin_mul_overflow(elements, element_bytes, &bytes) ? SIZE_MAX : bytes;
}

struct extents {
    size_t in, out;
    size_t part;      /* from out to the place of this rank's part, where in may be: in place */
    const char *form; /* that, in words; NULL: there is none */
};

static struct extents extents_of(const struct lh_group *group, const struct op_request *request)
{
    enum collective what = request->collective;
    size_t element_bytes = lh_type_bytes(request->type);
    bool parts_in =
        what == COLLECTIVE_REDUCE_SCATTER || what == COLLECTIVE_SCATTER || what == COLLECTIVE_ALLTOALL;
    bool parts_out =
        what == COLLECTIVE_ALLGATHER || what == COLLECTIVE_GATHER || what == COLLECTIVE_ALLTOALL;
    struct extents extents = {
        .in = extent_of(request->in_counts, request->count, parts_in ? group->members.size : 1,
                        element_bytes),
        .out = extent_of(request->out_counts, request->count, parts_out ? group->members.size : 1,
                         element_bytes),
        .form = request->in_place ? "in == out" : NULL,
    };
    if (request->in_place && parts_out) {
        extents.part = extent_of(request->out_counts, request->count, group->members.rank, element_bytes);
        extents.form = "in at this rank's part of out";
    }
    return extents;
}

/* In place is one way to overlap, all others would read what has been overwritten. */
static int check_overlap(const struct lh_group *group, const struct op_request *request, const char *name)
{
    uintptr_t in = (uintptr_t)request->in, out = (uintptr_t)request->out;
    if (!request->needs_in || !request->needs_out || !request->in || !request->out)
        return 0;
    const struct extents extents = extents_of(group, request);
    if (extents.in == SIZE_MAX || extents.out == SIZE_MAX)
        return 0;
    uintptr_t apart = in > out ? in - out : out - in;
    bool overlap = extents.in > 0 && extents.out > 0 && apart < (in > out ? extents.out : extents.in);
    if (!overlap || (extents.form && in >= out && apart == extents.part))
        return 0;
    return lh_fail(LH_EINVAL, "%s: in and out overlap (use two buffers%s%s)", name,
                   extents.form ? ", or " : "", extents.form ? extents.form : "");
}

static int check(const struct lh_group *group, const struct op_request *request, struct lh_collective **op)
{
    const char *name = call_name(request->collective, request->form);
    int error = lh_fail_if_null(name, "group", group);
    if (!error)
        error = lh_fail_if_null(name, "op", op);
    if (error)
        return error;
    if ((unsigned)request->type >= LH_TYPES)
        return lh_fail(LH_EINVAL, "%s: type %d: out of range (0 to %d)", name, (int)request->type,
                       (int)LH_TYPES - 1);
    if ((unsigned)request->reduction >= LH_REDUCTIONS)
        return lh_fail(LH_EINVAL, "%s: reduction %d: out of range (0 to %d)", name, (int)request->reduction,
                       (int)LH_REDUCTIONS - 1);
    if (!reduction_takes(request->reduction, request->type))
        return lh_fail(LH_EINVAL, "%s: %s of %s: reduces the bits of integers only (i32, i64, u8, i8, i16)",
                       name, lh_reduction_name(request->reduction), lh_type_name(request->type));
    if (request->root >= group->members.size)
        return lh_fail(LH_EINVAL, "%s: root %u: out of range (0 to %u)", name, request->root,
                       group->members.size - 1);
    error = check_memory(group, request);
    if (error)
        return error;
    error = check_overlap(group, request, name);
    if (error)
        return error;
    return request->options ? check_options(group, request->options) : 0;
}

/* The one that was named, or the fastest. */
static int find(struct lh_group *group, const struct op_request *request, const struct schedule **schedule)
{
    char names[128];
    const char *name = request->options ? request->options->schedule : NULL;
    if (request->form == CALL_UNEVEN) {
        *schedule = parts_schedule(request->collective);
        return !name || strcmp(name, (*schedule)->name) == 0
                   ? 0
                   : lh_fail(LH_EINVAL, "%s: schedule \"%.32s\" is not known (%s)",
                             call_name(request->collective, request->form), name, (*schedule)->name);
    }
    if (!name) {
        uint64_t elements = layout_elements(request->collective, group->members.size, request->count);
        return choosing_find(&group->paths, request->collective, elements * lh_type_bytes(request->type),
                             schedule);
    }
    *schedule = named_schedule(request->collective, name, names, sizeof names);
    if (*schedule)
        return 0;
    return lh_fail(LH_EINVAL, "%s: schedule \"%.32s\" is not known (%s)",
                   collective_name(request->collective), name, names);
}

static int check_members(struct lh_group *group, const char *name)
{
    for (uint32_t r = 0; r < group->members.size; r++) {
        int error = r == group->members.rank ? 0 : member_link(&group->members, r)->error;
        if (error && error != -LH_ECLOSED) {
            mesh_announce_failed(group->mesh, group->members.of_mesh[r]); /* they may wait for this rank */
            return lh_fail((enum lh_error) - error, "%s: rank %u has failed: %s", name, r,
                           lh_strerror(error));
        }
    }
    return 0;
}

static int begin(struct lh_group *group, const struct op_request *request, struct lh_collective **op)
{
    const struct schedule *schedule;
    int error = check_members(group, call_name(request->collective, request->form));
    if (!error)
        error = find(group, request, &schedule);
    if (!error)
        error = op_create(&group->operations, request, schedule, op);
    if (error)
        return error;
    (*op)->group = group;
    (*op)->number = group->next_operation;
    group->next_operation = (group->next_operation + 1) & ((1u << TAG_OPERATION_BITS) - 1);
    (*op)->next = group->first_op;
    group->first_op = *op;
    if (request->options && request->options->deadline_ns > 0) {
        lh_time now = mesh_now(group->mesh), maximum = LH_TIME_NEVER - 1 - now;
        lh_time deadline = request->options->deadline_ns;
        (*op)->deadline_at = now + (deadline < maximum ? deadline : maximum);
    }
    waiting_wake_before(group->mesh, (*op)->bounded ? 0 : (*op)->deadline_at);
    mesh_begin(*op);
    return 0;
}

/* Checks the request, and begins the operation. What lh_allreduce() returns. */
static int calls_start(struct lh_group *group, const struct op_request *request, struct lh_collective **op)
{
    int error = check(group, request, op);
    if (!error)
        error = engine_check_process(group->mesh->engine);
    if (error)
        return error;
    pthread_mutex_lock(&group->mesh->lock);
    error = begin(group, request, op);
    pthread_mutex_unlock(&group->mesh->lock);
    return error;
}

/* A group that is NULL is refused later. */
static bool is_root(const struct lh_group *group, uint32_t root)
{
    return group && group->members.rank == root;
}

/* ---- the collectives --------------------------------------------------------------------------------- */

int lh_allreduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                 enum lh_reduction reduction, const struct lh_collective_options *options,
                 struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_ALLREDUCE,
                                       .in_place = true,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .reduction = reduction,
                                       .reduces = true,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_reduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
              enum lh_reduction reduction, uint32_t root, const struct lh_collective_options *options,
              struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_REDUCE,
                                       .in_place = true,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .reduction = reduction,
                                       .reduces = true,
                                       .root = root,
                                       .needs_in = true,
                                       .needs_out = is_root(group, root),
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_reduce_scatter(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                      enum lh_reduction reduction, const struct lh_collective_options *options,
                      struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_REDUCE_SCATTER,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .reduction = reduction,
                                       .reduces = true,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_broadcast(struct lh_group *group, void *buffer, size_t count, enum lh_type type, uint32_t root,
                 const struct lh_collective_options *options, struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_BROADCAST,
                                       .in_place = true,
                                       .in = buffer,
                                       .out = buffer,
                                       .count = count,
                                       .type = type,
                                       .root = root,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_allgather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                 const struct lh_collective_options *options, struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_ALLGATHER,
                                       .in_place = true,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_gather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
              uint32_t root, const struct lh_collective_options *options, struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_GATHER,
                                       .in_place = true,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .root = root,
                                       .needs_in = true,
                                       .needs_out = is_root(group, root),
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_scatter(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
               uint32_t root, const struct lh_collective_options *options, struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_SCATTER,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .root = root,
                                       .needs_in = is_root(group, root),
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_alltoall(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                const struct lh_collective_options *options, struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_ALLTOALL,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

/* ---- with parts of any sizes ------------------------------------------------------------------------- */

int lh_gatherv(struct lh_group *group, const void *in, size_t count, void *out, const size_t *counts,
               enum lh_type type, uint32_t root, const struct lh_collective_options *options,
               struct lh_collective **op)
{
    bool at_root = is_root(group, root);
    const struct op_request request = {.collective = COLLECTIVE_GATHER,
                                       .form = CALL_UNEVEN,
                                       .in_place = true,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .out_counts = at_root ? counts : NULL,
                                       .type = type,
                                       .root = root,
                                       .needs_in = true,
                                       .needs_out = at_root,
                                       .needs_counts = at_root,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_scatterv(struct lh_group *group, const void *in, const size_t *counts, void *out, size_t count,
                enum lh_type type, uint32_t root, const struct lh_collective_options *options,
                struct lh_collective **op)
{
    bool at_root = is_root(group, root);
    const struct op_request request = {.collective = COLLECTIVE_SCATTER,
                                       .form = CALL_UNEVEN,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .in_counts = at_root ? counts : NULL,
                                       .type = type,
                                       .root = root,
                                       .needs_in = at_root,
                                       .needs_out = true,
                                       .needs_counts = at_root,
                                       .options = options};
    return calls_start(group, &request, op);
}

int lh_alltoallv(struct lh_group *group, const void *in, const size_t *in_counts, void *out,
                 const size_t *out_counts, enum lh_type type, const struct lh_collective_options *options,
                 struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_ALLTOALL,
                                       .form = CALL_UNEVEN,
                                       .in = in,
                                       .out = out,
                                       .in_counts = in_counts,
                                       .out_counts = out_counts,
                                       .type = type,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .needs_counts = true,
                                       .options = options};
    return calls_start(group, &request, op);
}

/* ---- comparing --------------------------------------------------------------------------------------- */

static int check_buffers(const struct lh_buffer *buffers, uint32_t count, const bool *differs)
{
    int error = count > 0 ? lh_fail_if_null("compare", "buffers", buffers) : 0;
    if (!error && count > 0)
        error = lh_fail_if_null("compare", "differs", differs);
    if (error)
        return error;
    for (uint32_t b = 0; b < count; b++)
        if (!buffers[b].data && buffers[b].bytes > 0)
            return lh_fail(LH_EINVAL, "compare: buffers[%u].data is NULL, and has %zu bytes", b,
                           buffers[b].bytes);
    return 0;
}

/* Digests take a pass over the memory: not for a call that is refused. */
static int check_group(struct lh_group *group, const struct lh_collective_options *options)
{
    int error = options ? check_options(group, options) : 0;
    if (!error)
        error = engine_check_process(group->mesh->engine);
    if (error)
        return error;
    pthread_mutex_lock(&group->mesh->lock);
    error = check_members(group, call_name(COLLECTIVE_ALLGATHER, CALL_COMPARE));
    pthread_mutex_unlock(&group->mesh->lock);
    return error;
}

int lh_compare(struct lh_group *group, const struct lh_buffer *buffers, uint32_t count, bool *differs,
               const struct lh_collective_options *options, struct lh_collective **op)
{
    struct lh_collective_options reliable;
    int error = lh_fail_if_null("compare", "group", group);
    if (!error)
        error = lh_fail_if_null("compare", "op", op);
    if (!error)
        error = check_buffers(buffers, count, differs);
    if (!error)
        error = check_group(group, options);
    if (error)
        return error;
    size_t bytes = (size_t)count * DIGEST_BYTES;
    uint8_t *digests = calloc(group->members.size, bytes > 0 ? bytes : 1);
    if (!digests)
        return lh_fail(LH_ENOMEM, "compare: no memory for %u digests of %u ranks", count,
                       group->members.size);
    uint8_t *own = digests + group->members.rank * bytes;
    for (uint32_t b = 0; b < count; b++)
        digest_of(&buffers[b], own + (size_t)b * DIGEST_BYTES);
    lh_collective_options_init(&reliable);
    if (options)
        reliable = *options;
    reliable.reliable = true;
    const struct op_request request = {.collective = COLLECTIVE_ALLGATHER,
                                       .form = CALL_COMPARE,
                                       .comparison = {digests, count, differs},
                                       .in_place = true,
                                       .in = own,
                                       .out = digests,
                                       .count = bytes,
                                       .type = LH_U8,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .options = &reliable};
    error = calls_start(group, &request, op);
    if (error)
        free(digests);
    return error;
}

int lh_barrier(struct lh_group *group, const struct lh_collective_options *options,
               struct lh_collective **op)
{
    const struct op_request request = {.collective = COLLECTIVE_BARRIER, .type = LH_U8, .options = options};
    return calls_start(group, &request, op);
}

/* ---- their ends -------------------------------------------------------------------------------------- */

static bool is_done(const void *what)
{
    return ((const struct lh_collective *)what)->state == OP_DONE;
}

int lh_collective_test(struct lh_collective *op, struct lh_collective_result *result)
{
    if (!op)
        return lh_fail_if_null("lh_collective_test", "op", op);
    struct mesh *mesh = op->group->mesh;
    pthread_mutex_lock(&mesh->lock);
    if (!is_done(op) && !mesh->polling)
        mesh_poll(mesh);
    bool done = is_done(op);
    if (done && result)
        *result = op->result;
    pthread_mutex_unlock(&mesh->lock);
    return done;
}

static void fail_pending(const struct lh_collective *op, lh_time timeout_ns)
{
    unsigned long long timeout_ms = timeout_ns / LH_NS_PER_MS;
    uint32_t rank = mesh_awaited(op);
    if (rank == LH_NO_RANK)
        lh_fail(LH_ETIMEDOUT, "%s is pending after %llu ms", op->schedule->name, timeout_ms);
    else
        lh_fail(LH_ETIMEDOUT, "%s is pending after %llu ms: blocks of rank %u are missing",
                op->schedule->name, timeout_ms, rank);
}

int lh_collective_wait(struct lh_collective *op, lh_time timeout_ns, struct lh_collective_result *result)
{
    if (!op)
        return lh_fail_if_null("lh_collective_wait", "op", op);
    struct mesh *mesh = op->group->mesh;
    int error = engine_check_process(mesh->engine);
    if (error)
        return error;
    pthread_mutex_lock(&mesh->lock);
    if (!is_done(op) && mesh->engine->workers == LH_NO_WORKERS)
        error = lh_fail(LH_ESTATE, "lh_collective_wait() without workers (use lh_group_progress())");
    else
        error = wait_until(mesh, is_done, op, timeout_ns);
    if (error == -LH_ETIMEDOUT)
        fail_pending(op, timeout_ns);
    if (!error && result)
        *result = op->result;
    pthread_mutex_unlock(&mesh->lock);
    return error;
}

int lh_collective_missing(struct lh_collective *op, uint32_t rank, uint64_t *bytes)
{
    if (!op || !bytes)
        return lh_fail_if_null("lh_collective_missing", op ? "bytes" : "op", NULL);
    struct mesh *mesh = op->group->mesh;
    if (rank >= op->members->size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", rank, op->members->size - 1);
    pthread_mutex_lock(&mesh->lock);
    *bytes = is_done(op) && op->bounded ? op->bounded->missing[rank] : 0;
    pthread_mutex_unlock(&mesh->lock);
    return 0;
}

int64_t lh_collective_ranges(struct lh_collective *op, uint64_t first, struct lh_range *ranges,
                             uint64_t count)
{
    if (!op || (!ranges && count > 0))
        return lh_fail_if_null("lh_collective_ranges", op ? "ranges" : "op", NULL);
    struct mesh *mesh = op->group->mesh;
    pthread_mutex_lock(&mesh->lock);
    int64_t found = 0;
    if (!is_done(op) || op->result.error)
        found = lh_fail(LH_ESTATE, "%s: pending or failed (missing ranges exist only after success)",
                        op->schedule->name);
    else if (op->bounded)
        found = (int64_t)bounded_ranges(op, first, ranges, count);
    pthread_mutex_unlock(&mesh->lock);
    return found;
}

static void cancel(struct lh_collective *op)
{
    if (is_done(op))
        return;
    mesh_abort(op, -LH_ECANCELED, op->members->rank, "canceled");
    waiting_wake(op->group->mesh); /* who polls may wait for it, and nothing else may come */
}

int lh_collective_cancel(struct lh_collective *op)
{
    if (!op)
        return lh_fail_if_null("lh_collective_cancel", "op", op);
    struct mesh *mesh = op->group->mesh;
    pthread_mutex_lock(&mesh->lock);
    cancel(op);
    pthread_mutex_unlock(&mesh->lock);
    return 0;
}

void lh_collective_free(struct lh_collective *op)
{
    if (!op)
        return;
    struct mesh *mesh = op->group->mesh;
    pthread_mutex_lock(&mesh->lock);
    cancel(op);
    struct lh_collective **at = &op->group->first_op;
    while (*at != op)
        at = &(*at)->next;
    *at = op->next;
    mesh_forget(op);
    op_destroy(op);
    pthread_mutex_unlock(&mesh->lock);
}

/* ---- gather ---------------------------------------------------------------------------------------- */

int gather_begin(struct lh_group *group, const void *mine, size_t bytes, void *all,
                 struct lh_collective **op)
{
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.reliable = true;
    options.schedule = "bruck"; /* ranks may know different paths */
    const struct op_request request = {.collective = COLLECTIVE_ALLGATHER,
                                       .in = mine,
                                       .out = all,
                                       .count = bytes,
                                       .type = LH_U8,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .by_rank = true,
                                       .options = &options};
    return calls_start(group, &request, op);
}

int gather_end(struct lh_collective *op, int waited)
{
    struct lh_collective_result result = {0};
    int error = waited;
    if (!error && lh_collective_test(op, &result) && result.error)
        error = lh_fail((enum lh_error) - result.error, "%s", result.message);
    lh_collective_free(op);
    return error;
}

int group_gather(struct lh_group *group, const void *mine, size_t bytes, void *all)
{
    struct lh_collective *op;
    int error = gather_begin(group, mine, bytes, all, &op);
    return error ? error : gather_end(op, lh_collective_wait(op, group->mesh->timeout_ns, NULL));
}
