/*
 * udp_pair.h - a sender and a receiver of the udp fabric in one process, with the little that the SDR layer
 * would do: receive bitmaps, and sending no more than the receiver's buffers hold.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_UDP_PAIR_H
#define LH_TESTS_SUPPORT_UDP_PAIR_H

#include "fabric/fabric.h"
#include "wire/roce_packet.h"

#define UDP_PAIR_SLOTS_MAX 64u
/* Writes that are on the way at most: far below any receive buffer. */
#define UDP_PAIR_WINDOW 48u

struct udp_side {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct qp_info_endpoint info;
    struct lh_stats stats;
};

/* A message: the sender's bytes, the receiver's buffer between guard bytes, and what arrived of it. */
struct udp_message {
    uint32_t slot;
    uint8_t generation;
    uint64_t bytes;
    uint32_t packets;
    uint8_t *source;
    uint8_t *guarded; /* UDP_PAIR_GUARD bytes before and after the buffer */
    uint8_t *buffer;
    _Atomic uint64_t *received;
    uint32_t arrived; /* different packets */
    uint32_t repeated;
    struct fabric_slot_key key;
};

struct udp_pair {
    bool shared; /* one fabric for both */
    struct fabric_endpoint_attr attr;
    struct udp_side sender;
    struct udp_side receiver;
    struct udp_message *slots[UDP_PAIR_SLOTS_MAX];
    uint32_t arrivals; /* of all polls so far */
    uint32_t seed;
};

/* Defaults: 1 channel, 4 generations, MTU 4096, 16 slots of 64 MiB, stripes of 16 packets. */
struct fabric_endpoint_attr udp_pair_attr(void);
/* Opens the device twice and connects; fails the test when it cannot. */
void udp_pair_open(struct udp_pair *pair, const char *device, const struct fabric_endpoint_attr *attr);
/* Two devices; the second NULL: both endpoints in one fabric. as_hardware: each takes the other for RoCE
 * hardware, so that all packets go to the RoCE port; false when that port is not free (nothing is open
 * then). */
bool udp_pair_open_as(struct udp_pair *pair, const char *sender, const char *receiver,
                      const struct fabric_endpoint_attr *attr, bool as_hardware);
/* udp_pair_open(), encrypted: the sender is the connecting side. proof: the receiver takes it for one behind
 * NAT, whose punches have that; 0: not. */
void udp_pair_open_sealed(struct udp_pair *pair, const char *device,
                          const struct fabric_endpoint_attr *attr, uint32_t proof);
void udp_pair_close(struct udp_pair *pair);
/* Endpoints in fabrics that are open, and may have others. Ended by udp_pair_leave(). */
void udp_pair_join(struct udp_pair *pair, struct fabric *sender, struct fabric *receiver,
                   const struct fabric_endpoint_attr *attr);
void udp_pair_leave(struct udp_pair *pair);

/* A message of random bytes, bound at the receiver. */
struct udp_message *udp_pair_bind(struct udp_pair *pair, uint32_t slot, uint8_t generation, uint64_t bytes);
void udp_pair_unbind(struct udp_pair *pair, struct udp_message *message);
void udp_message_free(struct udp_message *message);

struct fabric_write udp_pair_write(const struct udp_pair *pair, const struct udp_message *message,
                                   uint32_t packet);
/* Sends one write on the channel that it belongs to; waits while the fabric is full. */
void udp_pair_send(struct udp_pair *pair, const struct fabric_write *writes, uint32_t count);
/* Polls every channel once and sets bits; returns the arrivals. */
uint32_t udp_pair_poll(struct udp_pair *pair);
/* Polls until there were that many arrivals since `before`; fails after long silence. */
void udp_pair_await(struct udp_pair *pair, uint32_t before, uint32_t arrivals);
/* Polls until nothing has come for a while: for packets that must not arrive. */
void udp_pair_settle(struct udp_pair *pair);
/* Sends these packets of a message in this order, window by window, and awaits all. */
void udp_pair_deliver(struct udp_pair *pair, const struct udp_message *message, const uint32_t *packets,
                      uint32_t count);

/* A packet as the sender's channel would put it on the wire, iCRC and all; returns its bytes. */
uint32_t udp_pair_forge(const struct udp_pair *pair, uint32_t channel, const struct roce_packet *packet,
                        uint8_t *out);
/* What udp_pair_write() would send of a message, for changing before it is forged. */
struct roce_packet udp_pair_packet(const struct udp_pair *pair, const struct udp_message *message,
                                   uint32_t packet);
/* Sends a datagram of any bytes from the sender's data socket; segment_bytes is not 0: as a GSO burst. */
void udp_pair_throw(const struct udp_pair *pair, uint32_t channel, const void *data, size_t bytes,
                    uint16_t segment_bytes);

/* No packet was bad at either side; names the counters that say otherwise. */
void udp_pair_assert_no_bad(const struct udp_pair *pair);
/* Every byte of the buffer is the sender's, and every guard byte is untouched. */
void udp_message_assert_whole(const struct udp_message *message);
/* Guard bytes only. */
void udp_message_assert_guards(const struct udp_message *message);

#endif
