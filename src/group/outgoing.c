/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/outgoing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Memory for less comes from the heap as it is. */
#define KEPT_BYTES_MIN 16384u

/* ---- memory ------------------------------------------------------------------------------------------ */

struct outgoing *outgoing_take(struct outgoing_store *store, size_t bytes)
{
    bool kept = bytes > KEPT_BYTES_MIN;
    size_t capacity = kept ? store->block_bytes : bytes;
    struct outgoing *outgoing = kept ? store->spare : NULL;
    assert(!kept || bytes <= store->block_bytes);
    if (outgoing) {
        store->spare = outgoing->next;
        store->count--;
    } else {
        outgoing = malloc(sizeof *outgoing + capacity);
    }
    if (outgoing)
        *outgoing = (struct outgoing){.capacity = capacity};
    return outgoing;
}

void outgoing_give(struct outgoing_store *store, struct outgoing *outgoing)
{
    if (outgoing->capacity <= KEPT_BYTES_MIN || store->count == store->most) {
        free(outgoing);
        return;
    }
    outgoing->next = store->spare;
    store->spare = outgoing;
    store->count++;
}

void outgoing_store_end(struct outgoing_store *store)
{
    while (store->spare) {
        struct outgoing *outgoing = store->spare;
        store->spare = outgoing->next;
        free(outgoing);
    }
    store->count = 0;
}

/* ---- lists ------------------------------------------------------------------------------------------- */

void outgoing_add(struct outgoing_list *list, struct outgoing *outgoing)
{
    outgoing->owner = list;
    outgoing->previous = NULL;
    outgoing->next = list->first;
    if (list->first)
        list->first->previous = outgoing;
    list->first = outgoing;
    list->count++;
}

void outgoing_remove(struct outgoing *outgoing)
{
    struct outgoing_list *list = outgoing->owner;
    if (outgoing->previous)
        outgoing->previous->next = outgoing->next;
    else
        list->first = outgoing->next;
    if (outgoing->next)
        outgoing->next->previous = outgoing->previous;
    list->count--;
    outgoing->owner = NULL;
}

void outgoing_cancel(struct outgoing_list *list)
{
    while (list->first) {
        struct outgoing *outgoing = list->first;
        lh_cancel(outgoing->request);
        outgoing_remove(outgoing);
    }
}
