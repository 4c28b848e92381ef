/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/sim_pair.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define UNTOUCHED 0xA5
#define SLOTS     4u

static void open_end(struct sim_pair *pair, const struct sim_pair_options *options, uint32_t index)
{
    struct pair_end *end = &pair->ends[index];
    char address[FABRIC_NAME_MAX];
    snprintf(address, sizeof(address), "%s/%u", options->world, index);
    const struct fabric_attr attr = {
        .address = address,
        .receive_buffer_bytes = options->receive_buffer_bytes,
    };
    int opened = fabric_sim_ops.open(&attr, &end->fabric);
    assert(opened == 0);
    if (options->wrap != NULL) {
        struct fabric *inner = end->fabric;
        opened = options->wrap(inner, &end->fabric);
        assert(opened == 0);
    }
    struct fabric_endpoint_attr endpoint_attr = pair->attr;
    endpoint_attr.stats = &end->stats;
    opened = end->fabric->ops->endpoint_create(end->fabric, &endpoint_attr, &end->endpoint);
    assert(opened == 0);
    end->buffer = malloc((size_t)pair->attr.slot_bytes);
    assert(end->buffer != NULL);
}

static void connect_end(struct sim_pair *pair, uint32_t index)
{
    struct qp_info_endpoint info;
    struct pair_end *peer = &pair->ends[1 - index];
    peer->fabric->ops->endpoint_info(peer->endpoint, &info);
    struct pair_end *end = &pair->ends[index];
    int connected = end->fabric->ops->endpoint_connect(end->endpoint, &info);
    assert(connected == 0);
}

void pair_open(struct sim_pair *pair, const struct sim_pair_options *options)
{
    memset(pair, 0, sizeof(*pair));
    pair->world = sim_world_create(options->world, options->seed, &options->link);
    assert(pair->world != NULL);
    pair->packets = options->packets != 0 ? options->packets : 256;
    assert(pair->packets <= PAIR_PACKETS_MAX);
    uint32_t mtu_bytes = options->mtu_bytes != 0 ? options->mtu_bytes : 1024;
    pair->attr = (struct fabric_endpoint_attr){
        .channels = options->channels != 0 ? options->channels : 2,
        .generations = 4,
        .mtu_bytes = mtu_bytes,
        .slots = SLOTS,
        .slot_bytes = (uint64_t)mtu_bytes * pair->packets,
        .stripe_packets = 4,
        .split = IMMEDIATE_SPLIT_10_18_4,
    };
    pair->message = malloc((size_t)pair->attr.slot_bytes);
    assert(pair->message != NULL);
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    for (uint64_t i = 0; i < pair->attr.slot_bytes; i++)
        pair->message[i] = (uint8_t)lh_prng_next(&prng);
    for (uint32_t i = 0; i < 2; i++)
        open_end(pair, options, i);
    for (uint32_t i = 0; i < 2; i++) {
        connect_end(pair, i);
        pair_bind(pair, i, 0);
    }
}

void pair_close(struct sim_pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct pair_end *end = &pair->ends[i];
        end->fabric->ops->endpoint_destroy(end->endpoint);
        end->fabric->ops->close(end->fabric);
        free(end->buffer);
    }
    free(pair->message);
    sim_world_destroy(pair->world);
}

void pair_bind(struct sim_pair *pair, uint32_t index, uint8_t generation)
{
    struct pair_end *end = &pair->ends[index];
    memset(end->buffer, UNTOUCHED, (size_t)pair->attr.slot_bytes);
    for (uint32_t i = 0; i < PAIR_PACKETS_MAX / 64; i++)
        atomic_store(&end->received[i], 0);
    end->slot = (struct fabric_slot){
        .base = end->buffer,
        .length_bytes = pair->attr.slot_bytes,
        .generation = generation,
        .received = end->received,
    };
    int bound = end->fabric->ops->slot_bind(end->endpoint, 0, &end->slot, &end->key);
    assert(bound == 0);
}

void pair_unbind(struct sim_pair *pair, uint32_t index)
{
    struct pair_end *end = &pair->ends[index];
    end->fabric->ops->slot_unbind(end->endpoint, 0);
}

struct fabric_write pair_write(const struct sim_pair *pair, uint32_t from, uint32_t packet)
{
    const struct pair_end *to = &pair->ends[1 - from];
    uint64_t offset = (uint64_t)packet * pair->attr.mtu_bytes;
    return (struct fabric_write){
        .payload = pair->message + offset,
        .bytes = pair->attr.mtu_bytes,
        .va = to->key.base + offset,
        .rkey = to->key.rkey,
        .immediate = immediate_join(pair->attr.split, (struct immediate_fields){.packet = packet}),
        .generation = to->slot.generation,
    };
}

