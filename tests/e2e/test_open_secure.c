/*
 * test_open_secure.c - lh_open with a key over UDP on loopback: two sides that exchange blobs; sides without
 * the key, blobs that were changed or reflected on the way, and peers on other hosts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>
#include <longhaul/onesided.h>

#include "keys/pair_keys.h"
#include "message/connection_state.h"
#include "support/sim_engines.h"
#include "wire/qp_info.h"

#define BLOB_HEADER 8u
#define BYTES       300000u
#define LIMIT_NS    (60 * LH_NS_PER_S)
#define SHORT_NS    (300 * LH_NS_PER_MS)
#define SECRET      "of both, and of nobody else"

struct blob {
    uint8_t data[LH_BLOB_MAX];
    size_t bytes;
};

static uint8_t sent[BYTES], received[BYTES];

static struct lh_connection *open_with(const struct lh_security *security)
{
    struct lh_connection *c;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.security = security;
    sim_engines_must(lh_open(&attr, &c), "lh_open");
    return c;
}

static struct lh_security secret_of(const char *text)
{
    struct lh_security security;
    lh_security_init(&security);
    security.secret = text;
    return security;
}

static struct lh_connection *open_key(const char *text)
{
    const struct lh_security security = secret_of(text);
    return open_with(&security);
}

static struct blob blob_of(struct lh_connection *c)
{
    struct blob blob = {.bytes = sizeof blob.data};
    sim_engines_must(lh_blob(c, blob.data, &blob.bytes), "lh_blob");
    return blob;
}

static int attach(struct lh_connection *c, struct blob blob)
{
    return lh_attach(c, blob.data, blob.bytes);
}

static void expect_refused(int code, const char *reason)
{
    assert_int_equal(code, -LH_EHANDSHAKE);
    if (!strstr(lh_last_error(), reason))
        fail_msg("\"%s\": \"%s\" expected", lh_last_error(), reason);
}

/* Sends from one to the other. Returns what lh_wait() at the receiver does. */
static int deliver(struct lh_connection *from, struct lh_connection *to, lh_time limit_ns)
{
    struct lh_request *send, *receive;
    for (uint32_t i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)(i * 7 + 3);
    memset(received, 0, sizeof received);
    sim_engines_must(lh_recv(to, received, BYTES, NULL, &receive), "lh_recv");
    sim_engines_must(lh_send(from, sent, BYTES, NULL, &send), "lh_send");
    int waited = lh_wait(receive, limit_ns, NULL);
    lh_request_free(send);
    lh_request_free(receive);
    return waited;
}

static void close_both(struct lh_connection *a, struct lh_connection *b)
{
    lh_close(a);
    lh_close(b);
}

/* ---- both have the key ------------------------------------------------------------------------------- */

static void messages(void **state)
{
    (void)state;
    /* Which side has the greater public key is chance. */
    for (int i = 0; i < 6; i++) {
        struct lh_connection *a = open_key(SECRET), *b = open_key(SECRET);
        struct blob of_a = blob_of(a), again = blob_of(a);
        assert_int_equal(of_a.bytes, again.bytes);
        assert_memory_equal(of_a.data, again.data, of_a.bytes);
        sim_engines_must(attach(b, of_a), "lh_attach");
        sim_engines_must(attach(a, blob_of(b)), "lh_attach"); /* a blob that is asked for afterwards */
        for (int way = 0; way < 2; way++) {
            struct lh_stats stats;
            assert_int_equal(deliver(way ? a : b, way ? b : a, LIMIT_NS), 0);
            assert_memory_equal(sent, received, BYTES);
            sim_engines_must(lh_connection_stats(way ? b : a, &stats), "lh_connection_stats");
            assert_true((way ? b : a)->encrypted);
            assert_int_equal(stats.rx_auth_failures, 0);
        }
        close_both(a, b);
    }
}

static void one_sided(void **state)
{
    (void)state;
    struct lh_connection *a = open_key(SECRET), *b = open_key(SECRET);
    struct lh_region *region;
    struct lh_request *write;
    struct lh_key key;
    sim_engines_must(attach(b, blob_of(a)), "lh_attach");
    sim_engines_must(attach(a, blob_of(b)), "lh_attach");
    memset(received, 0, sizeof received);
    memset(sent, 5, sizeof sent);
    const struct lh_part target = {received, BYTES, NULL}, source = {sent, BYTES, NULL};
    sim_engines_must(lh_expose(b, &target, LH_ACCESS_WRITE, NULL, 0, &region), "lh_expose");
    lh_region_key(region, &key);
    const struct lh_onesided operation = {.parts = &source, .count = 1, .key = key};
    sim_engines_must(lh_write(a, &operation, &write), "lh_write");
    sim_engines_must(lh_wait(write, LIMIT_NS, NULL), "lh_wait");
    assert_memory_equal(sent, received, BYTES);
    lh_request_free(write);
    close_both(a, b);
}

/* ---- others ------------------------------------------------------------------------------------------ */

static void keys_that_differ(void **state)
{
    (void)state;
    struct lh_connection *a = open_key(SECRET), *other = open_key("another text of that length"),
                         *none = open_with(NULL);
    expect_refused(attach(a, blob_of(other)), "the peer has another key");
    expect_refused(attach(a, blob_of(none)), "this side encrypts, the peer does not");
    expect_refused(attach(none, blob_of(a)), "the peer encrypts, this side does not");
    expect_refused(attach(a, blob_of(a)), "reflected");
    close_both(other, none);
    lh_close(a);
}

