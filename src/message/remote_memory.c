/*
 * remote_memory.c - the calls of longhaul/onesided.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include <longhaul/onesided.h>

#include "base/bytes.h"
#include "base/error.h"
#include "message/connection_state.h"
#include "message/requests.h"
#include "sdr/sdr_driver.h"

#define BYTES_MAX TRANSFER_ROOM_MAX

typedef unsigned long long wide; /* for %llu */

static_assert(REGIONS_MAX == LH_REGIONS_MAX, "as in longhaul/onesided.h");

/* ---- sub-connection -------------------------------------------------------------------------------- */

static void lock(struct lh_connection *c)
{
    pthread_mutex_lock(&c->requests->lock);
}

static void unlock(struct lh_connection *c)
{
    pthread_mutex_unlock(&c->requests->lock);
}

/* Under the lock. */
static int check_parent(const struct lh_connection *c)
{
    int error = connection_check(c);
    if (!error && (c->peer_flags & (BLOB_ONESIDED | BLOB_EAGER)) != (BLOB_ONESIDED | BLOB_EAGER))
        error = lh_fail(LH_EVERSION, "one-sided operations: unsupported by the peer's release (update it)");
    return error;
}

/* Under the lock. The peer was told that its blob is here, and sends no other. */
static void attach_to_kept(struct lh_connection *c)
{
    struct lh_connection *sub = c->onesided_parent.sub;
    int error = onesided_attach(c, c->onesided_parent.peer_blob, c->onesided_parent.peer_blob_bytes);
    if (!error)
        return;
    lock(sub);
    connection_fail(sub, (enum lh_error) - error, lh_last_error());
    unlock(sub);
}

/* Under the lock; a sub-connection that was just opened. */
static void install(struct lh_connection *c, struct lh_connection *sub)
{
    struct onesided_parent *parent = &c->onesided_parent;
    lh_prng_seed(&sub->onesided->keys, sdr_qp_secret(sub->qp));
    parent->sub = sub;
    exchange_open(&parent->exchange, lh_sdr_now(c->context));
    if (parent->peer_blob)
        attach_to_kept(c);
    c->needs_step = true;
}

/* Opens it when it is needed first. Takes no lock: two threads may both open one, and one stays. */
static int open_sub(struct lh_connection *c, struct lh_connection **sub)
{
    int error = connection_open_sub(c, sub);
    if (error)
        return error;
    struct lh_connection *mine = *sub, *unused = NULL;
    lock(c);
    error = connection_check(c);
    if (error || c->onesided_parent.sub)
        unused = mine;
    else
        install(c, mine);
    *sub = c->onesided_parent.sub;
    unlock(c);
    lh_close(unused);
    sdr_qp_driver_kick(c->qp);
    return error;
}

static int get_sub(struct lh_connection *c, struct lh_connection **sub)
{
    int error = engine_check_process(c->engine);
    if (error)
        return error;
    lock(c);
    error = check_parent(c);
    *sub = c->onesided_parent.sub;
    unlock(c);
    return error || *sub ? error : open_sub(c, sub);
}

static int check_sub(const struct lh_connection *sub)
{
    if (sub->error)
        return lh_fail((enum lh_error) - sub->error, "one-sided operations have ended: %s",
                       effects_reason(&sub->effects));
    return 0;
}

/* ---- regions ----------------------------------------------------------------------------------------- */

static int check_exposed(const struct lh_connection *c, const struct lh_part *part, uint32_t access,
                         const struct lh_completion_queue *queue)
{
    if (access == 0 || (access & ~(uint32_t)(LH_ACCESS_WRITE | LH_ACCESS_READ)) != 0)
        return lh_fail(LH_EINVAL, "access 0x%x: invalid (use LH_ACCESS_WRITE, LH_ACCESS_READ or both)",
                       access);
    if (part->bytes == 0 || part->bytes > BYTES_MAX || !part->address)
        return lh_fail(LH_EINVAL, "region of %zu bytes at %p: out of range (1 to 2^48 - 1 bytes)",
                       part->bytes, part->address);
    return queue ? completion_queue_check(queue, c->engine) : 0;
}

/* Under the lock of the sub-connection. */
static int add_region(struct lh_connection *c, const struct lh_part *part, struct lh_region *region)
{
    struct onesided *o = c->onesided;
    const struct lh_message memory = {.parts = part, .count = 1};
    int error = check_sub(c);
    if (error)
        return error;
    if (!o->regions)
        o->regions = store_take(c->tx.store, sizeof *o->regions);
    if (!o->regions)
        return -LH_ENOMEM;
    if (o->regions->count == REGIONS_MAX)
        return lh_fail(LH_EAGAIN, "%u regions are exposed on this connection: revoke one", REGIONS_MAX);
    error = message_memory_get(&c->engine->memories, &memory, false, small_messages_max(&c->small),
                               &region->buffer, &region->memory);
    if (!error && region->queue)
        error = completion_ring_hold(&region->queue->ring);
    if (error) {
        message_memory_put(&region->memory);
        return error;
    }
    regions_add(o->regions, &region->part, lh_prng_next(&o->keys));
    return 0;
}

int lh_expose(struct lh_connection *connection, const struct lh_part *part, uint32_t access,
              struct lh_completion_queue *queue, uint64_t user, struct lh_region **region)
{
    struct lh_connection *sub;
    int error = check_exposed(connection, part, access, queue);
    if (!error)
        error = get_sub(connection, &sub);
    if (error)
        return error;
    struct lh_region *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory for a region");
    *made = (struct lh_region){
        .part = {.bytes = part->bytes, .access = access}, .sub = sub, .queue = queue, .user = user};
    lock(sub);
    error = add_region(sub, part, made);
    unlock(sub);
    if (error) {
        free(made);
        return error;
    }
    *region = made;
    return 0;
}

