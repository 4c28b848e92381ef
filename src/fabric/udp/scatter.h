/*
 * scatter.h - where the kernel puts the bytes of the next message, and how to read them back.
 *
 * A message is one datagram, or several of one size that the kernel joined (GRO). It is laid out as
 * expected: the payload of the i-th packet at places[i] in a user's buffer, headers and trailers into
 * records here, and all that comes after the last place into the staging buffer. Whatever then really came
 * is read through udp_scatter_piece(), which knows nothing of packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_SCATTER_H
#define LH_FABRIC_UDP_SCATTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/roce.h"

#define UDP_MESSAGE_MAX 65535u /* no UDP datagram is longer, joined ones neither */
/* Speculative places of a message: the kernel joins at most 64 datagrams (UDP_GRO_CNT_MAX). */
#define UDP_PLACES_MAX 64u
/* Between two payloads of full packets: the iCRC of one, the header of the next. */
#define UDP_RECORD_BYTES (ROCE_ICRC_BYTES + ROCE_WRITE_IMM_HEADER_BYTES)

struct udp_scatter {
    uint32_t mtu_bytes;
    uint32_t place_count;
    uint8_t *places[UDP_PLACES_MAX];
    /* Record i: iCRC of packet i - 1, then header of packet i. */
    uint8_t records[UDP_PLACES_MAX + 1][UDP_RECORD_BYTES];
    uint8_t *staging; /* UDP_MESSAGE_MAX bytes */
    struct iovec iov[2 * UDP_PLACES_MAX + 2];
};

/* Number of speculative places worth offering at this MTU: as many full packets as one message can hold. */
uint32_t udp_scatter_places_max(uint32_t mtu_bytes);
/* Fills iov for the first place_count places; returns the number of entries. */
size_t udp_scatter_lay_out(struct udp_scatter *scatter);
/* The byte at this offset of the message, and in *got the number of the `want` bytes from there on lie
 * together (at least 1 when want is). */
uint8_t *udp_scatter_piece(struct udp_scatter *scatter, uint32_t offset, uint32_t want, uint32_t *got);
/* Copies bytes [offset, offset + bytes) out. */
void udp_scatter_gather(struct udp_scatter *scatter, uint32_t offset, uint32_t bytes, uint8_t *out);
/* Whether a byte at this offset lies in a user's buffer or a record, not in the staging buffer. */
static inline bool udp_scatter_is_placed(const struct udp_scatter *scatter, uint32_t offset)
{
    return offset < scatter->place_count * (scatter->mtu_bytes + UDP_RECORD_BYTES);
}

#endif
