/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/udp_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"

#define GUARD_BYTES     4096u
#define GUARD           0xA5
#define SILENCE_ENDS_NS (20 * LH_NS_PER_S) /* only ever ends what hangs */
#define SETTLE_NS       (30 * LH_NS_PER_MS)

struct fabric_endpoint_attr udp_pair_attr(void)
{
    return (struct fabric_endpoint_attr){
        .channels = 1,
        .generations = 4,
        .mtu_bytes = 4096,
        .slots = 16,
        .slot_bytes = (uint64_t)64 << 20,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
    };
}

static void open_side(struct udp_side *side, const char *device, const struct fabric_endpoint_attr *attr)
{
    memset(side, 0, sizeof *side);
    if (fabric_open(device, 0, &side->fabric) != 0)
        fail_msg("%s", lh_last_error());
    struct fabric_endpoint_attr own = *attr;
    own.stats = &side->stats;
    if (side->fabric->ops->endpoint_create(side->fabric, &own, &side->endpoint) != 0)
        fail_msg("%s", lh_last_error());
    side->fabric->ops->endpoint_info(side->endpoint, &side->info);
}

static void connect_side(struct udp_side *side, const struct udp_side *peer)
{
    if (side->fabric->ops->endpoint_connect(side->endpoint, &peer->info) != 0)
        fail_msg("%s", lh_last_error());
}

void udp_pair_open(struct udp_pair *pair, const char *device, const struct fabric_endpoint_attr *attr)
{
    memset(pair, 0, sizeof *pair);
    pair->attr = *attr;
    pair->seed = 1;
    open_side(&pair->sender, device, attr);
    open_side(&pair->receiver, device, attr);
    connect_side(&pair->sender, &pair->receiver);
    connect_side(&pair->receiver, &pair->sender);
}

static void close_side(struct udp_side *side)
{
    side->fabric->ops->endpoint_destroy(side->endpoint);
    side->fabric->ops->close(side->fabric);
}

void udp_pair_close(struct udp_pair *pair)
{
    for (uint32_t i = 0; i < UDP_PAIR_SLOTS_MAX; i++) {
        if (pair->slots[i] != NULL) {
            struct udp_message *message = pair->slots[i];
            udp_pair_unbind(pair, message);
            udp_message_free(message);
        }
    }
    close_side(&pair->sender);
    close_side(&pair->receiver);
}

static void fill(uint8_t *bytes, uint64_t count, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    uint64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t word = lh_prng_next(&prng);
        memcpy(bytes + i, &word, 8);
    }
    for (; i < count; i++)
        bytes[i] = (uint8_t)lh_prng_next(&prng);
}

struct udp_message *udp_pair_bind(struct udp_pair *pair, uint32_t slot, uint8_t generation, uint64_t bytes)
{
    struct udp_message *message = calloc(1, sizeof *message);
    assert_non_null(message);
    message->slot = slot;
    message->generation = generation;
    message->bytes = bytes;
    message->packets =
        bytes == 0 ? 1 : (uint32_t)((bytes + pair->attr.mtu_bytes - 1) / pair->attr.mtu_bytes);
    message->source = malloc(bytes + 1);
    message->guarded = malloc(bytes + (size_t)2 * GUARD_BYTES);
    message->received = calloc(message->packets / 64 + 1, sizeof *message->received);
    assert_non_null(message->source);
    assert_non_null(message->guarded);
    assert_non_null(message->received);
    fill(message->source, bytes, pair->seed++);
    memset(message->guarded, GUARD, bytes + (size_t)2 * GUARD_BYTES);
    message->buffer = message->guarded + GUARD_BYTES;
    struct fabric_slot what = {
        .base = message->buffer,
        .length_bytes = bytes,
        .generation = generation,
        .received = message->received,
    };
    struct udp_side *side = &pair->receiver;
    if (side->fabric->ops->slot_bind(side->endpoint, slot, &what, &message->key) != 0)
        fail_msg("%s", lh_last_error());
    pair->slots[slot] = message;
    return message;
}

void udp_pair_unbind(struct udp_pair *pair, struct udp_message *message)
{
    pair->receiver.fabric->ops->slot_unbind(pair->receiver.endpoint, message->slot);
    pair->slots[message->slot] = NULL;
}

void udp_message_free(struct udp_message *message)
{
    free(message->source);
    free(message->guarded);
    free((void *)message->received);
    free(message);
}

struct fabric_write udp_pair_write(const struct udp_pair *pair, const struct udp_message *message,
                                   uint32_t packet)
{
    uint64_t offset = (uint64_t)packet * pair->attr.mtu_bytes;
    uint64_t left = message->bytes - offset;
    struct immediate_fields fields = {message->slot, packet, packet & 15};
    return (struct fabric_write){
        .payload = message->source + offset,
        .bytes = left < pair->attr.mtu_bytes ? (uint32_t)left : pair->attr.mtu_bytes,
        .va = message->key.base + offset,
        .rkey = message->key.rkey,
        .immediate = immediate_join(pair->attr.split, fields),
        .generation = message->generation,
    };
}

