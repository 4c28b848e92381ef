/*
 * test_send_queue_send_queue.c - sends cut into packets and dealt out to channels: every packet exactly once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/send_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define MTU          256u
#define CHANNELS_MAX 5u
#define PACKETS_MAX  4096u

struct fixture {
    struct send_shape shape;
    struct send_channel channels[CHANNELS_MAX];
    struct send_range ranges[CHANNELS_MAX][SEND_RANGES_MAX];
    struct send_message message;
    uint8_t payload[PACKETS_MAX * MTU];
};

static struct fixture *setup(uint32_t channels, uint32_t stripe, struct immediate_split split)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->shape = (struct send_shape){split, MTU, channels, stripe};
    for (uint32_t c = 0; c < CHANNELS_MAX; c++) {
        send_channel_init(&f->channels[c]);
        f->channels[c].ring.entries = (uint8_t *)f->ranges[c];
        f->channels[c].ring.size = SEND_RANGES_MAX;
    }
    f->message = (struct send_message){
        .slot = 7,
        .rkey = 0xABCD,
        .base = UINT64_C(1) << 40,
        .generation = 3,
        .user_immediate = 0x89ABCDEF,
        .has_immediate = true,
    };
    return f;
}

/* For a fabric that copies: what is taken is released. */
static uint64_t take(struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                     uint32_t count)
{
    uint64_t bytes = send_channel_take(channel, shape, index, count);
    send_channel_release(channel, channel->taken);
    return bytes;
}

static uint64_t drop_aborted(struct send_channel *channel, const struct send_shape *shape, uint32_t index)
{
    uint64_t bytes = send_channel_drop_aborted(channel, shape, index);
    send_channel_release(channel, channel->taken);
    return bytes;
}

static uint64_t abort_all(struct send_channel *channel, const struct send_shape *shape, uint32_t index)
{
    uint64_t bytes = send_channel_abort_all(channel, shape, index);
    send_channel_release(channel, channel->taken);
    return bytes;
}

/* As the QP does: counts first, then the channels that it touches. */
static uint32_t post(struct fixture *f, struct send_range range)
{
    uint32_t touched = 0;
    for (uint32_t c = 0; c < f->shape.channels; c++)
        touched += send_range_touches(&range, &f->shape, c);
    atomic_fetch_add(&range.message->ranges, touched);
    for (uint32_t c = 0; c < f->shape.channels; c++)
        if (send_range_touches(&range, &f->shape, c))
            send_channel_post(&f->channels[c], &range);
    return touched;
}

static struct send_range range_of(struct fixture *f, uint32_t first, uint64_t bytes)
{
    return (struct send_range){
        .message = &f->message,
        .payload = f->payload + (size_t)first * MTU,
        .bytes = bytes,
        .lkey = 42,
        .first = first,
        .count = (uint32_t)((bytes + MTU - 1) / MTU),
    };
}

static void check_write(const struct fixture *f, const struct fabric_write *write, uint32_t channel,
                        uint32_t packet, uint32_t bytes)
{
    struct immediate_fields fields = immediate_part(f->shape.split, write->immediate);
    assert_int_equal(fields.packet, packet);
    assert_int_equal(fields.message, 7);
    assert_int_equal(fields.fragment, immediate_fragment_of(f->shape.split, 0x89ABCDEF, packet));
    assert_int_equal(fabric_channel_of(packet, f->shape.stripe_packets, f->shape.channels), channel);
    assert_int_equal(write->bytes, bytes);
    assert_ptr_equal(write->payload, f->payload + (size_t)packet * MTU);
    assert_int_equal(write->va, (UINT64_C(1) << 40) + (uint64_t)packet * MTU);
    assert_int_equal(write->rkey, 0xABCD);
    assert_int_equal(write->lkey, 42);
    assert_int_equal(write->generation, 3);
}

