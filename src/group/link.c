/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/big_endian.h"
#include "base/error.h"

/* Sends in flight: a peer's buffers twice, so that the next are there when it posts them again. */
#define SMALL_SENDS_MAX 512u
#define BULK_SENDS_MAX  (2 * LINK_BULK_PLACES)
/* A block and its parity have a slot each, and one that waits for a repair keeps the slots of all behind it:
 * so many that buffers limit what is in flight. */
#define BULK_SLOTS (4 * LINK_BULK_PLACES)
/* An operation waits for the slowest of its blocks. */
#define BULK_RELIABILITY "auto,by=p999"
/* From here on waiting for an acknowledgement costs more than a copy of what is in flight. */
#define COPY_RTT_NS (500 * LH_NS_PER_US)
/* Below it a copy costs less than anything else. */
#define COPY_BYTES 16384u
/* Receives that are posted: so many bytes, for the time that ranks take to post others, and what comes in a
 * round trip at 100 Gbit/s. */
#define POSTED_BYTES      (2u << 20)
#define POSTED_BYTES_A_NS (100 / 8)
#define POSTED_PLACES_MIN 4u
#define POSTED_TOGETHER   4u /* one clear-to-send tells the peer of all */
/* A smaller packet leaves less to a small message (docs/connections.md, small messages). */
#define SMALL_MTU       1024u
#define SMALL_MTU_SPARE 128u

