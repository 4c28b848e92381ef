/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_results.h"

#include <longhaul/flowcontrol.h>

#include <stdint.h>

/* pcap (draft-ietf-opsawg-pcap): little-endian, times in nanoseconds. */
#define PCAP_MAGIC_NS  0xa1b23c4du
#define LINK_ETHERNET  1
#define PS_PER_S       1000000000000u
#define PS_PER_NS      1000u
#define ETHERTYPE_IPV4 0x0800
#define IP_UDP         17
#define UDP_ROCE       4791
/* InfiniBand specification volume 1, table 38: reliable connection. */
#define BTH_WRITE_ONLY  0x0a
#define BTH_ACKNOWLEDGE 0x11
#define PKEY            0xffff
#define PSN_MASK        0xffffffu
/* AETH syndromes, sections 9.7.5.1 and 9.7.5.2: no limit by credits; a packet before this one is missing. */
#define AETH_ACK          0x1fu
#define AETH_NAK_SEQUENCE 0x60u
#define FIRST_QP          0x100 /* 0 and 1 are for management */

#define ETHERNET_BYTES 14
#define IPV4_BYTES     20
#define UDP_BYTES      8
#define BTH_BYTES      12
#define RETH_BYTES     16
#define AETH_BYTES     4
#define ICRC_BYTES     4

_Static_assert(ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + BTH_BYTES + RETH_BYTES + ICRC_BYTES ==
                   CLI_PCAP_SNAP,
               "the longest headers");

/* Bytes as they are added at the end. */
struct bytes {
    uint8_t *at;
    size_t count;
};

static void put8(struct bytes *bytes, unsigned value)
{
    bytes->at[bytes->count++] = (uint8_t)value;
}

static void put16(struct bytes *bytes, unsigned value)
{
    put8(bytes, value >> 8);
    put8(bytes, value);
}

static void put32(struct bytes *bytes, uint32_t value)
{
    put16(bytes, value >> 16);
    put16(bytes, value);
}

static void little32(struct bytes *bytes, uint32_t value)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        put8(bytes, value >> shift);
}

/* Locally administered, the number in the lower 32 bits. */
static void put_mac(struct bytes *bytes, unsigned kind, uint32_t number)
{
    put16(bytes, 0x0200 | kind);
    put32(bytes, number);
}

static void put_ethernet(struct bytes *bytes, const struct lh_netsim_packet *packet)
{
    put_mac(bytes, 0, packet->destination);
    put_mac(bytes, 0, packet->source);
    put16(bytes, ETHERTYPE_IPV4);
}

/* 10.0.0.1 and on; 65,536 hosts need no more. */
static uint32_t address(uint32_t host)
{
    return 0x0a000001u + host;
}