void lh_revoke(struct lh_region *region)
{
    if (!region || engine_is_inherited(region->sub->engine))
        return;
    struct lh_connection *c = region->sub;
    lock(c);
    regions_remove(c->onesided->regions, &region->part);
    onesided_end_region(c, region, lh_sdr_now(c->context));
    unlock(c);
    sdr_qp_driver_kick(c->qp);
    region_free(region);
}

/* ---- keys: key 8 | access 2 | bytes 6 ---------------------------------------------------------------- */

void lh_region_key(const struct lh_region *region, struct lh_key *key)
{
    lh_put_be64(key->bytes, region->part.key);
    lh_put_be16(key->bytes + 8, (uint16_t)region->part.access);
    lh_put_be16(key->bytes + 10, (uint16_t)(region->part.bytes >> 32));
    lh_put_be32(key->bytes + 12, (uint32_t)region->part.bytes);
}

/* What the key says itself; the peer checks what it has. */
static int check_key(const struct lh_onesided *wanted, uint32_t access, uint64_t bytes)
{
    const uint8_t *key = wanted->key.bytes;
    const struct region region = {
        .access = lh_get_be16(key + 8),
        .bytes = (uint64_t)lh_get_be16(key + 10) << 32 | lh_get_be32(key + 12),
    };
    switch (region_check(&region, access, wanted->offset, bytes)) {
    case 0:
        return 0;
    case LH_ERANGE:
        return lh_fail(LH_ERANGE, "%llu bytes at offset %llu: the peer's region has %llu bytes",
                       (wide)bytes, (wide)wanted->offset, (wide)region.bytes);
    default:
        return lh_fail(LH_EKEY, "key does not permit to %s: the peer exposes the region with LH_ACCESS_%s",
                       access == LH_ACCESS_WRITE ? "write" : "read",
                       access == LH_ACCESS_WRITE ? "WRITE" : "READ");
    }
}

/* ---- operations -------------------------------------------------------------------------------------- */

/* Under the lock of the sub-connection. */
static int check_operation(struct lh_connection *c, const struct lh_onesided *wanted,
                           const struct lh_message *message, bool writes, uint64_t *bytes)
{
    int error = check_sub(c);
    if (!error)
        error = message_memory_check(message, bytes);
    if (!error)
        error = check_key(wanted, writes ? LH_ACCESS_WRITE : LH_ACCESS_READ, *bytes);
    if (!error && !writes && wanted->notify)
        error = lh_fail(LH_EINVAL, "read with a notification: unsupported (only lh_write() notifies)");
    return error;
}

static int take_request(struct lh_connection *c, const struct request_target *target, bool writes,
                        const struct message_memory *memory, lh_time now, struct lh_request **request,
                        struct onesided_operation **operation)
{
    *operation = onesided_new(c->onesided);
    if (!*operation)
        return -LH_ENOMEM;
    int error = request_take(c->requests, target, writes, 0, memory, now, request);
    if (error)
        onesided_discard(c->onesided, *operation);
    return error;
}

static int start_locked(struct lh_connection *c, const struct lh_onesided *wanted, bool writes,
                        const struct request_target *target, struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    const struct lh_message message = {.parts = wanted->parts, .count = wanted->count};
    struct onesided_wanted operation = {
        .header = {.kind = writes ? ONESIDED_WRITE : ONESIDED_READ,
                   .notify = wanted->notify,
                   .key = lh_get_be64(wanted->key.bytes),
                   .offset = wanted->offset,
                   .immediate = wanted->notify ? wanted->immediate : 0},
    };
    struct message_memory memory;
    struct onesided_operation *waiting;
    struct lh_request *request;
    int error = check_operation(c, wanted, &message, writes, &operation.header.bytes);
    if (!error)
        error = message_memory_get(&c->engine->memories, &message, writes, small_messages_max(&c->small),
                                   &operation.buffer, &memory);
    if (error)
        return error;
    error = take_request(c, target, writes, &memory, now, &request, &waiting);
    if (error) {
        message_memory_put(&memory);
        return error;
    }
    if (out) /* its entry in a completion queue may be there before this call returns */
        *out = request;
    onesided_start(c, waiting, request, &operation, now);
    return 0;
}

/* The peer's blob is awaited. */
static void ask(struct lh_connection *c)
{
    struct exchange *exchange = &c->onesided_parent.exchange;
    lock(c);
    if (!exchange->has_peer)
        exchange_ask(exchange, lh_sdr_now(c->context));
    c->needs_step = true;
    unlock(c);
    sdr_qp_driver_kick(c->qp);
}

static int start(struct lh_connection *connection, const struct lh_onesided *wanted, bool writes,
                 struct lh_request **request)
{
    const struct request_target target = {
        .queue = wanted->queue,
        .user = wanted->user,
        .detached = !request,
        .operation = writes ? LH_OPERATION_WRITE : LH_OPERATION_READ,
    };
    struct lh_connection *sub;
    int error = request_target_check(&target, connection->engine);
    if (!error)
        error = get_sub(connection, &sub);
    if (error)
        return error;
    lock(sub);
    error = start_locked(sub, wanted, writes, &target, request);
    bool attached = sub->attached;
    unlock(sub);
    if (error)
        return error;
    if (attached)
        sdr_qp_driver_kick(sub->qp);
    else
        ask(connection);
    return 0;
}

int lh_write(struct lh_connection *connection, const struct lh_onesided *write, struct lh_request **request)
{
    return start(connection, write, true, request);
}

int lh_read(struct lh_connection *connection, const struct lh_onesided *read, struct lh_request **request)
{
    return start(connection, read, false, request);
}
