/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/inbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct udp_inbox *udp_inbox_create(void)
{
    return calloc(1, sizeof(struct udp_inbox));
}

bool udp_inbox_put(struct udp_inbox *inbox, const union udp_address *from, const uint8_t *data,
                   uint32_t bytes, bool marked)
{
    assert(bytes <= UDP_INBOX_PACKET_BYTES);
    uint32_t written = atomic_load_explicit(&inbox->written, memory_order_relaxed);
    if (written - atomic_load_explicit(&inbox->read, memory_order_acquire) == UDP_INBOX_PACKETS)
        return false;
    struct udp_inbox_packet *packet = &inbox->packets[written % UDP_INBOX_PACKETS];
    packet->from = *from;
    packet->bytes = bytes;
    packet->marked = marked;
    memcpy(packet->data, data, bytes);
    atomic_store_explicit(&inbox->written, written + 1, memory_order_release);
    return true;
}

bool udp_inbox_has_room(struct udp_inbox *inbox, uint32_t packets)
{
    uint32_t written = atomic_load_explicit(&inbox->written, memory_order_relaxed);
    uint32_t waiting = written - atomic_load_explicit(&inbox->read, memory_order_acquire);
    return waiting + packets <= UDP_INBOX_PACKETS;
}

struct udp_inbox_packet *udp_inbox_peek(struct udp_inbox *inbox)
{
    uint32_t read = atomic_load_explicit(&inbox->read, memory_order_relaxed);
    if (read == atomic_load_explicit(&inbox->written, memory_order_acquire))
        return NULL;
    return &inbox->packets[read % UDP_INBOX_PACKETS];
}

void udp_inbox_drop(struct udp_inbox *inbox)
{
    uint32_t read = atomic_load_explicit(&inbox->read, memory_order_relaxed);
    atomic_store_explicit(&inbox->read, read + 1, memory_order_release);
}
