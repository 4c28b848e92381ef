/* Channels, in clear text and under TLS: both ends, with a host on the path that reads, cuts off and changes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/tls_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "keys/key_file.h"
#include "launch/tcp.h"

#define FLOW_MAX    65536u
#define RANDOM_RUNS 500u
#define NOWHERE     SIZE_MAX

/* One of the two directions, as the host on the path has it. */
struct flow {
    int from, to;
    size_t bytes;  /* that came so far */
    size_t cut;    /* it passes that many on, then closes */
    size_t change; /* of this byte it changes bits */
    uint8_t change_by;
    bool closed;
    uint8_t copy[FLOW_MAX];
};

struct path {
    struct channel client, server;
    struct flow up, down;
};

static struct tls_context *right, *other;
static const uint8_t greeting[] = "a greeting of the client"; /* in each handshake */

static struct tls_context *context_of(uint8_t byte)
{
    struct key_secret secret;
    struct tls_context *context;
    uint8_t key[KEY_BYTES];
    memset(key, byte, sizeof key);
    assert_int_equal(key_derive(key, &secret), 0);
    assert_int_equal(tls_context_of(&secret, LH_ENCRYPTION_FULL, CHANNEL_REMEDY, &context), 0);
    return context;
}

static int set_up(void **state)
{
    (void)state;
    right = context_of(1);
    other = context_of(2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_free(right);
    tls_context_free(other);
    return 0;
}

/* ---- the path ---------------------------------------------------------------------------------------- */

static void begin(struct path *path, struct tls_context *client, struct tls_context *server)
{
    int near[2], far[2];
    memset(path, 0, sizeof *path);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, near), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, far), 0);
    path->client.fd = near[0];
    path->server.fd = far[1];
    path->up = (struct flow){.from = near[1], .to = far[0], .cut = NOWHERE, .change = NOWHERE};
    path->down = (struct flow){.from = far[0], .to = near[1], .cut = NOWHERE, .change = NOWHERE};
    assert_int_equal(channel_secure(&path->server, server, true), 0);
    assert_int_equal(channel_secure_greeting(&path->client, client, greeting, sizeof greeting), 0);
}

static void end(struct path *path)
{
    close(path->up.from);
    close(path->down.from);
    channel_close(&path->client);
    channel_close(&path->server);
}

/* Passes on what has come. True: something did. */
static bool relay(struct flow *flow)
{
    uint8_t *at = flow->copy + flow->bytes;
    ssize_t got = recv(flow->from, at, FLOW_MAX - flow->bytes, MSG_DONTWAIT);
    if (got <= 0 || flow->closed)
        return false;
    size_t before = flow->bytes, passed = (size_t)got;
    flow->bytes += passed;
    if (flow->change >= before && flow->change < flow->bytes)
        flow->copy[flow->change] ^= flow->change_by;
    if (flow->bytes >= flow->cut)
        passed = flow->cut - before;
    if (passed > 0)
        assert_int_equal(send(flow->to, at, passed, MSG_NOSIGNAL), (ssize_t)passed);
    if (flow->bytes >= flow->cut) {
        flow->closed = true;
        shutdown(flow->to, SHUT_WR);
    }
    return true;
}

/* 1, 0 or the error, of each; until neither goes on. */
static void shake(struct path *path, int *client, int *server)
{
    bool moved = true;
    *client = *server = 0;
    for (int round = 0; moved; round++) {
        assert_true(round < 1000);
        moved = relay(&path->up);
        *server = *server ? *server : channel_handshake(&path->server);
        moved |= relay(&path->down);
        *client = *client ? *client : channel_handshake(&path->client);
    }
}

static void expect_both(struct path *path)
{
    int client, server;
    shake(path, &client, &server);
    assert_int_equal(client, 1);
    assert_int_equal(server, 1);
}

