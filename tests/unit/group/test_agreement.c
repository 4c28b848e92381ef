/*
 * test_agreement.c - ranks that agree on who has failed; reports travel as the test likes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/agreement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

#define RANKS     4u
#define LETTERS   256u
#define ALL_RANKS UINT32_MAX

struct rank {
    struct link links[RANKS];
    uint32_t of_mesh[RANKS];
    struct members members;
    uint32_t next_group;
    uint32_t measured;
    struct agreement agreement;
};

struct letter {
    uint32_t from, to;
    uint8_t body[AGREEMENT_BYTES];
};

static struct rank ranks[RANKS];
static struct letter letters[LETTERS];
static uint32_t first_letter, letter_count;

/* In the place of a link: the letter waits until the test delivers it. */
int link_send_control(struct link *link, const struct tag *tag, const void *data, size_t bytes)
{
    uint32_t from = 0;
    while (link < ranks[from].links || link >= ranks[from].links + RANKS)
        from++;
    assert_int_equal(tag->kind, TAG_AGREE);
    assert_int_equal(bytes, AGREEMENT_BYTES);
    assert_true(letter_count < LETTERS);
    struct letter *letter = &letters[letter_count++];
    *letter = (struct letter){.from = from, .to = (uint32_t)(link - ranks[from].links)};
    memcpy(letter->body, data, bytes);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    memset(ranks, 0, sizeof ranks);
    first_letter = letter_count = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        struct rank *rank = &ranks[r];
        for (uint32_t i = 0; i < RANKS; i++)
            rank->of_mesh[i] = i;
        rank->members =
            (struct members){.rank = r, .size = RANKS, .of_mesh = rank->of_mesh, .links = rank->links};
        rank->next_group = 10 + r;
        rank->measured = 7;
        assert_int_equal(agreement_init(&rank->agreement, &rank->members), 0);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        agreement_free(&ranks[r].agreement);
    return 0;
}

static void begin_at(uint32_t rank)
{
    agreement_begin(&ranks[rank].agreement, ranks[rank].next_group, ranks[rank].measured);
}

static void die(uint32_t rank, uint32_t for_whom)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != rank && (for_whom == ALL_RANKS || for_whom == r)) {
            ranks[r].links[rank].error = -1;
            agreement_on_link_failed(&ranks[r].agreement);
        }
}

/* As the mesh does it. */
static void give(const struct letter *letter)
{
    struct agreement *agreement = &ranks[letter->to].agreement;
    uint32_t failed = 0;
    assert_true(agreement_on_report(agreement, letter->from, letter->body, AGREEMENT_BYTES));
    agreement_answer(agreement, letter->from);
    while (agreement_next_failed(agreement, &failed)) {
        ranks[letter->to].links[failed++].error = -1;
        agreement_on_link_failed(agreement);
    }
}

/* All that is on the way, also what follows from it, but for that from and to the dead. */
static void deliver(uint32_t dead)
{
    for (; first_letter < letter_count; first_letter++)
        if (letters[first_letter].from != dead && letters[first_letter].to != dead)
            give(&letters[first_letter]);
}

static void expect_result(uint32_t rank, uint32_t failed)
{
    const struct agreement *agreement = &ranks[rank].agreement;
    assert_true(agreement_is_reached(agreement));
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(agreement_has(agreement_failed(agreement), r), r == failed);
}

/* Of reports that all are the same. */
static void expect_failed(uint32_t rank, uint32_t failed)
{
    expect_result(rank, failed);
    assert_int_equal(agreement_missing(&ranks[rank].agreement), LH_GROUP_RANKS_MAX);
}

/* ---- agreeing ---------------------------------------------------------------------------------------- */

static void test_nobody_has_failed(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_false(agreement_is_reached(&ranks[r].agreement));
        begin_at(r);
        assert_int_equal(letter_count, (r + 1) * (RANKS - 1)); /* to all others */
    }
    deliver(ALL_RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        expect_failed(r, ALL_RANKS);
        assert_int_equal(ranks[r].agreement.next_group, 10 + RANKS - 1); /* the highest */
        assert_int_equal(ranks[r].agreement.measured, 7);
    }
    assert_int_equal(letter_count, RANKS * (RANKS - 1)); /* and nothing more */
}

static void test_what_they_know_of_paths_differs(void **state)
{
    (void)state;
    ranks[2].measured = 8;
    for (uint32_t r = 0; r < RANKS; r++)
        begin_at(r);
    deliver(ALL_RANKS);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].agreement.measured, 0);
}

/* Who is late is named, and held nobody up who is dead. */
static void test_who_is_missing(void **state)
{
    (void)state;
    die(3, ALL_RANKS);
    begin_at(0);
    assert_int_equal(agreement_missing(&ranks[0].agreement), 1);
    begin_at(1);
    deliver(3);
    assert_int_equal(agreement_missing(&ranks[0].agreement), 2);
    assert_false(agreement_is_reached(&ranks[0].agreement));
    begin_at(2);
    deliver(3);
    for (uint32_t r = 0; r < 3; r++) {
        expect_failed(r, 3);
        assert_int_equal(ranks[r].agreement.next_group, 12); /* of those that are left */
    }
}

