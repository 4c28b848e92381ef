/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/udp_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "device/device_registry.h"
#include "fabric/udp/udp_state.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

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

static void open_fabric(struct udp_side *side, const char *device)
{
    memset(side, 0, sizeof *side);
    if (fabric_open(device, 0, &side->fabric) != 0)
        fail_msg("%s", lh_last_error());
}

static void open_endpoint(struct udp_side *side, const struct fabric_endpoint_attr *attr)
{
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

/* RoCE hardware has one port for everything. */
static void disguise(struct qp_info_endpoint *info)
{
    info->fabric = QP_INFO_VERBS;
    info->control_port = ROCE_UDP_PORT;
    for (uint32_t i = 0; i < info->channels; i++)
        info->channel_port[i] = ROCE_UDP_PORT;
}

bool udp_pair_open_as(struct udp_pair *pair, const char *sender, const char *receiver,
                      const struct fabric_endpoint_attr *attr, bool as_hardware)
{
    memset(pair, 0, sizeof *pair);
    pair->attr = *attr;
    pair->seed = 1;
    pair->shared = receiver == NULL;
    open_fabric(&pair->sender, sender);
    if (pair->shared)
        pair->receiver.fabric = pair->sender.fabric;
    else
        open_fabric(&pair->receiver, receiver);
    open_endpoint(&pair->sender, attr);
    open_endpoint(&pair->receiver, attr);
    if (as_hardware) {
        if (pair->sender.info.control_port != ROCE_UDP_PORT ||
            pair->receiver.info.control_port != ROCE_UDP_PORT) {
            udp_pair_close(pair);
            return false;
        }
        disguise(&pair->sender.info);
        disguise(&pair->receiver.info);
    }
    connect_side(&pair->sender, &pair->receiver);
    connect_side(&pair->receiver, &pair->sender);
    return true;
}

static void secure_side(struct udp_side *side, bool connecting)
{
    struct fabric_secret secret = {.bytes = "a secret of a test", .connecting = connecting};
    if (side->fabric->ops->secure(side->endpoint, &secret) != 0)
        fail_msg("%s", lh_last_error());
}

void udp_pair_open_sealed(struct udp_pair *pair, const char *device,
                          const struct fabric_endpoint_attr *attr, uint32_t proof)
{
    memset(pair, 0, sizeof *pair);
    pair->attr = *attr;
    pair->seed = 1;
    open_fabric(&pair->sender, device);
    open_fabric(&pair->receiver, device);
    open_endpoint(&pair->sender, attr);
    open_endpoint(&pair->receiver, attr);
    pair->sender.info.translated = proof != 0;
    pair->sender.info.proof = proof;
    memcpy(pair->sender.info.seen_address, pair->sender.info.address,
           sizeof pair->sender.info.seen_address);
    secure_side(&pair->sender, true);
    secure_side(&pair->receiver, false);
    connect_side(&pair->sender, &pair->receiver);
    connect_side(&pair->receiver, &pair->sender);
}

void udp_pair_open(struct udp_pair *pair, const char *device, const struct fabric_endpoint_attr *attr)
{
    assert_true(udp_pair_open_as(pair, device, device, attr, false));
}

void udp_pair_join(struct udp_pair *pair, struct fabric *sender, struct fabric *receiver,
                   const struct fabric_endpoint_attr *attr)
{
    memset(pair, 0, sizeof *pair);
    pair->attr = *attr;
    pair->seed = 1;
    pair->shared = sender == receiver;
    pair->sender.fabric = sender;
    pair->receiver.fabric = receiver;
    open_endpoint(&pair->sender, attr);
    open_endpoint(&pair->receiver, attr);
    connect_side(&pair->sender, &pair->receiver);
    connect_side(&pair->receiver, &pair->sender);
}

void udp_pair_leave(struct udp_pair *pair)
{
    for (uint32_t i = 0; i < UDP_PAIR_SLOTS_MAX; i++) {
        if (pair->slots[i] != NULL) {
            struct udp_message *message = pair->slots[i];
            udp_pair_unbind(pair, message);
            udp_message_free(message);
        }
    }
    pair->sender.fabric->ops->endpoint_destroy(pair->sender.endpoint);
    pair->receiver.fabric->ops->endpoint_destroy(pair->receiver.endpoint);
}

void udp_pair_close(struct udp_pair *pair)
{
    udp_pair_leave(pair);
    pair->sender.fabric->ops->close(pair->sender.fabric);
    if (!pair->shared)
        pair->receiver.fabric->ops->close(pair->receiver.fabric);
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
        int got;
        do {
            got = side->fabric->ops->poll(side->endpoint, channel, arrivals, FABRIC_BATCH_MAX);
        } while (got == FABRIC_POLL_AGAIN); /* ends: senders of tests send no flood */
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

struct roce_packet udp_pair_packet(const struct udp_pair *pair, const struct udp_message *message,
                                   uint32_t packet)
{
    struct fabric_write write = udp_pair_write(pair, message, packet);
    return (struct roce_packet){
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .dest_qpn = pair->receiver.info.qpn[write.generation][channel_of(pair, &write)],
        .va = write.va,
        .rkey = write.rkey,
        .immediate = write.immediate,
        .payload = write.payload,
        .payload_bytes = write.bytes,
    };
}

uint32_t udp_pair_forge(const struct udp_pair *pair, uint32_t channel, const struct roce_packet *packet,
                        uint8_t *out)
{
    struct udp_endpoint *sender = (struct udp_endpoint *)pair->sender.endpoint;
    size_t header = roce_encode_header(packet, out);
    uint32_t pad = roce_pad_bytes(packet->payload_bytes);
    if (packet->payload_bytes > 0)
        memcpy(out + header, packet->payload, packet->payload_bytes);
    memset(out + header + packet->payload_bytes, 0, pad);
    size_t covered = header + packet->payload_bytes + pad;
    const struct icrc_flow *flow = &sender->channels[channel]->tx.flow;
    uint32_t state = icrc_begin(flow, (uint32_t)covered + ROCE_ICRC_BYTES, 0, true);
    icrc_store(icrc_add_header(state, out, covered), out + covered);
    return (uint32_t)covered + ROCE_ICRC_BYTES;
}

void udp_pair_throw(const struct udp_pair *pair, uint32_t channel, const void *data, size_t bytes,
                    uint16_t segment_bytes)
{
    struct udp_endpoint *sender = (struct udp_endpoint *)pair->sender.endpoint;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof segment_bytes)] = {0};
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    union udp_address to = sender->channels[channel]->tx.to;
    struct msghdr message = {
        .msg_name = &to,
        .msg_namelen = udp_address_size(&to),
        .msg_iov = &iov,
        .msg_iovlen = 1,
    };
    if (segment_bytes != 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *segment = CMSG_FIRSTHDR(&message);
        segment->cmsg_level = IPPROTO_UDP;
        segment->cmsg_type = UDP_SEGMENT;
        segment->cmsg_len = CMSG_LEN(sizeof segment_bytes);
        memcpy(CMSG_DATA(segment), &segment_bytes, sizeof segment_bytes);
    }
    assert_int_equal(sendmsg(udp_channel_fd(sender->channels[channel]), &message, 0), (ssize_t)bytes);
}

static void assert_side_no_bad(const char *name, const struct lh_stats *stats)
{
    if (lh_stats_bad_packets(stats) == 0)
        return;
    for (size_t i = 0; i < lh_stats_count(); i++) {
        if (strncmp(lh_stats_name(i), "bad_", 4) == 0 && lh_stats_value(stats, i) != 0)
            print_error("%s: %llu %s\n", name, (unsigned long long)lh_stats_value(stats, i),
                        lh_stats_meaning(i));
    }
    fail();
}

void udp_pair_assert_no_bad(const struct udp_pair *pair)
{
    assert_side_no_bad("receiver", &pair->receiver.stats);
    assert_side_no_bad("sender", &pair->sender.stats);
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