static void expect_reason(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

/* ---- both ends --------------------------------------------------------------------------------------- */

static void expect_passes(struct channel *from, struct flow *flow, struct channel *to, size_t bytes)
{
    static uint8_t data[40000], got[40000];
    size_t sent = 0, received = 0;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + bytes);
    while (received < bytes) {
        ssize_t n = channel_send(from, data + sent, bytes - sent);
        assert_true(n >= 0);
        sent += (size_t)n;
        relay(flow);
        flow->bytes = 0;
        while ((n = channel_receive(to, got + received, bytes - received)) > 0)
            received += (size_t)n;
        assert_true(received == bytes || errno == EAGAIN);
    }
    assert_memory_equal(data, got, bytes);
    assert_int_equal(sent, bytes);
    assert_int_equal(channel_receive(to, got, 1), -1);
    assert_int_equal(errno, EAGAIN);
}

static void expect_data(struct path *path)
{
    static const size_t sizes[] = {1, 12, 2060, 16384, 16385, 40000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_passes(&path->client, &path->up, &path->server, sizes[i]);
        expect_passes(&path->server, &path->down, &path->client, sizes[i]);
    }
}

static void test_clear_text(void **state)
{
    struct path path;
    uint8_t secret[32];
    (void)state;
    begin(&path, NULL, NULL);
    expect_both(&path);
    assert_string_equal(channel_identity(&path.client), "");
    assert_false(channel_is_proven(&path.server));
    expect_data(&path);
    expect_reason(channel_export(&path.client, "EXPORTER-test", "", 0, secret, 32), -LH_ESTATE, "no key");
    end(&path);
}

static void test_same_key(void **state)
{
    struct path path;
    (void)state;
    begin(&path, right, right);
    assert_false(channel_is_proven(&path.server));
    expect_both(&path);
    assert_true(channel_is_proven(&path.server));
    assert_string_equal(channel_identity(&path.client), tls_context_identity(right));
    assert_string_equal(channel_identity(&path.server), tls_context_identity(right));
    expect_data(&path);
    end(&path);
}

static void expect_greeting(const struct path *path)
{
    size_t bytes;
    const uint8_t *came = channel_greeting(&path->server, &bytes);
    assert_non_null(came);
    assert_int_equal(bytes, sizeof greeting);
    assert_memory_equal(came, greeting, sizeof greeting);
}

/* The greeting is there with the proof of the key, ahead of the client's answer. */
static void test_greeting(void **state)
{
    struct path path;
    size_t bytes;
    (void)state;
    begin(&path, right, right);
    assert_null(channel_greeting(&path.server, &bytes));
    assert_true(relay(&path.up));
    assert_int_equal(channel_handshake(&path.server), 0);
    expect_greeting(&path);
    assert_false(channel_greeting_taken(&path.client));
    expect_both(&path);
    assert_true(channel_greeting_taken(&path.client));
    end(&path);
}

/* Of one handshake both ends get the same, of two others; and so of labels and contexts. */
static void test_exported_secrets(void **state)
{
    struct path one, two;
    uint8_t secret[2][32], another[32];
    (void)state;
    begin(&one, right, right);
    assert_int_equal(channel_export(&one.client, "EXPORTER-a", "x", 1, another, 32), -LH_ESTATE);
    expect_both(&one);
    begin(&two, right, right);
    expect_both(&two);
    assert_int_equal(channel_export(&one.client, "EXPORTER-a", "x", 1, secret[0], 32), 0);
    assert_int_equal(channel_export(&one.server, "EXPORTER-a", "x", 1, secret[1], 32), 0);
    assert_memory_equal(secret[0], secret[1], 32);
    assert_int_equal(channel_export(&one.server, "EXPORTER-b", "x", 1, another, 32), 0);
    assert_memory_not_equal(secret[0], another, 32);
    assert_int_equal(channel_export(&one.server, "EXPORTER-a", "y", 1, another, 32), 0);
    assert_memory_not_equal(secret[0], another, 32);
    assert_int_equal(channel_export(&two.server, "EXPORTER-a", "x", 1, another, 32), 0);
    assert_memory_not_equal(secret[0], another, 32);
    end(&one);
    end(&two);
}

