/*
 * test_rendezvous_secure.c - handshakes with keys: both sides of one, step by step, and listeners with
 * clients and strangers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/rendezvous.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/engine.h>
#include <longhaul/onesided.h>

#include "base/error.h"
#include "fabric/udp/udp_state.h"
#include "keys/key_file.h"
#include "launch/tcp.h"
#include "sdr/qp.h"
#include "support/rendezvous_flights.h"

#define PATIENCE_NS (60 * LH_NS_PER_S)
#define SHORT_NS    (100 * LH_NS_PER_MS)
#define STRANGERS   40 /* more than a listener has places */

static const struct rendezvous_permit all = {
    .open = true, .open_early = true, .link_room = UINT64_MAX, .finish = true, .promise = true};

static char folder[] = "/tmp/longhaul-secure-XXXXXX";
static char files[2][64];
static struct lh_security securities[2];
static struct tls_context *tls;
static struct admission_key admission = {{7}};
static struct lh_attr attr;

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(files[i], sizeof files[i], "%s/key%d", folder, i);
        int fd = open(files[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || dprintf(fd, "%063d%d\n", 0, i) < 0)
            return -1;
        close(fd);
        lh_security_init(&securities[i]);
        securities[i].key_file = files[i];
    }
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.slots = 2;
    attr.slot_bytes = 16384;
    return tls_context_create(&securities[0], &tls);
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_free(tls);
    unlink(files[0]);
    unlink(files[1]);
    return rmdir(folder);
}

static void expect_error(int error, int wanted, const char *words)
{
    if (error != wanted || !strstr(lh_last_error(), words))
        fail_msg("%d, \"%s\": not %d, \"%s\"", error, lh_last_error(), wanted, words);
}

/* ---- both sides, step by step ------------------------------------------------------------------------ */

struct two {
    struct rendezvous client, server;
};

static void begin(struct two *two, const uint8_t *cookie)
{
    char where[32];
    uint16_t port;
    int listener, ends[2];
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &ends[0]), 0);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(ends[1] >= 0);
    close(listener);
    rendezvous_accept(&two->server, ends[1], &attr, &admission, NULL);
    assert_int_equal(rendezvous_accept_secure(&two->server, tls), 0);
    assert_int_equal(rendezvous_connect(&two->client, ends[0], &attr, HANDSHAKE_VERSION, cookie, NULL, tls),
                     0);
}

/* What was sent has arrived: the step sees it. */
static int step(struct rendezvous *r)
{
    assert_int_equal(tcp_wait(r->fd, false, tcp_deadline(PATIENCE_NS)), 0);
    return rendezvous_step(r, all, tcp_now());
}

static int step_until_failed(struct rendezvous *r)
{
    int done = 0;
    while (!done)
        done = step(r);
    return done;
}

static void drop(struct rendezvous *r)
{
    lh_fail(LH_EHANDSHAKE, "over");
    rendezvous_drop(r);
}

static void test_both_are_done(void **state)
{
    struct two two;
    int client = 0, server = 0;
    (void)state;
    begin(&two, NULL);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_NEW);
    for (lh_time until = tcp_deadline(PATIENCE_NS); !client || !server;) {
        assert_true(tcp_now() < until);
        client = client ? client : rendezvous_step(&two.client, all, tcp_now());
        server = server ? server : rendezvous_step(&two.server, all, tcp_now());
        assert_true(client >= 0 && server >= 0);
    }
    lh_close(rendezvous_done(&two.client));
    lh_close(rendezvous_done(&two.server));
}

static void test_two_round_trips(void **state)
{
    (void)state;
    struct two two;
    attr.workers = 1;
    begin(&two, NULL);
    run_in_two_round_trips(&two.client, &two.server, all);
    lh_close(rendezvous_done(&two.client));
    lh_close(rendezvous_done(&two.server));
    attr.workers = LH_NO_WORKERS;
}

