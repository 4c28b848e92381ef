/*
 * test_sdr_idle.c - memory of a queue pair: taken when it is used, given back when it is idle, refused beyond
 * the limit without harm.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sdr/qp.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "support/sdr_pair.h"

#define MS            LH_NS_PER_MS
#define MESSAGE_BYTES (64u * 1024)
#define IDLE_NS       (3 * STORE_IDLE_NS)

static struct store *store_of(struct sdr_pair *pair, uint32_t end)
{
    return sdr_context_store(pair->ends[end].context);
}

static uint64_t opened_bytes[2]; /* of queue pairs that were just connected */

/* Those, and the handles of receives, which stay valid. */
static uint64_t idle_bytes(struct sdr_pair *pair, uint32_t end)
{
    const struct sdr_qp *qp = pair->ends[end].qp;
    size_t handles = qp->shape.slots * (sizeof *qp->recvs + sizeof *qp->free_slots);
    return opened_bytes[end] + (qp->recvs ? handles : 0);
}

/* Beside those. */
static uint64_t bytes_of(struct sdr_pair *pair, uint32_t end)
{
    return store_bytes(store_of(pair, end)) - idle_bytes(pair, end);
}

static void open_pair(struct sdr_pair *pair)
{
    const struct sdr_pair_options options = {.seed = 1, .link = {.delay_ns = MS}};
    sdr_pair_open(pair, &options);
    sdr_pair_run(pair, 100 * MS);
    for (uint32_t end = 0; end < 2; end++)
        opened_bytes[end] = store_bytes(store_of(pair, end));
}

/* `count` messages at once, which arrive whole. */
static void exchange(struct sdr_pair *pair, uint32_t count)
{
    struct sdr_recv_handle *recvs[4];
    struct sdr_send_handle *sends[4];
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sdr_pair_recv(pair, i * MESSAGE_BYTES, MESSAGE_BYTES, &recvs[i]), SDR_SUCCESS);
    sdr_pair_run(pair, 10 * MS);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sdr_pair_send(pair, i * MESSAGE_BYTES, MESSAGE_BYTES, 0, &sends[i]), SDR_SUCCESS);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sdr_pair_finish(pair, sends[i]), 0);
    sdr_pair_run(pair, 10 * MS);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sdr_recv_complete(recvs[i]), SDR_SUCCESS);
    assert_true(sdr_pair_same(pair, 0, 0, count * MESSAGE_BYTES));
}

static void send_word(struct sdr_pair *pair, uint32_t from)
{
    uint8_t heard[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    assert_int_equal(lh_sdr_message_send(pair->ends[from].qp, "word", 4), 0);
    sdr_pair_run(pair, 10 * MS);
    assert_int_equal(lh_sdr_message_recv(pair->ends[!from].qp, heard, &bytes), 0);
    assert_int_equal(bytes, 4);
}

static void test_idle_takes_nothing(void **state)
{
    (void)state;
    struct sdr_pair pair;
    open_pair(&pair);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t end = 0; end < 2; end++)
            assert_int_equal(bytes_of(&pair, end), 0);
        exchange(&pair, 1);
        uint64_t one[2] = {bytes_of(&pair, 0), bytes_of(&pair, 1)};
        exchange(&pair, 4);
        send_word(&pair, 0);
        send_word(&pair, 1);
        for (uint32_t end = 0; end < 2; end++) {
            assert_true(one[end] > 0);
            assert_true(bytes_of(&pair, end) > one[end]);
        }
        sdr_pair_run(&pair, IDLE_NS);
    }
    sdr_pair_close(&pair);
}

