/*
 * test_listener_streams.c - connections between two engines that share a TCP connection: how a listener takes
 * them, with and without workers, and how it refuses them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/loopback_engine.h"
/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)

static struct lh_attr attr_on(struct lh_engine *engine)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.slot_bytes = 16384;
    attr.slots = 2;
    return attr;
}

struct meeting {
    struct lh_engine *clients;
    struct lh_listener *listener;
    char where[32];
    lh_time timeout_ns;
    struct lh_connection *ends[2];
    int error;
    char words[256];
    pthread_t thread;
};

static struct meeting meeting_of(struct lh_engine *clients, struct lh_listener *listener)
{
    struct meeting meeting = {.clients = clients, .listener = listener, .timeout_ns = PATIENCE_NS};
    snprintf(meeting.where, sizeof meeting.where, "127.0.0.1:%u", lh_listener_port(listener));
    return meeting;
}

static void *run(void *argument)
{
    struct meeting *meeting = argument;
    struct lh_attr attr = attr_on(meeting->clients);
    meeting->error = lh_connect(meeting->where, &attr, meeting->timeout_ns, &meeting->ends[0]);
    snprintf(meeting->words, sizeof meeting->words, "%s", lh_last_error());
    return NULL;
}

static void start(struct meeting *meeting)
{
    assert_int_equal(pthread_create(&meeting->thread, NULL, run, meeting), 0);
}

static void meet(struct meeting *meeting)
{
    start(meeting);
    assert_int_equal(lh_accept(meeting->listener, PATIENCE_NS, &meeting->ends[1]), 0);
    pthread_join(meeting->thread, NULL);
    assert_int_equal(meeting->error, 0);
}

static void part(struct meeting *meeting)
{
    lh_close(meeting->ends[0]);
    lh_close(meeting->ends[1]);
}

static void transfer(struct lh_connection *from, struct lh_connection *to, struct lh_engine *driven)
{
    struct lh_request *requests[2];
    struct lh_result result;
    uint8_t in = 0, out = 77;
    assert_int_equal(lh_recv(to, &in, 1, NULL, &requests[0]), 0);
    assert_int_equal(lh_send(from, &out, 1, NULL, &requests[1]), 0);
    for (int i = 0; i < 2; i++) {
        while (!lh_test(requests[i], &result)) {
            if (driven)
                assert_int_equal(lh_engine_progress(driven, NULL), 0);
            sched_yield();
        }
        assert_int_equal(result.error, 0);
        lh_request_free(requests[i]);
    }
    assert_int_equal(in, 77);
}

/* TCP sockets of this process that are connected: two for each connection, as both ends are here. */
static uint32_t tcp_sockets(void)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address, type_size = sizeof(int);
        int type = 0, fd = atoi(entry->d_name);
        count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
                 getpeername(fd, (struct sockaddr *)&address, &size) == 0 && address.ss_family == AF_INET;
    }
    closedir(folder);
    return count;
}

static struct lh_listener *listen_on(struct lh_engine *engine)
{
    struct lh_attr attr = attr_on(engine);
    struct lh_listener *listener;
    assert_int_equal(lh_listen("127.0.0.1:0", &attr, &listener), 0);
    return listener;
}

static void engines_share_a_tcp_connection(void **state)
{
    (void)state;
    struct lh_engine *clients = loopback_engine(1, 1), *servers = loopback_engine(1, 1);
    struct lh_listener *listener = listen_on(servers);
    struct meeting meetings[3];
    for (int i = 0; i < 3; i++) {
        meetings[i] = meeting_of(clients, listener);
        meet(&meetings[i]);
        assert_int_equal(tcp_sockets(), 2);
    }
    for (int i = 0; i < 3; i++)
        transfer(meetings[i].ends[i & 1], meetings[i].ends[!(i & 1)], NULL);
    part(&meetings[0]);
    assert_int_equal(tcp_sockets(), 2); /* of the others */
    transfer(meetings[1].ends[0], meetings[1].ends[1], NULL);
    meet(&meetings[0]);
    assert_int_equal(tcp_sockets(), 2);
    for (int i = 0; i < 3; i++)
        part(&meetings[i]);
    assert_int_equal(tcp_sockets(), 0);
    lh_listener_close(listener);
    assert_int_equal(lh_engine_destroy(servers), 0);
    assert_int_equal(lh_engine_destroy(clients), 0);
}

