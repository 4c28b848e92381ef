/*
 * test_engine_small.c - small messages of several connections of one engine, progress by hand: whoever reads
 * the sockets that they share puts aside what is the others'.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/attach_pair.h"

#define CONNECTIONS 4u
#define FLIGHT      256u  /* messages of a connection: twice what the window takes */
#define MESSAGES    5000u /* of each */
#define LONGEST     4096u
#define BATCH       64u
#define ROUNDS      50000000u /* only a hang reaches them */

struct end {
    struct lh_engine *engine;
    struct lh_completion_queue *queue;
    struct lh_connection *connections[CONNECTIONS];
};

static struct end ends[2];
static uint8_t buffers[2][CONNECTIONS][FLIGHT][LONGEST];
static uint32_t posted[2][CONNECTIONS];          /* messages */
static uint32_t numbers[2][CONNECTIONS][FLIGHT]; /* of the message that a buffer is for */

/* ---- what the kernel is asked to send ---------------------------------------------------------------- */

static uint32_t kernel_messages;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    kernel_messages++;
    return syscall(SYS_sendmsg, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    kernel_messages += count;
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

/* ------------------------------------------------------------------------------------------------------ */

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void open_end(struct end *end)
{
    struct lh_engine_attr engine;
    struct lh_attr attr;
    lh_engine_attr_init(&engine);
    engine.device = "udp:127.0.0.1";
    engine.workers = LH_NO_WORKERS;
    must(lh_engine_create(&engine, &end->engine), "lh_engine_create");
    must(lh_completion_queue_create(end->engine, 2 * CONNECTIONS * FLIGHT, &end->queue), "a queue");
    lh_attr_init(&attr);
    attr.engine = end->engine;
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        must(lh_open(&attr, &end->connections[i]), "lh_open");
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        open_end(&ends[i]);
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        attach_pair(ends[0].connections[i], ends[1].connections[i]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (uint32_t c = 0; c < CONNECTIONS; c++)
            lh_close(ends[i].connections[c]);
        lh_completion_queue_destroy(ends[i].queue);
        must(lh_engine_destroy(ends[i].engine), "lh_engine_destroy");
    }
    return 0;
}

static uint8_t pattern(uint32_t number)
{
    return (uint8_t)(number * 7 + 1);
}

/* End 0 sends, end 1 receives; user: which buffer of which connection. Requests need not end in order. */
static void post(int end, uint64_t user, size_t bytes)
{
    uint32_t index = (uint32_t)(user / FLIGHT);
    uint8_t *buffer = buffers[end][index][user % FLIGHT];
    struct lh_connection *connection = ends[end].connections[index];
    uint32_t number = numbers[end][index][user % FLIGHT] = posted[end][index]++;
    memset(buffer, end ? 0 : pattern(number), bytes);
    must(end ? lh_post_recv(connection, buffer, bytes, NULL, ends[end].queue, user, NULL)
             : lh_post_send(connection, buffer, bytes, NULL, ends[end].queue, user, NULL),
         "a post");
}

static void check(const uint8_t *buffer, uint32_t number, size_t bytes)
{
    uint8_t wanted[LONGEST];
    memset(wanted, pattern(number), bytes);
    assert_memory_equal(buffer, wanted, bytes);
}

/* Takes what is done at one end and posts it again, `left` times in all. How many were taken. */
static uint32_t turn(int end, size_t bytes, uint32_t left[CONNECTIONS])
{
    struct lh_completion entries[BATCH];
    int taken = lh_poll(ends[end].queue, entries, BATCH);
    assert_true(taken >= 0);
    for (int i = 0; i < taken; i++) {
        uint32_t index = (uint32_t)(entries[i].user / FLIGHT);
        assert_int_equal(entries[i].result.error, 0);
        if (end == 1)
            check(buffers[1][index][entries[i].user % FLIGHT], numbers[1][index][entries[i].user % FLIGHT],
                  bytes);
        if (left[index] > 0) {
            left[index]--;
            post(end, entries[i].user, bytes);
        }
    }
    return (uint32_t)taken;
}

static void stream(size_t bytes)
{
    uint32_t left[2][CONNECTIONS], done = 0;
    memset(posted, 0, sizeof posted);
    for (uint32_t i = 0; i < CONNECTIONS * FLIGHT; i++) {
        post(1, i, bytes);
        post(0, i, bytes);
    }
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        left[0][i] = left[1][i] = MESSAGES - FLIGHT;
    for (uint32_t round = 0; done < 2 * CONNECTIONS * MESSAGES && round < ROUNDS; round++)
        done += turn(0, bytes, left[0]) + turn(1, bytes, left[1]);
    assert_int_equal(done, 2 * CONNECTIONS * MESSAGES);
}

static void of_500_bytes(void **state)
{
    (void)state;
    stream(500); /* no carrier takes two */
}

static void of_a_kilobyte(void **state)
{
    (void)state;
    stream(1024);
}

static void of_four_kilobytes(void **state)
{
    (void)state;
    stream(4096);
}

/* Makes progress at both ends until so many requests of one have ended. */
static void finish(int end, uint32_t count)
{
    uint32_t none[CONNECTIONS] = {0}, done = 0;
    for (uint32_t round = 0; done < count && round < ROUNDS; round++) {
        done += turn(end, LONGEST, none);
        lh_engine_progress(ends[!end].engine, NULL);
    }
    assert_int_equal(done, count);
}

/* From end 0 to end 1; returns what the kernel was asked to send by the call. */
static uint32_t one_of_four_kilobytes(void)
{
    post(1, 0, LONGEST);
    uint32_t before = kernel_messages;
    post(0, 0, LONGEST);
    uint32_t asked = kernel_messages - before;
    finish(1, 1);
    finish(0, 1);
    return asked;
}

static void finish_request(struct lh_request *request)
{
    struct lh_result result = {.error = -LH_EAGAIN};
    for (uint32_t round = 0; lh_test(request, &result) == 0 && round < ROUNDS; round++)
        lh_engine_progress(ends[round % 2].engine, NULL);
    assert_int_equal(result.error, 0);
    lh_request_free(request);
}

/* A byte from end 1 to end 0, which has not acknowledged it yet. */
static struct lh_request *one_back(void)
{
    uint8_t byte = 0;
    struct lh_request *recv, *send;
    must(lh_recv(ends[0].connections[0], &byte, 1, NULL, &recv), "lh_recv");
    must(lh_send(ends[1].connections[0], &byte, 1, NULL, &send), "lh_send");
    finish_request(recv);
    return send;
}

/* All units of a message, though the last may take an acknowledgement along. */
static void one_message_is_one_burst(void **state)
{
    (void)state;
    memset(posted, 0, sizeof posted);
    one_of_four_kilobytes(); /* the path is proven after that */
    for (int i = 0; i < 100; i++) {
        struct lh_request *back = one_back();
        assert_int_equal(one_of_four_kilobytes(), 1);
        finish_request(back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_500_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_kilobyte, setup, teardown),
        cmocka_unit_test_setup_teardown(of_four_kilobytes, setup, teardown),
        cmocka_unit_test_setup_teardown(one_message_is_one_burst, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
