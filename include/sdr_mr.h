/*
 * sdr_mr.h - memory registration of the SDR SDK, required for the buffers of sends and receives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SDR_MR_H
#define SDR_MR_H

#include <sdr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sdr_access_flags {
    SDR_ACCESS_REMOTE_WRITE = 0,
};

struct sdr_mr;

/* Registers memory. The memory must outlive the registration. NULL on failure. */
SDR_API struct sdr_mr *sdr_mr_reg(struct sdr_context *context, void *addr, size_t length,
                                  enum sdr_access_flags flags);
/* Ends a registration. SDR_ERROR, without effect, while an uncompleted receive or a send in progress uses it.
 * NULL: SDR_SUCCESS, without effect. */
SDR_API int sdr_mr_dereg(struct sdr_mr *mr);
SDR_API int sdr_mr_lkey_get(struct sdr_mr *mr, uint32_t *lkey);
SDR_API int sdr_mr_rkey_get(struct sdr_mr *mr, uint32_t *rkey);

#ifdef __cplusplus
}
#endif
#endif