/* What is sent is not on the path; neither is the key. */
static void test_nothing_in_clear_text(void **state)
{
    static const char words[] = "nobody on the path reads this";
    struct path path;
    char got[sizeof words];
    (void)state;
    begin(&path, right, right);
    expect_both(&path);
    assert_int_equal(channel_send(&path.client, words, sizeof words), (ssize_t)sizeof words);
    assert_true(relay(&path.up));
    assert_int_equal(channel_receive(&path.server, got, sizeof got), (ssize_t)sizeof got);
    assert_string_equal(got, words);
    assert_null(memmem(path.up.copy, path.up.bytes, "nobody", 6));
    assert_non_null(memmem(path.up.copy, path.up.bytes, "longhaul 1 rendezvous", 21)); /* that it sees */
    end(&path);
}

/* The accepting side may refuse before the client's answer has come. */
static void test_server_sends_early(void **state)
{
    struct path path;
    char got[8];
    (void)state;
    begin(&path, right, right);
    assert_true(relay(&path.up));
    assert_int_equal(channel_handshake(&path.server), 0);
    assert_true(channel_is_proven(&path.server));
    assert_int_equal(channel_send(&path.server, "early", 5), 5);
    assert_true(relay(&path.down));
    assert_null(memmem(path.down.copy, path.down.bytes, "early", 5));
    assert_int_equal(channel_send(&path.client, "x", 1), -1); /* it has nobody to trust yet */
    assert_int_equal(channel_handshake(&path.client), 1);
    assert_int_equal(channel_receive(&path.client, got, sizeof got), 5);
    assert_memory_equal(got, "early", 5);
    end(&path);
}

/* A peer that does not read: what waits is bounded, and comes once it does. */
static void test_full_socket(void **state)
{
    static uint8_t data[16384], got[sizeof data];
    struct path path;
    size_t sent = 0, received = 0;
    ssize_t n;
    (void)state;
    begin(&path, right, right);
    expect_both(&path);
    while ((n = channel_send(&path.client, data, sizeof data)) > 0)
        sent += (size_t)n;
    assert_int_equal(n, 0);
    assert_true(channel_has_unsent(&path.client));
    assert_true(sent < (16u << 20));
    while (received < sent) {
        relay(&path.up);
        path.up.bytes = 0;
        while ((n = channel_receive(&path.server, got, sizeof got)) > 0)
            received += (size_t)n;
        assert_int_equal(errno, EAGAIN);
        assert_true(channel_send(&path.client, NULL, 0) >= 0);
    }
    assert_false(channel_has_unsent(&path.client));
    end(&path);
}

/* What a record has beyond what was asked for does not show at the socket. */
static void test_unread_part_of_a_record(void **state)
{
    struct path path;
    char got[3];
    (void)state;
    begin(&path, right, right);
    expect_both(&path);
    assert_int_equal(channel_send(&path.client, "abcdef", 6), 6);
    assert_true(relay(&path.up));
    assert_false(channel_has_unread(&path.server));
    assert_int_equal(channel_receive(&path.server, got, 3), 3);
    assert_true(channel_has_unread(&path.server));
    assert_int_equal(channel_receive(&path.server, got, 3), 3);
    assert_memory_equal(got, "def", 3);
    assert_false(channel_has_unread(&path.server));
    end(&path);
}

/* ---- keys that differ -------------------------------------------------------------------------------- */

