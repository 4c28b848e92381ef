/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_injector.h"

#include "unit/message/tx_part.h"

#include "control/message_control.h"

#define QUEUE_BYTES ((uint64_t)512 << 10) /* docs/connections.md, the window */

/* A segment of 4 chunks, the last one short. */
static struct tx_segment *begin_segment(void)
{
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    struct sdr_send_handle *handle;
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    sdr_streaming_send_start(&qp, &wr, &handle);
    struct tx_segment *segment = tx_segment_at(&tx, tx.segment_next++);
    uint32_t machine_bytes = 0;
    void *machine = NULL;
    assert_true(machine_hold(&machine, &machine_bytes, tx.store, sizeof(struct fake_machine)));
    *segment = (struct tx_segment){.active = true,
                                   .scheme = attr.scheme,
                                   .handle = handle,
                                   .machine = machine,
                                   .machine_bytes = machine_bytes,
                                   .payload = payload,
                                   .bytes = 3 * CHUNK + 5,
                                   .chunks = 4,
                                   .lkey = LKEY,
                                   .next_ns = LH_TIME_NEVER};
    return segment;
}

static void test_budget_is_what_window_and_queue_leave(void **state)
{
    (void)state;
    assert_int_equal(injector_budget_chunks(&tx), WINDOW / CHUNK);
    tx.in_flight_bytes = WINDOW - CHUNK;
    assert_int_equal(injector_budget_chunks(&tx), 1);
    tx.in_flight_bytes++;
    assert_int_equal(injector_budget_chunks(&tx), 0);
    tx.in_flight_bytes = 0;
    tx.window_bytes = QUEUE_BYTES * 2;
    qp.queued_bytes = QUEUE_BYTES - CHUNK;
    assert_int_equal(injector_budget_chunks(&tx), 1);
    assert_false(injector_has_room(&tx));
    qp.queued_bytes = QUEUE_BYTES / 2;
    assert_true(injector_has_room(&tx));
    qp.queued_bytes = QUEUE_BYTES;
    assert_int_equal(injector_budget_chunks(&tx), 0);
    qp.queued_bytes = 0;
    tx.window_bytes = 0; /* nothing would ever move */
    assert_int_equal(injector_budget_chunks(&tx), 1);
}

static void test_chunks_lie_where_the_message_does(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    fake_next_chunks(0, 1);
    fake_next_chunks(1, 3);
    assert_int_equal(injector_run(&tx, segment, 50), 0);
    assert_int_equal(qp.chunk_count, 2);
    assert_true(qp.chunks[0].offset == 0 && qp.chunks[0].length == CHUNK && qp.chunks[0].bytes == payload);
    assert_true(qp.chunks[1].offset == 1 && qp.chunks[1].length == 2 * CHUNK + 5);
    assert_ptr_equal(qp.chunks[1].bytes, payload + CHUNK);
    assert_int_equal(tx.posted_bytes, segment->bytes);
    assert_int_equal(tx.in_flight_bytes, 4 * CHUNK);
    assert_int_equal(tx.stats->tx_retransmitted_bytes, 0);
    assert_false(segment->needs_step);
    injector_end_segment(&tx, segment);
    assert_int_equal(tx.in_flight_bytes, 0);
    segment->active = false;
}

/* Each run of chunks that lies in one place is one entry of the queue; when that is full, the rest waits. */
static void test_chunks_in_several_places(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    struct segment_pieces pieces = {
        .count = 3, .chunks = 4, .list = {{payload + 500, 1, 0}, {payload + 5000, 2, 1}, {payload, 3, 3}}};
    segment->pieces = &pieces;
    segment->payload = NULL;
    fake_next_chunks(0, 4);
    qp.queue_room = 1;
    assert_int_equal(injector_run(&tx, segment, 50), 0);
    assert_int_equal(qp.chunk_count, 1);
    assert_ptr_equal(tx.blocked, segment);
    qp.queue_full = false;
    assert_int_equal(injector_continue(&tx, segment, 60), 0);
    assert_int_equal(qp.chunk_count, 3);
    assert_true(qp.chunks[0].offset == 0 && qp.chunks[0].length == CHUNK);
    assert_ptr_equal(qp.chunks[0].bytes, payload + 500);
    assert_true(qp.chunks[1].offset == 1 && qp.chunks[1].length == 2 * CHUNK);
    assert_ptr_equal(qp.chunks[1].bytes, payload + 5000);
    assert_true(qp.chunks[2].offset == 3 && qp.chunks[2].length == 5);
    assert_ptr_equal(qp.chunks[2].bytes, payload);
    assert_int_equal(tx.posted_bytes, segment->bytes);
    fake_next_chunks(2, 1);
    assert_int_equal(injector_run(&tx, segment, 70), 0);
    assert_ptr_equal(qp.chunks[3].bytes, payload + 5000 + CHUNK);
    injector_end_segment(&tx, segment);
    segment->active = false;
}

