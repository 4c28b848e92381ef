/*
 * test_collective_calls.c - calls of groups and collectives without a pointer that they need, with buffers
 * that overlap, or values out of range: refused by the argument's name; the other rank waits for the call
 * that follows. And what results say of operations that were done, canceled or late.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include "support/rank_threads.h"
#include "support/sim_engines.h"

#define RANKS    2u
#define COUNT    8u
#define LIMIT_NS (60 * LH_NS_PER_S)

static struct lh_group_attr attr_of(const struct rank_thread *thread)
{
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    attr.rank = thread->rank;
    attr.size = thread->size;
    attr.exchange = rank_threads_exchange;
    attr.exchange_context = (void *)(uintptr_t)thread;
    attr.device = "udp:127.0.0.1";
    return attr;
}

static struct lh_group *create(const struct rank_thread *thread)
{
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *group;
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    return group;
}

static void refused(int64_t code, const char *text)
{
    assert_int_equal(code, -LH_EINVAL);
    assert_string_equal(lh_last_error(), text);
}

/* Of a rank that is the root. */
static void refuse_memory(struct lh_group *g)
{
    const size_t counts[RANKS] = {0, COUNT};
    const uint32_t root = lh_group_rank(g);
    int32_t in[RANKS * COUNT] = {0}, out[RANKS * COUNT];
    struct lh_collective *op;
    refused(lh_allreduce(g, NULL, out, COUNT, LH_I32, LH_SUM, NULL, &op), "allreduce: in is NULL");
    refused(lh_allreduce(g, in, NULL, COUNT, LH_I32, LH_SUM, NULL, &op), "allreduce: out is NULL");
    refused(lh_reduce(g, NULL, out, COUNT, LH_I32, LH_SUM, root, NULL, &op), "reduce: in is NULL");
    refused(lh_reduce(g, in, NULL, COUNT, LH_I32, LH_SUM, root, NULL, &op), "reduce: out is NULL");
    refused(lh_reduce_scatter(g, NULL, out, COUNT, LH_I32, LH_SUM, NULL, &op),
            "reduce-scatter: in is NULL");
    refused(lh_reduce_scatter(g, in, NULL, COUNT, LH_I32, LH_SUM, NULL, &op),
            "reduce-scatter: out is NULL");
    refused(lh_broadcast(g, NULL, COUNT, LH_I32, root, NULL, &op), "broadcast: buffer is NULL");
    refused(lh_allgather(g, NULL, out, COUNT, LH_I32, NULL, &op), "allgather: in is NULL");
    refused(lh_allgather(g, in, NULL, COUNT, LH_I32, NULL, &op), "allgather: out is NULL");
    refused(lh_gather(g, NULL, out, COUNT, LH_I32, root, NULL, &op), "gather: in is NULL");
    refused(lh_gather(g, in, NULL, COUNT, LH_I32, root, NULL, &op), "gather: out is NULL");
    refused(lh_scatter(g, NULL, out, COUNT, LH_I32, root, NULL, &op), "scatter: in is NULL");
    refused(lh_scatter(g, in, NULL, COUNT, LH_I32, root, NULL, &op), "scatter: out is NULL");
    refused(lh_alltoall(g, NULL, out, COUNT, LH_I32, NULL, &op), "alltoall: in is NULL");
    refused(lh_alltoall(g, in, NULL, COUNT, LH_I32, NULL, &op), "alltoall: out is NULL");
    refused(lh_gatherv(g, NULL, COUNT, out, counts, LH_I32, root, NULL, &op), "gatherv: in is NULL");
    refused(lh_gatherv(g, in, COUNT, NULL, counts, LH_I32, root, NULL, &op), "gatherv: out is NULL");
    refused(lh_gatherv(g, in, COUNT, out, NULL, LH_I32, root, NULL, &op), "gatherv: counts is NULL");
    refused(lh_scatterv(g, NULL, counts, out, COUNT, LH_I32, root, NULL, &op), "scatterv: in is NULL");
    refused(lh_scatterv(g, in, counts, NULL, COUNT, LH_I32, root, NULL, &op), "scatterv: out is NULL");
    refused(lh_scatterv(g, in, NULL, out, COUNT, LH_I32, root, NULL, &op), "scatterv: counts is NULL");
    refused(lh_alltoallv(g, NULL, counts, out, counts, LH_I32, NULL, &op), "alltoallv: in is NULL");
    refused(lh_alltoallv(g, in, counts, NULL, counts, LH_I32, NULL, &op), "alltoallv: out is NULL");
    refused(lh_alltoallv(g, in, NULL, out, counts, LH_I32, NULL, &op), "alltoallv: in_counts is NULL");
    refused(lh_alltoallv(g, in, counts, out, NULL, LH_I32, NULL, &op), "alltoallv: out_counts is NULL");
}

