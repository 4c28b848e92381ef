/*
 * test_connection_coding.c - messages of a scheme that codes: parity beside each segment, in simulation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/connection_state.h"
#include "support/connection_pair.h"
#include "support/held_release.h"
#include "support/parity_scheme.h"

#define MTU   1024u
#define SLOT  16384u
#define SLOTS 8u

#define CLEAN_LINK "rtt=10ms,rate=10Gbit"
#define LOSSY_LINK "rtt=10ms,rate=10Gbit,loss=0.05"
#define BAD_LINK   "rtt=10ms,rate=10Gbit,loss=0.05,reorder=0.02,duplicate=0.02,corrupt=0.01,jitter=200us"

static void parity_attr(struct lh_attr *attr)
{
    connection_pair_attr(attr);
    attr->scheme = &parity_scheme;
    attr->reliability = "parity";
}

static struct connection_pair open_with(const char *link, const struct lh_attr *attr)
{
    struct connection_pair pair;
    connection_pair_open(&pair, "coding", 11, link, attr, NULL);
    return pair;
}

static struct connection_pair open_pair(const char *link)
{
    struct lh_attr attr;
    parity_attr(&attr);
    return open_with(link, &attr);
}

static struct lh_stats stats_of(const struct connection_pair *pair, int end)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair->ends[end], &stats), 0);
    return stats;
}

static const size_t sizes[] = {
    0,        1,    MTU - 1,  MTU,      MTU + 1,      4 * MTU,          4 * MTU + 1,
    SLOT - 1, SLOT, SLOT + 1, 3 * SLOT, 3 * SLOT + 5, SLOTS *SLOT + 17, 40 * SLOT,
};

static void every_size(const char *link)
{
    struct connection_pair pair = open_pair(link);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        connection_pair_transfer(&pair, (int)(i % 2), sizes[i], sizes[i]);
        connection_pair_transfer(&pair, (int)(i % 2), sizes[i], sizes[i] + 20 * SLOT + 3);
    }
    connection_pair_close(&pair);
}

static void every_size_on_a_clean_link(void **state)
{
    (void)state;
    every_size(CLEAN_LINK);
}

static void every_size_on_a_bad_link(void **state)
{
    (void)state;
    every_size(BAD_LINK);
}

static void lost_chunks_are_recovered(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(LOSSY_LINK);
    connection_pair_transfer(&pair, 0, 40 * SLOT, 40 * SLOT);
    assert_true(stats_of(&pair, 1).chunks_recovered > 0);
    assert_int_equal(stats_of(&pair, 0).chunks_recovered, 0);
    connection_pair_close(&pair);
}

/* Only parity that was needed and came is decoded with: nothing to recover, nothing recovered. */
static void nothing_lost_nothing_recovered(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    connection_pair_transfer(&pair, 0, 40 * SLOT, 40 * SLOT);
    assert_int_equal(stats_of(&pair, 1).chunks_recovered, 0);
    assert_int_equal(stats_of(&pair, 1).decode_ns, 0);
    connection_pair_close(&pair);
}

static void two_slots_are_enough(void **state)
{
    (void)state;
    struct lh_attr attr;
    parity_attr(&attr);
    attr.slots = 2;
    struct connection_pair pair = open_with(BAD_LINK, &attr);
    connection_pair_transfer(&pair, 0, 5 * SLOT + 1, 5 * SLOT + 1);
    connection_pair_close(&pair);
}

/* ---- ends --------------------------------------------------------------------------------------------- */

/* At many moments of a transfer: the buffers are the caller's afterwards. */
static void canceled_at_any_moment(void **state)
{
    (void)state;
    size_t bytes = 10 * SLOT;
    uint8_t *data = connection_pair_bytes(bytes, 1);
    for (unsigned turns = 0; turns < 120; turns += 3) {
        struct lh_attr attr;
        parity_attr(&attr);
        struct connection_pair pair = open_with(LOSSY_LINK, &attr);
        uint8_t *buffer = connection_pair_bytes(bytes, 2);
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
        struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
        for (unsigned i = 0; i < turns; i++)
            connection_pair_turn(&pair, LH_TIME_NEVER - 1);
        lh_cancel(turns % 4 < 2 ? send : recv);
        struct lh_result sent = connection_pair_finish(&pair, send);
        struct lh_result received = connection_pair_finish(&pair, recv);
        if (received.error == 0)
            assert_memory_equal(buffer, data, bytes);
        if (sent.error == 0)
            assert_int_equal(received.error, 0); /* acknowledged: the receiver has it whole */
        connection_pair_transfer(&pair, 0, SLOT, SLOT);
        free(buffer);
        connection_pair_close(&pair);
    }
    free(data);
}

