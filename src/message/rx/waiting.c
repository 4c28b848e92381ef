/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/waiting.h"

#include <assert.h>

struct waiting_receive {
    struct rx_receive receive;
    struct waiting_receive *next;
};

bool receive_fits(const struct rx_receive *receive, uint64_t tag)
{
    return ((receive->tag ^ tag) & ~receive->ignore) == 0;
}

bool waiting_hold(struct waiting *waiting, struct store *store)
{
    if (!waiting->spare)
        waiting->spare = store_take(store, sizeof *waiting->spare);
    return waiting->spare != NULL;
}

void waiting_give_back(struct waiting *waiting, struct store *store)
{
    store_give(store, waiting->spare, sizeof *waiting->spare);
    waiting->spare = NULL;
}

void waiting_add(struct waiting *waiting, const struct rx_receive *receive)
{
    struct waiting_receive *added = waiting->spare;
    assert(added);
    waiting->spare = NULL;
    *added = (struct waiting_receive){.receive = *receive};
    *(waiting->first ? waiting->end : &waiting->first) = added;
    waiting->end = &added->next;
    waiting->count++;
}

static void take_out(struct waiting *waiting, struct store *store, struct waiting_receive **link)
{
    struct waiting_receive *taken = *link;
    *link = taken->next;
    if (waiting->end == &taken->next)
        waiting->end = link;
    waiting->count--;
    if (waiting->spare)
        store_give(store, taken, sizeof *taken);
    else
        waiting->spare = taken;
}

bool waiting_take(struct waiting *waiting, struct store *store, uint64_t tag, struct rx_receive *receive)
{
    for (struct waiting_receive **link = &waiting->first; *link; link = &(*link)->next) { /* MESSAGES_MAX */
        if (!receive_fits(&(*link)->receive, tag))
            continue;
        *receive = (*link)->receive;
        take_out(waiting, store, link);
        return true;
    }
    return false;
}

bool waiting_remove(struct waiting *waiting, struct store *store, const struct message_request *request)
{
    for (struct waiting_receive **link = &waiting->first; *link; link = &(*link)->next) /* MESSAGES_MAX */
        if ((*link)->receive.request == request) {
            take_out(waiting, store, link);
            return true;
        }
    return false;
}

bool waiting_pop(struct waiting *waiting, struct store *store, struct rx_receive *receive)
{
    if (!waiting->first)
        return false;
    *receive = waiting->first->receive;
    take_out(waiting, store, &waiting->first);
    return true;
}