static void expect_no_greeting(const void *greeting, size_t bytes, const char *words)
{
    char where[32];
    uint16_t port;
    int listener, fd;
    struct channel channel;
    struct rendezvous server;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fd), 0);
    channel = (struct channel){.fd = fd};
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listener);
    rendezvous_accept(&server, fd, &attr, &admission, NULL);
    assert_int_equal(rendezvous_accept_secure(&server, tls), 0);
    assert_int_equal(channel_secure_greeting(&channel, tls, greeting, bytes), 0);
    expect_error(step_until_failed(&server), -LH_EHANDSHAKE, words);
    drop(&server);
    channel_close(&channel);
}

/* Of one who has the key. */
static void test_greetings_that_are_none(void **state)
{
    static const uint8_t older[] = {HANDSHAKE_VERSION_EARLY - 1, 0}, many[CHANNEL_GREETING_MAX] = {255};
    (void)state;
    expect_no_greeting(older, sizeof older, "invalid handshake version 6 in TLS");
    expect_no_greeting(many, 1, "invalid proposal length 0");
    expect_no_greeting(many, 9, "invalid proposal length 8");
    expect_no_greeting(many, sizeof many, "invalid proposal length 511");
}

/* A client keeps its place against strangers as soon as it has proved the key. */
static void test_standing(void **state)
{
    struct two two;
    (void)state;
    begin(&two, NULL);
    assert_int_equal(step(&two.server), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_PROPOSAL);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_GREETED);
    assert_false(two.client.greeted);
    assert_int_equal(step(&two.client), 0);
    assert_true(two.client.greeted);
    drop(&two.client);
    drop(&two.server);
}

/* From a full listener: before its first message is read, after, and after its proposal. */
static void test_full_listener(void **state)
{
    struct two two;
    (void)state;
    for (int stage = 0; stage < 3; stage++) {
        begin(&two, NULL);
        if (stage > 0)
            assert_int_equal(step(&two.server), 0);
        if (stage > 1) {
            assert_int_equal(step(&two.client), 0);
            while (two.server.state == RENDEZVOUS_PROPOSAL)
                assert_int_equal(step(&two.server), 0);
        }
        rendezvous_send_cookie(&two.server);
        lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_FULL);
        rendezvous_drop(&two.server);
        assert_int_equal(step_until_failed(&two.client), -LH_EHANDSHAKE);
        assert_true(two.client.full);
        assert_int_equal(two.client.has_cookie, stage > 0);
        drop(&two.client);
    }
}

static void test_return_with_cookie(void **state)
{
    struct two two;
    uint8_t cookie[ADMISSION_COOKIE_BYTES];
    (void)state;
    begin(&two, NULL);
    const struct admission_address address = admission_address_of(two.server.fd);
    assert_int_equal(admission_cookie_make(&admission, &address, NULL, 0, cookie), 0);
    drop(&two.client);
    drop(&two.server);
    begin(&two, cookie);
    assert_int_equal(step(&two.server), 0);
    assert_int_equal(step(&two.client), 0);
    while (two.server.state == RENDEZVOUS_PROPOSAL)
        assert_int_equal(step(&two.server), 0);
    assert_true(two.server.returned);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_RETURNED);
    drop(&two.client);
    drop(&two.server);
}

/* Frames that share a record of TLS, of which the socket shows nothing any more. */
static void test_frames_of_one_record(void **state)
{
    struct two two;
    uint8_t record[2 * HANDSHAKE_BODY_MAX];
    const struct handshake_proposal proposal = {.encryption = HANDSHAKE_ENCRYPTION_FULL,
                                                .mtu_bytes = 1024,
                                                .slots = 2,
                                                .channels = 1,
                                                .generations = 1,
                                                .slot_bytes = 16384};
    const struct handshake_header busy = {HANDSHAKE_VERSION, HANDSHAKE_BUSY, 0, 0};
    (void)state;
    begin(&two, NULL);
    assert_int_equal(step(&two.server), 0);
    assert_int_equal(step(&two.client), 0);
    while (channel_handshake(&two.server.channel) == 0)
        assert_int_equal(tcp_wait(two.server.fd, false, tcp_deadline(PATIENCE_NS)), 0);
    struct handshake_header header = {HANDSHAKE_VERSION, HANDSHAKE_PROPOSAL, 0, 0};
    header.body_bytes = handshake_proposal_encode(&proposal, record + HANDSHAKE_HEADER_BYTES);
    handshake_header_encode(&header, record);
    uint8_t *at = record + HANDSHAKE_HEADER_BYTES + header.body_bytes;
    for (int i = 0; i < 3; i++, at += HANDSHAKE_HEADER_BYTES)
        handshake_header_encode(&busy, at);
    assert_int_equal(channel_send(&two.server.channel, record, (size_t)(at - record)), at - record);
    assert_int_equal(step(&two.client), 0);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(two.client.busy, i);
        assert_int_equal(rendezvous_next_ns(&two.client, 5), 5);
        assert_int_equal(rendezvous_step(&two.client, all, 5), 0);
    }
    assert_int_equal(two.client.busy, 3);
    assert_int_equal(rendezvous_next_ns(&two.client, 5), LH_TIME_NEVER);
    drop(&two.client);
    drop(&two.server);
}

