/*
 * test_worker_sleep.c - of those that lead to one peer exactly one keeps the way open, whoever comes and
 * goes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "sdr/run_queue.h"
#include "sdr/worker_sleep.h"

/* ---- test keepalive groups ------------------------------------------------------------------------- */

#define PEERS   600u /* more than there are lists: some share one */
#define MEMBERS 2000u

static struct keepalive_table table;
static struct keepalive_member members[MEMBERS];
static uint32_t peer_of[MEMBERS];
static uint32_t members_of[PEERS], keepalive_table_of[PEERS];

static void add(uint32_t i, uint32_t peer)
{
    uint8_t key[KEEPALIVE_KEY_BYTES] = {4, (uint8_t)peer, (uint8_t)(peer >> 8)};
    keepalive_table_add(&table, &members[i], key);
    peer_of[i] = peer;
}

static void check(void)
{
    for (uint32_t p = 0; p < PEERS; p++)
        members_of[p] = keepalive_table_of[p] = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_true(members[i].listed || !members[i].keeps);
        members_of[peer_of[i]] += members[i].listed;
        keepalive_table_of[peer_of[i]] += members[i].keeps;
    }
    for (uint32_t p = 0; p < PEERS; p++)
        assert_int_equal(keepalive_table_of[p], members_of[p] > 0);
}

static void test_one_for_each_peer(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    keepalive_table_init(&table);
    for (uint32_t turn = 0; turn < 40000; turn++) {
        uint32_t i = (uint32_t)(lh_prng_next(&prng) % MEMBERS);
        if (!members[i].listed) {
            add(i, (uint32_t)(lh_prng_next(&prng) % PEERS));
            continue;
        }
        bool kept = members[i].keeps;
        struct keepalive_member *successor = keepalive_table_remove(&table, &members[i]);
        if (successor)
            assert_true(kept && successor->keeps && peer_of[successor - members] == peer_of[i]);
        if (turn % 100 == 0)
            check();
    }
    check();
    for (uint32_t i = 0; i < MEMBERS; i++)
        keepalive_table_remove(&table, &members[i]);
    check();
    keepalive_table_destroy(&table);
}

/* Each byte of the key counts. */
static void test_who_is_the_same_peer(void **state)
{
    (void)state;
    uint8_t key[KEEPALIVE_KEY_BYTES] = {0};
    keepalive_table_init(&table);
    keepalive_table_add(&table, &members[0], key);
    keepalive_table_add(&table, &members[1], key);
    assert_true(members[0].keeps && !members[1].keeps);
    for (uint32_t i = 0; i < KEEPALIVE_KEY_BYTES; i++) {
        key[i] ^= 1;
        keepalive_table_add(&table, &members[2 + i], key);
        assert_true(members[2 + i].keeps);
        key[i] ^= 1;
    }
    assert_null(keepalive_table_remove(&table, &members[2]));
    assert_null(keepalive_table_remove(&table, &members[2])); /* again: nothing */
    assert_ptr_equal(keepalive_table_remove(&table, &members[0]), &members[1]);
    for (uint32_t i = 1; i < 2 + KEEPALIVE_KEY_BYTES; i++)
        keepalive_table_remove(&table, &members[i]);
    keepalive_table_destroy(&table);
}

/* One side of some pairs of QPs; a token of this side is its peer's plus or minus 5000. */
static struct keepalive_table sides[2];
static struct keepalive_member ends[2][4];

static void begin_pairs(uint32_t count)
{
    for (uint32_t side = 0; side < 2; side++) {
        keepalive_table_init(&sides[side]);
        for (uint32_t i = 0; i < count; i++) {
            uint8_t key[KEEPALIVE_KEY_BYTES] = {0};
            ends[side][i] =
                (struct keepalive_member){.token = 5000 * side + KEEPALIVE_TOKENS * i,
                                          .peer_token = 5000 * (1 - side) + KEEPALIVE_TOKENS * i,
                                          .asked_for = true,
                                          .interval_ns = 1000};
            keepalive_table_add(&sides[side], &ends[side][i], key);
            keepalive_member_wait(&ends[side][i], side == 0, 0);
        }
    }
}

static void end_pairs(uint32_t count)
{
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < count; i++)
            keepalive_table_remove(&sides[side], &ends[side][i]);
        keepalive_table_destroy(&sides[side]);
    }
}

