/*
 * copy.h - memcpy() of long memory at any distance.
 *
 * glibc copies from some 2 KiB on by `rep movsb`, which on AMD's Zen 3 takes four times as long where the
 * destination is 1 to 31 bytes above the source, modulo 4 KiB (glibc bug 30994; bench/bench_copy.c). What
 * malloc() gives for long buffers is 16 bytes behind a page, so beside memory that is aligned to pages this
 * is common. Shorter copies use vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_COPY_H
#define LH_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
