/*
 * test_caught_up.c - workers that sleep wake for each other.
 *
 * The reliability layer takes nothing for lost before every channel was looked at. A channel without traffic
 * is served by a worker that is asleep, so without being asked it would look there ten times a second. Nor
 * does it see what another worker placed while the control worker, which runs it, is asleep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>
#include <sdr_mr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "sdr/sdr_driver.h"

#define ROUNDS    20u
#define ASLEEP_NS (2 * LH_NS_PER_MS) /* a worker without work sleeps long before */
#define LATE_NS   (25 * LH_NS_PER_MS) /* a quarter of its longest sleep: a busy host is slower now and then */

#define SETTLED_NS (500 * LH_NS_PER_MS) /* new peers ping each other often, which wakes as well */
#define CHUNK      4096u
#define STRIPE     64u /* packets, of one chunk each here: from there on the other channel carries them */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
};

static struct side sides[2];

static void pause_for(lh_time span)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)span}, NULL);
}

static struct side open_side(void)
{
    struct side side;
    struct lh_context_attr attr = {.channels = 2, .workers = 2};
    struct sdr_qp_attr qp_attr = {.max_log_num_msgs = 2};
    struct lh_qp_attr more = {.slot_bytes = 2 * STRIPE * CHUNK, .mtu_bytes = CHUNK, .chunk_bytes = CHUNK};
    assert_int_equal(lh_sdr_context_create("udp:[::1]", &attr, &side.context), 0);
    assert_int_equal(lh_sdr_qp_create(side.context, &qp_attr, &more, &side.qp), 0);
    return side;
}

static void connect_to(struct side *side, struct side *other)
{
    size_t bytes;
    sdr_qp_info_size_get(other->qp, &bytes);
    void *info = malloc(bytes);
    sdr_qp_info_get(other->qp, info);
    assert_int_equal(lh_sdr_qp_connect(side->qp, info), 0);
    free(info);
}

static lh_time time_to_catch_up(const struct side *side)
{
    lh_time since = lh_sdr_now(side->context);
    sdr_qp_catch_up(side->qp, since);
    while (sdr_qp_caught_up(side->qp) < since) /* ends when the worker wakes by itself, at the latest */
        pause_for(LH_NS_PER_MS / 10);
    return lh_sdr_now(side->context) - since;
}

static int open_sides(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        sides[i] = open_side();
    connect_to(&sides[0], &sides[1]);
    connect_to(&sides[1], &sides[0]);
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sdr_qp_destroy(sides[i].qp);
        sdr_context_destroy(sides[i].context);
    }
    return 0;
}

static void asking_wakes(void **state)
{
    (void)state;
    uint32_t late = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        pause_for(ASLEEP_NS);
        late += time_to_catch_up(&sides[0]) > LATE_NS;
    }
    assert_in_range(late, 0, ROUNDS / 2);
}

struct watcher {
    struct sdr_recv_handle *recv;
    _Atomic uint32_t seen; /* chunks, by the driver */
};

static lh_time look(void *context, lh_time now)
{
    (void)now;
    struct watcher *watch = context;
    atomic_store(&watch->seen, lh_sdr_recv_chunks_arrived(watch->recv));
    return LH_TIME_NEVER;
}

static uint32_t register_all(const struct side *side, void *memory, size_t bytes, struct sdr_mr **mr)
{
    uint32_t lkey;
    *mr = sdr_mr_reg(side->context, memory, bytes, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(*mr);
    sdr_mr_lkey_get(*mr, &lkey);
    return lkey;
}

static lh_time time_to_see(struct sdr_send_handle *send, struct sdr_send_continue_wr *chunk,
                           const struct watcher *watch)
{
    uint32_t before = atomic_load(&watch->seen);
    lh_time since = lh_sdr_now(sides[0].context);
    assert_int_equal(sdr_streaming_send_continue(send, chunk), SDR_SUCCESS);
    while (atomic_load(&watch->seen) == before) /* ends when the worker wakes by itself, at the latest */
        pause_for(LH_NS_PER_MS / 10);
    return lh_sdr_now(sides[0].context) - since;
}

static void arrivals_wake_the_driver(void **state)
{
    (void)state;
    static uint8_t memory[2][2 * STRIPE * CHUNK];
    struct sdr_mr *mr[2];
    struct watcher watch = {.seen = 0};
    struct sdr_send_handle *send;
    struct sdr_send_start_wr start = {.opcode = SDR_WR_WRITE};
    struct sdr_recv_wr room = {.max_length = sizeof memory[1], .address = (uint64_t)(uintptr_t)memory[1]};
    uint32_t lkey = register_all(&sides[0], memory[0], sizeof memory[0], &mr[0]);
    uint32_t late = 0;
    room.lkey = register_all(&sides[1], memory[1], sizeof memory[1], &mr[1]);
    assert_int_equal(sdr_recv_post(sides[1].qp, &room, &watch.recv), SDR_SUCCESS);
    sdr_qp_driver_set(sides[1].qp, look, &watch);
    while (sdr_streaming_send_start(sides[0].qp, &start, &send) == SDR_RETRY)
        pause_for(LH_NS_PER_MS / 10);
    pause_for(SETTLED_NS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sdr_send_continue_wr chunk = {.local_addr = (uint64_t)(uintptr_t)memory[0],
                                             .remote_offset = STRIPE + i,
                                             .length = CHUNK,
                                             .lkey = lkey};
        pause_for(ASLEEP_NS);
        late += time_to_see(send, &chunk, &watch) > LATE_NS;
    }
    assert_in_range(late, 0, ROUNDS / 2);
    sdr_qp_driver_set(sides[1].qp, NULL, NULL);
    sdr_recv_complete(watch.recv);
    lh_sdr_streaming_send_abort(send);
    for (int i = 0; i < 2; i++)
        sdr_mr_dereg(mr[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asking_wakes, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(arrivals_wake_the_driver, open_sides, close_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
