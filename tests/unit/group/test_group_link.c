/*
 * test_group_link.c - a link of a group over connections that the test plays: which lane takes a message, how
 * many are in flight, what waits for room, what is withdrawn, and which receives are posted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/group_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "message/connection_state.h"

#define BLOCK     65536u
#define PLACES    40u
#define SMALL_MAX 512u /* messages in flight, but for those that control */
#define BULK_MAX  128u
#define BACKLOG   ((size_t)16 << 20)
#define SENDS     1024u

struct played {
    bool open;
    struct lh_attr attr;
    uint8_t secret[SDR_SECRET_BYTES];
    bool connecting;
};

static struct played connections[LANES];
static uint32_t opened, closed, opens_until, registered, freed_requests, posted[LANES], finished;
static uint32_t blob_lengths[LANES];
static lh_time rtt_ns;
static uint32_t mtu_bytes;
static int send_error, post_error, path_error, encrypt_error;
static uint64_t sent_users[SENDS];
static uint64_t sent_tags[SENDS];
static uint8_t sent_bytes[SENDS];
static enum lane sent_lanes[SENDS];
static uint32_t sends, ended_sends, ended_receives;
static struct lh_request *ended[SENDS];
static bool over;

static enum lane lane_at(const struct lh_connection *connection)
{
    return (enum lane)((const struct played *)(const void *)connection - connections);
}

int lh_open(const struct lh_attr *attr, struct lh_connection **connection)
{
    if (opened == opens_until)
        return lh_fail(LH_ENOMEM, "no connection");
    connections[opened] = (struct played){.open = true, .attr = *attr};
    *connection = (struct lh_connection *)(void *)&connections[opened++];
    return 0;
}

void lh_close(struct lh_connection *connection)
{
    assert_true(connections[lane_at(connection)].open);
    connections[lane_at(connection)].open = false;
    closed++;
}

int lh_register(struct lh_connection *connection, void *address, size_t bytes, struct lh_memory **memory)
{
    assert_non_null(address);
    assert_int_equal(lane_at(connection), LANE_BULK);
    registered += bytes > 0;
    *memory = (struct lh_memory *)(void *)connections;
    return 0;
}

int lh_deregister(struct lh_memory *memory)
{
    assert_non_null(memory);
    registered--;
    return 0;
}

int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes)
{
    enum lane lane = lane_at(connection);
    assert_true(*bytes >= blob_lengths[lane]);
    memset(blob, 'a' + (int)lane, blob_lengths[lane]);
    *bytes = blob_lengths[lane];
    return 0;
}

int lh_attach(struct lh_connection *connection, const void *blob, size_t bytes)
{
    const uint8_t *at = blob;
    enum lane lane = lane_at(connection);
    if (bytes != blob_lengths[lane])
        return lh_fail(LH_EHANDSHAKE, "another blob");
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(at[i], 'a' + lane);
    return 0;
}

int connection_encrypt(struct lh_connection *connection, const uint8_t secret[SDR_SECRET_BYTES],
                       bool connecting)
{
    struct played *of = &connections[lane_at(connection)];
    if (encrypt_error)
        return lh_fail((enum lh_error) - encrypt_error, "no memory for keys");
    memcpy(of->secret, secret, sizeof of->secret);
    of->connecting = connecting;
    return 0;
}

int lh_connection_attr(struct lh_connection *connection, struct lh_attr *attr)
{
    assert_int_equal(lane_at(connection), LANE_SMALL);
    lh_attr_init(attr);
    attr->mtu_bytes = mtu_bytes;
    return 0;
}

int lh_connection_path(struct lh_connection *connection, struct lh_path_view *path)
{
    assert_int_equal(lane_at(connection), LANE_SMALL);
    *path = (struct lh_path_view){.rtt_minimum_ns = rtt_ns};
    return path_error;
}

int lh_sendmsg(struct lh_connection *connection, const struct lh_message *message,
               struct lh_request **request)
{
    if (send_error)
        return lh_fail((enum lh_error) - send_error, "the path is broken");
    assert_true(sends < SENDS);
    sent_users[sends] = message->user;
    sent_tags[sends] = message->tag;
    sent_lanes[sends] = lane_at(connection);
    sent_bytes[sends] =
        message->count > 0 && message->parts[0].bytes > 0 ? *(const uint8_t *)message->parts[0].address : 0;
    sends++;
    if (request)
        *request = (struct lh_request *)(uintptr_t)(0x1000 + 16 * sends);
    return 0;
}

