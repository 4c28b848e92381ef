/*
 * test_connection_threads.c - one connection used by many threads at once: for the thread sanitizer above
 * all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/parity_scheme.h"
#include "support/sanitized.h"

#define THREADS  3
#define MESSAGES (SANITIZED ? 30 : 60) /* of each thread */
#define ROOM     200000u
#define PATIENCE (120 * LH_NS_PER_S) /* only a hang reaches it */

/* Threads may not end a cmocka test, so they count what went wrong. */
static _Atomic uint32_t wrong;
static _Atomic uint32_t canceled;
static _Atomic uint32_t delivered;

static struct lh_connection *ends[2];

struct job {
    pthread_t thread;
    struct lh_connection *connection;
    uint64_t seed;
    bool sends;
    bool cancels;
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

/* scheme: one of a test's own, or NULL. reliability: NULL is that scheme, or the default. */
static void open_ends(const char *link, const struct lh_scheme *scheme, const char *reliability)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.channels = 2;
    attr.workers = 2;
    attr.scheme = scheme;
    attr.reliability = reliability;
    attr.coders = 2;
    attr.slot_bytes = 65536;
    must(lh_link_parse(link, &attr.link), "lh_link_parse");
    for (int i = 0; i < 2; i++)
        must(lh_open(&attr, &ends[i]), "lh_open");
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[1 - i], blob, &bytes), "lh_blob");
        must(lh_attach(ends[i], blob, bytes), "lh_attach");
    }
}

/* A message is the number from which its bytes follow, and those bytes. */
static size_t make_message(uint8_t *data, uint64_t number)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, number);
    size_t bytes = 8 + lh_prng_below(&prng, ROOM - 8);
    memcpy(data, &number, 8);
    for (size_t i = 8; i < bytes; i++)
        data[i] = (uint8_t)(number >> (i % 8 * 8)) ^ (uint8_t)i;
    return bytes;
}

static bool message_is_whole(const uint8_t *data, size_t bytes)
{
    uint8_t *expected = malloc(ROOM);
    uint64_t number;
    memcpy(&number, data, 8);
    bool whole = make_message(expected, number) == bytes && memcmp(expected, data, bytes) == 0;
    free(expected);
    return whole;
}

/* Waits in small pieces, as an application with other things to do. */
static void wait_long(struct lh_request *request, struct lh_prng *prng, struct lh_result *result)
{
    lh_time waited = 0;
    while (!lh_test(request, result) && waited < PATIENCE) {
        lh_time piece = lh_prng_below(prng, 20 * LH_NS_PER_MS);
        if (lh_wait(request, piece, result) == 0)
            return;
        waited += piece + 1;
    }
    if (waited >= PATIENCE)
        atomic_fetch_add(&wrong, 1);
}

static void *work(void *argument)
{
    const struct job *job = argument;
    struct lh_prng prng;
    lh_prng_seed(&prng, job->seed);
    uint8_t *data = malloc(ROOM);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct lh_request *request = NULL;
        struct lh_result result = {0};
        struct lh_stats stats;
        struct lh_scheme_report report;
        size_t bytes = job->sends ? make_message(data, job->seed << 32 | i) : ROOM;
        int error = job->sends ? lh_send(job->connection, data, bytes, NULL, &request)
                               : lh_recv(job->connection, data, bytes, NULL, &request);
        if (error != 0) {
            atomic_fetch_add(&wrong, 1);
            break;
        }
        if (job->cancels && lh_prng_chance(&prng, 0.2)) {
            lh_wait(request, lh_prng_below(&prng, 10 * LH_NS_PER_MS), NULL);
            lh_cancel(request);
        }
        wait_long(request, &prng, &result);
        if (result.error == -LH_ECANCELED)
            atomic_fetch_add(&canceled, 1);
        else if (result.error != 0 || (!job->sends && !message_is_whole(data, result.bytes)))
            atomic_fetch_add(&wrong, 1);
        else
            atomic_fetch_add(&delivered, 1);
        lh_request_free(request);
        lh_connection_stats(job->connection, &stats);
        lh_connection_scheme(job->connection, &report);
    }
    free(data);
    return NULL;
}

static void run_jobs(bool cancels)
{
    static struct job jobs[2][2][THREADS];
    for (int end = 0; end < 2; end++)
        for (int sends = 0; sends < 2; sends++)
            for (int i = 0; i < THREADS; i++) {
                struct job *job = &jobs[end][sends][i];
                *job = (struct job){.connection = ends[end],
                                    .seed = (uint64_t)(1 + end * 100 + sends * 10 + i),
                                    .sends = sends,
                                    .cancels = cancels};
                must(pthread_create(&job->thread, NULL, work, job), "pthread_create");
            }
    for (int end = 0; end < 2; end++)
        for (int sends = 0; sends < 2; sends++)
            for (int i = 0; i < THREADS; i++)
                pthread_join(jobs[end][sends][i].thread, NULL);
}

