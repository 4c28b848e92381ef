/*
 * storage.h - the memory of a connection's parts, taken at once when it is opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_STORAGE_H
#define LH_MESSAGE_STORAGE_H

#include "message/rx/receiver.h"
#include "message/tx/sender.h"

struct storage {
    struct sender_memory tx;
    struct receiver_memory rx;
};

/* -LH_ENOMEM; storage_free() in any case. */
int storage_take(struct storage *storage, const struct lh_attr *attr, const struct scheme_choice *choice);
void storage_free(struct storage *storage);

#endif