/* The rest of the list waits for the queue, and nothing overtakes it. */
static void test_a_full_queue_blocks(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    qp.queue_full = true;
    fake_next_chunks(0, 2);
    fake_next_message(3);
    assert_int_equal(injector_run(&tx, segment, 50), 0);
    assert_ptr_equal(tx.blocked, segment);
    assert_int_equal(injector_continue(&tx, segment, 60), 0);
    assert_ptr_equal(tx.blocked, segment);
    assert_int_equal(qp.message_count, 0);
    qp.queue_full = false;
    assert_int_equal(injector_continue(&tx, segment, 70), 0);
    assert_null(tx.blocked);
    assert_true(segment->needs_step);
    assert_int_equal(qp.chunk_count, 1);
    (void)fake_last(TRANSFER_TO_RECEIVER);
    qp.queue_full = true;
    fake_next_chunks(2, 1);
    (void)injector_run(&tx, segment, 80);
    injector_end_segment(&tx, segment);
    assert_null(tx.blocked);
    segment->active = false;
}

static void test_errors_are_for_the_caller(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    fake_next_fail(LH_ENOMEM);
    fake_next_chunks(0, 1);
    assert_int_equal(injector_run(&tx, segment, 0), LH_ENOMEM);
    assert_int_equal(qp.chunk_count, 0); /* what follows is not carried out */
    fake_next_fail(0);                   /* never taken for success */
    assert_int_equal(injector_run(&tx, segment, 0), LH_EPROTOCOL);
    qp.chunks_fail = true;
    fake_next_chunks(0, 1);
    assert_int_equal(injector_run(&tx, segment, 0), LH_EKEY);
    qp.error = -LH_EDEVICE; /* the step sees that */
    fake_next_chunks(0, 1);
    assert_int_equal(injector_run(&tx, segment, 0), 0);
    injector_end_segment(&tx, segment);
    segment->active = false;
}

static void test_retransmissions_are_counted(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    fake_next_chunks(2, 2);
    fake.next.list[0].what.chunks.again = true;
    (void)injector_run(&tx, segment, 0);
    assert_int_equal(tx.stats->tx_retransmitted_bytes, CHUNK + 5);
    assert_int_equal(tx.stats->tx_retransmitted_packets, 2);
}

/* What waits in the queue is late only so much later. */
static void test_overdue_allows_for_the_queue(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    qp.queued_bytes = CHUNK;
    fake_next_chunks(0, 1);
    (void)injector_run(&tx, segment, 100);
    assert_int_equal(injector_path_view(&tx, 100).overdue_ns, OVERDUE_NS);
    assert_int_equal(injector_path_view(&tx, 350).overdue_ns, OVERDUE_NS + 250);
    qp.path.rtt_ns = 0;
    assert_int_equal(injector_path_view(&tx, 350).overdue_ns, OVERDUE_NS);
}

/* An aborted send is given back, with its parity, when the fabric has released it. */
static void test_ended_sends_are_collected(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    segment->coded.buffer = parity_take(&parity, CHUNK, 0);
    clear_segment(0, 1);
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    sdr_streaming_send_start(&qp, &wr, &segment->coded.handle);
    qp.holds_sends = true;
    injector_end_segment(&tx, segment);
    segment->active = false;
    assert_true(qp.sends[0].aborted && qp.sends[1].aborted);
    injector_collect(&tx, 1);
    assert_true(tx.ending_count == 2 && parity.in_use == 1);
    qp.holds_sends = false;
    injector_collect(&tx, 2);
    assert_true(tx.ending_count == 0 && parity.in_use == 0);
}

static void test_encoded_counts_without_gaps(void **state)
{
    (void)state;
    struct tx_segment segment = {.coded.asked = LH_ENCODES_MAX};
    struct coder_result result = {.owner = &segment, .number = LH_ENCODES_MAX - 1, .took_ns = 4};
    injector_on_encoded(&tx, &result);
    assert_int_equal(segment.coded.encoded, 0);
    for (uint32_t i = 1; i < LH_ENCODES_MAX - 1; i++) {
        result.number = i;
        injector_on_encoded(&tx, &result);
    }
    assert_int_equal(segment.coded.encoded, 0);
    result.number = 0;
    injector_on_encoded(&tx, &result);
    assert_int_equal(segment.coded.encoded, LH_ENCODES_MAX);
    assert_true(segment.needs_step);
    assert_int_equal(tx.stats->encode_ns, 4 * LH_ENCODES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_budget_is_what_window_and_queue_leave),
        TX_TEST(test_chunks_lie_where_the_message_does),
        TX_TEST(test_chunks_in_several_places),
        TX_TEST(test_a_full_queue_blocks),
        TX_TEST(test_errors_are_for_the_caller),
        TX_TEST(test_retransmissions_are_counted),
        TX_TEST(test_overdue_allows_for_the_queue),
        TX_TEST(test_ended_sends_are_collected),
        TX_TEST(test_encoded_counts_without_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