static void test_other_key(void **state)
{
    struct path path;
    (void)state;
    begin(&path, right, other);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE, "another key (use the same key file");
    assert_false(channel_is_proven(&path.server));
    assert_true(relay(&path.down));
    expect_reason(channel_handshake(&path.client), -LH_EHANDSHAKE, "another key (use the same key file");
    assert_int_equal(channel_send(&path.server, "x", 1), -1);
    assert_int_equal(channel_send(&path.client, "x", 1), -1);
    end(&path);
}

/* Who has seen a key's name has not the key. */
static void test_right_name_of_another_key(void **state)
{
    struct path path;
    struct key_secret secret = {.psk = {1, 2, 3}};
    struct tls_context *forged;
    (void)state;
    strcpy(secret.identity, tls_context_identity(right));
    assert_int_equal(tls_context_of(&secret, LH_ENCRYPTION_FULL, CHANNEL_REMEDY, &forged), 0);
    begin(&path, forged, right);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE, "another key (use the same key file");
    assert_false(channel_is_proven(&path.server));
    end(&path);
    begin(&path, right, forged);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE, "another key");
    assert_true(relay(&path.down));
    expect_reason(channel_handshake(&path.client), -LH_EHANDSHAKE, "another key");
    end(&path);
    tls_context_free(forged);
}

static void test_one_side_without_key(void **state)
{
    struct path path;
    char got[16];
    (void)state;
    begin(&path, NULL, right);
    assert_int_equal(channel_send(&path.client, "LHR1", 4), 4);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE,
                  "client has no key, the listener has one (use");
    assert_int_equal(channel_send(&path.server, "refused", 7), 7);
    assert_true(relay(&path.down));
    assert_memory_equal(path.down.copy, "refused", 7);
    end(&path);

    begin(&path, right, NULL);
    assert_true(relay(&path.up));
    assert_int_equal(path.up.copy[0], 0x16);
    assert_int_equal(channel_send(&path.server, "LHR1 refused", 12), 12);
    assert_true(relay(&path.down));
    expect_reason(channel_handshake(&path.client), -LH_EHANDSHAKE, "in clear text: it has no key");
    assert_true(channel_is_clear_text(&path.client));
    assert_int_equal(channel_handshake(&path.client), -LH_EHANDSHAKE);
    assert_int_equal(channel_receive(&path.client, got, 16), 1);
    assert_int_equal(channel_receive(&path.client, got + 1, 15), 11);
    assert_memory_equal(got, "LHR1 refused", 12);
    assert_int_equal(channel_send(&path.client, "x", 1), -1);
    end(&path);
}

static void test_stranger(void **state)
{
    static const uint8_t large[] = {0x16, 3, 1, 4, 0};
    struct path path;
    (void)state;
    begin(&path, NULL, right);
    channel_send(&path.client, "GET /", 5);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE, "not Longhaul (first byte 0x47)");
    end(&path);
    begin(&path, NULL, right);
    channel_send(&path.client, large, sizeof large);
    assert_true(relay(&path.up));
    expect_reason(channel_handshake(&path.server), -LH_EHANDSHAKE, "record of 1024 bytes");
    end(&path);
}

/* A listener whose first message never ends: the client reads 4 KiB of it. */
static void test_endless_message(void **state)
{
    static const uint8_t beginning[9] = {0x16, 3, 3, 3, 0xfb, 2, 0, 0x4e, 0x20}; /* 1019 of 20,000 bytes */
    uint8_t record[CHANNEL_FIRST_MAX] = {0};
    struct path path;
    (void)state;
    begin(&path, right, NULL);
    memcpy(record, beginning, sizeof beginning);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(channel_send(&path.server, record, sizeof record), (ssize_t)sizeof record);
        assert_true(relay(&path.down));
        int error = channel_handshake(&path.client);
        if (i < 3)
            assert_int_equal(error, 0);
        else
            expect_reason(error, -LH_EHANDSHAKE, "more than 4096 bytes");
        memset(record + 5, 0, 4);
    }
    end(&path);
}

