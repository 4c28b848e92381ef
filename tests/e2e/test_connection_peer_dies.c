/*
 * test_connection_peer_dies.c - the other process is killed at a random moment: every request ends, soon.
 *
 * Each child is forked before this process has threads of its own (a connection's worker ends with it).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"

#define BYTES    (3u << 20)
#define DEPTH    8u
#define LIVES    12
#define PATIENCE (60 * LH_NS_PER_S) /* only a hang reaches it */
#define MS       LH_NS_PER_MS

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

/* ---- the child --------------------------------------------------------------------------------------- */

/* Sends and receives until it dies. */
static void traffic(struct lh_connection *connection)
{
    static uint8_t data[BYTES];
    static uint8_t buffer[BYTES];
    struct lh_request *send[DEPTH];
    struct lh_request *recv[DEPTH];
    for (uint32_t i = 0;; i++) {
        uint32_t slot = i % DEPTH;
        if (i >= DEPTH) {
            if (lh_wait(send[slot], PATIENCE, NULL) || lh_wait(recv[slot], PATIENCE, NULL))
                _exit(2);
            lh_request_free(send[slot]);
            lh_request_free(recv[slot]);
        }
        if (lh_send(connection, data, BYTES, NULL, &send[slot]) ||
            lh_recv(connection, buffer, BYTES, NULL, &recv[slot]))
            _exit(3); /* the parent gave up */
    }
}

