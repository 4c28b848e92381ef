/*
 * big_endian.h - integers in network byte order, at any alignment. Compilers make one swap of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_BIG_ENDIAN_H
#define LH_BASE_BIG_ENDIAN_H

#include <stdint.h>

static inline void lh_put_be16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

static inline void lh_put_be24(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)(value >> 16);
    out[1] = (uint8_t)(value >> 8);
    out[2] = (uint8_t)value;
}

static inline void lh_put_be32(uint8_t *out, uint32_t value)
{
    lh_put_be16(out, (uint16_t)(value >> 16));
    lh_put_be16(out + 2, (uint16_t)value);
}

static inline void lh_put_be64(uint8_t *out, uint64_t value)
{
    lh_put_be32(out, (uint32_t)(value >> 32));
    lh_put_be32(out + 4, (uint32_t)value);
}

static inline uint16_t lh_get_be16(const uint8_t *in)
{
    return (uint16_t)(in[0] << 8 | in[1]);
}

static inline uint32_t lh_get_be24(const uint8_t *in)
{
    return (uint32_t)in[0] << 16 | lh_get_be16(in + 1);
}

static inline uint32_t lh_get_be32(const uint8_t *in)
{
    return (uint32_t)lh_get_be16(in) << 16 | lh_get_be16(in + 2);
}

static inline uint64_t lh_get_be64(const uint8_t *in)
{
    return (uint64_t)lh_get_be32(in) << 32 | lh_get_be32(in + 4);
}

#endif
