/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"

#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <longhaul/device.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "base/min_max.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- devices --------------------------------------------------------------------------------------- */

#define FIRST_ROOM 16u

struct lh_device *fabric_device_add(struct fabric_device_list *list, const char *fabric)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;
        struct lh_device *more = realloc(list->devices, room * sizeof *more);
        if (more == NULL) {
            list->failed = true;
            return NULL;
        }
        list->devices = more;
        list->room = room;
    }
    struct lh_device *device = &list->devices[list->count++];
    *device = (struct lh_device){0};
    snprintf(device->fabric, sizeof device->fabric, "%s", fabric);
    return device;
}

/* ---- endpoint check -------------------------------------------------------------------------------- */

int endpoint_check_shape(const struct fabric_endpoint_attr *attr)
{
    if (attr->channels < 1 || attr->channels > QP_INFO_CHANNELS_MAX)
        return lh_fail(LH_ERANGE, "%u channels: out of range (1 to %u)", attr->channels,
                       QP_INFO_CHANNELS_MAX);
    if (attr->generations < 1 || attr->generations > QP_INFO_GENERATIONS_MAX)
        return lh_fail(LH_ERANGE, "%u generations: out of range (1 to %u)", attr->generations,
                       QP_INFO_GENERATIONS_MAX);
    if (attr->stripe_packets < 1)
        return lh_fail(LH_EINVAL, "stripe of 0 packets: out of range (at least 1)");
    if (attr->stats == NULL)
        return lh_fail(LH_EINVAL, "endpoint without counters");
    return 0;
}

int endpoint_check_table(const struct fabric_endpoint_attr *attr)
{
    const struct immediate_split *split = &attr->split;
    if (split->message_bits + split->offset_bits + split->fragment_bits != 32 || split->message_bits > 16 ||
        split->offset_bits > 31 || split->fragment_bits == 0)
        return lh_fail(LH_EINVAL, "immediate split %u+%u+%u: invalid (the bits must add up to 32)",
                       split->message_bits, split->offset_bits, split->fragment_bits);
    if (attr->slots < 1 || attr->slots > 1u << split->message_bits)
        return lh_fail(LH_ERANGE, "%u message slots: out of range for %u bits of the immediate (1 to %u)",
                       attr->slots, split->message_bits, 1u << split->message_bits);
    uint64_t longest = (uint64_t)attr->mtu_bytes << split->offset_bits;
    if (attr->slot_bytes < 1 || attr->slot_bytes > longest)
        return lh_fail(
            LH_ERANGE, "messages of %llu bytes: out of range for %u bits of the immediate (1 to %llu)",
            (unsigned long long)attr->slot_bytes, split->offset_bits, (unsigned long long)longest);
    return 0;
}

int endpoint_check_peer(const struct fabric_endpoint_attr *attr, const struct qp_info_endpoint *peer)
{
    if (peer->channels != attr->channels)
        return lh_fail(LH_EHANDSHAKE,
                       "channel count mismatch: peer %u, this side %u (use the same on both)",
                       peer->channels, attr->channels);
    if (peer->generations != attr->generations)
        return lh_fail(LH_EHANDSHAKE,
                       "generation count mismatch: peer %u, this side %u (use the same on both)",
                       peer->generations, attr->generations);
    return 0;
}

struct fabric_peer_traits endpoint_peer_traits(const struct qp_info_endpoint *peer)
{
    bool sockets = peer->fabric == QP_INFO_UDP;
    return (struct fabric_peer_traits){
        .may_be_translated = sockets, .shares_control_port = sockets, .drops_unread = sockets};
}

static bool qpn_is_valid(uint32_t qpn)
{
    return qpn != 0 && qpn <= ROCE_QPN_MASK;
}

bool endpoint_check_qpns(const struct qp_info_endpoint *peer)
{
    bool valid = qpn_is_valid(peer->control_qpn);
    for (uint32_t channel = 0; channel < peer->channels; channel++)
        for (uint32_t generation = 0; generation < peer->generations; generation++)
            valid = valid && qpn_is_valid(peer->qpn[generation][channel]);
    return valid;
}

/* ---- random ---------------------------------------------------------------------------------------- */

