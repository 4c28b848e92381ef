/*
 * test_onesided.c - one-sided operations over a simulated network.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/onesided.h>
#include <longhaul/queue.h>

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/connection_state.h"
#include "message/rx_messages.h"
#include "sdr/sdr_driver.h"
#include "support/connection_pair.h"
#include "support/parity_scheme.h"

#define RTT    (20 * LH_NS_PER_MS)
#define LINK   "rtt=20ms,rate=10Gbit"
#define LOSSY  "rtt=2ms,rate=1Gbit,loss=0.05,reorder=0.1,duplicate=0.02,corrupt=0.02"
#define REGION (512u * 1024)
#define BOTH   (LH_ACCESS_WRITE | LH_ACCESS_READ)

/* End 1 exposes a region to end 0. */
struct bed {
    struct connection_pair pair;
    struct lh_completion_queue *queue; /* of end 1 */
    struct lh_region *region;
    struct lh_key key;
    uint8_t *memory; /* the region's */
    uint8_t *before; /* what must be there */
    uint8_t *data;   /* end 0's */
};

static void expose(struct bed *bed, uint32_t access, bool with_queue)
{
    const struct lh_part part = {.address = bed->memory, .bytes = REGION};
    assert_int_equal(
        lh_expose(bed->pair.ends[1], &part, access, with_queue ? bed->queue : NULL, 77, &bed->region), 0);
    lh_region_key(bed->region, &bed->key);
}

static struct bed open_bed_with(const char *link, const struct lh_attr *attr)
{
    struct bed bed = {0};
    connection_pair_open(&bed.pair, "onesided", 5, link, attr, NULL);
    connection_pair_run(&bed.pair, 5 * RTT);
    assert_int_equal(lh_completion_queue_create(bed.pair.ends[1]->engine, 4, &bed.queue), 0);
    bed.memory = connection_pair_bytes(REGION, 1);
    bed.before = connection_pair_bytes(REGION, 1);
    bed.data = connection_pair_bytes(REGION, 2);
    expose(&bed, BOTH, true);
    return bed;
}

static struct bed open_bed(const char *link, const char *reliability)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    return open_bed_with(link, &attr);
}

static void close_bed(struct bed *bed)
{
    struct lh_completion entry;
    assert_memory_equal(bed->memory, bed->before, REGION);
    while (bed->queue && completion_ring_take(&bed->queue->ring, &entry, 1) > 0)
        assert_int_equal(entry.operation, LH_OPERATION_NOTIFY);
    if (bed->pair.ends[1])
        lh_revoke(bed->region);
    if (bed->queue)
        assert_int_equal(lh_completion_queue_destroy(bed->queue), 0);
    connection_pair_close(&bed->pair);
    free(bed->memory);
    free(bed->before);
    free(bed->data);
}

static int start(struct bed *bed, bool writes, uint64_t offset, size_t bytes, bool notify,
                 struct lh_request **request)
{
    const struct lh_part part = {.address = bed->data, .bytes = bytes};
    const struct lh_onesided wanted = {.parts = &part,
                                       .count = 1,
                                       .key = bed->key,
                                       .offset = offset,
                                       .notify = notify,
                                       .immediate = offset ^ bytes};
    return writes ? lh_write(bed->pair.ends[0], &wanted, request)
                  : lh_read(bed->pair.ends[0], &wanted, request);
}

static struct lh_request *begin(struct bed *bed, bool writes, uint64_t offset, size_t bytes)
{
    struct lh_request *request;
    assert_int_equal(start(bed, writes, offset, bytes, false, &request), 0);
    return request;
}

static struct lh_result finish(struct bed *bed, struct lh_request *request)
{
    return connection_pair_finish(&bed->pair, request);
}

static void write_ok(struct bed *bed, uint64_t offset, size_t bytes)
{
    struct lh_result result = finish(bed, begin(bed, true, offset, bytes));
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, bytes);
    memcpy(bed->before + offset, bed->data, bytes);
    assert_memory_equal(bed->memory, bed->before, REGION);
}

