/*
 * little_endian.h - numbers of messages and files, byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_LITTLE_ENDIAN_H
#define LH_CLI_FILE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void cli_put_u32(uint8_t *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline void cli_put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t cli_get_u32(const uint8_t *in)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint32_t)in[i] << (8 * i);
    return value;
}

static inline uint64_t cli_get_u64(const uint8_t *in)
{
    return cli_get_u32(in) | (uint64_t)cli_get_u32(in + 4) << 32;
}

#endif