int lh_post_recv(struct lh_connection *connection, void *buffer, size_t bytes, struct lh_memory *memory,
                 struct lh_completion_queue *queue, uint64_t user, struct lh_request **request)
{
    const struct bounce *bounce = (const struct bounce *)(uintptr_t)user;
    (void)queue;
    if (post_error)
        return lh_fail((enum lh_error) - post_error, "no receive");
    assert_non_null(memory);
    assert_ptr_equal(buffer, bounce->memory);
    assert_int_equal(bounce->lane, lane_at(connection));
    assert_int_equal(bytes, bounce->lane == LANE_SMALL ? LINK_SMALL_BYTES : BLOCK);
    assert_int_equal(request != NULL, bounce->lane == LANE_BOUNDED);
    posted[bounce->lane]++;
    return 0;
}

void lh_request_free(struct lh_request *request)
{
    freed_requests += request != NULL;
}

int lh_cancel(struct lh_request *request)
{
    assert_non_null(request);
    return 0;
}

int lh_delivery(struct lh_request *request, struct lh_delivery *delivery)
{
    *delivery = (struct lh_delivery){.missing_ranges = 2};
    return request ? 0 : -LH_ESTATE;
}

int64_t lh_missing(struct lh_request *request, uint64_t first, struct lh_range *ranges, uint64_t count)
{
    assert_non_null(request);
    assert_int_equal(first, 0);
    assert_int_equal(count, 2);
    ranges[0] = (struct lh_range){.offset = 2, .bytes = 3};
    ranges[1] = (struct lh_range){.offset = 7, .bytes = 1};
    return 2;
}

void early_end_send(struct lh_request *request)
{
    assert_non_null(request);
    ended[ended_sends++] = request;
}

void early_end_receives(struct lh_connection *connection, deadline_ends *ends, const void *context)
{
    assert_int_equal(lane_at(connection), LANE_BOUNDED);
    ended_receives += ends(context, 0);
}

bool sends_are_over(struct lh_connection *connection)
{
    assert_int_equal(lane_at(connection), LANE_BOUNDED);
    return over;
}

void early_finish_decoding(struct lh_connection *connection)
{
    finished |= 1u << lane_at(connection);
}

/* ---- a link ------------------------------------------------------------------------------------------ */

static int open_link(struct link *link, bool bounded, size_t buffer_bytes)
{
    static struct lh_attr connection, partial;
    lh_attr_init(&connection);
    partial = connection;
    partial.reliability = "bounded:deadline=none";
    const struct link_attr attr = {.connection = &connection,
                                   .bounded = bounded ? &partial : NULL,
                                   .deadline_ns = 7,
                                   .block_bytes = BLOCK,
                                   .buffer_bytes = buffer_bytes};
    return link_open(link, 3, &attr);
}

static int set_up(void **state)
{
    (void)state;
    memset(connections, 0, sizeof connections);
    memset(posted, 0, sizeof posted);
    opened = closed = registered = freed_requests = finished = sends = ended_sends = ended_receives = 0;
    opens_until = LANES;
    send_error = post_error = path_error = 0;
    rtt_ns = 0;
    mtu_bytes = 4096;
    over = true;
    encrypt_error = 0;
    for (enum lane lane = 0; lane < LANES; lane++)
        blob_lengths[lane] = 10 + lane;
    return 0;
}

/* Each end has the same blobs here. */
static void attach(struct link *link)
{
    uint8_t blob[LINK_BLOB_MAX];
    size_t bytes = sizeof blob;
    assert_int_equal(link_blob(link, blob, &bytes), 0);
    assert_int_equal(link_attach(link, blob, bytes), 0);
}

static void open_attached(struct link *link, bool bounded)
{
    assert_int_equal(open_link(link, bounded, PLACES * BLOCK), 0);
    attach(link);
}

static void acknowledge(uint32_t send)
{
    link_on_sent((struct sent *)(uintptr_t)sent_users[send]);
}

static void end_link(struct link *link)
{
    link_close(link);
    link_free(link);
    assert_int_equal(closed, opened);
    assert_int_equal(registered, 0);
}

static int send_of(struct link *link, enum lane lane, const struct tag *tag, size_t bytes, lh_time until)
{
    static uint8_t data[BLOCK];
    const struct lh_part part = {.address = data, .bytes = bytes};
    const struct link_message message = {.tag = *tag, .parts = &part, .count = 1, .until = until};
    return link_send(link, lane, &message);
}