static void read_ok(struct bed *bed, uint64_t offset, size_t bytes)
{
    memset(bed->data, 0xEE, bytes + 1);
    struct lh_result result = finish(bed, begin(bed, false, offset, bytes));
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, bytes);
    assert_memory_equal(bed->data, bed->before + offset, bytes);
    assert_int_equal(bed->data[bytes], 0xEE);
}

static struct lh_stats stats_of(struct bed *bed, int end)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(bed->pair.ends[end], &stats), 0);
    return stats;
}

/* Each size, by each scheme, over a path with all faults: the range has the bytes, nothing else changes. */
static void writes_and_reads(void **state)
{
    (void)state;
    const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds,k=4,m=2", "auto"};
    const size_t sizes[] = {0, 1, 64, 1000, 4096, 4097, 16384, 100000};
    for (size_t s = 0; s < sizeof schemes / sizeof *schemes; s++) {
        struct bed bed = open_bed(LOSSY, schemes[s]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            write_ok(&bed, i * 37, sizes[i]);
            read_ok(&bed, REGION - sizes[i] - i, sizes[i]);
        }
        close_bed(&bed);
    }
}

/* A notification has the bytes of its write before it, its immediate and its length; also of an empty one. */
static void notifications(void **state)
{
    (void)state;
    struct bed bed = open_bed(LOSSY, "sr-nack");
    const size_t sizes[] = {50000, 64, 0};
    for (size_t i = 0; i < 3; i++) {
        struct lh_completion entry;
        struct lh_request *request;
        assert_int_equal(start(&bed, true, 100, sizes[i], true, &request), 0);
        while (completion_ring_take(&bed.queue->ring, &entry, 1) == 0) {
            assert_true(connection_pair_now(&bed.pair) < 100 * LH_NS_PER_S);
            connection_pair_turn(&bed.pair, connection_pair_now(&bed.pair) + LH_NS_PER_S);
        }
        memcpy(bed.before + 100, bed.data, sizes[i]);
        assert_memory_equal(bed.memory, bed.before, REGION);
        assert_int_equal(entry.operation, LH_OPERATION_NOTIFY);
        assert_int_equal(entry.user, 77);
        assert_ptr_equal(entry.connection, bed.pair.ends[1]);
        assert_null(entry.request);
        assert_int_equal(entry.result.bytes, sizes[i]);
        assert_int_equal(entry.result.tag, 100 ^ sizes[i]);
        assert_int_equal(finish(&bed, request).error, 0);
    }
    close_bed(&bed);
}

/* A write takes no receive, and waits for none. */
static void beside_messages(void **state)
{
    (void)state;
    struct bed bed = open_bed(LINK, "sr-nack");
    uint8_t *buffer = malloc(REGION);
    struct lh_request *recvs[8];
    for (int i = 0; i < 8; i++)
        recvs[i] = connection_pair_recv(&bed.pair, 1, buffer, REGION);
    write_ok(&bed, 0, 300000);
    write_ok(&bed, 0, 64);
    read_ok(&bed, 1, 300000);
    for (int i = 0; i < 8; i++) {
        struct lh_request *send = connection_pair_send(&bed.pair, 0, bed.data, 10000);
        assert_int_equal(finish(&bed, send).error, 0);
        assert_int_equal(finish(&bed, recvs[i]).bytes, 10000);
    }
    free(buffer);
    close_bed(&bed);
}

static lh_time operation_takes(struct bed *bed, bool writes, size_t bytes)
{
    lh_time started = connection_pair_now(&bed->pair);
    return finish(bed, begin(bed, writes, 0, bytes)).ended_ns - started;
}

static lh_time message_takes(struct bed *bed, size_t bytes)
{
    uint8_t *buffer = malloc(bytes);
    struct lh_request *recv = connection_pair_recv(&bed->pair, 1, buffer, bytes);
    connection_pair_run(&bed->pair, 5 * RTT);
    lh_time started = connection_pair_now(&bed->pair);
    struct lh_result sent = finish(bed, connection_pair_send(&bed->pair, 0, bed->data, bytes));
    assert_int_equal(finish(bed, recv).bytes, bytes);
    free(buffer);
    return sent.ended_ns - started;
}

