/*
 * test_engine_bursts.c - many connections of an engine whose peers all send small messages at once, as many
 * as they may have in flight: what the engine does not read yet waits in its socket, and none is dropped by
 * the library.
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
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/attach_pair.h"

#define CONNECTIONS 96u
#define MESSAGES    128u      /* of each: what its window takes */
#define BYTES       500u      /* no packet takes two */
#define TURNS       50000000u /* only a hang reaches them */

struct end {
    struct lh_engine *engine;
    struct lh_completion_queue *queue;
    struct lh_connection *connections[CONNECTIONS];
};

static struct end ends[2];
static uint8_t sent[BYTES], buffers[CONNECTIONS][MESSAGES][BYTES];

static void must(int code, const char *what)
{
    if (code < 0)
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
    must(lh_completion_queue_create(end->engine, CONNECTIONS * MESSAGES, &end->queue), "a queue");
    lh_attr_init(&attr);
    attr.engine = end->engine;
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        must(lh_open(&attr, &end->connections[i]), "lh_open");
}

static void close_end(struct end *end)
{
    for (uint32_t c = 0; c < CONNECTIONS; c++)
        lh_close(end->connections[c]);
    must(lh_completion_queue_destroy(end->queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(end->engine), "lh_engine_destroy");
}

static void post(uint32_t c)
{
    for (uint32_t m = 0; m < MESSAGES; m++) {
        must(lh_post_recv(ends[1].connections[c], buffers[c][m], BYTES, NULL, ends[1].queue, m, NULL),
             "lh_post_recv");
        must(lh_post_send(ends[0].connections[c], sent, BYTES, NULL, ends[0].queue, m, NULL),
             "lh_post_send");
    }
}

static uint32_t take(struct end *end)
{
    struct lh_completion entries[64];
    int taken = lh_poll(end->queue, entries, 64);
    must(taken, "lh_poll");
    for (int i = 0; i < taken; i++)
        assert_int_equal(entries[i].result.error, 0);
    return (uint32_t)taken;
}

static uint64_t dropped(const struct end *end)
{
    uint64_t sum = 0;
    for (uint32_t c = 0; c < CONNECTIONS; c++) {
        struct lh_stats stats;
        must(lh_connection_stats(end->connections[c], &stats), "lh_connection_stats");
        sum += stats.rx_inbox_overflow;
    }
    return sum;
}

static void test_all_send_at_once(void **state)
{
    (void)state;
    uint32_t done = 0;
    lh_time next;
    memset(sent, 7, sizeof sent);
    for (int i = 0; i < 2; i++)
        open_end(&ends[i]);
    for (uint32_t c = 0; c < CONNECTIONS; c++)
        attach_pair(ends[0].connections[c], ends[1].connections[c]);
    for (uint32_t i = 0; i < 1000; i++) /* so that paths are known */
        must(lh_engine_progress(ends[i % 2].engine, &next), "lh_engine_progress");
    for (uint32_t c = 0; c < CONNECTIONS; c++)
        post(c);
    for (uint32_t i = 0; i < 2000; i++) /* all of it is in flight before anything is read */
        must(lh_engine_progress(ends[0].engine, &next), "lh_engine_progress");
    for (uint32_t turn = 0; done < 2 * CONNECTIONS * MESSAGES && turn < TURNS; turn++)
        done += take(&ends[1]) + take(&ends[0]);
    assert_int_equal(done, 2 * CONNECTIONS * MESSAGES);
    for (uint32_t c = 0; c < CONNECTIONS; c++)
        for (uint32_t m = 0; m < MESSAGES; m++)
            assert_memory_equal(buffers[c][m], sent, BYTES);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dropped(&ends[i]), 0);
        close_end(&ends[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_send_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