/* Silent ends wait, and cost what they cost; whose they are has the deadlines. */
static void test_silent_peer(void **state)
{
    struct path path;
    (void)state;
    begin(&path, right, right);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(channel_handshake(&path.server), 0);
        assert_int_equal(channel_handshake(&path.client), 0);
    }
    assert_int_equal(channel_receive(&path.server, (char[1]){0}, 1), -1);
    assert_int_equal(errno, EAGAIN);
    end(&path);
}

/* ---- a host on the path ------------------------------------------------------------------------------ */

/* Bytes of each direction in a handshake. */
static void measure(size_t *up, size_t *down)
{
    struct path path;
    begin(&path, right, right);
    expect_both(&path);
    *up = path.up.bytes;
    *down = path.down.bytes;
    end(&path);
}

/* Cut off at each byte: neither hangs behind the end of what comes, and neither is content with less. */
static void test_cut_off_at_each_byte(void **state)
{
    struct path path;
    size_t up, down;
    int client, server;
    (void)state;
    measure(&up, &down);
    for (size_t cut = 1; cut < up; cut++) {
        begin(&path, right, right);
        path.up.cut = cut;
        shake(&path, &client, &server);
        expect_reason(server, -LH_EPEER, "");
        end(&path);
    }
    for (size_t cut = 1; cut < down; cut++) {
        begin(&path, right, right);
        path.down.cut = cut;
        shake(&path, &client, &server);
        expect_reason(client, -LH_EPEER, "");
        assert_int_not_equal(server, 1);
        end(&path);
    }
}

static void expect_refused_or_harmless(struct path *path)
{
    int client, server;
    uint8_t secret[2][32];
    shake(path, &client, &server);
    if (client != 1 || server != 1)
        return;
    assert_int_equal(channel_export(&path->client, "EXPORTER-a", "", 0, secret[0], 32), 0);
    assert_int_equal(channel_export(&path->server, "EXPORTER-a", "", 0, secret[1], 32), 0);
    assert_memory_equal(secret[0], secret[1], 32);
    expect_greeting(path);
    /* RFC 8446, section 5.1: the version of a record in clear text has no meaning. */
    const struct flow *flow = path->up.change != NOWHERE ? &path->up : &path->down;
    assert_true(flow->change == 2 || flow->copy[flow->change - 2] >= 0x14);
}

/* Each byte changed, of the greeting, too: both ends are never done with what the other has not sent. */
static void test_each_byte_changed(void **state)
{
    static const uint8_t changes[] = {1, 0x80, 0xff};
    struct path path;
    size_t sizes[2];
    (void)state;
    measure(&sizes[0], &sizes[1]);
    for (size_t direction = 0; direction < 2; direction++)
        for (size_t at = 0; at < sizes[direction]; at++)
            for (size_t i = 0; i < sizeof changes; i++) {
                begin(&path, right, right);
                struct flow *flow = direction == 0 ? &path.up : &path.down;
                flow->change = at;
                flow->change_by = changes[i];
                expect_refused_or_harmless(&path);
                end(&path);
            }
}

/* The same behind the handshake: data that was changed is none, and no data follows. */
static void test_changed_data(void **state)
{
    struct path path;
    char got[8];
    (void)state;
    for (size_t at = 0; at < 5 + 5 + 1 + 16; at++) { /* header, data, type, tag */
        begin(&path, right, right);
        expect_both(&path);
        path.up.change = path.up.bytes + at;
        path.up.change_by = 0x10;
        assert_int_equal(channel_send(&path.client, "hello", 5), 5);
        assert_int_equal(channel_send(&path.client, "again", 5), 5);
        assert_true(relay(&path.up));
        for (int i = 0; i < 3; i++) {
            ssize_t n = channel_receive(&path.server, got, sizeof got);
            assert_true(n <= 0);
            /* A longer record may be believed to be under way. */
            assert_true(n < 0 && (errno == EPROTO || (errno == EAGAIN && (at == 3 || at == 4))));
        }
        end(&path);
    }
}