uint32_t link_queue_places(void)
{
    return LINK_SMALL_PLACES + LINK_BULK_PLACES + SMALL_SENDS_MAX + BULK_SENDS_MAX +
           LINK_SMALL_PLACES; /* control messages beyond the bounds of others */
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int open_one(const struct link_attr *attr, bool bulk, struct lh_connection **connection)
{
    struct lh_attr own = *attr->connection;
    own.match_tags = false;
    if (bulk && own.slots == 0)
        own.slots = BULK_SLOTS;
    if (bulk && !own.scheme && (!own.reliability || strcmp(own.reliability, "auto") == 0))
        own.reliability = BULK_RELIABILITY;
    return lh_open(&own, connection);
}

static int take_memory(struct link *link, const struct link_attr *attr)
{
    size_t places = attr->buffer_bytes / attr->block_bytes;
    link->places = (uint32_t)(places < LINK_BULK_PLACES ? places : LINK_BULK_PLACES);
    link->block_bytes = attr->block_bytes;
    link->memory_bytes = LINK_SMALL_PLACES * LINK_SMALL_BYTES + link->places * attr->block_bytes;
    link->memory = mmap(NULL, link->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (link->memory == MAP_FAILED) {
        link->memory = NULL;
        return lh_fail(LH_ENOMEM, "group: no memory for %zu bytes of buffers (lower buffer_bytes)",
                       link->memory_bytes);
    }
    link->bounces = calloc(LINK_SMALL_PLACES + link->places, sizeof *link->bounces);
    if (!link->bounces)
        return lh_fail(LH_ENOMEM, "group: no memory for a link");
    for (uint32_t i = 0; i < LINK_SMALL_PLACES + link->places; i++) {
        bool bulk = i >= LINK_SMALL_PLACES;
        size_t at = bulk
                        ? LINK_SMALL_PLACES * LINK_SMALL_BYTES + (i - LINK_SMALL_PLACES) * attr->block_bytes
                        : i * LINK_SMALL_BYTES;
        link->bounces[i] = (struct bounce){.link = link, .memory = link->memory + at, .bulk = bulk};
    }
    return 0;
}

int link_open(struct link *link, uint32_t rank, const struct link_attr *attr)
{
    *link = (struct link){.rank = rank, .queue = attr->queue};
    int error = take_memory(link, attr);
    if (!error)
        error = open_one(attr, false, &link->small);
    if (!error)
        error = open_one(attr, true, &link->bulk);
    if (!error)
        error = lh_register(link->bulk, link->memory, link->memory_bytes, &link->registered);
    return error;
}

static void drop_backlog(struct link *link)
{
    while (link->backlog) {
        struct control *control = link->backlog;
        link->backlog = control->next;
        free(control);
    }
}

void link_close(struct link *link)
{
    if (link->small)
        lh_close(link->small);
    if (link->bulk)
        lh_close(link->bulk);
    link->small = link->bulk = NULL;
}

void link_free(struct link *link)
{
    assert(!link->small && !link->bulk);
    drop_backlog(link);
    if (link->registered)
        lh_deregister(link->registered);
    if (link->memory)
        munmap(link->memory, link->memory_bytes);
    free(link->bounces);
    *link = (struct link){.error = -LH_ECLOSED};
}

/* The length of the first, and both. */
int link_blob(struct link *link, uint8_t *blob, size_t *bytes)
{
    size_t small = LH_BLOB_MAX, bulk = LH_BLOB_MAX;
    int error = lh_blob(link->small, blob + 4, &small);
    if (!error)
        error = lh_blob(link->bulk, blob + 4 + small, &bulk);
    if (error)
        return error;
    lh_put_be32(blob, (uint32_t)small);
    *bytes = 4 + small + bulk;
    return 0;
}

int link_attach(struct link *link, const uint8_t *blob, size_t bytes)
{
    struct lh_attr attr;
    size_t small = bytes >= 4 ? lh_get_be32(blob) : 0;
    if (bytes < 4 || small > bytes - 4)
        return lh_fail(LH_EHANDSHAKE, "group: malformed blob of rank %u (use one release)", link->rank);
    int error = lh_attach(link->small, blob + 4, small);
    if (!error)
        error = lh_attach(link->bulk, blob + 4 + small, bytes - 4 - small);
    if (!error)
        error = lh_connection_attr(link->small, &attr);
    if (error)
        return error;
    link->small_bytes = attr.mtu_bytes >= SMALL_MTU ? LINK_SMALL_BYTES : attr.mtu_bytes - SMALL_MTU_SPARE;
    return 0;
}

int link_begin(struct link *link)
{
    for (uint32_t i = 0; i < LINK_SMALL_PLACES + link->places; i++) {
        int error = link_repost(&link->bounces[i]);
        if (error)
            return error;
    }
    return 0;
}

lh_time link_rtt_ns(struct link *link)
{
    struct lh_path_view path;
    return link->small && lh_connection_path(link->small, &path) == 0 ? path.rtt_minimum_ns : 0;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

bool link_is_bulk(const struct link *link, size_t bytes)
{
    return bytes > link->small_bytes;
}

bool link_may_send(const struct link *link, size_t bytes)
{
    uint32_t small = link->unacknowledged - link->bulk_unacknowledged;
    return link_is_bulk(link, bytes) ? link->bulk_unacknowledged < 2 * link->places
                                     : small < SMALL_SENDS_MAX;
}

bool link_copies(struct link *link, size_t bytes)
{
    if (bytes <= COPY_BYTES)
        return true;
    return link_rtt_ns(link) >= COPY_RTT_NS;
}

static void list_add(struct outgoing_list *list, struct outgoing *outgoing)
{
    outgoing->owner = list;
    outgoing->previous = NULL;
    outgoing->next = list->first;
    if (list->first)
        list->first->previous = outgoing;
    list->first = outgoing;
    list->count++;
}

static void list_remove(struct outgoing *outgoing)
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

static size_t sum_of(const struct lh_part *parts, uint32_t count)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += parts[i].bytes;
    return sum;
}

static void copy_parts(uint8_t *to, const struct lh_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].bytes > 0)
            memcpy(to, parts[i].address, parts[i].bytes);
        to += parts[i].bytes;
    }
}

int link_send(struct link *link, const struct tag *tag, const struct lh_part *parts, uint32_t count,
              struct outgoing_list *owner)
{
    size_t bytes = sum_of(parts, count), copied = owner ? 0 : bytes;
    struct outgoing *outgoing = malloc(sizeof *outgoing + copied);
    if (!outgoing)
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    *outgoing = (struct outgoing){.link = link, .bulk = link_is_bulk(link, bytes), .copied_bytes = copied};
    const struct lh_part one = {.address = outgoing->data, .bytes = copied};
    struct lh_message message = {.parts = parts,
                                 .count = count,
                                 .tag = tag_encode(tag),
                                 .queue = link->queue,
                                 .user = (uint64_t)(uintptr_t)outgoing};
    if (!owner) {
        copy_parts(outgoing->data, parts, count);
        message.parts = &one;
        message.count = 1;
    }
    int error =
        lh_sendmsg(outgoing->bulk ? link->bulk : link->small, &message, owner ? &outgoing->request : NULL);
    if (error) {
        free(outgoing);
        return error;
    }
    if (owner)
        list_add(owner, outgoing);
    link->unacknowledged++;
    link->bulk_unacknowledged += outgoing->bulk;
    link->copied_bytes += copied;
    return 0;
}