/* Each call with two buffers, one element into the other, from either side. */
static void refuse_overlaps(struct lh_group *g)
{
    const size_t counts[RANKS] = {COUNT, COUNT};
    const uint32_t root = lh_group_rank(g), own = root * COUNT, all = RANKS * COUNT;
    int32_t memory[4 * RANKS * COUNT] = {0}, *m = memory;
    struct lh_collective *op;
    const char *const same = "allreduce: in and out overlap (use two buffers, or in == out)";
    refused(lh_allreduce(g, m, m + COUNT - 1, COUNT, LH_I32, LH_SUM, NULL, &op), same);
    refused(lh_allreduce(g, m + COUNT - 1, m, COUNT, LH_I32, LH_SUM, NULL, &op), same);
    refused(lh_allreduce(g, m, (uint8_t *)m + 1, COUNT, LH_I32, LH_SUM, NULL, &op), same);
    refused(lh_reduce(g, m + 1, m, COUNT, LH_I32, LH_SUM, root, NULL, &op),
            "reduce: in and out overlap (use two buffers, or in == out)");
    const char *const scattered = "reduce-scatter: in and out overlap (use two buffers)";
    refused(lh_reduce_scatter(g, m, m + all - 1, COUNT, LH_I32, LH_SUM, NULL, &op), scattered);
    refused(lh_reduce_scatter(g, m, m, COUNT, LH_I32, LH_SUM, NULL, &op), scattered);
    refused(lh_reduce_scatter(g, m, m + own, COUNT, LH_I32, LH_SUM, NULL, &op), scattered);
    const char *const gathered =
        "allgather: in and out overlap (use two buffers, or in at this rank's part of out)";
    refused(lh_allgather(g, m + own + 1, m, COUNT, LH_I32, NULL, &op), gathered);
    refused(lh_allgather(g, m + (COUNT - own), m, COUNT, LH_I32, NULL, &op), gathered); /* the other's */
    refused(lh_allgather(g, m, m + COUNT - 1, COUNT, LH_I32, NULL, &op), gathered);
    refused(lh_gather(g, m + own + 1, m, COUNT, LH_I32, root, NULL, &op),
            "gather: in and out overlap (use two buffers, or in at this rank's part of out)");
    refused(lh_scatter(g, m, m + own, COUNT, LH_I32, root, NULL, &op),
            "scatter: in and out overlap (use two buffers)");
    refused(lh_alltoall(g, m, m + all - 1, COUNT, LH_I32, NULL, &op),
            "alltoall: in and out overlap (use two buffers)");
    refused(lh_gatherv(g, m + own + 1, COUNT, m, counts, LH_I32, root, NULL, &op),
            "gatherv: in and out overlap (use two buffers, or in at this rank's part of out)");
    refused(lh_scatterv(g, m, counts, m + all - 1, COUNT, LH_I32, root, NULL, &op),
            "scatterv: in and out overlap (use two buffers)");
    refused(lh_alltoallv(g, m + all - 1, counts, m, counts, LH_I32, NULL, &op),
            "alltoallv: in and out overlap (use two buffers)");
}

