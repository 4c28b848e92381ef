/*
 * collective.h - collectives of a group (longhaul/group.h). All ranks call the same collectives in the same
 * order.
 *
 * Each call starts an operation and returns at once; several may be pending. Buffers belong to the library
 * until the operation is done. All ranks get bitwise equal results. Runs with the same schedule, block size
 * and number of ranks get equal results, too.
 *
 * Bounded: over hops with the reliability `bounded`, operations of more than 4096 bytes end by a deadline,
 * with the data that has arrived. The deadline counts from the call. Supported are lh_allreduce() and
 * lh_reduce_scatter() of F32, F16 and BF16 with SUM and AVG, lh_allgather() and lh_broadcast(); other
 * operations are refused, unless options.reliable. `bounded:deadline=20ms` sets the deadline; without it the
 * group learns a deadline, and the first operation of each collective has none. Hops with another reliability
 * have no deadline. Sums are computed on encoded tensors (longhaul/hadamard.h). Where a sum lacks
 * contributions, it is scaled by ranks / contributions; other missing data is 0. Ranks may then get different
 * results. They get equal results where no rank misses data.
 *
 * Errors: an operation that fails at one rank fails with the same error at all ranks that have not finished
 * it. The input is then unchanged, and may be used again; the output is unspecified. In place (`in` equal to
 * `out`), that memory is unspecified.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_COLLECTIVE_H
#define LONGHAUL_COLLECTIVE_H

#include <longhaul/error.h>
#include <longhaul/group.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_collective;
struct lh_completion_queue;

/* Numbers of types and reductions never change: ranks exchange them.
 *
 * Integers wrap around. 16-bit floats are computed as F32 and rounded to nearest. */
enum lh_type {
    LH_F32 = 0,
    LH_F64 = 1,
    LH_F16 = 2,
    LH_BF16 = 3,
    LH_I32 = 4,
    LH_I64 = 5,
    LH_U8 = 6,
    LH_I8 = 7,
    LH_I16 = 8,
    LH_TYPES
};
/* LH_AVG: the sum divided by the number of ranks; integers are rounded towards 0. LH_BAND, LH_BOR, LH_BXOR:
 * and, or, exclusive or of the bits of integers. */
enum lh_reduction {
    LH_SUM = 0,
    LH_PROD = 1,
    LH_MIN = 2,
    LH_MAX = 3,
    LH_AVG = 4,
    LH_BAND = 5,
    LH_BOR = 6,
    LH_BXOR = 7,
    LH_REDUCTIONS
};

/* Returns the bytes of an element; 0: no such type. */
LH_API size_t lh_type_bytes(enum lh_type type);
/* Returns the name of a type, "f32"; NULL: no such type. */
LH_API const char *lh_type_name(enum lh_type type);
/* Returns the name of a reduction, "sum"; NULL: no such reduction. */
LH_API const char *lh_reduction_name(enum lh_reduction reduction);
/* Returns the index-th schedule of a collective ("allreduce", "reduce", "broadcast", "allgather",
 * "reduce-scatter", "gather", "scatter", "alltoall", "barrier", "gatherv", "scatterv", "alltoallv"), for
 * lh_collective_options.schedule; NULL: no further schedule, or no such collective. */
LH_API const char *lh_collective_schedule(const char *collective, uint32_t index);

/* data may be NULL where bytes is 0. */
struct lh_buffer {
    const void *data;
    size_t bytes;
};

/* Zero means the default. All ranks pass the same schedule and block_bytes. */
struct lh_collective_options {
    size_t struct_bytes;               /* set by lh_collective_options_init, so that the struct can grow */
    const char *schedule;              /* "ring", …; NULL: chosen by size, ranks and paths */
    size_t block_bytes;                /* maximum bytes of a block; default and limit: the group's */
    lh_time deadline_ns;               /* from the call; then -LH_ETIMEDOUT ends the operation; 0: none */
    struct lh_completion_queue *queue; /* gets an entry (LH_OPERATION_COLLECTIVE) at the end; of the group's
                                          engine; needs lh_group_attr.thread */
    uint64_t user;                     /* of that entry */
    bool reliable;                     /* every byte arrives, even with the reliability `bounded` */
};
LH_API void lh_collective_options_init(struct lh_collective_options *options);

