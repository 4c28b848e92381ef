/*
 * pmpi_calls.c - the collectives that stand before those of MPI.
 *
 * Each first decides whether Longhaul takes the call, by arguments that MPI requires to be equal at all
 * ranks. Types of data that is only moved may differ between ranks, as long as their signatures are equal:
 * then their sizes are, and data whose layout is not that of its bytes is packed and unpacked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/mpi/pmpi_shim.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a call waits between two looks at MPI. */
#define LOOK_MIN_NS (50 * LH_NS_PER_US)
#define LOOK_MAX_NS LH_NS_PER_MS
/* Before that, as long as a site takes for some 100 KiB: then a pause would cost more than the processor. */
#define LOOKS_BUSY 2000
/* MPI reduces at most that at once: for 64 MiB Open MPI 4.1 may call itself until the stack ends. */
#define REDUCE_BYTES ((size_t)4 << 20)
/* A call of MPI_Pack packs at most that, as it counts in int. */
#define PACK_BYTES ((MPI_Count)1 << 30)

/* ---- waiting ------------------------------------------------------------------------------------------- */

/* Whether a rank of a group has died; then its text is that of lh_last_error(). One that has closed the group
 * has not: its calls are complete, and it has freed the communicator. */
static bool has_failed(struct lh_group *group)
{
    char text[96];
    for (uint32_t r = 0; r < lh_group_size(group); r++)
        if (lh_group_error(group, r) == -LH_EPEER) {
            snprintf(text, sizeof text, "rank %u has failed: %s", r, lh_strerror(-LH_EPEER));
            lh_error_set(LH_EPEER, text);
            return true;
        }
    return false;
}

/* Waits for the end of an operation whose call has returned `error`. Meanwhile MPI makes progress: a peer may
 * wait for a message that this rank has sent before. whole: the larger group that the operation's is a part
 * of; a rank of it that dies ends the wait. NULL: none. */
static int complete(MPI_Comm comm, int error, struct lh_collective *op, struct lh_group *whole)
{
    struct lh_collective_result result;
    lh_time look = LOOK_MIN_NS;
    int is_there;
    if (error)
        return pmpi_raise(comm, lh_last_error());
    while ((error = lh_collective_wait(op, look, &result)) == -LH_ETIMEDOUT &&
           !(whole && has_failed(whole))) {
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
        look = 2 * look < LOOK_MAX_NS ? 2 * look : LOOK_MAX_NS;
    }
    int raised = error ? pmpi_raise(comm, lh_last_error()) : MPI_SUCCESS;
    lh_collective_free(op);
    return !error && result.error ? pmpi_raise(comm, result.message) : raised;
}

static int out_of_memory(MPI_Comm comm)
{
    return pmpi_raise(comm, "no memory for the data of a collective");
}

/* ---- reductions ---------------------------------------------------------------------------------------- */

enum element_kind { FLOAT, SIGNED, UNSIGNED, BITS };

#define AS_INT(type) (sizeof(type) == 8 ? LH_I64 : sizeof(type) == 4 ? LH_I32 : LH_I16)

/* Unsigned integers are summed as signed ones: both wrap around. */
static const struct element {
    MPI_Datatype type;
    enum lh_type as;
    enum element_kind kind;
} ELEMENTS[] = {
    {MPI_FLOAT, LH_F32, FLOAT},
    {MPI_DOUBLE, LH_F64, FLOAT},
    {MPI_INT, AS_INT(int), SIGNED},
    {MPI_LONG, AS_INT(long), SIGNED},
    {MPI_LONG_LONG, LH_I64, SIGNED},
    {MPI_SHORT, LH_I16, SIGNED},
    {MPI_SIGNED_CHAR, LH_I8, SIGNED},
    {MPI_INT8_T, LH_I8, SIGNED},
    {MPI_INT16_T, LH_I16, SIGNED},
    {MPI_INT32_T, LH_I32, SIGNED},
    {MPI_INT64_T, LH_I64, SIGNED},
    {MPI_AINT, AS_INT(MPI_Aint), SIGNED},
    {MPI_OFFSET, AS_INT(MPI_Offset), SIGNED},
    {MPI_COUNT, AS_INT(MPI_Count), SIGNED},
    {MPI_UNSIGNED_CHAR, LH_U8, UNSIGNED},
    {MPI_UINT8_T, LH_U8, UNSIGNED},
    {MPI_UNSIGNED_SHORT, LH_I16, UNSIGNED},
    {MPI_UNSIGNED, AS_INT(unsigned), UNSIGNED},
    {MPI_UNSIGNED_LONG, AS_INT(unsigned long), UNSIGNED},
    {MPI_UNSIGNED_LONG_LONG, LH_I64, UNSIGNED},
    {MPI_UINT16_T, LH_I16, UNSIGNED},
    {MPI_UINT32_T, LH_I32, UNSIGNED},
    {MPI_UINT64_T, LH_I64, UNSIGNED},
    {MPI_BYTE, LH_U8, BITS},
};