static void done(int error, struct lh_collective **op)
{
    struct lh_collective_result result;
    sim_engines_must(error, "a collective");
    sim_engines_must(lh_collective_wait(*op, LIMIT_NS, &result), "lh_collective_wait");
    assert_int_equal(result.error, 0);
    lh_collective_free(*op);
}

/* Side by side is no overlap, nor are the forms in place, nor what a rank does not need. */
static void accept_neighbours(struct lh_group *g)
{
    const size_t counts[RANKS] = {COUNT, COUNT}, none[RANKS] = {0};
    const uint32_t own = lh_group_rank(g) * COUNT, all = RANKS * COUNT;
    int32_t m[4 * RANKS * COUNT] = {0};
    struct lh_collective *op = NULL;
    done(lh_allreduce(g, m, m, COUNT, LH_I32, LH_SUM, NULL, &op), &op);
    done(lh_allreduce(g, m, m + COUNT, COUNT, LH_I32, LH_SUM, NULL, &op), &op);
    done(lh_reduce(g, m, lh_group_rank(g) == 0 ? m : m + 1, COUNT, LH_I32, LH_SUM, 0, NULL, &op), &op);
    done(lh_reduce_scatter(g, m, m + all, COUNT, LH_I32, LH_SUM, NULL, &op), &op);
    done(lh_allgather(g, m + own, m, COUNT, LH_I32, NULL, &op), &op);
    done(lh_allgather(g, m + all, m, COUNT, LH_I32, NULL, &op), &op);
    done(lh_gather(g, m + own, m, COUNT, LH_I32, 0, NULL, &op), &op);
    done(lh_gatherv(g, m + own, COUNT, m, counts, LH_I32, 0, NULL, &op), &op);
    done(lh_alltoallv(g, m, none, m, none, LH_I32, NULL, &op), &op);
}

static void refuse_compare(struct lh_group *g)
{
    const struct lh_buffer empty = {.bytes = COUNT};
    bool differs[RANKS];
    struct lh_collective *op;
    refused(lh_compare(g, NULL, 1, differs, NULL, &op), "compare: buffers is NULL");
    refused(lh_compare(g, &empty, 1, NULL, NULL, &op), "compare: differs is NULL");
    refused(lh_compare(g, &empty, 1, differs, NULL, &op),
            "compare: buffers[0].data is NULL, and has 8 bytes");
    refused(lh_compare(g, NULL, 0, NULL, NULL, NULL), "compare: op is NULL");
    refused(lh_compare(NULL, NULL, 0, NULL, NULL, &op), "compare: group is NULL");
}

/* Where the operation goes; and the group, whose rank tells what a root needs. */
static void refuse_objects(struct lh_group *g)
{
    int32_t in[RANKS * COUNT] = {0}, out[RANKS * COUNT];
    struct lh_collective *op;
    refused(lh_barrier(g, NULL, NULL), "barrier: op is NULL");
    refused(lh_barrier(NULL, NULL, &op), "barrier: group is NULL");
    refused(lh_allreduce(NULL, in, out, COUNT, LH_I32, LH_SUM, NULL, &op), "allreduce: group is NULL");
    refused(lh_reduce(NULL, in, out, COUNT, LH_I32, LH_SUM, 0, NULL, &op), "reduce: group is NULL");
    refused(lh_gather(NULL, in, out, COUNT, LH_I32, 0, NULL, &op), "gather: group is NULL");
    refused(lh_scatter(NULL, in, out, COUNT, LH_I32, 0, NULL, &op), "scatter: group is NULL");
    refused(lh_gatherv(NULL, in, 0, out, NULL, LH_I32, 0, NULL, &op), "gatherv: group is NULL");
    refused(lh_scatterv(NULL, in, NULL, out, 0, LH_I32, 0, NULL, &op), "scatterv: group is NULL");
}

