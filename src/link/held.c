/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/held.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/link_fate.h"
#include "link/link.h"

__extension__ typedef unsigned __int128 uint128;

uint64_t link_held_bytes(const struct lh_link_spec *spec)
{
    if (spec->rate_bps == 0)
        return LINK_HELD_UNLIMITED_BYTES;
    /* A packet that is held back waits for another jitter span, or, without jitter, a quarter of the delay.
     */
    uint128 span_ns = (uint128)spec->delay_ns + 2 * (uint128)spec->jitter_ns + spec->delay_ns / 4;
    uint64_t queue_bytes = lh_link_queue_bytes(spec);
    uint128 bytes = span_ns * spec->rate_bps / (8 * LH_NS_PER_S) + queue_bytes + LINK_HELD_SLACK_BYTES;
    return bytes < LINK_HELD_MAX_BYTES ? (uint64_t)bytes : LINK_HELD_MAX_BYTES;
}

int link_held_create(uint64_t bytes, struct link_held **out)
{
    struct link_held *held = calloc(1, sizeof(*held));
    if (held == NULL || !ring_store_init(&held->store, bytes)) {
        free(held);
        return lh_fail(LH_ENOMEM,
                       "no memory for the %llu bytes in flight on the emulated link (use a shorter delay "
                       "or a lower rate)",
                       (unsigned long long)bytes);
    }
    *out = held;
    return 0;
}

static void destroy(struct link_held *held)
{
    ring_store_free(&held->store);
    free(held);
}

void link_held_retire(struct link_held *held)
{
    if (held == NULL)
        return;
    assert(!held->retired);
    held->retired = true;
    if (ring_store_oldest(&held->store) == NULL)
        destroy(held);
}

struct link_packet *link_packet_take(struct link_held *held, uint32_t payload_bytes)
{
    assert(!held->retired && payload_bytes <= UINT16_MAX);
    struct link_packet *packet =
        ring_store_take(&held->store, (uint32_t)sizeof(struct link_packet) + payload_bytes);
    if (packet != NULL)
        packet->held = held;
    return packet;
}

void link_packet_give_back(struct link_packet *packet)
{
    struct link_held *held = packet->held;
    ring_store_give_back(&held->store, packet);
    if (held->retired && ring_store_oldest(&held->store) == NULL)
        destroy(held);
}
