/*
 * rx_part.h - a receiving part over fake_sdr.h: 8 slots of 4 chunks of 64 bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef UNIT_MESSAGE_RX_PART_H
#define UNIT_MESSAGE_RX_PART_H

#include "unit/message/fake_scheme.h"
#include "unit/message/fake_sdr.h"

#include "message/rx_receiver.h"
#include "message/rx_state.h"

#define SLOTS 8u
#define CHUNK 64u
#define SLOT  ((uint64_t)4 * CHUNK)
#define LKEY  7u
#define TAG   UINT64_C(0x8182838485868788)

static struct rx rx;
static struct lh_stats part_stats;
static struct effects part_effects;
static struct lh_attr attr;
static struct coder_threads coder_threads;
static struct coder *coder;
static struct parity_pool parity;
static uint8_t buffer[64 * SLOT];
static struct message_request requests[MESSAGES_MAX + 1];

static inline struct message_request *request_of(uint32_t message)
{
    return &requests[message % (MESSAGES_MAX + 1)];
}

static inline int rx_part_begin_with(const struct lh_scheme *scheme, uint8_t extra_chunks, bool automatic)
{
    struct scheme_choice choice = {.scheme = scheme, .automatic = automatic, .max_overhead = 1};
    choice.params[0] = extra_chunks;
    fake_sdr_reset();
    fake_scheme_reset();
    attr = (struct lh_attr){.scheme = scheme,
                            .mtu_bytes = CHUNK,
                            .chunk_bytes = CHUNK,
                            .slot_bytes = SLOT,
                            .slots = SLOTS,
                            .coders = LH_NO_CODERS};
    coder_threads_init(&coder_threads, attr.coders);
    coder = coder_create(&coder_threads, NULL);
    coder_bind(coder, &context, &qp);
    parity = (struct parity_pool){.context = &context, .store = sdr_context_store(&context)};
    receiver_init(&rx, &attr, &choice, &qp.path, coder, &parity, sdr_context_store(&context));
    part_stats = (struct lh_stats){0};
    part_effects = (struct effects){0};
    rx.stats = &part_stats;
    rx.effects = &part_effects;
    /* So that tests may keep pointers to messages. */
    ring_hold(&rx.messages, rx.store, 0, MESSAGES_MAX);
    assert_int_equal(receiver_hold(&rx, 1), 0);
    rx.qp = &qp;
    return 0;
}

static inline int rx_part_begin(void **state)
{
    (void)state;
    return rx_part_begin_with(&fake_scheme, 0, false);
}

/* Two chunks of parity a segment. */
static inline int rx_part_begin_coded(void **state)
{
    (void)state;
    return rx_part_begin_with(&fake_coded_scheme, 2, false);
}

static inline int rx_part_end(void **state)
{
    (void)state;
    receiver_end_all(&rx, -LH_ECLOSED, 0);
    receiver_close(&rx);
    parity_free_all(&parity);
    coder_destroy(coder);
    coder_threads_end(&coder_threads);
    assert_int_equal(store_bytes(sdr_context_store(&context)), 0);
    return 0;
}

/* lh_recv of the next message. */
static inline void recv_bytes(uint64_t capacity, lh_time now)
{
    const struct message_buffer whole = {buffer, LKEY, NULL};
    receiver_recv(&rx, request_of(rx.next), &whole, capacity, now);
}

static inline struct rx_segment *segment_at(uint32_t sequence)
{
    return rx_segment_at(&rx, sequence);
}

static inline lh_time step_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    receiver_step(&rx, now, &next);
    receiver_post(&rx, now, &next);
    return next;
}

static inline lh_time announce_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    receiver_announce(&rx, now, &next);
    return next;
}

/* The sender announces the lengths of a segment, with so many bytes of its machine. */
static inline void announce_tagged(uint32_t segment, uint32_t message, uint32_t segment_bytes,
                                   uint64_t message_bytes, uint64_t tag, uint32_t scheme_bytes, lh_time now)
{
    static const uint8_t scheme[LH_SCHEME_MESSAGE_MAX];
    const struct transfer_message announced = {.kind = TRANSFER_TO_RECEIVER,
                                               .body.to_receiver = {.segment = segment,
                                                                    .message = message,
                                                                    .segment_bytes = segment_bytes,
                                                                    .message_bytes = message_bytes,
                                                                    .tag = tag,
                                                                    .scheme = scheme,
                                                                    .scheme_bytes = scheme_bytes}};
    lengths_on_to_receiver(&rx, &announced, now);
}

static inline void announce_lengths(uint32_t segment, uint32_t message, uint32_t segment_bytes,
                                    uint64_t message_bytes, uint32_t scheme_bytes, lh_time now)
{
    announce_tagged(segment, message, segment_bytes, message_bytes, TAG, scheme_bytes, now);
}

/* The only effect since the last look: that the request of this message is done. */
static inline void expect_finished(uint32_t message, int error)
{
    assert_ptr_equal(rx.effects->finished, request_of(message));
    assert_null(rx.effects->finished->next);
    assert_int_equal(rx.effects->finished->result.error, error);
    assert_int_equal(rx.effects->failure, 0);
    rx.effects->finished = NULL;
}

static inline void expect_no_effect(void)
{
    assert_null(rx.effects->finished);
    assert_int_equal(rx.effects->failure, 0);
}

#define RX_TEST(name)       cmocka_unit_test_setup_teardown(name, rx_part_begin, rx_part_end)
#define RX_TEST_CODED(name) cmocka_unit_test_setup_teardown(name, rx_part_begin_coded, rx_part_end)

#endif