static void refuse_group(struct lh_group *g)
{
    struct lh_group *made;
    struct lh_group_attr attr;
    struct lh_group_path path;
    lh_group_attr_init(&attr);
    refused(lh_group_create(NULL, &made), "lh_group_create: attr is NULL");
    refused(lh_group_create(&attr, NULL), "lh_group_create: group is NULL");
    refused(lh_group_error(NULL, 0), "lh_group_error: group is NULL");
    refused(lh_group_shrink(NULL, &made), "lh_group_shrink: group is NULL");
    refused(lh_group_shrink(g, NULL), "lh_group_shrink: smaller is NULL");
    refused(lh_group_split(NULL, 0, 0, &made), "lh_group_split: group is NULL");
    refused(lh_group_split(g, 0, 0, NULL), "lh_group_split: part is NULL");
    refused(lh_group_measure(NULL), "lh_group_measure: group is NULL");
    refused(lh_group_path(NULL, 0, 1, &path), "lh_group_path: group is NULL");
    refused(lh_group_path(g, 0, 1, NULL), "lh_group_path: path is NULL");
    refused(lh_group_place(NULL, 0, NULL, NULL), "lh_group_place: group is NULL");
    refused(lh_group_progress(NULL, NULL), "lh_group_progress: group is NULL");
}

static void refuse_operation(struct lh_collective *op)
{
    uint64_t bytes;
    refused(lh_collective_test(NULL, NULL), "lh_collective_test: op is NULL");
    refused(lh_collective_wait(NULL, 0, NULL), "lh_collective_wait: op is NULL");
    refused(lh_collective_missing(NULL, 0, &bytes), "lh_collective_missing: op is NULL");
    refused(lh_collective_missing(op, 0, NULL), "lh_collective_missing: bytes is NULL");
    refused(lh_collective_ranges(NULL, 0, NULL, 0), "lh_collective_ranges: op is NULL");
    refused(lh_collective_ranges(op, 0, NULL, 1), "lh_collective_ranges: ranges is NULL");
    refused(lh_collective_cancel(NULL), "lh_collective_cancel: op is NULL");
}

static void run(struct rank_thread *thread)
{
    struct lh_group *group = create(thread);
    struct lh_collective *op;
    struct lh_collective_result result;
    int32_t in[COUNT] = {1, 2, 3}, out[COUNT];
    if (thread->rank == 1) { /* the other waits */
        refuse_memory(group);
        refuse_compare(group);
        refuse_objects(group);
        refuse_group(group);
    }
    sim_engines_must(lh_allreduce(group, in, out, COUNT, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "wait");
    sim_engines_must(result.error, result.message);
    assert_int_equal(out[2], RANKS * 3);
    refuse_operation(op);
    lh_collective_free(op);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_null(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run);
}

/* Numbers that are out of range, schedules that are not known, options of another library. */
static void refuse_values(struct lh_group *g)
{
    int32_t in[RANKS * COUNT] = {0}, out[RANKS * COUNT];
    struct lh_collective_options options;
    struct lh_collective *op;
    refused(lh_allreduce(g, in, out, COUNT, LH_TYPES, LH_SUM, NULL, &op),
            "allreduce: type 9: out of range (0 to 8)");
    refused(lh_allreduce(g, in, out, COUNT, LH_I32, LH_REDUCTIONS, NULL, &op),
            "allreduce: reduction 8: out of range (0 to 7)");
    refused(lh_reduce(g, in, out, COUNT, LH_F32, LH_BAND, 0, NULL, &op),
            "reduce: band of f32: reduces the bits of integers only (i32, i64, u8, i8, i16)");
    refused(lh_reduce_scatter(g, in, out, COUNT, LH_BF16, LH_BXOR, NULL, &op),
            "reduce-scatter: bxor of bf16: reduces the bits of integers only (i32, i64, u8, i8, i16)");
    refused(lh_reduce(g, in, out, COUNT, LH_I32, LH_SUM, RANKS, NULL, &op),
            "reduce: root 2: out of range (0 to 1)");
    refused(lh_broadcast(g, in, COUNT, LH_I32, UINT32_MAX, NULL, &op),
            "broadcast: root 4294967295: out of range (0 to 1)");
    refused(lh_allreduce(g, in, out, SIZE_MAX, LH_I32, LH_SUM, NULL, &op),
            "allreduce: 18446744073709551615 elements: out of range");
    refused(lh_allgather(g, in, out, SIZE_MAX / 8 + 1, LH_I32, NULL, &op), /* parts whose sum exceeds it */
            "allgather: 2305843009213693952 elements: out of range");
    lh_collective_options_init(&options);
    options.struct_bytes++;
    assert_int_equal(lh_barrier(g, &options, &op), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "call lh_collective_options_init()"));
    lh_collective_options_init(&options);
    options.schedule = "no-such";
    assert_int_equal(lh_allreduce(g, in, out, COUNT, LH_I32, LH_SUM, &options, &op), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "allreduce: schedule \"no-such\" is not known ("));
    assert_non_null(strstr(lh_last_error(), "direct"));
    const size_t counts[RANKS] = {COUNT, COUNT};
    assert_int_equal(lh_gatherv(g, in, COUNT, out, counts, LH_I32, lh_group_rank(g), &options, &op),
                     -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "gatherv: schedule \"no-such\" is not known ("));
    lh_collective_options_init(&options);
    sim_engines_must(lh_completion_queue_create(lh_group_engine(g), 1, &options.queue), "queue");
    refused(lh_barrier(g, &options, &op), "a completion queue of a collective needs lh_group_attr.thread");
    sim_engines_must(lh_completion_queue_destroy(options.queue), "queue");
}