static const struct {
    MPI_Op op;
    enum lh_reduction as;
} REDUCTIONS[] = {
    {MPI_SUM, LH_SUM},   {MPI_PROD, LH_PROD}, {MPI_MIN, LH_MIN},   {MPI_MAX, LH_MAX},
    {MPI_BAND, LH_BAND}, {MPI_BOR, LH_BOR},   {MPI_BXOR, LH_BXOR},
};

struct reduction {
    enum lh_type type;
    enum lh_reduction reduction;
    size_t element_bytes;
};

static bool applies(enum lh_reduction reduction, const struct element *element)
{
    switch (reduction) {
    case LH_SUM:
    case LH_PROD:
        return element->kind != BITS;
    case LH_MIN:
    case LH_MAX: /* of unsigned integers, only those of one byte are there */
        return element->kind == FLOAT || element->kind == SIGNED ||
               (element->kind == UNSIGNED && element->as == LH_U8);
    default:
        return element->kind != FLOAT;
    }
}

/* Whether there is a reduction for predefined handles. */
static bool find_reduction(MPI_Datatype type, MPI_Op op, struct reduction *found)
{
    size_t t = 0, r = 0;
    while (t < sizeof ELEMENTS / sizeof *ELEMENTS && ELEMENTS[t].type != type)
        t++;
    while (r < sizeof REDUCTIONS / sizeof *REDUCTIONS && REDUCTIONS[r].op != op)
        r++;
    if (t == sizeof ELEMENTS / sizeof *ELEMENTS || r == sizeof REDUCTIONS / sizeof *REDUCTIONS ||
        !applies(REDUCTIONS[r].as, &ELEMENTS[t]))
        return false;
    *found = (struct reduction){ELEMENTS[t].as, REDUCTIONS[r].as, lh_type_bytes(ELEMENTS[t].as)};
    return true;
}

/* Gets the group for a call, if Longhaul takes it. Else *result is what the caller returns, unless it is
 * MPI_SUCCESS: then MPI's own collective runs. */
static struct lh_group *take(MPI_Comm comm, size_t bytes, int *result)
{
    struct lh_group *group = NULL;
    *result = pmpi_takes(bytes) ? pmpi_group(comm, &group) : MPI_SUCCESS;
    return group;
}

/* The same, of `parts` x count elements of a reduction. */
static struct lh_group *take_reduction(MPI_Comm comm, MPI_Count count, int parts, MPI_Datatype type,
                                       MPI_Op op, struct reduction *found, int *result)
{
    *result = MPI_SUCCESS;
    if (count <= 0 || !pmpi_takes(SIZE_MAX) || !find_reduction(type, op, found))
        return NULL;
    return take(comm, (size_t)count * (size_t)parts * found->element_bytes, result);
}

/* Waits for a call of MPI within a site, which has returned `result`. Returns 0, or an error that no handler
 * has got. A rank that has died there is an error of the group. */
