/*
 * completion_queue.h - a completion queue: a ring of entries that belongs to an engine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_COMPLETION_QUEUE_H
#define LH_MESSAGE_COMPLETION_QUEUE_H

#include "message/completion_ring.h"

struct lh_completion_queue {
    struct lh_engine *engine;
    struct completion_ring ring;
};

/* Whether requests of the engine's connections may complete into it; NULL: none was given. -LH_EINVAL. */
int completion_queue_check(const struct lh_completion_queue *queue, const struct lh_engine *engine);

#endif