static const struct tag PIECE = {.group = 1, .kind = TAG_PIECE, .operation = 5};

/* ---- opening ----------------------------------------------------------------------------------------- */

static void test_attributes_of_lanes(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    assert_int_equal(open_link(&link, true, PLACES * BLOCK), 0);
    assert_int_equal(connections[LANE_SMALL].attr.slots, 0);
    assert_null(connections[LANE_SMALL].attr.reliability);
    assert_int_equal(connections[LANE_BULK].attr.slots, 256);
    assert_string_equal(connections[LANE_BULK].attr.reliability, "auto,by=p999");
    assert_int_equal(connections[LANE_BOUNDED].attr.slots, 256);
    assert_string_equal(connections[LANE_BOUNDED].attr.reliability, "bounded:deadline=none");
    assert_int_equal(link.lanes[LANE_SMALL].places, LINK_SMALL_PLACES);
    assert_int_equal(link.lanes[LANE_BULK].places, PLACES);
    assert_int_equal(link.lanes[LANE_BOUNDED].places, PLACES);
    assert_int_equal(link.memory_bytes, LINK_SMALL_PLACES * LINK_SMALL_BYTES + 2 * PLACES * BLOCK);
    assert_int_equal(link.copies.maximum, PLACES);
    assert_int_equal(link.deadline_ns, 7);
    end_link(&link);
    set_up(NULL);
    assert_int_equal(open_link(&link, false, 1000 * (size_t)BLOCK), 0); /* as many as a connection has */
    assert_int_equal(link.lanes[LANE_BULK].places, LINK_BULK_PLACES);
    assert_int_equal(link.lanes[LANE_BOUNDED].places, 0);
    assert_int_equal(opened, 2);
    end_link(&link);
    assert_int_equal(link.error, -LH_ECLOSED);
}

/* What was opened before one fails is closed; nothing is registered then. */
static void test_one_cannot_be_opened(void **state)
{
    (void)state;
    for (uint32_t until = 0; until < LANES; until++) {
        struct link link = {.rank = 0};
        set_up(NULL);
        opens_until = until;
        assert_int_equal(open_link(&link, true, PLACES * BLOCK), -LH_ENOMEM);
        assert_int_equal(opened, until);
        assert_null(link.registered);
        end_link(&link);
    }
}

static void test_places_in_the_queue(void **state)
{
    (void)state;
    assert_int_equal(link_queue_places(false), 64 + 64 + 512 + 128 + 64);
    assert_int_equal(link_queue_places(true), 64 + 64 + 512 + 128 + 64 + 64 + 128);
}

static void refuse_blob(struct link *link, const uint8_t *blob, size_t bytes, const char *text)
{
    assert_int_equal(link_attach(link, blob, bytes), -LH_EHANDSHAKE);
    assert_string_equal(lh_last_error(), text);
}

static void test_blobs(void **state)
{
    struct link link = {.rank = 0};
    uint8_t blob[LINK_BLOB_MAX] = {0};
    size_t bytes = sizeof blob;
    (void)state;
    assert_int_equal(open_link(&link, false, PLACES * BLOCK), 0);
    assert_int_equal(link_blob(&link, blob, &bytes), 0);
    assert_int_equal(bytes, 3 * 4 + 10 + 11);
    assert_int_equal(lh_get_be32(blob), 10);
    assert_int_equal(lh_get_be32(blob + 14), 11);
    assert_int_equal(lh_get_be32(blob + 29), 0); /* no such lane */
    assert_int_equal(link_attach(&link, blob, bytes), 0);
    for (size_t cut = 0; cut < bytes; cut++)
        refuse_blob(&link, blob, cut, "group: malformed blob of rank 3 (use one release)");
    lh_put_be32(blob + 29, 1);
    refuse_blob(&link, blob, bytes, "group: malformed blob of rank 3 (use one release)");
    refuse_blob(&link, blob, bytes + 1,
                "group: reliability is bounded at one end only of the link to rank 3 (give all ranks the "
                "same)");
    lh_put_be32(blob, 9);
    refuse_blob(&link, blob, bytes, "group: rank 3: another blob");
    end_link(&link);
    set_up(NULL);
    assert_int_equal(open_link(&link, true, PLACES * BLOCK), 0);
    blob_lengths[LANE_BOUNDED] = 0;
    bytes = sizeof blob;
    assert_int_equal(link_blob(&link, blob, &bytes), 0);
    refuse_blob(&link, blob, bytes,
                "group: reliability is bounded at one end only of the link to rank 3 (give all ranks the "
                "same)");
    end_link(&link);
}

