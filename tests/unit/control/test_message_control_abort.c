/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/message_control.h"

#include "unit/message/fake_sdr.h"

static struct abort_notice notice;

static int begin(void **state)
{
    (void)state;
    fake_sdr_reset();
    notice = (struct abort_notice){.error = LH_EKEY};
    return 0;
}

static lh_time refresh_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    abort_on_refresh_expired(&notice, &qp, TRANSFER_REFUSE, 5, &qp.path, now, &next);
    return next;
}

static void test_intervals_double(void **state)
{
    (void)state;
    abort_send(&notice, &qp, TRANSFER_REFUSE, 5, &qp.path, 0);
    lh_time at = OVERDUE_NS;
    for (uint32_t i = 1; i < 9; i++) {
        assert_int_equal(refresh_at(at - 1), at);
        assert_int_equal(qp.message_count, i);
        lh_time next = at + (OVERDUE_NS << (i < 6 ? i : 6));
        assert_int_equal(refresh_at(at), next);
        assert_int_equal(qp.message_count, i + 1);
        at = next;
    }
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.message, 5);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_EKEY);
}

/* What found the queue full was not sent: it comes soon, and does not count. */
static void test_a_full_queue(void **state)
{
    (void)state;
    qp.control_queue_full = true;
    abort_send(&notice, &qp, TRANSFER_REFUSE, 5, &qp.path, 100);
    assert_true(notice.sent == 0 && notice.refresh_at == 100 + OVERDUE_NS / 8);
    qp.control_queue_full = false;
    assert_int_equal(refresh_at(notice.refresh_at), 100 + OVERDUE_NS / 8 + OVERDUE_NS);
    assert_int_equal(notice.sent, 1);
}

static void test_unknown_codes(void **state)
{
    (void)state;
    assert_int_equal(abort_error(LH_ECANCELED), LH_ECANCELED);
    assert_int_equal(abort_error(0), LH_EPROTOCOL);
    assert_int_equal(abort_error(-LH_ECANCELED), LH_EPROTOCOL);
    assert_int_equal(abort_error(INT32_MAX), LH_EPROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_intervals_double, begin),
        cmocka_unit_test_setup(test_a_full_queue, begin),
        cmocka_unit_test_setup(test_unknown_codes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
