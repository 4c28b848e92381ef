/*
 * test_sdr_context.c - contexts that are refused, who makes their progress, and what memory they know.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/engine.h>
#include <longhaul/sdr_ext.h>
#include <sdr_mr.h>

#include "netsim/fabric/sim_packets.h"
#include "sdr/sdr_driver.h"
#include "sdr/sdr_state.h"

#define DEVICE "sim:context/0"

static struct sim_world *world;

static int open_world(void **state)
{
    (void)state;
    world = sim_world_create("context", 1, NULL);
    return world ? 0 : -1;
}

static int close_world(void **state)
{
    (void)state;
    sim_world_destroy(world);
    return 0;
}

/* ---- attributes -------------------------------------------------------------------------------------- */

static void refused(const char *device, const struct lh_context_attr *attr, int error, const char *words)
{
    struct sdr_context *context = NULL;
    assert_int_equal(lh_sdr_context_create(device, attr, &context), error);
    assert_null(context);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

static void accepted(const struct lh_context_attr *attr)
{
    struct sdr_context *context;
    assert_int_equal(lh_sdr_context_create(DEVICE, attr, &context), 0);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

static void attributes_are_checked(void **state)
{
    (void)state;
    static const int any[2] = {-1, -1}, below[2] = {-1, -2}, beyond[2] = {-1, 1 << 20};
    struct lh_context_attr attr = {0};
    refused(NULL, &attr, -LH_EINVAL, "no device name");
    refused("none", &attr, -LH_EDEVICE, "none");
    accepted(NULL);
    accepted(&attr);
    attr.channels = 33;
    refused(DEVICE, &attr, -LH_EINVAL, "channels 33: out of range (1 to 32)");
    attr.channels = 32;
    attr.workers = LH_SDR_NO_WORKERS;
    accepted(&attr);
    attr.channels = 2;
    attr.workers = 3;
    refused(DEVICE, &attr, -LH_EINVAL, "workers 3: exceed the channels, 2");
    attr.workers = 2;
    attr.worker_cpus = below;
    refused(DEVICE, &attr, -LH_EINVAL, "worker CPU -2: out of range");
    attr.worker_cpus = beyond;
    refused(DEVICE, &attr, -LH_EINVAL, "worker CPU 1048576: out of range");
    attr.workers = LH_SDR_NO_WORKERS; /* of none */
    accepted(&attr);
    attr.workers = 2;
    attr.worker_cpus = any;
    accepted(&attr);
    attr.spin_ns = LH_NS_PER_S + 1;
    refused(DEVICE, &attr, -LH_EINVAL, "spin_ns 1000000001: out of range");
    attr.spin_ns = LH_NS_PER_S;
    accepted(&attr);
    attr.spin_ns = LH_NO_SPIN;
    accepted(&attr);
}

/* Either the workers do, or the caller. */
static void who_makes_progress(void **state)
{
    (void)state;
    struct lh_context_attr attr = {.channels = 2, .workers = 2};
    struct sdr_context *context;
    lh_time next = 7;
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    assert_int_equal(lh_sdr_progress(context, &next), -LH_ESTATE);
    assert_non_null(strstr(lh_last_error(), "context has 2 workers"));
    assert_true(next == 7);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    attr.workers = LH_SDR_NO_WORKERS;
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    assert_int_equal(lh_sdr_progress(context, NULL), 0);
    assert_int_equal(lh_sdr_progress(context, &next), 0);
    assert_true(next == LH_TIME_NEVER); /* no QP, nothing is due */
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(NULL), SDR_SUCCESS);
}

/* While something of it is left a context stays. */
static void a_context_in_use(void **state)
{
    (void)state;
    const struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    struct sdr_context *context;
    struct sdr_qp *qp;
    uint8_t bytes[64];
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    assert_int_equal(lh_sdr_qp_create(context, NULL, NULL, &qp), 0);
    assert_int_equal(lh_sdr_qp_create(NULL, NULL, NULL, &qp), -LH_EINVAL);
    assert_int_equal(sdr_context_destroy(context), SDR_ERROR);
    assert_string_equal(lh_last_error(), "context still has 1 QPs: destroy them first");
    struct sdr_mr *mr = sdr_mr_reg(context, bytes, sizeof bytes, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    assert_int_equal(sdr_context_destroy(context), SDR_ERROR);
    assert_non_null(strstr(lh_last_error(), "1 QPs and registered memory"));
    assert_int_equal(sdr_qp_destroy(qp), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_ERROR);
    assert_int_equal(sdr_mr_dereg(mr), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    assert_int_equal(sdr_qp_destroy(NULL), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(NULL), SDR_SUCCESS);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

#define RANGES 300u /* more than there are lists of them */

/* Each key covers its own range, to the byte, until it is given back. */
static void memory_is_covered(void **state)
{
    (void)state;
    static uint8_t bytes[RANGES][16];
    const struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    struct sdr_context *context;
    struct sdr_mr *mr[RANGES];
    uint32_t lkey[RANGES], rkey;
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    for (uint32_t i = 0; i < RANGES; i++) {
        assert_non_null(mr[i] = sdr_mr_reg(context, bytes[i], 16, SDR_ACCESS_REMOTE_WRITE));
        assert_int_equal(sdr_mr_lkey_get(mr[i], &lkey[i]), SDR_SUCCESS);
        assert_int_equal(sdr_mr_rkey_get(mr[i], &rkey), SDR_SUCCESS);
        assert_int_equal(rkey, lkey[i]);
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(lkey[k], lkey[i]);
    }
    for (uint32_t i = 0; i < RANGES; i += 7) {
        uint64_t at = (uint64_t)(uintptr_t)bytes[i];
        assert_true(memory_covers(context, lkey[i], at, 16));
        assert_true(memory_covers(context, lkey[i], at + 15, 1));
        assert_true(memory_covers(context, lkey[i], at - 1, 0)); /* an empty range always is */
        assert_false(memory_covers(context, lkey[i], at - 1, 1));
        assert_false(memory_covers(context, lkey[i], at + 15, 2));
        assert_false(memory_covers(context, lkey[i], at + 16, 1));
        assert_false(memory_covers(context, lkey[i], at, 17));
        assert_false(memory_covers(context, lkey[(i + 1) % RANGES], at, 16));
    }
    for (uint32_t i = 0; i < RANGES; i++) {
        uint64_t at = (uint64_t)(uintptr_t)bytes[i];
        assert_true(memory_covers(context, lkey[i], at, 16));
        if (i % 2)
            sdr_mr_drop(mr[i]);
        else
            assert_int_equal(sdr_mr_dereg(mr[i]), SDR_SUCCESS);
        assert_false(memory_covers(context, lkey[i], at, 16));
    }
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

static void registrations_are_checked(void **state)
{
    (void)state;
    uint8_t bytes[16];
    const struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    struct sdr_context *context;
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    assert_null(sdr_mr_reg(NULL, bytes, sizeof bytes, SDR_ACCESS_REMOTE_WRITE));
    assert_non_null(strstr(lh_last_error(), "memory registration"));
    assert_null(sdr_mr_reg(context, NULL, sizeof bytes, SDR_ACCESS_REMOTE_WRITE));
    assert_null(sdr_mr_reg(context, bytes, sizeof bytes, (enum sdr_access_flags)1));
    struct sdr_mr *nothing = sdr_mr_reg(context, NULL, 0, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(nothing);
    assert_int_equal(sdr_mr_dereg(nothing), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

/* A receive that is posted uses its memory, of any QP of the context. */
static void memory_in_use(void **state)
{
    (void)state;
    static uint8_t bytes[2][4096];
    const struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    const struct sdr_qp_attr small = {.max_in_flight_log_bytes = 20, .max_log_num_msgs = 2};
    struct sdr_context *contexts[2];
    struct sdr_qp *qps[2];
    struct sdr_mr *mr[2];
    struct sdr_recv_handle *recv;
    uint8_t info[1400];
    uint32_t lkey;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_sdr_context_create(i ? "sim:context/1" : DEVICE, &attr, &contexts[i]), 0);
        assert_int_equal(lh_sdr_qp_create(contexts[i], &small, NULL, &qps[i]), 0);
        assert_non_null(mr[i] = sdr_mr_reg(contexts[0], bytes[i], 4096, SDR_ACCESS_REMOTE_WRITE));
    }
    assert_int_equal(sdr_qp_info_get(qps[1], info), SDR_SUCCESS);
    assert_int_equal(sdr_qp_connect(qps[0], info), SDR_SUCCESS);
    assert_int_equal(sdr_mr_lkey_get(mr[0], &lkey), SDR_SUCCESS);
    struct sdr_recv_wr wr = {4096, lkey, (uint64_t)(uintptr_t)bytes[0]};
    assert_int_equal(sdr_recv_post(qps[0], &wr, &recv), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(mr[0]), SDR_ERROR);
    assert_non_null(strstr(lh_last_error(), "1 receives posted, 0 sends queued"));
    assert_true(memory_covers(contexts[0], lkey, wr.address, 4096)); /* without effect */
    assert_int_equal(sdr_mr_dereg(mr[1]), SDR_SUCCESS);              /* nobody uses it */
    assert_int_equal(sdr_qp_destroy(qps[0]), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(mr[0]), SDR_SUCCESS);
    assert_int_equal(sdr_qp_destroy(qps[1]), SDR_SUCCESS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sdr_context_destroy(contexts[i]), SDR_SUCCESS);
}

/* ---- options of a QP --------------------------------------------------------------------------------- */

/* A QP has the channels of its context, or fewer. */
static void channels_of_a_qp(void **state)
{
    (void)state;
    const struct lh_context_attr attr = {.channels = 3, .workers = LH_SDR_NO_WORKERS};
    const struct sdr_qp_attr no_attr = {0};
    const struct lh_qp_attr no_more = {0};
    struct sdr_context *context;
    struct sdr_qp *qp;
    size_t bytes[4];
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    for (uint32_t channels = 0; channels < 4; channels++) {
        const struct sdr_qp_own own = {.channels = channels};
        assert_int_equal(sdr_qp_open(context, &no_attr, &no_more, &own, &qp), 0);
        assert_int_equal(sdr_qp_info_size_get(qp, &bytes[channels]), SDR_SUCCESS);
        assert_int_equal(sdr_qp_destroy(qp), SDR_SUCCESS);
    }
    assert_true(bytes[1] < bytes[2] && bytes[2] < bytes[3] && bytes[0] == bytes[3]);
    const struct sdr_qp_own more = {.channels = 4};
    assert_int_equal(sdr_qp_open(context, &no_attr, &no_more, &more, &qp), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "channels 4: the context has 3 (use at most as many)");
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_checked),    cmocka_unit_test(who_makes_progress),
        cmocka_unit_test(a_context_in_use),          cmocka_unit_test(memory_is_covered),
        cmocka_unit_test(registrations_are_checked), cmocka_unit_test(memory_in_use),
        cmocka_unit_test(channels_of_a_qp),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
