/*
 * test_group_operation.c - operations that have not begun: which may be bounded, their memory, the order that
 * they follow, and what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/group_operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/error.h"
#include "collective/schedules.h"
#include "group/bounded_operation.h"
#include "support/op_request.h"

#define RANKS 3u
#define RANK  1u
#define BLOCK 4096u
#define PART  6000u

struct fixture {
    uint32_t of_mesh[RANKS];
    struct link links[RANKS];
    struct members members;
    struct group_paths paths;
    struct op_context context;
    uint8_t in[PART], out[RANKS * PART];
};

static struct fixture f;

static int set_up(void **state)
{
    static const uint32_t sites[RANKS] = {0};
    (void)state;
    f = (struct fixture){.of_mesh = {0, 1, 2}};
    f.members =
        (struct members){.id = 4, .rank = RANK, .size = RANKS, .of_mesh = f.of_mesh, .links = f.links};
    f.paths = (struct group_paths){.members = &f.members, .block_bytes = BLOCK};
    f.paths.order = group_order_create(sites, NULL, RANKS);
    assert_non_null(f.paths.order);
    f.context = (struct op_context){
        .members = &f.members, .paths = &f.paths, .block_bytes = BLOCK, .bounded = {true, true}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (f.context.work)
        munmap(f.context.work, f.context.work_bytes);
    group_order_release(f.paths.order);
    return 0;
}

/* ---- which operations -------------------------------------------------------------------------------- */

static void expect_refused(const struct op_request *request, const char *text)
{
    bool is = false;
    assert_int_equal(bounded_check(&f.context, request, &is), -LH_EINVAL);
    assert_string_equal(lh_last_error(), text);
}

static bool checked(const struct op_request *request)
{
    bool is = false;
    assert_int_equal(bounded_check(&f.context, request, &is), 0);
    return is;
}

