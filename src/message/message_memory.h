/*
 * message_memory.h - buffers, as the SDR layer knows them: registered by the user, or for one message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_MESSAGE_MEMORY_H
#define LH_MESSAGE_MESSAGE_MEMORY_H

#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/connection.h>

#include "message/receive_buffer.h"

/* What users registered with an engine; under its lock. */
struct memory_list {
    struct lh_memory *first;
};

/* What is held for a message until it is done. */
struct message_memory {
    struct sdr_mr *mr;          /* registration of its one part for this message only, or NULL */
    struct message_list *parts; /* several; or NULL */
};

/* Whether the parts are possible; *bytes: in all of them. -LH_EINVAL. */
int message_memory_check(const struct lh_message *message, uint64_t *bytes);
/* Of parts that were checked. -LH_EINVAL: what was registered does not cover them; -LH_ENOMEM. */
int message_memory_get(struct lh_connection *c, const struct lh_message *message, bool sending,
                       struct message_buffer *buffer, struct message_memory *memory);
void message_memory_put(const struct message_memory *memory);
void memory_free_all(struct memory_list *list);

#endif