uint32_t pair_channel_of(const struct sim_pair *pair, uint32_t packet)
{
    return fabric_channel_of(packet, pair->attr.stripe_packets, pair->attr.channels);
}

bool pair_post(struct sim_pair *pair, uint32_t from, uint32_t packet)
{
    struct pair_end *end = &pair->ends[from];
    struct fabric_write write = pair_write(pair, from, packet);
    int taken = end->fabric->ops->post_writes(end->endpoint, pair_channel_of(pair, packet), &write, 1);
    assert(taken >= 0);
    return taken == 1;
}

/* The earliest time at which anything must be done: pumps both ends. */
static lh_time pump_all(struct sim_pair *pair)
{
    lh_time next_ns = LH_TIME_NEVER;
    lh_time now = sim_world_now(pair->world);
    for (uint32_t i = 0; i < 2; i++) {
        const struct pair_end *end = &pair->ends[i];
        for (uint32_t c = 0; c <= pair->attr.channels; c++) {
            uint32_t channel = c == pair->attr.channels ? FABRIC_CONTROL : c;
            lh_time asked_ns = end->fabric->ops->pump(end->endpoint, channel, now);
            next_ns = asked_ns < next_ns ? asked_ns : next_ns;
        }
    }
    lh_time event_ns = sim_world_next_event(pair->world);
    return event_ns < next_ns ? event_ns : next_ns;
}

void pair_post_all(struct sim_pair *pair, uint32_t from, uint32_t first, uint32_t count)
{
    for (uint32_t packet = first; packet < first + count; packet++) {
        while (!pair_post(pair, from, packet)) {
            lh_time next_ns = pump_all(pair);
            assert(next_ns != LH_TIME_NEVER);
            sim_world_advance(pair->world, next_ns);
            pair_poll(pair, 1 - from);
        }
    }
}

uint32_t pair_poll(struct sim_pair *pair, uint32_t index)
{
    struct pair_end *end = &pair->ends[index];
    uint32_t total = 0;
    for (uint32_t channel = 0; channel < pair->attr.channels; channel++) {
        struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
        int got = 1;
        while (got > 0) {
            got = end->fabric->ops->poll(end->endpoint, channel, arrivals, FABRIC_BATCH_MAX);
            assert(got >= 0);
            for (int i = 0; i < got; i++) {
                uint32_t packet = immediate_part(pair->attr.split, arrivals[i].immediate).packet;
                assert(packet < pair->packets);
                atomic_fetch_or(&end->received[packet / 64], (uint64_t)1 << packet % 64);
            }
            total += (uint32_t)got;
        }
    }
    return total;
}

uint32_t pair_settle(struct sim_pair *pair, uint32_t end)
{
    uint32_t total = pair_poll(pair, end);
    for (lh_time next_ns; (next_ns = pump_all(pair)) != LH_TIME_NEVER;) {
        sim_world_advance(pair->world, next_ns);
        total += pair_poll(pair, end);
    }
    return total;
}

static bool has(const struct pair_end *end, uint32_t packet)
{
    return (atomic_load(&end->received[packet / 64]) >> packet % 64 & 1) != 0;
}

bool pair_exact(const struct sim_pair *pair, uint32_t index)
{
    const struct pair_end *end = &pair->ends[index];
    size_t mtu = pair->attr.mtu_bytes;
    for (uint32_t packet = 0; packet < pair->packets; packet++) {
        const uint8_t *found = end->buffer + packet * mtu;
        if (has(end, packet)) {
            if (memcmp(found, pair->message + packet * mtu, mtu) != 0)
                return false;
            continue;
        }
        for (size_t i = 0; i < mtu; i++) {
            if (found[i] != UNTOUCHED)
                return false;
        }
    }
    return true;
}

uint32_t pair_received(const struct sim_pair *pair, uint32_t index)
{
    uint32_t count = 0;
    for (uint32_t packet = 0; packet < pair->packets; packet++)
        count += has(&pair->ends[index], packet);
    return count;
}

void pair_speak_while_full(struct sim_pair *pair)
{
    const struct fabric_ops *ops = pair->ends[0].fabric->ops;
    struct fabric_endpoint *endpoint = pair->ends[0].endpoint;
    const struct fabric_datagram datagram = {.data = pair->message, .bytes = 31};
    for (uint32_t packet = 0; packet < 20; packet++) {
        while (pair_post(pair, 0, packet))
            packet++;
        assert_int_equal(ops->control_send(endpoint, &datagram, 1), 1);
        sim_world_advance(pair->world, sim_world_now(pair->world) + 10 * LH_NS_PER_US);
    }
}