static void test_which_operations(void **state)
{
    struct lh_collective_options options = {.struct_bytes = sizeof options, .reliable = true};
    struct op_request request = op_request_of(COLLECTIVE_ALLREDUCE, f.in, f.out, LH_F32, 1025);
    (void)state;
    assert_true(checked(&request));
    for (enum lh_type type = 0; type < LH_TYPES; type++) {
        char text[200];
        request = op_request_of(COLLECTIVE_ALLREDUCE, f.in, f.out, type, 8192);
        if (type == LH_F32 || type == LH_F16 || type == LH_BF16) {
            assert_true(checked(&request));
            continue;
        }
        snprintf(text, sizeof text,
                 "allreduce: the reliability bounded supports f32, f16 and bf16, not %s (set "
                 "lh_collective_options.reliable)",
                 lh_type_name(type));
        expect_refused(&request, text);
    }
    request = op_request_of(COLLECTIVE_ALLREDUCE, f.in, f.out, LH_F32, 1024);
    assert_false(checked(&request)); /* so little is reliable */
    request = op_request_of(COLLECTIVE_ALLREDUCE, f.in, f.out, LH_F32, 1025);
    request.reduction = LH_MIN;
    expect_refused(&request, "allreduce: the reliability bounded supports sum and avg, not min (set "
                             "lh_collective_options.reliable)");
    request.options = &options;
    assert_false(checked(&request));
    options.reliable = false;
    request.reduction = LH_AVG;
    assert_true(checked(&request));
    request = op_request_of(COLLECTIVE_BROADCAST, f.in, f.out, LH_I32, 8192);
    assert_true(checked(&request));
    request = op_request_of(COLLECTIVE_ALLGATHER, f.in, f.out, LH_I32, 8192);
    assert_true(checked(&request));
    request = op_request_of(COLLECTIVE_REDUCE_SCATTER, f.in, f.out, LH_F16, 8192);
    assert_true(checked(&request));
    request = op_request_of(COLLECTIVE_GATHER, f.in, f.out, LH_F32, 8192);
    expect_refused(&request, "gather: unsupported with the reliability bounded (allreduce, reduce-scatter, "
                             "allgather, broadcast; else set lh_collective_options.reliable)");
    f.context.bounded[0] = false; /* all are in one site */
    assert_false(checked(&request));
    f.context.bounded[0] = true;
    f.context.bounded[1] = false;
    request = op_request_of(COLLECTIVE_ALLGATHER, f.in, f.out, LH_I32, 8192);
    assert_true(checked(&request));
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static struct lh_collective *create(enum collective collective, const char *schedule)
{
    struct lh_collective *op;
    const struct op_request request = op_request_of(collective, f.in, f.out, LH_U8, PART / RANKS);
    assert_int_equal(op_create(&f.context, &request, schedule_find(collective, schedule), &op), 0);
    return op;
}

/* What passes through ranks needs memory, which the next operation gets; two at a time have one each. */
static void test_work_memory(void **state)
{
    (void)state;
    f.context.bounded[0] = f.context.bounded[1] = false;
    struct lh_collective *op = create(COLLECTIVE_ALLTOALL, "pairwise");
    assert_null(op->work);
    op_destroy(op);
    op = create(COLLECTIVE_ALLTOALL, "bruck");
    uint8_t *work = op->work;
    assert_non_null(work);
    op_destroy(op);
    assert_ptr_equal(f.context.work, work);
    op = create(COLLECTIVE_ALLTOALL, "bruck");
    assert_ptr_equal(op->work, work);
    struct lh_collective *other = create(COLLECTIVE_ALLTOALL, "bruck");
    assert_non_null(other->work);
    assert_ptr_not_equal(other->work, work);
    op_destroy(op);
    op_destroy(other);
    assert_ptr_equal(f.context.work, work);
    assert_false(f.context.work_taken);
}

/* Operations of sites follow their order, but for those by rank. */
static void test_order(void **state)
{
    static const uint32_t sites[RANKS] = {0, 1, 0};
    struct op_request request = op_request_of(COLLECTIVE_ALLGATHER, f.in, f.out, LH_U8, PART);
    struct lh_collective *op;
    (void)state;
    f.context.bounded[0] = f.context.bounded[1] = false;
    group_order_release(f.paths.order);
    f.paths.order = group_order_create(sites, NULL, RANKS);
    f.paths.measured = 77;
    op = create(COLLECTIVE_ALLGATHER, "ring");
    assert_ptr_equal(op->order, f.paths.order);
    assert_int_equal(f.paths.order->users, 2);
    assert_int_equal(op->signature.paths, 77);
    op_destroy(op);
    assert_int_equal(f.paths.order->users, 1);
    request.by_rank = true;
    assert_int_equal(op_create(&f.context, &request, schedule_find(COLLECTIVE_ALLGATHER, "ring"), &op), 0);
    assert_null(op->order);
    assert_int_equal(op->signature.paths, 0);
    assert_int_equal(op->signature.count, PART);
    op_destroy(op);
}

static void test_refused_operations(void **state)
{
    struct op_request request = op_request_of(COLLECTIVE_ALLGATHER, f.in, f.out, LH_I64, PART);
    struct lh_collective_options options = {.struct_bytes = sizeof options, .block_bytes = 7};
    struct lh_collective *op = NULL;
    (void)state;
    f.context.bounded[0] = f.context.bounded[1] = false;
    request.options = &options;
    const struct schedule *ring = schedule_find(COLLECTIVE_ALLGATHER, "ring");
    assert_int_equal(op_create(&f.context, &request, ring, &op), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "block_bytes 7: below an element of 8 bytes");
    options.block_bytes = 8;
    request.count = (size_t)1 << 30;
    assert_int_equal(op_create(&f.context, &request, ring, &op), -LH_EINVAL);
    assert_string_equal(
        lh_last_error(),
        "allgather: 1073741824 elements in blocks of 8 bytes: too many (raise block_bytes)");
    assert_null(op);
    options.block_bytes = 2 * BLOCK; /* the group's is the maximum */
    request.count = PART / 8;
    assert_int_equal(op_create(&f.context, &request, ring, &op), 0);
    assert_int_equal(op->signature.block_bytes, BLOCK);
    op_destroy(op);
}

#define OPERATION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(test_which_operations),
        OPERATION_TEST(test_work_memory),
        OPERATION_TEST(test_order),
        OPERATION_TEST(test_refused_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
