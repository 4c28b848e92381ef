/*
 * test_caught_up.c - a worker that sleeps is asked whether anything waits on its channels.
 *
 * The reliability layer takes nothing for lost before every channel was looked at. A channel without traffic
 * is served by a worker that is asleep, so without being asked it would look there ten times a second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "sdr/driver.h"

#define ROUNDS    20u
#define ASLEEP_NS (2 * LH_NS_PER_MS)  /* a worker without work sleeps long before */
#define LATE_NS   (25 * LH_NS_PER_MS) /* a quarter of its longest sleep: a busy host is slower now and then */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
};

static void pause_for(lh_time span)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)span}, NULL);
}

static struct side open_side(void)
{
    struct side side;
    struct lh_context_attr attr = {.channels = 2, .workers = 2};
    struct sdr_qp_attr qp_attr = {.max_log_num_msgs = 2};
    struct lh_qp_attr more = {.slot_bytes = 65536, .mtu_bytes = 4096, .chunk_bytes = 4096};
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

static void asking_wakes(void **state)
{
    (void)state;
    struct side sides[2] = {open_side(), open_side()};
    connect_to(&sides[0], &sides[1]);
    connect_to(&sides[1], &sides[0]);
    uint32_t late = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        pause_for(ASLEEP_NS);
        late += time_to_catch_up(&sides[0]) > LATE_NS;
    }
    assert_in_range(late, 0, ROUNDS / 2);
    for (int i = 0; i < 2; i++) {
        sdr_qp_destroy(sides[i].qp);
        sdr_context_destroy(sides[i].context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asking_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