/* What was acknowledged is handed over, even when the receiver closes while it decodes. */
static void closed_after_the_acknowledgement(void **state)
{
    (void)state;
    size_t bytes = 10 * SLOT;
    uint8_t *data = connection_pair_bytes(bytes, 1);
    uint8_t *buffer = connection_pair_bytes(bytes, 2);
    struct lh_attr attr;
    parity_attr(&attr);
    struct connection_pair pair = open_with(LOSSY_LINK, &attr);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
    struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
    struct lh_result sent;
    struct lh_result received;
    while (!lh_test(send, &sent))
        connection_pair_turn(&pair, LH_TIME_NEVER - 1);
    lh_close(pair.ends[1]);
    assert_int_equal(lh_test(recv, &received), 1);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_memory_equal(buffer, data, bytes);
    lh_request_free(send);
    lh_request_free(recv);
    lh_close(pair.ends[0]);
    sim_world_destroy(pair.world);
    free(data);
    free(buffer);
}

/* ---- memory ------------------------------------------------------------------------------------------- */

/* Memory for parity comes from here, and is known by its size. */
#define PARITY_SENDER_BYTES   ((size_t)SLOT / PARITY_GROUP)
#define PARITY_RECEIVER_BYTES (PARITY_SENDER_BYTES + 64) /* it copies the bitmaps, too */
static uint32_t sender_left = UINT32_MAX;                /* pieces that there are */
static uint32_t receiver_left = UINT32_MAX;

void *aligned_alloc(size_t alignment, size_t bytes)
{
    uint32_t *left = bytes == PARITY_SENDER_BYTES     ? &sender_left
                     : bytes == PARITY_RECEIVER_BYTES ? &receiver_left
                                                      : NULL;
    void *memory = NULL;
    if (left && *left == 0)
        return NULL;
    if (left && *left != UINT32_MAX)
        --*left;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

/* Segments wait for those before them to give their parity back. */
static void memory_for_one_segment_is_enough(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(BAD_LINK);
    sender_left = 1;
    receiver_left = 1;
    connection_pair_transfer(&pair, 0, 20 * SLOT, 20 * SLOT);
    sender_left = UINT32_MAX;
    receiver_left = UINT32_MAX;
    connection_pair_close(&pair);
}

/* The message ends, with words; with memory the next one goes through. */
static void no_memory_for_parity(void **state)
{
    (void)state;
    for (int receiver = 0; receiver < 2; receiver++) {
        struct connection_pair pair = open_pair(CLEAN_LINK);
        uint8_t *data = connection_pair_bytes(2 * SLOT, 1);
        uint8_t *buffer = connection_pair_bytes(2 * SLOT, 2);
        *(receiver ? &receiver_left : &sender_left) = 0;
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 2 * SLOT);
        struct lh_request *send = connection_pair_send(&pair, 0, data, 2 * SLOT);
        assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ENOMEM);
        assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ENOMEM);
        sender_left = UINT32_MAX;
        receiver_left = UINT32_MAX;
        connection_pair_transfer(&pair, 0, 2 * SLOT, 2 * SLOT);
        connection_pair_close(&pair);
        free(data);
        free(buffer);
    }
}

/* ---- a peer that does not keep to it ------------------------------------------------------------------- */

/* How the first clear-to-send cuts a message, so do all: what memory it takes was reckoned from that. */
static void other_segments_half_way_end_it(void **state)
{
    (void)state;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = "ec:mds,k=1,m=3"; /* 5 chunks a segment */
    struct connection_pair pair = open_with(CLEAN_LINK, &attr);
    struct lh_connection *c = pair.ends[1];
    uint8_t *data = connection_pair_bytes(20 * SLOT, 1);
    uint8_t *buffer = connection_pair_bytes(20 * SLOT, 2);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 20 * SLOT);
    connection_pair_run(&pair, 20 * LH_NS_PER_MS);
    struct scheme_choice *choice = &rx_message_at(&c->rx, 0)->choice;
    assert_int_equal(choice->scheme->parse("k=4,m=2", choice->params), 0); /* 16 chunks */
    struct lh_request *send = connection_pair_send(&pair, 0, data, 20 * SLOT);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    assert_true(connection_pair_finish(&pair, recv).error != 0);
    assert_non_null(strstr(effects_reason(&pair.ends[0]->effects), "segment size within"));
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