static int await(struct lh_group *group, int result, MPI_Request *request)
{
    int is_done = 0;
    lh_time look = LOOK_MIN_NS;
    for (int looks = 0; !result && !is_done; looks++) {
        result = PMPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        if (looks < LOOKS_BUSY) {
            sched_yield();
            continue;
        }
        if (!is_done && has_failed(group))
            return -LH_EPEER;
        struct timespec pause = {.tv_nsec = is_done ? 0 : (long)look};
        nanosleep(&pause, NULL);
        look = 2 * look < LOOK_MAX_NS ? 2 * look : LOOK_MAX_NS;
    }
    return result ? lh_error_set(LH_EPEER, "MPI has failed within the site") : 0;
}

/* MPI sums in each site, Longhaul between the first ranks of all sites, MPI hands the result on. */
static int allreduce_by_sites(struct lh_group *group, struct pmpi_levels *levels, const void *in, void *out,
                              int count, MPI_Datatype type, MPI_Op op, const struct reduction *found,
                              MPI_Comm comm)
{
    struct lh_collective *operation = NULL;
    MPI_Request request;
    int result = MPI_SUCCESS;
    bool leads = levels->leaders != NULL;
    if (!leads && in == MPI_IN_PLACE)
        in = out;
    int started, step = (int)(REDUCE_BYTES / found->element_bytes);
    for (int first = 0, part; first < count; first += part) {
        size_t at = (size_t)first * found->element_bytes;
        part = count - first < step ? count - first : step;
        started = PMPI_Ireduce(in == MPI_IN_PLACE ? in : (const char *)in + at,
                               leads ? (char *)out + at : NULL, part, type, op, 0, levels->site, &request);
        if (await(group, started, &request))
            return pmpi_raise(comm, lh_last_error());
    }
    if (leads) {
        int error = lh_allreduce(levels->leaders, out, out, (size_t)count, found->type, found->reduction,
                                 NULL, &operation);
        result = complete(comm, error, operation, group);
    }
    levels->is_failed = result != MPI_SUCCESS;
    started = PMPI_Ibcast(&levels->is_failed, 1, MPI_INT, 0, levels->site, &request);
    int error = await(group, started, &request);
    if (!error && !levels->is_failed) {
        started = PMPI_Ibcast(out, count, type, 0, levels->site, &request);
        error = await(group, started, &request);
    }
    if (result) /* the handler has got it */
        return result;
    if (!error && levels->is_failed)
        error = lh_error_set(LH_EPEER, "the first rank of the site has an error");
    return error ? pmpi_raise(comm, lh_last_error()) : MPI_SUCCESS;
}

/* All try_ functions return true if *result is the call's. */
static bool try_allreduce(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm, int *result)
{
    struct reduction found;
    struct lh_collective *operation = NULL;
    struct lh_group *group = take_reduction(comm, count, 1, type, op, &found, result);
    if (!group)
        return *result != MPI_SUCCESS;
    struct pmpi_levels *levels = count <= INT_MAX ? pmpi_levels(comm) : NULL;
    if (levels) {
        *result = allreduce_by_sites(group, levels, in, out, (int)count, type, op, &found, comm);
        return true;
    }
    int error = lh_allreduce(group, in == MPI_IN_PLACE ? out : in, out, (size_t)count, found.type,
                             found.reduction, NULL, &operation);
    *result = complete(comm, error, operation, NULL);
    return true;
}

static bool try_reduce(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                       MPI_Comm comm, int *result)
{
    struct reduction found;
    struct lh_collective *operation = NULL;
    struct lh_group *group = take_reduction(comm, count, 1, type, op, &found, result);
    if (!group || root < 0 || (uint32_t)root >= lh_group_size(group))
        return *result != MPI_SUCCESS;
    bool is_root = (uint32_t)root == lh_group_rank(group);
    int error = lh_reduce(group, in == MPI_IN_PLACE ? out : in, is_root ? out : NULL, (size_t)count,
                          found.type, found.reduction, (uint32_t)root, NULL, &operation);
    *result = complete(comm, error, operation, NULL);
    return true;
}

/* Gets the number of ranks, where Longhaul may take a call. */
static bool size_of(MPI_Comm comm, int *size)
{
    return pmpi_takes(SIZE_MAX) && comm != MPI_COMM_NULL && !PMPI_Comm_size(comm, size);
}