static void put_ipv4(struct bytes *bytes, const struct lh_netsim_packet *packet, unsigned total_bytes)
{
    size_t start = bytes->count;
    /* Class selector of the priority; ECN capable, or congestion experienced. */
    unsigned ecn = packet->kind == LH_NETSIM_ACK ? 0 : packet->marked ? 3 : 2;
    put8(bytes, 0x45);
    put8(bytes, (unsigned)(packet->priority & 7) << 5 | ecn);
    put16(bytes, total_bytes);
    put16(bytes, packet->sequence & 0xffff);
    put16(bytes, 0x4000); /* do not fragment */
    put8(bytes, 64);
    put8(bytes, IP_UDP);
    put16(bytes, 0);
    put32(bytes, address(packet->source));
    put32(bytes, address(packet->destination));
    uint32_t sum = 0;
    for (size_t i = start; i < bytes->count; i += 2)
        sum += (uint32_t)bytes->at[i] << 8 | bytes->at[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    bytes->at[start + 10] = (uint8_t)(~sum >> 8);
    bytes->at[start + 11] = (uint8_t)~sum;
}

static void put_udp(struct bytes *bytes, const struct lh_netsim_packet *packet, unsigned port,
                    unsigned udp_bytes)
{
    put16(bytes, 0xc000 | (packet->flow & 0x3fff));
    put16(bytes, port);
    put16(bytes, udp_bytes);
    put16(bytes, 0); /* RoCEv2 has its own check */
}

/* An acknowledgement confirms that all packets before its sequence have arrived. Of a reliable connection it
 * has the number of the last of these; when there is none, it is the complaint that the first one is
 * missing, which it names (InfiniBand specification volume 1, section 9.7.5). */
static bool is_complaint(const struct lh_netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_ACK && packet->sequence == 0;
}

static uint32_t packet_number(const struct lh_netsim_packet *packet)
{
    bool last_arrived = packet->kind == LH_NETSIM_ACK && !is_complaint(packet);
    return (packet->sequence - last_arrived) & PSN_MASK;
}

static void put_bth(struct bytes *bytes, const struct lh_netsim_packet *packet)
{
    bool data = packet->kind == LH_NETSIM_DATA;
    put8(bytes, data ? BTH_WRITE_ONLY : BTH_ACKNOWLEDGE);
    put8(bytes, 0x40); /* migrated, no pad */
    put16(bytes, PKEY);
    put32(bytes, (FIRST_QP + packet->flow) & 0xffffff);
    put32(bytes, (data ? 0x80000000u : 0) | packet_number(packet)); /* data: please acknowledge */
}

/* From the port of that link. */
static void put_pfc(struct bytes *bytes, const struct lh_netsim_packet *packet)
{
    unsigned priority = packet->priority & 7;
    struct lh_pfc_frame frame = {.enabled = (uint8_t)(1u << priority)};
    struct bytes source = {frame.source, 0};
    put_mac(&source, 1, packet->link);
    frame.quanta[priority] = packet->quanta;
    lh_pfc_frame_encode(&frame, bytes->at);
    bytes->count = LH_PFC_FRAME_BYTES;
}

/* Ethernet to the last header of ours; returns what the frame's length is at least. */
static uint32_t put_roce(struct bytes *bytes, const struct lh_netsim_packet *packet, uint32_t header_bytes)
{
    bool data = packet->kind == LH_NETSIM_DATA;
    uint32_t payload = data && packet->wire_bytes > header_bytes ? packet->wire_bytes - header_bytes : 0;
    uint32_t udp_bytes = payload + UDP_BYTES + BTH_BYTES + ICRC_BYTES;
    udp_bytes += data ? RETH_BYTES : AETH_BYTES;
    put_ethernet(bytes, packet);
    put_ipv4(bytes, packet, IPV4_BYTES + udp_bytes);
    put_udp(bytes, packet, UDP_ROCE, udp_bytes);
    put_bth(bytes, packet);
    if (data) {
        put32(bytes, packet->sequence >> 20);
        put32(bytes, packet->sequence << 12); /* where it goes: 4 KiB a packet */
        put32(bytes, packet->flow);
        put32(bytes, payload);
    } else {
        /* Each packet is a message, and this many are complete. */
        put32(bytes,
              (is_complaint(packet) ? AETH_NAK_SEQUENCE : AETH_ACK) << 24 | (packet->sequence & PSN_MASK));
    }
    uint32_t frame_bytes = ETHERNET_BYTES + IPV4_BYTES + udp_bytes;
    return frame_bytes;
}

void cli_pcap_start(FILE *file)
{
    uint8_t room[CLI_PCAP_FILE_HEADER];
    struct bytes bytes = {room, 0};
    little32(&bytes, PCAP_MAGIC_NS);
    little32(&bytes, 2 | 4u << 16); /* version 2.4 */
    little32(&bytes, 0);
    little32(&bytes, 0);
    little32(&bytes, 65535);
    little32(&bytes, LINK_ETHERNET);
    fwrite(room, 1, bytes.count, file);
}

static void put_zeros(FILE *file, uint32_t count)
{
    static const uint8_t zeros[4096];
    for (uint32_t left = count; left;) {
        uint32_t part = left < sizeof zeros ? left : (uint32_t)sizeof zeros;
        fwrite(zeros, 1, part, file);
        left -= part;
    }
}

void cli_pcap_packet(FILE *file, const struct lh_netsim_packet *packet, uint32_t header_bytes, bool full)
{
    uint8_t room[CLI_PCAP_SNAP], record_room[CLI_PCAP_RECORD_HEADER];
    struct bytes bytes = {room, 0}, record = {record_room, 0};
    uint32_t minimum = LH_PFC_FRAME_BYTES;
    if (packet->kind == LH_NETSIM_CREDIT)
        return; /* there is none on Ethernet */
    if (packet->kind == LH_NETSIM_PAUSE || packet->kind == LH_NETSIM_RESUME)
        put_pfc(&bytes, packet);
    else
        minimum = put_roce(&bytes, packet, header_bytes);
    /* The length of the simulator, unless that is shorter than what the headers alone need. */
    uint32_t length = packet->wire_bytes > minimum ? packet->wire_bytes : minimum;
    uint32_t kept = full ? length : (uint32_t)bytes.count;
    little32(&record, (uint32_t)(packet->at_ps / PS_PER_S));
    little32(&record, (uint32_t)(packet->at_ps % PS_PER_S / PS_PER_NS));
    little32(&record, kept);
    little32(&record, length);
    fwrite(record_room, 1, record.count, file);
    fwrite(room, 1, bytes.count, file);
    put_zeros(file, kept - (uint32_t)bytes.count);
}