static void less_room_than_parity_ends_it(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    struct lh_connection *c = pair.ends[1];
    uint8_t *data = connection_pair_bytes(2 * SLOT, 1);
    uint8_t *buffer = connection_pair_bytes(2 * SLOT, 2);
    receiver_left = 1; /* the second parity is posted later */
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 2 * SLOT);
    connection_pair_run(&pair, 20 * LH_NS_PER_MS);
    assert_true(c->rx.parity_due);
    rx_segment_at(&c->rx, c->rx.segment_next - 1)->coded.extra_chunks = 1;
    struct lh_request *send = connection_pair_send(&pair, 0, data, 2 * SLOT);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    (void)connection_pair_finish(&pair, recv); /* nothing was lost: it may have it whole */
    receiver_left = UINT32_MAX;
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

static bool is_unused(const struct lh_connection *c, const struct parity_buffer *buffer)
{
    for (const struct parity_buffer *unused = c->parity.unused; unused; unused = unused->next)
        if (unused == buffer)
            return true;
    return false;
}

/* A NIC may still read what it was given of an aborted send: no other parity is written there meanwhile. */
static void parity_is_kept_until_the_fabric_released_it(void **state)
{
    (void)state;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = "ec:mds,k=4,m=2";
    struct connection_pair pair = open_with(CLEAN_LINK, &attr);
    struct lh_connection *c = pair.ends[0];
    uint8_t *data = connection_pair_bytes(SLOT, 1);
    uint8_t *buffer = connection_pair_bytes(SLOT, 2);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, SLOT);
    connection_pair_run(&pair, 20 * LH_NS_PER_MS);
    held_release_begin(c->qp);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT);
    connection_pair_run(&pair, LH_NS_PER_MS); /* all is injected, and nothing has arrived */
    const struct parity_buffer *parity = tx_segment_at(&c->tx, 0)->coded.buffer;
    assert_non_null(parity);
    assert_true(stats_of(&pair, 0).parity_chunks_sent > 0);
    assert_int_equal(lh_cancel(send), 0);
    connection_pair_run(&pair, 50 * LH_NS_PER_MS);
    assert_int_equal(c->parity.in_use, 1);
    assert_false(is_unused(c, parity));
    held_release_end(c->qp);
    connection_pair_run(&pair, 50 * LH_NS_PER_MS);
    assert_int_equal(c->parity.in_use, 0);
    assert_true(is_unused(c, parity));
    lh_request_free(send);
    lh_request_free(recv);
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

/* Each direction has its own code, and only receivers keep bitmaps: memory that fits both is made once. */
static void parity_of_both_directions_settles(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    struct lh_connection *c = pair.ends[0];
    parity_give(&c->parity, parity_take(&c->parity, 4 * MTU, 0));
    parity_give(&c->parity, parity_take(&c->parity, 2 * MTU, 64));
    const struct parity_buffer *settled = c->parity.unused;
    for (int i = 0; i < 4; i++) {
        struct parity_buffer *taken =
            i % 2 ? parity_take(&c->parity, 2 * MTU, 64) : parity_take(&c->parity, 4 * MTU, 0);
        assert_true(taken->bytes == 4 * MTU && taken->notes_bytes == 64);
        assert_ptr_equal(taken, settled);
        parity_give(&c->parity, taken);
    }
    connection_pair_close(&pair);
}

static void one_slot_is_refused(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_connection *connection;
    parity_attr(&attr);
    attr.device = "sim:none/0";
    attr.slots = 1;
    assert_int_equal(lh_open(&attr, &connection), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "slots 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_on_a_clean_link),
        cmocka_unit_test(every_size_on_a_bad_link),
        cmocka_unit_test(lost_chunks_are_recovered),
        cmocka_unit_test(nothing_lost_nothing_recovered),
        cmocka_unit_test(two_slots_are_enough),
        cmocka_unit_test(canceled_at_any_moment),
        cmocka_unit_test(closed_after_the_acknowledgement),
        cmocka_unit_test(memory_for_one_segment_is_enough),
        cmocka_unit_test(no_memory_for_parity),
        cmocka_unit_test(other_segments_half_way_end_it),
        cmocka_unit_test(less_room_than_parity_ends_it),
        cmocka_unit_test(parity_is_kept_until_the_fabric_released_it),
        cmocka_unit_test(parity_of_both_directions_settles),
        cmocka_unit_test(one_slot_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