/* ---- lanes ------------------------------------------------------------------------------------------- */

/* Each lane that there is has a secret of its own. */
static void test_secrets_of_lanes(void **state)
{
    struct link link = {.rank = 0};
    uint8_t secrets[LANES][PAIR_SECRET_BYTES];
    (void)state;
    for (int bounded = 0; bounded < 2; bounded++) {
        set_up(NULL);
        for (int lane = 0; lane < LANES; lane++)
            memset(secrets[lane], '1' + lane, sizeof secrets[lane]);
        assert_int_equal(open_link(&link, bounded, PLACES * BLOCK), 0);
        assert_int_equal(link_encrypt(&link, secrets, bounded), 0);
        for (uint32_t lane = 0; lane < opened; lane++) {
            assert_memory_equal(connections[lane].secret, secrets[lane], sizeof secrets[lane]);
            assert_int_equal(connections[lane].connecting, bounded);
        }
        assert_int_equal(opened, LANES - 1 + bounded);
        encrypt_error = -LH_ENOMEM;
        assert_int_equal(link_encrypt(&link, secrets, bounded), -LH_ENOMEM);
        assert_string_equal(lh_last_error(), "group: rank 3: no memory for keys");
        end_link(&link);
    }
}

static void test_lane_of_a_message(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct link link = {.rank = 0};
        set_up(NULL);
        mtu_bytes = small ? 1023 : 1024;
        open_attached(&link, true);
        uint32_t bytes = small ? 1023 - 128 : LINK_SMALL_BYTES;
        assert_int_equal(link.small_bytes, bytes);
        assert_int_equal(link_lane_of(&link, bytes, true), LANE_SMALL);
        assert_int_equal(link_lane_of(&link, bytes + 1, true), LANE_BOUNDED);
        assert_int_equal(link_lane_of(&link, bytes + 1, false), LANE_BULK);
        end_link(&link);
        set_up(NULL);
        open_attached(&link, false);
        assert_int_equal(link_lane_of(&link, LINK_SMALL_BYTES + 1, true), LANE_BULK);
        end_link(&link);
    }
}

/* What is long is sent as it is, where its acknowledgement is near. */
static void test_what_is_copied(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, true);
    assert_true(link_copies(&link, LANE_BULK, 16384));
    assert_false(link_copies(&link, LANE_BULK, 16385));
    assert_true(link_copies(&link, LANE_BOUNDED, BLOCK));
    rtt_ns = 500 * LH_NS_PER_US;
    assert_int_equal(link_rtt_ns(&link), rtt_ns);
    assert_true(link_copies(&link, LANE_BULK, BLOCK));
    link.near = true;
    assert_false(link_copies(&link, LANE_BULK, BLOCK));
    link.near = false;
    rtt_ns--;
    assert_false(link_copies(&link, LANE_BULK, BLOCK));
    path_error = -LH_ESTATE;
    assert_int_equal(link_rtt_ns(&link), 0);
    end_link(&link);
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void test_bounds_of_what_is_in_flight(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, true);
    for (uint32_t i = 0; i < SMALL_MAX; i++) {
        assert_true(link_may_send(&link, LANE_SMALL));
        assert_int_equal(send_of(&link, LANE_SMALL, &PIECE, 100, LH_TIME_NEVER), 0);
    }
    assert_false(link_may_send(&link, LANE_SMALL));
    assert_true(link_may_send(&link, LANE_BULK));
    assert_int_equal(link.copied_bytes, SMALL_MAX * 100);
    acknowledge(0);
    assert_true(link_may_send(&link, LANE_SMALL));
    assert_int_equal(link.copied_bytes, (SMALL_MAX - 1) * 100);
    link.lanes[LANE_BULK].unacknowledged = 2 * PLACES - 1;
    assert_true(link_may_send(&link, LANE_BULK));
    assert_false(link_is_flushed(&link));
    link.lanes[LANE_BULK].unacknowledged++;
    assert_false(link_may_send(&link, LANE_BULK));
    link.lanes[LANE_BULK].unacknowledged = 0;
    assert_false(link_is_flushed(&link));
    for (uint32_t i = 1; i < SMALL_MAX; i++)
        acknowledge(i);
    assert_true(link_is_flushed(&link));
    over = false; /* nothing of it is acknowledged, but some is on its way */
    assert_false(link_is_flushed(&link));
    end_link(&link);
}