/* What longhaul/onesided.h says of the cost: few bytes take a round trip, as a message does that finds its
 * receive posted; many take one more than that. */
static void round_trips(void **state)
{
    (void)state;
    const size_t sizes[] = {64, 4096, 10000, 60000};
    struct bed bed = open_bed(LINK, "sr-nack");
    write_ok(&bed, 0, 1); /* the inner connection is open, and its path measured */
    connection_pair_run(&bed.pair, 5 * RTT);
    for (size_t i = 0; i < 4; i++) {
        lh_time message = message_takes(&bed, sizes[i]);
        assert_in_range(message, RTT, RTT + LH_NS_PER_MS);
        for (int writes = 0; writes < 2; writes++) {
            lh_time more = operation_takes(&bed, writes, sizes[i]) - message + LH_NS_PER_MS;
            assert_in_range(more, sizes[i] > 4096 ? RTT : 0,
                            (sizes[i] > 4096 ? RTT : 0) + 2 * LH_NS_PER_MS);
        }
        memcpy(bed.before, bed.data, sizes[i]);
    }
    close_bed(&bed);
}

static void forge(struct bed *bed, uint32_t access, uint64_t bytes)
{
    bed->key.bytes[9] = (uint8_t)access;
    for (int i = 0; i < 6; i++)
        bed->key.bytes[10 + i] = (uint8_t)(bytes >> (40 - 8 * i));
}

/* Refused by the side that has the memory, for the key claims to permit it. */
static void expect_refused(struct bed *bed, bool writes, uint64_t offset, size_t bytes, int error)
{
    struct lh_request *request;
    uint64_t refused = stats_of(bed, 1).operations_refused;
    assert_int_equal(start(bed, writes, offset, bytes, false, &request), 0);
    assert_int_equal(finish(bed, request).error, error);
    assert_memory_equal(bed->memory, bed->before, REGION);
    assert_int_equal(stats_of(bed, 1).operations_refused, refused + 1);
}

static void what_is_not_granted(void **state)
{
    (void)state;
    struct bed bed = open_bed(LOSSY, "sr-nack");
    struct lh_request *request;
    /* The key says it itself. */
    assert_int_equal(start(&bed, true, REGION - 9, 10, false, &request), -LH_ERANGE);
    assert_int_equal(start(&bed, true, UINT64_MAX - 4, 10, false, &request), -LH_ERANGE);
    assert_int_equal(start(&bed, false, REGION + 1, 0, false, &request), -LH_ERANGE);
    assert_int_equal(start(&bed, false, 0, 1, true, &request), -LH_EINVAL);
    write_ok(&bed, REGION - 10, 10);
    for (int i = 0; i < 2; i++) { /* write, read; with few bytes and many */
        const size_t bytes = 20000;
        forge(&bed, BOTH, (UINT64_C(1) << 48) - 1);
        expect_refused(&bed, i, REGION - 9, 10, -LH_ERANGE);
        expect_refused(&bed, i, REGION - bytes + 1, bytes, -LH_ERANGE);
        expect_refused(&bed, i, (UINT64_C(1) << 47), bytes, -LH_ERANGE);
        for (int bit = 0; bit < 64; bit += 9) { /* keys never handed out */
            bed.key.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_refused(&bed, i, 0, bit % 2 ? 10 : bytes, -LH_EKEY);
            bed.key.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        lh_revoke(bed.region);
        expect_refused(&bed, i, 0, bytes, -LH_EKEY);
        expose(&bed, i ? LH_ACCESS_READ : LH_ACCESS_WRITE, false);
        assert_int_equal(start(&bed, i, 0, 1, false, &request), -LH_EKEY);
        forge(&bed, BOTH, REGION);
        expect_refused(&bed, i, 0, 10, -LH_EKEY);
        expect_refused(&bed, i, 0, bytes, -LH_EKEY);
        lh_revoke(bed.region);
        expose(&bed, BOTH, i);
        write_ok(&bed, 5, bytes);
        if (!i) {
            assert_int_equal(start(&bed, true, 0, 10, true, &request), 0);
            assert_int_equal(finish(&bed, request).error, -LH_EUNSUPPORTED);
        }
    }
    close_bed(&bed);
}

/* The peer has exposed nothing, so its side of the inner connection is not even open; and does so later. */
static void nothing_exposed(void **state)
{
    (void)state;
    struct bed bed = open_bed(LOSSY, "sr-nack");
    const struct lh_key good = bed.key;
    const struct lh_part part = {.address = bed.data, .bytes = 10};
    const struct lh_onesided wanted = {.parts = &part, .count = 1, .key = good};
    struct connection_pair other;
    struct lh_request *request;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(&other, "other", 6, LOSSY, &attr, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lh_write(other.ends[0], &wanted, &request), 0);
        assert_int_equal(connection_pair_finish(&other, request).error, -LH_EKEY);
    }
    struct bed second = {.pair = other, .memory = bed.memory, .data = bed.data};
    expose(&second, BOTH, false);
    struct lh_request *mine;
    assert_int_equal(start(&second, true, 7, 10, false, &mine), 0);
    assert_int_equal(connection_pair_finish(&second.pair, mine).error, 0);
    memcpy(bed.before + 7, bed.data, 10);
    connection_pair_close(&second.pair); /* revokes */
    close_bed(&bed);
}

