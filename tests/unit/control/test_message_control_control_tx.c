/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/message_control.h"

#include "unit/message/fake_sdr.h"

static int begin(void **state)
{
    (void)state;
    fake_sdr_reset();
    return 0;
}

static void test_abort_messages(void **state)
{
    (void)state;
    assert_true(control_tx_abort(&qp, TRANSFER_CANCEL, UINT32_MAX, LH_EKEY));
    assert_int_equal(fake_last(TRANSFER_CANCEL)->body.verdict.message, UINT32_MAX);
    assert_int_equal(fake_last(TRANSFER_CANCEL)->body.verdict.error, LH_EKEY);
    assert_true(control_tx_abort(&qp, TRANSFER_FORGET, 3, 0));
    assert_int_equal(fake_last(TRANSFER_FORGET)->body.verdict.message, 3);
}

static void test_the_largest_machine_message(void **state)
{
    (void)state;
    uint8_t data[TRANSFER_SCHEME_MAX];
    memset(data, 0xA5, sizeof data);
    control_tx_to_sender(&qp, 8, data, sizeof data);
    const struct transfer_message *sent = fake_last(TRANSFER_TO_SENDER);
    assert_int_equal(sent->body.to_sender.segment, 8);
    assert_int_equal(sent->body.to_sender.scheme_bytes, sizeof data);
    assert_memory_equal(sent->body.to_sender.scheme, data, sizeof data);
}

static void test_a_full_queue_loses_it(void **state)
{
    (void)state;
    const struct transfer_message message = {.kind = TRANSFER_DONE};
    qp.control_queue_full = true;
    assert_false(control_tx_send(&qp, &message));
    assert_int_equal(qp.message_count, 0);
    qp.control_queue_full = false;
    assert_true(control_tx_send(&qp, &message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_abort_messages, begin),
        cmocka_unit_test_setup(test_the_largest_machine_message, begin),
        cmocka_unit_test_setup(test_a_full_queue_loses_it, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