/* The user's memory is not copied, and its owner knows the request. */
static void test_send_of_an_owner(void **state)
{
    struct link link = {.rank = 0};
    struct sent_list list = {0};
    uint8_t data[2][8] = {"abcdefg", "hijklmn"};
    const struct lh_part parts[] = {{.address = data[0], .bytes = 8}, {.address = data[1], .bytes = 8}};
    struct link_message message = {.tag = PIECE, .parts = parts, .count = 2, .owner = &list};
    (void)state;
    open_attached(&link, true);
    assert_int_equal(link_send(&link, LANE_BULK, &message), 0);
    assert_int_equal(list.count, 1);
    assert_non_null(list.first->request);
    assert_int_equal(link.copied_bytes, 0);
    acknowledge(0);
    assert_int_equal(list.count, 0);
    assert_int_equal(freed_requests, 1);
    message.owner = NULL;
    assert_int_equal(link_send(&link, LANE_BULK, &message), 0);
    const struct sent *sent = (const struct sent *)(uintptr_t)sent_users[1];
    assert_memory_equal(sent->data, data, sizeof data);
    assert_int_equal(link.copied_bytes, sizeof data);
    assert_null(sent->request);
    acknowledge(1);
    send_error = -LH_EPEER;
    assert_int_equal(link_send(&link, LANE_BULK, &message), -LH_EPEER);
    assert_string_equal(lh_last_error(), "group: rank 3: the path is broken");
    send_error = -LH_EAGAIN;
    assert_int_equal(link_send(&link, LANE_BULK, &message), -LH_EAGAIN);
    assert_int_equal(link.lanes[LANE_BULK].unacknowledged, 0);
    assert_int_equal(link.copied_bytes, 0);
    end_link(&link);
}

static void test_what_is_late_is_withdrawn(void **state)
{
    const struct tag other = {.group = 1, .kind = TAG_PIECE, .operation = 6},
                     of_other_group = {.group = 2, .kind = TAG_PIECE, .operation = 5};
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, true);
    assert_int_equal(link_withdraws_at(&link), LH_TIME_NEVER);
    send_of(&link, LANE_BOUNDED, &PIECE, 100, 30);
    assert_int_equal(link_withdraws_at(&link), 30);
    send_of(&link, LANE_BOUNDED, &other, 100, 20);
    send_of(&link, LANE_BOUNDED, &of_other_group, 100, 40);
    send_of(&link, LANE_BULK, &PIECE, 100, 10); /* arrives, however late */
    assert_int_equal(link.losable.count, 3);
    assert_int_equal(link_withdraws_at(&link), 20);
    link_withdraw_late(&link, 19);
    assert_int_equal(ended_sends, 0);
    link_withdraw_late(&link, 20);
    assert_int_equal(ended_sends, 1);
    assert_ptr_equal(ended[0], ((const struct sent *)(uintptr_t)sent_users[1])->request);
    assert_int_equal(link_withdraws_at(&link), 30);
    link_withdraw_of(&link, 1, 5);
    assert_int_equal(ended_sends, 2);
    assert_ptr_equal(ended[1], ((const struct sent *)(uintptr_t)sent_users[0])->request);
    link_withdraw_late(&link, 100);
    assert_int_equal(ended_sends, 4); /* not the one of 20 again */
    assert_int_equal(link_withdraws_at(&link), LH_TIME_NEVER);
    for (uint32_t i = 0; i < 4; i++)
        acknowledge(i);
    assert_int_equal(link.losable.count, 0);
    assert_int_equal(freed_requests, 3);
    end_link(&link);
}

/* ---- control messages -------------------------------------------------------------------------------- */

static struct tag numbered(uint32_t number)
{
    return (struct tag){.group = 1, .kind = TAG_SIGNATURE, .operation = number};
}

static int control(struct link *link, uint32_t number, size_t bytes)
{
    static uint8_t body[LINK_SMALL_BYTES + 1];
    const struct tag tag = numbered(number);
    body[0] = (uint8_t)number;
    return link_send_control(link, &tag, body, bytes);
}

