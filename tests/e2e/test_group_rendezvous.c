/* The rendezvous of a group over real sockets: ranks that come, miss, come twice, with another secret or
 * size; clients that stall or talk nonsense.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_meeting.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "launch/tcp.h"

#define RANKS_MAX   9u
#define PATIENCE_NS (20 * LH_NS_PER_S)
/* For ranks that wait in vain: what has to come before is there long since. */
#define SHORT_NS (2 * LH_NS_PER_S)

/* A rank in a thread of its own. */
struct rank {
    struct launcher_settings settings;
    lh_time timeout_ns;
    unsigned rounds;
    size_t bytes;
    bool leaves; /* after joining, without an exchange */
    int error;
    char message[512];
    pthread_t thread;
};

/* A free port: bound, and free again when the test ends. */
static unsigned free_port(void)
{
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    close(fd);
    return port;
}

static void check_all(const struct rank *rank, const uint8_t *all, unsigned round)
{
    for (uint32_t r = 0; r < rank->settings.size; r++)
        for (size_t i = 0; i < rank->bytes; i++)
            assert_int_equal(all[r * rank->bytes + i], (uint8_t)(r + 3 * i + 7 * round));
}

static int take_part(struct rank *rank, struct group_meeting *meeting)
{
    uint8_t *mine = malloc(rank->bytes + 1), *all = malloc(rank->bytes * rank->settings.size + 1);
    int error = 0;
    for (unsigned round = 0; round < rank->rounds && !error; round++) {
        for (size_t i = 0; i < rank->bytes; i++)
            mine[i] = (uint8_t)(rank->settings.rank + 3 * i + 7 * round);
        error = group_meeting_exchange(meeting, mine, rank->bytes, all);
        if (!error)
            check_all(rank, all, round);
    }
    free(mine);
    free(all);
    return error;
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    struct group_meeting meeting;
    rank->error = group_meeting_open(&rank->settings, rank->timeout_ns, &meeting);
    if (!rank->error) {
        rank->error = rank->leaves ? 0 : take_part(rank, &meeting);
        if (rank->error)
            snprintf(rank->message, sizeof rank->message, "%s", lh_last_error());
        group_meeting_close(&meeting);
    } else {
        snprintf(rank->message, sizeof rank->message, "%s", lh_last_error());
    }
    return NULL;
}

static struct rank ranks[RANKS_MAX];

static void prepare(uint32_t size, unsigned port, lh_time timeout_ns)
{
    for (uint32_t r = 0; r < size; r++) {
        struct rank *rank = &ranks[r];
        *rank = (struct rank){.settings = {.launcher = "test", .rank = r, .size = size},
                              .timeout_ns = timeout_ns,
                              .rounds = 3,
                              .bytes = 100};
        snprintf(rank->settings.where, sizeof rank->settings.where, "127.0.0.1:%u", port);
        strcpy(rank->settings.listen, rank->settings.where);
    }
}

static void start(struct rank *rank)
{
    assert_int_equal(pthread_create(&rank->thread, NULL, run, rank), 0);
}

static void join(struct rank *rank)
{
    assert_int_equal(pthread_join(rank->thread, NULL), 0);
}

static void expect(const struct rank *rank, int error, const char *text)
{
    if (rank->error != error || !strstr(rank->message, text))
        fail_msg("rank %u: error %d (expected %d), \"%s\" (expected \"%s\")", rank->settings.rank,
                 rank->error, error, rank->message, text);
}

static void expect_done(uint32_t size)
{
    for (uint32_t r = 0; r < size; r++)
        expect(&ranks[r], 0, "");
}

/* Ranks from the last to the first: all others try to connect before rank 0 listens. */
static void meet(uint32_t size, size_t bytes, const char *secret)
{
    prepare(size, free_port(), PATIENCE_NS);
    for (uint32_t r = size; r-- > 0;) {
        ranks[r].bytes = bytes;
        strcpy(ranks[r].settings.secret, secret);
        start(&ranks[r]);
    }
    for (uint32_t r = 0; r < size; r++)
        join(&ranks[r]);
    expect_done(size);
}

static void all_meet(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= RANKS_MAX; size++)
        meet(size, 100, size % 2 ? "hush" : "");
    meet(2, 0, "");
    meet(3, 1 << 20, "hush");
}

static void a_missing_rank_is_named(void **state)
{
    (void)state;
    prepare(4, free_port(), SHORT_NS);
    for (uint32_t r = 0; r < 4; r++)
        if (r != 2)
            start(&ranks[r]);
    for (uint32_t r = 0; r < 4; r++)
        if (r != 2)
            join(&ranks[r]);
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 2 of 4: not joined within 2 s");
    expect(&ranks[1], -LH_EHANDSHAKE, "rank 2 of 4: not joined within 2 s");
    expect(&ranks[3], -LH_EHANDSHAKE, "rank 2 of 4: not joined within 2 s");
}

static void rank_zero_is_missing(void **state)
{
    (void)state;
    prepare(2, free_port(), SHORT_NS);
    start(&ranks[1]);
    join(&ranks[1]);
    expect(&ranks[1], -LH_ETIMEDOUT, "rank 1: rank 0 did not answer within 2 s: 127.0.0.1:");
}

static void a_wrong_secret(void **state)
{
    (void)state;
    static const char *const secrets[][2] = {{"hush", "hash"}, {"hush", ""}, {"", "hush"}};
    static const char *const texts[] = {"rank 1 has another secret than rank 0", "rank 1 has no secret",
                                        "rank 1 has a secret, rank 0 has none"};
    for (size_t i = 0; i < 3; i++) {
        prepare(2, free_port(), SHORT_NS);
        strcpy(ranks[0].settings.secret, secrets[i][0]);
        strcpy(ranks[1].settings.secret, secrets[i][1]);
        start(&ranks[0]);
        start(&ranks[1]);
        join(&ranks[1]);
        join(&ranks[0]);
        expect(&ranks[1], -LH_EHANDSHAKE, texts[i]);
        expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 of 2: not joined");
        expect(&ranks[0], -LH_ETIMEDOUT, texts[i]);
    }
}