/* Peeks and takes all that a channel has, in random sizes; counts each packet of `bytes` from 0. */
static uint64_t drain(struct fixture *f, uint32_t channel, uint8_t *seen, uint64_t bytes,
                      struct lh_prng *prng)
{
    struct fabric_write writes[64], again[64];
    uint64_t taken = 0;
    int64_t before = -1;
    while (!send_channel_empty(&f->channels[channel])) {
        uint32_t room = 1 + (uint32_t)lh_prng_below(prng, 64);
        uint32_t count = send_channel_peek(&f->channels[channel], &f->shape, channel, NULL, writes, room);
        assert_true(count >= 1 && count <= room);
        assert_int_equal(send_channel_peek(&f->channels[channel], &f->shape, channel, NULL, again, room),
                         count);
        assert_memory_equal(writes, again, count * sizeof *writes); /* peeking takes nothing */
        uint32_t some = (uint32_t)lh_prng_below(prng, count + 1);
        uint64_t expected = 0;
        for (uint32_t i = 0; i < some; i++) {
            uint32_t packet = immediate_part(f->shape.split, writes[i].immediate).packet;
            uint64_t left = bytes - (uint64_t)packet * MTU;
            check_write(f, &writes[i], channel, packet, left < MTU ? (uint32_t)left : MTU);
            assert_true((int64_t)packet > before); /* in order within a channel */
            before = packet;
            seen[packet]++;
            expected += writes[i].bytes;
        }
        assert_int_equal(take(&f->channels[channel], &f->shape, channel, some), expected);
        taken += expected;
    }
    assert_int_equal(send_channel_peek(&f->channels[channel], &f->shape, channel, NULL, writes, 64), 0);
    return taken;
}

static void check_striping(uint32_t channels, uint32_t stripe, uint64_t bytes, struct lh_prng *prng)
{
    struct fixture *f = setup(channels, stripe, IMMEDIATE_SPLIT_10_18_4);
    uint8_t seen[PACKETS_MAX] = {0};
    uint32_t packets = (uint32_t)((bytes + MTU - 1) / MTU);
    uint64_t taken = 0;
    /* In one range, or in parts of whole packets. */
    uint32_t part = lh_prng_chance(prng, 0.5) ? packets : 1 + (uint32_t)lh_prng_below(prng, packets);
    uint32_t posted = 0;
    for (uint32_t first = 0; first < packets && posted < SEND_RANGES_MAX; first += part, posted++) {
        uint64_t left = bytes - (uint64_t)first * MTU;
        bool last = posted == SEND_RANGES_MAX - 1;
        post(f, range_of(f, first, !last && left > (uint64_t)part * MTU ? (uint64_t)part * MTU : left));
    }
    for (uint32_t c = 0; c < channels; c++)
        taken += drain(f, c, seen, bytes, prng);
    assert_int_equal(taken, bytes);
    assert_int_equal(atomic_load(&f->message.ranges), 0);
    for (uint32_t p = 0; p < packets; p++)
        assert_int_equal(seen[p], 1);
    free(f);
}

static void test_every_packet_exactly_once(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    const uint32_t stripes[] = {1, 3, 64};
    for (uint32_t channels = 1; channels <= CHANNELS_MAX; channels++)
        for (uint32_t s = 0; s < 3; s++) {
            uint64_t stripe = (uint64_t)stripes[s] * MTU;
            const uint64_t lengths[] = {1,      MTU,        MTU + 1,        stripe - 1,
                                        stripe, stripe + 1, 7 * stripe + 5, 600 * MTU};
            for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
                check_striping(channels, stripes[s], lengths[i], &prng);
            for (uint32_t i = 0; i < 10; i++)
                check_striping(channels, stripes[s], 1 + lh_prng_below(&prng, PACKETS_MAX * MTU), &prng);
        }
}

/* Channels leave in any order: what waits begins with the first range of which one still has a packet. */
static void test_waits(void **state)
{
    (void)state;
    struct fixture *f = setup(2, 4, IMMEDIATE_SPLIT_10_18_4);
    uint64_t before = 1;
    assert_false(send_channel_waits(&f->channels[0], &before));
    for (uint32_t i = 0; i < 2; i++) {
        struct send_range range = range_of(f, 8 * i, 8 * MTU); /* four packets of each channel */
        range.before = (uint64_t)i * 8 * MTU;
        post(f, range);
    }
    take(&f->channels[1], &f->shape, 1, 3);
    assert_true(send_channel_waits(&f->channels[1], &before) && before == 0);
    take(&f->channels[1], &f->shape, 1, 1);
    assert_true(send_channel_waits(&f->channels[1], &before) && before == 8 * MTU);
    assert_true(send_channel_waits(&f->channels[0], &before) && before == 0);
    take(&f->channels[1], &f->shape, 1, 4);
    assert_false(send_channel_waits(&f->channels[1], &before));
    take(&f->channels[0], &f->shape, 0, 8);
    assert_false(send_channel_waits(&f->channels[0], &before));
    free(f);
}