static uint32_t channel_of(const struct udp_pair *pair, const struct fabric_write *write)
{
    uint32_t packet = immediate_part(pair->attr.split, write->immediate).packet;
    return fabric_channel_of(packet, pair->attr.stripe_packets, pair->attr.channels);
}

void udp_pair_send(struct udp_pair *pair, const struct fabric_write *writes, uint32_t count)
{
    struct udp_side *side = &pair->sender;
    while (count > 0) {
        uint32_t channel = channel_of(pair, &writes[0]);
        uint32_t together = 1;
        while (together < count && channel_of(pair, &writes[together]) == channel)
            together++;
        int taken = side->fabric->ops->post_writes(side->endpoint, channel, writes, together);
        if (taken < 0)
            fail_msg("%s", lh_last_error());
        writes += taken;
        count -= (uint32_t)taken;
    }
}

static void on_arrival(struct udp_pair *pair, const struct fabric_arrival *arrival)
{
    struct immediate_fields fields = immediate_part(pair->attr.split, arrival->immediate);
    assert_true(fields.message < UDP_PAIR_SLOTS_MAX);
    struct udp_message *message = pair->slots[fields.message];
    assert_non_null(message);
    assert_int_equal(arrival->generation, message->generation);
    assert_true(fields.packet < message->packets);
    assert_int_equal(arrival->bytes, udp_pair_write(pair, message, fields.packet).bytes);
    assert_int_equal(fields.fragment, fields.packet & 15);
    uint64_t bit = (uint64_t)1 << (fields.packet % 64);
    if (atomic_fetch_or(&message->received[fields.packet / 64], bit) & bit)
        message->repeated++;
    else
        message->arrived++;
}

uint32_t udp_pair_poll(struct udp_pair *pair)
{
    uint32_t total = 0;
    struct udp_side *side = &pair->receiver;
    for (uint32_t channel = 0; channel < pair->attr.channels; channel++) {
        struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
        int got = side->fabric->ops->poll(side->endpoint, channel, arrivals, FABRIC_BATCH_MAX);
        if (got < 0)
            fail_msg("%s", lh_last_error());
        for (int i = 0; i < got; i++)
            on_arrival(pair, &arrivals[i]);
        total += (uint32_t)got;
    }
    pair->arrivals += total;
    return total;
}

void udp_pair_await(struct udp_pair *pair, uint32_t before, uint32_t arrivals)
{
    struct fabric *fabric = pair->receiver.fabric;
    lh_time last = fabric->ops->now(fabric);
    while (pair->arrivals - before < arrivals) {
        lh_time now = fabric->ops->now(fabric);
        if (udp_pair_poll(pair) > 0)
            last = now;
        if (now > last + SILENCE_ENDS_NS)
            fail_msg("%u of %u packets arrived", pair->arrivals - before, arrivals);
    }
}

void udp_pair_settle(struct udp_pair *pair)
{
    struct fabric *fabric = pair->receiver.fabric;
    lh_time last = fabric->ops->now(fabric);
    for (;;) {
        lh_time now = fabric->ops->now(fabric);
        if (udp_pair_poll(pair) > 0)
            last = now;
        else if (now > last + SETTLE_NS)
            return;
    }
}

void udp_pair_deliver(struct udp_pair *pair, const struct udp_message *message, const uint32_t *packets,
                      uint32_t count)
{
    struct fabric_write writes[UDP_PAIR_WINDOW];
    for (uint32_t done = 0; done < count;) {
        uint32_t window = count - done < UDP_PAIR_WINDOW ? count - done : UDP_PAIR_WINDOW;
        for (uint32_t i = 0; i < window; i++)
            writes[i] = udp_pair_write(pair, message, packets[done + i]);
        uint32_t before = pair->arrivals;
        udp_pair_send(pair, writes, window);
        udp_pair_await(pair, before, window);
        done += window;
    }
}

void udp_message_assert_guards(const struct udp_message *message)
{
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (message->guarded[i] != GUARD || message->buffer[message->bytes + i] != GUARD)
            fail_msg("a guard byte of slot %u was written", message->slot);
    }
}

void udp_message_assert_whole(const struct udp_message *message)
{
    assert_int_equal(message->arrived, message->packets);
    if (memcmp(message->buffer, message->source, message->bytes) != 0)
        fail_msg("slot %u: the bytes that arrived are not those that were sent", message->slot);
    udp_message_assert_guards(message);
}
