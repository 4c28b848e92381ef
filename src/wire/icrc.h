/*
 * icrc.h - the invariant CRC of RoCEv2 (Annex A17.3.3): CRC-32 of IEEE 802.3 over the packet with those
 * fields set to ones that may change on the way. Stored little-endian.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_ICRC_H
#define LH_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What of the IP and UDP headers enters the iCRC. Addresses in network order; IPv4 ones in 4 bytes. */
struct icrc_flow {
    bool ipv4;
    uint8_t source[16];
    uint8_t destination[16];
    uint16_t source_port;      /* host order */
    uint16_t destination_port; /* host order */
};

/* Running state after the masked LRH, IP and UDP headers of a datagram with this UDP payload length
 * (BTH to iCRC). ip_id counts only for IPv4, dont_fragment too. */
uint32_t icrc_begin(const struct icrc_flow *flow, uint32_t udp_payload_bytes, uint16_t ip_id,
                    bool dont_fragment);
/* Adds header bytes, the first of which is BTH byte 0 (byte 4 is masked). At least 12. */
uint32_t icrc_add_header(uint32_t state, const uint8_t *header, size_t bytes);
/* Adds payload and pad bytes; any piece lengths. */
uint32_t icrc_add(uint32_t state, const uint8_t *data, size_t bytes);
/* The same; meanwhile `later`, what is used next, is fetched into the caches. NULL: nothing is. */
uint32_t icrc_add_ahead(uint32_t state, const uint8_t *data, size_t bytes, const uint8_t *later);
/* The value as it is stored, little-endian, in the last four bytes of the packet. */
void icrc_store(uint32_t state, uint8_t out[4]);
uint32_t icrc_load(const uint8_t in[4]); /* comparable with icrc_finish() */
uint32_t icrc_finish(uint32_t state);

/* One whole UDP payload (BTH to iCRC, contiguous): does its iCRC hold? For IPv4 the IP ID of the sender is
 * unknown to a plain socket: tries the likely one, then solves for it (a 16-bit residual check remains, see
 * icrc_solve_ip_id). At least 16 bytes. */
bool icrc_check(const struct icrc_flow *flow, const uint8_t *udp_payload, size_t bytes, uint16_t likely_id);

/* IPv4: the ID with which the iCRC (finished value `wanted`) would hold, given the finished value for ID 0
 * of a datagram of that length. CRC is affine over GF(2): iCRC(id) = iCRC(0) ^ L(id), L fixed by the
 * length. False when there is none: the packet is damaged. */
bool icrc_solve_ip_id(uint32_t with_id_zero, uint32_t wanted, uint32_t udp_payload_bytes, uint16_t *ip_id);

#endif
