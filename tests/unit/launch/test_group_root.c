/*
 * test_group_root.c - rank 0's part of a rendezvous, against ranks that the test plays frame by frame: one
 * connection by itself, then all of it, with the ranks in a thread of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/group_root.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "launch/tcp.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define SIZE        3u

/* ---- a rank that the test plays ---------------------------------------------------------------------- */

struct player {
    int fd;
    struct group_hello hello;
    struct group_claim claim;
};

static void say(int fd, enum group_frame_type type, const void *body, uint32_t bytes)
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    group_frame_encode(&(struct group_frame){type, bytes}, head);
    assert_int_equal(tcp_write(fd, head, sizeof head, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_write(fd, body, bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static struct group_frame hear(int fd, void *body, size_t room)
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    struct group_frame frame;
    assert_int_equal(tcp_read(fd, head, sizeof head, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(group_frame_decode(head, &frame), 0);
    assert_true(frame.body_bytes <= room);
    assert_int_equal(tcp_read(fd, body, frame.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    return frame;
}

/* There is nothing more to come. */
static void expect_closed(int fd)
{
    char byte;
    assert_int_equal(tcp_wait(fd, false, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static void expect_refusal(int fd, const char *words)
{
    char reason[GROUP_REASON_MAX + 1] = "";
    assert_int_equal(hear(fd, reason, GROUP_REASON_MAX).type, GROUP_REFUSE);
    if (!strstr(reason, words))
        fail_msg("\"%s\" is not in: %s", words, reason);
    expect_closed(fd);
}

static void send_hello(struct player *player, uint32_t rank, uint32_t size)
{
    uint8_t body[GROUP_HELLO_BYTES];
    player->hello.rank = rank;
    player->hello.size = size;
    memset(player->hello.nonce, (int)(rank + 1), GROUP_NONCE_BYTES);
    group_hello_encode(&player->hello, body);
    say(player->fd, GROUP_HELLO, body, sizeof body);
}

static struct group_challenge hear_challenge(struct player *player)
{
    uint8_t body[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge;
    struct group_frame frame = hear(player->fd, body, sizeof body);
    assert_int_equal(frame.type, GROUP_CHALLENGE);
    assert_int_equal(frame.body_bytes, sizeof body);
    assert_int_equal(group_challenge_decode(body, &challenge), 0);
    player->claim = (struct group_claim){.rank = player->hello.rank, .size = player->hello.size};
    memcpy(player->claim.rank_nonce, player->hello.nonce, GROUP_NONCE_BYTES);
    memcpy(player->claim.root_nonce, challenge.nonce, GROUP_NONCE_BYTES);
    return challenge;
}

static void say_proof(const struct player *player, const char *secret)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(group_proof_make(secret, &player->claim, false, proof), 0);
    say(player->fd, GROUP_PROOF, proof, sizeof proof);
}

/* ---- one connection ---------------------------------------------------------------------------------- */

struct bench {
    struct group_terms terms;
    struct group_member member;
    struct player player;
};

/* A TCP connection of the loopback interface. */
static void connect_ends(int *client, int *server)
{
    char where[32];
    uint16_t port;
    int listener;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), client), 0);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    *server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(*server >= 0);
    close(listener);
}

static void begin(struct bench *bench, const char *secret, const char *job)
{
    int server;
    *bench = (struct bench){.terms = {.size = SIZE, .secret = secret, .job = job, .deadline = 9000000}};
    memset(&bench->terms.key, 3, sizeof bench->terms.key);
    connect_ends(&bench->player.fd, &server);
    group_member_start(&bench->member, server, NULL, 7);
}

static void end(struct bench *bench)
{
    if (bench->member.channel.fd >= 0)
        close(bench->member.channel.fd);
    close(bench->player.fd);
}

/* What was sent has arrived. */
static int step(struct bench *bench, lh_time now)
{
    assert_int_equal(tcp_wait(bench->member.channel.fd, false, tcp_deadline(PATIENCE_NS)), 0);
    return group_member_step(&bench->member, &bench->terms, now);
}

static void expect_error(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

static void a_rank_joins(void **state)
{
    (void)state;
    static const char *const secrets[] = {"", "hush"};
    for (unsigned i = 0; i < 2; i++) {
        struct bench bench;
        begin(&bench, secrets[i], "");
        assert_int_equal(bench.member.deadline, 5 * LH_NS_PER_S + 7);
        assert_int_equal(group_member_step(&bench.member, &bench.terms, 0), 0); /* nothing has come */
        bench.player.hello.secret = i == 1;
        send_hello(&bench.player, 2, SIZE);
        assert_int_equal(step(&bench, 2000000), 0);
        struct group_challenge challenge = hear_challenge(&bench.player);
        assert_int_equal(challenge.wait_ms, 7); /* that is left of the deadline */
        assert_int_equal(challenge.secret, i == 1);
        say_proof(&bench.player, secrets[i]);
        assert_int_equal(step(&bench, 0), 1);
        assert_int_equal(bench.member.claim.rank, 2);
        end(&bench);
    }
}

/* Past the deadline nothing is left to wait for. */
static void after_the_deadline(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench, "", "");
    send_hello(&bench.player, 1, SIZE);
    assert_int_equal(step(&bench, 9000001), 0);
    assert_int_equal(hear_challenge(&bench.player).wait_ms, 0);
    end(&bench);
}

static void refuse_hello(const char *secret, const char *job, struct group_hello hello, const char *words)
{
    struct bench bench;
    begin(&bench, secret, job);
    bench.player.hello = hello;
    send_hello(&bench.player, 1, hello.size);
    expect_error(step(&bench, 0), -LH_EHANDSHAKE, words);
    group_member_refuse(&bench.member);
    assert_int_equal(bench.member.channel.fd, -1);
    expect_refusal(bench.player.fd, words);
    end(&bench);
}

static void hellos_that_do_not_fit(void **state)
{
    (void)state;
    refuse_hello("", "", (struct group_hello){.size = SIZE + 1}, "rank 1 has 4 ranks, rank 0 has 3");
    refuse_hello("hush", "", (struct group_hello){.size = SIZE}, "rank 1 has no secret, rank 0 has one");
    refuse_hello("", "", (struct group_hello){.size = SIZE, .secret = true},
                 "rank 1 has a secret, rank 0 has none");
    refuse_hello("", "A=1", (struct group_hello){.size = SIZE, .job = "A=2"},
                 "rank 1 belongs to job A=2, rank 0 to job A=1");
}

static void a_wrong_secret(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench, "hush", "");
    bench.player.hello.secret = true;
    send_hello(&bench.player, 1, SIZE);
    assert_int_equal(step(&bench, 0), 0);
    hear_challenge(&bench.player);
    say_proof(&bench.player, "hash");
    expect_error(step(&bench, 0), -LH_EHANDSHAKE, "rank 1 has another secret than rank 0");
    end(&bench);
}

static void another_frame_than_is_due(void **state)
{
    (void)state;
    static const uint8_t proof[GROUP_PROOF_BYTES];
    struct bench bench;
    begin(&bench, "", "");
    say(bench.player.fd, GROUP_PROOF, proof, sizeof proof);
    expect_error(step(&bench, 0), -LH_EHANDSHAKE, "unexpected rendezvous frame of type 3 (expected 1)");
    end(&bench);
    begin(&bench, "", "");
    assert_int_equal(tcp_write(bench.player.fd, "GET / HTTP/1.1\r\n", 16, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(step(&bench, 0), -LH_EHANDSHAKE);
    end(&bench);
    begin(&bench, "", "");
    shutdown(bench.player.fd, SHUT_WR);
    expect_error(step(&bench, 0), -LH_EPEER, "closed the connection");
    end(&bench);
}

/* The nonce is the same for each connection of a rank: the PROOF behind HELLO is for it. One that is for
 * another nonce is left aside, for the one that answers CHALLENGE. */
static void a_rank_returns(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench, "hush", "");
    bench.player.hello.secret = true;
    send_hello(&bench.player, 1, SIZE);
    assert_int_equal(step(&bench, 0), 0);
    struct group_challenge challenge = hear_challenge(&bench.player);
    struct group_claim claim = bench.player.claim;
    end(&bench);
    for (unsigned outdated = 0; outdated < 2; outdated++) {
        begin(&bench, "hush", "");
        bench.player.hello.secret = true;
        bench.player.claim = claim;
        memcpy(bench.player.hello.known, challenge.nonce, GROUP_NONCE_BYTES);
        bench.player.hello.known[0] ^= (uint8_t)outdated;
        bench.player.claim.root_nonce[0] ^= (uint8_t)outdated;
        send_hello(&bench.player, 1, SIZE);
        say_proof(&bench.player, "hush");
        int done = step(&bench, 0);
        if (outdated) { /* or its PROOF has not come yet */
            assert_int_equal(done, 0);
            assert_memory_equal(hear_challenge(&bench.player).nonce, challenge.nonce, GROUP_NONCE_BYTES);
            say_proof(&bench.player, "hush");
        }
        while (done == 0)
            done = step(&bench, 0);
        assert_int_equal(done, 1);
        end(&bench);
    }
}

/* ---- parts of an exchange ---------------------------------------------------------------------------- */

static void say_part(int fd, uint32_t round, const void *part, uint32_t bytes)
{
    uint8_t body[64];
    lh_put_be32(body, round);
    memcpy(body + GROUP_ROUND_BYTES, part, bytes);
    say(fd, GROUP_PART, body, GROUP_ROUND_BYTES + bytes);
}

static int read_part(struct bench *bench, uint32_t round, void *part, size_t bytes)
{
    assert_int_equal(tcp_wait(bench->member.channel.fd, false, tcp_deadline(PATIENCE_NS)), 0);
    return group_member_read_part(&bench->member, round, part, bytes);
}

static void a_part_in_pieces(void **state)
{
    (void)state;
    struct bench bench;
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + 3], part[4] = "xxx";
    begin(&bench, "", "");
    group_frame_encode(&(struct group_frame){GROUP_PART, GROUP_ROUND_BYTES + 3}, frame);
    lh_put_be32(frame + GROUP_FRAME_HEADER_BYTES, 5);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES, "abc", 3);
    for (size_t i = 0; i < sizeof frame; i++) {
        assert_int_equal(group_member_read_part(&bench.member, 5, part, 3), 0);
        assert_int_equal(tcp_write(bench.player.fd, frame + i, 1, tcp_deadline(PATIENCE_NS)), 0);
        assert_int_equal(read_part(&bench, 5, part, 3), i + 1 == sizeof frame);
    }
    assert_string_equal((char *)part, "abc");
    end(&bench);
}

static void parts_that_do_not_fit(void **state)
{
    (void)state;
    struct bench bench;
    uint8_t part[8];
    begin(&bench, "", "");
    say_part(bench.player.fd, 4, "abc", 3);
    expect_error(read_part(&bench, 5, part, 3), -LH_EHANDSHAKE, "unexpected rendezvous frame");
    end(&bench);
    for (uint32_t bytes = 2; bytes <= 4; bytes += 2) {
        begin(&bench, "", "");
        bench.member.claim.rank = 2;
        say_part(bench.player.fd, 5, "abcd", bytes);
        expect_error(read_part(&bench, 5, part, 3), -LH_EINVAL, "exchange: rank 2 gives");
        end(&bench);
    }
    begin(&bench, "", "");
    say(bench.player.fd, GROUP_ALL, "\0\0\0\5abc", 7);
    expect_error(read_part(&bench, 5, part, 3), -LH_EHANDSHAKE, "unexpected rendezvous frame");
    end(&bench);
    begin(&bench, "", "");
    shutdown(bench.player.fd, SHUT_WR);
    expect_error(read_part(&bench, 5, part, 3), -LH_EPEER, "closed the connection");
    end(&bench);
}

static void a_part_of_no_byte(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench, "", "");
    say_part(bench.player.fd, 0, "", 0);
    assert_int_equal(read_part(&bench, 0, NULL, 0), 1);
    end(&bench);
}

/* ---- all of it --------------------------------------------------------------------------------------- */

/* What the other ranks do, while rank 0 waits in a call. */
struct play {
    char where[32];
    void (*scene)(const struct play *play);
    pthread_t thread;
};

static void *run_play(void *argument)
{
    const struct play *play = argument;
    play->scene(play);
    return NULL;
}

static uint16_t free_port(void)
{
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    close(fd);
    return port;
}

static struct group_root *open_root(struct play *play, void (*scene)(const struct play *))
{
    struct group_root *root;
    play->scene = scene;
    snprintf(play->where, sizeof play->where, "127.0.0.1:%u", free_port());
    assert_int_equal(group_root_open(play->where, SIZE, "hush", "A=1", NULL, &root), 0);
    assert_int_equal(pthread_create(&play->thread, NULL, run_play, play), 0);
    return root;
}

static void join_as(const struct play *play, uint32_t rank, struct player *player)
{
    *player = (struct player){.hello = {.secret = true}};
    assert_int_equal(tcp_connect(play->where, tcp_deadline(PATIENCE_NS), &player->fd), 0);
    send_hello(player, rank, SIZE);
    assert_string_equal(hear_challenge(player).job, "A=1");
    say_proof(player, "hush");
}

static void expect_welcome(const struct player *player)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(hear(player->fd, proof, sizeof proof).type, GROUP_WELCOME);
    assert_true(group_proof_check("hush", &player->claim, true, proof));
}

static void expect_all(int fd, uint32_t round, const char *all)
{
    char body[64] = "";
    struct group_frame frame = hear(fd, body, sizeof body - 1);
    assert_int_equal(frame.type, GROUP_ALL);
    assert_int_equal(lh_get_be32((uint8_t *)body), round);
    assert_string_equal(body + GROUP_ROUND_BYTES, all);
}

static void two_rounds(const struct play *play)
{
    struct player players[SIZE];
    for (uint32_t rank = SIZE - 1; rank > 0; rank--)
        join_as(play, rank, &players[rank]);
    for (uint32_t rank = 1; rank < SIZE; rank++)
        expect_welcome(&players[rank]);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t rank = 1; rank < SIZE; rank++)
            say_part(players[rank].fd, round, rank == 1 ? "one" : "two", 3);
        for (uint32_t rank = 1; rank < SIZE; rank++)
            expect_all(players[rank].fd, round, "nilonetwo");
    }
    for (uint32_t rank = 1; rank < SIZE; rank++)
        close(players[rank].fd);
}