/* Whatever comes in clear text, the client goes no further, and believes no reason but "full". */
static void test_clear_text_is_not_believed(void **state)
{
    static const char *const reasons[] = {"handshake version 1", "trust me", HANDSHAKE_FULL};
    static const enum handshake_type types[] = {HANDSHAKE_REFUSE, HANDSHAKE_PROPOSAL, HANDSHAKE_COOKIE};
    (void)state;
    for (size_t i = 0; i < 9; i++) {
        struct two two;
        uint8_t frame[HANDSHAKE_HEADER_BYTES];
        const char *reason = reasons[i % 3];
        const enum handshake_type type = types[i / 3];
        const struct handshake_header header = {4, HANDSHAKE_REFUSE, 0, (uint32_t)strlen(reason)};
        begin(&two, NULL);
        handshake_header_encode(&header, frame);
        frame[HANDSHAKE_TYPE_AT] = (uint8_t)type;
        tcp_write(two.server.fd, frame, sizeof frame, tcp_deadline(PATIENCE_NS));
        assert_int_equal(step(&two.client), 0);
        tcp_write(two.server.fd, reason, strlen(reason), tcp_deadline(PATIENCE_NS));
        expect_error(step(&two.client), -LH_EHANDSHAKE,
                     i == 2                     ? HANDSHAKE_FULL
                     : type == HANDSHAKE_REFUSE ? CHANNEL_CLEAR_TEXT
                                                : "");
        assert_int_equal(two.client.full, i == 2);
        assert_false(two.client.older);
        assert_false(two.client.has_cookie);
        assert_null(two.client.connection);
        drop(&two.client);
        drop(&two.server);
    }
}

/* ---- listeners --------------------------------------------------------------------------------------- */

static char refused[2][512];
static int refusals;

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    (void)context;
    assert_int_equal(notice, LH_NOTICE_REFUSED);
    snprintf(refused[refusals % 2], sizeof refused[0], "%s", text);
    refusals++;
    return false;
}

static void attr_of(struct lh_attr *out, const struct lh_security *security)
{
    lh_attr_init(out);
    out->slots = 2;
    out->slot_bytes = 16384;
    out->security = security;
}

static void listen_with(const struct lh_security *security, struct lh_listener **listener, char where[32])
{
    struct lh_attr own;
    attr_of(&own, security);
    own.on_notice = on_notice;
    refusals = 0;
    assert_int_equal(lh_listen("127.0.0.1:0", &own, listener), 0);
    snprintf(where, 32, "127.0.0.1:%u", lh_listener_port(*listener));
}

/* Keys of both sides: none, one, another. Same ones meet; else both learn why, at once. */
static void test_who_meets_whom(void **state)
{
    const struct lh_security *const given[] = {NULL, &securities[0], &securities[1]};
    static const char *const at_client[] = {"", "answers in clear text", "has no key", "another key"};
    static const char *const at_listener[] = {"", "has a key, this side has none",
                                              "client has no key, the listener has", "another key"};
    (void)state;
    for (int listening = 0; listening < 3; listening++)
        for (int connecting = 0; connecting < 3; connecting++) {
            struct lh_attr own;
            struct lh_listener *listener;
            struct lh_connection *client;
            char where[32];
            if (listening == connecting)
                continue;
            listen_with(given[listening], &listener, where);
            attr_of(&own, given[connecting]);
            int which = listening == 0 ? 1 : connecting == 0 ? 2 : 3;
            expect_error(lh_connect(where, &own, PATIENCE_NS, &client), -LH_EHANDSHAKE, at_client[which]);
            assert_non_null(strstr(lh_last_error(), "use the same key file or code on both sides"));
            expect_error(lh_connect(where, &own, PATIENCE_NS, &client), -LH_EHANDSHAKE, at_client[which]);
            lh_listener_close(listener);   /* ends its thread: what that has written may be read */
            assert_int_equal(refusals, 1); /* a minute has not passed */
            assert_non_null(strstr(refused[0], at_listener[which]));
            assert_non_null(strstr(refused[0], "use the same key file or code on both sides"));
        }
}