/* A part from somewhere in the middle starts on the channel that its packet travels on. */
static void test_range_in_the_middle(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    for (uint32_t channels = 1; channels <= CHANNELS_MAX; channels++)
        for (uint32_t i = 0; i < 50; i++) {
            struct fixture *f = setup(channels, 64, IMMEDIATE_SPLIT_8_22_2);
            uint8_t seen[PACKETS_MAX] = {0};
            uint32_t first = (uint32_t)lh_prng_below(&prng, 2000);
            uint32_t count = 1 + (uint32_t)lh_prng_below(&prng, 300);
            uint32_t touched = post(f, range_of(f, first, (uint64_t)count * MTU));
            assert_true(touched >= 1 && touched <= channels);
            for (uint32_t c = 0; c < channels; c++)
                drain(f, c, seen, (uint64_t)PACKETS_MAX * MTU, &prng);
            for (uint32_t p = 0; p < PACKETS_MAX; p++)
                assert_int_equal(seen[p], p >= first && p < first + count);
            free(f);
        }
}

/* ---- the ring ---- */

static void test_ring_full_and_wrap(void **state)
{
    (void)state;
    struct fixture *f = setup(1, 64, IMMEDIATE_SPLIT_10_18_4);
    struct send_channel *channel = &f->channels[0];
    struct fabric_write writes[64];
    atomic_store(&channel->head, UINT32_MAX - 2); /* positions wrap too */
    atomic_store(&channel->tail, UINT32_MAX - 2);
    channel->next = UINT32_MAX - 2;
    assert_true(send_channel_has_room(channel, SEND_RANGES_MAX));
    assert_false(send_channel_has_room(channel, SEND_RANGES_MAX + 1));
    for (uint32_t i = 0; i < SEND_RANGES_MAX; i++) {
        assert_true(send_channel_has_room(channel, 1));
        post(f, range_of(f, i, MTU));
    }
    assert_false(send_channel_has_room(channel, 1));
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 3), 3);
    assert_int_equal(take(channel, &f->shape, 0, 3), 3 * MTU);
    assert_true(send_channel_has_room(channel, 3));
    assert_false(send_channel_has_room(channel, 4));
    for (uint32_t i = 0; i < 3; i++)
        post(f, range_of(f, SEND_RANGES_MAX + i, MTU));
    for (uint32_t packet = 3; packet < SEND_RANGES_MAX + 3; packet++) {
        assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 1), 1);
        check_write(f, &writes[0], 0, packet, MTU);
        take(channel, &f->shape, 0, 1);
    }
    assert_true(send_channel_empty(channel));
    assert_int_equal(atomic_load(&f->message.ranges), 0);
    free(f);
}

/* Whose next packet was posted first, over all channels; places wrap. */
static void test_front(void **state)
{
    (void)state;
    struct fixture *f = setup(2, 64, IMMEDIATE_SPLIT_10_18_4);
    struct send_place first, second;
    assert_false(send_channel_front(&f->channels[0], &f->shape, 0, &first));
    struct send_range range = range_of(f, 0, 128 * MTU); /* a stripe for each */
    range.before = -(uint64_t)(100 * MTU);
    post(f, range);
    range = range_of(f, 128, 64 * MTU);
    range.before = 28 * MTU;
    post(f, range);
    take(&f->channels[0], &f->shape, 0, 63);
    assert_true(send_channel_front(&f->channels[0], &f->shape, 0, &first));
    assert_true(send_channel_front(&f->channels[1], &f->shape, 1, &second));
    assert_true(first.end == second.begin); /* packets 63 and 64 */
    assert_true(second.begin == -(uint64_t)(36 * MTU) && second.end == second.begin + MTU);
    take(&f->channels[0], &f->shape, 0, 1);
    assert_true(send_channel_front(&f->channels[0], &f->shape, 0, &first));
    assert_true(first.begin == 28 * MTU); /* packet 128, of the later post */
    struct fabric_write writes[64];
    assert_int_equal(send_channel_peek(&f->channels[0], &f->shape, 0, &second.begin, writes, 64), 0);
    uint64_t until = first.end + 2 * MTU - 1; /* the third one ends behind it */
    assert_int_equal(send_channel_peek(&f->channels[0], &f->shape, 0, &until, writes, 64), 2);
    assert_int_equal(send_channel_peek(&f->channels[1], &f->shape, 1, &first.begin, writes, 64), 64);
    take(&f->channels[1], &f->shape, 1, 64);
    assert_false(send_channel_front(&f->channels[1], &f->shape, 1, &second));
    free(f);
}