static void run_values(struct rank_thread *thread)
{
    struct lh_group *group = create(thread);
    refuse_values(group);
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_values(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_values);
}

/* ---- results ----------------------------------------------------------------------------------------- */

static struct lh_collective_result result_of(int error, struct lh_collective **op)
{
    struct lh_collective_result result;
    sim_engines_must(error, "a collective");
    sim_engines_must(lh_collective_wait(*op, LIMIT_NS, &result), "lh_collective_wait");
    assert_true(result.ended_ns >= result.started_ns && result.started_ns > 0);
    assert_non_null(result.schedule);
    lh_collective_free(*op);
    return result;
}

static void expect_whole(const struct lh_collective_result *result, uint64_t sent, uint64_t received)
{
    assert_int_equal(result->error, 0);
    assert_int_equal(result->failed_rank, LH_NO_RANK);
    assert_string_equal(result->message, "");
    assert_int_equal(result->bytes_sent, sent);
    assert_int_equal(result->bytes_received, received);
    assert_int_equal(result->missing_bytes, 0);
}

/* Payload, between two ranks: each way what the other needs. */
static void run_results(struct rank_thread *thread)
{
    struct lh_group *g = create(thread);
    const bool first = thread->rank == 0;
    const uint64_t part = COUNT * sizeof(int32_t);
    int32_t in[RANKS * COUNT] = {0}, out[RANKS * COUNT];
    struct lh_collective *op = NULL;
    struct lh_collective_result result;
    result = result_of(lh_broadcast(g, in, COUNT, LH_I32, 0, NULL, &op), &op);
    expect_whole(&result, first ? part : 0, first ? 0 : part);
    result = result_of(lh_reduce(g, in, out, COUNT, LH_I32, LH_SUM, 0, NULL, &op), &op);
    expect_whole(&result, first ? 0 : part, first ? part : 0);
    result = result_of(lh_gather(g, in, out, COUNT, LH_I32, 1, NULL, &op), &op);
    expect_whole(&result, first ? part : 0, first ? 0 : part);
    result = result_of(lh_scatter(g, in, out, COUNT, LH_I32, 0, NULL, &op), &op);
    expect_whole(&result, first ? part : 0, first ? 0 : part);
    result = result_of(lh_allgather(g, in, out, COUNT, LH_I32, NULL, &op), &op);
    expect_whole(&result, part, part);
    result = result_of(lh_alltoall(g, in, out, COUNT, LH_I32, NULL, &op), &op);
    expect_whole(&result, part, part);
    result = result_of(lh_reduce_scatter(g, in, out, COUNT, LH_I32, LH_SUM, NULL, &op), &op);
    expect_whole(&result, part, part);
    result = result_of(lh_barrier(g, NULL, &op), &op);
    expect_whole(&result, 0, 0);
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_results(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_results);
}

