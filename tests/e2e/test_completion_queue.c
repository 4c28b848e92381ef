/*
 * test_completion_queue.c - completion queues over real sockets with real workers: an event loop, waiting
 * threads, and queues that end as early as they may. For the thread sanitizer, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/sanitized.h"

#define PEERS    4u
#define MESSAGES (SANITIZED ? 40u : 200u) /* of each connection */
#define BYTES    3000u
#define DEPTH    8u /* messages of a connection at once */
#define THREADS  3u
#define CAPACITY (2 * PEERS * DEPTH + THREADS) /* both ends complete into the same queue; stops */
#define STOP     UINT64_MAX

static struct lh_engine *engine;
static struct lh_completion_queue *queue;
static struct lh_connection *ends[PEERS][2];
static uint8_t buffers[PEERS][DEPTH][BYTES];
static uint8_t data[PEERS][BYTES];

/* Threads may not end a cmocka test, so they count what went wrong. */
static _Atomic uint32_t wrong;
static _Atomic uint32_t done;
static _Atomic uint32_t posted[PEERS];
static _Atomic uint32_t halves[PEERS][DEPTH]; /* entries of the message at this place: one of each end */
static struct lh_request *stops[THREADS];

static void must(int code, const char *what)
{
    if (code < 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void open_engine(uint32_t workers, lh_time spin_ns)
{
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.channels = workers == LH_NO_WORKERS ? 1 : workers;
    attr.workers = workers;
    attr.spin_ns = spin_ns;
    must(lh_engine_create(&attr, &engine), "lh_engine_create");
}

static void open_ends(uint32_t peer)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.slot_bytes = 65536;
    attr.slots = 16;
    for (int i = 0; i < 2; i++)
        must(lh_open(&attr, &ends[peer][i]), "lh_open");
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[peer][1 - i], blob, &bytes), "lh_blob");
        must(lh_attach(ends[peer][i], blob, bytes), "lh_attach");
    }
}

static int setup_with(uint32_t workers, lh_time spin_ns)
{
    open_engine(workers, spin_ns);
    must(lh_completion_queue_create(engine, CAPACITY, &queue), "lh_completion_queue_create");
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        open_ends(peer);
        memset(data[peer], (int)peer + 1, BYTES);
        atomic_store(&posted[peer], 0);
        for (uint32_t place = 0; place < DEPTH; place++)
            atomic_store(&halves[peer][place], 0);
    }
    atomic_store(&wrong, 0);
    atomic_store(&done, 0);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(2, 0);
}

/* Threads that wait spin, too. */
static int setup_spinning(void **state)
{
    (void)state;
    return setup_with(2, LH_NS_PER_MS);
}

static int setup_without_spin(void **state)
{
    (void)state;
    return setup_with(2, LH_NO_SPIN);
}

static int setup_without_workers(void **state)
{
    (void)state;
    return setup_with(LH_NO_WORKERS, 0);
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t peer = 0; peer < PEERS; peer++)
        for (int i = 0; i < 2; i++)
            lh_close(ends[peer][i]);
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(engine), "lh_engine_destroy");
    return 0;
}

/* ---- a stream of messages on each connection, driven by completions ---------------------------------- */

/* The next message of a connection, both its ends; the user value names the connection and the buffer. */
static void post_one(uint32_t peer, uint32_t place)
{
    uint64_t user = peer * DEPTH + place;
    if (atomic_fetch_add(&posted[peer], 1) >= MESSAGES)
        return;
    int error = lh_post_recv(ends[peer][1], buffers[peer][place], BYTES, NULL, queue, user, NULL);
    if (!error)
        error = lh_post_send(ends[peer][0], data[peer], BYTES, NULL, queue, user, NULL);
    if (error)
        atomic_fetch_add(&wrong, 1);
}

static void start_all(void)
{
    for (uint32_t peer = 0; peer < PEERS; peer++)
        for (uint32_t place = 0; place < DEPTH; place++)
            post_one(peer, place);
}

/* Whether it was the last one. */
static bool on_completion(const struct lh_completion *entry)
{
    uint32_t peer = (uint32_t)entry->user / DEPTH, place = (uint32_t)entry->user % DEPTH;
    bool recv = entry->operation == LH_OPERATION_RECV;
    if (entry->result.error || entry->result.bytes != BYTES || entry->connection != ends[peer][recv] ||
        entry->request || (recv && memcmp(buffers[peer][place], data[peer], BYTES) != 0))
        atomic_fetch_add(&wrong, 1);
    if (atomic_fetch_add(&halves[peer][place], 1) == 1) { /* two places in the queue are free */
        atomic_store(&halves[peer][place], 0);
        post_one(peer, place);
    }
    return atomic_fetch_add(&done, 1) == 2 * PEERS * MESSAGES - 1;
}