static void all_join_and_exchange(void **state)
{
    (void)state;
    struct play play;
    char all[3 * SIZE + 1] = "";
    struct group_root *root = open_root(&play, two_rounds);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    assert_true(group_root_socket(root, 1) >= 0 && group_root_socket(root, 2) >= 0);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(group_root_exchange(root, "nil", 3, all, PATIENCE_NS), 0);
        assert_string_equal(all, "nilonetwo");
    }
    expect_error(group_root_exchange(root, "", GROUP_EXCHANGE_MAX / SIZE + 1, all, 0), -LH_ERANGE,
                 "exceed 256 MiB");
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

/* Rank 1 joins twice: the same process, which takes its own place; then another one. */
static void joins_twice(const struct play *play)
{
    struct player first, again, other, second;
    join_as(play, 1, &first);
    join_as(play, 1, &again);
    expect_closed(first.fd); /* without a word */
    other = (struct player){.hello = {.secret = true}};
    assert_int_equal(tcp_connect(play->where, tcp_deadline(PATIENCE_NS), &other.fd), 0);
    uint8_t body[GROUP_HELLO_BYTES];
    other.hello.rank = 1;
    other.hello.size = SIZE;
    memset(other.hello.nonce, 99, GROUP_NONCE_BYTES);
    group_hello_encode(&other.hello, body);
    say(other.fd, GROUP_HELLO, body, sizeof body);
    hear_challenge(&other);
    say_proof(&other, "hush");
    expect_refusal(other.fd, "rank 1 joined twice, first from 127.0.0.1:");
    join_as(play, 2, &second);
    expect_welcome(&again);
    expect_welcome(&second);
    close(first.fd);
    close(again.fd);
    close(other.fd);
    close(second.fd);
}

