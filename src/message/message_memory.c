/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/message_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sdr/sdr_driver.h"

struct lh_memory {
    struct memory_list *list;
    struct sdr_mr *mr;
    uint32_t lkey;
    uint8_t *address;
    size_t bytes;
    struct lh_memory *next;
    struct lh_memory **link; /* what points to this one */
};

int memory_register(struct memory_list *list, void *address, size_t bytes, struct lh_memory **memory)
{
    struct lh_memory *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory to register %zu bytes", bytes);
    made->mr = sdr_mr_reg(list->context, address, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!made->mr) {
        free(made);
        return lh_fail(LH_ENOMEM, "%zu bytes at %p cannot be registered: %s", bytes, address,
                       lh_last_error());
    }
    sdr_mr_lkey_get(made->mr, &made->lkey);
    made->list = list;
    made->address = address;
    made->bytes = bytes;
    pthread_mutex_lock(list->lock);
    made->link = &list->first;
    made->next = list->first;
    if (made->next)
        made->next->link = &made->next;
    list->first = made;
    pthread_mutex_unlock(list->lock);
    *memory = made;
    return 0;
}

int lh_deregister(struct lh_memory *memory)
{
    if (!memory)
        return 0;
    pthread_mutex_t *lock = memory->list->lock;
    pthread_mutex_lock(lock);
    *memory->link = memory->next;
    if (memory->next)
        memory->next->link = memory->link;
    pthread_mutex_unlock(lock);
    sdr_mr_drop(memory->mr);
    free(memory);
    return 0;
}

void memory_free_all(struct memory_list *list)
{
    struct lh_memory *next;
    for (struct lh_memory *memory = list->first; memory; memory = next) {
        next = memory->next;
        sdr_mr_drop(memory->mr);
        free(memory);
    }
    list->first = NULL;
}

/* ---- of one message ---------------------------------------------------------------------------------- */

#define PACKED_MAX 16384u /* as longhaul/connection.h says */

/* A message in several parts. */
struct message_list {
    struct message_parts parts;
    struct sdr_mr *own[LH_PARTS_MAX]; /* registrations for this message only, or NULL */
    uint8_t packed[];                 /* or it is sent from this copy, with own[0] */
};

/* What is asked for. */
struct wanted {
    const struct memory_list *list;
    const struct lh_message *message;
    uint64_t bytes;
    bool sending;
    bool placed; /* the fabric reads or writes it where it is */
};

static int check_part(const struct lh_message *message, uint32_t index, uint64_t bytes)
{
    const struct lh_part *part = &message->parts[index];
    if (part->bytes > 0 && !part->address)
        return lh_fail(LH_EINVAL, "part %u: %zu bytes without an address", index, part->bytes);
    if (part->bytes > UINT64_MAX - bytes)
        return lh_fail(LH_EINVAL, "part %u: with its %zu bytes the message is longer than 2^64 - 1", index,
                       part->bytes);
    return 0;
}

int message_memory_check(const struct lh_message *message, uint64_t *bytes)
{
    *bytes = 0;
    if (message->count > LH_PARTS_MAX)
        return lh_fail(LH_EINVAL, "message of %u parts: out of range (at most %u)", message->count,
                       LH_PARTS_MAX);
    if (message->count > 0 && !message->parts)
        return lh_fail(LH_EINVAL, "message of %u parts: lh_message.parts is NULL", message->count);
    for (uint32_t i = 0; i < message->count; i++) {
        int error = check_part(message, i, *bytes);
        if (error)
            return error;
        *bytes += message->parts[i].bytes;
    }
    return 0;
}

static int check_given(const struct memory_list *list, const struct lh_part *part)
{
    const struct lh_memory *given = part->memory;
    if (!given)
        return 0;
    uintptr_t offset = (uintptr_t)part->address - (uintptr_t)given->address;
    if (given->list != list)
        return lh_fail(LH_EINVAL,
                       "memory is registered with another engine, or a connection that has its own");
    if (offset > given->bytes || part->bytes > given->bytes - offset)
        return lh_fail(LH_EINVAL, "%zu bytes at %p are not within the %zu registered bytes at %p",
                       part->bytes, part->address, given->bytes, (void *)given->address);
    return 0;
}

