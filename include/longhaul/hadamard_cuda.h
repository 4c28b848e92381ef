/*
 * hadamard_cuda.h - the Hadamard transform of longhaul/hadamard.h on GPUs: the same packets, signs, tail and
 * errors, of tensors in device memory. In a library of its own, liblonghaul-cuda, built where nvcc is.
 *
 * A call puts kernels on the caller's stream and returns; memory and `report` stay in use until the stream
 * has passed them. Nothing is allocated, nothing waits, and a call may be captured in a graph. It runs on the
 * current device; the pointers are of its memory, at any multiple of the element's bytes, 16 being the
 * fastest. lh_hadamard's `encoder` is not used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_HADAMARD_CUDA_H
#define LONGHAUL_HADAMARD_CUDA_H

#include <longhaul/hadamard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the kernels found, in the device's memory, at a multiple of 8 bytes: one for each call in flight.
 * Written from the beginning of the call on; the caller copies it to the host and reads it with
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
 * -LH_EINVAL: as of lh_hadamard_encode(); a pointer is not a multiple of the element's bytes, `report` not
 * one of 8 bytes. -LH_EDEVICE: CUDA failed, lh_last_error() has its words. What the kernels find is in
 * `report`.
 */
LH_API int lh_hadamard_cuda_encode(const struct lh_hadamard *hadamard, const void *in, void *out,
                                   size_t count, struct lh_hadamard_cuda_report *report, void *stream);

/*
 * Decodes `in`, which is used up as by lh_hadamard_decode(). arrival: NULL, or what is missing; it and its
 * arrays are in host memory and free once the call returns.
 *
 * Errors as above, and as of lh_hadamard_decode().
 */
LH_API int lh_hadamard_cuda_decode(const struct lh_hadamard *hadamard,
                                   const struct lh_hadamard_arrival *arrival, void *in, void *out,
                                   size_t count, struct lh_hadamard_cuda_report *report, void *stream);

/*
 * Reads a report that was copied to the host after its call had ended on the device: returns and sets what
 * lh_hadamard_encode() or lh_hadamard_decode() would have. result may be NULL.
 *
 * -LH_ERANGE: as of these.
 */
LH_API int lh_hadamard_cuda_result(const struct lh_hadamard *hadamard,
                                   const struct lh_hadamard_cuda_report *report,
                                   struct lh_hadamard_result *result);

#ifdef __cplusplus
}
#endif
#endif
