/*
 * test_file_blocks.c - permissions and times: what goes through the codec comes out, what no sender announces
 * is refused; timeouts; words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/file_blocks.c"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void comes_out_as_it_went_in(void **state)
{
    const int64_t seconds[] = {SECONDS_MIN, -1, 0, 1234567890, SECONDS_MAX};
    uint8_t bytes[CLI_DIGEST_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        for (mode_t mode = 0; mode <= 0777; mode++) {
            struct timespec written = {.tv_sec = seconds[i], .tv_nsec = NS_PER_S - 1};
            struct cli_file_attributes in = cli_file_attributes_of(mode, written), out;
            cli_file_attributes_encode(&in, bytes);
            assert_int_equal(cli_file_attributes_decode(bytes, &out), 0);
            assert_true(out.known);
            assert_int_equal(out.mode, mode);
            assert_int_equal(out.written.tv_sec, seconds[i]);
            assert_int_equal(out.written.tv_nsec, NS_PER_S - 1);
        }
}

static void only_permissions_and_times_of_today_leave(void **state)
{
    const struct timespec early = {.tv_sec = INT64_MIN}, late = {.tv_sec = INT64_MAX, .tv_nsec = 5};
    (void)state;
    assert_int_equal(cli_file_attributes_of(0107755, early).mode, 0755);
    assert_int_equal(cli_file_attributes_of(0, early).written.tv_sec, SECONDS_MIN);
    assert_int_equal(cli_file_attributes_of(0, late).written.tv_sec, SECONDS_MAX);
    assert_int_equal(cli_file_attributes_of(0, late).written.tv_nsec, 0);
}

static void older_senders_announce_nothing(void **state)
{
    const uint8_t zeros[CLI_DIGEST_BYTES] = {0};
    struct cli_file_attributes out = {.known = true};
    (void)state;
    assert_int_equal(cli_file_attributes_decode(zeros, &out), 0);
    assert_false(out.known);
}

static int decoded(int64_t seconds, uint32_t nanoseconds, uint32_t mode)
{
    uint8_t bytes[CLI_DIGEST_BYTES];
    struct cli_file_attributes out;
    cli_put_u64(bytes, (uint64_t)seconds);
    cli_put_u32(bytes + 8, nanoseconds);
    cli_put_u32(bytes + 12, mode);
    int code = cli_file_attributes_decode(bytes, &out);
    assert_true(!code || !out.known);
    return code;
}

static void hostile_ones_are_refused(void **state)
{
    (void)state;
    assert_int_equal(decoded(1, 1, KNOWN | 0777), 0);
    for (unsigned bit = 9; bit < 31; bit++) /* set-user-ID and on */
        assert_int_equal(decoded(1, 1, KNOWN | 1u << bit), -LH_EPROTOCOL);
    assert_int_equal(decoded(0, 0, 0644), -LH_EPROTOCOL);
    assert_int_equal(decoded(1, 0, 0), -LH_EPROTOCOL);
    assert_int_equal(decoded(1, NS_PER_S, KNOWN), -LH_EPROTOCOL);
    assert_int_equal(decoded(1, UINT32_MAX, KNOWN), -LH_EPROTOCOL);
    assert_int_equal(decoded(SECONDS_MIN - 1, 0, KNOWN), -LH_EPROTOCOL);
    assert_int_equal(decoded(SECONDS_MAX + 1, 0, KNOWN), -LH_EPROTOCOL);
    assert_int_equal(decoded(INT64_MIN, 0, KNOWN), -LH_EPROTOCOL);
    assert_int_equal(decoded(INT64_MAX, 0, KNOWN), -LH_EPROTOCOL);
}

/* Also that of a file with holes of the largest size there is. */
static void the_time_for_a_disk_grows_with_the_bytes(void **state)
{
    lh_time before = cli_disk_timeout(0);
    (void)state;
    for (unsigned bit = 20; bit < 64; bit++) {
        lh_time after = cli_disk_timeout((uint64_t)1 << bit);
        assert_true(after >= before && after <= INT64_MAX);
        before = after;
    }
    assert_true(cli_disk_timeout(UINT64_MAX) >= before);
}

static void a_late_answer_buys_a_stranger_little_time(void **state)
{
    (void)state;
    assert_true(cli_prompt_timeout(LH_NS_PER_S) >= 20 * LH_NS_PER_S);
    assert_true(cli_prompt_timeout(INT64_MAX) <= 65 * LH_NS_PER_S);
}

static void a_slow_client_is_one_of_few_bytes_for_long(void **state)
{
    struct cli_pace pace = {0};
    (void)state;
    assert_false(cli_pace_is_slow(&pace, CLI_PACE_NS, 0));
    assert_true(cli_pace_is_slow(&pace, CLI_PACE_NS + 1, CLI_PACE_BYTES - 1));
    assert_false(cli_pace_is_slow(&pace, CLI_PACE_NS + 1, CLI_PACE_BYTES));
    assert_false(cli_pace_is_slow(&pace, 2 * CLI_PACE_NS + 1, CLI_PACE_BYTES));
    assert_true(cli_pace_is_slow(&pace, 2 * CLI_PACE_NS + 2, 2 * CLI_PACE_BYTES - 1));
}

static void *name_receiver(void *unused)
{
    assert_string_equal(cli_file_strerror(NULL, -LH_ECLOSED, "receiver"),
                        "the receiver closed the connection");
    return unused;
}

/* Several transfers of a server fail at once. */
static void each_thread_has_its_own_reason(void **state)
{
    const char *text = cli_file_strerror(NULL, -LH_ETIMEDOUT, "sender");
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, name_receiver, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_string_equal(text, "the sender is stalled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),
        cmocka_unit_test(only_permissions_and_times_of_today_leave),
        cmocka_unit_test(older_senders_announce_nothing),
        cmocka_unit_test(hostile_ones_are_refused),
        cmocka_unit_test(the_time_for_a_disk_grows_with_the_bytes),
        cmocka_unit_test(a_late_answer_buys_a_stranger_little_time),
        cmocka_unit_test(a_slow_client_is_one_of_few_bytes_for_long),
        cmocka_unit_test(each_thread_has_its_own_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