/* Canceled at any moment: it ends at once, and the next operation is as good as ever. */
static void canceled(void **state)
{
    (void)state;
    struct bed bed = open_bed(LINK, "sr-nack");
    const lh_time moments[] = {0, RTT / 4, RTT, RTT + RTT / 4, 2 * RTT};
    for (int i = 0; i < 20; i++) {
        const size_t bytes = i % 2 ? 64 : 200000;
        struct lh_request *request = begin(&bed, i % 4 < 2, 0, bytes);
        connection_pair_run(&bed.pair, moments[i / 4]);
        lh_cancel(request);
        struct lh_result result;
        assert_int_equal(lh_test(request, &result), 1);
        assert_true(result.error == 0 || result.error == -LH_ECANCELED);
        lh_request_free(request);
        write_ok(&bed, 0, 200000); /* over what may have been placed */
        read_ok(&bed, 0, 1000);
    }
    assert_int_equal(lh_connection_error(bed.pair.ends[0]), 0);
    close_bed(&bed);
}

/* Revoked while the peer writes or reads: from then on the memory is its owner's. */
static void revoked_in_progress(void **state)
{
    (void)state;
    struct bed bed = open_bed("rtt=2ms,rate=100Mbit,loss=0.02", "ec:mds,k=4,m=2");
    write_ok(&bed, 0, 64);
    for (int i = 0; i < 6; i++) {
        struct lh_request *request = begin(&bed, i % 2, 0, REGION);
        connection_pair_run(&bed.pair, (lh_time)(3 + i * 4) * LH_NS_PER_MS);
        lh_revoke(bed.region);
        memcpy(bed.before, bed.memory, REGION); /* a part of it may be there */
        assert_int_equal(finish(&bed, request).error, -LH_EKEY);
        assert_memory_equal(bed.memory, bed.before, REGION);
        expose(&bed, BOTH, true);
        write_ok(&bed, 3, 64);
    }
    close_bed(&bed);
}

/* ---- decoders that wait for the test ----------------------------------------------------------------- */

static sem_t gate; /* 1: open */

static uint32_t decode_behind_gate(const struct lh_coding *coding, uint32_t group, const uint8_t *chunks,
                                   const uint8_t *extra)
{
    while (sem_wait(&gate) != 0)
        continue; /* a signal */
    sem_post(&gate);
    return parity_scheme.coding->decode(coding, group, chunks, extra);
}

static uint32_t messages_decoding(const struct lh_connection *c)
{
    uint32_t count = 0;
    for (uint32_t n = c->rx.segment_oldest; c->rx.segments && n != c->rx.segment_next; n++)
        count += rx_segment_at(&c->rx, n)->coded.jobs > 0; /* a message has one segment here */
    return count;
}