static void many_threads(const struct lh_scheme *scheme, const char *reliability)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        struct lh_stats stats;
        struct lh_scheme_report report;
        atomic_store(&delivered, 0);
        open_ends("rtt=2ms,loss=1e-2,reorder=1e-3,duplicate=1e-3", scheme, reliability);
        run_jobs(cancels);
        must(lh_connection_stats(ends[0], &stats), "lh_connection_stats");
        must(lh_connection_scheme(ends[0], &report), "lh_connection_scheme");
        bool automatic = reliability && strcmp(reliability, "auto") == 0;
        assert_int_equal(automatic, report.automatic && report.chunks_seen > 0);
        if (!automatic)
            assert_int_equal(scheme != NULL, stats.chunks_recovered > 0);
        lh_close(ends[0]);
        lh_close(ends[1]);
        assert_int_equal(atomic_load(&wrong), 0);
        if (!cancels)
            assert_int_equal(atomic_load(&delivered), 4 * THREADS * MESSAGES);
    }
    assert_true(atomic_load(&delivered) > 0 && atomic_load(&canceled) > 0);
}

static void many_threads_send_again(void **state)
{
    (void)state;
    many_threads(NULL, "sr-nack");
}

static void many_threads_code(void **state)
{
    (void)state;
    many_threads(&parity_scheme, NULL);
}

/* Schemes change while messages are in flight, and who asks about them reads what the worker writes. */
static void many_threads_choose(void **state)
{
    (void)state;
    many_threads(NULL, "auto");
}

static _Atomic uint32_t encodings;
static _Atomic bool is_over; /* the message that is encoded */

static void slow_encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    atomic_fetch_add(&encodings, 1);
    usleep(3000);
    if (atomic_load(&is_over))
        atomic_fetch_add(&wrong, 1);
    else
        parity_scheme.coding->encode(coding, group, first_row, rows);
}

/* Else all that was sent may arrive while the coders still wait for a CPU, and nothing is ever encoded. */
static void complete_after_encoding_began(void *state, const struct lh_receiver_view *view,
                                          struct lh_actions *actions)
{
    if (atomic_load(&encodings) > 0)
        parity_scheme.receiver_step(state, view, actions);
    else
        actions->next_ns = view->now + LH_NS_PER_MS;
}

/* What the coder has begun is waited for, the rest is dropped: the buffer is the caller's again. */
static void nothing_is_encoded_afterwards(void **state)
{
    (void)state;
    struct lh_scheme slow_scheme = parity_scheme;
    struct lh_scheme_coding slow_coding = *parity_scheme.coding;
    slow_coding.encode = slow_encode;
    slow_scheme.coding = &slow_coding;
    slow_scheme.receiver_step = complete_after_encoding_began;
    for (int i = 0; i < 6; i++) {
        static uint8_t buffer[ROOM];
        uint8_t *data = calloc(1, ROOM);
        struct lh_request *send;
        struct lh_request *recv;
        atomic_store(&is_over, false);
        atomic_store(&encodings, 0);
        open_ends("rtt=20ms", &slow_scheme, NULL);
        must(lh_recv(ends[1], buffer, ROOM, NULL, &recv), "lh_recv");
        must(lh_send(ends[0], data, ROOM, NULL, &send), "lh_send");
        for (int turns = 0; atomic_load(&encodings) == 0 && turns < 10000; turns++)
            usleep(1000);
        assert_true(atomic_load(&encodings) > 0);
        if (i % 2)
            lh_cancel(send);
        else
            must(lh_wait(send, PATIENCE, NULL), "lh_wait");
        atomic_store(&is_over, true);
        free(data);
        usleep(20000);
        lh_close(ends[0]);
        lh_close(ends[1]);
        lh_request_free(send);
        lh_request_free(recv);
        assert_int_equal(atomic_load(&wrong), 0);
    }
}

static void *wait_for_ever(void *argument)
{
    struct lh_result *result = malloc(sizeof *result);
    lh_wait(argument, LH_TIME_NEVER, result);
    return result;
}

/* An end says nothing, goodbye neither, to a peer that has not answered yet. */
static void await_peers(void)
{
    struct lh_path_view path = {0};
    for (int i = 0; i<2; i += path.rtt_ns> 0) { /* the test's time limit ends what hangs */
        must(lh_connection_path(ends[i], &path), "lh_connection_path");
        usleep(100);
    }
}

/* Requests outlive their connection: who waits for one is woken. */
static void close_wakes_who_waits(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        static uint8_t buffer[10];
        struct lh_request *request;
        pthread_t thread;
        void *result;
        open_ends("none", NULL, NULL);
        await_peers();
        must(lh_recv(ends[0], buffer, 10, NULL, &request), "lh_recv");
        must(pthread_create(&thread, NULL, wait_for_ever, request), "pthread_create");
        lh_close(ends[i % 2]); /* its own end, or the other one */
        pthread_join(thread, &result);
        assert_int_equal(((struct lh_result *)result)->error, -LH_ECLOSED);
        free(result);
        lh_request_free(request);
        lh_close(ends[1 - i % 2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_send_again), cmocka_unit_test(many_threads_code),
        cmocka_unit_test(many_threads_choose),     cmocka_unit_test(nothing_is_encoded_afterwards),
        cmocka_unit_test(close_wakes_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
