/*
 * test_group_meeting.c - ranks that meet, each in a thread; a rank against a rank 0 that the test plays; and
 * a group of the environment's variables, of one rank. Nobody waits for what does not come.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/group_meeting.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/group.h>
#include <longhaul/launch.h>

#include "base/bytes.h"
#include "base/error.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define RANKS_MAX   5u
#define BYTES       7u

static void settle(struct launcher_settings *settings, uint32_t rank, uint32_t size, uint16_t port)
{
    *settings = (struct launcher_settings){.launcher = "test", .rank = rank, .size = size};
    snprintf(settings->where, sizeof settings->where, "127.0.0.1:%u", port);
    strcpy(settings->listen, settings->where);
}

static uint16_t free_port(void)
{
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    close(fd);
    return port;
}

/* ---- ranks of this library --------------------------------------------------------------------------- */

struct rank {
    struct launcher_settings settings;
    int error;
    uint8_t all[2][RANKS_MAX * BYTES];
    pthread_t thread;
};

static void *run(void *argument)
{
    struct rank *rank = argument;
    struct group_meeting meeting;
    uint8_t mine[BYTES];
    rank->error = group_meeting_open(&rank->settings, NULL, PATIENCE_NS, &meeting);
    if (rank->error)
        return NULL;
    for (unsigned round = 0; round < 2 && !rank->error; round++) {
        memset(mine, (int)(10 * round + rank->settings.rank), sizeof mine);
        rank->error = group_meeting_exchange(&meeting, mine, sizeof mine, rank->all[round]);
    }
    if (!rank->error)
        rank->error = group_meeting_exchange(&meeting, NULL, 0, NULL);
    group_meeting_close(&meeting);
    return NULL;
}

static void all_meet(void **state)
{
    (void)state;
    static struct rank ranks[RANKS_MAX];
    for (uint32_t size = 1; size <= RANKS_MAX; size++) {
        uint16_t port = free_port();
        memset(ranks, 0, sizeof ranks);
        for (uint32_t r = 0; r < size; r++) {
            settle(&ranks[r].settings, r, size, port);
            strcpy(ranks[r].settings.secret, size % 2 ? "hush" : "");
            assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
        }
        for (uint32_t r = 0; r < size; r++)
            pthread_join(ranks[r].thread, NULL);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(ranks[r].error, 0);
            for (uint32_t i = 0; i < 2 * size * BYTES; i++) {
                uint32_t round = i / (size * BYTES), at = i % (size * BYTES);
                assert_int_equal(ranks[r].all[round][at], 10 * round + at / BYTES);
            }
        }
    }
}

static void the_port_is_taken(void **state)
{
    (void)state;
    struct launcher_settings settings;
    struct group_meeting meeting;
    uint16_t port;
    int fd;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    settle(&settings, 0, 2, port);
    assert_int_equal(group_meeting_open(&settings, NULL, PATIENCE_NS, &meeting), -LH_EADDR);
    assert_non_null(strstr(lh_last_error(), "set MASTER_PORT to a free port"));
    close(fd);
}

/* An error that the caller is about to read stays when the meeting is closed. */
static void the_last_error_stays(void **state)
{
    (void)state;
    struct launcher_settings settings;
    struct group_meeting meeting;
    settle(&settings, 0, 1, 1);
    assert_int_equal(group_meeting_open(&settings, NULL, 0, &meeting), 0);
    lh_fail(LH_EPEER, "the reason");
    group_meeting_close(&meeting);
    assert_string_equal(lh_last_error(), "the reason");
}

/* ---- a rank 0 that the test plays -------------------------------------------------------------------- */

struct root {
    int listener;
    const char *secret;
    struct group_challenge challenge; /* its answer to HELLO */
    void (*after)(int fd, const struct group_claim *claim, const char *secret);
    void *(*run)(void *root); /* NULL: run_root */
    pthread_t thread;
};

static void say(int fd, enum group_frame_type type, const void *body, uint32_t bytes)
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    group_frame_encode(&(struct group_frame){type, bytes}, head);
    tcp_write(fd, head, sizeof head, tcp_deadline(PATIENCE_NS));
    tcp_write(fd, body, bytes, tcp_deadline(PATIENCE_NS));
}

static struct group_frame hear(int fd, void *body)
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    struct group_frame frame = {0};
    if (tcp_read(fd, head, sizeof head, tcp_deadline(PATIENCE_NS)) == 0 &&
        group_frame_decode(head, &frame) == 0)
        tcp_read(fd, body, frame.body_bytes, tcp_deadline(PATIENCE_NS));
    return frame;
}

