/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/notice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "group/tag.h"

static void test_round_trip(void **state)
{
    struct notice notice = {.error = -LH_EPEER, .rank = 7, .text = "rank 7 has failed"}, back;
    uint8_t body[NOTICE_BYTES_MAX];
    (void)state;
    size_t bytes = notice_encode(&notice, body);
    assert_true(notice_decode(body, bytes, &back));
    assert_memory_equal(&back, &notice, sizeof back);
    memset(notice.text, 'x', sizeof notice.text); /* too long: it is cut */
    bytes = notice_encode(&notice, body);
    assert_true(bytes < NOTICE_BYTES_MAX);
    assert_true(notice_decode(body, bytes, &back));
    assert_int_equal(strlen(back.text), LH_COLLECTIVE_MESSAGE_MAX - 1);
}

static void test_hostile(void **state)
{
    uint8_t body[NOTICE_BYTES_MAX] = {0};
    struct notice back;
    (void)state;
    body[3] = LH_EPEER;
    assert_true(notice_decode(body, 8, &back));
    assert_false(notice_decode(body, 7, &back));
    assert_false(notice_decode(body, NOTICE_BYTES_MAX, &back));
    body[8] = '\n';
    assert_false(notice_decode(body, 9, &back));
    body[3] = 250; /* no error */
    assert_false(notice_decode(body, 8, &back));
    body[0] = 0x80;
    assert_false(notice_decode(body, 8, &back));
    body[3] = LH_EPEER; /* it would be positive: a success to who takes it */
    assert_false(notice_decode(body, 8, &back));
    body[3] = 0;
    assert_false(notice_decode(body, 8, &back));
    body[0] = 0;
    assert_false(notice_decode(body, 8, &back));
}

static void test_tags(void **state)
{
    const struct tag tag = {
        .group = 16383, .kind = TAG_AGREE, .operation = 262143, .piece = (1u << 28) - 1};
    struct tag back;
    (void)state;
    assert_true(tag_decode(tag_encode(&tag), &back));
    assert_memory_equal(&back, &tag, sizeof back);
    assert_false(tag_decode(0, &back));
    assert_false(tag_decode((uint64_t)TAG_KINDS << 46, &back));
    assert_int_equal(tag_operation_ahead(1, 262143), 2); /* wraps around */
    assert_int_equal(tag_operation_ahead(262143, 1), -2);
    assert_int_equal(tag_operation_ahead(5, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
