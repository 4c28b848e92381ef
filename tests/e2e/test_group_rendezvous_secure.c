/*
 * test_group_rendezvous_secure.c - the rendezvous of a group under TLS: ranks that meet, and exchange what
 * takes many records; ranks whose keys differ; strangers who connect all the time; a rank that has the key
 * and does not keep to its turn, or stops.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "keys/key_file.h"
#include "launch/group_meeting.h"

#define RANKS_MAX   9u
#define PATIENCE_NS (60 * LH_NS_PER_S)
/* For a rank 0 that waits in vain: what has to come before is there long since. */
#define SHORT_NS       (2 * LH_NS_PER_S)
#define STRANGERS_OPEN 400u

static struct tls_context *right, *other, *authenticating;

static struct tls_context *context_of(const char *text, enum lh_encryption encryption)
{
    struct key_group key;
    struct tls_context *context;
    assert_int_equal(key_group_of_text("secret", text, &key), 0);
    assert_int_equal(tls_context_of(&key.rendezvous, encryption, GROUP_KEY_REMEDY, &context), 0);
    return context;
}

static int set_up(void **state)
{
    (void)state;
    right = context_of("the secret of all ranks", LH_ENCRYPTION_FULL);
    other = context_of("the secret of another job", LH_ENCRYPTION_FULL);
    authenticating = context_of("the secret of all ranks", LH_ENCRYPTION_AUTH);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_free(right);
    tls_context_free(other);
    tls_context_free(authenticating);
    return 0;
}

/* A rank in a thread of its own. */
struct rank {
    struct launcher_settings settings;
    struct tls_context *tls;
    lh_time timeout_ns;
    size_t bytes;
    int error;
    char message[LH_ERROR_TEXT_BYTES];
    pthread_t thread;
};

static struct rank ranks[RANKS_MAX];

static uint8_t byte_of(uint32_t rank, size_t i, unsigned round)
{
    return (uint8_t)(rank + 3 * i + 7 * round);
}

static int exchange(const struct rank *rank, struct group_meeting *meeting)
{
    size_t bytes = rank->bytes;
    uint8_t *mine = malloc(bytes + 1), *all = malloc(bytes * rank->settings.size + 1);
    int error = 0;
    for (unsigned round = 0; round < 3 && !error; round++) {
        for (size_t i = 0; i < bytes; i++)
            mine[i] = byte_of(rank->settings.rank, i, round);
        error = group_meeting_exchange(meeting, mine, bytes, all);
        for (uint32_t r = 0; r < rank->settings.size && !error; r++)
            for (size_t i = 0; i < bytes; i++)
                assert_int_equal(all[r * bytes + i], byte_of(r, i, round));
    }
    free(mine);
    free(all);
    return error;
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    struct group_meeting meeting;
    rank->error = group_meeting_open(&rank->settings, rank->tls, rank->timeout_ns, &meeting);
    if (!rank->error) {
        rank->error = exchange(rank, &meeting);
        group_meeting_close(&meeting);
    }
    snprintf(rank->message, sizeof rank->message, "%s", rank->error ? lh_last_error() : "");
    return NULL;
}

