/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/selective_repeat.h"

#define CHUNKS (64u * 250) /* three messages */

static void test_an_answer_in_several_messages(void **state)
{
    (void)state;
    static uint64_t bits[250];
    static uint8_t bitmap[CHUNKS];
    struct sr_arrivals arrivals;
    struct sr_nack nack;
    struct sr_answer answer;
    struct lh_stats stats = {0};
    struct lh_actions actions = {.count = LH_ACTIONS_MAX - 1};
    sr_arrivals_init(&arrivals, CHUNKS, bits);
    sr_nack_init(&nack);
    sr_answer_init(&answer);
    memset(bitmap, 1, sizeof bitmap);
    bitmap[0] = 0;
    sr_arrivals_update(&arrivals, bitmap, CHUNKS - 1);
    sr_answer_begin(&answer, SR_ANSWER_NACK, &arrivals, &nack);
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    assert_int_equal(answer.writing, SR_ANSWER_NACK); /* the list was full */
    actions.count = 0;
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    assert_int_equal(answer.writing, SR_ANSWER_NONE);
    assert_true(actions.count == 2 && stats.nacks_sent == 3);
    struct sr_ack ack;
    const struct lh_action *last = &actions.list[1];
    assert_int_equal(sr_ack_decode(last->what.message.data, last->what.message.bytes, &ack), 0);
    assert_true(ack.flags == SR_FLAG_NACK && ack.base == 64 * 2 * SR_ACK_WORDS_MAX);
    assert_int_equal(ack.words, 250 - 2 * SR_ACK_WORDS_MAX);
}

/* What was shown as lost is part of it, though nothing has arrived there. */
static void test_up_to_the_horizon(void **state)
{
    (void)state;
    uint64_t bits[4];
    struct sr_arrivals arrivals;
    struct sr_nack nack;
    struct sr_answer answer;
    struct lh_stats stats = {0};
    struct lh_actions actions = {.count = 0};
    sr_arrivals_init(&arrivals, 256, bits);
    sr_nack_init(&nack);
    nack.horizon = 130;
    sr_answer_begin(&answer, SR_ANSWER_ACK, &arrivals, &nack);
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    struct sr_ack ack;
    const struct lh_action *only = &actions.list[0];
    assert_int_equal(sr_ack_decode(only->what.message.data, only->what.message.bytes, &ack), 0);
    assert_true(ack.words == 3 && ack.horizon == 130 && ack.flags == 0 && stats.acks_sent == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_in_several_messages),
        cmocka_unit_test(test_up_to_the_horizon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