/* What the other side still sends is read: a close with it unread would reset the connection. */
static void hang_up(int fd)
{
    uint8_t unread[GROUP_SMALL_BODY_MAX];
    shutdown(fd, SHUT_WR);
    while (recv(fd, unread, sizeof unread, 0) > 0)
        continue;
    close(fd);
}

static void *run_root(void *argument)
{
    struct root *root = argument;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    struct group_hello hello;
    tcp_wait(root->listener, false, tcp_deadline(PATIENCE_NS));
    int fd = accept(root->listener, NULL, NULL);
    assert_int_equal(hear(fd, body).type, GROUP_HELLO);
    assert_int_equal(group_hello_decode(body, &hello), 0);
    struct group_claim claim = {.rank = hello.rank, .size = hello.size};
    memcpy(claim.rank_nonce, hello.nonce, GROUP_NONCE_BYTES);
    memcpy(claim.root_nonce, root->challenge.nonce, GROUP_NONCE_BYTES);
    group_challenge_encode(&root->challenge, body);
    say(fd, GROUP_CHALLENGE, body, GROUP_CHALLENGE_BYTES);
    if (hear(fd, body).type == GROUP_PROOF && group_proof_check(root->secret, &claim, false, body))
        root->after(fd, &claim, root->secret);
    hang_up(fd);
    return NULL;
}

/* Rank 1 of 2 joins, and exchanges two bytes if it may; returns its error. */
static int meet_root(struct root *root, const char *job)
{
    struct launcher_settings settings;
    struct group_meeting meeting;
    uint16_t port;
    char all[5] = "";
    assert_int_equal(tcp_listen("127.0.0.1:0", &root->listener, &port), 0);
    settle(&settings, 1, 2, port);
    strcpy(settings.secret, "hush");
    strcpy(settings.job, job);
    assert_int_equal(pthread_create(&root->thread, NULL, root->run ? root->run : run_root, root), 0);
    int error = group_meeting_open(&settings, NULL, PATIENCE_NS, &meeting);
    if (!error) {
        error = group_meeting_exchange(&meeting, "me", 2, all);
        if (!error)
            assert_string_equal(all, "0:me");
        group_meeting_close(&meeting);
    }
    pthread_join(root->thread, NULL);
    close(root->listener);
    return error;
}

static void expect_error(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

static void welcome(int fd, const struct group_claim *claim, const char *secret)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(group_proof_make(secret, claim, true, proof), 0);
    say(fd, GROUP_WELCOME, proof, sizeof proof);
}

static void answer(int fd, enum group_frame_type type, uint32_t round, const char *all)
{
    uint8_t body[64];
    assert_int_equal(hear(fd, body).type, GROUP_PART);
    assert_int_equal(lh_get_be32(body), 0);
    assert_memory_equal(body + GROUP_ROUND_BYTES, "me", 2);
    lh_put_be32(body, round);
    memcpy(body + GROUP_ROUND_BYTES, all, strlen(all));
    say(fd, type, body, (uint32_t)(GROUP_ROUND_BYTES + strlen(all)));
}

static void plays_along(int fd, const struct group_claim *claim, const char *secret)
{
    welcome(fd, claim, secret);
    answer(fd, GROUP_ALL, 0, "0:me");
}

static void another_round(int fd, const struct group_claim *claim, const char *secret)
{
    welcome(fd, claim, secret);
    answer(fd, GROUP_ALL, 1, "0:me");
}

static void too_few_bytes(int fd, const struct group_claim *claim, const char *secret)
{
    welcome(fd, claim, secret);
    answer(fd, GROUP_ALL, 0, "0:m");
}

static void refuses(int fd, const struct group_claim *claim, const char *secret)
{
    welcome(fd, claim, secret);
    uint8_t body[64];
    hear(fd, body);
    say(fd, GROUP_REFUSE, "no \x1b way", 8);
}

static void ends(int fd, const struct group_claim *claim, const char *secret)
{
    welcome(fd, claim, secret);
}

static void proves_nothing(int fd, const struct group_claim *claim, const char *secret)
{
    uint8_t proof[GROUP_PROOF_BYTES] = {0};
    (void)claim, (void)secret;
    say(fd, GROUP_WELCOME, proof, sizeof proof);
}