/* Returns how many were asked for; *alone: how many are left alone by that. */
static uint32_t ask(lh_time now, bool answered, uint32_t *alone)
{
    uint32_t tokens[2], found[2], count, asked = 0;
    struct keepalive_query question = keepalive_table_query(&sides[0], &ends[0][0], now);
    while ((count = keepalive_table_fill_query(&sides[0], &question, tokens, 2)) > 0) {
        asked += count;
        if (!answered)
            continue;
        count = keepalive_table_answer(&sides[1], &ends[1][0], tokens, count, now, found);
        keepalive_table_on_alive(&sides[0], &ends[0][0], found, count, now);
    }
    *alone = 0;
    for (struct keepalive_member *at = question.alone; at; at = at->next_alone)
        ++*alone;
    return asked;
}

static void test_one_asks_for_all(void **state)
{
    (void)state;
    uint32_t alone;
    begin_pairs(4);
    assert_true(keepalive_member_is_alone(&ends[0][0]) && keepalive_member_is_alone(&ends[0][1]));
    assert_int_equal(ask(1000, true, &alone), 3);
    assert_true(keepalive_member_is_alone(&ends[0][0])); /* who asks */
    for (uint32_t i = 1; i < 4; i++) {
        assert_false(keepalive_member_is_alone(&ends[0][i]));
        assert_int_equal(ends[0][i].alive_ns, 1000);
        assert_int_equal(ends[1][i].alive_ns, 1000); /* its peer, which was asked for */
    }
    assert_int_equal(ask(1499, true, &alone), 0); /* that is known */
    keepalive_member_wait(&ends[0][2], false, 0);
    assert_int_equal(ask(2000, true, &alone), 2);
    /* One that has ended: alone after the next question, and asked for nevertheless. */
    keepalive_table_remove(&sides[1], &ends[1][1]);
    assert_int_equal(ask(3000, true, &alone), 2);
    assert_int_equal(alone, 0);
    assert_int_equal(ask(4000, true, &alone), 2);
    assert_int_equal(alone, 1);
    assert_true(keepalive_member_is_alone(&ends[0][1]) && !keepalive_member_is_alone(&ends[0][3]));
    assert_in_range(ends[0][1].ping_from, 4000, 5000);
    assert_int_equal(ends[0][1].alive_ns, 2000);
    end_pairs(4);
}

static void test_who_is_alone(void **state)
{
    (void)state;
    uint32_t alone;
    begin_pairs(4);
    ends[0][1].interval_ns = 999; /* more often than the first asks */
    ends[0][2].asked_for = false; /* of an older peer */
    assert_int_equal(ask(1000, true, &alone), 1);
    assert_true(keepalive_member_is_alone(&ends[0][1]) && keepalive_member_is_alone(&ends[0][2]));
    assert_int_equal(ask(2000, false, &alone), 1);
    assert_false(keepalive_member_is_alone(&ends[0][3]));
    ask(3000, false, &alone);
    assert_true(keepalive_member_is_alone(&ends[0][3]));
    assert_int_equal(ask(4000, true, &alone), 1); /* the peer is back */
    assert_false(keepalive_member_is_alone(&ends[0][3]));
    end_pairs(4);
}

/* Tokens of another peer's QPs, and such as nobody has. */
static void test_others_are_not_answered_for(void **state)
{
    (void)state;
    uint32_t found[2];
    uint8_t key[KEEPALIVE_KEY_BYTES] = {6};
    begin_pairs(2);
    struct keepalive_member stranger = {.token = 77, .peer_token = 78};
    keepalive_table_add(&sides[1], &stranger, key);
    assert_int_equal(
        keepalive_table_answer(&sides[1], &ends[1][0], (const uint32_t[]){77, 78}, 2, 1000, found), 0);
    assert_int_equal(stranger.alive_ns, 0);
    keepalive_table_on_alive(&sides[1], &ends[1][0], (const uint32_t[]){77, 78}, 2, 1000);
    assert_int_equal(stranger.alive_ns, 0);
    keepalive_table_remove(&sides[1], &stranger);
    end_pairs(2);
}

