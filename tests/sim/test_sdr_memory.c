/*
 * test_sdr_memory.c - registrations of the SDK: not given back while a receive or a send uses them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "support/sdr_pair.h"

#define MESSAGE_BYTES (64u * 1024)

/* A second registration of an end's arena, with a key of its own. */
static struct sdr_mr *register_again(struct sdr_pair_end *end, uint32_t *lkey)
{
    struct sdr_mr *mr = sdr_mr_reg(end->context, end->arena, SDR_PAIR_ARENA_BYTES, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    assert_int_equal(sdr_mr_lkey_get(mr, lkey), SDR_SUCCESS);
    return mr;
}

static void refused(struct sdr_mr *mr, const char *who)
{
    assert_int_equal(sdr_mr_dereg(mr), SDR_ERROR);
    assert_non_null(strstr(lh_last_error(), who));
}

static void test_no_registration_is_nothing_to_do(void **state)
{
    (void)state;
    assert_int_equal(sdr_mr_dereg(NULL), SDR_SUCCESS);
}

static void test_not_while_a_receive_is_posted(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv, *other;
    struct sdr_send_handle *send;
    sdr_pair_open(&pair, &(struct sdr_pair_options){0});
    struct sdr_pair_end *end = &pair.ends[SDR_PAIR_RX];
    uint32_t lkey;
    struct sdr_mr *again = register_again(end, &lkey);
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    refused(end->mr, "receive");
    /* The other registration covers the same bytes, but no receive has its key. */
    assert_int_equal(sdr_mr_dereg(again), SDR_SUCCESS);
    /* What was refused is as it was: another receive, and data. */
    assert_int_equal(sdr_pair_recv(&pair, MESSAGE_BYTES, MESSAGE_BYTES, &other), SDR_SUCCESS);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_int_equal(sdr_pair_send(&pair, 0, MESSAGE_BYTES, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_true(sdr_pair_same(&pair, 0, 0, MESSAGE_BYTES));
    /* Whole is not completed: the buffer is still the library's. */
    refused(end->mr, "receive");
    assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    refused(end->mr, "receive");
    assert_int_equal(sdr_recv_complete(other), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(end->mr), SDR_SUCCESS);
    end->mr = register_again(end, &end->lkey);
    sdr_pair_close(&pair);
}

static void test_not_while_a_send_is_queued(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    sdr_pair_open(&pair, &(struct sdr_pair_options){0});
    struct sdr_pair_end *end = &pair.ends[SDR_PAIR_TX];
    uint32_t lkey;
    struct sdr_mr *again = register_again(end, &lkey);
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_int_equal(sdr_pair_send(&pair, 0, MESSAGE_BYTES, 0, &send), SDR_SUCCESS);
    refused(end->mr, "send");
    assert_int_equal(sdr_mr_dereg(again), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    assert_int_equal(sdr_mr_dereg(end->mr), SDR_SUCCESS);
    end->mr = register_again(end, &end->lkey);
    sdr_pair_close(&pair);
}

static void test_an_aborted_send_uses_nothing(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    sdr_pair_open(&pair, &(struct sdr_pair_options){0});
    struct sdr_pair_end *end = &pair.ends[SDR_PAIR_TX];
    struct sdr_send_start_wr start = {.opcode = SDR_WR_WRITE};
    struct sdr_send_continue_wr part = {MESSAGE_BYTES, (uint64_t)(uintptr_t)end->arena, end->lkey, 0};
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_int_equal(sdr_streaming_send_start(end->qp, &start, &send), SDR_SUCCESS);
    assert_int_equal(sdr_streaming_send_continue(send, &part), SDR_SUCCESS);
    refused(end->mr, "send");
    assert_int_equal(lh_sdr_streaming_send_abort(send), 0);
    assert_int_equal(sdr_mr_dereg(end->mr), SDR_SUCCESS);
    end->mr = register_again(end, &end->lkey);
    assert_int_equal(sdr_pair_finish(&pair, send), 1);
    sdr_pair_close(&pair);
}

static void test_with_the_qp_goes_what_it_used(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv;
    sdr_pair_open(&pair, &(struct sdr_pair_options){0});
    struct sdr_pair_end *end = &pair.ends[SDR_PAIR_RX];
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    refused(end->mr, "receive");
    assert_true(store_bytes(sdr_context_store(end->context)) > 0);
    assert_int_equal(sdr_qp_destroy(end->qp), SDR_SUCCESS);
    end->qp = NULL;
    sdr_pair_run(&pair, LH_NS_PER_S);
    assert_int_equal(store_bytes(sdr_context_store(end->context)), 0);
    assert_int_equal(sdr_mr_dereg(end->mr), SDR_SUCCESS);
    end->mr = NULL;
    sdr_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_registration_is_nothing_to_do),
        cmocka_unit_test(test_not_while_a_receive_is_posted),
        cmocka_unit_test(test_not_while_a_send_is_queued),
        cmocka_unit_test(test_an_aborted_send_uses_nothing),
        cmocka_unit_test(test_with_the_qp_goes_what_it_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
