/*
 * bytes.h - integers in network byte order, at any alignment (compilers make one swap of each), and copies.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_BYTES_H
#define LH_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* ---- copy ------------------------------------------------------------------------------------------ */

/*
 * Memcpy() of long memory at any distance.
 *
 * glibc copies from some 2 KiB on by `rep movsb`, which on AMD's Zen 3 takes four times as long where the
 * destination is 1 to 31 bytes above the source, modulo 4 KiB (glibc bug 30994; bench/bench_copy.c). What
 * malloc() gives for long buffers is 16 bytes behind a page, so beside memory that is aligned to pages this
 * is common. Shorter copies use vectors.
 */

#define LH_COPY_ALIAS_BYTES 4096u
#define LH_COPY_NEAR_BYTES  32u
#define LH_COPY_PART_BYTES  1024u

/* They do not overlap. */
static inline void lh_copy(void *to, const void *from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t distance = ((uintptr_t)to - (uintptr_t)from) % LH_COPY_ALIAS_BYTES;
    bool near = distance > 0 && distance < LH_COPY_NEAR_BYTES;
    size_t part = LH_COPY_PART_BYTES;
    /* A compiler that knows the length copies by `rep movsq` in place of a call, or joins the parts again. */
    __asm__("" : "+r"(part));
    for (; near && bytes > part; bytes -= part) {
        memcpy(out, in, part);
        out += part;
        in += part;
    }
    memcpy(out, in, bytes);
}

/* ---- vzeroupper ------------------------------------------------------------------------------------ */

/*
 * To be called after a kernel that may leave the upper halves of the vector registers in
 * use.
 *
 * ISA-L (2.30 at least) returns from its AVX-512 kernels without vzeroupper. From then on every plain SSE
 * instruction of this thread, memcpy's and the compiler's included, waits for those halves: an iCRC of a
 * small packet took 210 ns in place of 62 ns.
 */

static inline void lh_vzeroupper(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                               "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

#endif