static void expect_sent(uint32_t send, uint32_t number, enum lane lane)
{
    const struct tag tag = numbered(number);
    assert_true(send < sends);
    assert_true(sent_tags[send] == tag_encode(&tag));
    assert_int_equal(sent_bytes[send], (uint8_t)number);
    assert_int_equal(sent_lanes[send], lane);
}

/* Those that find no room leave later, in their order, and whole. */
static void test_control_messages_wait(void **state)
{
    enum { MAX = SMALL_MAX + LINK_SMALL_PLACES };
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    for (uint32_t i = 0; i < MAX + 3; i++)
        assert_int_equal(control(&link, i, 10), 0);
    assert_int_equal(sends, MAX);
    assert_int_equal(link.backlog_bytes, 3 * (sizeof(struct control) + 10));
    assert_int_equal(control(&link, MAX + 3, LINK_SMALL_BYTES + 1), 0); /* another lane, the same order */
    assert_int_equal(sends, MAX);
    for (uint32_t i = 0; i < 3; i++) {
        acknowledge(i);
        assert_true(sends >= MAX + i + 1);
        expect_sent(MAX + i, MAX + i, LANE_SMALL);
    }
    assert_int_equal(sends, MAX + 4);
    expect_sent(MAX + 3, MAX + 3, LANE_BULK);
    assert_int_equal(link.backlog_bytes, 0);
    assert_null(link.backlog);
    assert_int_equal(control(&link, MAX + 4, 10), 0); /* full again */
    assert_int_equal(sends, MAX + 4);
    send_error = -LH_EAGAIN;
    acknowledge(3);
    assert_non_null(link.backlog);
    send_error = 0;
    acknowledge(4);
    assert_null(link.backlog);
    expect_sent(MAX + 4, MAX + 4, LANE_SMALL);
    for (uint32_t i = 5; i < sends; i++)
        acknowledge(i);
    end_link(&link);
}

static void test_bound_of_long_control_messages(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    for (uint32_t i = 0; i < BULK_MAX + 1; i++)
        assert_int_equal(control(&link, i, LINK_SMALL_BYTES + 1), 0);
    assert_int_equal(sends, BULK_MAX);
    send_error = -LH_EPEER; /* the connection says so by its entries */
    acknowledge(0);
    assert_null(link.backlog);
    end_link(&link);
}

/* What cannot be sent now waits; a link that has failed says why. */
static void test_control_message_is_refused(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    send_error = -LH_EPATH;
    assert_int_equal(control(&link, 1, 10), -LH_EPATH);
    assert_null(link.backlog);
    send_error = -LH_EAGAIN;
    assert_int_equal(control(&link, 2, 0), 0);
    assert_int_equal(link.backlog_bytes, sizeof(struct control));
    send_error = 0;
    assert_int_equal(control(&link, 3, 10), 0); /* behind that */
    assert_int_equal(sends, 0);
    link_drop_backlog(&link);
    assert_null(link.backlog);
    assert_int_equal(link.backlog_bytes, 0);
    end_link(&link);
}