/* In place the input, and so all of it, is where the result goes: it is copied. */
static bool try_reduce_scatter(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm, int *result)
{
    struct reduction found;
    struct lh_collective *operation = NULL;
    int size = 0;
    *result = MPI_SUCCESS;
    if (!size_of(comm, &size))
        return false;
    struct lh_group *group = take_reduction(comm, count, size, type, op, &found, result);
    if (!group)
        return *result != MPI_SUCCESS;
    size_t bytes = (size_t)count * (size_t)size * found.element_bytes;
    void *copy = in == MPI_IN_PLACE ? malloc(bytes) : NULL;
    if (in == MPI_IN_PLACE && !copy) {
        *result = out_of_memory(comm);
        return true;
    }
    if (copy)
        memcpy(copy, out, bytes);
    int error = lh_reduce_scatter(group, copy ? copy : in, out, (size_t)count, found.type, found.reduction,
                                  NULL, &operation);
    *result = complete(comm, error, operation, NULL);
    free(copy);
    return true;
}

/* ---- data that is moved -------------------------------------------------------------------------------- */

/* Elements of a buffer. */
struct data {
    void *at;
    MPI_Count count;
    MPI_Datatype type;
    MPI_Count size; /* of an element, without gaps */
    MPI_Aint extent;
    bool is_dense; /* the elements are their bytes, in order */
};

/* MPI's own collective has the error of an invalid type or count. */
static bool describe(const void *at, MPI_Count count, MPI_Datatype type, struct data *data)
{
    int integers, addresses, types, combiner;
    MPI_Aint low;
    *data = (struct data){.at = (void *)(uintptr_t)at, .count = count, .type = type};
    if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &data->size) || data->size <= 0 ||
        PMPI_Type_get_extent(type, &low, &data->extent) ||
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner))
        return false;
    data->is_dense = combiner == MPI_COMBINER_NAMED && data->extent == (MPI_Aint)data->size;
    return true;
}

static size_t bytes_of(const struct data *data)
{
    return (size_t)data->count * (size_t)data->size;
}

/* Elements from a number on. */
static struct data from(const struct data *data, MPI_Count first, MPI_Count count)
{
    struct data part = *data;
    part.at = (char *)data->at + (MPI_Aint)first * data->extent;
    part.count = count;
    return part;
}

/* Gets the same elements from another address on: MPICH 4.0 packs nothing from MPI_BOTTOM. */
static int move_origin(struct data *data, void *origin)
{
    MPI_Aint place = (MPI_Aint)((uintptr_t)data->at - (uintptr_t)origin);
    int result = PMPI_Type_create_hindexed_block(1, 1, &place, data->type, &data->type);
    data->at = origin;
    return result ? result : PMPI_Type_commit(&data->type);
}

/* Packs into, or unpacks from, bytes_of(data) bytes. Returns an error of MPI. */
static int copy_elements(const struct data *data, char *packed, bool is_packing, MPI_Comm comm)
{
    MPI_Count step = data->size < PACK_BYTES ? PACK_BYTES / data->size : 1;
    int result = data->size > INT_MAX ? MPI_ERR_COUNT : MPI_SUCCESS;
    struct data all = *data;
    bool is_bottom = all.at == MPI_BOTTOM;
    if (!result && is_bottom)
        result = move_origin(&all, packed);
    for (MPI_Count done = 0; !result && done < all.count; done += step) {
        MPI_Count count = all.count - done < step ? all.count - done : step;
        struct data part = from(&all, done, count);
        int bytes = (int)(count * all.size), position = 0;
        char *at = packed + (size_t)(done * all.size);
        result = is_packing ? PMPI_Pack(part.at, (int)count, part.type, at, bytes, &position, comm)
                            : PMPI_Unpack(at, bytes, &position, part.at, (int)count, part.type, comm);
    }
    if (is_bottom && all.type != data->type)
        PMPI_Type_free(&all.type);
    return result;
}

