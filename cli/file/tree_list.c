/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <longhaul/error.h>
#include <longhaul/types.h>

#include "cli/file/tree_changes.h"
#include "cli/file/tree_records.h"

int cli_tree_list_open(struct cli_tree_list *list)
{
    pthread_condattr_t attributes;
    *list = (struct cli_tree_list){.entries = calloc(CLI_TREE_ENTRIES_MAX, sizeof *list->entries)};
    if (!list->entries)
        return -LH_ENOMEM;
    pthread_mutex_init(&list->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&list->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return 0;
}

static struct cli_tree_entry **place(struct cli_tree_list *list, uint64_t number)
{
    return &list->entries[number % CLI_TREE_ENTRIES_MAX];
}

void cli_tree_entry_free(struct cli_tree_entry *entry)
{
    free(entry->changes);
    free(entry);
}

void cli_tree_list_close(struct cli_tree_list *list)
{
    if (!list->entries)
        return;
    for (uint64_t i = list->taken; i < list->added; i++)
        cli_tree_entry_free(*place(list, i));
    free(list->entries);
    list->entries = NULL;
    pthread_cond_destroy(&list->changed);
    pthread_mutex_destroy(&list->lock);
}

static void unlock_changed(struct cli_tree_list *list)
{
    pthread_cond_broadcast(&list->changed);
    pthread_mutex_unlock(&list->lock);
}

void cli_tree_list_stop(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    list->stopped = true;
    unlock_changed(list);
}

uint64_t cli_tree_list_largest(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    uint64_t largest = list->largest_bytes;
    pthread_mutex_unlock(&list->lock);
    return largest;
}

/* ---- walker ---------------------------------------------------------------------------------------- */

static bool is_full(const struct cli_tree_list *list)
{
    return list->added - list->taken == CLI_TREE_ENTRIES_MAX || list->bytes >= CLI_TREE_LIST_BYTES_MAX;
}

bool cli_tree_list_full(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    bool full = is_full(list);
    pthread_mutex_unlock(&list->lock);
    return full;
}

static size_t size_of(const struct cli_tree_entry *entry)
{
    return sizeof *entry + entry->path_bytes + entry->rest_bytes + 2;
}

static struct cli_tree_entry *copy(const struct cli_tree_record *record, unsigned operand)
{
    struct cli_tree_entry *entry = malloc(sizeof *entry + record->path_bytes + record->rest_bytes + 2);
    if (!entry)
        return NULL;
    *entry = (struct cli_tree_entry){
        .kind = record->kind,
        .operand = operand,
        .attributes = record->attributes,
        .size_bytes = record->size_bytes,
        .path = entry->text,
        .path_bytes = record->path_bytes,
        .rest = entry->text + record->path_bytes + 1,
        .rest_bytes = record->rest_bytes,
    };
    memcpy(entry->text, record->path, record->path_bytes);
    entry->text[record->path_bytes] = 0;
    if (record->rest_bytes)
        memcpy(entry->text + record->path_bytes + 1, record->rest, record->rest_bytes);
    entry->text[record->path_bytes + 1 + record->rest_bytes] = 0;
    return entry;
}

bool cli_tree_list_add(struct cli_tree_list *list, const struct cli_tree_record *record, unsigned operand)
{
    struct cli_tree_entry *entry = copy(record, operand);
    if (!entry)
        return false;
    pthread_mutex_lock(&list->lock);
    while (is_full(list) && !list->stopped)
        pthread_cond_wait(&list->changed, &list->lock);
    bool added = !list->stopped;
    if (added) {
        *place(list, list->added++) = entry;
        list->bytes += size_of(entry);
        if (entry->size_bytes > list->largest_bytes)
            list->largest_bytes = entry->size_bytes;
    }
    pthread_mutex_unlock(&list->lock);
    if (!added)
        free(entry);
    return added;
}

void cli_tree_list_announce(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    list->announced = list->added;
    unlock_changed(list);
}

void cli_tree_list_end(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    list->announced = list->added;
    list->whole = true;
    unlock_changed(list);
}

/* ---- decisions ------------------------------------------------------------------------------------- */

/* Without memory for them all of the file is sent. */
static void keep_changes(struct cli_tree_list *list, struct cli_tree_entry *entry,
                         const struct cli_tree_record *answer)
{
    if (answer->rest_bytes > CLI_TREE_LIST_CHANGES_MAX - list->changes_bytes)
        return;
    entry->changes = malloc(answer->rest_bytes);
    if (!entry->changes)
        return;
    memcpy(entry->changes, answer->rest, answer->rest_bytes);
    entry->changes_bytes = answer->rest_bytes;
    list->changes_bytes += answer->rest_bytes;
}

static void set_decision(struct cli_tree_list *list, struct cli_tree_entry *entry,
                         const struct cli_tree_record *answer)
{
    switch ((int)answer->kind) {
    case CLI_TREE_REFUSED:
        entry->state = CLI_TREE_DENIED;
        break;
    case CLI_TREE_CHANGES:
        keep_changes(list, entry, answer);
        __attribute__((fallthrough));
    case CLI_TREE_RESUME:
        entry->state = CLI_TREE_WANTED;
        entry->resume_bytes = answer->number;
        memcpy(entry->digest, answer->digest, sizeof entry->digest);
        break;
    default:
        entry->state = answer->number == CLI_TREE_SEND ? CLI_TREE_WANTED : CLI_TREE_SKIPPED;
    }
}

bool cli_tree_list_decide(struct cli_tree_list *list, const struct cli_tree_record *answer, char *path,
                          uint64_t *size_bytes)
{
    pthread_mutex_lock(&list->lock);
    while (list->decided < list->added && (*place(list, list->decided))->kind != CLI_TREE_LISTED)
        list->decided++;
    struct cli_tree_entry *entry = list->decided < list->added ? *place(list, list->decided) : NULL;
    bool found = entry && (answer->kind != CLI_TREE_CHANGES ||
                           cli_tree_changes_right(answer->rest_bytes, entry->size_bytes));
    if (found) {
        list->decided++;
        set_decision(list, entry, answer);
        *size_bytes = entry->size_bytes;
        if (entry->state == CLI_TREE_DENIED)
            memcpy(path, entry->path, entry->path_bytes + 1);
    }
    unlock_changed(list);
    return found;
}

/* ---- sender ---------------------------------------------------------------------------------------- */

static bool is_ready(const struct cli_tree_list *list, const struct cli_tree_entry *next)
{
    return list->taken < list->announced &&
           (next->kind != CLI_TREE_LISTED || next->state != CLI_TREE_UNDECIDED);
}

bool cli_tree_list_awaits(struct cli_tree_list *list)
{
    pthread_mutex_lock(&list->lock);
    bool awaits = list->taken < list->announced && !is_ready(list, *place(list, list->taken));
    pthread_mutex_unlock(&list->lock);
    return awaits;
}

static bool at_end(const struct cli_tree_list *list)
{
    return list->stopped || (list->whole && list->taken == list->added);
}

/* Until that time of CLOCK_MONOTONIC. False: it has passed. */
static bool wait_until(struct cli_tree_list *list, const struct timespec *until)
{
    return pthread_cond_timedwait(&list->changed, &list->lock, until) != ETIMEDOUT;
}

enum cli_tree_next cli_tree_list_take(struct cli_tree_list *list, lh_time timeout_ns,
                                      struct cli_tree_entry **entry)
{
    struct timespec until;
    enum cli_tree_next next = CLI_TREE_NONE_YET;
    clock_gettime(CLOCK_MONOTONIC, &until);
    lh_time end = (lh_time)until.tv_sec * LH_NS_PER_S + (lh_time)until.tv_nsec + timeout_ns;
    until = (struct timespec){.tv_sec = (time_t)(end / LH_NS_PER_S), .tv_nsec = (long)(end % LH_NS_PER_S)};
    pthread_mutex_lock(&list->lock);
    while (!at_end(list) && !is_ready(list, *place(list, list->taken)))
        if (!timeout_ns || !wait_until(list, &until))
            break;
    if (at_end(list)) {
        next = CLI_TREE_NO_MORE;
    } else if (is_ready(list, *place(list, list->taken))) {
        *entry = *place(list, list->taken++);
        list->bytes -= size_of(*entry);
        list->changes_bytes -= (*entry)->changes_bytes;
        /* Entries that need no decision may be taken before the decisions have come that far. */
        if (list->decided < list->taken)
            list->decided = list->taken;
        next = CLI_TREE_NEXT;
    }
    unlock_changed(list);
    return next;
}