/* Several writes into the region have all their packets, and are being decoded: they are done by the time
 * that it is revoked. */
static void revoked_while_decoding(void **state)
{
    (void)state;
    enum { COUNT = 8, BYTES = 8000 };
    struct lh_scheme_coding coding = *parity_scheme.coding;
    struct lh_scheme scheme = parity_scheme;
    struct lh_request *requests[COUNT];
    struct lh_attr attr;
    coding.decode = decode_behind_gate;
    scheme.coding = &coding;
    connection_pair_attr(&attr);
    attr.scheme = &scheme;
    attr.reliability = "parity";
    sem_init(&gate, 0, 0);
    struct bed bed = open_bed_with("rtt=20ms,rate=1Gbit,loss=0.1", &attr);
    write_ok(&bed, 0, 64);
    bed.pair.ends[1]->engine->coders.count = 1; /* the step finds what they have done */
    for (uint64_t i = 0; i < COUNT; i++)
        requests[i] = begin(&bed, true, i * BYTES, BYTES);
    const struct lh_connection *sub = bed.pair.ends[1]->onesided_parent.sub;
    for (uint32_t i = 0; i < 100 && messages_decoding(sub) < 2; i++)
        connection_pair_run(&bed.pair, LH_NS_PER_MS);
    assert_true(messages_decoding(sub) >= 2);
    sem_post(&gate);
    lh_revoke(bed.region);
    memcpy(bed.before, bed.memory, REGION);
    uint32_t whole = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        struct lh_result result = finish(&bed, requests[i]);
        assert_true(result.error == 0 || result.error == -LH_EKEY);
        if (result.error)
            continue;
        whole++;
        assert_memory_equal(bed.memory + i * BYTES, bed.data, BYTES);
    }
    assert_true(whole >= 2);
    expose(&bed, BOTH, true);
    close_bed(&bed);
}

/* Nobody polls the queue of a region: writes with notification wait for that, and none is lost. */
static void queue_that_is_not_polled(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    struct bed bed = open_bed(LINK, "sr-nack");
    struct lh_request *requests[COUNT];
    struct lh_completion entry;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(start(&bed, true, 0, 64, true, &requests[i]), 0);
    connection_pair_run(&bed.pair, LH_NS_PER_S);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(lh_test(requests[i], NULL), i < 4);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(completion_ring_take(&bed.queue->ring, &entry, 1), 1);
        connection_pair_run(&bed.pair, LH_NS_PER_S);
    }
    assert_int_equal(completion_ring_take(&bed.queue->ring, &entry, 1), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(finish(&bed, requests[i]).error, 0);
    memcpy(bed.before, bed.data, 64);
    close_bed(&bed);
}

static int expose_with(struct bed *bed, struct lh_completion_queue *queue, struct lh_region **region)
{
    const struct lh_part part = {.address = bed->memory, .bytes = REGION};
    return lh_expose(bed->pair.ends[1], &part, BOTH, queue, 0, region);
}

/* Each region has a place in its queue, and no more regions get one than it has. */
static void queue_full_of_regions(void **state)
{
    (void)state;
    enum { CAPACITY = 3 };
    struct bed bed = open_bed(LINK, "sr-nack");
    struct lh_completion_queue *queue;
    struct lh_region *regions[CAPACITY + 1];
    assert_int_equal(lh_completion_queue_create(bed.pair.ends[1]->engine, CAPACITY, &queue), 0);
    for (uint32_t i = 0; i < CAPACITY; i++)
        assert_int_equal(expose_with(&bed, queue, &regions[i]), 0);
    assert_int_equal(expose_with(&bed, queue, &regions[CAPACITY]), -LH_EAGAIN);
    assert_int_equal(lh_completion_queue_destroy(queue), -LH_ESTATE);
    for (uint32_t i = 0; i < CAPACITY; i++)
        lh_revoke(regions[i]);
    assert_int_equal(lh_completion_queue_destroy(queue), 0);
    close_bed(&bed);
}

