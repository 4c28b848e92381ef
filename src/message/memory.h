/*
 * memory.h - buffers, as the SDR layer knows them: registered by the user, or for one message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_MEMORY_H
#define LH_MESSAGE_MEMORY_H

#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/connection.h>

/* What users registered with an engine; under its lock. */
struct memory_list {
    struct lh_memory *first;
};

/* How a message's buffer is known to the SDR layer. */
struct message_memory {
    struct sdr_mr *own; /* registered for this message only, or NULL */
    uint32_t lkey;
};

/* given: the user's registration, or NULL. -LH_EINVAL, -LH_ENOMEM. */
int message_memory_get(struct lh_connection *c, const void *buffer, uint64_t bytes, struct lh_memory *given,
                       struct message_memory *memory);
/* own: of message_memory_get(), or NULL. */
void message_memory_put(struct sdr_mr *own);
void memory_free_all(struct memory_list *list);

#endif