/* A loop as of a server: sleeps in epoll alone, without limit. */
static void event_loop(void **state)
{
    (void)state;
    struct epoll_event event = {.events = EPOLLIN};
    struct lh_completion entries[7];
    bool last = false;
    int epoll = epoll_create1(EPOLL_CLOEXEC), fd = lh_queue_fd(queue);
    must(fd, "lh_queue_fd");
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    start_all();
    while (!last) {
        int taken = lh_poll(queue, entries, 7);
        must(taken, "lh_poll");
        for (int i = 0; i < taken; i++)
            last |= on_completion(&entries[i]);
        if (taken == 0 && lh_queue_arm(queue) == 0)
            epoll_wait(epoll, &event, 1, -1);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(lh_queue_arm(queue), 0);
    assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0); /* nobody writes without an entry */
    close(epoll);
}

static void free_stops(void)
{
    for (uint32_t i = 0; i < THREADS; i++)
        lh_request_free(stops[i]);
}

/* Each thread takes one entry at a time, and one of the stops at the end. */
static void *wait_for_entries(void *argument)
{
    struct lh_completion entry;
    (void)argument;
    for (;;) {
        if (lh_queue_wait(queue, &entry, 1, LH_TIME_NEVER) != 1)
            atomic_fetch_add(&wrong, 1);
        if (entry.user == STOP)
            return NULL;
        if (on_completion(&entry))
            free_stops();
    }
}

static void run_threads(void *(*work)(void *), uint32_t count)
{
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) /* nobody sends to this end */
        must(lh_post_recv(ends[0][0], NULL, 0, NULL, queue, STOP, &stops[i]), "lh_post_recv");
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    start_all();
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(atomic_load(&done), 2 * PEERS * MESSAGES);
}

static void threads_wait(void **state)
{
    (void)state;
    run_threads(wait_for_entries, THREADS);
}

/* The only progress on an engine without workers. */
static void *poll_entries(void *argument)
{
    struct lh_completion entry;
    (void)argument;
    for (;;) {
        int taken = lh_poll(queue, &entry, 1);
        if (taken < 0)
            atomic_fetch_add(&wrong, 1);
        if (taken == 1 && entry.user == STOP)
            return NULL;
        if (taken == 1 && on_completion(&entry))
            free_stops();
    }
}

static void polls_alone_make_progress(void **state)
{
    (void)state;
    run_threads(poll_entries, 1);
}

static void threads_poll_and_make_progress(void **state)
{
    (void)state;
    run_threads(poll_entries, THREADS);
}

/* ---- a request and its entry ------------------------------------------------------------------------- */

/* Both are done at once, whichever is looked at first. */
static void entry_and_request_agree(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct lh_request *send, *recv;
        struct lh_completion entries[2];
        must(lh_post_recv(ends[0][1], buffers[0][0], BYTES, NULL, queue, 1, &recv), "lh_post_recv");
        must(lh_post_send(ends[0][0], data[0], BYTES, NULL, queue, 2, &send), "lh_post_send");
        if (i % 2) {
            while (!lh_test(send, NULL) || !lh_test(recv, NULL))
                continue;
            assert_int_equal(lh_poll(queue, entries, 2), 2);
        } else {
            for (int taken = 0; taken < 2;) {
                int more = lh_poll(queue, entries + taken, 1);
                must(more, "lh_poll");
                assert_true(more == 0 || lh_test(entries[taken].request, NULL));
                taken += more;
            }
        }
        assert_int_equal(entries[0].user + entries[1].user, 3);
        lh_request_free(send);
        lh_request_free(recv);
    }
}

/* A queue may go as soon as its last entry was polled, while the worker that added it is about to leave. */
static void destroyed_at_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct lh_completion_queue *brief;
        struct lh_completion entry;
        struct lh_request *send;
        must(lh_completion_queue_create(engine, 1, &brief), "lh_completion_queue_create");
        must(lh_send(ends[1][1], data[1], BYTES, NULL, &send), "lh_send");
        must(lh_post_recv(ends[1][0], buffers[1][0], BYTES, NULL, brief, i, NULL), "lh_post_recv");
        if (i % 2)
            must(lh_queue_wait(brief, &entry, 1, LH_TIME_NEVER), "lh_queue_wait");
        else
            while (lh_poll(brief, &entry, 1) == 0)
                continue;
        must(lh_completion_queue_destroy(brief), "lh_completion_queue_destroy");
        assert_int_equal(entry.user, i);
        must(lh_wait(send, LH_TIME_NEVER, NULL), "lh_wait");
        lh_request_free(send);
    }
}