/* A recorded conversation, played to the same listener: it gets no further than its first message. */
static void test_replayed_client(void **state)
{
    struct path one, two;
    (void)state;
    begin(&one, right, right);
    expect_both(&one);
    begin(&two, NULL, right);
    assert_int_equal(channel_send(&two.client, one.up.copy, one.up.bytes), (ssize_t)one.up.bytes);
    assert_true(relay(&two.up));
    assert_true(channel_handshake(&two.server) < 0);
    end(&one);
    end(&two);
}

/* What one end sends comes back to it. */
static void test_reflected(void **state)
{
    struct path path;
    (void)state;
    begin(&path, right, NULL);
    assert_true(relay(&path.up));
    assert_int_equal(channel_send(&path.server, path.up.copy, path.up.bytes), (ssize_t)path.up.bytes);
    assert_true(relay(&path.down));
    assert_true(channel_handshake(&path.client) < 0);
    end(&path);
}

static size_t random_bytes(struct lh_prng *prng, uint8_t *out, size_t room)
{
    size_t bytes = 1 + (size_t)lh_prng_below(prng, room);
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)lh_prng_next(prng);
    if (bytes > 5 && lh_prng_below(prng, 2)) { /* the beginning of a record that is whole */
        const uint8_t header[] = {0x16, 3, 3, 0, (uint8_t)(bytes - 5)};
        memcpy(out, header, 5);
    }
    return bytes;
}

/* Into both ends, as their first bytes and in the middle. */
static void test_random_bytes(void **state)
{
    struct lh_prng prng;
    struct path path;
    uint8_t bytes[200];
    (void)state;
    lh_prng_seed(&prng, 1);
    for (uint32_t run = 0; run < RANDOM_RUNS; run++) {
        begin(&path, right, right);
        if (lh_prng_below(&prng, 2)) {
            relay(&path.up);
            channel_handshake(&path.server);
            relay(&path.down);
        }
        size_t count = random_bytes(&prng, bytes, sizeof bytes);
        assert_int_equal(send(path.up.to, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
        count = random_bytes(&prng, bytes, sizeof bytes);
        assert_int_equal(send(path.down.to, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
        for (int i = 0; i < 4; i++) {
            assert_int_not_equal(channel_handshake(&path.server), 1);
            if (channel_handshake(&path.client) == 1) /* it was, before they came */
                assert_int_equal(channel_receive(&path.client, bytes, 1), -1);
        }
        end(&path);
    }
}

static void test_security_attribute(void **state)
{
    struct tls_context *context = right;
    struct lh_security security;
    (void)state;
    assert_int_equal(tls_context_create(NULL, &context), 0);
    assert_null(context);
    assert_string_equal(tls_context_identity(NULL), "");
    lh_security_init(&security);
    security.key_file = "/nonexistent/key";
    expect_reason(tls_context_create(&security, &context), -LH_EINVAL, "/nonexistent/key");
    assert_null(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clear_text),
        cmocka_unit_test(test_same_key),
        cmocka_unit_test(test_greeting),
        cmocka_unit_test(test_exported_secrets),
        cmocka_unit_test(test_nothing_in_clear_text),
        cmocka_unit_test(test_server_sends_early),
        cmocka_unit_test(test_full_socket),
        cmocka_unit_test(test_unread_part_of_a_record),
        cmocka_unit_test(test_other_key),
        cmocka_unit_test(test_right_name_of_another_key),
        cmocka_unit_test(test_one_side_without_key),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_endless_message),
        cmocka_unit_test(test_silent_peer),
        cmocka_unit_test(test_cut_off_at_each_byte),
        cmocka_unit_test(test_each_byte_changed),
        cmocka_unit_test(test_changed_data),
        cmocka_unit_test(test_replayed_client),
        cmocka_unit_test(test_reflected),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_security_attribute),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
