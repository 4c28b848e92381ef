/*
 * collective.h - collectives of a group (longhaul/group.h): all its ranks call the same ones in the same
 * order.
 *
 * Each call starts an operation and returns at once; several may be pending. Buffers belong to the library
 * until the operation is done. A result is the same on all ranks, bit by bit, and in each run with the same
 * schedule, block size and number of ranks.
 *
 * Bounded: over hops whose reliability is `bounded`, operations of more than 4096 bytes end by a deadline
 * that counts from the call, with what has come: lh_allreduce() and lh_reduce_scatter() of F32, F16 and BF16
 * with SUM and AVG, lh_allgather() and lh_broadcast(); others are refused, unless options.reliable.
 * `bounded:deadline=20ms` gives the deadline; else the group learns it, and the first operation of each
 * collective has none. Hops whose reliability is another one have no deadline. Sums are of encoded tensors
 * (longhaul/hadamard.h); what lacks contributions is scaled by ranks / contributions. What else is missing is
 * 0. Ranks may get different results then; where nothing is missing at any, they get the same.
 *
 * Errors: an operation that fails at one rank fails at all that have not finished it, with the same error.
 * The input is unchanged then, and may be used again; the output is unspecified. Where both are the same
 * memory (`in` equal to `out`), neither holds.
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

/* Ranks send the number of a type and of a reduction to each other, so it never changes.
 *
 * Integers wrap around; 16-bit floats are computed as F32 and rounded to the nearest. */
enum lh_type {
    LH_F32 = 0,
    LH_F64 = 1,
    LH_F16 = 2,
    LH_BF16 = 3,
    LH_I32 = 4,
    LH_I64 = 5,
    LH_U8 = 6,
    LH_TYPES
};
/* LH_AVG: the sum divided by the number of ranks; of integers towards 0. */
enum lh_reduction { LH_SUM = 0, LH_PROD = 1, LH_MIN = 2, LH_MAX = 3, LH_AVG = 4, LH_REDUCTIONS };

/* Bytes of an element; 0: no such type. */
LH_API size_t lh_type_bytes(enum lh_type type);
/* "f32"; NULL: no such type. */
LH_API const char *lh_type_name(enum lh_type type);
/* "sum"; NULL: no such reduction. */
LH_API const char *lh_reduction_name(enum lh_reduction reduction);
/* The index-th schedule of a collective ("allreduce", "reduce", "broadcast", "allgather", "reduce-scatter",
 * "gather", "scatter", "alltoall", "barrier", "gatherv", "scatterv", "alltoallv"), for
 * lh_collective_options.schedule; NULL: there are no more, or no such collective. */
LH_API const char *lh_collective_schedule(const char *collective, uint32_t index);

/* data may be NULL where bytes is 0. */
struct lh_buffer {
    const void *data;
    size_t bytes;
};

/* Zero means the default; all ranks give the same schedule and block_bytes. */
struct lh_collective_options {
    size_t struct_bytes;  /* set by lh_collective_options_init: lets the struct grow */
    const char *schedule; /* "ring", …; NULL: chosen by size, number of ranks and paths */
    size_t block_bytes;   /* maximum bytes of a block; default, and upper bound: that of the group */
    lh_time deadline_ns;  /* from the call on: then the operation ends with -LH_ETIMEDOUT; 0: none */
    struct lh_completion_queue *queue; /* gets an entry (LH_OPERATION_COLLECTIVE) at the end; of the group's
                                          engine, and needs lh_group_attr.thread */
    uint64_t user;                     /* of that entry */
    bool reliable;                     /* every byte arrives, also where reliability is `bounded` */
};
LH_API void lh_collective_options_init(struct lh_collective_options *options);

/* Start a collective. options: NULL: the defaults. *op is freed with lh_collective_free(), also after an
 * error of the operation. count: elements; of the collectives with a part per rank, of each part. -LH_EINVAL:
 * an argument, which the message names, is out of range, or NULL where it is needed, or in and out overlap in
 * another way than `in place` says, and -LH_ENOMEM: the others wait for this rank until it calls again;
 * -LH_EPEER: a rank has failed, which the message names (lh_group_shrink(3)). */

/* out[count]: of all ranks' in[count]. In place: in == out. */
LH_API int lh_allreduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                        enum lh_reduction reduction, const struct lh_collective_options *options,
                        struct lh_collective **op);
/* Likewise, at the root alone; elsewhere out may be NULL. In place: in == out at the root. */
LH_API int lh_reduce(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                     enum lh_reduction reduction, uint32_t root,
                     const struct lh_collective_options *options, struct lh_collective **op);
/* Rank r's out[count]: elements r * count on of the reduction of all ranks' in[size * count]. */
LH_API int lh_reduce_scatter(struct lh_group *group, const void *in, void *out, size_t count,
                             enum lh_type type, enum lh_reduction reduction,
                             const struct lh_collective_options *options, struct lh_collective **op);
/* The root's buffer[count] to all. Where only the root knows the count, it broadcasts that first, at once. */
LH_API int lh_broadcast(struct lh_group *group, void *buffer, size_t count, enum lh_type type,
                        uint32_t root, const struct lh_collective_options *options,
                        struct lh_collective **op);
