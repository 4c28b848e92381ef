/*
 * immediate.h - the 32-bit transport immediate: message ID, packet offset, fragment of the user's immediate
 * (SDR-RDMA paper, section 3.2.4).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_IMMEDIATE_H
#define LH_WIRE_IMMEDIATE_H

#include <stdint.h>

/* Widths in bits, most significant first: message ID, packet offset, fragment; they add up to 32. */
struct immediate_split {
    uint8_t message_bits;
    uint8_t offset_bits;
    uint8_t fragment_bits;
};

#define IMMEDIATE_SPLIT_10_18_4 ((struct immediate_split){10, 18, 4})
#define IMMEDIATE_SPLIT_8_22_2  ((struct immediate_split){8, 22, 2})

struct immediate_fields {
    uint32_t message;
    uint32_t packet;
    uint32_t fragment;
};

static inline uint32_t immediate_join(struct immediate_split split, struct immediate_fields fields)
{
    return (fields.message << (split.offset_bits + split.fragment_bits)) |
           (fields.packet << split.fragment_bits) | fields.fragment;
}

static inline struct immediate_fields immediate_part(struct immediate_split split, uint32_t immediate)
{
    return (struct immediate_fields){
        .message = immediate >> (split.offset_bits + split.fragment_bits),
        .packet = (immediate >> split.fragment_bits) & ((1u << split.offset_bits) - 1u),
        .fragment = immediate & ((1u << split.fragment_bits) - 1u),
    };
}

/* Packet p carries fragment p % immediate_fragments(): bits fragment_bits * that … of the user's. */
static inline uint32_t immediate_fragments(struct immediate_split split)
{
    return 32u / split.fragment_bits;
}

static inline uint32_t immediate_fragment_of(struct immediate_split split, uint32_t user, uint32_t packet)
{
    uint32_t index = packet % immediate_fragments(split);
    return (user >> (index * split.fragment_bits)) & ((1u << split.fragment_bits) - 1u);
}

#endif