static void test_too_many_wait(void **state)
{
    const size_t cost = sizeof(struct control) + 10;
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    send_error = -LH_EAGAIN;
    link.backlog_bytes = BACKLOG - cost;
    assert_int_equal(control(&link, 1, 10), 0); /* the last that there is room for */
    assert_false(link.overflowed);
    assert_int_equal(control(&link, 2, 0), -LH_EPEER);
    assert_string_equal(lh_last_error(),
                        "group: rank 3 responds, but receives no messages (poll its group)");
    assert_true(link.overflowed);
    link.backlog_bytes = 0;
    assert_int_equal(control(&link, 3, 10), -LH_EPEER); /* and stays so */
    link_drop_backlog(&link);
    assert_false(link.overflowed);
    assert_int_equal(control(&link, 4, 10), 0);
    assert_int_equal(link.backlog_bytes, cost);
    end_link(&link);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

static struct loss *receive(struct link *link, enum lane lane, uint32_t place, int error)
{
    const struct lh_result result = {.error = error, .bytes = 10};
    return link_on_received(&link->lanes[lane].bounces[place], &result);
}

/* All while the round trip is unknown, and on a long path. */
static void test_all_are_posted(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, true);
    assert_int_equal(link_begin(&link), 0);
    assert_int_equal(posted[LANE_SMALL], LINK_SMALL_PLACES);
    assert_int_equal(posted[LANE_BULK], PLACES);
    assert_int_equal(posted[LANE_BOUNDED], PLACES);
    assert_null(receive(&link, LANE_SMALL, 0, 0));
    assert_int_equal(link.lanes[LANE_SMALL].posted_places, LINK_SMALL_PLACES - 1);
    assert_int_equal(link_repost(&link.lanes[LANE_SMALL].bounces[0]), 0);
    assert_int_equal(posted[LANE_SMALL], LINK_SMALL_PLACES + 1);
    rtt_ns = LH_NS_PER_S;
    assert_null(receive(&link, LANE_BULK, 5, 0));
    assert_int_equal(posted[LANE_BULK], PLACES); /* none is spare */
    assert_int_equal(link_repost(&link.lanes[LANE_BULK].bounces[5]), 0);
    assert_int_equal(posted[LANE_BULK], PLACES + 1); /* at once */
    post_error = -LH_EPEER;
    assert_null(receive(&link, LANE_BULK, 6, 0));
    assert_int_equal(link_repost(&link.lanes[LANE_BULK].bounces[6]), -LH_EPEER);
    assert_string_equal(lh_last_error(), "group: rank 3: no receive");
    assert_int_equal(link.lanes[LANE_BULK].spare_places, 1);
    assert_int_equal(link.lanes[LANE_BULK].posted_places, PLACES - 1);
    end_link(&link);
}

/* 2 MiB and a round trip of 100 Gbit/s; others when four of these are missing. */
static void test_few_are_posted(void **state)
{
    const uint32_t needed = 34; /* 32, and 2 for 11 us */
    struct link link = {.rank = 0};
    (void)state;
    rtt_ns = 11000;
    open_attached(&link, false);
    assert_int_equal(link_begin(&link), 0);
    struct link_lane *bulk = &link.lanes[LANE_BULK];
    assert_in_range(bulk->posted_places, needed - 3, needed);
    assert_int_equal(bulk->posted_places + bulk->spare_places, PLACES);
    const uint32_t before = bulk->posted_places;
    for (uint32_t i = 0; bulk->posted_places >= before - 3 && i < 5; i++) {
        uint32_t last = bulk->posted_places;
        receive(&link, LANE_BULK, i, 0);
        if (bulk->posted_places >= last) { /* four together */
            assert_int_equal(bulk->posted_places, needed);
            break;
        }
        assert_true(bulk->posted_places > needed - 4);
    }
    assert_int_equal(bulk->posted_places, needed);
    const struct bounce *used = &bulk->bounces[0];
    assert_int_equal(link_repost(&bulk->bounces[0]), 0);
    assert_ptr_equal(bulk->spare, used); /* the one that was used last is the next */
    end_link(&link);
}

static bool all_end(const void *context, uint64_t tag)
{
    (void)tag;
    return context != NULL;
}

/* A connection that has ended has no more receives. */
static void test_ends_of_receives(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, true);
    assert_int_equal(link_begin(&link), 0);
    link_end_receives(&link, all_end, &link);
    assert_int_equal(ended_receives, 1);
    link_finish_decoding(&link);
    assert_int_equal(finished, 7);
    link.lanes[LANE_BOUNDED].bounces[0].request = (struct lh_request *)(uintptr_t)0x100;
    assert_null(receive(&link, LANE_BOUNDED, 0, 0));
    assert_int_equal(freed_requests, 1);
    assert_null(link.lanes[LANE_BOUNDED].bounces[0].request);
    assert_int_equal(link.lanes[LANE_BOUNDED].posted_places, PLACES - 1);
    const struct lh_result all_lost = {.bytes = 10, .missing_bytes = 10};
    struct loss *loss = link_on_received(&link.lanes[LANE_BOUNDED].bounces[1], &all_lost);
    assert_ptr_equal(loss, loss_of_all());
    assert_null(link_on_received(&link.lanes[LANE_BULK].bounces[1], &all_lost)); /* has none */
    const struct lh_result some_lost = {.bytes = 10, .missing_bytes = 4};
    link.lanes[LANE_BOUNDED].bounces[3].request = (struct lh_request *)(uintptr_t)0x100;
    loss = link_on_received(&link.lanes[LANE_BOUNDED].bounces[3], &some_lost);
    assert_int_equal(loss->count, 2);
    assert_int_equal(loss->ranges[1].offset, 7);
    loss_free(loss);
    loss = link_on_received(&link.lanes[LANE_BOUNDED].bounces[4], &some_lost);
    assert_ptr_equal(loss, loss_of_all()); /* it is not known which */
    const struct lh_result failed = {.error = -LH_EPEER, .bytes = 10, .missing_bytes = 10};
    assert_null(link_on_received(&link.lanes[LANE_BOUNDED].bounces[2], &failed));
    link_close(&link);
    posted[LANE_BULK] = 0;
    receive(&link, LANE_BULK, 0, -LH_ECLOSED);
    assert_int_equal(posted[LANE_BULK], 0);
    link_end_receives(&link, all_end, &link);
    assert_int_equal(ended_receives, 1);
    link_free(&link);
}

