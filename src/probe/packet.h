/*
 * packet.h - the UDP packets of a probe: encode and decode, nothing else. All integers big-endian.
 *
 *   0 magic 4 | 4 version 1 | 5 kind 1 | 6 flow 2 | 8 token 8 | 16 round 4 | 20 number 4 | 24 sent_ns 8 |
 *   32 bytes 4 | 36 held_ns 4 | fill up to `bytes`, which no receiver reads
 *
 * The server picks a random token for each run and sends it over TCP: who has no TCP connection to it gets no
 * answer. No answer is longer than what it answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_PACKET_H
#define LH_PROBE_PACKET_H

#include <longhaul/probe.h>

#define PROBE_PACKET_MAGIC   0x4C485055u /* "LHPU" */
#define PROBE_PACKET_VERSION 1u
#define PROBE_HEADER_BYTES   40u
_Static_assert(LH_PROBE_PAYLOAD_MIN >= PROBE_HEADER_BYTES, "every packet holds its header");

/* The longest UDP payload of IP: 65535 less IPv4 and UDP header (IPv6: a little more, not used). */
#define PROBE_UDP_PAYLOAD_MAX 65507u

enum probe_packet_kind {
    PROBE_PING = 1,  /* answered with PONG */
    PROBE_PONG = 2,  /* round, number and sent_ns of the PING; held_ns: from its arrival to this */
    PROBE_WHOLE = 3, /* of a size that is tried; answered with CAME */
    PROBE_CAME = 4,  /* round, number and sent_ns of the WHOLE */
    PROBE_DATA = 5,  /* of a flow; counted */
};

struct probe_packet {
    enum probe_packet_kind kind;
    uint16_t flow;
    uint64_t token;
    uint32_t round;  /* which measurement it belongs to */
    uint32_t number; /* within the round, over all flows */
    lh_time sent_ns; /* the client's clock */
    uint32_t bytes;  /* UDP payload, with this header */
    uint32_t held_ns;
};

/* Writes PROBE_HEADER_BYTES. */
void probe_packet_encode(const struct probe_packet *packet, uint8_t *out);
/* Of a datagram of `bytes` of which at least the header, or all, was read. False: not such a packet. */
bool probe_packet_decode(const uint8_t *data, size_t bytes, struct probe_packet *packet);

#endif