/* Rank 1 does not begin before the deadline of rank 0 has passed. */
static void run_late(struct rank_thread *thread)
{
    struct lh_group *g = create(thread);
    struct lh_collective_options options;
    struct lh_collective *op = NULL;
    struct lh_collective_result result = {0};
    int32_t in[COUNT] = {0}, out[RANKS * COUNT];
    uint64_t missing = 1;
    lh_collective_options_init(&options);
    options.schedule = "ring";
    options.deadline_ns = 20 * LH_NS_PER_MS;
    if (thread->rank == 0) {
        sim_engines_must(lh_allgather(g, in, out, COUNT, LH_I32, &options, &op), "lh_allgather");
        assert_int_equal(lh_collective_test(op, NULL), 0);
        assert_int_equal(lh_collective_missing(op, 1, &missing), 0); /* it is pending */
        assert_int_equal(missing, 0);
        refused(lh_collective_missing(op, RANKS, &missing), "rank 2: out of range (0 to 1)");
        assert_int_equal(lh_collective_ranges(op, 0, NULL, 0), -LH_ESTATE);
        sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
        assert_int_equal(result.error, -LH_ETIMEDOUT);
        assert_int_equal(result.failed_rank, 1);
        assert_string_equal(result.message, "ring: deadline passed at rank 0: 1 blocks of rank 1 missing, "
                                            "which has not begun");
        assert_int_equal(lh_collective_ranges(op, 0, NULL, 0), -LH_ESTATE); /* it has failed */
        lh_collective_free(op);
    }
    rank_threads_meet(thread);
    options.deadline_ns = 0;
    if (thread->rank == 1) {
        result = result_of(lh_allgather(g, in, out, COUNT, LH_I32, &options, &op), &op);
        /* As rank 0 has told; or done, for all that it needs had arrived before. */
        assert_true(result.error == 0 || result.error == -LH_ETIMEDOUT);
    }
    sim_engines_must(lh_barrier(g, NULL, &op), "lh_barrier");
    if (thread->rank == 0)
        assert_int_equal(lh_collective_cancel(op), 0);
    rank_threads_meet(thread);
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
    assert_true(result.error == 0 || result.error == -LH_ECANCELED);
    lh_collective_free(op);
    lh_collective_free(NULL);
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_late(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_late);
}

/* Rank 1 does not begin before rank 0 has given up waiting; the operation goes on. */
static void run_pending(struct rank_thread *thread)
{
    struct lh_group *g = create(thread);
    struct lh_collective_options options;
    struct lh_collective *op = NULL;
    int32_t in[COUNT] = {0}, out[RANKS * COUNT];
    lh_collective_options_init(&options);
    options.schedule = "ring";
    if (thread->rank == 0) {
        sim_engines_must(lh_allgather(g, in, out, COUNT, LH_I32, &options, &op), "lh_allgather");
        assert_int_equal(lh_collective_wait(op, LH_NS_PER_MS, NULL), -LH_ETIMEDOUT);
        assert_string_equal(lh_last_error(), "ring is pending after 1 ms: blocks of rank 1 are missing");
    }
    rank_threads_meet(thread);
    done(thread->rank == 0 ? 0 : lh_allgather(g, in, out, COUNT, LH_I32, &options, &op), &op);
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_pending(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_pending);
}

