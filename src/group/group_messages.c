/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/sent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Memory for less comes from the heap as it is. */
#define KEPT_BYTES_MIN 16384u

/* ---- memory ------------------------------------------------------------------------------------------ */

struct sent *sent_take(struct sent_store *store, size_t bytes)
{
    bool kept = bytes > KEPT_BYTES_MIN;
    size_t capacity = kept ? store->block_bytes : bytes;
    struct sent *sent = kept ? store->spare : NULL;
    assert(!kept || bytes <= store->block_bytes);
    if (sent) {
        store->spare = sent->next;
        store->count--;
    } else {
        sent = malloc(sizeof *sent + capacity);
    }
    if (sent)
        *sent = (struct sent){.capacity = capacity};
    return sent;
}

void sent_give(struct sent_store *store, struct sent *sent)
{
    if (sent->capacity <= KEPT_BYTES_MIN || store->count == store->most) {
        free(sent);
        return;
    }
    sent->next = store->spare;
    store->spare = sent;
    store->count++;
}

void sent_store_end(struct sent_store *store)
{
    while (store->spare) {
        struct sent *sent = store->spare;
        store->spare = sent->next;
        free(sent);
    }
    store->count = 0;
}

/* ---- lists ------------------------------------------------------------------------------------------- */

void sent_add(struct sent_list *list, struct sent *sent)
{
    sent->owner = list;
    sent->previous = NULL;
    sent->next = list->first;
    if (list->first)
        list->first->previous = sent;
    list->first = sent;
    list->count++;
}

void sent_remove(struct sent *sent)
{
    struct sent_list *list = sent->owner;
    if (sent->previous)
        sent->previous->next = sent->next;
    else
        list->first = sent->next;
    if (sent->next)
        sent->next->previous = sent->previous;
    list->count--;
    sent->owner = NULL;
}

void sent_cancel(struct sent_list *list)
{
    while (list->first) {
        struct sent *sent = list->first;
        lh_cancel(sent->request);
        sent_remove(sent);
    }
}
