/*
 * kernels.h - what is put on a stream: the transform, and the passes over memory that some shapes need before
 * or after it.
 *
 * Each returns a CUDA error, 0 when it was put on the stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_CUDA_KERNELS_H
#define LH_CODING_HADAMARD_CUDA_KERNELS_H

#include <longhaul/hadamard_cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the transform. Longer blocks of F32 are combined of parts. */
#define CUDA_BLOCK_LOG_MAX 11u
/* Of a pass that combines. */
#define CUDA_COMBINE_LOG_MAX 5u
/* What a kernel's arguments have space for. */
#define CUDA_CORRECTIONS_MAX 160u
#define CUDA_NOWHERE         UINT64_MAX

/* What all kernels of a call share. */
struct cuda_call {
    enum lh_hadamard_type type;
    bool zero;   /* elements that are not finite count as 0 */
    bool look;   /* for such, where a result is not finite; else nobody has to */
    bool cancel; /* do nothing when the report already has one */
    uint64_t seed;
    struct lh_hadamard_cuda_report *report;
    void *stream;
};

/* Tiles of one shape, as a region; with S = 1 the blocks of a region by themselves. */
struct cuda_tiles {
    const void *in; /* of the tensor; may be `out` where a tile fits a group, or S = 1 */
    void *out;
    uint64_t first; /* element */
    uint64_t elements;
    uint32_t block_log;
    uint32_t stride_log;
    float scale;
    bool decode;
};

/* Elements from … from + count - 1 are multiplied. */
struct cuda_correction {
    uint64_t from;
    uint64_t count;
    float factor;
};

/* log2 of the elements of a group, which is what a thread block has in its memory, of tiles with a stride. */
uint32_t cuda_group_log(enum lh_hadamard_type type, const struct cuda_tiles *tiles);
/* For benchmarks: another size, 0 for the usual one. */
void cuda_group_log_use(uint32_t group_log);

int cuda_transform(const struct cuda_call *call, const struct cuda_tiles *tiles);
/* Looks for elements that are not finite, or zeroes and counts them. */
int cuda_check(const struct cuda_call *call, void *data, uint64_t count);
/* Multiplies; what is not finite then becomes 0, and its packet (of 2^block_log elements) is reported. */
int cuda_correct(const struct cuda_call *call, void *data, const struct cuda_correction *corrections,
                 uint32_t count, uint32_t block_log);
/* Transforms vectors of 2^distance_log floats, 2^bits of them, all over `elements` from `first` on. */
int cuda_combine(const struct cuda_call *call, float *data, uint64_t first, uint64_t elements,
                 uint32_t distance_log, uint32_t bits, float scale);
/* Exchanges rows and columns of the runs of each tile. */
int cuda_exchange(const struct cuda_call *call, void *data, uint64_t first, uint64_t elements,
                  uint32_t block_log, uint32_t stride_log);
/* Sets a report to nothing found. */
int cuda_reset(const struct cuda_call *call);
const char *cuda_error_text(int error);

#ifdef __cplusplus
}
#endif
#endif
