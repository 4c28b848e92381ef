/*
 * inbox.h - packets of a hardware peer that came to the front socket and wait for their channel's owner.
 *
 * One writer at a time (the reader of the front socket holds its lock), one reader (the channel's owner),
 * no lock between them. Raw copies: the reader validates them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_INBOX_H
#define LH_FABRIC_UDP_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fabric/udp/address.h"
#include "wire/roce.h"

#define UDP_INBOX_PACKETS      256u /* a power of two: the counters wrap */
#define UDP_INBOX_PACKET_BYTES (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_MTU_MAX + ROCE_ICRC_BYTES)

struct udp_inbox_packet {
    union udp_address from;
    uint32_t bytes;
    bool marked; /* congestion experienced */
    uint8_t data[UDP_INBOX_PACKET_BYTES];
};

struct udp_inbox {
    _Atomic uint32_t written;
    _Atomic uint32_t read;
    struct udp_inbox_packet packets[UDP_INBOX_PACKETS];
};

struct udp_inbox *udp_inbox_create(void);
/* False when it is full. bytes is at most UDP_INBOX_PACKET_BYTES. */
bool udp_inbox_put(struct udp_inbox *inbox, const union udp_address *from, const uint8_t *data,
                   uint32_t bytes, bool marked);
/* Whether that many more would fit. */
bool udp_inbox_has_room(struct udp_inbox *inbox, uint32_t packets);
/* The oldest packet, or NULL. It stays until udp_inbox_drop(). */
struct udp_inbox_packet *udp_inbox_peek(struct udp_inbox *inbox);
void udp_inbox_drop(struct udp_inbox *inbox);

#endif