struct call {
    const char *where;
    const struct lh_attr *attr;
    struct lh_connection *connection;
    int error;
    pthread_t thread;
};

static void *run(void *argument)
{
    struct call *call = argument;
    call->error = lh_connect(call->where, call->attr, PATIENCE_NS, &call->connection);
    if (call->error)
        fprintf(stderr, "%s\n", lh_last_error());
    return NULL;
}

static void connect_both(const char *where, const struct lh_attr *own, struct lh_listener *listener,
                         struct lh_connection *pair[2])
{
    struct call call = {.where = where, .attr = own};
    assert_int_equal(pthread_create(&call.thread, NULL, run, &call), 0);
    int error = lh_accept(listener, PATIENCE_NS, &pair[1]);
    pthread_join(call.thread, NULL);
    assert_int_equal(call.error, 0);
    assert_int_equal(error, 0);
    pair[0] = call.connection;
}

static void expect_message(struct lh_connection *from, struct lh_connection *to)
{
    struct lh_request *requests[2];
    struct lh_result result;
    char data[9000] = "a message", got[9000] = "";
    assert_int_equal(lh_recv(to, got, sizeof got, NULL, &requests[0]), 0);
    assert_int_equal(lh_send(from, data, sizeof data, NULL, &requests[1]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_wait(requests[i], PATIENCE_NS, &result), 0);
        assert_int_equal(result.error, 0);
        lh_request_free(requests[i]);
    }
    assert_string_equal(got, data);
}

/* The key file is read by the calls, and not needed any more. */
static void test_messages(void **state)
{
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *pair[2];
    struct lh_security security = securities[0];
    char where[32], file[64];
    (void)state;
    strcpy(file, files[0]);
    security.key_file = file;
    listen_with(&security, &listener, where);
    memset(file, 0, sizeof file);
    security.struct_bytes = 0;
    attr_of(&own, &securities[0]);
    connect_both(where, &own, listener, pair);
    lh_listener_close(listener);
    expect_message(pair[0], pair[1]);
    expect_message(pair[1], pair[0]);
    uint8_t last;
    struct lh_request *request;
    struct lh_result result;
    assert_int_equal(lh_recv(pair[1], &last, 1, NULL, &request), 0);
    lh_close(pair[0]);
    assert_int_equal(lh_wait(request, PATIENCE_NS, &result), 0);
    assert_int_equal(result.error, -LH_ECLOSED); /* its FIN came, by TLS */
    lh_request_free(request);
    lh_close(pair[1]);
}

static struct lh_engine *engine_of_loopback(void)
{
    struct lh_engine_attr own;
    struct lh_engine *engine;
    lh_engine_attr_init(&own);
    own.device = "udp:127.0.0.1";
    assert_int_equal(lh_engine_create(&own, &engine), 0);
    return engine;
}

/* NULL: its packets are in clear text. */
static struct udp_keys *keys_of(const struct lh_connection *connection)
{
    return ((struct udp_endpoint *)connection->qp->endpoint)->keys;
}

/* Both ends have the same, which nothing else has. */
static void expect_same_secret(struct lh_connection *const pair[2])
{
    assert_non_null(keys_of(pair[0]));
    assert_non_null(keys_of(pair[1]));
    assert_memory_equal(keys_of(pair[0])->tx_secret, keys_of(pair[1])->tx_secret, SEAL_SECRET_BYTES);
    assert_int_equal(keys_of(pair[0])->direction, 0);
    assert_int_equal(keys_of(pair[1])->direction, 1);
}

