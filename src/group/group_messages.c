/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_messages.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>

#include "base/error.h"
#include "message/attributes.h"

/* ---- loss ------------------------------------------------------------------------------------------ */

static const struct {
    uint64_t count;
    struct lh_range range;
} everything = {1, {0, UINT64_MAX}};

struct loss *loss_of_all(void)
{
    return (struct loss *)(uintptr_t)&everything;
}

void loss_free(struct loss *loss)
{
    if (loss != loss_of_all())
        free(loss);
}

struct loss *loss_of(struct lh_request *request, const struct lh_result *result)
{
    struct lh_delivery delivery;
    if (result->missing_bytes == 0)
        return NULL;
    if (result->missing_bytes == result->bytes || lh_delivery(request, &delivery) != 0)
        return loss_of_all();
    struct loss *loss = malloc(sizeof *loss + delivery.missing_ranges * sizeof *loss->ranges);
    if (!loss)
        return loss_of_all();
    int64_t got = lh_missing(request, 0, loss->ranges, delivery.missing_ranges);
    loss->count = got > 0 ? (uint64_t)got : 0;
    return loss;
}

bool loss_hits(const struct loss *loss, uint64_t *from, uint64_t offset, uint64_t bytes)
{
    while (loss && *from < loss->count) {
        const struct lh_range *range = &loss->ranges[*from];
        if (range->offset + range->bytes > offset)
            return range->offset < offset + bytes;
        ++*from;
    }
    return false;
}

/* ---- sent ------------------------------------------------------------------------------------------ */

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
    if (sent->capacity <= KEPT_BYTES_MIN || store->count == store->maximum) {
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

/* ---- bounded lane ---------------------------------------------------------------------------------- */

#define DEADLINE "deadline="

/* The text without its deadline. */
static int without_deadline(const char *text, char *out, size_t size)
{
    size_t name = strcspn(text, ":,");
    int used = snprintf(out, size, "%.*s:" DEADLINE "none", (int)name, text);
    text += name;
    while (*text) { /* each turn takes an item */
        size_t bytes = strcspn(++text, ",");
        if (strncmp(text, DEADLINE, sizeof DEADLINE - 1) != 0 && used > 0 && (size_t)used < size)
            used += snprintf(out + used, size - (size_t)used, ",%.*s", (int)bytes, text);
        text += bytes;
    }
    if (used > 0 && (size_t)used < size)
        return 0;
    return lh_fail(LH_EINVAL, "group: reliability \"%.40s…\": too long", text);
}

int bounded_lane_of(const struct lh_attr *attr, lh_time peer_timeout_ns, struct bounded_lane *lane)
{
    struct scheme_choice choice;
    *lane = (struct bounded_lane){.exists = false};
    int error = scheme_choose(attr, &choice);
    if (error || !choice.scheme->deadline || choice.automatic)
        return error;
    if (choice.scheme == attr->scheme)
        return lh_fail(LH_EINVAL, "group: %s: user-defined scheme with a deadline (use bounded)",
                       choice.scheme->name);
    lane->exists = true;
    lane->deadline_ns = choice.scheme->deadline(choice.params);
    if (lane->deadline_ns >= peer_timeout_ns && lane->deadline_ns != LH_DEADLINE_NONE)
        return lh_fail(LH_EINVAL,
                       "group: %s: exceeds the peer timeout (use a deadline below %llu ms, or raise that)",
                       attr->reliability, (unsigned long long)(peer_timeout_ns / LH_NS_PER_MS));
    return without_deadline(attr->reliability, lane->reliability, sizeof lane->reliability);
}