static int run_keepalive_table(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_for_each_peer),
        cmocka_unit_test(test_who_is_the_same_peer),
        cmocka_unit_test(test_one_asks_for_all),
        cmocka_unit_test(test_who_is_alone),
        cmocka_unit_test(test_others_are_not_answered_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test rest ------------------------------------------------------------------------------------- */

/* How long packets may wait in the sockets: a part of the round trip, and of the buffer. */

#define MS LH_NS_PER_MS
#define US LH_NS_PER_US

/* What is allowed after a while at that rate. */
static lh_time span_at(lh_time rtt_ns, uint64_t packets_a_ms, uint64_t buffer_packets)
{
    struct coalesce coalesce = {0};
    lh_time span_ns = 0;
    for (uint64_t i = 1; i <= 10; i++)
        span_ns =
            coalesce_span(&coalesce, COALESCE_FIRST + i * packets_a_ms, rtt_ns, buffer_packets, i * MS);
    return span_ns;
}

static void test_part_of_the_round_trip(void **state)
{
    (void)state;
    assert_int_equal(span_at(0, 10, 8000), 0);
    assert_int_equal(span_at(50 * US, 10, 8000), 0);
    assert_int_equal(span_at(25600 * US, 10, 8000), 100 * US);
    assert_int_equal(span_at(300 * MS, 10, 8000), COALESCE_MAX_NS);
}

/* 250 packets a millisecond; the buffer holds 100: its eighth is filled in 48 us. */
static void test_part_of_the_buffer(void **state)
{
    (void)state;
    assert_in_range(span_at(300 * MS, 250, 100), 40 * US, 50 * US);
    assert_int_equal(span_at(300 * MS, 2500, 100), 0);
    assert_int_equal(span_at(300 * MS, 2500, 8000), COALESCE_MAX_NS);
}

static void test_follows_the_rate(void **state)
{
    (void)state;
    struct coalesce coalesce = {0};
    assert_int_equal(coalesce_span(&coalesce, COALESCE_FIRST - 1, 100 * MS, 1000, MS), 0);
    assert_int_equal(coalesce_span(&coalesce, COALESCE_FIRST, 100 * MS, 1000, 2 * MS), COALESCE_MAX_NS);
    assert_int_equal(coalesce_span(&coalesce, 50000, 100 * MS, 1000, 3 * MS), 0);
    assert_int_equal(coalesce_span(&coalesce, 50001, 100 * MS, 1000, 4 * MS), COALESCE_MAX_NS);
}

static int run_rest(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_part_of_the_round_trip),
        cmocka_unit_test(test_part_of_the_buffer),
        cmocka_unit_test(test_follows_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test spin ------------------------------------------------------------------------------------- */

/* A worker spins where pauses are short, and no longer where they are not. */

static lh_time spin_now;

/* As a worker does: spins, or sleeps, until work comes after the pause. Returns whether it slept. */
static bool pause_of(struct spin *spin, lh_time pause_ns)
{
    lh_time start = spin_now;
    bool slept = false;
    for (; spin_now < start + pause_ns; spin_now += US)
        if (!slept && spin_is_over(spin, spin_now)) {
            spin_on_sleep(spin);
            slept = true;
        }
    spin_on_work(spin, spin_now);
    return slept;
}

static void start(struct spin *spin)
{
    spin_now = LH_NS_PER_S;
    spin_init(spin, SPIN_NS);
    spin_on_work(spin, spin_now);
}

static void test_short_pauses_are_spun_through(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 100; i++)
        assert_false(pause_of(&spin, 40 * US));
    /* A long one now and then changes nothing. */
    assert_true(pause_of(&spin, LH_NS_PER_S));
    assert_false(pause_of(&spin, 40 * US));
}

static void test_long_pauses_are_slept_through(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 4; i++)
        pause_of(&spin, 125 * US);
    lh_time before = spin_now;
    assert_true(spin_is_over(&spin, before));
    /* Rounds that find work at once are no pauses. */
    for (int i = 0; i < 100; i++)
        pause_of(&spin, US);
    assert_true(spin_is_over(&spin, spin_now));
}

/* Two that answer each other sleep both, and the pause is longer by that: still they find back. */
static void test_sleepers_find_back(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 20; i++)
        pause_of(&spin, LH_NS_PER_MS);
    bool slept = true;
    for (int i = 0; i < 20 && slept; i++)
        slept = pause_of(&spin, 90 * US);
    assert_false(spin_is_over(&spin, spin_now));
}

static void test_length_is_an_attribute(void **state)
{
    (void)state;
    struct spin spin;
    assert_int_equal(spin_ns_of(0), SPIN_NS);
    assert_int_equal(spin_ns_of(LH_NO_SPIN), 0);
    assert_int_equal(spin_ns_of(7 * US), 7 * US);
    start(&spin);
    spin.spin_ns = 200 * US;
    for (int i = 0; i < 20; i++)
        assert_false(pause_of(&spin, 190 * US));
    assert_true(pause_of(&spin, 210 * US));
    start(&spin);
    spin.spin_ns = 0;
    for (int i = 0; i < 20; i++)
        assert_true(pause_of(&spin, 6 * US));
}

