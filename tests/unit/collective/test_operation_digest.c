/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>

static const struct signature usual = {.collective = COLLECTIVE_ALLREDUCE,
                                       .type = LH_BF16,
                                       .reduction = LH_MAX,
                                       .root = 3,
                                       .count = 1ull << 40,
                                       .block_bytes = 65536,
                                       .schedule = "halving-doubling"};

static void test_round_trip(void **state)
{
    uint8_t wire[SIGNATURE_BYTES];
    struct signature back;
    char text[128];
    (void)state;
    signature_encode(&usual, wire);
    assert_true(signature_decode(wire, sizeof wire, &back));
    assert_memory_equal(&back, &usual, sizeof back);
    assert_false(signature_differs(&usual, 0, &back, 1, text, sizeof text));
}

static void check_difference(const struct signature *other, const char *expected)
{
    char text[128];
    assert_true(signature_differs(&usual, 2, other, 5, text, sizeof text));
    assert_string_equal(text, expected);
}

static void test_differences(void **state)
{
    struct signature other = usual;
    (void)state;
    other.collective = COLLECTIVE_BARRIER;
    check_difference(&other, "collective allreduce at rank 2, barrier at rank 5");
    other = usual;
    other.type = LH_U8;
    check_difference(&other, "type bf16 at rank 2, u8 at rank 5");
    other = usual;
    other.count = 7;
    check_difference(&other, "count 1099511627776 at rank 2, 7 at rank 5");
    other = usual;
    other.reduction = LH_AVG;
    check_difference(&other, "reduction max at rank 2, avg at rank 5");
    other = usual;
    other.root = 0;
    check_difference(&other, "root 3 at rank 2, 0 at rank 5");
    other = usual;
    strcpy(other.schedule, "ring");
    check_difference(&other, "schedule halving-doubling at rank 2, ring at rank 5");
    other = usual;
    other.block_bytes = 4096;
    check_difference(&other, "block_bytes 65536 at rank 2, 4096 at rank 5");
}

/* What one has for the other is what that gets of it. */
static void test_uneven(void **state)
{
    struct signature one = {.collective = COLLECTIVE_ALLTOALL,
                            .count = 5,
                            .returned = 9,
                            .block_bytes = 4096,
                            .form = CALL_UNEVEN,
                            .schedule = "pairwise"};
    struct signature other = one, back;
    uint8_t wire[SIGNATURE_BYTES];
    char text[128];
    (void)state;
    other.count = 9;
    other.returned = 5;
    signature_encode(&other, wire);
    assert_true(signature_decode(wire, sizeof wire, &back));
    assert_memory_equal(&back, &other, sizeof back);
    assert_false(signature_differs(&one, 2, &back, 1, text, sizeof text));
    other.returned = 6;
    assert_true(signature_differs(&one, 2, &other, 1, text, sizeof text));
    assert_string_equal(text, "count from rank 2 to rank 1: 6 at rank 1, 5 at rank 2");
    other.returned = 5;
    other.count = 0;
    assert_true(signature_differs(&one, 1, &other, 2, text, sizeof text));
    assert_string_equal(text, "count from rank 2 to rank 1: 9 at rank 1, 0 at rank 2");
    other = one;
    other.form = CALL_PLAIN;
    assert_true(signature_differs(&one, 1, &other, 2, text, sizeof text));
    assert_string_equal(text, "collective alltoallv at rank 1, alltoall at rank 2");
    other.form = CALL_UNEVEN; /* there is none */
    other.collective = COLLECTIVE_ALLREDUCE;
    signature_encode(&other, wire);
    assert_false(signature_decode(wire, sizeof wire, &back));
}

/* Every byte may be anything: it decodes to what encodes to the same, or not at all. */
static void test_hostile(void **state)
{
    uint8_t wire[SIGNATURE_BYTES], again[SIGNATURE_BYTES];
    struct signature back;
    (void)state;
    signature_encode(&usual, wire);
    assert_false(signature_decode(wire, sizeof wire - 1, &back));
    for (size_t at = 0; at < sizeof wire; at++)
        for (uint32_t value = 0; value < 256; value++) {
            uint8_t kept = wire[at];
            wire[at] = (uint8_t)value;
            if (signature_decode(wire, sizeof wire, &back)) {
                assert_true(back.collective < COLLECTIVES && back.type < LH_TYPES &&
                            back.reduction < LH_REDUCTIONS);
                assert_true(strlen(back.schedule) < SIGNATURE_NAME_MAX);
                signature_encode(&back, again);
            }
            wire[at] = kept;
        }
    wire[24] = '\n';
    assert_false(signature_decode(wire, sizeof wire, &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
