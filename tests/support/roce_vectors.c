/*
 * roce_vectors.c - see roce_vectors.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/roce_vectors.h"

#include <string.h>

#include "wire/roce_packet.h"

static const uint8_t ours_v6[] = {
    0x2b, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x0a, 0xbc, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x02, 0xf0, 0x00, 0x00, 0x00, 0x08, 0xde, 0xad,
    0xbe, 0xef, 0x9c, 0x9f, 0xa2, 0xa5, 0xa8, 0xab, 0xae, 0xb1, 0xb3, 0x1e, 0x25, 0xcc,
};

static const uint8_t ours_v6_padded[] = {
    0x2b, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0xf0, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x02, 0xf0, 0x00, 0x00, 0x00, 0x05, 0xde, 0xad,
    0xbe, 0xef, 0x9c, 0x9f, 0xa2, 0xa5, 0xa8, 0x00, 0x00, 0x00, 0xd2, 0x83, 0xd9, 0xdb,
};

static const uint8_t ours_v4[] = {
    0x2b, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x0a, 0xbc, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x02, 0xf0, 0x00, 0x00, 0x00, 0x08, 0xde, 0xad,
    0xbe, 0xef, 0x9c, 0x9f, 0xa2, 0xa5, 0xa8, 0xab, 0xae, 0xb1, 0x47, 0x3a, 0xe9, 0x91,
};

static const uint8_t ours_v4_padded[] = {
    0x2b, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x12, 0x00, 0xff, 0xff, 0xf0, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x02, 0xf0, 0x00, 0x00, 0x00, 0x05, 0xde, 0xad,
    0xbe, 0xef, 0x9c, 0x9f, 0xa2, 0xa5, 0xa8, 0x00, 0x00, 0x00, 0x26, 0xa7, 0x15, 0x86,
};

static const uint8_t soft_roce_v6[] = {
    0x2b, 0x00, 0xff, 0xff, 0x00, 0x00, 0x01, 0x23, 0x00, 0xff, 0xff, 0xfe, 0x77, 0x66, 0x55,
    0x44, 0x33, 0x22, 0x11, 0x00, 0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00,
    0x55, 0xaa, 0x00, 0x07, 0x0e, 0x15, 0x1c, 0x23, 0x2a, 0x31, 0xe6, 0x48, 0x77, 0xa9,
};

static const uint8_t soft_roce_v4[] = {
    0x2b, 0x00, 0xff, 0xff, 0x00, 0x00, 0x01, 0x23, 0x00, 0xff, 0xff, 0xfe, 0x77, 0x66, 0x55,
    0x44, 0x33, 0x22, 0x11, 0x00, 0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00,
    0x55, 0xaa, 0x00, 0x07, 0x0e, 0x15, 0x1c, 0x23, 0x2a, 0x31, 0xc7, 0xe1, 0x73, 0x87,
};

#define HOST_1_V6                                                                                          \
    {                                                                                                      \
        0xfd, 0x77, [15] = 1                                                                               \
    }
#define HOST_2_V6                                                                                          \
    {                                                                                                      \
        0xfd, 0x77, [15] = 2                                                                               \
    }
#define HOST_1_V4                                                                                          \
    {                                                                                                      \
        10, 77, 0, 1                                                                                       \
    }
#define HOST_2_V4                                                                                          \
    {                                                                                                      \
        10, 77, 0, 2                                                                                       \
    }

/* What every packet of a side has in common. */
#define OURS(qpn, sequence, length)                                                                        \
    .opcode = ROCE_UC_WRITE_ONLY_IMM, .dest_qpn = qpn, .psn = sequence, .va = 0x1010, .rkey = 0x2f0,       \
    .immediate = 0xdeadbeef, .payload_bytes = length
#define SOFT_ROCE                                                                                          \
    .opcode = ROCE_UC_WRITE_ONLY_IMM, .dest_qpn = 0x123, .psn = 0xfffffe, .va = 0x7766554433221100,        \
    .rkey = 0x1234, .immediate = 0x55aa, .payload_bytes = 8

const struct roce_vector roce_vectors[ROCE_VECTORS] = {
    {
        .name = "IPv6",
        .ours = true,
        .ip_id = 0,
        .flow = {.ipv4 = false,
                 .source = HOST_1_V6,
                 .destination = HOST_2_V6,
                 .source_port = 49152,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {OURS(0x11, 0xabc, 8), .payload = ours_v6 + 32},
        .bytes = ours_v6,
        .length = sizeof ours_v6,
    },
    {
        .name = "IPv6, padded",
        .ours = true,
        .ip_id = 0,
        .flow = {.ipv4 = false,
                 .source = HOST_1_V6,
                 .destination = HOST_2_V6,
                 .source_port = 49152,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {OURS(0x11, 0xfffff0, 5), .payload = ours_v6_padded + 32},
        .bytes = ours_v6_padded,
        .length = sizeof ours_v6_padded,
    },
    {
        .name = "IPv4",
        .ours = true,
        .ip_id = 0,
        .flow = {.ipv4 = true,
                 .source = HOST_1_V4,
                 .destination = HOST_2_V4,
                 .source_port = 49152,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {OURS(0x12, 0xabc, 8), .payload = ours_v4 + 32},
        .bytes = ours_v4,
        .length = sizeof ours_v4,
    },
    {
        .name = "IPv4, padded",
        .ours = true,
        .ip_id = 0,
        .flow = {.ipv4 = true,
                 .source = HOST_1_V4,
                 .destination = HOST_2_V4,
                 .source_port = 49152,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {OURS(0x12, 0xfffff0, 5), .payload = ours_v4_padded + 32},
        .bytes = ours_v4_padded,
        .length = sizeof ours_v4_padded,
    },
    {
        .name = "IPv6, from Soft-RoCE",
        .ours = false,
        .ip_id = 0,
        .flow = {.ipv4 = false,
                 .source = HOST_2_V6,
                 .destination = HOST_1_V6,
                 .source_port = 0xd353,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {SOFT_ROCE, .payload = soft_roce_v6 + 32},
        .bytes = soft_roce_v6,
        .length = sizeof soft_roce_v6,
    },
    {
        .name = "IPv4, from Soft-RoCE",
        .ours = false,
        .ip_id = 0xb907,
        .flow = {.ipv4 = true,
                 .source = HOST_2_V4,
                 .destination = HOST_1_V4,
                 .source_port = 0xd476,
                 .destination_port = ROCE_UDP_PORT},
        .packet = {SOFT_ROCE, .payload = soft_roce_v4 + 32},
        .bytes = soft_roce_v4,
        .length = sizeof soft_roce_v4,
    },
};

size_t roce_build(const struct icrc_flow *flow, const struct roce_packet *packet, uint16_t ip_id,
                  uint8_t out[ROCE_PACKET_MAX])
{
    memset(out, 0, ROCE_PACKET_MAX);
    size_t header = roce_encode_header(packet, out);
    size_t padded = packet->payload_bytes + roce_pad_bytes(packet->payload_bytes);
    if (packet->payload_bytes > 0)
        memcpy(out + header, packet->payload, packet->payload_bytes);
    size_t length = header + padded + ROCE_ICRC_BYTES;
    uint32_t state = icrc_begin(flow, (uint32_t)length, ip_id, true);
    state = icrc_add_header(state, out, header);
    state = icrc_add(state, out + header, padded);
    icrc_store(state, out + length - ROCE_ICRC_BYTES);
    return length;
}