/* The place of data's bytes: its own, or memory that the caller frees (*scratch). NULL: no memory. */
static char *place_of(const struct data *data, char **scratch)
{
    *scratch = data->is_dense ? NULL : malloc(bytes_of(data));
    return data->is_dense ? data->at : *scratch;
}

static bool try_broadcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                          int *result)
{
    struct data data;
    struct lh_collective *operation = NULL;
    *result = MPI_SUCCESS;
    if (!pmpi_takes(SIZE_MAX) || !describe(buffer, count, type, &data))
        return false;
    struct lh_group *group = take(comm, bytes_of(&data), result);
    if (!group || root < 0 || (uint32_t)root >= lh_group_size(group))
        return *result != MPI_SUCCESS;
    bool is_root = (uint32_t)root == lh_group_rank(group);
    char *scratch, *place = place_of(&data, &scratch);
    if (!place)
        *result = out_of_memory(comm);
    if (!*result && scratch && is_root)
        *result = copy_elements(&data, scratch, true, comm);
    if (!*result) {
        int error = lh_broadcast(group, place, bytes_of(&data), LH_U8, (uint32_t)root, NULL, &operation);
        *result = complete(comm, error, operation, NULL);
    }
    if (!*result && scratch && !is_root)
        *result = copy_elements(&data, scratch, false, comm);
    free(scratch);
    return true;
}

/* Starts a call of parts of `bytes`. */
typedef int (*start_fn)(struct lh_group *group, const void *in, void *out, size_t bytes,
                        struct lh_collective **operation);

static int start_allgather(struct lh_group *group, const void *in, void *out, size_t bytes,
                           struct lh_collective **operation)
{
    return lh_allgather(group, in, out, bytes, LH_U8, NULL, operation);
}

static int start_alltoall(struct lh_group *group, const void *in, void *out, size_t bytes,
                          struct lh_collective **operation)
{
    return lh_alltoall(group, in, out, bytes, LH_U8, NULL, operation);
}

/* Moves `in` to `out`, which has a part of `bytes` from each rank. in_scratch: memory for the input where
 * that is not dense, or must not be the output; NULL: none. */
static int move(struct lh_group *group, MPI_Comm comm, const struct data *in, char *in_scratch,
                const struct data *out, size_t bytes, start_fn start)
{
    struct lh_collective *operation = NULL;
    char *out_scratch, *place = place_of(out, &out_scratch);
    int result = place ? MPI_SUCCESS : out_of_memory(comm);
    if (!result && in_scratch)
        result = copy_elements(in, in_scratch, true, comm);
    if (!result) {
        int error = start(group, in_scratch ? in_scratch : in->at, place, bytes, &operation);
        result = complete(comm, error, operation, NULL);
    }
    if (!result && out_scratch)
        result = copy_elements(out, out_scratch, false, comm);
    free(out_scratch);
    return result;
}

/* Of allgather and alltoall. `received`: of one rank. parts: of what a rank sends; 0: one for each rank. */
static bool try_move(const void *in, MPI_Count sent, MPI_Datatype sent_type, void *out, MPI_Count received,
                     MPI_Datatype type, MPI_Comm comm, start_fn start, int *result)
{
    struct data input, output;
    int size = 0;
    *result = MPI_SUCCESS;
    if (!size_of(comm, &size) || !describe(out, received, type, &output))
        return false;
    size_t bytes = bytes_of(&output);
    bool is_alltoall = start == start_alltoall, is_in_place = in == MPI_IN_PLACE;
    output.count = received * size;
    struct lh_group *group = take(comm, bytes_of(&output), result);
    if (!group)
        return *result != MPI_SUCCESS;
    if (is_in_place)
        input = is_alltoall ? output : from(&output, received * (MPI_Count)lh_group_rank(group), received);
    else if (!describe(in, is_alltoall ? sent * size : sent, sent_type, &input))
        input = (struct data){.count = 0};
    if (bytes_of(&input) != (is_alltoall ? bytes_of(&output) : bytes)) {
        *result = pmpi_raise(comm, "a rank sends another number of bytes than it receives from itself");
        return true;
    }
    bool is_copied = !input.is_dense || (is_in_place && is_alltoall);
    char *scratch = is_copied ? malloc(bytes_of(&input)) : NULL;
    *result = is_copied && !scratch ? out_of_memory(comm)
                                    : move(group, comm, &input, scratch, &output, bytes, start);
    free(scratch);
    return true;
}

