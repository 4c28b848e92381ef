/*
 * running.h - the times of Longhaul's own machines, where they are not the paper's (docs/model.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_RUNNING_H
#define LH_MODEL_RUNNING_H

#include "model/terms.h"

/* Of a path that lh_connection_path() has not measured: base/rtt.h begins with these. */
#define MODEL_WINDOW_RTTS  0.125
#define MODEL_OVERDUE_RTTS 1.125
/* What connection/injector.c puts into the send queue ahead of the wire. */
#define MODEL_QUEUE_BYTES  ((uint64_t)512 << 10)
#define MODEL_QUEUE_CHUNKS 2u

/* Fills in rto_s, first_s, repairs_s, window_s and longhaul. All else of the terms is there. */
void model_running_terms(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                         struct model_terms *terms);

#endif