/* Start a collective. options: NULL for the defaults. *op: free it with lh_collective_free(), also after the
 * operation failed. count: number of elements; where each rank has a part, of each part. The text "in place"
 * at a call says how `in` and `out` may overlap.
 *
 * -LH_EINVAL: an argument, named in the message, is out of range, is NULL though needed, or in and out
 * overlap otherwise. -LH_ENOMEM. After these two the other ranks wait until this rank calls again. -LH_EPEER:
 * a rank, named in the message, has failed (lh_group_shrink(3)). */

/* Reduces all ranks' in[count] into every rank's out[count]. In place: in == out. */
LH_API int lh_allreduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                        enum lh_reduction reduction, const struct lh_collective_options *options,
                        struct lh_collective **op);
/* Reduces all ranks' in[count] into the root's out[count]. At other ranks out may be NULL. In place: in ==
 * out at the root. */
LH_API int lh_reduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                     enum lh_reduction reduction, uint32_t root,
                     const struct lh_collective_options *options, struct lh_collective **op);
/* Reduces all ranks' in[size * count], and scatters the result: rank r's out[count] gets the elements from r
 * * count on. */
LH_API int lh_reduce_scatter(struct lh_group *group, const void *in, void *out, size_t count,
                             enum lh_type type, enum lh_reduction reduction,
                             const struct lh_collective_options *options, struct lh_collective **op);
/* Copies the root's buffer[count] to all ranks. When only the root knows the count, it broadcasts the count
 * first, in an operation of its own. */
LH_API int lh_broadcast(struct lh_group *group, void *buffer, size_t count, enum lh_type type,
                        uint32_t root, const struct lh_collective_options *options,
                        struct lh_collective **op);
/* Gathers all ranks' in[count] into every rank's out[size * count]. In place: in == out + rank * count
 * elements. */
LH_API int lh_allgather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                        const struct lh_collective_options *options, struct lh_collective **op);
/* Gathers all ranks' in[count] into the root's out[size * count]. At other ranks out may be NULL. In
 * place, at the root: in == out + rank * count elements. */
LH_API int lh_gather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                     uint32_t root, const struct lh_collective_options *options, struct lh_collective **op);
/* Scatters the root's in[size * count]: rank r's out[count] gets the elements from r * count on. At other
 * ranks in may be NULL. */