static void is_no_welcome(int fd, const struct group_claim *claim, const char *secret)
{
    (void)claim, (void)secret;
    say(fd, GROUP_CHALLENGE, "", 0);
}

static void what_a_rank_is_told(void **state)
{
    (void)state;
    static const struct {
        void (*after)(int fd, const struct group_claim *claim, const char *secret);
        int error;
        const char *words;
    } cases[] = {
        {plays_along, 0, ""},
        {another_round, -LH_EHANDSHAKE, "unexpected round 1"},
        {too_few_bytes, -LH_EHANDSHAKE, "unexpected rendezvous frame of type 6 and 7 bytes"},
        {refuses, -LH_EHANDSHAKE, "no ? way"},
        {ends, -LH_EPEER, "rank 0 at 127.0.0.1:"},
        {ends, -LH_EPEER, ": the remote side closed the connection"},
        {proves_nothing, -LH_EHANDSHAKE, "has another secret"},
        {is_no_welcome, -LH_EHANDSHAKE, "rank 0 at 127.0.0.1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct root root = {.secret = "hush", .after = cases[i].after};
        root.challenge = (struct group_challenge){.wait_ms = 60000, .secret = true, .nonce = {1, 2, 3}};
        expect_error(meet_root(&root, ""), cases[i].error, cases[i].words);
    }
}

/* Rank 0 has no place at first. The rank that returns repeats the job's name, which it has learnt, and the
 * nonce, and its proof is with its first bytes. */
static void *run_full_root(void *argument)
{
    struct root *root = argument;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    struct group_hello hello;
    for (int place = 0; place < 2; place++) {
        tcp_wait(root->listener, false, tcp_deadline(PATIENCE_NS));
        int fd = accept(root->listener, NULL, NULL);
        assert_int_equal(hear(fd, body).type, GROUP_HELLO);
        assert_int_equal(group_hello_decode(body, &hello), 0);
        assert_string_equal(hello.job, place ? root->challenge.job : "");
        assert_int_equal(hello.known[0], place ? root->challenge.nonce[0] : 0);
        struct group_claim claim = {.rank = hello.rank, .size = hello.size};
        memcpy(claim.rank_nonce, hello.nonce, GROUP_NONCE_BYTES);
        memcpy(claim.root_nonce, root->challenge.nonce, GROUP_NONCE_BYTES);
        if (place) {
            assert_int_equal(hear(fd, body).type, GROUP_PROOF);
            assert_true(group_proof_check(root->secret, &claim, false, body));
        }
        group_challenge_encode(&root->challenge, body);
        say(fd, GROUP_CHALLENGE, body, GROUP_CHALLENGE_BYTES);
        if (place)
            root->after(fd, &claim, root->secret);
        else
            say(fd, GROUP_FULL, "", 0);
        hang_up(fd);
    }
    return NULL;
}

static void a_rank_returns(void **state)
{
    (void)state;
    struct root root = {.secret = "hush", .after = plays_along, .run = run_full_root};
    root.challenge = (struct group_challenge){
        .wait_ms = 60000, .secret = true, .nonce = {1, 2, 3}, .job = GROUP_JOB_RANDOM "1"};
    assert_int_equal(meet_root(&root, ""), 0);
}

static void a_rank_0_of_others(void **state)
{
    (void)state;
    struct root root = {.secret = "hush", .after = plays_along};
    root.challenge = (struct group_challenge){.wait_ms = 60000, .secret = false};
    expect_error(meet_root(&root, ""), -LH_EHANDSHAKE, "asks for no secret");
    root.challenge = (struct group_challenge){.wait_ms = 60000, .secret = true, .job = "A=2"};
    expect_error(meet_root(&root, "A=1"), -LH_EHANDSHAKE, "belongs to job A=2, rank 1 to job A=1");
    assert_int_equal(meet_root(&root, "A=2"), 0);
}

/* ---- no rank 0 in time ------------------------------------------------------------------------------- */

static void nobody_is_rank_0(void **state)
{
    (void)state;
    struct launcher_settings settings;
    struct group_meeting meeting;
    settle(&settings, 1, 2, free_port());
    int error = group_meeting_open(&settings, NULL, 20 * LH_NS_PER_MS, &meeting);
    expect_error(error, -LH_ETIMEDOUT, "rank 1: rank 0 did not answer within 0.02 s: 127.0.0.1:");
    expect_error(error, -LH_ETIMEDOUT, "(start rank 0; is MASTER_ADDR its host?)");
}

/* Rank 0 answers, and has no place for this rank ever: the reason is the last, not that it did not answer. */
static void *run_full_for_ever(void *argument)
{
    struct root *root = argument;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    int fd;
    while ((fd = accept(root->listener, NULL, NULL)) >= 0) { /* until the test shuts it down */
        hear(fd, body);
        group_challenge_encode(&root->challenge, body);
        say(fd, GROUP_CHALLENGE, body, GROUP_CHALLENGE_BYTES);
        say(fd, GROUP_FULL, "", 0);
        hang_up(fd);
    }
    return NULL;
}

static void rank_0_has_no_place(void **state)
{
    (void)state;
    struct root root = {.secret = ""};
    struct launcher_settings settings;
    struct group_meeting meeting;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &root.listener, &port), 0);
    fcntl(root.listener, F_SETFL, 0); /* accept() waits */
    settle(&settings, 1, 2, port);
    assert_int_equal(pthread_create(&root.thread, NULL, run_full_for_ever, &root), 0);
    int error = group_meeting_open(&settings, NULL, LH_NS_PER_S, &meeting);
    assert_int_equal(error, -LH_ETIMEDOUT);
    assert_memory_equal(lh_last_error(), "rank 1: ", 8);
    assert_null(strstr(lh_last_error(), "did not answer"));
    shutdown(root.listener, SHUT_RDWR);
    pthread_join(root.thread, NULL);
    close(root.listener);
}