/* Without an engine at either end each has its own. */
static void connections_of_their_own(void **state)
{
    (void)state;
    struct lh_engine *engine = loopback_engine(1, 1);
    for (int with_engine = 0; with_engine < 2; with_engine++) {
        struct lh_listener *listener = listen_on(with_engine ? engine : NULL);
        struct meeting meetings[2];
        for (uint32_t i = 0; i < 2; i++) {
            meetings[i] = meeting_of(with_engine ? NULL : engine, listener);
            meet(&meetings[i]);
            assert_int_equal(tcp_sockets(), 2 * (i + 1));
        }
        for (int i = 0; i < 2; i++)
            part(&meetings[i]);
        lh_listener_close(listener);
    }
    assert_int_equal(lh_engine_destroy(engine), 0);
}

/* lh_accept() makes the progress that brings streams. */
static void an_engine_without_workers(void **state)
{
    (void)state;
    struct lh_engine *clients = loopback_engine(1, 1), *servers = loopback_engine(1, LH_NO_WORKERS);
    struct lh_listener *listener = listen_on(servers);
    struct meeting meetings[3];
    for (int i = 0; i < 3; i++) {
        meetings[i] = meeting_of(clients, listener);
        meet(&meetings[i]);
        assert_int_equal(tcp_sockets(), 2);
        transfer(meetings[i].ends[1], meetings[i].ends[0], servers);
    }
    for (int i = 0; i < 3; i++)
        part(&meetings[i]);
    lh_listener_close(listener);
    assert_int_equal(lh_engine_destroy(servers), 0);
    assert_int_equal(lh_engine_destroy(clients), 0);
}

/* A stream waits like any client, until its deadline; the other connection goes on. */
static void a_stream_that_is_not_accepted(void **state)
{
    (void)state;
    char words[64];
    struct lh_engine *clients = loopback_engine(1, 1), *servers = loopback_engine(1, 1);
    struct lh_listener *listener = listen_on(servers);
    struct meeting first = meeting_of(clients, listener), second = first;
    meet(&first);
    second.timeout_ns = LH_NS_PER_S / 5;
    start(&second);
    pthread_join(second.thread, NULL);
    assert_int_equal(second.error, -LH_ETIMEDOUT);
    snprintf(words, sizeof words, "%s did not answer in time", second.where);
    assert_string_equal(second.words, words);
    assert_int_equal(tcp_sockets(), 2);
    transfer(first.ends[0], first.ends[1], NULL);
    second.timeout_ns = PATIENCE_NS;
    meet(&second);
    transfer(second.ends[0], second.ends[1], NULL);
    part(&first);
    part(&second);
    lh_listener_close(listener);
    assert_int_equal(lh_engine_destroy(servers), 0);
    assert_int_equal(lh_engine_destroy(clients), 0);
}

/* A listener that closes refuses what waits there; no other one is at its port. */
static void a_listener_that_closes(void **state)
{
    (void)state;
    struct lh_engine *clients = loopback_engine(1, 1), *servers = loopback_engine(1, 1);
    struct lh_listener *listener = listen_on(servers);
    struct meeting first = meeting_of(clients, listener), second = first, third;
    char words[128];
    meet(&first);
    start(&second);
    usleep(50000); /* mostly it waits by then; its result is the same if it does not */
    lh_listener_close(listener);
    pthread_join(second.thread, NULL);
    assert_int_equal(second.error == -LH_EPEER || second.error == -LH_EHANDSHAKE, 1);
    transfer(first.ends[0], first.ends[1], NULL); /* it goes on */
    third = second;
    start(&third);
    pthread_join(third.thread, NULL);
    assert_int_equal(third.error, -LH_EPEER);
    snprintf(words, sizeof words, "%s: Connection refused: is the remote side listening there?",
             third.where);
    assert_string_equal(third.words, words);
    part(&first);
    assert_int_equal(lh_engine_destroy(servers), 0);
    assert_int_equal(lh_engine_destroy(clients), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_share_a_tcp_connection), cmocka_unit_test(connections_of_their_own),
        cmocka_unit_test(an_engine_without_workers),      cmocka_unit_test(a_stream_that_is_not_accepted),
        cmocka_unit_test(a_listener_that_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
