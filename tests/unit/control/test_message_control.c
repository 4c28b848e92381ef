/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/effects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_keeps_the_order_of_what_is_done(void **state)
{
    (void)state;
    struct effects effects = {0};
    struct message_request requests[3] = {{.result.started_ns = 4}};
    requests[2].next = &requests[0]; /* of an earlier use */
    for (uint32_t i = 0; i < 3; i++)
        effects_finish(&effects, &requests[i], -(int)i, 10 * i, i + 5);
    uint32_t count = 0;
    for (struct message_request *request = effects.finished; request; request = request->next)
        assert_ptr_equal(request, &requests[count++]);
    assert_int_equal(count, 3);
    assert_true(requests[0].result.started_ns == 4 && requests[0].result.ended_ns == 5);
    assert_true(requests[2].result.error == -2 && requests[2].result.bytes == 20);
    effects.finished = NULL; /* carried out */
    effects_finish(&effects, &requests[1], 0, 0, 0);
    assert_ptr_equal(effects.finished, &requests[1]);
    assert_null(requests[1].next);
}

/* The time of a round is that of its begin; a call may have started the request since. */
static void test_nothing_ends_before_it_started(void **state)
{
    (void)state;
    struct effects effects = {0};
    struct message_request request = {.result.started_ns = 9};
    effects_finish(&effects, &request, 0, 1, 5);
    assert_int_equal(request.result.ended_ns, 9);
}

static void test_the_first_failure_stays(void **state)
{
    (void)state;
    struct effects effects = {0};
    char reason[2 * REASON_MAX];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    effects_fail(&effects, LH_EPROTOCOL, reason);
    effects_fail(&effects, LH_EPATH, "later");
    assert_int_equal(effects.failure, LH_EPROTOCOL);
    assert_int_equal(strlen(effects_reason(&effects)), REASON_MAX - 1);
    free(effects.reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_the_order_of_what_is_done),
        cmocka_unit_test(test_nothing_ends_before_it_started),
        cmocka_unit_test(test_the_first_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
