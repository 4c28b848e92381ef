/*
 * binder.h - binds memory windows of type 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_BINDER_H
#define LH_FABRIC_VERBS_BINDER_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_binder_open(struct verbs_endpoint *endpoint);
void verbs_binder_close(struct verbs_binder *binder);
/* Binds the window to that memory, or to nothing when bytes is 0; it holds when this returns. -LH_EDEVICE
 */
int verbs_binder_bind(struct verbs_binder *binder, struct ibv_mw *window, struct ibv_mr *mr,
                      uint64_t address, uint64_t bytes);
/* Until that request is done, passing over others, which were given up earlier and may still complete; `what`
 * is it, for the error: "bind a memory window". */
int verbs_binder_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what);

#endif
