/*
 * sdr_mr.h - memory of the SDR SDK: registered before it is sent from or received into.
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

/* NULL on failure. The memory must outlive the registration. */
SDR_API struct sdr_mr *sdr_mr_reg(struct sdr_context *context, void *addr, size_t length,
                                  enum sdr_access_flags flags);
/* SDR_ERROR, and the memory stays registered, while a receive that is not completed or a send that is not
 * injected uses it. NULL: SDR_SUCCESS, nothing happens. */
SDR_API int sdr_mr_dereg(struct sdr_mr *mr);
SDR_API int sdr_mr_lkey_get(struct sdr_mr *mr, uint32_t *lkey);
SDR_API int sdr_mr_rkey_get(struct sdr_mr *mr, uint32_t *rkey);

#ifdef __cplusplus
}
#endif
#endif