/* What both want: the same, or they do not connect, and both learn why. */
static void test_encryption(void **state)
{
    static const enum lh_encryption wanted[] = {LH_ENCRYPTION_FULL, LH_ENCRYPTION_AUTH, LH_ENCRYPTION_OFF};
    (void)state;
    for (int listening = 0; listening < 3; listening++)
        for (int connecting = 0; connecting < 3; connecting++) {
            struct lh_security theirs = securities[0], ours = securities[0];
            struct lh_attr own;
            struct lh_listener *listener;
            struct lh_connection *pair[2];
            char where[32];
            theirs.encryption = wanted[listening];
            ours.encryption = wanted[connecting];
            listen_with(&theirs, &listener, where);
            attr_of(&own, &ours);
            if (listening == connecting) {
                connect_both(where, &own, listener, pair);
                assert_int_equal(keys_of(pair[0]) != NULL, wanted[listening] == LH_ENCRYPTION_FULL);
                assert_int_equal(keys_of(pair[1]) != NULL, wanted[listening] == LH_ENCRYPTION_FULL);
                expect_message(pair[0], pair[1]);
                lh_close(pair[0]);
                lh_close(pair[1]);
                lh_listener_close(listener);
                continue;
            }
            bool one_is_off = listening == 2 || connecting == 2;
            const char *words = one_is_off ? "use the same key file or code on both sides"
                                           : "use the same --encryption on both sides";
            expect_error(lh_connect(where, &own, PATIENCE_NS, &pair[0]), -LH_EHANDSHAKE, words);
            lh_listener_close(listener);
            assert_int_equal(refusals, 1);
            assert_non_null(strstr(refused[0], words));
        }
}

/* Of a release that knows TLS, and not encrypted packets: only where both leave these in clear text. */
static void test_older_release(void **state)
{
    struct handshake_proposal full = {.encryption = HANDSHAKE_ENCRYPTION_FULL},
                              older = {.encryption = HANDSHAKE_ENCRYPTION_NONE},
                              auth = {.encryption = HANDSHAKE_ENCRYPTION_AUTH};
    (void)state;
    expect_error(handshake_check_encryption(&older, &full, false), -LH_EHANDSHAKE, "of an older release");
    expect_error(handshake_check_encryption(&full, &older, false), -LH_EHANDSHAKE, "--encryption auth");
    assert_int_equal(handshake_check_encryption(&older, &auth, false), 0);
    assert_int_equal(handshake_check_encryption(&auth, &older, false), 0);
    expect_error(handshake_check_encryption(&older, &auth, true), -LH_EHANDSHAKE,
                 "the listener has \"auth\", the client \"off\"");
}

/* The sub-connection of one-sided operations has keys of its own. */
static void test_onesided(void **state)
{
    static uint8_t memory[70000], data[70000];
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *pair[2], *subs[2];
    struct lh_region *region;
    struct lh_request *request;
    struct lh_result result;
    struct lh_key key;
    char where[32];
    (void)state;
    listen_with(&securities[0], &listener, where);
    attr_of(&own, &securities[0]);
    connect_both(where, &own, listener, pair);
    lh_listener_close(listener);
    const struct lh_part part = {.address = memory, .bytes = sizeof memory};
    assert_int_equal(lh_expose(pair[1], &part, LH_ACCESS_WRITE, NULL, 0, &region), 0);
    lh_region_key(region, &key);
    memset(data, 0x5A, sizeof data);
    struct lh_part from = {.address = data, .bytes = sizeof data};
    const struct lh_onesided write = {.parts = &from, .count = 1, .key = key};
    assert_int_equal(lh_write(pair[0], &write, &request), 0);
    assert_int_equal(lh_wait(request, PATIENCE_NS, &result), 0);
    assert_int_equal(result.error, 0);
    lh_request_free(request);
    assert_memory_equal(memory, data, sizeof data);
    for (int i = 0; i < 2; i++)
        subs[i] = pair[i]->onesided_parent.sub;
    expect_same_secret(pair);
    expect_same_secret(subs);
    assert_memory_not_equal(keys_of(pair[0])->tx_secret, keys_of(subs[0])->tx_secret, SEAL_SECRET_BYTES);
    lh_revoke(region);
    lh_close(pair[0]);
    lh_close(pair[1]);
}

