/*
 * test_onesided_udp.c - one-sided operations over real sockets with real workers, from several threads at
 * once, by both kinds of scheme. For the thread sanitizer, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/engine.h>
#include <longhaul/onesided.h>
#include <longhaul/queue.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/sanitized.h"

#define THREADS    3u
#define OPERATIONS (SANITIZED ? 20u : 60u) /* of each thread */
#define PLACE      (300u * 1024)           /* of the region, for each thread */
#define TIMEOUT    (60 * LH_NS_PER_S)

static struct lh_engine *engine;
static struct lh_completion_queue *queue;
static struct lh_connection *ends[2];
static struct lh_region *region;
static struct lh_key key;
static uint8_t memory[THREADS + 1][PLACE]; /* the last one is nobody's */

/* Threads may not end a cmocka test, so they count what went wrong. */
static _Atomic uint32_t wrong;

static void must(int code, const char *what)
{
    if (code < 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void open_engine(void)
{
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.channels = 2;
    attr.workers = 2;
    must(lh_engine_create(&attr, &engine), "lh_engine_create");
    must(lh_completion_queue_create(engine, 64, &queue), "lh_completion_queue_create");
}

static void open_ends(const char *reliability)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.slot_bytes = 65536;
    attr.slots = 16;
    attr.reliability = reliability;
    must(lh_link_parse("loss=0.01", &attr.link), "lh_link_parse");
    for (int i = 0; i < 2; i++)
        must(lh_open(&attr, &ends[i]), "lh_open");
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[1 - i], blob, &bytes), "lh_blob");
        must(lh_attach(ends[i], blob, bytes), "lh_attach");
    }
}

static void expose(void)
{
    const struct lh_part part = {.address = memory, .bytes = THREADS * PLACE};
    must(lh_expose(ends[1], &part, LH_ACCESS_WRITE | LH_ACCESS_READ, queue, 5, &region), "lh_expose");
    lh_region_key(region, &key);
}

static void finish(int started, struct lh_request *request)
{
    struct lh_result result;
    if (started != 0) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    int error = lh_wait(request, TIMEOUT, &result);
    lh_request_free(request);
    atomic_fetch_add(&wrong, error != 0 || result.error != 0);
}

/* Writes its part of the region again and again, and reads it back. */
static void *write_and_read(void *argument)
{
    static uint8_t data[THREADS][2][PLACE];
    uint32_t thread = *(const uint32_t *)argument;
    const size_t sizes[] = {64, 4096, 5000, PLACE};
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        struct lh_request *request;
        size_t bytes = sizes[i % 4];
        struct lh_part part = {.address = data[thread][0], .bytes = bytes};
        struct lh_onesided wanted = {.parts = &part,
                                     .count = 1,
                                     .key = key,
                                     .offset = thread * PLACE + PLACE - bytes,
                                     .notify = i % 3 == 0,
                                     .immediate = thread};
        memset(data[thread][0], (int)(i + thread), bytes);
        int error = lh_write(ends[0], &wanted, &request);
        finish(error, request);
        part.address = data[thread][1];
        wanted.notify = false;
        error = lh_read(ends[0], &wanted, &request);
        finish(error, request);
        atomic_fetch_add(&wrong, memcmp(data[thread][0], data[thread][1], bytes) != 0);
    }
    return NULL;
}

static void check_notifications(uint32_t expected)
{
    uint32_t counts[THREADS] = {0};
    struct lh_completion entry;
    for (uint32_t i = 0; i < expected; i++) {
        must(lh_queue_wait(queue, &entry, 1, TIMEOUT), "lh_queue_wait");
        assert_int_equal(entry.operation, LH_OPERATION_NOTIFY);
        assert_int_equal(entry.user, 5);
        assert_ptr_equal(entry.connection, ends[1]);
        counts[entry.result.tag]++;
    }
    assert_int_equal(lh_poll(queue, &entry, 1), 0);
    for (uint32_t t = 0; t < THREADS; t++)
        assert_int_equal(counts[t], expected / THREADS);
}

static void several_threads(const char *reliability)
{
    static const uint32_t numbers[THREADS] = {0, 1, 2};
    pthread_t threads[THREADS];
    open_engine();
    open_ends(reliability);
    expose();
    atomic_store(&wrong, 0);
    for (uint32_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, write_and_read, (void *)(uintptr_t)&numbers[t]);
    check_notifications(THREADS * ((OPERATIONS + 2) / 3));
    for (uint32_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    for (size_t i = 0; i < PLACE; i++)
        assert_int_equal(memory[THREADS][i], 0);
    lh_revoke(region);
    for (int i = 0; i < 2; i++)
        lh_close(ends[i]);
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(engine), "lh_engine_destroy");
}

static void selective_repeat(void **state)
{
    (void)state;
    several_threads("sr-nack");
}

static void erasure_coding(void **state)
{
    (void)state;
    several_threads("ec:mds,k=8,m=2");
}

/* While operations are in progress the region is revoked, and the connection closed, by either side. */
static void ends_in_progress(void **state)
{
    (void)state;
    static uint8_t data[8][PLACE];
    for (int i = 0; i < 6; i++) {
        struct lh_request *requests[8];
        struct lh_result result;
        open_engine();
        open_ends("sr-nack");
        expose();
        for (int k = 0; k < 8; k++) {
            const struct lh_part part = {.address = data[k], .bytes = PLACE};
            const struct lh_onesided wanted = {.parts = &part, .count = 1, .key = key};
            must(k % 2 ? lh_read(ends[0], &wanted, &requests[k]) : lh_write(ends[0], &wanted, &requests[k]),
                 "start");
        }
        must(lh_wait(requests[i % 3], TIMEOUT, NULL), "lh_wait");
        if (i % 2)
            lh_revoke(region);
        if (i >= 2)
            lh_close(ends[i % 2]);
        for (int k = 0; k < 8; k++) {
            must(lh_wait(requests[k], TIMEOUT, &result), "lh_wait");
            lh_request_free(requests[k]);
            assert_true(result.error == 0 || (i % 2 && result.error == -LH_EKEY) ||
                        (i >= 2 && result.error == -LH_ECLOSED));
        }
        if (i < 2)
            lh_close(ends[i % 2]);
        lh_close(ends[1 - i % 2]);
        must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
        must(lh_engine_destroy(engine), "lh_engine_destroy");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selective_repeat),
        cmocka_unit_test(erasure_coding),
        cmocka_unit_test(ends_in_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