static int run_spin(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_pauses_are_spun_through),
        cmocka_unit_test(test_long_pauses_are_slept_through),
        cmocka_unit_test(test_sleepers_find_back),
        cmocka_unit_test(test_length_is_an_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test watch ------------------------------------------------------------------------------------ */

/*
 * What is readable is reported to who waits for it; descriptors that several have in
 * common, and those of layers above.
 */

#define ENTRIES 3u

static struct watch watch;
static struct run_entry entries[ENTRIES];
static struct watch_fds registered[ENTRIES];
static int fds[3];

static int begin(void **state)
{
    (void)state;
    watch_init(&watch);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK);
        registered[i] = (struct watch_fds){0};
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    watch_close(&watch);
    for (uint32_t i = 0; i < ENTRIES; i++)
        close(fds[i]);
    return 0;
}

static void wait_for(uint32_t entry, const int *wanted, uint32_t count)
{
    assert_int_equal(watch_set(&watch, &entries[entry], &registered[entry], wanted, count), 0);
}

static void write_to(int fd)
{
    const uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

static void drain(int fd)
{
    uint64_t drained;
    assert_int_equal(read(fd, &drained, sizeof drained), sizeof drained);
}

static void expect_ready(const struct run_entry *entry)
{
    struct watch_report report;
    watch_look(&watch, &report);
    assert_int_equal(report.other_count, 0);
    assert_int_equal(report.count, entry != NULL);
    if (entry)
        assert_ptr_equal(report.ready[0], entry);
}

static void test_each_has_its_own(void **state)
{
    (void)state;
    expect_ready(NULL);
    wait_for(0, &fds[0], 1);
    wait_for(1, &fds[1], 2);
    expect_ready(NULL);
    write_to(fds[2]);
    expect_ready(&entries[1]);
    drain(fds[2]);
    write_to(fds[0]);
    expect_ready(&entries[0]);
    wait_for(0, NULL, 0);
    expect_ready(NULL);
    assert_int_equal(watch.removed_count, 0); /* nobody else waits for it */
}

/* Who is left is to register again what others had in common with it. */
static void test_in_common(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENTRIES; i++)
        wait_for(i, fds, 2);
    wait_for(0, fds, 2); /* again: as before */
    for (uint32_t i = 0; i < ENTRIES; i++) {
        wait_for(i, &fds[1], 1);
        assert_int_equal(watch.removed_count, i < ENTRIES - 1);
        if (watch.removed_count)
            assert_int_equal(watch.removed[--watch.removed_count], fds[0]);
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        wait_for(i, NULL, 0);
        assert_int_equal(watch.removed_count, i < ENTRIES - 1);
        watch.removed_count = 0;
    }
}

static uint32_t calls;

static bool on_ready(void *context)
{
    assert_ptr_equal(context, &calls);
    calls++;
    return true;
}

static uint32_t others_ready(void)
{
    struct watch_report report;
    watch_look(&watch, &report);
    for (uint32_t i = 0; i < report.other_count; i++)
        report.others[i]->on_ready(report.others[i]->context);
    return report.other_count;
}

static void test_those_of_layers_above(void **state)
{
    (void)state;
    struct watch_other other = {.fd = fds[1], .on_ready = on_ready, .context = &calls};
    wait_for(0, &fds[0], 1);
    watch_remove_other(&watch, &other); /* not watched: nothing */
    assert_int_equal(watch_add_other(&watch, &other), 0);
    assert_int_equal(watch.others, 1);
    assert_int_equal(others_ready(), 0);
    watch_writable(&watch, &other, true); /* an eventfd is */
    assert_int_equal(others_ready(), 1);
    watch_writable(&watch, &other, false);
    assert_int_equal(others_ready(), 0);
    write_to(fds[1]);
    assert_int_equal(others_ready(), 1);
    assert_int_equal(calls, 2);
    watch_remove_other(&watch, &other);
    assert_int_equal(watch.others, 0);
    assert_int_equal(others_ready(), 0);
    write_to(fds[0]);
    expect_ready(&entries[0]);
    wait_for(0, NULL, 0);
}

static int run_watch(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_has_its_own, begin, end),
        cmocka_unit_test_setup_teardown(test_in_common, begin, end),
        cmocka_unit_test_setup_teardown(test_those_of_layers_above, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_keepalive_table() + run_rest() + run_spin() + run_watch();
}
