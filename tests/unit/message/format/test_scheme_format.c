/*
 * test_scheme_format.c - what auto chose, in words: what was not measured yet is no number.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct lh_scheme_report report;

static int setup(void **state)
{
    (void)state;
    report = (struct lh_scheme_report){.automatic = true,
                                       .message_bytes = (uint64_t)1 << 20,
                                       .rtt_ns = 25 * LH_NS_PER_MS,
                                       .chunks_seen = 1000};
    snprintf(report.scheme, sizeof report.scheme, "sr-nack");
    return 0;
}

static void expect(const char *words)
{
    char text[LH_SCHEME_WORDS_MAX];
    assert_string_equal(lh_scheme_report_words(&report, text, sizeof text), words);
}

static void test_known(void **state)
{
    (void)state;
    expect(
        "sr-nack until something is lost; round trip 25ms, a rate not known yet, none of 1000 chunks lost");
    report.rate_bps = 1e9;
    report.plans = 3;
    report.chunks_lost = 10;
    report.run_chunks = 1.5;
    report.chunk_loss_planned = 0.01;
    report.expected_s = 0.04;
    expect(
        "sr-nack for messages of 1MiB: 40ms expected; round trip 25ms, 1Gbit/s, 10 of 1000 chunks lost in "
        "runs of 1.5, planned for 1.0e-02");
    report.automatic = false;
    expect("sr-nack, as it was asked for");
}

static void test_not_measured(void **state)
{
    (void)state;
    report.rtt_ns = 0;
    report.chunks_seen = 0;
    expect("sr-nack until something is lost; round trip not known yet, nothing was received yet");
    report.chunks_seen = 1000;
    report.chunks_lost = 10; /* and no plan since */
    report.run_chunks = 1;
    expect("sr-nack for messages of 1MiB, not planned yet; round trip not known yet, a rate not known yet, "
           "10 of "
           "1000 chunks lost in runs of 1.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_known, setup),
                                       cmocka_unit_test_setup(test_not_measured, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