/* Rank 1 leaves in order, while rank 0 needs its part. */
static void run_left(struct rank_thread *thread)
{
    struct lh_group *g = create(thread);
    struct lh_collective_options options;
    struct lh_collective *op = NULL;
    struct lh_collective_result result = {0};
    int32_t in[COUNT] = {0}, out[RANKS * COUNT];
    lh_collective_options_init(&options);
    options.schedule = "ring";
    if (thread->rank == 0)
        sim_engines_must(lh_allgather(g, in, out, COUNT, LH_I32, &options, &op), "lh_allgather");
    rank_threads_meet(thread);
    if (thread->rank == 0) {
        sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
        assert_int_equal(result.error, -LH_ECLOSED);
        assert_int_equal(result.failed_rank, 1);
        assert_string_equal(result.message, "ring: rank 1 has left the group: connection is closed");
        lh_collective_free(op);
    }
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_left(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_left);
}

/* ---- ranks that do not answer ------------------------------------------------------------------------ */

static void run_shrink(struct rank_thread *thread)
{
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *g, *smaller;
    attr.timeout_ns = 3 * LH_NS_PER_S; /* for creating, too */
    sim_engines_must(lh_group_create(&attr, &g), "lh_group_create");
    if (thread->rank == 0) {
        assert_int_equal(lh_group_shrink(g, &smaller), -LH_ETIMEDOUT);
        assert_string_equal(lh_last_error(), "lh_group_shrink: rank 1 did not call it in 3000 ms");
    }
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_nobody_else_shrinks(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_shrink);
}

/* ---- a thread of the group --------------------------------------------------------------------------- */

/* It makes the progress, whether a call waits or not. */
static void run_thread(struct rank_thread *thread)
{
    struct lh_group_attr attr = attr_of(thread);
    struct lh_group *g;
    struct lh_collective_options options;
    struct lh_collective *op = NULL;
    struct lh_collective_result result;
    struct lh_completion entry;
    int32_t in[COUNT] = {1, 2, 3}, out[COUNT] = {0};
    attr.thread = true;
    sim_engines_must(lh_group_create(&attr, &g), "lh_group_create");
    lh_collective_options_init(&options);
    sim_engines_must(lh_completion_queue_create(lh_group_engine(g), 1, &options.queue), "queue");
    sim_engines_must(lh_allreduce(g, in, out, COUNT, LH_I32, LH_SUM, &options, &op), "lh_allreduce");
    assert_int_equal(lh_queue_wait(options.queue, &entry, 1, LIMIT_NS), 1);
    assert_int_equal(lh_collective_test(op, &result), 1);
    assert_int_equal(result.error, 0);
    assert_int_equal(out[2], RANKS * 3);
    lh_collective_free(op);
    done(lh_allreduce(g, in, out, COUNT, LH_I32, LH_SUM, NULL, &op), &op);
    if (thread->rank == 0) { /* the other comes later: this one sleeps until its time is up */
        sim_engines_must(lh_barrier(g, NULL, &op), "lh_barrier");
        assert_int_equal(lh_collective_wait(op, LH_NS_PER_MS, NULL), -LH_ETIMEDOUT);
    }
    rank_threads_meet(thread);
    done(thread->rank == 0 ? 0 : lh_barrier(g, NULL, &op), &op);
    sim_engines_must(lh_completion_queue_destroy(options.queue), "queue");
    sim_engines_must(lh_group_destroy(g), "lh_group_destroy");
}

static void test_thread(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_thread);
}

/* Without elements there is no memory. */
static void run_empty(struct rank_thread *thread)
{
    struct lh_group *group = create(thread);
    struct lh_collective *op;
    struct lh_collective_result result;
    sim_engines_must(lh_allreduce(group, NULL, NULL, 0, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "wait");
    sim_engines_must(result.error, result.message);
    lh_collective_free(op);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_empty(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_empty);
}

static void run_overlaps(struct rank_thread *thread)
{
    struct lh_group *group = create(thread);
    refuse_overlaps(group);
    accept_neighbours(group);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_overlaps(void **state)
{
    (void)state;
    rank_threads_run(RANKS, run_overlaps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_overlaps),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_nobody_else_shrinks),
        cmocka_unit_test(test_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