/* After a blob that is refused another one may come. */
static void hostile_blobs(void **state)
{
    (void)state;
    struct lh_connection *a = open_key(SECRET), *b = open_key(SECRET);
    const struct blob right = blob_of(b);
    const uint32_t packet_max = a->small.packet_max;
    for (uint8_t fill = 0; fill < 2; fill++) { /* points of small order */
        struct blob wrong = right;
        memset(wrong.data + wrong.bytes - PAIR_PUBLIC_BYTES, 0, PAIR_PUBLIC_BYTES);
        wrong.data[wrong.bytes - PAIR_PUBLIC_BYTES] = fill;
        expect_refused(attach(a, wrong), "no public key of X25519");
        assert_int_equal(a->small.packet_max, packet_max); /* of what it announces nothing counts */
    }
    for (size_t bytes = 0; bytes < right.bytes; bytes++)
        assert_int_not_equal(lh_attach(a, right.data, bytes), 0);
    sim_engines_must(attach(b, blob_of(a)), "lh_attach");
    sim_engines_must(attach(a, right), "lh_attach");
    assert_int_equal(deliver(a, b, LIMIT_NS), 0);
    assert_int_equal(attach(a, right), -LH_ESTATE);
    close_both(a, b);
}

/* Whatever is changed on the way, both have other secrets, and nothing arrives. */
static void changed_on_the_way(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        struct lh_connection *a = open_key(SECRET), *b = open_key(SECRET), *third = open_key(SECRET);
        struct blob of_a = blob_of(a);
        if (what == 0) { /* a flag that nobody knows */
            of_a.data[6] ^= 0x80;
        } else {
            const struct blob theirs = blob_of(third);
            memcpy(of_a.data + of_a.bytes - PAIR_PUBLIC_BYTES,
                   theirs.data + theirs.bytes - PAIR_PUBLIC_BYTES, PAIR_PUBLIC_BYTES);
        }
        sim_engines_must(attach(a, blob_of(b)), "lh_attach");
        sim_engines_must(attach(b, of_a), "lh_attach");
        assert_int_equal(deliver(a, b, SHORT_NS), -LH_ETIMEDOUT);
        close_both(a, b);
        lh_close(third);
    }
}

/* The first that it attaches is the peer; the other, and a side that got its own blob back with a bit changed
 * that X25519 does not read, have other keys. */
static void one_blob_twice(void **state)
{
    (void)state;
    struct lh_connection *a = open_key(SECRET), *b = open_key(SECRET), *other = open_key(SECRET),
                         *alone = open_key(SECRET);
    struct blob of_b = blob_of(b), back = blob_of(alone);
    sim_engines_must(attach(a, of_b), "lh_attach");
    sim_engines_must(attach(other, of_b), "lh_attach");
    sim_engines_must(attach(b, blob_of(a)), "lh_attach");
    assert_int_equal(deliver(a, b, LIMIT_NS), 0);
    assert_int_equal(deliver(other, b, SHORT_NS), -LH_ETIMEDOUT);
    back.data[back.bytes - 1] ^= 0x80;
    sim_engines_must(attach(alone, back), "lh_attach");
    assert_int_equal(deliver(alone, alone, SHORT_NS), -LH_ETIMEDOUT);
    close_both(a, b);
    close_both(other, alone);
}

/* ---- other hosts ------------------------------------------------------------------------------------- */

/* The blob, as of a peer at that IPv4 address. */
static struct blob moved(struct blob blob, const uint8_t address[4])
{
    struct qp_info info;
    sim_engines_must(qp_info_decode(blob.data + BLOB_HEADER, blob.bytes - BLOB_HEADER, &info),
                     "qp_info_decode");
    memcpy(info.endpoint.address, address, 4);
    blob.bytes = BLOB_HEADER + qp_info_encode(&info, blob.data + BLOB_HEADER);
    return blob;
}

static void loopback_only(void **state)
{
    (void)state;
    struct lh_security security;
    lh_security_init(&security);
    security.encryption = LH_ENCRYPTION_OFF;
    security.loopback_only = true;
    struct lh_connection *a = open_with(&security), *b = open_with(NULL);
    const struct blob of_b = blob_of(b);
    expect_refused(attach(a, moved(of_b, (const uint8_t[4]){10, 9, 0, 2})),
                   "not encrypted: peers on other hosts are refused (");
    expect_refused(attach(b, moved(blob_of(a), (const uint8_t[4]){10, 9, 0, 1})),
                   "not encrypted: peers on other hosts are refused by the peer");
    sim_engines_must(attach(a, moved(of_b, (const uint8_t[4]){127, 0, 0, 1})), "lh_attach");
    sim_engines_must(attach(b, blob_of(a)), "lh_attach");
    assert_int_equal(deliver(b, a, LIMIT_NS), 0);
    close_both(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),           cmocka_unit_test(one_sided),
        cmocka_unit_test(keys_that_differ),   cmocka_unit_test(hostile_blobs),
        cmocka_unit_test(changed_on_the_way), cmocka_unit_test(one_blob_twice),
        cmocka_unit_test(loopback_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
