/* The rendezvous of a group over real sockets: ranks that come, miss, come twice, with another secret or
 * size; clients that stall or talk nonsense.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group_meeting.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "launch/group_frames.h"
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
    atomic_bool ended;
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
    rank->error = group_meeting_open(&rank->settings, NULL, rank->timeout_ns, &meeting);
    if (!rank->error) {
        rank->error = rank->leaves ? 0 : take_part(rank, &meeting);
        if (rank->error)
            snprintf(rank->message, sizeof rank->message, "%s", lh_last_error());
        group_meeting_close(&meeting);
    } else {
        snprintf(rank->message, sizeof rank->message, "%s", lh_last_error());
    }
    rank->ended = true;
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

/* ---- a rank by hand ---------------------------------------------------------------------------------- */

static void write_frame(int fd, enum group_frame_type type, const void *body, uint32_t bytes)
{
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    group_frame_encode(&(struct group_frame){type, bytes}, frame);
    if (bytes)
        memcpy(frame + GROUP_FRAME_HEADER_BYTES, body, bytes);
    assert_int_equal(tcp_write(fd, frame, GROUP_FRAME_HEADER_BYTES + bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static enum group_frame_type read_frame(int fd, uint8_t body[GROUP_SMALL_BODY_MAX])
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    struct group_frame frame;
    assert_int_equal(tcp_read(fd, head, sizeof head, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(group_frame_decode(head, &frame), 0);
    assert_true(frame.body_bytes <= GROUP_SMALL_BODY_MAX);
    assert_int_equal(tcp_read(fd, body, frame.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    return frame.type;
}

/* Connects as soon as rank 0 listens. */
static int connect_to_root(void)
{
    int fd;
    lh_time until = tcp_deadline(PATIENCE_NS);
    while (tcp_connect(ranks[0].settings.where, until, &fd))
        assert_true(tcp_now() < until);
    return fd;
}

static void send_hello_again(int fd, uint32_t rank, uint32_t size, const char *job, const uint8_t *known)
{
    uint8_t hello[GROUP_HELLO_BYTES];
    struct group_hello mine = {.rank = rank,
                               .size = size,
                               .secret = *ranks[0].settings.secret != '\0',
                               .nonce = "a nonce of mine"};
    strcpy(mine.job, job);
    if (known)
        memcpy(mine.known, known, sizeof mine.known);
    group_hello_encode(&mine, hello);
    write_frame(fd, GROUP_HELLO, hello, sizeof hello);
}

static void send_hello(int fd, uint32_t rank, uint32_t size, const char *job)
{
    send_hello_again(fd, rank, size, job, NULL);
}

static void prove(int fd) /* without a secret */
{
    static const uint8_t proof[GROUP_PROOF_BYTES];
    write_frame(fd, GROUP_PROOF, proof, sizeof proof);
}

/* Each has its CHALLENGE before the next comes, so rank 0 has seen all of them. */
static void strangers_that_greet(int *fds, uint32_t count, uint32_t size)
{
    uint8_t body[GROUP_SMALL_BODY_MAX];
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = connect_to_root();
        send_hello(fds[i], 1, size, "");
        assert_int_equal(read_frame(fds[i], body), GROUP_CHALLENGE);
    }
}

static void close_all(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
}

/* A rank that has its CHALLENGE keeps its place, however many connect behind it and send nothing. */
static void idle_strangers(void **state)
{
    (void)state;
    int fds[3 * GROUP_CLIENTS_MAX], last;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    prepare(2, free_port(), PATIENCE_NS);
    start(&ranks[0]);
    int rank = connect_to_root();
    send_hello(rank, 1, 2, "");
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    for (uint32_t i = 0; i < 3 * GROUP_CLIENTS_MAX; i++)
        fds[i] = connect_to_root();
    strangers_that_greet(&last, 1, 2); /* so rank 0 has seen all of them */
    prove(rank);
    assert_int_equal(read_frame(rank, body), GROUP_WELCOME);
    close(rank); /* which ends the exchange of rank 0 */
    join(&ranks[0]);
    expect(&ranks[0], -LH_EPEER, "rank 1 (127.0.0.1:");
    close_all(fds, 3 * GROUP_CLIENTS_MAX);
    close(last);
}

/* A rank that has to leave, since others greet as well, joins with its first bytes when it returns. */
static void a_rank_returns(void **state)
{
    (void)state;
    int fds[GROUP_CLIENTS_MAX];
    uint8_t first[GROUP_SMALL_BODY_MAX] = {0}, second[GROUP_SMALL_BODY_MAX] = {0},
            body[GROUP_SMALL_BODY_MAX];
    struct group_challenge challenges[2];
    prepare(2, free_port(), PATIENCE_NS);
    start(&ranks[0]);
    int rank = connect_to_root();
    send_hello(rank, 1, 2, "");
    assert_int_equal(read_frame(rank, first), GROUP_CHALLENGE);
    strangers_that_greet(fds, GROUP_CLIENTS_MAX, 2);
    assert_int_equal(read_frame(rank, body), GROUP_FULL);
    close(rank);
    rank = connect_to_root();
    assert_int_equal(group_challenge_decode(first, &challenges[0]), 0);
    send_hello_again(rank, 1, 2, "", challenges[0].nonce);
    prove(rank);
    assert_int_equal(read_frame(rank, second), GROUP_CHALLENGE);
    assert_int_equal(group_challenge_decode(second, &challenges[1]), 0);
    assert_memory_equal(challenges[0].nonce, challenges[1].nonce, GROUP_NONCE_BYTES);
    assert_int_equal(read_frame(rank, body), GROUP_WELCOME);
    close(rank);
    join(&ranks[0]);
    close_all(fds, GROUP_CLIENTS_MAX);
}

static void prove_with(int fd, const char *secret, const struct group_challenge *challenge)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    struct group_claim claim = {.rank = 1, .size = 2, .rank_nonce = "a nonce of mine"};
    memcpy(claim.root_nonce, challenge->nonce, sizeof claim.root_nonce);
    assert_int_equal(group_proof_make(secret, &claim, false, proof), 0);
    write_frame(fd, GROUP_PROOF, proof, sizeof proof);
}

/* A rank returns from another address: the proof that it had is for another nonce, and does not count. */
static void a_rank_returns_from_elsewhere(void **state)
{
    (void)state;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    struct group_challenge here, there = {.nonce = "one from before"};
    prepare(2, free_port(), PATIENCE_NS);
    strcpy(ranks[0].settings.secret, "hush");
    start(&ranks[0]);
    int rank = connect_to_root();
    send_hello_again(rank, 1, 2, "", there.nonce);
    prove_with(rank, "hush", &there);
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    assert_int_equal(group_challenge_decode(body, &here), 0);
    prove_with(rank, "hush", &here);
    assert_int_equal(read_frame(rank, body), GROUP_WELCOME);
    close(rank);
    join(&ranks[0]);
    /* Only one is left aside. */
    prepare(2, free_port(), SHORT_NS);
    strcpy(ranks[0].settings.secret, "hush");
    start(&ranks[0]);
    rank = connect_to_root();
    send_hello_again(rank, 1, 2, "", there.nonce);
    prove_with(rank, "hash", &there);
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    prove_with(rank, "hash", &there);
    assert_int_equal(read_frame(rank, body), GROUP_REFUSE);
    close(rank);
    join(&ranks[0]);
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 has another secret");
}

/* The other side of it: rank 0 by hand sends rank 1 away behind its CHALLENGE. */
static void a_rank_that_had_to_leave(void **state)
{
    (void)state;
    int listener;
    uint16_t port;
    uint8_t body[GROUP_SMALL_BODY_MAX], challenge[GROUP_CHALLENGE_BYTES];
    struct group_hello hellos[2];
    const struct group_challenge mine = {.wait_ms = 20000, .nonce = "a nonce of mine", .job = "JOB=1"};
    static const uint8_t proof[GROUP_PROOF_BYTES];
    group_challenge_encode(&mine, challenge);
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    prepare(2, port, PATIENCE_NS);
    ranks[1].leaves = true;
    start(&ranks[1]);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
        int fd = accept(listener, NULL, NULL);
        assert_int_equal(read_frame(fd, body), GROUP_HELLO);
        assert_int_equal(group_hello_decode(body, &hellos[i > 0]), 0);
        if (i > 0) { /* with its first bytes */
            assert_int_equal(read_frame(fd, body), GROUP_PROOF);
            assert_memory_equal(hellos[0].nonce, hellos[1].nonce, GROUP_NONCE_BYTES);
            assert_memory_equal(hellos[1].known, mine.nonce, GROUP_NONCE_BYTES);
            assert_string_equal(hellos[1].job, "JOB=1");
        }
        write_frame(fd, GROUP_CHALLENGE, challenge, sizeof challenge);
        if (i == 0)
            write_frame(fd, GROUP_FULL, NULL, 0);
        else if (i == 2) /* the second is closed without a word */
            write_frame(fd, GROUP_WELCOME, proof, sizeof proof);
        shutdown(fd, SHUT_WR);
        while (recv(fd, body, sizeof body, 0) > 0)
            continue;
        close(fd);
    }
    join(&ranks[1]);
    expect(&ranks[1], 0, "");
    close(listener);
}

/* Another nonce each time, and no place: that ends, too. */
static void nonces_without_end(void **state)
{
    (void)state;
    int listener;
    uint16_t port;
    uint8_t body[GROUP_SMALL_BODY_MAX], frame[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge = {.wait_ms = 3600000};
    lh_time started = tcp_now();
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    prepare(2, port, LH_NS_PER_S);
    start(&ranks[1]);
    /* 4 s are promised; whoever goes on for ever is here for ten times as long. */
    while (!ranks[1].ended && tcp_now() - started < 40 * LH_NS_PER_S) {
        if (tcp_wait(listener, false, tcp_deadline(LH_NS_PER_S / 10)))
            continue;
        int fd = accept(listener, NULL, NULL);
        assert_int_equal(read_frame(fd, body), GROUP_HELLO);
        challenge.nonce[0]++;
        group_challenge_encode(&challenge, frame);
        write_frame(fd, GROUP_CHALLENGE, frame, sizeof frame);
        write_frame(fd, GROUP_FULL, NULL, 0);
        shutdown(fd, SHUT_WR);
        while (recv(fd, body, sizeof body, 0) > 0)
            continue;
        close(fd);
    }
    assert_true(ranks[1].ended);
    join(&ranks[1]);
    expect(&ranks[1], -LH_ETIMEDOUT, "too many clients connect to it");
    close(listener);
}

/* Rank 0 ends while others wait for their WELCOME: they need not wait any longer. */
static void rank_zero_ends(void **state)
{
    (void)state;
    int listener;
    uint16_t port;
    uint8_t body[GROUP_SMALL_BODY_MAX], challenge[GROUP_CHALLENGE_BYTES];
    group_challenge_encode(&(struct group_challenge){.wait_ms = 3600000}, challenge);
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    prepare(2, port, 3600 * LH_NS_PER_S);
    start(&ranks[1]);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int fd = accept(listener, NULL, NULL);
    assert_int_equal(read_frame(fd, body), GROUP_HELLO);
    write_frame(fd, GROUP_CHALLENGE, challenge, sizeof challenge);
    assert_int_equal(read_frame(fd, body), GROUP_PROOF);
    close(listener);
    close(fd);
    join(&ranks[1]);
    expect(&ranks[1], -LH_EPEER, "closed the connection");
}

/* A byte too many behind a proof: that client is sent away at once, and the rank may join. */
static void a_byte_behind_a_proof(void **state)
{
    (void)state;
    uint8_t body[GROUP_SMALL_BODY_MAX], byte;
    prepare(3, free_port(), PATIENCE_NS);
    start(&ranks[0]);
    int rank = connect_to_root();
    send_hello(rank, 1, 3, "");
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    prove(rank);
    assert_int_equal(tcp_write(rank, "x", 1, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(read_frame(rank, body), GROUP_REFUSE);
    assert_int_equal(tcp_read(rank, &byte, 1, tcp_deadline(PATIENCE_NS)), -LH_EPEER);
    close(rank);
    start(&ranks[1]);
    start(&ranks[2]);
    for (uint32_t r = 0; r < 3; r++)
        join(&ranks[r]);
    expect_done(3);
}

/* Two jobs with one MASTER_PORT. */
static void another_job(void **state)
{
    (void)state;
    prepare(2, free_port(), SHORT_NS);
    strcpy(ranks[0].settings.job, "SLURM_JOB_ID=1.0");
    strcpy(ranks[1].settings.job, "SLURM_JOB_ID=2.0");
    start(&ranks[0]);
    start(&ranks[1]);
    join(&ranks[0]);
    join(&ranks[1]);
    expect(&ranks[1], -LH_EHANDSHAKE,
           "rank 1 belongs to job SLURM_JOB_ID=2.0, rank 0 to job SLURM_JOB_ID=1.0");
    expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 belongs to job SLURM_JOB_ID=2.0");
}

/* Without a name rank 0 picks one: who learned that of another rank 0 does not join this one. */
static void another_rank_zero(void **state)
{
    (void)state;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    struct group_challenge challenge;
    prepare(2, free_port(), PATIENCE_NS);
    start(&ranks[0]);
    int rank = connect_to_root();
    send_hello(rank, 1, 2, GROUP_JOB_RANDOM "0123456789abcdef0123456789abcdef");
    assert_int_equal(read_frame(rank, body), GROUP_REFUSE);
    close(rank);
    rank = connect_to_root();
    send_hello(rank, 1, 2, "");
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    assert_int_equal(group_challenge_decode(body, &challenge), 0);
    assert_memory_equal(challenge.job, GROUP_JOB_RANDOM, strlen(GROUP_JOB_RANDOM));
    close(rank);
    start(&ranks[1]);
    join(&ranks[0]);
    join(&ranks[1]);
    expect_done(2);
}

/* Fewer descriptors than places: rank 0 polls what is open alone. */
static void few_descriptors(void **state)
{
    (void)state;
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 40;
    prepare(3, free_port(), PATIENCE_NS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (uint32_t r = 0; r < 3; r++)
        start(&ranks[r]);
    for (uint32_t r = 0; r < 3; r++)
        join(&ranks[r]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_done(3);
}

/* None left for a rank: the message names the limit. */
static void no_descriptor_left(void **state)
{
    (void)state;
    int fds[64];
    uint32_t count = 0;
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    prepare(2, free_port(), SHORT_NS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    start(&ranks[0]);
    int rank = connect_to_root(); /* which is accepted */
    send_hello(rank, 1, 2, "");
    uint8_t body[GROUP_SMALL_BODY_MAX];
    assert_int_equal(read_frame(rank, body), GROUP_CHALLENGE);
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int fd = dup(0); fd >= 0; fd = dup(0))
        fds[count++] = fd;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)atoi(strchr(ranks[0].settings.where, ':') + 1))};
    assert_int_equal(connect(other, (struct sockaddr *)&to, sizeof to), 0);
    join(&ranks[0]);
    close_all(fds, count);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(rank);
    close(other);
    expect(&ranks[0], -LH_ETIMEDOUT,
           "no file descriptor left for them (limit 64: raise it with ulimit -n)");
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
        cmocka_unit_test(idle_strangers),
        cmocka_unit_test(a_rank_returns),
        cmocka_unit_test(a_rank_returns_from_elsewhere),
        cmocka_unit_test(a_rank_that_had_to_leave),
        cmocka_unit_test(nonces_without_end),
        cmocka_unit_test(rank_zero_ends),
        cmocka_unit_test(a_byte_behind_a_proof),
        cmocka_unit_test(another_job),
        cmocka_unit_test(another_rank_zero),
        cmocka_unit_test(few_descriptors),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(a_rank_leaves),
        cmocka_unit_test(blobs_of_different_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