int fabric_random(void *out, size_t bytes)
{
    uint8_t *next = out;
    while (bytes > 0) { /* each round gets at least a byte */
        ssize_t got = getrandom(next, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return lh_fail(LH_ESYSTEM, "no random numbers from the kernel: %s", strerror(errno));
        next += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* ---- socket drops ---------------------------------------------------------------------------------- */

uint32_t socket_drops(int fd)
{
    uint32_t counters[SK_MEMINFO_VARS] = {0};
    socklen_t bytes = sizeof counters;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counters, &bytes) != 0)
        return 0;
    return bytes >= (SK_MEMINFO_DROPS + 1) * sizeof counters[0] ? counters[SK_MEMINFO_DROPS] : 0;
}

/* ---- packet pieces --------------------------------------------------------------------------------- */

#define EIGHTHS      8u
#define LAST_EXTENTS 3u /* more, of the last piece of a short packet */

static_assert(PACKET_PIECES_MAX == EIGHTHS && 1u << (PACKET_LENGTHS - 1) == PACKET_PIECES_MAX,
              "an eighth is the shortest");
static_assert(ROCE_PAYLOAD_STEP % EIGHTHS == 0, "it is whole");

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

uint32_t packet_lengths(uint32_t mtu_bytes)
{
    uint32_t lengths = 1;
    while (mtu_bytes % ROCE_PAYLOAD_STEP == 0 && lengths < PACKET_LENGTHS &&
           mtu_bytes >> lengths >= PACKET_PIECE_MIN)
        lengths++;
    return lengths;
}

uint32_t packet_cut(const struct packet_receiver *peer, const struct fabric_write *write, uint32_t pieces,
                    struct fabric_write out[PACKET_PIECES_MAX])
{
    assert(pieces >= 2 && pieces <= PACKET_PIECES_MAX && is_power_of_two(pieces));
    assert(write->bytes <= peer->mtu_bytes && peer->mtu_bytes % EIGHTHS == 0);
    const uint32_t length = peer->mtu_bytes / pieces;
    const uint64_t extents = (uint64_t)__builtin_ctz(pieces);
    uint32_t count = 0;
    out[0] = *write;
    if (write->bytes <= length)
        return 1;
    for (uint32_t at = 0; at < write->bytes; at += length) { /* at most PACKET_PIECES_MAX */
        struct fabric_write *piece = &out[count++];
        bool is_last = at + length >= write->bytes && write->bytes < peer->mtu_bytes;
        *piece = *write;
        piece->payload = write->payload + at;
        piece->bytes = (uint32_t)lh_min(length, write->bytes - at);
        piece->va = write->va + at + (extents + (is_last ? LAST_EXTENTS : 0)) * peer->extent_bytes;
        if (at > 0)
            piece->corrupt_bit = 0;
    }
    return count;
}

bool packet_piece_read(const struct fabric_endpoint_attr *attr, uint64_t va, uint32_t packet,
                       uint32_t bytes, struct packet_piece *piece)
{
    const uint64_t extent_bytes = attr->slots * attr->slot_bytes;
    const uint32_t mtu = attr->mtu_bytes;
    uint64_t extents = va / extent_bytes;
    if (extents < 1 || extents > 2 * LAST_EXTENTS)
        return false;
    bool is_last = extents > LAST_EXTENTS;
    uint32_t lengths = (uint32_t)(is_last ? extents - LAST_EXTENTS : extents);
    uint64_t in_extent = va - extents * extent_bytes;
    uint64_t offset = in_extent % attr->slot_bytes;
    uint64_t start = (uint64_t)packet * mtu;
    if (lengths >= packet_lengths(mtu) || offset < start || offset - start >= mtu)
        return false;
    uint32_t length = mtu >> lengths;
    uint32_t at = (uint32_t)(offset - start);
    if (at % length != 0 || bytes == 0 || bytes > length)
        return false;
    if (is_last ? at + bytes == mtu : bytes < length)
        return false;
    *piece = (struct packet_piece){.slot = (uint32_t)(in_extent / attr->slot_bytes),
                                   .offset = offset,
                                   .first = at / (mtu / EIGHTHS),
                                   .end_bytes = is_last ? at + bytes : 0};
    return true;
}

/* Bits of the eighths from one on, before another. */
static uint8_t eighths_of(uint32_t first, uint32_t end)
{
    assert(first <= end && end <= EIGHTHS);
    return (uint8_t)((1u << end) - (1u << first));
}

/* Neighbours have places of their own, so a burst of losses fits. */
static struct packet_partial *place_of(struct packet_partial *partials, const struct packet_piece *piece,
                                       uint32_t packet)
{
    return &partials[(packet + piece->slot * 0x9E3779B1u) % PACKET_PARTIALS];
}

uint32_t packet_piece_add(struct packet_partial *partials, const struct packet_piece *piece,
                          uint32_t mtu_bytes, uint32_t rkey, uint32_t packet, uint32_t bytes)
{
    struct packet_partial *partial = place_of(partials, piece, packet);
    const uint32_t eighth = mtu_bytes / EIGHTHS;
    if (partial->eighths == 0 || partial->rkey != rkey || partial->packet != packet ||
        partial->slot != piece->slot)
        *partial = (struct packet_partial){.rkey = rkey, .packet = packet, .slot = (uint16_t)piece->slot};
    /* The two ends of a packet that has two are a liar's: the last one counts. */
    if (piece->end_bytes != 0)
        partial->end_bytes = (uint16_t)piece->end_bytes;
    partial->eighths |= eighths_of(piece->first, piece->first + (bytes + eighth - 1) / eighth);
    uint32_t end_bytes = partial->end_bytes != 0 ? partial->end_bytes : mtu_bytes;
    uint8_t all = eighths_of(0, (end_bytes + eighth - 1) / eighth);
    if ((partial->eighths & all) != all)
        return 0;
    partial->eighths = 0;
    return end_bytes;
}