/* ---- MPI's names --------------------------------------------------------------------------------------- */

/* SUFFIX: of the calls with counts of the type COUNT. A reduce-scatter of parts of different sizes is
 * MPI's. */
#define COLLECTIVES(SUFFIX, COUNT)                                                                         \
    PMPI_EXPORT int MPI_Allreduce##SUFFIX(const void *in, void *out, COUNT count, MPI_Datatype type,       \
                                          MPI_Op op, MPI_Comm comm)                                        \
    {                                                                                                      \
        int result;                                                                                        \
        return try_allreduce(in, out, count, type, op, comm, &result)                                      \
                   ? result                                                                                \
                   : PMPI_Allreduce##SUFFIX(in, out, count, type, op, comm);                               \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Reduce##SUFFIX(const void *in, void *out, COUNT count, MPI_Datatype type,          \
                                       MPI_Op op, int root, MPI_Comm comm)                                 \
    {                                                                                                      \
        int result;                                                                                        \
        return try_reduce(in, out, count, type, op, root, comm, &result)                                   \
                   ? result                                                                                \
                   : PMPI_Reduce##SUFFIX(in, out, count, type, op, root, comm);                            \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Reduce_scatter_block##SUFFIX(const void *in, void *out, COUNT count,               \
                                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm)          \
    {                                                                                                      \
        int result;                                                                                        \
        return try_reduce_scatter(in, out, count, type, op, comm, &result)                                 \
                   ? result                                                                                \
                   : PMPI_Reduce_scatter_block##SUFFIX(in, out, count, type, op, comm);                    \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Reduce_scatter##SUFFIX(const void *in, void *out, const COUNT counts[],            \
                                               MPI_Datatype type, MPI_Op op, MPI_Comm comm)                \
    {                                                                                                      \
        int size, result;                                                                                  \
        bool is_even = counts && size_of(comm, &size);                                                     \
        for (int r = 1; is_even && r < size; r++)                                                          \
            is_even = counts[r] == counts[0];                                                              \
        return is_even && try_reduce_scatter(in, out, counts[0], type, op, comm, &result)                  \
                   ? result                                                                                \
                   : PMPI_Reduce_scatter##SUFFIX(in, out, counts, type, op, comm);                         \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Bcast##SUFFIX(void *buffer, COUNT count, MPI_Datatype type, int root,              \
                                      MPI_Comm comm)                                                       \
    {                                                                                                      \
        int result;                                                                                        \
        return try_broadcast(buffer, count, type, root, comm, &result)                                     \
                   ? result                                                                                \
                   : PMPI_Bcast##SUFFIX(buffer, count, type, root, comm);                                  \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Allgather##SUFFIX(const void *in, COUNT sent, MPI_Datatype sent_type, void *out,   \
                                          COUNT received, MPI_Datatype type, MPI_Comm comm)                \
    {                                                                                                      \
        int result;                                                                                        \
        return try_move(in, sent, sent_type, out, received, type, comm, start_allgather, &result)          \
                   ? result                                                                                \
                   : PMPI_Allgather##SUFFIX(in, sent, sent_type, out, received, type, comm);               \
    }                                                                                                      \
    PMPI_EXPORT int MPI_Alltoall##SUFFIX(const void *in, COUNT sent, MPI_Datatype sent_type, void *out,    \
                                         COUNT received, MPI_Datatype type, MPI_Comm comm)                 \
    {                                                                                                      \
        int result;                                                                                        \
        return try_move(in, sent, sent_type, out, received, type, comm, start_alltoall, &result)           \
                   ? result                                                                                \
                   : PMPI_Alltoall##SUFFIX(in, sent, sent_type, out, received, type, comm);                \
    }

COLLECTIVES(, int)
#if MPI_VERSION >= 4
COLLECTIVES(_c, MPI_Count)
#endif