/* What is dropped of a rank gives its buffers back. */
static void test_a_kept_buffer(void **state)
{
    static struct ahead_store store;
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    assert_int_equal(link_begin(&link), 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct bounce *bounce = &link.lanes[LANE_BULK].bounces[i];
        receive(&link, LANE_BULK, i, 0);
        assert_int_equal(ahead_keep(&store, &link, &PIECE, bounce->memory, BLOCK, bounce, NULL), 0);
    }
    assert_int_equal(link.lanes[LANE_BULK].posted_places, PLACES - 3);
    assert_true(link.kept_bytes >= 3 * (size_t)BLOCK);
    ahead_discard_group(&store, PIECE.group + 1);
    assert_int_equal(link.lanes[LANE_BULK].posted_places, PLACES - 3);
    ahead_discard_group(&store, PIECE.group);
    assert_int_equal(link.lanes[LANE_BULK].posted_places, PLACES);
    assert_int_equal(store.queues, 0);
    assert_int_equal(link.kept_bytes, 0);
    end_link(&link);
}

static void test_a_lane_is_short(void **state)
{
    struct link link = {.rank = 0};
    (void)state;
    open_attached(&link, false);
    assert_int_equal(link_begin(&link), 0);
    for (uint32_t i = 0; i < PLACES / 2 - 1; i++)
        receive(&link, LANE_BULK, i, 0);
    assert_false(link_is_short(&link, LANE_BULK));
    receive(&link, LANE_BULK, PLACES / 2 - 1, 0);
    assert_true(link_is_short(&link, LANE_BULK));
    end_link(&link);
}

/* The first piece of an operation begins a train, and is not of its bytes. */
static void test_trains(void **state)
{
    struct link link = {0};
    struct tag tag = PIECE;
    (void)state;
    link_on_piece(&link, &tag, 100, 10);
    link_on_piece(&link, &tag, 200, 20);
    link_on_piece(&link, &tag, 300, 40);
    assert_int_equal(link.train.bytes, 500);
    assert_int_equal(link.train.first_ns, 10);
    assert_int_equal(link.train.last_ns, 40);
    tag.operation++;
    link_on_piece(&link, &tag, 100, 50);
    assert_int_equal(link.train.bytes, 0);
    assert_int_equal(link.train.first_ns, 50);
    assert_int_equal(link.train.operation, tag.operation);
    tag.group++;
    link_on_piece(&link, &tag, 100, 60);
    assert_int_equal(link.train.first_ns, 60);
    assert_int_equal(link.train.last_ns, 60);
    assert_int_equal(link.train.group, tag.group);
}

#define LINK_TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(test_attributes_of_lanes),
        LINK_TEST(test_one_cannot_be_opened),
        LINK_TEST(test_places_in_the_queue),
        LINK_TEST(test_blobs),
        LINK_TEST(test_secrets_of_lanes),
        LINK_TEST(test_lane_of_a_message),
        LINK_TEST(test_what_is_copied),
        LINK_TEST(test_bounds_of_what_is_in_flight),
        LINK_TEST(test_send_of_an_owner),
        LINK_TEST(test_what_is_late_is_withdrawn),
        LINK_TEST(test_control_messages_wait),
        LINK_TEST(test_bound_of_long_control_messages),
        LINK_TEST(test_control_message_is_refused),
        LINK_TEST(test_too_many_wait),
        LINK_TEST(test_all_are_posted),
        LINK_TEST(test_few_are_posted),
        LINK_TEST(test_ends_of_receives),
        LINK_TEST(test_a_kept_buffer),
        LINK_TEST(test_a_lane_is_short),
        LINK_TEST(test_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
