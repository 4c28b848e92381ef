/*
 * crc32.h - CRC-32 of IEEE 802.3, reflected: zlib's. What the iCRC of a packet is made of, and with it most
 * of the processor time that a packet takes outside the kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_CRC32_H
#define LH_WIRE_CRC32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The CRC of what has the CRC crc, followed by these bytes; 0 for the first. Any length, any alignment. */
uint32_t crc32_add(uint32_t crc, const uint8_t *data, size_t bytes);
/* The same. Meanwhile as many bytes of `later`, which will be read or written, are fetched into the caches,
 * where the CPU can; there may be fewer: the wait for memory and the arithmetic go on side by side. NULL:
 * none are. */
uint32_t crc32_add_ahead(uint32_t crc, const uint8_t *data, size_t bytes, const uint8_t *later);

struct crc32_kernel {
    const char *name;
    bool (*runs_here)(void);
    size_t bytes_min; /* of a piece; shorter ones are ISA-L's */
    uint32_t (*add)(uint32_t crc, const uint8_t *data, size_t bytes, const uint8_t *later);
};

/* Best first, up to NULL; the last one runs anywhere. */
extern const struct crc32_kernel *const crc32_kernels[];

extern const struct crc32_kernel crc32_kernel_isal;
#if defined(__x86_64__)
extern const struct crc32_kernel crc32_kernel_avx512;
extern const struct crc32_kernel crc32_kernel_avx2;
#endif

#endif