/* A program may have a receive posted for ever. */
static void test_what_is_posted_stays(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    open_pair(&pair);
    exchange(&pair, 4);
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    uint64_t busy = bytes_of(&pair, SDR_PAIR_RX);
    sdr_pair_run(&pair, IDLE_NS);
    uint64_t idle = bytes_of(&pair, SDR_PAIR_RX);
    assert_true(idle > 0 && idle < busy);
    /* Its clear-to-send is at the sender, and nothing else. */
    assert_int_equal(bytes_of(&pair, SDR_PAIR_TX), 4 * sizeof(struct control_cts));
    assert_int_equal(sdr_pair_send(&pair, MESSAGE_BYTES, MESSAGE_BYTES, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    sdr_pair_run(&pair, 10 * MS);
    assert_true(sdr_pair_same(&pair, 0, MESSAGE_BYTES, MESSAGE_BYTES));
    assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    sdr_pair_run(&pair, IDLE_NS);
    for (uint32_t end = 0; end < 2; end++)
        assert_int_equal(bytes_of(&pair, end), 0);
    sdr_pair_close(&pair);
}

/* A handle of a receive that is over is refused, as long as the QP lives. */
static void test_completed_receives_are_refused(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_recv_handle *recv;
    uint64_t bitmap[4];
    open_pair(&pair);
    assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
    assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    sdr_pair_run(&pair, IDLE_NS);
    assert_int_equal(sdr_recv_complete(recv), SDR_ERROR);
    assert_int_equal(lh_sdr_recv_truncate(recv, 0), -LH_ESTATE);
    assert_int_equal(sdr_recv_bitmap_chunk_expand(recv, 0, bitmap), SDR_ERROR);
    sdr_pair_close(&pair);
}

/* With less memory than a message needs: whatever call fails, it says so, and works once there is memory. */
static void test_no_memory(void **state)
{
    (void)state;
    uint32_t refused = 0;
    for (uint64_t limit = 0; limit < 32768; limit += 192) {
        struct sdr_pair pair;
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        open_pair(&pair);
        for (uint32_t end = 0; end < 2; end++)
            store_of(&pair, end)->limit_bytes = opened_bytes[end] + limit;
        int posted = sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv);
        if (posted != SDR_SUCCESS) {
            assert_int_equal(posted, SDR_ERROR);
            assert_non_null(strstr(lh_last_error(), "limit of the engine's memory"));
            store_of(&pair, SDR_PAIR_RX)->limit_bytes = UINT64_MAX;
            assert_int_equal(sdr_pair_recv(&pair, 0, MESSAGE_BYTES, &recv), SDR_SUCCESS);
        }
        sdr_pair_run(&pair, 10 * MS);
        int sent = sdr_pair_send(&pair, 0, MESSAGE_BYTES, 0, &send);
        if (sent != SDR_SUCCESS) {
            /* SDR_RETRY: the clear-to-send counted as lost. */
            store_of(&pair, SDR_PAIR_TX)->limit_bytes = UINT64_MAX;
            sdr_pair_run(&pair, 1000 * MS);
            assert_int_equal(sdr_pair_send(&pair, 0, MESSAGE_BYTES, 0, &send), SDR_SUCCESS);
        }
        refused += posted != SDR_SUCCESS || sent != SDR_SUCCESS;
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
        sdr_pair_run(&pair, 10 * MS);
        assert_true(sdr_pair_same(&pair, 0, 0, MESSAGE_BYTES));
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
        sdr_pair_run(&pair, IDLE_NS);
        for (uint32_t end = 0; end < 2; end++)
            assert_int_equal(bytes_of(&pair, end), 0);
        sdr_pair_close(&pair);
    }
    assert_true(refused > 3);
}

/* Messages of the layer above: refused here, lost there. */
static void test_no_memory_for_messages(void **state)
{
    (void)state;
    struct sdr_pair pair;
    uint8_t heard[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    open_pair(&pair);
    store_of(&pair, 0)->limit_bytes = 0;
    assert_int_equal(lh_sdr_message_send(pair.ends[0].qp, "word", 4), -LH_ENOMEM);
    assert_int_equal(lh_sdr_message_send(pair.ends[1].qp, "word", 4), 0);
    sdr_pair_run(&pair, 10 * MS);
    assert_int_equal(lh_sdr_message_recv(pair.ends[0].qp, heard, &bytes), -LH_EAGAIN);
    assert_int_equal(sdr_pair_stats(&pair, 0).rx_inbox_overflow, 1);
    store_of(&pair, 0)->limit_bytes = UINT64_MAX;
    send_word(&pair, 0);
    send_word(&pair, 1);
    sdr_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_takes_nothing),
        cmocka_unit_test(test_what_is_posted_stays),
        cmocka_unit_test(test_completed_receives_are_refused),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_for_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