static void waits_in_vain(void **state)
{
    (void)state;
    struct lh_completion entry;
    assert_int_equal(lh_queue_wait(queue, &entry, 1, LH_NS_PER_MS), -LH_ETIMEDOUT);
    assert_int_equal(lh_queue_wait(queue, &entry, 0, LH_NS_PER_MS), -LH_EINVAL);
    assert_int_equal(lh_poll(queue, &entry, 1), 0);
}

#define LONG_BYTES ((size_t)5 << 20)
#define GAP        100u

/* A header and a long part; into 16 parts with gaps between, the last of which is longer than needed. */
static void post_in_parts(struct lh_connection *const pair[2], const uint8_t *sent, uint8_t *area,
                          uint64_t tag)
{
    static const char header[40] = "header";
    const size_t part_bytes = LONG_BYTES / LH_PARTS_MAX;
    const struct lh_part from[] = {{(void *)(uintptr_t)header, sizeof header, NULL},
                                   {(void *)(uintptr_t)sent, LONG_BYTES, NULL}};
    struct lh_part to[LH_PARTS_MAX];
    for (uint32_t i = 0; i < LH_PARTS_MAX; i++)
        to[i] = (struct lh_part){area + i * (part_bytes + GAP), part_bytes, NULL};
    to[LH_PARTS_MAX - 1].bytes += GAP;
    const struct lh_message recv = {.parts = to, .count = LH_PARTS_MAX, .queue = queue, .user = 1};
    const struct lh_message send = {.parts = from, .count = 2, .tag = tag, .queue = queue, .user = 2};
    must(lh_recvmsg(pair[1], &recv, NULL), "lh_recvmsg");
    must(lh_sendmsg(pair[0], &send, NULL), "lh_sendmsg");
    memset(to, 0xFF, sizeof to);
}

static uint8_t *patterned(size_t bytes, uint32_t seed)
{
    uint8_t *made = malloc(bytes);
    assert_non_null(made);
    for (size_t i = 0; i < bytes; i++)
        made[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
    return made;
}

static void messages_in_parts(void **state)
{
    (void)state;
    const size_t part_bytes = LONG_BYTES / LH_PARTS_MAX;
    const size_t area_bytes = LH_PARTS_MAX * (part_bytes + GAP);
    uint8_t *sent = patterned(LONG_BYTES, 1);
    uint8_t *area = patterned(area_bytes, 2);
    uint8_t *before = patterned(area_bytes, 2);
    post_in_parts(ends[0], sent, area, UINT64_MAX);
    for (int taken = 0; taken < 2; taken++) {
        struct lh_completion entry;
        assert_int_equal(lh_queue_wait(queue, &entry, 1, LH_TIME_NEVER), 1);
        assert_int_equal(entry.user, entry.operation == LH_OPERATION_RECV ? 1 : 2);
        assert_int_equal(entry.result.error, 0);
        assert_int_equal(entry.result.bytes, LONG_BYTES + 40);
        assert_true(entry.result.tag == UINT64_MAX);
    }
    for (size_t i = 0; i < LONG_BYTES; i++) {
        size_t at = i + 40;
        size_t part = at / part_bytes < LH_PARTS_MAX ? at / part_bytes : LH_PARTS_MAX - 1;
        assert_int_equal(area[at + part * GAP], sent[i]);
    }
    assert_string_equal((char *)area, "header");
    for (size_t i = 0; i + 1 < LH_PARTS_MAX; i++)
        assert_memory_equal(area + (i + 1) * part_bytes + i * GAP, before + (i + 1) * part_bytes + i * GAP,
                            GAP);
    assert_memory_equal(area + area_bytes - GAP + 40, before + area_bytes - GAP + 40, GAP - 40);
    free(sent);
    free(area);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(event_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_wait, setup_spinning, teardown),
        cmocka_unit_test_setup_teardown(threads_wait, setup_without_spin, teardown),
        cmocka_unit_test_setup_teardown(polls_alone_make_progress, setup_without_workers, teardown),
        cmocka_unit_test_setup_teardown(threads_poll_and_make_progress, setup_without_workers, teardown),
        cmocka_unit_test_setup_teardown(entry_and_request_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(destroyed_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(destroyed_at_once, setup_spinning, teardown),
        cmocka_unit_test_setup_teardown(waits_in_vain, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_in_parts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