/* A message counts as injected when its last packet is taken, not before. */
static void test_ranges_are_given_back(void **state)
{
    (void)state;
    struct fixture *f = setup(2, 64, IMMEDIATE_SPLIT_10_18_4);
    assert_int_equal(post(f, range_of(f, 0, 130 * MTU)), 2);
    assert_int_equal(post(f, range_of(f, 200, MTU)), 1);
    assert_int_equal(atomic_load(&f->message.ranges), 3);
    take(&f->channels[1], &f->shape, 1, 63);
    assert_int_equal(atomic_load(&f->message.ranges), 3);
    take(&f->channels[1], &f->shape, 1, 1);
    assert_int_equal(atomic_load(&f->message.ranges), 2);
    take(&f->channels[0], &f->shape, 0, 0);
    assert_int_equal(atomic_load(&f->message.ranges), 2);
    take(&f->channels[0], &f->shape, 0, 66);
    assert_int_equal(atomic_load(&f->message.ranges), 1);
    take(&f->channels[1], &f->shape, 1, 1);
    assert_int_equal(atomic_load(&f->message.ranges), 0);
    free(f);
}

/* ---- abort ---- */

static void test_abort_at_the_front(void **state)
{
    (void)state;
    struct fixture *f = setup(1, 64, IMMEDIATE_SPLIT_10_18_4);
    struct send_channel *channel = &f->channels[0];
    struct fabric_write writes[64];
    struct send_message other = f->message;
    post(f, range_of(f, 0, 10 * MTU + 5));
    post(f, range_of(f, 20, 2 * MTU));
    struct send_range behind = range_of(f, 100, 3 * MTU);
    behind.message = &other;
    post(f, behind);
    take(channel, &f->shape, 0, 4);
    assert_int_equal(drop_aborted(channel, &f->shape, 0), 0);
    atomic_store(&f->message.aborted, true);
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 64), 0);
    assert_int_equal(drop_aborted(channel, &f->shape, 0), 6 * MTU + 5 + 2 * MTU);
    assert_int_equal(atomic_load(&f->message.ranges), 0);
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 64), 3);
    check_write(f, &writes[0], 0, 100, MTU);
    assert_int_equal(take(channel, &f->shape, 0, 3), 3 * MTU);
    assert_int_equal(atomic_load(&other.ranges), 0);
    free(f);
}

/* Its payload may be freed once abort has returned, even when another send still stands before it. */
static void test_aborted_is_not_read_behind_a_live_one(void **state)
{
    (void)state;
    struct fixture *f = setup(1, 64, IMMEDIATE_SPLIT_10_18_4);
    struct send_channel *channel = &f->channels[0];
    struct fabric_write writes[64];
    struct send_message other = f->message;
    post(f, range_of(f, 0, 5 * MTU));
    struct send_range behind = range_of(f, 100, 3 * MTU);
    behind.message = &other;
    post(f, behind);
    post(f, range_of(f, 5, MTU));
    atomic_store(&other.aborted, true);
    assert_int_equal(drop_aborted(channel, &f->shape, 0), 0);
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 64), 5);
    assert_int_equal(take(channel, &f->shape, 0, 5), 5 * MTU);
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 64), 0);
    assert_int_equal(drop_aborted(channel, &f->shape, 0), 3 * MTU);
    assert_int_equal(atomic_load(&other.ranges), 0);
    assert_int_equal(send_channel_peek(channel, &f->shape, 0, NULL, writes, 64), 1);
    check_write(f, &writes[0], 0, 5, MTU);
    free(f);
}

/* What each channel drops adds up to what was not taken. */
static void test_abort_all_over_the_channels(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t channels = 1; channels <= CHANNELS_MAX; channels++)
        for (uint32_t i = 0; i < 50; i++) {
            struct fixture *f = setup(channels, 64, IMMEDIATE_SPLIT_10_18_4);
            uint64_t bytes = 1 + lh_prng_below(&prng, 1000 * MTU), gone = 0;
            post(f, range_of(f, 0, bytes));
            for (uint32_t c = 0; c < channels; c++) {
                struct fabric_write writes[64];
                uint32_t count = send_channel_peek(&f->channels[c], &f->shape, c, NULL, writes, 64);
                uint32_t some = (uint32_t)lh_prng_below(&prng, count + 1);
                gone += take(&f->channels[c], &f->shape, c, some);
                gone += abort_all(&f->channels[c], &f->shape, c);
                assert_true(send_channel_empty(&f->channels[c]));
            }
            assert_int_equal(gone, bytes);
            assert_int_equal(atomic_load(&f->message.ranges), 0);
            free(f);
        }
}

