/*
 * waiting.h - receives that choose their message by its tag and have none yet, in the order in which they
 * were posted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_WAITING_H
#define LH_MESSAGE_RX_WAITING_H

#include "message/buffer/buffer.h"
#include "message/control/effects.h"
#include "store/store.h"

/* What a receive takes. */
struct rx_receive {
    struct message_request *request;
    struct message_buffer buffer;
    uint64_t capacity;
    uint64_t tag;
    uint64_t ignore; /* bits of the tag that need not agree */
};

struct waiting_receive;

struct waiting {
    struct waiting_receive *first;
    struct waiting_receive **end;  /* where the next one is hung; NULL: at first */
    struct waiting_receive *spare; /* for the next one; or NULL */
    uint32_t count;
};

bool receive_fits(const struct rx_receive *receive, uint64_t tag);

/* Memory for one more. False: there is none. */
bool waiting_hold(struct waiting *waiting, struct store *store);
/* Gives that memory back. */
void waiting_give_back(struct waiting *waiting, struct store *store);

/* Memory is held. */
void waiting_add(struct waiting *waiting, const struct rx_receive *receive);
/* Takes the first out that a message of this tag fits. False: there is none. */
bool waiting_take(struct waiting *waiting, struct store *store, uint64_t tag, struct rx_receive *receive);
/* Takes this one out. False: it does not wait. */
bool waiting_remove(struct waiting *waiting, struct store *store, const struct message_request *request);
/* Takes the first out. False: none waits. */
bool waiting_pop(struct waiting *waiting, struct store *store, struct rx_receive *receive);

#endif