static pid_t fork_child(int commands[2], int answers[2])
{
    assert_int_equal(pipe(commands), 0);
    assert_int_equal(pipe(answers), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    close(commands[child ? 0 : 1]);
    close(answers[child ? 1 : 0]);
    return child;
}

static void child_connects(int commands)
{
    struct lh_connection *connection;
    struct lh_attr attr;
    char where[64];
    if (read(commands, where, sizeof where) <= 0)
        _exit(1);
    lh_attr_init(&attr);
    if (lh_connect(where, &attr, PATIENCE, &connection)) {
        fprintf(stderr, "lh_connect: %s\n", lh_last_error());
        _exit(1);
    }
    traffic(connection);
}

static void child_attaches(int commands, int answers)
{
    struct lh_connection *connection;
    struct lh_attr attr;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    if (lh_open(&attr, &connection) || lh_blob(connection, blob, &bytes) ||
        write(answers, blob, bytes) != (ssize_t)bytes)
        _exit(1);
    ssize_t got = read(commands, blob, sizeof blob);
    if (got <= 0 || lh_attach(connection, blob, (size_t)got))
        _exit(1);
    traffic(connection);
}

/* ---- the parent -------------------------------------------------------------------------------------- */

static lh_time now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

static void pause_ns(lh_time span)
{
    struct timespec pause = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    nanosleep(&pause, NULL);
}

static void end_child(pid_t child, int signal_number)
{
    kill(child, signal_number);
    if (signal_number == SIGKILL)
        waitpid(child, NULL, 0);
}

/* Traffic for a while, then the peer is gone. Returns how long it took until everything had ended. */
static lh_time live_and_die(struct lh_connection *connection, pid_t child, lh_time at, int signal_number)
{
    static uint8_t data[BYTES];
    static uint8_t buffer[BYTES];
    struct lh_request *requests[2 * DEPTH];
    for (uint32_t i = 0; i < DEPTH; i++) {
        must(lh_send(connection, data, BYTES, NULL, &requests[2 * i]), "lh_send");
        must(lh_recv(connection, buffer, BYTES, NULL, &requests[2 * i + 1]), "lh_recv");
    }
    /* The peer has read all of its handshake by then: where a process is killed with bytes unread, Linux
     * resets its TCP connection, which says nothing of the peer (a NAT does so, too). */
    struct lh_result first;
    must(lh_wait(requests[1], PATIENCE, &first), "lh_wait");
    assert_int_equal(first.error, 0);
    pause_ns(at);
    /* More than the peer can have taken by then. */
    struct lh_request *last[2] = {NULL, NULL};
    static uint8_t never[1];
    must(lh_recv(connection, never, 0, NULL, &last[0]), "lh_recv");
    end_child(child, signal_number);
    lh_time died = now_ns();
    struct lh_result result;
    /* However fast the peer was: this one waits when it is gone, and so its silence is noticed. */
    struct lh_request *unanswered = NULL;
    int posted = lh_recv(connection, never, 0, NULL, &unanswered);
    assert_true(posted == 0 || posted == -LH_EPEER);
    for (uint32_t i = 0; i < 2 * DEPTH; i++) {
        must(lh_wait(requests[i], PATIENCE, &result), "lh_wait");
        assert_true(result.error == 0 || result.error == -LH_EPEER);
        lh_request_free(requests[i]);
    }
    must(lh_wait(last[0], PATIENCE, &result), "lh_wait");
    assert_true(result.error == -LH_EPEER || result.error == -LH_ETRUNCATED);
    lh_request_free(last[0]);
    if (unanswered) {
        must(lh_wait(unanswered, PATIENCE, &result), "lh_wait");
        assert_int_equal(result.error, -LH_EPEER);
        lh_request_free(unanswered);
    }
    while (lh_connection_error(connection) == 0 && now_ns() - died < PATIENCE)
        pause_ns(MS);
    assert_int_equal(lh_connection_error(connection), -LH_EPEER);
    assert_int_equal(lh_send(connection, data, 1, NULL, &last[1]), -LH_EPEER);
    return now_ns() - died;
}

/* The rendezvous socket tells at once: long before the peer counts as silent (10 s). */
static void killed_after_tcp(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (int life = 0; life < LIVES; life++) {
        int commands[2];
        int answers[2];
        pid_t child = fork_child(commands, answers);
        if (child == 0)
            child_connects(commands[0]);
        struct lh_attr attr;
        struct lh_listener *listener;
        struct lh_connection *connection;
        char where[64];
        lh_attr_init(&attr);
        must(lh_listen("127.0.0.1:0", &attr, &listener), "lh_listen");
        snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
        assert_int_equal(write(commands[1], where, strlen(where) + 1), strlen(where) + 1);
        must(lh_accept(listener, PATIENCE, &connection), "lh_accept");
        lh_time took = live_and_die(connection, child, lh_prng_below(&prng, 60 * MS), SIGKILL);
        assert_true(took < 9 * LH_NS_PER_S);
        lh_close(connection);
        lh_listener_close(listener);
        close(commands[1]);
        close(answers[0]);
    }
}

/* Without TCP its silence tells; also when it only stands still. */
static void silent_without_tcp(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGSTOP};
    for (int i = 0; i < 2; i++) {
        int commands[2];
        int answers[2];
        uint8_t blob[LH_BLOB_MAX];
        uint8_t theirs[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        pid_t child = fork_child(commands, answers);
        if (child == 0)
            child_attaches(commands[0], answers[1]);
        struct lh_attr attr;
        struct lh_connection *connection;
        lh_attr_init(&attr);
        attr.device = "udp:127.0.0.1";
        attr.peer_timeout_ns = 2 * LH_NS_PER_S;
        must(lh_open(&attr, &connection), "lh_open");
        must(lh_blob(connection, blob, &bytes), "lh_blob");
        assert_int_equal(write(commands[1], blob, bytes), bytes);
        ssize_t got = read(answers[0], theirs, sizeof theirs);
        assert_true(got > 0);
        must(lh_attach(connection, theirs, (size_t)got), "lh_attach");
        live_and_die(connection, child, 30 * MS, signals[i]);
        if (signals[i] == SIGSTOP)
            end_child(child, SIGKILL);
        lh_close(connection);
        close(commands[1]);
        close(answers[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_after_tcp),
        cmocka_unit_test(silent_without_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