/* out[size * count]: all ranks' in[count]. In place: in == out + rank * count elements. */
LH_API int lh_allgather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                        const struct lh_collective_options *options, struct lh_collective **op);
/* Likewise, at the root alone; elsewhere out may be NULL. */
LH_API int lh_gather(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                     uint32_t root, const struct lh_collective_options *options, struct lh_collective **op);
/* Rank r's out[count]: elements r * count on of the root's in[size * count]; elsewhere in may be NULL. */
LH_API int lh_scatter(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                      uint32_t root, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Rank r's out[size * count]: from each rank s, at s * count, elements r * count on of its in. */
LH_API int lh_alltoall(struct lh_group *group, const void *in, void *out, size_t count, enum lh_type type,
                       const struct lh_collective_options *options, struct lh_collective **op);
/* The v-variants, with parts of any sizes, one after the other in rank order: counts[r] are the elements of
 * rank r's part, and may be 0. Each part goes straight from its source to its destination. A rank gives the
 * counts of what it has and gets; two that differ about a part are an error (-LH_EPROTOCOL) at all ranks that
 * are not done by then. in and out may be NULL where there is nothing. */
/* The root's out: all ranks' in[count]; counts: at the root alone, elsewhere out and counts may be NULL.
 * In place at the root: in == out + its part's place. */
LH_API int lh_gatherv(struct lh_group *group, const void *in, size_t count, void *out, const size_t *counts,
                      enum lh_type type, uint32_t root, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Rank r's out[count]: its part of the root's in; counts: at the root alone, elsewhere in and counts may be
 * NULL. */
LH_API int lh_scatterv(struct lh_group *group, const void *in, const size_t *counts, void *out,
                       size_t count, enum lh_type type, uint32_t root,
                       const struct lh_collective_options *options, struct lh_collective **op);
/* Rank r's out: of each rank its part for r; in_counts: for each rank, out_counts: of each. */
LH_API int lh_alltoallv(struct lh_group *group, const void *in, const size_t *in_counts, void *out,
                        const size_t *out_counts, enum lh_type type,
                        const struct lh_collective_options *options, struct lh_collective **op);
/* Compares buffers that should be the same on all ranks, such as a model's weights: which ranks have drifted
 * apart. Their digests (XXH3, 128 bits: against errors, not against an adversary), computed in the call, are
 * all-gathered, without loss, by that collective's schedules. differs[size * count]: whether rank r's buffer
 * b, at r * count + b, is not as on most ranks; where several contents are on as many, of those the lowest
 * rank's counts. It belongs to the library until the operation is done; the buffers do not after the call. A
 * rank without differences (lh_broadcast(3)) can be the source of what others lack. */
LH_API int lh_compare(struct lh_group *group, const struct lh_buffer *buffers, uint32_t count,
                      bool *differs, const struct lh_collective_options *options,
                      struct lh_collective **op);
/* Done when all ranks have called it. */
LH_API int lh_barrier(struct lh_group *group, const struct lh_collective_options *options,
                      struct lh_collective **op);

#define LH_COLLECTIVE_MESSAGE_MAX 256

struct lh_collective_result {
    /* 0, or a negative lh_error: -LH_EPEER, -LH_ECLOSED: a rank has failed; -LH_EPROTOCOL: ranks started
     * different operations; -LH_ERANGE: an element of a bounded sum is not finite, or the sum exceeds its
     * type; -LH_ETIMEDOUT: deadline_ns; -LH_ECANCELED: by some rank */
    int error;
    uint32_t failed_rank; /* that the error is of; LH_NO_RANK: none */
    lh_time started_ns;   /* of the engine's clock: lh_now() */
    lh_time ended_ns;
    uint64_t bytes_sent; /* payload, without retransmissions */
    uint64_t bytes_received;
    /* Where reliability is `bounded`: bytes of the output that were zeroed, or of the encoded sum that lack a
     * contribution. By source: lh_collective_missing(); where: lh_collective_ranges() */
    uint64_t missing_bytes;
    const char *schedule;                    /* the one that was run, a literal */
    size_t block_bytes;                      /* of the longest block; of a v-variant, at most */
    char message[LH_COLLECTIVE_MESSAGE_MAX]; /* of the error: cause and remedy; "" without one */
};
#define LH_NO_RANK UINT32_MAX

/* Of an operation; -LH_EINVAL: it, or where a result goes, is NULL. */

/* Tests an operation, and makes progress. 1: done, and *result is set; 0: pending. result may be NULL. */
LH_API int lh_collective_test(struct lh_collective *op, struct lh_collective_result *result);
/* Waits for an operation; needs workers. 0: done (see result->error); -LH_ETIMEDOUT after timeout_ns
 * (LH_TIME_NEVER: without limit), the operation stays pending; -LH_ESTATE: no workers. */
LH_API int lh_collective_wait(struct lh_collective *op, lh_time timeout_ns,
                              struct lh_collective_result *result);
/* Bytes that a rank sent to this one in an operation, or should have sent, and that did not come by the
 * deadline; 0 while it is pending. -LH_EINVAL: no such rank. */
LH_API int lh_collective_missing(struct lh_collective *op, uint32_t rank, uint64_t *bytes);
/* Gets up to `count` of the ranges of the output that `missing_bytes` counts, from number `first` on, by
 * offset, none adjacent to the next; returns their number, 0: there are no more. Bytes of them are 0; of a
 * sum, whose loss is spread over a block, they are of the encoded one. -LH_ESTATE: it is pending, or has
 * failed. */
LH_API int64_t lh_collective_ranges(struct lh_collective *op, uint64_t first, struct lh_range *ranges,
                                    uint64_t count);
/* Cancels an operation at all ranks: it ends with -LH_ECANCELED (or was done already). */
LH_API int lh_collective_cancel(struct lh_collective *op);
/* Cancels a pending operation, and frees it. NULL is allowed. */
LH_API void lh_collective_free(struct lh_collective *op);

#ifdef __cplusplus
}
#endif
#endif