static void a_rank_joins_twice(void **state)
{
    (void)state;
    struct play play;
    struct group_root *root = open_root(&play, joins_twice);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

/* A rank that speaks before its turn loses its place; one that leaves gives it back. */
static void leaves_and_returns(const struct play *play)
{
    struct player players[SIZE];
    join_as(play, 1, &players[1]);
    say_part(players[1].fd, 0, "one", 3);
    expect_refusal(players[1].fd, "data of rank 1 before its turn");
    close(players[1].fd);
    join_as(play, 1, &players[1]);
    close(players[1].fd);
    for (uint32_t rank = 1; rank < SIZE; rank++)
        join_as(play, rank, &players[rank]);
    for (uint32_t rank = 1; rank < SIZE; rank++)
        expect_welcome(&players[rank]);
    close(players[1].fd); /* amid an exchange that is the end of all */
    expect_refusal(players[2].fd, "rank 1 (127.0.0.1:");
    close(players[2].fd);
}

static void a_rank_leaves(void **state)
{
    (void)state;
    struct play play;
    char all[3 * SIZE];
    struct group_root *root = open_root(&play, leaves_and_returns);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    expect_error(group_root_exchange(root, "nil", 3, all, PATIENCE_NS), -LH_EPEER, "has disconnected");
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

/* The deadline has passed: the ranks that are missing are named. */
static void ranks_that_are_missing(void **state)
{
    (void)state;
    struct group_root *root;
    assert_int_equal(group_root_open("127.0.0.1:0", SIZE, "", "", NULL, &root), 0);
    expect_error(group_root_join(root, 0), -LH_ETIMEDOUT, "ranks 1, 2 of 3: not joined within 0 s");
    group_root_close(root);
    assert_int_equal(group_root_open("127.0.0.1:0", 2, "", "", NULL, &root), 0);
    expect_error(group_root_join(root, 0), -LH_ETIMEDOUT, "rank 1 of 2: not joined within 0 s");
    group_root_close(root);
    assert_int_equal(group_root_open("127.0.0.1:0", 12, "", "", NULL, &root), 0);
    expect_error(group_root_join(root, 0), -LH_ETIMEDOUT,
                 "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 others of 12: not joined");
    group_root_close(root);
}

/* ---- no place for all -------------------------------------------------------------------------------- */

static int connect_silently(const struct play *play)
{
    int fd;
    assert_int_equal(tcp_connect(play->where, tcp_deadline(PATIENCE_NS), &fd), 0);
    return fd;
}

static void greet_as(const struct play *play, uint32_t rank, struct player *player)
{
    *player = (struct player){.fd = connect_silently(play), .hello = {.secret = true}};
    send_hello(player, rank, SIZE);
    hear_challenge(player);
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

/* All places but one are strangers' that say nothing: the oldest of them leave, without a word, and the rank
 * that has said HELLO stays. So does the one that has joined, which takes no place. */
static void strangers_in_all_places(const struct play *play)
{
    struct player players[SIZE];
    int strangers[GROUP_CLIENTS_MAX + 1];
    join_as(play, 1, &players[1]);
    greet_as(play, 2, &players[2]);
    for (unsigned i = 0; i < GROUP_CLIENTS_MAX + 1; i++)
        strangers[i] = connect_silently(play);
    expect_closed(strangers[0]);
    expect_closed(strangers[1]); /* not the one that has the first's place now */
    say_proof(&players[2], "hush");
    expect_welcome(&players[1]);
    expect_welcome(&players[2]);
    close_all(strangers, GROUP_CLIENTS_MAX + 1);
    close(players[1].fd);
    close(players[2].fd);
}

static void strangers_leave_first(void **state)
{
    (void)state;
    struct play play;
    struct group_root *root = open_root(&play, strangers_in_all_places);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

static void expect_full(int fd)
{
    char body[1];
    struct group_frame frame = hear(fd, body, sizeof body);
    assert_int_equal(frame.type, GROUP_FULL);
    assert_int_equal(frame.body_bytes, 0);
    expect_closed(fd);
}

/* All places are of clients that said HELLO: the first leaves, and is told to return. When it does, a
 * stranger that said nothing makes room for it. */
static void greeted_in_all_places(const struct play *play)
{
    struct player first, others[GROUP_CLIENTS_MAX - 1], again, one;
    greet_as(play, 2, &first);
    for (unsigned i = 0; i + 1 < GROUP_CLIENTS_MAX; i++)
        greet_as(play, 1, &others[i]);
    int stranger = connect_silently(play);
    expect_full(first.fd);
    again = (struct player){.fd = connect_silently(play), .hello = first.hello, .claim = first.claim};
    expect_closed(stranger);
    memcpy(again.hello.known, first.claim.root_nonce, GROUP_NONCE_BYTES);
    send_hello(&again, 2, SIZE);
    say_proof(&again, "hush");
    hear_challenge(&again);
    one = others[GROUP_CLIENTS_MAX - 2];
    say_proof(&one, "hush");
    expect_welcome(&one);
    expect_welcome(&again);
    for (unsigned i = 0; i + 1 < GROUP_CLIENTS_MAX; i++)
        close(others[i].fd);
    close(first.fd);
    close(stranger);
    close(again.fd);
}

static void who_had_to_leave_returns(void **state)
{
    (void)state;
    struct play play;
    struct group_root *root = open_root(&play, greeted_in_all_places);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

/* ---- no descriptor for all --------------------------------------------------------------------------- */

static struct rlimit descriptors; /* as they were */

static int open_client(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    return fd;
}

/* No descriptor is left for this process, rank 0 in it. Returns the limit. */
static int use_up_descriptors(void)
{
    int lowest = open_client();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = descriptors.rlim_max};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return lowest;
}

static void give_descriptors_back(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

static void connect_client(int fd, const struct play *play)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    to.sin_port = htons((uint16_t)atoi(strchr(play->where, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
}

/* Each that comes takes the descriptor of the stranger before it, once it is read itself: the ranks that said
 * HELLO keep theirs. */
static void strangers_without_descriptors(const struct play *play)
{
    struct player players[SIZE];
    int strangers[2] = {connect_silently(play), open_client()};
    join_as(play, 1, &players[1]);
    players[2] = (struct player){.fd = open_client(), .hello = {.secret = true}};
    use_up_descriptors(); /* the first stranger was accepted before rank 1 */
    connect_client(strangers[1], play);
    expect_closed(strangers[0]);
    connect_client(players[2].fd, play);
    expect_closed(strangers[1]);
    send_hello(&players[2], 2, SIZE);
    hear_challenge(&players[2]);
    give_descriptors_back();
    say_proof(&players[2], "hush");
    expect_welcome(&players[1]);
    expect_welcome(&players[2]);
    close_all(strangers, 2);
    close(players[1].fd);
    close(players[2].fd);
}

static void strangers_leave_their_descriptors(void **state)
{
    (void)state;
    struct play play;
    struct group_root *root = open_root(&play, strangers_without_descriptors);
    assert_int_equal(group_root_join(root, PATIENCE_NS), 0);
    pthread_join(play.thread, NULL);
    group_root_close(root);
}

/* Nobody is there who could leave: the one that comes waits, and the end tells why it was not let in. */
static void nobody_to_leave(void **state)
{
    (void)state;
    struct play play;
    struct group_root *root;
    snprintf(play.where, sizeof play.where, "127.0.0.1:%u", free_port());
    assert_int_equal(group_root_open(play.where, SIZE, "", "", NULL, &root), 0);
    int client = open_client(), limit = use_up_descriptors();
    connect_client(client, &play);
    int error = group_root_join(root, LH_NS_PER_S); /* long enough for one look at who is there */
    give_descriptors_back();
    char words[128];
    snprintf(words, sizeof words,
             "; refused some: no file descriptor left for them (limit %d: raise it with ulimit -n)", limit);
    expect_error(error, -LH_ETIMEDOUT, words);
    group_root_close(root); /* takes it now, for an answer */
    expect_refusal(client, "the group is complete: 3 ranks have joined");
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_joins),
        cmocka_unit_test(after_the_deadline),
        cmocka_unit_test(hellos_that_do_not_fit),
        cmocka_unit_test(a_wrong_secret),
        cmocka_unit_test(another_frame_than_is_due),
        cmocka_unit_test(a_rank_returns),
        cmocka_unit_test(a_part_in_pieces),
        cmocka_unit_test(parts_that_do_not_fit),
        cmocka_unit_test(a_part_of_no_byte),
        cmocka_unit_test(all_join_and_exchange),
        cmocka_unit_test(a_rank_joins_twice),
        cmocka_unit_test(a_rank_leaves),
        cmocka_unit_test(ranks_that_are_missing),
        cmocka_unit_test(strangers_leave_first),
        cmocka_unit_test(who_had_to_leave_returns),
        cmocka_unit_test(strangers_leave_their_descriptors),
        cmocka_unit_test(nobody_to_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