static bool may_send_control(const struct link *link, size_t bytes)
{
    uint32_t small = link->unacknowledged - link->bulk_unacknowledged;
    return link_is_bulk(link, bytes) ? link->bulk_unacknowledged < BULK_SENDS_MAX
                                     : small < SMALL_SENDS_MAX + LINK_SMALL_PLACES;
}

static int send_now(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    const struct lh_part part = {.address = (void *)(uintptr_t)body, .bytes = bytes};
    return link_send(link, tag, &part, 1, NULL);
}

static int send_later(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    struct control *control = malloc(sizeof *control + bytes);
    if (!control)
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    *control = (struct control){.tag = *tag, .bytes = bytes};
    if (bytes > 0)
        memcpy(control->data, body, bytes);
    if (link->backlog)
        link->backlog_last->next = control;
    else
        link->backlog = control;
    link->backlog_last = control;
    return 0;
}

int link_send_control(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    if (link->backlog || !may_send_control(link, bytes))
        return send_later(link, tag, body, bytes);
    return send_now(link, tag, body, bytes);
}

/* A link that has failed says so by its entries. */
static void send_backlog(struct link *link)
{
    while (link->backlog && may_send_control(link, link->backlog->bytes)) {
        struct control *control = link->backlog;
        if (link->small && send_now(link, &control->tag, control->data, control->bytes) == -LH_EAGAIN)
            return;
        link->backlog = control->next;
        free(control);
    }
}

void link_on_sent(struct outgoing *outgoing)
{
    struct link *link = outgoing->link;
    link->unacknowledged--;
    link->bulk_unacknowledged -= outgoing->bulk;
    link->copied_bytes -= outgoing->copied_bytes;
    if (outgoing->owner)
        list_remove(outgoing);
    lh_request_free(outgoing->request);
    free(outgoing);
    send_backlog(link);
}

void outgoing_cancel(struct outgoing_list *list)
{
    while (list->first) {
        struct outgoing *outgoing = list->first;
        lh_cancel(outgoing->request);
        list_remove(outgoing);
    }
}

/* ---- receiving --------------------------------------------------------------------------------------- */

static int post(struct bounce *bounce)
{
    struct link *link = bounce->link;
    int error = lh_post_recv(bounce->bulk ? link->bulk : link->small, bounce->memory,
                             bounce->bulk ? link->block_bytes : LINK_SMALL_BYTES, link->registered,
                             link->queue, (uint64_t)(uintptr_t)bounce, NULL);
    if (!error)
        link->posted_places += bounce->bulk;
    return error;
}

/* Blocks that a peer may have on their way: all while its round trip is unknown. */
static uint32_t places_needed(struct link *link)
{
    lh_time rtt_ns = link_rtt_ns(link);
    uint64_t needed = (POSTED_BYTES + rtt_ns * POSTED_BYTES_A_NS) / link->block_bytes;
    if (needed < POSTED_PLACES_MIN)
        needed = POSTED_PLACES_MIN;
    return rtt_ns == 0 || needed > link->places ? link->places : (uint32_t)needed;
}

static int post_spare(struct link *link)
{
    uint32_t needed = link->spare ? places_needed(link) : 0;
    uint32_t together = needed < link->places ? POSTED_TOGETHER : 1; /* on a long path each is missed */
    if (link->posted_places + together > needed)
        return 0;
    while (link->spare && link->posted_places < needed) {
        struct bounce *bounce = link->spare;
        int error = post(bounce);
        if (error)
            return error;
        link->spare = bounce->next;
        link->spare_places--;
    }
    return 0;
}

int link_repost(struct bounce *bounce)
{
    struct link *link = bounce->link;
    if (!bounce->bulk)
        return post(bounce);
    bounce->next = link->spare;
    link->spare = bounce;
    link->spare_places++;
    return post_spare(link);
}

void link_on_received(struct bounce *bounce)
{
    struct link *link = bounce->link;
    link->posted_places -= bounce->bulk;
    if (bounce->bulk)
        post_spare(link); /* a connection that has ended says so by its entries */
}

bool link_is_short(const struct link *link)
{
    return link->posted_places + link->spare_places <= link->places / 2;
}
