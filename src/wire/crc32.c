/*
 * crc32.c - the kernel that this CPU can run, and ISA-L's, which is faster for short pieces.
 *
 * Nothing is kept: both libraries contain this file, and what a CPU supports is one load away.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/crc32.h"

#include <isa-l/crc.h>

#include "base/bytes.h"

/* ISA-L's vector kernels take over from here on. */
#define ISAL_WIDE_BYTES 256u

static bool runs_here(void)
{
    return true;
}

static uint32_t add(uint32_t crc, const uint8_t *data, size_t bytes, const uint8_t *later)
{
    (void)later;
    crc = crc32_gzip_refl(crc, data, bytes);
    /* Shorter pieces do not reach ISA-L's wide kernels. */
    if (bytes >= ISAL_WIDE_BYTES)
        lh_vzeroupper();
    return crc;
}

const struct crc32_kernel crc32_kernel_isal = {"isa-l", runs_here, 0, add};

const struct crc32_kernel *const crc32_kernels[] = {
#if defined(__x86_64__)
    &crc32_kernel_avx512,
    &crc32_kernel_avx2,
#endif
    &crc32_kernel_isal,
    NULL,
};

uint32_t crc32_add_ahead(uint32_t crc, const uint8_t *data, size_t bytes, const uint8_t *later)
{
    const struct crc32_kernel *const *kernel = crc32_kernels;
    if (bytes == 0)
        return crc;
    while (bytes < (*kernel)->bytes_min || !(*kernel)->runs_here())
        kernel++;
    return (*kernel)->add(crc, data, bytes, later);
}

uint32_t crc32_add(uint32_t crc, const uint8_t *data, size_t bytes)
{
    return crc32_add_ahead(crc, data, bytes, NULL);
}
