/*
 * test_same_host.c - where the peer's address is this host's own, no controller holds its data back; but not
 * behind NAT, where an address is only what the peer says.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "sdr/qp.h"
#include "sdr/sdr_driver.h"

#define PATIENCE_S 30

static void open_end(struct sdr_context **context, struct sdr_qp **qp)
{
    struct sdr_dev_attr dev = {.num_channels = 1};
    struct sdr_qp_attr attr = {.bitmap_chunk_size_log_bytes = 12,
                               .max_in_flight_log_bytes = 20,
                               .max_log_num_msgs = 3,
                               .mtu = SDR_MTU_4096,
                               .send_enable = 1,
                               .recv_enable = 1};
    *context = sdr_context_create("udp:127.0.0.1", &dev);
    assert_non_null(*context);
    *qp = sdr_qp_create(*context, &attr);
    assert_non_null(*qp);
}

static void attach(struct sdr_qp *qp, struct sdr_qp *peer)
{
    static uint8_t info[4096];
    size_t bytes;
    assert_int_equal(sdr_qp_info_size_get(peer, &bytes), SDR_SUCCESS);
    assert_true(bytes <= sizeof info);
    assert_int_equal(sdr_qp_info_get(peer, info), SDR_SUCCESS);
    assert_int_equal(sdr_qp_connect(qp, info), SDR_SUCCESS);
}

/* Waits until the rate of what it sends is controlled. */
static bool is_same_host(struct sdr_qp *qp)
{
    bool started = false, same = false;
    for (time_t end = time(NULL) + PATIENCE_S; !started; sched_yield()) {
        assert_true(time(NULL) < end);
        pthread_mutex_lock(&qp->pacer_lock);
        started = qp->rate.started;
        same = qp->rate.same_host;
        pthread_mutex_unlock(&qp->pacer_lock);
    }
    return same;
}

/* The first end knows that the other one is behind NAT, or does not. */
static void open_pair_and_look(bool translated)
{
    static const uint8_t seen[16] = {127, 0, 0, 1};
    struct sdr_context *contexts[2];
    struct sdr_qp *qps[2];
    for (int end = 0; end < 2; end++)
        open_end(&contexts[end], &qps[end]);
    if (translated)
        sdr_qp_peer_seen_at(qps[0], seen);
    attach(qps[0], qps[1]);
    attach(qps[1], qps[0]);
    assert_int_equal(is_same_host(qps[0]), !translated);
    assert_true(is_same_host(qps[1]));
    for (int end = 0; end < 2; end++) {
        sdr_qp_destroy(qps[end]);
        sdr_context_destroy(contexts[end]);
    }
}

static void test_same_address(void **state)
{
    (void)state;
    open_pair_and_look(false);
}

static void test_same_address_behind_nat(void **state)
{
    (void)state;
    open_pair_and_look(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_address),
        cmocka_unit_test(test_same_address_behind_nat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
