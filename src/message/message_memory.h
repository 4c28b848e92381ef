/*
 * message_memory.h - buffers, as the SDR layer knows them: registered by the user, or for one message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_MESSAGE_MEMORY_H
#define LH_MESSAGE_MESSAGE_MEMORY_H

#include <pthread.h>
#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/connection.h>

#include "message/receive_buffer.h"

/* What users registered with an engine. */
struct memory_list {
    struct sdr_context *context; /* the engine's, as the next */
    pthread_mutex_t *lock;       /* of the list */
    struct lh_memory *first;
};

/* As lh_register(). -LH_ENOMEM. */
int memory_register(struct memory_list *list, void *address, size_t bytes, struct lh_memory **memory);

/* What is held for a message until it is done. */
struct message_memory {
    struct sdr_mr *mr;          /* registration of its one part for this message only, or NULL */
    struct message_list *parts; /* several; or NULL */
};

/* Whether the parts are possible; *bytes: in all of them. -LH_EINVAL. */
int message_memory_check(const struct lh_message *message, uint64_t *bytes);
/* Of parts that were checked. copied_max: a message of at most that many bytes is copied into carriers, and
 * needs no registration. -LH_EINVAL: what was registered does not cover them; -LH_ENOMEM. */
int message_memory_get(const struct memory_list *list, const struct lh_message *message, bool sending,
                       uint64_t copied_max, struct message_buffer *buffer, struct message_memory *memory);
void message_memory_put(const struct message_memory *memory);
void memory_free_all(struct memory_list *list);

#endif