static void prepare(uint32_t size, lh_time timeout_ns)
{
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    close(fd);
    for (uint32_t r = 0; r < size; r++) {
        struct rank *rank = &ranks[r];
        *rank = (struct rank){.settings = {.launcher = "test", .rank = r, .size = size},
                              .tls = right,
                              .timeout_ns = timeout_ns,
                              .bytes = 100};
        snprintf(rank->settings.where, sizeof rank->settings.where, "127.0.0.1:%u", port);
        strcpy(rank->settings.listen, rank->settings.where);
        strcpy(rank->settings.secret, "the secret of all ranks");
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

/* ---- ranks that meet --------------------------------------------------------------------------------- */

/* From the last to the first: all others try to connect before rank 0 listens. */
static void meet(uint32_t size, size_t bytes)
{
    prepare(size, PATIENCE_NS);
    for (uint32_t r = size; r-- > 0;) {
        ranks[r].bytes = bytes;
        start(&ranks[r]);
    }
    for (uint32_t r = 0; r < size; r++)
        join(&ranks[r]);
    for (uint32_t r = 0; r < size; r++)
        expect(&ranks[r], 0, "");
}

static void all_meet(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= RANKS_MAX; size++)
        meet(size, 100);
    meet(2, 0);
    meet(3, 16384 - GROUP_FRAME_HEADER_BYTES - GROUP_ROUND_BYTES); /* a record, to the byte */
    meet(RANKS_MAX, 1 << 20);                                      /* beyond what sockets hold */
}

/* ---- keys that differ -------------------------------------------------------------------------------- */

static void keys_that_differ(void **state)
{
    (void)state;
    const struct {
        struct tls_context *zero, *one;
        const char *at_zero, *at_one;
    } cases[] = {
        {right, other, "the remote side has another key", "the remote side has another key"},
        {right, NULL, "the client has no key, the listener has one", "the client has no key"},
        {NULL, right, "the remote side encrypts, this side does not",
         "the remote side answers in clear text"},
        {right, authenticating, "rank 1 has --encryption auth, rank 0 has full",
         "rank 1 has --encryption auth, rank 0 has full"},
        {authenticating, right, "rank 1 has --encryption full, rank 0 has auth",
         "rank 1 has --encryption full, rank 0 has auth"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prepare(2, SHORT_NS);
        ranks[0].tls = cases[i].zero;
        ranks[1].tls = cases[i].one;
        for (uint32_t r = 0; r < 2; r++)
            start(&ranks[r]);
        for (uint32_t r = 0; r < 2; r++)
            join(&ranks[r]);
        expect(&ranks[1], -LH_EHANDSHAKE, cases[i].at_one);
        expect(&ranks[0], -LH_ETIMEDOUT, "rank 1 of 2: not joined");
        expect(&ranks[0], -LH_ETIMEDOUT, cases[i].at_zero);
        for (uint32_t r = 0; r < 2; r++)
            expect(&ranks[r], ranks[r].error, "the same --encryption");
    }
}

/* ---- strangers --------------------------------------------------------------------------------------- */

static atomic_bool enough;

static void keep_open(int *fds, unsigned *next, int fd, unsigned turn)
{
    static const uint8_t like_tls[] = {0x16, 3, 1, 2, 0, 1};
    if (turn % 3 == 1)
        send(fd, like_tls, sizeof like_tls, MSG_NOSIGNAL);
    else if (turn % 3 == 2)
        send(fd, "LHG1\2\1", 6, MSG_NOSIGNAL);
    if (fds[*next] >= 0)
        close(fds[*next]);
    fds[*next] = fd;
    *next = (*next + 1) % STRANGERS_OPEN;
}

/* One connection after another, as fast as they are made; the newest stay open. Some are idle, some begin
 * like a client. */
static void *disturb(void *argument)
{
    const char *where = argument;
    int fds[STRANGERS_OPEN];
    unsigned next = 0, turn = 0;
    memset(fds, -1, sizeof fds);
    while (!enough) {
        int fd;
        if (tcp_connect(where, tcp_deadline(SHORT_NS), &fd) == 0)
            keep_open(fds, &next, fd, turn++);
    }
    for (unsigned i = 0; i < STRANGERS_OPEN; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return NULL;
}

static void strangers_keep_nobody_out(void **state)
{
    (void)state;
    pthread_t stranger;
    prepare(RANKS_MAX, PATIENCE_NS);
    enough = false;
    start(&ranks[0]);
    assert_int_equal(pthread_create(&stranger, NULL, disturb, ranks[0].settings.where), 0);
    usleep(200000); /* so many are there first; if they are not, ranks join the sooner */
    for (uint32_t r = 1; r < RANKS_MAX; r++)
        start(&ranks[r]);
    for (uint32_t r = 0; r < RANKS_MAX; r++)
        join(&ranks[r]);
    enough = true;
    pthread_join(stranger, NULL);
    for (uint32_t r = 0; r < RANKS_MAX; r++)
        expect(&ranks[r], 0, "");
}

/* Rank 0 had no place for a rank whose first message had not come: it closes without a word. */
static void a_rank_returns(void **state)
{
    (void)state;
    int listener;
    uint16_t port;
    prepare(2, PATIENCE_NS);
    assert_int_equal(tcp_listen(ranks[0].settings.where, &listener, &port), 0);
    start(&ranks[1]);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    shutdown(fd, SHUT_WR); /* no reset: the rank reads the end */
    close(listener);
    start(&ranks[0]);
    for (uint32_t r = 0; r < 2; r++)
        join(&ranks[r]);
    close(fd);
    for (uint32_t r = 0; r < 2; r++)
        expect(&ranks[r], 0, "");
}

/* ---- a rank by hand ---------------------------------------------------------------------------------- */

static struct channel connect_by_hand(void)
{
    struct channel channel = {.fd = -1};
    lh_time until = tcp_deadline(PATIENCE_NS);
    while (tcp_connect(ranks[0].settings.where, until, &channel.fd)) /* until rank 0 listens */
        assert_true(tcp_now() < until);
    assert_int_equal(channel_secure(&channel, right, false), 0);
    for (;;) {
        int done = channel_handshake(&channel);
        assert_true(done >= 0);
        if (done == 1)
            return channel;
        assert_int_equal(tcp_wait(channel.fd, false, until), 0);
    }
}

static void say(struct channel *channel, enum group_frame_type type, const void *body, uint32_t bytes)
{
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    group_frame_encode(&(struct group_frame){type, bytes}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, body, bytes);
    assert_int_equal(
        channel_send_all(channel, frame, GROUP_FRAME_HEADER_BYTES + bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static void hear(struct channel *channel, enum group_frame_type type, uint8_t body[GROUP_SMALL_BODY_MAX])
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    struct group_frame frame;
    lh_time until = tcp_deadline(PATIENCE_NS);
    assert_int_equal(channel_receive_all(channel, head, sizeof head, until), 0);
    assert_int_equal(group_frame_decode(head, &frame), 0);
    assert_int_equal(frame.type, type);
    assert_true(frame.body_bytes <= GROUP_SMALL_BODY_MAX);
    assert_int_equal(channel_receive_all(channel, body, frame.body_bytes, until), 0);
}

/* As rank 1. */
static struct group_claim greet(struct channel *channel)
{
    uint8_t hello_bytes[GROUP_HELLO_BYTES], body[GROUP_SMALL_BODY_MAX];
    const struct group_hello hello = {.rank = 1,
                                      .size = ranks[0].settings.size,
                                      .encryption = HANDSHAKE_ENCRYPTION_FULL,
                                      .secret = true,
                                      .nonce = "a nonce of mine"};
    struct group_claim claim = {.rank = 1, .size = hello.size, .rank_nonce = "a nonce of mine"};
    struct group_challenge challenge;
    group_hello_encode(&hello, hello_bytes);
    say(channel, GROUP_HELLO, hello_bytes, sizeof hello_bytes);
    hear(channel, GROUP_CHALLENGE, body);
    assert_int_equal(group_challenge_decode(body, &challenge), 0);
    memcpy(claim.root_nonce, challenge.nonce, sizeof claim.root_nonce);
    return claim;
}

/* Strangers connect in the middle of it. */
static void join_by_hand(struct channel *channel, uint32_t strangers, int *fds)
{
    uint8_t body[GROUP_SMALL_BODY_MAX], proof[GROUP_PROOF_BYTES];
    for (uint32_t i = 0; i < strangers; i++)
        assert_int_equal(tcp_connect(ranks[0].settings.where, tcp_deadline(PATIENCE_NS), &fds[i]), 0);
    const struct group_claim claim = greet(channel);
    assert_int_equal(group_proof_make(ranks[0].settings.secret, &claim, false, proof), 0);
    say(channel, GROUP_PROOF, proof, sizeof proof);
    hear(channel, GROUP_WELCOME, body);
}

/* A rank that has proved the key keeps its place, however many connect behind it. */
static void a_proven_rank_stays(void **state)
{
    (void)state;
    int fds[3 * GROUP_CLIENTS_MAX];
    prepare(2, PATIENCE_NS);
    start(&ranks[0]);
    struct channel channel = connect_by_hand();
    join_by_hand(&channel, 3 * GROUP_CLIENTS_MAX, fds);
    channel_close(&channel);
    join(&ranks[0]);
    expect(&ranks[0], -LH_EPEER, "rank 1 (127.0.0.1:");
    for (uint32_t i = 0; i < 3 * GROUP_CLIENTS_MAX; i++)
        close(fds[i]);
}

/* Its part of an exchange, and more in the same record: rank 0 has read both at once, no socket tells it. */
static void a_part_and_more(void **state)
{
    (void)state;
    uint8_t part[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + 100 + 1] = {0}, body[GROUP_SMALL_BODY_MAX];
    for (unsigned more = 0; more < 2; more++) {
        prepare(2, PATIENCE_NS);
        start(&ranks[0]);
        struct channel channel = connect_by_hand();
        join_by_hand(&channel, 0, NULL);
        group_frame_encode(&(struct group_frame){GROUP_PART, GROUP_ROUND_BYTES + 100}, part);
        for (size_t i = 0; i < 100; i++)
            part[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + i] = byte_of(1, i, 0);
        assert_int_equal(
            channel_send_all(&channel, part, sizeof part - 1 + more, tcp_deadline(PATIENCE_NS)), 0);
        hear(&channel, more ? GROUP_REFUSE : GROUP_ALL, body);
        channel_close(&channel);
        join(&ranks[0]);
        expect(&ranks[0], more ? -LH_EHANDSHAKE : -LH_EPEER, more ? "data of rank 1 before its turn" : "");
    }
}

/* ---- a rank that stops ------------------------------------------------------------------------------- */

/* Behind which it says no more. */
enum step { TLS, GREETED, HALF_A_PART, A_PART };

#define LARGE_PART ((size_t)8 << 20) /* of all ranks: more than sockets hold */

static void go_up_to(struct channel *channel, enum step step, size_t bytes)
{
    uint8_t *part = calloc(1, GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + bytes);
    assert_non_null(part);
    if (step == GREETED)
        (void)greet(channel);
    if (step >= HALF_A_PART) {
        join_by_hand(channel, 0, NULL);
        group_frame_encode(&(struct group_frame){GROUP_PART, (uint32_t)(GROUP_ROUND_BYTES + bytes)}, part);
        for (size_t i = 0; i < bytes; i++)
            part[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + i] = byte_of(1, i, 0);
        size_t given = step == A_PART ? bytes : bytes / 2;
        assert_int_equal(channel_send_all(channel, part,
                                          GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES + given,
                                          tcp_deadline(PATIENCE_NS)),
                         0);
    }
    free(part);
}

/* Rank 1 of 3 stays without a word, or leaves: rank 0 and rank 2 end with the reason. */
static void a_rank_stops(void **state)
{
    (void)state;
    const struct {
        enum step step;
        bool leaves;
        size_t bytes;
        lh_time timeout_ns;
        int error;
        const char *words;
    } cases[] = {
        {TLS, false, 100, SHORT_NS, -LH_ETIMEDOUT, "rank 1 of 3: not joined"},
        {GREETED, true, 100, SHORT_NS, -LH_ETIMEDOUT, "rank 1 of 3: not joined"},
        {HALF_A_PART, false, 100, 2 * SHORT_NS, -LH_ETIMEDOUT, "rank 1 of 3: no answer"},
        {HALF_A_PART, true, 100, PATIENCE_NS, -LH_EPEER, "has disconnected"},
        {A_PART, false, LARGE_PART, 2 * SHORT_NS, -LH_ETIMEDOUT, "rank 1 of 3: no answer"},
        {A_PART, true, LARGE_PART, PATIENCE_NS, -LH_EPEER, "has disconnected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prepare(3, cases[i].timeout_ns);
        ranks[0].bytes = ranks[2].bytes = cases[i].bytes;
        start(&ranks[0]);
        start(&ranks[2]);
        struct channel channel = connect_by_hand();
        go_up_to(&channel, cases[i].step, cases[i].bytes);
        if (cases[i].leaves)
            channel_close(&channel);
        for (uint32_t r = 0; r < 3; r += 2)
            join(&ranks[r]);
        if (!cases[i].leaves)
            channel_close(&channel);
        expect(&ranks[0], cases[i].error, cases[i].words);
        expect(&ranks[2], -LH_EHANDSHAKE, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(keys_that_differ),
        cmocka_unit_test(strangers_keep_nobody_out),
        cmocka_unit_test(a_rank_returns),
        cmocka_unit_test(a_proven_rank_stays),
        cmocka_unit_test(a_part_and_more),
        cmocka_unit_test(a_rank_stops),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