/* Requests that are pending hold up no notification: they may be pending for ever. */
static void queue_full_of_requests(void **state)
{
    (void)state;
    struct bed bed = open_bed(LINK, "sr-nack");
    struct lh_request *receives[8];
    struct lh_completion entry;
    uint8_t byte;
    uint32_t pending = 0;
    while (lh_post_recv(bed.pair.ends[1], &byte, 1, NULL, bed.queue, 0, &receives[pending]) == 0)
        pending++;
    assert_int_equal(pending, bed.queue->ring.capacity - 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct lh_request *request;
        assert_int_equal(start(&bed, true, 0, 64, true, &request), 0);
        assert_int_equal(finish(&bed, request).error, 0);
        assert_int_equal(completion_ring_take(&bed.queue->ring, &entry, 1), 1);
        assert_int_equal(entry.operation, LH_OPERATION_NOTIFY);
    }
    for (uint32_t i = 0; i < pending; i++) {
        lh_cancel(receives[i]);
        assert_int_equal(finish(&bed, receives[i]).error, -LH_ECANCELED);
        assert_int_equal(completion_ring_take(&bed.queue->ring, &entry, 1), 1);
    }
    memcpy(bed.before, bed.data, 64);
    close_bed(&bed);
}

/* More than both sides may have in progress, in both directions at once. */
static void many_in_both_directions(void **state)
{
    (void)state;
    enum { COUNT = 1000, BYTES = 64 };
    struct bed bed = open_bed("rtt=1ms,rate=1Gbit,loss=0.01", "sr-nack");
    static struct lh_request *requests[2][COUNT];
    static uint8_t got[2][COUNT][BYTES];
    struct lh_region *other;
    const struct lh_part own = {.address = bed.data, .bytes = REGION};
    assert_int_equal(lh_expose(bed.pair.ends[0], &own, LH_ACCESS_READ, NULL, 0, &other), 0);
    struct lh_onesided wanted = {.count = 1};
    for (int i = 0; i < COUNT; i++) {
        for (int end = 0; end < 2; end++) {
            const struct lh_part part = {.address = got[end][i], .bytes = BYTES};
            lh_region_key(end ? other : bed.region, &wanted.key);
            wanted.parts = &part;
            wanted.offset = (uint64_t)i * 100;
            assert_int_equal(lh_read(bed.pair.ends[end], &wanted, &requests[end][i]), 0);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        for (int end = 0; end < 2; end++) {
            assert_int_equal(finish(&bed, requests[end][i]).error, 0);
            assert_memory_equal(got[end][i], (end ? bed.data : bed.before) + i * 100, BYTES);
        }
    }
    lh_revoke(other);
    close_bed(&bed);
}

/* A header as a hostile peer writes it: as a message of its inner connection. */
static void send_header(struct bed *bed, const void *data, size_t bytes)
{
    struct lh_request *request;
    assert_int_equal(lh_send(bed->pair.ends[0]->onesided_parent.sub, data, bytes, NULL, &request), 0);
    connection_pair_run(&bed->pair, 5 * RTT);
    lh_request_free(request);
}

/* What breaks the protocol ends one-sided operations of that connection, and nothing else. */
static void malformed_headers(void **state)
{
    (void)state;
    const uint8_t unasked[] = {3, 0, 0, 0, 0, 0, 0, 0};
    const uint8_t garbage[5000] = {9};
    const size_t sizes[] = {8, 0, 1, 60, 5000};
    for (int i = 0; i < 5; i++) {
        struct bed bed = open_bed(LINK, "sr-nack");
        struct lh_connection *const *ends = bed.pair.ends;
        struct lh_request *request;
        write_ok(&bed, 0, 64);
        send_header(&bed, i == 0 ? unasked : garbage, sizes[i]);
        assert_int_equal(lh_connection_error(ends[1]->onesided_parent.sub), -LH_EPROTOCOL);
        assert_true(start(&bed, true, 0, 10, false, &request) != 0);
        for (int end = 0; end < 2; end++)
            assert_int_equal(lh_connection_error(ends[end]), 0);
        connection_pair_transfer(&bed.pair, 0, 5000, 5000);
        close_bed(&bed);
    }
}

/* Blobs that are none, and messages that ask for ever. */
static void malformed_exchange(void **state)
{
    (void)state;
    struct bed bed = open_bed(LINK, "sr-nack");
    struct lh_stats before = stats_of(&bed, 1);
    const uint8_t messages[][16] = {{8}, {8, 8}, {8, 0, 1}, {8, 1, 0, 0, 0, 0, 0, 0, 'L', 'H'}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(lh_sdr_message_send(bed.pair.ends[0]->qp, messages[i], i == 0 ? 7 : 12), 0);
    connection_pair_run(&bed.pair, 5 * RTT);
    assert_int_equal(stats_of(&bed, 1).bad_control, before.bad_control + 4);
    write_ok(&bed, 0, 64);
    close_bed(&bed);
}

/* A blob that is none came, and was kept, before this side opened its own inner connection. */
static void malformed_blob_that_was_kept(void **state)
{
    (void)state;
    const uint8_t message[12] = {8, 1, 0, 0, 0, 0, 0, 0, 'L', 'H', 9, 9};
    struct bed bed = {.memory = connection_pair_bytes(REGION, 1), .data = connection_pair_bytes(REGION, 2)};
    struct lh_connection **ends = bed.pair.ends;
    struct lh_region *region;
    struct lh_request *request;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(&bed.pair, "onesided", 5, LINK, &attr, NULL);
    assert_int_equal(lh_sdr_message_send(ends[0]->qp, message, sizeof message), 0);
    connection_pair_run(&bed.pair, 5 * RTT);
    assert_non_null(ends[1]->onesided_parent.peer_blob);
    assert_true(expose_with(&bed, NULL, &region) < 0);
    assert_non_null(strstr(lh_last_error(), "one-sided operations have ended"));
    const struct lh_part part = {.address = bed.data, .bytes = 10};
    struct lh_onesided wanted = {.parts = &part, .count = 1};
    assert_true(lh_write(ends[1], &wanted, &request) < 0);
    assert_non_null(strstr(lh_last_error(), "one-sided operations have ended"));
    for (int end = 0; end < 2; end++)
        assert_int_equal(lh_connection_error(ends[end]), 0);
    connection_pair_transfer(&bed.pair, 0, 5000, 5000);
    connection_pair_close(&bed.pair);
    free(bed.memory);
    free(bed.data);
}

/* The connection ends: so do operations, each with its reason. */
static void closed(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct bed bed = open_bed(LINK, "sr-nack");
        lh_revoke(bed.region);
        assert_int_equal(lh_completion_queue_destroy(bed.queue), 0); /* its engine ends with end 1 */
        bed.queue = NULL;
        expose(&bed, BOTH, false);
        write_ok(&bed, 0, 64);
        struct lh_request *write = begin(&bed, true, 0, REGION), *read = begin(&bed, false, 0, REGION);
        connection_pair_run(&bed.pair, (lh_time)i * RTT / 4);
        int closing = i % 2;
        lh_close(bed.pair.ends[closing]);
        bed.pair.ends[closing] = NULL;
        if (closing)
            memcpy(bed.before, bed.memory, REGION);
        assert_int_equal(finish(&bed, write).error, -LH_ECLOSED);
        assert_int_equal(finish(&bed, read).error, -LH_ECLOSED);
        connection_pair_run(&bed.pair, LH_NS_PER_S);
        if (!closing)
            memcpy(bed.before, bed.memory, REGION);
        close_bed(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads),
        cmocka_unit_test(notifications),
        cmocka_unit_test(beside_messages),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(what_is_not_granted),
        cmocka_unit_test(nothing_exposed),
        cmocka_unit_test(canceled),
        cmocka_unit_test(revoked_in_progress),
        cmocka_unit_test(revoked_while_decoding),
        cmocka_unit_test(queue_that_is_not_polled),
        cmocka_unit_test(queue_full_of_regions),
        cmocka_unit_test(queue_full_of_requests),
        cmocka_unit_test(many_in_both_directions),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(malformed_exchange),
        cmocka_unit_test(malformed_blob_that_was_kept),
        cmocka_unit_test(closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
