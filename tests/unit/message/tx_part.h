/*
 * tx_part.h - a sending part over fake_sdr.h: 8 slots of 4 chunks of 64 bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef UNIT_MESSAGE_TX_PART_H
#define UNIT_MESSAGE_TX_PART_H

#include "unit/message/fake_scheme.h"
#include "unit/message/fake_sdr.h"

#include "message/tx_sender.h"

#define SLOTS  8u
#define CHUNK  64u
#define SLOT   ((uint64_t)4 * CHUNK)
#define LKEY   7u
#define TAG    UINT64_C(0x8182838485868788)
#define WINDOW (16 * CHUNK)

static struct tx tx;
static struct lh_stats part_stats;
static struct effects part_effects;
static struct lh_attr attr;
static struct coder_threads coder_threads;
static struct coder *coder;
static struct parity_pool parity;
static uint8_t payload[64 * SLOT];
static struct message_request requests[MESSAGES_MAX + 1];

static inline struct message_request *request_of(uint32_t message)
{
    return &requests[message % (MESSAGES_MAX + 1)];
}

static inline int tx_part_begin_with(const struct lh_scheme *scheme)
{
    fake_sdr_reset();
    fake_scheme_reset();
    attr = (struct lh_attr){.scheme = scheme,
                            .mtu_bytes = CHUNK,
                            .chunk_bytes = CHUNK,
                            .slot_bytes = SLOT,
                            .slots = SLOTS,
                            .window_bytes = WINDOW,
                            .coders = LH_NO_CODERS};
    coder_threads_init(&coder_threads, attr.coders);
    coder = coder_create(&coder_threads, NULL);
    coder_bind(coder, &context, &qp);
    parity = (struct parity_pool){.context = &context, .store = sdr_context_store(&context)};
    sender_init(&tx, &attr, &qp.path, coder, &parity, sdr_context_store(&context));
    part_stats = (struct lh_stats){0};
    part_effects = (struct effects){0};
    tx.stats = &part_stats;
    tx.effects = &part_effects;
    /* So that tests may keep pointers to messages. */
    ring_hold(&tx.messages, tx.store, 0, MESSAGES_MAX);
    assert_int_equal(sender_hold(&tx, 1), 0);
    tx.qp = &qp;
    tx.window_bytes = WINDOW;
    return 0;
}

static inline int tx_part_begin(void **state)
{
    (void)state;
    return tx_part_begin_with(&fake_scheme);
}

static inline int tx_part_begin_coded(void **state)
{
    (void)state;
    return tx_part_begin_with(&fake_coded_scheme);
}

static inline int tx_part_end(void **state)
{
    (void)state;
    qp.holds_sends = false;
    sender_end_all(&tx, -LH_ECLOSED, 0);
    sender_close(&tx);
    parity_free_all(&parity);
    coder_destroy(coder);
    coder_threads_end(&coder_threads);
    assert_int_equal(store_bytes(sdr_context_store(&context)), 0);
    return 0;
}

/* lh_send of the next message. */
static inline void send_bytes(uint64_t bytes, lh_time now)
{
    const struct tx_content content = {.buffer = {payload, LKEY, NULL}, .bytes = bytes, .tag = TAG};
    sender_send(&tx, request_of(tx.next), &content, now);
}

/* The receiver cleared this segment of a message to be sent. */
static inline void clear_segment(uint32_t message, uint32_t segment)
{
    const struct transfer_cts cts = {
        .message = message, .segment = segment, .room = sizeof payload, .scheme = attr.scheme->id};
    fake_cts(&cts, (uint32_t)SLOT);
}

/* The same with parity: of the segment, or its parity itself. */
static inline void clear_coded(uint32_t message, uint32_t segment, uint8_t extra_chunks, bool extra)
{
    struct transfer_cts cts = {.message = message,
                               .segment = segment,
                               .room = sizeof payload,
                               .scheme = attr.scheme->id,
                               .extra = extra};
    cts.params[0] = extra_chunks;
    fake_cts(&cts, extra ? extra_chunks * CHUNK : (uint32_t)SLOT);
}

static inline lh_time step_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    sender_step(&tx, now, &next);
    return next;
}

/* The only effect since the last look: that the request of this message is done. */
static inline void expect_finished(uint32_t message, int error)
{
    assert_ptr_equal(tx.effects->finished, request_of(message));
    assert_null(tx.effects->finished->next);
    assert_int_equal(tx.effects->finished->result.error, error);
    assert_int_equal(tx.effects->failure, 0);
    tx.effects->finished = NULL;
}

static inline void expect_no_effect(void)
{
    assert_null(tx.effects->finished);
    assert_int_equal(tx.effects->failure, 0);
}

#define TX_TEST(name)       cmocka_unit_test_setup_teardown(name, tx_part_begin, tx_part_end)
#define TX_TEST_CODED(name) cmocka_unit_test_setup_teardown(name, tx_part_begin_coded, tx_part_end)

#endif
