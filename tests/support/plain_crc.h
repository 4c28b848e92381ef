/*
 * plain_crc.h - CRC-32 of IEEE 802.3 by its definition, one bit at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_PLAIN_CRC_H
#define LH_TESTS_SUPPORT_PLAIN_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Of what has the CRC crc, followed by these bytes. */
static inline uint32_t plain_crc(uint32_t crc, const uint8_t *data, size_t bytes)
{
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

#endif
