/*
 * hadamard_cuda.h - the Hadamard transform of longhaul/hadamard.h on GPUs: the same packets, signs, tail and
 * errors, for tensors in device memory. It is in a separate library, liblonghaul-cuda, built where nvcc is
 * available.
 *
 * A call enqueues kernels on the caller's stream and returns; memory and `report` stay in use until the
 * stream has executed them. Calls allocate nothing and never wait; a graph may capture them. They run on the
 * current device. Pointers are to its memory, aligned to the element's bytes; 16 bytes is fastest. They
 * ignore lh_hadamard's `encoder`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_HADAMARD_CUDA_H
#define LONGHAUL_HADAMARD_CUDA_H

#include <longhaul/hadamard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Findings of the kernels, in device memory, aligned to 8 bytes; each call in flight needs its own. The call
 * writes it from its beginning on; the caller copies it to the host, and reads it with
 * lh_hadamard_cuda_result(). */
struct lh_hadamard_cuda_report {
    uint64_t zeroed_less_one;
    uint64_t non_finite; /* first element, or UINT64_MAX */
    uint64_t too_large;  /* first element of blocks with such a result, or UINT64_MAX */
    uint64_t not_scaled; /* first packet, or UINT64_MAX */
};

/*
 * Encodes `count` elements of `in` into `out`, which is separate memory or the same address. stream: a
 * cudaStream_t, NULL for the default one.
 *
 * -LH_EINVAL: as lh_hadamard_encode(); or a pointer is not aligned to the element's bytes, or `report` to 8
 * bytes. -LH_EDEVICE: CUDA failed; lh_last_error() has CUDA's message. `report` gets the kernels' findings.
 */
LH_API int lh_hadamard_cuda_encode(const struct lh_hadamard *hadamard, const void *in, void *out,
                                   size_t count, struct lh_hadamard_cuda_report *report, void *stream);

/*
 * Decodes `in` into `out`, and overwrites `in`, as lh_hadamard_decode(). arrival: missing data; NULL: none.
 * It and its arrays are in host memory, and are used only during the call.
 *
 * Errors: as lh_hadamard_cuda_encode() and lh_hadamard_decode().
 */
LH_API int lh_hadamard_cuda_decode(const struct lh_hadamard *hadamard,
                                   const struct lh_hadamard_arrival *arrival, void *in, void *out,
                                   size_t count, struct lh_hadamard_cuda_report *report, void *stream);

/*
 * Reads a report that was copied to the host after its call had ended on the device. Returns and sets the
 * same as lh_hadamard_encode() or lh_hadamard_decode(). result: may be NULL.
 *
 * -LH_ERANGE: as lh_hadamard_encode() and lh_hadamard_decode().
 */
LH_API int lh_hadamard_cuda_result(const struct lh_hadamard *hadamard,
                                   const struct lh_hadamard_cuda_report *report,
                                   struct lh_hadamard_result *result);

#ifdef __cplusplus
}
#endif
#endif
