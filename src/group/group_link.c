/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_link.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "message/connection_state.h"

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
/* Messages that wait for a rank that does not poll: some 100,000 operations, as many as it would keep of this
 * one's (mesh.c). */
#define BACKLOG_BYTES_MAX ((size_t)16 << 20)
/* A smaller packet leaves less to a small message (docs/connections.md, small messages). */
#define SMALL_MTU       1024u
#define SMALL_MTU_SPARE 128u

uint32_t link_queue_places(bool bounded)
{
    return LINK_SMALL_PLACES + LINK_BULK_PLACES + SMALL_SENDS_MAX + BULK_SENDS_MAX +
           LINK_SMALL_PLACES + /* control messages beyond the bounds of others */
           (bounded ? LINK_BULK_PLACES + BULK_SENDS_MAX : 0);
}

/* The connection's error, with the rank at its other end. */
static int fail_named(const struct link *link, int error)
{
    char reason[LH_ERROR_TEXT_BYTES];
    snprintf(reason, sizeof reason, "%s", lh_last_error());
    return lh_fail((enum lh_error) - error, "group: rank %u: %s", link->rank, reason);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int open_one(const struct lh_attr *attr, enum lane lane, struct lh_connection **connection)
{
    struct lh_attr own = *attr;
    own.match_tags = false;
    if (lane != LANE_SMALL && own.slots == 0)
        own.slots = BULK_SLOTS;
    if (lane == LANE_BULK && !own.scheme && (!own.reliability || strcmp(own.reliability, "auto") == 0))
        own.reliability = BULK_RELIABILITY;
    return lh_open(&own, connection);
}

static uint32_t places_of_all(const struct link *link)
{
    uint32_t places = 0;
    for (enum lane lane = 0; lane < LANES; lane++)
        places += link->lanes[lane].places;
    return places;
}

static size_t place_bytes(const struct link *link, enum lane lane)
{
    return lane == LANE_SMALL ? LINK_SMALL_BYTES : link->block_bytes;
}

static void lay_out(struct link *link)
{
    struct bounce *bounce = link->bounces;
    uint8_t *memory = link->memory;
    for (enum lane lane = 0; lane < LANES; lane++) {
        link->lanes[lane].bounces = bounce;
        for (uint32_t i = 0; i < link->lanes[lane].places; i++) {
            *bounce++ = (struct bounce){.link = link, .memory = memory, .lane = lane};
            memory += place_bytes(link, lane);
        }
    }
}

static int take_memory(struct link *link, const struct link_attr *attr)
{
    size_t places = attr->buffer_bytes / attr->block_bytes;
    link->lanes[LANE_SMALL].places = LINK_SMALL_PLACES;
    link->lanes[LANE_BULK].places = (uint32_t)(places < LINK_BULK_PLACES ? places : LINK_BULK_PLACES);
    link->lanes[LANE_BOUNDED].places = attr->bounded ? link->lanes[LANE_BULK].places : 0;
    link->block_bytes = attr->block_bytes;
    link->copies.block_bytes = attr->block_bytes;
    link->copies.maximum = link->lanes[LANE_BULK].places;
    for (enum lane lane = 0; lane < LANES; lane++)
        link->memory_bytes += link->lanes[lane].places * place_bytes(link, lane);
    link->memory = mmap(NULL, link->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (link->memory == MAP_FAILED) {
        link->memory = NULL;
        return lh_fail(LH_ENOMEM, "group: no memory for %zu bytes of buffers (lower buffer_bytes)",
                       link->memory_bytes);
    }
    link->bounces = calloc(places_of_all(link), sizeof *link->bounces);
    if (!link->bounces)
        return lh_fail(LH_ENOMEM, "group: no memory for a link");
    lay_out(link);
    return 0;
}

int link_open(struct link *link, uint32_t rank, const struct link_attr *attr)
{
    *link = (struct link){.rank = rank,
                          .number = link->number,
                          .joins = link->joins,
                          .near = attr->near,
                          .queue = attr->queue,
                          .deadline_ns = attr->deadline_ns};
    int error = take_memory(link, attr);
    if (!error)
        error = open_one(attr->connection, LANE_SMALL, &link->lanes[LANE_SMALL].connection);
    if (!error)
        error = open_one(attr->connection, LANE_BULK, &link->lanes[LANE_BULK].connection);
    if (!error && attr->bounded)
        error = open_one(attr->bounded, LANE_BOUNDED, &link->lanes[LANE_BOUNDED].connection);
    if (!error)
        error = lh_register(link->lanes[LANE_BULK].connection, link->memory, link->memory_bytes,
                            &link->registered);
    return error;
}

void link_drop_backlog(struct link *link)
{
    while (link->backlog) {
        struct control *control = link->backlog;
        link->backlog = control->next;
        free(control);
    }
    link->backlog_bytes = 0;
    link->overflowed = false;
}

void link_close(struct link *link)
{
    for (enum lane lane = 0; lane < LANES; lane++) {
        if (link->lanes[lane].connection)
            lh_close(link->lanes[lane].connection);
        link->lanes[lane].connection = NULL;
    }
}

void link_free(struct link *link)
{
    assert(!link->lanes[LANE_SMALL].connection && !link->lanes[LANE_BULK].connection);
    link_drop_backlog(link);
    sent_store_end(&link->copies);
    if (link->registered)
        lh_deregister(link->registered);
    if (link->memory)
        munmap(link->memory, link->memory_bytes);
    free(link->bounces);
    *link = (struct link){.rank = link->rank, .number = LH_NO_RANK, .error = -LH_ECLOSED, .vacant = true};
}

/* Of each lane the length, and the blob; 0: there is no such lane. */
int link_blob(struct link *link, uint8_t *blob, size_t *bytes)
{
    uint8_t *at = blob;
    for (enum lane lane = 0; lane < LANES; lane++) {
        size_t length = link->lanes[lane].connection ? LH_BLOB_MAX : 0;
        int error = length > 0 ? lh_blob(link->lanes[lane].connection, at + 4, &length) : 0;
        if (error)
            return error;
        lh_put_be32(at, (uint32_t)length);
        at += 4 + length;
    }
    *bytes = (size_t)(at - blob);
    return 0;
}

int link_encrypt(struct link *link, uint8_t (*secrets)[PAIR_SECRET_BYTES], bool connecting)
{
    int error = 0;
    for (enum lane lane = 0; lane < LANES && !error; lane++)
        if (link->lanes[lane].connection)
            error = connection_encrypt(link->lanes[lane].connection, secrets[lane], connecting);
    return error ? fail_named(link, error) : 0;
}

static int attach_lane(struct link *link, enum lane lane, const uint8_t *blob, size_t bytes)
{
    struct lh_connection *connection = link->lanes[lane].connection;
    if (lane == LANE_BOUNDED && !connection != (bytes == 0))
        return lh_fail(LH_EHANDSHAKE,
                       "group: reliability is bounded at one end only of the link to rank %u (give all "
                       "ranks the same)",
                       link->rank);
    int error = connection ? lh_attach(connection, blob, bytes) : 0;
    return error ? fail_named(link, error) : 0;
}

int link_attach(struct link *link, const uint8_t *blob, size_t bytes)
{
    struct lh_attr attr;
    for (enum lane lane = 0; lane < LANES; lane++) {
        size_t length = bytes >= 4 ? lh_get_be32(blob) : SIZE_MAX;
        if (bytes < 4 || length > bytes - 4)
            return lh_fail(LH_EHANDSHAKE, "group: malformed blob of rank %u (use one release)", link->rank);
        int error = attach_lane(link, lane, blob + 4, length);
        if (error)
            return error;
        blob += 4 + length;
        bytes -= 4 + length;
    }
    int error = lh_connection_attr(link->lanes[LANE_SMALL].connection, &attr);
    if (error)
        return error;
    link->small_bytes = attr.mtu_bytes >= SMALL_MTU ? LINK_SMALL_BYTES : attr.mtu_bytes - SMALL_MTU_SPARE;
    return 0;
}

int link_begin(struct link *link)
{
    for (uint32_t i = 0; i < places_of_all(link); i++) {
        int error = link_repost(&link->bounces[i]);
        if (error)
            return error;
    }
    link->begun = true;
    return 0;
}

bool link_is_flushed(const struct link *link)
{
    for (enum lane lane = 0; lane < LANES; lane++)
        if (link->lanes[lane].unacknowledged > 0)
            return false;
    struct lh_connection *bounded = link->lanes[LANE_BOUNDED].connection;
    return !bounded || sends_are_over(bounded);
}

lh_time link_rtt_ns(struct link *link)
{
    struct lh_path_view path;
    struct lh_connection *small = link->lanes[LANE_SMALL].connection;
    return small && lh_connection_path(small, &path) == 0 ? path.rtt_minimum_ns : 0;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

enum lane link_lane_of(const struct link *link, size_t bytes, bool bounded)
{
    if (bytes <= link->small_bytes)
        return LANE_SMALL;
    return bounded && link->lanes[LANE_BOUNDED].connection ? LANE_BOUNDED : LANE_BULK;
}

bool link_may_send(const struct link *link, enum lane lane)
{
    const struct link_lane *to = &link->lanes[lane];
    return to->unacknowledged < (lane == LANE_SMALL ? SMALL_SENDS_MAX : 2 * to->places);
}

bool link_copies(struct link *link, enum lane lane, size_t bytes)
{
    if (bytes <= COPY_BYTES || lane == LANE_BOUNDED)
        return true;
    return !link->near && link_rtt_ns(link) >= COPY_RTT_NS;
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
            lh_copy(to, parts[i].address, parts[i].bytes);
        to += parts[i].bytes;
    }
}

lh_time link_withdraws_at(const struct link *link)
{
    return link->losable.count > 0 ? link->withdraws_at : LH_TIME_NEVER;
}

static void keep_losable(struct link *link, struct sent *sent, const struct link_message *message)
{
    sent->until = message->until;
    sent->group = message->tag.group;
    sent->operation = message->tag.operation;
    link->withdraws_at = lh_earlier(link_withdraws_at(link), sent->until);
    sent_add(&link->losable, sent);
}

int link_send(struct link *link, enum lane lane, const struct link_message *in)
{
    bool losable = lane == LANE_BOUNDED && !in->owner;
    size_t bytes = sum_of(in->parts, in->count), copied = in->owner ? 0 : bytes;
    struct sent *sent = sent_take(&link->copies, copied);
    if (!sent)
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    sent->link = link;
    sent->lane = lane;
    sent->copied_bytes = copied;
    const struct lh_part one = {.address = sent->data, .bytes = copied};
    struct lh_message message = {.parts = in->parts,
                                 .count = in->count,
                                 .tag = tag_encode(&in->tag),
                                 .queue = link->queue,
                                 .user = (uint64_t)(uintptr_t)sent};
    if (!in->owner) {
        copy_parts(sent->data, in->parts, in->count);
        message.parts = &one;
        message.count = 1;
    }
    int error =
        lh_sendmsg(link->lanes[lane].connection, &message, in->owner || losable ? &sent->request : NULL);
    if (error) {
        sent_give(&link->copies, sent);
        return error == -LH_EAGAIN ? error : fail_named(link, error);
    }
    if (in->owner)
        sent_add(in->owner, sent);
    else if (losable)
        keep_losable(link, sent, in);
    link->lanes[lane].unacknowledged++;
    link->copied_bytes += copied;
    return 0;
}

void link_withdraw_late(struct link *link, lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    if (link_withdraws_at(link) > now)
        return;
    for (struct sent *sent = link->losable.first; sent; sent = sent->next) {
        if (sent->until > now) {
            lh_keep_earlier(&next, sent->until);
            continue;
        }
        sent->until = LH_TIME_NEVER;
        early_end_send(sent->request);
    }
    link->withdraws_at = next;
}

void link_withdraw_of(struct link *link, uint32_t group, uint32_t operation)
{
    for (struct sent *sent = link->losable.first; sent; sent = sent->next)
        if (sent->group == group && sent->operation == operation)
            early_end_send(sent->request);
}

static bool may_send_control(const struct link *link, size_t bytes)
{
    enum lane lane = link_lane_of(link, bytes, false);
    return link->lanes[lane].unacknowledged <
           (lane == LANE_SMALL ? SMALL_SENDS_MAX + LINK_SMALL_PLACES : BULK_SENDS_MAX);
}

static int send_now(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    const struct lh_part part = {.address = (void *)(uintptr_t)body, .bytes = bytes};
    const struct link_message message = {.tag = *tag, .parts = &part, .count = 1};
    return link_send(link, link_lane_of(link, bytes, false), &message);
}

static int send_later(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    size_t cost = sizeof(struct control) + bytes;
    link->overflowed |= cost > BACKLOG_BYTES_MAX - link->backlog_bytes;
    if (link->overflowed)
        return lh_fail(LH_EPEER, "group: rank %u responds, but receives no messages (poll its group)",
                       link->rank);
    struct control *control = malloc(cost);
    if (!control)
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    link->backlog_bytes += cost;
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
    int error =
        link->backlog || !may_send_control(link, bytes) ? -LH_EAGAIN : send_now(link, tag, body, bytes);
    return error == -LH_EAGAIN ? send_later(link, tag, body, bytes) : error;
}

/* A link that has failed says so by its entries. */
static void send_backlog(struct link *link)
{
    while (link->backlog && may_send_control(link, link->backlog->bytes)) {
        struct control *control = link->backlog;
        if (link->lanes[LANE_SMALL].connection &&
            send_now(link, &control->tag, control->data, control->bytes) == -LH_EAGAIN)
            return;
        link->backlog = control->next;
        link->backlog_bytes -= sizeof *control + control->bytes;
        free(control);
    }
}

void link_on_sent(struct sent *sent)
{
    struct link *link = sent->link;
    link->lanes[sent->lane].unacknowledged--;
    link->copied_bytes -= sent->copied_bytes;
    if (sent->owner)
        sent_remove(sent);
    lh_request_free(sent->request);
    sent_give(&link->copies, sent);
    send_backlog(link);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

static int post(struct bounce *bounce)
{
    struct link *link = bounce->link;
    struct link_lane *lane = &link->lanes[bounce->lane];
    int error = lh_post_recv(lane->connection, bounce->memory, place_bytes(link, bounce->lane),
                             link->registered, link->queue, (uint64_t)(uintptr_t)bounce,
                             bounce->lane == LANE_BOUNDED ? &bounce->request : NULL);
    if (error)
        return fail_named(link, error);
    lane->posted_places++;
    return 0;
}

/* Blocks that a peer may have on their way: all while its round trip is unknown. */
static uint32_t places_needed(struct link *link, const struct link_lane *lane)
{
    lh_time rtt_ns = link_rtt_ns(link);
    uint64_t needed = (POSTED_BYTES + rtt_ns * POSTED_BYTES_A_NS) / link->block_bytes;
    if (needed < POSTED_PLACES_MIN)
        needed = POSTED_PLACES_MIN;
    return rtt_ns == 0 || needed > lane->places ? lane->places : (uint32_t)needed;
}

static int post_spare(struct link *link, struct link_lane *lane)
{
    uint32_t needed = lane->spare ? places_needed(link, lane) : 0;
    uint32_t together = needed < lane->places ? POSTED_TOGETHER : 1; /* on a long path each is missed */
    if (lane->posted_places + together > needed)
        return 0;
    while (lane->spare && lane->posted_places < needed) {
        struct bounce *bounce = lane->spare;
        int error = post(bounce);
        if (error)
            return error;
        lane->spare = bounce->next;
        lane->spare_places--;
    }
    return 0;
}

int link_repost(struct bounce *bounce)
{
    struct link_lane *lane = &bounce->link->lanes[bounce->lane];
    if (!lane->connection) /* closed */
        return 0;
    if (bounce->lane == LANE_SMALL)
        return post(bounce);
    bounce->next = lane->spare;
    lane->spare = bounce;
    lane->spare_places++;
    return post_spare(bounce->link, lane);
}

struct loss *link_on_received(struct bounce *bounce, const struct lh_result *result)
{
    struct link_lane *lane = &bounce->link->lanes[bounce->lane];
    struct loss *loss =
        bounce->lane == LANE_BOUNDED && !result->error ? loss_of(bounce->request, result) : NULL;
    lh_request_free(bounce->request);
    bounce->request = NULL;
    lane->posted_places--;
    if (bounce->lane != LANE_SMALL && lane->connection)
        post_spare(bounce->link, lane); /* a connection that has ended says so by its entries */
    return loss;
}

void link_end_receives(struct link *link, deadline_ends *ends, const void *context)
{
    if (link->lanes[LANE_BOUNDED].connection)
        early_end_receives(link->lanes[LANE_BOUNDED].connection, ends, context);
}

void link_finish_decoding(struct link *link)
{
    for (enum lane lane = 0; lane < LANES; lane++)
        if (link->lanes[lane].connection)
            early_finish_decoding(link->lanes[lane].connection);
}

void link_on_piece(struct link *link, const struct tag *tag, size_t bytes, lh_time now)
{
    struct link_train *train = &link->train;
    if (train->group == tag->group && train->operation == tag->operation && train->first_ns > 0) {
        train->bytes += bytes;
        train->last_ns = now;
    } else {
        *train = (struct link_train){
            .group = tag->group, .operation = tag->operation, .first_ns = now, .last_ns = now};
    }
}

bool link_is_short(const struct link *link, enum lane lane)
{
    const struct link_lane *of = &link->lanes[lane];
    return of->posted_places + of->spare_places <= of->places / 2;
}

/* ---- early messages -------------------------------------------------------------------------------- */

/* Operations are numbered one after another: neighbours get buckets of their own. */
static uint32_t bucket_of(const struct link *link, uint32_t group, uint32_t operation)
{
    return (operation + group * 0x9E3779B1u + link->rank * 0x85EBCA77u) % AHEAD_BUCKETS;
}

static struct ahead_queue **place_of(struct ahead_store *store, const struct link *link, uint32_t group,
                                     uint32_t operation)
{
    struct ahead_queue **at = &store->buckets[bucket_of(link, group, operation)];
    while (*at && ((*at)->link != link || (*at)->group != group || (*at)->operation != operation))
        at = &(*at)->next;
    return at;
}

struct ahead_queue *ahead_find(const struct ahead_store *store, const struct link *link, uint32_t group,
                               uint32_t operation)
{
    return *place_of((struct ahead_store *)(uintptr_t)store, link, group, operation);
}

/* ---- keeping ----------------------------------------------------------------------------------------- */

size_t ahead_cost(size_t bytes)
{
    return sizeof(struct ahead) + sizeof(struct ahead_queue) + bytes;
}

/* The queue of a message, perhaps a new one; NULL: no memory. */
static struct ahead_queue *queue_for(struct ahead_store *store, struct link *link, const struct tag *tag)
{
    struct ahead_queue **at = place_of(store, link, tag->group, tag->operation);
    if (*at)
        return *at;
    struct ahead_queue *queue = malloc(sizeof *queue);
    if (!queue)
        return NULL;
    *queue = (struct ahead_queue){.link = link, .group = tag->group, .operation = tag->operation};
    queue->last = &queue->first;
    *at = queue;
    store->queues++;
    return queue;
}

int ahead_keep(struct ahead_store *store, struct link *link, const struct tag *tag, const uint8_t *data,
               size_t bytes, struct bounce *bounce, struct loss *loss)
{
    struct ahead *ahead = malloc(sizeof *ahead + (bounce ? 0 : bytes));
    struct ahead_queue *queue = ahead ? queue_for(store, link, tag) : NULL;
    if (!queue) {
        free(ahead);
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    }
    *ahead = (struct ahead){.tag = *tag, .bytes = bytes, .bounce = bounce, .loss = loss};
    if (!bounce && bytes > 0)
        memcpy(ahead->data, data, bytes);
    *queue->last = ahead;
    queue->last = &ahead->next;
    link->kept_bytes += ahead_cost(bytes);
    return 0;
}

/* ---- taking out -------------------------------------------------------------------------------------- */

struct ahead_queue *ahead_detach(struct ahead_store *store, const struct link *link, uint32_t group,
                                 uint32_t operation)
{
    struct ahead_queue **at = place_of(store, link, group, operation), *queue = *at;
    if (!queue)
        return NULL;
    *at = queue->next;
    queue->next = NULL;
    store->queues--;
    return queue;
}

void ahead_attach(struct ahead_store *store, struct ahead_queue *queue)
{
    struct ahead_queue **at = place_of(store, queue->link, queue->group, queue->operation);
    assert(!*at && queue->first);
    *at = queue;
    store->queues++;
}

void ahead_remove(struct ahead_queue *queue, struct ahead **at)
{
    struct ahead *ahead = *at;
    *at = ahead->next;
    if (queue->last == &ahead->next)
        queue->last = at;
    queue->link->kept_bytes -= ahead_cost(ahead->bytes);
    free(ahead);
}

void ahead_discard(struct ahead_queue *queue)
{
    while (queue && queue->first) {
        struct bounce *bounce = queue->first->bounce;
        loss_free(queue->first->loss);
        ahead_remove(queue, &queue->first);
        if (bounce)
            link_repost(bounce); /* of a connection that has ended: its entries say so */
    }
    free(queue);
}

/* Of a link, or, NULL, of a group. */
static void discard_all(struct ahead_store *store, const struct link *link, uint32_t group)
{
    for (uint32_t i = 0; i < AHEAD_BUCKETS && store->queues > 0; i++) {
        struct ahead_queue **at = &store->buckets[i];
        while (*at) {
            struct ahead_queue *queue = *at;
            if (link ? queue->link != link : queue->group != group) {
                at = &queue->next;
                continue;
            }
            *at = queue->next;
            store->queues--;
            ahead_discard(queue);
        }
    }
}

void ahead_discard_link(struct ahead_store *store, const struct link *link)
{
    discard_all(store, link, 0);
}

void ahead_discard_group(struct ahead_store *store, uint32_t group)
{
    discard_all(store, NULL, group);
}

void ahead_end(struct ahead_store *store)
{
    for (uint32_t i = 0; i < AHEAD_BUCKETS; i++)
        while (store->buckets[i]) {
            struct ahead_queue *queue = store->buckets[i];
            store->buckets[i] = queue->next;
            while (queue->first) {
                loss_free(queue->first->loss);
                ahead_remove(queue, &queue->first);
            }
            free(queue);
        }
    store->queues = 0;
}