/* One has found it, before or while they agree: the others learn of it by the report. */
static void test_found_by_one(void **state)
{
    for (int before = 0; before < 2; before++) {
        if (before)
            die(3, 0);
        for (uint32_t r = 0; r < 3; r++)
            begin_at(r);
        if (!before)
            die(3, 0);
        deliver(3);
        for (uint32_t r = 0; r < 3; r++) {
            expect_failed(r, 3);
            assert_int_equal(ranks[r].links[3].error, -1);
        }
        end(state);
        begin(state);
    }
}

/* All but the one that fails have agreed: who hears of it afterwards takes the result over as it is. */
static void test_the_result_is_final(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        begin_at(r);
    /* Rank 2 hears nothing yet; the others have agreed. */
    struct letter late[LETTERS];
    uint32_t late_count = 0;
    for (; first_letter < letter_count; first_letter++)
        if (letters[first_letter].to == 2)
            late[late_count++] = letters[first_letter];
        else
            give(&letters[first_letter]);
    expect_failed(0, ALL_RANKS);
    die(3, 2);
    assert_false(agreement_is_reached(&ranks[2].agreement));
    deliver(3); /* what rank 2 reports now differs: it is answered */
    for (uint32_t i = 0; i < late_count; i++)
        if (late[i].from != 3)
            give(&late[i]);
    deliver(3);
    expect_result(2, ALL_RANKS);
    assert_int_equal(ranks[2].agreement.next_group, 13);
    uint32_t told = 0; /* it passes that on: who told it may be dead */
    for (uint32_t i = 0; i < letter_count; i++)
        if (letters[i].from == 2 && lh_get_be32(letters[i].body + 8) == 1)
            told |= 1u << letters[i].to;
    assert_int_equal(told, 1 + 2 + 8);
}

/* Begun again while the last one is open it goes on; when that was ended there is another round. */
static void test_rounds(void **state)
{
    (void)state;
    begin_at(0);
    begin_at(0);
    assert_int_equal(letter_count, RANKS - 1);
    assert_int_equal(ranks[0].agreement.round, 1);
    for (uint32_t r = 1; r < RANKS; r++)
        begin_at(r);
    deliver(ALL_RANKS);
    for (uint32_t r = 0; r < RANKS; r++)
        agreement_end(&ranks[r].agreement);
    begin_at(0);
    assert_int_equal(ranks[0].agreement.round, 2);
    assert_int_equal(agreement_missing(&ranks[0].agreement), 1); /* reports of the first do not count */
    die(3, 0);
    deliver(3);
    assert_false(agreement_has(agreement_failed(&ranks[1].agreement), 3)); /* whose first one is over */
    begin_at(1);
    begin_at(2);
    deliver(3);
    for (uint32_t r = 0; r < 3; r++)
        expect_failed(r, 3);
}

static void test_sets_of_ranks(void **state)
{
    (void)state;
    for (uint32_t one = 0; one < LH_GROUP_RANKS_MAX; one += 5) {
        struct agreement_set set = {0};
        set.bits[one / 8] = (uint8_t)(1u << one % 8);
        for (uint32_t r = 0; r < LH_GROUP_RANKS_MAX; r++)
            assert_int_equal(agreement_has(&set, r), r == one);
    }
}

/* ---- what is no report ------------------------------------------------------------------------------- */

static void test_bodies_that_are_none(void **state)
{
    (void)state;
    uint8_t body[AGREEMENT_BYTES + 1] = {0};
    struct agreement *agreement = &ranks[0].agreement;
    begin_at(0);
    lh_put_be32(body + 4, 1);
    assert_false(agreement_on_report(agreement, 1, body, AGREEMENT_BYTES - 1));
    assert_false(agreement_on_report(agreement, 1, body, AGREEMENT_BYTES + 1));
    lh_put_be32(body, (1u << TAG_GROUP_BITS) + 1);
    assert_false(agreement_on_report(agreement, 1, body, AGREEMENT_BYTES));
    lh_put_be32(body, 1u << TAG_GROUP_BITS);
    lh_put_be32(body + 8, 2);
    assert_false(agreement_on_report(agreement, 1, body, AGREEMENT_BYTES));
    assert_int_equal(agreement_missing(agreement), 1);
    lh_put_be32(body + 8, 0);
    assert_true(agreement_on_report(agreement, 1, body, AGREEMENT_BYTES));
    assert_int_equal(agreement_missing(agreement), 2);
}

#define AGREEMENT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGREEMENT_TEST(test_nobody_has_failed),   AGREEMENT_TEST(test_what_they_know_of_paths_differs),
        AGREEMENT_TEST(test_who_is_missing),      AGREEMENT_TEST(test_found_by_one),
        AGREEMENT_TEST(test_the_result_is_final), AGREEMENT_TEST(test_rounds),
        AGREEMENT_TEST(test_sets_of_ranks),       AGREEMENT_TEST(test_bodies_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