LH_API int lh_scatter(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                      uint32_t root, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Exchanges parts between all ranks: rank r's out[size * count] gets, at s * count, the elements from r *
 * count on of rank s's in[size * count]. */
LH_API int lh_alltoall(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                       const struct lh_collective_options *options, struct lh_collective **op);
/* The v-variants have parts of different sizes, concatenated in rank order. counts[r]: elements of rank r's
 * part; may be 0. Each part goes directly from its source to its destination. A rank passes the counts of the
 * parts that it sends and receives; when two ranks disagree about a part, -LH_EPROTOCOL ends the operation at
 * all ranks that have not finished it. An empty in or out may be NULL. */
/* Gathers all ranks' in[count] into the root's out. counts: used at the root only; at other ranks out and
 * counts may be NULL. In place, at the root: in is the place of its part in out. */
LH_API int lh_gatherv(struct lh_group *group, const void *in, size_t count, void *out, const size_t *counts,
                      enum lh_type type, uint32_t root, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Scatters the root's in: rank r's out[count] gets its part. counts: used at the root only; at other ranks in
 * and counts may be NULL. */
LH_API int lh_scatterv(struct lh_group *group, const void *in, const size_t *counts, void *out,
                       size_t count, enum lh_type type, uint32_t root,
                       const struct lh_collective_options *options, struct lh_collective **op);
/* Exchanges parts between all ranks: rank r's out gets each rank's part for r. in_counts: elements of the
 * part for each rank; out_counts: of the part from each rank. */
LH_API int lh_alltoallv(struct lh_group *group, const void *in, const size_t *in_counts, void *out,
                        const size_t *out_counts, enum lh_type type,
                        const struct lh_collective_options *options, struct lh_collective **op);
/* Compares buffers that should be equal on all ranks, such as a model's weights. The call computes digests
 * (XXH3, 128 bits: they detect errors, not attacks). The operation gathers them reliably, with the schedules
 * of all-gather. differs[size * count]: entry r * count + b is true if rank r's buffer b differs from the
 * majority's; of contents that equally many ranks have, the lowest rank's counts. `differs` belongs to the
 * library until the operation is done, the buffers until the call returns. To repair, broadcast from a rank
 * without differences (lh_broadcast(3)). */
LH_API int lh_compare(struct lh_group *group, const struct lh_buffer *buffers, uint32_t count,
                      bool *differs, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Waits for all ranks: the operation is done when every rank has called it. */
LH_API int lh_barrier(struct lh_group *group, const struct lh_collective_options *options,
                      struct lh_collective **op);

#define LH_COLLECTIVE_MESSAGE_MAX 256

struct lh_collective_result {
    /* 0, or a negative lh_error: -LH_EPEER, -LH_ECLOSED: a rank has failed; -LH_EPROTOCOL: ranks started
     * different operations; -LH_ERANGE: an element of a bounded sum is not finite, or the sum exceeds its
     * type; -LH_ETIMEDOUT: deadline_ns; -LH_ECANCELED: by some rank */
    int error;
    uint32_t failed_rank; /* the rank that failed; LH_NO_RANK: none */
    lh_time started_ns;   /* of the engine's clock: lh_now() */
    lh_time ended_ns;
    uint64_t bytes_sent; /* payload, without retransmissions */
    uint64_t bytes_received;
    /* With the reliability `bounded`: bytes of the output that were zeroed, or bytes of the encoded sum that
     * lack a contribution. Per source: lh_collective_missing(); places: lh_collective_ranges() */
    uint64_t missing_bytes;
    const char *schedule;                    /* the one that was run, a literal */
    size_t block_bytes;                      /* of the longest block; for a v-variant its limit */
    char message[LH_COLLECTIVE_MESSAGE_MAX]; /* of the error: cause and remedy; "" without one */
};
#define LH_NO_RANK UINT32_MAX

/* Calls on an operation. -LH_EINVAL: op, or a pointer for a result, is NULL. */

/* Tests an operation, and makes progress. 1: done, and *result is set; 0: pending. result may be NULL. */
LH_API int lh_collective_test(struct lh_collective *op, struct lh_collective_result *result);
/* Waits for an operation; needs workers. 0: done (see result->error); -LH_ETIMEDOUT after timeout_ns
 * (LH_TIME_NEVER: without limit), the operation stays pending; -LH_ESTATE: no workers. */
LH_API int lh_collective_wait(struct lh_collective *op, lh_time timeout_ns,
                              struct lh_collective_result *result);
/* Gets the bytes from a rank that did not arrive by the deadline; 0 while the operation is pending.
 * -LH_EINVAL: no such rank. */
LH_API int lh_collective_missing(struct lh_collective *op, uint32_t rank, uint64_t *bytes);
/* Gets up to `count` of the ranges that missing_bytes counts, from range number `first` on, sorted by offset,
 * never adjacent. Returns their number; 0: no further range. Their bytes in the output are 0. For a sum,
 * whose loss is spread over a block, they are ranges of the encoded tensor. -LH_ESTATE: the operation is
 * pending, or has failed. */
LH_API int64_t lh_collective_ranges(struct lh_collective *op, uint64_t first, struct lh_range *ranges,
                                    uint64_t count);
/* Cancels an operation at all ranks: it ends with -LH_ECANCELED, unless it was done. */
LH_API int lh_collective_cancel(struct lh_collective *op);
/* Cancels the operation if it is pending, and frees it. NULL is allowed. */
LH_API void lh_collective_free(struct lh_collective *op);

#ifdef __cplusplus
}
#endif
#endif