/* A fabric that does not copy reads the payload for a while: a range is finished, and its place is free, when
 * its last packet of this channel is released; one that was dropped, when what was taken of it is. */
static void test_taken_is_not_released(void **state)
{
    (void)state;
    struct fixture *f = setup(1, 64, IMMEDIATE_SPLIT_10_18_4);
    struct send_channel *channel = &f->channels[0];
    for (uint32_t i = 0; i < SEND_RANGES_MAX; i++)
        post(f, range_of(f, 4 * i % PACKETS_MAX, 4 * MTU));
    assert_false(send_channel_has_room(channel, 1));
    send_channel_take(channel, &f->shape, 0, 10);
    assert_false(send_channel_release(channel, 3));
    assert_int_equal(atomic_load(&f->message.ranges), SEND_RANGES_MAX);
    assert_true(send_channel_release(channel, 9)); /* two ranges and a packet */
    assert_int_equal(atomic_load(&f->message.ranges), SEND_RANGES_MAX - 2);
    assert_true(send_channel_has_room(channel, 2) && !send_channel_has_room(channel, 3));

    send_channel_abort_all(channel, &f->shape, 0);
    assert_true(send_channel_empty(channel));
    assert_false(send_channel_release(channel, 9));
    assert_int_equal(atomic_load(&f->message.ranges), SEND_RANGES_MAX - 2);
    assert_true(send_channel_release(channel, 10));
    assert_int_equal(atomic_load(&f->message.ranges), 0);
    assert_true(send_channel_has_room(channel, SEND_RANGES_MAX));
    free(f);
}

/* ---- immediates ---- */

static void test_no_immediate_no_fragment(void **state)
{
    (void)state;
    struct fixture *f = setup(1, 64, IMMEDIATE_SPLIT_10_18_4);
    struct fabric_write writes[64];
    f->message.has_immediate = false;
    post(f, range_of(f, 0, 20 * MTU));
    assert_int_equal(send_channel_peek(&f->channels[0], &f->shape, 0, NULL, writes, 64), 20);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(immediate_part(f->shape.split, writes[i].immediate).fragment, 0);
    free(f);
}

/* Empty packets that carry the rest of the immediate: no payload, and the address is that of the message.
 */
static void test_empty_packets(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= CHANNELS_MAX; channels++) {
        struct fixture *f = setup(channels, 64, IMMEDIATE_SPLIT_8_22_2);
        struct fabric_write writes[64];
        struct send_range empty = {.message = &f->message, .first = 3, .count = 13};
        assert_int_equal(post(f, empty), 1);
        assert_int_equal(send_channel_peek(&f->channels[0], &f->shape, 0, NULL, writes, 64), 13);
        for (uint32_t i = 0; i < 13; i++) {
            struct immediate_fields fields = immediate_part(f->shape.split, writes[i].immediate);
            assert_int_equal(fields.packet, 3 + i);
            assert_int_equal(fields.fragment, immediate_fragment_of(f->shape.split, 0x89ABCDEF, 3 + i));
            assert_int_equal(writes[i].bytes, 0);
            assert_null(writes[i].payload);
            assert_int_equal(writes[i].va, UINT64_C(1) << 40);
        }
        assert_int_equal(take(&f->channels[0], &f->shape, 0, 13), 0);
        assert_int_equal(atomic_load(&f->message.ranges), 0);
        free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_packet_exactly_once),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_range_in_the_middle),
        cmocka_unit_test(test_ring_full_and_wrap),
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_ranges_are_given_back),
        cmocka_unit_test(test_abort_at_the_front),
        cmocka_unit_test(test_aborted_is_not_read_behind_a_live_one),
        cmocka_unit_test(test_abort_all_over_the_channels),
        cmocka_unit_test(test_taken_is_not_released),
        cmocka_unit_test(test_no_immediate_no_fragment),
        cmocka_unit_test(test_empty_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