/* Of the calls that send packets, one of so many only says that it did; 0: none. */
static _Atomic uint32_t lose_each, sends;

static bool is_lost(void)
{
    uint32_t each = atomic_load(&lose_each);
    return each != 0 && atomic_fetch_add(&sends, 1) % each == 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return is_lost() ? 1 : syscall(SYS_sendmsg, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    return is_lost() ? 1 : (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

/* Keys change many times in a transfer over a path that loses packets, in both directions. */
static void test_epochs(void **state)
{
    static uint8_t data[2][1 << 20], got[2][1 << 20];
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *pair[2];
    struct lh_request *requests[4];
    struct lh_result result;
    char where[32];
    (void)state;
    listen_with(&securities[0], &listener, where);
    attr_of(&own, &securities[0]);
    own.slots = 16;
    own.mtu_bytes = 1024;
    own.channels = 2;
    own.workers = 2;
    connect_both(where, &own, listener, pair);
    lh_listener_close(listener);
    atomic_store(&lose_each, 19);
    for (int i = 0; i < 2; i++) {
        atomic_store(&keys_of(pair[i])->packets, 60);
        memset(data[i], 0x33 + i, sizeof data[i]);
        assert_int_equal(lh_recv(pair[!i], got[i], sizeof got[i], NULL, &requests[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(lh_send(pair[i], data[i], sizeof data[i], NULL, &requests[2 + i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lh_wait(requests[i], PATIENCE_NS, &result), 0);
        assert_int_equal(result.error, 0);
        lh_request_free(requests[i]);
    }
    atomic_store(&lose_each, 0);
    for (int i = 0; i < 2; i++) {
        struct lh_stats stats;
        assert_memory_equal(got[i], data[i], sizeof data[i]);
        assert_true(atomic_load(&keys_of(pair[i])->tx_epoch) >= 3);
        assert_int_equal(lh_connection_stats(pair[i], &stats), 0);
        assert_int_equal(stats.rx_replays, 0);
    }
    lh_close(pair[0]);
    lh_close(pair[1]);
}

/* Of a device that encrypts nothing, before anyone is asked. */
static void test_verbs(void **state)
{
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *none;
    (void)state;
    attr_of(&own, &securities[0]);
    own.device = "verbs:absent";
    const char *words = "device verbs:absent does not encrypt data: use udp:, or --encryption auth";
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EUNSUPPORTED, words);
    expect_error(lh_connect("127.0.0.1:9", &own, PATIENCE_NS, &none), -LH_EUNSUPPORTED, words);
}

/* Connections of one engine share the TCP connection of their key, and no other. */
static void test_streams(void **state)
{
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *pairs[3][2], *none;
    char where[32];
    (void)state;
    struct lh_engine *engines[2] = {engine_of_loopback(), engine_of_loopback()};
    attr_of(&own, &securities[0]);
    own.engine = engines[0];
    assert_int_equal(lh_listen("127.0.0.1:0", &own, &listener), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
    own.engine = engines[1];
    for (int i = 0; i < 3; i++)
        connect_both(where, &own, listener, pairs[i]);
    assert_string_equal(lh_peer_name(pairs[0][1]), lh_peer_name(pairs[2][1])); /* one port: streams */
    own.security = NULL;
    expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, "has no key");
    own.security = &securities[1];
    expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, "another key");
    for (int i = 0; i < 3; i++) { /* streams of one TLS connection, and each has its own secret */
        expect_same_secret(pairs[i]);
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(keys_of(pairs[i][0])->tx_secret, keys_of(pairs[k][0])->tx_secret,
                                    SEAL_SECRET_BYTES);
    }
    struct lh_security auth = securities[0];
    auth.encryption = LH_ENCRYPTION_AUTH;
    own.security = &auth;
    expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, "encryption differs");
    for (int i = 0; i < 3; i++) {
        expect_message(pairs[i][i % 2], pairs[i][!(i % 2)]);
        lh_close(pairs[i][0]);
        lh_close(pairs[i][1]);
    }
    lh_listener_close(listener);
    assert_int_equal(lh_engine_destroy(engines[0]), 0);
    assert_int_equal(lh_engine_destroy(engines[1]), 0);
}

/* Of two connections between the same engines, one encrypted and one not, neither speaks for the other: the
 * clear one's packets may be anyone's. */
static void test_keepalive_apart(void **state)
{
    struct lh_engine *engines[2] = {engine_of_loopback(), engine_of_loopback()};
    struct lh_connection *pairs[3][2];
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lh_security security = securities[0];
        struct lh_listener *listener;
        struct lh_attr own;
        char where[32];
        security.encryption = i == 1 ? LH_ENCRYPTION_AUTH : LH_ENCRYPTION_FULL;
        attr_of(&own, &security);
        own.engine = engines[0];
        assert_int_equal(lh_listen("127.0.0.1:0", &own, &listener), 0);
        snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
        own.engine = engines[1];
        connect_both(where, &own, listener, pairs[i]);
        lh_listener_close(listener);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(pairs[0][i]->qp->keepalive_member.keeps);
        assert_true(pairs[1][i]->qp->keepalive_member.keeps);
        assert_false(pairs[2][i]->qp->keepalive_member.keeps);
    }
    for (int i = 0; i < 3; i++) {
        lh_close(pairs[i][0]);
        lh_close(pairs[i][1]);
    }
    assert_int_equal(lh_engine_destroy(engines[0]), 0);
    assert_int_equal(lh_engine_destroy(engines[1]), 0);
}

/* Strangers that stay silent, or begin TLS and stop, take all places: a client with the key gets one. */
static void test_strangers(void **state)
{
    static const uint8_t beginning[] = {0x16, 3, 1, 3};
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *pair[2];
    char where[32];
    int strangers[STRANGERS];
    (void)state;
    listen_with(&securities[0], &listener, where);
    for (int i = 0; i < STRANGERS; i++) {
        assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &strangers[i]), 0);
        if (i % 2)
            send(strangers[i], beginning, sizeof beginning, MSG_NOSIGNAL);
    }
    attr_of(&own, &securities[0]);
    connect_both(where, &own, listener, pair);
    expect_message(pair[0], pair[1]);
    for (int i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    lh_close(pair[0]);
    lh_close(pair[1]);
    lh_listener_close(listener);
}

/* A listener that takes the connection and says nothing: until the deadline of the caller. */
static void test_silent_listener(void **state)
{
    struct lh_attr own;
    struct lh_connection *none;
    uint16_t port;
    int fd;
    char where[32];
    (void)state;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    attr_of(&own, &securities[0]);
    expect_error(lh_connect(where, &own, SHORT_NS, &none), -LH_ETIMEDOUT, "did not answer in time");
    close(fd);
}

/* A client that has proved the key and then says nothing is sent away by the listener's bound. */
static void test_silent_client(void **state)
{
    struct lh_listener *listener;
    char where[32];
    struct channel channel;
    lh_time until = tcp_deadline(PATIENCE_NS);
    ssize_t got;
    (void)state;
    listen_with(&securities[0], &listener, where);
    assert_int_equal(tcp_connect(where, until, &channel.fd), 0);
    channel.tls = NULL;
    assert_int_equal(channel_secure(&channel, tls, false), 0);
    while (channel_handshake(&channel) == 0)
        assert_int_equal(tcp_wait(channel.fd, false, until), 0);
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    assert_int_equal(tcp_wait(channel.fd, false, until), 0);
    got = channel_receive(&channel, frame, sizeof frame - 1);
    assert_true(got > (ssize_t)HANDSHAKE_HEADER_BYTES);
    frame[got] = 0;
    assert_int_equal(frame[HANDSHAKE_TYPE_AT], HANDSHAKE_REFUSE);
    assert_non_null(strstr((char *)frame + HANDSHAKE_HEADER_BYTES, "took longer than 5 s"));
    channel_close(&channel);
    lh_listener_close(listener);
}

/* ---- codes ------------------------------------------------------------------------------------------- */

static void *accept_two(void *argument)
{
    struct lh_connection *first, *second;
    struct lh_listener *listener = argument;
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &first), 0);
    expect_error(lh_accept(listener, PATIENCE_NS, &second), -LH_ECLOSED, HANDSHAKE_CODE_USED);
    return first;
}

/* Other codes, a key and none are refused, and the code stays good; then one connection has it. */
static void test_code(void **state)
{
    char right[LH_KEY_CODE_MAX], wrong[LH_KEY_CODE_MAX], where[32];
    struct lh_security security, other;
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *client, *none;
    pthread_t thread;
    void *accepted;
    (void)state;
    assert_int_equal(lh_key_code(right), 0);
    assert_int_equal(lh_key_code(wrong), 0);
    lh_security_init(&security);
    other = security;
    security.code = right;
    other.code = wrong;
    listen_with(&security, &listener, where);
    assert_int_equal(pthread_create(&thread, NULL, accept_two, listener), 0);
    const struct lh_security *const strangers[] = {&other, &other, &securities[0], NULL};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        attr_of(&own, strangers[i]);
        expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, CHANNEL_REMEDY);
    }
    attr_of(&own, &security);
    assert_int_equal(lh_connect(where, &own, PATIENCE_NS, &client), 0);
    pthread_join(thread, &accepted);
    expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, HANDSHAKE_CODE_USED);
    attr_of(&own, &other);
    expect_error(lh_connect(where, &own, PATIENCE_NS, &none), -LH_EHANDSHAKE, CHANNEL_REMEDY);
    lh_close(client);
    lh_close(accepted);
    lh_listener_close(listener);
    assert_int_equal(refusals, 1);
    assert_null(strstr(refused[0], "clients were refused"));
}