/* *own: a registration that is made for it, or NULL. */
static int register_part(const struct wanted *wanted, const struct lh_part *part, struct sdr_mr **own,
                         uint32_t *lkey)
{
    *own = NULL;
    *lkey = part->memory ? part->memory->lkey : 0;
    if (part->memory || !wanted->placed)
        return 0;
    /* Sending only reads; the SDK has one kind of registration. */
    *own = sdr_mr_reg(wanted->list->context, part->address, part->bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!*own)
        return lh_fail(LH_ENOMEM, "%zu bytes at %p cannot be registered: %s", part->bytes, part->address,
                       lh_last_error());
    sdr_mr_lkey_get(*own, lkey);
    return 0;
}

static int register_parts(const struct wanted *wanted, struct message_list *list)
{
    for (uint32_t i = 0; i < wanted->message->count; i++) {
        const struct lh_part *part = &wanted->message->parts[i];
        struct message_part *known = &list->parts.list[list->parts.count];
        if (part->bytes == 0)
            continue;
        *known = (struct message_part){.address = part->address, .bytes = part->bytes};
        int error = register_part(wanted, part, &list->own[list->parts.count], &known->lkey);
        if (error)
            return error;
        list->parts.count++;
    }
    return 0;
}

static int pack(const struct wanted *wanted, struct message_list *list, struct message_buffer *buffer)
{
    struct lh_part packed = {.address = list->packed};
    for (uint32_t i = 0; i < wanted->message->count; i++) {
        const struct lh_part *part = &wanted->message->parts[i];
        if (part->bytes > 0)
            memcpy(list->packed + packed.bytes, part->address, part->bytes);
        packed.bytes += part->bytes;
    }
    buffer->address = list->packed;
    return register_part(wanted, &packed, &list->own[0], &buffer->lkey);
}

static int get_list(const struct wanted *wanted, struct message_buffer *buffer,
                    struct message_memory *memory)
{
    bool packed = wanted->sending && wanted->bytes <= PACKED_MAX;
    struct message_list *list = calloc(1, sizeof *list + (packed ? wanted->bytes : 0));
    if (!list)
        return lh_fail(LH_ENOMEM, "no memory for a message of %u parts", wanted->message->count);
    memory->parts = list;
    if (!packed)
        buffer->parts = &list->parts;
    int error = packed ? pack(wanted, list, buffer) : register_parts(wanted, list);
    if (error)
        message_memory_put(memory);
    return error;
}

int message_memory_get(const struct memory_list *list, const struct lh_message *message, bool sending,
                       uint64_t copied_max, struct message_buffer *buffer, struct message_memory *memory)
{
    const struct lh_part *only = NULL;
    struct wanted wanted = {.list = list, .message = message, .sending = sending};
    *memory = (struct message_memory){0};
    *buffer = (struct message_buffer){0};
    for (uint32_t i = 0; i < message->count; i++) {
        const struct lh_part *part = &message->parts[i];
        int error = part->bytes > 0 ? check_given(list, part) : 0;
        if (error)
            return error;
        if (part->bytes > 0)
            only = wanted.bytes == 0 ? part : NULL;
        wanted.bytes += part->bytes;
    }
    wanted.placed = wanted.bytes > copied_max;
    if (wanted.bytes == 0)
        return 0;
    if (!only)
        return get_list(&wanted, buffer, memory);
    buffer->address = only->address;
    return register_part(&wanted, only, &memory->mr, &buffer->lkey);
}

void message_memory_put(const struct message_memory *memory)
{
    struct message_list *list = memory->parts;
    if (memory->mr)
        sdr_mr_drop(memory->mr);
    for (uint32_t i = 0; list && i < LH_PARTS_MAX; i++)
        if (list->own[i])
            sdr_mr_drop(list->own[i]);
    free(list);
}
