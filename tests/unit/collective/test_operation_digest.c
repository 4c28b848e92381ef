/*
 * test_operation_digest.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>

#include "collective/operation_digest.h"
#include "group/group_messages.h"

/* ---- test digest ----------------------------------------------------------------------------------- */

#define RANKS_MAX 7u

/* Of the empty input: as xxhsum -H2 prints it. */
static void test_known(void **state)
{
    static const uint8_t expected[DIGEST_BYTES] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                                   0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    uint8_t digest[DIGEST_BYTES];
    (void)state;
    digest_of(&(struct lh_buffer){0}, digest);
    assert_memory_equal(digest, expected, sizeof digest);
}

static void test_each_bit_counts(void **state)
{
    uint8_t data[300] = {0}, usual[DIGEST_BYTES], other[DIGEST_BYTES];
    struct lh_buffer buffer = {data, sizeof data};
    (void)state;
    digest_of(&buffer, usual);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        digest_of(&buffer, other);
        assert_memory_not_equal(usual, other, DIGEST_BYTES);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buffer.bytes--; /* all of it is 0 */
    digest_of(&buffer, other);
    assert_memory_not_equal(usual, other, DIGEST_BYTES);
}

/* contents: a letter a rank, for each buffer; expected: 'x' where it differs. */
static void check(const char *const *contents, const char *const *expected, uint32_t buffers)
{
    uint8_t digests[RANKS_MAX * 3 * DIGEST_BYTES] = {0};
    bool differs[RANKS_MAX * 3];
    uint32_t ranks = (uint32_t)strlen(contents[0]);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t b = 0; b < buffers; b++)
            memset(digests + (r * buffers + b) * DIGEST_BYTES, contents[b][r], DIGEST_BYTES);
    digests_compare(digests, ranks, buffers, differs);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t b = 0; b < buffers; b++)
            assert_int_equal(differs[r * buffers + b], expected[b][r] == 'x');
}

static void test_most(void **state)
{
    (void)state;
    check((const char *const[]){"a"}, (const char *const[]){"-"}, 1);
    check((const char *const[]){"aaaaaaa", "aaaabaa", "baaaaaa"},
          (const char *const[]){"-------", "----x--", "x------"}, 3);
    check((const char *const[]){"abbcdcc"}, (const char *const[]){"xxx-x--"}, 1); /* not half of them */
    check((const char *const[]){"xabbaa"}, (const char *const[]){"x-xx--"}, 1);
}

/* Of two ranks nobody knows which is right. */
static void test_ties(void **state)
{
    (void)state;
    check((const char *const[]){"ab"}, (const char *const[]){"-x"}, 1);
    check((const char *const[]){"cabba"}, (const char *const[]){"x-xx-"}, 1);
    check((const char *const[]){"abcdefg"}, (const char *const[]){"-xxxxxx"}, 1);
}

static int run_digest(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_each_bit_counts),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test names ------------------------------------------------------------------------------------ */

static void test_types(void **state)
{
    static const size_t bytes[LH_TYPES] = {4, 8, 2, 2, 4, 8, 1, 1, 2};
    (void)state;
    for (int type = 0; type < LH_TYPES; type++)
        assert_int_equal(lh_type_bytes((enum lh_type)type), bytes[type]);
    assert_string_equal(lh_type_name(LH_BF16), "bf16");
    assert_string_equal(lh_type_name(LH_I8), "i8");
    assert_string_equal(lh_type_name(LH_I16), "i16");
    assert_string_equal(lh_reduction_name(LH_AVG), "avg");
    assert_string_equal(lh_reduction_name(LH_BAND), "band");
    assert_string_equal(lh_reduction_name(LH_BOR), "bor");
    assert_string_equal(lh_reduction_name(LH_BXOR), "bxor");
    for (int type = 0; type < LH_TYPES; type++) {
        assert_true(reduction_takes(LH_AVG, (enum lh_type)type));
        assert_int_equal(reduction_takes(LH_BAND, (enum lh_type)type), type > LH_BF16);
        assert_int_equal(reduction_takes(LH_BXOR, (enum lh_type)type), type > LH_BF16);
    }
    assert_int_equal(lh_type_bytes(LH_TYPES), 0);
    assert_null(lh_type_name(LH_TYPES));
    assert_null(lh_reduction_name(LH_REDUCTIONS));
}

static void test_schedules(void **state)
{
    bool ring = false;
    uint32_t count = 0;
    (void)state;
    for (const char *name; (name = lh_collective_schedule("allgather", count)); count++)
        ring = ring || strcmp(name, "ring") == 0;
    assert_true(ring && count >= 2);
    assert_null(lh_collective_schedule("allreduction", 0));
}

static void test_named(void **state)
{
    char names[64], few[12];
    (void)state;
    assert_string_equal(named_schedule(COLLECTIVE_SCATTER, "binomial-tree", names, sizeof names)->name,
                        "binomial-tree");
    assert_null(named_schedule(COLLECTIVE_ALLGATHER, "chain", names, sizeof names));
    assert_non_null(strstr(names, "ring"));
    assert_null(named_schedule(COLLECTIVE_ALLREDUCE, "none", few, sizeof few));
    assert_true(strlen(few) < sizeof few);
}

static int run_names(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test notice ----------------------------------------------------------------------------------- */

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

static int run_notice(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test signature -------------------------------------------------------------------------------- */

static const struct signature signature_usual = {.collective = COLLECTIVE_ALLREDUCE,
                                                 .type = LH_BF16,
                                                 .reduction = LH_MAX,
                                                 .root = 3,
                                                 .count = 1ull << 40,
                                                 .block_bytes = 65536,
                                                 .schedule = "halving-doubling"};

static void signature_test_round_trip(void **state)
{
    uint8_t wire[SIGNATURE_BYTES];
    struct signature back;
    char text[128];
    (void)state;
    signature_encode(&signature_usual, wire);
    assert_true(signature_decode(wire, sizeof wire, &back));
    assert_memory_equal(&back, &signature_usual, sizeof back);
    assert_false(signature_differs(&signature_usual, 0, &back, 1, text, sizeof text));
}

static void check_difference(const struct signature *other, const char *expected)
{
    char text[128];
    assert_true(signature_differs(&signature_usual, 2, other, 5, text, sizeof text));
    assert_string_equal(text, expected);
}

static void test_differences(void **state)
{
    struct signature other = signature_usual;
    (void)state;
    other.collective = COLLECTIVE_BARRIER;
    check_difference(&other, "collective allreduce at rank 2, barrier at rank 5");
    other = signature_usual;
    other.type = LH_U8;
    check_difference(&other, "type bf16 at rank 2, u8 at rank 5");
    other = signature_usual;
    other.count = 7;
    check_difference(&other, "count 1099511627776 at rank 2, 7 at rank 5");
    other = signature_usual;
    other.reduction = LH_AVG;
    check_difference(&other, "reduction max at rank 2, avg at rank 5");
    other = signature_usual;
    other.root = 0;
    check_difference(&other, "root 3 at rank 2, 0 at rank 5");
    other = signature_usual;
    strcpy(other.schedule, "ring");
    check_difference(&other, "schedule halving-doubling at rank 2, ring at rank 5");
    other = signature_usual;
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
static void signature_test_hostile(void **state)
{
    uint8_t wire[SIGNATURE_BYTES], again[SIGNATURE_BYTES];
    struct signature back;
    (void)state;
    signature_encode(&signature_usual, wire);
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

static int run_signature(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature_test_round_trip),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(signature_test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_digest() + run_names() + run_notice() + run_signature();
}