/* ---- the environment's group ------------------------------------------------------------------------- */

static void one_rank(void **state)
{
    (void)state;
    struct lh_group *group;
    struct lh_group_attr attr;
    uint32_t rank, size;
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    setenv("LONGHAUL_SITE", "zurich", 1);
    assert_int_equal(lh_group_rank_env(&rank, &size), 0);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 1);
    assert_int_equal(lh_group_create_env(NULL, &group), 0);
    assert_int_equal(lh_group_size(group), 1);
    assert_string_equal(lh_group_site(group, 0), "zurich");
    assert_null(lh_group_site(group, 1));
    assert_int_equal(lh_group_destroy(group), 0);
    lh_group_attr_init(&attr);
    attr.site = "basel"; /* the caller's counts */
    assert_int_equal(lh_group_create_env(&attr, &group), 0);
    assert_string_equal(lh_group_site(group, 0), "basel");
    assert_int_equal(lh_group_destroy(group), 0);
}

static void what_is_refused(void **state)
{
    (void)state;
    struct lh_group *group;
    struct lh_group_attr attr;
    uint32_t rank, size;
    lh_group_attr_init(&attr);
    attr.struct_bytes--;
    expect_error(lh_group_create_env(&attr, &group), -LH_EINVAL, "lh_group_attr:");
    lh_group_attr_init(&attr);
    attr.timeout_ns = 86400 * LH_NS_PER_S + 1;
    expect_error(lh_group_create_env(&attr, &group), -LH_ERANGE, "at most a day");
    setenv("LONGHAUL_SOCKET_IFNAME", "=no-interface", 1);
    expect_error(lh_group_create_env(NULL, &group), -LH_EADDR, "\"=no-interface\" matches no interface");
    setenv("LONGHAUL_SOCKET_IFNAME", "lo", 1); /* each host has it */
    assert_int_equal(lh_group_create_env(NULL, &group), 0);
    assert_int_equal(lh_group_destroy(group), 0);
    unsetenv("LONGHAUL_SOCKET_IFNAME");
    setenv("RANK", "1", 1);
    expect_error(lh_group_rank_env(&rank, &size), -LH_EINVAL, "RANK: 1 is out of range");
    setenv("WORLD_SIZE", "3", 1);
    expect_error(lh_group_rank_env(&rank, &size), -LH_EINVAL, "MASTER_ADDR: not set");
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    assert_int_equal(lh_group_rank_env(&rank, &size), 0);
    assert_int_equal(rank, 1);
    assert_int_equal(size, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(the_port_is_taken),
        cmocka_unit_test(the_last_error_stays),
        cmocka_unit_test(what_a_rank_is_told),
        cmocka_unit_test(a_rank_returns),
        cmocka_unit_test(a_rank_0_of_others),
        cmocka_unit_test(nobody_is_rank_0),
        cmocka_unit_test(rank_0_has_no_place),
        cmocka_unit_test(one_rank),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