static void test_attributes(void **state)
{
    struct lh_attr own;
    struct lh_listener *listener;
    struct lh_connection *none;
    struct lh_security security;
    (void)state;
    lh_security_init(&security);
    attr_of(&own, &security);
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "security.key_file: not set");
    expect_error(lh_connect("127.0.0.1:1", &own, PATIENCE_NS, &none), -LH_EINVAL, "key_file: not set");
    security.key_file = "";
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "security.key_file: not set");
    security.key_file = "/nonexistent/key";
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "key file /nonexistent/key");
    expect_error(lh_connect("127.0.0.1:1", &own, PATIENCE_NS, &none), -LH_EINVAL, "key file /nonexistent");
    security = securities[0];
    security.encryption = (enum lh_encryption)7;
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "security.encryption 7: invalid");
    security = securities[0];
    security.code = "";
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "there is a key file, too");
    security.key_file = NULL;
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "6 words of 5 letters");
    security = securities[0];
    security.struct_bytes = 0;
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "lh_security_init()");
    own.security = &securities[0];
    own.device = "udp:127.0.0.1";
    security = securities[0];
    own.security = &security;
    security.secret = "sixteen characters, and more";
    expect_error(lh_open(&own, &none), -LH_EINVAL, "security.secret: there is a key file, too");
    security.key_file = NULL;
    security.code = "";
    expect_error(lh_open(&own, &none), -LH_EINVAL, "security.secret: there is a code, too");
    security.secret = NULL;
    expect_error(lh_open(&own, &none), -LH_EINVAL, "security.code: is for lh_listen() and lh_connect()");
    security.code = NULL;
    security.secret = "15 are too few.";
    expect_error(lh_open(&own, &none), -LH_EINVAL, "security.secret: 15 characters are too few");
    expect_error(lh_listen("127.0.0.1:0", &own, &listener), -LH_EINVAL, "security.secret: 15 characters");
    security = securities[0];
    security.encryption = LH_ENCRYPTION_AUTH;
    expect_error(lh_open(&own, &none), -LH_EINVAL, "LH_ENCRYPTION_AUTH has no effect here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_are_done),
        cmocka_unit_test(test_two_round_trips),
        cmocka_unit_test(test_greetings_that_are_none),
        cmocka_unit_test(test_standing),
        cmocka_unit_test(test_full_listener),
        cmocka_unit_test(test_return_with_cookie),
        cmocka_unit_test(test_frames_of_one_record),
        cmocka_unit_test(test_clear_text_is_not_believed),
        cmocka_unit_test(test_who_meets_whom),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_encryption),
        cmocka_unit_test(test_older_release),
        cmocka_unit_test(test_onesided),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_keepalive_apart),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_silent_listener),
        cmocka_unit_test(test_silent_client),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_attributes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