static void sizes_differ(void **state)
{
    (void)state;
    prepare(2, free_port(), SHORT_NS);
    ranks[1].settings.size = 3;
    start(&ranks[0]);
    start(&ranks[1]);
    join(&ranks[0]);
    join(&ranks[1]);
    expect(&ranks[1], -LH_EHANDSHAKE, "rank 1 has 3 ranks, rank 0 has 2");
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 has 3 ranks, rank 0 has 2");
}

static void a_rank_comes_twice(void **state)
{
    (void)state;
    prepare(3, free_port(), SHORT_NS);
    ranks[2].settings.rank = 1;
    for (uint32_t r = 0; r < 3; r++)
        start(&ranks[r]);
    for (uint32_t r = 0; r < 3; r++)
        join(&ranks[r]);
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 2 of 3: not joined");
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 joined twice, first from 127.0.0.1:");
    bool second = strstr(ranks[2].message, "joined twice") && !strstr(ranks[2].message, "not joined");
    expect(second ? &ranks[2] : &ranks[1], -LH_EHANDSHAKE, "rank 1 joined twice, first from 127.0.0.1:");
    expect(second ? &ranks[1] : &ranks[2], -LH_EHANDSHAKE, "rank 2 of 3: not joined");
}

static void the_port_is_taken(void **state)
{
    (void)state;
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    prepare(2, port, SHORT_NS);
    start(&ranks[0]);
    join(&ranks[0]);
    expect(&ranks[0], -LH_EADDR, "Address already in use (set MASTER_PORT to a free port)");
    /* Who listens there does not answer. */
    start(&ranks[1]);
    join(&ranks[1]);
    expect(&ranks[1], -LH_ETIMEDOUT, "did not answer in time");
    close(fd);
}

/* Another program's port. */
static void *answer_as_http(void *argument)
{
    int fd = accept(*(int *)argument, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(tcp_write(fd, "HTTP/1.1 400 Bad Request\r\n", 26, tcp_deadline(PATIENCE_NS)), 0);
    close(fd);
    return NULL;
}

static void another_program_answers(void **state)
{
    (void)state;
    int fd;
    uint16_t port;
    pthread_t thread;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    prepare(2, port, PATIENCE_NS);
    assert_int_equal(tcp_wait(fd, false, 0), -LH_ETIMEDOUT);
    start(&ranks[1]);
    assert_int_equal(tcp_wait(fd, false, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_as_http, &fd), 0);
    join(&ranks[1]);
    pthread_join(thread, NULL);
    expect(&ranks[1], -LH_EHANDSHAKE, "not the rendezvous of a group");
    close(fd);
}

/* More than rank 0 has places for, some silent, some with nonsense: they neither block it nor join. */
static void strangers(void **state)
{
    (void)state;
    int fds[3 * GROUP_CLIENTS_MAX];
    unsigned port = free_port();
    prepare(3, port, PATIENCE_NS);
    start(&ranks[0]);
    start(&ranks[1]);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        lh_time until = tcp_deadline(PATIENCE_NS);
        while (tcp_connect(ranks[0].settings.where, until, &fds[i])) /* until rank 0 listens */
            assert_true(tcp_now() < until);
        if (i % 3 == 1)
            send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        else if (i % 3 == 2)
            send(fds[i], "LHG1\1\1", 6, MSG_NOSIGNAL);
    }
    start(&ranks[2]);
    for (uint32_t r = 0; r < 3; r++)
        join(&ranks[r]);
    expect_done(3);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
}

static void a_rank_leaves(void **state)
{
    (void)state;
    prepare(4, free_port(), PATIENCE_NS);
    ranks[2].leaves = true;
    for (uint32_t r = 0; r < 4; r++)
        start(&ranks[r]);
    for (uint32_t r = 0; r < 4; r++)
        join(&ranks[r]);
    expect(&ranks[0], -LH_EPEER, "rank 2 (127.0.0.1:");
    expect(&ranks[1], -LH_EHANDSHAKE, "rank 2 (127.0.0.1:");
    expect(&ranks[3], -LH_EHANDSHAKE, "rank 2 (127.0.0.1:");
}

static void blobs_of_different_sizes(void **state)
{
    (void)state;
    prepare(3, free_port(), PATIENCE_NS);
    ranks[2].bytes = 99;
    for (uint32_t r = 0; r < 3; r++)
        start(&ranks[r]);
    for (uint32_t r = 0; r < 3; r++)
        join(&ranks[r]);
    expect(&ranks[0], -LH_EINVAL, "rank 2 gives 99 bytes, rank 0 gives 100");
    expect(&ranks[1], -LH_EHANDSHAKE, "rank 2 gives 99 bytes, rank 0 gives 100");
    expect(&ranks[2], -LH_EHANDSHAKE, "rank 2 gives 99 bytes, rank 0 gives 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(rank_zero_is_missing),
        cmocka_unit_test(a_wrong_secret),
        cmocka_unit_test(sizes_differ),
        cmocka_unit_test(a_rank_comes_twice),
        cmocka_unit_test(the_port_is_taken),
        cmocka_unit_test(another_program_answers),
        cmocka_unit_test(strangers),
        cmocka_unit_test(a_rank_leaves),
        cmocka_unit_test(blobs_of_different_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
